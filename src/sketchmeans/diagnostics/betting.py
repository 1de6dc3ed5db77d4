"""A lower confidence bound on the mean of a finite set, sampled in random order."""

from __future__ import annotations

from math import log

import numpy as np

from sketchmeans.numerics.linalg import Array

#: Shares of the capital that are bet, and how much capital starts with each.  Values
#: that are nearly equal, as those of balanced subsets, are best met with all of it.
_SHARES = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
_START = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.5])
#: Halvings of the interval that holds the bound.
_HALVINGS = 50


def bound_mean(values: Array, n_total: int, confidence: float) -> float:
    """Return a lower bound on the mean of `n_total` numbers ``X_i ≥ 0``.

    `values` are those drawn so far, in random order and without replacement, or lower
    bounds on them that are not negative.  The bound holds with the given probability
    for *every* moment at which sampling may be stopped, whatever made it stop.

    Suppose that the mean is m or less.  Given the first t − 1 draws, the next has a
    mean of at most ``m_t = (n m − x_1 − ... − x_{t−1})/(n − t + 1)``.  A gambler who
    bets the share c of a capital on it, which then is multiplied by
    ``1 − c + c x_t/m_t ≥ 0``, does not gain in expectation, nor do several who begin
    with 1 together.  By Ville's inequality they ever own ``1/(1 − confidence)`` with a
    probability of at most ``1 − confidence``.  Every m at which they do is refuted;
    their capital falls with m, so bisection finds the largest (Waudby-Smith and Ramdas,
    2024, bet in this way).  Where all numbers are nearly the same, the loss is about
    ``1 − (1 − confidence)^(1/t)`` of the mean, whatever the range of the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> round(bound_mean(np.full(20, 5.0), 1000, 0.95), 2)
    4.22
    >>> bound_mean(np.array([1.0, 2.0, 3.0]), 3, 0.95)
    2.0
    """
    x = np.asarray(values, np.float64)
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    left = n_total - np.arange(len(x))
    certain = float(x.sum()) / n_total
    if len(x) == n_total or not x.any():
        return certain
    needed = -log(1.0 - confidence)

    def is_refuted(m: float) -> bool:
        means = (n_total * m - before) / left
        if (means <= 0.0).any():
            return True
        growth = 1.0 - _SHARES[:, None] + _SHARES[:, None] * (x / means)
        with np.errstate(divide="ignore"):
            capital = np.cumsum(np.log(growth), axis=1) + np.log(_START)[:, None]
        return bool(np.logaddexp.reduce(capital, axis=0).max() >= needed)

    low, high = certain, float(x.mean())
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low
