"""Tables that come as a stream of Arrow batches: copied to a file, and read there.

A fit reads its rows many times and in any order; a stream can be read once, and may be
larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from sketchmeans.data.sources.copies import Copy
from sketchmeans.data.sources.files import FileState
from sketchmeans.data.sources.formats import is_dataset, is_lazy

#: Bytes of a record batch in a copy: larger ones are split.
_BATCH_BYTES = 8 * 2**20


def copy_to_file(X: Any) -> FileState:
    """Return the state of a temporary Arrow file with all rows of a stream."""
    what = f"The {type(X).__name__}"
    try:
        reader = _open_stream(X)
        batches = iter(reader)
        if (first := next(batches, None)) is None and isinstance(
            X, pa.RecordBatchReader
        ):
            raise ValueError(f"{what} has no rows: a stream can be read only once.")
        batches = batches if first is None else chain([first], batches)
        parts = _write_parts(_floats_for_decimals(reader.schema), batches)
        copy = Copy("stream.arrow", parts, what)
    except pa.ArrowException as error:
        reason = str(error).partition(" Detail: Python exception")[0]
        raise ValueError(f"{what} cannot be read: {reason}") from None
    return copy.state(what)


def _floats_for_decimals(schema: Any) -> Any:
    """Return a schema without decimals, which databases have and NumPy has not."""
    return pa.schema(
        [
            pa.field(field.name, pa.float64())
            if pa.types.is_decimal(field.type)
            else field
            for field in schema
        ]
    )


def _open_stream(X: Any) -> Any:
    if is_dataset(X):
        return X.scanner(batch_readahead=1, fragment_readahead=1).to_reader()
    if not is_lazy(X):
        return pa.RecordBatchReader.from_stream(X)
    frames = iter(X.collect_batches())
    first = next(frames, X.clear().collect())
    schema = first.to_arrow().schema
    batches = _frame_batches(schema, first, frames)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _frame_batches(schema: Any, first: Any, frames: Iterable[Any]) -> Iterator[Any]:
    yield from first.to_arrow().to_batches()
    for frame in frames:
        yield from frame.to_arrow().cast(schema).to_batches()


class _Sink:
    """A file that hands on what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: parts are taken by the writer's caller."""

    def close(self) -> None:
        """Do nothing."""

    def take(self) -> Iterator[bytes]:
        parts, self.parts = self.parts, []
        yield from parts


def _write_parts(schema: Any, batches: Iterable[Any]) -> Iterator[bytes]:
    sink = _Sink()
    with ipc.new_file(pa.PythonFile(sink, "w"), schema) as file:
        for batch in batches:
            size = max(batch.nbytes, 1)
            height = max(int(batch.num_rows * _BATCH_BYTES // size), 1)
            batch = batch.cast(schema)
            for start in range(0, batch.num_rows, height):
                file.write_batch(batch.slice(start, height))
                yield from sink.take()
    yield from sink.take()
