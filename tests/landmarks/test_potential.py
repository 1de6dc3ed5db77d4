"""The potential of landmarks: a sum over rows, and a bound on the error."""

import numpy as np
import pytest
from scipy import sparse

from sketchmeans import Nystrom, select_landmarks
from sketchmeans.landmarks import KernelKMeansPlusPlus, landmark_potential
from tests.oracles import kernel_matrix, rbf

GAMMA = 0.4


def rows(n=50, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def naive(X, Z, weights):
    K = kernel_matrix(rbf, X, Z, gamma=GAMMA)
    return float(weights @ (2.0 - 2.0 * K).min(axis=1))


def test_against_a_sum_over_rows():
    X, Z = rows(), rows(7, seed=1)
    weights = np.arange(50) % 4
    for given in (None, weights):
        expected = naive(X, Z, np.ones(50) if given is None else weights)
        for table in (X, sparse.csr_array(X)):
            found = landmark_potential(table, Z, gamma=GAMMA, sample_weight=given)
            assert found == pytest.approx(expected)
    numbers = np.array([3, 40, 8])
    found = landmark_potential(X, numbers, gamma=GAMMA)
    assert found == pytest.approx(naive(X, X[numbers], np.ones(50)))
    K = kernel_matrix(rbf, X, X, gamma=GAMMA)
    assert landmark_potential(K, numbers, kernel="precomputed") == pytest.approx(found)


def test_all_rows_as_landmarks_leave_nothing():
    assert landmark_potential(rows(), np.arange(50)) == 0.0


@pytest.mark.parametrize("method", ["uniform", "k-means++", "kmeans", "greedy"])
def test_it_bounds_the_error_of_every_selector(method):
    X = rows(80)
    chosen = select_landmarks(X, 8, method, random_state=0, gamma=GAMMA)
    given = chosen.points if chosen.indices is None else chosen.indices
    F = Nystrom(landmarks=given, gamma=GAMMA).fit_transform(X)
    E = kernel_matrix(rbf, X, X, gamma=GAMMA) - F @ F.T
    bound = landmark_potential(X, chosen, gamma=GAMMA)
    assert np.linalg.norm(E) <= np.trace(E) <= bound


def test_it_is_what_restarts_of_k_means_plus_plus_minimise():
    X = rows(300)
    one, best = (
        landmark_potential(
            X, select_landmarks(X, 20, KernelKMeansPlusPlus(n), random_state=3)
        )
        for n in (1, 8)
    )
    assert best <= one
