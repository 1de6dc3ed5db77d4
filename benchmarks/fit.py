"""Fits side by side with scikit-learn's: time, cost and memory, against targets.

Both sides of a row run in the same process, one after the other, and take turns to
go first.  Data are float32; both sides get the same bandwidth and as many landmarks,
drawn uniformly; all else is left at the defaults.  Times and costs are medians over
the seeds, memory is the highest peak.  Real data are read from the directory that
--data or SKETCHMEANS_DATA names; without it, data of the same shape are generated.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from benchmarks import data, history
from benchmarks.contest import Fit, compared, contest
from benchmarks.data import Array, Table
from benchmarks.measure import measure
from benchmarks.peers import (
    Centers,
    numpy_lloyd,
    nystroem_kmeans,
    nystroem_minibatch,
    true_cost,
)
from benchmarks.table import (
    Outcome,
    Target,
    at_least,
    at_most,
    banner,
    close_to_one,
    header,
)
from sketchmeans import KernelKMeans, NystromKMeans

#: Exact fits from one start may differ by rounding.
_SAME_COST = 1e-5
#: What an exact fit may use, in Gram matrices: one, and some vectors.
_ONE_MATRIX = 1.25


@dataclass(frozen=True)
class Settings:
    """What the command line asks for, and the tables."""

    seeds: int = 5
    directory: Path | None = None
    max_rows: int | None = None

    def mnist(self) -> Table:
        return _loaded(data.mnist, self.directory).head(self.max_rows)

    def covtype(self) -> Table:
        return _loaded(data.covtype, self.directory).head(self.max_rows)

    def blobs(self) -> Table:
        return data.blobs(min(1_000_000, self.max_rows or 1_000_000))


@cache
def _loaded(load: Callable[[Path | None], Table], directory: Path | None) -> Table:
    table = load(directory)
    n, d = table.X.shape
    print(f"# {load.__name__}: {table.origin} data, {n:,} x {d}", flush=True)
    return table


def nystrom(table: Table, m: int, k: int, n_init: int | str = "auto") -> Fit[Centers]:
    """Return our side: from a seed to the centres of a Nyström fit."""

    def fit(seed: int) -> Centers:
        model = NystromKMeans(
            k, gamma=table.gamma, n_landmarks=m, n_init=n_init, random_state=seed
        ).fit(table.X)
        return Centers(model.landmarks_, model.dual_coef_)

    return fit


@dataclass(frozen=True)
class Versus:
    """A row against Nyström features and k-means from scikit-learn."""

    load: Callable[[Settings], Table]
    peer: Callable[..., Centers]
    m: int
    k: int
    time: Target
    cost: Target

    def __call__(self, settings: Settings) -> Outcome:
        table = self.load(settings)
        ours = nystrom(table, self.m, self.k)
        peer = partial(self.peer, table.X, table.gamma, self.m, self.k)
        judge = partial(true_cost, table.X, table.gamma)
        sides = contest(ours, peer, judge, settings.seeds)
        return compared(*sides, self.time, self.cost)


def restarts(settings: Settings) -> Outcome:
    """Compare ten restarts with one, both ours."""
    table = settings.mnist()
    ten, one = (nystrom(table, 400, 10, n_init) for n_init in (10, 1))
    judge = partial(true_cost, table.X, table.gamma)
    sides = contest(ten, one, judge, settings.seeds)
    return compared(*sides, at_most(2.5), at_most(1.0))


def gemm(settings: Settings) -> Outcome:
    """Compare a whole fit with the one matrix product that it cannot avoid."""
    table = settings.mnist()
    fit = nystrom(table, 400, 10)
    chosen = np.random.default_rng(0).choice(len(table.X), 400, replace=False)
    out = np.empty((len(table.X), 400), dtype=np.float32)
    product = partial(np.dot, table.X, table.X[chosen].T, out=out)
    bare, whole = [], []
    for turn in range(max(7, settings.seeds)):
        bare.append(measure(product).seconds)
        if turn < settings.seeds:
            whole.append(measure(partial(fit, turn)))
    floor = float(np.median(bare))
    seconds = np.array([run.seconds for run in whole])
    return Outcome(
        float(np.median(seconds)) / floor,
        at_most(2.5, stretch=2.0),
        spread=(float(seconds.min()) / floor, float(seconds.max()) / floor),
        seconds=(float(np.median(seconds)), floor),
        peak_bytes=(max(run.peak_bytes for run in whole), float("nan")),
    )


def exact(settings: Settings) -> Outcome:
    """Compare exact kernel k-means with Lloyd's algorithm in plain NumPy."""
    table = settings.mnist().head(10_000)
    n = len(table.X)

    def start(seed: int) -> Array:
        return np.random.default_rng(seed).choice(n, 10, replace=False)

    def ours(seed: int) -> Centers:
        model = KernelKMeans(10, gamma=table.gamma, init=start(seed)).fit(table.X)
        return Centers(table.X, model.dual_coef_)

    def peer(seed: int) -> Centers:
        return numpy_lloyd(table.X, table.gamma, start(seed))

    judge = partial(true_cost, table.X, table.gamma)
    sides = contest(ours, peer, judge, settings.seeds)
    ratios = sides[0].costs / sides[1].costs
    return replace(
        compared(*sides, at_least(1.5), close_to_one(_SAME_COST)),
        cost_ratio=float(ratios[np.abs(ratios - 1.0).argmax()]),  # of the worst seed
        memory_ratio=sides[0].peak_bytes / (_ONE_MATRIX * n * n * table.X.itemsize),
    )


