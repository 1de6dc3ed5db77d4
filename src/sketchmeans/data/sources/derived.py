"""Sources made of others, or of what is in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.sources.base import Block, PartedSource, Source, is_csr
from sketchmeans.numerics.linalg import Array

#: Files that stay open: threads read on both sides of an edge.
_OPEN_PARTS = 3
#: Most columns that an error lists.
_MOST_LISTED = 20


class ConcatenatedSource(PartedSource):
    """The rows of several files; only those that were read last stay open."""

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
        self._edges = np.cumsum([0, *(len(part) for part in parts)])
        self.shape = (int(self._edges[-1]), first.shape[1])
        self._open: list[int] = []
        self._lock = threading.Lock()

    def _part_rows(self, number: int, rows: slice | Array, out: Array | None) -> Block:
        with self._lock:  # close those that were not needed for a while
            if number in self._open:
                self._open.remove(number)
            self._open.append(number)
            old = self._open[:-_OPEN_PARTS]
            del self._open[:-_OPEN_PARTS]
        for other in old:
            self._parts[other].release()
        part = self._parts[number]
        if isinstance(rows, slice):
            return part.read(rows.start, rows.stop, out)
        return part.take(rows)

    def labels(self) -> Array:
        return np.concatenate([part.labels() for part in self._parts])

    def locate(self, row: int) -> tuple[str, int]:
        number = self._find_part(row)
        return self._parts[number].locate(row - int(self._edges[number]))

    def release(self) -> None:
        for part in self._parts:
            part.release()


def _check_alike(first: Source, other: Source) -> None:
    for what, one, two in (
        ("number of features", first.shape[1], other.shape[1]),
        ("list of features", first.feature_names, other.feature_names),
        ("type", first.dtype, other.dtype),
    ):
        if one != two:
            raise ValueError(
                f"The {what} of {other.path} is {two}, that of {first.path} is {one}; "
                "all files should have the same columns."
            )


class WrappedSource(Source):
    """A base of sources that change the rows of another one, `inner`."""

    def __init__(self, inner: Source) -> None:
        self.inner = inner
        self.path, self.shape, self.dtype = inner.path, inner.shape, inner.dtype
        self.feature_names, self.zero_based = inner.feature_names, inner.zero_based
        self.is_sparse, self.nnz = inner.is_sparse, inner.nnz
        self.memory, self.thread_memory = inner.memory, inner.thread_memory

    def locate(self, row: int) -> tuple[str, int]:
        return self.inner.locate(row)

    def release(self) -> None:
        self.inner.release()


class SelectedColumns(WrappedSource):
    """Some columns of another source, by name or number; `nnz` is that of all."""

    def __init__(self, inner: Source, columns: Sequence[str | int]) -> None:
        super().__init__(inner)
        names = inner.feature_names
        self._columns = np.array(
            [names.index(c) if names and isinstance(c, str) else c for c in columns]
        )
        self.shape = (len(inner), len(columns))
        if names is not None:
            self.feature_names = tuple(names[j] for j in self._columns)
        if not inner.is_sparse:  # a whole row is read, and some of it copied
            self.thread_memory += inner.dtype.itemsize * 4096 * inner.shape[1]

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        block = self.inner.read(start, stop)[:, self._columns]
        if out is None:
            return block
        out[...] = block
        return out

    def take(self, indices: Array) -> Block:
        return self.inner.take(indices)[:, self._columns]


class ArraySource(Source):
    """An array or a CSR matrix in memory."""

    path = "The table"

    def __init__(
        self, table: Block, feature_names: Sequence[str] | None = None
    ) -> None:
        self._table = table
        self.feature_names = None if feature_names is None else tuple(feature_names)
        self.shape, self.dtype = table.shape, table.dtype
        self.is_sparse = sparse.issparse(table)
        self.nnz = table.nnz if is_csr(table) else 0

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        if self.is_sparse:
            return self._table[start:stop]
        out = self._new_block(stop - start) if out is None else out
        out[...] = self._table[start:stop]
        return out

    def take(self, indices: Array) -> Block:
        return self._table[indices]


class ColumnsSource(Source):
    """Columns in memory, each of its own type; blocks have the common one."""

    path = "The table"

    def __init__(self, columns: dict[str, Array]) -> None:
        self.feature_names, self._arrays = tuple(columns), list(columns.values())
        self.shape = (len(self._arrays[0]), len(self._arrays))
        self.dtype = np.result_type(*(array.dtype for array in self._arrays))

    def read(self, start: int, stop: int, out: Array | None = None) -> Array:
        return self._fill(slice(start, stop), stop - start, out)

    def take(self, indices: Array) -> Array:
        return self._fill(indices, len(indices), None)

    def _fill(self, rows: Any, n_rows: int, out: Array | None) -> Array:
        out = self._new_block(n_rows) if out is None else out
        for j, array in enumerate(self._arrays):
            out[:, j] = array[rows]
        return out


def check_columns(
    parameter: str, columns: Any, label_column: str | int | None = None
) -> list[Any]:
    """Return the columns that a user named, in a list without the label column."""
    is_list = not isinstance(columns, str) and all(
        isinstance(name, str | int) and not isinstance(name, bool) for name in columns
    )
    if not is_list or len(set(columns)) < len(columns):
        raise ValueError(
            f"{parameter}={columns!r} should be a list of different names, or of "
            "numbers where columns have no names."
        )
    if label_column is not None and label_column in columns:
        raise ValueError(
            f"label_column={label_column!r} should not be one of {parameter}={columns}."
        )
    return list(columns)


def check_known(
    path: str, wanted: Sequence[str | int], known: Sequence[str | int]
) -> None:
    """Raise if a table does not have the columns that a user named, each once."""
    absent = [name for name in dict.fromkeys(wanted) if name not in known]
    twice = [name for name in wanted if known.count(name) > 1]
    if absent or twice:
        many = "more than one column" if not absent else "no column"
        what = f"{many}{'s' * (len(absent) > 1)} {show_names(absent or twice)}"
        have = "its columns are" if isinstance(known[0], str) else "they are numbered"
        split = [n for n in map(str, known) if "," in n and n.split(",")[0] in absent]
        advice = (
            f" A name with a comma needs quotes: '\"{split[0]}\"'." if split else ""
        )
        raise ValueError(f"{path} has {what}; {have} {show_names(known)}.{advice}")


def show_names(names: Sequence[str | int]) -> str:
    """Return names for people: in quotes, and not too many."""
    if len(names) > 1 and list(names) == list(range(len(names))):
        return f"0 to {len(names) - 1}"
    return shorten_list([repr(name) for name in names])


def shorten_list(words: Sequence[str]) -> str:
    """Return words with commas, and not too many."""
    return ", ".join([*words[:_MOST_LISTED], *(["..."] * (len(words) > _MOST_LISTED))])
