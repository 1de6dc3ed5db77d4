"""Parquet files, decoded batch by batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sketchmeans.linalg import Array
from sketchmeans.sources.base import Source
from sketchmeans.sources.batches import BATCH_BYTES, ForwardBatches
from sketchmeans.sources.tables import (
    ARROW_MEMORY,
    Columns,
    TableSource,
    choose_columns,
    label_array,
    numbers_of,
)

#: Bytes of a column chunk that are read together with the header of a page.  The page
#: itself is read to where it is unpacked, without a copy of these.
_BUFFER_BYTES = 2**12
#: Most bytes that decoding a column takes: a dictionary, and a page before and after
#: it is unpacked, each of a megabyte unless the writer was told otherwise.
_COLUMN_BYTES = 3 * 2**20
#: Most parts of the columns that threads decode side by side.
_MOST_LANES = 4


def open_parquet(
    path: str,
    columns: Sequence[str] | None,
    label_column: str | None,
    dtype: npt.DTypeLike | None,
    missing: str = "error",
) -> Source:
    """Return the rows of a Parquet file."""
    file = _opened(path)
    chosen = choose_columns(
        path, file.schema_arrow, columns, label_column, dtype, missing
    )
    return ParquetSource(path, file.metadata, chosen)


def parquet_schema(path: str) -> Any:
    """Return the names and types of all columns."""
    return _opened(path).schema_arrow


class ParquetSource(TableSource):
    """Rows of a Parquet file.

    Reading can begin at any row group, and goes on from there batch by batch: a whole
    group may be larger than memory.  Threads that wait for the same batch decode some
    of its columns each; the first batch of a group takes several times as long as the
    others, as the dictionaries of all columns come before it.
    """

    def __init__(self, path: str, metadata: Any, columns: Columns) -> None:
        super().__init__(path, metadata.num_rows, columns)
        self.batches = _ParquetBatches(path, metadata, columns)
        groups = range(metadata.num_row_groups)
        decoding = [_decoding_bytes(metadata.row_group(i), columns) for i in groups]
        self.memory = self.batches.memory + max(decoding, default=0) + ARROW_MEMORY

    def _label_values(self, name: str) -> Array:
        return label_array(_opened(self.path).read(columns=[name]).column(0))


class _ParquetBatches(ForwardBatches):
    def __init__(self, path: str, metadata: Any, columns: Columns) -> None:
        groups = range(metadata.num_row_groups)
        counts = [metadata.row_group(i).num_rows for i in groups]
        self._batch_height = max(BATCH_BYTES // columns.row_bytes, 1)
        starts = np.cumsum([0, *counts])[:-1]
        size = self._batch_height * columns.row_bytes
        super().__init__(starts, metadata.num_rows, size, path)
        self._metadata, self._columns = metadata, columns

    def begin(self, start: int) -> Iterator[tuple[Any, int]]:
        row = int(self._starts[start])
        groups = range(start, self._metadata.num_row_groups)
        return _Decoded(
            self._path, self._metadata, self._columns, groups, row, self._batch_height
        )

    def help(self, stream: Iterator[tuple[Any, int]]) -> None:
        if isinstance(stream, _Decoded):
            stream.help()


class _Decoded:
    """Batches of some row groups, and their numbers of rows; the first is `row`."""

    def __init__(
        self,
        path: str,
        metadata: Any,
        columns: Columns,
        groups: range,
        row: int,
        height: int,
    ) -> None:
        self._path, self._columns, self._row = path, columns, row
        n_lanes = min(_MOST_LANES, len(columns.names))
        self._lanes = [
            _Lane(
                _record_batches(
                    path, metadata, columns.names[i::n_lanes], groups, height
                )
            )
            for i in range(n_lanes)
        ]

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return self

    def __next__(self) -> tuple[Any, int]:
        for lane in self._lanes:
            lane.decode(wait=False)
        try:
            parts = [lane.take() for lane in self._lanes]
        except (pa.ArrowException, OSError) as error:
            raise ValueError(
                f"{self._path} is damaged at row {self._row}: {error}"
            ) from None
        batch = pa.RecordBatch.from_arrays(
            [column for part in parts for column in part.columns],
            names=[name for part in parts for name in part.schema.names],
        )
        first, self._row = self._row, self._row + batch.num_rows
        return numbers_of(batch, self._path, self._columns, first), batch.num_rows

    def help(self) -> None:
        """Decode what no other thread is decoding of the next batch."""
        for lane in reversed(self._lanes):  # the others begin at the front
            lane.decode(wait=False)


class _Lane:
    """Some of the columns, whose next batch is decoded by whoever comes first."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._decoding = threading.Lock()
        self._outcome: Any = None  # the next batch, or why there is none

    def decode(self, wait: bool) -> None:
        """Decode the next batch; if another thread is at it, wait for it or go away."""
        if not self._decoding.acquire(blocking=wait):
            return
        try:
            if self._outcome is None:
                self._outcome = next(self._batches)
        except Exception as error:  # for the thread that takes the batch
            self._outcome = error
        finally:
            self._decoding.release()

    def take(self) -> Any:
        """Return the next batch."""
        self.decode(wait=True)
        outcome, self._outcome = self._outcome, None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def _record_batches(
    path: str, metadata: Any, names: Sequence[str], groups: range, height: int
) -> Iterator[Any]:
    yield from _opened(path, metadata).iter_batches(
        height,
        row_groups=groups,
        columns=list(names),
        use_threads=False,  # the caller's are as many as n_jobs says
    )


def _opened(path: str, metadata: Any = None) -> Any:
    try:
        return pq.ParquetFile(
            path,
            metadata=metadata,
            pre_buffer=False,
            buffer_size=_BUFFER_BYTES,
            page_checksum_verification=True,  # where the writer left sums
        )
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from None


def _decoding_bytes(group: Any, columns: Columns) -> int:
    wanted = set(columns.names)
    chunks = [group.column(i) for i in range(group.num_columns)]
    return sum(
        _BUFFER_BYTES + min(2 * chunk.total_uncompressed_size, _COLUMN_BYTES)
        for chunk in chunks
        if chunk.path_in_schema in wanted
    )
