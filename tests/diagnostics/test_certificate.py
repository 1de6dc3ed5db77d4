"""Certificates: bounds that no partition undercuts, and how tight they are."""

import json
import warnings
from functools import cache

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels

from sketchmeans import KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.diagnostics import Certificate, certificate
from sketchmeans.diagnostics.spectral_bounds import (
    _CUT_MARGIN,
    SecondMoment,
    _bound_squared_diameter,
    compute_nystrom_moment,
    sum_tails,
)
from sketchmeans.kernels import as_kernel, compute_gram
from sketchmeans.numerics.linalg import pseudo_inverse
from sketchmeans.numerics.parallel import Workers
from sketchmeans.report.words import describe_certificate
from tests import oracles
from tests.pairs import every_value

KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.4},
    "laplacian": {"kernel": "laplacian", "gamma": 0.3},
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": "polynomial", "gamma": 0.5, "degree": 2, "coef0": 1.0},
}
WEIGHTS = np.array([1.0, 3.0, 0.5, 2.0, 1.0, 1.0, 4.0, 0.25])

#: The oracle itself is a difference of numbers of the order of one.
ROUNDING = 1e-13


def few_rows(seed, n=8):
    """Return rows among which some are equal."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    X[4] = X[0]
    X[7] = X[2]
    return X


def fitted(estimator, k, X, weights=None, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few distinct rows for many clusters
        return estimator(k, random_state=0, **params).fit(X, sample_weight=weights)


def spectral_bound(K, k, weights=None):
    """Return the bound as it is defined, from all eigenvalues."""
    w = np.ones(len(K)) if weights is None else weights
    root = np.sqrt(w)
    A = root[:, None] * K * root
    H = np.eye(len(K)) - np.outer(root, root) / w.sum()
    values = np.sort(np.linalg.eigvalsh(H @ A @ H))
    return max(values[: len(K) - k + 1].sum(), 0.0) / w.sum()


@every_value
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_no_partition_undercuts_the_bound(k, weights):
    for seed, name in enumerate(KERNELS):
        check_bound(few_rows(10 * k + seed), KERNELS[name], k, weights)


def check_bound(X, params, k, weights):
    metric = {key: value for key, value in params.items() if key != "kernel"}
    K = pairwise_kernels(X, metric=params["kernel"], **metric)
    optimum = oracles.optimal_cost(K, k, weights)
    before = 0.0
    for m in (1, 4, 8):
        model = fitted(NystromKMeans, k, X, weights, landmarks=np.arange(m), **params)
        found = certificate(model, X, "nystrom", sample_weight=weights)
        assert found.lower_bound <= optimum * (1 + 1e-12) + ROUNDING
        assert found.lower_bound >= before - 1e-9  # nested sets
        assert found.cost >= optimum * (1 - 1e-9) - ROUNDING
        before = found.lower_bound
    assert before == pytest.approx(spectral_bound(K, k, weights), rel=1e-5, abs=1e-7)
    if k == 1:
        assert before == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize(("k", "weights"), [(1, WEIGHTS), (3, None), (7, WEIGHTS)])
def test_given_matrices(k, weights):
    X = few_rows(5)
    K = pairwise_kernels(X, metric="rbf", gamma=0.4)
    optimum = oracles.optimal_cost(K, k, weights)
    for estimator, more in ((NystromKMeans, {"n_landmarks": 4}), (KernelKMeans, {})):
        model = fitted(estimator, k, K, weights, kernel="precomputed", **more)
        found = certificate(model, K, "nystrom", sample_weight=weights, random_state=0)
        assert found.lower_bound <= optimum * (1 + 1e-12) + ROUNDING
        assert found.cost == pytest.approx(model.cost_, rel=1e-6, abs=1e-9)
    assert found.n_landmarks == 8
    assert found.lower_bound == pytest.approx(
        spectral_bound(K, k, weights), rel=1e-5, abs=1e-7
    )
    part = fitted(NystromKMeans, k, K, None, kernel="precomputed", n_landmarks=4)
    for seed in range(4):  # no row is a landmark twice
        every_row = certificate(part, K, "nystrom", n_landmarks=8, random_state=seed)
        assert every_row.residual_trace == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("d", "k", "weights"),
    [(2, 1, WEIGHTS), (2, 7, None), (20, 1, None), (20, 2, WEIGHTS)],
)
def test_plain_kmeans_has_the_exact_eigenvalues(d, k, weights):
    X = np.random.default_rng(3).normal(size=(8, d)) + 10.0
    model = fitted(SketchedKMeans, k, X, weights)
    found = certificate(model, X, "nystrom", sample_weight=weights)
    K = X @ X.T
    expected = spectral_bound(K, k, weights)
    assert found.lower_bound == pytest.approx(expected, rel=1e-6, abs=1e-9)
    optimum = oracles.optimal_cost(K, k, weights)
    assert found.lower_bound <= optimum * (1 + 1e-12) + ROUNDING
    assert found.residual_trace == 0.0
    assert found.n_landmarks is None
    for form in (sparse.csr_array(X), X.astype(np.float32)):
        again = certificate(model, form, "nystrom", sample_weight=weights)
        assert again.lower_bound == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.fixture(scope="module")
def digits():
    return load_digits().data.astype(np.float32)


@pytest.fixture(scope="module")
def model(digits):
    return NystromKMeans(10, n_landmarks=60, random_state=0).fit(digits)


def test_best_of_many_restarts_on_digits(digits):
    best = KernelKMeans(10, n_init=4, random_state=0).fit(digits).cost_
    model = NystromKMeans(10, n_landmarks=100, random_state=0).fit(digits)
    bounds = [
        certificate(model, digits, "nystrom", n_landmarks=m, random_state=0).lower_bound
        for m in (50, 100, 300, 900)
    ]
    assert bounds == sorted(bounds)
    assert best > bounds[-1] > 0.5 * best
    subsample = certificate(model, digits, "subsample", random_state=0)
    assert 0.0 < subsample.lower_bound < best


def test_rounding_in_float32_is_allowed_for(digits):
    # Near copies: the smallest eigenvalues are the rounding of the largest.
    X = np.repeat(digits[:200], 3, axis=0)
    X += 1e-4 * np.random.default_rng(0).standard_normal(X.shape).astype(np.float32)
    model = NystromKMeans(10, n_landmarks=400, random_state=0).fit(X)
    narrow = certificate(model, X, "nystrom")
    wide = certificate(model, X.astype(np.float64), "nystrom")
    K = pairwise_kernels(X.astype(np.float64), metric="rbf", gamma=model.gamma_)
    exact = spectral_bound(K, 10)
    assert 0.9 * exact < narrow.lower_bound <= exact
    assert 0.99 * exact < wide.lower_bound <= exact


def smooth_rows(kind, d, dtype, n=500):
    """Return rows whose kernel matrix is of low rank, up to rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    if kind == "tight":
        X = rng.normal(size=(8, d))[rng.integers(8, size=n)] + 1e-2 * X
    return X.astype(dtype)


