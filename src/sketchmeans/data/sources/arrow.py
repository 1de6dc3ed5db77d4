"""Arrow files, which are Feather files of version 2.

A batch may be of any size.  Values that lie in the file as they are, neither compressed
nor with gaps, are read from there a few rows at a time; else a batch is read as a
whole.  No pass reads from a memory map: a file that is cut off meanwhile would end the
process.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from sketchmeans.data.sources.base import RUN_BYTES, ReadOptions, Source, runs
from sketchmeans.data.sources.batches import LoadedBatches
from sketchmeans.data.sources.files import FileState, OpenFile
from sketchmeans.data.sources.tables import (
    ARROW_MEMORY,
    NUMBERS,
    Columns,
    TableSource,
    choose_columns,
    to_numbers,
)
from sketchmeans.numerics.linalg import Array


def open_arrow(path: str, options: ReadOptions) -> Source:
    """Return the rows of an Arrow file."""
    state = FileState.of(path)
    return ArrowSource(state, choose_columns(path, _open(state).schema, options))


def arrow_schema(path: str, options: ReadOptions) -> Any:
    """Return the names and types of all columns."""
    return _open(FileState.of(path)).schema


class ArrowSource(TableSource):
    """Rows of an Arrow file, by record batch."""

    def __init__(self, state: FileState, columns: Columns) -> None:
        counts, places = _scan(state, columns)
        edges = np.cumsum([0, *counts])
        super().__init__(state, int(edges[-1]), columns)
        if places is None:
            size = max(counts, default=0) * columns.row_bytes
            self._reader: _Reader | _PlacedReader = _Reader(state, columns, edges)
            self.thread_memory += 2 * size  # before and after it is unpacked
        else:
            size = 0
            self._reader = _PlacedReader(state, columns, places)
            self.thread_memory += RUN_BYTES
        self.batches = LoadedBatches(edges, size, self._reader.load)
        self.memory = self.batches.memory + ARROW_MEMORY

    def _read_column(self, name: str) -> Any:
        return _open(self.state, [name]).read_all().column(name)

    def release(self) -> None:
        super().release()
        self._reader.close()


class _Reader:
    """Reads and unpacks batches as a whole."""

    def __init__(self, state: FileState, columns: Columns, edges: Array) -> None:
        self._state, self._columns, self._edges = state, columns, edges
        self._file: Any = None
        self._reading = threading.Lock()

    def load(self, number: int) -> Any:
        with self._reading:  # pyarrow does not say that a reader may be shared
            if self._file is None:
                self._file = _open(self._state, self._columns.names)
            batch = _get_batch(self._file, self._state, number)
        self._state.check()
        first = int(self._edges[number])
        return to_numbers(batch, self._state.path, self._columns, first)

    def close(self) -> None:
        with self._reading:
            self._file = None


@dataclass(frozen=True)
class _Place:
    """Where the values of a column start in the file, and their type."""

    offset: int
    dtype: np.dtype[Any]


class _PlacedReader:
    """Finds batches whose values lie in the file as they are: nothing is loaded."""

    def __init__(
        self, state: FileState, columns: Columns, places: list[list[_Place]]
    ) -> None:
        self._state, self._columns, self._places = state, columns, places
        self._file: OpenFile | None = None

    def load(self, number: int) -> _PlacedBatch:
        file = self._file
        if file is None:
            self._file = file = OpenFile(self._state)
        return _PlacedBatch(file, self._columns, self._places[number])

    def close(self) -> None:
        self._file = None


@dataclass(frozen=True)
class _PlacedBatch:
    file: OpenFile
    columns: Columns
    places: list[_Place]

    def slice(self, start: int, n_rows: int) -> Array:
        """Return rows from `start` on, one column behind the other in memory."""
        dtype = self.columns.dtype
        matrix = np.empty((n_rows, len(self.places)), dtype, order="F")
        for j, place in enumerate(self.places):
            alike = place.dtype == dtype
            values = matrix[:, j] if alike else np.empty(n_rows, place.dtype)
            self.file.fill(values, place.offset + start * place.dtype.itemsize)
            if not alike:
                matrix[:, j] = values
        self.file.state.check()
        return matrix

    def take(self, rows: Array) -> Array:
        """Return rows of ascending numbers."""
        taken = np.empty((len(rows), len(self.places)), self.columns.dtype)
        for start, stop in runs(rows, self.columns.row_bytes):
            first = int(rows[start])
            block = self.slice(first, int(rows[stop - 1]) + 1 - first)
            taken[start:stop] = block[rows[start:stop] - first]
        return taken


def _scan(
    state: FileState, columns: Columns
) -> tuple[list[int], list[list[_Place]] | None]:
    """Return the rows of each batch, and where their columns lie, if that is known.

    It is not where values are compressed or missing, or are bits.  The file is mapped
    for this alone, and only what describes the batches is looked at.
    """
    with pa.memory_map(state.path) as mapped:
        base = mapped.read_buffer(state.size).address
        # One column tells whether values are compressed: what lies in the mapped file
        # cannot be written to.
        reader = _open(state, columns.names[:1], mapped)
        batches = range(reader.num_record_batches)
        first = [_get_batch(reader, state, number).column(0) for number in batches]
        counts = [len(column) for column in first]
        buffers = [column.buffers()[1] for column in first]
        if any(buffer is not None and buffer.is_mutable for buffer in buffers):
            return counts, None
        reader = _open(state, None, mapped)  # chosen columns would be copies
        found = []
        for number in batches:
            batch = _get_batch(reader, state, number)
            places = [_find(batch.column(name), base, state) for name in columns.names]
            known = [place for place in places if place is not None]
            if len(known) < len(places):
                return counts, None
            found.append(known)
    state.check()
    return counts, found


def _find(column: Any, base: int, state: FileState) -> _Place | None:
    """Return where a column lies in a file that is mapped to `base`."""
    values, dtype = column.buffers()[1], NUMBERS[column.type]
    if len(column) == 0:
        return _Place(0, dtype)
    if values is None or column.null_count or pa.types.is_boolean(column.type):
        return None
    offset = values.address - base
    if not 0 <= offset <= state.size - values.size:
        return None  # it is a copy
    return _Place(offset + column.offset * dtype.itemsize, dtype)


def _open(
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
        what = "cannot be read as an Arrow or Feather (version 2) file"
        raise state.error(what, error) from None


def _get_batch(reader: Any, state: FileState, number: int) -> Any:
    """Return a batch whose columns are as long as they say."""
    try:
        batch = reader.get_batch(number)
        batch.validate()
    except (pa.ArrowException, OSError) as error:
        raise state.error(f"is damaged in batch {number}", error) from None
    return batch
