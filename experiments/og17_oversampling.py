"""OG17 §5, App. B: rank K from l = K, K ln K and K ln n landmarks."""

from __future__ import annotations

from math import ceil, log

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments import datasets
from experiments.approximation import (
    Wins,
    approximations,
    bandwidths,
    geometric_mean,
    lifts,
    log_lifts,
    with_lifts,
)
from experiments.datasets import OG17
from experiments.draws import by_draw
from experiments.evidence import Evidence, Part, over_draws
from experiments.figures import draw_bars, legend, panels, plain_ticks, strategy_style
from experiments.grid import Context, shared_seed
from experiments.methods import FAMILY, LEVERAGE, PAPER_STRATEGIES
from experiments.store import Cell, Row

TITLE = "Rank 100 from l landmarks (OG17 §5, App. B)"
REDUCED = (
    "12 of 13 datasets; two of the ten bandwidths, in the middle; without K-DPP "
    "chains, restarts and Lloyd refinement, and leverage scores with l = K ln K alone, "
    "as their time grows most with l; errors are measured as over the bandwidths."
)
_PLAIN = FAMILY[0]
_RIVALS = ("uniform", LEVERAGE)
_METHODS = (*_RIVALS, _PLAIN)
_SIZES = ("K", "K ln K", "K ln n")
_LOOKS = dict(zip(_SIZES, ((":", "o"), ("-", "s"), ("--", "^")), strict=True))
#: Repeats whose cells follow each other, and log lifts that are as good.
_BLOCK, _TIE = 5, 0.01
#: datasets, bandwidths, K
_GRIDS = {
    "full": (OG17, (3, 6), 100),
    "quick": (("parkinsons", "cpu_act", "cal_housing"), (5,), 100),
    "smoke": (("small_groups",), (5,), 20),
}


def cells(grid: str, repeats: int) -> list[Cell]:
    names, chosen, rank = _GRIDS[grid]
    return [
        {
            "dataset": name,
            "bandwidth": bandwidth,
            "rank": rank,
            "size": size,
            "repeat": repeat,
        }
        for first in range(0, repeats, _BLOCK)
        for bandwidth in chosen
        for name in names
        for repeat in range(first, min(first + _BLOCK, repeats))
        for size in _SIZES
    ]


def run(cell: Cell, context: Context) -> list[Row]:
    name, rank = cell["dataset"], cell["rank"]
    n = len(datasets.load(name, context.data).X)
    size = {"K": rank, "K ln K": rank * log(rank), "K ln n": rank * log(n)}
    chosen = {
        method: PAPER_STRATEGIES[method]
        for method in _METHODS
        if method != LEVERAGE or cell["size"] == "K ln K"
    }
    return approximations(
        name,
        context.data,
        bandwidths(name, context.data)[cell["bandwidth"]],
        chosen,
        ceil(size[cell["size"]]),
        rank,
        # The same landmarks first, whatever their number.
        shared_seed(cell, "size"),
    )


def figure(table: pd.DataFrame) -> Figure:
    found = with_lifts(table, ["bandwidth", "size"])
    names = list(dict.fromkeys(table.dataset))
    drawing, axes = panels(len(names), min(4, len(names)))
    curves = [(_PLAIN, size) for size in _SIZES] + [(LEVERAGE, "K ln K")]
    for axis, name in zip(axes, names, strict=True):
        for position, (method, size) in enumerate(curves):
            kept = (found.dataset == name) & (found.method == method)
            mine = found[kept & (found["size"] == size)]
            mine = mine.assign(place=2.0 * mine.gamma * 1.03**position)
            line, marker = _LOOKS[size]
            look = strategy_style(method, linestyle=line, marker=marker)
            look |= {"label": f"{method}, l = {size}"}
            if len(mine):
                draw_bars(axis, mine, "place", "lift", **look)
        axis.axhline(1.0, color="grey", lw=0.8)
        axis.set(xscale="log", yscale="log")
        plain_ticks(axis)
        axis.set_title(name, fontsize=8)
        axis.set_xlabel("bandwidth γ", fontsize=7)
        axis.set_ylabel("lift", fontsize=7)
    legend(drawing, axes[0])
    return drawing


def summary(table: pd.DataFrame) -> pd.DataFrame:
    found = lifts(table, ["dataset", "bandwidth", "size"])
    wide = found.pivot_table(
        index="method", columns="size", values=["lift", "error"], aggfunc=geometric_mean
    )
    wide.columns = [f"mean {measure}, l = {size}" for measure, size in wide.columns]
    return wide


def claims(table: pd.DataFrame) -> list[Evidence]:
    sizes = {
        size: log_lifts(table[table["size"] == size], ["bandwidth"]) for size in _SIZES
    }
    plain = {
        size: by_draw(found[found.method == _PLAIN], "dataset", "log_lift").mean(axis=1)
        for size, found in sizes.items()
    }
    gap = (plain["K ln n"] - plain["K ln K"]).dropna()
    wide = by_draw(sizes["K ln K"], ["dataset", "method"], "log_lift")
    wins = Wins(list(wide.columns), _PLAIN, _RIVALS, _TIE)

    def on_all(found: Wins) -> Part:
        return over_draws(
            "share of datasets with the best lift, l = K ln K",
            wide.to_numpy(),
            (1.0, 1.0),
            found.share,
            paper=1.0,
            margin=found.least_margin,
        )

    margins = pd.Series(
        wins.margins(wide.to_numpy()), dict.fromkeys(name for name, _ in wide.columns)
    )
    words = ", ".join(f"{name} {value:+.2f}" for name, value in margins.items())
    errors = np.log(table.groupby(["method", "size"]).error.apply(geometric_mean))
    changes = {
        method: errors[method, "K ln n"] - errors[method, "K ln K"]
        for method in (_PLAIN, "uniform")
    }
    return [
        Evidence(
            "O5",
            [over_draws("log lift, K ln n − K ln K", gap, (-0.05, 0.05))],
            "the log error changes by "
            + ", ".join(f"{value:+.2f} ({name})" for name, value in changes.items())
            + ": the lift falls as uniform landmarks catch up",
        ),
        Evidence(
            "O9",
            [on_all(wins)],
            f"log lift less the better of uniform and leverage landmarks: {words}",
            [on_all(Wins(list(wide.columns), _PLAIN, _RIVALS))],
        ),
    ]
