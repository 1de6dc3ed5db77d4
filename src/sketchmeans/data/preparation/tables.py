"""Tables before columns are chosen: frames, arrays, files and sources."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.input import checked_table
from sketchmeans.data.sources import Source, column_types, file_states, open_rows
from sketchmeans.data.sources.base import Block
from sketchmeans.numerics.linalg import Array

Column = str | int  # a name, or a number where there are no names


class Table(ABC):
    """A table whose columns may be of any type, some of which are to be clustered.

    Attributes
    ----------
    path : str
        What errors call the table.
    types : dict of str to (str or None), or None
        The names of the columns, with the type of those that are no numbers; None
        where columns have no names.
    """

    path: str = "The table"
    types: dict[str, str | None] | None = None

    @abstractmethod
    def open(self, columns: Sequence[Column] | None) -> Source:
        """Return these columns, or all, as a source whose missing values are NaN."""

    @abstractmethod
    def values(self, column: Column) -> Array:
        """Return one column, of any type."""

    def like(self, zero_based: bool, n_features: int) -> Table:
        """Return the table with features counted and as many as in a fit.

        Of a format that numbers its features, and unless somebody said how.
        """
        return self


def as_table(
    X: Any, *, header: bool | None = None, zero_based: bool | None = None
) -> Table:
    """Return what a user gave, as a table.

    `header` and `zero_based` say how a file is read, as in `open_rows`.
    """
    if isinstance(X, Table):
        return X
    if isinstance(X, str | os.PathLike):
        return _FileTable(os.fspath(X), header, zero_based)
    if isinstance(X, Source):
        return _SourceTable(X)
    if hasattr(X, "column_names"):
        return _ArrowTable(X)
    if hasattr(X, "columns") and hasattr(X, "__getitem__") and not sparse.issparse(X):
        return _FrameTable(X)
    return _ArrayTable(X)


class _FileTable(Table):
    """A file, a folder or a pattern; all that is read of it is of the same files."""

    def __init__(self, path: str, header: bool | None, zero_based: bool | None) -> None:
        self.path = path
        self._reading: dict[str, Any] = {"header": header, "zero_based": zero_based}
        self._states = file_states(path)
        self.types = column_types(path, header)
        self._source: Source | None = None

    def open(self, columns: Sequence[Column] | None) -> Source:
        if self.types is not None:
            return self._opened(columns=columns)
        if self._source is None:  # text is looked through when it is opened
            self._source = self._opened()
        return self._source if columns is None else _SomeColumns(self._source, columns)

    def _opened(self, **options: Any) -> Source:
        source = open_rows(self.path, missing="nan", **self._reading, **options)
        for state in self._states:
            state.check()
        return source

    def like(self, zero_based: bool, n_features: int) -> Table:
        other = copy(self)
        other._source = self.open(None).like(zero_based).widened(n_features)
        return other

    def values(self, column: Column) -> Array:
        if self.types is None:
            return _column_values(self.open([column]))
        # A source has at least one feature; which one does not matter here.
        others = [n for n, kind in self.types.items() if n != column and kind is None]
        if others:
            source = self._opened(columns=others[:1], label_column=str(column))
            return source.labels()
        if self.types[str(column)] is not None:
            raise ValueError(f"{self.path} has no column of numbers.")
        return _column_values(self.open([column]))


class _SourceTable(Table):
    """A source that the user has opened."""

    def __init__(self, source: Source) -> None:
        self.path, self._source = source.path, source
        if source.feature_names is not None:
            self.types = dict.fromkeys(source.feature_names)

    def like(self, zero_based: bool, n_features: int) -> Table:
        return _SourceTable(self._source.like(zero_based).widened(n_features))

    def open(self, columns: Sequence[Column] | None) -> Source:
        return self._source if columns is None else _SomeColumns(self._source, columns)

    def values(self, column: Column) -> Array:
        return _column_values(self.open([column]))


class _ArrayTable(Table):
    """An array or a sparse matrix."""

    def __init__(self, X: Any) -> None:
        X = checked_table(X)
        self._source = ArraySource(sparse.csr_array(X) if sparse.issparse(X) else X)

    def open(self, columns: Sequence[Column] | None) -> Source:
        return self._source if columns is None else _SomeColumns(self._source, columns)

    def values(self, column: Column) -> Array:
        return _column_values(self.open([column]))


class _FrameTable(Table):
    """A DataFrame of pandas' or polars'."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        names = list(frame.columns)
        if len(set(names)) < len(names):
            twice = sorted({str(name) for name in names if names.count(name) > 1})
            raise ValueError(f"The table has more than one column {twice}.")
        self._names = {str(name): name for name in names}
        self.types = {
            text: _frame_type(frame[name].dtype) for text, name in self._names.items()
        }

    def open(self, columns: Sequence[Column] | None) -> Source:
        names = list(self.types or ()) if columns is None else columns
        arrays = [_numbers(self._frame[self._names[str(name)]]) for name in names]
        return ColumnsSource(tuple(str(name) for name in names), arrays)

    def values(self, column: Column) -> Array:
        return np.asarray(self._frame[self._names[str(column)]].to_numpy())


