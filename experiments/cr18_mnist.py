"""CR18 Figs. 1-2, Theorem 1: cost on new digits and NMI over landmarks."""

from __future__ import annotations

import time
from functools import lru_cache
from math import inf, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from benchmarks.data import Array
from experiments import datasets
from experiments.draws import by_draw, crossing, slope
from experiments.evidence import Evidence, over_draws
from experiments.figures import draw_band, panels, style
from experiments.grid import Context
from experiments.store import Cell, Row
from sketchmeans import NystromKMeans
from sketchmeans.diagnostics import normalized_mutual_info_score as nmi

TITLE = "MNIST: cost on new digits and NMI over m (CR18 Figs. 1, 2)"
REDUCED = (
    "Infinite MNIST is not to be had: MNIST digits shifted by a pixel at most take its "
    "place. Lloyd's algorithm instead of MiniBatchKMeans."
)
_K = 10
_CURVE, _NMI, _LARGE, _LINEAR = "curve", "nmi", "stand-in", "linear"
#: dataset, sizes n of the curve, rows of the reference, of NMI and of the stand-in
_GRIDS = {
    "full": ("mnist", (1_000, 2_000, 4_000, 8_000, 16_000), 60_000, 60_000, 500_000),
    "quick": ("mnist", (500, 1_000, 2_000, 4_000), 20_000, 10_000, 60_000),
    "smoke": ("digits", (100, 200, 400), 1_000, 1_000, 2_000),
}
#: Most fits of the stand-in, and what the paper has: NMI, cores times seconds, rows.
_FITS, _PAPER_NMI, _CORE_SECONDS, _ROWS = 5, 0.405, 36 * 360, 8_100_000
_LAPTOP_SECONDS = 4 * 60


def cells(grid: str, repeats: int) -> list[Cell]:
    name, sizes, reference, rows, large = _GRIDS[grid]
    settings = [(_CURVE, n, i) for n in sizes for i in range(repeats)]
    settings += [(_LINEAR, sizes[0], i) for i in range(repeats)]
    settings += [(_NMI, rows, i) for i in range(repeats)]
    settings += [(_LARGE, large, i) for i in range(min(repeats, _FITS))]
    return [
        {"dataset": name, "part": part, "n": n, "reference": reference, "repeat": i}
        for part, n, i in settings
    ]


def run(cell: Cell, context: Context) -> list[Row]:
    return _PARTS[cell["part"]](cell, context)


@lru_cache(maxsize=1)
def _split(name: str, data: Path | None) -> tuple[Array, Array, Array]:
    """Return the rows of the fit, their classes, and the rows that are held out."""
    found = datasets.load(name, data)
    assert found.y is not None
    n = 60_000 if len(found.X) == 70_000 else len(found.X) * 6 // 7
    return found.X[:n], found.y[:n], found.X[n:]


