"""The number of clusters: planted ones are found, noise has none."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from sketchmeans import NystromKMeans, TableClusterer
from sketchmeans.datasets import make_customers
from sketchmeans.diagnostics import are_round, choose_n_clusters
from sketchmeans.diagnostics.cluster_count import _choose
from sketchmeans.diagnostics.noise import make_noise
from sketchmeans.diagnostics.resampling import (
    _compare_all,
    _summarise,
    jackknife_pairs,
)

RNG = np.random.default_rng(0)
BLOBS, _ = make_blobs(600, 3, centers=5, cluster_std=0.8, random_state=4)
RINGS, _ = make_circles(800, noise=0.05, factor=0.4, random_state=0)


@pytest.mark.parametrize(("X", "k"), [(BLOBS, 5), (RINGS, 2)])
def test_planted_numbers_are_found(X, k):
    found = choose_n_clusters(X, range(2, 7), random_state=0)
    assert (found.n_clusters, found.is_clear) == (k, True)
    assert found.eigengap_n_clusters == k
    place = list(found.ks).index(k)
    assert found.agreement[place] > 0.98
    assert found.agreement_low[place] > found.noise_agreement[place]
    assert f"{k} is the most clusters" in found.note
    assert found.to_dict()["agreement_low"] == pytest.approx(found.agreement_low)


@pytest.mark.parametrize(
    "X",
    [RNG.uniform(size=(300, 1)), RNG.uniform(size=(300, 2)), RNG.normal(size=(300, 4))],
    ids=["line", "square", "gaussian"],
)
def test_noise_has_no_clear_number(X):
    found = choose_n_clusters(X, range(2, 6), random_state=0)
    assert not found.is_clear
    assert "No number of clusters is clear" in found.note


def test_a_large_gap_counts_beside_agreement():
    """Of many groups that overlap, or in noise on whose halves samples agree, too."""
    agreement = np.array([1.0, 0.76, 0.97, 0.94, 0.88])
    noise = agreement - 0.3
    gap = np.array([0.7, 0.1, 0.1, 1.6, 0.0])
    assert _choose(agreement, noise, gap) == (3, True)
    assert _choose(agreement, noise, np.where(gap > 1.0, 0.3, gap)) == (0, True)
    assert _choose(agreement[1:], agreement[1:], np.zeros(4))[1] is False
    for size, is_clear in ((0.6, True), (0.4, False)):
        halves = np.array([size, 0.0, 0.0, 0.0, 0.0])
        assert _choose(agreement, agreement, halves) == (0, is_clear)


def test_evidence_is_graded():
    """The more agreement exceeds that of noise, the smaller a gap is enough."""

    def least_gap(agreement, noise):
        return next(
            gap
            for gap in np.linspace(-0.1, 1.0, 221)
            if _choose(np.array([agreement]), np.array([noise]), np.array([gap]))[1]
        )

    by_noise = [least_gap(0.9, noise) for noise in np.linspace(0.95, 0.6, 36)]
    by_agreement = [least_gap(a, 0.7) for a in np.linspace(0.85, 1.0, 31)]
    for limits in (by_noise, by_agreement):
        steps = np.diff(limits)
        assert limits[0] > limits[-1]
        assert (steps <= 0.0).all()
        assert (steps > -0.3).all()


def test_noise_is_more_than_one_table():
    """With one table of noise of each kind, gaps differed by 0.08 between seeds."""
    X = np.random.default_rng(5).normal(size=(300, 3))
    gaps = [choose_n_clusters(X, [2, 3, 4, 5], random_state=s) for s in range(5)]
    spread = np.std([one.eigengap for one in gaps], axis=0, ddof=1)
    assert spread.mean() < 0.06


def test_one_odd_subsample_does_not_count():
    scores = np.full(45, 0.99)
    scores[:9] = 0.5  # the pairs of the first
    assert _summarise(scores, 10) == pytest.approx((0.99, 0.0))
    assert _summarise(scores[:3], 3)[0] == pytest.approx(0.5)


def test_categories_alone_are_no_clusters():
    levels = np.eye(3)[RNG.integers(3, size=600)]
    X = np.hstack([RNG.normal(size=(600, 2)), levels])
    assert not choose_n_clusters(X, [2, 3, 4], random_state=0).is_clear


def test_seeds_threads_and_forms_of_input():
    one, two, csr = (
        choose_n_clusters(X, [4, 5, 6], n_subsamples=4, random_state=0, n_jobs=jobs)
        for X, jobs in ((BLOBS, 1), (BLOBS, 2), (sparse.csr_array(BLOBS), 1))
    )
    np.testing.assert_array_equal(one.agreement, two.agreement)
    np.testing.assert_array_equal(one.eigengap, two.eigengap)
    assert csr.n_clusters == one.n_clusters == 5


def test_noise_keeps_covariance_and_categories():
    numbers = RNG.normal(size=(900, 2)) @ np.array([[1.0, 2.0], [0.0, 1.0]])
    X = np.hstack([numbers, np.eye(3)[RNG.integers(3, size=900)]])
    for normal in (False, True):
        noise = make_noise(X, np.random.default_rng(1), normal=normal)
        np.testing.assert_allclose(np.cov(noise[:, :2].T), np.cov(X[:, :2].T), atol=0.4)
        # Each row has one level, and each level as many rows as before.
        np.testing.assert_array_equal(noise[:, 2:].sum(axis=1), np.ones(900))
        np.testing.assert_array_equal(noise[:, 2:].sum(axis=0), X[:, 2:].sum(axis=0))
        assert abs(np.corrcoef(noise[:, 0], noise[:, 2])[0, 1]) < 0.15


def test_agreement_is_the_adjusted_rand_index():
    labels = RNG.integers(4, size=(3, 50))
    labels[2] = labels[1]
    pairs = [(0, 1), (0, 2), (1, 2)]
    expected = [adjusted_rand_score(labels[a], labels[b]) for a, b in pairs]
    np.testing.assert_allclose(_compare_all(labels, pairs, 4), expected)


def test_the_jackknife_knows_that_pairs_share_subsamples():
    # Scores that are means of independent values of the two subsamples.
    values = RNG.normal(size=(400, 8))
    pairs = np.array([(a, b) for a in range(8) for b in range(a + 1, 8)])
    scores = values[:, pairs].mean(axis=2).T
    errors = jackknife_pairs(scores, 8)
    spread = scores.mean(axis=0).std()
    assert errors.mean() == pytest.approx(spread, rel=0.15)
    assert np.isnan(jackknife_pairs(scores[:1], 2)).all()


def test_round_clusters():
    assert are_round(BLOBS, 5, random_state=0)
    assert not are_round(RINGS, 2, random_state=0)


def test_groups_of_a_mixed_table_are_round():
    """Cuts find others there, which are no better: nobody is sent to them."""
    customers, _ = make_customers()
    table = TableClusterer(NystromKMeans(4)).fit_preparation(customers)
    rows = table.prepare(customers)
    assert all(are_round(rows, 4, random_state=seed) for seed in (0, 3, 7))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"ks": []}, r"ks=\[\] should have at least one"),
        ({"ks": [1]}, "ks=1 should be"),
        ({"ks": [201]}, "ks=201 should be <= 200, a third of the rows"),
        ({"n_subsamples": 2}, "n_subsamples=2 should be"),
        ({"confidence": 1.5}, "confidence=1.5 should be"),
    ],
)
def test_errors(given, text):
    with pytest.raises(ValueError, match=text):
        choose_n_clusters(BLOBS, **given)
