"""Text tables: values separated by commas, semicolons, tabs or bars.

A record of a table is a line, or several where a value in quotes has line breaks.  The
rules are those of pyarrow and of Python's csv module: a quote opens a value only where
the value begins, two quotes within it stand for one, and a record ends with a line
feed, a carriage return or both.  pyarrow does not tell at which byte its records end,
and reads a file only from the first byte on; with known places threads can parse pieces
side by side, and a pass can begin anywhere.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from sketchmeans.data.sources.arrow import (
    ARROW_MEMORY,
    NUMBER_TYPES,
    Columns,
    TableSource,
    choose_columns,
    to_numbers,
)
from sketchmeans.data.sources.base import LoadedBatches, ReadOptions, Source
from sketchmeans.data.sources.derived import check_known
from sketchmeans.data.sources.files import FileState, Piece, split_text
from sketchmeans.numerics.linalg import Array

#: What stands for a value that is not there.
NO_VALUES = ["", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "?"]
#: What may separate values.
_DELIMITERS = (",", ";", "\t", "|")
#: Records that are looked at for a header, and most characters of one in an error.
_SAMPLE_ROWS, _SHOWN = 20, 60

#: Types of a column, each of which holds the values of those before it.
_LADDER = [pa.int64(), pa.float64(), pa.string()]

_BREAK = re.compile(rb"\r\n|\r|\n")


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


def open_typed(
    path: str, columns: Sequence[str] | None, options: ReadOptions
) -> tuple[pa.Schema, LoadedBatches]:
    """Return the types of these columns, or of all, and their batches.

    A column is of int64 or float64 if all values of the file are such numbers, and
    none begins with a zero as codes do; else it is of strings.
    """
    state = FileState.of(path)
    found = read_header(state, options.header)
    names = found.names if columns is None else columns
    check_known(path, names, found.names)
    chosen = Columns(tuple(names), np.dtype(np.float64))
    parser = _Parser(state, chosen, found, keeps_gaps=True)
    types = parser.guess_numbers()
    pieces: list[Piece] = []
    n_rows = longest = 0
    for place, text in parser.pieces():
        types, count = parser.widen(text, types, n_rows)
        if count:
            pieces.append(Piece(state, place, len(text), n_rows, count))
            longest = max(longest, len(text))
        n_rows += count

    def load(number: int) -> Any:
        piece = pieces[number]
        return parser.parse(piece.text(), types, piece.first)

    edges = [*(piece.first for piece in pieces), n_rows]
    return pa.schema(types.items()), LoadedBatches(edges, 2 * longest, load)


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
        self._use(LoadedBatches(edges, largest, load), ARROW_MEMORY)
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
    """How the records of a file are read; `flags` are columns of true and false.

    `keeps_gaps` says whether codes of missing values are null in words, too.
    """

    state: FileState
    columns: Columns
    header: Header
    flags: frozenset[str] = frozenset()
    keeps_gaps: bool = False

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

    def guess_numbers(self) -> dict[str, Any]:
        """Return the narrowest types that the columns may have, by the first rows."""
        _, text = next(self.pieces(), (0, b""))
        if not text:
            return dict.fromkeys(self.columns.names, pa.string())
        guess = self.parse(text, {}, 0).schema
        words = self.parse(text, dict.fromkeys(self.columns.names, pa.string()), 0)
        types = {}
        for name in self.columns.names:
            kind, codes = guess.field(name).type, words.column(name)
            if pa.types.is_null(kind):  # there may be numbers further down
                kind = pa.int64()
            has_codes = pc.any(pc.match_substring_regex(codes, r"^\s*[+-]?0\d")).as_py()
            is_number = kind in _LADDER and not has_codes
            types[name] = kind if is_number else pa.string()
        return types

    def widen(
        self, text: bytes, types: dict[str, Any], first: int
    ) -> tuple[dict[str, Any], int]:
        """Return types that hold these records, too, and the number of records."""
        with suppress(ValueError):
            return types, self.parse(text, types, first).num_rows
        wider = {}
        for name, kind in types.items():
            for wider[name] in _LADDER[_LADDER.index(kind) :]:
                with suppress(ValueError):
                    self.parse(text, {name: wider[name]}, first)
                    break
        return wider, self.parse(text, wider, first).num_rows

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
                    strings_can_be_null=self.keeps_gaps,
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


# --- records and names ----------------------------------------------------------------


class Records:
    """Where the records of a text table end."""

    def __init__(self, delimiter: str) -> None:
        sign = re.escape(delimiter.encode())
        # A value in quotes, to its end or to that of the text.  No other quote has a
        # delimiter or a line break before it that is not itself within quotes.
        self._quoted = re.compile(
            rb"(?:\A(?:\xef\xbb\xbf)?|(?<=[\r\n" + sign + rb']))"(?:[^"]++|"")*+"?'
        )

    def last_end(self, text: bytes) -> int:
        """Return where the last whole record ends; 0 if none does.

        The text starts with a record.
        """
        stop = len(text)
        for start, end in [*reversed(self._quotes(text)), (0, 0)]:
            # A carriage return at the very end may be the first half of a break.
            feed = text.rfind(b"\n", end, stop)
            back = text.rfind(b"\r", end, min(stop, len(text) - 1))
            if feed >= 0 or back >= 0:
                return max(feed, back) + 1
            stop = start
        return 0

    def first_end(self, text: bytes) -> int:
        """Return where the first record ends."""
        done = 0
        for start, end in [*self._quotes(text), (len(text), len(text))]:
            found = _BREAK.search(text, done, start)
            if found:
                return found.end()
            done = end
        return len(text)

    def _quotes(self, text: bytes) -> list[tuple[int, int]]:
        if b'"' not in text:
            return []
        return [found.span() for found in self._quoted.finditer(text)]


@dataclass(frozen=True)
class Header:
    """How the values of a file are separated, and the names of its columns.

    `has_names` says whether the file has names, or they are made up; the rows start
    after `n_bytes`.
    """

    delimiter: str
    names: list[str]
    has_names: bool
    n_bytes: int


def read_header(state: FileState, header: bool | None) -> Header:
    """Return what the first records say; `header` is whether the first holds names."""
    delimiter = _find_delimiter(state)
    rows, n_bytes = _first_rows(state, delimiter)
    cells = [cell.strip() for cell in rows[0]]
    if _has_names(state.path, cells, rows[1:]) if header is None else header:
        return Header(delimiter, cells, True, n_bytes)
    return Header(delimiter, [f"column {j}" for j in range(len(cells))], False, 0)


def _find_delimiter(state: FileState) -> str:
    """Return what separates the values of a file.

    What the suffix says, if the first two records have as many of it; else the one
    other delimiter of which they have as many, and some.
    """
    usual = "\t" if state.path.lower().endswith(".tsv") else ","

    def separates(delimiter: str) -> bool:
        try:
            rows, _ = _first_rows(state, delimiter)
        except ValueError:
            return False
        widths = {len(row) for row in rows[:2]}
        return len(widths) == 1 and min(widths) > 1

    if separates(usual):
        return usual
    others = [sign for sign in _DELIMITERS if sign != usual and separates(sign)]
    if len(others) > 1:
        raise ValueError(
            f"{state.path} could be separated by {' or '.join(map(repr, others))}: "
            f"write it with {usual!r}."
        )
    return others[0] if others else usual


def _first_rows(state: FileState, delimiter: str) -> tuple[list[list[str]], int]:
    """Return the cells of the first records, and where the second one starts."""
    records = Records(delimiter)
    _, data = next(split_text(state, records.last_end), (0, b""))
    # What is not text further down is reported by the parser, with its row.
    text = data.decode("utf-8-sig", errors="surrogateescape")
    try:
        reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
        rows = list(islice(filter(None, reader), _SAMPLE_ROWS))
        first = next(csv.reader(StringIO(text, newline=""), delimiter=delimiter), [])
        "".join(first).encode()
    except (csv.Error, UnicodeEncodeError):
        raise ValueError(
            f"{state.path} cannot be read as text: its first line is not in UTF-8, or "
            "has values that are too long."
        ) from None
    if not first:
        raise ValueError(
            f"{state.path} starts with an empty line; it should have names."
        )
    return rows, records.first_end(data)


def _has_names(path: str, first: list[str], others: list[list[str]]) -> bool:
    """Say whether the first record holds names and not values, if that is clear.

    Text without a number is names; numbers and codes of missing values are values.
    Numbers may still be names if they count up and those below do not: 0, 1, 2 or
    years.  Text beside numbers is names only if they count up and some of the text
    stands above numbers.
    """
    values = [c for c in first if _is_number(c) or c.lower() in ("true", "false")]
    texts = [
        j
        for j, cell in enumerate(first)
        if cell not in values and cell not in NO_VALUES
    ]
    if texts and not values:
        return True
    counts_up = _counts_up(first)
    if texts:
        above = (len(row) > j and _is_number(row[j]) for row in others for j in texts)
        if counts_up and any(above):
            return True
    elif not (counts_up and others) or any(_counts_up(row) for row in others):
        return False
    line = ",".join(first)
    shown = line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
    raise ValueError(
        f"{path} starts with {shown!r}, which may be the names of the columns or a "
        "row: say which with header=True or header=False."
    )


def _counts_up(cells: list[str]) -> bool:
    """Say whether the numbers among cells are whole and go up in equal steps."""
    texts = [cell.strip() for cell in cells if _is_number(cell)]
    if len(texts) < 2 or not all(text.isdecimal() for text in texts):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(texts)}
    # Any two numbers have equal steps.
    return steps == {1} if len(texts) == 2 else len(steps) == 1 and min(steps) > 0


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
