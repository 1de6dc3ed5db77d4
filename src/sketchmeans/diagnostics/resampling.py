"""Graphs of subsamples of a table: their eigenvalues, and how far their cuts agree."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
from scipy.linalg import qr
from scipy.stats import t as student

from sketchmeans.cluster.placement import place_centroids
from sketchmeans.cluster.scales import try_neighbors
from sketchmeans.data.rows import as_rows
from sketchmeans.data.sampling import draw
from sketchmeans.diagnostics.noise import make_noise
from sketchmeans.graphs.nearest import NearestPoints
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers

#: Landmarks that a row is connected to: the graphs that are tried.
NEIGHBORS = (4, 7, 12, 20)
#: Share of the rows in a subsample, and of landmarks among these, at most so many, and
#: at least so many for each cluster.
SUBSAMPLE, _LANDMARKS, _MOST_LANDMARKS, _PER_CLUSTER = 0.8, 0.5, 1_000, 4
#: Rows that are labelled by all subsamples: agreement hangs on which, if they are few.
_JUDGES = 2_000
#: Random starts and most passes of k-means on the eigenvectors.
_RESTARTS, _PASSES = 2, 20
#: Of so many subsamples or more, the one that agrees least is left out.
_ODD = 6
#: Eigenvalues below this are about as good as zero.
_SMALL = 3e-4


@dataclass(frozen=True)
class Resampling:
    """What subsamples of a table say, for each graph (g) and number of clusters (k).

    Attributes
    ----------
    gaps : ndarray of shape (subsamples, g, k)
        Logarithm of ``μ_{k+1} / μ_k``, the relative gap between eigenvalues.
    agreement, error : ndarray of shape (g, k)
        Adjusted Rand index between the labels that two subsamples give to the same
        rows, the mean over pairs (but those of the one that agrees least), and its
        standard error: by the jackknife over subsamples, or from one table of noise to
        the next.
    """

    gaps: Array
    agreement: Array
    error: Array


def resample(
    X: Array,
    ks: list[int],
    n_subsamples: int,
    workers: Workers,
    rng: np.random.Generator,
) -> Resampling:
    """Cut graphs of subsamples of the rows into k clusters each, and compare them."""
    judges = X[rng.permutation(len(X))[:_JUDGES]]
    found = [_cut_subsample(X, judges, ks, workers, rng) for _ in range(n_subsamples)]
    gaps, labels = zip(*found, strict=True)
    pairs = list(combinations(range(n_subsamples), 2))
    cuts = np.array(labels)
    agreement, error = np.empty((2, *cuts.shape[1:3]))
    for i, j in np.ndindex(*agreement.shape):
        scores = _compare_all(cuts[:, i, j], pairs, ks[j])
        agreement[i, j], error[i, j] = _summarise(scores, n_subsamples)
    return Resampling(np.array(gaps), agreement, error)


def _summarise(scores: Array, count: int) -> tuple[float, float]:
    """Return the mean over pairs of subsamples but the oddest one, and its error.

    A few of a hundred subsamples have other clusters than the rest, and whether there
    is one among ten, which lowers the mean by 0.05, hangs on the seed.
    """
    if count >= _ODD:
        numbers = np.array(list(combinations(range(count), 2)))
        without = [scores[(numbers != i).all(axis=1)] for i in range(count)]
        scores, count = max(without, key=lambda one: float(one.mean())), count - 1
    return float(scores.mean()), float(jackknife_pairs(scores, count))


def resample_noise(
    X: Array,
    ks: list[int],
    n_tables: int,
    workers: Workers,
    rng: np.random.Generator,
    *,
    normal: bool,
) -> Resampling:
    """Do the same with pairs of subsamples, each of a table of noise of its own.

    Subsamples of one table of noise are much alike, and tables of noise are not.
    """
    found = [
        resample(make_noise(X, rng, normal=normal), ks, 2, workers, rng)
        for _ in range(n_tables)
    ]
    agreement = np.array([one.agreement for one in found])
    return Resampling(
        np.array([one.gaps.mean(axis=0) for one in found]),
        agreement.mean(axis=0),
        agreement.std(axis=0, ddof=1) / sqrt(n_tables),
    )


def _cut_subsample(
    X: Array,
    judges: Array,
    ks: list[int],
    workers: Workers,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return gaps of shape (g, k), and labels of the judges of shape (g, k, judges)."""
    size = int(SUBSAMPLE * len(X))
    rows = as_rows(X[rng.permutation(len(X))[:size]], workers)
    p = min(int(_LANDMARKS * size), _MOST_LANDMARKS)
    p = min(max(p, _PER_CLUSTER * max(ks)), size)
    landmarks = NearestPoints(place_centroids(rows, p, rng), rows.dtype)
    nearest = landmarks.find(judges, 1)[1][:, 0]
    gaps = np.zeros((len(NEIGHBORS), len(ks)))
    labels = np.zeros((len(NEIGHBORS), len(ks), len(judges)), dtype=np.int32)
    # Few landmarks have fewer graphs; the densest then counts more than once.
    graphs = try_neighbors(rows, landmarks, NEIGHBORS, max(ks) + 1)
    for i in range(len(NEIGHBORS)):
        spectrum = graphs[min(i, len(graphs) - 1)].spectrum
        values = np.append(spectrum.values, np.ones(max(ks) + 1)) + _SMALL
        for j, k in enumerate(ks):
            gaps[i, j] = np.log(values[k] / values[k - 1])
            labels[i, j] = _assign_clusters(spectrum.vectors[:, :k], rng)[nearest]
    return gaps, labels


