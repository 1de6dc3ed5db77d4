"""What a kernel is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from sketchmeans.bandwidth import resolve_gamma
from sketchmeans.kernels.squared import SquaredDistances
from sketchmeans.linalg import ZERO_DISTANCE_ROUNDINGS, Array
from sketchmeans.parallel import Workers
from sketchmeans.rows import Block, Rows, block_height, filled, float_type


class Columns(Protocol):
    """The columns ``k(·, Z)`` of a kernel, ready for blocks of rows."""

    def __call__(self, block: Block, out: Array | None = None) -> Array:
        """Return ``k(block, Z)``, written into `out` if given."""
        ...


class Kernel(BaseEstimator):
    """Base of all kernels.

    A kernel of your own subclasses this and defines `against` and `diagonal`;
    it needs no more than scikit-learn's rule that ``__init__`` only stores its
    parameters.
    """

    #: Whether every kernel matrix is positive semi-definite.
    positive_definite: bool = True

    #: Whether no value is below zero.
    nonnegative: bool = False

    #: Whether a block is computed in its own memory alone.
    in_place: bool = False

    #: ``k(x, x)``, where it is the same for every x.
    constant_diagonal: float | None = None

    def features(self, X: Block) -> Block | None:
        """Return ``φ(X)`` where it is a table as wide as `X`, else None.

        Distances between such features are computed from their differences, which keep
        the digits that differences of kernel values lose.
        """
        return None

    def squared_distances(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> Columns | None:
        """Return a function ``(block, out) -> ‖φ(x) − φ(z)‖²``, exact for near rows.

        None where there is no better way than ``k(x, x) − 2k(x, z) + k(z, z)``.
        """
        features = None if sparse.issparse(Z) else self.features(Z)
        if features is None:
            return None
        distances = SquaredDistances(features, np.dtype(dtype))

        def columns(block: Block, out: Array | None = None) -> Array:
            return distances(self.features(block), out)

        return columns

    def against(
        self,
        Z: Block,
        dtype: npt.DTypeLike | None = None,
        workers: Workers | None = None,
    ) -> Columns:
        """Return a function ``(block, out) -> k(block, Z)`` in float type `dtype`.

        `workers` lends the scratch arrays; it must be given when the function is
        called from several threads.
        """
        raise NotImplementedError(  # pragma: no cover - abstract
            f"{type(self).__name__} should define against(Z, dtype, workers)."
        )

    def diagonal(self, X: Block) -> Array:
        """Return ``k(x, x)`` for every row, in float64."""
        raise NotImplementedError(  # pragma: no cover - abstract
            f"{type(self).__name__} should define diagonal(X)."
        )

    def resolved(self, rows: Rows, rng: np.random.Generator) -> Self:
        """Return a clone in which every rule (``gamma="mean"``) is a number."""
        kernel = clone(self)
        if hasattr(self, "gamma"):
            kernel.set_params(
                gamma=resolve_gamma(self.gamma, self._distance, rows, rng)
            )
        return kernel

    def points(self, rows: Rows, indices: Array) -> Block:
        """Return the rows of these numbers in the form that `against` takes."""
        return rows.take(indices)

    def among(self, rows: Rows) -> Callable[[Array], Array]:
        """Return a function from row numbers to ``k(X, X[numbers])``, in float64."""

        def values(numbers: Array) -> Array:
            columns = self.against(self.points(rows, numbers), rows.dtype, rows.workers)
            height = block_height(rows.n_features, len(numbers))
            return filled(rows.map(columns, height), (len(rows), len(numbers)))

        return values

    def distances_among(self, rows: Rows) -> Callable[[Array], Array]:
        """Return a function from row numbers to ``‖φ(x) − φ(x_number)‖²``, in float64.

        Of shape (n, q); exactly zero between equal rows.
        """
        diagonal = self.row_diagonal(rows)
        values = self.among(rows)
        noise = ZERO_DISTANCE_ROUNDINGS * float(np.finfo(rows.dtype).eps)

        def distances(numbers: Array) -> Array:
            result = values(numbers)
            scale = diagonal[:, None] + diagonal[numbers]
            result *= -2.0
            result += scale
            # Differences of rounding are no distance between equal rows.
            result[result <= noise * np.abs(scale)] = 0.0
            return result

        return distances

    def row_diagonal(self, rows: Rows) -> Array:
        """Return ``k(x, x)`` for all rows of a source, in float64."""
        if self.constant_diagonal is not None:
            return np.full(len(rows), self.constant_diagonal)
        height = block_height(rows.n_features, 0)
        return np.concatenate(list(rows.map(self.diagonal, height)))

    #: The distance that sets the bandwidth: "sqeuclidean", "cityblock" or None.
    _distance: str | None = None

    def __call__(self, X: Block, Z: Block, out: Array | None = None) -> Array:
        """Return the matrix ``k(X, Z)`` in the float type of `X`."""
        return self.against(Z, dtype=float_type(X.dtype))(X, out)
