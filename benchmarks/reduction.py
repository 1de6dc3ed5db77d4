"""k-means on sketched features, against k-means on all features.

The peer is scikit-learn's KMeans(n_init=5, max_iter=500) on all features.  Both sides
run in the same process, one after the other, and take turns to go first; data are
float32, times and objectives are medians over the seeds.  The objective is that of
the partition in the original space: squared distances to the means of its clusters.
The last row compares two fits of ours: kernel k-means with and without a reducer in
front, both judged by the cost W of their partition in the unreduced feature space.
Real data are read from the directory that --data or SKETCHMEANS_DATA names; without
it, data of the same shape are generated.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from benchmarks import data
from benchmarks.contest import Fit, compared, contest
from benchmarks.data import Array, Table
from benchmarks.table import Outcome, at_least, at_most, banner, header
from sketchmeans import (
    ApproximateSVD,
    FeatureSampling,
    NystromKMeans,
    SignProjection,
    SketchedKMeans,
)
from sketchmeans.reduction import Reducer

#: method: (reducer for k clusters, least time ratio, most objective ratio)
METHODS: dict[str, tuple[Callable[[int], Reducer], float, float]] = {
    "svd": (lambda k: ApproximateSVD(k), 5.0, 1.005),
    "sign": (lambda k: SignProjection(k), 5.0, 1.01),
    "sampling": (lambda k: FeatureSampling(4 * k), 4.0, 1.01),
}
#: Rows on which a reducer is fitted where there are many.
_FIT_ROWS = 10_000
#: Landmarks whose span holds the centroids by which partitions are judged.
_JUDGES = 2_000


def objective(X: Array, labels: Array) -> float:
    """Return the sum of squared distances to the mean of the own cluster."""
    total = 0.0
    for label in np.unique(labels):
        rows = X[labels == label].astype(np.float64)
        total += float(((rows - rows.mean(axis=0)) ** 2).sum())
    return total


def feature_space_cost(table: Table, labels: Array) -> float:
    """Return W of a partition, its centroids in the span of many landmarks."""
    chosen = np.random.default_rng(0).choice(len(table.X), _JUDGES, replace=False)
    judge = NystromKMeans(
        int(labels.max()) + 1, gamma=table.gamma, landmarks=chosen, init=labels, tol=1e9
    )
    return float(judge.fit(table.X).cost_path_[0])


def all_features(X: Array, k: int) -> Fit[Array]:
    """Return the peer."""

    def fit(seed: int) -> Array:
        kmeans = KMeans(k, n_init=5, max_iter=500, random_state=seed)
        return np.asarray(kmeans.fit(X).labels_)

    return fit


def sketched(X: Array, k: int, reducer: Reducer) -> Fit[Array]:
    """Return our side, at the defaults."""

    def fit(seed: int) -> Array:
        model = SketchedKMeans(k, reducer=reducer, random_state=seed)
        return np.asarray(model.fit(X).labels_)

    return fit


def image_rows(
    directory: Path | None, seeds: int, names: list[str], methods: list[str]
) -> Iterator[tuple[str, Outcome]]:
    for name in names:
        table, k = data.b14(name, directory), data.B14[name][2]
        print(f"# {name}: {table.origin} data, k={k}", flush=True)
        for method in methods:
            reducer, time, cost = METHODS[method]
            sides = contest(
                sketched(table.X, k, reducer(k)),
                all_features(table.X, k),
                partial(objective, table.X),
                seeds,
            )
            yield f"{name} {method}", compared(*sides, at_least(time), at_most(cost))


def blob_rows(seeds: int, n_rows: int) -> Iterator[tuple[str, Outcome]]:
    table, k = data.wide_blobs(n_rows), 50
    sides = contest(
        sketched(table.X, k, ApproximateSVD(k, fit_rows=_FIT_ROWS)),
        all_features(table.X, k),
        partial(objective, table.X),
        seeds,
    )
    yield "blobs svd", compared(*sides, at_least(8.0), at_most(1.0001))


def kernel_rows(directory: Path | None, seeds: int) -> Iterator[tuple[str, Outcome]]:
    table = data.mnist(directory)
    print(f"# mnist: {table.origin} data", flush=True)

    def fit(seed: int, reducer: Reducer | None) -> Array:
        model = NystromKMeans(
            10,
            gamma=table.gamma,
            n_landmarks=1_600,
            reducer=reducer,
            random_state=seed,
        )
        return np.asarray(model.fit(table.X).labels_)

    sides = contest(
        partial(fit, reducer=ApproximateSVD(50, fit_rows=_FIT_ROWS)),
        partial(fit, reducer=None),
        partial(feature_space_cost, table),
        seeds,
    )
    yield "mnist kernel, svd", compared(*sides, at_least(1.8), at_most(1.01))


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.reduction", description=__doc__
    )
    parts = ("images", "blobs", "kernel")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--images", nargs="+", choices=data.B14, default=list(data.B14))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--blob-seeds", type=int, default=3)
    parser.add_argument("--blob-rows", type=int, default=100_000)
    parser.add_argument("--data", type=Path, metavar="DIR")
    options = parser.parse_args()
    print(banner(options.seeds))
    warm = data.wide_blobs(2_000, 50)
    for fit in (sketched(warm.X, 5, ApproximateSVD(5)), all_features(warm.X, 5)):
        fit(0)
    print(header())
    found: dict[str, Outcome] = {}
    rows: list[Iterator[tuple[str, Outcome]]] = []
    if "images" in options.parts:
        rows.append(
            image_rows(options.data, options.seeds, options.images, options.methods)
        )
    if "blobs" in options.parts:
        rows.append(blob_rows(options.blob_seeds, options.blob_rows))
    if "kernel" in options.parts:
        rows.append(kernel_rows(options.data, options.seeds))
    for part in rows:
        for name, outcome in part:
            print(outcome.line(name), flush=True)
            found[name] = outcome
    for method in options.methods:
        mine = [
            o
            for name, o in found.items()
            if name in {f"{i} {method}" for i in data.B14}
        ]
        fast = sum(outcome.verdicts()["time"] for outcome in mine)
        good = sum(outcome.verdicts()["cost"] for outcome in mine)
        if mine:
            print(
                f"# {method}: fast enough on {fast} of {len(mine)} (3 of 4 wanted), "
                f"objective good enough on {good} of {len(mine)} (all wanted)"
            )


if __name__ == "__main__":
    main()
