"""Columns of dates: their age, and the cycles that matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sketchmeans.data.preparation.column_plan import ColumnPlan, Rules, leave_out
from sketchmeans.data.preparation.encoders import DateEncoder, cycle_position
from sketchmeans.data.preparation.sentinels import find_date_codes
from sketchmeans.data.preparation.values import (
    DATE_FORMATS,
    find_date_format,
    is_date,
    to_days,
    to_words,
)
from sketchmeans.numerics.linalg import Array

if TYPE_CHECKING:
    import pyarrow as pa

#: Times of equal steps span so many steps for each row at most.
_RUNNING = 1.05


def find_kind_of_dates(name: str, column: pa.ChunkedArray, rules: Rules) -> ColumnPlan:
    """Return the plan for a column of dates, left out if they number the rows."""
    plan = plan_dates(name, column, rules)
    if isinstance(plan.encoder, DateEncoder):
        days = to_days(column, plan.encoder.written)
        assert days is not None
        steps = np.diff(np.sort(days))
        # As equal as those of a clock; in a sample, the least is one of all rows.
        most = _RUNNING * steps.min(initial=np.inf) * rules.n_rows
        if len(days) >= 20 and 0.0 < np.ptp(days) <= most:
            return leave_out(name, "identifier", "running times")
    return plan


def plan_dates(name: str, column: pa.ChunkedArray, rules: Rules) -> ColumnPlan:
    """Return the plan for a column of dates: their age, and cycles if they matter."""
    written, certain, n_others = None, True, 0
    if not is_date(column.type):
        words = to_words(column)
        found = find_date_format(words)
        if found is None:
            return ColumnPlan(
                name, "text", f"dates should be written as {' or '.join(DATE_FORMATS)}"
            )
        written, certain = found
    days = to_days(column, written)
    assert days is not None
    if written is not None:
        n_others = int(np.count_nonzero(np.isnan(days) & (words.codes >= 0)))
    codes = find_date_codes(days)
    present = days[~(np.isnan(days) | np.isin(np.floor(days), codes))]
    if not len(present):
        return leave_out(name, "empty", "no value at all")
    if len(days) > 1 and len(present) == len(days) and np.ptp(present) == 0.0:
        return leave_out(name, "constant", "every date is the same")
    cycles = tuple(c for c in ("hour", "weekday", "month") if _matters(present, c))
    notes = [f"dates{'' if written is None else f', {written}'}: age in days"]
    notes[0] += "".join(f", {cycle}" for cycle in cycles)
    if not certain:
        notes.append("no day is above 12, so day and month may be swapped")
    if n_others:
        notes.append(f"{n_others:,} of other forms count as missing")
    if codes:
        listed = ", ".join(str(np.datetime64(int(code), "D")) for code in codes)
        notes.append(f"{listed} stands for a missing value")
    reference = float(np.floor(present.max()))
    encoder = DateEncoder(reference, cycles, written, codes)
    return ColumnPlan(name, "date", "; ".join(notes), encoder)


def are_compact_dates(column: pa.ChunkedArray, values: Array) -> bool:
    """Say whether numbers are dates such as 20240531."""
    with np.errstate(invalid="ignore"):
        is_day = (values > 19_000_000.0) & (values < 21_000_000.0)
    if is_day.sum() <= 0.9 * np.count_nonzero(~np.isnan(values)):
        return False
    return find_date_format(to_words(column)) is not None


def _matters(days: Array, cycle: str) -> bool:
    """Say whether some places of a cycle have clearly more dates than others.

    Dates that fall evenly on weekdays or months, as birthdays do, would add noise.
    """
    n_places = {"hour": 24, "weekday": 7, "month": 12}[cycle]
    needed = {"hour": 1.0, "weekday": 21.0, "month": 730.0}[cycle]
    if np.ptp(days) < needed or len(days) < 20 * n_places:
        return False
    if cycle == "hour" and not (days % 1.0).any():
        return False
    places = (
        np.floor(cycle_position(days, cycle) * n_places + 0.5).astype(int) % n_places
    )
    counts = np.bincount(places, minlength=n_places)
    expected = len(days) / n_places
    excess = np.sum((counts - expected) ** 2) / expected - (n_places - 1)
    effect = np.sqrt(max(excess, 0.0) / (len(days) * (n_places - 1)))
    return bool(effect > 0.1)