@lru_cache(maxsize=1)
def _reference(name: str, rows: int, data: Path | None) -> tuple[NystromKMeans, float]:
    """Return a fit on many rows, and its cost on those held out."""
    X, _, X_new = _split(name, data)
    model = NystromKMeans(
        _K, n_landmarks=min(2_000, rows // 20), n_init=5, random_state=0
    ).fit(X[:rows])
    return model, float(model.cost(X_new))


def _drawn(cell: Cell, context: Context) -> Array:
    X = _split(cell["dataset"], context.data)[0]
    return X[np.random.default_rng(context.seed).permutation(len(X))[: cell["n"]]]


def curve_sizes(n: int) -> Array:
    """Return numbers of landmarks from k to n/4.

    The first is the same for all n: one that grew as √n would turn every m* below it
    into support for the claim.
    """
    return np.unique(np.geomspace(_K, n / 4, 12).round().astype(int))


def _curve(cell: Cell, context: Context) -> list[Row]:
    name, rows = cell["dataset"], cell["reference"]
    model, reference = _reference(name, rows, context.data)
    X, X_new = _drawn(cell, context), _split(name, context.data)[2]

    def fit(m: int, labels: Array) -> NystromKMeans:
        return NystromKMeans(
            _K,
            gamma=model.kernel_.gamma,
            n_landmarks=int(m),
            init=labels,
            n_init=1,
            random_state=context.seed,
        ).fit(X)

    anchor = fit(len(X) // 2, model.predict(X))
    found = {"anchor": anchor.cost(X_new), "base": reference}
    return [
        {"m": m, "cost_test": fit(m, anchor.labels_).cost(X_new), **found}
        for m in curve_sizes(len(X))
    ]


def _linear(cell: Cell, context: Context) -> list[Row]:
    X_all, _, X_new = _split(cell["dataset"], context.data)
    X, m = _drawn(cell, context), round(sqrt(cell["n"]))

    def test_cost(centers: Array) -> float:
        return float(cdist(X_new, centers, "sqeuclidean").min(axis=1).mean())

    many = KMeans(_K, n_init=1, random_state=0).fit(X_all[: cell["reference"]])
    start = many.cluster_centers_
    exact = KMeans(_K, init=start, n_init=1).fit(X)
    model = NystromKMeans(
        _K,
        kernel="linear",
        n_landmarks=m,
        init=exact.labels_,
        n_init=1,
        random_state=context.seed,
    ).fit(X)
    found = {"anchor": test_cost(exact.cluster_centers_), "base": test_cost(start)}
    return [{"m": m, "cost_test": model.cost(X_new), **found}]


def _nmi(cell: Cell, context: Context) -> list[Row]:
    X, y, X_new = _split(cell["dataset"], context.data)
    X, y, root = X[: cell["n"]], y[: cell["n"]], sqrt(cell["n"])
    sizes = [max(round(factor * root), 3) for factor in (0.25, 1.0, 8.0)]
    return [_fitted(X, y, X_new, min(m, len(X)), context.seed) for m in sizes]


def _large(cell: Cell, context: Context) -> list[Row]:
    X, y, X_new = _split(cell["dataset"], context.data)
    rng = np.random.default_rng(context.seed)
    numbers = rng.integers(len(X), size=cell["n"])
    m = min(400, len(X) // 4)
    return [_fitted(shifted(X[numbers], rng), y[numbers], X_new, m, context.seed)]


def shifted(X: Array, rng: np.random.Generator) -> Array:
    """Return square images moved by −1, 0 or 1 pixel each way, as uint8.

    >>> shifted(np.eye(3).reshape(1, 9), np.random.default_rng(0)).sum() > 0
    True
    """
    side = round(sqrt(X.shape[1]))
    images = (X * (255.0 / X.max())).astype(np.uint8).reshape(-1, side, side)
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    moves, result = rng.integers(3, size=(len(X), 2)), np.empty_like(images)
    for a in range(3):
        for b in range(3):
            mine = (moves == (a, b)).all(axis=1)
            result[mine] = padded[mine, a : a + side, b : b + side]
    return result.reshape(X.shape)


def _fitted(X: Array, y: Array, X_new: Array, m: int, seed: int) -> Row:
    start = time.process_time()
    model = NystromKMeans(_K, n_landmarks=m, n_init=3, random_state=seed).fit(X)
    seconds = time.process_time() - start
    score = nmi(y, model.labels_)
    return {"m": m, "nmi": score, "cost_test": model.cost_, "seconds": seconds}


_PARTS = {_CURVE: _curve, _LINEAR: _linear, _NMI: _nmi, _LARGE: _large}


def figure(table: pd.DataFrame) -> Figure:
    drawing, axes = panels(2, 2, (4.2, 3.0))
    curves = table[table.part == _CURVE]
    for position, (n, mine) in enumerate(curves.groupby("n")):
        mine = mine.assign(excess=mine.cost_test - mine.anchor)
        draw_band(axes[0], mine, "m", "excess", **style(position), label=f"n = {n:,}")
        level = (mine.anchor - mine.base).mean()
        axes[0].axhline(level, color=style(position)["color"], lw=0.8, ls=":")
    axes[0].set(xscale="log", yscale="log", xlabel="landmarks m")
    axes[0].set_ylabel("excess over m = n/2 (dotted: statistical)", fontsize=7)
    axes[0].legend(fontsize=7, frameon=False)
    draw_band(axes[1], table[table.part == _NMI], "m", "nmi", **style(5), label="MNIST")
    large = table[table.part == _LARGE]
    axes[1].plot(large.m, large.nmi, **style(6) | {"linestyle": ""}, label="stand-in")
    axes[1].axhline(_PAPER_NMI, color="grey", lw=0.8, label="CR18, 8 million")
    axes[1].set(xscale="log", xlabel="landmarks m", ylabel="NMI")
    axes[1].legend(fontsize=7, frameon=False)
    return drawing


def summary(table: pd.DataFrame) -> pd.DataFrame:
    names = table.part + ", n = " + table.n.astype(str) + ", m = " + table.m.astype(str)
    return table.groupby(names, sort=False)[["cost_test", "nmi", "seconds"]].mean()


def claims(table: pd.DataFrame) -> list[Evidence]:
    return [
        _flattens(table[table.part == _CURVE]),
        *_scores(table[table.part == _NMI]),
        _stand_in(table[table.part == _LARGE]),
        _linear_claim(table[table.part == _LINEAR]),
    ]


def _flattens(curves: pd.DataFrame) -> Evidence:
    if curves.n.nunique() < 2:
        return Evidence("CR1", (), "needs several n")
    needed = []
    for (repeat, n), mine in curves.groupby(["repeat", "n"]):
        mine = mine.sort_values("m")
        level = float((mine.anchor - mine.base).iloc[0])
        excess = (mine.cost_test - mine.anchor).to_numpy()
        size = crossing(mine.m.to_numpy(float), excess, level)
        needed.append({"repeat": repeat, "n": n, "log_m": np.log(size)})
    wide = by_draw(pd.DataFrame(needed), "n", "log_m")
    if wide.empty or wide.shape[1] < curves.n.nunique():
        return Evidence("CR1", (), "no m of the grid has so small an excess")
    sizes = wide.columns.to_numpy(float)
    weights = slope(np.log(sizes))
    part = over_draws(
        "slope of log m* on log n",
        wide.to_numpy(),
        (0.4, 0.6),
        lambda rows: float(weights @ rows.mean(axis=0)),
        paper=0.5,
    )
    words = ", ".join(
        f"{np.exp(mean):.0f} at n = {n:,.0f} (√n = {sqrt(n):.0f})"
        for n, mean in zip(sizes, wide.mean(), strict=True)
    )
    return Evidence("CR1", [part], f"m* is {words}")


def _scores(table: pd.DataFrame) -> list[Evidence]:
    wide = by_draw(table, "m", "nmi")
    if wide.shape[1] < 3:
        return [Evidence(claim, (), "needs three sizes") for claim in ("CR2", "CR7")]
    low, root, high = (wide.iloc[:, i] for i in range(3))
    means = ", ".join(f"{mean:.3f} at m = {m}" for m, mean in wide.mean().items())
    parts = [
        over_draws("NMI(8√n) − NMI(√n)", high - root, (-0.01, 0.01)),
        over_draws("NMI(√n) − NMI(√n/4)", root - low, (0.0, inf)),
    ]
    seconds = by_draw(table, "m", "seconds").iloc[:, 1]
    fast = over_draws("CPU seconds at m = √n", seconds, (-inf, _LAPTOP_SECONDS))
    return [Evidence("CR2", parts, f"NMI {means}"), Evidence("CR7", [fast])]


def _stand_in(table: pd.DataFrame) -> Evidence:
    if table.empty:
        return Evidence("CR3", (), "needs the stand-in")
    rows = int(table.n.iloc[0])
    scaled = table.seconds * (_ROWS / rows)
    parts = [
        over_draws(
            "NMI",
            table.nmi,
            (_PAPER_NMI - 0.02, _PAPER_NMI + 0.02),
            paper=_PAPER_NMI,
        ),
        over_draws(
            "CPU seconds for 8.1 million rows",
            scaled,
            (-inf, _CORE_SECONDS),
            paper=_CORE_SECONDS,
        ),
    ]
    return Evidence("CR3", parts, f"a stand-in of {rows:,} shifted digits")


def _linear_claim(table: pd.DataFrame) -> Evidence:
    if table.empty:
        return Evidence("CR8", (), "needs its cells")
    both = table[["cost_test", "anchor", "base"]].to_numpy()

    def ratio(rows: Array) -> float:
        cost, anchor, base = rows.mean(axis=0)
        return float((cost - anchor) / (anchor - base))

    part = over_draws(
        "excess of √n landmarks / statistical excess", both, (-inf, 1.0), ratio
    )
    return Evidence("CR8", [part])
