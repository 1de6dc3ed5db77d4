"""Effective dimension, leverage scores, γ-preservation and decay of the spectrum."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from scipy import sparse, stats

from sketchmeans import KernelKMeans, Nystrom, NystromKMeans, select_landmarks
from sketchmeans.data.rows import as_rows
from sketchmeans.diagnostics import (
    effective_dimension,
    is_gamma_preserving,
    landmark_budget,
    preserved_gamma,
    ridge_leverage_scores,
    spectrum_decay,
)
from sketchmeans.kernels import as_kernel
from sketchmeans.numerics.parallel import Workers
from sketchmeans.theory.problem import Problem
from sketchmeans.theory.span import LandmarkSpan
from tests.oracles import kernel_matrix, linear, optimal_cost, polynomial, rbf
from tests.pairs import every_value

#: A true law is rejected by chance once in a thousand seeds; the seeds are fixed.
LEVEL = 1e-3

KERNELS = {
    "rbf": ({"kernel": "rbf", "gamma": 0.4}, partial(rbf, gamma=0.4)),
    "linear": ({"kernel": "linear"}, linear),
    "polynomial": (
        {
            "kernel": "polynomial",
            "kernel_params": {"gamma": 0.4, "degree": 2, "coef0": 0.7},
        },
        partial(polynomial, gamma=0.4, degree=2, coef0=0.7),
    ),
}


def scattered(n=40, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def uneven(n, seed, d=4):
    """Return clusters of very different sizes, and some rows far from all others."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(6, d)) * 4.0
    members = rng.choice(6, n, p=[0.5, 0.25, 0.12, 0.08, 0.04, 0.01])
    X = centers[members] + rng.normal(size=(n, d))
    X[: n // 50] *= 5.0
    return X


def some_weights(n, seed=1):
    """Return weights of which some are zero."""
    return np.random.default_rng(seed).integers(0, 4, n) * 0.7


def rbf_matrix(X, gamma):
    squares = (X**2).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * X @ X.T
    return np.exp(-gamma * np.maximum(distances, 0.0))


def weighted_matrix(K, weights=None):
    roots = np.sqrt(np.ones(len(K)) if weights is None else weights)
    return roots[:, None] * K * roots


def dense_scores(K, ridge, weights=None):
    """Return the diagonal of ``K (K + γI)⁻¹`` of the weighted matrix."""
    matrix = weighted_matrix(K, weights)
    return np.diagonal(matrix @ np.linalg.inv(matrix + ridge * np.eye(len(K))))


def projected(K, indices):
    """Return the Nyström approximation from some rows."""
    inner = np.linalg.pinv(K[np.ix_(indices, indices)], rcond=1e-12, hermitian=True)
    return K[:, indices] @ inner @ K[indices]


# --- exact ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "weighted", "ridge"),
    [
        ("rbf", False, 1e-3),
        ("rbf", True, 30.0),
        ("linear", True, 0.5),
        ("polynomial", False, 0.5),
        ("polynomial", True, 1e-3),
    ],
)
def test_exact_values_are_those_of_the_dense_formula(kernel, weighted, ridge):
    X = scattered()
    weights = some_weights(40) if weighted else None
    options, naive = KERNELS[kernel]
    expected = dense_scores(kernel_matrix(naive, X, X), ridge, weights)
    found = ridge_leverage_scores(
        X, gamma_ridge=ridge, sample_weight=weights, **options
    )
    np.testing.assert_allclose(found.scores, expected, rtol=1e-7, atol=1e-12)
    np.testing.assert_array_equal(found.lower, found.scores)
    np.testing.assert_array_equal(found.upper, found.scores)
    dimension = effective_dimension(
        X, gamma_ridge=ridge, sample_weight=weights, **options
    )
    assert float(dimension) == pytest.approx(expected.sum(), rel=1e-7)
    assert dimension.lower == dimension.value == dimension.upper
    assert dimension.exact
    assert dimension.confidence == 1.0


