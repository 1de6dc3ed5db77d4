"""Columns of records as numbers, words and days, whatever type they are stored in."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchmeans.data.preparation.quantities import parse_quantities
from sketchmeans.data.stray_words import are_stray
from sketchmeans.numerics.linalg import Array

if TYPE_CHECKING:
    import pyarrow as pa

#: Words that stand for a missing value, in lower case.
MISSING_WORDS = frozenset(
    (
        *(
            "",
            "na",
            "n/a",
            "#n/a",
            "#nv",
            "<na>",
            "nan",
            "null",
            "none",
            "-",
            "--",
            "?",
        ),
        *("\u2013", "\u2014", "missing", ".", "n.a.", "k.a.", "k. a.", "keine angabe"),
    )
)
#: Words of yes and no, in lower case.
TRUE_WORDS = frozenset(
    (
        *("1", "y", "yes", "true", "t", "on", "ja", "j", "wahr", "oui", "o", "vrai"),
        *("si", "sí", "sì", "s", "vero", "verdadero", "sim", "verdadeiro", "waar"),
    )
)
FALSE_WORDS = frozenset(
    (
        *("0", "n", "no", "false", "f", "off", "nein", "falsch", "non", "faux"),
        *("não", "nao", "falso", "nee", "nej", "onwaar"),
    )
)

_TIME = (
    r"(?:[T ](?P<h>\d{1,2}):(?P<i>\d{2})(?::(?P<s>\d{2})(?:[.,]\d+)?)?"
    r"(?:\s?(?P<p>[AaPp])\.?[Mm]\.?)?)?(?:Z|[+-]\d{2}:?\d{2})?"
)
#: How names of months begin in English, German, French, Italian, Spanish, Portuguese
#: and Dutch.
_MONTHS = {
    start: month
    for month, starts in enumerate(
        (
            *("jan gen ene", "feb fév fev", "mar mär mrz maa", "apr avr abr"),
            *("may mai mag mei", "jun juin giu", "jul juil lug", "aug aoû aou ago"),
            *("sep set", "oct okt ott out", "nov", "dec dez déc dic"),
        ),
        start=1,
    )
    for start in starts.split()
}
_MONTH = r"(?P<m>[^\W\d_]{3,10})\.?"
#: How dates are written: the name, and the pattern of a value.
DATE_FORMATS: Mapping[str, str] = {
    name: rf"^\s*{pattern}{_TIME}\s*$"
    for name, pattern in {
        "year-month-day": r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})",
        "day.month.year": r"(?P<d>\d{1,2})[.](?P<m>\d{1,2})[.](?P<y>\d{4}|\d{2})",
        "month/day/year": r"(?P<m>\d{1,2})[/-](?P<d>\d{1,2})[/-](?P<y>\d{4}|\d{2})",
        "day/month/year": r"(?P<d>\d{1,2})[/-](?P<m>\d{1,2})[/-](?P<y>\d{4}|\d{2})",
        "yearmonthday": r"(?P<y>(?:19|20)\d{2})(?P<m>\d{2})(?P<d>\d{2})",
        "day month year": rf"(?P<d>\d\d?)\.?[ -]?{_MONTH}[ -](?P<y>\d{{4}}|\d\d)",
        "month day, year": rf"{_MONTH} (?P<d>\d{{1,2}}),? (?P<y>\d{{4}})",
        "month year": rf"(?P<d>){_MONTH}[ -](?P<y>\d{{4}}|(?<=-)\d{{2}})",
        "year-month": r"(?P<d>)(?P<y>\d{4})-(?P<m>\d{1,2})",
        "month/year": r"(?P<d>)(?P<m>\d{1,2})/(?P<y>\d{4})",
    }.items()
}
#: Years of two digits below this one are of this century.
_CENTURY = 70
_DAY = 86_400.0
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Words:
    """A column as words: row i holds `levels[codes[i]]`, or nothing if that is −1."""

    codes: Array
    levels: list[str]

    def fold(self) -> Words:
        """Return spellings that differ in case and spaces as one: the most frequent."""
        order = np.argsort(-self.counts(), kind="stable").tolist()
        first: dict[str, int] = {}
        for i in order:
            first.setdefault(fold_word(self.levels[i]), i)
        if len(first) == len(order):
            return self
        kept = sorted(first.values())
        place = {i: new for new, i in enumerate(kept)}
        table = [place[first[fold_word(level)]] for level in self.levels]
        codes = np.append(np.array(table, np.int64), -1)[self.codes]
        return Words(codes, [self.levels[i] for i in kept])

    def counts(self) -> Array:
        """Return how often each level occurs."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.levels))

    def map(self, values: Mapping[str, int], other: int) -> Array:
        """Return the value of each row's level, or `other`; −1 where it is missing."""
        table = np.array([values.get(level, other) for level in self.levels], np.int64)
        mapped = np.full(len(self.codes), -1, np.int64)
        present = self.codes >= 0
        if len(table):
            mapped[present] = table[self.codes[present]]
        return mapped


