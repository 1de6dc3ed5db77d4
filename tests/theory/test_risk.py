"""The cost on new rows, and its interval."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.cluster import KMeans

from sketchmeans import KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.diagnostics import risk

#: A true law is rejected by chance once in a thousand seeds; the seeds are fixed.
LEVEL = 1e-3

MODELS = {
    "exact": KernelKMeans(3, n_jobs=1, random_state=0),
    "nystrom": NystromKMeans(3, n_landmarks=20, n_jobs=1, random_state=0),
    "sketched": SketchedKMeans(3, reducer="sign", n_jobs=1, random_state=0),
}
every_model = pytest.mark.parametrize("name", MODELS)


def drawn(n, seed, d=4):
    """Return rows of three clusters, of which some are stretched."""
    rng = np.random.default_rng(seed)
    members = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    stretch = 1.0 + rng.exponential(size=(n, 1))
    return 3.0 * np.eye(3, d)[members] + rng.normal(size=(n, d)) * stretch


@pytest.fixture(scope="module")
def fitted():
    X = drawn(300, seed=1)
    return {name: model.fit(X) for name, model in MODELS.items()}


@every_model
def test_cost_is_that_of_the_model_with_the_interval_of_its_mean(fitted, name):
    model, X = fitted[name], drawn(200, seed=2)
    found = risk(model, X, confidence=0.9)
    costs = model.transform(X).min(axis=1) ** 2
    assert found.cost == pytest.approx(model.cost(X), rel=1e-9)
    interval = stats.ttest_1samp(costs, 0.0).confidence_interval(0.9)
    assert found.lower == pytest.approx(interval.low)
    assert found.upper == pytest.approx(interval.high)
    assert found.standard_error == pytest.approx(stats.sem(costs))
    assert found.training_cost == model.cost_
    assert found.gap == pytest.approx(found.cost - model.cost_)
    assert found.gap_lower == pytest.approx(found.lower - model.cost_)
    assert found.gap_upper == pytest.approx(found.upper - model.cost_)
    assert found.n_samples == 200


@pytest.mark.law
def test_the_interval_covers_as_often_as_it_says(fitted):
    model, trials, confidence = fitted["nystrom"], 150, 0.9
    truth = model.cost(drawn(100_000, seed=3))
    covered = 0
    for seed in range(trials):
        found = risk(model, drawn(250, seed=1000 + seed), confidence)
        covered += found.lower <= truth <= found.upper
    # Neither too narrow nor too wide.
    assert stats.binomtest(covered, trials, confidence).pvalue > LEVEL


def test_weights_are_repeated_rows(fitted):
    X, repeats = drawn(40, seed=4), np.arange(40) % 4
    weighted = risk(fitted["exact"], X, sample_weight=repeats).to_dict()
    copies = risk(fitted["exact"], np.repeat(X, repeats, axis=0)).to_dict()
    assert weighted == pytest.approx(copies, rel=1e-9)
    assert weighted["n_samples"] == repeats.sum()


def test_more_confidence_is_a_wider_interval_but_no_cost_is_negative(fitted):
    X = drawn(3, seed=5)
    narrow, wide = (risk(fitted["sketched"], X, level) for level in (0.5, 0.9999))
    assert wide.upper > narrow.upper
    assert narrow.lower > wide.lower == 0.0


def test_the_gap_of_a_fit_to_few_rows_is_found():
    model = KernelKMeans(10, gamma=0.1, n_jobs=1, random_state=0).fit(drawn(30, seed=6))
    found = risk(model, drawn(2000, seed=7))
    assert found.gap_lower > 0.0


def test_other_forms_of_rows(fitted):
    X = drawn(50, seed=8)
    expected = risk(fitted["nystrom"], X)
    assert risk(fitted["nystrom"], sparse.csr_array(X)).cost == pytest.approx(
        expected.cost
    )
    single = risk(fitted["nystrom"], X.astype(np.float32))
    assert single.cost == pytest.approx(expected.cost, rel=1e-5)


def test_result_is_readable_and_becomes_json(fitted):
    found = risk(fitted["exact"], drawn(50, seed=9))
    text = repr(found)
    assert text.startswith("Risk\n  cost             0.")
    assert f"gap              {found.gap:.4g}" in text
    assert "n_samples        50" in text
    assert json.loads(json.dumps(found.to_dict()))["gap"] == found.gap


def test_errors_name_the_parameter(fitted):
    X = drawn(10, seed=0)
    with pytest.raises(ValueError, match="confidence=95 should be > 0 and < 1"):
        risk(fitted["exact"], X, 95)
    with pytest.raises(
        ValueError, match=r"model=KMeans\(.*\) should be a fitted Kernel"
    ):
        risk(KMeans(2, n_init=1).fit(X), X)
    with pytest.raises(ValueError, match="not fitted yet"):
        risk(NystromKMeans(2), X)
    with pytest.raises(ValueError, match="total weight of 1 should have more than one"):
        risk(fitted["exact"], X[:1])
    with pytest.raises(ValueError, match=r"total weight of 0\.5 should have more than"):
        risk(fitted["exact"], X, sample_weight=np.full(10, 0.05))
    with pytest.raises(ValueError, match=r"sample_weight.shape=\(3,\) should be \(10,"):
        risk(fitted["exact"], X, sample_weight=np.ones(3))
