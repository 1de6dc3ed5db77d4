"""Parquet files, decoded batch by batch."""

from __future__ import annotations

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

#: Bytes of a column chunk that are read ahead.
_BUFFER_BYTES = 2**16
#: Most bytes that decoding a column takes: a dictionary, and a page before and after
#: it is unpacked, each of a megabyte unless the writer was told otherwise.
_COLUMN_BYTES = 3 * 2**20


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
    group may be larger than memory.
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
        return _decoded(
            self._path, self._metadata, self._columns, start, row, self._batch_height
        )


def _decoded(
    path: str, metadata: Any, columns: Columns, group: int, row: int, height: int
) -> Iterator[tuple[Any, int]]:
    """Yield batches from a row group on, and their numbers of rows."""
    try:
        for batch in _opened(path, metadata).iter_batches(
            height,
            row_groups=range(group, metadata.num_row_groups),
            columns=list(columns.names),
            use_threads=False,  # the caller's are as many as n_jobs says
        ):
            yield numbers_of(batch, path, columns, row), batch.num_rows
            row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is damaged at row {row}: {error}") from None


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