def bound_of(X, gamma, m, k):
    with Workers(1) as workers:
        kernel = as_kernel("rbf", gamma=gamma)
        moment, _ = compute_nystrom_moment(as_rows(X, workers), kernel, X[:m])
    return moment.lower_bound(k) / len(X)


@pytest.mark.parametrize(
    ("kind", "d", "gamma", "k"),
    [
        ("blob", 2, 0.01, 4),
        ("blob", 4, 1e-3, 12),
        ("tight", 4, 1.0, 9),
    ],
)
def test_the_rounding_of_sums_does_not_lift_the_bound(kind, d, gamma, k):
    for dtype in ("float32", "float64"):
        X = smooth_rows(kind, d, dtype)
        K = pairwise_kernels(X.astype(np.float64), metric="rbf", gamma=gamma)
        exact = spectral_bound(K, k)
        bounds = [bound_of(X, gamma, m, k) for m in (60, 300)]
        # The dense one has a rounding of its own: the trace of K is one per row.
        assert max(bounds) <= exact * (1.0 + 1e-9) + 1e-13


@pytest.mark.parametrize(
    ("dtype", "gamma"), [("float32", 0.1), ("float64", 0.1), ("float64", 0.01)]
)
def test_a_cut_far_above_the_noise_raises_the_bound(dtype, gamma, monkeypatch):
    X = smooth_rows("blob", 3, dtype)
    bound = bound_of(X, gamma, 300, 4)
    name = "sketchmeans.diagnostics.spectral_bounds._CUT_MARGIN"
    monkeypatch.setattr(name, dict.fromkeys(_CUT_MARGIN, 1.0))
    assert bound > 1.001 * bound_of(X, gamma, 300, 4)


