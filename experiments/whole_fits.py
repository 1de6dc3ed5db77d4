"""Beyond the papers: cost of whole fits over CPU time, by the choice of landmarks."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments import datasets
from experiments.evidence import Evidence
from experiments.figures import draw_band, legend, panels, plain_ticks, strategy_style
from experiments.grid import Context, shared_seed
from experiments.store import Cell, Row
from sketchmeans import NystromKMeans
from sketchmeans.landmarks import (
    Centroids,
    KernelKMeansPlusPlus,
    LandmarkSelector,
    RandomCholesky,
    Uniform,
)

TITLE = "Cost of whole fits over CPU time, by landmarks (beyond the papers)"
REDUCED = (
    "No paper asks which landmarks cluster best in a given time. k = 10, best of 3 "
    "starts, rbf kernel with the mean bandwidth, m = 50 to 800; CPU seconds of the "
    "whole fit, landmarks included. It has no verdict."
)
SERIAL = True
_METHODS: dict[str, LandmarkSelector] = {
    "uniform": Uniform(),
    "kernel k-means++": KernelKMeansPlusPlus(1),
    "rpcholesky": RandomCholesky(),
    "k-means": Centroids(),
}
#: Landmarks of uniform fits whose times the others are given.
_AT = (200, 400, 800)
#: Tables, numbers of landmarks, most rows.
_GRIDS = {
    "full": (
        ("elevators", "cal_housing", "pol", "kin8nm", "mnist"),
        (50, 100, 200, 400, 800),
        20_000,
    ),
    "quick": (("cal_housing", "pol"), (50, 200, 800), 20_000),
    "smoke": (("small_groups",), (20, 50), 400),
}
#: Most fits of a setting.
_FITS = 5


def cells(grid: str, repeats: int) -> list[Cell]:
    names, sizes, rows = _GRIDS[grid]
    return [
        {"dataset": name, "m": m, "rows": rows, "repeat": repeat}
        for repeat in range(min(repeats, _FITS))
        for name in names
        for m in sizes
    ]


def run(cell: Cell, context: Context) -> list[Row]:
    X = datasets.load(cell["dataset"], context.data).X[: cell["rows"]]
    rows = []
    for method, selector in _METHODS.items():
        model = NystromKMeans(
            10,
            landmarks=selector,
            n_landmarks=cell["m"],
            n_init=3,
            random_state=shared_seed(cell, "m"),
        )
        start = time.process_time()
        model.fit(X)
        seconds = time.process_time() - start
        rows.append({"method": method, "seconds": seconds, "cost": float(model.cost_)})
    return rows


def _with_excess(table: pd.DataFrame) -> pd.DataFrame:
    """Return the costs over the least mean cost of their dataset, less 1."""
    means = table.groupby(["dataset", "method", "m"]).cost.mean()
    least = means.groupby("dataset").min()
    return table.assign(excess=table.cost / table.dataset.map(least) - 1.0)


def figure(table: pd.DataFrame) -> Figure:
    found = _with_excess(table)
    found["time"] = found.groupby(["dataset", "method", "m"]).seconds.transform("mean")
    names = list(dict.fromkeys(table.dataset))
    drawing, axes = panels(len(names), min(3, len(names)))
    for axis, name in zip(axes, names, strict=True):
        for method in _METHODS:
            mine = found[(found.dataset == name) & (found.method == method)]
            mine = mine.assign(excess=100.0 * mine.excess)
            look = strategy_style(method, label=method)
            draw_band(axis, mine, "time", "excess", **look)
        axis.set(xscale="log")
        plain_ticks(axis)
        axis.set_title(name, fontsize=8)
        axis.set_xlabel("CPU seconds of the whole fit", fontsize=7)
        axis.set_ylabel("cost over the least, %", fontsize=7)
    legend(drawing, axes[0])
    return drawing


def at_equal_time(table: pd.DataFrame) -> pd.DataFrame:
    """Return the excess of each method in the time that uniform landmarks take.

    One row for each dataset and number of uniform landmarks; log-linear in time between
    the sizes that were run, and NaN where the time is below that of the least.
    """
    points = _with_excess(table).groupby(["dataset", "method", "m"])
    means = points[["seconds", "excess"]].mean()
    rows = {}
    for name in dict.fromkeys(table.dataset):
        for m in [m for m in _AT if m in set(table.m)]:
            given = np.log(means.seconds[name, "uniform", m])
            row = {"CPU seconds": np.exp(given)}
            for method in _METHODS:
                mine = means.loc[name, method].sort_values("seconds")
                times, values = np.log(mine.seconds), mine.excess
                row[method] = 100.0 * np.interp(given, times, values, left=np.nan)
            rows[f"{name}, uniform m = {m}"] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def beyond_noise(table: pd.DataFrame) -> list[str]:
    """Return the settings whose best is ahead by more than the spread of fits.

    That is the standard deviation of the cost of one fit of a dataset, pooled over
    landmarks and their numbers.  Landmarks that cannot be had in the time have lost.
    """
    found = at_equal_time(table).drop(columns="CPU seconds")
    costs = _with_excess(table)
    variances = costs.groupby(["dataset", "method", "m"]).excess.var()
    spread = 100.0 * np.sqrt(variances.groupby("dataset").mean())
    clear = []
    for name, row in found.iterrows():
        first, second, *_ = np.sort(row.fillna(np.inf).to_numpy(float))
        if second - first > spread[str(name).split(",")[0]]:
            clear.append(str(name))
    return clear


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return the excess in percent at equal time."""
    return at_equal_time(table)


def claims(table: pd.DataFrame) -> list[Evidence]:
    return []
