"""OG17's bounds on the Nyström error against naive sums, and that they hold."""

from __future__ import annotations

import numpy as np
import pytest

from sketchmeans import Nystrom, select_landmarks
from sketchmeans.diagnostics import nystrom_error_bounds
from sketchmeans.landmarks import KernelKMeansPlusPlus
from tests.oracles import kernel_matrix, rbf

GAMMA = 0.3


def rows(n=60, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def gram(X):
    return kernel_matrix(lambda x, z: rbf(x, z, gamma=GAMMA), X, X)


def potential(K, labels):
    """Return the sum of squared distances to the cluster means, row by row."""
    total = 0.0
    for i, label in enumerate(labels):
        members = np.flatnonzero(labels == label)
        inner = K[np.ix_(members, members)].mean()
        total += K[i, i] - 2.0 * K[i, members].mean() + inner
    return total


def test_numbers_against_naive_sums():
    X, K = rows(), 4
    labels = np.arange(60) % 5
    H = gram(X)
    values, vectors = np.linalg.eigh(H)
    top = vectors[:, -K:] * values[-K:] @ vectors[:, -K:].T
    found = nystrom_error_bounds(X, K, gamma=GAMMA, labels=labels, n_landmarks=6)
    error = np.linalg.norm(H - top)
    assert found.optimal_error == pytest.approx(error)
    assert found.optimal_trace_error == pytest.approx(np.trace(H - top))
    assert found.potential == pytest.approx(potential(H, labels))
    assert found.potential_in_span == pytest.approx(potential(top, labels))
    factor = 8 * (np.log(5) + 2)
    theta = potential(top, labels) / error
    assert found.theorem_4 == pytest.approx(factor * (np.sqrt(56) + theta))
    assert found.seeding == pytest.approx(factor * potential(H, labels) / error)
    assert found.k_dpp == pytest.approx(7 / 3 * np.sqrt(56))
    holds = bool(theta <= np.sqrt(56))
    assert (found.corollary_5 is not None) is holds


def test_corollary_2_is_an_inequality_without_conditions():
    rng = np.random.default_rng(1)
    for seed in range(10):
        labels = rng.integers(4, size=60)
        found = nystrom_error_bounds(rows(seed=seed), 3, gamma=GAMMA, labels=labels)
        assert found.potential < found.corollary_2
        assert found.seeding < found.theorem_4


def test_the_mean_error_is_within_the_bounds():
    X, K = rows(), 4
    found = nystrom_error_bounds(X, K, gamma=GAMMA, random_state=0)
    H, errors = gram(X), []
    for seed in range(20):
        chosen = select_landmarks(
            X, K + 1, KernelKMeansPlusPlus(1), gamma=GAMMA, random_state=seed
        )
        F = Nystrom(gamma=GAMMA, landmarks=chosen.indices).fit_transform(X)
        errors.append(np.linalg.norm(H - F @ F.T))
    ratio = np.mean(errors) / found.optimal_error
    assert ratio < found.seeding <= found.theorem_4
    assert found.corollary_5 == pytest.approx(16 * (np.log(5) + 2) * np.sqrt(56))


def test_weights_are_repeated_rows():
    X, weights = rows(20), np.arange(20) % 3 + 1
    labels = np.arange(20) % 4
    given = {"gamma": GAMMA, "n_landmarks": 3}
    weighted = nystrom_error_bounds(X, 3, labels=labels, sample_weight=weights, **given)
    repeated = nystrom_error_bounds(
        np.repeat(X, weights, axis=0), 3, labels=np.repeat(labels, weights), **given
    )
    for name in ("optimal_error", "potential", "potential_in_span"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name))


def test_a_matrix_of_low_rank_has_no_relative_error():
    X = np.arange(10.0)[:, None]
    found = nystrom_error_bounds(X, 2, "linear", random_state=0)
    assert found.optimal_error == 0.0
    assert found.theorem_4 == found.seeding == np.inf
    assert found.corollary_5 is None
    assert found.to_dict()["theorem_4"] is None


def test_errors():
    X = rows(10)
    with pytest.raises(ValueError, match="X of 10 rows should have more than rank=10"):
        nystrom_error_bounds(X, 10)
    with pytest.raises(ValueError, match="at most max_exact=5"):
        nystrom_error_bounds(X, 2, max_exact=5)
    with pytest.raises(ValueError, match="n_landmarks=1 should be an integer >= 2"):
        nystrom_error_bounds(X, 2, n_landmarks=1)
    with pytest.raises(ValueError, match=r"labels of shape \(10,\) with 10 clusters"):
        nystrom_error_bounds(X, 2, labels=np.arange(10))
