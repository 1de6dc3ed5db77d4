"""Bounds from disjoint subsets: never above the optimum, certain or at a confidence."""

import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import pairwise_kernels

from sketchmeans import KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.diagnostics import certificate
from sketchmeans.diagnostics.partition_bound import (
    Goal,
    PartitionBound,
    bound_mean,
    choose_drawn_size,
    choose_subset_size,
    draw_subsets,
    is_drawn,
)
from sketchmeans.kernels import Linear
from sketchmeans.numerics.parallel import Workers
from sketchmeans.theory.problem import Problem
from tests import oracles


def fit_quietly(model, X, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few distinct rows for many clusters
        return model.fit(X, **params)


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:480].astype(np.float32)


@pytest.fixture(scope="module")
def model(digits):
    return NystromKMeans(10, n_landmarks=200, random_state=0).fit(digits)


# --- betting --------------------------------------------------------------------------


@pytest.mark.law
@pytest.mark.parametrize("kind", ["rare", "even", "skewed"])
def test_the_mean_is_below_the_bound_no_more_often_than_said(kind):
    rng = np.random.default_rng(0)
    values = {
        "rare": (np.arange(60) < 6).astype(float),
        "even": rng.uniform(0.9, 1.1, size=60),
        "skewed": rng.exponential(size=60) ** 2,
    }[kind]
    failures = 0
    for _ in range(80):
        drawn = rng.permutation(values)
        # Whenever one stops: the worst moment of each order counts.
        bounds = [bound_mean(drawn[:n], 60, 0.8) for n in range(1, 60, 9)]
        failures += max(bounds) > values.mean() * (1 + 1e-12)
    assert failures <= 0.2 * 80


