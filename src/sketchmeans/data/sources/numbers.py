"""Numbers as people write them: 1.234,50 €, $1,200, 12 %, (300), 1'000."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from sketchmeans.data.stray_words import are_stray

#: Names and signs of money, before or behind a number.
_MONEY = (
    r"US\$|R\$|[$€£¥₹₽₺₩₴₪฿]|zł|Kč|kr\.?|Fr\.|EUR|USD|GBP|CHF|JPY|CNY|INR|PLN|CZK|HUF|"
    r"SEK|NOK|DKK|RUB|TRY|BRL|AUD|CAD|NZD|ZAR"
)
#: What may separate groups of three digits, in addition to the other decimal mark.
_SPACES = " \u00a0\u202f'\u2019"
#: Replacements that leave the bare number; signs first, as they may be outermost.
_STRIP = (
    ("[\u2212\u2013\u2014]", "-"),
    (r"^[<>≤≥]=?\s*", ""),
    (r"(\d[.,])-{1,2}(\s|$)", r"\1\2"),
    (r"^\((.+)\)$", r"-\1"),
    (r"^([^-].*)-$", r"-\1"),
    (rf"^([+-]?)\s*(?:{_MONEY})\s*([+-]?)", r"\1\2"),
    (rf"\s*(?:{_MONEY}|%)$", ""),
    (r"^([^-].*)-$", r"-\1"),
)
_OTHER = {".": ",", ",": "."}
#: Values that are looked at first: most columns of words have no number among them.
_FIRST = 64


def parse_numbers(column: pa.Array, decimal: str) -> tuple[pa.Array, pa.Array]:
    """Return strings as floats, and which of them are not numbers.

    A number may have groups of three digits, a sign of money or percent, and a minus
    before or behind it or as parentheses.  12 % is 12, "5,-" is 5, and "< 0.3", which a
    laboratory writes of what it cannot measure, is 0.3.

    Examples
    --------
    >>> import pyarrow as pa
    >>> values, wrong = parse_numbers(pa.array(["1.234,50 €", "12 %", "x"]), ",")
    >>> values.to_pylist(), wrong.to_pylist()
    ([1234.5, 12.0, None], [False, False, True])
    """
    bare = pc.utf8_trim_whitespace(column)
    for pattern, replacement in _STRIP:
        bare = pc.replace_substring_regex(bare, pattern, replacement)
    bare = pc.utf8_trim_whitespace(bare)
    is_number = pc.fill_null(pc.match_substring_regex(bare, _pattern(decimal)), True)
    groups = f"[{_SPACES}{_OTHER[decimal]}]"
    bare = pc.replace_substring_regex(bare, groups, "")
    bare = pc.replace_substring(bare, decimal, ".")
    bare = pc.if_else(is_number, bare, pa.scalar(None, pa.string()))
    return bare.cast(pa.float64()), pc.invert(is_number)


def _pattern(decimal: str) -> str:
    """Return a pattern of numbers that have this decimal mark."""
    mark, groups = re.escape(decimal), f"[{_SPACES}{_OTHER[decimal]}]"
    whole = rf"(?:\d{{1,3}}(?:{groups}\d{{3}})+|\d+)"
    exponent = r"(?:[eE][+-]?\d+)?"
    return rf"^[+-]?(?:{whole}(?:{mark}\d*)?|{mark}\d+){exponent}$|^[+-]?(?i:nan|inf)$"


def count_marks(column: pa.Array) -> dict[str, int]:
    """Return how many values can only have this decimal mark.

    1,5 has a comma, 1.234,5 and 1.234.567, too; 1,234 may have either.  None of a
    column counts if some value is not a number at all.

    Examples
    --------
    >>> import pyarrow as pa
    >>> count_marks(pa.array(["1,5", "1,234", "12"]))
    {'.': 0, ',': 1}
    """
    for part in (column[:_FIRST], column):
        wrong = {mark: parse_numbers(part, mark)[1] for mark in _OTHER}
        if pc.any(pc.and_(wrong["."], wrong[","])).as_py():
            return dict.fromkeys(_OTHER, 0)
    return {mark: pc.sum(wrong[_OTHER[mark]]).as_py() or 0 for mark in _OTHER}


def find_stray_words(column: pa.Array) -> list[str]:
    """Return the few words, without digits, among numbers.

    They stand for missing values: such a column is numeric, not a category.

    Examples
    --------
    >>> import pyarrow as pa
    >>> find_stray_words(pa.array([*map(str, range(30)), "unknown", "unknown"]))
    ['unknown']
    >>> find_stray_words(pa.array(["1", "2", "3", "many"] * 10))
    []
    """
    n_values = len(column) - column.null_count
    for part in (column[:_FIRST], column):
        is_word = pc.and_(*(parse_numbers(part, mark)[1] for mark in _OTHER))
        # As they are written, with their spaces: so the parser meets them again.
        words = [str(word) for word in pc.unique(part.filter(is_word)).to_pylist()]
        different = sorted({word.strip() for word in words})
        if not are_stray(different, n_values, 0.0):
            return []
    n_numbers = pc.count_distinct(column).as_py() - len(words)
    share = (pc.sum(is_word).as_py() or 0) / n_values
    return words if are_stray(different, n_numbers, share) else []


def is_numbers(column: pa.Array, decimal: str) -> bool:
    """Say whether all values are numbers, and some is there."""
    if column.null_count == len(column):
        return False
    parts = (column[:_FIRST], column)
    return not any(pc.any(parse_numbers(p, decimal)[1]).as_py() for p in parts)


def is_number(text: str) -> bool:
    """Say whether a text is a number, with either decimal mark.

    Examples
    --------
    >>> [is_number(text) for text in ("1e3", "1.234,5", "-3 %", "x", "1_0", "")]
    [True, True, True, False, False, False]
    """
    try:
        float(text)
    except ValueError:
        bare = text.strip()
        for pattern, replacement in _STRIP:
            bare = re.sub(pattern, replacement, bare)
        return any(re.match(_pattern(mark), bare.strip()) for mark in _OTHER)
    return "_" not in text
