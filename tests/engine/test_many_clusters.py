"""Many clusters: leading directions, breathing, approximate passes and what follows."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from sketchmeans import KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.cluster import sketched
from sketchmeans.data.rows import Rows
from sketchmeans.engine import nearby
from sketchmeans.engine.assign import ClusterSums
from sketchmeans.engine.blocks import local_engine
from sketchmeans.engine.breathing import breathe
from sketchmeans.engine.directions import project_rows
from sketchmeans.engine.init import KMeansParallel, auto_restarts
from sketchmeans.engine.lloyd import lloyd
from sketchmeans.engine.nearby import CenterGroups, NearbyPass
from sketchmeans.engine.restarts import neglected_rows
from sketchmeans.engine.space import InputSpace, LandmarkSpace
from sketchmeans.engine.store import KernelBlocks
from sketchmeans.kernels import RBF, squared_distances_among
from sketchmeans.numerics.parallel import Workers

MANY = 280


@pytest.fixture(scope="module", name="X")
def blobs():
    X, _ = make_blobs(6_000, 100, centers=400, cluster_std=2.0, random_state=3)
    return X.astype(np.float32)


def weights_of(n, weighted):
    return np.random.default_rng(1).integers(1, 4, n) * 1.0 if weighted else None


def engine_of(X, k, workers, weights=None):
    rows = Rows(X, workers, weights)
    return local_engine(rows, InputSpace.of(rows, k))


# --- sums -----------------------------------------------------------------------------


@pytest.mark.parametrize("k", [3, 500], ids=["dense", "few of many"])
def test_sums_over_clusters_are_those_of_a_loop(k):
    rng = np.random.default_rng(0)
    b, labels, weights = rng.normal(size=(20, 4)), rng.integers(k, size=(20, 2)), None
    clusters = ClusterSums.zeros(2, k, 4)
    for part in (slice(0, 7), slice(7, 20)):
        clusters.add_assigned(b[part], labels[part], weights, np.float64)
    for restart in range(2):
        for j in range(k):
            own = labels[:, restart] == j
            assert_allclose(clusters.sums[restart * k + j], b[own].sum(axis=0))
            assert clusters.counts[restart * k + j] == own.sum()


# --- approximate passes ---------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_a_pass_among_all_neighbours_is_a_full_one(X, weighted, monkeypatch):
    monkeypatch.setattr(nearby, "_NEIGHBOURS", MANY)
    rng = np.random.default_rng(0)
    with Workers(2) as workers:
        engine = engine_of(X, MANY, workers, weights_of(len(X), weighted))
        centers = engine.centers_at(rng.choice(len(X), (1, MANY), replace=False))
        full = engine.assign(centers)
        start = rng.integers(MANY, size=(len(X), 1)).astype(np.int32)
        near = NearbyPass(centers, CenterGroups.of(centers, workers))
        labels, found = engine.backend.run(near, start)
    assert_array_equal(labels, full.labels)
    assert_allclose(found.sums, full.sums, rtol=1e-4, atol=1e-3)
    assert_array_equal(found.counts, full.counts)
    assert_allclose(found.costs / engine.rows.total_weight, full.costs, rtol=1e-5)


def test_a_pass_among_few_neighbours_keeps_the_cost_of_its_labels(X):
    rng = np.random.default_rng(0)
    with Workers(1) as workers:
        engine = engine_of(X, MANY, workers)
        centers = engine.centers_at(rng.choice(len(X), (1, MANY), replace=False))
        exact = engine.assign(centers)
        labels = exact.labels.copy()
        labels[::3] = rng.integers(MANY, size=(len(labels[::3]), 1))
        near = NearbyPass(centers, CenterGroups.of(centers, workers))
        found, sums = engine.backend.run(near, labels)
    points = centers.coefficients[0]
    own = np.square(X - points[found[:, 0]]).sum()
    assert_allclose(sums.costs, own, rtol=1e-5)
    assert exact.costs[0] * len(X) <= sums.costs[0] * (1 + 1e-6)
    assert sums.costs[0] < np.square(X - points[labels[:, 0]]).sum()


def test_groups_hold_every_centre_and_its_neighbours(X):
    with Workers(1) as workers:
        engine = engine_of(X, MANY, workers)
        centers = engine.centers_at(np.arange(MANY)[None])
        groups = CenterGroups.of(centers, workers)
    distances = np.square(X[:MANY, None] - X[None, :MANY]).sum(axis=2)
    for center in range(MANY):
        near = np.argsort(distances[center])[:20]
        assert np.isin(near, groups.candidates[groups.groups[center]]).all()


# --- breathing ------------------------------------------------------------------------


def test_breathing_moves_centres_to_where_they_are_needed():
    X, groups = make_blobs(3_000, 3, centers=60, cluster_std=0.05, random_state=0)
    k = 60
    with Workers(1) as workers:
        engine = engine_of(X, k, workers)
        # Twice as many centres as needed in half of the groups, none in the others.
        seeds = [np.flatnonzero(groups == j // 2)[j % 2] for j in range(k)]
        centers = engine.centers_at(np.array([seeds]))
        (stuck,) = lloyd(engine, centers, max_iter=50, tol=0.0)
        found = breathe(
            engine,
            stuck,
            np.random.default_rng(0),
            max_breaths=40,
            on_breath=lambda *_: False,
        )
    assert found.centers.coefficients.shape == (1, k, 3)
    assert found.cost < 0.1 * stuck.cost
    assert_array_equal(np.sort(found.cost_path)[::-1], found.cost_path)


def test_breathing_stops_when_asked():
    X, _ = make_blobs(500, 3, centers=60, random_state=0)
    with Workers(1) as workers:
        engine = engine_of(X, 50, workers)
        (start,) = lloyd(
            engine, engine.centers_at(np.arange(50)[None]), max_iter=5, tol=0
        )
        found = breathe(
            engine,
            start,
            np.random.default_rng(0),
            max_breaths=9,
            on_breath=lambda *_: True,
        )
    assert found.stopped
    assert len(found.cost_path) <= len(start.cost_path) + 1


# --- directions -----------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_few_directions_keep_the_distances_of_rows_of_low_rank(weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20)) @ rng.normal(size=(20, 150)) + 5.0
    with Workers(2) as workers:
        rows = Rows(X, workers, weights_of(500, weighted))
        E = project_rows(KernelBlocks(rows, InputSpace.of(rows, 70)), rng)
    assert E.n_features == 48
    ours, theirs = (((P[:, None] - P[:40]) ** 2).sum(axis=2) for P in (E.X, X))
    assert_allclose(ours, theirs, rtol=1e-8, atol=1e-6)
    assert_array_equal(E.weights, rows.weights)


def test_directions_of_a_kernel_are_those_of_its_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    kernel, Z = RBF(gamma=0.01), X[:100]
    with Workers(1) as workers:
        rows = Rows(X, workers, None)
        space = LandmarkSpace(kernel, Z, rows.dtype, workers)
        E = project_rows(KernelBlocks(rows, space), rng).X
        b = space.kernel_block(X)
        M = space.coefficients(b).T  # rows of b M
    # The kernel is so smooth that 48 directions hold almost all of it.
    gram = b @ M.T
    squares = np.diagonal(gram)
    squared = squares[:, None] - 2.0 * gram + squares
    ours = ((E[:, None] - E[None]) ** 2).sum(axis=2)
    assert_allclose(ours, squared, atol=1e-4 * squared.max())


@pytest.mark.parametrize("wide", [False, True])
def test_no_row_is_lost_in_directions_of_few_rows(wide):
    """A lone row is a direction of its own, and all rows are looked at."""
    X = np.zeros((120, 150))
    X[:, :3] = np.random.default_rng(0).normal(size=(120, 3))
    X[7, 100] = X[70, 120] = 20.0
    X = X if wide else np.tile(X, (2, 1))
    weights = np.random.default_rng(1).integers(1, 4, len(X)) * 1.0
    with Workers(1) as workers:
        rows = Rows(X, workers, weights)
        blocks = KernelBlocks(rows, InputSpace.of(rows, 10))
        E = project_rows(blocks, np.random.default_rng(2)).X
    mean = np.average(X, axis=0, weights=weights)
    assert_allclose((E**2).sum(axis=1), ((X - mean) ** 2).sum(axis=1), rtol=1e-6)


def test_lone_rows_of_small_tables_have_clusters_of_their_own():
    """Seven rows apart from one group: the cost was up to 1.6 times the best."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-10.0, 10.0, (8, 10))[np.maximum(np.arange(220) - 212, 0)]
    X += 0.5 * rng.normal(size=X.shape)
    exact = KernelKMeans(20, random_state=0).fit(X)
    costs = [NystromKMeans(20, random_state=seed).fit(X).cost_ for seed in range(8)]
    assert max(costs) <= 1.05 * exact.cost_


