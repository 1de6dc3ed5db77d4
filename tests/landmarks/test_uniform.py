"""Uniform landmarks: the law of the draws, repeated values, weights."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy import sparse

from sketchmeans import NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.kernels import as_kernel
from sketchmeans.landmarks import Uniform, as_selector
from sketchmeans.numerics.parallel import Workers
from tests.oracles import law_p_value, same_law_p_value

LEVEL = 1e-3


@pytest.fixture
def draw():
    """Return a function that draws row numbers, once for each of some generators."""
    with Workers(1) as workers:

        def select(X, size, times, seed=0, weights=None, replace=False):
            weights = None if weights is None else np.asarray(weights, float)
            rows = as_rows(X, workers, weights)
            selector, kernel = Uniform(replace=replace), as_kernel("rbf", gamma=1.0)
            return np.array(
                [
                    selector.select(rows, kernel, size, rng).indices
                    for rng in np.random.default_rng(seed).spawn(times)
                ]
            )

        yield select


def line(n):
    return np.arange(float(n))[:, None]


def successive_law(weights, size):
    """Return the law of ordered draws without replacement by weight."""
    share = np.asarray(weights, float) / np.sum(weights)
    law = {}
    for order in permutations(range(len(share)), size):
        probability, left = 1.0, 1.0
        for i in order:
            probability *= share[i] / left
            left -= share[i]
        law[order] = probability
    return law


@pytest.mark.law
@pytest.mark.parametrize(("n", "size"), [(5, 1), (6, 2), (5, 3)])
def test_ordered_draws_without_replacement_are_uniform(draw, n, size):
    drawn = draw(line(n), size, 3000)
    assert law_p_value(drawn, successive_law(np.ones(n), size)) > LEVEL


@pytest.mark.law
@pytest.mark.parametrize("size", [1, 3])
def test_weighted_draws_without_replacement_are_successive(draw, size):
    weights = [1.0, 4.0, 2.0, 1.5]
    drawn = draw(line(4), size, 3000, seed=1, weights=weights)
    assert law_p_value(drawn, successive_law(weights, size)) > LEVEL


@pytest.mark.law
@pytest.mark.parametrize("weights", [None, [1.0, 4.0, 2.0, 1.0]])
def test_draws_with_replacement_are_independent(draw, weights):
    drawn = draw(line(4), 2, 3000, seed=2, weights=weights, replace=True)
    share = np.ones(4) / 4 if weights is None else np.array(weights) / 8.0
    law = {(i, j): share[i] * share[j] for i, j in product(range(4), repeat=2)}
    assert law_p_value(drawn, law) > LEVEL


@pytest.mark.law
def test_many_rows_are_drawn_uniformly(draw):
    # More rows than are looked at in the first round.
    drawn = draw(line(500), 4, 1500, seed=3)
    assert len(np.unique(drawn)) == 500
    tenths = [(row,) for row in (drawn // 50).ravel().tolist()]
    assert law_p_value(tenths, dict.fromkeys(range(10), 0.1)) > LEVEL


@pytest.mark.law
@pytest.mark.parametrize(("size", "replace"), [(3, False), (2, True)])
def test_weights_equal_repeats_in_law(draw, size, replace):
    copies = np.array([5, 1, 3, 2])
    number = np.repeat(np.arange(4), copies)
    weighted = draw(line(4), size, 1500, 4, weights=copies, replace=replace)
    repeated = number[draw(line(4)[number], size, 1500, 5, replace=replace)]
    assert same_law_p_value(weighted, repeated) > LEVEL
    if not replace:
        assert law_p_value(repeated, successive_law(copies, size)) > LEVEL


@pytest.mark.law
def test_weights_equal_repeats_in_law_when_one_round_is_not_enough(draw):
    copies = np.array([300, 4, 4, 2])
    number = np.repeat(np.arange(4), copies)
    repeated = number[draw(line(4)[number], 3, 1500, seed=6)]
    law = successive_law(copies, 3)
    common = {order for order in law if law[order] * 1500 >= 10}
    seen = [tuple(row) if tuple(row) in common else "rest" for row in repeated.tolist()]
    rest = sum(law[order] for order in law if order not in common)
    numbers = {order: i for i, order in enumerate([*common, "rest"])}
    expected = {numbers[order]: law[order] for order in common} | {len(common): rest}
    assert law_p_value([numbers[outcome] for outcome in seen], expected) > LEVEL


@pytest.mark.parametrize("weighted", [False, True])
def test_rare_values_are_found_when_all_are_wanted(draw, weighted):
    X = np.zeros((5000, 1))
    X[[17, 2500, 4999]] = [[1.0], [2.0], [3.0]]
    weights = np.random.default_rng(9).random(5000) + 0.1 if weighted else None
    for drawn in draw(X, 4, 5, seed=10, weights=weights):
        assert sorted(X[drawn, 0]) == [0.0, 1.0, 2.0, 3.0]


def test_signs_of_zero_and_stored_zeros_make_no_difference(draw):
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0]])
    assert all(2 in drawn for drawn in draw(X, 2, 50))
    data = [0.0, 1.0, 1.0, 2.0, 1.0]
    csr = sparse.csr_array((data, [0, 1, 1, 0, 1], [0, 2, 3, 5]), shape=(3, 2))
    assert all(2 in drawn for drawn in draw(csr, 2, 50))
    unsorted = sparse.csr_array(
        ([1.0, 2.0, 2.0, 1.0, 5.0], [1, 0, 0, 1, 0], [0, 2, 4, 5]), shape=(3, 2)
    )
    assert all(2 in drawn for drawn in draw(unsorted, 2, 50))


@pytest.mark.parametrize("replace", [False, True])
def test_rows_of_weight_zero_are_never_landmarks(draw, replace):
    weights = np.array([0.0, 1.0, 0.0, 2.0, 1.0, 0.0])
    drawn = draw(line(6), 3, 300, weights=weights, replace=replace)
    assert weights[drawn].all()
    if not replace:
        with pytest.warns(UserWarning, match="Only 3 landmarks"):
            draw(line(6), 4, 1, weights=weights)


def test_the_estimator_takes_the_selector_by_name_and_as_an_object():
    X = np.random.default_rng(14).random((100, 2))
    settings = {"n_landmarks": 12, "random_state": 3, "n_jobs": 1}
    named = NystromKMeans(3, landmarks="uniform", **settings).fit(X)
    given = NystromKMeans(3, landmarks=Uniform(), **settings).fit(X)
    other = NystromKMeans(3, landmarks=Uniform(replace=True), **settings).fit(X)
    np.testing.assert_array_equal(named.landmark_indices_, given.landmark_indices_)
    assert len(set(named.landmark_indices_.tolist())) == 12
    assert (other.landmark_indices_ != named.landmark_indices_).any()
    assert as_selector("uniform").replace is False
    nested = NystromKMeans(3, landmarks=Uniform()).set_params(landmarks__replace=True)
    assert nested.landmarks.replace is True
