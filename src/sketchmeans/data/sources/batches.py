"""Rows that come in batches: of a file that has no row at a known place."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from sketchmeans.data.sources.base import Block, Source
from sketchmeans.numerics.linalg import Array

#: Bytes of a batch, where the reader is free to choose, and of all that are kept.
BATCH_BYTES = 8 * 2**20
_KEPT_BYTES = 32 * 2**20
_LEAST_KEPT, _MOST_KEPT = 3, 16

Batch = Any
Selection = Any  # a slice, or row numbers


class Batches(Protocol):
    """Batches of consecutive rows."""

    #: Bytes of the batches that are kept.
    memory: int

    def at(self, row: int) -> tuple[int, Batch, int]:
        """Return the batch that holds a row, between the numbers of its rows."""
        ...

    def passed(self, start: int, stop: int) -> None:
        """Hear that rows start:stop were read, for which `at` was asked."""
        ...

    def release(self) -> None:
        """Forget what is kept."""
        ...


class RandomBatches(ABC):
    """Batches of which each can be loaded by itself; the last few are kept.

    Parameters
    ----------
    edges : ndarray of shape (number of batches + 1,)
        First row of each batch, and the number of rows.
    batch_bytes : int
        Size of the largest batch.
    """

    def __init__(self, edges: Array, batch_bytes: int) -> None:
        self._edges = edges
        self._most = _n_kept(batch_bytes)
        self.memory = min(self._most, len(edges) - 1) * batch_bytes
        self._kept: OrderedDict[int, Batch] = OrderedDict()
        self._lock = threading.Lock()

    @abstractmethod
    def load(self, number: int) -> Batch:
        """Return a batch; called by several threads at once."""

    def at(self, row: int) -> tuple[int, Batch, int]:
        number = int(np.searchsorted(self._edges, row, side="right")) - 1
        with self._lock:
            batch = self._kept.get(number)
        if batch is None:  # two threads may load the same: rather that than wait
            batch = self.load(number)
        with self._lock:
            self._kept[number] = batch
            self._kept.move_to_end(number)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return int(self._edges[number]), batch, int(self._edges[number + 1])

    def passed(self, start: int, stop: int) -> None:
        return  # other threads load what they need

    def release(self) -> None:
        with self._lock:
            self._kept.clear()


@dataclass
class _Kept:
    """A batch of rows first:stop, of which so many were not yet read.

    The batch is None when it was dropped.
    """

    first: int
    stop: int
    batch: Batch
    unread: int

    def read(self, start: int, stop: int) -> None:
        """Count rows that were read, if they are of this batch."""
        self.unread -= max(min(stop, self.stop) - max(start, self.first), 0)


class ForwardBatches(ABC):
    """Batches that can only be read one after the other.

    Threads ask for rows in nearly ascending order, so the last few batches are kept.
    If these are not all there are, one is dropped when all its rows were read, as the
    next is written faster to memory that was just in use; unless somebody comes back
    for it.  A row further back, as in the next pass, starts the reading anew.

    Parameters
    ----------
    starts : ndarray
        Rows at which reading can begin; the first is 0.
    n_rows : int
        Number of all rows.
    batch_bytes : int
        Size of the largest batch.
    path : str
    """

    def __init__(self, starts: Array, n_rows: int, batch_bytes: int, path: str) -> None:
        self._starts = starts
        self._n_rows = n_rows
        self._path = path
        self._most = _n_kept(batch_bytes)
        self.memory = self._most * batch_bytes
        self._kept: list[_Kept] = []
        self._are_all = True  # whether no batch was too many
        self._come_back = False  # whether somebody asked for one that was dropped
        self._keeping = threading.Lock()
        # Whoever advances the stream holds this; others take what is kept meanwhile.
        self._advancing = threading.Lock()
        self._stream: Iterator[tuple[Batch, int]] | None = None
        self._advanced: Iterator[tuple[Batch, int]] | None = None  # just now
        self._next = 0  # the row that comes next
        self._height = 0  # rows of the last batch

    @abstractmethod
    def begin(self, start: int) -> Iterator[tuple[Batch, int]]:
        """Yield batches and their numbers of rows, from the row of `starts` on.

        What yields them should not refer to this object: it would not be freed, and
        its batches neither, before Python looks for cycles.
        """

    def help(self, stream: Iterator[tuple[Batch, int]]) -> None:
        """Share in the work of a thread that is taking a batch of a stream."""
        return  # most streams are decoded in one piece

    def at(self, row: int) -> tuple[int, Batch, int]:
        found = self._find(row)
        if found is None:
            self._lend_a_hand()
            with self._advancing:
                while (found := self._find(row)) is None:
                    self._advance(row)
        return found

    def _lend_a_hand(self) -> None:
        stream = self._advanced
        if stream is not None:
            self.help(stream)

    def passed(self, start: int, stop: int) -> None:
        """Drop what was read; have the next batch ready, unless a thread sees to it."""
        with self._keeping:
            for kept in self._kept:
                kept.read(start, stop)
            self._drop()
        if self._advancing.acquire(blocking=False):
            try:
                ahead = self._next - stop
                if self._stream is not None and 0 <= ahead < self._height:
                    self._advance(self._next)
            finally:
                self._advancing.release()

    def _drop(self) -> None:
        if len(self._kept) > self._most:
            self._are_all = False
            del self._kept[0]
        if not (self._are_all or self._come_back):
            for kept in self._kept:
                if kept.unread <= 0:
                    kept.batch = None

    def _find(self, row: int) -> tuple[int, Batch, int] | None:
        with self._keeping:
            for kept in self._kept:
                if kept.first <= row < kept.stop:
                    if kept.batch is not None:
                        return kept.first, kept.batch, kept.stop
                    self._come_back = True
        return None

    def _advance(self, row: int) -> None:
        """Read a batch on the way to a row."""
        start = int(np.searchsorted(self._starts, row, side="right")) - 1
        place = int(self._starts[start])
        stream, self._stream = self._stream, None  # not to go on after an error
        if stream is None or not place <= self._next <= row:
            stream, self._next = self.begin(start), place
        self._advanced = stream
        try:
            batch, n_rows = next(stream)
        except StopIteration:
            raise ValueError(f"{self._path} ends after row {self._next - 1}.") from None
        finally:
            self._advanced = None
        first, self._next = self._next, self._next + n_rows
        with self._keeping:
            others = [kept for kept in self._kept if kept.first != first]
            self._kept = [*others, _Kept(first, self._next, batch, n_rows)]
            self._drop()
        if self._next < self._n_rows:
            self._stream, self._height = stream, n_rows

    def release(self) -> None:
        with self._advancing, self._keeping:
            self._kept.clear()
            self._stream = None


class _Batched(Source):
    """What dense and sparse batches share: which rows of which batch are wanted."""

    batches: Batches

    def _between(
        self, start: int, stop: int
    ) -> Iterator[tuple[Batch, Selection, Selection]]:
        """Yield a batch, the rows of it, and their places among rows start:stop."""
        row = start
        while row < stop:
            first, batch, last = self.batches.at(row)
            end = min(last, stop)
            yield (
                batch,
                slice(row - first, end - first),
                slice(row - start, end - start),
            )
            row = end

    def _among(self, indices: Array) -> Iterator[tuple[Batch, Selection, Selection]]:
        """Yield a batch, the rows of it, and their places among `indices`."""
        order = np.argsort(indices, kind="stable")
        rows, done = indices[order], 0
        while done < len(rows):
            first, batch, stop = self.batches.at(int(rows[done]))
            end = int(np.searchsorted(rows, stop))
            yield batch, rows[done:end] - first, order[done:end]
            done = end

    def release(self) -> None:
        self.batches.release()


class DenseBatches(_Batched):
    """Dense rows out of batches, which are arrays unless `_copy` says otherwise."""

    def _copy(self, batch: Batch, rows: Selection, out: Array) -> None:
        out[...] = batch[rows]

    def read(self, start: int, stop: int, out: Array | None = None) -> Array:
        out = self._block(stop - start) if out is None else out
        for batch, rows, places in self._between(start, stop):
            self._copy(batch, rows, out[places])
        self.batches.passed(start, stop)
        return out

    def take(self, indices: Array) -> Array:
        taken = self._block(len(indices))
        for batch, rows, places in self._among(indices):
            part = self._block(len(places))
            self._copy(batch, rows, part)
            taken[places] = part
        return taken


class SparseBatches(_Batched):
    """Sparse rows out of batches, which are CSR matrices."""

    is_sparse = True

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        parts = [batch[rows] for batch, rows, _ in self._between(start, stop)]
        self.batches.passed(start, stop)
        return stacked(parts)

    def take(self, indices: Array) -> Block:
        parts, order = [], []
        for batch, rows, places in self._among(indices):
            parts.append(batch[rows])
            order.append(places)
        return in_order(parts, np.concatenate(order))


def stacked(parts: list[Block]) -> Block:
    """Return CSR matrices one below the other."""
    return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


def in_order(parts: list[Block], places: Array) -> Block:
    """Return the rows of CSR matrices in the places that they should have."""
    back = np.empty(len(places), dtype=np.intp)
    back[places] = np.arange(len(places))
    return stacked(parts)[back]


def _n_kept(batch_bytes: int) -> int:
    return max(_LEAST_KEPT, min(_MOST_KEPT, _KEPT_BYTES // max(batch_bytes, 1)))