def test_rows_of_small_clusters_are_left_behind_too():
    """Of five rows, one makes most of what they cost: it is no part of the mean."""
    X = np.concatenate([np.arange(100.0) % 2.0, 1_000.0 + np.array([0, 0, 0, 0, 30])])
    with Workers(1) as workers:
        engine = engine_of(X[:, None], 2, workers)
        centers = engine.centers_at(np.array([[0, 100]]))
        (result,) = lloyd(engine, centers, max_iter=50, tol=0.0)
        left = neglected_rows(engine, result)
    assert_array_equal(left, [104])


# --- k-means|| ------------------------------------------------------------------------


def test_parallel_seeding_is_about_as_good_as_one_by_one():
    X, _ = make_blobs(4_000, 5, centers=350, cluster_std=0.1, random_state=1)
    with Workers(2) as workers:
        distances_to = squared_distances_among(Rows(X, workers, None))
        chosen = KMeansParallel().seed(
            distances_to,
            np.ones(len(X)),
            350,
            [np.random.default_rng(i) for i in (0, 1)],
        )
    assert chosen.shape == (2, 350)
    reference = KMeans(350, n_init=1, random_state=0).fit(X).inertia_
    for seeds in chosen:
        assert len(np.unique(seeds)) == 350
        cost = ((X[:, None] - X[seeds]) ** 2).sum(axis=2).min(axis=1).sum()
        assert cost < 6.0 * reference