@every_value
@pytest.mark.parametrize("estimated", [False, True])
@pytest.mark.parametrize("form", ["float32", "int8", "csr", "precomputed"])
def test_other_forms_of_rows(form, estimated):
    X = scattered(80)
    if form == "float32":
        X = X.astype(np.float32)
    elif form == "int8":
        X = (10 * X).astype(np.int8)
    gamma = 0.004 if form == "int8" else 0.4
    K = rbf_matrix(X.astype(float), gamma)
    expected = dense_scores(K, 2.0)
    given = {"csr": sparse.csr_array(X), "precomputed": K}.get(form, X)
    options = {"kernel": "rbf", "gamma": gamma}
    if form == "precomputed":
        options = {"kernel": "precomputed"}
    if estimated:
        options |= {"max_exact": 0, "n_landmarks": 60, "random_state": 0}
    found = ridge_leverage_scores(given, gamma_ridge=2.0, **options)
    dimension = effective_dimension(given, gamma_ridge=2.0, **options)
    assert found.exact is not estimated
    if estimated:
        assert (found.lower <= expected).all()
        assert (expected <= found.upper).all()
        assert dimension.lower <= expected.sum() <= dimension.upper
    np.testing.assert_allclose(found.scores, expected, rtol=0.1 if estimated else 1e-6)


def test_default_ridge_is_the_root_of_the_number_of_rows():
    X = scattered(50)
    assert effective_dimension(X).gamma_ridge == pytest.approx(50**0.5)
    weights = np.full(50, 3.0)
    assert effective_dimension(X, sample_weight=weights).gamma_ridge == pytest.approx(
        150**0.5
    )


def test_weights_are_repeated_rows():
    X, repeats = scattered(30), np.arange(30) % 4
    copies = effective_dimension(np.repeat(X, repeats, axis=0), gamma=0.4)
    weighted = effective_dimension(X, gamma=0.4, sample_weight=repeats)
    assert weighted.value == pytest.approx(copies.value, rel=1e-9)
    assert weighted.gamma_ridge == pytest.approx(copies.gamma_ridge)


# --- estimates ------------------------------------------------------------------------


def estimate_case(seed):
    """Return a problem of moderate size, its options and its exact scores."""
    rng = np.random.default_rng([7, seed])
    X = uneven(250, seed) if seed % 2 else scattered(250, d=5, seed=seed)
    weights = rng.exponential(size=250) if seed % 3 == 0 else None
    ridge = (2.0, 8.0, 30.0)[seed % 3]
    options = {
        "kernel": "rbf",
        "gamma": 0.1,
        "gamma_ridge": ridge,
        "sample_weight": weights,
        "max_exact": 0,
        "n_landmarks": 25,
        "n_jobs": 1,
        "random_state": seed,
    }
    return X, options, dense_scores(rbf_matrix(X, 0.1), ridge, weights)


@pytest.mark.law
def test_bands_hold_at_the_stated_rate():
    trials, confidence = 16, 0.9
    failures = np.zeros(2, dtype=int)
    widths, ratios, errors = [], [], []
    for seed in range(trials):
        X, options, exact = estimate_case(seed)
        dimension = effective_dimension(X, confidence=confidence, **options)
        failures[0] += not dimension.lower <= exact.sum() <= dimension.upper
        assert dimension.lower <= dimension.value <= dimension.upper
        widths.append((dimension.upper - dimension.lower) / exact.sum())
        found = ridge_leverage_scores(X, confidence=confidence, **options)
        inside = (found.lower <= exact) & (exact <= found.upper)
        failures[1] += not inside.all()
        assert (found.lower <= found.scores).all()
        assert (found.scores <= found.upper).all()
        positive = found.lower > 0.0
        ratios.append(np.median(found.upper[positive] / found.lower[positive]))
        errors.append(found.effective_dimension / exact.sum() - 1.0)
    for count in failures.tolist():
        test = stats.binomtest(count, trials, 1 - confidence, alternative="greater")
        assert test.pvalue > LEVEL
    # A band that says nothing would hold as well.
    assert np.median(widths) < 0.15
    assert np.median(ratios) < 4.0
    assert np.median(np.abs(errors)) < 0.02


