"""Kernel k-means++ landmarks: the law of the draws, potentials, refinement."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import sparse

from sketchmeans.data.rows import as_rows
from sketchmeans.engine.init import KMeansPlusPlus
from sketchmeans.kernels import as_kernel
from sketchmeans.landmarks import KernelKMeansPlusPlus, select_landmarks
from sketchmeans.landmarks.kmeanspp import (
    KernelDistances,
    _accept_draws,
    draw_d2_sample,
)
from sketchmeans.numerics.parallel import Workers
from tests.oracles import (
    kernel_matrix,
    law_p_value,
    optimal_cost,
    plain_lloyd,
    rbf,
    same_law_p_value,
)

LEVEL = 1e-3
X5 = np.array([[0.0, 0.0], [1.0, 0.2], [0.1, 1.3], [1.8, 1.1], [0.9, 2.2]])
W5 = np.array([1.0, 3.0, 2.0, 0.5, 1.5])
GAMMA = 0.4


@pytest.fixture
def space():
    """Return a function that makes the feature space of an rbf kernel."""
    with Workers(1) as workers:

        def make(X, weights=None):
            weights = None if weights is None else np.asarray(weights, float)
            return KernelDistances(
                as_rows(X, workers, weights), as_kernel("rbf", gamma=GAMMA)
            )

        yield make


@pytest.fixture
def given(space):
    """Return a function that makes the same space from a matrix, for many draws."""

    def make(X, weights=None):
        return KernelDistances(
            space(kernel_matrix(rbf, X, X, gamma=GAMMA), weights).rows,
            as_kernel("precomputed"),
        )

    return make


def scattered(n=120, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def squared_distances(X, gamma=GAMMA):
    return 2.0 - 2.0 * kernel_matrix(rbf, X, X, gamma=gamma)


def sequences(space, size, times, seed=0):
    rngs = np.random.default_rng(seed).spawn(times)
    return np.array([draw_d2_sample(space, size, rng)[0] for rng in rngs])


def sequential_law(D, weights, size):
    """Return the law of D² sampling on ordered draws, one after the other."""
    law = {}
    for order in permutations(range(len(D)), size):
        probability = weights[order[0]] / weights.sum()
        for j in range(1, size):
            mass = weights * D[:, order[:j]].min(axis=1)
            probability *= mass[order[j]] / mass.sum()
        law[order] = probability
    return law


def p_value_without_rare(draws, law):
    """Return the p-value of a law whose rare outcomes are taken together."""
    common = [key for key, p in law.items() if p * len(draws) >= 10.0]
    number = {key: i for i, key in enumerate(common)}
    seen = [number.get(tuple(row), len(common)) for row in np.asarray(draws).tolist()]
    merged = {i: law[key] for key, i in number.items()}
    merged[len(common)] = 1.0 - sum(merged.values())
    return law_p_value(seen, merged)


# --- the law --------------------------------------------------------------------------


@pytest.mark.law
@pytest.mark.parametrize("weights", [None, W5])
def test_the_second_landmark_follows_the_squared_distance(given, weights):
    drawn = sequences(given(X5, weights), 2, 2000)
    law = sequential_law(
        squared_distances(X5), np.ones(5) if weights is None else W5, 2
    )
    assert law_p_value(drawn, law) > LEVEL


@pytest.mark.law
@pytest.mark.parametrize("weights", [None, W5])
def test_batches_have_the_law_of_one_draw_after_the_other(given, weights):
    # The third and the fourth landmark are drawn together.
    drawn = sequences(given(X5, weights), 4, 2000, seed=1)
    law = sequential_law(
        squared_distances(X5), np.ones(5) if weights is None else W5, 4
    )
    assert p_value_without_rare(drawn, law) > LEVEL


@pytest.mark.law
def test_many_landmarks_in_batches_have_the_potential_of_sequential_ones(given):
    X = scattered(150, 2, seed=2) * np.array([3.0, 1.0])
    D, space = squared_distances(X), given(X)
    batched = [
        draw_d2_sample(space, 40, rng)[1] for rng in np.random.default_rng(3).spawn(120)
    ]
    seeds = KMeansPlusPlus().seed(
        lambda numbers: D[:, numbers],
        np.ones(150),
        40,
        np.random.default_rng(4).spawn(120),
    )
    sequential = [D[:, chosen].min(axis=1).sum() for chosen in seeds]
    error = np.hypot(np.std(batched), np.std(sequential)) / np.sqrt(120)
    assert abs(np.mean(batched) - np.mean(sequential)) < 4.0 * error


@pytest.mark.law
def test_a_draw_is_kept_with_the_probability_by_which_its_distance_shrank():
    # After the first draw the second has a quarter of its distance left.
    among = np.array([[0.0, 0.5], [0.5, 0.0]])
    kept = [
        len(_accept_draws(np.array([1.0, 2.0]), among, rng))
        for rng in np.random.default_rng(5).spawn(4000)
    ]
    assert law_p_value(kept, {1: 0.75, 2: 0.25}) > LEVEL


@pytest.mark.law
@pytest.mark.parametrize("size", [4])
def test_weights_equal_repeats_in_law(given, size):
    copies = np.array([1, 6, 2, 4, 3])
    number = np.repeat(np.arange(5), copies)
    weighted = sequences(given(X5, copies), size, 1000, seed=6)
    repeated = number[sequences(given(X5[number]), size, 1000, seed=7)]
    assert same_law_p_value(weighted, repeated) > LEVEL


# --- the potential --------------------------------------------------------------------


@pytest.mark.law
def test_the_mean_potential_is_within_the_guarantee_of_the_optimum(given):
    X, k = scattered(8, 2, seed=8), 3
    space = given(X)
    K = kernel_matrix(rbf, X, X, gamma=GAMMA)
    rngs = np.random.default_rng(9).spawn(400)
    potentials = [draw_d2_sample(space, k, rng)[1] for rng in rngs]
    optimum = optimal_cost(K, k) * len(X)
    assert np.mean(potentials) <= 8.0 * (np.log(k) + 2.0) * optimum
    D = squared_distances(X)
    expected = sum(
        p * D[:, order].min(axis=1).sum()
        for order, p in sequential_law(D, np.ones(8), k).items()
    )
    assert abs(np.mean(potentials) - expected) < 4.0 * np.std(potentials) / np.sqrt(400)
    least = min(D[:, list(Z)].min(axis=1).sum() for Z in combinations(range(8), k))
    assert min(potentials) >= least * (1.0 - 1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_potential_bounds_the_nystrom_error(space, weighted):
    X = scattered(60)
    weights = np.random.default_rng(10).random(60) if weighted else np.ones(60)
    indices, potential = draw_d2_sample(
        space(X, weights), 12, np.random.default_rng(11)
    )
    K = kernel_matrix(rbf, X, X, gamma=GAMMA)
    nearest = squared_distances(X)[:, indices].min(axis=1)
    assert potential == pytest.approx(weights @ nearest, rel=1e-9)
    B = K[:, indices]
    error = K - B @ np.linalg.solve(K[np.ix_(indices, indices)], B.T)
    root = np.sqrt(weights)
    error = root[:, None] * error * root
    trace = np.trace(error)
    assert np.linalg.norm(error) <= trace * (1 + 1e-9)
    assert trace <= potential


def test_the_best_restart_is_kept(space):
    X, kernel = scattered(200), as_kernel("rbf", gamma=GAMMA)
    rows = space(X).rows
    several = KernelKMeansPlusPlus(restarts=6).select(
        rows, kernel, 10, np.random.default_rng(12)
    )
    samples = [
        draw_d2_sample(space(X), 10, rng) for rng in np.random.default_rng(12).spawn(6)
    ]
    best = min(samples, key=lambda sample: sample[1])
    np.testing.assert_array_equal(several.indices, best[0])
    assert len({sample[1] for sample in samples}) == 6


# --- the landmarks --------------------------------------------------------------------


def test_rounding_is_no_distance(space):
    X = np.repeat(scattered(6, 5, seed=15), 25, axis=0)
    indices, potential = draw_d2_sample(space(X), 30, np.random.default_rng(0))
    assert len(indices) == 6
    assert potential == 0.0


def test_far_rows_are_not_told_apart_by_rounding():
    # Far from each other: the rounding of kernel values is no longer small.
    X = np.repeat(1e4 * scattered(12, 3, seed=16), 20, axis=0)
    with pytest.warns(
        UserWarning, match="Only 12 landmarks were chosen of n_landmarks=20"
    ):
        chosen = select_landmarks(X, 20, "kmeans++", gamma=1.0, random_state=0)
    assert len(np.unique(chosen.points, axis=0)) == len(chosen) == 12


# --- refinement -----------------------------------------------------------------------


def blobs(n=300, seed=13):
    rng = np.random.default_rng(seed)
    return 4.0 * rng.normal(size=(12, 2))[rng.integers(12, size=n)] + rng.normal(
        scale=0.5, size=(n, 2)
    )


@pytest.mark.parametrize(
    ("kernel", "weighted"), [("rbf", True), ("laplacian", False), ("polynomial", True)]
)
def test_refined_landmarks_never_have_a_higher_potential(space, kernel, weighted):
    X = blobs()
    weights = np.random.default_rng(14).integers(0, 4, 300) * 1.0 if weighted else None
    rows = space(X, weights).rows
    function = as_kernel(kernel).resolve(rows, np.random.default_rng(0))
    whole = KernelDistances(rows, function)
    lower = 0
    for seed in range(6):
        plain, refined = (
            KernelKMeansPlusPlus(refine=refine).select(
                rows, function, 20, np.random.default_rng(seed)
            )
            for refine in (False, True)
        )
        before, after = whole.potential(plain.points), whole.potential(refined.points)
        assert len(refined) == 20
        assert after <= before
        lower += after < before
        assert (refined.indices is None) == (after < before)
    assert lower or kernel == "polynomial"


def test_a_refinement_step_is_a_lloyd_step_in_input_space(space):
    X = blobs()
    rows, kernel = space(X).rows, as_kernel("rbf", gamma=GAMMA)
    plain = KernelKMeansPlusPlus().select(rows, kernel, 15, np.random.default_rng(1))
    refined = KernelKMeansPlusPlus(refine=True, max_iter=1).select(
        rows, kernel, 15, np.random.default_rng(1)
    )
    _, centers, _ = plain_lloyd(X, plain.points, max_iter=1)
    np.testing.assert_allclose(refined.points, centers, rtol=1e-10)


def test_more_steps_lower_the_potential_further(space):
    X = blobs()
    whole, kernel = space(X), as_kernel("rbf", gamma=GAMMA)
    potentials = [
        whole.potential(
            KernelKMeansPlusPlus(refine=True, max_iter=steps, tol=0.0)
            .select(whole.rows, kernel, 15, np.random.default_rng(2))
            .points
        )
        for steps in (1, 3, 10)
    ]
    assert potentials[0] > potentials[1] > potentials[2]


def test_landmarks_that_no_step_improves_stay_rows():
    X = scattered(20)
    selector = KernelKMeansPlusPlus(refine=True)
    chosen = select_landmarks(X, 20, selector, random_state=0)
    assert sorted(chosen.indices) == list(range(20))
    # With so narrow a kernel, a mean of rows is far from each of them.
    chosen = select_landmarks(X, 5, selector, gamma=1e3, random_state=0)
    assert len(chosen.indices) == 5


def test_refined_landmarks_have_the_form_of_the_rows():
    X = np.maximum(blobs(), 0.0).astype(np.float32)
    dense, csr = (
        select_landmarks(
            form, 10, KernelKMeansPlusPlus(refine=True), gamma=GAMMA, random_state=0
        ).points
        for form in (X, sparse.csr_array(X))
    )
    assert dense.dtype == csr.dtype == np.float32
    assert sparse.issparse(csr)
    np.testing.assert_allclose(dense, csr.toarray(), rtol=1e-4, atol=1e-6)


def test_there_is_no_refinement_without_an_input_space():
    with pytest.raises(ValueError, match="refine=True should be False with kernel="):
        select_landmarks(
            np.eye(5), 2, KernelKMeansPlusPlus(refine=True), kernel="precomputed"
        )


ERRORS = [("restarts", 0), ("max_iter", 0.5), ("tol", -1.0)]


def test_parameters_are_checked():
    for name, value in ERRORS:
        selector = KernelKMeansPlusPlus().set_params(**{name: value})
        with pytest.raises(ValueError, match=f"{name}={value} should be"):
            select_landmarks(scattered(), 5, selector)


def test_kernel_values_that_overflow_are_an_error():
    X = 1e200 * np.array([[1.0], [2.0], [3.0]])
    with (
        pytest.raises(ValueError, match="kernel values overflow"),
        np.errstate(over="ignore"),
    ):
        select_landmarks(X, 2, "kmeans++", kernel="linear", random_state=0)
