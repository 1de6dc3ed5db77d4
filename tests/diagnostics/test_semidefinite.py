"""Bounds of small subsets: none exceeds the optimum, and how close they come."""

from functools import cache
from math import inf

import numpy as np
import pytest

from sketchmeans import SketchedKMeans
from sketchmeans.diagnostics.semidefinite import SubsetProblem, _find_cut
from sketchmeans.diagnostics.triangles import TriangleCuts
from tests import oracles

KINDS = ("plain", "weighted", "duplicates", "low rank", "zero", "float32", "scaled")


@cache
def list_memberships(n, k):
    """Return the indicators of all partitions, of shape (partitions, k, n)."""
    labels = np.array(list(oracles.partitions(n, k)))
    return (labels[:, None, :] == np.arange(k)[None, :, None]).astype(float)


def find_optimum(D, k, weights):
    """Return the least total cost over all partitions, from squared distances.

    A cluster costs ``Σ_ij w_i w_j D_ij / 2Σw``: sums of positive numbers, so that the
    oracle has a relative precision of its own.
    """
    member = list_memberships(len(D), k)
    pairs = weights[:, None] * D * weights
    inner = np.einsum("pci,ij,pcj->pc", member, pairs, member, optimize=True)
    mass = member @ weights
    costs = np.divide(inner, 2.0 * mass, out=np.zeros_like(inner), where=mass > 0.0)
    return costs.sum(axis=1).min()


