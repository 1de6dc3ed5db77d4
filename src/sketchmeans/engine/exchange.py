"""Moves of single rows from cluster to cluster, where Lloyd's algorithm is at its end.

A row that moves takes both means along, which Lloyd's algorithm does not foresee: it
may lower the cost although the row is nearer to the mean that it leaves (Hartigan &
Wong, 1979).
"""

from __future__ import annotations

import numpy as np

from sketchmeans.numerics.linalg import Array

#: Least share of the cost that a move lowers it by.
_GAIN = 1e-9


def exchange_rows(
    distances: Array, weights: Array | None, labels: Array, n_clusters: int
) -> Array:
    """Return the labels after moves of single rows, the best first, until none gains.

    `distances` are squared distances (n, n) of all rows.  A cluster keeps its last row.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 2.0, 3.2, 5.0])  # 2 is nearer to 1.55 than to 4.1
    >>> exchange_rows((x[:, None] - x) ** 2, None, np.array([0, 0, 0, 0, 1]), 2)
    array([0, 0, 0, 1, 1])
    """
    n, rows = len(labels), np.arange(len(labels))
    w = np.ones(n) if weights is None else np.asarray(weights, np.float64)
    labels = labels.copy()
    member = np.zeros((n, n_clusters))
    member[rows, labels] = w
    sums = distances @ member  # Σ_l w_l ‖x_i − x_l‖² over the rows l of a cluster
    weight = member.sum(axis=0)
    inner = 0.5 * np.einsum("ij,ij->j", member, sums)  # weight times the cluster's cost
    for _ in range(n):
        size = np.where(weight > 0.0, weight, 1.0)
        to = sums / size - inner / size**2  # squared distances to the means
        left = weight[labels] - w
        leave = np.divide(weight[labels], left, out=np.zeros(n), where=left > 0.0)
        joined = weight + w[:, None]
        join = np.divide(weight, joined, out=np.zeros_like(to), where=joined > 0.0)
        change = w[:, None] * (join * to) - (w * leave * to[rows, labels])[:, None]
        change[rows, labels] = 0.0
        i, j = divmod(int(change.argmin()), n_clusters)
        if change[i, j] >= -_GAIN * float((inner / size).sum()):
            break
        old = labels[i]
        inner[old] -= w[i] * sums[i, old]
        inner[j] += w[i] * sums[i, j]
        sums[:, old] -= w[i] * distances[:, i]
        sums[:, j] += w[i] * distances[:, i]
        weight[old] -= w[i]
        weight[j] += w[i]
        labels[i] = j
    return labels