class _ArrowTable(Table):
    """A table of pyarrow's."""

    def __init__(self, table: Any) -> None:
        from sketchmeans.data.sources.tables import is_number

        self._table = table
        self.types = {
            field.name: None if is_number(field.type) else str(field.type)
            for field in table.schema
        }

    def open(self, columns: Sequence[Column] | None) -> Source:
        names = [str(name) for name in (columns or self.types or ())]
        arrays = [
            self._table.column(name).to_numpy(zero_copy_only=False) for name in names
        ]
        return ColumnsSource(tuple(names), [_floats(array) for array in arrays])

    def values(self, column: Column) -> Array:
        return np.asarray(self._table.column(str(column)).to_pylist())


class ArraySource(Source):
    """A table in memory."""

    path = "The table"

    def __init__(self, table: Block) -> None:
        self._table = table
        self.shape, self.dtype = table.shape, table.dtype
        self.is_sparse = sparse.issparse(table)
        self.nnz = table.nnz if self.is_sparse else 0

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        if self.is_sparse:
            return self._table[start:stop]
        out = self._block(stop - start) if out is None else out
        out[...] = self._table[start:stop]
        return out

    def take(self, indices: Array) -> Block:
        return self._table[indices]


class ColumnsSource(Source):
    """Columns in memory, which keep their types: only blocks have one for all."""

    path = "The table"

    def __init__(self, names: tuple[str, ...], arrays: list[Array]) -> None:
        self.feature_names, self._arrays = names, arrays
        self.shape = (len(arrays[0]), len(arrays))
        self.dtype = np.result_type(*(array.dtype for array in arrays))

    def read(self, start: int, stop: int, out: Array | None = None) -> Array:
        return self._filled(slice(start, stop), stop - start, out)

    def take(self, indices: Array) -> Array:
        return self._filled(indices, len(indices), None)

    def _filled(self, rows: Any, n_rows: int, out: Array | None) -> Array:
        out = self._block(n_rows) if out is None else out
        for j, array in enumerate(self._arrays):
            out[:, j] = array[rows]
        return out


class _SomeColumns(Source):
    """Some columns of another source."""

    def __init__(self, inner: Source, columns: Sequence[Column]) -> None:
        names = inner.feature_names
        self._inner = inner
        self._places = np.array(
            [names.index(c) if names and isinstance(c, str) else c for c in columns]
        )
        self.path, self.dtype = inner.path, inner.dtype
        self.is_sparse, self.zero_based = inner.is_sparse, inner.zero_based
        self.nnz = inner.nnz  # at most
        self.shape = (inner.shape[0], len(columns))
        self.memory = inner.memory
        # A whole row is read, and some of it copied.
        self.thread_memory = inner.thread_memory + inner.dtype.itemsize * 4096 * (
            0 if inner.is_sparse else inner.shape[1]
        )
        if names is not None:
            self.feature_names = tuple(names[j] for j in self._places)

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        block = self._inner.read(start, stop)[:, self._places]
        if out is None:
            return block
        out[...] = block
        return out

    def take(self, indices: Array) -> Block:
        return self._inner.take(indices)[:, self._places]

    def locate(self, row: int) -> tuple[str, int]:
        return self._inner.locate(row)

    def release(self) -> None:
        self._inner.release()


def _column_values(source: Source) -> Array:
    block = source.read(0, len(source))
    dense = block.toarray() if source.is_sparse else block
    return np.asarray(dense[:, 0])


def _frame_type(dtype: Any) -> str | None:
    """Return the type of a frame's column, or None if it is of numbers."""
    is_numeric = getattr(dtype, "is_numeric", None)
    if is_numeric is not None:  # polars; a Decimal is no float
        plain = is_numeric() and not str(dtype).startswith("Decimal")
        return None if plain or str(dtype) == "Boolean" else str(dtype)
    return None if dtype.kind in "biuf" else str(dtype)


def _numbers(column: Any) -> Array:
    """Return a frame's column of numbers, with NaN for what is missing."""
    values = column.to_numpy()
    if values.dtype == object and hasattr(column, "isna"):  # pandas' nullable types
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return _floats(values)


def _floats(values: Array) -> Array:
    """Return numbers as they are; what came as objects, because of nulls, as floats."""
    return values.astype(np.float64) if values.dtype == object else values
