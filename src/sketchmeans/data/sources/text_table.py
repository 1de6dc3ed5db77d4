"""A text table, and how its columns are parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from sketchmeans.data.sources.arrow import NUMBER_TYPES, Columns, to_numbers
from sketchmeans.data.sources.base import ReadOptions
from sketchmeans.data.sources.encoding import as_utf8
from sketchmeans.data.sources.files import FileState, split_text
from sketchmeans.data.sources.layout import Layout, find_layout
from sketchmeans.data.sources.numbers import (
    count_marks,
    find_stray_words,
    is_numbers,
    parse_numbers,
)
from sketchmeans.data.sources.text import RecordEnds


class Kind(IntEnum):
    """How the values of a column are written; each kind holds those before it.

    Dressed numbers have groups of digits, signs of money or percent.
    """

    FLAG, INTEGER, FLOAT, DRESSED, WORD = range(5)


TYPES = {
    Kind.FLAG: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.DRESSED: pa.string(),
    Kind.WORD: pa.string(),
}
Kinds = Mapping[str, Kind]

_EMPTY = pa.RecordBatch.from_arrays([], names=[])


class NotUtf8Error(ValueError):
    """Words are in another encoding than the first megabyte."""


@dataclass(frozen=True)
class TextTable:
    """A file in UTF-8, how it is written, and what its first rows say of its columns.

    `guess` has pyarrow's types of the columns; None if there are no rows.  `marks` are
    the decimal marks of columns that have another one than the rest.
    """

    state: FileState
    layout: Layout
    guess: pa.Schema | None
    kinds: Kinds
    marks: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def find(cls, state: FileState, options: ReadOptions) -> TextTable:
        """Look at the beginning of a file."""
        dialect = options.dialect
        if options.header is not None:
            dialect = replace(dialect, header=options.header)
        state, encoding = as_utf8(state, dialect.encoding, options.not_utf8)
        layout = find_layout(state, replace(dialect, encoding=encoding))
        table = cls(state, layout, None, dict.fromkeys(layout.names, Kind.WORD))
        _, text = next(table.pieces(), (0, b""))
        if not text:
            return replace(table, layout=_with_decimal(layout, dialect.decimal or "."))
        if not dialect.na:
            na = table._find_missing_words(text)
            layout = replace(layout, dialect=replace(layout.dialect, na=na))
            table = replace(table, layout=layout)
        if dialect.decimal is None:
            mark = table._find_mark(text)
            table = replace(table, layout=_with_decimal(layout, mark))
        return table._guess_kinds(text)._name_words()

    def _find_missing_words(self, text: bytes) -> tuple[str, ...]:
        """Return words that stand in for numbers, such as "unknown" among ages."""
        table = replace(self, layout=_with_decimal(self.layout, "."))
        schema = table.read(text, {}, 0).schema
        names = [field.name for field in schema if pa.types.is_string(field.type)]
        found = [find_stray_words(column) for _, column in table._columns(text, names)]
        return tuple(sorted({word for words in found for word in words}))

    def _find_mark(self, text: bytes) -> str:
        """Return the decimal mark, as most columns have it."""
        table = replace(self, layout=_with_decimal(self.layout, "."))
        types = {field.name: field.type for field in table.read(text, {}, 0).schema}
        words = [name for name, kind in types.items() if pa.types.is_string(kind)]
        batch = table.read_words(text, words)
        votes = [count_marks(column) for column in batch.columns]
        commas = sum(vote[","] > vote["."] for vote in votes)
        if commas == 0:
            # 1,234 alone may be either; semicolons leave commas to decimals.
            is_either = any(is_numbers(column, ",") for column in batch.columns)
            has_points = any(map(pa.types.is_floating, types.values()))
            has_points = has_points or any(vote["."] for vote in votes)
            takes_commas = self.layout.sep == ";" and not has_points
            return "," if is_either and takes_commas else "."
        others = [name for name in types if name not in words]
        votes += map(count_marks, table.read_words(text, others).columns)
        points = sum(vote["."] > vote[","] for vote in votes)
        return "," if commas > points else "."

    def _guess_kinds(self, text: bytes) -> TextTable:
        """Return the table with the kinds of its columns, as the first rows say."""
        guess, decimal = self.read(text, {}, 0).schema, self.layout.dialect.decimal
        kinds = dict.fromkeys(guess.names, Kind.WORD)
        for found in guess:
            if pa.types.is_boolean(found.type):
                kinds[found.name] = Kind.FLAG
            elif pa.types.is_null(found.type) or pa.types.is_integer(found.type):
                kinds[found.name] = Kind.INTEGER
            elif pa.types.is_floating(found.type):
                kinds[found.name] = Kind.FLOAT
        words = [field.name for field in guess if pa.types.is_string(field.type)]
        other, marks = "," if decimal == "." else ".", {}
        for name, column in self._columns(text, words):
            if is_numbers(column, decimal or "."):
                kinds[name] = Kind.DRESSED
            elif 2 * count_marks(column)[other] > len(column):
                kinds[name], marks[name] = Kind.DRESSED, other
        return replace(self, guess=guess, kinds=kinds, marks=marks)

    def _name_words(self) -> TextTable:
        """Return the table with columns called by their places, where some are words.

        Columns that all hold numbers need no names.
        """
        is_named = self.layout.has_names or Kind.WORD in self.kinds.values()
        return replace(self, layout=replace(self.layout, has_names=is_named))

    def _columns(self, text: bytes, names: list[str]) -> Iterator[tuple[str, Any]]:
        batch = self.read_words(text, names)
        return zip(names, batch.columns, strict=True)

    def read_words(self, text: bytes, names: Sequence[str]) -> Any:
        """Return columns as strings, null where a value is missing."""
        types = dict.fromkeys(names, pa.string())
        return self.read(text, types, 0, nulls=True) if names else _EMPTY

    def typed_kind(self, name: str) -> Kind:
        """Return the narrowest kind that a column with a type may have.

        Flags and codes with leading zeros are words.
        """
        kind = self.kinds[name]
        if kind is Kind.INTEGER:
            _, text = next(self.pieces(), (0, b""))
            codes = self.read_words(text, [name]).column(0)
            if pc.any(pc.match_substring_regex(codes, r"^\s*[+-]?0\d")).as_py():
                return Kind.WORD
        return Kind.WORD if kind is Kind.FLAG else kind

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """Yield the place and the text of pieces, from the first row to the last."""
        layout, ends = self.layout, RecordEnds(self.layout.sep)
        return split_text(self.state, ends.last_end, layout.n_bytes, layout.stop)

    def features(self, text: bytes, columns: Columns, first: int) -> Any:
        """Return numbers; `first` is the number of the first row."""
        usual = (Kind.FLAG, Kind.DRESSED)
        found = {name: self.kinds[name] for name in columns.names}
        kinds = {n: kind if kind in usual else Kind.FLOAT for n, kind in found.items()}
        float_type = NUMBER_TYPES[columns.dtype]
        try:
            batch = self.parse(text, kinds, first, float_type)
        except ValueError:
            # A number may be dressed here that was not in the first rows.
            dressed = {n: max(k, Kind.DRESSED) for n, k in kinds.items() if k}
            batch = self.parse(text, {**kinds, **dressed}, first, float_type)
        return to_numbers(batch, self.state.path, columns, first)

    def widen(self, text: bytes, kinds: Kinds, first: int) -> tuple[Kinds, int]:
        """Return kinds that hold these records, too, and the number of records."""
        with suppress(ValueError):
            return kinds, self.parse(text, kinds, first).num_rows
        wider = {}
        for name, kind in kinds.items():
            for wider[name] in list(Kind)[kind:]:
                with suppress(ValueError):
                    self.parse(text, {name: wider[name]}, first)
                    break
        return wider, self.parse(text, wider, first).num_rows

    def parse(
        self, text: bytes, kinds: Kinds, first: int, float_type: Any = TYPES[Kind.FLOAT]
    ) -> Any:
        """Return columns of these kinds as one batch; dressed numbers as floats."""
        types = {name: TYPES[kind] for name, kind in kinds.items()}
        floats = {name: float_type for name, k in kinds.items() if k is Kind.FLOAT}
        batch = self.read(text, {**types, **floats}, first, nulls=True)
        columns = [
            self._undress(batch.column(name), name, first)
            if kind is Kind.DRESSED
            else batch.column(name)
            for name, kind in kinds.items()
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(kinds))

    def _undress(self, column: Any, name: str, first: int) -> Any:
        mark = self.marks.get(name, self.layout.dialect.decimal or ".")
        numbers, wrong = parse_numbers(column, mark)
        row = pc.index(wrong, True).as_py()
        if row < 0:
            return numbers
        value = column[row].as_py()
        raise ValueError(
            f"{self.state.path} cannot be read at row {first + row}, column {name!r}: "
            f"{value!r} is not a number{self._advise(value)}."
        )

    def _advise(self, value: str) -> str:
        if self.layout.dialect.decimal == "." and re.fullmatch(r"[+-]?\d*,\d+", value):
            return ": decimals should have a point, or say decimal=','"
        return ""

    def read(
        self, text: bytes, types: dict[str, Any], first: int, *, nulls: bool = False
    ) -> Any:
        """Return the columns of these types, as one batch; all if there are none.

        `nulls` says whether codes of missing values are null in words, too.
        """
        dialect = self.layout.dialect
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(text),
                arrow_csv.ReadOptions(
                    use_threads=False,  # the caller's are as many as n_jobs says
                    block_size=len(text) + 1,
                    column_names=self.layout.names,
                ),
                arrow_csv.ParseOptions(
                    delimiter=self.layout.sep, newlines_in_values=True
                ),
                arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    null_values=dialect.no_values,
                    strings_can_be_null=nulls,
                    decimal_point=dialect.decimal or ".",
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._explain(str(error), first, types) from None
        columns = [column.combine_chunks() for column in table.columns]
        return pa.RecordBatch.from_arrays(columns, names=table.column_names)

    def _explain(self, error: str, first: int, types: dict[str, Any]) -> ValueError:
        """Return an error of pyarrow's, with the row's number in the file."""
        found = re.search(r"Row #(\d+)", error)
        row = f" at row {first + int(found[1]) - 1}" if found else ""
        start = f"{self.state.path} cannot be read{row}"
        if "invalid UTF8" in error:
            return NotUtf8Error(
                f"{start}: it is not in UTF-8; say encoding='cp1252', or another."
            )
        if value := re.search(r"column #(\d+): .*invalid value (.*)", error, re.S):
            name = self.layout.names[int(value[1])]  # counted in the file
            is_flag = types[name] == pa.bool_()
            what = "neither true nor false" if is_flag else "not a number"
            return ValueError(f"{start}, column {name!r}: {value[2]} is {what}.")
        if width := re.search(r"Expected (\d+) columns, got (\d+)", error):
            return ValueError(
                f"{start}: it has {width[2]} values, and {width[1]} were expected."
            )
        return ValueError(f"{start}: {error}")


def _with_decimal(layout: Layout, decimal: str) -> Layout:
    return replace(layout, dialect=replace(layout.dialect, decimal=decimal))
