"""Lloyd's algorithm: one block, one pass, refills, and the loop around them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sketchmeans import KernelKMeans, NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.engine.assign import CenterMatrix, ClusterSums
from sketchmeans.engine.blocks import local_engine
from sketchmeans.engine.gram import GramEngine
from sketchmeans.engine.lloyd import lloyd
from sketchmeans.engine.restarts import Schedule, Search
from sketchmeans.engine.types import Centers, LloydResult
from sketchmeans.numerics.parallel import Workers
from tests import oracles
from tests.pairs import every_pair, every_value

both_estimators = pytest.mark.parametrize("estimator", [KernelKMeans, NystromKMeans])
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


class PlainSpace:
    """Plain k-means on tiny blocks: ``b_x = x`` and ``M = I``."""

    constant_norm = None
    storable = True
    is_euclidean = True

    def __init__(self, n_features, dtype=np.float64, height=8):
        self.dtype = np.dtype(dtype)
        self.n_columns = n_features
        self.height = height
        self.rows_read = 0

    def kernel_block(self, block, out=None):
        self.rows_read += len(block)
        if out is None:
            return np.array(block, dtype=self.dtype)
        out[...] = block
        return out

    def row_norms(self, block, numbers):
        return (np.asarray(block, float) ** 2).sum(axis=1)

    def coefficients(self, means):
        return means.T


@pytest.fixture
def workers():
    with Workers(2) as workers:
        yield workers


def block_engine(X, workers, weights=None, height=8, budget=0):
    space = PlainSpace(X.shape[1], X.dtype, height)
    return local_engine(as_rows(X, workers, weights), space, budget)


def gram_engine(X, k, workers, weights=None):
    return GramEngine(X @ X.T, k, weights, workers)


def centers_at_points(points):
    """Return plain centres at points of shape (R, k, d)."""
    points = np.asarray(points, float)
    return Centers(points, (points**2).sum(axis=2), points)


def data(n=60, d=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(4, d))[rng.integers(4, size=n)] * 2.0).astype(
        dtype
    ) + rng.normal(size=(n, d)).astype(dtype)


def some_weights(n, kind, seed=0):
    rng = np.random.default_rng([seed, 5])
    return {
        "none": None,
        "integers with zeros": rng.integers(0, 4, n).astype(float),
        "fractions": rng.random(n) + 0.1,
    }[kind]


WEIGHTS = ["none", "integers with zeros", "fractions"]
every_weight = pytest.mark.parametrize("weights", WEIGHTS)


def roundings(dtype):
    """Return how far sums in a float type may be off."""
    if dtype is np.float32:
        return {"rtol": 1e-4, "atol": 1e-3}
    return {"rtol": 1e-9, "atol": 1e-11}


def naive_pass(X, points, weights):
    """Return labels, distances, sums, counts and cost of one pass, by loops."""
    k = len(points)
    weights = np.ones(len(X)) if weights is None else weights
    labels, distances = [], np.empty((len(X), k))
    sums, counts, cost = np.zeros((k, X.shape[1])), np.zeros(k), 0.0
    for i, x in enumerate(X.astype(float)):
        for j, c in enumerate(points):
            distances[i, j] = ((x - c) ** 2).sum()
        nearest = int(distances[i].argmin())
        labels.append(nearest)
        sums[nearest] += weights[i] * x
        counts[nearest] += weights[i]
        cost += weights[i] * distances[i, nearest]
    return np.array(labels), distances, sums, counts, cost / weights.sum()


def means_of(X, labels, k, mass):
    """Return the weighted mean of the rows of each cluster."""
    members = [labels == j for j in range(k)]
    return np.stack([np.average(X[m].astype(float), 0, mass[m]) for m in members])


# --- one block ------------------------------------------------------------------------


@every_pair(
    dtype=[np.float32, np.float64],
    weights=WEIGHTS,
    restarts=[1, 3],
    k=[1, 2, 8, 11],
    constant=[False, True],
    few_scores=[0, 2**14],
)
def test_a_block_is_assigned_as_by_loops(
    dtype, weights, restarts, k, constant, few_scores, monkeypatch
):
    monkeypatch.setattr("sketchmeans.engine.assign._FEW_SCORES", few_scores)
    X = data(13, 4, seed=1, dtype=dtype)
    if constant:  # rows on a sphere have one norm
        X /= np.sqrt((X**2).sum(axis=1, keepdims=True))
    points = np.random.default_rng(2).normal(size=(restarts, k, 4))
    weights = some_weights(13, weights)
    matrix = CenterMatrix(centers_at_points(points), np.dtype(dtype), 16)
    norms = 1.0 if constant else (X.astype(float) ** 2).sum(axis=1)
    nearest = matrix.assign(X, norms)
    clusters = ClusterSums.zeros(restarts, k, 4)
    clusters.add_assigned(X, nearest.labels, weights, np.dtype(dtype))
    near = roundings(dtype)
    total = 13.0 if weights is None else weights.sum()
    for r in range(restarts):
        labels, distances, sums, counts, cost = naive_pass(X, points[r], weights)
        each = np.ones(13) if weights is None else weights
        found = each @ nearest.distances[:, r].astype(float)
        np.testing.assert_allclose(found, cost * total, **near)
        part = slice(r * k, (r + 1) * k)
        np.testing.assert_array_equal(nearest.labels[:, r], labels)
        np.testing.assert_allclose(clusters.sums[part], sums, **near)
        np.testing.assert_allclose(clusters.counts[part], counts, rtol=1e-12)
        if restarts == 1:
            ordered = np.sort(distances, axis=1)
            own = nearest.distances[:, 0]
            np.testing.assert_allclose(own, ordered[:, 0], **near)
            second = ordered[:, 1] if k > 1 else np.full(13, np.inf)
            np.testing.assert_allclose(nearest.second, second, **near)


@pytest.mark.parametrize("few_scores", [0, 2**14])
@pytest.mark.parametrize("k", [3, 300])
def test_the_first_of_equal_centres_is_the_nearest(few_scores, k, monkeypatch):
    monkeypatch.setattr("sketchmeans.engine.assign._FEW_SCORES", few_scores)
    points = np.zeros((2, k, 4))
    points[0, : k - 1] = 9.0
    X = data(13, 4, seed=1)
    matrix = CenterMatrix(centers_at_points(points), np.dtype(np.float64), 16)
    labels = matrix.assign(X, (X**2).sum(axis=1)).labels
    np.testing.assert_array_equal(labels, np.tile([k - 1, 0], (13, 1)))


# --- one pass -------------------------------------------------------------------------


@every_pair(
    dtype=[np.float32, np.float64], weights=WEIGHTS, restarts=[1, 3], n=[1, 8, 61]
)
def test_a_pass_over_blocks_equals_loops(dtype, weights, restarts, n, workers):
    X, k = data(n, seed=3, dtype=dtype), 5
    points = data(restarts * k, seed=4).reshape(restarts, k, 3)
    weights = some_weights(n, weights, seed=1)
    found = block_engine(X, workers, weights).assign(centers_at_points(points))
    near = roundings(dtype)
    assert found.sums.dtype == found.counts.dtype == np.float64
    for r in range(restarts):
        labels, _, sums, counts, cost = naive_pass(X, points[r], weights)
        np.testing.assert_array_equal(found.labels[:, r], labels)
        np.testing.assert_allclose(found.sums[r], sums, **near)
        np.testing.assert_allclose(found.counts[r], counts, rtol=1e-12)
        assert found.costs[r] == pytest.approx(
            cost, rel=1e-4 if near["rtol"] > 1e-9 else 1e-10
        )


@every_weight
def test_a_pass_over_a_gram_matrix_equals_loops(weights, workers):
    X, k = data(40, seed=5), 4
    weights = some_weights(40, weights)
    engine = gram_engine(X, k, workers, weights)
    seeds = np.array([[0, 7, 20, 33], [5, 6, 7, 8]])
    found = engine.assign(engine.centers_at(seeds))
    for r in range(2):
        labels, _, _, counts, cost = naive_pass(X, X[seeds[r]], weights)
        np.testing.assert_array_equal(found.labels[:, r], labels)
        np.testing.assert_allclose(found.counts[r], counts)
        assert found.costs[r] == pytest.approx(cost, rel=1e-9)


@both_types
@every_weight
def test_later_passes_that_skip_rows_equal_passes_over_all(dtype, weights, workers):
    X, k = data(200, seed=6, dtype=dtype), 4
    weights = some_weights(200, weights)
    engine = block_engine(X, workers, weights)
    rng = np.random.default_rng(7)
    points, read = data(k, seed=8), []
    for step in (0.0, 0.3, 0.1, 0.1, 0.03, 0.01, 0.01, 0.001, 0.5, 0.01, 2.0, 0.0):
        points = points + step * rng.normal(size=points.shape)
        centers = centers_at_points(points[None])
        before = engine.space.rows_read
        found = engine.assign(centers)
        read.append(engine.space.rows_read - before)
        fresh = block_engine(X, workers, weights).assign(centers)
        np.testing.assert_array_equal(found.labels, fresh.labels)
        near = roundings(dtype)
        np.testing.assert_allclose(found.sums, fresh.sums, **near)
        np.testing.assert_allclose(found.counts, fresh.counts, rtol=1e-12)
        np.testing.assert_allclose(found.costs, fresh.costs, rtol=near["rtol"])
    # Rows are skipped where the centres hardly moved, and only there.
    assert read[0] == read[-2] == 200
    assert 0 < min(read[1:]) < 100 or read.count(0)


def test_stored_coordinates_have_the_bits_of_computed_ones(workers):
    X = np.random.default_rng(9).normal(size=(50, 130)).astype(np.float32)
    centers = centers_at_points(X[None, :6])
    stored = block_engine(X, workers, budget=10**9)
    computed = block_engine(X, workers, budget=0)
    for _ in range(2):
        one, other = stored.assign(centers), computed.assign(centers)
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.sums, other.sums)
        np.testing.assert_array_equal(one.costs, other.costs)


def test_leading_rows_are_an_engine_of_their_own(workers):
    X, weights = data(64, seed=10), some_weights(64, "fractions")
    centers = centers_at_points(X[None, :4])
    engine = block_engine(X, workers, weights)
    engine.assign(centers)
    part = engine.leading(24).assign(centers)
    alone = block_engine(X[:24], workers, weights[:24]).assign(centers)
    np.testing.assert_array_equal(part.labels, alone.labels)
    np.testing.assert_array_equal(part.sums, alone.sums)
    np.testing.assert_allclose(part.costs, alone.costs)


# --- means ----------------------------------------------------------------------------


@every_weight
def test_centers_of_a_partition_are_its_means(weights, workers):
    X, k = data(45, seed=11), 3
    labels = np.random.default_rng(12).integers(k, size=45).astype(np.int32)
    weights = some_weights(45, weights)
    mass = np.ones(45) if weights is None else weights
    means = np.stack(
        [np.average(X[labels == j], 0, mass[labels == j]) for j in range(k)]
    )
    given, centers = block_engine(X, workers, weights).partition(labels, k)
    cost = oracles.cost_of_partition(X @ X.T, labels, weights)
    assert given.costs[0] == pytest.approx(cost, rel=1e-10)
    np.testing.assert_allclose(given.counts[0], np.bincount(labels, mass))
    np.testing.assert_allclose(centers.coefficients[0], means, rtol=1e-12)
    np.testing.assert_allclose(centers.squared_norms[0], (means**2).sum(axis=1))
    gram = gram_engine(X, k, workers, weights).centers_of(labels)
    alpha = oracles.of_partition(labels, k, weights)
    np.testing.assert_allclose(gram.coefficients[:, 0], alpha, atol=1e-15)
    np.testing.assert_allclose(gram.squared_norms[0], (means**2).sum(axis=1))


@every_pair(
    dtype=[np.float32, np.float64],
    weights=WEIGHTS,
    restarts=[1, 3],
    kind=["blocks", "gram"],
)
def test_an_update_moves_centers_to_the_means(dtype, weights, restarts, kind, workers):
    # Pass after pass: Gram sums are corrected by the rows that moved, not anew.
    X, k = data(80, seed=13, dtype=dtype), 4
    weights = some_weights(80, weights)
    generators = np.random.default_rng(14).spawn(restarts)
    seeds = np.stack([rng.permutation(80) for rng in generators])
    engine = (
        block_engine(X, workers, weights)
        if kind == "blocks"
        else gram_engine(X, k, workers, weights)
    )
    mass = np.ones(80) if weights is None else weights
    centers = engine.centers_at(seeds[:, :k])
    near = roundings(dtype)
    for _ in range(7):
        assignment = engine.assign(centers)
        assert (assignment.counts > 0).all()
        centers = engine.update(assignment, centers)
        for r in range(restarts):
            labels = assignment.labels[:, r]
            means = means_of(X, labels, k, mass)
            alpha = centers.coefficients
            found = alpha[r] if kind == "blocks" else alpha[:, r].T @ X
            np.testing.assert_allclose(found, means, **near)
            norms = (means**2).sum(axis=1)
            np.testing.assert_allclose(centers.squared_norms[r], norms, **near)
            if kind == "gram":
                sums = centers.sums[:, r] / centers.counts[r]
                np.testing.assert_allclose(sums, X @ means.T, **near)


def test_gram_centers_of_a_partition_are_the_means_of_its_rows(workers):
    X, points = data(50, seed=15), data(3, seed=16)
    engine = gram_engine(X, 3, workers)
    labels, *_ = naive_pass(X, points, None)
    centers = engine.centers_of(labels.astype(np.int32))
    expected = oracles.of_partition(labels, 3)
    np.testing.assert_allclose(centers.coefficients[:, 0], expected, atol=1e-15)


# --- empty clusters -------------------------------------------------------------------


def engine_of(kind, X, k, workers, weights=None):
    if kind == "blocks":
        return block_engine(X, workers, weights)
    return gram_engine(X, k, workers, weights)


def plain_centers(kind, centers, X):
    """Return the centres of the first restart as points."""
    alpha = centers.coefficients
    return alpha[0] if kind == "blocks" else alpha[:, 0].T @ X


both_engines = pytest.mark.parametrize("kind", ["blocks", "gram"])


@both_engines
def test_an_empty_cluster_takes_over_the_costliest_row(kind, workers):
    X = np.array([[0.0], [0.1], [5.0], [0.2], [9.0], [-1.0]]) + 1.0
    engine = engine_of(kind, X, 2, workers)
    centers = engine.centers_at(np.array([[0, 0]]))
    assignment = engine.assign(centers)
    np.testing.assert_array_equal(assignment.counts, [[6.0, 0.0]])
    moved = engine.update(assignment, centers)
    rest = X[[0, 1, 2, 3, 5]].mean()
    np.testing.assert_allclose(plain_centers(kind, moved, X), [[rest], [10.0]])


@both_engines
def test_the_costliest_row_is_so_by_weight_and_never_weighs_nothing(kind, workers):
    X = np.array([[0.0], [3.0], [9.0], [-2.0], [0.5]]) + 1.0
    weights = np.array([1.0, 10.0, 0.0, 1.0, 20.0])
    engine = engine_of(kind, X, 2, workers, weights)
    centers = engine.centers_at(np.array([[0, 0]]))
    moved = engine.update(engine.assign(centers), centers)
    rest = (1.0 + -1.0 + 20 * 1.5) / 22.0
    np.testing.assert_allclose(plain_centers(kind, moved, X), [[rest], [4.0]])


@both_engines
def test_the_costliest_row_is_found_behind_many_that_are_far_but_light(kind, workers):
    X = np.r_[np.full(300, 50.0) + np.arange(300), [10.0], np.zeros(20)][:, None]
    weights = np.r_[np.full(300, 1e-6), [5.0], np.ones(20)]
    engine = engine_of(kind, X, 2, workers, weights)
    centers = engine.centers_at(np.array([[310, 310]]))
    moved = engine.update(engine.assign(centers), centers)
    assert plain_centers(kind, moved, X)[1] == pytest.approx(10.0)


@both_engines
def test_two_empty_clusters_take_the_two_costliest_rows_in_order(kind, workers):
    X = np.array([[0.0], [0.1], [5.0], [0.2], [9.0], [-1.0]]) + 1.0
    engine = engine_of(kind, X, 4, workers)
    centers = engine.centers_at(np.array([[0, 0, 5, 0]]))
    moved = engine.update(engine.assign(centers), centers)
    expected = [[X[[0, 1, 3]].mean()], [10.0], [0.0], [6.0]]
    np.testing.assert_allclose(plain_centers(kind, moved, X), expected)


@both_engines
def test_a_refill_leaves_no_other_cluster_empty(kind, workers):
    # The costliest row is all that its cluster has.
    X = np.array([[0.0], [0.5], [100.0]])
    engine = engine_of(kind, X, 3, workers)
    points = np.array([[0.2], [90.0], [-500.0]])
    if kind == "gram":  # assigns to the points, refills and moves
        moved = engine.centers_of(np.array([0, 0, 1], dtype=np.int32))
    else:
        centers = engine.centers_of_means(points[None])
        assignment = engine.assign(centers)
        np.testing.assert_array_equal(assignment.counts, [[2.0, 1.0, 0.0]])
        moved = engine.update(assignment, centers)
    found = np.sort(plain_centers(kind, moved, X).ravel())
    np.testing.assert_allclose(found, [0.0, 0.5, 100.0])


@both_engines
def test_an_empty_cluster_that_cannot_be_refilled_keeps_its_centre(kind, workers):
    X = np.repeat([[1.0, 0.0], [0.0, 2.0]], 4, axis=0)
    engine = engine_of(kind, X, 3, workers)
    centers = engine.centers_at(np.array([[0, 4, 0]]))
    moved = engine.update(engine.assign(centers), centers)
    np.testing.assert_allclose(plain_centers(kind, moved, X), X[[0, 4, 0]])


@every_weight
def test_several_partitions_in_one_pass_are_each_as_alone(weights, workers):
    X, k = data(45, seed=11), 3
    labels = np.random.default_rng(12).integers(k, size=(45, 4)).astype(np.int32)
    labels[:, 2] = 1  # two clusters are empty
    engine = block_engine(X, workers, some_weights(45, weights))
    given, centers = engine.partition(labels, k)
    for i in range(4):
        alone, own = engine.partition(labels[:, i], k)
        assert given.costs[i] == pytest.approx(alone.costs[0], rel=1e-12)
        np.testing.assert_allclose(given.counts[i], alone.counts[0])
        np.testing.assert_allclose(centers.means[i], own.means[0], rtol=1e-12)


@both_engines
def test_a_cluster_that_loses_all_its_rows_keeps_its_centre(kind, workers):
    # Nothing is left to refill it with: every row lies on its centre.
    X = np.repeat([[1.0, 0.0], [0.0, 2.0]], 5, axis=0)
    labels = np.array([0, 0, 0, 0, 2, 1, 1, 1, 1, 2], dtype=np.int32)
    engine = engine_of(kind, X, 3, workers)
    centers = (
        engine.partition(labels, 3)[1]
        if kind == "blocks"
        else engine.centers_of(labels)
    )
    expected = [[1.0, 0.0], [0.0, 2.0], [0.5, 1.0]]
    for _ in range(3):
        assignment = engine.assign(centers)
        np.testing.assert_array_equal(assignment.counts, [[5.0, 5.0, 0.0]])
        centers = engine.update(assignment, centers)
        np.testing.assert_allclose(plain_centers(kind, centers, X), expected)
        distances = (
            engine.all_distances(centers) ** 2
            if kind == "blocks"
            else engine.distances(centers)[:, 0]
        )
        np.testing.assert_allclose(distances[[0, 9], 2], 1.25)


def test_a_gram_cluster_that_regains_rows_forgets_those_it_lost(workers):
    X = np.repeat([[1.0, 0.0], [0.0, 2.0]], 5, axis=0)
    labels = np.array([0, 0, 0, 0, 2, 1, 1, 1, 1, 2], dtype=np.int32)
    engine = gram_engine(X, 3, workers)
    centers = engine.centers_of(labels)
    lost = engine.assign(centers)
    centers = engine.update(lost, centers)
    labels = lost.labels[:, 0].copy()
    labels[0] = 2
    counts = np.bincount(labels, minlength=3)[None] * 1.0
    centers = engine.update(
        replace(lost, labels=labels[:, None], counts=counts), centers
    )
    np.testing.assert_allclose(centers.sums[:, 0, 2], X @ X[0])
    assert centers.squared_norms[0, 2] == pytest.approx(1.0)


@both_engines
def test_a_centre_whose_rows_weigh_nothing_stays_where_it_is(kind, workers):
    X, weights = np.array([[1.0], [1.0], [1.0], [6.0]]), np.array([1.0, 1.0, 1.0, 0.0])
    engine = engine_of(kind, X, 2, workers, weights)
    centers = engine.centers_at(np.array([[0, 3]]))
    for _ in range(2):
        centers = engine.update(engine.assign(centers), centers)
        np.testing.assert_allclose(plain_centers(kind, centers, X), [[1.0], [6.0]])


@both_engines
def test_restarts_are_refilled_each_on_its_own(kind, workers):
    X = data(30, seed=17)
    engine = engine_of(kind, X, 3, workers)
    seeds = np.array([[0, 10, 20], [4, 4, 4], [1, 1, 9]])
    centers = engine.centers_at(seeds)
    moved = engine.update(engine.assign(centers), centers)
    for r in range(3):
        alone = engine_of(kind, X, 3, workers)
        start = alone.centers_at(seeds[[r]])
        expected = alone.update(alone.assign(start), start)
        np.testing.assert_allclose(
            plain_centers(kind, moved.select([r]), X),
            plain_centers(kind, expected, X),
            rtol=1e-12,
        )


@every_value
@both_estimators
@both_types
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
@pytest.mark.parametrize("weighted", [False, True])
def test_equal_starts_end_with_k_clusters_every_time(
    estimator, dtype, kernel, weighted
):
    X = data(60, seed=18, dtype=dtype)
    weights = some_weights(60, "integers with zeros") if weighted else None
    settings = {"init": np.repeat(7, 6), "kernel": kernel, "n_jobs": 1}
    if estimator is NystromKMeans:
        settings["landmarks"] = np.arange(0, 60, 2)
    fits = [estimator(6, **settings).fit(X, sample_weight=weights) for _ in range(2)]
    assert (fits[0].cluster_sizes_ > 0).all()
    np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
    np.testing.assert_array_equal(fits[0].cost_path_, fits[1].cost_path_)
    np.testing.assert_array_equal(
        fits[0].cluster_sizes_, np.bincount(fits[0].labels_, weights, minlength=6)
    )


@every_value
@both_estimators
@pytest.mark.parametrize("tol", [0.0, 1e-4])
@pytest.mark.parametrize("seed", range(6))
def test_no_cluster_stays_empty_while_there_are_distinct_rows(estimator, tol, seed):
    # Repeated rows: two empty clusters may be given the same value at first.
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(6, 2)) * [5.0, 1.0]
    X = values[np.r_[0:6, rng.integers(6, size=34)]]
    settings = {"init": np.repeat(0, 5), "gamma": 0.1, "n_jobs": 1, "tol": tol}
    if estimator is NystromKMeans:
        settings["landmarks"] = np.arange(6)
    model = estimator(5, **settings).fit(X)  # a warning would be an error
    assert (model.cluster_sizes_ > 0).all()


@both_estimators
def test_a_refill_that_gains_little_is_followed_by_the_next(estimator):
    # Two empty clusters are first given two copies of one outlier, which lowers the
    # cost of many rows by less than tol.  There are rows for the other one, too.
    rng = np.random.default_rng(23)
    X = np.vstack([rng.normal(size=(2000, 2)), [[5.0, 5.0], [5.0, 5.0]]])
    settings = {"kernel": "linear", "n_jobs": 1, "tol": 0.1}
    if estimator is NystromKMeans:
        settings["landmarks"] = np.arange(10)
    start = estimator(2, init=np.array([0, 1]), **settings).fit(X)
    model = estimator(4, init=start.exemplar_indices_[[0, 1, 0, 1]], **settings)
    model.fit(X)
    assert (model.cluster_sizes_ > 0).all()


@both_estimators
def test_clusters_that_stay_empty_do_not_prolong_the_fit(estimator):
    X = np.repeat([[0.0, 0.0], [3.0, 4.0]], 5, axis=0)
    settings = {} if estimator is KernelKMeans else {"landmarks": np.array([0, 5])}
    model = estimator(3, gamma=1.0, init=np.array([0, 5, 0]), **settings)
    with pytest.warns() as caught:
        model.fit(X)
    assert [str(w.message)[:14] for w in caught] == ["Number of dist"]
    assert model.converged_
    assert model.n_iter_ <= 4


# --- the loop -------------------------------------------------------------------------


@both_engines
@every_weight
def test_restarts_side_by_side_are_those_run_alone(kind, weights, workers):
    X, k = data(90, seed=19), 5
    weights = some_weights(90, weights)
    rng = np.random.default_rng(20)
    seeds = np.stack([rng.choice(90, k, replace=False) for _ in range(6)])
    engine = engine_of(kind, X, k, workers, weights)
    together = lloyd(engine, engine.centers_at(seeds), max_iter=100, tol=0.0)
    assert len({result.n_iter for result in together}) > 1
    for result, start in zip(together, seeds, strict=True):
        lone = engine_of(kind, X, k, workers, weights)
        (alone,) = lloyd(lone, lone.centers_at(start[None]), max_iter=100, tol=0.0)
        np.testing.assert_array_equal(result.labels, alone.labels)
        np.testing.assert_allclose(result.cost_path, alone.cost_path, rtol=1e-9)
        np.testing.assert_allclose(
            plain_centers(kind, result.centers, X),
            plain_centers(kind, alone.centers, X),
            rtol=1e-8,
            atol=1e-10,
        )
        np.testing.assert_allclose(result.counts, alone.counts)
        assert result.converged


@every_pair(kind=["blocks", "gram"], weights=WEIGHTS, seed=range(4))
def test_the_loop_equals_naive_lloyd(kind, weights, seed, workers):
    X, k = data(70, seed=seed + 21), 4
    weights = some_weights(70, weights, seed)
    start = np.random.default_rng(seed).choice(70, k, replace=False)
    engine = engine_of(kind, X, k, workers, weights)
    (found,) = lloyd(engine, engine.centers_at(start[None]), max_iter=100, tol=0.0)
    labels, centers, path = oracles.plain_lloyd(X, X[start], weights)
    np.testing.assert_array_equal(found.labels, labels)
    assert found.cost == pytest.approx(path[-1], rel=1e-9)
    np.testing.assert_allclose(
        plain_centers(kind, found.centers, X), centers, rtol=1e-8
    )
    # Labels of rows without weight do not count: it may end one pass earlier.
    assert len(path) - 1 <= found.n_iter
    both = min(found.n_iter, len(path))
    np.testing.assert_allclose(found.cost_path[:both], path[:both], rtol=1e-9)


@both_engines
def test_max_iter_bounds_the_passes(kind, workers):
    X = data(90, seed=22)
    engine = engine_of(kind, X, 5, workers)
    for passes in (1, 2, 3):
        (found,) = lloyd(
            engine, engine.centers_at(np.arange(5)[None]), max_iter=passes, tol=0.0
        )
        assert found.n_iter == passes
        assert not found.converged
        # Labels, centres and cost belong together.
        points = plain_centers(kind, found.centers, X)
        labels, *_, cost = naive_pass(X, points, None)
        np.testing.assert_array_equal(found.labels, labels)
        assert found.cost == pytest.approx(cost, rel=1e-9)


@both_engines
def test_every_pass_is_reported_and_may_be_the_last(kind, workers):
    X = data(90, seed=22)
    engine = engine_of(kind, X, 5, workers)
    seen = []

    def on_pass(number, cost):
        seen.append((number, cost))
        return number == 3

    starts = np.array([np.arange(5), np.arange(5) + 40])
    results = lloyd(
        engine, engine.centers_at(starts), max_iter=50, tol=0.0, on_pass=on_pass
    )
    assert [number for number, _ in seen] == [1, 2, 3]
    assert all(result.n_iter == 3 for result in results)
    for t, (_, cost) in enumerate(seen):
        assert cost == min(min(result.cost_path[: t + 1]) for result in results)


KERNELS = {
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.3},
    "polynomial": {"gamma": 0.2, "degree": 2},
    "linear": {},
    "cosine": {},
    "arc-cosine": {},
}


@every_pair(
    estimator=[KernelKMeans, NystromKMeans],
    dtype=[np.float32, np.float64],
    kernel=KERNELS,
    weighted=[False, True],
)
def test_the_cost_never_rises(estimator, dtype, kernel, weighted):
    rounding = 1e-11 if dtype is np.float64 else 2e-5
    for seed in range(5):
        X = data(150, seed=seed + 30, dtype=dtype)
        weights = some_weights(150, "integers with zeros", seed) if weighted else None
        model = estimator(
            7,
            kernel=kernel,
            **KERNELS[kernel],
            init="random",
            n_init=1,
            tol=0.0,
            random_state=seed,
            n_jobs=1,
        ).fit(X, sample_weight=weights)
        path = model.cost_path_
        assert (np.diff(path) <= rounding * path[:-1]).all()
        assert path[-1] < 0.95 * path[0]
        assert model.cost_ == path.min()


@every_value
@both_types
@pytest.mark.parametrize("gamma", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("offset", [0.0, 50.0])
def test_labels_of_the_last_pass_are_those_of_prediction(dtype, gamma, offset):
    # Later passes skip rows by bounds that must allow for the rounding of distances.
    for seed in range(4):
        X = data(600, seed=seed + 40, dtype=dtype) + dtype(offset)
        model = NystromKMeans(
            6,
            gamma=gamma,
            n_landmarks=40,
            init=np.arange(6),
            tol=0.0,
            random_state=seed,
        ).fit(X)
        np.testing.assert_array_equal(model.predict(X), model.labels_)


# --- exemplars ------------------------------------------------------------------------


@every_pair(
    estimator=[KernelKMeans, NystromKMeans],
    weighted=[False, True],
    n_init=[1, 6],
    k=[2, 8, 20],
)
def test_exemplars_are_the_nearest_rows_of_their_clusters(
    estimator, weighted, n_init, k
):
    for seed in range(6):
        X = data(60, seed=seed + 50)
        weights = some_weights(60, "integers with zeros", seed) if weighted else None
        model = estimator(
            k, gamma=0.2, init="random", n_init=n_init, random_state=seed, n_jobs=1
        ).fit(X, sample_weight=weights)
        distances = model.transform(X)
        others = model.labels_[:, None] != np.arange(k)
        if weights is not None:
            others |= weights[:, None] == 0
        distances[others] = np.inf
        chosen = model.exemplar_indices_
        np.testing.assert_array_equal(model.labels_[chosen], np.arange(k))
        assert weights is None or weights[chosen].all()
        np.testing.assert_allclose(
            distances[chosen, np.arange(k)],
            distances.min(axis=0),
            rtol=1e-6,
            atol=1e-7,
        )
        np.testing.assert_array_equal(model.exemplars_, X[chosen])


@both_engines
@every_weight
def test_exemplars_of_a_restart_that_was_not_the_last(kind, weights, workers):
    # The best of several restarts may have converged long before the last pass.
    X, k = data(60, seed=60), 5
    weights = some_weights(60, weights)
    present = np.ones(60, dtype=bool) if weights is None else weights > 0
    rng = np.random.default_rng(61)
    for _ in range(20):
        engine = engine_of(kind, X, k, workers, weights)
        best, last = rng.permutation(np.flatnonzero(present))[: 2 * k].reshape(2, 1, k)
        centers = engine.centers_at(best)
        labels = engine.assign(centers).labels[:, 0]
        engine.assign(engine.centers_at(last))
        found = engine.exemplars(centers, labels)
        # A seed is its own nearest row.
        np.testing.assert_array_equal(found, best[0])


@both_estimators
def test_exemplars_of_refilled_clusters_are_rows_of_these(estimator):
    X = data(60, seed=18)
    model = estimator(6, init=np.repeat(7, 6), gamma=0.2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_[model.exemplar_indices_], np.arange(6))


def test_the_better_half_of_the_restarts_goes_on(monkeypatch):
    points = np.arange(4.0).reshape(4, 1, 1)
    centers = Centers(points, np.zeros((4, 1)), points)
    none = np.empty(0)
    results = [
        LloydResult(none, centers.select([i]), cost, none)
        for i, cost in enumerate((3.0, 1.0, 4.0, 2.0))
    ]
    monkeypatch.setattr(Search, "run", lambda *_: results)
    search = Search(Schedule(4, 10, 1e-4, 0), None, None)
    assert search.drop_worse_half(None, centers).means.ravel().tolist() == [1.0, 3.0]
