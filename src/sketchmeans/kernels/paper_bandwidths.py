"""The bandwidths of the papers, as the ``gamma`` of ``exp(−gamma ‖x − z‖²)``."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from sketchmeans.data.input import check_table
from sketchmeans.data.rows import as_rows
from sketchmeans.data.sources.base import toarray
from sketchmeans.kernels.bandwidth import resolve_gamma
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    as_generator,
    check_integer,
    check_number,
    check_option,
)

#: The rule of `resolve_gamma` that each one is a multiple of.
_PAPER_RULES = {"cr18": "mean", "l21": "mean", "l21-features": "mean", "og17": "median"}


def paper_gamma(X: Any, rule: str, *, random_state: Any = None) -> float:
    """Return the bandwidth of the rbf kernel in the experiments of a paper.

    - "cr18": ``1/(2σ²)``, σ² the mean squared distance over all pairs of rows, which is
      ``gamma="mean"`` (§5; the paper prints 1/n² outside of the root).
    - "l21": ``1/σ²`` (§5.2, without its d, and with the 1/n² that it lacks).
    - "l21-features": ``d/σ²`` (§5.2 with its d).
    - "og17": ``1/(2·median)`` of the squared distances, which is ``gamma="median"``
      (§5, where γ is twice this gamma).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    rule : str
        One of the list above.
    random_state : int, Generator, RandomState or None, default=None
        For the 1,000 rows whose pairs give the median.

    References
    ----------
    docs/errata.md has what is printed, and why it cannot be meant.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])  # σ² = 25/2, over all four pairs
    >>> [paper_gamma(X, rule) for rule in ("cr18", "l21", "l21-features", "og17")]
    [0.04, 0.08, 0.16, 0.02]
    """
    base = _PAPER_RULES[check_option("rule", rule, tuple(_PAPER_RULES))]
    table = check_table(X)
    with Workers(None) as workers:
        rows = as_rows(table, workers)
        rng = as_generator(random_state)
        gamma = resolve_gamma(base, "sqeuclidean", rows, rng)
        factors = {"l21": 2.0, "l21-features": 2.0 * rows.n_features}
    return gamma * factors.get(rule, 1.0)


def percentile_gammas(
    X: Any,
    n_gammas: int = 10,
    *,
    percentiles: tuple[float, float] = (1.0, 99.0),
    least_right_end: float = 1.0,
    n_rows: int = 5_000,
    random_state: Any = None,
) -> Array:
    """Return a grid of bandwidths between percentiles of the distances (OG17 §5).

    Evenly spaced in logarithms from ``1/(2q₉₉)`` to ``max(1, 1/q₁)/2``, q being the
    percentiles of the squared distances between rows: from a kernel matrix of few
    directions to nearly the identity.  Costs n_rows²·d.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    n_gammas : int, default=10
    percentiles : pair of float, default=(1, 99)
        Of the squared distances, between 0 and 100, the smaller first.
    least_right_end : float, default=1
        The right end of OG17's γ = 2·gamma is at least this; for features of variance
        one, as there.  0 leaves it to the percentile.
    n_rows : int, default=5000
        Maximum number of rows whose pairs are measured, drawn at random.
    random_state : int, Generator, RandomState or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> percentile_gammas(X, 3, random_state=0).round(3)
    array([0.021, 0.206, 1.978])
    """
    count, size = (
        check_integer("n_gammas", n_gammas),
        check_integer("n_rows", n_rows, 2),
    )
    least = check_number("least_right_end", least_right_end)
    low, high = (check_number("percentiles", value) for value in percentiles)
    if not low < high <= 100.0:
        raise ValueError(
            f"percentiles={percentiles!r} should be two numbers from 0 to 100, the "
            "smaller first."
        )
    table = check_table(X)
    with Workers(None) as workers:
        rows = as_rows(table, workers)
        rng, n = as_generator(random_state), len(rows)
        chosen = np.arange(n) if n <= size else rng.choice(n, size, replace=False)
        few = toarray(rows.take(np.sort(chosen))).astype(np.float64)
    near, far = np.percentile(pdist(few, "sqeuclidean"), [low, high])
    if far <= 0.0:
        raise ValueError(
            f"percentiles={percentiles!r}: the distance at {high:g}% is 0, so there is "
            "no bandwidth; most rows are equal."
        )
    ends = [1.0 / far, 1.0 / near if near > 0.0 else 0.0, least]
    return 0.5 * np.geomspace(ends[0], max(ends), count)
