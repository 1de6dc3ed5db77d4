"""Swaps of centres for rows, where Lloyd's algorithm is at its end.

Lloyd's algorithm does not move a centre from a group that has two to a group that has
none.  A swap does: a row far from all centres takes the place of the centre that is
missed least (Lattanzi & Sohler; L21 §3.2, there for seeds, here for means).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sketchmeans.engine.init import find_swap
from sketchmeans.engine.lloyd import OnPass, lloyd
from sketchmeans.engine.types import Engine, LloydResult, TwoNearest
from sketchmeans.numerics.linalg import Array

#: Rows that are drawn for a trial, and swaps that are tried side by side.
_CANDIDATES, _SWAPS = 12, 4
#: Trials in a row that lower the cost by less than this share end the search: so many,
#: and one for so many clusters.
_PATIENCE, _CLUSTERS, _GAIN = 4, 4, 1e-4
#: Passes of a trial, and times the cost so far at which the best goes on.
_PASSES, _HOPE = 5, 1.01


def improve(
    engine: Engine,
    result: LloydResult,
    distances_to: Callable[[Array], Array],
    weights: Array | None,
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
    max_passes: int,
    on_trial: OnPass,
    only_sure: bool = False,
    among: Array | None = None,
) -> LloydResult:
    """Return a result that a few swaps do not improve.

    `distances_to` goes from row numbers to squared distances (n, q) of all rows.  After
    `max_passes` of single restarts no trial is begun; `on_trial` gets the number of
    each and the best cost, and stops the search if it returns true.  With `only_sure`
    only swaps are tried that lower the cost at once, before any pass.  Rows become
    centres out of those with the numbers `among`, or out of all.
    """
    k = len(result.counts)
    if k == 1 or result.stopped:
        return result
    failures = 0
    for trial in range(1, most_trials(k) + 1):
        if failures >= _PATIENCE + k // _CLUSTERS or max_passes <= 0:
            break
        near = engine.two_nearest(result.centers)
        row_costs = near.first if weights is None else weights * near.first
        if not np.count_nonzero(row_costs) > 1:
            break
        chances = row_costs
        if among is not None:
            chances = np.zeros(len(row_costs))
            chances[among] = row_costs[among]
            if not chances.any():
                break
        swaps = choose_swaps(near, weights, k, distances_to, rng, chances)
        removed, rows, costs = swaps
        if only_sure:
            sure = costs < row_costs.sum()
            removed, rows = removed[sure], rows[sure]
            if not len(rows):
                on_trial(trial, result.cost)
                break
        centers = engine.replace_centers(result.centers, removed, rows)
        passes = min(_PASSES, max_iter)
        found = lloyd(engine, centers, max_iter=passes, tol=tol)
        best = min(found, key=lambda one: one.cost)
        max_passes -= 1 + sum(one.n_iter for one in found)
        if not best.converged and best.cost < _HOPE * result.cost:
            (best,) = lloyd(engine, best.centers, max_iter=max_iter, tol=tol)
            max_passes -= best.n_iter
        if best.cost < (1.0 - _GAIN) * result.cost:
            lower = [cost for cost in best.cost_path if cost < result.cost]
            best.cost_path = result.cost_path + lower
            result, failures = best, 0
        else:
            failures += 1
        if on_trial(trial, result.cost):
            result.stopped = True
            break
    return result


def most_trials(k: int) -> int:
    """Return how many trials there may be for k clusters."""
    return 16 + 4 * k


def choose_swaps(
    near: TwoNearest,
    weights: Array | None,
    k: int,
    distances_to: Callable[[Array], Array],
    rng: np.random.Generator,
    chances: Array,
) -> tuple[Array, Array, Array]:
    """Return centres and rows of the most promising swaps, and the costs after them.

    Rows are drawn in proportion to `chances`, which are what they cost.
    """
    ones = np.ones(len(near.first)) if weights is None else weights
    edges = np.cumsum(chances)
    drawn = np.searchsorted(edges, rng.random(_CANDIDATES) * edges[-1], side="right")
    rows = np.unique(np.minimum(drawn, np.flatnonzero(chances)[-1]))
    costs, removed = np.empty(len(rows)), np.empty(len(rows), dtype=np.intp)
    for i, distances in enumerate(distances_to(rows).T):
        removed[i], costs[i] = find_swap(near, distances, ones, k)
    best = np.argsort(costs, kind="stable")[:_SWAPS]
    return removed[best], rows[best], costs[best]
