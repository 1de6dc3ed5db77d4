"""Columns of numbers: quantities, identifiers, codes, flags and skewed amounts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sketchmeans.data.lost_digits import describe_lost_digits
from sketchmeans.data.preparation.column_plan import ColumnPlan, Rules, leave_out
from sketchmeans.data.preparation.encoders import BooleanEncoder, NumberEncoder
from sketchmeans.data.preparation.quantities import CLOCK, find_writing
from sketchmeans.data.preparation.sentinels import find_number_codes
from sketchmeans.data.preparation.values import to_floats, to_words
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import warn_user

if TYPE_CHECKING:
    import pyarrow as pa

#: A column of this skewness is put on a logarithmic scale if that halves it.
MIN_SKEWNESS = 1.0
#: Names of columns that number things, and of codes that look like quantities.
_ID_NAME = re.compile(
    r"(^|[\W_])(id|ids|uuid|guid|key|nr|no|num|number|index|idx|row|rowid|nummer|"
    r"kundennummer|numero|account|konto|iban|ssn|sku|ean|isbn|serial)($|[\W_\d])",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r"[a-z](Id|ID|Nr|No)$")
_CODE_NAME = re.compile(
    r"^(cap|cp)$|(^|[\W_])(zip|zip_?code|plz|postal|postal_?code|postcode|"
    r"postleitzahl|area[ _]?code|vorwahl|phone|phone_?number|tel|telefon|"
    r"telefono|t[eé]l[eé]phone|mobile|fax|barcode)($|[\W_])",
    re.IGNORECASE,
)


def find_kind_of_numbers(name: str, values: Array, rules: Rules) -> ColumnPlan:
    """Return the kind of a column of numbers."""
    present = values[~np.isnan(values)]
    if not len(present):
        return leave_out(name, "empty", "no value at all")
    if wrong := describe_lost_digits(present.min(), present.max()):
        warn_user(f"Column {name!r} is left out: {wrong}.")
        return leave_out(name, "other", wrong)
    if len(values) > 1 and len(present) == len(values) and np.ptp(present) == 0.0:
        return leave_out(name, "constant", f"every value is {present[0]:g}")
    is_flag = (present == 0.0) | (present == 1.0)
    if is_flag.all():
        encoder = BooleanEncoder(("0", "1"))
        return ColumnPlan(name, "boolean", "values are 0 and 1", encoder)
    if np.isfinite(present).all() and (present == np.round(present)).all():
        if reason := _number_reason(name, present, rules):
            return leave_out(name, "identifier", reason)
        if _CODE_NAME.search(name):
            return leave_out(name, "code", "a code rather than a quantity")
    return _plan_values(name, values, rules)


def _number_reason(name: str, present: Array, rules: Rules) -> str | None:
    """Return why whole numbers are identifiers; None if they are quantities."""
    n = len(present)
    different = np.unique(present)
    is_named = bool(_ID_NAME.search(name) or _CAMEL_ID.search(name))
    if n < 3 or len(different) < (0.95 if is_named else 1.0) * n:
        return None
    if is_named:
        return "different numbers under a name of identifiers"
    span = different[-1] - different[0] + 1.0
    if n >= 20 and span <= 1.05 * rules.n_rows + 1.0:
        return "running numbers"
    # Numbers that are drawn evenly from a range and never meet count nothing.
    expected = (different - different[0]) / (span - 1.0)
    distance = np.abs(expected - np.linspace(0.0, 1.0, n)).max()
    if n >= 200 and different[0] > 1e4 and distance * np.sqrt(n) < 1.63:
        return "different numbers, evenly spread"
    return None


def plan_numbers(name: str, column: pa.ChunkedArray, rules: Rules) -> ColumnPlan:
    """Return the plan for a column that is to be used as numbers."""
    import pyarrow as pa

    values = to_floats(column)
    if values is not None:
        if pa.types.is_time(column.type):
            return plan_times(name, values, rules)
        return _plan_values(name, values, rules)
    writing = find_writing(to_words(column).levels)
    values = None if writing is None else to_floats(column, (), *writing)
    if writing is None or values is None:
        return ColumnPlan(name, "text", "it holds other values than numbers")
    if writing[0] == CLOCK:
        return plan_times(name, values, rules)
    plan = _plan_values(name, values, rules)
    if not isinstance(plan.encoder, NumberEncoder):
        return plan
    decimal, suffix = writing
    encoder = replace(plan.encoder, decimal=decimal, suffix=suffix)
    return ColumnPlan(name, plan.kind, plan.reason, encoder)


def plan_times(
    name: str, hours: Array, rules: Rules, missing_words: tuple[str, ...] = ()
) -> ColumnPlan:
    """Return the plan for a column of times such as 08:30, in hours.

    Times of a day are counted from its quietest hour on if many lie around midnight.
    """
    day_start = _find_day_start(hours)
    encoder = NumberEncoder(
        day_start=day_start, missing_words=missing_words, decimal=CLOCK
    )
    values = hours.copy()
    encoder.encode_numbers(values)
    plan = find_kind_of_numbers(name, values, rules)
    reason = f"times in hours, 08:30 is 8.5; {plan.reason}"
    if day_start:
        reason += f"; a day begins at {day_start:g}:00, 01:00 is 25"
    if not isinstance(plan.encoder, NumberEncoder):
        return replace(plan, reason=reason)
    known = replace(encoder, unit=plan.encoder.unit, shift=plan.encoder.shift)
    known = replace(known, sentinels=plan.encoder.sentinels)
    return replace(plan, reason=reason, encoder=known)


def _find_day_start(hours: Array) -> float:
    """Return the quietest hour of a day, 0 if midnight is about as quiet."""
    present = hours[~np.isnan(hours)]
    if not len(present) or present.max() >= 24.0:
        return 0.0
    counts = np.bincount(present.astype(int), minlength=24)
    near = counts + np.roll(counts, 1) + np.roll(counts, -1)
    # The hours before and after midnight.
    return float(near.argmin()) if counts[0] + counts[23] > near.min() + 2 else 0.0


def _plan_values(name: str, values: Array, rules: Rules) -> ColumnPlan:
    codes = find_number_codes(values)
    clean = values[~(np.isnan(values) | np.isin(values, codes))]
    if len(clean) and (wrong := describe_lost_digits(clean.min(), clean.max())):
        return leave_out(name, "other", wrong)
    unit, shift = None, 0.0
    if rules.scale in ("auto", "log") and len(clean):
        unit, shift = find_log_scale(clean, always=rules.scale == "log") or (None, 0.0)
    words = "numbers" if unit is None else "skewed numbers, on a logarithmic scale"
    if codes:
        listed = ", ".join(f"{code:g}" for code in codes)
        count = int(np.isin(values, codes).sum())
        words += f"; {listed} ({count:,} times) stands for a missing value"
    return ColumnPlan(name, "numeric", words, NumberEncoder(unit, shift, codes))


def find_log_scale(
    values: Array, *, always: bool = False
) -> tuple[float, float] | None:
    """Return unit and shift of a logarithmic scale, if it halves the skewness.

    Amounts that are not negative are measured from zero, in units of a small amount;
    others from their median, in units of their spread.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> find_log_scale(rng.normal(size=500)) is None
    True
    >>> find_log_scale(np.exp(rng.normal(size=500))) is None
    False
    """
    if not np.isfinite(values).all():
        return None
    if values.min() >= 0.0:
        positive = values[values > 0.0]
        if not len(positive):
            return None
        has_zero = len(positive) < len(values)
        unit = float(np.quantile(positive, 0.1 if has_zero else 0.01))
        shift = 0.0
    else:
        low, shift, high = (float(v) for v in np.quantile(values, [0.25, 0.5, 0.75]))
        unit = high - low
    if not unit > 0.0:
        return None
    before, after = _skewness(values), _skewness(np.arcsinh((values - shift) / unit))
    pays = abs(before) > MIN_SKEWNESS and abs(after) < abs(before) / 2.0
    return (unit, shift) if always or pays else None


def _skewness(values: Array) -> float:
    largest = np.abs(values).max()
    # In units of the largest, whose cube cannot overflow.
    scaled = values / (largest if largest > 0.0 else 1.0)
    centred = scaled - scaled.mean()
    deviation = np.sqrt(np.mean(centred**2))
    return float(np.mean((centred / deviation) ** 3)) if deviation > 0.0 else 0.0
