"""Columns of any kind as numbers: what an encoder learned, there and back again.

An encoder turns a column of records into one or more features.  Features that belong
together form a part, and the scale of a part makes its variance `weight`: so a column
of categories weighs as much as its encoder says, however many levels it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sketchmeans.data.preparation.values import (
    FALSE_WORDS,
    TRUE_WORDS,
    as_float,
    find_other_word,
    fold_word,
    to_days,
    to_floats,
    to_words,
)
from sketchmeans.numerics.linalg import Array

if TYPE_CHECKING:
    import pyarrow as pa

#: Variances of the parts of a date; that of a numeric column is 1.
_AGE_WEIGHT, _CYCLE_WEIGHT = 1.0, 0.25
#: What the level of rare values, and that of missing ones, is called.
OTHER, MISSING = "(other)", "(missing)"
#: The cycles of a date, in days: what is added (the first of 1970 was a Thursday), the
#: period, and the steps in which it is measured; 0 is without steps.
CYCLES = {
    "hour": (0.0, 1.0, 0.0),
    "weekday": (3.0, 7.0, 1.0),
    "month": (0.0, 365.2425, 30.4369),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OtherKindError(ValueError):
    """A value that is not of the kind of its column: what it is not, where, and it."""

    def __init__(self, expected: str, row: int, word: str) -> None:
        super().__init__(f"{word!r} is not {expected}")
        self.row = row


@dataclass(frozen=True)
class Part:
    """Features that are scaled together.

    A measured part is a single number on an axis, whose median and quartiles mean
    something.
    """

    names: tuple[str, ...]
    weight: float
    is_measured: bool = False


@dataclass(frozen=True)
class NumberEncoder:
    """A number as it is, or on a scale that is logarithmic far from `shift`.

    ``asinh((x − shift) / unit)`` is that scale: unlike the logarithm it has a value for
    zero and for negative numbers.  `sentinels` are codes of missing values, and
    `missing_words` words that stand for them; `decimal` and `suffix` say how numbers in
    words are written.  Hours before `day_start` count to the day before: 1 is 25.
    """

    unit: float | None = None
    shift: float = 0.0
    sentinels: tuple[float, ...] = ()
    missing_words: tuple[str, ...] = ()
    decimal: str | None = None
    suffix: str = ""
    day_start: float = 0.0

    def parts(self, name: str) -> list[Part]:
        return [Part((name,), 1.0, is_measured=True)]

    def encode(self, column: pa.ChunkedArray, out: Array) -> Array | None:
        values = self.read_numbers(column)
        if values is None:
            found = find_other_word(column, self.decimal, self.suffix)
            raise OtherKindError("a number", *found)
        self.encode_numbers(values)
        out[:, 0] = values
        return None

    def read_numbers(self, column: pa.ChunkedArray) -> Array | None:
        """Return the numbers of a column as they are; None if it holds others."""
        return to_floats(column, self.missing_words, self.decimal, self.suffix)

    def encode_numbers(self, values: Array) -> None:
        """Encode numbers in place."""
        if self.day_start:
            values[values < self.day_start] += 24.0
        for sentinel in self.sentinels:
            values[values == sentinel] = np.nan
        if self.unit is not None:
            values -= self.shift
            values /= self.unit
            np.arcsinh(values, out=values)

    def restore(self, block: Array) -> Array:
        """Return features in the unit of the column."""
        if self.unit is None:
            return block
        with np.errstate(over="ignore"):
            return np.sinh(block) * self.unit + self.shift

    def decode(self, block: Array) -> list[Any]:
        """Return the values of the column."""
        return [float(value) for value in self.restore(block)[:, 0]]


@dataclass(frozen=True)
class BooleanEncoder:
    """Yes and no as 1 and 0, in the words of the column: those of no and of yes."""

    words: tuple[str, str] = ("false", "true")

    def parts(self, name: str) -> list[Part]:
        return [Part((f"{name}={self.words[1]}",), _weigh_levels(2))]

    def encode(self, column: pa.ChunkedArray, out: Array) -> Array | None:
        words, codes = to_words(column), self.codes
        table = [_encode_flag(level.lower(), codes) for level in words.levels]
        values = np.append(np.array(table, np.float64), np.nan)[words.codes]
        out[:, 0] = values
        return np.asarray(np.isnan(values) & (words.codes >= 0))

    @property
    def codes(self) -> dict[str, int]:
        """0 or 1 for words in lower case: its own, and those of yes and no if it is so.

        One by one, so that the code of a row depends on no other row.
        """
        own = {word.lower(): i for i, word in enumerate(self.words)}
        if not own.keys() <= TRUE_WORDS | FALSE_WORDS:
            return own
        return dict.fromkeys(FALSE_WORDS, 0) | dict.fromkeys(TRUE_WORDS, 1) | own

    def restore(self, block: Array) -> Array:
        return block

    def decode(self, block: Array) -> list[Any]:
        return [self.words[int(value > 0.5)] for value in block[:, 0]]


def _encode_flag(word: str, codes: dict[str, int]) -> float:
    if word not in codes and "1" in codes and as_float(word) in (0.0, 1.0):
        word = f"{float(word):g}".lstrip("-")  # such as 1.0
    return codes.get(word, np.nan)


@dataclass(frozen=True)
class CategoryEncoder:
    """A category as one indicator per level.

    Spellings that differ in case and spaces are one level, unless both are listed.
    Levels that are not listed count as `OTHER`, if that is a level, or else as the
    `shares` of the levels, which says nothing about the row.
    """

    levels: tuple[str, ...]
    shares: Array

    def parts(self, name: str) -> list[Part]:
        names = tuple(f"{name}={level}" for level in self.levels)
        return [Part(names, _weigh_levels(len(names)))]

    def encode(self, column: pa.ChunkedArray, out: Array) -> Array | None:
        numbers = {level: i for i, level in enumerate(self.levels)}
        other, absent = numbers.get(OTHER), numbers.get(MISSING)
        folded = {fold_word(level): i for level, i in reversed(numbers.items())}
        words = to_words(column)
        spelled = {word: folded.get(fold_word(word), -2) for word in words.levels}
        codes = words.map(spelled | numbers, other=-2)
        is_new, is_missing = codes == -2, codes == -1
        out[:] = 0.0
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = 1.0
        if other is None:
            out[is_new] = self.shares
        else:
            out[is_new, other] = 1.0
        if absent is None:
            out[is_missing] = np.nan
        else:
            out[is_missing, absent] = 1.0
        return is_new

    def restore(self, block: Array) -> Array:
        return block

    def decode(self, block: Array) -> list[Any]:
        found = [self.levels[j] for j in block.argmax(axis=1)]
        return [None if level == MISSING else level for level in found]


@dataclass(frozen=True)
class OrdinalEncoder:
    """Ordered words as 1, 2, …, the lowest first.

    `missing_words` are answers that say nothing; other words are new, and missing, too.
    """

    levels: tuple[str, ...]
    missing_words: tuple[str, ...] = ()

    def parts(self, name: str) -> list[Part]:
        return [Part((name,), 1.0, is_measured=True)]

    def encode(self, column: pa.ChunkedArray, out: Array) -> Array | None:
        places = {level.casefold(): i for i, level in enumerate(self.levels, start=1)}
        places |= dict.fromkeys((word.casefold() for word in self.missing_words), 0)
        words = to_words(column)
        table = [places.get(level.casefold(), -1) for level in words.levels]
        found = np.append(np.array(table, np.float64), 0.0)[words.codes]
        out[:, 0] = np.where(found > 0.0, found, np.nan)
        return np.asarray(found < 0.0)

    def restore(self, block: Array) -> Array:
        return block

    def decode(self, block: Array) -> list[Any]:
        """Return the level that is nearest."""
        places = np.clip(np.round(block[:, 0]), 1, len(self.levels)).astype(int)
        return [self.levels[place - 1] for place in places]


@dataclass(frozen=True)
class DateEncoder:
    """A date as its age in days at `reference`, and where in a cycle it is.

    `cycles` are some of hour, weekday and month, each a point on a circle; `written` is
    the order of day, month and year of dates in words; `sentinels` are days that stand
    for a missing value.
    """

    reference: float
    cycles: tuple[str, ...] = ()
    written: str | None = None
    sentinels: tuple[float, ...] = ()

    def parts(self, name: str) -> list[Part]:
        age = Part((f"{name} (age in days)",), _AGE_WEIGHT, is_measured=True)
        cycles = [
            Part((f"{name} ({cycle}, cos)", f"{name} ({cycle}, sin)"), _CYCLE_WEIGHT)
            for cycle in self.cycles
        ]
        return [age, *cycles]

    def encode(self, column: pa.ChunkedArray, out: Array) -> Array | None:
        days = to_days(column, self.written or "year-month-day")
        if days is None:
            raise OtherKindError("a date", *find_other_word(column))
        for sentinel in self.sentinels:
            days[np.floor(days) == sentinel] = np.nan
        out[:, 0] = self.reference - days
        for i, cycle in enumerate(self.cycles):
            angle = 2.0 * np.pi * cycle_position(days, cycle)
            out[:, 1 + 2 * i], out[:, 2 + 2 * i] = np.cos(angle), np.sin(angle)
        return None

    def restore(self, block: Array) -> Array:
        return block

    def decode(self, block: Array) -> list[Any]:
        days = self.reference - block[:, 0]
        return [_as_date(float(day)) for day in days]


def _weigh_levels(n_levels: int) -> float:
    """Return the variance of a column of these levels; that of a numeric one is 1.

    That of the indicators of equally frequent levels: rows of different levels are then
    as far apart as two rows are on average in a numeric column, √2 deviations.  More
    would draw the clusters to columns that split rows without any overlap
    (`benchmarks/mixed.py`).
    """
    return 1.0 - 1.0 / max(n_levels, 2)


Encoder: TypeAlias = (
    NumberEncoder | BooleanEncoder | CategoryEncoder | OrdinalEncoder | DateEncoder
)


def cycle_position(days: Array, cycle: str) -> Array:
    """Return where in a cycle days are, from 0 to 1; whole weekdays and months."""
    shift, period, step = CYCLES[cycle]
    place = (days + shift) % period
    if not step:
        return np.asarray(place / period)
    return np.asarray(np.floor(place / step) / round(period / step))


def _as_date(day: float) -> str:
    """Return a day as it is written in ISO form, to the minute if it has a time."""
    minutes = round(day * 1440.0)
    try:
        moment = _EPOCH + timedelta(minutes=minutes)
    except OverflowError:
        return str(np.datetime64(round(day), "D"))
    return moment.strftime("%Y-%m-%d" if minutes % 1440 == 0 else "%Y-%m-%d %H:%M")


@dataclass(frozen=True)
class Layout:
    """Which features each encoder fills, and which of them are scaled together."""

    names: tuple[str, ...]
    #: Of each feature: the number of its column, that of its part, whether it is
    #: measured; of each part: its weight.
    column: Array
    part: Array
    is_measured: Array
    weight: Array

    @classmethod
    def of(cls, encoders: Sequence[tuple[str, Encoder]]) -> Layout:
        """Return the layout of the features of named encoders, in this order."""
        parts = [
            (i, part)
            for i, (name, encoder) in enumerate(encoders)
            for part in encoder.parts(name)
        ]
        widths = [len(part.names) for _, part in parts]
        return cls(
            tuple(name for _, part in parts for name in part.names),
            np.repeat([i for i, _ in parts], widths),
            np.repeat(np.arange(len(parts)), widths),
            np.repeat([part.is_measured for _, part in parts], widths),
            np.array([part.weight for _, part in parts]),
        )

    def slices(self) -> list[slice]:
        """Return the features of each column."""
        edges = np.searchsorted(self.column, np.arange(self.column[-1] + 2))
        return [slice(start, stop) for start, stop in pairwise(edges.tolist())]