def test_bands_lie_above_what_the_span_alone_shows():
    """Scores in the span are bounds from below, which the bands improve on."""
    for seed in range(3):
        X, options, exact = estimate_case(seed)
        dimension = effective_dimension(X, **options)
        with Workers(1) as workers:
            rows = as_rows(X, workers, options["sample_weight"])
            kernel = as_kernel("rbf", gamma=0.1)
            problem = Problem(rows, kernel, np.random.default_rng(seed))
            span = LandmarkSpan(problem, options["gamma_ridge"], 25)
        assert (span.scores <= exact + 1e-9).all()
        assert dimension.lower > span.effective_dimension


@pytest.fixture(scope="module")
def dense_span():
    """Return a span of 20 landmarks, and the residual as a matrix."""
    X = uneven(300, seed=3)
    weights = np.random.default_rng(0).exponential(size=300)
    with Workers(1) as workers:
        rows = as_rows(X, workers, weights)
        kernel = as_kernel("rbf", gamma=0.1)
        span = LandmarkSpan(Problem(rows, kernel, np.random.default_rng(0)), 5.0, 20)
        K = rbf_matrix(X, 0.1)
        approximation = weighted_matrix(projected(K, span.indices), weights)
        yield span, approximation, weighted_matrix(K, weights) - approximation


def test_the_span_is_that_of_the_dense_formulas(dense_span):
    span, approximation, E = dense_span
    P = np.linalg.inv(approximation + 5.0 * np.eye(300))
    np.testing.assert_allclose(span.missing, np.diagonal(E), atol=1e-9)
    scores = np.diagonal(approximation @ P)
    np.testing.assert_allclose(span.scores, scores, rtol=1e-7, atol=1e-10)
    assert span.effective_dimension == pytest.approx(scores.sum())


@pytest.mark.law
def test_moments_of_the_residual_have_their_intervals(dense_span):
    """Each end of an interval fails as often as it says, no less and no more."""
    span, approximation, E = dense_span
    P = np.linalg.inv(approximation + 5.0 * np.eye(300))
    first = 5.0 * np.trace(P @ E @ P)
    second = np.trace(E @ E) / 25.0
    fourth = np.trace(np.linalg.matrix_power(E, 4)) ** 0.25
    trials, tail = 150, 0.1
    misses = np.zeros(4, dtype=int)
    estimates = []
    for seed in range(trials):
        moments = span.sample_residual(np.random.default_rng(seed))
        estimates.append([moments.overlaps, moments.squares, moments.fourths])
        lower, upper = moments.bound_first_order(5.0, tail)
        misses += [
            lower > first,
            upper < first,
            moments.bound_second_order(5.0, tail) < second,
            moments.bound_norm(tail) < fourth,
        ]
    for count in misses.tolist():
        assert stats.binomtest(count, trials, tail).pvalue > LEVEL
    truths = [np.trace(E) - 5.0 * first, 25.0 * second, fourth**4]
    for values, truth in zip(np.hstack(estimates), truths, strict=True):
        assert stats.ttest_1samp(values, truth).pvalue > LEVEL
    assert fourth >= np.linalg.eigvalsh(E)[-1]


def test_bounds_on_the_dimension_are_those_of_the_moments(dense_span):
    """Three intervals hold at once if each fails at a third of the rate."""
    span, _, _ = dense_span
    moments = span.sample_residual(np.random.default_rng(5))
    least, most = moments.bound_first_order(5.0, 0.1)
    second = moments.bound_second_order(5.0, 0.1)
    inside = span.effective_dimension
    span._column_rng = np.random.default_rng(5)
    lower, upper = span.bound_dimension(0.3)
    assert lower == pytest.approx(inside + least**2 / (least + second), rel=1e-5)
    assert upper == pytest.approx(inside + most / (1 + most / (300 - inside)), rel=1e-5)


