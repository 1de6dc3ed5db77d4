"""Parquet files, decoded batch by batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sketchmeans.data.sources.base import Source
from sketchmeans.data.sources.batches import BATCH_BYTES, ForwardBatches
from sketchmeans.data.sources.files import FileState
from sketchmeans.data.sources.tables import (
    ARROW_MEMORY,
    Columns,
    TableSource,
    choose_columns,
    label_array,
    numbers_of,
)
from sketchmeans.numerics.linalg import Array

#: Bytes of a column chunk that are read together with the header of a page: few, as
#: they are copied once more than the rest of the page.
_BUFFER_BYTES = 2**12
#: Bytes that decoding a column takes: a dictionary, and a page before and after it is
#: unpacked, each of a megabyte unless the writer was told otherwise.
_COLUMN_BYTES = 3 * 2**20
#: How a header says that an integer follows.
_NEXT_INTEGER = 0x15
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
    state = FileState.of(path)
    file = _opened(state)
    chosen = choose_columns(
        path, file.schema_arrow, columns, label_column, dtype, missing
    )
    return ParquetSource(state, file.metadata, chosen)


def parquet_schema(path: str) -> Any:
    """Return the names and types of all columns."""
    return _opened(FileState.of(path)).schema_arrow


class ParquetSource(TableSource):
    """Rows of a Parquet file.

    Reading can begin at any row group, and goes on from there batch by batch: a whole
    group may be larger than memory.  Threads that wait for the same batch decode some
    of its columns each; the first batch of a group takes several times as long as the
    others, as the dictionaries of all columns come before it.
    """

    def __init__(self, state: FileState, metadata: Any, columns: Columns) -> None:
        super().__init__(state.path, metadata.num_rows, columns)
        self._state = state
        self.batches = _ParquetBatches(state, metadata, columns)
        groups = range(metadata.num_row_groups)
        with open(state.path, "rb") as file:
            decoding = [
                _decoding_bytes(state, file, metadata.row_group(i), columns)
                for i in groups
            ]
        self.memory = self.batches.memory + max(decoding, default=0) + ARROW_MEMORY

    def _label_values(self, name: str) -> Array:
        try:
            column = _opened(self._state).read(columns=[name]).column(0)
        except (pa.ArrowException, OSError) as error:
            self._state.check()
            raise ValueError(
                f"{self.path} is damaged in column {name!r}: {error}"
            ) from None
        self._state.check()
        return label_array(self.path, name, column)


class _ParquetBatches(ForwardBatches):
    def __init__(self, state: FileState, metadata: Any, columns: Columns) -> None:
        groups = range(metadata.num_row_groups)
        counts = [metadata.row_group(i).num_rows for i in groups]
        self._batch_height = max(BATCH_BYTES // columns.row_bytes, 1)
        starts = np.cumsum([0, *counts])[:-1]
        size = self._batch_height * columns.row_bytes
        super().__init__(starts, metadata.num_rows, size, state.path)
        self._state, self._metadata, self._columns = state, metadata, columns

    def begin(self, start: int) -> Iterator[tuple[Any, int]]:
        row = int(self._starts[start])
        groups = range(start, self._metadata.num_row_groups)
        return _Decoded(
            self._state, self._metadata, self._columns, groups, row, self._batch_height
        )

    def help(self, stream: Iterator[tuple[Any, int]]) -> None:
        if isinstance(stream, _Decoded):
            stream.help()


class _Decoded:
    """Batches of some row groups, and their numbers of rows; the first is `row`."""

    def __init__(
        self,
        state: FileState,
        metadata: Any,
        columns: Columns,
        groups: range,
        row: int,
        height: int,
    ) -> None:
        self._state, self._columns, self._row = state, columns, row
        self._number = 0  # of the next batch
        n_lanes = min(_MOST_LANES, len(columns.names))
        self._lanes = [
            _Lane(
                _record_batches(
                    state, metadata, columns.names[i::n_lanes], groups, height
                )
            )
            for i in range(n_lanes)
        ]

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return self

    def __next__(self) -> tuple[Any, int]:
        for lane in self._lanes:
            lane.decode(self._number, wait=False)
        parts = [lane.take(self._number) for lane in self._lanes]
        self._number += 1
        self._state.check()
        wrong = [part for part in parts if isinstance(part, _Wrong)]
        if wrong:
            raise self._error(wrong[0])
        if all(part is None for part in parts):
            raise StopIteration
        if len({0 if part is None else part.num_rows for part in parts}) > 1:
            raise self._error(_Wrong("is damaged", "columns differ in length"))
        batch = pa.RecordBatch.from_arrays(
            [column for part in parts for column in part.columns],
            names=[name for part in parts for name in part.schema.names],
        )
        first, self._row = self._row, self._row + batch.num_rows
        return numbers_of(batch, self._state.path, self._columns, first), batch.num_rows

    def _error(self, wrong: _Wrong) -> ValueError:
        return ValueError(
            f"{self._state.path} {wrong.what} at row {self._row}: {wrong.why}"
        )

    def help(self) -> None:
        """Decode what no other thread is decoding of the batch that is being taken."""
        number = self._number
        for lane in reversed(self._lanes):  # the others begin at the front
            lane.decode(number, wait=False)


class _Wrong(NamedTuple):
    """Why there is no batch."""

    what: str
    why: str


_LOST = _Wrong("could not be read", "another thread stopped while it decoded columns")


class _Lane:
    """Some of the columns, of which a batch is decoded by whoever comes first."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._decoding = threading.Lock()
        self._number = 0  # of the batch that is decoded next
        self._outcome: Any = None  # the last batch, None at the end, or what went wrong

    def decode(self, number: int, wait: bool) -> None:
        """Decode a batch; if another thread is at it, wait for it or go away."""
        if not self._decoding.acquire(blocking=wait):
            return
        try:
            if number == self._number:
                self._number += 1
                # So it stays if this thread is interrupted: the batch is lost then.
                self._outcome = _LOST
                self._outcome = next(self._batches, None)
        except (pa.ArrowException, OSError) as error:
            self._outcome = _Wrong("is damaged", str(error))
        finally:
            self._decoding.release()

    def take(self, number: int) -> Any:
        """Return a batch, None if there are no more, or what went wrong."""
        self.decode(number, wait=True)
        outcome, self._outcome = self._outcome, None
        return outcome


