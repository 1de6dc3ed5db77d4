"""Where the landmarks of a spectral fit are, and the graphs that are tried on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchmeans.cluster.scales import Scale, try_bandwidths, try_neighbors
from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import Block, Rows
from sketchmeans.data.sampling import sample_rows
from sketchmeans.engine.blocks import local_engine
from sketchmeans.engine.lloyd import lloyd
from sketchmeans.engine.space import InputSpace
from sketchmeans.graphs.nearest import NearestPoints, whitening_of
from sketchmeans.graphs.weights import GivenGraph, check_graph
from sketchmeans.kernels import toarray
from sketchmeans.kernels.bandwidth import resolve_gamma
from sketchmeans.landmarks.base import centroid_landmarks, draw_distinct_rows
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.memory import FIXED_NEED, plan_memory
from sketchmeans.numerics.parameters import is_auto

#: Landmarks that "auto" tries: these shares of the rows, at most this many, and fewer
#: of many features; but some for each cluster.  Fewer landmarks smooth away more noise.
_LANDMARK_SHARES, _MOST_LANDMARKS, _LANDMARK_NUMBERS = (0.4, 0.75), 2000, 1_600_000
_LEAST_LANDMARKS, _LANDMARKS_PER_CLUSTER = 20, 4

#: Rows of the sample for each landmark, and Lloyd passes over it.
_SAMPLE_ROWS, _LANDMARK_PASSES = 6, 3

#: Maximum number of landmarks of a graph that connects rows to all of them.
_MOST_DENSE = 400

#: Numbers of clusters that "auto" considers: up to this.
MOST_CLUSTERS = 15

#: Bandwidths that "auto" tries, as multiples of the rule "mean".
_GAMMA_FACTORS = (1.0, 3.0, 10.0, 30.0, 100.0)

#: Whitened rows are tried for at most this many features, with this many rows for each,
#: unless the variance is about the same in all directions, or more than this share is
#: that of codes of categories: whitened, rare categories would be clusters.
_MOST_WHITENED, _ROWS_PER_FEATURE, _NEARLY_ROUND, _MOST_CODED = 64, 10, 2.0, 0.1

#: Numbers of neighbours that "auto" tries.
_SCALES = (4, 6, 8, 11, 15, 20)


def landmark_sizes(model: Any, rows: Rows) -> list[int]:
    """Return the numbers of landmarks to try, ascending."""
    n = len(rows)
    if model.affinity == "precomputed":
        return [n]
    if not is_auto(model.n_landmarks):
        return [min(int(model.n_landmarks), n)]
    least = min(n, _LANDMARKS_PER_CLUSTER * most_clusters(model) + _LEAST_LANDMARKS)
    most = min(_MOST_LANDMARKS, _LANDMARK_NUMBERS // rows.n_features)
    if model.affinity == "rbf":
        most = min(most, _MOST_DENSE)
    largest = min(n, most / _LANDMARK_SHARES[-1])
    return sorted({max(least, int(share * largest)) for share in _LANDMARK_SHARES})


def most_clusters(model: Any) -> int:
    """Return the number of clusters, or the largest that "auto" considers."""
    return MOST_CLUSTERS if is_auto(model.n_clusters) else int(model.n_clusters)


def weigh_by_degree(rows: Rows) -> tuple[Rows, Array | None]:
    """Return rows of a given graph, weighted by degree, and shares of its columns.

    A node of weight 3 is three nodes: its edges weigh thrice as much, seen from either
    end.
    """
    if find_adapter(rows) is not None:
        raise ValueError(
            "affinity='precomputed' does not take a Dask collection: a graph has a "
            "column for each row. Give the rows, and another affinity."
        )
    graph = check_graph(rows.load())
    shares = rows.weights
    degrees = graph @ (np.ones(len(rows)) if shares is None else shares)
    if shares is not None:
        degrees = degrees * shares
    if not degrees.any():
        raise ValueError("X has no edges: at least one should be positive.")
    weighted = Rows(graph, rows.workers, degrees, checked=True)
    return weighted.with_unit(rows.weight_unit), shares


def draw_sample(rows: Rows, n_landmarks: int, rng: np.random.Generator) -> Rows:
    """Return rows that stand for all rows, in memory: all of them if they are few."""
    size = _SAMPLE_ROWS * n_landmarks
    if len(rows) <= size:
        is_here = find_adapter(rows) is None
        return (
            rows.load() if is_here else rows.subset(np.arange(len(rows)), rows.weights)
        )
    return rows.subset(np.sort(sample_rows(rows, size, rng)), None)


def place_landmarks(
    model: Any, sample: Rows, sizes: list[int], rng: np.random.Generator
) -> list[NearestPoints]:
    """Return landmarks of each size; none where the user gave a graph.

    Also, with `whiten`, the smallest number of them for whitened rows.
    """
    if model.affinity == "precomputed":
        return []
    found = []
    if model.whiten is not True:
        points = (place_centroids(sample, size, rng) for size in sizes)
        found = [NearestPoints(one, sample.dtype) for one in points]
    whitening = _find_whitening(model, sample)
    if whitening is not None:
        mean = sample.moments().mean
        X = (toarray(sample.block(0, len(sample))) - mean) @ whitening
        white = Rows(X, sample.workers, sample.weights, checked=True)
        # Centroids of whitened rows are centroids of rows.
        back = toarray(place_centroids(white, sizes[0], rng)) @ np.linalg.pinv(
            whitening
        )
        landmarks = (back + mean).astype(sample.dtype)
        found.append(NearestPoints(landmarks, sample.dtype, whitening))
    return found


def _find_whitening(model: Any, sample: Rows) -> Array | None:
    """Return what whitens the sample, where that is wanted and changes something."""
    d, n = sample.n_features, len(sample)
    if model.whiten is False or (sample.is_sparse and model.whiten is not True):
        return None
    is_possible = 2 <= d <= _MOST_WHITENED and n > _ROWS_PER_FEATURE * d
    if not (is_possible and model.affinity == "nearest-landmarks"):
        if model.whiten is True:
            raise ValueError(
                f"whiten=True needs 2 to {_MOST_WHITENED} features, more than "
                f"{_ROWS_PER_FEATURE} rows for each, and "
                f"affinity='nearest-landmarks'; there are {d} features of {n} rows."
            )
        return None
    X = toarray(sample.block(0, n)).astype(np.float64) - sample.moments().mean
    weighted = X if sample.weights is None else X * sample.weights[:, None]
    covariance = X.T @ weighted / sample.total_weight
    spread = np.linalg.eigvalsh(covariance)
    if model.whiten is not True:
        variances = np.diagonal(covariance)
        is_code = ((X.min(axis=0) == X) | (X.max(axis=0) == X)).all(axis=0)
        has_codes = variances[is_code].sum() > _MOST_CODED * variances.sum()
        if has_codes or spread[-1] <= _NEARLY_ROUND * spread[0]:
            return None
    return whitening_of(covariance) if spread[-1] > 0.0 else None


def place_centroids(sample: Rows, count: int, rng: np.random.Generator) -> Block:
    """Return centroids of a few Lloyd passes from random rows."""
    seeds = draw_distinct_rows(sample, count, rng)
    space = InputSpace.of(sample, len(seeds))
    engine = local_engine(sample, space)
    centers = engine.centers_at(seeds[None])
    (result,) = lloyd(engine, centers, max_iter=_LANDMARK_PASSES, tol=0.0)
    filled = result.counts > 0.0
    points = space.centers(result.centers.coefficients[0, filled])
    return centroid_landmarks(sample, points).points


def try_scales(
    model: Any,
    sample: Rows,
    sets: list[NearestPoints],
    shares: Array | None,
    rng: np.random.Generator,
) -> list[Scale]:
    """Return graphs of the sample at several scales, on several sets of landmarks."""
    n_values = most_clusters(model) + 1
    if model.affinity == "precomputed":
        graph = GivenGraph(len(sample), shares)
        return [Scale.of_graph(sample, graph, 0.0, n_values)]
    if model.affinity == "rbf":
        gammas = [model.gamma]
        if is_auto(model.gamma):
            rule = resolve_gamma("mean", "sqeuclidean", sample, rng)
            gammas = [factor * rule for factor in _GAMMA_FACTORS]
        found = [try_bandwidths(sample, one.points, gammas, n_values) for one in sets]
    else:
        counts = _SCALES if is_auto(model.n_neighbors) else (int(model.n_neighbors),)
        found = [try_neighbors(sample, one, counts, n_values) for one in sets]
    return [scale for scales in found for scale in scales]


def plan_graph_memory(model: Any, rows: Rows, sizes: list[int]) -> int:
    """Return the bytes that are left for the rows of Z."""
    n, p = len(rows), sizes[-1]
    each_row = 56  # labels, distances and norms of passes over all rows
    if model.affinity == "precomputed":
        # Sparse matrices whose size is known only when they are there.
        need = 6 * 12 * rows.X.nnz + n * each_row
    else:
        entries = sum(_SCALES) if is_auto(model.n_neighbors) else model.n_neighbors
        if model.affinity == "rbf":
            entries = p * (len(_GAMMA_FACTORS) if is_auto(model.gamma) else 1)
        # Rows of the sample, and of Z at all scales; eigenvectors by a dense solver.
        sample = min(n, _SAMPLE_ROWS * p) * (
            3 * rows.row_bytes + 12 * entries * (len(sizes) + 1)
        )
        need = sample + 3 * p * p * 8 + n * each_row + rows.memory
    return plan_memory(
        FIXED_NEED + need,
        model.max_memory,
        f"{p:,} landmarks on {n:,} rows of {rows.n_features:,} features need {{}}",
        "Lower n_landmarks or raise max_memory.",
    )
