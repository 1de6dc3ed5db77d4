"""Text tables: values separated by commas, semicolons, tabs or bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sketchmeans.data.sources.arrow import (
    ARROW_MEMORY,
    Columns,
    TableSource,
    choose_columns,
)
from sketchmeans.data.sources.base import LoadedBatches, ReadOptions, Source
from sketchmeans.data.sources.derived import check_known
from sketchmeans.data.sources.dialect import Dialect
from sketchmeans.data.sources.files import FileState, Piece
from sketchmeans.data.sources.text_table import (
    TYPES,
    Kind,
    Kinds,
    NotUtf8Error,
    TextTable,
)
from sketchmeans.numerics.linalg import Array


def open_delimited(state: FileState, options: ReadOptions) -> Source:
    """Return the rows of a text table.

    Every value is read as a float: a column of whole numbers may have a fraction
    further down.  A column of the words true and false is one of 1 and 0.
    """
    table = TextTable.find(state, options)
    named = options.columns is not None or options.label_column is not None
    if named and not table.layout.has_names:
        raise ValueError(
            f"{state.path} starts with a row and not with names: there can be no "
            "columns= and no label_column=."
        )
    known = table.layout.features if options.columns is None else table.layout.names
    schema = pa.schema([(name, pa.float64()) for name in known])
    columns = choose_columns(state.path, schema, options)
    source = DelimitedSource(table, columns)
    if not table.layout.has_names:
        source.feature_names = None
    return source


def delimited_schema(state: FileState, options: ReadOptions) -> Any:
    """Return the names of all columns and what the first rows say of their types.

    None where the file has no names.
    """
    table = TextTable.find(state, options)
    if not table.layout.has_names:
        return None
    if table.guess is None:
        raise ValueError(f"{state.path} has no rows; at least one is needed.")
    # A column that has no value yet may have numbers further down.
    numbers = {n for n, kind in table.kinds.items() if Kind.FLAG < kind < Kind.WORD}
    return pa.schema(
        [
            (name, pa.float64() if name in numbers else table.guess.field(name).type)
            for name in table.layout.features
        ]
    )


def delimited_dialect(state: FileState, options: ReadOptions) -> Dialect:
    """Return how a text table is written."""
    return TextTable.find(state, options).layout.dialect


def open_typed(
    state: FileState, columns: Sequence[str] | None, options: ReadOptions
) -> tuple[pa.Schema, LoadedBatches]:
    """Return the types of these columns, or of all, and their batches.

    A column is of int64 or float64 if all values of the file are such numbers, and
    none begins with a zero as codes do; else it is of strings.
    """
    table = TextTable.find(state, options)
    names = table.layout.features if columns is None else columns
    check_known(state.path, names, table.layout.names)
    kinds: Kinds = {name: table.typed_kind(name) for name in names}
    pieces: list[Piece] = []
    n_rows = longest = 0
    try:
        for place, text in table.pieces():
            kinds, count = table.widen(text, kinds, n_rows)
            if count:
                piece = Piece(table.state, place, len(text), n_rows, count)
                pieces.append(piece)
                longest = max(longest, len(text))
            n_rows += count
    except NotUtf8Error:
        if options.dialect.encoding is not None:
            raise
        return open_typed(state, columns, replace(options, not_utf8=True))

    def load(number: int) -> Any:
        piece = pieces[number]
        return table.parse(piece.text(), kinds, piece.first)

    edges = [*(piece.first for piece in pieces), n_rows]
    numbers = (Kind.INTEGER, Kind.FLOAT)
    types = {
        name: TYPES[kind if kind in numbers or kind is Kind.WORD else Kind.FLOAT]
        for name, kind in kinds.items()
    }
    return pa.schema(types.items()), LoadedBatches(edges, 2 * longest, load)


class DelimitedSource(TableSource):
    """Rows of a text table, parsed in pieces of whole records.

    One pass over the file finds where the rows are, and every value that is not a
    number.
    """

    def __init__(self, table: TextTable, columns: Columns) -> None:
        pieces: list[Piece] = []
        n_rows = largest = longest = 0
        for place, text in table.pieces():
            count = table.features(text, columns, n_rows).num_rows
            if count:
                pieces.append(Piece(table.state, place, len(text), n_rows, count))
                largest = max(largest, count * columns.row_bytes)
                longest = max(longest, len(text))
            n_rows += count
        super().__init__(table.state, n_rows, columns)
        self._table, self._pieces = table, pieces

        def load(number: int) -> Any:
            piece = pieces[number]
            return table.features(piece.text(), columns, piece.first)

        edges = [*(piece.first for piece in pieces), n_rows]
        self._use(LoadedBatches(edges, largest, load), ARROW_MEMORY)
        self.thread_memory += 2 * longest + 2 * largest

    def _read_column(self, name: str) -> Any:
        types = {name: pa.string()}
        return pa.chunked_array(
            [
                self._table.read(piece.text(), types, piece.first).column(0)
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
            except OverflowError:  # identifiers: not equal, and equal as floats
                break
        return values