def test_more_landmarks_narrow_the_band_down_to_the_exact_value():
    X, problem = uneven(300, seed=5), {"gamma_ridge": 3.0, "gamma": 0.1}
    exact = effective_dimension(X, **problem)
    options = problem | {"max_exact": 0, "random_state": 0}
    widths = []
    for m in (20, 80, 300):
        found = effective_dimension(X, n_landmarks=m, **options)
        widths.append(found.upper - found.lower)
        assert found.n_landmarks == m
    assert widths[0] > 3.0 * widths[1] > 9.0 * widths[2]
    assert found.value == pytest.approx(exact.value, rel=1e-7)
    scores = ridge_leverage_scores(X, n_landmarks=300, **options)
    dense = ridge_leverage_scores(X, **problem).scores
    np.testing.assert_allclose(scores.scores, dense, rtol=1e-6)
    assert (scores.lower <= dense).all()
    assert (dense <= scores.upper).all()


@pytest.mark.parametrize("ridge", [0.001, 1.0, 50.0])
def test_bounds_allow_for_rounding(ridge):
    """A smooth kernel is in the span of few landmarks, up to rounding."""
    X = scattered(300, d=2)
    K = rbf_matrix(X, 0.1)
    exact = dense_scores(K, ridge)
    for seed in range(3):
        options = {"gamma": 0.1, "max_exact": 0, "n_landmarks": 120}
        options |= {"gamma_ridge": ridge, "random_state": seed}
        dimension = effective_dimension(X, **options)
        assert dimension.lower <= exact.sum() <= dimension.upper
        assert dimension.upper - dimension.lower < 1e-4 * exact.sum() / min(ridge, 1.0)
        found = ridge_leverage_scores(X, **options)
        assert (found.lower <= exact).all()
        assert (exact <= found.upper).all()


def test_repeated_rows_need_few_landmarks():
    X = np.repeat(scattered(12), 30, axis=0)
    found = effective_dimension(X, gamma_ridge=4.0, max_exact=0, random_state=0)
    assert found.n_landmarks == 12
    assert found.value == pytest.approx(effective_dimension(X, gamma_ridge=4.0).value)


def test_rows_without_mass():
    X = np.zeros((40, 2))
    assert effective_dimension(X, "linear").value == 0.0
    assert effective_dimension(X, "linear", max_exact=0).value == 0.0
    assert not ridge_leverage_scores(X, "linear", max_exact=0).upper.any()


def test_same_seed_same_bits_for_any_threads():
    X = uneven(5000, seed=1)
    options = {"n_landmarks": 40, "random_state": 3, "max_exact": 0}
    one = ridge_leverage_scores(X, n_jobs=1, **options)
    two = ridge_leverage_scores(X, n_jobs=2, **options)
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.upper, two.upper)
    assert one.n_landmarks == 40


def test_results_are_readable_and_become_json():
    X = scattered(60)
    dimension = effective_dimension(X, max_exact=0, n_landmarks=10, random_state=0)
    lines = repr(dimension).splitlines()
    assert lines[0] == "EffectiveDimension"
    assert f"  value         {dimension.value:.4g}" in lines
    assert "  exact         no" in lines
    values = json.loads(json.dumps(dimension.to_dict()))
    assert values["upper"] == dimension.upper
    assert values["exact"] is False
    scores = ridge_leverage_scores(X)
    assert "60 values, " in repr(scores)
    values = json.loads(json.dumps(scores.to_dict()))
    assert values["scores"] == scores.scores.tolist()
    assert values["effective_dimension"] == pytest.approx(scores.scores.sum())
    assert values["n_landmarks"] is None
    assert "n_landmarks" not in repr(scores)


