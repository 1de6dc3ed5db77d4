"""What a source of rows is: all that it should do, and rows that lie in batches."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sketchmeans.data.sources.dialect import Dialect
from sketchmeans.numerics.linalg import Array

#: Rows: two-dimensional.
Block: TypeAlias = Array | sparse.csr_array

#: Rows that lie no farther apart than this are read together: a system call costs as
#: much as these bytes.
_GAP_BYTES = 16 * 2**10
#: Maximum number of bytes that are read together.
RUN_BYTES = 2**20
#: Bytes of a batch, where the reader is free to choose, and of all that are cached.
BATCH_BYTES = 8 * 2**20
_CACHE_BYTES = 32 * 2**20
_LEAST_CACHED, _MOST_CACHED = 3, 16


class Source(ABC):
    """Rows that are read when they are asked for, by any number of threads.

    `open_rows` returns one.  The estimators take any subclass in the place of a table:
    it defines `read` and `take` and sets the attributes.

    Attributes
    ----------
    path : str
        What errors call the source.
    shape : tuple of int
    dtype : dtype
        Type of the values that `read` and `take` return.
    feature_names : tuple of str or None
    is_sparse : bool
        Whether blocks are CSR matrices.
    order : {"C", "F"}
        Memory order of dense blocks.
    nnz : int
        Stored values, if the source is sparse.
    zero_based : bool or None
        Whether features are counted from 0, in formats that number them.
    memory, thread_memory : int
        Bytes that reading takes, once and for each thread, without what is returned.
    """

    path: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    feature_names: tuple[str, ...] | None = None
    is_sparse: bool = False
    order: Literal["C", "F"] = "C"
    nnz: int = 0
    zero_based: bool | None = None
    memory: int = 0
    thread_memory: int = 0

    @abstractmethod
    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        """Return rows start:stop, written into `out` if they are dense."""

    @abstractmethod
    def take(self, indices: Array) -> Block:
        """Return the rows of these numbers, in this order."""

    def labels(self) -> Array:
        """Return the values of the label column, which is not a feature."""
        raise ValueError(f"{self.path} was opened without a label_column.")

    def locate(self, row: int) -> tuple[str, int]:
        """Return the file that holds a row, and the row's number there."""
        return self.path, row

    def like_fit(self, zero_based: bool | None, n_features: int) -> Source:
        """Return the source with features numbered as in a fit, and as many.

        Only formats that number their features leave this open.
        """
        return self

    def release(self) -> None:  # noqa: B027 - most sources keep nothing
        """Free what is kept between reads; the next read gets it again."""

    def empty_table(self) -> Any:
        """Return a table without rows, with the width and the names of this one."""
        if self.feature_names is not None:
            try:
                import pyarrow as pa
            except ImportError:  # names of a data frame in memory
                pass
            else:
                return pa.table({name: pa.nulls(0) for name in self.feature_names})
        return np.empty((0, self.shape[1]))

    def _new_block(self, n_rows: int) -> Array:
        return np.empty((n_rows, self.shape[1]), self.dtype, order=self.order)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<{n:,} rows of {d:,} features, {self.dtype}, in {self.path}>"


def is_csr(block: Any) -> TypeGuard[sparse.csr_array]:
    """Say whether rows are sparse, for readers and for type checkers."""
    return bool(sparse.issparse(block))