def growth(settings: Settings) -> Outcome:
    """Fit the exponent of time against the number of rows, with 500 landmarks."""
    table = settings.blobs()
    sizes = np.geomspace(max(500, len(table.X) // 100), len(table.X), 5).astype(int)
    medians = []
    for size in sizes:
        fit = nystrom(table.head(size), 500, 10)
        runs = [measure(partial(fit, seed)) for seed in range(settings.seeds)]
        medians.append(np.median([run.seconds for run in runs]))
        print(f"#   {size:>9,} rows: {medians[-1]:.3f} s", flush=True)
    exponent = float(np.polyfit(np.log(sizes), np.log(medians), 1)[0])
    return Outcome(exponent, at_most(1.1))


_MNIST, _COVTYPE = Settings.mnist, Settings.covtype
_KMEANS, _MINIBATCH = nystroem_kmeans, nystroem_minibatch

ROWS: dict[str, Callable[[Settings], Outcome]] = {
    "mnist-kmeans": Versus(_MNIST, _KMEANS, 400, 10, at_least(4), at_most(1.0005)),
    "mnist-minibatch": Versus(_MNIST, _MINIBATCH, 400, 10, at_least(3), at_most(1)),
    "covtype-kmeans": Versus(_COVTYPE, _KMEANS, 763, 7, at_least(8, 12), at_most(1)),
    "covtype-minibatch": Versus(
        _COVTYPE, _MINIBATCH, 763, 7, at_least(5, 7), at_most(1)
    ),
    "mnist-restarts": restarts,
    "mnist-1600-kmeans": Versus(_MNIST, _KMEANS, 1600, 10, at_least(5), at_most(1)),
    "mnist-1600-minibatch": Versus(
        _MNIST, _MINIBATCH, 1600, 10, at_least(3), at_most(1)
    ),
    "mnist-gemm": gemm,
    "exact": exact,
    "growth": growth,
}


def warm_up() -> None:
    """Run every method once on little data: first calls load and start things."""
    table = data.blobs(2_000)
    nystrom(table, 50, 3)(0)
    for peer in (nystroem_kmeans, nystroem_minibatch):
        peer(table.X, table.gamma, 50, 3, 0)
    KernelKMeans(3, gamma=table.gamma, init=[0, 1, 2]).fit(table.X)
    numpy_lloyd(table.X, table.gamma, np.arange(3))


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.fit", description=__doc__)
    parser.add_argument("--rows-only", nargs="+", choices=ROWS, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument(
        "--max-rows", type=int, metavar="N", help="a rehearsal on the first N data rows"
    )
    parser.add_argument(
        "--store", action="store_true", help="add the figures to benchmarks/history.csv"
    )
    options = parser.parse_args()
    if options.store and options.max_rows is not None:
        parser.error("figures of a rehearsal are not stored.")
    print(banner(options.seeds))
    if options.max_rows is not None:
        print(f"# a rehearsal on {options.max_rows:,} rows: targets are for all rows")
    warm_up()
    settings = Settings(options.seeds, options.data, options.max_rows)
    print(header())
    verdicts: list[bool] = []
    figures = []
    command = f"python -m benchmarks.fit --seeds {options.seeds}"
    for name in options.rows_only or ROWS:
        outcome = ROWS[name](settings)
        print(outcome.line(name), flush=True)
        verdicts += outcome.verdicts().values()
        figures.append(history.new_figure("fit", command, **outcome.stored(name)))
    print(f"{sum(verdicts)} of {len(verdicts)} targets met")
    if options.store:
        print(*history.store(figures), sep="\n")


if __name__ == "__main__":
    main()