def test_parallel_seeding_of_few_distinct_rows():
    X = np.repeat(np.arange(5.0)[:, None], 4, axis=0)
    with Workers(1) as workers:
        distances_to = squared_distances_among(Rows(X, workers, None))
        (chosen,) = KMeansParallel().seed(
            distances_to, np.ones(20), 9, [np.random.default_rng(0)]
        )
    assert set(X[chosen, 0]) == set(range(5))
    assert len(np.unique(chosen)) == 9


@pytest.mark.parametrize("params", [{"n_rounds": 0}, {"oversampling": 0.5}])
def test_parameters_of_parallel_seeding_are_checked(params, X):
    (name,) = params
    with pytest.raises(ValueError, match=name):
        SketchedKMeans(3, init=KMeansParallel(**params)).fit(X)


# --- whole fits -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def few(X):
    """Rows for fits in which nothing but their agreement matters."""
    return X[:3_000]


def plain(**params):
    return SketchedKMeans(MANY, random_state=0, **params)


def kernel(**params):
    return NystromKMeans(MANY, gamma=1e-3, n_landmarks=300, random_state=0, **params)


@pytest.mark.parametrize(("new", "weighted"), [(plain, True), (kernel, False)])
def test_many_clusters_are_those_of_the_nearest_centres(new, weighted, few):
    weights = weights_of(len(few), weighted)
    model = new().fit(few, sample_weight=weights)
    assert_array_equal(model.predict(few), model.labels_)
    assert model.cost(few, weights) == pytest.approx(model.cost_, rel=1e-4)
    sizes = np.bincount(model.labels_, weights, minlength=MANY)
    assert_allclose(model.cluster_sizes_, sizes)
    assert (sizes > 0).all()
    own = model.labels_[model.exemplar_indices_]
    assert_array_equal(own, np.arange(MANY))