# --- γ-preservation -------------------------------------------------------------------


def span_projection(vectors):
    """Return the projection onto the span of some columns."""
    basis, sizes, _ = np.linalg.svd(vectors, full_matrices=False)
    basis = basis[:, sizes > 1e-10 * sizes[0]]
    return basis @ basis.T


@pytest.mark.parametrize(
    ("seed", "eps", "weighted"),
    [(0, 0.2, False), (1, 0.5, True), (2, 0.9, False), (3, 0.2, True)],
)
def test_preserved_gamma_is_the_smallest_of_definition_2(seed, eps, weighted):
    X, indices = scattered(12, d=5, seed=seed), [1, 4, 7]
    weights = some_weights(12, seed) if weighted else np.ones(12)
    weights[indices] = np.maximum(weights[indices], 0.7)
    gamma = preserved_gamma(indices, X, "linear", eps, sample_weight=weights)
    rows = (X * np.sqrt(weights)[:, None]).T
    everything = span_projection(rows)
    outside = everything - span_projection(rows[:, indices])

    def slack(value):
        """Return the least eigenvalue of the right side less the left one."""
        covariance = rows @ rows.T + value * everything
        right = np.linalg.pinv(covariance, rcond=1e-12, hermitian=True)
        return np.linalg.eigvalsh(value / (1 - eps) * right - outside)[0]

    assert slack(1.001 * gamma) > -1e-12
    assert slack(0.999 * gamma) < -1e-6
    options = {"sample_weight": weights, "eps": eps}
    assert is_gamma_preserving(indices, X, "linear", 1.001 * gamma, **options)
    assert not is_gamma_preserving(indices, X, "linear", 0.999 * gamma, **options)


def test_lemma_2_holds_where_landmarks_are_preserving():
    """CR18: ``W(C_nm) − W(C_n) ≤ min(k, d_eff(γ)) γ/((1 − ε)n)``, by brute force."""
    closest, verdicts = 0.0, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, k = 7, int(rng.integers(1, 5))
        X = rng.normal(size=(n, 2)) * (1.0 if seed % 2 else 3.0)
        options, naive = KERNELS[list(KERNELS)[seed % 3]]
        options = options | {"n_jobs": 1}
        K = kernel_matrix(naive, X, X)
        indices = rng.choice(n, int(rng.integers(1, 5)), replace=False)
        eps = float(rng.uniform(0.2, 0.95))
        approximation = projected(K, indices)
        outside = np.trace(K - approximation) / n
        excess = optimal_cost(approximation, k) + outside - optimal_cost(K, k)
        least = preserved_gamma(indices, X, eps=eps, **options)
        for gamma in (0.5 * least + 1e-12, 1.0001 * least + 1e-9, 2.0 * least + 1.0):
            verdict = is_gamma_preserving(
                indices, X, gamma_ridge=gamma, eps=eps, **options
            )
            verdicts.append(verdict)
            if verdict:
                dimension = effective_dimension(X, gamma_ridge=gamma, **options).value
                bound = min(k, dimension) * gamma / ((1 - eps) * n)
                assert excess <= bound + 1e-9
                closest = max(closest, excess / bound)
    assert 40 < sum(verdicts) < len(verdicts)
    # The bound is not so loose that a γ of half the size would satisfy it as well.
    assert closest > 0.5


