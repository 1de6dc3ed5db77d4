"""The search on tables of few rows, where partitions a percent apart are many."""

import numpy as np
import pytest

from sketchmeans import SketchedKMeans
from sketchmeans.engine import gram
from sketchmeans.engine.exchange import exchange_rows
from sketchmeans.engine.init import KMeansPlusPlus
from sketchmeans.engine.lloyd import lloyd
from sketchmeans.engine.swaps import Effort, choose_swaps, improve
from sketchmeans.engine.types import TwoNearest
from sketchmeans.numerics.parallel import Workers

LIMITS = {"max_iter": 100, "tol": 1e-4}


def make_table(seed):
    """Return a small table of loose groups, about its mean."""
    rng = np.random.default_rng([seed, 11])
    n, d = rng.integers(40, 120), rng.integers(3, 7)
    groups = 5.0 * rng.normal(size=(rng.integers(1, 7), d))
    X = groups[rng.integers(len(groups), size=n)] + rng.normal(size=(n, d))
    return X - X.mean(axis=0)


def restarts(X, k, workers, weights=None):
    """Return the exact engine with a linear kernel, and twelve restarts."""
    engine = gram.GramEngine(X @ X.T, k, weights, workers)
    rngs = np.random.default_rng(0).spawn(12)
    seeds = KMeansPlusPlus("auto").seed(engine.distances_to, engine.weights, k, rngs)
    return engine, lloyd(engine, engine.centers_at(seeds), **LIMITS)


def swap(engine, results):
    return improve(
        engine,
        results,
        engine.distances_to,
        None,
        np.random.default_rng(1),
        effort=Effort(1000),
        on_trial=lambda trial, cost: False,
        **LIMITS,
    )


def test_several_restarts_lead_farther_than_the_best_alone():
    ratios = []
    with Workers(1) as workers:
        for seed in range(40):
            engine, results = restarts(make_table(seed), 8, workers)
            best = min(results, key=lambda result: result.cost)
            alone, together = swap(engine, [best]), swap(engine, results)
            assert together.cost <= best.cost
            ratios.append(together.cost / alone.cost)
    assert np.mean(ratios) < 0.998
    assert sum(ratio < 0.99 for ratio in ratios) > sum(ratio > 1.01 for ratio in ratios)


@pytest.mark.parametrize(("copies", "is_tried"), [(12, False), (1, True)])
@pytest.mark.parametrize("n", [60, 600])
def test_swaps_are_tried_unless_many_restarts_have_come_to_the_same(
    copies, is_tried, n
):
    rng = np.random.default_rng(4)
    X = 20.0 * np.eye(5)[rng.integers(5, size=n)] + rng.normal(size=(n, 5))
    trials = []
    with Workers(1) as workers:
        engine, results = restarts(X - X.mean(axis=0), 5, workers)
        best = min(results, key=lambda result: result.cost)
        found = improve(
            engine,
            [best] * copies,
            engine.distances_to,
            None,
            rng,
            effort=Effort(1000),
            on_trial=lambda trial, cost: trials.append(trial),
            **LIMITS,
        )
    assert bool(trials) == is_tried
    assert found.cost == best.cost


def test_sums_added_up_at_once_are_those_that_follow_moved_rows(monkeypatch):
    X = make_table(3)
    weights = np.random.default_rng(3).integers(0, 4, size=len(X)).astype(float)
    with Workers(1) as workers:
        _, at_once = restarts(X, 6, workers, weights)
        monkeypatch.setattr(gram, "_FEW_PRODUCTS", 0)
        _, followed = restarts(X, 6, workers, weights)
    for one, other in zip(at_once, followed, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        for name in ("coefficients", "sums", "counts", "squared_norms"):
            np.testing.assert_allclose(
                getattr(one.centers, name), getattr(other.centers, name), atol=1e-9
            )


def test_equal_rows_leave_nothing_to_swap():
    X = np.repeat([[0.0], [1.0], [5.0]], 5, axis=0)
    model = SketchedKMeans(3, random_state=0).fit(X)
    assert model.cost_ == 0.0


def partition_cost(D, weights, labels, k):
    """Return ``Σ_ij w_i w_j D_ij / 2Σw`` over the clusters."""
    cost = 0.0
    for j in range(k):
        w = weights * (labels == j)
        cost += w @ D @ w / (2.0 * w.sum()) if w.any() else 0.0
    return cost


def test_no_move_of_a_single_row_is_left():
    moved = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(6, 25)), int(rng.integers(2, 5))
        X = rng.normal(size=(n, 2))
        weights = rng.integers(0, 4, size=n).astype(float) if seed % 2 else np.ones(n)
        D = np.square(X[:, None] - X).sum(axis=2)
        start = rng.integers(k, size=n)
        found = exchange_rows(D, weights, start, k)
        cost = partition_cost(D, weights, found, k)
        assert cost <= partition_cost(D, weights, start, k)
        moved += (found != start).any()
        for i in range(n):
            if (found[weights > 0.0] == found[i]).sum() > 1:  # not the last of its own
                for j in range(k):
                    other = found.copy()
                    other[i] = j
                    assert partition_cost(D, weights, other, k) >= cost * (1.0 - 1e-8)
    assert moved > 20


@pytest.mark.parametrize("weighted", [False, True])
def test_swaps_are_the_best_of_their_rows_and_cost_what_is_said(weighted):
    rng = np.random.default_rng(3)
    X, k = rng.normal(size=(60, 3)), 7
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    w = rng.random(60) if weighted else np.ones(60)
    centers = rng.choice(60, k, replace=False)
    labels = D[:, centers].argmin(axis=1)
    first, second = np.sort(D[:, centers], axis=1)[:, :2].T
    near = TwoNearest(labels, first, second)
    found = choose_swaps(
        near, w if weighted else None, k, lambda rows: D[:, rows], rng, w * first
    )
    assert len(found[0]) > 1
    assert (np.diff(found[2]) >= 0.0).all()
    for removed, row, cost in zip(*found, strict=True):
        costs = [w @ D[:, [*np.delete(centers, j), row]].min(axis=1) for j in range(k)]
        assert costs[removed] == pytest.approx(cost)
        assert min(costs) == pytest.approx(cost)
