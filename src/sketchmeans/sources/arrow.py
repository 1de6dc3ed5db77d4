"""Arrow files, which are Feather files of version 2."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

from sketchmeans.linalg import Array
from sketchmeans.sources.base import Source
from sketchmeans.sources.batches import RandomBatches
from sketchmeans.sources.tables import (
    ARROW_MEMORY,
    Columns,
    TableSource,
    choose_columns,
    label_array,
    numbers_of,
)


def open_arrow(
    path: str,
    columns: Sequence[str] | None,
    label_column: str | None,
    dtype: npt.DTypeLike | None,
    missing: str = "error",
) -> Source:
    """Return the rows of an Arrow file."""
    schema = arrow_schema(path)
    chosen = choose_columns(path, schema, columns, label_column, dtype, missing)
    return ArrowSource(path, chosen)


def arrow_schema(path: str) -> Any:
    """Return the names and types of all columns."""
    return _opened(path).schema


class ArrowSource(TableSource):
    """Rows of an Arrow file, by record batch.

    The file is mapped, as a batch may be of any size: uncompressed values are read
    where they lie, and take no memory of their own.
    """

    def __init__(self, path: str, columns: Columns) -> None:
        counts, is_packed = _batch_sizes(path, columns.names[0])
        super().__init__(path, sum(counts), columns)
        unpacked = max(counts) * columns.row_bytes if is_packed else 0
        self.batches = _ArrowBatches(path, columns, counts, unpacked)
        self.memory = self.batches.memory + ARROW_MEMORY
        self.thread_memory += 2 * unpacked  # before and after

    def _label_values(self, name: str) -> Array:
        return label_array(_opened(self.path, [name]).read_all().column(name))


class _ArrowBatches(RandomBatches):
    def __init__(
        self, path: str, columns: Columns, counts: list[int], unpacked: int
    ) -> None:
        super().__init__(np.cumsum([0, *counts]), unpacked)
        self._path, self._columns = path, columns
        # Fields that are left out are not unpacked; but a reader that leaves out some
        # makes copies of the others.
        self._wanted = columns.names if unpacked else None
        self._reader: Any = None
        self._reading = threading.Lock()

    def load(self, number: int) -> Any:
        with self._reading:  # pyarrow does not say that a reader may be shared
            if self._reader is None:
                self._reader = _opened(self._path, self._wanted)
            batch = _batch(self._reader, self._path, number)
        first = int(self._edges[number])
        return numbers_of(batch, self._path, self._columns, first)

    def release(self) -> None:
        super().release()
        with self._reading:
            self._reader = None


def _opened(path: str, names: Sequence[str] | None = None) -> Any:
    """Return a reader of these columns, or of all."""
    try:
        fields = None
        if names is not None:
            schema = ipc.open_file(pa.memory_map(path)).schema
            fields = [schema.get_field_index(name) for name in names]
        options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        return ipc.open_file(pa.memory_map(path), options=options)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as an Arrow or Feather (version 2) file: {error}"
        ) from None


def _batch(reader: Any, path: str, number: int) -> Any:
    try:
        return reader.get_batch(number)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is damaged in batch {number}: {error}") from None


def _batch_sizes(path: str, name: str) -> tuple[list[int], bool]:
    """Return the rows of each batch, and whether values are compressed.

    One column tells.
    """
    reader, counts, is_packed = _opened(path, [name]), [], False
    for number in range(reader.num_record_batches):
        batch = _batch(reader, path, number)
        counts.append(batch.num_rows)
        values = batch.column(0).buffers()[1]
        # What lies in the mapped file cannot be written to.
        is_packed |= values is not None and values.is_mutable
    return counts, is_packed
