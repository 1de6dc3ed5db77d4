"""Rules for the bandwidth: a number ``gamma`` from the data."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.spatial.distance import cdist

from sketchmeans.data.rows import Rows
from sketchmeans.numerics.linalg import Array

Gamma = float | str

#: Rows whose pairs give the median distance (half a million pairs).
_PAIR_ROWS = 1_000
#: Rows whose pairs say roughly how far apart rows are, and fewer that are read first.
_FEW_ROWS, _FIRST_ROWS = 200, 31
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
            return _inverse(2.0 * 2.0 * _variance(rows))
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
    if spread <= 0.0:
        return 1.0
    with np.errstate(over="ignore", divide="ignore"):
        gamma = float(1.0 / np.float64(spread))
    if not 0.0 < gamma < np.inf:
        raise ValueError(
            f"gamma={gamma:g}, for distances of about {spread:g}, is beyond what "
            "floats can hold. Scale the features (for example with StandardScaler)."
        )
    return gamma


def _variance(rows: Rows) -> float:
    """Return the mean squared distance of the rows from their mean."""
    variance = rows.moments().variance
    tiny = np.finfo(np.float64).tiny
    if variance < tiny and not _are_equal(rows):
        raise ValueError(
            f"The rows differ by too little: their squared distances, of {variance:g}, "
            "are beyond what floats can hold. Scale the features (for example with "
            "StandardScaler)."
        )
    return variance


def _are_equal(rows: Rows) -> bool:
    """Say whether all rows that count are the same, as far as a few can tell."""
    few = np.arange(min(_PAIR_ROWS, len(rows)))
    if rows.weights is not None:
        few = np.flatnonzero(rows.weights)[:_PAIR_ROWS]
    block = rows.take(few)
    dense = block.toarray() if rows.is_sparse else block
    return bool((dense == dense[0]).all())


def _entry_variance(rows: Rows) -> float:
    """Return the variance of all entries of the table."""
    moments, variance = rows.moments(), _variance(rows)
    centre = moments.mean - moments.mean.mean()
    return (variance + float(centre @ centre)) / rows.n_features


@dataclass(frozen=True)
class _Sample:
    """A few dense rows in float64, their weights, and what these are in units of."""

    X: Array
    weights: Array
    unit: float = 1.0

    @classmethod
    def of(cls, rows: Rows, size: int, rng: np.random.Generator) -> _Sample:
        """Return all rows if they are few, or else some, each drawn by its weight."""
        share = None if rows.weights is None else rows.weights / rows.weights.sum()
        if len(rows) <= size:
            indices = np.arange(len(rows))
            weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        else:
            indices = rng.choice(len(rows), size, replace=share is not None, p=share)
            weights = np.ones(size)
        sample = rows.take(indices)
        dense = sample.toarray() if rows.is_sparse else sample
        unit = rows.weight_unit if len(rows) <= size else 1.0
        return cls(np.asarray(dense, dtype=np.float64), weights, unit)


def _mean_l1_distance(rows: Rows, rng: np.random.Generator) -> float:
    """Return the mean L1 distance over all pairs, from the sorted features.

    In a sorted feature the i-th value is added once for each value below it and
    taken away once for each above.
    """
    wanted = max(_PAIR_ROWS, min(_SORTED_ROWS, 10**8 // max(rows.n_features, 1)))
    sample = _Sample.of(rows, wanted, rng)
    X, weights = sample.X, sample.weights
    total = 0.0
    for feature in X.T:
        order = np.argsort(feature, kind="stable")
        mass = weights[order]
        below = np.cumsum(mass) - mass
        above = mass.sum() - below - mass
        # About the least value: rows that are all equal are exactly so.
        total += float((mass * (below - above)) @ (feature[order] - feature[order[0]]))
    return 2.0 * total / float(weights.sum()) ** 2


def typical_distance(rows: Rows, distance: str, rng: np.random.Generator) -> float:
    """Return roughly the median over the pairs of a few hundred rows."""
    return _median_distance(rows, distance, rng, _FEW_ROWS)


def nearby_distance(rows: Rows, distance: str) -> float:
    """Return the median over the pairs of the first rows that count, which is cheap."""
    numbers = np.arange(min(_FIRST_ROWS, len(rows)))
    if rows.weights is not None:
        numbers = np.flatnonzero(rows.weights)[:_FIRST_ROWS]
    sample = rows.subset(numbers, None)
    return _median_distance(sample, distance, np.random.default_rng(0))


def _median_distance(
    rows: Rows, distance: str, rng: np.random.Generator, size: int = _PAIR_ROWS
) -> float:
    """Return the median over the pairs of different rows."""
    sample = _Sample.of(rows, size, rng)
    X, weights = sample.X, sample.weights
    values = cdist(X, X, distance).ravel()
    pairs = np.outer(weights, weights)
    # A row of weight w is w rows, with w(w - 1) pairs among themselves.
    others = np.maximum(weights - 1.0 / sample.unit, 0.0)
    np.fill_diagonal(pairs, weights * others)
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(pairs.ravel()[order])
    return float(values[order][np.searchsorted(mass, 0.5 * mass[-1])])
