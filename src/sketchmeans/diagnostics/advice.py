"""A suggestion from the paths over k and over bandwidths, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import check_integer
from sketchmeans.theory.problem import KernelLike, open_problem
from sketchmeans.theory.results import Result, format_at_most

#: Differences in stability that do not count: between numbers of clusters, and between
#: bandwidths, which are compared by the certificate, too.
_AS_STABLE, _ABOUT_AS_STABLE = 0.02, 0.05
#: Stability below which two samples hardly find the same clusters.
_HARDLY_STABLE = 0.5
#: Effective dimension, as a share of the rows, at which no two rows look alike.
_FAR_TOO_SHARP = 0.25


@dataclass(frozen=True, repr=False)
class Advice(Result):
    """A suggestion.

    Attributes
    ----------
    value : int or float
    is_clear : bool
        False where the numbers do not support any value.
    note : str
        The reason.

    Examples
    --------
    >>> from sketchmeans.diagnostics import advised_cluster_count
    >>> path = {"n_clusters": [2, 3, 4], "stability": [0.7, 0.99, 0.8]}
    >>> found = advised_cluster_count(path)
    >>> found.value, found.is_clear
    (3, True)
    """

    value: float
    is_clear: bool
    note: str


def advised_cluster_count(path: Mapping[str, Any]) -> Advice:
    """Suggest a number of clusters: the most that samples agree on.

    With fewer clusters than groups, and with more, the clusters depend on the sample;
    with as many they do not.  For the stability s_k of the path it is the largest k
    with ``s_k ≥ max_j s_j − 0.02``, as two large groups are often stable, too, but say
    less.  It is not clear if s_k is below 0.5, or if its interval overlaps with that of
    a less stable one.  This is about kernel k-means at one bandwidth;
    `choose_n_clusters` takes clusters of any shape and compares with noise.

    Costs nothing beyond the path.

    Parameters
    ----------
    path : dict of ndarray or DataFrame
        What `cluster_count_path` returned.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sketchmeans.diagnostics import cluster_count_path
    >>> X, _ = make_blobs(1200, 3, centers=4, cluster_std=0.6, random_state=3)
    >>> advised_cluster_count(cluster_count_path(X, [2, 4, 6], random_state=0))
    Advice
      value      4
      is_clear   yes
      4 is the most clusters that different samples agree on (agreement 1.00 of 1).
    """
    counts, stability = np.asarray(path["n_clusters"]), np.asarray(path["stability"])
    near = stability >= stability.max() - _AS_STABLE
    best = int(np.flatnonzero(near)[counts[near].argmax()])
    k, agreed = int(counts[best]), f"(agreement {stability[best]:.2f} of 1)"
    if stability[best] < _HARDLY_STABLE:
        note = "No number of clusters is clear: different samples hardly agree on any."
        return Advice(k, False, f"{note} {k} is the best of these {agreed}.")
    rivals = ~near & (_ends(path, "high") > _ends(path, "low")[best])
    if rivals.any():
        others = ", ".join(map(str, counts[rivals]))
        note = f"No number of clusters is clear: {k} is the best {agreed}, but its"
        return Advice(k, False, f"{note} interval overlaps with that of {others}.")
    note = f"{k} is the most clusters that different samples agree on {agreed}."
    return Advice(k, True, note)


def _ends(path: Mapping[str, Any], end: str) -> Array:
    """Return the upper or lower ends of intervals; the values where there are none."""
    values = np.asarray(path["stability"], dtype=np.float64)
    ends = np.asarray(path.get(f"stability_{end}", values), dtype=np.float64)
    return np.where(np.isfinite(ends), ends, values)


def advised_bandwidth(
    path: Mapping[str, Any], n_clusters: int, n_samples: int
) -> Advice:
    """Suggest a bandwidth: one that tells clusters apart, and the same in any sample.

    Left out are bandwidths without ``k ≤ d_eff ≤ n/4``: below that effective dimension
    all rows look the same, above it no two look alike.  Of the others it is the one of
    the lowest certified ratio among those with ``s ≥ max s − 0.05``, s their stability.

    Costs nothing beyond the path.

    Parameters
    ----------
    path : dict of ndarray or DataFrame
        What `bandwidth_path` returned.
    n_clusters, n_samples : int
        Of the path.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.diagnostics import advised_bandwidth, bandwidth_path
    >>> X = np.random.default_rng(0).normal(size=(900, 2)) + [[0], [6], [12]] * 300
    >>> path = bandwidth_path(X, [0.001, 0.1, 100.0], 3, random_state=0)
    >>> advised_bandwidth(path, 3, len(X)).value
    0.1
    """
    gammas, stability, ratio, dimension = (
        np.asarray(path[name])
        for name in ("gamma", "stability", "ratio", "effective_dimension")
    )
    usable = (dimension >= n_clusters) & (dimension <= _FAR_TOO_SHARP * n_samples)
    candidates = usable if usable.any() else np.ones(len(gammas), bool)
    top = stability[candidates].max()
    near = np.flatnonzero(candidates & (stability >= top - _ABOUT_AS_STABLE))
    best = int(near[ratio[near].argmin()])
    gamma, agreed = float(gammas[best]), f"(agreement {stability[best]:.2f} of 1)"
    if not usable.any():
        note = "all rows look the same, or no two alike. Try others, or another number"
        return Advice(gamma, False, f"No bandwidth is clear: {note} of clusters.")
    if stability[best] < _HARDLY_STABLE:
        note = "No bandwidth is clear: different samples hardly agree with any."
        return Advice(
            gamma, False, f"{note} {gamma:.4g} is the best of these {agreed}."
        )
    note = f"Different samples agree on the clusters of gamma {gamma:.4g} {agreed}"
    if ratio[best] < np.inf:
        within = f"{format_at_most(ratio[best])} times the best possible"
        note += f", and with high confidence the cost is within {within}"
    return Advice(gamma, True, f"{note}.")


def bandwidth_grid(
    X: Any,
    *,
    size: int = 7,
    kernel: KernelLike = "rbf",
    gamma: Gamma = "mean",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> list[float]:
    """Return bandwidths to try: ``gamma·2^i`` about the gamma of a rule.

    Costs a sample of the rows for the rule.

    See Also
    --------
    bandwidth_path : Clusterings over such a grid.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> grid = bandwidth_grid(X, size=3, random_state=0)
    >>> [round(gamma / grid[0], 6) for gamma in grid]
    [1.0, 2.0, 4.0]
    """
    check_integer("size", size)
    with open_problem(X, kernel, gamma, None, None, n_jobs, random_state) as problem:
        middle = getattr(problem.kernel, "gamma", None)
    if middle is None:
        raise ValueError(f"kernel={kernel!r} should have a bandwidth.")
    return [float(middle * 2.0 ** (i - size // 2)) for i in range(size)]
