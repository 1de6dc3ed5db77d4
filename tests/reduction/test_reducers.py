"""Reducers: each against its dense formula, the laws of B14, and hard tables."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.utils.estimator_checks import parametrize_with_checks

import sketchmeans.data.rows as rows_module
import sketchmeans.reduction.signs as signs_module
import sketchmeans.reduction.spectral as spectral_module
from sketchmeans import (
    ApproximateSVD,
    FeatureSampling,
    LaplacianScore,
    SignProjection,
)
from sketchmeans.numerics.parallel import Workers
from sketchmeans.reduction import REDUCERS, as_reducer
from sketchmeans.reduction.signs import MailmanProduct, Signs, draw_signs
from sketchmeans.reduction.spectral import draw_features

ALL = list(REDUCERS.values())
SELECTORS = [FeatureSampling, LaplacianScore]
PROJECTIONS = [ApproximateSVD, SignProjection]
SPECTRAL = [ApproximateSVD, FeatureSampling]


def _expected_failures(estimator):
    if getattr(estimator, "fit_rows", None) is None:
        return {}
    reason = "the rows that are fitted are drawn: weights are repeated rows in law only"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


# The one check that reports a skip here, check_array_api_input, needs an environment
# variable that is read at import: cluster/test_estimator_checks.py starts a process.
@parametrize_with_checks(
    [
        FeatureSampling(n_clusters=2, fit_rows=8),
        SignProjection(n_components=1, method="mailman"),
        ApproximateSVD(n_clusters=2),
        LaplacianScore(),
    ],
    expected_failed_checks=_expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module", name="X")
def rows():
    """Three clusters; the first features matter more than the last."""
    rng = np.random.default_rng(0)
    centres = 5.0 * rng.standard_normal((3, 40))
    X = centres[rng.integers(3, size=400)] + rng.standard_normal((400, 40))
    return X * 0.9 ** np.arange(40)


def sign_matrix(reducer):
    """Return R of Algorithm 2 from the packed signs, bit by bit."""
    r = reducer.n_components_
    d = len(reducer.signs_)
    R = np.empty((d, r))
    for i in range(d):
        for j in range(r):
            bit = (int(reducer.signs_[i, j // 8]) >> (7 - j % 8)) & 1
            R[i, j] = (1.0 if bit else -1.0) / np.sqrt(r)
    return R


def linear_map(reducer):
    """Return the matrix D of ``C = A D`` of a fitted reducer, d × r."""
    if isinstance(reducer, SignProjection):
        return sign_matrix(reducer)
    if isinstance(reducer, ApproximateSVD):
        return reducer.components_.T
    D = np.eye(reducer.n_features_in_)[:, reducer.get_support()]
    return D * getattr(reducer, "scale_", 1.0)


# --- each algorithm is its formula ----------------------------------------------------


@pytest.mark.parametrize("reducer", ALL)
def test_transform_is_the_product_with_the_map(reducer, X):
    for rows in (X, X.astype(np.float32)):
        fitted = reducer(7, n_clusters=3, random_state=0).fit(rows)
        C = fitted.transform(rows)
        assert C.dtype == rows.dtype
        assert C.shape == (400, fitted.n_components_)
        expected = rows.astype(float) @ linear_map(fitted)
        tolerance = 2e2 * np.finfo(rows.dtype).eps
        np.testing.assert_allclose(C, expected, rtol=0, atol=tolerance)


def test_exact_sampling_is_algorithm_1(X):
    reducer = FeatureSampling(12, n_clusters=3, svd="exact", random_state=4).fit(X)
    V = np.linalg.svd(X, full_matrices=False)[2][:3].T
    p = (V**2).sum(axis=1) / 3
    np.testing.assert_allclose(reducer.probabilities_, p, atol=1e-10)
    assert reducer.counts_.sum() == 12
    np.testing.assert_allclose(
        reducer.scale_, np.sqrt(reducer.counts_ / (12 * p[reducer.get_support()]))
    )


def test_fast_probabilities_are_close_to_the_exact_ones(X):
    exact = FeatureSampling(n_clusters=3, svd="exact", random_state=0).fit(X)
    fast = FeatureSampling(n_clusters=3, random_state=0).fit(X)
    np.testing.assert_allclose(fast.probabilities_, exact.probabilities_, atol=2e-3)
    assert fast.probabilities_.sum() == pytest.approx(1.0)


def test_a_feature_drawn_twice_counts_as_two_columns():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((30, 6))
    p = np.array([0.5, 0.2, 0.1, 0.1, 0.1, 0.0])
    features, counts, scale = draw_features(p, 10, rng)
    assert counts.max() > 1
    # Definition 5 to the letter: a column for each draw.
    picks = np.repeat(features, counts)
    separate = Y[:, picks] / np.sqrt(10 * p[picks])
    combined = Y[:, features] * scale
    np.testing.assert_allclose(combined @ combined.T, separate @ separate.T)


def test_draws_follow_the_probabilities():
    p = np.array([0.5, 0.3, 0.15, 0.05, 0.0])
    counts = np.zeros(5)
    for rng in np.random.default_rng(1).spawn(500):
        features, drawn, _ = draw_features(p, 8, rng)
        counts[features] += drawn
    assert counts[4] == 0
    expected = 500 * 8 * p[:4]
    chi_square = ((counts[:4] - expected) ** 2 / expected).sum()
    assert chi_square < 16.3  # 99.9% of chi-square with 3 degrees of freedom


def test_exact_features_are_those_of_truncated_svd(X):
    ours = ApproximateSVD(n_clusters=4, svd="exact").fit(X)
    theirs = TruncatedSVD(4, algorithm="arpack").fit(X)
    np.testing.assert_allclose(
        np.abs(ours.components_), np.abs(theirs.components_), atol=1e-8
    )
    np.testing.assert_allclose(ours.singular_values_, theirs.singular_values_)


def test_projection_on_the_singular_directions_keeps_the_objective_in_between(X):
    """Eq. (14): the cost of a partition splits into that of the sketch and the rest."""
    fitted = ApproximateSVD(n_clusters=3, random_state=0).fit(X)
    Z = fitted.components_.T
    E = X - X @ Z @ Z.T
    np.testing.assert_allclose(Z.T @ Z, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(E @ Z, 0, atol=1e-10)
    labels = np.arange(400) % 3

    def cost(A):
        return sum(
            ((A[labels == j] - A[labels == j].mean(axis=0)) ** 2).sum()
            for j in range(3)
        )

    assert cost(X) == pytest.approx(cost(fitted.transform(X)) + cost(E))


def laplacian_oracle(X, n_neighbors):
    """Return He, Cai & Niyogi's scores with every n × n matrix formed."""
    n = len(X)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    t2 = squared.mean()
    S = np.zeros((n, n))
    for i in range(n):
        order = [j for j in np.argsort(squared[i]) if j != i][:n_neighbors]
        for j in order:
            S[i, j] = S[j, i] = np.exp(-squared[i, j] / (2 * t2))
    D = np.diag(S.sum(axis=1))
    L = D - S
    scores = []
    for f in X.T:
        centred = f - (f @ D @ np.ones(n)) / (np.ones(n) @ D @ np.ones(n))
        scores.append((centred @ L @ centred) / (centred @ D @ centred))
    return np.array(scores)


