"""The coordinates of rows, block by block: stored, or computed as they stream by."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block, Rows, block_slices
from sketchmeans.engine.assign import dense
from sketchmeans.engine.spaces import Space
from sketchmeans.numerics.linalg import Array

Span = tuple[int, int]

#: Below this many features a kernel block is computed faster than it is read back.
STORE_FEATURES = 128

#: Bytes of coordinates that are rarely too many to store.
_OFTEN_STORED = 2**28


def cheap_to_repeat(rows: Rows, space: Space) -> bool:
    """Say whether passes over all rows cost a fraction of the first one.

    They do if coordinates are worth storing, and so few that they almost always are;
    the data alone decide, so that a fit in less memory goes the same way.
    """
    size = len(rows) * space.n_coordinates * space.dtype.itemsize
    many = space.storable and rows.n_features >= STORE_FEATURES
    return many and size <= _OFTEN_STORED


class BlockCoordinates:
    """The coordinates of the rows of a source, block by block.

    Parameters
    ----------
    rows : Rows
    space : Space
    budget : int
        Bytes in which the coordinates of all rows may be stored; where they do not
        fit they are computed anew in each pass, with the same bits.
    many_passes : bool, default=False
        Store them in any case that fits: a subsample is read again and again.
    """

    def __init__(
        self, rows: Rows, space: Space, budget: int = 0, *, many_passes: bool = False
    ) -> None:
        self.rows = rows
        self.space = space
        self.workers = rows.workers
        self._spans = block_slices(len(rows), space.height)
        # Block by block: one large array would be fresh pages in every fit.
        self._store: list[Array | None] | None = None
        worth = space.storable and (many_passes or rows.n_features >= STORE_FEATURES)
        self._spare = budget - len(rows) * self._row_bytes
        if worth and self._spare >= 0:
            self._store = [None] * len(self._spans)
        self._norms_of: dict[Span, Array] = {}

    @property
    def _row_bytes(self) -> int:
        return self.space.n_coordinates * self.space.dtype.itemsize

    def leading(self, size: int) -> Self:
        """Return the same for the first rows, which shares what is stored.

        A part that ends within a block would store less of it than the next one
        needs: it has a store of its own.
        """
        part = copy(self)
        part.rows = self.rows.leading(size)
        part._spans = block_slices(size, self.space.height)
        if size % self.space.height and self._store is not None:
            part._store = [None] * len(part._spans)
        return part

    def coordinates(self, span: Span) -> Array:
        """Return the coordinates of a block, from the store if it holds them."""
        start, stop = span
        shape = (stop - start, self.space.n_coordinates)
        if self._store is None:
            out = self._buffer("coordinates", stop - start)
            return self.space.coordinates(self.rows.block(start, stop), out)
        number = start // self.space.height
        stored = self._store[number]
        if stored is None:
            out = np.empty(shape, dtype=self.space.dtype)
            stored = self.space.coordinates(self.rows.block(start, stop), out)
            self._store[number] = stored
        return stored

    @contextmanager
    def stored_ahead(self, beside: int = 0) -> Iterator[None]:
        """Store blocks in threads that would be idle, while other work goes on.

        One thread is left to that work, and the memory of `beside` rows.  What fails
        here fails again, and is told, in the pass that follows.  The last blocks come
        first: that pass comes last to those that are still in the making, and hardly
        ever computes one twice, which would only cost its time.
        """
        fits = self._store is not None and beside * self._row_bytes <= self._spare
        ahead = iter(reversed(self._spans) if fits and self.rows.in_memory else ())
        over = threading.Event()

        def store() -> None:
            for span in ahead:
                if over.is_set():
                    return
                self.coordinates(span)

        self.workers.start_beside(store)
        try:
            yield
        finally:
            over.set()

    @property
    def _at_hand(self) -> bool:
        """Whether no coordinates have to be computed, nor rows to be read."""
        if self._store is None:
            return self.rows.in_memory and not self.space.storable
        blocks = self._store[: len(self._spans)]
        return all(block is not None for block in blocks)

    def _single(
        self, number: int, indices: Array, out: Array
    ) -> tuple[Array, Array | float]:
        """Return coordinates and norms of some rows of a block, computed for them.

        They are in `out`, unless they are sparse.
        """
        block = self.rows.take(indices)
        b = self.space.coordinates(block, out)
        if not (b is out or sparse.issparse(b)):
            out[...] = b
            b = out
        return b, self._row_norms(block, indices)

    def _picked(
        self, number: int, indices: Array, out: Array
    ) -> tuple[Array, Array | float]:
        """Return the same out of the coordinates of the whole block."""
        span = self._spans[number]
        inside = indices - span[0]
        norms = self._norms(span)
        if not isinstance(norms, float):
            norms = norms[inside]
        b = self.coordinates(span)
        if sparse.issparse(b):
            return b[inside], norms
        return b.take(inside, axis=0, out=out, mode="clip"), norms

    def _buffer(self, name: str, n_rows: int) -> Array:
        shape = (n_rows, self.space.n_coordinates)
        return self.workers.buffer(name, shape, self.space.dtype)

    def _norms(self, span: Span) -> Array | float:
        """Return the squared norms of the rows of a block, computed once."""
        constant = self.space.constant_norm
        if constant is not None:
            return constant
        norms = self._norms_of.get(span)
        if norms is None:
            norms = self.space.row_norms(self.rows.block(*span), np.arange(*span))
            self._norms_of[span] = norms
        return norms

    def _row_norms(self, block: Block, numbers: Array) -> Array | float:
        constant = self.space.constant_norm
        return self.space.row_norms(block, numbers) if constant is None else constant

    def coordinates_of(self, indices: Array) -> Array:
        """Return the coordinates of a few rows, dense and in float64."""
        b = dense(self.space.coordinates(self.rows.take(indices)))
        return b.astype(np.float64)

    def all_coordinates(self) -> Array:
        """Return the coordinates of all rows, in one array."""
        values = np.empty((len(self.rows), self.space.n_coordinates), self.space.dtype)

        def fill(span: Span) -> None:
            self.space.coordinates(self.rows.block(*span), values[slice(*span)])

        for _ in self.workers.map(fill, self._spans):
            pass
        return values
