"""Arrow files, which are Feather files of version 2.

A batch may be of any size.  Where its values lie in the file as they are, they are read
from there, some rows at a time; else a batch is read and unpacked as a whole.  No pass
reads from a memory map: a file that is cut off meanwhile would end the process.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

from sketchmeans.data.sources.base import RUN_BYTES, Source, runs
from sketchmeans.data.sources.batches import Batch, RandomBatches, Selection
from sketchmeans.data.sources.files import FileState, OpenFile
from sketchmeans.data.sources.tables import (
    ARROW_MEMORY,
    NUMBERS,
    Columns,
    TableSource,
    choose_columns,
    label_array,
    numbers_of,
)
from sketchmeans.numerics.linalg import Array


def open_arrow(
    path: str,
    columns: Sequence[str] | None,
    label_column: str | None,
    dtype: npt.DTypeLike | None,
    missing: str = "error",
) -> Source:
    """Return the rows of an Arrow file."""
    state = FileState.of(path)
    schema = _opened(state).schema
    chosen = choose_columns(path, schema, columns, label_column, dtype, missing)
    return ArrowSource(state, chosen)


def arrow_schema(path: str) -> Any:
    """Return the names and types of all columns."""
    return _opened(FileState.of(path)).schema


class ArrowSource(TableSource):
    """Rows of an Arrow file, by record batch."""

    def __init__(self, state: FileState, columns: Columns) -> None:
        self._state = state
        self._file: OpenFile | None = None
        counts, placed = _scanned(state, columns)
        super().__init__(state.path, sum(counts), columns)
        if placed is None:
            size = max(counts, default=0) * columns.row_bytes
            self.batches = _WholeBatches(state, columns, counts, size)
            self.thread_memory += 2 * size  # before and after it is unpacked
        else:
            self.batches = _PlacedBatches(counts, placed)
            self.thread_memory += RUN_BYTES
        self.memory = self.batches.memory + ARROW_MEMORY

    def _copy(self, batch: Batch, rows: Selection, out: Array) -> None:
        if not isinstance(batch, _Placed):
            super()._copy(batch, rows, out)
            return
        file = self._file
        if file is None:
            self._file = file = OpenFile(self._state)
        if isinstance(rows, slice):
            for start in range(0, len(out), self._tile):
                tile = out[start : start + self._tile]
                first = rows.start + start
                tile[...] = batch.read(file, first, first + len(tile), self.dtype)
        else:
            for start, stop in runs(rows, self.columns.row_bytes):
                first = int(rows[start])
                block = batch.read(file, first, int(rows[stop - 1]) + 1, self.dtype)
                out[start:stop] = block[rows[start:stop] - first]
        self._state.check()

    def release(self) -> None:
        super().release()
        self._file = None

    def _label_values(self, name: str) -> Array:
        try:
            values = _opened(self._state, [name]).read_all().column(name)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(self._state, f"column {name!r}", error) from None
        self._state.check()
        return label_array(self.path, name, values)


@dataclass(frozen=True)
class _Column:
    """Where the values of a column start in the file, and their type."""

    offset: int
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class _Placed:
    """A batch whose values lie in the file as they are."""

    columns: list[_Column]

    def read(
        self, file: OpenFile, start: int, stop: int, dtype: np.dtype[Any]
    ) -> Array:
        """Return rows start:stop, one column behind the other in memory."""
        matrix = np.empty((stop - start, len(self.columns)), dtype, order="F")
        for j, column in enumerate(self.columns):
            alike = column.dtype == dtype
            values = matrix[:, j] if alike else np.empty(stop - start, column.dtype)
            file.fill(values, column.offset + start * column.dtype.itemsize)
            if not alike:
                matrix[:, j] = values
        return matrix


class _PlacedBatches(RandomBatches):
    def __init__(self, counts: list[int], placed: list[_Placed]) -> None:
        super().__init__(np.cumsum([0, *counts]), 0)
        self._placed = placed

    def load(self, number: int) -> Batch:
        return self._placed[number]


class _WholeBatches(RandomBatches):
    def __init__(
        self, state: FileState, columns: Columns, counts: list[int], size: int
    ) -> None:
        super().__init__(np.cumsum([0, *counts]), size)
        self._state, self._columns = state, columns
        self._reader: Any = None
        self._reading = threading.Lock()

    def load(self, number: int) -> Any:
        with self._reading:  # pyarrow does not say that a reader may be shared
            if self._reader is None:
                self._reader = _opened(self._state, self._columns.names)
            batch = _batch(self._reader, self._state, number)
        self._state.check()
        first = int(self._edges[number])
        return numbers_of(batch, self._state.path, self._columns, first)

    def release(self) -> None:
        super().release()
        with self._reading:
            self._reader = None


def _scanned(
    state: FileState, columns: Columns
) -> tuple[list[int], list[_Placed] | None]:
    """Return the rows of each batch, and where they lie if they can be read there.

    They cannot where values are compressed or missing, or are bits.  The file is mapped
    for this alone, and only what describes the batches is looked at.
    """
    counts, is_packed = _batch_sizes(state, columns.names[0])
    if is_packed:
        return counts, None
    try:
        mapped = pa.memory_map(state.path)
        base, size = mapped.read_buffer(state.size).address, state.size
        reader = ipc.open_file(mapped)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(state, "its footer", error) from None
    placed = []
    for number in range(reader.num_record_batches):
        batch = _batch(reader, state, number).select(list(columns.names))
        found = [_place(column, base, size) for column in batch.columns]
        known = [column for column in found if column is not None]
        if len(known) < len(found):
            return counts, None
        placed.append(_Placed(known))
    state.check()
    return counts, placed


def _place(column: Any, base: int, size: int) -> _Column | None:
    """Return where a column lies in a file that is mapped to `base`."""
    values = column.buffers()[1]
    if len(column) == 0:
        return _Column(0, NUMBERS[column.type])
    if values is None or column.null_count or pa.types.is_boolean(column.type):
        return None
    offset = values.address - base
    if not 0 <= offset <= size - values.size:
        return None  # it is a copy
    dtype = NUMBERS[column.type]
    return _Column(offset + column.offset * dtype.itemsize, dtype)


def _batch_sizes(state: FileState, name: str) -> tuple[list[int], bool]:
    """Return the rows of each batch, and whether values are compressed.

    One column tells.
    """
    mapped = pa.memory_map(state.path)
    reader, counts, is_packed = _opened(state, [name], mapped), [], False
    for number in range(reader.num_record_batches):
        batch = _batch(reader, state, number)
        counts.append(batch.num_rows)
        values = batch.column(0).buffers()[1]
        # What lies in the mapped file cannot be written to.
        is_packed |= values is not None and values.is_mutable
    return counts, is_packed


def _opened(
    state: FileState, names: Sequence[str] | None = None, file: Any = None
) -> Any:
    """Return a reader of these columns, or of all."""
    try:
        file = pa.OSFile(state.path) if file is None else file
        fields = None
        if names is not None:
            schema = ipc.open_file(file).schema
            fields = [schema.get_field_index(name) for name in names]
        options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        return ipc.open_file(file, options=options)
    except (pa.ArrowException, OSError, ValueError) as error:
        state.check()
        raise ValueError(
            f"{state.path} cannot be read as an Arrow or Feather (version 2) file: "
            f"{error}"
        ) from None


def _batch(reader: Any, state: FileState, number: int) -> Any:
    """Return a batch whose columns are as long as they say."""
    try:
        batch = reader.get_batch(number)
        batch.validate()
    except (pa.ArrowException, OSError) as error:
        raise _damaged(state, f"batch {number}", error) from None
    return batch


def _damaged(state: FileState, where: str, error: Exception) -> ValueError:
    state.check()
    return ValueError(f"{state.path} is damaged in {where}: {error}")
