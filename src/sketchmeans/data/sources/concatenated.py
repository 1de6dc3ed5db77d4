"""Several files of one kind, one below the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

from sketchmeans.data.sources.base import Block, Source
from sketchmeans.data.sources.batches import in_order, stacked
from sketchmeans.numerics.linalg import Array

#: Files that stay open: threads read on both sides of an edge.
_OPEN_PARTS = 3


class ConcatenatedSource(Source):
    """The rows of several sources; only those that were read last stay open."""

    def __init__(self, path: str, parts: list[Source]) -> None:
        first = parts[0]
        for part in parts[1:]:
            _check_alike(first, part)
        self.path = path
        self.dtype, self.feature_names = first.dtype, first.feature_names
        self.is_sparse = first.is_sparse
        self.nnz = sum(part.nnz for part in parts)
        self.memory = _OPEN_PARTS * max(part.memory for part in parts)
        self.thread_memory = max(part.thread_memory for part in parts)
        self._parts = parts
        self._edges = np.cumsum([0, *(part.shape[0] for part in parts)])
        self.shape = (int(self._edges[-1]), first.shape[1])
        self._open: list[int] = []
        self._lock = threading.Lock()

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        if not self.is_sparse and out is None:
            out = self._block(stop - start)
        blocks = []
        for number in self._numbers(start, stop):
            edge = int(self._edges[number])
            a, b = max(start, edge), min(stop, int(self._edges[number + 1]))
            place = None if out is None else out[a - start : b - start]
            blocks.append(self._part(number).read(a - edge, b - edge, place))
        return stacked(blocks) if self.is_sparse else out

    def _numbers(self, start: int, stop: int) -> Iterator[int]:
        number = int(np.searchsorted(self._edges, start, side="right")) - 1
        while number < len(self._parts) and self._edges[number] < stop:
            yield number
            number += 1

    def take(self, indices: Array) -> Block:
        homes = np.searchsorted(self._edges, indices, side="right") - 1
        order = np.argsort(homes, kind="stable")
        numbers, starts = np.unique(homes[order], return_index=True)
        taken = None if self.is_sparse else self._block(len(indices))
        blocks = []
        for number, places in zip(
            numbers.tolist(), np.split(order, starts[1:]), strict=True
        ):
            block = self._part(number).take(indices[places] - self._edges[number])
            if taken is None:
                blocks.append(block)
            else:
                taken[places] = block
        return in_order(blocks, order) if taken is None else taken

    def _part(self, number: int) -> Source:
        """Return a part, and close those that were not needed for a while."""
        with self._lock:
            if number in self._open:
                self._open.remove(number)
            self._open.append(number)
            old = self._open[:-_OPEN_PARTS]
            del self._open[:-_OPEN_PARTS]
        for other in old:
            self._parts[other].release()
        return self._parts[number]

    def labels(self) -> Array:
        return np.concatenate([part.labels() for part in self._parts])

    def locate(self, row: int) -> tuple[str, int]:
        number = next(self._numbers(row, row + 1))
        return self._parts[number].locate(row - int(self._edges[number]))

    def release(self) -> None:
        for part in self._parts:
            part.release()


def _check_alike(first: Source, other: Source) -> None:
    """Raise where two files cannot be parts of one table."""
    for what, one, two in (
        ("number of features", first.shape[1], other.shape[1]),
        ("list of features", first.feature_names, other.feature_names),
        ("type", first.dtype, other.dtype),
    ):
        if one != two:
            raise ValueError(
                f"The {what} of {other.path} is {two}, that of {first.path} is {one}; "
                "the files of a folder should be alike."
            )
