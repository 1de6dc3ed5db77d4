"""The search for clusters of a Nyström fit: space, plan, start, Lloyd, audit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchmeans.cluster.memory import fit_need, thread_need
from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import Rows
from sketchmeans.engine.audit import audit_result
from sketchmeans.engine.blocks import BlockEngine, local_engine, new_engine
from sketchmeans.engine.directions import pays_to_project, projection_need
from sketchmeans.engine.init import Seeding
from sketchmeans.engine.progress import Progress
from sketchmeans.engine.restarts import Schedule, Search
from sketchmeans.engine.space import (
    LandmarkSpace,
    Space,
    SpanSpace,
    landmark_space,
)
from sketchmeans.engine.starts import Start
from sketchmeans.engine.subsample import sizes_for
from sketchmeans.engine.types import Centers, LloydResult
from sketchmeans.kernels import Kernel, compute_gram, is_given
from sketchmeans.landmarks import Landmarks
from sketchmeans.landmarks.coverage import PROBED_ROWS, cover_costly_rows
from sketchmeans.numerics.memory import format_bytes, memory_budget, plan_memory
from sketchmeans.numerics.parameters import is_auto
from sketchmeans.reduction import is_reduced


@dataclass(frozen=True)
class Found:
    """The result of a search, and whether its cost is more than rounding.

    Landmarks are those that were given to it, or some more.
    """

    landmarks: Landmarks
    space: SpanSpace
    engine: BlockEngine
    result: LloydResult
    is_sound: bool


def search_clusters(
    model: Any,
    kernel: Kernel,
    start: Start | Seeding,
    saved: Any,
    rng: np.random.Generator,
    progress: Progress,
    rows: Rows,
    landmarks: Landmarks,
) -> Found:
    """Return the clusters of rows with centres in the span of landmarks."""
    k = model.n_clusters
    given, is_remote = is_given(kernel), find_adapter(rows) is not None
    space = _span(model, kernel, rows, landmarks)
    schedule = plan_schedule(model, rows, space, start, saved)
    search = Search(schedule, kernel.distances_among, progress)
    if isinstance(start, Start):
        engine = new_engine(rows, space, schedule.budget)
        results = search.finish(engine, _given_centers(engine, start, kernel, k))
    elif schedule.progressive and pays_to_project(rows, space, k, schedule.n_init):
        engine, centers, labels = search.search_directions(rows, space, start, k, rng)
        results = search.finish(engine, centers, labels)
    elif is_remote:
        engine, results = find_elsewhere(search, rows, space, start, k, rng)
    else:
        engine, results = search.find(rows, space, start, k, rng)
    result, is_sound = results[0], True
    if _may_add_landmarks(model, space, len(rows)):
        more = cover_costly_rows(landmarks, engine, result)
        if len(more) > len(landmarks):
            landmarks, space = more, _span(model, kernel, rows, more)
            labels = np.asarray(result.labels[np.arange(len(rows))])
            del engine  # and the kernel values that it keeps
            engine = new_engine(rows, space, schedule.budget)
            centers = engine.centers_of(labels, k)
            result = search.finish(engine, centers, labels)[0]
    if kernel.positive_definite and not given:
        result = search.rescue_far_rows(engine, result, rng)
        if not is_remote:
            result, is_sound = audit_result(engine, result)
    return Found(landmarks, space, engine, engine.place_labels(result), is_sound)


def _span(model: Any, kernel: Kernel, rows: Rows, landmarks: Landmarks) -> SpanSpace:
    """Return the space of centres in the span of landmarks."""
    given = is_given(kernel)
    gram = compute_gram(kernel, landmarks.points, rows.workers, rows) if given else None
    return landmark_space(
        kernel,
        landmarks.points,
        rows.dtype,
        rows.workers,
        rank=model.rank,
        gram=gram,
        diagonal=kernel.row_diagonal(rows) if given else None,
    )


def _may_add_landmarks(model: Any, space: SpanSpace, n_rows: int) -> bool:
    """Say whether the number of landmarks is ours to choose, and rows may be missed.

    Few rows were all checked before the fit, unless the kernel has features.
    """
    is_ours = is_auto(model.n_landmarks) and model.rank is None
    is_uniform = isinstance(model.landmarks, str) and model.landmarks == "uniform"
    is_probed = isinstance(space, LandmarkSpace) and n_rows <= PROBED_ROWS
    return is_ours and is_uniform and space.kernel.proven and not is_probed


def find_elsewhere(
    search: Search,
    rows: Rows,
    space: Space,
    seeding: Seeding,
    k: int,
    rng: np.random.Generator,
) -> tuple[BlockEngine, list[LloydResult]]:
    """Return what `Search.find` does, for rows in other processes."""
    engine, centers = search.race_restarts(rows, space, seeding, k, rng)
    if search.schedule.progressive and sizes_for(rows, space, k):
        return engine, search.finish_race(engine, centers, rng)
    results = search.finish(engine, centers)
    if len(results) > 1 and search.schedule.swaps:
        # There are no subsamples, as rows are few: they are fetched.
        every = np.arange(len(rows))
        local = local_engine(rows.subset(every, rows.weights), space)
        here = [replace(result, labels=result.labels[every]) for result in results]
        best, *_ = search.improve_by_swaps(local, here, rng, name="all ")
        if best is here[0]:
            best = results[0]
        else:
            best, *_ = search.finish(engine, best.centers)
        results = [best]
    return engine, results


def plan_schedule(
    model: Any, rows: Rows, space: SpanSpace, start: Start | Seeding, saved: Any
) -> Schedule:
    """Return how to iterate, after a check that the work fits in memory."""
    k, is_seeded = model.n_clusters, not isinstance(start, Start)
    progressive = model.algorithm == "progressive" and not is_given(space.kernel)
    sizes = sizes_for(rows, space, k) if progressive and is_seeded else []
    restarts = model._restarts(start)
    need = fit_need(rows, space, k, restarts, sizes[-1] if sizes else 0)
    if progressive and is_seeded and pays_to_project(rows, space, k, restarts):
        need += projection_need(rows, space)
    thread = thread_need(rows, space, k, restarts)
    # Threads cost memory but change no bit: rather fewer of them than an error.
    budget = memory_budget(model.max_memory)
    fitting = (budget - need) // thread
    rows.workers.limit(max(1, min(rows.workers.n_jobs, fitting)))
    reading = f" ({format_bytes(rows.memory)} to read X)" if rows.memory else ""
    spare = plan_memory(
        need + thread * rows.workers.n_jobs,
        budget,
        f"{space.landmarks.shape[0]:,} landmarks on {len(rows):,} rows of "
        f"{rows.n_features:,} features need {{}}{reading}",
        "Lower n_landmarks or raise max_memory.",
    )
    return Schedule(
        restarts,
        model.max_iter,
        model._tolerance,
        spare,
        progressive,
        swaps=is_auto(model.n_init) and is_seeded,
        saved=saved,
    )


def _given_centers(
    engine: BlockEngine, start: Start, kernel: Kernel, n_clusters: int
) -> Centers:
    """Return the centres of a start that the user gave."""
    if start.indices is not None:
        return engine.centers_at(start.indices[None])
    rows = engine.rows
    if is_reduced(rows) and start.points is not None:
        view: Any = rows
        start = Start(points=view.points(start.check_points(view.source, kernel)))
    return engine.centers_of(start.partition(rows, kernel, n_clusters), n_clusters)