@pytest.mark.parametrize(
    ("n_neighbors", "form"),
    [(1, np.asarray), (5, sparse.csr_array), (30, np.asarray)],
)
def test_laplacian_scores_are_their_formula(X, n_neighbors, form):
    part = X[:90, :12]
    fitted = LaplacianScore(4, n_neighbors=n_neighbors).fit(form(part))
    expected = laplacian_oracle(part, n_neighbors)
    np.testing.assert_allclose(fitted.scores_, expected, rtol=1e-10)
    best = np.sort(np.argsort(expected)[:4])
    np.testing.assert_array_equal(fitted.get_support(indices=True), best)


@pytest.mark.parametrize("offset", [1e3, 1e7])
def test_laplacian_scores_far_from_the_origin(X, offset):
    near = LaplacianScore(4).fit(X[:90, :12])
    far = LaplacianScore(4).fit(X[:90, :12] + offset)
    np.testing.assert_allclose(far.scores_, near.scores_, rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_laplacian_score_leaves_constant_features_to_the_end(X, form):
    constants = np.tile([0.1, 0.3, 0.7, 1.1, 1e3, 1 / 3], (60, 1))
    fitted = LaplacianScore(4).fit(form(np.hstack([constants, X[:60, :4]])))
    assert np.isinf(fitted.scores_[:6]).all()
    np.testing.assert_array_equal(fitted.get_support(indices=True), [6, 7, 8, 9])


# --- the laws of B14 ------------------------------------------------------------------


def mean_and_error(values):
    return np.mean(values), np.std(values) / np.sqrt(len(values))


def test_sampling_keeps_squared_norms_on_average(X):
    """Lemma 7's E‖YΩS‖² = ‖Y‖²."""
    rng = np.random.default_rng(0)
    p = (rng.standard_normal((40, 3)) ** 2).sum(axis=1)
    p /= p.sum()
    norms = []
    for child in rng.spawn(3000):
        features, _, scale = draw_features(p, 6, child)
        norms.append((X[:50, features] ** 2 @ scale**2).sum())
    mean, error = mean_and_error(norms)
    assert abs(mean - (X[:50] ** 2).sum()) < 3.5 * error
    assert error < 0.05 * mean


def test_signs_keep_squared_norms_on_average(X):
    """Lemma 9's E‖YR‖² = ‖Y‖²."""
    Y = X[:50]
    norms = [
        (SignProjection(6, random_state=s, n_jobs=1).fit(Y).transform(Y) ** 2).sum()
        for s in range(400)
    ]
    mean, error = mean_and_error(norms)
    assert abs(mean - (Y**2).sum()) < 3.5 * error
    assert error < 0.05 * mean


def test_signs_are_fair_and_independent():
    bits = draw_signs(300, 400, np.random.default_rng(0))
    signs = Signs(bits, 400).panel(0, 300, np.int8).astype(float)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.mean()) < 4 / np.sqrt(signs.size)
    products = (signs.T @ signs)[np.triu_indices(400, 1)] / np.sqrt(300)
    assert abs(products.mean()) < 4 / np.sqrt(len(products))
    assert products.var() == pytest.approx(1.0, rel=0.03)


