"""Tiny and huge rows and weights give what those of about one give."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sketchmeans import (
    KernelKMeans,
    LaplacianScore,
    Nystrom,
    NystromKMeans,
    SketchedKMeans,
    select_landmarks,
)
from sketchmeans.landmarks import SELECTORS
from sketchmeans.reduction import REDUCERS
from tests.pairs import every_value

N, K = 300, 4


def table(dtype=np.float64):
    rng = np.random.default_rng(0)
    centers = 6.0 * rng.normal(size=(K, 5))
    X = centers[rng.integers(K, size=N)] + rng.normal(size=(N, 5))
    return X.astype(dtype)


MODELS = {
    "nystrom": lambda **p: NystromKMeans(K, n_landmarks=60, random_state=0, **p),
    "exact": lambda **p: KernelKMeans(K, random_state=0, **p),
    "sketched": lambda **p: SketchedKMeans(K, random_state=0, **p),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
UNIFORM = [1e-46, 1e-300, 5e-324, 0.1, 3.0, 1e38, 1e300]


# --- weights --------------------------------------------------------------------


@every_value
@models
@pytest.mark.parametrize("weight", UNIFORM)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniform_weights_are_no_weights(model, weight, dtype):
    X = table(dtype)
    plain, found = model().fit(X), model().fit(X, sample_weight=np.full(N, weight))
    np.testing.assert_array_equal(found.labels_, plain.labels_)
    assert found.cost_ == plain.cost_
    assert found.cost(X, np.full(N, weight)) == pytest.approx(plain.cost(X))
    sizes = np.bincount(plain.labels_, minlength=K)
    np.testing.assert_allclose(found.cluster_sizes_, weight * sizes)
    np.testing.assert_allclose(found.inertia_, plain.inertia_ * weight, atol=5e-324)


@every_value
@models
@pytest.mark.parametrize("power", [-900, -150, 100, 900])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_times_a_power_of_two(model, power, dtype):
    X, weights = table(dtype), np.random.default_rng(1).uniform(0.5, 4.0, size=N)
    weights[::7] = 0.0
    plain = model().fit(X, sample_weight=weights)
    found = model().fit(X, sample_weight=np.ldexp(weights, power))
    np.testing.assert_array_equal(found.labels_, plain.labels_)
    assert found.cost_ == plain.cost_
    np.testing.assert_array_equal(
        found.cluster_sizes_, np.ldexp(plain.cluster_sizes_, power)
    )
    assert found.inertia_ == np.ldexp(plain.inertia_, power)


@every_value
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_median_bandwidth_of_huge_and_tiny_weights(kernel, weight):
    X = table()
    found = NystromKMeans(K, kernel=kernel, gamma="median", random_state=0)
    expected = found.fit(X).gamma_
    weights = np.full(N, weight)
    weights[0] *= 2.0
    found.fit(X, sample_weight=weights)
    assert found.gamma_ == pytest.approx(expected, rel=0.02)


@every_value
@pytest.mark.parametrize("weight", [1e-300, 1e300])
@pytest.mark.parametrize("name", SELECTORS)
def test_selectors_take_any_weights(name, weight):
    X, weights = table(), np.random.default_rng(1).uniform(0.5, 4.0, size=N)
    plain = select_landmarks(X, 20, name, sample_weight=weights, random_state=0)
    other = select_landmarks(
        X, 20, name, sample_weight=weights * weight, random_state=0
    )
    assert len(plain) == len(other)
    assert np.isfinite(other.points).all()


@every_value
@pytest.mark.parametrize("weight", UNIFORM)
@pytest.mark.parametrize("name", REDUCERS)
def test_reducers_take_any_weights(name, weight):
    X = table()
    reducer = REDUCERS[name](3, n_clusters=3, random_state=0)
    if weight == 3.0 and name == "laplacian":
        pytest.skip("three copies of a row are neighbours of each other")
    plain = reducer.fit_transform(X)
    found = reducer.fit(X, sample_weight=np.full(N, weight)).transform(X)
    np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-9)


def test_laplacian_scores_of_uneven_huge_weights():
    X, weights = table(), np.random.default_rng(1).uniform(7.0, 9.0, size=N)
    expected = LaplacianScore(2).fit(X, sample_weight=weights).scores_
    found = LaplacianScore(2).fit(X, sample_weight=weights * 1e290).scores_
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("weight", [1e-300, 1e-46, 1e38, 1e300])
def test_batches_of_any_weight(weight):
    X = table(np.float32)
    parts = np.array_split(X, 3)
    plain, found = MODELS["nystrom"](), MODELS["nystrom"]()
    for part in parts:
        plain.partial_fit(part)
        found.partial_fit(part, sample_weight=np.full(len(part), weight))
    np.testing.assert_array_equal(found.predict(X), plain.predict(X))
    np.testing.assert_allclose(found.cluster_sizes_, plain.cluster_sizes_ * weight)
    # A batch next to which all others are nothing, and the other way round.
    found.partial_fit(parts[0], sample_weight=np.full(len(parts[0]), 1.0 / weight))
    assert np.isfinite(found.dual_coef_).all()


def test_nystrom_features_of_any_weights():
    X, weights = table(), np.random.default_rng(1).uniform(0.5, 4.0, size=N)
    plain, found = (
        Nystrom(n_landmarks=30, rank=5, random_state=0).fit(X, sample_weight=w)
        for w in (weights, weights * 2.0**-900)
    )
    np.testing.assert_array_equal(found.transform(X), plain.transform(X))


def test_weights_that_add_up_to_infinity():
    with pytest.raises(ValueError, match="sample_weight adds up to more than"):
        NystromKMeans(2).fit(table(), sample_weight=np.full(N, 1e307))


# --- rows -----------------------------------------------------------------------


@every_value
@pytest.mark.parametrize("model", [MODELS["nystrom"], MODELS["exact"]])
@pytest.mark.parametrize("power", [-70, 60])
def test_rows_times_a_power_of_two_float32(model, power):
    X = table(np.float32)
    plain, found = model().fit(X), model().fit(np.ldexp(X, power))
    # In float64 another of several restarts that end alike may be the best.
    assert adjusted_rand_score(found.labels_, plain.labels_) == 1.0
    np.testing.assert_array_equal(found.predict(np.ldexp(X, power)), found.labels_)


@every_value
@models
@pytest.mark.parametrize("scale", [1e-21, 1e-30, 1e15])
def test_tiny_and_huge_rows_float32(model, scale):
    X = table(np.float32)
    found = model().fit(X * np.float32(scale))
    np.testing.assert_array_equal(found.predict(X * np.float32(scale)), found.labels_)
    assert adjusted_rand_score(found.labels_, model().fit(X).labels_) == 1.0


@pytest.mark.parametrize("scale", [1e-170, 1e170])
def test_rows_whose_squares_no_float_holds(scale):
    with pytest.raises(ValueError, match="beyond what floats can hold"):
        NystromKMeans(2).fit(table() * scale)


@pytest.mark.parametrize("estimator", [NystromKMeans, KernelKMeans])
def test_a_first_row_of_weight_zero_sets_no_bandwidth(estimator):
    X, weights = table(np.float32), np.ones(N)
    X[0], weights[0] = 1e6, 0.0
    found = estimator(K, random_state=0).fit(X, sample_weight=weights)
    expected = estimator(K, random_state=0).fit(X[1:])
    assert found.gamma_ == pytest.approx(expected.gamma_, rel=1e-6)
    assert adjusted_rand_score(found.labels_[1:], expected.labels_) == 1.0


def test_an_outlier_in_the_first_row_costs_no_digits():
    X = table(np.float32)
    X[0] = 300.0
    gamma = NystromKMeans(K, gamma="scale").fit(X).gamma_
    assert gamma == pytest.approx(1.0 / (5 * X.astype(np.float64).var()), rel=1e-9)


@every_value
@pytest.mark.parametrize("estimator", [NystromKMeans, KernelKMeans])
@pytest.mark.parametrize("far", [1e4, 1e6])
def test_an_outlier_that_sets_the_bandwidth_costs_no_clusters(estimator, far):
    X = table(np.float32)
    X[-1] = far
    message = "close to 1: a few outlying rows set it"
    with pytest.warns(UserWarning, match=message) if far == 1e6 else nullcontext():
        found = estimator(K + 1, random_state=0, tol=0.0).fit(X)
    assert (found.cluster_sizes_ > 0.0).all()
    np.testing.assert_array_equal(found.predict(X), found.labels_)
    # At such a bandwidth kernel k-means is plain k-means.
    plain = estimator(K, kernel="linear", random_state=0).fit(X[:-1])
    assert adjusted_rand_score(found.labels_[:-1], plain.labels_) == 1.0
    assert found.cluster_sizes_[found.labels_[-1]] == 1.0


@every_value
@pytest.mark.parametrize("estimator", [NystromKMeans, KernelKMeans])
@pytest.mark.parametrize("few", [4, 2])
def test_tight_groups_are_not_called_outliers(estimator, few):
    # Most pairs are near, but the far ones are no outliers: no warning, which would
    # be an error here.
    sizes = 12 - few, few
    X = np.repeat([1.7, 4.1], sizes)[:, None]
    X += 1e-4 * np.random.default_rng(0).normal(size=X.shape)
    found = estimator(2, random_state=0).fit(X)
    assert sorted(found.cluster_sizes_) == sorted(sizes)


def test_a_narrow_bandwidth_of_the_user_is_taken_as_it_is():
    X = table(np.float32)
    found = NystromKMeans(K, gamma=1e-7, n_landmarks=60, random_state=0).fit(X)
    plain = NystromKMeans(K, kernel="linear", n_landmarks=60, random_state=0).fit(X)
    assert adjusted_rand_score(found.labels_, plain.labels_) == 1.0
    np.testing.assert_array_equal(found.predict(X), found.labels_)