def make_problem(seed):
    """Return kernel values, squared distances, k and weights of a random problem."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, k = int(rng.integers(2, 8 if seed % 20 else 11)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, 1 if kind == "low rank" else rng.integers(1, 6)))
    weights = np.ones(n)
    if kind in ("weighted", "scaled"):
        weights = rng.exponential(size=n) ** 3
        weights[rng.integers(n)] *= rng.integers(2)
    if kind == "duplicates":
        X = X[rng.integers(0, max(n // 2, 1), size=n)]
    if kind == "zero":
        X[:] = 0.0
    if kind == "float32":
        X = X.astype(np.float32).astype(float)
    if kind == "scaled":
        X *= 10.0 ** rng.integers(-60, 60)
        weights *= 10.0 ** rng.integers(-100, 100)
    D = np.square(X[:, None] - X).sum(axis=-1)
    form = int(rng.integers(3))
    if form == 0 and kind != "scaled":  # rbf
        D = -2.0 * np.expm1(-0.5 * D)
        return 1.0 - 0.5 * D, D, k, weights
    return (X @ X.T if form == 1 else -0.5 * D), D, k, weights


def test_no_partition_undercuts_a_bound():
    near = 0
    for seed in range(700):
        K, D, k, weights = make_problem(seed)
        optimum = find_optimum(D, k, weights)
        problem = SubsetProblem(K, k, weights)
        found = problem.improve(max_steps=50)
        assert 0.0 <= found.spectral <= found.value <= optimum, seed
        near += found.value >= 0.99 * optimum
    assert near > 500  # most of them are tight


def test_no_partition_undercuts_a_bound_with_triangle_inequalities():
    tightened = 0
    for seed in range(0, 700, 3):
        K, D, k, weights = make_problem(seed)
        problem = SubsetProblem(K, k, weights)
        loose = problem.improve(max_steps=50)
        found = problem.improve(max_steps=50, tighten_until=inf)
        assert loose.value <= found.value <= find_optimum(D, k, weights), seed
        tightened += found.value > 1.001 * loose.value
    assert tightened >= 5


def test_inequalities_between_opposite_ends_of_a_cluster_are_found():
    # With pairs of the nearest rows alone the bound stays 0.8% below the optimum.
    X = np.random.default_rng(3).random((120, 2))
    optimum = SketchedKMeans(2, random_state=0).fit(X).inertia_
    found = SubsetProblem(X @ X.T, 2).improve(optimum, tighten_until=inf)
    assert 0.998 * optimum < found.value <= optimum


def partition_matrix(labels, weights):
    """Return ``√(w_i w_j)/(weight of the cluster)`` for rows of one cluster, else 0."""
    same = labels[:, None] == labels
    return same * np.sqrt(np.outer(weights, weights)) / (same @ weights)


def test_partitions_satisfy_triangle_inequalities_and_other_matrices_need_not():
    rng = np.random.default_rng(0)
    for weights in (np.ones(25), rng.exponential(size=25) ** 2):
        cuts = TriangleCuts(np.sqrt(weights / weights.sum()))
        noise = np.abs(rng.normal(size=(25, 25))) * np.sqrt(np.outer(weights, weights))
        assert cuts.separate(0.05 * (noise + noise.T)) > 50
        cuts.prices = rng.exponential(size=len(cuts))
        T = cuts.matrix()
        np.testing.assert_array_equal(T, T.T)
        for k in (1, 2, 5, 25):
            X = partition_matrix(rng.integers(k, size=25), weights)
            assert (T * X).sum() >= -1e-12 * cuts.prices.sum()
            assert TriangleCuts(np.sqrt(weights / weights.sum())).separate(X) == 0


def test_prices_follow_violations():
    rng = np.random.default_rng(1)
    cuts = TriangleCuts(np.full(12, 12**-0.5))
    X = np.abs(rng.normal(size=(12, 12)))
    X += X.T
    cuts.separate(X)
    cuts.reprice(X)  # all of them are violated
    assert cuts.prices.min() > 0.0
    before = cuts.prices.sum()
    for _ in range(200):
        cuts.reprice(np.eye(12))  # none is
    assert cuts.prices.sum() < before
    assert cuts.separate(np.eye(12)) == 0


def test_every_multiplier_gives_a_bound():
    rng = np.random.default_rng(0)
    for seed in range(200):
        K, D, k, weights = make_problem(seed)
        keep = weights > 0.0
        N = rng.normal(size=K.shape)[np.ix_(keep, keep)] * 10.0 ** rng.integers(-4, 3)
        assert SubsetProblem(K, k, weights).evaluate(N) <= find_optimum(D, k, weights)


def test_without_multipliers_it_is_the_spectral_bound():
    X = np.random.default_rng(1).normal(size=(40, 6))
    weights = np.random.default_rng(2).uniform(0.5, 2.0, size=40)
    centred = X - weights @ X / weights.sum()
    values = np.linalg.eigvalsh((centred * weights[:, None]).T @ centred)
    for k in (1, 3, 6):
        expected = values[: 7 - k].sum()
        found = SubsetProblem(X @ X.T, k, weights)
        assert found.spectral == pytest.approx(expected, rel=1e-9)
        assert found.spectral <= expected
    assert SubsetProblem(X @ X.T, 1, weights).improve().n_steps == 0


def test_separated_clusters_are_proved_to_be_optimal():
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    X = rng.normal(size=(90, 4)) + 12.0 * np.eye(4)[labels]
    centres = np.stack([X[labels == j].mean(axis=0) for j in range(3)])
    cost = np.square(X - centres[labels]).sum()
    problem = SubsetProblem(X @ X.T, 3)
    found = problem.improve(target=cost)
    assert found.spectral < 0.95 * cost
    assert 0.999 * cost < found.value <= cost
    assert found.n_steps < 300
    assert problem.improve(target=found.spectral).n_steps == 0


def test_weights_are_repeats():
    X = np.random.default_rng(3).normal(size=(30, 3))
    times = np.arange(30) % 4
    again = np.repeat(X, times, axis=0)
    weighted = SubsetProblem(X @ X.T, 3, times).improve(least_gain=1e-6)
    repeated = SubsetProblem(again @ again.T, 3).improve(least_gain=1e-6)
    assert weighted.spectral == pytest.approx(repeated.spectral, rel=1e-9)
    assert weighted.value == pytest.approx(repeated.value, rel=2e-3)


def test_as_many_clusters_as_rows():
    for k in (5, 6, 9):
        assert SubsetProblem(np.eye(5), k).improve().value == 0.0


def test_values_that_overflow_are_refused():
    with pytest.raises(ValueError, match="overflow"):
        SubsetProblem(np.full((3, 3), np.inf), 2)


def test_the_cut_gives_the_trace():
    for total in (1, 4, 8):
        values = np.sort(np.random.default_rng(total).normal(size=9)).astype(np.float32)
        cut = _find_cut(values, total)
        assert np.clip(values - cut, 0.0, 1.0).sum() == pytest.approx(total, rel=1e-5)
