"""Parquet files, decoded batch by batch."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from sketchmeans.data.sources.arrow import (
    ARROW_MEMORY,
    Columns,
    TableSource,
    choose_columns,
    to_numbers,
)
from sketchmeans.data.sources.base import (
    BATCH_BYTES,
    ReadOptions,
    Source,
    StreamedBatches,
)
from sketchmeans.data.sources.files import FileState

#: Bytes of a column chunk that are read together with the header of a page: few, as
#: they are copied once more than the rest of the page.
_BUFFER_BYTES = 2**12
#: Bytes that decoding a column takes: a dictionary, and a page before and after it is
#: unpacked, each of a megabyte unless the writer was configured otherwise.
_COLUMN_BYTES = 3 * 2**20
#: Maximum number of batches of a file: terabytes.
_MOST_BATCHES = 10**6
#: How a header says that an integer follows.
_NEXT_INTEGER = 0x15


def open_parquet(state: FileState, options: ReadOptions) -> Source:
    """Return the rows of a Parquet file."""
    file = open_file(state)
    columns = choose_columns(state.path, file.schema_arrow, options)
    return ParquetSource(state, file.metadata, columns)


def parquet_schema(state: FileState, options: ReadOptions) -> Any:
    """Return the names and types of all columns."""
    return open_file(state).schema_arrow


class ParquetSource(TableSource):
    """Rows of a Parquet file.

    Reading can begin at any row group, and goes on from there batch by batch: a whole
    group may be larger than memory.
    """

    def __init__(self, state: FileState, metadata: Any, columns: Columns) -> None:
        super().__init__(state, metadata.num_rows, columns)
        height = max(BATCH_BYTES // columns.row_bytes, 1)
        edges, starts = split_rows(state, metadata, height)

        def begin(number: int) -> Iterator[Any]:
            # Of several groups without rows that start here, any will do.
            groups = range(starts.index(number), metadata.num_row_groups)
            row = edges[number]
            found = decode(state, metadata, columns.names, groups, row, height)
            return (to_numbers(b, state.path, columns, row) for b, row in found)

        with open(state.place, "rb") as file:
            needs = [
                _decoding_bytes(state, file, chunks)
                for chunks in _column_chunks(state, metadata, columns.names)
            ]
        size = height * columns.row_bytes
        batches = StreamedBatches(edges, size, begin, state.path, starts)
        self._use(batches, max(needs, default=0) + ARROW_MEMORY)

    def _read_column(self, name: str) -> Any:
        return open_file(self.state).read(columns=[name]).column(0)


def split_rows(
    state: FileState, metadata: Any, height: int
) -> tuple[list[int], list[int]]:
    """Return the edges of batches, and the batches that row groups start with."""
    n_rows, groups = metadata.num_rows, range(metadata.num_row_groups)
    counts = [metadata.row_group(i).num_rows for i in groups]
    are_sound = min(counts, default=0) >= 0 and sum(counts) == n_rows
    if not are_sound or n_rows > _MOST_BATCHES * height:
        raise ValueError(
            f"{state.path} is damaged: it declares {n_rows:,} rows, and "
            f"{sum(counts):,} in its row groups."
        )
    edges, starts, row = [0], [], 0
    for count in counts:
        starts.append(len(edges) - 1)
        row += count
        edges += [*range(edges[-1] + height, row, height), row] if count else []
    return edges, starts


def decode(
    state: FileState,
    metadata: Any,
    names: Sequence[str],
    groups: range,
    row: int,
    height: int,
) -> Iterator[tuple[Any, int]]:
    """Yield the batches of some row groups, and the number of their first row.

    That of the first group is `row`.
    """
    file = open_file(state, metadata)
    for group in groups:
        batches = file.iter_batches(
            height, row_groups=[group], columns=list(names), use_threads=True
        )
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError) as error:
                raise state.error(f"is damaged at row {row}", error) from None
            state.check()
            if batch is None:
                break
            yield batch, row
            row += batch.num_rows


def open_file(state: FileState, metadata: Any = None) -> Any:
    """Return pyarrow's reader of a file."""
    try:
        return _open(state.place, metadata)
    except (pa.ArrowException, OSError) as error:
        raise state.error("cannot be read as Parquet", error) from None


def _open(place: Any, metadata: Any) -> Any:
    return pq.ParquetFile(
        place,
        metadata=metadata,
        pre_buffer=False,
        buffer_size=_BUFFER_BYTES,
        page_checksum_verification=True,  # where the writer left sums
    )


class _PageWantedError(Exception):
    """Raised where the first page of a row group would be read."""


class _NoPages(io.RawIOBase):
    """A file of a size, of which nothing can be read."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._size

    def read(self, size: int = -1) -> bytes:
        raise _PageWantedError


def _column_chunks(
    state: FileState, metadata: Any, names: Sequence[str]
) -> Iterator[list[Any]]:
    """Yield what each row group says of some columns.

    What C++ raises in pyarrow's `RowGroupMetaData.column` is not caught: a chunk whose
    statistics contradict its type would end the process.  A reader of batches makes the
    same chunks where errors are caught, before it reads a page.
    """
    reader = _open(_NoPages(state.size), metadata)
    schema, wanted = metadata.schema, set(names)
    places = [i for i in range(len(schema)) if schema.column(i).path in wanted]
    for number in range(metadata.num_row_groups):
        batches = reader.iter_batches(
            1, row_groups=[number], columns=list(names), use_threads=False
        )
        try:
            next(batches, None)
        except _PageWantedError:
            pass
        except (pa.ArrowException, OSError) as error:
            raise state.error(f"is damaged in row group {number}", error) from None
        group = metadata.row_group(number)
        yield [group.column(i) for i in places]


def _decoding_bytes(state: FileState, file: BinaryIO, chunks: Sequence[Any]) -> int:
    """Return the memory that decoding a batch of a row group takes in addition to it.

    That is a dictionary and a page of each column, both twice.  Small chunks are taken
    for one page each.  Of others the first pages are measured, as writers make all of
    about the same size: a megabyte, or as much as they hold.
    """
    total = 0
    for chunk in chunks:
        places = [chunk.data_page_offset]
        if chunk.has_dictionary_page:
            places.append(chunk.dictionary_page_offset)
        pages = sum(sum(_page_sizes(state, file, place)) for place in places)
        needed = min(2 * chunk.total_uncompressed_size, max(pages, _COLUMN_BYTES))
        total += _BUFFER_BYTES + int(needed)
    return total


def _page_sizes(state: FileState, file: BinaryIO, place: int) -> tuple[int, int]:
    """Return the bytes of a page before and after it is packed; 0 if they are unknown.

    A page starts with its kind and the two sizes, each a byte that says "the next
    field, an integer of 32 bits" and a number of 7 bits a byte, the sign in the lowest.
    pyarrow allocates as many bytes as a page declares, so these must be there.
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
