"""Kernels of scikit-learn, of a callable, and kernel matrices, given or computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels

from sketchmeans.data.rows import Block, Rows, block_height, block_slices
from sketchmeans.data.sources.base import toarray
from sketchmeans.kernels.arrays import write
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.kernels.base import Kernel, KernelColumns
from sketchmeans.numerics.linalg import SYMMETRY_TOLERANCE, Array, check_no_overflow
from sketchmeans.numerics.parallel import Workers

#: Rows of a matrix that are computed, or compared with their mirror image, at a time.
_STRIP = 256


@dataclass(eq=False, repr=False)
class Pairwise(Kernel):
    """``k(x, z) = metric(x, z, **params)``: another of scikit-learn's, or a callable.

    A callable costs n·m calls from Python.

    Parameters
    ----------
    metric : str or callable
        A callable takes two rows and returns a number, as in scikit-learn; a
        vectorised kernel is written as a `Kernel` instead.
    params : dict, optional
        Keyword arguments of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.kernels import Pairwise
    >>> shared = Pairwise(lambda x, z: float(np.minimum(x, z).sum()))
    >>> shared(np.array([[3.0, 1.0]]), np.array([[2.0, 2.0]]))
    array([[3.]])
    """

    metric: str | Callable[..., float] = "chi2"
    params: Mapping[str, Any] | None = None

    @property
    def positive_definite(self) -> bool:  # type: ignore[override]
        """Whether every kernel matrix is positive semi-definite."""
        return self.metric != "additive_chi2"

    def against(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> KernelColumns:
        kind, metric, params = np.dtype(dtype), self._metric(), self.params or {}

        def columns(block: Block, out: Array | None = None) -> Array:
            X, Y = _writable(block, kind), _writable(Z, kind)
            return write(pairwise_kernels(X, Y, metric=metric, **params), kind, out)

        return columns

    def _metric(self) -> Any:
        """Return the metric; a callable in a wrapper that checks what it returns."""
        if not callable(self.metric):
            return self.metric
        name = getattr(self.metric, "__name__", None) or repr(self.metric)

        def checked(x: Any, z: Any, **params: Any) -> float:
            value = self.metric(x, z, **params)  # type: ignore[operator]
            if np.size(value) != 1 or np.asarray(value).dtype.kind not in "fiub":
                raise ValueError(
                    f"kernel={name} should return one real number for two rows, not "
                    f"{type(value).__name__} of shape {np.shape(value)}. A kernel of "
                    "whole tables is written as a Kernel object."
                )
            number = float(np.asarray(value).reshape(()))
            if not math.isfinite(number):
                raise ValueError(
                    f"kernel={name} returned {number} for two rows; it should return "
                    "a finite number."
                )
            return number

        return checked

    def diagonal(self, X: Block) -> Array:
        if self.metric == "chi2":
            return np.ones(X.shape[0])
        if self.metric == "additive_chi2":
            return np.zeros(X.shape[0])
        metric, params = self._metric(), self.params or {}
        rows = (X[i : i + 1].astype(np.float64) for i in range(X.shape[0]))
        return np.array(
            [pairwise_kernels(row, metric=metric, **params)[0, 0] for row in rows],
            dtype=np.float64,
        )


class Chi2(Pairwise):
    """``k(x, z) = exp(−gamma Σ (x − z)²/(x + z))`` on non-negative features.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.kernels import Chi2
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> Chi2(gamma=1.0)(X, X[1:]).round(4)
    array([[0.3679],
           [1.    ]])
    """

    proven = True
    nonnegative = True
    metric = "chi2"

    def __init__(self, gamma: Gamma = "mean") -> None:
        self.gamma = gamma

    @property
    def params(self) -> Mapping[str, Any]:  # type: ignore[override]
        """Keyword arguments of the kernel."""
        return {"gamma": self.gamma}


class Precomputed(Kernel):
    """Kernel values that are given, ``k(x_i, x_j) = X[i, j]`` of the training rows j.

    Landmarks are column numbers, as an integer array of shape (m, 1).

    Costs the n × n numbers that are given, and a copy of m columns.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import KernelKMeans
    >>> from sketchmeans.kernels import RBF
    >>> X = np.array([[0.0], [0.1], [5.0]])
    >>> K = RBF(gamma=1.0)(X, X)
    >>> KernelKMeans(2, kernel="precomputed", random_state=0).fit(K).cluster_sizes_
    array([1., 2.])
    """

    def against(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> KernelColumns:
        kind, numbers = np.dtype(dtype), np.ravel(Z)
        return lambda block, out=None: write(toarray(block[:, numbers]), kind, out)

    def diagonal(self, X: Block) -> Array:
        raise ValueError(
            'kernel="precomputed" does not know k(x, x) of new rows, which distances '
            "and costs need; predict does not."
        )

    def resolve(self, rows: Rows, rng: np.random.Generator) -> Self:
        return clone(self)  # the matrix is checked as a whole

    def points(self, rows: Rows, indices: Array) -> Block:
        return np.asarray(indices)[:, None]

    def row_diagonal(self, rows: Rows) -> Array:
        return np.array(rows.load().X.diagonal(), dtype=np.float64)


def _writable(X: Block, kind: np.dtype[Any]) -> Block:
    """Return rows of a float type; scikit-learn's compiled loops must own them."""
    if sparse.issparse(X):
        return X.astype(kind, copy=False)
    return X.astype(kind, order="C", copy=not X.flags.writeable)


def compute_gram(
    kernel: Kernel, points: Block, workers: Workers, rows: Rows | None = None
) -> Array:
    """Return ``k(Z, Z)`` of some points, in float64 and exactly symmetric.

    For a precomputed kernel the points are row numbers, of shape (m, 1), and the
    training `rows`, which hold its values, must be given.

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
    for start, stop in block_slices(m, _STRIP):  # in strips: m × m may be all that fits
        strip = K[start:stop, start:] + K[start:, start:stop].T
        strip *= 0.5
        K[start:stop, start:] = strip
        K[start:, start:stop] = strip.T
    if not isinstance(kernel, Precomputed):
        np.fill_diagonal(K, kernel.diagonal(points))
    return K


def check_kernel_matrix(rows: Rows) -> None:
    """Raise where a precomputed kernel matrix is not square, finite and symmetric."""
    rows.moments()  # finds what is not finite
    if rows.X.shape[0] != rows.X.shape[1]:
        raise ValueError(
            f"X.shape={rows.X.shape} should be square with kernel='precomputed': "
            "k(X, X) of the training rows."
        )
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
