"""How the lemmas are drawn and summed up."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.figures import panels, plain_ticks
from experiments.lemmas_claims import LADDER, SAMPLERS

#: Colours of the tables.
_TABLES = ("#000000", "#0072b2", "#d55e00")


def figure(table: pd.DataFrame) -> Figure:
    drawing, axes = panels(5, 3, (3.4, 3.0))
    lemma = table[table.part == "Lemma 2"]
    axes[0].scatter(lemma.bound, lemma.value, s=6, alpha=0.5, color="#0072b2")
    top = float(max(lemma.bound.max(), lemma.value.max()))
    axes[0].plot([0, top], [0, top], color="black", lw=0.8)
    axes[0].set(xlabel="bound of Lemma 2", ylabel="rise of the optimal cost")
    _draw_ladder(axes[1], table[table.part == "ladder"])
    axes[1].set(xscale="log", xlabel="m", ylabel="share that is γ-preserving")
    plain_ticks(axes[1])
    axes[1].set_ylim(0.0, 1.75)
    axes[1].set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
    axes[1].legend(fontsize=6, frameon=False, loc="upper left")
    seeds = table[table.part == "Prop. 3"]
    groups = list(seeds.groupby(["sampler", "m"]))
    axes[2].boxplot([part.value for _, part in groups])
    names = [f"{'H' if space != 'H_m' else 'H_m'}\nk = {k}" for (space, k), _ in groups]
    axes[2].set_xticks(range(1, len(groups) + 1), names, fontsize=7)
    axes[2].set_ylabel("mean k-means++ cost / optimum")
    _draw_shares(axes[3], table[table.part == "singular values"], "method")
    axes[3].set_ylabel("share of the bound (B14)", fontsize=8)
    _draw_shares(axes[4], table[table.part == "Theorem 4"], "dataset")
    axes[4].set_ylabel("share of the bound (OG17, Theorem 4)", fontsize=8)
    return drawing


def _draw_ladder(axis: Axes, ladder: pd.DataFrame) -> None:
    """Draw at which size which share of draws is γ-preserving.

    A draw that no size of the ladder is enough for has twice the largest, which is no
    measurement: the curve ends with an arrow.
    """
    names = list(dict.fromkeys(ladder.dataset))
    for (name, method), mine in ladder.groupby(["dataset", "method"]):
        known = np.sort(mine.value[mine.value <= LADDER[-1]])
        if not len(known):
            continue
        share = np.arange(1, len(known) + 1) / len(mine)
        missed = len(known) < len(mine)
        end = [LADDER[-1]] if missed else []
        sizes = np.concatenate([known[:1], known, end])
        share = np.concatenate([[0.0], share, share[-1:] if missed else []])
        look = {
            "color": _TABLES[names.index(name) % len(_TABLES)],
            "linestyle": "-" if method == SAMPLERS[0] else "--",
        }
        axis.step(sizes, share, where="post", label=f"{name}, {method}", **look)
        if missed:
            axis.plot(sizes[-1:], share[-1:], marker=">", color=look["color"])


def _draw_shares(axis: Axes, table: pd.DataFrame, by: str) -> None:
    """Draw which share of a bound the draws use."""
    groups = list((table.value / table.bound).groupby(table[by]))
    axis.boxplot([shares for _, shares in groups])
    names = [str(name).replace(" ", "\n", 1) for name, _ in groups]
    axis.set_xticks(range(1, len(groups) + 1), names, fontsize=6)
    axis.set_yscale("log")


def summary(table: pd.DataFrame) -> pd.DataFrame:
    budgets = table[table.part == "budgets"]
    table = table[~table.part.isin(["ladder", "budgets"])]
    share = table.assign(used=table.value / table.bound.where(table.bound > 1e-9))
    used = share.dropna(subset=["used"]).groupby(["part", "dataset"], sort=False).used
    found = used.agg(["count", "median", "max"])
    found.index = [f"{part}, {name}" for part, name in found.index]
    found.columns = ["cases", "share of the bound, median", "at the most"]
    found = found.astype({"cases": object})
    asked = budgets.pivot_table(index="method", columns="n", values="value", sort=False)
    asked.columns = [f"budget, n = {n:,}" for n in asked.columns]
    return pd.concat([found, asked])
