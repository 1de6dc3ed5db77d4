"""How many landmarks the theory asks for, and that so many are enough."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from sketchmeans.diagnostics import (
    is_gamma_preserving,
    landmark_budget,
    ridge_leverage_scores,
)

#: A true law is rejected by chance once in a thousand seeds; the seeds are fixed.
LEVEL = 1e-3

NEED_DIMENSION = ["effective-dimension", "fast-rate", "lemma3", "linear-k", "theorem4"]


def budget(rule, n=10_000, k=16, **options):
    if rule in NEED_DIMENSION:
        options = {"effective_dimension": 9.0} | options
    return landmark_budget(n, k, rule=rule, **options)


# --- formulas -------------------------------------------------------------------------


def test_orders_of_magnitude():
    assert budget("sqrt-n").n_landmarks == 100
    assert budget("sqrt-n", n=10_001).n_landmarks == 101
    assert budget("sqrt-nk").n_landmarks == 400
    assert budget("effective-dimension", effective_dimension=30.2).n_landmarks == 31
    # min(k, d_eff(1)): what is smaller counts.
    assert budget("theorem4", effective_dimension=9.0).n_landmarks == 225
    assert budget("theorem4", effective_dimension=900.0).n_landmarks == 400


def test_remarks_of_the_papers():
    assert budget("sqrt-n-log-n").n_landmarks == math.ceil(100 * math.log(10_000))
    assert budget("sqrt-n-log-n", n=1).n_landmarks == 1
    assert budget("fast-rate", effective_dimension=30.2).n_landmarks == 31
    # √n ln(1/δ) min(k, Ξ)/k: √n at the most, fewer where Ξ < k.
    assert budget("linear-k", effective_dimension=900.0).n_landmarks == 100
    assert budget("linear-k", effective_dimension=4.0).n_landmarks == 25


def test_a_failure_probability_costs_its_logarithm():
    for rule in ("sqrt-n", "sqrt-nk", "theorem4"):
        plain, safe = budget(rule), budget(rule, delta=0.01)
        factor = math.log(100)
        assert safe.n_landmarks == math.ceil(plain.n_landmarks * factor)
        assert safe.probability == pytest.approx(0.99)
        assert plain.probability is None
        assert safe.formula == plain.formula + " ln(1/delta)"
        # ln(1/δ) < 1 is no reason for fewer.
        assert budget(rule, delta=0.9).n_landmarks == plain.n_landmarks


def test_lemma_1():
    options = {"gamma_ridge": 500.0, "eps": 0.4, "delta": 0.05, "kappa": 2.0}
    found = budget("lemma1", **options)
    expected = 12 * 4 * (10_000 / 500) * math.log(10_000 / 0.05) / 0.16
    assert found.n_landmarks == math.ceil(expected)
    assert found.probability == pytest.approx(0.95)
    assert found.excess_cost == pytest.approx(16 * 500 / (0.6 * 10_000))
    assert {name: getattr(found, name) for name in options} == options
    better = budget("lemma1", effective_dimension=3.0, **options)
    assert better.n_landmarks == found.n_landmarks
    assert better.excess_cost == pytest.approx(3 * 500 / (0.6 * 10_000))


@pytest.mark.parametrize("kappa", [0.1, 2.0])
def test_lemma_3(kappa):
    found = budget(
        "lemma3",
        gamma_ridge=500.0,
        eps=0.4,
        delta=0.05,
        kappa=kappa,
        effective_dimension=7.5,
    )
    expected = 12 * 7.5 * math.log(10_000 / 0.05) / 0.16
    # A small kernel saves nothing: it can be scaled together with γ.
    assert found.n_landmarks == math.ceil(max(kappa**2, 1.0) * expected)
    assert found.excess_cost == pytest.approx(7.5 * 500 / (0.6 * 10_000))


@pytest.mark.parametrize("rule", ["lemma1", "lemma3"])
def test_defaults_of_the_lemmas(rule):
    explicit = {"gamma_ridge": 100.0, "eps": 0.5, "delta": 0.1, "kappa": 1.0}
    assert budget(rule) == budget(rule, **explicit)


def test_constants_and_more_landmarks_than_rows():
    assert budget("lemma1").constants_known
    assert budget("lemma1").exceeds_n
    assert "More than there are rows" in budget("lemma1").note
    large = budget("lemma1", gamma_ridge=5000.0)
    assert not large.exceeds_n
    assert "constants of the proof" in large.note
    assert not budget("sqrt-n").constants_known
    assert "order of magnitude" in budget("sqrt-n").note
    assert budget("sqrt-nk", n=4, k=9).exceeds_n
    assert not budget("sqrt-nk", n=9, k=9).exceeds_n


@pytest.mark.parametrize("rule", ["theorem4", "lemma3"])
def test_results_are_readable_and_become_json(rule):
    found = budget(rule)
    text = repr(found)
    assert text.startswith(f"LandmarkBudget: {rule!r} ({found.source})")
    assert f"{found.n_landmarks:,} = {found.formula}" in text
    assert found.promise in text
    assert found.note in text
    assert ("gamma_ridge   " in text) is found.constants_known
    values = json.loads(json.dumps(found.to_dict()))
    assert values["n_landmarks"] == found.n_landmarks
    assert values["exceeds_n"] is found.exceeds_n
    assert values["note"] == found.note


# --- the lemmas hold ------------------------------------------------------------------


#: Each of 500 rows counts as four, so that there are 2,000.
WEIGHTS = np.full(500, 4.0)


@pytest.fixture(scope="module")
def two_clusters():
    """Return the kernel matrix of two groups, of 300 and 200 rows.

    Its norm is above the thresholds below: not every dictionary is γ-preserving.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 30))
    X[:300, 0] += 60.0
    squares = (X**2).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * X @ X.T
    return np.exp(-0.002 * np.maximum(distances, 0.0))


