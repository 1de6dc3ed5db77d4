"""The kernel values of rows, block by block: kept, or computed in each pass."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self, TypeVar

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Rows, block_slices
from sketchmeans.engine.assign import CenterMatrix
from sketchmeans.engine.space import Space, SparseSpace
from sketchmeans.engine.types import Centers
from sketchmeans.numerics.linalg import Array

Span = tuple[int, int]
Result = TypeVar("Result")

#: Below this many features a kernel block is computed faster than it is read back, but
#: from the cache, which holds this many bytes of them.
KEEP_FROM_FEATURES, _CACHED_BYTES = 128, 2**24

#: Rows per centre of which the sums are added up together.
_ROWS_PER_CENTER = 8

#: From so many features on, passes over kept kernel blocks cost a fraction of the first
#: one; up to so many bytes, blocks are almost always kept.
_CHEAP_FROM_FEATURES, _OFTEN_KEPT = 128, 2**28


def is_worth_keeping(rows: Rows, space: Space) -> bool:
    """Say whether kernel blocks that are read back are faster than computed ones."""
    size = len(rows) * space.n_columns * space.dtype.itemsize
    is_slow = rows.n_features >= KEEP_FROM_FEATURES or size <= _CACHED_BYTES
    return space.storable and is_slow


def cheap_to_repeat(rows: Rows, space: Space) -> bool:
    """Say whether passes over all rows cost a fraction of the first one.

    The data alone decide, so that a fit in less memory goes the same way.
    """
    size = len(rows) * space.n_columns * space.dtype.itemsize
    many = space.storable and rows.n_features >= _CHEAP_FROM_FEATURES
    return many and size <= _OFTEN_KEPT


class KernelBlocks:
    """The kernel values ``b_x`` and norms ``‖φ(x)‖²`` of rows, block by block.

    They are kept if they fit into `budget` bytes and are worth it, or read in
    `many_passes`; else they are computed anew in each pass, with the same bits.  Blocks
    are numbered from `first`, where the rows are a part of more.
    """

    def __init__(
        self,
        rows: Rows,
        space: Space,
        budget: int = 0,
        *,
        many_passes: bool = False,
        first: int = 0,
    ) -> None:
        self.rows = rows
        self.space = space
        self.workers = rows.workers
        self.first = first
        self.spans = block_slices(len(rows), space.height)
        self._row_bytes = space.n_columns * space.dtype.itemsize
        if isinstance(space, SparseSpace):
            self._row_bytes = space.row_bytes
        self._spare = budget - len(rows) * self._row_bytes
        worth = space.storable and (many_passes or is_worth_keeping(rows, space))
        # Block by block: one large array would be fresh pages in every fit.
        self._kept: list[Array | None] | None = None
        if worth and self._spare >= 0:
            self._kept = [None] * len(self.spans)
        self._norms: dict[Span, Array] = {}
        #: Called with the rows of a pass that are done, and with all.
        self.on_rows: Callable[[int, int], None] = lambda done, n_rows: None

    @classmethod
    def of_kept(
        cls, rows: Rows, space: Space, kept: list[Array], norms: list[Array], first: int
    ) -> Self:
        """Return a store of blocks that are given, for rows that are not."""
        blocks = cls(rows, space, first=first)
        blocks._kept = list(kept)
        blocks._norms = dict(zip(blocks.spans, norms, strict=False))
        return blocks

    @property
    def is_kept(self) -> bool:
        """Whether kernel blocks are kept once they are computed."""
        return self._kept is not None

    @property
    def is_complete(self) -> bool:
        """Whether all kernel blocks have been computed and kept."""
        kept = [] if self._kept is None else self._kept[: len(self.spans)]
        return bool(kept) and all(block is not None for block in kept)

    def leading(self, size: int) -> Self:
        """Return the same for the first rows, which shares what is kept.

        A part that ends within a block would keep less of it than the next one needs:
        it has a store of its own.
        """
        part = copy(self)
        part.rows = self.rows.leading(size)
        part.spans = block_slices(size, self.space.height)
        if size % self.space.height and self._kept is not None:
            part._kept = [None] * len(part.spans)
        return part

    def values(self, span: Span) -> Array:
        """Return the kernel values of a block, in memory that is used again."""
        start, stop = span
        if self._kept is None:
            out = self._scratch("KernelBlocks.values", stop - start)
            return self.space.kernel_block(self.rows.block(start, stop), out)
        number = start // self.space.height
        kept = self._kept[number]
        if kept is None:
            out = np.empty((stop - start, self.space.n_columns), self.space.dtype)
            kept = self.space.kernel_block(self.rows.block(start, stop), out)
            self._kept[number] = kept
        return kept

    def norms(self, span: Span) -> Array | float:
        """Return the squared norms of the rows of a block, computed once."""
        constant = self.space.constant_norm
        if constant is not None:
            return constant
        norms = self._norms.get(span)
        if norms is None:
            if isinstance(self.space, SparseSpace):
                norms = self.space.value_norms(self.values(span))
            else:
                norms = self.space.row_norms(self.rows.block(*span), np.arange(*span))
            self._norms[span] = norms
        return norms

    def weights(self, span: Span) -> Array | None:
        """Return the weights of a block, or None where all are one."""
        return self.rows.block_weights(*span)

    def take(self, indices: Array) -> tuple[Array, Array | float]:
        """Return kernel values and norms of some rows, computed for them alone."""
        block = self.rows.take(indices)
        out = self._scratch("KernelBlocks.values", len(indices))
        b = self.space.kernel_block(block, out)
        constant = self.space.constant_norm
        if constant is not None:
            return b, constant
        if isinstance(self.space, SparseSpace):
            return b, self.space.value_norms(b)
        return b, self.space.row_norms(block, indices)

    def pick(self, number: int, indices: Array) -> tuple[Array, Array | float]:
        """Return the same for rows of one block, out of the values of all its rows."""
        span = self.spans[number]
        inside = indices - span[0]
        norms = self.norms(span)
        if not isinstance(norms, float):
            norms = norms[inside]
        b = self.values(span)
        if sparse.issparse(b):
            return b[inside], norms
        out = self._scratch("KernelBlocks.picked", len(indices))
        return b.take(inside, axis=0, out=out, mode="clip"), norms

    def matrix(self) -> Array:
        """Return the kernel values of all rows, in one array."""
        values = np.empty((len(self.rows), self.space.n_columns), self.space.dtype)

        def fill(span: Span) -> None:
            self.space.kernel_block(self.rows.block(*span), values[slice(*span)])

        for _ in self.workers.map(fill, self.spans):
            pass
        return values

    def center_matrix(self, centers: Centers) -> CenterMatrix:
        """Return centres in the form in which these blocks are multiplied by them."""
        height = min(self.space.height, len(self.rows))
        space = self.space
        return CenterMatrix(
            centers, space.dtype, height, is_euclidean=space.is_euclidean
        )

    @property
    def is_ready(self) -> bool:
        """Whether no kernel value has to be computed, nor any row to be read."""
        if self.is_kept:
            return self.is_complete
        return self.rows.in_memory and not self.space.storable

    def map(
        self, function: Callable[[Span], Result], n_centers: int = 0
    ) -> Iterator[tuple[int, Span, Result]]:
        """Yield number, span and result for all blocks, in order.

        Small products with `n_centers`, of blocks that are ready, stay in this thread
        (MNIST, 400 landmarks: 0.59-0.73 s instead of 0.70-0.74).
        """
        found = self.workers.map(function, self.spans, self._work(n_centers))
        for i, (span, result) in enumerate(zip(self.spans, found, strict=True)):
            yield self.first + i, span, result

    def strip_length(self, n_centers: int) -> int:
        """Return how many blocks are added up before their sums are handed on.

        The sums of many clusters are larger than a block of few rows.
        """
        blocks = _ROWS_PER_CENTER * n_centers // self.space.height
        return 1 << max(blocks, 1).bit_length() - 1

    def map_strips(
        self, function: Callable[[list[Span]], Result], n_centers: int
    ) -> Iterator[tuple[int, Result]]:
        """Yield the number of the first block, and the result, of all strips of blocks.

        See `map`.
        """
        length = self.strip_length(n_centers)
        starts = range(0, len(self.spans), length)
        strips = [self.spans[start : start + length] for start in starts]
        found = self.workers.map(function, strips, length * self._work(n_centers))
        for start, strip, result in zip(starts, strips, found, strict=True):
            self.on_rows(strip[-1][1], len(self.rows))
            yield self.first + start, result

    def _work(self, n_centers: int) -> float:
        """Return the multiplications of a block that is ready; else infinite."""
        if not (n_centers and self.is_ready):
            return float(np.inf)
        height = len(self.rows) / max(len(self.spans), 1)
        return height * self.space.n_columns * n_centers

    @contextmanager
    def prefetch(self, other_rows: int = 0) -> Iterator[None]:
        """Compute blocks in threads that would be idle, while other work goes on.

        One thread is left to that work, and the memory of `other_rows` rows.  What
        fails here fails again, and is reported, in the pass that follows.  The last
        blocks come first: that pass comes last to those that are still being computed,
        and hardly ever computes one twice, which would only cost its time.
        """
        fits = self._kept is not None and other_rows * self._row_bytes <= self._spare
        ahead = iter(reversed(self.spans))
        over = threading.Event()

        def compute() -> None:
            for span in ahead:
                if over.is_set():
                    return
                self.values(span)

        if fits and self.rows.in_memory:
            self.workers.start_in_background(compute)
        try:
            yield
        finally:
            over.set()

    def _scratch(self, name: str, n_rows: int) -> Array:
        """Return memory of this thread: fresh pages cost more than the arithmetic."""
        shape = (n_rows, self.space.n_columns)
        return self.workers.buffer(name, shape, self.space.dtype)