def test_every_form_of_landmarks_gives_the_same_number():
    X = scattered(60)
    landmarks = select_landmarks(X, 9, gamma=0.4, random_state=0)
    expected = preserved_gamma(landmarks.indices, X, "rbf", 0.4, gamma=0.4)
    K = rbf_matrix(X, 0.4)
    norm = np.linalg.eigvalsh(K - projected(K, landmarks.indices))[-1]
    assert expected == pytest.approx(norm * 0.6 / 0.4, rel=1e-8)
    options = {"gamma": 0.4, "random_state": 0}
    kmeans = NystromKMeans(3, n_landmarks=9, **options).fit(X)
    nystrom = Nystrom(n_landmarks=9, **options).fit(X)
    given = {"eps": 0.4, "gamma": 0.4}
    assert preserved_gamma(landmarks, X, "rbf", **given) == pytest.approx(expected)
    assert preserved_gamma(landmarks.points, X, **given) == pytest.approx(expected)
    assert preserved_gamma(kmeans, X, eps=0.4) == pytest.approx(expected)
    assert preserved_gamma(nystrom, X, eps=0.4) == pytest.approx(expected)
    assert preserved_gamma(landmarks.indices, K, "precomputed", 0.4) == pytest.approx(
        expected
    )
    assert preserved_gamma(
        sparse.csr_array(landmarks.points), sparse.csr_array(X), **given
    ) == pytest.approx(expected)
    twice = np.concatenate([landmarks.indices, landmarks.indices])
    assert preserved_gamma(twice, X, **given) == pytest.approx(expected)


def test_preserved_gamma_of_precomputed_models():
    K = rbf_matrix(scattered(40), 0.4)
    kmeans = NystromKMeans(3, kernel="precomputed", n_landmarks=6, random_state=0)
    kmeans.fit(K)
    expected = preserved_gamma(kmeans.landmark_indices_, K, "precomputed")
    assert preserved_gamma(kmeans, K) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("method", "dtype"),
    [("landmarks", "f8"), ("landmarks", "f4"), ("approximation", "f4")],
)
def test_preserved_gamma_of_fits_of_lower_rank(method, dtype):
    X = scattered(60).astype(dtype)
    options = {"gamma": 0.4, "n_landmarks": 12, "rank": 4, "random_state": 0}
    nystrom = Nystrom(rank_method=method, **options).fit(X)
    F = nystrom.transform(X).astype(float)
    K = rbf_matrix(X.astype(float), 0.4)
    norm = np.linalg.eigvalsh(K - F @ F.T)[-1]
    assert preserved_gamma(nystrom, X) == pytest.approx(norm, rel=1e-5)
    if method == "landmarks":
        kmeans = NystromKMeans(3, **options).fit(X)
        assert preserved_gamma(kmeans, X) == pytest.approx(norm, rel=1e-5)


def test_preserved_gamma_behind_a_reducer():
    X = scattered(60, d=8)
    model = NystromKMeans(3, n_landmarks=6, reducer="sign", random_state=0).fit(X)
    reduced = model.reducer_.transform(X)
    expected = preserved_gamma(model.landmarks_, reduced, gamma=model.gamma_)
    assert preserved_gamma(model, X) == pytest.approx(expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_lanczos_agrees_with_the_dense_norm(weighted):
    X = uneven(400, seed=2)
    weights = some_weights(400) if weighted else None
    indices = np.arange(0, 400, 20)
    options = {"gamma": 0.05, "sample_weight": weights}
    dense = preserved_gamma(indices, X, **options)
    lanczos = preserved_gamma(indices, X, max_exact=0, random_state=0, **options)
    assert lanczos == pytest.approx(dense, rel=2e-3)
    assert lanczos <= dense * (1 + 1e-9)


@pytest.mark.parametrize("max_exact", [0, 100])
def test_all_rows_preserve_everything(max_exact):
    X = scattered(50)
    options = {"max_exact": max_exact, "random_state": 0}
    assert preserved_gamma(np.arange(50), X, **options) == 0.0
    assert is_gamma_preserving(np.arange(50), X, gamma_ridge=1e-12, **options)


# --- decay of the spectrum ------------------------------------------------------------


def with_eigenvalues(values, seed=0):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(len(values), len(values))))[0]
    return basis * values @ basis.T


