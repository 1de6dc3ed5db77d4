"""CPU seconds and kernel evaluations behind the papers' words on time.

Run serially, whatever --jobs says: a neighbour on the same core takes its caches.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import ceil, inf, log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.data import Array
from experiments import datasets
from experiments.approximation import median_bandwidth, table_of
from experiments.cr18_mnist import split, stand_in
from experiments.datasets import OG17
from experiments.draws import by_draw
from experiments.evidence import Evidence, Finding, Part, over_draws
from experiments.figures import draw_bars, legend, panels, strategy_style
from experiments.grid import Context
from experiments.methods import (
    CHAINS,
    FAMILY,
    FULL,
    LEVERAGE,
    PAPER_STRATEGIES,
    SKETCHES,
    SMALL_SKETCH,
    STARTS,
    sketched_kmeans,
)
from experiments.og17_bandwidth import QUICK
from experiments.store import Cell, Row
from sketchmeans import NystromKMeans, select_landmarks
from sketchmeans.kernels import RBF, Kernel
from sketchmeans.landmarks import Leverage

TITLE = "CPU time and kernel evaluations (CR18 §5, OG17 Fig. 2, B14 Fig. 1)"
REDUCED = (
    "One process; CPU seconds are those of all its threads, one of BLAS and those of "
    "the library's own; at OG17's median bandwidth. The papers' own times "
    "are of MATLAB and Python on other machines: only ratios and orders compare."
)
SERIAL = True
_DIGITS, _LARGE, _LANDMARKS, _SYNTH = "MNIST60K", "stand-in", "landmarks", "synth"
_PLAIN, _OVERSAMPLED = FAMILY[0], "kernel k-means++, l = K ln K"
_SELECTORS = (_PLAIN, LEVERAGE, SMALL_SKETCH, *CHAINS)
#: Draws of the features at least: random starts differ much in their passes.
_STARTED = 20
#: The claims that need each part.
CLAIMS_OF = {
    _DIGITS: ("CR7",),
    _LARGE: ("CR3",),
    _SYNTH: ("B1",),
    _LANDMARKS: ("O3", "O6", "O10"),
}
_RANK, _SIZES, _WIDE = 100, (20, 60, 100), "ujiindoorloc"
#: digits, their rows, rows of the stand-in, tables of landmarks, table of features
_GRIDS = {
    "full": ("mnist", 60_000, 200_000, OG17, "synth"),
    "quick": ("mnist", 60_000, 60_000, QUICK, "synth"),
    "smoke": ("digits", 1_500, 2_000, ("small_groups",), "digits"),
}
#: The paper's limits: 36 cores for 6 minutes and 8.1 million rows, 4 cores for one.
_CORE_SECONDS, _ROWS, _LAPTOP_SECONDS = 36 * 360, 8_100_000, 4 * 60
_CPU = "log CPU / all features"


def cells(grid: str, repeats: int) -> list[Cell]:
    digits, rows, large, tables, features = _GRIDS[grid]
    settings: list[tuple[str, str, int]] = [
        (_DIGITS, digits, rows),
        (_LARGE, digits, large),
        (_SYNTH, features, 0),
        *((_LANDMARKS, name, _RANK) for name in tables),
    ]
    return [
        {"part": part, "dataset": name, "n": n, "repeat": repeat}
        for repeat in range(max(repeats, _STARTED) if grid == "full" else repeats)
        for part, name, n in settings
        if repeat < repeats or part == _SYNTH
    ]


def run(cell: Cell, context: Context) -> list[Row]:
    return {
        _DIGITS: _time_digits,
        _LARGE: _time_stand_in,
        _SYNTH: _time_sketches,
        _LANDMARKS: _time_landmarks,
    }[cell["part"]](cell, context)


def _time_digits(cell: Cell, context: Context) -> list[Row]:
    X = split(cell["dataset"], context.data)[0][: cell["n"]]
    return [_timed_fit(X, round(sqrt(len(X))), context.seed)]


def _time_stand_in(cell: Cell, context: Context) -> list[Row]:
    X, _ = stand_in(cell, context, "shifts")
    return [_timed_fit(X, min(400, len(X) // 4), context.seed)]


def _timed_fit(X: Array, m: int, seed: int) -> Row:
    start = time.process_time()
    NystromKMeans(10, n_landmarks=m, n_init=3, random_state=seed).fit(X)
    return {"method": f"m = {m}", "seconds": time.process_time() - start}


def _time_sketches(cell: Cell, context: Context) -> list[Row]:
    data = datasets.load(cell["dataset"], context.data)
    methods = [name for name in SKETCHES if name != "Laplacian scores"]
    sizes = [r for r in _SIZES if r <= data.X.shape[1]]
    settings = [(FULL, 0), *((name, r) for name in methods for r in sizes)]
    rows = []
    for start in STARTS:
        for method, r in settings:
            begun = time.process_time()
            sketched_kmeans(data.X, data.n_classes, method, r, context.seed, start)
            seconds = time.process_time() - begun
            row = {"method": method, "r": r, "start": start, "seconds": seconds}
            rows.append(row)
    return rows


def _time_landmarks(cell: Cell, context: Context) -> list[Row]:
    name, K = cell["dataset"], cell["n"]
    X, gamma = table_of(name, context.data), median_bandwidth(name, context.data)
    selectors = {**PAPER_STRATEGIES, SMALL_SKETCH: Leverage(sketch_size=K)}
    settings = {method: (selectors[method], K) for method in _SELECTORS}
    settings[_OVERSAMPLED] = PAPER_STRATEGIES[_PLAIN], ceil(K * log(K))
    rows = []
    for method, (selector, size) in settings.items():
        start = time.process_time()
        select_landmarks(X, size, selector, gamma=gamma, random_state=context.seed)
        row = {"method": method, "seconds": time.process_time() - start}
        if cell["repeat"] == 0:
            kernel = CountedRBF(gamma)
            CountedRBF.values = 0
            select_landmarks(
                X, size, selector, kernel=kernel, random_state=context.seed
            )
            row["evaluations"] = CountedRBF.values
        rows.append(row)
    return rows


class CountedRBF(Kernel):
    """The rbf kernel, which counts its values in the class: kernels are cloned.

    >>> CountedRBF.values = 0
    >>> CountedRBF(0.5)(np.zeros((3, 2)), np.zeros((4, 2))).shape, CountedRBF.values
    ((3, 4), 12)
    """

    nonnegative = True
    constant_diagonal = 1.0
    values = 0

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def against(self, Z: Array, dtype: npt.DTypeLike, workers: Any = None) -> Any:
        columns = RBF(self.gamma).against(Z, dtype, workers)

        def counted(block: Array, out: Array | None = None) -> Array:
            CountedRBF.values += block.shape[0] * Z.shape[0]
            return columns(block, out)

        return counted

    def diagonal(self, X: Array) -> Array:
        return np.ones(X.shape[0])


def figure(table: pd.DataFrame) -> Figure:
    mine = table[table.part == _LANDMARKS]
    names = list(dict.fromkeys(mine.dataset))
    drawing, axes = panels(2, 2, (4.6, 3.4))
    for axis, value in zip(axes, ("seconds", "evaluations"), strict=True):
        for method in (*_SELECTORS, _OVERSAMPLED):
            ours = mine[mine.method == method].assign(
                place=lambda rows: rows.dataset.map(names.index)
            )
            look = strategy_style(method, linestyle="none", markersize=5)
            draw_bars(axis, ours.dropna(subset=[value]), "place", value, **look)
            axis.containers[-1].set_label(method)
        axis.set_xticks(range(len(names)), names)
        axis.set_yscale("log")
        axis.tick_params(axis="x", rotation=60)
        axis.set_ylabel(f"{value} of the selection", fontsize=8)
    legend(drawing, axes[0], 3)
    return drawing


def summary(table: pd.DataFrame) -> pd.DataFrame:
    means = table.groupby(["part", "method"], sort=False)[["seconds", "evaluations"]]
    found = means.mean()
    found.index = [f"{part}, {method}" for part, method in found.index]
    starts = table[table.part == _SYNTH].groupby(["start", "method"], sort=False)
    if "random" in starts.groups or table.start.nunique() > 1:
        wide = starts.seconds.mean().unstack(0)
        for start in wide:
            for method, seconds in wide[start].items():
                found.loc[f"{_SYNTH}, {method}, {start} starts", "seconds"] = seconds
        found = found.drop(index=[f"{_SYNTH}, {method}" for method in wide.index])
    return found


def claims(table: pd.DataFrame) -> list[Evidence]:
    seconds = dict(iter(table.groupby("part")))
    return [
        *_digit_claims(seconds[_DIGITS], seconds[_LARGE]),
        *_landmark_claims(seconds[_LANDMARKS]),
        _sketch_claim(seconds[_SYNTH]),
    ]


def _digit_claims(digits: pd.DataFrame, large: pd.DataFrame) -> list[Evidence]:
    rows = int(large.n.iloc[0])
    paper = float(_CORE_SECONDS)
    scaled = large.seconds * (_ROWS / rows)
    name = f"CPU seconds for 8.1 million rows, in proportion from {rows:,}"
    part = over_draws(name, scaled, (-inf, paper), paper=paper, can_fail=False)
    laptop = over_draws(
        f"CPU seconds, {digits.method.iloc[0]}",
        digits.seconds,
        (-inf, _LAPTOP_SECONDS),
        paper=float(_LAPTOP_SECONDS),
        can_fail=False,
    )
    note = "one fit; the paper's minute may be that of its experiments"
    return [Evidence("CR3", [part]), Evidence("CR7", [laptop], note)]


def _landmark_claims(table: pd.DataFrame) -> list[Evidence]:
    table = table.assign(log_seconds=np.log2(table.seconds.clip(lower=1e-4)))
    wide = by_draw(table, ["dataset", "method"], "log_seconds")
    tables = tuple(dict.fromkeys(name for name, _ in wide.columns))
    narrow = [name for name in tables if name != _WIDE]

    def gap(method: str, base: str, names: Sequence[str] = tables) -> pd.Series:
        kept = wide[[pair for pair in wide.columns if pair[0] in names]]
        ours, other = (kept.xs(name, axis=1, level=1) for name in (method, base))
        return (ours - other).mean(axis=1)

    counts = table.pivot_table(
        index="method", columns="dataset", values="evaluations", sort=False
    )
    ratios = np.exp(np.log(counts / counts.loc[_PLAIN]).mean(axis=1))
    words = ", ".join(f"{name} {ratios[name]:.1f}" for name in ratios.index)
    short, long = (gap(name, _PLAIN) for name in CHAINS)
    chain = over_draws(f"log₂ CPU ratio, {CHAINS[1]}", long, (np.log2(3.0), inf))
    against = {
        sketch: over_draws("", gap(CHAINS[1], sketch), (0.0, inf))
        for sketch in (LEVERAGE, SMALL_SKETCH)
    }
    as_dear = ", ".join(
        f"{2.0**part.estimate:.2f} times that of {sketch} (log₂ {part.estimate:.3f} "
        f"[{part.low:.3f}, {part.high:.3f}])"
        for sketch, part in against.items()
    )

    def same_time(sketch: str) -> list[Part]:
        found = [
            over_draws(
                f"log₂ CPU, {sketch} / k-means++, other tables",
                gap(sketch, _PLAIN, narrow),
                (-1.0, 1.0),
            )
        ]
        if _WIDE in tables:
            slower = gap(sketch, _PLAIN, [_WIDE])
            found.append(over_draws(f"the same on {_WIDE}", slower, (-inf, 0.0)))
        return found

    small = same_time(SMALL_SKETCH)
    more = gap(_OVERSAMPLED, _PLAIN)
    return [
        Evidence(
            "O3",
            [chain],
            f"log₂ CPU ratio of 1,000 steps {short.mean():.2f}; kernel evaluations "
            f"over those of k-means++: {words}; CPU time of 10,000 steps: {as_dear}",
        ),
        Evidence(
            "O6",
            same_time(LEVERAGE),
            "a sketch of K ln K rows, as everywhere here; the paper does not state its "
            "size, and none reproduces both this and O2, which the larger one favours. "
            f"{'; '.join(map(str, small))}",
            small,
            lambda finding: f"sketch of K ln K rows; {finding.earlier} with K",
        ),
        Evidence("O10", [over_draws("log₂ CPU, K ln K / K", more, (-inf, 1.0))]),
    ]


def _sketch_claim(table: pd.DataFrame) -> Evidence:
    """Return how much faster each method is than all features, for both starts."""
    parts, before = [], []
    for start, mine in table.groupby("start", sort=False):
        wide = np.log(by_draw(mine, ["method", "r"], "seconds"))
        found = [
            over_draws(
                f"{_CPU}, {method}, {start} starts",
                wide[method].mean(axis=1) - wide[FULL][0],
                (-inf, 0.0),
            )
            for method in dict.fromkeys(mine.method)
            if method != FULL
        ]
        # The paper's k-means starts at random rows.
        (parts if start == STARTS[1] else before).extend(found)
    words = "; ".join(str(part) for part in before)
    return Evidence("B1", parts, f"from k-means++ {words}", before, _who_is_slower)


def _who_is_slower(finding: Finding) -> str:
    """Say which sketches of B1 are slower than all features, and by how much."""
    ratios = {
        part.name.split(", ", 1)[1].removesuffix(f", {STARTS[1]} starts"): np.exp(
            part.estimate
        )
        for part in finding.parts
        if part.name.startswith(_CPU)
    }
    slow = [name for name, ratio in ratios.items() if ratio > 1.0]
    fast = sorted(1.0 / ratio for ratio in ratios.values() if ratio <= 1.0)
    if not slow or not fast:
        return ""
    worst = max(ratios.values())
    return (
        f"by {' and '.join(slow)} alone, {worst:.1f} times slower at r ≥ "
        f"{min(_SIZES)}; the other {len(fast)} are {fast[0]:.0f} to {fast[-1]:.0f} "
        "times faster"
    )
