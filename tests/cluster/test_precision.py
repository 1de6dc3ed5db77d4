"""Clusters that are tight, far apart, far from the origin, or rare."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from sketchmeans import KernelKMeans, NystromKMeans, SketchedKMeans
from tests.pairs import every_value
from tests.properties.strategies import Problem, direct_cost, unit_rows

LINEAR = {
    "sketched": lambda k, seed: SketchedKMeans(k, random_state=seed),
    "nystrom": lambda k, seed: NystromKMeans(k, kernel="linear", random_state=seed),
    "exact": lambda k, seed: KernelKMeans(k, kernel="linear", random_state=seed),
}
COSINE = {
    "nystrom": lambda k, seed: NystromKMeans(k, kernel="cosine", random_state=seed),
    "exact": lambda k, seed: KernelKMeans(k, kernel="cosine", random_state=seed),
}
RBF = {
    "nystrom": lambda k, seed: NystromKMeans(k, random_state=seed),
    "exact": lambda k, seed: KernelKMeans(k, random_state=seed),
}


def tight_groups_far_apart(seed):
    """Three places at a distance of 3,000, with two groups each, 4 apart."""
    rng = np.random.default_rng(seed)
    places = np.array([[0.0, 0.0], [3000.0, 0.0], [0.0, 3000.0]])
    y = np.repeat(np.arange(6), 100)
    places = np.concatenate([places, places + np.array([4.0, 0.0])])
    X = places[y] + 0.3 * rng.normal(size=(600, 2))
    return X.astype(np.float32), y


def far_from_the_origin(seed, offset, dtype):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), 200)
    X = 8.0 * rng.normal(size=(3, 4))[y] + rng.normal(size=(600, 4)) + offset
    return X.astype(dtype), y


def few_far_rows(seed, distance, dtype):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [290, 290, 20])
    places = np.array([[0.0, 0.0], [12.0, 0.0], [distance, distance]])
    return (places[y] + 0.7 * rng.normal(size=(600, 2))).astype(dtype), y


CASES = {
    "tight": tight_groups_far_apart,
    "offset 1e6": lambda seed: far_from_the_origin(seed, 1e6, np.float64),
    "offset 1e4, float32": lambda seed: far_from_the_origin(seed, 1e4, np.float32),
    "rows at 1e6, float32": lambda seed: few_far_rows(seed, 1e6, np.float32),
    "rows at 1e8": lambda seed: few_far_rows(seed, 1e8, np.float64),
    "rows at 1e9": lambda seed: few_far_rows(seed, 1e9, np.float64),
}


def check(model, X, y, features=lambda X: X):
    labels = model.fit(X).labels_
    problem = Problem(X, None, len(np.unique(y)), 0)
    cost = direct_cost(problem, labels, features)
    assert cost <= 1.001 * direct_cost(problem, y, features)
    assert model.cost_ == pytest.approx(cost, rel=1e-3)
    np.testing.assert_array_equal(model.predict(X), labels)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", LINEAR)
def test_plain_k_means_keeps_its_digits(name, case):
    seed = list(CASES).index(case)
    X, y = CASES[case](seed)
    check(LINEAR[name](len(np.unique(y)), seed), X, y)


@every_value
@pytest.mark.parametrize("case", ["offset 1e6", "offset 1e4, float32"])
@pytest.mark.parametrize("name", COSINE)
def test_small_angles_are_told_apart(name, case):
    X, y = CASES[case](3)
    check(COSINE[name](3, 0), X, y, unit_rows)


@every_value
@pytest.mark.parametrize("case", ["tight", "offset 1e6", "rows at 1e6, float32"])
@pytest.mark.parametrize("name", RBF)
def test_an_rbf_tells_near_rows_apart(name, case):
    X, y = CASES[case](5)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "gamma='mean' is", UserWarning)
        model = RBF[name](len(np.unique(y)), 0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.98
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_cost_below_its_rounding_is_warned_of():
    X, _ = few_far_rows(0, 1e9, np.float64)
    with pytest.warns(ConvergenceWarning, match="as small as the rounding"):
        NystromKMeans(2, gamma=1e-20, random_state=0).fit(X)


@every_value
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["sketched", "nystrom"])
def test_a_rare_group_is_found(name, seed):
    rng = np.random.default_rng([seed, 11])
    y = rng.integers(4, size=40_000)
    X = 3.0 * rng.normal(size=(4, 5))[y] + rng.normal(size=(40_000, 5))
    X[:10], y[:10] = 500.0 + 0.01 * rng.normal(size=(10, 5)), 4
    X = X.astype(np.float32)
    model = LINEAR[name](5, seed).fit(X)
    problem = Problem(X, None, 5, 0)
    assert direct_cost(problem, model.labels_) <= 1.01 * direct_cost(problem, y)


@pytest.mark.parametrize("name", ["sketched", "nystrom"])
def test_one_heavy_row_does_not_fill_the_subsample(name):
    rng = np.random.default_rng(4)
    y = np.repeat(np.arange(4), 5_000)
    X = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0], [20.0, 20.0]])[y]
    X += rng.normal(size=X.shape)
    weights = np.ones(len(X))
    weights[7] = 1e9
    model = LINEAR[name](4, 0).fit(X, sample_weight=weights)
    assert adjusted_rand_score(y, model.labels_) > 0.99


def uneven_blobs(seed):
    """Return blobs of uneven sizes and widths, and how many there are."""
    rng = np.random.default_rng([seed, 123])
    k, d = int(rng.integers(3, 22)), int(rng.integers(2, 7))
    sizes = np.clip(5.0 * (1.0 + rng.pareto(0.8, size=k)), 5, 400).astype(int)
    y = np.repeat(np.arange(k), sizes)
    spread = rng.choice([0.05, 0.3, 1.0])
    X = rng.uniform(-10.0, 10.0, size=(k, d))[y] + spread * rng.normal(size=(len(y), d))
    return X, k


@pytest.mark.parametrize("seed", range(6))
def test_defaults_are_within_one_percent_of_the_best_known(seed):
    X, k = uneven_blobs(seed)
    problem = Problem(X, None, k, 0)
    peer = KMeans(k, n_init=20, random_state=seed).fit(X)
    models = [peer, *(make(k, seed).fit(X) for make in LINEAR.values())]
    costs = [direct_cost(problem, model.labels_) for model in models]
    assert max(costs[1:]) <= 1.01 * min(costs)


@every_value
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kernel", ["linear", "cosine", "poly"])
@pytest.mark.parametrize("offset", [10.0, 100.0])
def test_exact_fits_in_float32_keep_digits_without_distances(form, kernel, offset):
    """Products of rows far from zero differ by less than float32 can hold."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    X = offset + 0.01 * truth[:, None] * [1.0, -1.0] + 1e-3 * rng.normal(size=(60, 2))
    X = X.astype(np.float32)
    found = KernelKMeans(2, kernel=kernel, random_state=0).fit(form(X))
    wide = KernelKMeans(2, kernel=kernel, random_state=0).fit(X.astype(np.float64))
    assert found.cost_ == pytest.approx(wide.cost_, rel=1e-3)
    assert adjusted_rand_score(found.labels_, truth) == 1.0
    np.testing.assert_array_equal(found.predict(form(X)), found.labels_)


def test_equal_rows_cost_nothing_in_any_form():
    X = np.repeat(0.62 + 1e-3 * np.arange(6, dtype=np.float32), 2)[:, None]
    for rows in (X, sparse.csr_array(X)):
        assert NystromKMeans(6, kernel="linear", random_state=0).fit(rows).cost_ == 0.0


def test_a_cost_that_is_rounding_in_float64_too_is_a_warning():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(1e6 + 1e-3 * rng.normal(size=(60, 2)))
    with pytest.warns(ConvergenceWarning, match="as small as the rounding"):
        KernelKMeans(2, kernel="linear", random_state=0).fit(X)
