"""A bandwidth that nobody has to choose: as narrow as the clusters allow."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from sketchmeans.data.rows import Rows
from sketchmeans.data.sampling import sample_rows
from sketchmeans.engine.gram import GramEngine
from sketchmeans.engine.init import AutoSeeding
from sketchmeans.engine.lloyd import lloyd
from sketchmeans.kernels import Kernel, as_kernel, compute_gram
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers

#: What two rows have in common on average under the narrow kernel that is tried.
_NARROW_MEAN = 0.12

#: Dimensions of the rows, at that scale, up to which it is tried: a narrow kernel sees
#: curves and surfaces, but in more dimensions next to nothing.
_MOST_DIMENSIONS = 3.0

#: Rows of the sample: at least, at most, and for each cluster.
_LEAST_ROWS, _MOST_ROWS, _ROWS_PER_CLUSTER = 400, 1_000, 8

#: Rows of a table of pairs from which the narrow bandwidth is worked out.
_PAIRS = 64

#: Restarts of a fit, its most passes, and the drop of the cost at which it ends.
_RESTARTS, _PASSES, _TOLERANCE = 4, 100, 1e-3

#: Neighbours in the graph that is cut, and how much larger than the cut of the smooth
#: kernel that of the narrow one may be: so many times, and this on top.
_NEIGHBORS, _CUT_RATIO, _SMALL_CUT = 10, 1.25, 0.01

#: Agreement of two partitions from which on the smooth kernel will do.
_SAME = 0.98


def choose_bandwidth(model: Any, rows: Rows, rng: np.random.Generator) -> Kernel:
    """Return a narrow kernel if its clusters hang together, for ``gamma="auto"``.

    A sample of the rows is clustered with the rule "mean", and with a bandwidth under
    which the mean kernel value of two rows is 0.12.  The narrow kernel is taken if its
    clusters are others and their normalised cut, in a graph of nearest neighbours, is
    not much larger.  Costs two exact fits of 400 rows, whatever n is.
    """
    others = {name: getattr(model, name) for name in ("degree", "coef0")}
    smooth = as_kernel(
        model.kernel, gamma="mean", kernel_params=model.kernel_params, **others
    ).resolve(rows, rng)
    if smooth._distance is None or not hasattr(smooth, "gamma"):
        raise ValueError(
            "gamma='auto' is defined for the rbf and laplacian kernels; give a number, "
            "'mean' or 'scale'."
        )
    k = model.n_clusters
    size = min(len(rows), _MOST_ROWS, max(_LEAST_ROWS, _ROWS_PER_CLUSTER * k))
    if k < 2 or size < _ROWS_PER_CLUSTER * k:
        return smooth
    points = rows.take(np.sort(sample_rows(rows, size, rng)))
    K = np.asarray(compute_gram(smooth, points, rows.workers), dtype=np.float64)
    exponents = -np.log(np.clip(K, np.finfo(np.float64).tiny, 1.0))
    factor = _narrow_factor(exponents)
    if factor is None:
        return smooth
    labels = [
        _cluster(kernel, k, rows.workers, own)
        for kernel, own in zip(
            (K, np.exp(-factor * exponents)), rng.spawn(2), strict=True
        )
    ]
    if adjusted_rand_score(*labels) >= _SAME:
        return smooth
    graph = neighbor_graph(exponents)
    cuts = [normalised_cut(graph, one, k) for one in labels]
    if cuts[1] > _CUT_RATIO * cuts[0] + _SMALL_CUT:
        return smooth
    narrow = copy(smooth)
    narrow.gamma = factor * smooth.gamma
    return narrow


def _narrow_factor(exponents: Array) -> float | None:
    """Return by how much gamma must grow for a mean kernel value of _NARROW_MEAN.

    None if it need not, or if rows have too many dimensions at that scale: where they
    have D, twice the gamma divides the mean by 2^(D/2).
    """
    step = max(2, len(exponents) // _PAIRS)
    some = exponents[::step, 1::step]  # of different rows
    low, high = 0.0, 16.0  # of the logarithm to base 2
    if np.exp(-some).mean() <= _NARROW_MEAN:
        return None
    for _ in range(12):
        middle = 0.5 * (low + high)
        if np.exp(-(2.0**middle) * some).mean() > _NARROW_MEAN:
            low = middle
        else:
            high = middle
    factor = 2.0**low
    mean, next_mean = (np.exp(-f * some).mean() for f in (factor, 2.0 * factor))
    return factor if -2.0 * np.log2(next_mean / mean) <= _MOST_DIMENSIONS else None


def _cluster(K: Array, k: int, workers: Workers, rng: np.random.Generator) -> Array:
    """Return labels of the rows by kernel k-means."""
    engine = GramEngine(K, k, None, workers)
    rngs = rng.spawn(_RESTARTS)
    seeds = AutoSeeding().seed(engine.distances_to, engine.weights, k, rngs)
    results = lloyd(engine, engine.centers_at(seeds), max_iter=_PASSES, tol=_TOLERANCE)
    return min(results, key=lambda result: result.cost).labels


def neighbor_graph(exponents: Array) -> sparse.csr_array:
    """Return a self-tuned graph of nearest neighbours.

    Weights are ``exp(−e_ij / √(e_i e_j))``, e_ij the exponent of the kernel, or the
    squared distance, and e_i that of the last neighbour of row i.
    """
    n = len(exponents)
    count = min(_NEIGHBORS, n - 1)
    others = exponents + np.diag(np.full(n, np.inf))
    numbers = np.argpartition(others, count - 1, axis=1)[:, :count]
    near = np.take_along_axis(exponents, numbers, axis=1)
    roots = np.sqrt(np.maximum(near.max(axis=1), np.finfo(np.float64).tiny))
    weights = np.exp(-near / (roots[:, None] * roots[numbers]))
    edges = np.arange(0, n * count + 1, count)
    graph = sparse.csr_array((weights.ravel(), numbers.ravel(), edges), shape=(n, n))
    return sparse.csr_array(graph + graph.T)


def normalised_cut(graph: sparse.csr_array, labels: Array, k: int) -> float:
    """Return the sum over clusters of the share of their edges that leave them."""
    member = np.eye(k)[labels]
    volumes = graph.sum(axis=1) @ member
    within = ((graph @ member) * member).sum(axis=0)
    filled = volumes > 0.0
    return float((1.0 - within[filled] / volumes[filled]).sum())
