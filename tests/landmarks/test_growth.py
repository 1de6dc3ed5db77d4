"""``n_landmarks="auto"``: enough landmarks, and no more."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics.pairwise import rbf_kernel

from sketchmeans import NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.engine.store import KernelBlocks
from sketchmeans.kernels import as_kernel
from sketchmeans.landmarks import LandmarkPath, choose_n_landmarks
from sketchmeans.landmarks.growth import GAIN
from sketchmeans.numerics.parallel import Workers
from tests import oracles


def path_of(X, k, gamma, seed=0, weights=None):
    with Workers(2) as workers:
        rows = as_rows(np.asarray(X, dtype=float), workers, weights)
        kernel = as_kernel("rbf", gamma=gamma)
        return choose_n_landmarks(rows, kernel, k, np.random.default_rng(seed))


def test_the_fit_is_that_with_the_chosen_number():
    X = load_digits().data
    auto = NystromKMeans(10, random_state=3).fit(X)
    path = auto.landmark_path_
    assert isinstance(path, LandmarkPath)
    assert len(auto.landmarks_) == path.chosen
    fixed = NystromKMeans(10, n_landmarks=path.chosen, random_state=3).fit(X)
    assert fixed.landmark_path_ is None
    np.testing.assert_array_equal(auto.labels_, fixed.labels_)
    np.testing.assert_array_equal(auto.landmark_indices_, fixed.landmark_indices_)


def test_the_path_doubles_and_ends_where_the_gain_does():
    path = path_of(load_digits().data, 10, 2e-4)
    ratios = path.n_landmarks[1:] / path.n_landmarks[:-1]
    np.testing.assert_array_equal(ratios[:-1], 2.0)
    assert path.n_landmarks[0] == 100
    assert np.isnan(path.gain[0])
    assert (path.gain[1:-1] > GAIN).all()
    assert path.gain[-1] <= GAIN
    assert path.chosen == path.n_landmarks[-2]
    assert (np.diff(path.residual_trace) < 0.0).all()  # nested sets


@pytest.mark.parametrize("seed", [0, 1])
def test_few_landmarks_for_a_low_effective_dimension(seed):
    X, _ = make_blobs(20_000, n_features=2, centers=5, random_state=seed)
    path = path_of(X, 5, 1.0 / (4.0 * X.var(axis=0).sum()), seed)
    assert path.chosen <= np.sqrt(20_000 * 5) / 4


@pytest.mark.parametrize("seed", [2])
def test_more_landmarks_for_hard_rows(seed):
    path = path_of(load_digits().data, 10, 1e-3, seed)  # a narrow bandwidth
    assert path.chosen > 2.0 * np.sqrt(1797 * 10)


def test_the_cost_is_near_that_with_twice_as_many():
    X = load_digits().data
    for gamma in (1e-3,):
        auto = NystromKMeans(10, gamma=gamma, random_state=0).fit(X)
        m = 2 * auto.landmark_path_.chosen
        twice = NystromKMeans(10, gamma=gamma, n_landmarks=m, random_state=0).fit(X)
        assert auto.cost_ <= 1.01 * twice.cost_


def test_the_estimates_are_those_of_all_rows():
    # All rows are in the sample, and every cluster counts its rows once.
    X = load_digits().data[:500]
    K = rbf_kernel(X, gamma=1e-3)
    path = path_of(X, 4, 1e-3)
    with Workers(1) as workers:
        rows = as_rows(X, workers)
        from sketchmeans.landmarks import growth

        space = growth._rough_space(rows, as_kernel("rbf", gamma=1e-3), X, np.ones(500))
        labels = np.arange(500) % 4
        span = growth._Span(KernelBlocks(rows, space), np.ones(500), 4)
        residual, cost = span.residual, span.cost(labels)
    # Pairs of different rows alone: the mean over many more rows than were seen.
    explained = sum(
        (125 / 500)
        * (K[np.ix_(labels == j, labels == j)].sum() - 125.0)
        / (125.0 * 124.0)
        for j in range(4)
    )
    assert cost == pytest.approx(1.0 - explained, rel=1e-6)
    assert residual == pytest.approx(0.0, abs=1e-6)
    assert path.cost[-1] < oracles.cost_of_partition(K, labels)


@pytest.mark.law
def test_the_estimate_from_a_sample_is_unbiased_for_the_whole():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 6))
    gamma = 0.05
    estimates = [path_of(X, 3, gamma, seed).cost[-1] for seed in range(6)]
    model = NystromKMeans(3, gamma=gamma, n_landmarks=300, random_state=0).fit(X)
    # The rough partition is not the best one, but the level is right: a plain mean
    # over clusters of some 1,000 sampled rows would explain what is not there.
    assert np.mean(estimates) == pytest.approx(model.cost_, rel=0.02)


def test_at_least_k_and_at_most_n():
    for n, k in ((10, 9), (60, 40), (8, 8), (5, 1), (1, 1)):
        X = np.random.default_rng(0).normal(size=(n, 3))
        model = NystromKMeans(k, gamma=0.5, n_jobs=1, random_state=0).fit(X)
        assert k <= len(model.landmarks_) <= n


def test_at_least_k_where_there_are_very_many_clusters(monkeypatch):
    monkeypatch.setattr("sketchmeans.landmarks.growth.MOST", 5)
    X = np.random.default_rng(0).normal(size=(60, 3))
    assert path_of(X, 20, 0.5).chosen >= 20


def test_no_more_than_there_are_distinct_rows():
    # Nobody asked for more: there is nothing to warn of (and a warning is an error).
    X = np.repeat(np.random.default_rng(0).normal(size=(10, 3)), 500, axis=0)
    model = NystromKMeans(3, random_state=0).fit(X)
    assert model.landmark_path_.n_landmarks[-1] == 10
    assert len(model.landmarks_) == model.landmark_path_.chosen <= 10
    weights = (np.arange(5000) < 2000) * 1.0
    model.fit(X, sample_weight=weights)
    assert model.landmark_path_.n_landmarks[-1] == 4


def test_the_largest_number():
    X = np.random.default_rng(0).normal(size=(900, 60))
    path = path_of(X, 4, 3.0)  # the kernel matrix is the identity
    assert path.n_landmarks[-1] <= 4 * np.sqrt(900 * 4)


@pytest.mark.law
def test_weights_count_as_repeats_in_law():
    X = load_digits().data[:300]
    times = 1 + np.arange(300) % 3
    weighted = [path_of(X, 5, 1e-3, seed, times * 1.0).cost[0] for seed in range(12)]
    repeated = [
        path_of(np.repeat(X, times, axis=0), 5, 1e-3, seed).cost[0]
        for seed in range(12)
    ]
    spread = np.std(repeated, ddof=1) / np.sqrt(6)
    # The first rung is a little larger for the repeated rows.
    assert abs(np.mean(weighted) - np.mean(repeated)) < 4 * spread + 0.03


@pytest.mark.parametrize("kind", ["precomputed", "csr", "k-means++", "reducer"])
def test_every_input(kind):
    X = load_digits().data[:400]
    params = {"random_state": 0, "gamma": 1e-3}
    if kind == "precomputed":
        params, X = (
            {"kernel": "precomputed", "random_state": 0},
            rbf_kernel(X, gamma=1e-3),
        )
    if kind == "csr":
        X = sparse.csr_array(X)
    if kind == "k-means++":
        params["landmarks"] = "k-means++"
    if kind == "reducer":
        params["reducer"] = "svd"
    model = NystromKMeans(10, **params).fit(X)
    assert model.landmarks_.shape[0] == model.landmark_path_.chosen


@pytest.mark.parametrize("n_jobs", [2])
def test_nothing_but_the_rows_decides(n_jobs):
    X = load_digits().data
    paths = [
        NystromKMeans(
            10, n_jobs=jobs, max_memory=memory, n_init=1, max_iter=300, random_state=0
        )
        .fit(X)
        .landmark_path_
        for jobs, memory in ((1, None), (n_jobs, "80MB"))
    ]
    np.testing.assert_array_equal(paths[0].cost, paths[1].cost)
    assert paths[0].chosen == paths[1].chosen


def test_what_does_not_fit_is_told():
    X = load_digits().data
    text = r"n_landmarks='auto' tries \d+ landmarks, which needs .*Give n_landmarks"
    with pytest.raises(MemoryError, match=text):
        NystromKMeans(10, gamma=1e-3, max_memory="54MB", random_state=0).fit(X)


def test_equal_rows():
    X = np.repeat(np.eye(3), 50, axis=0)
    model = NystromKMeans(3, gamma=1.0, random_state=0).fit(X)
    assert model.cost_ == pytest.approx(0.0, abs=1e-9)