def orthonormal(d, k, seed=0):
    rng = np.random.default_rng(seed)
    # Rows of very different length: some features matter far more than others.
    rows = rng.standard_normal((d, k)) * rng.exponential(size=(d, 1))
    return np.linalg.qr(rows)[0]


@pytest.mark.parametrize("band", [0.3, 0.7])
def test_singular_values_of_sampled_rows_are_within_the_band_of_lemma_6(band):
    k, delta = 4, 0.1
    V = orthonormal(60, k)
    r = int(np.ceil(4 * k * np.log(2 * k / delta) / band**2))  # more than d
    p = (V**2).sum(axis=1) / k
    inside = 0
    for rng in np.random.default_rng(7).spawn(200):
        features, _, scale = draw_features(p, r, rng)
        values = np.linalg.svd(V[features].T * scale, compute_uv=False)
        inside += bool((np.abs(values**2 - 1) <= band).all())
    assert inside >= 200 * (1 - delta)


def test_singular_values_of_sign_projections_are_within_the_band_of_lemma_10():
    k, eps = 2, 0.3
    r = int(np.ceil(3330 * k / eps**2))  # 74,000
    V = orthonormal(12, k)
    inside = 0
    for rng in np.random.default_rng(7).spawn(20):
        R = Signs(draw_signs(12, r, rng), r).panel(0, 12, np.float32) / np.sqrt(r)
        values = np.linalg.svd(V.T @ R, compute_uv=False)
        inside += bool((np.abs(values**2 - 1) <= eps).all())
    assert inside >= 0.97 * 20


