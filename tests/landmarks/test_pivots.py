"""Landmarks that are pivots: greedy, incomplete Cholesky, random pivots."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from sketchmeans.data.rows import as_rows
from sketchmeans.kernels import as_kernel
from sketchmeans.landmarks import Cholesky, Greedy, RandomCholesky, select_landmarks
from sketchmeans.landmarks.pivots import (
    PartialCholesky,
    rejection_cholesky,
    subsample,
)
from sketchmeans.numerics.parallel import Workers
from tests.oracles import kernel_matrix, law_p_value, polynomial, rbf, same_law_p_value

LEVEL = 1e-3
W5 = np.array([1.0, 3.0, 2.0, 0.5, 1.5])
every_selector = pytest.mark.parametrize("name", ["greedy", "cholesky", "rpcholesky"])


@pytest.fixture
def workers():
    with Workers(1) as pool:
        yield pool


def scattered(n, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def gram(X, gamma=0.5):
    return kernel_matrix(rbf, X, X, gamma=gamma)


def residual(K, pivots):
    """Return ``K − K̃`` for these landmarks."""
    B = K[:, pivots]
    return K - B @ np.linalg.pinv(K[np.ix_(pivots, pivots)], hermitian=True) @ B.T


def pivots_of(selector, K, size, times, seed, workers, weights=None):
    """Return ordered pivots for a kernel matrix, once for each of some seeds."""
    weights = None if weights is None else np.asarray(weights, float)
    rows, kernel = as_rows(K, workers, weights), as_kernel("precomputed")
    return np.array(
        [
            selector.select(rows, kernel, size, rng).indices
            for rng in np.random.default_rng(seed).spawn(times)
        ]
    )


# --- the factor -----------------------------------------------------------------------


def test_the_factor_is_that_of_the_nystrom_approximation(workers):
    X = scattered(70)
    K = gram(X)
    cholesky = PartialCholesky(as_rows(X, workers), as_kernel("rbf", gamma=0.5), 6)
    for numbers in ([3, 60], [11], [5, 20, 41]):
        numbers = np.array(numbers)
        among = cholesky.residual_among(numbers)
        left = residual(K, cholesky.pivots)
        np.testing.assert_allclose(among, left[np.ix_(numbers, numbers)], atol=1e-12)
        drops = np.trace(left) - [
            np.trace(residual(K, [*cholesky.pivots, j])) for j in numbers
        ]
        np.testing.assert_allclose(cholesky.trace_drops(numbers), drops, rtol=1e-9)
        cholesky.append(numbers, np.linalg.cholesky(among))
        expected = residual(K, cholesky.pivots).diagonal()
        np.testing.assert_allclose(cholesky.residual, expected, atol=1e-12)
    np.testing.assert_array_equal(cholesky.pivots, [3, 60, 11, 5, 20, 41])
    assert (cholesky.residual[cholesky.pivots] == 0.0).all()


# --- greedy pivots --------------------------------------------------------------------


def naive_cholesky_pivots(K, size):
    """Return the pivots of the textbook algorithm on the full matrix."""
    left, pivots = np.array(K, float), []
    for _ in range(size):
        pivot = int(np.argmax(left.diagonal()))
        left = left - np.outer(left[pivot], left[pivot]) / left[pivot, pivot]
        left[pivot], left[:, pivot] = 0.0, 0.0
        pivots.append(pivot)
    return pivots


@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
def test_cholesky_has_the_pivots_of_the_naive_algorithm(kernel):
    X = scattered(90, 3, seed=1)
    if kernel == "rbf":
        K = kernel_matrix(rbf, X, X, gamma=0.7)
    else:
        K = kernel_matrix(polynomial, X, X, gamma=0.7, degree=3, coef0=1)
    chosen = select_landmarks(X, 15, "cholesky", kernel=kernel, gamma=0.7)
    np.testing.assert_array_equal(chosen.indices, naive_cholesky_pivots(K, 15))


@pytest.mark.parametrize("selector", [Cholesky(), Greedy(n_candidates=500)])
def test_without_chance_weights_equal_repeats_exactly(selector):
    X, copies = scattered(40, 3, seed=2), np.random.default_rng(3).integers(0, 7, 40)
    number = np.repeat(np.arange(40), copies)
    weighted = select_landmarks(X, 12, selector, gamma=0.5, sample_weight=copies)
    repeated = select_landmarks(X[number], 12, selector, gamma=0.5)
    np.testing.assert_array_equal(weighted.indices, number[repeated.indices])


def naive_greedy_pivots(K, size, weights):
    """Return the rows that lower the trace most, by trying them all."""
    pivots = []
    for _ in range(size):
        traces = [
            np.inf if j in pivots else weights @ residual(K, [*pivots, j]).diagonal()
            for j in range(len(K))
        ]
        pivots.append(int(np.argmin(traces)))
    return pivots


@pytest.mark.parametrize("weighted", [False, True])
def test_greedy_with_all_candidates_lowers_the_trace_most(weighted):
    X = scattered(40, 2, seed=3)
    weights = np.random.default_rng(4).random(40) if weighted else np.ones(40)
    chosen = select_landmarks(
        X, 6, Greedy(n_candidates=40), gamma=0.5, sample_weight=weights
    )
    expected = naive_greedy_pivots(gram(X), 6, weights)
    np.testing.assert_array_equal(chosen.indices, expected)


def test_greedy_takes_the_best_of_candidates_drawn_by_weight(workers):
    K, weights = gram(scattered(5, seed=5)), W5
    drops = weights @ K**2  # of a first pivot, as k(x, x) = 1
    share, law = weights / weights.sum(), dict.fromkeys(range(5), 0.0)
    for i, p in enumerate(share):
        for j, q in enumerate(share):
            law[i if drops[i] >= drops[j] else j] += p * q
    selector = Greedy(n_candidates=2)
    drawn = pivots_of(selector, K, 1, 3000, 6, workers, weights)
    assert law_p_value(drawn, law) > LEVEL


# --- random pivots --------------------------------------------------------------------


def sequential_law(K, weights, size):
    """Return the law of pivots drawn by weight times residual diagonal."""
    law = {}
    for order in permutations(range(len(K)), size):
        probability = 1.0
        for j, pivot in enumerate(order):
            mass = weights * residual(K, list(order[:j])).diagonal().clip(0.0)
            probability *= mass[pivot] / mass.sum()
        law[order] = probability
    return law


@pytest.mark.law
@pytest.mark.parametrize(
    ("accelerated", "weights"),
    [(False, None), (True, None), (True, W5)],
    ids=["single", "accelerated", "weighted"],
)
def test_random_pivots_follow_the_residual_diagonal(workers, accelerated, weights):
    # Of four pivots the accelerated variant draws the last two together.
    K, times = gram(scattered(5, seed=7), gamma=0.3), 1200
    law = sequential_law(K, np.ones(5) if weights is None else weights, 4)
    selector = RandomCholesky(accelerated=accelerated)
    drawn = pivots_of(selector, K, 4, times, 8, workers, weights)
    common = [order for order, p in law.items() if p * times >= 8.0]
    number = {order: i for i, order in enumerate(common)}
    seen = [number.get(tuple(order), len(common)) for order in drawn.tolist()]
    merged = {i: law[order] for order, i in number.items()}
    merged[len(common)] = 1.0 - sum(merged.values())
    assert law_p_value(seen, merged) > LEVEL


@pytest.mark.law
def test_many_random_pivots_in_batches_leave_the_trace_of_single_ones(workers):
    K = gram(scattered(150, seed=9) * np.array([4.0, 1.0]), gamma=1.0)
    traces = np.array(
        [
            [
                np.trace(residual(K, pivots))
                for pivots in pivots_of(
                    RandomCholesky(accelerated=accelerated), K, 30, 60, 10, workers
                )
            ]
            for accelerated in (False, True)
        ]
    )
    error = np.hypot(*traces.std(axis=1)) / np.sqrt(60)
    assert abs(np.subtract(*traces.mean(axis=1))) < 4.0 * error


@pytest.mark.law
def test_a_draw_is_kept_with_the_probability_by_which_its_residual_shrank():
    # After the first draw the second has a fifth of its residual left.
    among = np.array([[1.0, 2.0], [2.0, 5.0]])
    kept = [
        len(rejection_cholesky(among, np.zeros(2), 2, rng)[0])
        for rng in np.random.default_rng(11).spawn(3000)
    ]
    assert law_p_value(kept, {1: 0.8, 2: 0.2}) > LEVEL


def test_the_factor_of_the_kept_draws():
    among = gram(scattered(30, 4, seed=12))
    rng = np.random.default_rng(13)
    kept, lower = rejection_cholesky(among, np.zeros(30), 30, rng)
    assert 3 < len(kept) < 30
    assert (np.triu(lower, 1) == 0.0).all()
    np.testing.assert_allclose(lower @ lower.T, among[np.ix_(kept, kept)], atol=1e-13)
    few, _ = rejection_cholesky(among, np.zeros(30), 3, np.random.default_rng(13))
    np.testing.assert_array_equal(few, kept[:3])


@pytest.mark.law
@pytest.mark.parametrize("accelerated", [False])
def test_weights_equal_repeats_in_law(workers, accelerated):
    copies, K = np.array([1, 6, 2, 4, 3]), gram(scattered(5, seed=14))
    number = np.repeat(np.arange(5), copies)
    selector = RandomCholesky(accelerated=accelerated)
    weighted = pivots_of(selector, K, 3, 600, 15, workers, copies)
    repeated = pivots_of(selector, K[np.ix_(number, number)], 3, 600, 16, workers)
    assert same_law_p_value(weighted, number[repeated]) > LEVEL


# --- all of them ----------------------------------------------------------------------


@every_selector
def test_pivots_beat_uniform_landmarks_where_the_spectrum_decays(name):
    # A narrow kernel has no fast decay, and there the largest residual diagonal
    # ("cholesky") leads to outliers and loses to uniform landmarks.
    X = scattered(150, 3, seed=17) ** 3
    K = gram(X, gamma=0.005)

    def mean_trace(method):
        chosen = [
            select_landmarks(X, 30, method, gamma=0.005, random_state=seed).indices
            for seed in range(4)
        ]
        return np.mean([np.trace(residual(K, pivots)) for pivots in chosen])

    assert mean_trace(name) < 0.3 * mean_trace("uniform")


@every_selector
def test_it_ends_where_every_residual_is_rounding(name):
    X = scattered(200, 3, seed=18) + 10.0
    with pytest.warns(
        UserWarning, match="Only 3 landmarks were chosen of n_landmarks=9"
    ):
        chosen = select_landmarks(X, 9, name, kernel="linear", random_state=0)
    assert len(chosen) == 3


@every_selector
def test_equal_rows_far_from_others_are_one_landmark(name):
    X = np.repeat(1e4 * scattered(12, 3, seed=16), 20, axis=0)
    with pytest.warns(UserWarning, match="Only 12 landmarks"):
        chosen = select_landmarks(X, 20, name, gamma=1.0, random_state=0)
    assert len(np.unique(chosen.points, axis=0)) == len(chosen) == 12


# --- subsamples -----------------------------------------------------------------------


def test_a_subsample_is_uniform():
    # With as many rows as landmarks, the pivots are the subsample.
    X, counts = scattered(60, 6, seed=20), np.zeros(60)
    for seed in range(100):
        selector = RandomCholesky(subsample=6)
        chosen = select_landmarks(X, 6, selector, gamma=2.0, random_state=seed)
        counts[chosen.indices] += 1
    parts = np.repeat(np.arange(60) // 10, counts.astype(int))
    assert law_p_value(parts, dict.fromkeys(range(6), 1 / 6)) > LEVEL


def test_a_subsample_follows_the_weights(workers):
    # A row of a heavy third counts five times, one of the last third not at all.
    X, thirds = scattered(60, 6, seed=20), np.arange(60) // 20
    weights = np.array([5.0, 1.0, 0.0])[thirds]
    rows = as_rows(X, workers, weights)
    drawn = np.zeros(3)
    for rng in np.random.default_rng(21).spawn(100):
        part, numbers = subsample(rows, as_kernel("rbf", gamma=1.0), 20, rng)
        assert part.weights.sum() == 20.0
        np.testing.assert_array_equal(part.X, X[numbers])
        drawn += np.bincount(thirds[numbers], part.weights, minlength=3)
    outcomes = np.repeat(np.arange(3), drawn.astype(int))
    assert law_p_value(outcomes, {0: 5 / 6, 1: 1 / 6}) > LEVEL


def test_a_heavy_row_counts_as_often_as_it_was_drawn():
    # Nearly every draw is row 7: the subsample has few rows, and more landmarks
    # were asked for than it has.
    X, weights = scattered(100, seed=21), np.full(100, 1e-9)
    weights[7] = 1.0
    with pytest.warns(UserWarning, match="Only 1 landmarks"):
        chosen = select_landmarks(
            X, 5, Cholesky(subsample=50), sample_weight=weights, random_state=0
        )
    np.testing.assert_array_equal(chosen.indices, [7])


def test_the_size_of_the_automatic_subsample():
    # The factor is held in 64 MB, but there are eight rows a landmark.
    assert Cholesky()._subsample_size(100) == 2**23 // 100
    assert RandomCholesky()._subsample_size(2000) == 16_000
    assert Greedy()._subsample_size(100) == 2**21 // 100
    assert Cholesky(subsample=None)._subsample_size(100) is None


def test_a_precomputed_kernel_is_never_subsampled():
    K = gram(scattered(60, seed=22))
    chosen = select_landmarks(K, 10, Cholesky(subsample=12), kernel="precomputed")
    np.testing.assert_array_equal(chosen.indices, naive_cholesky_pivots(K, 10))


ERRORS = [
    (Cholesky(subsample=3), "subsample=3 should be >= n_landmarks=5"),
    (Cholesky(subsample="all"), "subsample='all' should be an integer"),
    (Greedy(n_candidates=0), "n_candidates=0 should be an integer >= 1"),
]


def test_parameters_are_checked():
    for selector, message in ERRORS:
        with pytest.raises(ValueError, match=message):
            select_landmarks(scattered(20), 5, selector)


@every_selector
def test_kernel_values_that_overflow_are_an_error(name):
    X = 1e200 * np.array([[1.0], [2.0], [3.0]])
    with (
        pytest.raises(ValueError, match="kernel values overflow"),
        np.errstate(over="ignore"),
    ):
        select_landmarks(X, 2, name, kernel="linear", random_state=0)