def _record_batches(
    state: FileState, metadata: Any, names: Sequence[str], groups: range, height: int
) -> Iterator[Any]:
    yield from _opened(state, metadata).iter_batches(
        height,
        row_groups=groups,
        columns=list(names),
        use_threads=False,  # the caller's are as many as n_jobs says
    )


def _opened(state: FileState, metadata: Any = None) -> Any:
    try:
        return pq.ParquetFile(
            state.path,
            metadata=metadata,
            pre_buffer=False,
            buffer_size=_BUFFER_BYTES,
            page_checksum_verification=True,  # where the writer left sums
        )
    except (pa.ArrowException, OSError) as error:
        state.check()
        raise ValueError(f"{state.path} cannot be read as Parquet: {error}") from None


def _decoding_bytes(
    state: FileState, file: BinaryIO, group: Any, columns: Columns
) -> int:
    """Return what decoding a batch of a row group takes beside the batch."""
    wanted = set(columns.names)
    chunks = [group.column(i) for i in range(group.num_columns)]
    return sum(
        _BUFFER_BYTES + _column_bytes(state, file, chunk)
        for chunk in chunks
        if chunk.path_in_schema in wanted
    )


def _column_bytes(state: FileState, file: BinaryIO, chunk: Any) -> int:
    """Return what decoding one column takes: a dictionary, and a page, both twice.

    Small chunks are taken for one page each.  Of others the first pages tell, as
    writers make all of about the same size: a megabyte, or as much as they hold.
    """
    places = [chunk.data_page_offset]
    if chunk.has_dictionary_page:
        places.append(chunk.dictionary_page_offset)
    pages = sum(sum(_page_sizes(state, file, place)) for place in places)
    return int(min(2 * chunk.total_uncompressed_size, max(pages, _COLUMN_BYTES)))


def _page_sizes(state: FileState, file: BinaryIO, place: int) -> tuple[int, int]:
    """Return the bytes of a page before and after it is packed; 0 if they are unknown.

    A page starts with its kind and the two sizes, each a byte that says "the next
    field, an integer of 32 bits" and a number of 7 bits a byte, the sign in the lowest.
    pyarrow takes memory for as many bytes as a page says, so these must be there.
    """
    rest = state.size - place
    if place < 0 or rest < 0:
        raise ValueError(
            f"{state.path} is damaged: it declares a page at byte {place:,}, and has "
            f"{state.size:,} bytes."
        )
    file.seek(place)
    head, sizes = iter(file.read(32)), []
    for _ in range(3):
        if next(head, None) != _NEXT_INTEGER:
            return 0, 0
        value = shift = 0
        for byte in head:
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        sizes.append(value >> 1)
    if sizes[2] > rest:
        raise ValueError(
            f"{state.path} is damaged: a page at byte {place:,} declares "
            f"{sizes[2]:,} bytes, and the file has {rest:,} from there."
        )
    return sizes[1], sizes[2]
