"""OG17 §5, App. B: rank K from l = K, K ln K and K ln n landmarks."""

from __future__ import annotations

from math import ceil, log

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments import datasets
from experiments.approximation import (
    approximations,
    geometric_mean,
    lifts,
    median_bandwidth,
)
from experiments.claims import Finding, judged
from experiments.datasets import OG17
from experiments.figures import legend, panels, style
from experiments.grid import Context
from experiments.methods import FAMILY, LEVERAGE, PAPER_STRATEGIES
from experiments.store import Cell, Row

TITLE = "Rank 100 from l landmarks (OG17 §5, App. B)"
REDUCED = (
    "12 of 13 datasets; the median bandwidth instead of ten; without K-DPP chains and "
    "Lloyd refinement, whose time grows most with l; errors are "
    "measured as over the bandwidths."
)
_METHODS = ("uniform", LEVERAGE[0], *FAMILY[:2])
_SIZES = ("K", "K ln K", "K ln n")
#: Lifts whose ratio is closer to 1 than this are about the same.
_ABOUT = 0.1


def cells(smoke: bool, repeats: int | None) -> list[Cell]:
    names = ("small_groups",) if smoke else OG17
    return [
        {"dataset": name, "rank": 20 if smoke else 100, "size": size, "repeat": repeat}
        for name in names
        for repeat in range(repeats or (2 if smoke else 3))
        for size in _SIZES
    ]


def run(cell: Cell, context: Context) -> list[Row]:
    name, rank = cell["dataset"], cell["rank"]
    n = len(datasets.load(name, context.data).X)
    size = {"K": rank, "K ln K": rank * log(rank), "K ln n": rank * log(n)}
    chosen = {method: PAPER_STRATEGIES[method] for method in _METHODS}
    return approximations(
        name,
        context.data,
        median_bandwidth(name, context.data),
        chosen,
        ceil(size[cell["size"]]),
        rank,
        context.seed,
    )


def figure(table: pd.DataFrame) -> Figure:
    found = lifts(table, ["dataset", "size"])
    drawing, axes = panels(2, 2, (5.0, 3.2))
    means = table.groupby(["size", "method"])["error"].apply(geometric_mean)
    for position, method in enumerate(_METHODS):
        mine = found[found.method == method].groupby("size")["lift"].median()
        look = style(position) | {"label": method}
        axes[0].plot(_SIZES, [mine[size] for size in _SIZES], **look)
        axes[1].plot(_SIZES, [means[size, method] for size in _SIZES], **look)
    axes[0].set_ylabel("lift, median over the datasets", fontsize=7)
    axes[1].set_ylabel("relative error, geometric mean", fontsize=7)
    axes[1].set_yscale("log")
    for axis in axes:
        axis.set_xlabel("landmarks l", fontsize=7)
    legend(drawing, axes[0])
    return drawing


def summary(table: pd.DataFrame) -> pd.DataFrame:
    found = lifts(table, ["dataset", "size"])
    wide = found.pivot_table(
        index="method", columns="size", values=["lift", "error"], aggfunc=geometric_mean
    )
    wide.columns = [f"mean {measure}, l = {size}" for measure, size in wide.columns]
    return wide


def claims(table: pd.DataFrame) -> list[Finding]:
    found = lifts(table, ["dataset", "size"])
    parts, words = [], []
    for method in FAMILY[:2]:
        mine = found[found.method == method]
        lift = mine.pivot(index="dataset", columns="size", values="lift")
        error = mine.pivot(index="dataset", columns="size", values="error")
        ratio = lift["K ln n"] / lift["K ln K"]
        close = int((np.abs(np.log(ratio)) <= np.log1p(_ABOUT)).sum())
        first = float((error["K"] / error["K ln K"]).median())
        falls = error["K ln K"] / error["K ln n"]
        same = int((np.abs(np.log(falls)) <= np.log1p(_ABOUT)).sum())
        parts += [same > len(falls) / 2, close > len(ratio) / 2]
        words.append(
            f"{method}: errors within {_ABOUT:.0%} of each other on {same} of "
            f"{len(ratio)} datasets (they fall {first:.2f}-fold from K to K ln K, and "
            f"{falls.median():.2f}-fold from K ln K to K ln n, medians), lifts over as "
            f"many uniform landmarks on {close} (median ratio {ratio.median():.2f})"
        )
    return [Finding("O5", judged(parts), "; ".join(words))]
