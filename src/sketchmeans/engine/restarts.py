"""Kernel k-means on blocks: restarts raced on nested subsamples, then full passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sketchmeans.data.rows import Rows
from sketchmeans.engine.backend import LocalBackend
from sketchmeans.engine.blocks import BlockEngine, local_engine, new_engine
from sketchmeans.engine.breathing import breathe
from sketchmeans.engine.costly import cluster_costs, costly_rows
from sketchmeans.engine.directions import project_rows
from sketchmeans.engine.init import Distances, Seeding
from sketchmeans.engine.lloyd import SavedStages, lloyd
from sketchmeans.engine.nearby import NearbyEngine, can_pass_nearby
from sketchmeans.engine.progress import Progress
from sketchmeans.engine.space import (
    InputSpace,
    LandmarkSpace,
    Space,
    coarse_space,
    lift_means,
)
from sketchmeans.engine.store import KernelBlocks, cheap_to_repeat
from sketchmeans.engine.subsample import nested_subsample, sizes_for
from sketchmeans.engine.swaps import Effort, are_few, improve, most_trials
from sketchmeans.engine.types import Centers, LloydResult, side_by_side
from sketchmeans.kernels import squared_distances_among
from sketchmeans.numerics.linalg import Array

#: Passes after which the first half of the restarts is dropped.
_FIRST_PASSES = 5
#: Restarts of which none is dropped before the last subsample.
FINALISTS = 4
#: Rows of the first subsample that are enough to seed it.
_SEEDED_ROWS, _SEEDED_ROWS_PER_CLUSTER = 8192, 16
#: Rows that cost so many times the mean of others in their cluster are left behind by
#: centres, if together they have this share of the cost; passes to bring centres there.
_NEGLECTED, _NEGLECTED_SHARE, _RESCUE_PASSES = 16.0, 0.01, 60
#: Clusters for which swaps are enough; most breaths, clusters for which they take a
#: small part of the time, and rows per cluster that are enough for them.
_FEW_CLUSTERS, _BREATHS, _BREATHED_CLUSTERS, _BREATHED_ROWS = 48, 20, 300, 128
#: Products of numbers in swaps that take no time to speak of.
SWAP_WORK = 1e9
#: Share of a pass over all rows that swaps on a subsample may take; where many restarts
#: race, only those are tried that are sure to gain.
_SWAP_SHARE, _SURE = 0.25, Effort(0, hope=1.0)
#: Where subsamples were raced, swaps on up to so many rows take about two passes more;
#: the fewer rows, the more, as the square.
_SWAPPED_ROWS, _SWAP_PASSES = 32_768, 2


@dataclass(frozen=True)
class Schedule:
    """How long to iterate, in what memory."""

    n_init: int
    max_iter: int
    tol: float
    budget: int
    progressive: bool = True
    #: Whether swaps of centres for rows are tried when Lloyd's algorithm is at its end.
    swaps: bool = False
    #: The stages that are done, of a fit that can resume.
    saved: SavedStages | None = None
    #: Restarts that are left for the passes over all rows, where subsamples were raced.
    n_final: int = 1


@dataclass(frozen=True)
class Search:
    """The stages of a search for clusters, and what they share."""

    schedule: Schedule
    #: From rows to a function from row numbers to squared distances of all rows.
    distances: Callable[[Rows], Distances]
    progress: Progress

    def find(
        self,
        rows: Rows,
        space: Space,
        seeding: Seeding,
        n_clusters: int,
        rng: np.random.Generator,
    ) -> tuple[BlockEngine, list[LloydResult]]:
        """Return the engine of all rows, and restarts that it has finished, best first.

        Where rows are too few for subsamples, the best is improved on all of them.
        """
        engine, centers = self.race_restarts(rows, space, seeding, n_clusters, rng)
        if self._sizes(rows, space, n_clusters):
            return engine, self.finish_race(engine, centers, rng)
        plan = self.schedule
        is_race = plan.swaps and plan.progressive and not are_few(len(rows), n_clusters)
        if len(centers) > plan.n_final and (is_race or plan.n_final > 1):
            centers = self.drop_worse_half(engine, centers)
        results = self.finish(engine, centers)
        if plan.swaps:
            results = self.improve_by_swaps(engine, results, rng, name="all ")
            results = self.breathe(engine, results, rng, "all ")
        return engine, results

    def _sizes(self, rows: Rows, space: Space, n_clusters: int) -> list[int]:
        """Return the sizes of the subsamples on which restarts race."""
        if not self.schedule.progressive:
            return []
        return sizes_for(rows, space, n_clusters)

    def race_restarts(
        self,
        rows: Rows,
        space: Space,
        seeding: Seeding,
        n_clusters: int,
        rng: np.random.Generator,
    ) -> tuple[BlockEngine, Centers]:
        """Return the engine of all rows, and the centres of the restarts that are left.

        The worse half is dropped after a few passes over the first subsample, and again
        with each doubling of it until few are left; the best is left for full passes
        over all rows, improved by swaps where these are very many.  The race is run
        in a coarse space, if there is one; the best goes on in the whole space, on the
        last subsample first if full passes are dear.  Without subsamples all are left.
        """
        plan = self.schedule
        sample_rng, *seed_rngs = rng.spawn(1 + plan.n_init)
        (swap_rng,) = rng.spawn(1)
        sizes = self._sizes(rows, space, n_clusters)
        engine = new_engine(rows, space, plan.budget)
        with engine.backend.prefetch(other_rows=sizes[-1] if sizes else 0):
            nested = nested_subsample(rows, sizes[-1], sample_rng) if sizes else rows
            sizes = [min(size, len(nested)) for size in sizes]
            enough = max(_SEEDED_ROWS, _SEEDED_ROWS_PER_CLUSTER * n_clusters)
            first = nested.leading(min(sizes[0], enough)) if sizes else rows
            weights = np.ones(len(first)) if first.weights is None else first.weights
            with self.progress.step("seeding"):
                distances = self.distances(first)
                seeds = seeding.seed(distances, weights, n_clusters, seed_rngs)
            if not sizes:
                return engine, engine.centers_at(seeds)
            coarse = coarse_space(space, n_clusters)
            own = coarse or space
            sample = local_engine(nested, own, plan.budget, many_passes=True)
            centers = sample.centers_at(seeds)
            if plan.n_init > 1:
                centers = self.drop_worse_half(sample.leading(sizes[0]), centers)
            enough = _BREATHED_ROWS * n_clusters
            breathed = next((size for size in sizes if size >= enough), sizes[-1])
            for size in sizes:
                part = sample.leading(size)
                results = self.run(part, centers)
                if size == breathed and plan.swaps:
                    results = self.breathe(part, results, swap_rng)
                    work = _SWAP_SHARE * len(rows) * space.n_columns
                    most = int(work / (size * own.n_columns))
                    if n_clusters < _FEW_CLUSTERS:
                        effort = Effort.within(most, n_clusters)
                        results = self.improve_by_swaps(part, results, swap_rng, effort)
                if size == sizes[-1] and plan.swaps:
                    results = self.improve_by_swaps(part, results, swap_rng, _SURE)
                half = max(-(-len(results) // 2), FINALISTS) if size < sizes[-1] else 0
                centers = _best_centers(results, max(half, plan.n_final))
            if coarse is not None:
                assert isinstance(space, LandmarkSpace)
                centers = engine.centers_of_means(lift_means(space, centers))
                if not cheap_to_repeat(rows, space):
                    del sample, part  # and the kernel values that they keep
                    sample = local_engine(nested, space, plan.budget, many_passes=True)
                    results = self.run(sample.leading(sizes[-1]), centers)
                    centers = _best_centers(results, plan.n_final)
            return engine, centers

    def search_directions(
        self,
        rows: Rows,
        space: Space,
        seeding: Seeding,
        n_clusters: int,
        rng: np.random.Generator,
    ) -> tuple[BlockEngine, Centers, Array]:
        """Return the engine of all rows, and centres and labels to go on from.

        They are the best of restarts in the leading directions of the rows.
        """
        (direction_rng,) = rng.spawn(1)
        blocks = KernelBlocks(rows, space, self.schedule.budget)
        with self.progress.step("directions"):
            sketch = project_rows(blocks, direction_rng)
        few = replace(self, distances=squared_distances_among)
        inner = InputSpace.of(sketch, n_clusters)
        _, (best, *_) = few.find(sketch, inner, seeding, n_clusters, rng)
        engine = BlockEngine(LocalBackend(blocks))
        _, centers = engine.partition(best.labels, n_clusters)
        return engine, centers, best.labels

    def drop_worse_half(self, engine: BlockEngine, centers: Centers) -> Centers:
        """Return the centres of the better half of the restarts, after a few passes."""
        results = self.run(engine, centers, _FIRST_PASSES)
        return _best_centers(results, max(-(-len(results) // 2), self.schedule.n_final))

    def finish_race(
        self, engine: BlockEngine, centers: Centers, rng: np.random.Generator
    ) -> list[LloydResult]:
        """Return what subsamples have left after passes over all rows, the best first.

        The best is improved by swaps on all rows, if these are not too many: it comes
        from few of them.
        """
        results, k = self.finish(engine, centers), len(centers.squared_norms[0])
        most = int(_SWAP_PASSES * (_SWAPPED_ROWS / len(engine.rows)) ** 2)
        if not self.schedule.swaps or most < _SWAP_PASSES or k >= _FEW_CLUSTERS:
            return results
        return self.improve_by_swaps(engine, results, rng, Effort(most), "all ")

    def finish(
        self, engine: BlockEngine, centers: Centers, labels: Any = None
    ) -> list[LloydResult]:
        """Return all restarts after passes over all rows; the best first.

        Where a lone restart has many centres, and `labels` (n,) that they belong to are
        known, approximate passes come first.
        """
        most = self.schedule.max_iter
        if labels is None or most < 2 or not can_pass_nearby(engine, centers):
            results = self.run(engine, centers, name="all ")
            return sorted(results, key=lambda result: result.cost)
        nearby = NearbyEngine(engine, labels[:, None])
        (near,) = self.run(nearby, centers, most - 1, name="nearby, all ")
        left = most - near.n_iter
        found = self.run(engine, near.centers, left, "all ", cost_before=near.cost)
        found[0].cost_path = near.cost_path + found[0].cost_path
        return found

    def improve_by_swaps(
        self,
        engine: BlockEngine,
        results: list[LloydResult],
        rng: np.random.Generator,
        effort: Effort | None = None,
        name: str = "",
        among: Array | None = None,
    ) -> list[LloydResult]:
        """Return the restarts with the best of them improved by swaps.

        Without passes the effort is as many as the restarts took, or as take no time to
        speak of.  Rows become centres out of those `among`.
        """
        _, *others = sorted(results, key=lambda result: result.cost)
        rows, k = engine.rows, len(results[0].counts)
        effort = effort or Effort(0)
        if not effort.max_passes:
            quick = int(SWAP_WORK / (len(rows) * engine.space.n_columns * k))
            most = max(sum(result.n_iter for result in results), quick)
            effort = replace(effort, max_passes=most)
        name = f"{name}{len(rows):,} rows, swaps"
        with self.progress.stage(name, most_trials(k)) as on_trial:
            best = improve(
                engine,
                results,
                self.distances(rows),
                rows.weights,
                rng,
                max_iter=self.schedule.max_iter,
                tol=self.schedule.tol,
                effort=effort,
                on_trial=on_trial,
                among=among,
            )
        return [best, *others]

    def breathe(
        self,
        engine: BlockEngine,
        results: list[LloydResult],
        rng: np.random.Generator,
        name: str = "",
    ) -> list[LloydResult]:
        """Return the best restart with some of its many centres where they are needed.

        Others, which could not win against it, are dropped.
        """
        best, k = min(results, key=lambda result: result.cost), len(results[0].counts)
        most = round(_BREATHS * min(1.0, (_BREATHED_CLUSTERS / k) ** 3))
        if k < _FEW_CLUSTERS or not most:
            return results
        name = f"{name}{len(engine.rows):,} rows, breathing"
        with self.progress.stage(name, most) as on_breath:
            found = breathe(engine, best, rng, max_breaths=most, on_breath=on_breath)
        return [found] if found is best else self.run(engine, found.centers)

    def rescue_far_rows(
        self, engine: BlockEngine, result: LloydResult, rng: np.random.Generator
    ) -> LloydResult:
        """Return the result after swaps for rows that all centres have left behind."""
        if not self.schedule.swaps:
            return result
        left = neglected_rows(engine, result)
        if not len(left):
            return result
        effort = replace(_SURE, max_passes=_RESCUE_PASSES + len(result.counts))
        # Out of these alone: of all rows a few would be drawn that cost more in sum.
        found = self.improve_by_swaps(engine, [result], rng, effort, "all ", left)
        return found[0]

    def run(
        self,
        engine: BlockEngine | NearbyEngine,
        centers: Centers,
        max_iter: int | None = None,
        name: str = "",
        cost_before: float | None = None,
    ) -> list[LloydResult]:
        """Run Lloyd's algorithm from all centres, side by side, and report it."""
        plan, n_rows, is_whole = self.schedule, len(engine.rows), bool(name)
        name += f"{n_rows:,} rows"
        name += f", {len(centers)} restarts" if len(centers) > 1 else ""
        most = min(max_iter or plan.max_iter, plan.max_iter)
        with self.progress.stage(name, most) as on_pass:
            if is_whole and isinstance(engine, BlockEngine):
                engine.watch(on_pass.on_rows)
            run = partial(
                lloyd,
                engine,
                centers,
                max_iter=most,
                tol=plan.tol,
                on_pass=on_pass,
                cost_before=cost_before,
            )
            if plan.saved is None:
                return run()
            return plan.saved.run_stage(
                lambda saved: run(saved=saved), centers, n_rows, labels=is_whole
            )


def neglected_rows(engine: BlockEngine, result: LloydResult) -> Array:
    """Return rows that cost far more than others of their cluster, if that matters.

    A group that no subsample had a row of is such: together they are a good part of the
    cost.
    """
    totals = cluster_costs(engine, result)
    # x > t (total - x) / (count - 1), solved for x: a row is no part of the mean.
    limits = _NEGLECTED * totals / (result.counts + _NEGLECTED - 1.0)
    far, costs = costly_rows(engine, result, limits)
    is_much = costs.sum() > _NEGLECTED_SHARE * totals.sum()
    return far if is_much else far[:0]


def _best_centers(results: list[LloydResult], size: int) -> Centers:
    """Return the centres of the best restarts."""
    best = sorted(results, key=lambda result: result.cost)[:size]
    return side_by_side([result.centers for result in best])
