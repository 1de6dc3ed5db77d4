"""Columns so far from zero that floats do not tell their values apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import Rows, block_height
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import warn_user

#: Integers up to this size are floats, and larger ones only some.
_EXACT = 2.0**53
#: Values that differ by less than this many steps of a float have lost digits.
_STEPS = 1024
#: Rows that tell whether a column is that far from zero.
_PROBED_ROWS = 3


def describe_lost_digits(low: float, high: float) -> str | None:
    """Return what is wrong with values between these, if floats blur them.

    Examples
    --------
    >>> describe_lost_digits(1e6, 1e6 + 1) is None
    True
    >>> describe_lost_digits(2.0**60, 2.0**60)
    'numbers near 1.15292e+18 that floats keep in steps of 256 differ by 0: subtract \
1152921504606846976 from them, as integers'
    """
    largest = max(abs(float(low)), abs(float(high)))
    if not _EXACT <= largest < np.inf:
        return None
    step, difference = float(np.spacing(largest)), int(high) - int(low)
    if difference >= _STEPS * step:
        return None
    return (
        f"numbers near {largest:g} that floats keep in steps of {step:g} differ by "
        f"{difference:g}: subtract {int(low)} from them, as integers"
    )


def warn_of_lost_digits(rows: Rows, names: Array | None) -> None:
    """Warn of columns whose values differ by a few steps of a float, or less.

    One row tells that no column is far enough from zero, as a rule.
    """
    if rows.is_sparse or rows.dtype != np.float64:
        return
    if find_adapter(rows) is not None:  # where moments are needed in any case
        probe = rows.moments().mean[None]
    else:
        try:
            probe = np.asarray(rows.take(np.arange(min(_PROBED_ROWS, len(rows)))))
        except ValueError:  # NaN, for whoever uses these rows to refuse
            return
    far = np.flatnonzero(np.any(np.abs(probe.astype(np.float64)) >= _EXACT, axis=0))
    if not len(far):
        return

    def ends(block: Any) -> tuple[Array, Array]:
        return block[:, far].min(axis=0), block[:, far].max(axis=0)

    lows, highs = zip(*rows.map(ends, block_height(rows.n_features, 0)), strict=True)
    for i, column in enumerate(far.tolist()):
        low, high = min(part[i] for part in lows), max(part[i] for part in highs)
        if wrong := describe_lost_digits(low, high):
            name = column if names is None else names[column]
            warn_user(f"Column {name!r} has lost digits: {wrong}.")
