"""Tables that pyarrow reads, and Arrow files, which are Feather files of version 2.

A batch of an Arrow file may be of any size.  Values that lie in the file as they are,
neither compressed nor with gaps, are read from there a few rows at a time; else a batch
is read as a whole.  No pass reads from a memory map: a file that is cut off meanwhile
would end the process.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from sketchmeans.data.sources.base import (
    RUN_BYTES,
    Batch,
    BatchedSource,
    LoadedBatches,
    ReadOptions,
    Source,
    runs,
)
from sketchmeans.data.sources.derived import check_columns, check_known
from sketchmeans.data.sources.files import DiskFile, FileState
from sketchmeans.numerics.linalg import Array

#: What pyarrow's libraries take when they are first used.
ARROW_MEMORY = 24 * 10**6
#: Most rows, and most bytes, that are copied together: a block, unless it is very wide.
_COPY_ROWS, _COPY_BYTES = 4096, 8 * 2**20

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

    def _copy(self, batch: Batch, rows: slice | Array, out: Array) -> None:
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
            return np.array(to_values(column))
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise self.state.error(f"is damaged in column {name!r}", error) from None

    @abstractmethod
    def _read_column(self, name: str) -> Any:
        """Return a column of any type as an array of Arrow's."""


def to_values(column: Any) -> list[Any]:
    """Return the values of an Arrow column as Python's, times to the microsecond.

    Nanoseconds have no type in Python, and pyarrow asks for pandas to return them.

    Examples
    --------
    >>> to_values(pa.array([1_500], pa.timestamp("ns")))
    [datetime.datetime(1970, 1, 1, 0, 0, 0, 1)]
    """
    kind = column.type
    if pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns":
        micro = {
            pa.types.is_timestamp: pa.timestamp("us", getattr(kind, "tz", None)),
            pa.types.is_time: pa.time64("us"),
            pa.types.is_duration: pa.duration("us"),
        }
        column = column.cast(next(micro[is_] for is_ in micro if is_(kind)), safe=False)
    return column.to_pylist()


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
        columns = check_columns("columns", columns, label_column)
    check_known(path, [*columns, *filter(None, [label_column])], known)
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


# --- Arrow files ----------------------------------------------------------------------


def open_arrow(state: FileState, options: ReadOptions) -> Source:
    """Return the rows of an Arrow file."""
    schema = open_file(state).schema
    return ArrowSource(state, schema, choose_columns(state.path, schema, options))


def arrow_schema(state: FileState, options: ReadOptions) -> Any:
    """Return the names and types of all columns."""
    return open_file(state).schema


class ArrowSource(TableSource):
    """Rows of an Arrow file, by record batch."""

    def __init__(self, state: FileState, schema: Any, columns: Columns) -> None:
        fields = [schema.get_field_index(name) for name in columns.names]
        counts, places = _scan(state, columns, fields[:1])
        edges = np.cumsum([0, *counts])
        super().__init__(state, int(edges[-1]), columns)
        self._file = file = DiskFile(state)
        if places is None:
            size = max(counts, default=0) * columns.row_bytes
            load = partial(_load, state, columns, fields, edges)
            self._use(LoadedBatches(edges, size, load))
            self.thread_memory += 2 * size  # before and after it is unpacked
        else:
            placed = [_PlacedBatch(file, columns.dtype, found) for found in places]
            self._use(LoadedBatches(edges, 0, placed.__getitem__))
            self.thread_memory += RUN_BYTES
        self.memory += ARROW_MEMORY

    def _read_column(self, name: str) -> Any:
        field = open_file(self.state).schema.get_field_index(name)
        return open_file(self.state, [field]).read_all().column(0)

    def release(self) -> None:
        super().release()
        self._file.release()


def _load(
    state: FileState, columns: Columns, fields: list[int], edges: Array, number: int
) -> Any:
    """Return the columns of a batch, which is read and unpacked as a whole."""
    batch = get_batch(open_file(state, fields), state, number)
    state.check()
    return to_numbers(batch, state.path, columns, int(edges[number]))


@dataclass(frozen=True)
class _PlacedBatch:
    """A batch whose values lie in the file as they are: nothing is loaded.

    `places` are where the values of each column start, and their type.
    """

    file: DiskFile
    dtype: np.dtype[Any]
    places: list[tuple[int, np.dtype[Any]]]

    def slice(self, start: int, n_rows: int) -> Array:
        """Return rows from `start` on, one column behind the other in memory."""
        matrix = np.empty((n_rows, len(self.places)), self.dtype, order="F")
        for j, (offset, dtype) in enumerate(self.places):
            values = matrix[:, j] if dtype == self.dtype else np.empty(n_rows, dtype)
            self.file.fill(values, offset + start * dtype.itemsize)
            if dtype != self.dtype:
                matrix[:, j] = values
        self.file.state.check()
        return matrix

    def take(self, rows: Array) -> Array:
        """Return rows of ascending numbers."""
        taken = np.empty((len(rows), len(self.places)), self.dtype)
        for start, stop in runs(rows, taken.strides[0]):
            first = int(rows[start])
            block = self.slice(first, int(rows[stop - 1]) + 1 - first)
            taken[start:stop] = block[rows[start:stop] - first]
        return taken


def _scan(
    state: FileState, columns: Columns, first_field: list[int]
) -> tuple[list[int], list[list[tuple[int, np.dtype[Any]]]] | None]:
    """Return the rows of each batch, and where their columns lie, if that is known.

    It is not where values are compressed or missing, or are bits.  The file is mapped
    for this alone, and only what describes the batches is read.
    """
    with pa.memory_map(state.place) as mapped:
        base = mapped.read_buffer(state.size).address
        # One column shows whether values are compressed: what lies in the mapped file
        # cannot be written to.
        reader = open_file(state, first_field, mapped)
        batches = range(reader.num_record_batches)
        first = [get_batch(reader, state, number).column(0) for number in batches]
        counts = [len(column) for column in first]
        buffers = [column.buffers()[1] for column in first]
        if any(buffer is not None and buffer.is_mutable for buffer in buffers):
            return counts, None
        reader = open_file(state, None, mapped)  # chosen columns would be copies
        found = []
        for number in batches:
            batch = get_batch(reader, state, number)
            places = [_find(batch.column(name), base, state) for name in columns.names]
            if None in places:
                return counts, None
            found.append([place for place in places if place is not None])
    state.check()
    return counts, found


def _find(column: Any, base: int, state: FileState) -> tuple[int, np.dtype[Any]] | None:
    """Return where a column lies in a file that is mapped to `base`, and its type."""
    values, dtype = column.buffers()[1], NUMBERS[column.type]
    if len(column) == 0:
        return 0, dtype
    if values is None or column.null_count or pa.types.is_boolean(column.type):
        return None
    offset = values.address - base
    if not 0 <= offset <= state.size - values.size:
        return None  # it is a copy
    return offset + column.offset * dtype.itemsize, dtype


def open_file(
    state: FileState, fields: list[int] | None = None, file: Any = None
) -> Any:
    """Return a reader of these columns, or of all."""
    options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    try:
        return ipc.open_file(file or pa.OSFile(state.place), options=options)
    except (pa.ArrowException, OSError, ValueError) as error:
        what = "cannot be read as an Arrow or Feather (version 2) file"
        raise state.error(what, error) from None


def get_batch(reader: Any, state: FileState, number: int) -> Any:
    """Return a batch whose columns are as long as they say."""
    try:
        batch = reader.get_batch(number)
        batch.validate()
    except (pa.ArrowException, OSError) as error:
        raise state.error(f"is damaged in batch {number}", error) from None
    return batch
