"""A bandwidth that nobody has to choose: the one whose clusters are stable."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from sketchmeans.data.rows import Rows
from sketchmeans.data.sampling import sample_rows
from sketchmeans.kernels import Kernel, as_kernel

#: Multiples of the rule "mean" that are tried, from the smoothest kernel on.
FACTORS = (1.0, 3.0, 10.0, 30.0)

#: Rows of both samples together, least rows for each cluster, and restarts of a fit.
_ROWS, _ROWS_PER_CLUSTER, _RESTARTS = 800, 4, 2

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
    numbers = sample_rows(rows, 2 * half, rng)
    X = rows.take(np.sort(numbers))
    left = rng.permutation(2 * half) < half
    best, best_score = start, -np.inf
    for factor in FACTORS:
        kernel = copy(start)
        kernel.gamma = factor * start.gamma
        score = _stability(X, left, kernel, k, rng)
        if score > best_score + (_GAIN if np.isfinite(best_score) else 0.0):
            best, best_score = kernel, score
        if best_score >= _STABLE:
            break
    return best


def _stability(
    X: Any, left: Any, kernel: Kernel, k: int, rng: np.random.Generator
) -> float:
    """Return how well the clusters of two parts of the rows agree on all of them."""
    from sketchmeans.cluster.exact import KernelKMeans  # which needs this module

    labels = [
        KernelKMeans(k, kernel=kernel, n_init=_RESTARTS, random_state=own)
        .fit(X[part])
        .predict(X)
        for part, own in zip((left, ~left), rng.spawn(2), strict=True)
    ]
    return float(adjusted_rand_score(*labels))
