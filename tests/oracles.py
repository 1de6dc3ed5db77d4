"""Slow and obvious versions of what the library does fast, and tests of laws.

Nothing here imports the library: an oracle that shares code with what it judges
repeats its mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy import stats

# --- kernels, pair by pair ------------------------------------------------------------


def _dot(x, z):
    return math.fsum(float(a) * float(b) for a, b in zip(x, z, strict=True))


def _squared_distance(x, z):
    return math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x, z, strict=True))


def rbf(x, z, gamma):
    return math.exp(-gamma * _squared_distance(x, z))


def laplacian(x, z, gamma):
    distance = math.fsum(abs(float(a) - float(b)) for a, b in zip(x, z, strict=True))
    return math.exp(-gamma * distance)


def linear(x, z):
    return _dot(x, z)


def polynomial(x, z, gamma, degree, coef0):
    return (gamma * _dot(x, z) + coef0) ** degree


def sigmoid(x, z, gamma, coef0):
    return math.tanh(gamma * _dot(x, z) + coef0)


def cosine(x, z):
    length = math.sqrt(_dot(x, x) * _dot(z, z))
    return _dot(x, z) / length if length else 0.0


def arc_cosine(x, z, order):
    """Cho & Saul's ``2 E[Θ(w·x) Θ(w·z) (w·x)^q (w·z)^q]``, w normal, Θ(0) = 0."""
    length = math.sqrt(_dot(x, x) * _dot(z, z))
    if not length:
        return 0.0
    cos = min(max(_dot(x, z) / length, -1.0), 1.0)
    angle = math.acos(cos)
    rest = math.pi - angle
    angular = [
        rest,
        math.sin(angle) + rest * cos,
        3.0 * math.sin(angle) * cos + rest * (1.0 + 2.0 * cos * cos),
    ][order]
    return length**order * angular / math.pi


def additive_chi2(x, z):
    pairs = [(float(a), float(b)) for a, b in zip(x, z, strict=True)]
    return -math.fsum((a - b) ** 2 / (a + b) for a, b in pairs if a + b)


def chi2(x, z, gamma):
    return math.exp(gamma * additive_chi2(x, z))


def kernel_matrix(kernel: Callable[..., float], X, Z, **params) -> np.ndarray:
    """Return ``k(X, Z)`` by a loop over all pairs."""
    return np.array([[kernel(x, z, **params) for z in Z] for x in X], dtype=float)


# --- costs ----------------------------------------------------------------------------


def squared_distances(diagonal, B, K_centers, alpha) -> np.ndarray:
    """Return ``‖φ(x) − Σ_l α_lj φ(z_l)‖²`` for every row x and centre j.

    `B` is ``k(X, Z)``, `K_centers` is ``k(Z, Z)`` and column j of `alpha` is centre j.
    """
    n, k = len(B), alpha.shape[1]
    distances = np.empty((n, k))
    for j in range(k):
        a = alpha[:, j]
        norm = sum(
            a[p] * a[q] * K_centers[p, q] for p in range(len(a)) for q in range(len(a))
        )
        for i in range(n):
            cross = sum(a[p] * B[i, p] for p in range(len(a)))
            distances[i, j] = diagonal[i] - 2.0 * cross + norm
    return distances


def cost_of_centers(diagonal, B, K_centers, alpha, weights=None) -> float:
    """Return ``W(C, μ)`` of Definition 1 for centres in the span of some points."""
    distances = squared_distances(diagonal, B, K_centers, alpha)
    weights = np.ones(len(B)) if weights is None else np.asarray(weights, float)
    total = sum(w * min(row) for w, row in zip(weights, distances, strict=True))
    return total / weights.sum()


def cost_of_partition(K, labels, weights=None) -> float:
    """Return the mean squared distance of rows to the centroid of their own cluster."""
    weights = np.ones(len(K)) if weights is None else np.asarray(weights, float)
    total = 0.0
    for cluster in set(np.asarray(labels).tolist()):
        members = [i for i, label in enumerate(labels) if label == cluster]
        mass = sum(weights[i] for i in members)
        if not mass:
            continue
        norm = sum(weights[i] * weights[j] * K[i, j] for i in members for j in members)
        norm /= mass**2
        for i in members:
            cross = sum(weights[j] * K[i, j] for j in members) / mass
            total += weights[i] * (K[i, i] - 2.0 * cross + norm)
    return total / weights.sum()


def partitions(n: int, k: int) -> Iterator[list[int]]:
    """Yield every partition of n rows into at most k clusters, once."""

    def grow(labels: list[int]) -> Iterator[list[int]]:
        if len(labels) == n:
            yield labels
            return
        for label in range(min(max(labels) + 2, k)):
            yield from grow([*labels, label])

    return grow([0])


def optimal_cost(K, k: int, weights=None) -> float:
    """Return the least cost over all partitions into at most k clusters."""
    weights = np.ones(len(K)) if weights is None else np.asarray(weights, float)
    weighted = weights[:, None] * np.asarray(K, float) * weights
    trace = float(weights @ np.diagonal(K))
    best = math.inf
    for labels in partitions(len(K), k):
        member = np.equal.outer(range(max(labels) + 1), labels).astype(float)
        mass = member @ weights
        inner = np.einsum("ci,ij,cj->c", member, weighted, member)
        kept = sum(v / m for v, m in zip(inner, mass, strict=True) if m)
        best = min(best, trace - kept)
    return best / weights.sum()