def test_a_power_law_is_found():
    for alpha in (0.5, 0.9, 1.5, 3.0):
        values = 7.0 * np.arange(1, 201) ** -alpha
        decay = spectrum_decay(with_eigenvalues(values), "precomputed")
        assert decay.exponent == pytest.approx(alpha, rel=1e-6)
        assert decay.constant == pytest.approx(7.0, rel=1e-6)
        assert decay.r_squared == pytest.approx(1.0)
        assert decay.exponential_r_squared < 0.9
        assert decay.xi == pytest.approx((values / (values + 1.0)).sum())
        assert decay.definition_4_applies is (alpha > 1)
        assert decay.eta == pytest.approx(min(1.0, 1 / alpha), rel=1e-6)
        assert ("fall too slowly" in decay.note) is (alpha < 1)
        np.testing.assert_allclose(decay.eigenvalues, values, rtol=1e-6)


def test_eta_is_the_growth_of_the_effective_dimension():
    """CR18 Def. 4: with λ_i = i^−α, d_eff(γ) grows as (1/γ)^(1/α)."""
    values = np.arange(1, 20_001) ** -2.0
    small, large = ((values / (values + g)).sum() for g in (1e-4, 1e-6))
    slope = np.log(large / small) / np.log(100)
    decay = spectrum_decay(with_eigenvalues(values[:200]), "precomputed")
    assert decay.eta == pytest.approx(slope, rel=0.02)


def test_an_exponential_fits_better_where_it_is_one():
    decay = spectrum_decay(
        with_eigenvalues(np.exp(-0.3 * np.arange(60))), "precomputed"
    )
    assert decay.exponential_r_squared == pytest.approx(1.0)
    assert decay.r_squared < 0.95


def test_theorem_5_is_granted_only_where_theorem_4_gives_its_conclusion():
    values = 100.0 * np.arange(1, 201) ** -2.0  # α = 2, yet Ξ is far above √k
    decay = spectrum_decay(with_eigenvalues(values), "precomputed")
    for k in (1, 10, 100, 150, 1_000):
        budget = landmark_budget(
            10**6, k, rule="theorem4", effective_dimension=decay.xi
        )
        assert decay.theorem_5_applies(k) is (budget.n_landmarks <= 1_000)
    assert not decay.theorem_5_applies(10)
    assert decay.theorem_5_applies(1_000)
    # A sample of the rows bounds Ξ from below only, so nothing follows from it.
    part = spectrum_decay(with_eigenvalues(values), "precomputed", max_exact=50)
    assert part.xi < decay.xi
    assert not part.theorem_5_applies(10**6)
    with pytest.raises(ValueError, match="n_clusters=0 should be an integer >= 1"):
        decay.theorem_5_applies(0)


def test_the_bound_covers_all_eigenvalues_that_were_fitted():
    decay = spectrum_decay(uneven(300, seed=0), gamma=0.1)
    ranks = np.arange(1, decay.n_fitted + 1)
    slack = decay.constant * ranks**-decay.exponent - decay.eigenvalues[: len(ranks)]
    assert slack.min() == pytest.approx(0.0, abs=1e-9)
    assert decay.n_fitted == 75


def test_a_subsample_shows_the_same_decay():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(size=900))
    K = np.minimum.outer(t, t)
    whole = spectrum_decay(K, "precomputed")
    part = spectrum_decay(K, "precomputed", max_exact=300, random_state=0)
    assert (part.n_sampled, part.n_samples) == (300, 900)
    assert part.exponent == pytest.approx(whole.exponent, rel=0.1)
    np.testing.assert_allclose(part.eigenvalues[:5], whole.eigenvalues[:5], rtol=0.2)
    # Weights are repeated rows, in a subsample as well.
    weighted = spectrum_decay(
        K, "precomputed", max_exact=300, random_state=0, sample_weight=np.full(900, 2)
    )
    np.testing.assert_allclose(weighted.eigenvalues, 2 * part.eigenvalues)


