"""Codes that stand for a missing value: 999, −1, 1900-01-01."""

from __future__ import annotations

import numpy as np

from sketchmeans.numerics.linalg import Array

#: Numbers that are used as codes, far from all others, beside those of nines alone;
#: numbers of this size, and the code that is next to zero, below what is not negative.
_FAR_CODES = (
    *(77.0, 88.0, 97.0, 98.0, 777.0, 888.0, 997.0, 998.0, 7777.0, 8888.0, 9997.0),
    *(9998.0, 32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0),
)
_HUGE, _MINUS_ONE = 1e18, -1.0
#: Codes beside a scale from 0 or 1 to at most this.
_DIGIT_CODES, _MOST_STEPS = (7.0, 8.0, 9.0), 6.0
#: What years are between; 0 among them is none.
_YEARS = (1800.0, 2100.0)
#: How often codes occur at least, how many there are at an edge at most, and from how
#: many ranges away one may be a quantity in other columns.
_REPEATED, _MOST_CODES, _FAR = 3, 4, 2.0
#: Values of a column that may have −1 as a code.
_MIN_DIFFERENT = 10
#: Dates that are used as codes; those of the last line whatever else there is.
_DATE_CODES = ("1899-12-30", "1900-01-01", "1901-01-01", "1970-01-01", "2099-12-31")
_CERTAIN_DATES = ("0001-01-01", "1753-01-01", "9999-12-31", "9999-01-01")


def find_number_codes(values: Array) -> tuple[float, ...]:
    """Return the codes of missing values among numbers, the lowest first.

    Codes lie at the edge, occur several times, and are farther from the next value than
    half the range of all others; 7, 8 and 9 are codes beside answers from 1 to 5.  −1
    lies below numbers that are not negative, and is far from them or occurs more than
    twice as often as the next; 0 is below years.

    Examples
    --------
    >>> import numpy as np
    >>> find_number_codes(np.array([31.0, 45, 28, 60, 999, 999, 999]))
    (999.0,)
    >>> find_number_codes(np.repeat([1.0, 2, 3, 4, 5, 98, 99], 3))
    (98.0, 99.0)
    >>> find_number_codes(np.array([1.0, 0, -1, -1, -1]))
    ()
    """
    different, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    codes: list[float] = []
    for edge in (0, -1):
        n_codes = 1
        while n_codes:
            n_codes = _count_codes(different, counts, edge)
            at = slice(n_codes) if edge == 0 else slice(len(different) - n_codes, None)
            codes += different[at].tolist()
            different, counts = np.delete(different, at), np.delete(counts, at)
    return tuple(sorted(codes))


def _count_codes(different: Array, counts: Array, edge: int) -> int:
    """Return how many values at an edge are codes."""
    if len(different) < 3:
        return 0
    if counts[edge] >= _REPEATED and _is_near_code(different, counts, edge):
        return 1
    step = 1 if edge == 0 else -1
    inward, often = different[::step], counts[::step]
    for n_codes in range(min(len(inward) - 2, _MOST_CODES), 0, -1):
        if often[:n_codes].sum() < _REPEATED:
            return 0
        others = inward[n_codes:]
        gap, span = abs(others[0] - inward[n_codes - 1]), max(np.ptp(others), 1.0)
        if gap > 0.5 * span and all(
            _is_far_code(float(value), others, gap / span) for value in inward[:n_codes]
        ):
            return n_codes
    return 0


def _is_near_code(different: Array, counts: Array, edge: int) -> bool:
    """Say whether −1 or 0 at the edge is a code."""
    value, others = float(different[edge]), np.delete(different, edge)
    if value == _MINUS_ONE:
        is_amount = edge == 0 and others[0] >= 0.0 and len(others) >= _MIN_DIFFERENT
        far = len(others) > 1 and others[0] - value > 5.0 * np.median(np.diff(others))
        return bool(is_amount and (far or counts[edge] > 2 * counts[1]))
    is_whole = bool((others == np.round(others)).all())
    is_year = _YEARS[0] <= others.min() and others.max() <= _YEARS[1]
    return value == 0.0 and is_whole and bool(is_year)


def _is_far_code(value: float, others: Array, distance: float) -> bool:
    """Say whether a number is used as a code, at this distance in ranges of others."""
    size = abs(value)
    if size in _FAR_CODES or (size >= _HUGE and distance > 1e3):
        return True
    digits = f"{size:.6g}"
    if len(digits) == 1:
        low, high = min(abs(others)), max(abs(others))
        is_scale = low <= 1.0 and high <= _MOST_STEPS and np.ptp(others) == high - low
        is_scale = is_scale and len(others) == high - low + 1.0
        return value == -9.0 or (size in _DIGIT_CODES and bool(is_scale))
    # 99.99 may be a price.
    return set(digits) <= {"9", "."} and (
        "." not in digits or value < 0.0 or distance > _FAR
    )


def find_date_codes(days: Array) -> tuple[float, ...]:
    """Return the days since 1970 that are codes of missing dates, the first first."""
    whole = np.floor(days[np.isfinite(days)])
    different, counts = np.unique(whole, return_counts=True)
    codes = []
    for date in (*_DATE_CODES, *_CERTAIN_DATES):
        day = float(np.datetime64(date, "D").astype(int))
        place = int(np.searchsorted(different, day))
        if place == len(different) or different[place] != day or len(different) < 2:
            continue
        is_edge = place in (0, len(different) - 1)
        is_repeated = counts[place] >= max(_REPEATED, 2 * int(np.median(counts)))
        if date in _CERTAIN_DATES or (is_edge and is_repeated):
            codes.append(day)
    return tuple(sorted(codes))
