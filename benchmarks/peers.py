"""The other side of each comparison, and the one judge of both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.data import Array

#: Rows of a block, where a whole matrix would not fit.
_BLOCK = 4096


@dataclass(frozen=True)
class Centers:
    """Centroids ``c_j = Σ_i coefficients[i, j] φ(points[i])``, from any method."""

    points: Array
    coefficients: Array


def true_cost(X: Array, gamma: float, centers: Centers) -> float:
    """Return ``W = 1/n Σ_x min_j ‖φ(x) − c_j‖²`` (Definition 1), in float64.

    For Nyström features F and a centre c among them this is the mean of
    ``k(x, x) − ‖F_x‖² + ‖F_x − c‖²``.  It is worked out from the kernel alone, so
    that rounding in the features cannot flatter anybody.
    """
    points = centers.points.astype(np.float64)
    alpha = centers.coefficients.astype(np.float64)
    inner = np.concatenate(list(_products(points, points, alpha, gamma)))
    squared_norms = np.einsum("ij,ij->j", alpha, inner)
    total = sum(
        float((squared_norms - 2.0 * values).min(axis=1).sum())
        for values in _products(X, points, alpha, gamma)
    )
    return 1.0 + total / len(X)


def _products(X: Array, points: Array, alpha: Array, gamma: float) -> Iterator[Array]:
    """Yield ``k(X, points) @ alpha``, block after block."""
    for start in range(0, len(X), _BLOCK):
        block = X[start : start + _BLOCK].astype(np.float64)
        yield rbf_kernel(block, points, gamma=gamma) @ alpha


def nystroem_kmeans(X: Array, gamma: float, m: int, k: int, seed: int) -> Centers:
    """Map all rows to Nyström features, then run k-means on those."""
    return _on_features(X, gamma, m, KMeans(k, n_init=1, random_state=seed), seed)


def nystroem_minibatch(X: Array, gamma: float, m: int, k: int, seed: int) -> Centers:
    """Map all rows to Nyström features, then run mini-batch k-means on those."""
    kmeans = MiniBatchKMeans(k, n_init=3, random_state=seed)
    return _on_features(X, gamma, m, kmeans, seed)


def _on_features(
    X: Array, gamma: float, m: int, kmeans: KMeans | MiniBatchKMeans, seed: int
) -> Centers:
    nystroem = Nystroem(kernel="rbf", gamma=gamma, n_components=m, random_state=seed)
    kmeans.fit(nystroem.fit_transform(X))
    # A feature row is F_x = N k(Z, x), so c·F_x = (Nᵀc)·k(Z, x).
    coefficients = nystroem.normalization_.T @ kmeans.cluster_centers_.T
    return Centers(nystroem.components_, coefficients)


def numpy_lloyd(
    X: Array, gamma: float, start: Array, tol: float = 1e-4, max_iter: int = 300
) -> Centers:
    """Run Lloyd's algorithm on a Gram matrix as one would write it in NumPy.

    Stops as `sketchmeans.KernelKMeans` does: when a pass lowers the cost by no more
    than `tol` of itself, or changes no label.
    """
    K = rbf_kernel(X, gamma=gamma)
    alpha = np.zeros((len(X), len(start)), dtype=K.dtype)
    alpha[start, np.arange(len(start))] = 1.0
    labels, cost = np.full(len(X), -1), np.inf
    for _ in range(max_iter):
        inner = K @ alpha
        distances = 1.0 - 2.0 * inner + np.einsum("ij,ij->j", alpha, inner)
        before, labels = labels, distances.argmin(axis=1)
        last, cost = cost, float(distances.min(axis=1).mean(dtype=np.float64))
        settled = last < np.inf and last - cost <= tol * last
        if settled or np.array_equal(before, labels):
            break
        members = labels[:, None] == np.arange(len(start))
        alpha = members.astype(K.dtype) / members.sum(axis=0, dtype=K.dtype)
    return Centers(X, alpha)
