"""Optimal kernel k-means of a few rows: every partition is tried."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from benchmarks.data import Array


@lru_cache(maxsize=8)
def all_partitions(n: int, k: int) -> Array:
    """Return the labels of all partitions of n rows into at most k parts.

    >>> all_partitions(3, 2).tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]]
    """
    labels = np.zeros((1, 1), dtype=np.int8)
    for _ in range(1, n):
        # A row joins a part or opens the next one, so each partition comes once.
        opened = np.minimum(labels.max(axis=1) + 1, k - 1)
        repeats = opened.astype(int) + 1
        parents = np.repeat(np.arange(len(labels)), repeats)
        last = np.concatenate([np.arange(count) for count in repeats])
        labels = np.column_stack([labels[parents], last.astype(np.int8)])
    return labels


def optimal_cost(K: Array, k: int, span: Array | None = None) -> float:
    """Return the least W over all partitions of the rows of a kernel matrix.

    With a Nyström approximation as `span` the centroids are projected on its span, and
    W is still the true one: ``(tr K − Σ_j 1ᵀ K̃ 1 / n_j) / n``.
    """
    inner = K if span is None else span
    labels = all_partitions(len(K), k)
    saved = np.zeros(len(labels))
    for cluster in range(k):
        members = (labels == cluster).astype(float)
        sizes = np.maximum(members.sum(axis=1), 1.0)
        saved += (
            np.einsum("pi,ij,pj->p", members, inner, members, optimize=True) / sizes
        )
    return float((np.trace(K) - saved.max()) / len(K))