@pytest.fixture(scope="module")
def leverage(two_clusters):
    """Return the leverage scores at γ = 400."""
    options = {"sample_weight": WEIGHTS}
    return ridge_leverage_scores(two_clusters, "precomputed", 400.0, **options)


def successes(K, probabilities, size, gamma_ridge, eps, trials):
    """Return how many dictionaries drawn with replacement are γ-preserving."""
    rng = np.random.default_rng(size)
    return sum(
        is_gamma_preserving(
            rng.choice(len(K), size, p=probabilities),
            K,
            "precomputed",
            gamma_ridge,
            eps,
            sample_weight=WEIGHTS,
            max_exact=0,
            n_jobs=1,
            random_state=0,
        )
        for _ in range(trials)
    )


@pytest.mark.law
@pytest.mark.parametrize(("rule", "ridge"), [("lemma1", 1000.0), ("lemma3", 400.0)])
def test_so_many_landmarks_preserve_the_matrix(two_clusters, leverage, rule, ridge):
    K, n, eps, delta = two_clusters, 2000, 0.5, 0.1
    options = {"gamma_ridge": ridge, "eps": eps, "delta": delta}
    probabilities = np.full(500, 1 / 500)
    if rule == "lemma3":
        options["effective_dimension"] = leverage.effective_dimension
        probabilities = leverage.scores / leverage.scores.sum()
    size = landmark_budget(n, 2, rule=rule, **options).n_landmarks
    assert size < n / 2

    def p_value(size, trials):
        count = successes(K, probabilities, size, ridge, eps, trials)
        return stats.binomtest(count, trials, 1 - delta, alternative="less").pvalue

    assert p_value(size, 12) > LEVEL
    assert p_value(1, 30) < LEVEL  # the same test rejects a dictionary of one row


def test_leverage_scores_need_fewer_landmarks_on_structured_data(leverage):
    ridge, dimension = 400.0, leverage.effective_dimension
    options = {"gamma_ridge": ridge, "effective_dimension": dimension}
    by_scores = landmark_budget(2000, 2, rule="lemma3", **options)
    uniform = landmark_budget(2000, 2, rule="lemma1", gamma_ridge=ridge)
    assert 2 * by_scores.n_landmarks < uniform.n_landmarks


# --- errors ---------------------------------------------------------------------------


ERRORS = [
    ({"n": 0}, "n=0 should be an integer >= 1"),
    ({"k": 2.5}, "n_clusters=2.5 should be an integer >= 1"),
    ({"rule": "lemma2"}, r"rule='lemma2' should be one of \['sqrt-n'"),
    ({"rule": "lemma1", "eps": 1.0}, "eps=1.0 should be > 0 and < 1"),
    ({"rule": "lemma1", "delta": 0}, "delta=0 should be > 0 and < 1"),
    ({"rule": "lemma1", "kappa": 0}, "kappa=0 should be a finite number > 0"),
    (
        {"rule": "lemma1", "gamma_ridge": math.inf},
        "gamma_ridge=inf should be a finite number",
    ),
    (
        {"rule": "sqrt-n", "eps": 0.5},
        r"eps=0.5 should be left out with rule='sqrt-n', which takes \['delta'\]",
    ),
    (
        {"rule": "effective-dimension", "delta": 0.5},
        r"delta=0.5 should be left out .* takes \['effective_dimension'\]",
    ),
    (
        {"rule": "theorem4", "effective_dimension": 10_001},
        "effective_dimension=10001 should be <= n=10000",
    ),
]


def test_errors_name_the_parameter():
    for options, message in ERRORS:
        with pytest.raises(ValueError, match=message):
            budget(**{"rule": "sqrt-n"} | options)


def test_some_rules_need_the_effective_dimension():
    message = "effective_dimension=None should be a number"
    for rule in NEED_DIMENSION:
        with pytest.raises(ValueError, match=message):
            landmark_budget(100, 3, rule=rule)