def fold_word(word: str) -> str:
    """Return what spellings of a word have in common that differ in case and spaces.

    Examples
    --------
    >>> fold_word("New  York") == fold_word("NEW YORK")
    True
    """
    return " ".join(word.casefold().split())


def is_number(kind: pa.DataType) -> bool:
    """Say whether values of a type are numbers; true and false are not."""
    from pyarrow import types

    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    )


def is_date(kind: pa.DataType) -> bool:
    """Say whether values of a type are dates or moments."""
    from pyarrow import types

    return bool(types.is_date(kind) or types.is_timestamp(kind))


def is_text(kind: pa.DataType) -> bool:
    """Say whether values of a type are strings, also such that are numbered."""
    from pyarrow import types

    return bool(
        types.is_string(kind) or types.is_large_string(kind) or _is_view(kind)
    ) or bool(types.is_dictionary(kind))


def _is_view(kind: pa.DataType) -> bool:
    from pyarrow import types

    return bool(getattr(types, "is_string_view", lambda _: False)(kind))


def to_words(column: pa.ChunkedArray) -> Words:
    """Return a column as words; those that stand for a missing value are missing.

    Whole numbers are written without a point, so that a file whose column happens to
    hold no other values has the same levels.

    Examples
    --------
    >>> import pyarrow as pa
    >>> to_words(pa.chunked_array([["a", " b", "NA", "a"]]))
    Words(codes=array([ 0,  1, -1,  0]), levels=['a', 'b'])
    """
    import pyarrow as pa

    from sketchmeans.data.sources.arrow import to_values

    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.nulls(0)
    if not pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_encode()
    codes = whole.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    found: dict[str, int] = {}
    table = [_level(value, found) for value in to_values(whole.dictionary)]
    mapped = np.append(np.array(table, np.int64), -1)[codes]
    return Words(mapped, list(found))


def _level(value: Any, found: dict[str, int]) -> int:
    """Return the number of a value's word among those found, or −1 if it is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return -1
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    word = str(value).strip()
    if word.lower() in MISSING_WORDS:
        return -1
    return found.setdefault(word, len(found))


def to_floats(
    column: pa.ChunkedArray,
    missing: Collection[str] = (),
    decimal: str | None = None,
    suffix: str = "",
) -> Array | None:
    """Return a column as numbers, NaN where it is missing; None if it holds others.

    `missing` are words that stand for missing values here; `decimal` and `suffix` say
    how numbers are written that Python does not read, see `quantities.find_writing`.
    Times are hours.
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return _as_array(column.cast(pa.float64()))
    if pa.types.is_duration(kind):
        seconds = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        whole = column.cast(pa.int64()).cast(pa.float64(), safe=False)
        return _as_array(whole) / (seconds * _DAY)
    if is_number(kind):
        return _as_array(column.cast(pa.float64(), safe=False))
    if pa.types.is_time(kind):
        parts = column.cast(pa.time64("ns")).cast(pa.int64()).cast(pa.float64())
        return _as_array(parts) / 3.6e12
    if not is_text(kind):
        return None
    words = to_words(column)
    if decimal is not None:
        known = pa.array([None if w in missing else w for w in words.levels], "string")
        parsed, wrong = parse_quantities(known, decimal, suffix)
        table = np.append(parsed.to_numpy(zero_copy_only=False), np.nan)
        return None if wrong.any() else np.asarray(table[words.codes], np.float64)
    try:
        table = np.array(
            [np.nan if word in missing else float(word) for word in words.levels]
        )
    except ValueError:
        return None
    return np.append(table, np.nan)[words.codes]


