"""Rules for gamma against the formulas, pair by pair."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from sketchmeans.data.rows import as_rows
from sketchmeans.kernels import as_kernel
from sketchmeans.kernels.bandwidth import resolve_gamma
from sketchmeans.numerics.parallel import Workers

DISTANCES = {
    "sqeuclidean": lambda x, z: float(((x - z) ** 2).sum()),
    "cityblock": lambda x, z: float(np.abs(x - z).sum()),
}
#: gamma is one over this times the mean or median distance.
FACTORS = {"sqeuclidean": 2.0, "cityblock": 1.0}

every_distance = pytest.mark.parametrize("distance", DISTANCES)
every_pair = pytest.mark.parametrize(
    ("rule", "distance"),
    [
        *(("mean", distance) for distance in DISTANCES),
        *(("median", distance) for distance in DISTANCES),
        ("scale", "sqeuclidean"),
    ],
)


@pytest.fixture
def gamma():
    with Workers(1) as workers:

        def resolve(rule, distance, X, weights=None, seed=0):
            weights = None if weights is None else np.asarray(weights, float)
            rows = as_rows(X, workers, weights)
            return resolve_gamma(rule, distance, rows, np.random.default_rng(seed))

        yield resolve


def normal_rows(n=30, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * [1.0, 3.0, 0.2, 1.0][:d]


def all_distances(X, distance, same_row):
    """Return the distances of all ordered pairs, with or without a row and itself."""
    measure, rows = DISTANCES[distance], np.asarray(X, float)
    return [
        measure(rows[i], rows[j])
        for i in range(len(rows))
        for j in range(len(rows))
        if same_row or i != j
    ]


def lower_median(values):
    """Return the least value that at least half of the values do not exceed."""
    return sorted(values)[(len(values) + 1) // 2 - 1]


@every_distance
def test_mean_is_over_all_ordered_pairs(gamma, distance):
    X = normal_rows(30)
    mean = np.mean(all_distances(X, distance, same_row=True))
    expected = 1.0 / (FACTORS[distance] * mean)
    assert gamma("mean", distance, X) == pytest.approx(expected, rel=1e-12)
    assert gamma("mean", distance, X[:1]) == 1.0


@every_distance
def test_median_is_over_pairs_of_different_rows(gamma, distance):
    for n in (2, 31):
        X = normal_rows(n)
        median = lower_median(all_distances(X, distance, same_row=False))
        expected = 1.0 / (FACTORS[distance] * median)
        assert gamma("median", distance, X) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("distance", [*DISTANCES, None])
def test_scale_is_that_of_scikit_learn(gamma, distance):
    X = normal_rows() + np.array([5.0, 0.0, -3.0, 1.0])
    expected = 1.0 / (X.shape[1] * X.var())
    assert gamma("scale", distance, X) == pytest.approx(expected, rel=1e-12)


def test_mean_without_a_distance_is_one_over_the_features(gamma):
    assert gamma("mean", None, normal_rows()) == 0.25


def test_a_number_is_taken_as_it_is(gamma):
    assert gamma(0.125, "sqeuclidean", normal_rows()) == 0.125
    assert gamma(np.float32(2), None, normal_rows()) == 2.0


@every_pair
def test_weights_equal_repeats(gamma, rule, distance):
    X, times = normal_rows(12), np.array([1, 2, 3, 1, 1, 4, 1, 0, 2, 1, 5, 1])
    repeated = np.repeat(X, times, axis=0)
    weighted = gamma(rule, distance, X, times)
    assert weighted == pytest.approx(gamma(rule, distance, repeated), rel=1e-12)
    assert weighted != pytest.approx(gamma(rule, distance, X), rel=1e-3)


@every_pair
def test_constant_rows_have_gamma_one(gamma, rule, distance):
    # One feature: entries that differ between features have a scale.
    for value in (np.float32(0.1), 1e6):
        assert gamma(rule, distance, np.full((20, 1), value)) == 1.0


@every_distance
def test_median_falls_back_on_the_mean_where_most_rows_are_equal(gamma, distance):
    X = np.zeros((20, 2))
    X[-1] = 3.0, 4.0
    assert gamma("median", distance, X) == gamma("mean", distance, X)
    mean = np.mean(all_distances(X, distance, same_row=True))
    assert gamma("median", distance, X) == pytest.approx(1 / (FACTORS[distance] * mean))


@every_pair
def test_csr_and_other_types_equal_dense_float64(gamma, rule, distance):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 5, size=(40, 6)) * (rng.random((40, 6)) < 0.5)
    expected = gamma(rule, distance, X.astype(np.float64))
    for dtype in (np.float32, np.int64):
        other = X.astype(dtype)
        for form in (other, sparse.csr_array(other)):
            assert gamma(rule, distance, form) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("rule", "distance"), [("mean", "sqeuclidean"), ("median", "cityblock")]
)
def test_an_offset_does_not_matter_in_float32(gamma, rule, distance):
    near = np.random.default_rng(4).integers(-128, 128, size=(200, 5)) / 64.0
    far = (near + 10_000).astype(np.float32)
    expected = gamma(rule, distance, near)
    assert gamma(rule, distance, far) == pytest.approx(expected, rel=1e-5)


@every_distance
def test_mean_over_many_blocks(gamma, distance):
    X = np.random.default_rng(5).random((10_000, 3)).astype(np.float32)
    # The mean over pairs of independent uniforms: 1/6 squared and 1/3 in L1, each.
    expected = {"sqeuclidean": 1 / (2 * 3 / 6), "cityblock": 1 / (3 / 3)}[distance]
    assert gamma("mean", distance, X) == pytest.approx(expected, rel=0.03)
    wide = X.astype(np.float64)
    exact = (
        1.0 / (4.0 * wide.var(axis=0).sum())
        if distance == "sqeuclidean"
        else 1.0 / sum(_mean_gap(feature) for feature in wide.T)
    )
    assert gamma("mean", distance, X) == pytest.approx(exact, rel=1e-5)


def _mean_gap(feature):
    """Return the mean of |a − b| over all pairs, one value at a time."""
    return np.mean([np.abs(feature - value).mean() for value in feature])


@pytest.mark.parametrize(
    ("distance", "weighted"), [("sqeuclidean", False), ("cityblock", True)]
)
def test_median_of_many_rows_is_estimated_on_a_sample(gamma, distance, weighted):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(1500, 3))
    weights = rng.integers(0, 4, 1500) if weighted else None
    rows = X if weights is None else np.repeat(X, weights, axis=0)
    rows = rows[rng.permutation(len(rows))[:900]]
    full = gamma("median", distance, rows)  # all pairs of 900 rows
    found = gamma("median", distance, X, weights, seed=1)
    assert found == pytest.approx(full, rel=0.1)
    assert found == gamma("median", distance, X, weights, seed=1)
    assert found != gamma("median", distance, X, weights, seed=2)


def test_sampled_rows_of_weight_zero_do_not_count(gamma):
    X = np.random.default_rng(7).normal(size=(3000, 2))
    X[2000:] += 1000.0
    weights = np.repeat([1.0, 0.0], [2000, 1000])
    found = gamma("median", "sqeuclidean", X, weights)
    assert found == pytest.approx(gamma("median", "sqeuclidean", X[:1000]), rel=0.1)


@pytest.mark.parametrize("weighted", [False, True])
def test_mean_l1_distance_of_very_many_rows_is_estimated_on_a_sample(gamma, weighted):
    X = np.random.default_rng(8).random((120_000, 1))
    weights = np.repeat([1.0, 0.0], 60_000) if weighted else None
    X[60_000:] *= 1.0 if weights is None else 100.0
    assert gamma("mean", "cityblock", X, weights) == pytest.approx(3.0, rel=0.02)


@pytest.mark.parametrize(
    ("name", "distance"),
    [
        ("rbf", "sqeuclidean"),
        ("laplacian", "cityblock"),
        ("polynomial", None),
        ("sigmoid", None),
        ("chi2", None),
    ],
)
def test_each_kernel_resolves_by_its_own_distance(gamma, name, distance):
    X = np.abs(normal_rows())
    kernel = as_kernel(name, gamma="mean")
    with Workers(1) as workers:
        resolved = kernel.resolve(as_rows(X, workers), np.random.default_rng(0))
    assert resolved.gamma == gamma("mean", distance, X)
    assert kernel.gamma == "mean"


@every_pair
def test_sparse_rows_of_millions_of_features_stay_sparse(gamma, rule, distance):
    n, width = 200, 2**22
    rng = np.random.default_rng(0)
    columns = np.sort(rng.choice(width, 50, replace=False))
    few = sparse.random_array((n, 50), density=0.2, rng=rng, format="csr")
    wide = sparse.csr_array((few.data, columns[few.indices], few.indptr), (n, width))
    tracemalloc.start()
    try:
        found = gamma(rule, distance, wide)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 8 * width  # a few rows, and not a table
    if rule != "scale":  # which is of all values
        assert found == pytest.approx(gamma(rule, distance, few.toarray()), rel=1e-12)
