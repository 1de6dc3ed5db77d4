"""Rules for the bandwidth: a number ``gamma`` from the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from sketchmeans.data.rows import Rows
from sketchmeans.data.sampling import first_rows, row_weights, sample_rows
from sketchmeans.data.sources.base import Block, is_csr
from sketchmeans.numerics.linalg import Array

Gamma = float | str

#: Rows whose pairs give the median distance (half a million pairs).
_PAIR_ROWS = 1_000
#: Rows whose pairs say roughly how far apart rows are, and fewer that are read first.
_FEW_ROWS, _FIRST_ROWS = 200, 31
#: Rows that are sorted, feature by feature, for the mean L1 distance.
_SORTED_ROWS = 100_000
#: Values of sparse rows that are dense at a time.
_PART_VALUES = 2**22


def resolve_gamma(
    gamma: Gamma, distance: str | None, rows: Rows, rng: np.random.Generator
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
    if not isinstance(gamma, str) or gamma not in ("mean", "median", "scale"):
        raise ValueError(
            f"gamma={gamma!r} should be a positive number, 'mean', 'median' or 'scale'."
        )
    if gamma == "scale":
        return _inverse(rows.n_features * _entry_variance(rows))
    if gamma == "median":
        if distance is None:
            raise ValueError(
                "gamma='median' is defined for the rbf and laplacian kernels; give a "
                "number, 'mean' or 'scale'."
            )
        median = _distance_quantile(rows, distance, rng)
        if median > 0.0:  # else more than half of the pairs are equal rows
            return _inverse((2.0 if distance == "sqeuclidean" else 1.0) * median)
    if distance == "sqeuclidean":
        # The mean over all pairs is twice the variance: no pairs are formed.
        return _inverse(2.0 * 2.0 * _variance(rows))
    if distance == "cityblock":
        return _inverse(_mean_l1_distance(rows, rng))
    return 1.0 / rows.n_features


def _inverse(spread: float) -> float:
    # Rows that are all equal have no scale: any bandwidth will do.
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
    """Say whether the first rows that count are all the same."""
    few = _occupied(rows.take(first_rows(rows, _PAIR_ROWS)))
    return all(bool((part == part[0]).all()) for part in _dense_parts(few))


def _entry_variance(rows: Rows) -> float:
    """Return the variance of all entries of the table."""
    moments, variance = rows.moments(), _variance(rows)
    centre = moments.mean - moments.mean.mean()
    return (variance + float(centre @ centre)) / rows.n_features


def _occupied(X: Block) -> Block:
    """Return rows without features that are zero in all of them, by columns if sparse.

    A wide sparse table has millions, which are no part of any distance.
    """
    return X[:, np.unique(X.indices)].tocsc() if is_csr(X) else X


def _dense_parts(X: Block) -> Iterator[Array]:
    """Yield the features of a few rows, dense and in float64, some at a time."""
    step = max(_PART_VALUES // max(X.shape[0], 1), 1)
    if not sparse.issparse(X):
        step = max(X.shape[1], 1)
    for start in range(0, X.shape[1], step):
        part: Any = X[:, start : start + step]
        dense = part.toarray() if sparse.issparse(part) else part
        yield dense.astype(np.float64)


@dataclass(frozen=True)
class _Sample:
    """A few rows, with weights in multiples of `unit`."""

    X: Block
    weights: Array
    unit: float

    @classmethod
    def of(cls, rows: Rows, size: int, rng: np.random.Generator) -> _Sample:
        """Return all rows if they are few, or else some, each drawn by its weight."""
        if len(rows) <= size:
            numbers, weights, unit = (
                np.arange(len(rows)),
                row_weights(rows),
                rows.weight_unit,
            )
        else:
            numbers, weights, unit = sample_rows(rows, size, rng), np.ones(size), 1.0
        return cls(_occupied(rows.take(numbers)), weights, unit)


def _mean_l1_distance(rows: Rows, rng: np.random.Generator) -> float:
    """Return the mean L1 distance over all pairs, from the sorted features.

    In a sorted feature the i-th value is added once for each value below it and
    taken away once for each above.
    """
    wanted = max(_PAIR_ROWS, min(_SORTED_ROWS, 10**8 // max(rows.n_features, 1)))
    sample = _Sample.of(rows, wanted, rng)
    weights = sample.weights
    total = 0.0
    for feature in (column for part in _dense_parts(sample.X) for column in part.T):
        order = np.argsort(feature, kind="stable")
        sorted_weights = weights[order]
        below = np.cumsum(sorted_weights) - sorted_weights
        above = sorted_weights.sum() - below - sorted_weights
        # About the least value: rows that are all equal are exactly so.
        offsets = feature[order] - feature[order[0]]
        total += float((sorted_weights * (below - above)) @ offsets)
    return 2.0 * total / float(weights.sum()) ** 2


def typical_distance(
    rows: Rows, distance: str, rng: np.random.Generator, share: float = 0.5
) -> float:
    """Return roughly the distance that a share of all pairs do not exceed.

    From the pairs of a few hundred rows; by default it is the median.
    """
    return _distance_quantile(rows, distance, rng, share, _FEW_ROWS)


def nearby_distance(rows: Rows, distance: str) -> float:
    """Return the median over the pairs of the first rows that count, which is cheap."""
    sample = rows.subset(first_rows(rows, _FIRST_ROWS), None)
    return _distance_quantile(sample, distance, np.random.default_rng(0))


def _distance_quantile(
    rows: Rows,
    distance: str,
    rng: np.random.Generator,
    share: float = 0.5,
    size: int = _PAIR_ROWS,
) -> float:
    """Return a quantile, by default the median, over the pairs of different rows."""
    sample = _Sample.of(rows, size, rng)
    weights = sample.weights
    # Both distances are sums over the features.
    parts = (cdist(part, part, distance) for part in _dense_parts(sample.X))
    values = sum(parts, np.zeros((len(weights), len(weights)))).ravel()
    pairs = np.outer(weights, weights)
    # A row of weight w is w rows, with w(w - 1) pairs among themselves.
    others = np.maximum(weights - 1.0 / sample.unit, 0.0)
    np.fill_diagonal(pairs, weights * others)
    order = np.argsort(values, kind="stable")
    below = np.cumsum(pairs.ravel()[order])
    return float(values[order][np.searchsorted(below, share * below[-1])])
