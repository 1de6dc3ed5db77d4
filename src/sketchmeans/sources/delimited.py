"""Text tables: values separated by commas, semicolons, tabs or bars.

What separates them is what the suffix says, a comma or a tab, unless the first two
lines tell otherwise: see `_delimiter`.  A column of the words true and false is one of
1 and 0.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv as arrow_csv

from sketchmeans.linalg import Array
from sketchmeans.sources.base import Source
from sketchmeans.sources.batches import Batch, RandomBatches
from sketchmeans.sources.tables import (
    ARROW_MEMORY,
    Columns,
    TableSource,
    choose_columns,
    numbers_of,
)
from sketchmeans.sources.text import PIECE_BYTES, Piece, lines_in_pieces

#: What stands for a value that is not there.
_NO_VALUES = ["", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "?"]
#: What may separate values.
_SIGNS = (",", ";", "\t", "|")


def open_delimited(
    path: str,
    columns: Sequence[str] | None,
    label_column: str | None,
    dtype: npt.DTypeLike | None,
    missing: str = "error",
) -> Source:
    """Return the rows of a text table.

    Every value is read as a float: a column of whole numbers may have a fraction
    further down.
    """
    delimiter = _delimiter(path)
    names, n_bytes = _first_line(path, delimiter)
    has_header = not all(_is_number(name) for name in names)
    if not has_header:
        if columns is not None or label_column is not None:
            raise ValueError(
                f"{path} starts with a line of numbers: without names there can be no "
                "columns= and no label_column=."
            )
        names, n_bytes = [f"column {j}" for j in range(len(names))], 0
    kind = np.dtype(np.float64 if dtype is None else dtype)
    schema = pa.schema([(name, pa.from_numpy_dtype(kind)) for name in names])
    chosen = choose_columns(path, schema, columns, label_column, kind, missing)
    truths = _truths(path, names, delimiter, n_bytes).intersection(chosen.names)
    parser = _Parser(path, chosen, names, delimiter, truths)
    source = DelimitedSource(parser, n_bytes)
    if not has_header:
        source.feature_names = None
    return source


def delimited_schema(path: str) -> Any:
    """Return the names of all columns and what the first lines say of their types.

    None where the file starts with numbers instead of names.
    """
    delimiter = _delimiter(path)
    names, n_bytes = _first_line(path, delimiter)
    if all(_is_number(name) for name in names):
        return None
    found = _guessed(path, names, delimiter, n_bytes)
    if found is None:
        raise ValueError(f"{path} has no rows; at least one is needed.")
    # A column that has no value yet may have numbers further down.
    return pa.schema(
        [
            (field.name, pa.float64() if pa.types.is_null(field.type) else field.type)
            for field in found
        ]
    )


def _guessed(path: str, names: list[str], delimiter: str, offset: int) -> Any:
    """Return what the first lines say of the types; None if there are none."""
    _, text = next(lines_in_pieces(path, offset), (offset, b""))
    if not text:
        return None
    any_type = Columns(tuple(names), np.dtype(np.float64))
    return _Parser(path, any_type, names, delimiter).batch(text, {}, 0).schema


def _truths(path: str, names: list[str], delimiter: str, offset: int) -> frozenset[str]:
    """Return the columns of the words true and false."""
    if len(set(names)) < len(names):
        return frozenset()  # which are told apart by no name
    found = _guessed(path, names, delimiter, offset) or ()
    return frozenset(field.name for field in found if pa.types.is_boolean(field.type))


class DelimitedSource(TableSource):
    """Rows of a text table, parsed in pieces of whole lines.

    One pass over the file finds where the rows are, and every value that is no number.
    """

    def __init__(self, parser: _Parser, offset: int) -> None:
        path, columns = parser.path, parser.columns
        pieces: list[Piece] = []
        n_rows = largest = 0
        for place, text in lines_in_pieces(path, offset):
            count = parser.features(text, n_rows).shape[0]
            if count:
                pieces.append(Piece(path, place, len(text), n_rows, count))
                largest = max(largest, count * columns.row_bytes)
            n_rows += count
        super().__init__(path, n_rows, columns)
        self._parser, self._pieces = parser, pieces
        self.batches = _DelimitedBatches(parser, pieces, n_rows, largest)
        self.memory = self.batches.memory + ARROW_MEMORY
        self.thread_memory += PIECE_BYTES + 2 * largest

    def _label_values(self, name: str) -> Array:
        labels: list[str] = []
        for piece in self._pieces:
            batch = self._parser.batch(piece.text(), {name: pa.string()}, piece.first)
            labels.extend(batch.column(0).to_pylist())
        values = np.array(labels)
        for kind in (np.int64, np.float64):
            try:
                return values.astype(kind)
            except ValueError:
                continue
        return values


class _DelimitedBatches(RandomBatches):
    def __init__(
        self, parser: _Parser, pieces: list[Piece], n_rows: int, largest: int
    ) -> None:
        super().__init__(np.array([*(p.first for p in pieces), n_rows]), largest)
        self._parser, self._pieces = parser, pieces

    def load(self, number: int) -> Batch:
        piece = self._pieces[number]
        return self._parser.features(piece.text(), piece.first)


@dataclass(frozen=True)
class _Parser:
    """How the lines of a file are read."""

    path: str
    columns: Columns
    names: list[str]  # of all columns of the file
    delimiter: str
    truths: frozenset[str] = frozenset()  # columns of true and false

    def features(self, text: bytes, first: int) -> Batch:
        """Return the features; `first` is the number of the first row."""
        kind = pa.from_numpy_dtype(self.columns.dtype)
        types = {
            name: pa.bool_() if name in self.truths else kind
            for name in self.columns.names
        }
        batch = self.batch(text, types, first)
        return numbers_of(batch, self.path, self.columns, first)

    def batch(self, text: bytes, types: dict[str, Any], first: int) -> Any:
        """Return the columns of these types, as one batch."""
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(text),
                arrow_csv.ReadOptions(
                    use_threads=False,  # the caller's are as many as n_jobs says
                    block_size=len(text) + 1,
                    column_names=self.names,
                ),
                arrow_csv.ParseOptions(delimiter=self.delimiter),
                arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    null_values=_NO_VALUES,
                ),
            )
        except pa.ArrowInvalid as error:
            raise ValueError(self._explained(str(error), first)) from None
        columns = [column.combine_chunks() for column in table.columns]
        return pa.RecordBatch.from_arrays(columns, names=table.column_names)

    def _explained(self, error: str, first: int) -> str:
        """Return an error of pyarrow's, with the row's number in the file."""
        found = re.search(r"Row #(\d+)", error)
        row = f" at row {first + int(found[1]) - 1}" if found else ""
        if value := re.search(r"column #(\d+): .*invalid value (.*)", error, re.S):
            name = self.columns.names[int(value[1])]
            what = "neither true nor false" if name in self.truths else "no number"
            if re.fullmatch(r"'[+-]?\d*,\d+'", value[2]):
                what += ": decimals should have a point"
            return (
                f"{self.path} cannot be read{row}, column {name!r}: {value[2]} is "
                f"{what}."
            )
        if width := re.search(r"Expected (\d+) columns, got (\d+)", error):
            return (
                f"{self.path} cannot be read{row}: it has {width[2]} values, and "
                f"{width[1]} were expected."
            )
        return f"{self.path} cannot be read{row}: {error}"


def _delimiter(path: str) -> str:
    """Return what separates the values of a file.

    What the suffix says, if the first two lines have as many of it; else the one other
    sign of which they have as many, and some.
    """
    usual = "\t" if path.lower().endswith(".tsv") else ","
    with open(path, "rb") as file:
        lines = [file.readline() for _ in range(2)]
    try:
        first, second = (line.decode("utf-8-sig").rstrip("\r\n") for line in lines)
    except UnicodeDecodeError:
        return usual  # who reads the line says what is wrong

    def separates(sign: str) -> bool:
        widths = [_width(line, sign) for line in (first, second or first)]
        return widths[0] == widths[1] > 1

    if separates(usual):
        return usual
    others = [sign for sign in _SIGNS if sign != usual and separates(sign)]
    if len(others) > 1:
        raise ValueError(
            f"{path} could be separated by {' or '.join(map(repr, others))}: write it "
            f"with {usual!r}."
        )
    return others[0] if others else usual


def _width(line: str, sign: str) -> int:
    """Return the number of values in a line."""
    try:
        return len(next(csv.reader([line], delimiter=sign), []))
    except csv.Error:
        return 0


def _first_line(path: str, delimiter: str) -> tuple[list[str], int]:
    """Return the cells of the first line, and its length in bytes."""
    with open(path, "rb") as file:
        line = file.readline()
    try:
        cells = next(csv.reader([line.decode("utf-8-sig")], delimiter=delimiter), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read as text: {error}") from None
    if not cells:
        raise ValueError(f"{path} starts with an empty line; it should have names.")
    return [cell.strip() for cell in cells], len(line)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
