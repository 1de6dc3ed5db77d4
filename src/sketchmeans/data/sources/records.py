"""Rows of a table with the types that they have: words, dates, numbers, flags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from sketchmeans.data.sources import arrow, delimited, parquet
from sketchmeans.data.sources.arrow import ARROW_MEMORY, NUMBER_TYPES, NUMBERS
from sketchmeans.data.sources.base import (
    Batches,
    LoadedBatches,
    ReadOptions,
    Source,
    StreamedBatches,
    toarray,
)
from sketchmeans.data.sources.derived import (
    SelectedColumns,
    check_known,
    show_names,
)
from sketchmeans.data.sources.files import FileState, suffix_of
from sketchmeans.data.sources.formats import FORMATS
from sketchmeans.data.sources.partitions import Value

#: Files whose batches are kept between reads.
_OPEN_PARTS = 2
#: Bytes of a batch of a Parquet file, and most that a value of any type is taken for.
_BATCH_BYTES, _VALUE_BYTES = 4 * 2**20, 32


class Records:
    """Rows of a table as Arrow has them, read when they are asked for.

    Attributes
    ----------
    path : str
        What errors call the table.
    schema : pyarrow.Schema
        The columns and their types.
    memory : int
        Bytes that reading takes.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"name": ["Ada", "Bea", "Cid"], "age": [31, 45, 28]})
    >>> records = Records.of_table(people)
    >>> len(records), records.schema.names
    (3, ['name', 'age'])
    >>> records.take([2, 0]).column("name").to_pylist()
    ['Cid', 'Ada']
    """

    def __init__(self, path: str, schema: pa.Schema, parts: Sequence[Batches]) -> None:
        self.path, self.schema, self._parts = path, schema, parts
        self._edges = np.cumsum([0, *(int(part.edges[-1]) for part in parts)])
        self._last = 0
        cached = max((part.memory for part in parts), default=0)
        self.memory = cached and min(len(parts), _OPEN_PARTS) * cached + ARROW_MEMORY

    @classmethod
    def of_table(cls, table: pa.Table, path: str = "The table") -> Records:
        """Return the records of a table in memory."""
        batches = LoadedBatches([0, table.num_rows], 0, lambda number: table)
        return cls(path, table.schema, [batches])

    def __len__(self) -> int:
        return int(self._edges[-1])

    def read(self, start: int, stop: int) -> pa.Table:
        """Return rows start:stop."""
        return self._collect(
            batch.slice(max(start - first, 0), stop - max(start, first))
            for batch, first in self._batches_from(start, stop)
        )

    def take(self, indices: Any) -> pa.Table:
        """Return the rows of these numbers, in this order."""
        indices = np.asarray(indices, dtype=np.int64)
        if not len(indices):
            return self.schema.empty_table()
        order = np.argsort(indices, kind="stable")
        rows, parts, done = indices[order], [], 0
        while done < len(rows):
            batch, first = next(self._batches_from(int(rows[done]), len(self)))
            end = int(np.searchsorted(rows, first + batch.num_rows))
            parts.append(batch.take(pa.array(rows[done:end] - first)))
            done = end
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return self._collect(parts).take(pa.array(places))

    def release(self) -> None:
        """Free what is kept between reads; the next read gets it again."""
        for part in self._parts:
            part.release()

    def _batches_from(self, start: int, stop: int) -> Iterator[tuple[Any, int]]:
        """Yield batches with the rows from start to stop, and their first rows."""
        while start < stop:
            number = int(np.searchsorted(self._edges, start, side="right")) - 1
            part, base = self._parts[number], int(self._edges[number])
            if number != self._last:
                self._last = number
                for other in {*range(len(self._parts))} - {number, number - 1}:
                    self._parts[other].release()
            own = int(np.searchsorted(part.edges, start - base, side="right")) - 1
            batch = part.get(own)
            first = base + int(part.edges[own])
            yield batch, first
            start = first + batch.num_rows

    def _collect(self, batches: Any) -> pa.Table:
        tables = [
            batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
            for batch in batches
        ]
        if not tables:
            return self.schema.empty_table()
        whole = pa.concat_tables([table.cast(self.schema) for table in tables])
        return whole.unify_dictionaries()


def open_records(
    path: str,
    states: Sequence[FileState],
    columns: Sequence[str] | None,
    options: ReadOptions,
    partitions: Sequence[Mapping[str, Value]],
) -> Records:
    """Return these columns of files, or all, with their types.

    Columns of a text table are int64 or float64 if all their values are such numbers,
    else strings.
    """
    opened = []
    for state, constants in zip(states, partitions, strict=True):
        own = columns
        if columns is not None and constants:
            own = [name for name in columns if name not in constants]
        module, _ = FORMATS[suffix_of(state.place)]
        schema, batches = TYPED_READERS[module](state, own, options)
        if constants:
            schema, batches = _add_constants(schema, batches, constants, columns)
        opened.append((schema, batches))
    files = [state.path for state in states]
    schema = _unify(files, [schema for schema, _ in opened])
    return Records(path, schema, [batches for _, batches in opened])


def _add_constants(
    schema: pa.Schema,
    batches: Batches,
    constants: Mapping[str, Value],
    columns: Sequence[str] | None,
) -> tuple[pa.Schema, Batches]:
    """Return batches with columns that have one value each."""
    names = columns or [*(n for n in schema.names if n not in constants), *constants]
    types = {
        name: pa.string() if isinstance(value, str) else pa.int64()
        for name, value in constants.items()
    }
    fields = [(n, types[n] if n in types else schema.field(n).type) for n in names]
    wider = pa.schema(fields)

    def load(number: int) -> Any:
        batch = batches.get(number)
        arrays = [
            pa.repeat(pa.scalar(constants[name], types[name]), batch.num_rows)
            if name in constants
            else batch.column(name)
            for name in names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=wider)

    return wider, LoadedBatches(batches.edges, 2 * _BATCH_BYTES, load)


def _unify(files: Sequence[str], schemas: list[pa.Schema]) -> pa.Schema:
    """Return the types that hold the columns of all files."""
    fields = []
    for file, schema in zip(files, schemas, strict=True):
        if schema.names != schemas[0].names:
            raise ValueError(
                f"{file} has the columns {show_names(schema.names)}, {files[0]} has "
                f"{show_names(schemas[0].names)}; all files should have the same "
                "columns."
            )
    for j, name in enumerate(schemas[0].names):
        kinds = {schema.field(j).type for schema in schemas}
        kind = kinds.pop()
        if kinds:
            numbers = all(kind in NUMBERS for kind in {kind, *kinds})
            kind = pa.float64() if numbers else pa.string()
        fields.append(pa.field(name, kind))
    return pa.schema(fields)


def _choose(path: str, schema: pa.Schema, columns: Sequence[str] | None) -> list[str]:
    """Return the columns that were asked for; default is all but pandas' index."""
    if columns is None:
        aside = arrow.index_columns(schema)
        columns = [name for name in schema.names if name not in aside]
    check_known(path, columns, schema.names)
    return list(columns)


