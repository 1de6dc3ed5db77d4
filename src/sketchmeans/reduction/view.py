"""Rows seen through a reducer, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block, Rows, block_height, spans
from sketchmeans.numerics.linalg import ZERO_DISTANCE_ROUNDINGS, Array


class ReducedRows(Rows):
    """A lazy view: the features of a row are computed when it is read.

    The same as the rows of a Pipeline, but held as a whole only when asked to.

    Parameters
    ----------
    source : Rows
    reducer : fitted transformer
    """

    def __init__(self, source: Rows, reducer: Any) -> None:
        self.source = source
        self._reduce = _block_map(source, reducer)
        probe = self._reduce(source.block(0, 1))
        super().__init__(probe, source.workers, source.weights)
        self.weight_unit = source.weight_unit
        # The bits of a product depend on where in a block a row is.
        self.rounding = ZERO_DISTANCE_ROUNDINGS * float(np.finfo(self.dtype).eps)
        self.n_rows = source.n_rows
        self.memory = source.memory
        self.held_memory = self.n_rows * self.n_features * self.dtype.itemsize
        self._held: Rows | None = None

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        return self._held is not None or self.source.in_memory

    def thread_memory(self, height: int) -> int:
        return self.source.thread_memory(height)

    def block(self, start: int, stop: int) -> Block:
        if self._held is not None:
            return self._held.block(start, stop)
        return self._reduce(self.source.block(start, stop))

    def take(self, indices: Array) -> Block:
        if self._held is not None:
            return self._held.take(indices)
        return self._reduce(self.source.take(indices))

    def hold(self) -> None:
        """Compute all features once, for many passes."""
        self._held = self.held()
        self.memory += self.held_memory

    def held(self) -> Rows:
        """Return all rows in memory, as a source of their own."""
        features = np.empty((self.n_rows, self.n_features), dtype=self.dtype)

        def fill(span: tuple[int, int]) -> None:
            features[slice(*span)] = self.block(*span)

        width = self.source.n_features
        for _ in self.workers.map(
            fill, spans(self.n_rows, block_height(width, self.n_features))
        ):
            pass
        return self._part(features, self.weights)

    def points(self, X: Any) -> Block:
        """Return given points of the source's space as points of this one."""
        if isinstance(self.source, ShiftedRows):
            X = self.source.points(X)
        return self._reduce(X)


class ShiftedRows(Rows):
    """A lazy view of dense rows about a point that is close to them.

    A sketch of rows far from the origin is one of their offset, and little else.

    Parameters
    ----------
    source : Rows
    shift : ndarray of shape (d,)
    """

    def __init__(self, source: Rows, shift: Array) -> None:
        super().__init__(source.X, source.workers, source.weights)
        self.source = source
        self.dtype = source.dtype
        self.weight_unit = source.weight_unit
        self.memory, self.held_memory = source.memory, source.held_memory
        self.in_memory = source.in_memory
        self._shift = shift.astype(source.dtype)

    def thread_memory(self, height: int) -> int:
        return self.source.thread_memory(height) + height * self.row_bytes

    def block(self, start: int, stop: int) -> Block:
        return np.subtract(self.source.block(start, stop), self._shift)

    def take(self, indices: Array) -> Block:
        return np.subtract(self.source.take(indices), self._shift)

    def points(self, X: Any) -> Block:
        """Return given points of the source's space as points of this one."""
        return np.subtract(X, self._shift, dtype=self.dtype)

    def held(self) -> Rows:
        return self._part(self.block(0, self.n_rows), self.weights)


def _block_map(source: Rows, reducer: Any) -> Any:
    """Return a function from blocks of rows to their features, dense."""
    sketch = getattr(reducer, "_sketch", None)
    # A transformer from elsewhere is asked block by block in the same way.
    transform = (
        reducer.transform
        if sketch is None
        else sketch.product(source.dtype, source.workers)
    )

    def reduce(block: Block) -> Array:
        features = transform(block)
        if sparse.issparse(features):
            features = features.toarray()
        return np.asarray(features)

    return reduce
