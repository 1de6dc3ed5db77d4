"""OG17 Fig. 3: lift as the rank grows, at the median bandwidth."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from experiments.approximation import (
    approximations,
    geometric_mean,
    lifts,
    median_bandwidth,
)
from experiments.claims import Finding, Verdict, judged
from experiments.datasets import OG17
from experiments.figures import legend, panels, style
from experiments.grid import Context
from experiments.methods import FAMILY, STRATEGIES
from experiments.store import Cell, Row

TITLE = "Lift over the rank, median bandwidth (OG17 Fig. 3)"
REDUCED = "12 of 13 datasets; five ranks; errors are measured as over the bandwidths."
_RANKS = (5, 10, 25, 50, 100)


def cells(smoke: bool, repeats: int | None) -> list[Cell]:
    names = ("small_groups",) if smoke else OG17
    ranks = (5, 20, 40) if smoke else _RANKS
    n = repeats or (2 if smoke else 5)
    return [
        {"dataset": name, "rank": rank, "repeat": repeat}
        for name in names
        for repeat in range(n)
        for rank in ranks
    ]


def run(cell: Cell, context: Context) -> list[Row]:
    name, rank = cell["dataset"], cell["rank"]
    gamma = median_bandwidth(name, context.data)
    return approximations(
        name, context.data, gamma, STRATEGIES, rank, rank, context.seed
    )


def figure(table: pd.DataFrame) -> Figure:
    found = lifts(table, ["dataset", "rank"])
    names = list(dict.fromkeys(table.dataset))
    drawing, axes = panels(len(names), min(4, len(names)))
    methods = [method for method in STRATEGIES if method in set(found.method)]
    for axis, name in zip(axes, names, strict=True):
        for position, method in enumerate(methods):
            mine = found[(found.dataset == name) & (found.method == method)]
            axis.plot(mine["rank"], mine.lift, label=method, **style(position))
        axis.set(yscale="log")
        axis.set_title(name, fontsize=8)
        axis.set_xlabel("rank", fontsize=7)
        axis.set_ylabel("lift", fontsize=7)
    legend(drawing, axes[0])
    return drawing


def summary(table: pd.DataFrame) -> pd.DataFrame:
    found = lifts(table, ["dataset", "rank"])
    wide = found.pivot_table(
        index="method", columns="rank", values="lift", aggfunc=geometric_mean
    )
    wide.columns = [f"mean lift, rank {rank}" for rank in wide.columns]
    return wide


def claims(table: pd.DataFrame) -> list[Finding]:
    found = lifts(table, ["dataset", "rank"])
    grows, flat = {}, {}
    for method in FAMILY:
        mine = found[found.method == method]
        curves = mine.pivot(index="dataset", columns="rank", values="lift")
        trend = curves.apply(
            lambda curve: stats.spearmanr(curve.index, curve).statistic, axis=1
        )
        rises = (curves.iloc[:, -1] > curves.iloc[:, 0]) & (trend > 0.0)
        grows[method] = (int(rises.sum()), len(curves), curves.median())
        flat[method] = list(curves.index[~rises])
    low, high = min(_ranks(found)), max(_ranks(found))
    evidence = "; ".join(
        f"{method}: on {count} of {n} datasets, median lift {median[low]:.2f} at rank "
        f"{low}, {median[high]:.2f} at {high}"
        for method, (count, n, median) in grows.items()
    )
    # It holds where nearly all curves rise, in part where most do.
    shares = [count / n for count, n, _ in grows.values()]
    verdict = judged([min(shares) >= 0.75, max(shares) > 0.5])
    means = found[found.method.isin(FAMILY)].groupby("rank").lift.apply(geometric_mean)
    tried = "looked at each dataset alone; no rise: " + "; ".join(
        f"{method} on {', '.join(names) or 'none'}" for method, names in flat.items()
    )
    tried += ". Mean lift of the three over all datasets, rank by rank: "
    tried += ", ".join(f"{value:.2f}" for value in means)
    return [
        Finding(
            "O4",
            verdict,
            f"the lift rises with the rank for {evidence}",
            "" if verdict is Verdict.HOLDS else tried,
        )
    ]


def _ranks(found: pd.DataFrame) -> list[int]:
    return sorted(int(rank) for rank in found["rank"].unique())
