"""The cost of clusters with their exact means in feature space as centres."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.data import Array


def cost_of_means(
    X: Array, labels: Array, X_new: Array, k: int, gamma: float, block: int = 500
) -> float:
    """Return W on new rows with the means of given clusters as centres.

    ``‖φ(x) − c_j‖² = 1 − 2 mean_i k(x, x_i) + mean_ii' k(x_i, x_i')``: nothing is
    left out, as it is with landmarks.
    """
    distances = np.empty((len(X_new), k))
    for j in range(k):
        members = X[labels == j]
        if not len(members):
            distances[:, j] = np.inf
            continue
        inner = np.mean(_mean_kernel(members, members, gamma, block))
        nearness = _mean_kernel(X_new, members, gamma, block)
        distances[:, j] = 1.0 - 2.0 * nearness + inner
    return float(distances.min(axis=1).mean())


def _mean_kernel(X: Array, Z: Array, gamma: float, block: int) -> Array:
    """Return the mean of k(x, z) over all z for each x."""
    parts = [
        rbf_kernel(X[i : i + block], Z, gamma=gamma).mean(axis=1, dtype=np.float64)
        for i in range(0, len(X), block)
    ]
    return np.concatenate(parts)