@pytest.mark.parametrize("new", [plain, kernel])
def test_many_clusters_do_not_hang_on_threads_or_memory(new, few):
    first, other = (
        new(n_jobs=n_jobs, max_memory=memory).fit(few)
        for n_jobs, memory in ((1, None), (2, "90MB"))
    )
    assert_array_equal(first.labels_, other.labels_)
    assert first.cost_ == other.cost_


def test_many_clusters_cost_no_more_than_those_of_scikit_learn(few):
    theirs = KMeans(MANY, n_init=1, random_state=0).fit(few).inertia_
    assert plain().fit(few).inertia_ <= theirs


def test_no_sketch_is_plain_k_means(X):
    model = SketchedKMeans(5, reducer=None, tol=0.0, random_state=0).fit(X)
    assert model.reducer_ is None
    assert_array_equal(model.predict(X), model.labels_)
    means = np.stack([X[model.labels_ == j].mean(axis=0) for j in range(5)])
    assert_allclose(model.cluster_centers_, means, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    ("k", "d", "width"), [(5, 100, 5), (100, 100, 48), (60, 90, None), (3, 5, None)]
)
def test_the_sketch_follows_from_the_width_of_the_rows(k, d, width, X, monkeypatch):
    model = SketchedKMeans(k, tol=0.5, random_state=0)
    assert model.fit(X[:500, :d]).reducer_ is None  # not worth its loss
    monkeypatch.setattr(sketched, "_SMALL_WORK", 0.0)
    model.fit(X[:500, :d])
    found = None if model.reducer_ is None else model.reducer_.n_components_
    assert found == width


def test_restarts_and_tolerance_follow_from_the_number_of_clusters():
    assert [auto_restarts(k) for k in (1, 25, 50, 100, 300, 5_000)] == [
        12,
        12,
        12,
        6,
        2,
        1,
    ]
    assert auto_restarts(300, 7) == 7
    for cls in (KernelKMeans, NystromKMeans, SketchedKMeans):
        found = [cls(k)._tolerance for k in (1, 100, 1_000)]
        assert_allclose(found, [1e-4, 1e-4, 1e-3])
        assert cls(1_000, tol=0.5)._tolerance == 0.5


# --- predictions of few rows ----------------------------------------------------------


def test_what_is_prepared_for_predictions_is_not_part_of_the_model(X):
    model = NystromKMeans(4, n_landmarks=50, random_state=0).fit(X)
    before = len(pickle.dumps(model))
    labels = model.predict(X[:50])
    assert len(pickle.dumps(model)) == before
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X[:50]), labels)
    assert_array_equal(
        model.fit(X[::-1] * 2.0).predict(X[:1]), model.predict(X[:2])[:1]
    )


def test_a_model_that_is_fitted_again_predicts_anew(X):
    model = NystromKMeans(4, n_landmarks=50, random_state=0)
    for rows in (X, X[::-1] * 3.0):
        model.fit(rows)
        assert_array_equal(model.predict(rows), model.labels_)


def test_threads_may_predict_at_once(X):
    model = NystromKMeans(7, n_landmarks=60, random_state=0).fit(X)
    parts = [X[i : i + 1 + i % 5] for i in range(0, 300)]
    alone = [model.predict(part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        for ours, theirs in zip(alone, pool.map(model.predict, parts), strict=True):
            assert_array_equal(ours, theirs)
