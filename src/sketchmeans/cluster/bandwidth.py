"""A bandwidth that nobody has to choose: the one whose clusters are stable."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from sketchmeans.data.rows import Rows
from sketchmeans.data.sampling import sample_rows
from sketchmeans.engine.gram import GramEngine
from sketchmeans.engine.init import AutoSeeding
from sketchmeans.engine.lloyd import lloyd
from sketchmeans.kernels import Kernel, as_kernel, compute_gram
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers

#: Multiples of the rule "mean" that are tried, from the smoothest kernel on.
FACTORS = (1.0, 3.0, 10.0, 30.0)

#: Rows of both samples together, and least rows for each cluster.
_ROWS, _ROWS_PER_CLUSTER = 800, 4
#: Restarts of a fit, its most passes, and the drop of the cost at which it ends.
_RESTARTS, _PASSES, _TOLERANCE = 2, 100, 1e-3

#: Agreement from which on no other bandwidth is tried, and by how much a narrower
#: kernel has to be better.
_STABLE, _GAIN = 0.995, 0.01


def choose_bandwidth(model: Any, rows: Rows, rng: np.random.Generator) -> Kernel:
    """Return the kernel with the most stable clusters, for ``gamma="auto"``.

    Two disjoint samples of the rows are clustered; the adjusted Rand index of the two
    labellings of both samples says how stable the clusters are.  The smoothest kernel
    wins ties.  Costs a few exact fits of 400 rows, whatever n is.
    """
    others = {name: getattr(model, name) for name in ("degree", "coef0")}
    start = as_kernel(
        model.kernel, gamma="mean", kernel_params=model.kernel_params, **others
    ).resolve(rows, rng)
    if start._distance is None or not hasattr(start, "gamma"):
        raise ValueError(
            "gamma='auto' is defined for the rbf and laplacian kernels; give a number, "
            "'mean' or 'scale'."
        )
    half = min(_ROWS, len(rows)) // 2
    k = model.n_clusters
    if k < 2 or half < _ROWS_PER_CLUSTER * k:
        return start
    points = rows.take(np.sort(sample_rows(rows, 2 * half, rng)))
    left = rng.permutation(2 * half) < half
    K = compute_gram(start, points, rows.workers)
    best, best_score, before = start, -np.inf, 1.0
    for factor in FACTORS:
        K **= factor / before  # exp(−γ·distance)
        before = factor
        score = _stability(K, left, k, rows.workers, rng)
        if score > best_score + (_GAIN if np.isfinite(best_score) else 0.0):
            best, best_score = copy(start), score
            best.gamma = factor * start.gamma
        if best_score >= _STABLE:
            break
    return best


def _stability(
    K: Array, left: Array, k: int, workers: Workers, rng: np.random.Generator
) -> float:
    """Return how well the clusters of two parts of the rows agree on all of them."""
    labels = [
        _cluster(K, np.flatnonzero(part), k, workers, own)
        for part, own in zip((left, ~left), rng.spawn(2), strict=True)
    ]
    return float(adjusted_rand_score(*labels))


def _cluster(
    K: Array, part: Array, k: int, workers: Workers, rng: np.random.Generator
) -> Array:
    """Return labels of all rows, by the clusters of a part of them."""
    engine = GramEngine(K[np.ix_(part, part)], k, None, workers)
    rngs = rng.spawn(_RESTARTS)
    seeds = AutoSeeding().seed(engine.distances_to, engine.weights, k, rngs)
    results = lloyd(engine, engine.centers_at(seeds), max_iter=_PASSES, tol=_TOLERANCE)
    best = min(results, key=lambda result: result.cost).centers
    means = K[:, part] @ best.coefficients[:, 0]
    return np.asarray((best.squared_norms[0] - 2.0 * means).argmin(axis=1))
