"""Rules for the bandwidth: a number ``gamma`` from the data."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.spatial.distance import cdist

from sketchmeans.linalg import Array
from sketchmeans.rows import Rows

Gamma = float | str

#: Rows whose pairs give the median distance (half a million pairs).
_PAIR_ROWS = 1_000
#: Rows that are sorted, feature by feature, for the mean L1 distance.
_SORTED_ROWS = 100_000


def resolve_gamma(
    gamma: Gamma,
    distance: str | None,
    rows: Rows,
    rng: np.random.Generator,
) -> float:
    """Return `gamma` as a number.

    Parameters
    ----------
    gamma : float, "mean", "median" or "scale"
        - ``"mean"``: one over twice the mean squared distance for "sqeuclidean",
          one over the mean L1 distance for "cityblock", else 1/n_features.  The mean
          is over all ordered pairs, a row with itself included; it costs O(nd).
        - ``"median"``: the same with the median over pairs of different rows, on all
          pairs of at most 1,000 random rows.
        - ``"scale"``: 1/(n_features · variance of all entries), as in scikit-learn.
    distance : {"sqeuclidean", "cityblock"} or None
        What the kernel depends on.
    """
    if isinstance(gamma, Real) and not isinstance(gamma, bool):
        if not 0.0 < float(gamma) < np.inf:
            raise ValueError(f"gamma={gamma!r} should be a positive finite number.")
        return float(gamma)
    if not isinstance(gamma, str):
        pass
    elif gamma == "scale":
        return _inverse(rows.n_features * _entry_variance(rows))
    elif gamma == "mean":
        if distance == "sqeuclidean":
            # The mean over all pairs is twice the variance: no pairs are formed.
            return _inverse(2.0 * 2.0 * rows.survey().variance)
        if distance == "cityblock":
            return _inverse(_mean_l1_distance(rows, rng))
        return 1.0 / rows.n_features
    elif gamma == "median":
        if distance is None:
            raise ValueError(
                "gamma='median' is defined for the rbf and laplacian kernels; give a "
                "number, 'mean' or 'scale'."
            )
        factor = 2.0 if distance == "sqeuclidean" else 1.0
        median = _median_distance(rows, distance, rng)
        if median == 0.0:  # more than half of the pairs are equal rows
            return resolve_gamma("mean", distance, rows, rng)
        return _inverse(factor * median)
    raise ValueError(
        f"gamma={gamma!r} should be a positive number, 'mean', 'median' or 'scale'."
    )


def _inverse(spread: float) -> float:
    # Rows that are all equal have no scale: any bandwidth tells them apart equally.
    return 1.0 / spread if spread > 0.0 else 1.0


def _entry_variance(rows: Rows) -> float:
    """Return the variance of all entries of the table."""
    moments = rows.survey()
    centre = moments.mean - moments.mean.mean()
    return (moments.variance + float(centre @ centre)) / rows.n_features


def _sample(rows: Rows, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return at most `size` dense rows and their weights, in float64."""
    if len(rows) <= size:
        indices = np.arange(len(rows))
        weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    else:
        share = None if rows.weights is None else rows.weights / rows.weights.sum()
        indices = rng.choice(len(rows), size, replace=share is not None, p=share)
        weights = np.ones(size)
    sample = rows.take(indices)
    dense = sample.toarray() if rows.is_sparse else sample
    return np.asarray(dense, dtype=np.float64), weights


def _mean_l1_distance(rows: Rows, rng: np.random.Generator) -> float:
    """Return the mean L1 distance over all pairs, from the sorted features.

    In a sorted feature the i-th value is added once for each value below it and
    taken away once for each above.
    """
    wanted = max(_PAIR_ROWS, min(_SORTED_ROWS, 10**8 // max(rows.n_features, 1)))
    X, weights = _sample(rows, wanted, rng)
    total = 0.0
    for feature in X.T:
        order = np.argsort(feature, kind="stable")
        mass = weights[order]
        below = np.cumsum(mass) - mass
        above = mass.sum() - below - mass
        total += float((mass * (below - above)) @ feature[order])
    return 2.0 * total / float(weights.sum()) ** 2


def _median_distance(rows: Rows, distance: str, rng: np.random.Generator) -> float:
    """Return the median over the pairs of different rows."""
    X, weights = _sample(rows, _PAIR_ROWS, rng)
    values = cdist(X, X, distance).ravel()
    pairs = np.outer(weights, weights)
    # A row of weight w is w rows, with w(w - 1) pairs among themselves.
    np.fill_diagonal(pairs, np.maximum(weights * (weights - 1.0), 0.0))
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(pairs.ravel()[order])
    return float(values[order][np.searchsorted(mass, 0.5 * mass[-1])])