def test_the_allowance_covers_the_rounding_of_kernel_values(digits):
    with Workers(1) as workers:
        rows, kernel = as_rows(digits, workers), as_kernel("rbf", gamma=1e-3)
        Z = digits[::20]
        moment, _ = compute_nystrom_moment(rows, kernel, Z)
        gram = compute_gram(kernel, Z, workers)
        inverse = pseudo_inverse(
            gram, dtype=np.float32, margin=_CUT_MARGIN[np.dtype("f4")]
        )
        narrow, wide = (
            kernel.against(Z, dtype, workers)(digits) for dtype in ("f4", "f8")
        )
    error = np.linalg.norm((narrow - wide) @ inverse.root())
    assert 0.0 < error <= moment.rounding
    # What is allowed for is taken off the root of the bound.
    least = float(sum_tails(moment.matrix, [10])[0])
    assert moment.noise > 0.0
    taken_off = (np.sqrt(least - moment.noise) - moment.rounding) ** 2
    assert moment.lower_bound(10) == pytest.approx(taken_off, rel=1e-9)
    assert SecondMoment(moment.matrix, np.sqrt(least) + 1.0, 0.0).lower_bound(10) == 0.0


def test_weights_are_repeats(digits):
    X = digits[:200]
    times = np.arange(200) % 4
    model = NystromKMeans(5, n_landmarks=40, random_state=0).fit(X)
    weighted = certificate(model, X, "nystrom", sample_weight=times)
    repeated = certificate(model, np.repeat(X, times, axis=0), "nystrom")
    for name in ("lower_bound", "cost", "residual_trace", "ratio"):
        value = getattr(weighted, name)
        assert value == pytest.approx(getattr(repeated, name), rel=1e-4)


def test_residual_trace_is_the_error_of_the_nystrom_map(model, digits):
    from sketchmeans import Nystrom

    found = certificate(model, digits, "nystrom")
    nystrom = Nystrom(gamma=model.gamma_, landmarks=model.landmark_indices_)
    trace = nystrom.fit(digits).approximation_error(digits, "trace")
    assert found.residual_trace == pytest.approx(trace, rel=1e-3)
    assert found.cost == pytest.approx(model.cost_, rel=1e-5)


def test_fewer_and_more_landmarks_than_the_model_has(model, digits):
    found = {
        m: certificate(model, digits, "nystrom", n_landmarks=m) for m in (20, 60, 61)
    }
    assert [c.n_landmarks for c in found.values()] == [20, 60, 61]
    assert found[60].lower_bound == certificate(model, digits, "nystrom").lower_bound
    ours = certificate(
        fitted(KernelKMeans, 10, digits, n_init=1, max_iter=1), digits, "nystrom"
    )
    assert ours.n_landmarks == 1000


def test_rows_behind_a_reducer_are_those_that_were_clustered(digits):
    model = NystromKMeans(
        10, n_landmarks=60, reducer="svd", kernel="rbf", random_state=0
    ).fit(digits)
    found = certificate(model, digits, "nystrom")
    assert found.cost == pytest.approx(model.cost_, rel=1e-5)
    plain = NystromKMeans(
        10, n_landmarks=60, gamma=model.gamma_, landmarks=model.landmarks_
    ).fit(model.reducer_.transform(digits))
    inside = certificate(plain, model.reducer_.transform(digits), "nystrom")
    assert found.lower_bound == pytest.approx(inside.lower_bound, rel=1e-4)


# --- subsamples -----------------------------------------------------------------------


@pytest.mark.law
@pytest.mark.parametrize(
    ("k", "counts", "size"), [(1, [18, 2], 9), (2, [12, 6, 2], 16)]
)
def test_the_subsample_bound_fails_no_more_often_than_it_says(k, counts, size):
    # A few places as far apart as can be in feature space, a rare one among them:
    # subsamples that have too much of it look costlier than all rows are.
    places = 1e3 * np.eye(len(counts))
    X = np.repeat(places, counts, axis=0)
    optimum = oracles.optimal_cost(np.eye(len(counts)), k, np.array(counts, float))
    model = fitted(NystromKMeans, k, X, gamma=1.0, landmarks=places, n_jobs=1)
    trials = 150

    @cache
    def failures(confidence):
        return sum(
            certificate(
                model,
                X,
                "subsample",
                confidence=confidence,
                n_subsamples=1,
                subsample_size=size,
                random_state=seed,
            ).lower_bound
            > optimum + 1e-12
            for seed in range(trials)
        )

    def p_value(count, confidence):
        rate = 1.0 - confidence
        return stats.binomtest(count, trials, rate, alternative="greater").pvalue

    for confidence in (0.1, 0.8):
        assert p_value(failures(confidence), confidence) > 1e-3
    # The bound can fail, and without its margin it would fail too often.
    assert failures(0.1) > 0
    assert p_value(failures(1e-9), 0.8) < 1e-3


