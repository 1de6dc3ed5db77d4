"""The bandwidths of the papers against loops over pairs."""

from itertools import combinations, product

import numpy as np
import pytest

from sketchmeans.kernels import paper_gamma, percentile_gammas


def rows(n=40, d=3, seed=0):
    return 2.0 * np.random.default_rng(seed).normal(size=(n, d)) + 5.0


def pairs(X):
    return np.array([((a - b) ** 2).sum() for a, b in combinations(X, 2)])


def test_rules_against_loops():
    X = rows()
    mean = np.mean([((a - b) ** 2).sum() for a, b in product(X, X)])
    assert paper_gamma(X, "cr18") == pytest.approx(1 / (2 * mean))
    assert paper_gamma(X, "l21") == pytest.approx(1 / mean)
    assert paper_gamma(X, "l21-features") == pytest.approx(3 / mean)
    nearest = np.abs(1 / (2 * pairs(X)) - paper_gamma(X, "og17")).argmin()
    share = (pairs(X) <= pairs(X)[nearest] * (1 + 1e-12)).mean()
    assert share == pytest.approx(0.5, abs=0.01)
    with pytest.raises(ValueError, match="rule='wang' should be one of"):
        paper_gamma(X, "wang")


def test_the_grid_runs_between_percentiles():
    X = rows(60)
    low, high = np.percentile(pairs(X), [1, 99])
    found = percentile_gammas(X, 5, least_right_end=0)
    assert found[0] == pytest.approx(0.5 / high)
    assert found[-1] == pytest.approx(0.5 / low)
    np.testing.assert_allclose(np.diff(np.log(found)), np.log(found[1] / found[0]))
    # Distances are large here: OG17's right end, γ = 1, is farther right.
    assert percentile_gammas(1e3 * X)[-1] == pytest.approx(0.5)
    assert len(percentile_gammas(X)) == 10


def test_a_sample_of_the_rows_is_drawn_by_the_seed():
    X = rows(500)
    one, same, other = (
        percentile_gammas(X, n_rows=50, random_state=s) for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert one[0] != other[0]
    np.testing.assert_allclose(one, percentile_gammas(X), rtol=0.5)


def test_equal_rows():
    X = np.repeat(rows(4), 30, axis=0)
    assert percentile_gammas(X)[-1] == 0.5  # the first percentile is 0
    with pytest.raises(ValueError, match="most rows are equal"):
        percentile_gammas(np.ones((20, 2)))
    with pytest.raises(ValueError, match=r"percentiles=.* should be two numbers"):
        percentile_gammas(X, percentiles=(99, 1))
