"""What the user gives: landmarks as points or row numbers, and kernel matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Rows, block_slices, check_finite
from sketchmeans.kernels import Kernel, Precomputed
from sketchmeans.landmarks.base import Landmarks
from sketchmeans.numerics.linalg import SYMMETRY_TOLERANCE

#: Rows of a given matrix that are compared with their mirror image at a time.
_STRIP = 512


def read_landmarks(landmarks: Any, rows: Rows, kernel: Kernel) -> Landmarks:
    """Return given points (m, d) or row numbers (m,) as landmarks."""
    points = landmarks if sparse.issparse(landmarks) else np.asarray(landmarks)
    if points.ndim == 1 and points.dtype.kind in "iu" and len(points):
        if points.min() < 0 or points.max() >= len(rows):
            raise ValueError(
                f"landmarks holds row numbers from {points.min()} to {points.max()}; "
                f"they should lie in 0..{len(rows) - 1}."
            )
        indices = points.astype(np.intp)
        return Landmarks(kernel.points(rows, indices), indices)
    if isinstance(kernel, Precomputed):
        raise ValueError(
            "landmarks should be row numbers with kernel='precomputed': there is no "
            "input space for points."
        )
    if (
        points.ndim != 2
        or points.dtype.kind not in "fiub"
        or not points.shape[0]
        or points.shape[1] != rows.n_features
    ):
        raise ValueError(
            f"landmarks of shape {points.shape} and type {points.dtype} should be a "
            f"selector's name, points of shape (m, {rows.n_features}) or a list of row "
            "numbers."
        )
    check_finite(points, name="landmarks")
    return Landmarks(sparse.csr_array(points) if sparse.issparse(points) else points)


def check_given_matrix(rows: Rows) -> None:
    """Raise where a precomputed kernel matrix is not square, finite and symmetric."""
    if rows.X.shape[0] != rows.X.shape[1]:
        raise ValueError(
            f"X.shape={rows.X.shape} should be square with kernel='precomputed': "
            "k(X, X) of the training rows."
        )
    rows.moments()  # finds what is not finite
    K = rows.load().X
    scale = worst = 0.0
    for start, stop in block_slices(len(rows), _STRIP):
        strip = K[start:stop].astype(np.float64)
        mirror = K[:, start:stop].T.astype(np.float64)
        scale = max(scale, float(abs(strip).max()))
        worst = max(worst, float(abs(strip - mirror).max()))
    if worst > SYMMETRY_TOLERANCE * scale:
        raise ValueError(
            "The precomputed kernel matrix should be symmetric; entries differ from "
            f"their mirror image by up to {worst:.3g}."
        )
