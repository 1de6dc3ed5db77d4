"""What a few rows let us compute exactly: optima, Lemma 2, the law of D² sampling."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from math import inf

import numpy as np

from benchmarks.data import Array

#: ε over which Lemma 2 is minimised.
_EPS_GRID = np.linspace(0.05, 0.995, 40)


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


def lemma_2_bound(K: Array, approximation: Array, k: int) -> tuple[float, str]:
    """Return the least bound of Lemma 2 over ε, and which of its branches binds.

    At each ε the smallest γ of Definition 2 is ``‖K − K̃‖₂ (1 − ε)/ε``.
    """
    norm = float(np.linalg.norm(K - approximation, 2))
    values = np.maximum(np.linalg.eigvalsh(K), 0.0)
    found = []
    for eps in _EPS_GRID:
        ridge = norm * (1.0 - eps) / eps
        dimension = float((values / (values + ridge)).sum()) if ridge > 0 else inf
        factor = ridge / ((1.0 - eps) * len(K))
        found.append((k * factor, "k"))
        found.append((dimension * factor if ridge > 0 else 0.0, "d_eff"))
    return min(found)


def d2_law(K: Array, k: int) -> dict[frozenset[int], float]:
    """Return the probability of each set of k rows under D² sampling."""
    diagonal = np.diag(K)
    D = diagonal[:, None] - 2.0 * K + diagonal
    law: dict[frozenset[int], float] = {}
    for order in permutations(range(len(K)), k):
        probability = 1.0 / len(K)
        for i in range(1, k):
            nearest = D[:, list(order[:i])].min(axis=1)
            probability *= nearest[order[i]] / nearest.sum()
        key = frozenset(order)
        law[key] = law.get(key, 0.0) + probability
    return law
