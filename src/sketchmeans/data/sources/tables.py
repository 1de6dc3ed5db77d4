"""What the formats that pyarrow reads have in common: named columns."""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sketchmeans.data.sources.base import ReadOptions
from sketchmeans.data.sources.batches import Batch, BatchedSource, Selection
from sketchmeans.data.sources.files import FileState
from sketchmeans.numerics.linalg import Array

#: What pyarrow's libraries take when they are first used.
ARROW_MEMORY = 24 * 10**6
#: Most rows, and most bytes, that are copied together: a block, unless it is very wide.
_COPY_ROWS, _COPY_BYTES = 4096, 8 * 2**20
_MOST_LISTED = 20

#: Arrow's numbers as NumPy's.  Its own `to_pandas_dtype`, `to_numpy` and
#: `pandas_metadata` import pandas, which takes longer than many a fit.
NUMBERS: dict[Any, np.dtype[Any]] = {
    pa.from_numpy_dtype(name): np.dtype(name)
    for name in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}
#: NumPy's numbers as Arrow's.
NUMBER_TYPES = {dtype: kind for kind, dtype in NUMBERS.items()}


@dataclass(frozen=True)
class Columns:
    """The columns that are features, their common type, and the label column.

    `keeps_missing` says whether a missing value is NaN, or an error.
    """

    names: tuple[str, ...]
    dtype: np.dtype[Any]
    label: str | None = None
    keeps_missing: bool = False

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return len(self.names) * self.dtype.itemsize


class TableSource(BatchedSource):
    """Columns of a table as the features of rows; batches are those of `to_numbers`."""

    def __init__(self, state: FileState, n_rows: int, columns: Columns) -> None:
        self.path, self.state, self.columns = state.path, state, columns
        self.shape, self.dtype = (n_rows, len(columns.names)), columns.dtype
        self.feature_names = columns.names
        self._copy_rows = max(min(_COPY_ROWS, _COPY_BYTES // columns.row_bytes), 1)
        self.thread_memory = self._copy_rows * columns.row_bytes

    def _copy(self, batch: Batch, rows: Selection, out: Array) -> None:
        if not isinstance(rows, slice):
            out[...] = _to_matrix(batch.take(rows), self.dtype)
            return
        for start in range(0, len(out), self._copy_rows):
            part = out[start : start + self._copy_rows]
            found = batch.slice(rows.start + start, len(part))
            part[...] = _to_matrix(found, self.dtype)

    def labels(self) -> Array:
        name = self.columns.label
        if name is None:
            return super().labels()
        try:
            column = self._read_column(name)
            self.state.check()
            column.validate(full=True)
            return np.array(column.to_pylist())
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise self.state.error(f"is damaged in column {name!r}", error) from None

    @abstractmethod
    def _read_column(self, name: str) -> Any:
        """Return a column of any type as an array of Arrow's."""


def to_numbers(batch: Any, path: str, columns: Columns, first: int) -> Any:
    """Return the columns of an Arrow batch, all in the wanted type (bool as uint8).

    `first` is the number of the first row.  A missing value is an error, or NaN.
    """
    kind = pa.uint8() if columns.dtype.kind == "b" else NUMBER_TYPES[columns.dtype]
    arrays = []
    for name in columns.names:
        column = batch.column(name)
        if column.null_count and not columns.keeps_missing:
            row = first + column.is_null().index(True).as_py()
            raise ValueError(
                f"{path} has no value in row {row}, column {name!r}; every value "
                "should be a finite number."
            )
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        if column.type != kind:
            column = column.cast(kind, safe=False)
        arrays.append(column.fill_null(np.nan) if column.null_count else column)
    return pa.RecordBatch.from_arrays(arrays, names=list(columns.names))


def _to_matrix(batch: Any, dtype: np.dtype[Any]) -> Array:
    """Return the columns of an Arrow batch, one behind the other in memory."""
    if isinstance(batch, np.ndarray):
        return batch
    # One step for all of them: other threads may come between the steps.
    matrix: Array = batch.to_tensor(row_major=False).to_numpy()
    return matrix.view(dtype)


def choose_columns(path: str, schema: Any, options: ReadOptions) -> Columns:
    """Return the columns that a user asked for, if they are there and are numbers.

    Default is all but the label column, and an index that pandas wrote.
    """
    known, columns, label_column = schema.names, options.columns, options.label_column
    if columns is None:
        aside = {label_column, *index_columns(schema)}
        columns = [name for name in known if name not in aside]
    else:
        columns = _check_names(columns, label_column)
    for name in [*columns, *([] if label_column is None else [label_column])]:
        if known.count(name) != 1:
            how_many = "no column" if name not in known else "more than one column"
            listed = ", ".join(repr(name) for name in known[:_MOST_LISTED])
            more = ", ..." if len(known) > _MOST_LISTED else ""
            raise ValueError(
                f"{path} has {how_many} {name!r}; its columns are [{listed}{more}]."
            )
    if not columns:
        raise ValueError(f"{path} has no features; at least one is needed.")
    for name in columns:
        if schema.field(name).type not in NUMBERS:
            raise ValueError(
                f"{path} has a column {name!r} of type {schema.field(name).type}, "
                "which is not a number; choose others with columns=, or set it aside "
                "with label_column=."
            )
    types = [NUMBERS[schema.field(name).type] for name in columns]
    dtype = np.result_type(*types) if options.dtype is None else options.dtype
    common, keeps_missing = np.dtype(dtype), options.missing == "nan"
    if keeps_missing and common.kind != "f":  # no integer is NaN
        common = np.result_type(common, np.float32)
    return Columns(tuple(columns), common, label_column, keeps_missing)


def index_columns(schema: Any) -> list[str]:
    """Return the columns that hold an index that pandas wrote."""
    about = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    return [name for name in about.get("index_columns", []) if isinstance(name, str)]


def _check_names(columns: Any, label_column: str | None) -> list[str]:
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise ValueError(f"columns={columns!r} should be a list of names.")
    names = list(columns)
    if label_column in names:
        raise ValueError(
            f"label_column={label_column!r} should not be one of columns={names}."
        )
    if not names or len(set(names)) < len(names):
        raise ValueError(f"columns={names} should be different names, at least one.")
    return names
