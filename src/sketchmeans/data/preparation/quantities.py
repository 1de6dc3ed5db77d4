"""Quantities in words: 1.234,50 €, 82 kg, 12k, 1.5M, 08:30."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sketchmeans.numerics.linalg import Array

if TYPE_CHECKING:
    import pyarrow as pa

#: What stands for a decimal mark where values are times, and for the unit where letters
#: are factors.
CLOCK, FACTORS = ":", "k/M"
_FACTOR = {"k": 1e3, "tsd": 1e3, "m": 1e6, "mio": 1e6, "mn": 1e6, "mln": 1e6}
_FACTOR |= {"mrd": 1e9, "bn": 1e9, "b": 1e9}
#: A quantity with a factor, and perhaps money behind it.
_WITH_FACTOR = re.compile(
    rf"(.*\d)[ \u00a0]?(?:({'|'.join(_FACTOR)})\.?)?(\s*(?:[$€£]|EUR|USD|GBP|CHF))?",
    re.IGNORECASE,
)
#: Letters that are units, too: a factor only where others are beside them.
_LETTERS = ("m", "b")
#: Hours, which may exceed a day, minutes and seconds.
_TIME = re.compile(
    r"(\d{1,3}):([0-5]\d)(?::([0-5]\d(?:[.,]\d+)?))?(?:\s*(?:Uhr|h|([ap])\.?m\.?))?",
    re.IGNORECASE,
)
#: Units behind a number; signs of money and percent are read as such.
_UNIT = re.compile(r"(?<=\d)\s?([^\W\d_][^\d\s]{0,9}|°[A-Za-z]?)$")
#: Two numbers that belong together.
_PAIR = re.compile(r"\d+(?:[.,]\d+)?\s?[/x×|;]\s?\d+(?:[.,]\d+)?")


def find_writing(levels: Sequence[str]) -> tuple[str, str] | None:
    """Return decimal mark and common unit of quantities, such as 1.234,50 € or 82 kg.

    The mark is `CLOCK` of times such as 08:30, the unit `FACTORS` of 12k and 1.5M.

    Examples
    --------
    >>> find_writing(["82,5 kg", "7 kg"]), find_writing(["900", "12k", "1.5M"])
    ((',', 'kg'), ('.', 'k/M'))
    >>> find_writing(["82 kg", "5 m"]) is None
    True
    """
    import pyarrow as pa

    from sketchmeans.data.sources.numbers import count_marks

    if levels and all(_TIME.fullmatch(level) for level in levels):
        return CLOCK, ""
    unit = _find_unit(levels)
    if unit is None:
        return None
    counts = count_marks(pa.array([_split(w, unit)[0] for w in levels], "string"))
    decimal = "," if counts[","] > counts["."] else "."
    wrong = parse_quantities(pa.array(levels, "string"), decimal, unit)[1]
    return None if wrong.any() else (decimal, unit)


def parse_quantities(
    levels: pa.Array, decimal: str, unit: str
) -> tuple[pa.Array, Array]:
    """Return quantities with or without their unit as numbers, and which are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from sketchmeans.data.sources.numbers import parse_numbers

    words = levels.to_pylist()
    if decimal == CLOCK:
        hours = [None if word is None else _parse_time(word) for word in words]
        wrong = [h is None and w is not None for h, w in zip(hours, words, strict=True)]
        return pa.array(hours, "float64"), np.array(wrong, bool)
    parts = [(None, 1.0) if word is None else _split(word, unit) for word in words]
    bare, factors = [part[0] for part in parts], [part[1] for part in parts]
    values, wrong = parse_numbers(pa.array(bare, "string"), decimal)
    scaled = pc.multiply(values, pa.array(factors, "float64"))
    return scaled, np.asarray(wrong.to_numpy(zero_copy_only=False), bool)


def are_pairs(levels: Sequence[str]) -> bool:
    """Say whether most values are two numbers each, such as 120/80.

    Examples
    --------
    >>> are_pairs(["120/80", "135/85"]), are_pairs(["A/1", "B/2"])
    (True, False)
    """
    tried = levels[:500]
    return sum(_PAIR.fullmatch(level) is not None for level in tried) > 0.9 * len(tried)


def _find_unit(levels: Sequence[str]) -> str | None:
    """Return the unit that all quantities have, if there is one; "" is none."""
    found = [_WITH_FACTOR.fullmatch(level) for level in levels]
    factors = {one[2].lower() for one in found if one is not None and one[2]}
    is_kelvin = factors == {"k"} and all(level.endswith(" K") for level in levels)
    if None not in found and factors.difference(_LETTERS) and not is_kelvin:
        return FACTORS
    has_plain = any(one is not None and not one[2] for one in found)
    if None not in found and factors == {"m"} and has_plain:
        is_million = all(one is None or one[2] in (None, "M") for one in found)
        return FACTORS if is_million else None
    units = {_split_unit(level)[1] for level in levels}
    return units.pop() if len(units) == 1 else None


def _split(word: str, unit: str) -> tuple[str, float]:
    """Return a quantity without its unit, if it has this one, and its factor."""
    if unit == FACTORS:
        found = _WITH_FACTOR.fullmatch(word)
        if found is None or found[2] is None:
            return word, 1.0
        return found[1], _FACTOR[found[2].lower()]
    quantity, own = _split_unit(word)
    return (quantity if own == unit else word), 1.0


def _split_unit(word: str) -> tuple[str, str]:
    """Return a quantity and its unit, without the s of a plural."""
    found = _UNIT.search(word)
    if found is None:
        return word, ""
    unit = found[1].casefold()
    return word[: found.start(1)], unit.removesuffix("s") if len(unit) > 2 else unit


def _parse_time(word: str) -> float | None:
    """Return a time in hours."""
    found = _TIME.fullmatch(word.strip())
    if found is None:
        return None
    hours = int(found[1])
    if found[4]:  # 12 a.m. is midnight
        hours = hours % 12 + (12 if found[4] in "pP" else 0)
    seconds = float((found[3] or "0").replace(",", "."))
    return hours + int(found[2]) / 60.0 + seconds / 3600.0