def find_missing_words(words: Words) -> tuple[str, ...]:
    """Return words that stand in for numbers, such as "unknown" among ages."""
    others = [w for w in words.levels if as_float(w) is None and not _DIGIT.search(w)]
    n_numbers = len(words.levels) - len(others)
    counts = dict(zip(words.levels, words.counts().tolist(), strict=True))
    share = sum(counts[word] for word in others) / sum(counts.values())
    return tuple(others) if are_stray(others, n_numbers, share) else ()


def find_other_word(
    column: pa.ChunkedArray, decimal: str | None = None, suffix: str = ""
) -> tuple[int, str]:
    """Return the first value of a column that is not a number, after its row."""
    import pyarrow as pa

    from sketchmeans.data.sources.arrow import to_values

    words = to_words(column)
    is_other = np.array([as_float(level) is None for level in words.levels], bool)
    if decimal is not None:
        levels = pa.array(words.levels, "string")
        is_other = parse_quantities(levels, decimal, suffix)[1]
    rows = np.flatnonzero(np.append(is_other, False)[words.codes])
    row = int(rows[0]) if len(rows) else 0
    return row, str(to_values(column.slice(row, 1))[0])


def as_float(word: str) -> float | None:
    """Return the number that a word is, or None."""
    try:
        return float(word)
    except ValueError:
        return None


def _as_array(column: pa.ChunkedArray) -> Array:
    return np.array(column.to_numpy(), dtype=np.float64)


def to_booleans(column: pa.ChunkedArray) -> Array | None:
    """Return a column of yes and no as 1 and 0, NaN where missing; None for others."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        return to_floats(column)
    words = to_words(column)
    table = []
    for level in words.levels:
        word = level.lower()
        if word not in TRUE_WORDS and word not in FALSE_WORDS:
            return None
        table.append(float(word in TRUE_WORDS))
    return np.append(np.array(table), np.nan)[words.codes]


def to_days(column: pa.ChunkedArray, written: str | None = None) -> Array | None:
    """Return dates as days since 1970, NaN where missing; None if they are not dates.

    `written` is one of `DATE_FORMATS`, for dates in words; words of another form are
    missing.
    """
    import pyarrow as pa

    kind = column.type
    if is_date(kind):
        moments = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        if getattr(kind, "tz", None):
            moments = moments.cast(pa.timestamp("us"), safe=False)
        whole = moments.cast(pa.int64()).cast(pa.float64(), safe=False)
        return _as_array(whole) / (1e6 * _DAY)
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    is_written = is_text(kind) or (written == "yearmonthday" and is_number(kind))
    if written is None or not is_written:
        return None
    words = to_words(column)
    pattern = re.compile(DATE_FORMATS[written])
    table = np.array([_parse_day(level, pattern) for level in words.levels])
    return np.append(table, np.nan)[words.codes]


def _parse_day(word: str, pattern: re.Pattern[str]) -> float:
    found = pattern.match(word)
    if found is None:
        return np.nan
    name = found["m"].lower()
    is_name = not name.isdecimal()
    month = _MONTHS.get(name[:4], _MONTHS.get(name[:3], 0)) if is_name else int(name)
    year, day = int(found["y"]), int(found["d"] or 1)
    if len(found["y"]) == 2:
        year += 2000 if year < _CENTURY else 1900
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return np.nan
    try:
        whole = np.datetime64(f"{year:04d}-{month:02d}-{day:02d}", "D").astype(int)
    except ValueError:  # the 30th of February
        return np.nan
    hour, minute, second = (int(found[part] or 0) for part in "his")
    if found["p"]:  # 12 a.m. is midnight
        hour = hour % 12 + (12 if found["p"] in "pP" else 0)
    return float(whole) + (hour * 3600 + minute * 60 + second) / _DAY


def find_date_format(words: Words) -> tuple[str, bool] | None:
    """Return how dates are written, and whether that is certain; None if none are.

    03/04/2024 may be in March or in April: a day above 12 anywhere in the column
    decides.
    """
    levels = words.levels
    if not levels:
        return None
    fitting = []
    for name, pattern in DATE_FORMATS.items():
        known = re.compile(pattern)
        if known.match(levels[0]) is None and known.match(levels[-1]) is None:
            continue
        n_parsed = sum(not np.isnan(_parse_day(level, known)) for level in levels)
        if n_parsed >= 0.98 * len(levels):
            fitting.append((name, n_parsed))
    if not fitting:
        return None
    most = max(n for _, n in fitting)
    best = [name for name, n in fitting if n == most]
    return best[0], len(best) == 1