def _pick(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _open_parquet(
    state: FileState, columns: Sequence[str] | None, options: ReadOptions
) -> tuple[pa.Schema, Batches]:
    file = parquet.open_file(state)
    names = _choose(state.path, file.schema_arrow, columns)
    height = max(_BATCH_BYTES // (_VALUE_BYTES * max(len(names), 1)), 1)
    metadata = file.metadata
    edges, starts = parquet.split_rows(state, metadata, height)

    def begin(number: int) -> Iterator[Any]:
        groups = range(starts.index(number), metadata.num_row_groups)
        batches = parquet.decode(state, metadata, names, groups, edges[number], height)
        return (batch for batch, _ in batches)

    batches = StreamedBatches(edges, _BATCH_BYTES, begin, state.path, starts)
    return _pick(file.schema_arrow, names), batches


def _open_arrow(
    state: FileState, columns: Sequence[str] | None, options: ReadOptions
) -> tuple[pa.Schema, Batches]:
    schema = arrow.open_file(state).schema
    names = _choose(state.path, schema, columns)
    fields = [schema.get_field_index(name) for name in names]
    reader = arrow.open_file(state, fields)
    counts = [
        arrow.get_batch(reader, state, number).num_rows
        for number in range(reader.num_record_batches)
    ]

    def load(number: int) -> Any:
        batch = arrow.get_batch(arrow.open_file(state, fields), state, number)
        state.check()
        return batch.select(names)

    size = max(counts, default=0) * len(names) * _VALUE_BYTES
    return _pick(schema, names), LoadedBatches(np.cumsum([0, *counts]), size, load)


def _open_spreadsheet(
    state: FileState, columns: Sequence[str] | None, options: ReadOptions
) -> tuple[pa.Schema, Batches]:
    from sketchmeans.data.sources.spreadsheet import as_text

    return delimited.open_typed(as_text(state, options), columns, options)


#: What opens a file with the types of its columns, for each module of `formats` whose
#: columns have names.
TYPED_READERS: Mapping[str, Callable[..., tuple[pa.Schema, Batches]]] = {
    "parquet": _open_parquet,
    "arrow": _open_arrow,
    "delimited": delimited.open_typed,
    "spreadsheet": _open_spreadsheet,
}


def source_records(source: Source, columns: Sequence[str | int] | None) -> Records:
    """Return the rows of a source of numbers; columns without names have numbers."""
    if columns is not None:
        source = SelectedColumns(source, columns)
    numbers = range(source.shape[1]) if columns is None else columns
    names = source.feature_names or [f"column {number}" for number in numbers]
    fields = [(str(name), NUMBER_TYPES[source.dtype]) for name in names]
    schema = pa.schema(fields)
    height = max(_BATCH_BYTES // (source.dtype.itemsize * len(fields)), 1)
    edges = [*range(0, len(source), height), len(source)]

    def load(number: int) -> pa.RecordBatch:
        block = toarray(source.read(edges[number], edges[number + 1]))
        arrays = [pa.array(np.ascontiguousarray(column)) for column in block.T]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return Records(source.path, schema, [LoadedBatches(edges, _BATCH_BYTES, load)])


def to_arrow(column: nw.Series[Any]) -> pa.ChunkedArray:
    """Return a column of a data frame; objects of mixed types become strings."""
    try:
        return pa.chunked_array(column.to_arrow())
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        numbers = column.to_numpy()
        if numbers.dtype.kind in "biuf":  # a sparse column of pandas
            return pa.chunked_array([pa.array(numbers, from_pandas=True)])
        words = [None if _is_gap(value) else _as_text(value) for value in column]
        return pa.chunked_array([pa.array(words, pa.string())])


def _as_text(value: Any) -> str:
    """Return a value as a string that has a form in UTF-8."""
    return str(value).encode(errors="backslashreplace").decode()


def _is_gap(value: Any) -> bool:
    """Say whether a value is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    is_self = value == value
    return not isinstance(is_self, bool | np.bool_) or not is_self
