"""Tables before columns are chosen: data frames, arrays, files and sources."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy import sparse

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.input import check_table
from sketchmeans.data.preparation.dicts import are_dicts, table_of_dicts
from sketchmeans.data.sources import (
    Dialect,
    Source,
    column_types,
    file_states,
    find_dialect,
    open_records,
    open_rows,
)
from sketchmeans.data.sources.base import ReadOptions, toarray
from sketchmeans.data.sources.derived import (
    ArraySource,
    ColumnsSource,
    SelectedColumns,
)
from sketchmeans.data.sources.formats import is_stream
from sketchmeans.numerics.linalg import Array

if TYPE_CHECKING:
    from sketchmeans.data.sources.records import Records

Column = str | int  # a name, or a number where there are no names


class Table(ABC):
    """A table whose columns may be of any type, some of which are to be clustered."""

    #: What errors call the table.
    path: str = "The table"
    #: The names of the columns, with the types of those that do not hold numbers; None
    #: where columns have no names.
    types: dict[str, str | None] | None = None
    #: How a text table is written; None for other tables.
    dialect: Dialect | None = None

    @abstractmethod
    def open(self, columns: Sequence[Column] | None) -> Source:
        """Return these columns, or all, as a source whose missing values are NaN."""

    def records(self, columns: Sequence[Column] | None = None) -> Records:
        """Return these columns, or all, with the types that they have.

        They are read when they are asked for: ``records.read(start, stop)`` and
        ``records.take(indices)`` return tables of pyarrow's with ``records.schema``.
        Columns without names are called by their numbers: "column 0" and so on.
        """
        from sketchmeans.data.sources.records import source_records

        return source_records(self.open(None), columns)

    def values(self, column: Column) -> Array:
        """Return one column, of any type."""
        source = self.open([column])
        return toarray(source.read(0, len(source)))[:, 0]

    def like_fit(self, zero_based: bool | None, n_features: int) -> Table:
        """Return the table with features numbered as in a fit, and as many.

        Only formats that number their features leave this open.
        """
        return self

    def read_like(self, dialect: Dialect) -> Table:
        """Return the table read as another was written, where the user left it open.

        Only text leaves something open.
        """
        return self

    @property
    def columns(self) -> list[Column]:
        """The names of the columns, or their numbers."""
        if self.types is not None:
            return list(self.types)
        return list(range(self.open(None).shape[1]))


def as_table(
    X: Any,
    *,
    header: bool | None = None,
    zero_based: bool | None = None,
    dialect: Dialect | None = None,
    sheet: str | int | None = None,
    like: Mapping[str, Any] | None = None,
) -> Table:
    """Return what a user gave, as a table.

    The options say how a file is read, as in `open_rows`; what they leave open of a
    text is as in `like`, a dialect's dictionary.
    """
    if like is not None:
        table = as_table(X, header=header, dialect=dialect, sheet=sheet)
        return table.read_like(Dialect.from_dict(like))
    if isinstance(X, Table):
        return X
    if isinstance(X, str | os.PathLike):
        return _FileTable(os.fspath(X), header, zero_based, dialect, sheet)
    if isinstance(X, Source):
        return _SourceTable(X)
    if is_stream(X) and find_adapter(X) is None:
        return _StreamTable(X)
    X = table_of_dicts(X) if are_dicts(X) else X
    try:
        frame = nw.from_native(X, pass_through=True)
    except DuplicateError:
        names = [str(name) for name in getattr(X, "column_names", X.columns)]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"The table has more than one column {twice}.") from None
    if isinstance(frame, nw.LazyFrame) and find_adapter(X) is None:
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        return _FrameTable(frame)
    X = check_table(X)
    return _SourceTable(ArraySource(sparse.csr_array(X) if sparse.issparse(X) else X))


class _FileTable(Table):
    """A file, a folder or a pattern; all that is read of it is of the same files."""

    def __init__(
        self,
        path: str,
        header: bool | None,
        zero_based: bool | None,
        dialect: Dialect | None,
        sheet: str | int | None,
    ) -> None:
        self.path = path
        self._given = dialect or Dialect()
        self._reading: dict[str, Any] = {"header": header, "sheet": sheet}
        self._zero_based = zero_based
        self._states = file_states(path)  # copies, too, which last as long
        self._find_columns(self._given)

    def _find_columns(self, dialect: Dialect) -> None:
        """Find how the file is written, once for all that is read of it."""
        self.dialect = find_dialect(self.path, dialect=dialect, **self._reading)
        self._reading["dialect"] = dialect if self.dialect is None else self.dialect
        self.types = column_types(self.path, **self._reading)
        self._source: Source | None = None

    def read_like(self, dialect: Dialect) -> Table:
        if self.dialect is None or self.dialect == dialect:
            return self
        other = copy(self)
        other._reading = {key: self._reading[key] for key in ("header", "sheet")}
        try:
            other._find_columns(self._given.fill(dialect))
            is_narrower = len(other.types or ()) < len(self.types or ())
            if not is_narrower and _has_number(other) <= _has_number(self):
                return other
        except ValueError:
            pass
        # Another program wrote this file: its own separator and first lines hold.
        other._reading = {key: self._reading[key] for key in ("header", "sheet")}
        other._find_columns(self._given.fill(Dialect(na=dialect.na)))
        return other

    def open(self, columns: Sequence[Column] | None) -> Source:
        if self.types is not None:
            return self._open(columns=columns)
        if self._source is None:  # text is looked through when it is opened
            self._source = self._open()
        return _select(self._source, columns)

    def _open(self, **options: Any) -> Source:
        options |= {"zero_based": self._zero_based, **self._reading}
        source = open_rows(self.path, missing="nan", **options)
        self._check()
        return source

    def _check(self) -> None:
        for state in self._states:
            state.check()

    def records(self, columns: Sequence[Column] | None = None) -> Records:
        if self.types is None and self.dialect is None:
            return super().records(columns)
        prefix = "column " if self.types is None else ""  # as text tables name them
        names = None if columns is None else [f"{prefix}{name}" for name in columns]
        records = open_records(self.path, names, **self._reading)
        self._check()
        return records

    def like_fit(self, zero_based: bool | None, n_features: int) -> Table:
        other = copy(self)
        other._source = self.open(None).like_fit(zero_based, n_features)
        return other

    def values(self, column: Column) -> Array:
        types = self.types
        if types is None or types[str(column)] is None:
            return super().values(column)
        # A source has at least one feature; which one does not matter here.
        others = [name for name, kind in types.items() if kind is None]
        if not others:
            raise ValueError(f"{self.path} has no column of numbers.")
        return self._open(columns=others[:1], label_column=str(column)).labels()


class _StreamTable(Table):
    """Arrow batches of any library, in a temporary file."""

    def __init__(self, X: Any) -> None:
        from sketchmeans.data.sources.arrow import NUMBERS, arrow_schema
        from sketchmeans.data.sources.streams import copy_to_file

        self._state = copy_to_file(X)
        self.path = self._state.path
        self.types = {
            field.name: None if field.type in NUMBERS else str(field.type)
            for field in arrow_schema(self._state, ReadOptions())
        }

    def open(self, columns: Sequence[Column] | None) -> Source:
        from sketchmeans.data.sources.arrow import open_arrow

        names = None if columns is None else [str(column) for column in columns]
        return open_arrow(self._state, ReadOptions(names, missing="nan"))

    def records(self, columns: Sequence[Column] | None = None) -> Records:
        from sketchmeans.data.sources import records

        names = None if columns is None else [str(column) for column in columns]
        return records.open_records(
            self.path, [self._state], names, ReadOptions(), [{}]
        )

    def values(self, column: Column) -> Array:
        from sketchmeans.data.sources.arrow import to_values

        records = self.records([column])
        return np.array(to_values(records.read(0, len(records)).column(0)))


class _SourceTable(Table):
    """A source that the user has opened, or an array."""

    def __init__(self, source: Source) -> None:
        self.path, self._source = source.path, source
        if source.feature_names is not None:
            self.types = dict.fromkeys(source.feature_names)

    def like_fit(self, zero_based: bool | None, n_features: int) -> Table:
        return _SourceTable(self._source.like_fit(zero_based, n_features))

    def open(self, columns: Sequence[Column] | None) -> Source:
        return _select(self._source, columns)


class _FrameTable(Table):
    """A data frame of any library that narwhals knows."""

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self._columns = {str(name): frame.get_column(name) for name in frame.columns}
        self.types = {
            name: None if _is_number(column.dtype) else str(column.dtype)
            for name, column in self._columns.items()
        }

    def open(self, columns: Sequence[Column] | None) -> Source:
        names = self._columns if columns is None else map(str, columns)
        return ColumnsSource({name: self._numbers(name) for name in names})

    def _numbers(self, name: str) -> Array:
        """Return a column of numbers, with NaN for missing values."""
        column = self._columns[name]
        values: Array = column.to_numpy()
        if values.dtype == object:  # booleans with gaps
            values = column.cast(nw.Float64()).to_numpy()
        return values

    def records(self, columns: Sequence[Column] | None = None) -> Records:
        try:
            import pyarrow as pa
        except ImportError:
            raise ImportError(
                "A data frame is prepared through pyarrow, which is not installed: "
                "pip install sketchmeans[files], or pass an array of numbers."
            ) from None

        from sketchmeans.data.sources.records import Records, to_arrow

        names = list(self._columns) if columns is None else list(map(str, columns))
        arrays = {name: to_arrow(self._columns[name]) for name in names}
        return Records.of_table(pa.table(arrays))

    def values(self, column: Column) -> Array:
        return np.asarray(self._columns[str(column)].to_numpy())


def _is_number(dtype: nw.dtypes.DType) -> bool:
    is_float = dtype.is_numeric() and not isinstance(dtype, nw.Decimal)
    return is_float or isinstance(dtype, nw.Boolean)


def _select(source: Source, columns: Sequence[Column] | None) -> Source:
    return source if columns is None else SelectedColumns(source, columns)


def _has_number(table: Table) -> bool:
    """Say whether a name is a number, as it is if a row is taken for the names."""
    words = (re.sub(r"[-.,\s]", "", str(name)) for name in table.types or ())
    return any(word.isdigit() for word in words)
