"""Spectral lower bounds on the cost of any partition into k clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from sketchmeans.data.block_sums import sum_blocks
from sketchmeans.data.rows import Block, Rows, block_height, block_slices
from sketchmeans.data.sampling import draw, row_weights
from sketchmeans.engine.assign import CenterMatrix
from sketchmeans.engine.types import Centers
from sketchmeans.kernels import (
    Kernel,
    Linear,
    compute_gram,
    is_given,
    squared_norms,
    toarray,
)
from sketchmeans.numerics.linalg import Array, largest_eigenvalues, pseudo_inverse
from sketchmeans.numerics.parallel import Workers
from sketchmeans.theory.problem import Problem

#: Roundings of a kernel value, or of a sum of products, that are allowed for.
_ROUNDINGS = 16.0
#: Eigenvalues of ``k(Z, Z)`` are cut at this many times the noise in them.  In float32
#: smaller ones would lower the bound by their rounding more than they raise it.  In
#: float64 the sums have no more digits than the values; they are divided by the
#: eigenvalues, so these must be far above the noise.
_CUT_MARGIN = {np.dtype(np.float32): 8.0, np.dtype(np.float64): 2.0**20}
#: Most rows of subsamples that threads work on at the same time.
_TOGETHER = 4096
#: Columns of a Gram matrix at a time: the fewer, the closer to half of it.
_GRAM_COLUMNS = 256
#: Up to this size all eigenvalues are computed, above it a few by Lanczos.
_DENSE = 600
#: Relative precision of Lanczos, which is taken off the bound.
_LANCZOS_TOLERANCE = 1e-3


@dataclass(frozen=True)
class SecondMoment:
    """The centred second moment of some features, and what it may be off.

    The eigenvalues of `matrix`, ``Fᵀ D^½ H D^½ F``, are those of ``H D^½ K̃ D^½ H``;
    `residual` is ``tr(D(K − K̃))``.  `rounding` bounds the Frobenius norm of the
    rounding in ``D^½ F``, and `noise` what the rounding of the sums in `matrix` adds.
    """

    matrix: Array
    rounding: float
    residual: float
    n_landmarks: int | None = None
    noise: float = 0.0

    def lower_bound(self, k: int) -> float:
        """Return a lower bound on ``Σ_i w_i ‖φ(x_i) − c(x_i)‖²`` over k centres.

        The bound is the squared distance of the features to the nearest matrix of
        rank k − 1, and the root of that moves by no more than the features do.
        """
        least = max(float(sum_tails(self.matrix, [k])[0]) - self.noise, 0.0)
        return max(sqrt(least) - self.rounding, 0.0) ** 2


def compute_nystrom_moment(
    rows: Rows, kernel: Kernel, points: Block, centers: Centers | None = None
) -> tuple[SecondMoment, float]:
    """Return the moment of Nyström features, without computing any feature.

    ``Fᵀ D F = Rᵀ (Σ_x w_x b_x b_xᵀ) R`` with ``b_x = k(Z, x)`` and ``R Rᵀ = k(Z, Z)⁺``.
    The sums are formed in float64 throughout: R divides their rounding by eigenvalues,
    not by their roots as that of the kernel values.  The same pass gives the total
    cost of centres in the span of the first points.
    """
    m = points.shape[0]
    gram = compute_gram(kernel, points, rows.workers, rows)
    margin = _CUT_MARGIN[rows.dtype]
    root = pseudo_inverse(gram, dtype=rows.dtype, margin=margin).root()
    used = np.flatnonzero(root.any(axis=1))
    root = root[used]
    columns = kernel.against(points, rows.dtype, rows.workers)

    diagonal = kernel.row_diagonal(rows)
    table = None if centers is None else CenterMatrix(centers, rows.dtype, 1)
    buffer, dtype = rows.workers.buffer, rows.dtype

    def coordinates(block: Block) -> tuple[Array, Array | None]:
        b = columns(block, buffer("kernel", (block.shape[0], m), dtype))
        costs = None
        if table is not None:
            scores = table.scores(b[:, : table.n_columns])
            nearest = scores.min(axis=1).astype(np.float64)
            costs = np.maximum(nearest + kernel.diagonal(block), 0.0)
        wide = buffer("wide kernel", (len(b), len(used)), np.float64)
        wide[...] = b if len(used) == m else b[:, used]
        return wide, costs

    second, first, cost = _sum_products(rows, coordinates, len(used))
    mean = root.T @ first
    matrix = root.T @ second @ root
    weights = row_weights(rows)
    missing = float(weights @ diagonal) - float(np.trace(matrix))
    matrix -= np.outer(mean, mean) / rows.total_weight
    scale = float(np.abs(diagonal).max())
    rounding = _ROUNDINGS * float(np.finfo(rows.dtype).eps) * scale
    size = float(np.linalg.norm(root))
    rounding *= sqrt(rows.total_weight) * size
    noise = _ROUNDINGS * float(np.finfo(np.float64).eps) * (scale * size) ** 2
    noise *= rows.total_weight
    moment = SecondMoment(matrix, rounding, max(missing, 0.0), m, noise)
    return moment, cost if centers is not None else np.nan


def compute_linear_moment(rows: Rows) -> SecondMoment:
    """Return the moment of the rows themselves, exactly: plain k-means."""
    n, d = len(rows), rows.n_features
    mean = rows.moments().mean
    if d <= n:

        def centred(block: Block) -> tuple[Array, None]:
            return toarray(block) - mean, None

        second, first, _ = _sum_products(rows, centred, d)
        matrix = second - np.outer(first, first) / rows.total_weight
    else:
        X = toarray(rows.block(0, n)) - mean
        if rows.weights is not None:
            offset = rows.weights @ X / rows.total_weight
            X = (X - offset) * np.sqrt(rows.weights)[:, None]
        else:
            X -= X.mean(axis=0)
        matrix = X @ X.T
    eps = float(np.finfo(np.float64).eps)
    rounding = _ROUNDINGS * eps * sqrt(max(float(np.trace(matrix)), 0.0))
    return SecondMoment(matrix, rounding, 0.0)


def _sum_products(
    rows: Rows,
    features: Callable[[Block], tuple[Array, Array | None]],
    width: int,
) -> tuple[Array, Array, float]:
    """Return ``Σ_x w_x f_x f_xᵀ`` and ``Σ_x w_x f_x`` of features in float64.

    `features` returns costs of the rows, too, or None; their sum comes last.
    """

    def part(block: Block, weights: Array | None) -> tuple[Array, ...]:
        F, costs = features(block)
        costs = np.zeros(1) if costs is None else costs
        if weights is None:
            return F.T @ F, F.sum(axis=0), costs.sum(keepdims=True)
        total = weights @ F
        F *= np.sqrt(weights)[:, None]
        spent = weights @ costs if len(costs) == len(weights) else 0.0
        return F.T @ F, total, np.array([spent])

    height = max(block_height(rows.n_features, width), 512)
    second, first, cost = sum_blocks(rows, part, height)
    return second, first, float(cost[0])


def bound_by_subsamples(
    problem: Problem, ks: Sequence[int], n_subsamples: int, size: int, confidence: float
) -> Array:
    """Return lower bounds on the optimal ``W`` for each k, each at a confidence."""
    rows, kernel = problem.rows, problem.kernel
    weights = row_weights(rows)

    def draw_points() -> Block:
        return kernel.points(rows, np.sort(draw(weights, size, problem.rng)))

    def bound(points: Block) -> Array:
        if is_given(kernel):
            matrix = compute_gram(kernel, points, rows.workers, rows)
        else:
            dtype = rows.dtype if kernel.nonnegative else np.dtype(np.float64)
            matrix = _fill_gram(points, kernel, dtype, rows.workers)
        return sum_tails(_center_matrix(matrix), ks) / size

    # A thread has a subsample to itself: a Lanczos step is too small to be shared.
    # Large matrices are computed one at a time.
    draws = (draw_points() for _ in range(n_subsamples))
    each = rows.workers.map if size <= _TOGETHER else map
    bounds = list(each(bound, draws))
    diameter = _bound_squared_diameter(rows, kernel, weights > 0.0)
    n_draws = n_subsamples * size
    margin = diameter * sqrt(log(1.0 / (1.0 - confidence)) / (2.0 * n_draws))
    return np.maximum(np.mean(bounds, axis=0) - margin, 0.0)


def _bound_squared_diameter(rows: Rows, kernel: Kernel, counts: Array) -> float:
    """Return a bound on ``‖φ(x) − φ(y)‖²`` over the rows that count."""
    if isinstance(kernel, Linear):  # distances are the same about any origin
        mean = rows.moments().mean
        lengths = rows.map(
            lambda block: squared_norms(toarray(block) - mean),
            block_height(rows.n_features, 0),
        )
        return 4.0 * float(np.concatenate(list(lengths))[counts].max())
    largest = float(kernel.row_diagonal(rows)[counts].max())
    return (2.0 if kernel.nonnegative else 4.0) * largest


def _fill_gram(
    points: Block, kernel: Kernel, dtype: np.dtype[Any], workers: Workers
) -> Array:
    """Return ``k(X, X)`` of a few rows, in this thread."""
    n, d = points.shape
    K = np.empty((n, n), dtype)
    for start, stop in block_slices(n, min(block_height(d, n), _GRAM_COLUMNS)):
        # What is above the diagonal is known from below it.
        columns = kernel.against(points[start:stop], dtype, workers)
        K[start:, start:stop] = values = columns(points[start:])
        K[start:stop, stop:] = values[stop - start :].T
    return K


def _center_matrix(K: Array) -> Array:
    """Return ``HKH``, in place."""
    means = K.mean(axis=1).astype(np.float64)
    K -= means.astype(K.dtype)
    K -= (means - means.mean()).astype(K.dtype)[:, None]
    return K


def _largest_by_lanczos(matrix: Array, wanted: int) -> Array:
    """Return bounds on the largest eigenvalues of a large matrix, from above."""
    start = np.random.default_rng(0).standard_normal(len(matrix)).astype(matrix.dtype)
    try:
        options = {"v0": start, "tol": _LANCZOS_TOLERANCE}
        top = eigsh(matrix, wanted, return_eigenvectors=False, **options)
    except ArpackError:  # many equal eigenvalues
        return largest_eigenvalues(matrix, wanted)
    return np.asarray(top * (1.0 + _LANCZOS_TOLERANCE))


def sum_tails(matrix: Array, ks: Sequence[int]) -> Array:
    """Return the trace less the k − 1 largest eigenvalues, for each k."""
    size, trace = len(matrix), float(np.trace(matrix, dtype=np.float64))
    wanted = min(max(ks) - 1, size)
    if wanted == 0:
        top = np.empty(0)
    elif size <= _DENSE or 4 * wanted > size:
        top = largest_eigenvalues(matrix, wanted)
    else:
        top = _largest_by_lanczos(matrix, wanted)
    largest = np.cumsum([0.0, *np.sort(top.astype(np.float64))[::-1]])
    rest = [trace - largest[min(k - 1, wanted)] if k <= size else 0.0 for k in ks]
    return np.maximum(rest, 0.0)
