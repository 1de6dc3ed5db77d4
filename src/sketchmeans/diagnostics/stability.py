"""How likely a cluster is found again in another sample of the rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from sketchmeans.cluster import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
)
from sketchmeans.data.sources.base import Block
from sketchmeans.diagnostics.fitted import AnyModel, divide, has_given_kernel
from sketchmeans.numerics.linalg import Array

#: Samples that are clustered again, rows of each, and rows of a cluster at least.
_RESAMPLES, SAMPLE_ROWS, _FEWEST = 20, 1_500, 10
#: More clusters than this are not looked for again.
_MOST_CLUSTERS = 100
#: Landmarks of a fit to a sample, at most.
_LANDMARKS = 200
#: Spectral fits take longer.
_SPECTRAL_RESAMPLES = 4


def rows_per_cluster(k: int) -> int:
    """Return how many rows of a cluster a sample should have."""
    return max(SAMPLE_ROWS // k, _FEWEST)


def measure_stability(
    model: AnyModel,
    rows: Block,
    labels: Array,
    weights: Array,
    rng: np.random.Generator,
) -> Array | None:
    """Return how well each cluster is found again in resampled rows, from 0 to 1.

    As `clusterboot` in R: rows are drawn with replacement and clustered again, and a
    cluster is compared with the most similar new one by the Jaccard coefficient, the
    rows in both as a share of those in either; the mean over resamples is returned, not
    a number for a cluster without rows.  Below 0.6 a cluster should not be trusted.

    `rows` are some of those that the model clusters, with their labels, and weights
    that say how many rows each stands for.  None for more than 100 clusters, for one,
    for too few rows, and for a given kernel.

    References
    ----------
    Hennig, "Cluster-wise assessment of cluster stability", CSDA 2007.
    """
    k = len(model.cluster_sizes_)
    n = rows.shape[0]
    if not 1 < k <= _MOST_CLUSTERS or n < 5 * k or has_given_kernel(model):
        return None
    is_slow = isinstance(model, SpectralKMeans)
    scores = []
    with warnings.catch_warnings():
        # What resampled rows are like is no concern of the user.
        warnings.simplefilter("ignore")
        for stream in rng.spawn(_SPECTRAL_RESAMPLES if is_slow else _RESAMPLES):
            counts = np.bincount(stream.integers(n, size=n), minlength=n)
            drawn = np.flatnonzero(counts)
            twin = _make_twin(model, len(drawn), int(stream.integers(2**31)))
            twin.fit(rows[drawn], sample_weight=(weights * counts)[drawn])
            scores.append(compare_clusters(labels, twin.predict(rows), weights, k))
    return np.asarray(np.mean(scores, axis=0))


def compare_clusters(labels: Array, others: Array, weights: Array, k: int) -> Array:
    """Return the Jaccard coefficient of each cluster and the most similar other one.

    Examples
    --------
    >>> labels, others = np.array([0, 0, 1, 1]), np.array([1, 1, 1, 0])
    >>> compare_clusters(labels, others, np.ones(4), 2).round(3)
    array([0.667, 0.5  ])
    """
    both = np.zeros((k, max(k, int(others.max()) + 1)))
    np.add.at(both, (labels, others), weights)
    either = both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both
    best = divide(both, either, 0.0).max(axis=1)
    return np.where(both.sum(axis=1) > 0.0, best, np.nan)


def _make_twin(model: AnyModel, n_rows: int, seed: int) -> Any:
    """Return an estimator of the same clusters for few rows, with the same kernel."""
    k = len(model.cluster_sizes_)
    changes: dict[str, Any] = {"n_clusters": k, "random_state": seed, "verbose": 0}
    if isinstance(model, SketchedKMeans):
        return clone(model).set_params(init="auto", **changes)
    if isinstance(model, SpectralKMeans):
        m = max(min(_LANDMARKS, n_rows // 2), k)
        if model.n_neighbors_ is not None:  # the graph of the fit
            changes["n_neighbors"] = min(model.n_neighbors_, m)
        return clone(model).set_params(n_landmarks=m, **changes)
    # All rows as landmarks would be the same as an exact fit, but slower.
    m = min(max(_LANDMARKS, k), n_rows)
    kernel: Any = model.kernel_
    if isinstance(model, KernelKMeans):
        return NystromKMeans(
            kernel=kernel, n_landmarks=m, n_jobs=model.n_jobs, **changes
        )
    m = min(int(model.landmarks_.shape[0]), m)
    return NystromKMeans(
        kernel=kernel,
        n_landmarks=m,
        reducer=None if model.reducer is None else clone(model.reducer, safe=False),
        n_init=model.n_init,
        max_iter=model.max_iter,
        n_jobs=model.n_jobs,
        **changes,
    )
