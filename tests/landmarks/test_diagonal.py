"""Diagonal and column-norm landmarks, and the draws they share with others."""

from __future__ import annotations

import numpy as np
import pytest

from sketchmeans.data.rows import as_rows
from sketchmeans.kernels import as_kernel
from sketchmeans.landmarks import ColumnNorm, Diagonal, select_landmarks
from sketchmeans.landmarks.base import draw_distinct_rows, draw_landmarks
from sketchmeans.numerics.parallel import Workers
from tests.oracles import kernel_matrix, law_p_value, linear, polynomial

LEVEL = 1e-3

X = np.array([[1.0, 0.0], [0.5, 2.0], [1.0, -1.0], [0.0, 0.3]])
WEIGHTS = np.array([1.0, 0.5, 2.0, 3.0])


@pytest.fixture
def rows_of():
    """Return a function from a table and weights to rows."""
    with Workers(1) as workers:
        yield lambda X, weights=None: as_rows(X, workers, weights)


def first_draws(selector, rows, kernel, times=2000):
    return [
        int(selector.select(rows, kernel, 1, rng).indices[0])
        for rng in np.random.default_rng(0).spawn(times)
    ]


@pytest.mark.law
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("replace", [False, True])
def test_diagonal_draws_are_in_proportion_to_the_diagonal(rows_of, weights, replace):
    mass = (X**2).sum(axis=1) * (1.0 if weights is None else weights)
    rows, selector = rows_of(X, weights), Diagonal(replace=replace)
    drawn = first_draws(selector, rows, as_kernel("linear"))
    assert law_p_value(drawn, dict(enumerate(mass / mass.sum()))) > LEVEL
    landmarks = selector.select(rows, as_kernel("linear"), 2, np.random.default_rng(0))
    np.testing.assert_allclose(landmarks.scores, mass)


def dense_norms(K, weights):
    weights = np.ones(len(K)) if weights is None else weights
    return weights * (K**2 @ weights)


@pytest.mark.law
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_column_norm_draws_are_in_proportion_to_squared_norms(rows_of, weights):
    mass = dense_norms(kernel_matrix(linear, X, X), weights)
    rows, selector = rows_of(X, weights), ColumnNorm()
    drawn = first_draws(selector, rows, as_kernel("linear"))
    assert law_p_value(drawn, dict(enumerate(mass / mass.sum()))) > LEVEL
    landmarks = selector.select(rows, as_kernel("linear"), 2, np.random.default_rng(0))
    np.testing.assert_allclose(landmarks.scores, mass)


@pytest.mark.law
@pytest.mark.parametrize("weighted", [False, True])
def test_column_norms_over_a_subsample_are_unbiased(rows_of, weighted):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(300, 2))
    weights = rng.lognormal(size=300) if weighted else None
    rows, kernel = rows_of(table, weights), as_kernel("rbf", gamma=0.5)
    full = ColumnNorm().select(rows, kernel, 5, rng).scores
    part = [
        ColumnNorm(max_columns=30).select(rows, kernel, 5, child).scores
        for child in np.random.default_rng(1).spawn(300)
    ]
    spread = np.std(part, axis=0) / np.sqrt(300)
    assert (spread > 0.0).all()
    assert (np.abs(np.mean(part, axis=0) - full) < 5.0 * spread).all()


def test_squares_of_large_kernel_values_do_not_overflow(rows_of):
    table = 1e3 * np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    kernel = as_kernel("polynomial", gamma=1.0, degree=4)
    landmarks = ColumnNorm().select(rows_of(table), kernel, 5, np.random.default_rng(0))
    K = kernel_matrix(polynomial, table, table, gamma=1.0, degree=4, coef0=1.0)
    np.testing.assert_allclose(landmarks.scores, (K**2).sum(axis=1), rtol=1e-3)


def test_max_columns_should_be_a_positive_integer():
    with pytest.raises(ValueError, match="max_columns=0 should be an integer >= 1"):
        select_landmarks(X, 2, ColumnNorm(max_columns=0))


# --- draws by scores ------------------------------------------------------------------


@pytest.mark.law
def test_rows_without_mass_are_drawn_last_and_by_weight(rows_of):
    weights = np.array([1.0, 3.0, 0.0, 1.0, 2.0])
    rows = rows_of(np.arange(5.0)[:, None], weights)
    mass = np.array([0.0, 0.0, 0.0, 1e-300, 0.0])
    drawn = [
        draw_distinct_rows(rows, 2, rng, mass)
        for rng in np.random.default_rng(0).spawn(1000)
    ]
    law = {(3, 0): 1 / 6, (3, 1): 3 / 6, (3, 4): 2 / 6}
    assert law_p_value(drawn, law) > LEVEL
    everything = draw_distinct_rows(rows, 5, np.random.default_rng(0), mass)
    assert sorted(everything) == [0, 1, 3, 4]


@pytest.mark.law
@pytest.mark.parametrize("replace", [False, True])
def test_where_nothing_has_mass_the_weights_decide(rows_of, replace):
    weights = np.array([1.0, 3.0, 0.0])
    rows, kernel = rows_of(np.arange(3.0)[:, None], weights), as_kernel("linear")
    drawn = [
        draw_landmarks(
            rows, kernel, 1, rng, scores=np.zeros(3), replace=replace
        ).indices
        for rng in np.random.default_rng(0).spawn(1000)
    ]
    assert law_p_value(drawn, {0: 0.25, 1: 0.75}) > LEVEL


def test_draws_with_replacement_carry_importance_weights(rows_of):
    rows, kernel = rows_of(X, WEIGHTS), as_kernel("linear")
    scores = np.array([1.0, 2.0, 0.0, 5.0])
    landmarks = draw_landmarks(
        rows, kernel, 6, np.random.default_rng(0), scores=scores, replace=True
    )
    chosen = landmarks.indices
    expected = WEIGHTS[chosen] / (6 * scores[chosen] / 8.0)
    np.testing.assert_allclose(landmarks.weights, expected)
    np.testing.assert_array_equal(landmarks.scores, scores)