@pytest.mark.parametrize("reducer", [ApproximateSVD, SignProjection, FeatureSampling])
def test_partition_of_the_sketch_is_within_the_factor_of_the_theorem(reducer):
    X = load_digits().data
    full = KMeans(10, n_init=3, random_state=0).fit(X)
    C = reducer(n_clusters=10, random_state=0).fit_transform(X)
    labels = KMeans(10, n_init=3, random_state=0).fit_predict(C)
    cost = sum(
        ((X[labels == j] - X[labels == j].mean(axis=0)) ** 2).sum() for j in range(10)
    )
    assert cost <= 1.3 * full.inertia_  # Theorems 11-13 promise 3 + ε and 2 + ε


# --- the mailman product --------------------------------------------------------------


SHAPES = [
    ((1, 1), 1, np.float64),
    ((300, 17), 7, np.float32),
    ((130, 1), 8, np.float64),
    ((257, 700), 40, np.float32),
    ((257, 700), 9, np.float64),
    ((3, 64), 9, np.float32),
]


def test_mailman_product_is_the_plain_product():
    for shape, r, dtype in SHAPES:
        rng = np.random.default_rng(r)
        X = rng.standard_normal(shape).astype(dtype)
        bits = draw_signs(shape[1], r, rng)
        expected = X.astype(float) @ Signs(bits, r).panel(0, shape[1], np.float64)
        with Workers(1) as workers:
            product = MailmanProduct(bits, r, dtype, workers)
            for form in (np.asarray, sparse.csr_array):
                found = product(form(X))
                assert found.dtype == dtype
                np.testing.assert_allclose(
                    found, expected, rtol=0, atol=8 * shape[1] * np.finfo(dtype).eps
                )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_methods_give_the_same_features(X, form):
    plain = SignProjection(30, random_state=3).fit(X)
    mailman = SignProjection(30, method="mailman", random_state=3).fit(X)
    np.testing.assert_array_equal(plain.signs_, mailman.signs_)
    np.testing.assert_allclose(
        plain.transform(form(X)), mailman.transform(form(X)), atol=1e-12
    )


# --- signs in bits --------------------------------------------------------------------


def test_signs_are_stored_in_bits(X):
    fitted = SignProjection(20, random_state=0).fit(X)
    assert fitted.signs_.dtype == np.uint8
    assert fitted.signs_.nbytes == 40 * 3
    assert len(pickle.dumps(fitted)) < 2000
    np.testing.assert_allclose(fitted.sign_matrix() / np.sqrt(20), sign_matrix(fitted))
    assert fitted.sign_matrix().dtype == np.int8


@pytest.mark.parametrize(
    ("form", "dtype"), [(np.asarray, np.uint8), (sparse.csr_array, np.float64)]
)
def test_signs_are_unpacked_in_panels(X, form, dtype, monkeypatch):
    X = form(np.abs(10 * X).astype(dtype))
    fitted = SignProjection(20, random_state=0).fit(X)
    whole = fitted.transform(X)
    monkeypatch.setattr(signs_module, "_PANEL_BYTES", 7 * 20 * 8)
    np.testing.assert_allclose(fitted.transform(X), whole, rtol=1e-4, atol=1e-3)


def test_signs_do_not_depend_on_the_rows(X):
    one = SignProjection(20, random_state=0).fit(X)
    other = SignProjection(20, random_state=0).fit(-2.0 * X[:3])
    np.testing.assert_array_equal(one.signs_, other.signs_)


# --- where rows come from -------------------------------------------------------------


@pytest.mark.parametrize(
    ("reducer", "dtype"),
    [(r, np.uint8 if i % 2 else np.float64) for i, r in enumerate(ALL)],
)
def test_csr_is_dense(reducer, dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 200, (700, 30)) * (rng.random((700, 30)) < 0.4)
    X = X.astype(dtype)
    tolerance = 1e-2 if dtype in (np.uint8, np.float32) else 1e-8
    fits = [
        reducer(9, n_clusters=3, random_state=0).fit(form(X))
        for form in (np.asarray, sparse.csr_array, sparse.csc_matrix)
    ]
    features = [
        fitted.transform(form(X))
        for fitted in fits
        for form in (np.asarray, sparse.csr_array, sparse.coo_array)
    ]
    for found in features[1:]:
        assert sparse.issparse(found) <= issubclass(reducer, tuple(SELECTORS))
        dense = found.toarray() if sparse.issparse(found) else found
        assert dense.dtype == features[0].dtype
        np.testing.assert_allclose(dense, features[0], rtol=1e-4, atol=tolerance)


