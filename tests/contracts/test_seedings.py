"""Every seeding in SEEDINGS keeps the contract that ships with the package."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from sketchmeans.data.rows import as_rows
from sketchmeans.engine.gram import GramEngine
from sketchmeans.engine.init import (
    SEEDINGS,
    KMeansPlusPlus,
    LocalSearch,
    RandomSeeding,
    _SwapState,
)
from sketchmeans.kernels import as_kernel, squared_distances_among
from sketchmeans.numerics.parallel import Workers
from sketchmeans.testing import SeedingContract
from tests.oracles import law_p_value, optimal_cost
from tests.pairs import every_value

every_seeding = pytest.mark.parametrize("name", SEEDINGS)

#: A true law is rejected by chance once in a thousand seeds; the seeds are fixed.
LEVEL = 1e-3


def generators(seed: int, restarts: int) -> list[np.random.Generator]:
    return np.random.default_rng(seed).spawn(restarts)


def distances_among(X):
    """Return the squared distances to rows, as a seeding asks for them."""
    table = ((X[:, None] - X) ** 2).sum(axis=2)
    return lambda indices: table[:, indices]


def seed(name, X, k, rngs, weights=None):
    seeding = SEEDINGS[name]() if isinstance(name, str) else name
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, float)
    return seeding.seed(distances_among(X), weights, k, rngs)


def costs(X, chosen, weights=None):
    """Return the weighted mean squared distance to the nearest seed, per restart."""
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, float)
    nearest = np.stack([distances_among(X)(seeds).min(axis=1) for seeds in chosen])
    return nearest @ weights / weights.sum()


def scattered(n=40, d=2, rng_seed=0):
    return np.random.default_rng(rng_seed).normal(size=(n, d))


def islands():
    """Three tight groups of 5, 2 and 2 rows, far apart."""
    rng = np.random.default_rng(1)
    centres = np.repeat([[0.0, 0.0], [300.0, 0.0], [0.0, 300.0]], [5, 2, 2], axis=0)
    return centres + rng.normal(size=(9, 2))


class TestContract(SeedingContract):
    @pytest.fixture(params=SEEDINGS, autouse=True)
    def name(self, request):
        self.name = request.param

    def make_seeding(self):
        return SEEDINGS[self.name]()

    @pytest.mark.law
    @pytest.mark.parametrize("k", [1, 3])
    def test_weights_equal_repeats_in_law(self, k):
        super().test_weights_equal_repeats_in_law(k)


@pytest.mark.law
@every_seeding
def test_the_first_centre_of_one_follows_the_weights(name):
    weights = np.array([1.0, 5.0, 2.0, 0.5, 1.5])
    chosen = seed(name, scattered(5), 1, generators(21, 1000), weights)
    assert law_p_value(chosen, dict(enumerate(weights / weights.sum()))) > LEVEL


@pytest.mark.law
def test_random_seeding_draws_successively_by_weight():
    weights = np.array([1.0, 5.0, 2.0, 1.0])
    chosen = seed(RandomSeeding(), scattered(4), 2, generators(5, 3000), weights)
    share = weights / weights.sum()
    law = {
        (i, j): share[i] * share[j] / (1.0 - share[i])
        for i, j in product(range(4), repeat=2)
        if i != j
    }
    assert law_p_value(chosen, law) > LEVEL


def pair_law(X, weights):
    """Return P(second centre | first centre) of D² sampling, and P(first)."""
    distances = distances_among(X)(np.arange(len(X)))
    mass = weights * distances
    return weights / weights.sum(), mass / mass.sum(axis=1, keepdims=True)


@pytest.mark.law
@pytest.mark.parametrize("weighted", [False, True])
def test_the_second_centre_of_kmeans_plus_plus_follows_the_squared_distance(weighted):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    weights = np.array([1.0, 3.0, 2.0, 1.0]) if weighted else np.ones(4)
    first, second = pair_law(X, weights)
    law = {(i, j): first[i] * second[i, j] for i, j in product(range(4), repeat=2)}
    chosen = seed(KMeansPlusPlus(), X, 2, generators(6, 4000), weights)
    assert law_p_value(chosen, law) > LEVEL


@pytest.mark.law
def test_the_third_centre_of_kmeans_plus_plus_looks_at_the_nearest_centre():
    X = np.array([[0.0], [1.0], [3.0], [4.5]])
    table = distances_among(X)(np.arange(4))
    first, second = pair_law(X, np.ones(4))
    law = {}
    for i, j, h in product(range(4), repeat=3):
        if i != j:
            mass = np.minimum(table[i], table[j])
            law[i, j, h] = first[i] * second[i, j] * mass[h] / mass.sum()
    chosen = seed(KMeansPlusPlus(), X, 3, generators(7, 6000))
    assert law_p_value(chosen, law) > LEVEL


@pytest.mark.law
def test_greedy_takes_the_better_of_two_candidates():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    weights = np.array([1.0, 3.0, 2.0, 1.0])
    first, second = pair_law(X, weights)
    law = dict.fromkeys(product(range(4), repeat=2), 0.0)
    for i, a, b in product(range(4), repeat=3):
        cost_a, cost_b = costs(X, [[i, a], [i, b]], weights)
        law[i, b if cost_b < cost_a else a] += first[i] * second[i, a] * second[i, b]
    chosen = seed(KMeansPlusPlus(n_candidates=2), X, 2, generators(8, 6000), weights)
    assert law_p_value(chosen, law) > LEVEL


def test_greedy_by_name_draws_two_plus_log_k_candidates():
    asked = []
    X = scattered(60)
    table = distances_among(X)

    def distances_to(indices):
        asked.append(len(indices))
        return table(indices)

    SEEDINGS["greedy-k-means++"]().seed(distances_to, np.ones(60), 9, generators(0, 1))
    assert asked == [1] + [4] * 8


@pytest.mark.law
def test_mean_cost_of_kmeans_plus_plus_is_within_the_bound_of_the_optimum():
    X, k = islands(), 3
    bound = 8.0 * (np.log(k) + 2.0) * optimal_cost(X @ X.T, k)
    found = costs(X, seed("k-means++", X, k, generators(9, 1000)))
    assert found.mean() <= bound
    # The bound is no formality: uniform seeds miss a group and exceed it by far.
    assert costs(X, seed("random", X, k, generators(9, 1000))).mean() > 10.0 * bound


@every_seeding
def test_no_seeds_cost_less_than_the_optimum(name):
    X = islands()
    found = costs(X, seed(name, X, 3, generators(10, 200)))
    assert found.min() >= optimal_cost(X @ X.T, 3) * (1.0 - 1e-12)


def test_greedy_seeds_cost_less_on_average():
    X = scattered(80)
    plain = costs(X, seed("k-means++", X, 6, generators(11, 300)))
    greedy = costs(X, seed("greedy-k-means++", X, 6, generators(11, 300)))
    assert greedy.mean() < 0.95 * plain.mean()


@pytest.mark.parametrize("weighted", [False, True])
def test_local_search_never_raises_the_cost_and_lowers_it_on_average(weighted):
    X = scattered(80)
    weights = np.random.default_rng(2).integers(0, 5, 80) if weighted else None
    path = [
        costs(
            X, seed(LocalSearch(n_steps), X, 6, generators(12, 100), weights), weights
        )
        for n_steps in (0, 1, 2, 4, 8, 12)
    ]
    start = costs(X, seed("k-means++", X, 6, generators(12, 100), weights), weights)
    np.testing.assert_allclose(path[0], start)
    for before, after in pairwise(path):
        assert (after <= before * (1.0 + 1e-12)).all()
    assert path[-1].mean() < 0.85 * start.mean()


def test_local_search_by_name_takes_two_k_steps():
    X = scattered(80)
    named = seed("local-search", X, 6, generators(13, 20))
    explicit = seed(LocalSearch(12), X, 6, generators(13, 20))
    np.testing.assert_array_equal(named, explicit)
    assert (named != seed(LocalSearch(11), X, 6, generators(13, 20))).any()


def test_local_search_finds_the_group_that_two_seeds_share():
    # Two centres in one group and none in another: one swap repairs it.
    X = islands()
    start = np.array([0, 1, 5])
    state = _SwapState(distances_among(X)(start))
    candidate = distances_among(X)(np.array([7]))[:, 0]
    removed = state.best_swap(candidate, np.ones(9))
    assert removed in (0, 1)
    state.swap(removed, candidate)
    start[removed] = 7
    assert costs(X, [start])[0] < 10.0


def test_best_swap_is_the_best_of_all_swaps():
    rng = np.random.default_rng(14)
    accepted = 0
    for _ in range(60):
        X, weights = rng.normal(size=(15, 2)), rng.random(15)
        start, row = rng.choice(15, 4, replace=False), int(rng.integers(15))
        swapped = [[*start[:j], row, *start[j + 1 :]] for j in range(4)]
        expected = costs(X, swapped, weights)
        now = costs(X, [start], weights)[0]
        state = _SwapState(distances_among(X)(start))
        removed = state.best_swap(distances_among(X)(np.array([row]))[:, 0], weights)
        if removed is None:
            assert expected.min() >= now * (1.0 - 1e-12)
        else:
            accepted += 1
            assert expected[removed] == pytest.approx(expected.min())
            assert expected[removed] < now
    assert 10 < accepted < 60


def test_nearest_and_second_nearest_stay_true_over_many_swaps():
    rng = np.random.default_rng(15)
    table = distances_among(rng.normal(size=(50, 2)))
    centres = rng.choice(50, 5, replace=False)
    state = _SwapState(table(centres).copy())
    for row in rng.integers(50, size=40):
        removed = int(rng.integers(5))
        state.swap(removed, table(np.array([row]))[:, 0])
        centres[removed] = row
        ordered = np.sort(table(centres), axis=1)
        np.testing.assert_array_equal(state.first, ordered[:, 0])
        np.testing.assert_array_equal(state.second, ordered[:, 1])
        np.testing.assert_array_equal(
            table(centres)[np.arange(50), state.nearest], ordered[:, 0]
        )
        np.testing.assert_array_equal(
            table(centres)[np.arange(50), state.runner_up], ordered[:, 1]
        )
        assert (state.nearest != state.runner_up).all()


# --- the distances that seedings see --------------------------------------------------


def euclidean(rows):
    return squared_distances_among(rows)


def through_a_kernel(rows):
    return as_kernel("linear").distances_among(rows)


def through_a_gram_matrix(rows):
    return GramEngine(rows.X @ rows.X.T, 2, None, rows.workers).distances_to


@pytest.mark.parametrize("source", [euclidean, through_a_kernel, through_a_gram_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_are_at_distance_zero_and_others_are_not(source, dtype):
    # Rounding must not look like a distance: it would be drawn as a centre.
    values = np.random.default_rng(16).normal(size=(12, 30))
    X = np.repeat(values, 10, axis=0).astype(dtype)
    with Workers(1) as workers:
        found = source(as_rows(X, workers))(np.arange(0, 120, 10))
    expected = ((X[:, None].astype(float) - X[::10]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(found == 0.0, expected == 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@every_value
@pytest.mark.parametrize("name", ["rbf", "laplacian", "polynomial", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_distances_are_those_in_feature_space(name, dtype):
    X = np.random.default_rng(17).normal(size=(40, 5)).astype(dtype)
    X[20:] = X[:20]
    params = {} if name == "cosine" else {"gamma": 0.3}
    kernel = as_kernel(name, **params)
    with Workers(1) as workers:
        found = kernel.distances_among(as_rows(X, workers))(np.arange(10))
    K = kernel(X.astype(np.float64), X.astype(np.float64))
    expected = np.diagonal(K)[:, None] - 2.0 * K[:, :10] + np.diagonal(K)[:10]
    np.testing.assert_allclose(
        found, expected, atol=1e-4 * K.max() if dtype is np.float32 else 1e-12 * K.max()
    )
    np.testing.assert_array_equal(found[20:30].diagonal(), 0.0)