def test_the_margin_is_what_mcdiarmid_asks_for(model, digits):

    def bound(confidence):
        return certificate(
            model, digits, "subsample", confidence=confidence, random_state=3
        ).lower_bound

    draws = 4 * (len(digits) // 2)
    margins = [
        2.0 * np.sqrt(np.log(1 / (1 - c)) / (2 * draws)) for c in (0.5, 0.95, 0.99)
    ]
    bounds = [bound(c) for c in (0.5, 0.95, 0.99)]
    np.testing.assert_allclose(
        np.subtract(bounds[0], bounds), np.subtract(margins, margins[0]), atol=1e-6
    )


def test_subsamples_of_a_mean_bound_the_optimum_without_a_margin(digits):
    # E W_opt(S) <= W_opt: the mean of many bounds, its margin put back.
    X = digits[:400].astype(np.float64)
    model = KernelKMeans(3, n_init=5, random_state=0).fit(X)
    margin = 2.0 * np.sqrt(np.log(1 / 0.5) / (2 * 40 * 100))
    found = certificate(
        model,
        X,
        "subsample",
        confidence=0.5,
        n_subsamples=40,
        subsample_size=100,
        random_state=0,
    )
    K = pairwise_kernels(X, metric="rbf", gamma=model.gamma_)
    assert 0.8 * spectral_bound(K, 3) < found.lower_bound + margin < model.cost_
    assert found.confidence == 0.5
    assert found.residual_trace is None


def test_no_two_rows_are_farther_apart_than_the_diameter():
    X = np.concatenate([np.eye(3), -np.eye(3)]) * 5.0
    for name in ("rbf", "laplacian", "linear", "cosine", "polynomial"):
        kernel = as_kernel(name, **({"degree": 1} if name == "polynomial" else {}))
        with Workers(1) as workers:
            rows = as_rows(X, workers)
            kernel = kernel.resolve(rows, np.random.default_rng(0))
            diameter = _bound_squared_diameter(rows, kernel, np.ones(6, dtype=bool))
        K = kernel(X, X)
        distances = K.diagonal()[:, None] + K.diagonal() - 2.0 * K
        assert distances.max() <= diameter * (1.0 + 1e-12), name


def test_weights_count_in_subsamples():
    X = np.concatenate([np.zeros((50, 2)), np.ones((50, 2)) * 5.0])
    weights = np.repeat([1.0, 0.0], 50)
    model = fitted(KernelKMeans, 1, X, gamma=1.0)
    heavy = certificate(
        model, X, "subsample", sample_weight=weights, confidence=0.01, random_state=0
    )
    assert heavy.lower_bound == 0.0  # all rows that count are equal
    assert certificate(model, X, "subsample", random_state=0).lower_bound > 0.2


@pytest.mark.parametrize("estimator", [KernelKMeans, SketchedKMeans])
def test_the_diameter_of_a_linear_kernel_is_about_the_mean(estimator):
    X = np.random.default_rng(0).normal(size=(300, 2))
    params = {"kernel": "linear"} if estimator is KernelKMeans else {}
    near, far = (
        certificate(
            fitted(estimator, 2, Z, **params),
            Z,
            "subsample",
            n_subsamples=60,
            random_state=0,
        ).lower_bound
        for Z in (X, X + 100.0)
    )
    assert near > 0.1
    assert far == pytest.approx(near, rel=1e-6)


@pytest.mark.parametrize("size", [40, 400], ids=["dense", "lanczos"])
def test_few_large_eigenvalues_are_those_of_all(size, monkeypatch):
    monkeypatch.setattr("sketchmeans.diagnostics.spectral_bounds._DENSE", 300)
    A = np.random.default_rng(0).normal(size=(size, size))
    A = A @ A.T
    values = np.linalg.eigvalsh(A)
    ks = [1, 2, 9, 3]
    expected = np.array([values[: size - k + 1].sum() for k in ks])
    np.testing.assert_allclose(sum_tails(A, ks), expected, rtol=1e-4)
    assert (sum_tails(A, ks) <= expected + 1e-9 * values.sum()).all()
    np.testing.assert_allclose(
        sum_tails(A, [size, size + 1, size + 2]),
        [values[0], 0.0, 0.0],
        atol=1e-9 * size**2,
    )


# --- shape and errors -----------------------------------------------------------------


def test_a_certificate_can_be_read(model, digits):
    found = certificate(model, digits, "nystrom")
    assert isinstance(found, Certificate)
    assert found.ratio == found.cost / found.lower_bound
    assert json.loads(json.dumps(found.to_dict()))["ratio"] == found.ratio
    assert "lower_bound" in repr(found)
    assert "ratio" in repr(found)
    with pytest.raises(AttributeError):
        found.cost = 1.0


def test_ratio_of_a_cost_of_zero():
    X = np.repeat(np.eye(3), 4, axis=0)
    found = certificate(fitted(KernelKMeans, 3, X), X, "nystrom")
    assert found.lower_bound == pytest.approx(0.0, abs=1e-12)
    assert found.ratio == pytest.approx(1.0) or found.cost < 1e-12
    assert Certificate("nystrom", 0.0, 0.5, 0.0, 1.0).ratio == np.inf
    assert Certificate("nystrom", 0.0, 0.0, 0.0, 1.0).ratio == 1.0


ERRORS = [
    ({"method": "exact"}, r"method='exact' should be one of"),
    ({"confidence": 1.0, "method": "subsample"}, r"confidence=1.0 should be"),
    ({"confidence": "high"}, r"confidence='high' should be"),
    ({"n_landmarks": 0}, r"n_landmarks=0 should be an integer >= 1"),
    ({"n_landmarks": 10**6}, r"n_landmarks=1000000 should be <= 1857"),
    (
        {"n_subsamples": 0, "method": "subsample"},
        r"n_subsamples=0 should be an integer >= 1",
    ),
    (
        {"subsample_size": 1, "method": "subsample"},
        r"subsample_size=1 should be an integer >= 2",
    ),
    ({"random_state": "x"}, r"random_state='x' should be"),
    ({"sample_weight": [1.0]}, r"sample_weight.shape="),
    (
        {"method": "subsample", "n_landmarks": 70},
        "n_landmarks=70 should be None with method='subsample'",
    ),
    (
        {"subsample_size": 9},
        "subsample_size=9 should be None with method='nystrom'",
    ),
]


def test_errors(model, digits):
    for arguments, text in ERRORS:
        with pytest.raises(ValueError, match=text):
            certificate(model, digits, **{"method": "nystrom", **arguments})


def test_errors_of_models(digits):
    with pytest.raises(ValueError, match=r"model=.*should be a fitted"):
        certificate("model", digits, "nystrom")
    with pytest.raises(NotFittedError):
        certificate(NystromKMeans(), digits, "nystrom")
    sigmoid = NystromKMeans(2, kernel="sigmoid", gamma=1e-4, random_state=0)
    with pytest.warns(UserWarning, match="not positive"):
        model = sigmoid.fit(digits[:50])
    with pytest.raises(ValueError, match="there is no certificate"):
        certificate(model, digits[:50], "nystrom")
    sketched = SketchedKMeans(2, random_state=0).fit(digits[:50])
    with pytest.raises(ValueError, match="n_landmarks=5 should be None"):
        certificate(sketched, digits[:50], "nystrom", n_landmarks=5)
    K = pairwise_kernels(digits[:50], metric="rbf", gamma=1e-3)
    given = KernelKMeans(2, kernel="precomputed", random_state=0).fit(K)
    with pytest.raises(ValueError, match=r"X.shape=\(10, 50\) should be \(50, 50\)"):
        certificate(given, K[:10], "nystrom")


def test_what_is_said_of_a_bound_is_never_more_than_is_proved():
    found = Certificate("nystrom", 0.188296, 0.1890, 0.0, 1.0, n_clusters=3)
    assert "cost below 0.1882;" in found.sentence
    assert "within 0.38% of" in found.sentence  # 0.374
    assert "between 0.1882 and 0.189" in found.interval
    assert "costs at most 1.01 times" in describe_certificate(found, 3)
