"""A fit on a Dask cluster, or on Spark, beside the local fit of the same rows.

A worker has one thread; the local fit has as many as there are cores.  Rows are

- persisted: in the memory of the workers, and an array for the local fit;
- lazy: made by the workers when they are asked for, and by threads before the local
  fit, whose seconds include that;
- parquet: read by `dd.read_parquet`, and by the local fit from the same files;
- spark: read from the same files by Spark, in local mode with two threads, if that is
  asked for.

For each there are seconds, the ratio to the local fit, the efficiency (seconds of one
worker over seconds times workers), and where the time goes: stages as the progress of a
fit has them, and for each pass its seconds, its tasks, and the bytes that workers send
each other.  CPU seconds, of the client with its scheduler and of all workers, are what
can be compared on a machine where others are at work; Dask's own threads take some 25
milliseconds of them in each second and process.  More workers than cores share them:
efficiency is per core there.  Targets with two workers: 1.3 times the local fit for
persisted rows, 1.5 times for others.

    python -m benchmarks.dask_scaling --rows 10000000
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from dask.distributed import Client, LocalCluster, get_task_stream, wait

from benchmarks.data import Array
from benchmarks.table import at_most, banner
from sketchmeans import NystromKMeans
from sketchmeans.distributed.backend import DaskBackend
from sketchmeans.engine.progress import Progress

_FEATURES, _CLUSTERS, _LANDMARKS = 20, 10, 200
#: Whole blocks of any width.
_HEIGHT = 32 * 4096
_TARGETS = {"persisted": at_most(1.3), "lazy": at_most(1.5), "parquet": at_most(1.5)}


def partition(number: int) -> Array:
    """Return rows of clusters that overlap, so that a fit has some passes."""
    centres = np.random.default_rng(0).normal(scale=0.8, size=(_CLUSTERS, _FEATURES))
    rng = np.random.default_rng([1, number])
    X = rng.standard_normal((_HEIGHT, _FEATURES), dtype=np.float32)
    X += centres.astype(np.float32)[rng.integers(_CLUSTERS, size=_HEIGHT)]
    return X


def lazy_rows(n_parts: int) -> da.Array:
    shape = (_HEIGHT, _FEATURES)
    make = dask.delayed(partition)
    parts = [da.from_delayed(make(i), shape, np.float32) for i in range(n_parts)]
    return da.concatenate(parts)


def write_parquet(folder: Path, n_parts: int) -> None:
    names = [f"x{j}" for j in range(_FEATURES)]
    for i in range(n_parts):
        table = pa.table(dict(zip(names, partition(i).T.copy(), strict=True)))
        pq.write_table(table, folder / f"part-{i:05d}.parquet", row_group_size=_HEIGHT)


@contextmanager
def cluster(n_workers: int) -> Iterator[Client]:
    """Give Dask so many worker processes of one thread."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit="4GB",
        ) as local,
        Client(local) as client,
    ):
        yield client


@dataclass
class Trace:
    """Seconds of the stages of a fit, and of its passes over all rows."""

    stages: dict[str, float] = field(default_factory=dict)
    #: Kind, seconds, tasks and bytes between workers of each pass.
    passes: list[tuple[str, float, int, int]] = field(default_factory=list)
    client: Client | None = None

    @contextmanager
    def record(self) -> Iterator[None]:
        """Note what a fit does, by the steps that it reports."""
        step, stage, run = Progress.step, Progress.stage, DaskBackend.run

        def timed(method: Any) -> Any:
            @contextmanager
            def inner(progress: Any, name: str, *given: Any) -> Iterator[Any]:
                start = time.perf_counter()
                with method(progress, name, *given) as value:
                    yield value
                spent = time.perf_counter() - start
                kind = "full passes" if name.startswith("all ") else name
                kind = "race on subsamples" if " rows" in kind else kind
                self.stages[kind] = self.stages.get(kind, 0.0) + spent

            return inner

        def timed_run(backend: Any, reduction: Any, *values: Any) -> Any:
            assert self.client is not None
            before, start = sent_bytes(self.client), time.perf_counter()
            with get_task_stream(self.client) as stream:
                found = run(backend, reduction, *values)
            spent = time.perf_counter() - start
            sent = sent_bytes(self.client) - before
            name = type(reduction).__name__
            self.passes.append((name, spent, len(stream.data), sent))
            return found

        Progress.step, Progress.stage = timed(step), timed(stage)  # type: ignore[method-assign]
        DaskBackend.run = timed_run  # type: ignore[method-assign]
        try:
            yield
        finally:
            Progress.step, Progress.stage = step, stage  # type: ignore[method-assign]
            DaskBackend.run = run  # type: ignore[method-assign]


@dataclass(frozen=True)
class Fit:
    """A fit, its seconds and where they went."""

    model: NystromKMeans
    seconds: float
    trace: Trace
    #: CPU seconds of this process, and of all workers.
    cpu: float
    worker_cpu: float = 0.0
    n_tasks: int = 0
    sent: int = 0


def worker_seconds(client: Client | None) -> float:
    """Return the CPU seconds that the workers have spent so far."""
    found = {} if client is None else client.run(time.process_time)
    return float(sum(found.values()))


def fit(X: Any, client: Client | None = None) -> Fit:
    model = NystromKMeans(_CLUSTERS, n_landmarks=_LANDMARKS, random_state=0)
    trace, spent = Trace(client=client), worker_seconds(client)
    with trace.record():
        start, cpu = time.perf_counter(), time.process_time()
        model.fit(X)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return Fit(model, seconds, trace, cpu, worker_seconds(client) - spent)