@pytest.mark.parametrize("reducer", SELECTORS)
def test_chosen_features_of_sparse_rows_stay_sparse(reducer):
    X = sparse.random_array((200, 50), density=0.1, rng=0, format="csr")
    C = reducer(5, n_clusters=3, random_state=0).fit_transform(X)
    assert C.format == "csr"
    assert C.nnz < 0.2 * C.shape[0] * C.shape[1]


@pytest.mark.parametrize("reducer", ALL)
def test_integers_are_their_floats(reducer):
    X = np.random.default_rng(0).integers(0, 255, (300, 30), dtype=np.uint8)
    small = reducer(8, n_clusters=3, random_state=0)
    expected = small.fit_transform(X.astype(np.float32))
    found = small.fit_transform(X)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    assert small.fit_transform(X.astype(np.int64)).dtype == np.float64


@pytest.mark.parametrize("reducer", ALL)
def test_threads_give_the_same_bits(reducer, monkeypatch):
    monkeypatch.setattr(rows_module, "_BLOCK_BYTES", 2**15)
    X = np.random.default_rng(0).standard_normal((1500, 40)).astype(np.float32)
    for form in (np.asarray, sparse.csr_array):
        one, two = (
            reducer(9, n_clusters=3, n_jobs=n_jobs, random_state=0).fit_transform(
                form(X)
            )
            for n_jobs in (1, 2)
        )
        if sparse.issparse(one):
            one, two = one.toarray(), two.toarray()
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("reducer", ALL)
def test_same_seed_same_features(reducer, X):
    make = [
        lambda: 3,
        lambda: np.random.default_rng(3),
        lambda: np.random.RandomState(3),
    ]
    for seed in make:
        one, two = (
            reducer(9, n_clusters=3, fit_rows=50, random_state=seed())
            if reducer is not SignProjection
            else reducer(9, random_state=seed())
            for _ in range(2)
        )
        np.testing.assert_array_equal(one.fit_transform(X), two.fit_transform(X))


@pytest.mark.parametrize("reducer", [FeatureSampling, SignProjection])
def test_other_seed_other_features(reducer, X):
    maps = [linear_map(reducer(9, random_state=seed).fit(X)) for seed in range(2)]
    assert maps[0].shape != maps[1].shape or not np.allclose(*maps)


@pytest.mark.parametrize("reducer", [ApproximateSVD, FeatureSampling, LaplacianScore])
def test_fit_rows(reducer, X):
    whole = reducer(9, n_clusters=3, random_state=0).fit(X)
    capped = reducer(9, n_clusters=3, random_state=0, fit_rows=10**6).fit(X)
    np.testing.assert_array_equal(linear_map(whole), linear_map(capped))
    # A NaN in a row that is not drawn is no matter of the fit.
    marked = X.copy()
    chosen = np.random.default_rng(0).choice(400, 60, replace=False)
    marked[np.setdiff1d(np.arange(400), chosen)] = np.nan
    part = reducer(9, n_clusters=3, random_state=0, fit_rows=60).fit(marked)
    assert part.n_components_ > 0
    with pytest.raises(ValueError, match="Input X contains NaN"):
        part.transform(marked)


@pytest.mark.parametrize("reducer", SPECTRAL)
def test_a_subsample_finds_about_the_same_directions(reducer, X):
    whole = reducer(n_clusters=3, svd="exact").fit(X)
    part = reducer(n_clusters=3, svd="exact", fit_rows=150, random_state=0).fit(X)
    if reducer is FeatureSampling:
        np.testing.assert_allclose(part.probabilities_, whole.probabilities_, atol=0.02)
    else:
        overlap = np.linalg.svd(
            part.components_ @ whole.components_.T, compute_uv=False
        )
        assert overlap.min() > 0.98


# --- sizes ----------------------------------------------------------------------------


