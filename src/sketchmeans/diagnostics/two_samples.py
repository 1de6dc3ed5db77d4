"""Tests of two samples that hold their level: exact or conservative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, kolmogorov, ndtr

from sketchmeans.numerics.linalg import Array

#: Numbers of rows that a count can have before it is as good as normal.
_EXACT = 4_096


def compare_counts(old: int, n_old: int, new: int, n_new: int) -> float:
    """Return the p-value of the same share in two samples: Fisher's test.

    Twice the smaller tail of the hypergeometric distribution; where that is wide, of
    the normal one with a correction for continuity.

    Examples
    --------
    >>> round(compare_counts(10, 100, 12, 100), 2)
    0.82
    """
    total, n = old + new, n_old + n_new
    low, high = max(0, total - n_old), min(total, n_new)
    if low == high:
        return 1.0
    if high - low <= _EXACT:
        x = np.arange(low, high + 1)
        logs = _log_choose(n_new, x) + _log_choose(n_old, total - x)
        weights = np.exp(logs - logs.max())
        place = new - low
        tail = min(weights[: place + 1].sum(), weights[place:].sum()) / weights.sum()
        return min(1.0, 2.0 * float(tail))
    share = total / n
    expected = n_new * share
    variance = n_new * share * (1.0 - share) * n_old / (n - 1)
    z = max(abs(new - expected) - 0.5, 0.0) / np.sqrt(variance)
    return min(1.0, 2.0 * float(ndtr(-z)))


def _log_choose(n: int, k: Array) -> Array:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def compare_bins(old: Array, new: Array) -> tuple[float, float]:
    """Return the largest difference of two distributions, and its p-value.

    The test of Kolmogorov and Smirnov at the edges of bins: conservative, as it is for
    ties.

    Examples
    --------
    >>> compare_bins(np.array([50, 50]), np.array([10, 90]))[0]
    0.4
    """
    n_old, n_new = int(old.sum()), int(new.sum())
    if not n_old or not n_new:
        return 0.0, 1.0
    gaps = np.cumsum(old) / n_old - np.cumsum(new) / n_new
    distance = float(np.abs(gaps).max())
    return distance, float(
        kolmogorov(distance * np.sqrt(n_old * n_new / (n_old + n_new)))
    )


def adjust_holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm, 1979).

    With those up to a level as alarms, the chance of any false alarm is at most that.

    Examples
    --------
    >>> adjust_holm([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    factors = len(p) - np.arange(len(p))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return [float(value) for value in adjusted]
