"""Kernel matrices of a few points, and checks of those that are given."""

from __future__ import annotations

import numpy as np

from sketchmeans.data.rows import Block, Rows, block_height, spans
from sketchmeans.kernels.base import Kernel
from sketchmeans.kernels.pairwise import Precomputed
from sketchmeans.numerics.linalg import SYMMETRY_TOLERANCE, Array, check_no_overflow
from sketchmeans.numerics.parallel import Workers

#: Rows of a matrix that are computed, or compared with their mirror image, at a time.
_STRIP = 256


def compute_gram(
    kernel: Kernel, points: Block, workers: Workers, rows: Rows | None = None
) -> Array:
    """Return ``k(Z, Z)`` of some points, in float64 and exactly symmetric.

    Parameters
    ----------
    kernel : Kernel
    points : ndarray or CSR matrix of shape (m, d)
        For a precomputed kernel the row numbers, of shape (m, 1).
    workers : Workers
    rows : Rows, optional
        The training rows; needed for a precomputed kernel, whose values they hold.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.kernels import Linear
    >>> with Workers(1) as workers:
    ...     compute_gram(Linear(), np.array([[1.0], [2.0]]), workers)
    array([[1., 2.],
           [2., 4.]])
    """
    m, blocks = points.shape[0], points
    if isinstance(kernel, Precomputed):
        assert rows is not None
        blocks = rows.take(np.ravel(points))
    columns = kernel.against(points, np.float64, workers)
    height = min(block_height(blocks.shape[1], m), _STRIP)
    K = workers.fill(
        np.empty((m, m)), lambda part, out: columns(blocks[part], out), height
    )
    check_no_overflow(K)
    for start, stop in spans(m, _STRIP):  # in strips: m × m may be all that fits
        strip = K[start:stop, start:] + K[start:, start:stop].T
        strip *= 0.5
        K[start:stop, start:] = strip
        K[start:, start:stop] = strip.T
    if not isinstance(kernel, Precomputed):
        np.fill_diagonal(K, kernel.diagonal(points))
    return K


def check_kernel_matrix(rows: Rows) -> None:
    """Raise where a precomputed kernel matrix is not square, finite and symmetric."""
    rows.survey()  # finds what is not finite
    if rows.X.shape[0] != rows.X.shape[1]:
        raise ValueError(
            f"X.shape={rows.X.shape} should be square with kernel='precomputed': "
            "k(X, X) of the training rows."
        )
    K = rows.held().X
    scale = worst = 0.0
    for start, stop in spans(len(rows), _STRIP):
        strip = K[start:stop].astype(np.float64)
        mirror = K[:, start:stop].T.astype(np.float64)
        scale = max(scale, float(abs(strip).max()))
        worst = max(worst, float(abs(strip - mirror).max()))
    if worst > SYMMETRY_TOLERANCE * scale:
        raise ValueError(
            "The precomputed kernel matrix should be symmetric; entries differ from "
            f"their mirror image by up to {worst:.3g}."
        )