DEFAULT_SIZES = [
    (SignProjection, 3, 20),
    (SignProjection, 50, 60),
    (LaplacianScore, 8, 32),
    (ApproximateSVD, 3, 3),
    (ApproximateSVD, 100, 60),
]


def test_default_number_of_features():
    for reducer, k, size in DEFAULT_SIZES:
        X = np.random.default_rng(0).standard_normal((90, 60))
        fitted = reducer(n_clusters=k, random_state=0).fit(X)
        assert fitted.n_components_ == size == fitted.transform(X).shape[1]


DEFAULT_DRAWS = [(3, 20), (8, 32), (50, 60)]


def test_default_number_of_draws():
    for k, draws in DEFAULT_DRAWS:
        X = np.random.default_rng(0).standard_normal((90, 60))
        fitted = FeatureSampling(n_clusters=k, random_state=0).fit(X)
        assert fitted.counts_.sum() == draws
        assert fitted.n_components_ == len(fitted.counts_) == fitted.get_support().sum()


@pytest.mark.parametrize("reducer", ALL)
def test_more_features_than_there_are_is_an_error(reducer, X):
    with pytest.raises(ValueError, match="n_components=41 should be <= n_features=40"):
        reducer(41).fit(X)
    reducer(40).fit(X)


def test_eps_outside_0_1_is_an_error(X):
    for eps in (0.0, 1.0, np.nan, "small", True):
        with pytest.raises(ValueError, match=r"eps=.* should be"):
            ApproximateSVD(eps=eps).fit(X)
    ApproximateSVD(eps=np.float32(0.5)).fit(X)


ERRORS = [
    (ApproximateSVD(0), "n_components=0 should be an integer >= 1"),
    (SignProjection(2.0), "n_components=2.0 should be an integer >= 1"),
    (LaplacianScore(n_clusters=0), "n_clusters=0 should be an integer >= 1"),
    (
        FeatureSampling(svd="slow"),
        r"svd='slow' should be one of \['fast', 'truncated', 'exact'\]",
    ),
    (
        SignProjection(method="x"),
        r"method='x' should be one of \['gemm', 'mailman'",
    ),
    (LaplacianScore(n_neighbors=0), "n_neighbors=0 should be an integer >= 1"),
    (ApproximateSVD(fit_rows=0), "fit_rows=0 should be an integer >= 1"),
    (LaplacianScore(fit_rows=1.5), "fit_rows=1.5 should be an integer >= 1"),
    (SignProjection(n_jobs=0), "n_jobs=0 should be a nonzero integer"),
    (SignProjection(random_state="x"), "random_state='x' should be None"),
]


def test_errors_name_the_parameter(X):
    for model, message in ERRORS:
        with pytest.raises(ValueError, match=message):
            model.fit(X)


def test_exact_svd_checks_its_memory(X, monkeypatch):
    calls = []
    monkeypatch.setattr(spectral_module, "check_exact_fits", calls.append)
    ApproximateSVD(n_clusters=2).fit(X)
    assert not calls
    ApproximateSVD(n_clusters=2, svd="exact").fit(X)
    assert len(calls) == 1


# --- hard tables ----------------------------------------------------------------------


@pytest.mark.parametrize("reducer", ALL)
def test_zero_table(reducer):
    for X in (np.zeros((50, 30)), sparse.csr_array((3, 30)), np.zeros((1, 4))):
        C = reducer(n_clusters=4, random_state=0).fit_transform(X)
        assert C.shape[0] == X.shape[0]
        assert C.shape[1] >= 1
        assert abs(C).max() == 0


@pytest.mark.parametrize("reducer", ALL)
def test_fewer_features_than_clusters(reducer, X):
    for few in (X[:, :3], sparse.csr_array(X[:, :1])):
        fitted = reducer(n_clusters=8, random_state=0).fit(few)
        assert fitted.n_components_ <= few.shape[1]
        assert fitted.transform(few).shape == (400, fitted.n_components_)