# --- Lloyd ----------------------------------------------------------------------------


def gram_lloyd(K, alpha, weights=None, max_iter: int = 1000):
    """Run Lloyd on a Gram matrix from centres ``Σ_i alpha_ij φ(x_i)``.

    Returns the labels, the cost of every pass and each row's gap between its two
    nearest centres, the least over all passes.  An empty cluster is an error: the
    oracle has no opinion on refills.
    """
    K = np.asarray(K, float)
    weights = np.ones(len(K)) if weights is None else np.asarray(weights, float)
    alpha = np.array(alpha, dtype=float)
    gaps = np.full(len(K), np.inf)
    labels, path = None, []
    for _ in range(max_iter):
        norms = np.array([a @ K @ a for a in alpha.T])
        distances = np.diagonal(K)[:, None] - 2.0 * K @ alpha + norms
        ordered = np.sort(distances, axis=1)
        if ordered.shape[1] > 1:
            gaps = np.minimum(gaps, ordered[:, 1] - ordered[:, 0])
        path.append(float(weights @ ordered[:, 0] / weights.sum()))
        found = distances.argmin(axis=1)
        if labels is not None and (found == labels).all():
            break
        labels = found
        for j in range(alpha.shape[1]):
            member = weights * (labels == j)
            if not member.sum():
                raise AssertionError(f"cluster {j} is empty: choose another start")
            alpha[:, j] = member / member.sum()
    return labels, path, gaps


def at_rows(n: int, indices: Sequence[int]) -> np.ndarray:
    """Return the coefficients of centres at rows."""
    alpha = np.zeros((n, len(indices)))
    for j, i in enumerate(indices):
        alpha[i, j] = 1.0
    return alpha


def of_partition(labels, k: int, weights=None) -> np.ndarray:
    """Return the coefficients of the centroids of a partition."""
    labels = np.asarray(labels)
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, float)
    alpha = np.zeros((len(labels), k))
    for i, j in enumerate(labels):
        alpha[i, j] = weights[i] / weights[labels == j].sum()
    return alpha


def embedding(B, K_mm, rank: int | None = None, cut: float = 1e-12) -> np.ndarray:
    """Return the features ``Λ^-1/2 Uᵀ b_x`` of CR18's Algorithm 1, one row for each x.

    Eigenvalues below `cut` times the largest are left out.
    """
    values, vectors = np.linalg.eigh(K_mm)
    keep = [i for i in np.argsort(-values)[:rank] if values[i] > cut * values[-1]]
    return np.array(
        [[vectors[:, i] @ b / math.sqrt(values[i]) for i in keep] for b in B]
    )


def plain_lloyd(F, centers, weights=None, max_iter: int = 1000):
    """Run Lloyd on explicit features; return labels, centres and the costs."""
    F, centers = np.asarray(F, float), np.array(centers, dtype=float)
    weights = np.ones(len(F)) if weights is None else np.asarray(weights, float)
    labels, path = None, []
    for _ in range(max_iter):
        distances = np.array([[((f - c) ** 2).sum() for c in centers] for f in F])
        path.append(float(weights @ distances.min(axis=1) / weights.sum()))
        found = distances.argmin(axis=1)
        if labels is not None and (found == labels).all():
            break
        labels = found
        for j in range(len(centers)):
            member = weights * (labels == j)
            if not member.sum():
                raise AssertionError(f"cluster {j} is empty: choose another start")
            centers[j] = member @ F / member.sum()
    return labels, centers, path


# --- laws, on counts ------------------------------------------------------------------


def tally(draws) -> dict:
    """Return how often each outcome occurs; outcomes are made hashable."""
    counts: dict = {}
    for draw in draws:
        key = tuple(np.atleast_1d(draw).tolist())
        counts[key] = counts.get(key, 0) + 1
    return counts


def law_p_value(draws, law: dict) -> float:
    """Return the chi-square p-value that draws follow a law {outcome: probability}.

    An outcome of probability zero that occurs has the p-value 0.
    """
    counts = tally(draws)
    law = {tuple(np.atleast_1d(key).tolist()): p for key, p in law.items() if p > 0.0}
    if set(counts) - set(law):
        return 0.0
    total = sum(counts.values())
    expected = np.array([law[key] for key in law]) * total
    assert math.isclose(expected.sum(), total), "the probabilities should add up to 1"
    assert expected.min() >= 5.0, "too few draws for a chi-square test"
    observed = np.array([counts.get(key, 0) for key in law])
    return float(stats.chisquare(observed, expected).pvalue)


def same_law_p_value(first, second) -> float:
    """Return the chi-square p-value that two samples follow one law.

    Outcomes that are rare in both samples together are one outcome.
    """
    a, b = tally(first), tally(second)
    table = np.array([[c.get(key, 0) for key in {**a, **b}] for c in (a, b)])
    rare = table.sum(axis=0) < 20
    if rare.any():
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    assert table.shape[1] > 1, "one outcome only: nothing to compare"
    return float(stats.chi2_contingency(table).pvalue)
