"""Swaps of centres for rows, where Lloyd's algorithm is at its end.

Lloyd's algorithm does not move a centre from a group that has two to a group that has
none.  A swap does: a row far from all centres takes the place of the centre that is
missed least (Lattanzi & Sohler; L21 §3.2, there for seeds, here for means).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.data.sampling import draw
from sketchmeans.engine.exchange import exchange_rows
from sketchmeans.engine.init import find_swaps
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
#: Where rows times clusters are so few, passes take hardly longer for many restarts
#: than for one: this many are improved side by side, each until so many of its trials
#: in a row fail.  Restarts of the same cost, up to this share, count as one.
_FEW, _POOL, _POOL_PATIENCE, _SAME = 2000, 6, 2, 1e-6
#: So many restarts that all cost the same need no swaps.
_MANY = 6
#: With fewer passes a search hardly finds a group that centres have missed, unless it
#: is a short one: of the swaps that before any pass raise the cost by at most this
#: share of a cluster's, two are tried for three passes, and another trial follows where
#: one gains that share.  Of groups that are apart, that is a centre for one without.
_MANY_PASSES, _RAISED, _SHORT_SWAPS, _SHORT_PASSES, _SHORT_GAIN = 64, 0.2, 2, 3, 0.05


@dataclass(frozen=True)
class Effort:
    """How much a search for swaps takes."""

    #: After so many passes of single restarts no trial is begun.
    max_passes: int
    #: Swaps are tried after which, before any pass, the cost is less than that times
    #: the one before: with 1 those that are sure to gain.
    hope: float = np.inf
    #: Swaps of a trial, its passes, and times the cost at which the best goes on.
    n_swaps: int = _SWAPS
    n_passes: int = _PASSES
    worth: float = _HOPE
    #: Trials that gain less have failed; after so many in a row the search ends, or if
    #: that is 0, after as many as the number of clusters asks for.
    gain: float = _GAIN
    patience: int = 0

    @classmethod
    def within(cls, n_passes: int, k: int) -> Effort:
        """Return the effort for a subsample, where swaps may take so many passes."""
        if n_passes >= _MANY_PASSES:
            return cls(n_passes)
        gain = _SHORT_GAIN / k
        short = _SHORT_SWAPS, _SHORT_PASSES, 1.0 - gain, gain
        return cls(_MANY_PASSES, 1.0 + _RAISED / k, *short, patience=1)


def improve(
    engine: Engine,
    results: list[LloydResult],
    distances_to: Callable[[Array], Array],
    weights: Array | None,
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
    effort: Effort,
    on_trial: OnPass,
    among: Array | None = None,
) -> LloydResult:
    """Return a result that a few swaps do not improve.

    Swaps start at the best of the `results`, or where rows are few at several of them.
    `distances_to` goes from row numbers to squared distances (n, q) of all rows.
    `on_trial` gets the number of each trial and the best cost, and stops the search if
    it returns true.  Rows become centres out of those with the numbers `among`, or out
    of all.
    """
    result = min(results, key=_cost)
    k = len(result.counts)
    if k == 1 or result.stopped:
        return result
    limits: dict[str, Any] = {"max_iter": max_iter, "tol": tol}
    if effort.hope == np.inf and among is None and are_few(len(result.labels), k):
        pool = _Pool(engine, results, distances_to, weights)
        return pool.improve(rng, limits, on_trial)
    if among is None and have_agreed(results):
        return result
    failures, near = 0, engine.two_nearest(result.centers)
    patience, max_passes = (
        effort.patience or _PATIENCE + k // _CLUSTERS,
        effort.max_passes,
    )
    for trial in range(1, most_trials(k) + 1):
        if failures >= patience or max_passes <= 0:
            break
        row_costs = _row_costs(near, weights)
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
        is_tried = costs < effort.hope * row_costs.sum()
        is_tried[effort.n_swaps :] = False
        removed, rows = removed[is_tried], rows[is_tried]
        if not len(rows):
            on_trial(trial, result.cost)
            break
        centers = engine.replace_centers(result.centers, removed, rows)
        passes = min(effort.n_passes, max_iter)
        found = lloyd(engine, centers, max_iter=passes, tol=tol)
        best = min(found, key=_cost)
        max_passes -= 1 + sum(one.n_iter for one in found)
        if not best.converged and best.cost < effort.worth * result.cost:
            (best,) = lloyd(engine, best.centers, **limits)
            max_passes -= best.n_iter
        failures += 1
        if best.cost < (1.0 - effort.gain) * result.cost:
            result, failures = _go_on(result, best), 0
            near = engine.two_nearest(result.centers)
        if on_trial(trial, result.cost):
            result.stopped = True
            break
    return result


def have_agreed(results: list[LloydResult]) -> bool:
    """Say whether many restarts have all come to the same cost.

    A partition to which each of R restarts leads with probability p is missed by all of
    them with (1 - p)ᴿ: what is left for swaps to find is unlikely.
    """
    costs = [result.cost for result in results]
    return len(costs) >= _MANY and max(costs) <= (1.0 + _GAIN) * min(costs)


def are_few(n_rows: int, k: int) -> bool:
    """Say whether passes take hardly longer for many restarts than for one.

    Subsamples of a fit that is resumed count no rows, and are not few.
    """
    return 0 < n_rows * k <= _FEW


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
    rows = np.unique(draw(chances, _CANDIDATES, rng))
    removed, costs = find_swaps(near, distances_to(rows), ones, k)
    best = np.argsort(costs, kind="stable")[:_SWAPS]
    return removed[best], rows[best], costs[best]


@dataclass
class _Member:
    """A restart of a pool, and how many of its trials in a row have failed."""

    result: LloydResult
    near: TwoNearest
    failures: int = 0


class _Pool:
    """Restarts of few rows and clusters, which swaps improve side by side.

    What swaps make of the best restart may be a percent or two from the best partition,
    and another restart a swap away from it.
    """

    def __init__(
        self,
        engine: Engine,
        results: list[LloydResult],
        distances_to: Callable[[Array], Array],
        weights: Array | None,
    ) -> None:
        self.engine = engine
        self.weights = weights
        self.distances = distances_to(np.arange(len(results[0].labels)))
        self.best = min(results, key=_cost)
        self.is_settled = have_agreed(results)
        self.all = [
            _Member(one, engine.two_nearest(one.centers))
            for one in self._distinct(results)[:_POOL]
        ]
        self.members = self.all

    @staticmethod
    def _distinct(results: list[LloydResult]) -> list[LloydResult]:
        """Return results of different costs, the best first."""
        distinct: list[LloydResult] = []
        for result in sorted(results, key=_cost):
            if not distinct or result.cost > (1.0 + _SAME) * distinct[-1].cost:
                distinct.append(result)
        return distinct

    def improve(
        self, rng: np.random.Generator, limits: dict[str, Any], on_trial: OnPass
    ) -> LloydResult:
        """Return the best result after trials of all members, until all have failed."""
        trial = 0
        for trial in range(1, most_trials(len(self.best.counts)) + 1):
            self.members = [member for member in self.members if self._may_gain(member)]
            if not self.members:
                break
            self._try_swaps(rng, limits)
            if on_trial(trial, self.best.cost):
                self.best.stopped = True
                return self.best
        if self._exchange_rows(limits):
            on_trial(trial + 1, self.best.cost)
        return self.best

    def _exchange_rows(self, limits: dict[str, Any]) -> bool:
        """Move single rows of all members, and say whether the best is better."""
        k = len(self.best.counts)
        starts = []
        for result in self._distinct([member.result for member in self.all]):
            moved = exchange_rows(self.distances, self.weights, result.labels, k)
            if (moved != result.labels).any():
                starts.append(self.engine.centers_of_partition(moved, k))
        if not starts:
            return False
        found = min(lloyd(self.engine, _join(starts), **limits), key=_cost)
        if found.cost > (1.0 - _SAME) * self.best.cost:
            return False
        self.best = _go_on(self.best, found)
        return True

    def _may_gain(self, member: _Member) -> bool:
        """Say whether trials of a member go on: there are rows to move a centre to."""
        costs = _row_costs(member.near, self.weights)
        goes_on = member.failures < _POOL_PATIENCE and not self.is_settled
        return goes_on and bool(np.count_nonzero(costs) > 1)

    def _try_swaps(self, rng: np.random.Generator, limits: dict[str, Any]) -> None:
        """Try a few swaps of every member, and keep what lowers its cost."""
        engine, k = self.engine, len(self.best.counts)
        starts = []
        for member in self.members:
            chances = _row_costs(member.near, self.weights)
            removed, rows, _ = choose_swaps(
                member.near, self.weights, k, self._distances_to, rng, chances
            )
            starts.append(engine.replace_centers(member.result.centers, removed, rows))
        found = iter(lloyd(engine, _join(starts), **limits))
        for member, start in zip(self.members, starts, strict=True):
            child = min([next(found) for _ in range(len(start))], key=_cost)
            member.failures += 1
            if child.cost < (1.0 - _GAIN) * member.result.cost:
                member.result = _go_on(member.result, child)
                member.near = engine.two_nearest(child.centers)
                member.failures = 0
                self.best = min(self.best, member.result, key=_cost)

    def _distances_to(self, rows: Array) -> Array:
        return self.distances[:, rows]


def _join(starts: list[Any]) -> Any:
    return starts[0].join(starts[1:])


def _cost(result: LloydResult) -> float:
    return result.cost


def _row_costs(near: TwoNearest, weights: Array | None) -> Array:
    return near.first if weights is None else weights * near.first


def _go_on(before: LloydResult, result: LloydResult) -> LloydResult:
    """Return a result with the path of the one from which it started."""
    lower = [cost for cost in result.cost_path if cost < before.cost]
    result.cost_path = before.cost_path + lower
    return result
