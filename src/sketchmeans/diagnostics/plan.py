"""What a fit will take, before it starts."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sketchmeans.cluster import NystromKMeans
from sketchmeans.cluster.memory import fit_need, thread_need
from sketchmeans.cluster.table import TableClusterer
from sketchmeans.data.input import read_table
from sketchmeans.data.rows import Rows, as_rows, float_type
from sketchmeans.data.source_rows import SourceRows
from sketchmeans.data.sources import Source
from sketchmeans.diagnostics.cost_model import (
    FILE_READS,
    PASSES,
    Problem,
    predict_memory,
    predict_seconds,
)
from sketchmeans.engine.init import auto_restarts
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.engine.subsample import sizes_for
from sketchmeans.kernels import RBF
from sketchmeans.landmarks.growth import first_size
from sketchmeans.numerics.machine import Machine, measure_machine
from sketchmeans.numerics.memory import DEFAULT_SHARE, format_bytes, memory_budget
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import check_integer, check_integer_or, is_auto
from sketchmeans.theory.results import Result

#: Rounds in which all workers have tasks, of a fit on a cluster; what a task costs the
#: scheduler, and a level of the tree of sums, in seconds.
ROUNDS, TASK_SECONDS, LEVEL_SECONDS = 16, 1e-3, 5e-3
#: Tasks of a worker in a round, and results that one task combines.
_TASKS_PER_WORKER, _FAN_IN = 2, 8
#: Bytes that workers keep of a row: labels and bounds of three passes.
_STATE_BYTES = 36
#: Bytes of a row that the client holds to draw subsamples.
_CLIENT_BYTES = 48
#: Seconds for a look at how fast a file is read.
_PROBE_SECONDS = 0.5


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """What a fit is expected to take.

    Attributes
    ----------
    n_rows, n_features, n_bytes : int
        Of the table; bytes in the type in which it is stored.
    n_clusters, n_landmarks : int
    n_passes : int
        Passes over all rows that are expected; most look at few rows again.
    stages : dict of str to float
        Seconds of each stage.
    seconds : float
        Seconds of all of them.
    memory : int
        Bytes at the peak beyond the input; on a cluster those of the client.
    n_workers, worker_memory : int, optional
        Workers of a cluster, and the bytes that each of them needs.
    network_per_pass, network_bytes : int, optional
        Bytes that travel in a pass, and in the whole fit.
    tree_depth : int, optional
        Levels at which sums of the workers are combined.
    problems : list of str
        What does not fit, and what to change.

    Examples
    --------
    >>> from sketchmeans import NystromKMeans
    >>> from sketchmeans.diagnostics import plan
    >>> found = plan(NystromKMeans(10, n_landmarks=200), (10**7, 20))
    >>> found.seconds > 1.0, list(found.stages)
    (True, ['moments', 'race', 'passes', 'closing'])
    """

    n_rows: int
    n_features: int
    n_bytes: int
    n_clusters: int
    n_landmarks: int
    n_passes: int
    stages: dict[str, float]
    seconds: float
    memory: int
    n_workers: int | None = None
    worker_memory: int | None = None
    network_per_pass: int | None = None
    network_bytes: int | None = None
    tree_depth: int | None = None
    problems: tuple[str, ...] = ()

    _sizes: ClassVar[tuple[str, ...]] = (
        "n_bytes",
        "memory",
        "worker_memory",
        "network_per_pass",
        "network_bytes",
    )

    def _lines(self) -> list[tuple[str, str]]:
        lines = []
        for label, text in super()._lines():
            if label in self._sizes:
                text = format_bytes(getattr(self, label))
            elif label == "stages":
                parts = (f"{name} {s:.3g} s" for name, s in self.stages.items())
                text = ", ".join(parts)
            elif label == "problems":
                text = "; ".join(self.problems) or "none"
            lines.append((label, text))
        return lines


def plan(
    model: Any,
    X: Any,
    *,
    n_workers: int | None = None,
    memory: float | str | None = None,
    machine: Machine | None = None,
) -> Plan:
    """Say what a fit would take, from sizes and the rates of this machine.

    A stage takes ``Σ_r c_r · work_r/rate_r`` seconds: multiplications in matrix
    products, exponentials and bytes of memory over what this machine does of each in a
    second, times coefficients that were fitted to measured fits.  A pass over all rows
    is n·m·(d + k), n·m and about n·d of these.

    Nothing is fitted: it costs about three seconds to measure the rates, once, and half
    a second for a file.  Times are those of float32 or float64 rows whose clusters
    overlap somewhat: fits of clear clusters take fewer passes, and others more.

    Parameters
    ----------
    model : NystromKMeans, or TableClusterer of one
        Its number of landmarks "auto" is taken to be the first that is tried.
    X : array-like, path, `Source`, Dask collection or tuple (n, d)
        The table, or the shape of one in float32.
    n_workers : int, optional
        Plan for a cluster of so many workers, each with the rate of one thread here.
    memory : int or str, optional
        What each worker has, or this process; None is `max_memory` of the model, and
        for workers what is free here.
    machine : Machine, optional
        Rates to plan with, instead of those of this machine.

    Examples
    --------
    >>> from sketchmeans import NystromKMeans
    >>> from sketchmeans.diagnostics import plan
    >>> found = plan(NystromKMeans(10, n_landmarks=200), (1_000_000, 20))
    >>> found.n_bytes, found.problems
    (80000000, ())
    """
    inner = model.estimator if isinstance(model, TableClusterer) else model
    if not isinstance(inner, NystromKMeans):
        raise ValueError(
            f"model={model!r} should be a NystromKMeans, or a TableClusterer of one."
        )
    inner._check_params()
    check_integer_or(None, "n_workers", n_workers)
    machine = machine or measure_machine(inner.n_jobs)
    with Workers(inner.n_jobs) as workers:
        rows = open_table(X, workers)
        problem = _problem(inner, rows)
        stages = predict_seconds(problem, machine)
        space = open_space(rows, problem.n_landmarks)
        k, restarts = inner.n_clusters, auto_restarts(inner.n_clusters, inner.n_init)
        need = _fit_memory(rows, space, k, restarts)
        peak = predict_memory(rows, space, k, restarts) + rows.memory
        if isinstance(rows.X, Source):
            stages["reading"] = FILE_READS * _read_seconds(rows)
    if n_workers is None:
        limit = inner.max_memory if memory is None else memory
        return _plan_here(problem, stages, peak, need, memory_budget(limit))
    return _plan_cluster(problem, stages, need, machine, n_workers, memory)


class _Shape:
    """A table of which only the shape is known."""

    dtype = np.dtype(np.float32)

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape


def open_table(X: Any, workers: Workers) -> Rows:
    """Return the rows of a table, or of one of which only the shape is known."""
    if isinstance(X, tuple) and len(X) == 2:
        n, d = (check_integer(name, value) for name, value in zip("nd", X, strict=True))
        shape: Any = _Shape((n, d))
        return Rows(shape, workers)
    table = read_table(X, takes_dask=True)
    if isinstance(table, Source):  # not loaded, however small, nor checked
        return SourceRows(table, workers)
    return as_rows(table, workers)


def _problem(model: NystromKMeans, rows: Rows) -> Problem:
    k, n = model.n_clusters, len(rows)
    m = model.n_landmarks
    if hasattr(model.landmarks, "shape"):
        m = model.landmarks.shape[0]
    if is_auto(m):
        m = first_size(n, k)
    itemsize = float_type(rows.X.dtype).itemsize
    return Problem(n, rows.n_features, k, min(int(m), n), itemsize)


def open_space(rows: Rows, n_landmarks: int) -> LandmarkSpace:
    """Return a space of so many landmarks, for its sizes."""
    landmarks = np.zeros((n_landmarks, rows.n_features), rows.dtype)
    return LandmarkSpace(RBF(gamma=1.0), landmarks, rows.dtype, rows.workers)


def _fit_memory(rows: Rows, space: LandmarkSpace, k: int, restarts: int) -> int:
    """Return the bytes that a fit asks for before it starts, on its client."""
    sizes = sizes_for(rows, space, k)
    need = fit_need(rows, space, k, restarts, sizes[-1] if sizes else 0)
    return need + rows.workers.n_jobs * thread_need(rows, space, k, restarts)


def _read_seconds(rows: Rows) -> float:
    """Return the seconds that one thread takes to read a file, from a look at it."""
    height, done, start = 65_536, 0, time.perf_counter()
    while done < len(rows) and time.perf_counter() - start < _PROBE_SECONDS:
        stop = min(done + height, len(rows))
        rows.X.read(done, stop)
        done = stop
    spent = time.perf_counter() - start
    return spent * len(rows) / done / rows.workers.n_jobs


def _plan_here(
    problem: Problem, stages: dict[str, float], peak: int, need: int, budget: int
) -> Plan:
    """Return the plan for this process; a fit asks for a bit more than it uses.

    In a smaller budget it computes kernel values again, which takes longer.
    """
    peak = min(peak, max(budget, need))
    problems: tuple[str, ...] = ()
    if need > budget:
        problems = (
            f"the fit needs {format_bytes(need)} of memory, and {format_bytes(budget)} "
            "may be used: lower n_landmarks, raise max_memory, or use more machines",
        )
    return Plan(*_sizes(problem), stages, sum(stages.values()), peak, problems=problems)


def _plan_cluster(
    problem: Problem,
    stages: dict[str, float],
    need: int,
    machine: Machine,
    n_workers: int,
    memory: float | str | None,
) -> Plan:
    n, k, m = problem.n_rows, problem.n_clusters, problem.n_landmarks
    depth = max(1, math.ceil(math.log(2 * n_workers) / math.log(_FAN_IN)))
    tasks = (_TASKS_PER_WORKER * n_workers) * 2
    share = machine.n_threads / n_workers
    stages = {
        name: seconds if name == "race" else seconds * share
        for name, seconds in stages.items()
    }
    stages["scheduling"] = ROUNDS * (tasks * TASK_SECONDS + depth * LEVEL_SECONDS)
    # Centres go down to every worker, sums come up the tree.
    per_pass = n_workers * (_TASKS_PER_WORKER * k * m * 8 + k * m * problem.itemsize)
    landmarks = n_workers * m * problem.n_features * problem.itemsize
    total = PASSES * per_pass + landmarks + n * 8
    limit = memory_budget(memory)
    # Half of the memory for rows; what is computed from them beside that.
    kept = problem.n_bytes / n_workers
    states = n * _STATE_BYTES / n_workers
    needed = int(kept / DEFAULT_SHARE + states)
    problems = []
    if needed > limit:
        least = math.ceil(
            (problem.n_bytes / DEFAULT_SHARE + n * _STATE_BYTES) / max(limit, 1)
        )
        problems.append(
            f"a worker needs {format_bytes(needed)} to keep its rows, and has "
            f"{format_bytes(limit)}: they are read again in each pass; take "
            f"{least:,} workers, or more memory"
        )
    client = need + n * _CLIENT_BYTES
    if client > memory_budget(None):
        problems.append(
            f"the client needs {format_bytes(client)} to draw subsamples: run it on a "
            "machine that has so much"
        )
    return Plan(
        *_sizes(problem),
        stages,
        sum(stages.values()),
        client,
        n_workers,
        needed,
        per_pass,
        total,
        depth,
        tuple(problems),
    )


def _sizes(problem: Problem) -> tuple[int, int, int, int, int, int]:
    return (
        problem.n_rows,
        problem.n_features,
        problem.n_bytes,
        problem.n_clusters,
        problem.n_landmarks,
        PASSES,
    )
