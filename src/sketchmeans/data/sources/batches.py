"""Rows that come in batches: of files in which no row lies at a known place."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sketchmeans.data.sources.base import Block, Source, stack, stack_in_order
from sketchmeans.numerics.linalg import Array

#: Bytes of a batch, where the reader is free to choose, and of all that are cached.
BATCH_BYTES = 8 * 2**20
_CACHE_BYTES = 32 * 2**20
_LEAST_CACHED, _MOST_CACHED = 3, 16

Batch = Any  # an array, a CSR matrix or a batch of pyarrow's
Selection = slice | Array


class Batches(ABC):
    """Batches of consecutive rows; those that were used last are cached."""

    def __init__(self, edges: Any, batch_bytes: int) -> None:
        self._edges = np.asarray(edges)
        self._n_batches = len(self._edges) - 1
        most = min(_MOST_CACHED, _CACHE_BYTES // max(batch_bytes, 1))
        self._n_cached = min(max(_LEAST_CACHED, most), self._n_batches)
        self.memory = self._n_cached * batch_bytes
        self._cache: OrderedDict[int, Batch] = OrderedDict()
        self._lock = threading.Lock()

    @abstractmethod
    def _load(self, number: int) -> Batch:
        """Return a batch that is not cached; called by several threads at once."""

    def at(self, row: int) -> tuple[int, Batch, int]:
        """Return the batch that holds a row, between its first row and its end."""
        number = int(np.searchsorted(self._edges, row, side="right")) - 1
        batch = self._cached(number)
        if batch is None:
            batch = self._load(number)
            self._store(number, batch)
        return int(self._edges[number]), batch, int(self._edges[number + 1])

    def read_ahead(self, row: int) -> None:  # noqa: B027 - most load what they need
        """Prepare the batch after the one that ends next, as rows < `row` were read."""

    def release(self) -> None:
        """Forget all batches."""
        with self._lock:
            self._cache.clear()

    def _cached(self, number: int) -> Batch | None:
        with self._lock:
            if number in self._cache:
                self._cache.move_to_end(number)
            return self._cache.get(number)

    def _store(self, number: int, batch: Batch) -> None:
        with self._lock:
            self._cache[number] = batch
            self._cache.move_to_end(number)
            while len(self._cache) > self._n_cached:
                self._cache.popitem(last=False)


class LoadedBatches(Batches):
    """Batches of which each can be loaded by itself.

    Parameters
    ----------
    edges : array-like of shape (number of batches + 1,)
        First row of each batch, and the number of rows.
    batch_bytes : int
        Size of the largest batch.
    load : callable
        Returns the batch of a number.  It should not refer to the source: that would
        not be freed, and its batches neither, before Python looks for cycles.
    """

    def __init__(
        self, edges: Any, batch_bytes: int, load: Callable[[int], Batch]
    ) -> None:
        super().__init__(edges, batch_bytes)
        self._load_batch = load

    def _load(self, number: int) -> Batch:
        return self._load_batch(number)


class StreamedBatches(Batches):
    """Batches that can only be decoded one after the other.

    Threads ask for rows in nearly ascending order, so what they ask for is cached or
    comes next.  A row further back, as in the next pass, starts the stream anew.

    Parameters
    ----------
    edges, batch_bytes
        As in `LoadedBatches`.
    begin : callable
        Returns an iterator over the batches from a given one on; as `load` it should
        not refer to the source.
    path : str
    starts : sequence of int, default=(0,)
        Batches at which a stream can begin.
    """

    def __init__(
        self,
        edges: Any,
        batch_bytes: int,
        begin: Callable[[int], Iterator[Batch]],
        path: str,
        starts: Sequence[int] = (0,),
    ) -> None:
        super().__init__(edges, batch_bytes)
        self._begin, self._path, self._starts = begin, path, starts
        self._advancing = threading.Lock()  # held by the thread that decodes
        self._stream: Iterator[Batch] | None = None
        self._next = 0  # the batch that the stream yields next

    def _load(self, number: int) -> Batch:
        with self._advancing:
            while (batch := self._cached(number)) is None:
                self._advance(number)
        return batch

    def read_ahead(self, row: int) -> None:
        if self._advancing.acquire(blocking=False):
            try:
                following = self._next
                if self._stream is None or following >= self._n_batches:
                    return
                first, stop = self._edges[following : following + 2]
                if 0 <= first - row < stop - first:
                    self._advance(following)
            finally:
                self._advancing.release()

    def _advance(self, number: int) -> None:
        """Decode a batch on the way to that of this number."""
        start = self._starts[bisect_right(self._starts, number) - 1]
        stream, self._stream = self._stream, None  # not to go on after an error
        if stream is None or not start <= self._next <= number:
            stream, self._next = self._begin(start), start
        first, stop = self._edges[self._next : self._next + 2].tolist()
        batch = next(stream, None)
        if batch is None:
            raise ValueError(f"{self._path} ends after row {first - 1}.")
        n_rows = batch.shape[0]
        if n_rows != stop - first:
            raise ValueError(
                f"{self._path} is damaged at row {first}: it has {n_rows} rows in "
                f"place of {stop - first}."
            )
        self._store(self._next, batch)
        self._next += 1
        if self._next < self._n_batches:
            self._stream = stream

    def release(self) -> None:
        with self._advancing:
            super().release()
            self._stream = None


class BatchedSource(Source):
    """Rows out of batches: arrays or CSR matrices, unless `_copy` says otherwise."""

    batches: Batches

    def _copy(self, batch: Batch, rows: Selection, out: Array) -> None:
        out[...] = batch[rows]

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        parts, row = [], start
        if not self.is_sparse and out is None:
            out = self._new_block(stop - start)
        while row < stop:
            first, batch, last = self.batches.at(row)
            end = min(last, stop)
            rows = slice(row - first, end - first)
            if out is None:
                parts.append(batch[rows])
            else:
                self._copy(batch, rows, out[row - start : end - start])
            row = end
        self.batches.read_ahead(stop)
        return stack(parts) if out is None else out

    def take(self, indices: Array) -> Block:
        order = np.argsort(indices, kind="stable")
        rows, parts, done = indices[order], [], 0
        taken = None if self.is_sparse else self._new_block(len(indices))
        while done < len(rows):
            first, batch, stop = self.batches.at(int(rows[done]))
            end = int(np.searchsorted(rows, stop))
            wanted, places = rows[done:end] - first, order[done:end]
            if taken is None:
                parts.append(batch[wanted])
            else:
                part = self._new_block(len(places))
                self._copy(batch, wanted, part)
                taken[places] = part
            done = end
        return stack_in_order(parts, order) if taken is None else taken

    def release(self) -> None:
        self.batches.release()
