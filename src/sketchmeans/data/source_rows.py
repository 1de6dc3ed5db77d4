"""Rows of files and other sources, read when they are asked for."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from sketchmeans.data.finite import find_not_finite, not_finite_error
from sketchmeans.data.rows import MAX_HEIGHT, Rows, block_height
from sketchmeans.data.sources import Source
from sketchmeans.data.sources.base import Block
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.memory import FIXED_NEED, format_bytes
from sketchmeans.numerics.parallel import Workers


class SourceRows(Rows):
    """Rows of a file, or of another source.

    A thread keeps the block that it read last, as it often asks for it again.  Dense
    blocks lie in memory that is used again for the next one, if nobody refers to it.
    """

    X: Source
    in_memory = False

    def __init__(
        self, X: Source, workers: Workers, weights: Array | None = None
    ) -> None:
        super().__init__(X, workers, weights)
        self.is_sparse = X.is_sparse
        self.memory = X.memory
        self.load_memory = int(self.n_rows * self.taken_bytes)
        self._last = _LastBlock()

    def thread_memory(self, height: int) -> int:
        tallest = max(height, block_height(self.n_features, 0))
        copies = 1 if self.X.order == "C" else 2
        return int(copies * tallest * self.taken_bytes + self.X.thread_memory)

    def check_memory(self, budget: int) -> None:
        """Raise where reading alone takes more than a budget, before any row is read.

        Beside what the source states: a block, and a few numbers for each feature.
        What every fit takes is not worth an error here: the fit's own formula has it.
        """
        height = min(block_height(self.n_features, 0), self.n_rows)
        need = self.memory + self.thread_memory(height) + 32 * self.n_features
        if need > max(budget, FIXED_NEED):
            raise MemoryError(
                f"To read rows of {self.n_features:,} features from {self.X.path} "
                f"takes {format_bytes(need)}; max_memory allows "
                f"{format_bytes(budget)}. Raise max_memory, or write the file in "
                "smaller row groups or batches."
            )

    def load(self) -> Rows:
        X = self.X.read(0, self.n_rows, None)
        self._check_finite(X, 0)
        rows = Rows(X, self.workers, self.weights).with_unit(self.weight_unit)
        rows.memory = self.load_memory
        return rows

    def block(self, start: int, stop: int) -> Block:
        last, is_large = self._last, stop - start > MAX_HEIGHT
        if last.span == (start, stop):
            return last.block
        last.span = last.block = None  # a read that fails leaves half of a block
        out = None
        if not (self.is_sparse or is_large or self.X.order == "F"):
            out = last.buffer((stop - start, self.n_features), self.X.dtype)
        block = self.X.read(start, stop, out)
        if not self.is_sparse:
            block = np.ascontiguousarray(block)
        self._check_finite(block, start)
        if is_large:
            return block
        if not self.is_sparse:  # it may be asked for again: nobody shall change it
            block = block.view()
            block.flags.writeable = False
        last.span, last.block = (start, stop), block
        return block

    def take(self, indices: Array) -> Block:
        indices = np.asarray(indices)
        taken = self.X.take(indices)
        if not self.is_sparse:
            taken = np.ascontiguousarray(taken)
        self._check_finite(taken, indices)
        return taken

    def _check_finite(self, block: Block, rows: int | Array) -> None:
        """Raise where a block is not finite, and say where in which file."""
        found = None if self.checked else find_not_finite(block)
        if found is not None:
            i, j, kind = found
            number = rows + i if isinstance(rows, int) else int(rows[i])
            path, row = self.X.locate(number)
            names = self.X.feature_names
            raise not_finite_error(path, kind, row, names[j] if names else j)


class _LastBlock(threading.local):
    """The block that a thread read last, and the memory that it lies in."""

    span: tuple[int, int] | None = None
    block: Block = None
    _memory: Array | None = None
    _borrowed: Any = None

    def buffer(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
        """Return memory for a block: the same again, if no block is left in it."""
        size = shape[0] * shape[1] * dtype.itemsize
        if (
            self._memory is None
            or len(self._memory) < size
            or (self._borrowed is not None and self._borrowed() is not None)
        ):
            self._memory = np.empty(size, np.uint8)
        # Every view of an array that borrows its memory refers to that array.
        memory: Any = self._memory
        values = np.frombuffer(memoryview(memory)[:size], dtype)
        self._borrowed = weakref.ref(values)
        return values.reshape(shape)
