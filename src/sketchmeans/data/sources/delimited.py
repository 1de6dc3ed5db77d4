"""Text tables: values separated by commas, semicolons, tabs or bars."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from sketchmeans.data.sources.base import ReadOptions, Source
from sketchmeans.data.sources.batches import LoadedBatches
from sketchmeans.data.sources.files import FileState
from sketchmeans.data.sources.tables import (
    ARROW_MEMORY,
    NUMBER_TYPES,
    Columns,
    TableSource,
    choose_columns,
    to_numbers,
)
from sketchmeans.data.sources.text import (
    NO_VALUES,
    Header,
    Piece,
    Records,
    read_header,
    split_text,
)
from sketchmeans.numerics.linalg import Array


def open_delimited(path: str, options: ReadOptions) -> Source:
    """Return the rows of a text table.

    Every value is read as a float: a column of whole numbers may have a fraction
    further down.  A column of the words true and false is one of 1 and 0.
    """
    state = FileState.of(path)
    found = read_header(state, options.header)
    named = options.columns is not None or options.label_column is not None
    if named and not found.has_names:
        raise ValueError(
            f"{path} starts with a row and not with names: there can be no columns= "
            "and no label_column=."
        )
    schema = pa.schema([(name, pa.float64()) for name in found.names])
    chosen = choose_columns(path, schema, options)
    flags: list[str] = []
    if len(set(found.names)) == len(found.names):  # names tell columns apart
        fields = _guess_types(state, found) or ()
        flags = [field.name for field in fields if pa.types.is_boolean(field.type)]
    parser = _Parser(state, chosen, found, frozenset(flags).intersection(chosen.names))
    source = DelimitedSource(parser)
    if not found.has_names:
        source.feature_names = None
    return source


def delimited_schema(path: str, options: ReadOptions) -> Any:
    """Return the names of all columns and what the first rows say of their types.

    None where the file has no names.
    """
    state = FileState.of(path)
    found = read_header(state, options.header)
    if not found.has_names:
        return None
    fields = _guess_types(state, found)
    if fields is None:
        raise ValueError(f"{path} has no rows; at least one is needed.")
    # A column that has no value yet may have numbers further down.
    return pa.schema(
        [
            (field.name, pa.float64() if pa.types.is_null(field.type) else field.type)
            for field in fields
        ]
    )


def _guess_types(state: FileState, header: Header) -> Any:
    """Return what the first rows say of the types; None if there are none."""
    any_type = Columns(tuple(header.names), np.dtype(np.float64))
    parser = _Parser(state, any_type, header)
    _, text = next(parser.pieces(), (0, b""))
    return parser.parse(text, {}, 0).schema if text else None


class DelimitedSource(TableSource):
    """Rows of a text table, parsed in pieces of whole records.

    One pass over the file finds where the rows are, and every value that is not a
    number.
    """

    def __init__(self, parser: _Parser) -> None:
        columns = parser.columns
        pieces: list[Piece] = []
        n_rows = largest = longest = 0
        for place, text in parser.pieces():
            count = parser.features(text, n_rows).num_rows
            if count:
                pieces.append(Piece(parser.state, place, len(text), n_rows, count))
                largest = max(largest, count * columns.row_bytes)
                longest = max(longest, len(text))
            n_rows += count
        super().__init__(parser.state, n_rows, columns)
        self._parser, self._pieces = parser, pieces

        def load(number: int) -> Any:
            piece = pieces[number]
            return parser.features(piece.text(), piece.first)

        edges = [*(piece.first for piece in pieces), n_rows]
        self.batches = LoadedBatches(edges, largest, load)
        self.memory = self.batches.memory + ARROW_MEMORY
        self.thread_memory += 2 * longest + 2 * largest

    def _read_column(self, name: str) -> Any:
        types = {name: pa.string()}
        return pa.chunked_array(
            [
                self._parser.parse(piece.text(), types, piece.first).column(0)
                for piece in self._pieces
            ]
        )

    def labels(self) -> Array:
        values = super().labels()
        for kind in (np.int64, np.float64):
            try:
                return values.astype(kind)
            except ValueError:
                continue
        return values


@dataclass(frozen=True)
class _Parser:
    """How the records of a file are read; `flags` are columns of true and false."""

    state: FileState
    columns: Columns
    header: Header
    flags: frozenset[str] = frozenset()

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """Yield the place and the text of pieces, without the names of the columns."""
        ends = Records(self.header.delimiter)
        return split_text(self.state, ends.last_end, self.header.n_bytes)

    def features(self, text: bytes, first: int) -> Any:
        """Return the features; `first` is the number of the first row."""
        kind = NUMBER_TYPES[self.columns.dtype]
        types = {
            name: pa.bool_() if name in self.flags else kind
            for name in self.columns.names
        }
        batch = self.parse(text, types, first)
        return to_numbers(batch, self.state.path, self.columns, first)

    def parse(self, text: bytes, types: dict[str, Any], first: int) -> Any:
        """Return the columns of these types, as one batch."""
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(text),
                arrow_csv.ReadOptions(
                    use_threads=False,  # the caller's are as many as n_jobs says
                    block_size=len(text) + 1,
                    column_names=self.header.names,
                ),
                arrow_csv.ParseOptions(
                    delimiter=self.header.delimiter, newlines_in_values=True
                ),
                arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    null_values=NO_VALUES,
                ),
            )
        except pa.ArrowInvalid as error:
            raise ValueError(self._explain(str(error), first)) from None
        columns = [column.combine_chunks() for column in table.columns]
        return pa.RecordBatch.from_arrays(columns, names=table.column_names)

    def _explain(self, error: str, first: int) -> str:
        """Return an error of pyarrow's, with the row's number in the file."""
        found = re.search(r"Row #(\d+)", error)
        row = f" at row {first + int(found[1]) - 1}" if found else ""
        start = f"{self.state.path} cannot be read{row}"
        if value := re.search(r"column #(\d+): .*invalid value (.*)", error, re.S):
            name = self.columns.names[int(value[1])]
            what = "neither true nor false" if name in self.flags else "not a number"
            if re.fullmatch(r"'[+-]?\d*,\d+'", value[2]):
                what += ": decimals should have a point"
            return f"{start}, column {name!r}: {value[2]} is {what}."
        if width := re.search(r"Expected (\d+) columns, got (\d+)", error):
            return f"{start}: it has {width[2]} values, and {width[1]} were expected."
        return f"{start}: {error}"