def _assign_clusters(vectors: Array, rng: np.random.Generator) -> Array:
    """Return the cluster of each landmark from its entries in k eigenvectors.

    Landmarks of one cluster point in one direction: k-means of these directions, from
    k that a pivoted QR factorisation finds to point apart (Damle, Minden & Ying, 2019)
    and from random ones.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.maximum(lengths, np.finfo(float).tiny)
    k = directions.shape[1]
    _, _, pivots = qr(directions.T, mode="economic", pivoting=True)
    starts = [pivots[:k], *(_spread(directions, k, rng) for _ in range(_RESTARTS))]
    found = [_run_kmeans(directions, directions[start]) for start in starts]
    return max(found, key=lambda one: one[0])[1]


def _spread(points: Array, k: int, rng: np.random.Generator) -> Array:
    """Return the numbers of k points, each drawn far from those before."""
    chosen = [int(rng.integers(len(points)))]
    far = np.full(len(points), np.inf)
    squares = np.einsum("ij,ij->i", points, points)
    for _ in range(k - 1):
        last = chosen[-1]
        distances = squares + squares[last] - 2.0 * (points @ points[last])
        far = np.minimum(far, np.maximum(distances, 0.0))
        chosen.append(int(draw(far + np.finfo(float).tiny, 1, rng)[0]))
    return np.array(chosen)


def _run_kmeans(points: Array, centers: Array) -> tuple[float, Array]:
    """Return how near points of length one are to their centres, and their labels."""
    labels = np.full(len(points), -1)
    numbers = np.arange(len(points))
    for _ in range(_PASSES):
        scores = points @ centers.T - 0.5 * np.square(centers).sum(axis=1)
        before, labels = labels, scores.argmax(axis=1)
        if (labels == before).all():
            break
        # One row for each cluster: the other way round takes six times as long.
        member = (labels == np.arange(len(centers))[:, None]).astype(np.float64)
        sizes = member.sum(axis=1, keepdims=True)
        centers = np.where(sizes, member @ points / np.maximum(sizes, 1.0), centers)
    return float(scores[numbers, labels].sum()), labels


def _compare_all(labels: Array, pairs: list[tuple[int, int]], k: int) -> Array:
    """Return the adjusted Rand index of each pair of labellings, of shape (s, rows).

    As scikit-learn has it, without its checks, which take longer than the sums.
    """
    n = labels.shape[1]

    def count_pairs(sizes: Array) -> float:
        return float((sizes * (sizes - 1.0)).sum()) / (n * (n - 1.0))

    alone = [count_pairs(np.bincount(one, minlength=k)) for one in labels]
    scores = np.ones(len(pairs))
    for number, (a, b) in enumerate(pairs):
        together = count_pairs(np.bincount(labels[a] * k + labels[b]))
        chance, most = alone[a] * alone[b], 0.5 * (alone[a] + alone[b])
        if most > chance:
            scores[number] = (together - chance) / (most - chance)
    return scores


def jackknife_pairs(scores: Array, count: int) -> Array:
    """Return the standard error of a mean over all pairs of `count` subsamples.

    Pairs share subsamples, so one subsample at a time is left out.  The pairs, along
    the first axis, are in the order of `itertools.combinations`.
    """
    if count < 3:
        return np.full(scores.shape[1:], np.nan)
    numbers = np.array(list(combinations(range(count), 2)))
    without = np.stack(
        [scores[(numbers != i).all(axis=1)].mean(axis=0) for i in range(count)]
    )
    spread = np.square(without - without.mean(axis=0)).sum(axis=0)
    return np.asarray(np.sqrt(spread * (count - 1) / count))


def interval(
    mean: Array, error: Array, count: int, confidence: float
) -> tuple[Array, Array]:
    """Return the ends of an interval for a mean over pairs of `count` subsamples."""
    width = student.ppf(0.5 + 0.5 * confidence, count - 1) * error
    return mean - width, np.minimum(mean + width, 1.0)
