"""What holds for every selector: a new one is tested by its line in SELECTORS."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from sketchmeans import NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.kernels import as_kernel
from sketchmeans.landmarks import (
    SELECTORS,
    RidgeLeverage,
    as_selector,
    select_landmarks,
)
from sketchmeans.numerics.parallel import Workers
from tests.oracles import kernel_matrix, rbf, same_law_p_value

every_selector = pytest.mark.parametrize("name", SELECTORS)

#: A true law is rejected by chance once in a thousand seeds; the seeds are fixed.
LEVEL = 1e-3

#: These need an input space, which a precomputed kernel has not.
INPUT_SPACE = {"kmeans"}

#: Draws where a law is tested: few of the slow ones, next to none without chance.
DRAWS = {"kmeans": 200, "k-dpp": 400, "greedy": 5, "cholesky": 5}

#: Parameters that make a law cheap to test: it is the same after every step.
QUICK = {"k-dpp": {"n_steps": 12}}


def scattered(n=60, d=3, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def dense(points):
    return points.toarray() if sparse.issparse(points) else np.asarray(points)


def check_landmarks(landmarks, X, m):
    """Check what holds for all landmarks: their number, and where they come from."""
    points = dense(landmarks.points)
    assert points.shape == (m, X.shape[1])
    assert len(landmarks) == m
    assert len(np.unique(points, axis=0)) == m
    if landmarks.indices is not None:
        assert landmarks.indices.dtype.kind == "i"
        assert len(set(landmarks.indices.tolist())) == m
        np.testing.assert_array_equal(points, dense(X[landmarks.indices]))
    if landmarks.scores is not None:
        assert landmarks.scores.shape == (X.shape[0],)
        assert np.isfinite(landmarks.scores).all()
        assert (landmarks.scores >= 0.0).all()
    if landmarks.effective_dimension is not None:
        assert 0.0 < landmarks.effective_dimension <= X.shape[0]


def same_landmarks(first, second):
    np.testing.assert_array_equal(dense(first.points), dense(second.points))
    if first.indices is not None:
        np.testing.assert_array_equal(first.indices, second.indices)
    if first.scores is not None:
        np.testing.assert_array_equal(first.scores, second.scores)
    assert first.effective_dimension == second.effective_dimension


@every_selector
def test_selectors_are_cloneable_and_found_by_name(name):
    selector = as_selector(name)
    again = clone(selector)
    assert type(again) is type(selector)
    assert again.get_params() == selector.get_params()
    assert as_selector(selector) is selector


@every_selector
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_are_distinct_rows_of_the_type_of_the_data(name, dtype):
    X = scattered(dtype=dtype)
    landmarks = select_landmarks(X, 12, name, random_state=0)
    check_landmarks(landmarks, X, 12)
    assert landmarks.points.dtype == dtype


@every_selector
def test_integers_are_rows_too(name):
    X = np.random.default_rng(0).integers(0, 255, size=(60, 4), dtype=np.uint8)
    landmarks = select_landmarks(X, 12, name, random_state=0)
    assert len(landmarks) == 12


@every_selector
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_seeds_reproduce_and_threads_change_nothing(name, dtype):
    # Several blocks, the last one partial; more rows than small-n shortcuts take.
    X = scattered(5003, 2, dtype=dtype)
    alone, again, together = (
        select_landmarks(X, 12, name, n_jobs=n_jobs, random_state=3)
        for n_jobs in (1, 1, 2)
    )
    check_landmarks(alone, X, 12)
    same_landmarks(alone, again)
    same_landmarks(alone, together)


def peak_memory(X, selector):
    tracemalloc.start()
    try:
        select_landmarks(X, 12, selector, n_jobs=1, random_state=0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@every_selector
def test_no_matrix_of_all_pairs_is_formed(name):
    X = scattered(4000, 2)  # whose kernel matrix takes 128 MB
    assert peak_memory(X, name) < 32e6


def test_a_matrix_of_all_pairs_would_be_seen():
    # So that the test above can fail.
    exact = RidgeLeverage(max_exact=1500)
    assert peak_memory(scattered(1500, 2), exact) > 1500**2 * 8


@every_selector
def test_the_estimator_has_the_same_landmarks(name):
    X = scattered(200)
    settings = {"gamma": 0.3, "random_state": 5}
    model = NystromKMeans(3, n_landmarks=9, landmarks=name, **settings).fit(X)
    landmarks = select_landmarks(X, 9, name, **settings)
    np.testing.assert_array_equal(model.landmarks_, landmarks.points)


@every_selector
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial", "linear"])
def test_csr_rows_have_the_landmarks_of_dense_rows(name, kernel):
    X = scattered(60, 8) * (np.random.default_rng(1).random((60, 8)) < 0.6)
    csr = sparse.csr_array(X)
    settings = {"kernel": kernel, "gamma": 0.1, "random_state": 0}
    if kernel == "linear":
        del settings["gamma"]
    landmarks = select_landmarks(csr, 6, name, **settings)
    assert sparse.issparse(landmarks.points)
    check_landmarks(landmarks, csr, 6)
    same = select_landmarks(X, 6, name, **settings)
    np.testing.assert_allclose(dense(landmarks.points), same.points, atol=1e-12)


@every_selector
def test_a_precomputed_kernel_has_the_landmarks_of_its_rows(name):
    X = scattered(40)
    K = kernel_matrix(rbf, X, X, gamma=0.5)
    if name in INPUT_SPACE:
        with pytest.raises(ValueError, match=r"precomputed.*no input space"):
            select_landmarks(K, 8, name, kernel="precomputed")
        return
    landmarks = select_landmarks(K, 8, name, kernel="precomputed", random_state=0)
    same = select_landmarks(X, 8, name, gamma=0.5, random_state=0)
    np.testing.assert_array_equal(landmarks.indices, same.indices)
    np.testing.assert_array_equal(landmarks.points, landmarks.indices[:, None])


@every_selector
@pytest.mark.parametrize("m", [1, 2, 29, 30])
@pytest.mark.parametrize("d", [1, 4])
def test_any_number_of_landmarks_up_to_n(name, m, d):
    X = scattered(30, d)
    landmarks = select_landmarks(X, m, name, gamma=200.0, random_state=0)
    check_landmarks(landmarks, X, m)


@every_selector
def test_more_landmarks_than_rows_are_an_error(name):
    with pytest.raises(ValueError, match="n_landmarks=31 should be <= n_samples=30"):
        select_landmarks(scattered(30), 31, name)


@every_selector
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("value", [0.0, 3.5])
def test_rows_that_are_all_equal_give_one_landmark(name, kernel, value):
    X = np.full((150, 2), value)
    with pytest.warns(UserWarning, match="Only 1 landmarks .* n_landmarks=4"):
        landmarks = select_landmarks(X, 4, name, kernel=kernel, random_state=0)
    np.testing.assert_array_equal(landmarks.points, [[value, value]])


@every_selector
def test_no_value_is_a_landmark_twice(name):
    values = scattered(6, 2)
    X = np.repeat(values, [40, 1, 30, 1, 2, 6], axis=0)
    with pytest.warns(UserWarning, match="Only 6 landmarks .* n_landmarks=9"):
        landmarks = select_landmarks(X, 9, name, gamma=1.0, random_state=0)
    points = landmarks.points
    np.testing.assert_allclose(
        points[np.lexsort(points.T)], values[np.lexsort(values.T)], rtol=1e-12
    )


@every_selector
@pytest.mark.parametrize("m", [1, 5, 9])
def test_rows_of_weight_zero_are_never_landmarks(name, m):
    X, weights = scattered(20, 2), np.ones(20)
    zero = [0, 3, 4, 5, 8, 11, 12, 15, 16, 18, 19]
    weights[zero] = 0.0
    X[zero] += 100.0
    for seed in range(10):
        landmarks = select_landmarks(
            X, m, name, gamma=5.0, sample_weight=weights, random_state=seed
        )
        assert len(landmarks) == m
        assert landmarks.points.max() < 50.0
        if landmarks.indices is not None:
            assert weights[landmarks.indices].all()
        if landmarks.scores is not None:
            assert not landmarks.scores[zero].any()


@every_selector
def test_the_scale_of_the_weights_does_not_matter(name):
    X, weights = scattered(), np.random.default_rng(0).random(60)
    first, scaled = (
        select_landmarks(X, 8, name, sample_weight=weights * scale, random_state=1)
        for scale in (1.0, 2.0**20)
    )
    np.testing.assert_array_equal(first.points, scaled.points)


def drawn_values(name, X, m, times, seed, weights=None):
    """Return the sorted values of landmarks in one dimension, for many generators."""
    selector = as_selector(name).set_params(**QUICK.get(name, {}))
    kernel = as_kernel("rbf", gamma=0.7)
    with Workers(1) as workers:
        rows = as_rows(X, workers, weights)
        found = [
            selector.select(rows, kernel, m, rng).points[:, 0]
            for rng in np.random.default_rng(seed).spawn(times)
        ]
    return [np.sort(values).round(6) for values in found]


@every_selector
@pytest.mark.parametrize("m", [1, 2])
def test_weights_equal_repeats_in_law(name, m):
    values = np.array([[0.0], [0.4], [1.1], [2.5], [2.9]])
    times = np.array([1, 6, 2, 4, 3])
    draws = DRAWS.get(name, 500)
    weighted = drawn_values(name, values, m, draws, 1, times.astype(float))
    repeated = drawn_values(name, np.repeat(values, times, axis=0), m, draws, 2)
    if len({tuple(v) for v in weighted}) == 1:  # a method without chance
        np.testing.assert_array_equal(weighted, repeated)
    else:
        assert same_law_p_value(weighted, repeated) > LEVEL


def residual(K, K_nm, K_mm):
    """Return ``K − K̃`` of the Nyström approximation."""
    return K - K_nm @ np.linalg.pinv(K_mm, rcond=1e-13, hermitian=True) @ K_nm.T


@every_selector
@pytest.mark.parametrize("m", [1, 4, 15])
def test_the_potential_bounds_the_error_of_the_approximation(name, m):
    X = scattered(50)
    Z = select_landmarks(X, m, name, gamma=0.3, random_state=2).points
    K, K_nm, K_mm = (
        kernel_matrix(rbf, A, B, gamma=0.3) for A, B in [(X, X), (X, Z), (Z, Z)]
    )
    error = residual(K, K_nm, K_mm)
    frobenius, trace = np.linalg.norm(error), np.linalg.norm(error, "nuc")
    potential = (2.0 - 2.0 * K_nm).min(axis=1).sum()
    assert frobenius <= trace * (1.0 + 1e-9)
    assert trace <= potential * (1.0 + 1e-9)


@every_selector
def test_more_landmarks_never_raise_the_error(name):
    X = scattered(50)
    Z = select_landmarks(X, 20, name, gamma=0.3, random_state=2).points
    K, K_nm, K_mm = (
        kernel_matrix(rbf, A, B, gamma=0.3) for A, B in [(X, X), (X, Z), (Z, Z)]
    )
    before = [np.inf] * 3
    for m in range(1, 21):
        error = residual(K, K_nm[:, :m], K_mm[:m, :m])
        after = [np.linalg.norm(error, norm) for norm in ("nuc", "fro", 2)]
        assert all(a <= b + 1e-9 for a, b in zip(after, before, strict=True))
        before = after


@every_selector
def test_all_points_as_landmarks_leave_no_error(name):
    X = scattered(30)
    Z = select_landmarks(X, 30, name, gamma=2.0, random_state=0).points
    K, K_nm, K_mm = (
        kernel_matrix(rbf, A, B, gamma=2.0) for A, B in [(X, X), (X, Z), (Z, Z)]
    )
    assert np.linalg.norm(residual(K, K_nm, K_mm)) < 1e-9


def test_an_unknown_method_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"method='best' should be one of \['bless',"):
        select_landmarks(scattered(), 3, "best")
    with pytest.raises(ValueError, match=r"method=7 should be one of"):
        select_landmarks(scattered(), 3, 7)


@pytest.mark.parametrize("m", [0, -1, 2.5, "auto", True])
def test_the_number_of_landmarks_should_be_a_positive_integer(m):
    with pytest.raises(ValueError, match=r"n_landmarks=.* should be an integer >= 1"):
        select_landmarks(scattered(), m)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_values_that_are_not_finite_are_named(kernel):
    X = scattered()
    X[17, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN \(row 17, column 1\)"):
        select_landmarks(X, 1, kernel=kernel, random_state=0)


def test_a_precomputed_kernel_should_be_square():
    with pytest.raises(ValueError, match=r"\(60, 3\) should be square"):
        select_landmarks(scattered(), 3, kernel="precomputed")


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_precomputed_kernel_should_be_finite_and_symmetric(form):
    K = np.eye(600)
    K[3, 590] = 0.25
    with pytest.raises(ValueError, match=r"symmetric; .* by up to 0\.25"):
        select_landmarks(form(K), 3, kernel="precomputed")
    K[590, 3] = K[3, 590] = np.nan
    with pytest.raises(ValueError, match=r"NaN \(row 3, column 590\)"):
        select_landmarks(form(K), 3, kernel="precomputed")
    # Integers do not wrap around, and rounding is no asymmetry.
    select_landmarks(form(5 - np.eye(9, dtype=np.uint8)), 3, kernel="precomputed")
    K[590, 3], K[3, 590] = 0.5, 0.5 + 1e-6
    assert len(select_landmarks(form(K), 3, kernel="precomputed")) == 3


def test_an_indefinite_kernel_warns():
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        select_landmarks(scattered(), 3, kernel="sigmoid", random_state=0)
