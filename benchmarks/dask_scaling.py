"""A fit on a Dask cluster of one and two worker processes beside the local fit.

The rows are in memory: an array for the local fit, persisted partitions for Dask.  A
worker has one thread; the local fit has as many as there are cores.  Subsamples and
landmarks are worked on in this process in all cases, full passes on the workers.
Methods take turns, and a line has the median over the seeds.  The target is that two
workers take at most 1.5 times as long as the local fit, on a fit of at least 10 s.

    python -m benchmarks.dask_scaling
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster, wait

from benchmarks.data import Array
from benchmarks.measure import Run, measure
from benchmarks.table import at_most, banner
from sketchmeans import NystromKMeans

_FEATURES, _CLUSTERS = 64, 20
_TARGET = at_most(1.5)
_LONG = 10.0


def partition(number: int, n_rows: int) -> Array:
    """Return rows of clusters that overlap, so that a fit has some passes."""
    centres = np.random.default_rng(0).normal(scale=0.5, size=(_CLUSTERS, _FEATURES))
    rng = np.random.default_rng([1, number])
    X = rng.standard_normal((n_rows, _FEATURES), dtype=np.float32)
    X += centres.astype(np.float32)[rng.integers(_CLUSTERS, size=n_rows)]
    return X


def persisted(n_parts: int, n_rows: int) -> da.Array:
    """Return the same rows in the memory of the workers."""
    parts = [
        da.from_delayed(
            dask.delayed(partition)(number, n_rows), (n_rows, _FEATURES), np.float32
        )
        for number in range(n_parts)
    ]
    together = da.concatenate(parts).persist()
    wait(together)
    return together


@contextmanager
def cluster(n_workers: int) -> Iterator[None]:
    """Give Dask so many worker processes of one thread."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit="4GB",
        ) as local,
        Client(local),
    ):
        yield


def fitted(X: object, landmarks: int, seed: int) -> Run[NystromKMeans]:
    model = NystromKMeans(_CLUSTERS, n_landmarks=landmarks, tol=1e-6, random_state=seed)
    return measure(lambda: model.fit(X))


def on_cluster(
    n_workers: int, n_parts: int, height: int, landmarks: int, seeds: int
) -> list[Run[NystromKMeans]]:
    """Return the fits on a cluster, with labels as arrays."""
    with cluster(n_workers):
        parts = persisted(n_parts, height)
        fitted(parts[: 8 * 4096], landmarks, 0)  # imports, in the workers
        runs = [fitted(parts, landmarks, seed) for seed in range(seeds)]
        for run in runs:
            run.value.labels_ = run.value.labels_.compute()
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2**22)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--landmarks", type=int, default=640)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    print(banner(options.seeds), flush=True)
    n_parts = options.partitions
    height = -(-options.rows // n_parts)
    X = np.concatenate([partition(number, height) for number in range(n_parts)])
    local = [fitted(X, options.landmarks, seed) for seed in range(options.seeds)]
    found = {"local": local}
    for n in (1, 2):
        found[f"{n} worker" + "s" * (n > 1)] = on_cluster(
            n, n_parts, height, options.landmarks, options.seeds
        )
    base = median(run.seconds for run in local)
    single = median(run.seconds for run in found["1 worker"])
    print(
        f"# {len(X):,} x {_FEATURES} float32, {n_parts} partitions, "
        f"m={options.landmarks}, k={_CLUSTERS}"
    )
    print(f"{'fit':<10}{'s':>8}{'of local':>10}{'speed-up':>10}{'passes':>8}  labels")
    for name, runs in found.items():
        seconds = median(run.seconds for run in runs)
        same = all(
            np.array_equal(run.value.labels_, mine.value.labels_)
            for run, mine in zip(runs, local, strict=True)
        )
        print(
            f"{name:<10}{seconds:>8.2f}{seconds / base:>10.2f}{single / seconds:>10.2f}"
            f"{runs[0].value.n_iter_:>8}  {'the same' if same else 'DIFFER'}"
        )
    ratio = median(run.seconds for run in found["2 workers"]) / base
    verdict = "met" if _TARGET.met(ratio) else "not met"
    if base < _LONG:
        verdict += f"; the local fit took less than {_LONG:g} s"
    print(f"2 workers / local {ratio:.2f}, target {_TARGET}: {verdict}")


if __name__ == "__main__":
    main()