def toarray(block: Block) -> Array:
    """Return rows as an ordinary array."""
    return np.asarray(block.toarray() if is_csr(block) else block)


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read: the parameters of `open_rows`."""

    columns: Sequence[str] | None = None
    label_column: str | None = None
    dtype: npt.DTypeLike | None = None
    missing: str = "error"
    header: bool | None = None
    zero_based: bool | None = None
    dialect: Dialect = field(default_factory=Dialect)
    sheet: str | int | None = None
    #: Whether text is known not to be in UTF-8, although its first megabyte is.
    not_utf8: bool = False


def check_not_empty(path: str, shape: tuple[int, ...]) -> None:
    """Raise if there are no rows or no features."""
    if 0 in shape:
        what = "rows" if shape[0] == 0 else "features"
        raise ValueError(f"{path} has no {what}; at least one is needed.")


def runs(rows: Array, row_bytes: float) -> Iterator[tuple[int, int]]:
    """Yield the (start, stop) of ascending row numbers that are read together.

    Examples
    --------
    >>> import numpy as np
    >>> list(runs(np.array([0, 1, 2, 900, 901]), row_bytes=100))
    [(0, 3), (3, 5)]
    """
    far = np.diff(rows) * row_bytes > _GAP_BYTES
    edges = [0, *(np.flatnonzero(far) + 1).tolist(), len(rows)]
    most = max(int(RUN_BYTES // max(row_bytes, 1)), 1)
    for start, stop in pairwise(edges):
        while start < stop:
            end = int(np.searchsorted(rows[start:stop], rows[start] + most)) + start
            yield start, end
            start = end


class PartedSource(Source):
    """Rows that lie in parts, one below the other."""

    #: First row of each part, and the number of rows.
    _edges: Array

    @abstractmethod
    def _part_rows(self, number: int, rows: slice | Array, out: Array | None) -> Block:
        """Return rows of a part, in `out` if it is given; they are counted from 0."""

    def _find_part(self, row: int) -> int:
        return int(np.searchsorted(self._edges, row, side="right")) - 1

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        if not self.is_sparse and out is None:
            out = self._new_block(stop - start)
        parts, row = [], start
        while row < stop:
            number = self._find_part(row)
            edge, end = self._edges[number : number + 2].tolist()
            end = min(end, stop)
            place = None if out is None else out[row - start : end - start]
            parts.append(self._part_rows(number, slice(row - edge, end - edge), place))
            row = end
        return stack(parts) if out is None else out

    def take(self, indices: Array) -> Block:
        order = np.argsort(indices, kind="stable")
        rows, parts, done = indices[order], [], 0
        taken = None if self.is_sparse else self._new_block(len(indices))
        while done < len(rows):
            number = self._find_part(int(rows[done]))
            end = int(np.searchsorted(rows, self._edges[number + 1]))
            wanted = rows[done:end] - self._edges[number]
            block = self._part_rows(number, wanted, None)
            if taken is None:
                parts.append(block)
            else:
                taken[order[done:end]] = block
            done = end
        return stack(parts)[np.argsort(order)] if taken is None else taken


def stack(parts: list[Block]) -> Block:
    """Return CSR matrices one below the other."""
    return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


Batch = Any  # an array, a CSR matrix or a batch of pyarrow's


class Batches(ABC):
    """Batches of consecutive rows; those that were used last are cached.

    `edges` are the first row of each batch, and the number of rows; `batch_bytes` is
    the size of the largest batch.
    """

    def __init__(self, edges: Any, batch_bytes: int) -> None:
        self.edges = np.asarray(edges)
        self._n_batches = len(self.edges) - 1
        most = min(_MOST_CACHED, _CACHE_BYTES // max(batch_bytes, 1))
        self._n_cached = min(max(_LEAST_CACHED, most), self._n_batches)
        self.memory = self._n_cached * batch_bytes
        self._cache: OrderedDict[int, Batch] = OrderedDict()
        self._lock = threading.Lock()

    @abstractmethod
    def _load(self, number: int) -> Batch:
        """Return a batch that is not cached; called by several threads at once."""

    def get(self, number: int) -> Batch:
        """Return a batch."""
        batch = self._cached(number)
        if batch is None:
            batch = self._load(number)
            self._store(number, batch)
        return batch

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
    """Batches, each of which can be loaded alone.

    `load` returns the batch of a number.  It should not refer to the source: that would
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

    `begin` returns an iterator over the batches from a given one on, and should not
    refer to the source.  `starts` are the batches at which a stream can begin.
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
                first, stop = self.edges[following : following + 2]
                if 0 <= first - row < stop - first:
                    self._advance(following)
            finally:
                self._advancing.release()

    def _advance(self, number: int) -> None:
        """Decode a batch on the way to that of this number."""
        start = self._starts[bisect_right(self._starts, number) - 1]
        stream, self._stream = self._stream, None  # not to go on after an error
        # A late thread may yet ask for batches that are passed over: to come back for
        # the last ones of a row group would decode all of it again.
        is_near = self._next <= number < self._next + self._n_cached
        if stream is None or not (is_near or start <= self._next <= number):
            stream, self._next = self._begin(start), start
        first, stop = self.edges[self._next : self._next + 2].tolist()
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


class BatchedSource(PartedSource):
    """Rows out of batches: arrays or CSR matrices, unless `_copy` says otherwise."""

    batches: Batches

    def _use(self, batches: Batches, more_memory: int = 0) -> None:
        """Read from these batches; that takes some memory in addition to them."""
        self.batches, self._edges = batches, batches.edges
        self.memory = batches.memory + more_memory

    def _copy(self, batch: Batch, rows: slice | Array, out: Array) -> None:
        out[...] = batch[rows]

    def _part_rows(self, number: int, rows: slice | Array, out: Array | None) -> Block:
        batch = self.batches.get(number)
        if self.is_sparse:
            return batch[rows]
        if out is None:
            assert not isinstance(rows, slice)
            out = self._new_block(len(rows))
        self._copy(batch, rows, out)
        return out

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        block = super().read(start, stop, out)
        self.batches.read_ahead(stop)
        return block

    def release(self) -> None:
        self.batches.release()