def sent_bytes(client: Client) -> int:
    """Return the bytes that workers have received from others so far."""

    def received(dask_worker: Any) -> int:
        return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)

    return sum(client.run(received).values())


def fit_on_cluster(client: Client, X: Any) -> Fit:
    before = sent_bytes(client)
    with get_task_stream(client) as stream:
        found = fit(X, client)
    labels = found.model.labels_.compute()
    found.model.labels_ = labels
    return replace(found, n_tasks=len(stream.data), sent=sent_bytes(client) - before)


def show(name: str, found: Fit, local: Fit) -> None:
    ratio = found.seconds / local.seconds
    cpu = found.cpu + found.worker_cpu
    print(
        f"{name:<22}{found.seconds:>8.2f} s{ratio:>8.2f} x local; CPU "
        f"{found.cpu:.2f} s here, {found.worker_cpu:.2f} s in workers, "
        f"{cpu / (local.cpu + local.worker_cpu):.2f} x local",
        end="",
    )
    if found is not local:
        gap = abs(found.model.cost_ / local.model.cost_ - 1.0)
        same = np.array_equal(found.model.labels_, local.model.labels_)
        print(
            f"  cost off by {gap:.0e}, labels {'equal' if same else 'DIFFER'}", end=""
        )
        n_calls = max(len(found.trace.passes), 1)
        print(
            f"\n    {found.n_tasks} tasks, of {n_calls} passes over all rows, "
            f"{found.sent / 1e6:.1f} MB between workers",
            end="",
        )
    print()
    for stage, seconds in found.trace.stages.items():
        print(f"    {stage:<28}{seconds:>8.2f} s")
    for kind, seconds, n_tasks, sent in found.trace.passes:
        print(
            f"      pass {kind:<21}{seconds:>8.2f} s{n_tasks:>7} tasks"
            f"{sent / 1e6:>9.2f} MB between workers"
        )


def measure(kind: str, n_parts: int, folder: Path, workers: list[int]) -> None:
    """Print the local fit of some rows, and fits on clusters."""
    source: Any = str(folder)
    fit(partition(0))  # imports
    start, cpu = time.perf_counter(), time.process_time()
    if kind != "parquet":
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            source = np.concatenate(list(pool.map(partition, range(n_parts))))
    making, cpu = time.perf_counter() - start, time.process_time() - cpu
    local = fit(source)
    if kind == "lazy":
        print(
            f"lazy: {making:.2f} s to make the rows ({cpu:.2f} s CPU), "
            f"{local.seconds:.2f} s to fit ({local.cpu:.2f} s CPU)"
        )
        local = replace(local, seconds=making + local.seconds, cpu=cpu + local.cpu)
    show(f"{kind}, local", local, local)
    del source
    alone: float | None = None
    for n in workers:
        with cluster(n) as client:
            X = dd.read_parquet(folder) if kind == "parquet" else lazy_rows(n_parts)
            fit(lazy_rows(2 * n), client)  # imports, in the workers
            if kind == "persisted":
                X = X.persist()
                wait(X)
            found = fit_on_cluster(client, X)
        show(f"{kind}, {n} workers", found, local)
        alone = found.seconds if n == 1 else alone
        if alone is not None:
            n_cores = min(n, os.cpu_count() or n)
            efficiency = alone / (found.seconds * n_cores)
            print(f"    efficiency of {n} workers on {n_cores} cores {efficiency:.2f}")
        if n == 2:
            target = _TARGETS[kind]
            ratio = found.seconds / local.seconds
            verdict = "met" if target.met(ratio) else "not met"
            print(f"    2 workers / local {ratio:.2f}, target {target}: {verdict}")


def measure_spark(folder: Path) -> None:
    """Print the local fit of files, and one of the same files on Spark."""
    from pyspark.sql import SparkSession

    def children_seconds() -> float:
        spent = 0.0
        for process in psutil.Process().children(recursive=True):
            times = process.cpu_times()
            spent += times.user + times.system
        return spent

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.log.level", "OFF")
    builder = builder.config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "4g").getOrCreate()
    fit(partition(0))  # imports
    local, frame = fit(str(folder)), session.read.parquet(str(folder))
    fit(frame.limit(_HEIGHT))  # imports, in the executors
    before = children_seconds()
    found = fit(frame)
    cpu, gap = children_seconds() - before, found.model.cost_ / local.model.cost_ - 1.0
    print(
        f"spark, 2 threads      {found.seconds:>8.2f} s"
        f"{found.seconds / local.seconds:>8.2f} x local; CPU {found.cpu:.2f} s here, "
        f"{cpu:.2f} s in its processes, {(found.cpu + cpu) / local.cpu:.2f} x local; "
        f"cost off by {abs(gap):.0e}"
    )
    session.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    kinds = [*_TARGETS, "spark"]
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=list(_TARGETS))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    n_parts = max(options.rows // _HEIGHT, 1)
    print(banner(1), flush=True)
    print(
        f"# {n_parts * _HEIGHT:,} x {_FEATURES} float32, {n_parts} partitions, "
        f"k={_CLUSTERS}, m={_LANDMARKS}, {os.cpu_count()} cores"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if {"parquet", "spark"} & {*options.kinds}:
            write_parquet(folder, n_parts)
        for kind in options.kinds:
            if kind == "spark":
                measure_spark(folder)
            else:
                measure(kind, n_parts, folder, options.workers)


if __name__ == "__main__":
    main()
