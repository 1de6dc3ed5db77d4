"""What a kernel is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from sketchmeans.bandwidth import resolve_gamma
from sketchmeans.linalg import Array
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