@pytest.mark.parametrize(
    ("svd", "dtype", "shape"),
    [
        ("fast", np.float32, (400, 100)),
        ("fast", np.float64, (400, 100)),
        ("exact", np.float32, (30, 100)),
        ("exact", np.float64, (400, 12)),
    ],
)
def test_rank_below_the_number_of_clusters(svd, dtype, shape):
    rng = np.random.default_rng(0)
    X = (
        rng.standard_normal((shape[0], 3)) @ rng.standard_normal((3, shape[1]))
    ).astype(dtype)
    fitted = ApproximateSVD(n_clusters=8, svd=svd, random_state=0).fit(X)
    assert fitted.n_components_ == 3
    # Three directions hold all that there is.
    np.testing.assert_allclose(
        fitted.transform(X) @ fitted.components_, X, atol=200 * np.finfo(dtype).eps
    )
    sampled = FeatureSampling(n_clusters=8, svd=svd, random_state=0).fit(X)
    V = np.linalg.svd(X.astype(float), full_matrices=False)[2][:3].T
    tolerance = 1e-5 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(
        sampled.probabilities_, (V**2).sum(axis=1) / 3, atol=tolerance
    )


@pytest.mark.parametrize(
    ("reducer", "value"), [(r, np.inf if i % 2 else np.nan) for i, r in enumerate(ALL)]
)
def test_values_that_are_not_finite(reducer, value, X):
    bad = X.copy()
    bad[37, 5] = value
    with pytest.raises(ValueError, match=r"Input X contains .* \(row 37, column 5\)"):
        reducer(random_state=0).fit(bad)
    fitted = reducer(random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"Input X contains .* \(row 37, column 5\)"):
        fitted.transform(bad)


# --- names and habits -----------------------------------------------------------------


@pytest.mark.parametrize("reducer", SELECTORS)
def test_names_of_the_chosen_features(reducer, X):
    names = [f"gene {i}" for i in range(40)]
    frame = pytest.importorskip("pandas").DataFrame(X, columns=names)
    fitted = reducer(6, n_clusters=3, random_state=0).fit(frame)
    chosen = fitted.get_support(indices=True)
    assert [names[i] for i in chosen] == list(fitted.get_feature_names_out())
    np.testing.assert_array_equal(np.flatnonzero(fitted.get_support()), chosen)
    bare = reducer(6, n_clusters=3, random_state=0).fit(X)
    assert list(bare.get_feature_names_out()) == [f"x{i}" for i in chosen]
    assert list(bare.get_feature_names_out(names)) == [names[i] for i in chosen]
    with pytest.raises(ValueError, match="input_features"):
        fitted.get_feature_names_out(["a"] * 40)


def test_a_selector_lends_no_handle_on_its_choice(X):
    fitted = LaplacianScore(3).fit(X)
    fitted.get_support(indices=True)[:] = 0
    assert len(set(fitted.get_support(indices=True))) == 3


@pytest.mark.parametrize("reducer", PROJECTIONS)
def test_names_of_made_features(reducer, X):
    fitted = reducer(3, random_state=0).fit(X)
    prefix = reducer.__name__.lower()
    assert list(fitted.get_feature_names_out()) == [f"{prefix}{i}" for i in range(3)]


def test_as_reducer_resolves_names():
    rng = np.random.default_rng(0)
    for name, kind in REDUCERS.items():
        reducer = as_reducer(name, 5, rng, n_jobs=2)
        assert type(reducer) is kind
        assert reducer.n_clusters == 5
        assert reducer.n_jobs == 2
        assert isinstance(reducer.random_state, int)
    with pytest.raises(
        ValueError, match=r"reducer='pca' should be one of \['laplacian'"
    ):
        as_reducer("pca", 5, rng)
    with pytest.raises(ValueError, match="reducer=3 should be one of"):
        as_reducer(3, 5, rng)


def test_as_reducer_clones_and_respects_what_is_set():
    rng = np.random.default_rng(0)
    given = SignProjection(7, random_state=11, n_jobs=1)
    reducer = as_reducer(given, 5, rng, n_jobs=2)
    assert reducer is not given
    assert (reducer.n_clusters, reducer.random_state, reducer.n_jobs) == (5, 11, 1)
    assert given.n_clusters == 8
    other = as_reducer(TruncatedSVD(2), 5, rng, n_jobs=2)
    assert isinstance(other.random_state, int)