def test_finite_rank_and_rounding():
    line = spectrum_decay(np.ones((30, 1)) * np.arange(30)[:, None], "linear")
    assert line.exponent == np.inf
    assert line.eta == 0.0
    assert line.theorem_5_applies(1)
    assert line.to_dict()["exponent"] is None
    plane = spectrum_decay(scattered(100, d=5), "linear")
    assert plane.n_fitted == len(plane.eigenvalues) == 5
    nothing = spectrum_decay(np.zeros((9, 2)), "linear")
    assert (nothing.constant, nothing.n_sampled) == (0.0, 0)
    # Eigenvalues below the rounding of a given float32 matrix are noise.
    K = with_eigenvalues(np.exp(-2.0 * np.arange(50))).astype(np.float32)
    assert len(spectrum_decay(K, "precomputed").eigenvalues) < 10


# --- errors ---------------------------------------------------------------------------


ERRORS = [
    ({"gamma_ridge": 0.0}, r"gamma_ridge=0.0 should be a finite number > 0"),
    ({"gamma_ridge": -1}, r"gamma_ridge=-1 should be a finite number >= 0"),
    ({"confidence": 1.0}, r"confidence=1.0 should be > 0 and < 1"),
    ({"n_landmarks": 0}, r"n_landmarks=0 should be an integer >= 1"),
    ({"max_exact": -1}, r"max_exact=-1 should be an integer >= 0"),
    ({"kernel": "sigmoid"}, r"should be positive semi-definite"),
    ({"kernel": "precomputed"}, r"X.shape=\(9, 3\) should be square"),
    ({"sample_weight": [1.0]}, r"sample_weight.shape=\(1,\) should be \(9,\)"),
]


def test_errors_name_the_parameter():
    for options, message in ERRORS:
        for function in (effective_dimension, ridge_leverage_scores):
            with pytest.raises(ValueError, match=message):
                function(scattered(9), **options)


def test_values_that_are_not_numbers_are_found():
    X = scattered(9)
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN \(row 4, column 1\)"):
        effective_dimension(X)
    K = np.eye(9)
    K[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN \(row 4, column 1\)"):
        effective_dimension(K, "precomputed")


def test_a_given_matrix_should_be_symmetric():
    K = np.eye(9)
    K[4, 1] = 0.5
    with pytest.raises(ValueError, match=r"symmetric; .* by up to 0\.5"):
        effective_dimension(K, "precomputed")


LANDMARK_ERRORS = [
    ([0, 9], {}, r"landmarks holds row numbers from 0 to 9; they should lie in 0"),
    (np.ones((2, 7)), {}, r"landmarks of shape \(2, 7\)"),
    ([0], {"eps": 1.5}, r"eps=1.5 should be > 0 and < 1"),
    ([0], {"max_exact": 0.5}, r"max_exact=0.5 should be an integer >= 0"),
]


def test_errors_of_landmarks():
    for landmarks, options, message in LANDMARK_ERRORS:
        with pytest.raises(ValueError, match=message):
            preserved_gamma(landmarks, scattered(9), **options)


def test_errors_of_models():
    X = scattered(20)
    with pytest.raises(ValueError, match="not fitted yet"):
        preserved_gamma(Nystrom(), X)
    exact = KernelKMeans(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="should be a fitted Nystrom or NystromKMeans"):
        preserved_gamma(exact, X)
    model = Nystrom(n_landmarks=3, random_state=0).fit(X)
    with pytest.raises(
        ValueError, match="kernel='linear' should be None with a fitted"
    ):
        is_gamma_preserving(model, X, "linear")
    with pytest.raises(ValueError, match=r"gamma=0.5, .* should be left at their"):
        is_gamma_preserving(model, X, gamma=0.5)
    with pytest.raises(ValueError, match="gamma_ridge=0 should be a finite number > 0"):
        is_gamma_preserving(model, X, gamma_ridge=0)