def test_the_bound_of_a_mean_tightens_and_ends_in_the_mean():
    values = np.random.default_rng(0).uniform(0.8, 1.0, size=200)
    bounds = [bound_mean(values[:n], 200, 0.95) for n in (5, 20, 80, 200)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == pytest.approx(values.mean())
    assert bounds[1] > 0.75 * values.mean()
    # Lower bounds in the place of values lower the bound.
    assert bound_mean(0.5 * values[:20], 200, 0.95) < bounds[1]
    assert bound_mean(np.zeros(3), 10, 0.95) == 0.0
    assert bound_mean(np.array([]), 10, 0.95) == 0.0


def test_two_estimates_share_the_risk_and_one_has_it_all():
    spectral, excess = [4.0, 5.0, 4.5, 4.2], [0.5, 0.7]

    def likely(n_subsets, failure):
        parts = (np.array(spectral), np.array(excess))
        each = [bound_mean(part, n_subsets, 1.0 - failure) for part in parts]
        return n_subsets * sum(each)

    some = PartitionBound(9, 30, 0.9, spectral, excess)
    assert some.likely == pytest.approx(likely(9, 0.05))
    assert some.certain == pytest.approx(18.9)
    assert some.certain < some.likely
    all_spectral = PartitionBound(4, 30, 0.9, spectral, excess)
    assert all_spectral.likely == pytest.approx(likely(4, 0.1))
    assert PartitionBound(9, 30, 1.0, spectral, excess).likely == some.certain


# --- never above the optimum ----------------------------------------------------------


@pytest.mark.parametrize("size", [3, 5, 9])
def test_no_partition_undercuts_the_bound(size):
    rng = np.random.default_rng(size)
    for k in (1, 2, 3):
        X = rng.normal(size=(9, 2))
        X[4] = X[0]
        weights = rng.exponential(size=9)
        weights[1] = 0.0
        K = pairwise_kernels(X, metric="rbf", gamma=0.5)
        cases = [
            (NystromKMeans(k, gamma=0.5, landmarks=X), X, K),
            (KernelKMeans(k, kernel="precomputed"), K, K),
            (SketchedKMeans(k), X + 50.0, X @ X.T),
        ]
        for estimator, rows, gram in cases:
            estimator.set_params(random_state=0)
            fit_quietly(estimator, rows, sample_weight=weights)
            found = certificate(
                estimator,
                rows,
                sample_weight=weights,
                method="semidefinite",
                subset_size=size,
                random_state=0,
            )
            optimum = oracles.optimal_cost(gram, k, weights)
            assert found.confidence == 1.0
            assert found.n_solved == found.n_subsets == -(-8 // size)
            assert found.lower_bound <= optimum * (1 + 1e-9) + 1e-13
            assert found.cost >= optimum * (1 - 1e-6) - 1e-9
            if size == 9 and k < 3:
                assert found.lower_bound > 0.9 * optimum


def test_problems_against_the_best_of_many_fits():
    rng = np.random.default_rng(0)
    for seed in range(3):
        k = int(rng.integers(2, 6))
        X = (
            rng.normal(size=(120, 3))
            + 2.0 * rng.normal(size=(k, 3))[rng.integers(k, size=120)]
        )
        best = KernelKMeans(k, gamma=0.3, n_init=20, random_state=seed).fit(X)
        found = certificate(best, X, subset_size=60, random_state=seed)
        assert found.lower_bound <= best.cost_ * (1 + 1e-9)
        assert found.ratio < 1.3


# --- how tight ------------------------------------------------------------------------


def test_small_data_are_one_subset():
    X = load_iris().data
    model = NystromKMeans(3, random_state=0).fit(X)
    found = certificate(model, X)
    assert (found.method, found.n_subsets, found.subset_size) == (
        "semidefinite",
        1,
        150,
    )
    assert found.confidence == 1.0
    assert found.certain_bound == found.lower_bound
    assert found.ratio < 1.05
    assert "no clustering into 3 groups can have a cost below" in found.sentence
    assert "of the best possible" in found.sentence


def test_all_subsets_are_certain_and_some_are_not(digits, model):
    options = {"subset_size": 60, "random_state": 0}
    seen = []
    certain = certificate(
        model, digits, confidence=1.0, on_progress=lambda *a: seen.append(a), **options
    )
    assert certain.confidence == 1.0
    assert certain.n_solved == certain.n_subsets == 8
    assert certain.ratio < 1.15
    assert seen[-1] == (8, 8, pytest.approx(certain.lower_bound))
    assert (np.diff(certain.path[:, 1]) >= 0.0).all()
    some = certificate(model, digits, max_seconds=1e-3, **options)
    assert some.confidence == 0.95
    assert some.n_solved < some.n_subsets == 8
    assert some.certain_bound < some.lower_bound < certain.lower_bound
    assert "at a confidence of 0.95" in some.sentence


def test_a_wanted_ratio_ends_the_work():
    # Many subsets: threads go on with those that they have begun.
    X = load_digits().data[:1500].astype(np.float32)
    model = NystromKMeans(10, n_landmarks=60, random_state=0).fit(X)
    found = certificate(model, X, subset_size=60, ratio=1.4, random_state=0)
    assert found.ratio <= 1.4
    assert found.n_solved < found.n_subsets == 25


def test_the_same_bound_from_every_form_of_the_rows(digits, tmp_path):
    few = digits[:120]
    model = NystromKMeans(10, n_landmarks=60, random_state=0).fit(few)
    options = {"subset_size": 60, "random_state": 0}
    expected = certificate(model, few, **options)
    np.save(tmp_path / "rows.npy", few)
    for form in (tmp_path / "rows.npy", sparse.csr_array(few)):
        found = certificate(model, form, **options)
        assert found.lower_bound == pytest.approx(expected.lower_bound, rel=1e-3)
    one_thread = NystromKMeans(10, n_landmarks=60, random_state=0, n_jobs=1)
    again = certificate(one_thread.fit(few), few, **options)
    assert again.lower_bound == pytest.approx(expected.lower_bound, rel=1e-9)


def test_time_that_is_left_goes_to_triangle_inequalities():
    iris = load_iris().data
    model = NystromKMeans(3, random_state=0).fit(iris)
    found = certificate(model, iris)
    assert found.confidence == 1.0
    assert found.ratio < 1.02  # 1.04 without them
    assert certificate(model, iris, ratio=1.05).ratio > 1.03  # enough is enough


def test_subsets_that_are_drawn_are_those_of_a_random_cut():
    X, weights = np.arange(410.0)[:, None], np.arange(410) % 41.0
    counts = np.zeros(410)
    with Workers(1) as workers:
        rows = as_rows(X, workers, weights)
        for seed in range(200):
            problem = Problem(rows, Linear(), np.random.default_rng(seed))
            drawn, cut = draw_subsets(problem, 10, Goal(0.0, 1e-9, np.inf, 0.95))
            assert (cut.n_subsets, len(cut.subsets)) == (40, 20)
            assert {len(subset) for subset in cut.subsets} == {10}
            assert np.array_equal(np.concatenate(cut.subsets), np.arange(200))
            numbers = drawn.X[:, 0].astype(int)
            assert len(np.unique(numbers)) == 200
            assert np.array_equal(drawn.weights, weights[numbers])
            counts[numbers[cut.subsets[0]]] += 1
    assert not counts[weights == 0.0].any()
    expected = np.where(weights > 0.0, 200 / 40, 0.0)
    deviations = (counts - expected)[weights > 0.0]
    assert (deviations**2).sum() / (200 / 40) < 400 + 4 * np.sqrt(800)


def test_rows_are_drawn_where_a_cut_takes_too_long(
    digits, model, tmp_path, monkeypatch
):
    with Workers(2) as workers:
        rows = as_rows(np.broadcast_to(np.float32(0.0), (3_000_000, 12)), workers)
        assert is_drawn(rows, 20.0, 0.95)
        assert not is_drawn(rows, 60.0, 0.95)
        assert not is_drawn(rows, 20.0, 1.0)
    np.save(tmp_path / "rows.npy", digits)
    monkeypatch.setattr("sketchmeans.data.rows.IN_MEMORY_BYTES", 0)
    module = sys.modules["sketchmeans.diagnostics.certificate"]
    monkeypatch.setattr(module, "MOST_BYTES", 0)
    found = certificate(model, tmp_path / "rows.npy", subset_size=160, random_state=0)
    here = certificate(model, digits, subset_size=160, random_state=0)
    assert found.n_solved == found.n_subsets == 3
    assert found.cost == pytest.approx(here.cost, rel=1e-6)
    assert found.ratio < 1.3
    assert not np.isclose(found.lower_bound, here.lower_bound)  # another cut


def test_more_clusters_than_subsets_can_say_anything_about(digits):
    model = fit_quietly(NystromKMeans(260, n_init=1, random_state=0), digits)
    assert certificate(model, digits).method == "nystrom"


def test_subset_sizes():
    assert choose_subset_size(600, 10, 20.0, 2) == 600
    assert choose_subset_size(60_000, 10, 20.0, 2) == 300
    assert choose_subset_size(60_000, 10, 300.0, 2) == 600
    assert choose_subset_size(60_000, 50, 60.0, 2) == 600  # some of them
    assert choose_subset_size(581_012, 7, 30.0, 2) == 300
    assert choose_subset_size(60_000, 90, 20.0, 2) == 540
    assert choose_subset_size(60_000, 900, 20.0, 2) == 1_000
    assert choose_drawn_size(10**8, 10, 20.0, 2) == 600
    assert choose_drawn_size(10**8, 10, 5.0, 2) == 300


ERRORS = [
    ({"ratio": 0.5}, r"ratio=0.5 should be >= 1"),
    ({"max_seconds": 0}, r"max_seconds=0 should be a finite number > 0"),
    ({"subset_size": 1}, r"subset_size=1 should be an integer >= 2"),
    ({"confidence": 1.5}, r"confidence=1.5 should be > 0 and < 1"),
    ({"n_landmarks": 5}, r"n_landmarks=5 should be None with method='auto'"),
    (
        {"method": "nystrom", "max_seconds": 5},
        r"max_seconds=5 should be None with method='nystrom'",
    ),
]


def test_errors(model, digits):
    for arguments, text in ERRORS:
        with pytest.raises(ValueError, match=text):
            certificate(model, digits, **arguments)


def test_indefinite_kernels_are_refused(digits):
    def difference(x, z):
        return float(-np.square(x - z).sum())

    few = digits[:60]
    model = fit_quietly(KernelKMeans(2, kernel=difference, random_state=0), few)
    with pytest.raises(ValueError, match="there is no certificate"):
        certificate(model, few)
