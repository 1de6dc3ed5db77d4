"""Codes that stand for a missing value: 999, −1, 1900-01-01."""

from __future__ import annotations

import numpy as np

from sketchmeans.numerics.linalg import Array

#: Numbers that are used as codes, far from all others; and the one that is next to
#: zero, below numbers that cannot be negative.
_FAR_CODES = (99.0, 999.0, 9999.0, 99999.0, 999999.0, -9.0, -99.0, -999.0, -9999.0)
_MINUS_ONE = -1.0
#: What years are between; 0 among them is none.
_YEARS = (1800.0, 2100.0)
#: How often a code occurs at least.
_REPEATED = 3
#: Values of a column that may have −1 as a code.
_MIN_DIFFERENT = 10
#: Dates that are used as codes; those of the last line whatever else there is.
_DATE_CODES = ("1899-12-30", "1900-01-01", "1901-01-01", "1970-01-01", "2099-12-31")
_CERTAIN_DATES = ("0001-01-01", "1753-01-01", "9999-12-31", "9999-01-01")


def find_number_codes(values: Array) -> tuple[float, ...]:
    """Return the codes of missing values among numbers, the lowest first.

    A code lies at the edge, occurs several times, and is farther from the next value
    than half the range of all others; −1 lies below numbers that are not negative, and
    is far from them or occurs more than twice as often as the next; 0 is below years.

    Examples
    --------
    >>> import numpy as np
    >>> find_number_codes(np.array([31.0, 45, 28, 60, 999, 999, 999]))
    (999.0,)
    >>> find_number_codes(np.array([1.0, 0, -1, -1, -1]))
    ()
    """
    different, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    codes: list[float] = []
    for edge in (0, -1):
        while len(different) > 2 and _is_code(different, counts, edge):
            codes.append(float(different[edge]))
            different, counts = np.delete(different, edge), np.delete(counts, edge)
    return tuple(sorted(codes))


def _is_code(different: Array, counts: Array, edge: int) -> bool:
    value = float(different[edge])
    if counts[edge] < _REPEATED:
        return False
    others = np.delete(different, edge)
    if value == _MINUS_ONE:
        is_amount = edge == 0 and others[0] >= 0.0 and len(others) >= _MIN_DIFFERENT
        far = len(others) > 1 and others[0] - value > 5.0 * np.median(np.diff(others))
        return bool(is_amount and (far or counts[edge] > 2 * counts[1]))
    if value == 0.0:
        is_whole = bool((others == np.round(others)).all())
        return is_whole and _YEARS[0] <= others.min() and others.max() <= _YEARS[1]
    gap = np.abs(others - value).min()
    return value in _FAR_CODES and bool(gap > 0.5 * max(np.ptp(others), 1.0))


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
