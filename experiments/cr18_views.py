"""How the digits of CR18 are drawn and summed up."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.data import Array
from experiments.figures import draw_band, draw_bars, panels, plain_ticks, style

REFERENCE, CURVE, NMI, LINEAR = "reference", "curve", "nmi", "linear"
#: The paper's NMI at m = 400, and those of Wang et al. at m = 1,600 that it quotes.
PAPER_NMI, _QUOTED = 0.405, {"Wang et al.": 0.406, "Wang et al., RLS and PCA": 0.423}


#: Excess, as a share of the cost, at which a curve looks flat.
LOOKS_FLAT = 0.01


def complete(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the columns of all parts, run or not."""
    columns = ("anchor", "base", "nmi", "nmi_minibatch")
    return table.assign(**{name: np.nan for name in columns if name not in table})


def with_base(table: pd.DataFrame) -> pd.DataFrame:
    """Return the curves with the cost of the reference.

    That is the anchor of the curve of all its rows.
    """
    found = table[table.part == REFERENCE].cost_test
    base = float(found.iloc[0]) if len(found) else np.nan
    curves = table[table.part == CURVE]
    return curves.assign(base=base, anchor=curves.anchor.fillna(base))


def limit_of(n: Array, anchors: Array, power: float = 1.0) -> float:
    """Return the cost of anchors at infinite n, if it falls as ``n^−power`` to it.

    The reference is a sample, too, and has an excess of its own.
    """
    return float(np.polyfit(n**-power, anchors, 1, w=np.sqrt(n))[1])


def limit(curves: pd.DataFrame) -> float:
    """Return the cost of the anchors at infinite n, as they are linear in 1/n."""
    anchors = curves.groupby("n").anchor.mean()
    return limit_of(anchors.index.to_numpy(float), anchors.to_numpy())


def figure(table: pd.DataFrame) -> Figure:
    drawing, axes = panels(4, 2, (4.2, 2.9))
    table = complete(table)
    fits = table[table.nmi.notna()]
    _draw_curves(axes[0], with_base(table))
    groups = {"MNIST" if part == NMI else part: mine for part, mine in _parts(fits)}
    for position, (label, mine) in enumerate(groups.items()):
        look = style(5 + position) | {"label": f"{label}, n = {mine.n.iloc[0]:,}"}
        draw_bars(axes[1], mine, "m", "cost_test", **look)
        _draw_scores(axes[2 if label == "MNIST" else 3], mine, position, look)
    for axis in axes[1:3]:
        if "MNIST" in groups:
            root = sqrt(groups["MNIST"].n.iloc[0])
            axis.axvline(root, color="grey", lw=0.8, ls=":", label="√n of MNIST")
    marks = {"CR18, 8 million": (400, PAPER_NMI)}
    marks |= {name: (1_600, value) for name, value in _QUOTED.items()}
    for (label, point), marker in zip(marks.items(), "*Px", strict=True):
        look = {"color": "black", "marker": marker, "markersize": 7, "linestyle": ""}
        axes[3].plot(*([value] for value in point), **look, label=label)
    names = (
        "cost on new digits (Figs. 1, 2)",
        "NMI (Fig. 1); number: draws",
        "NMI (Fig. 2); number: draws",
    )
    for axis, name in zip(axes[1:], names, strict=True):
        axis.set(xscale="log", xlabel="landmarks m", ylabel=name)
        plain_ticks(axis)
    # Room for the legends, away from points and bars.
    axes[2].set_ylim(top=axes[2].get_ylim()[1] + 0.02)
    axes[3].set_ylim(bottom=axes[3].get_ylim()[0] - 0.04)
    places = ("upper right", "upper center", "lower center")
    for axis, columns, place in zip(axes[1:], (1, 3, 2), places, strict=True):
        axis.legend(fontsize=6, frameon=False, ncols=columns, loc=place)
    return drawing


def _draw_scores(
    axis: Axes, mine: pd.DataFrame, position: int, look: dict[str, Any]
) -> None:
    """Draw NMI with a bar and the number of draws at each m, and that by mini-batch.

    Sizes have different numbers of draws, which a band would join.
    """
    # Side by side, so that bars of two groups can be told apart.
    mine = mine.assign(place=mine.m * 1.03**position)
    draw_bars(axis, mine, "place", "nmi", **look)
    for place, scores in mine.groupby("place").nmi:
        text = {"textcoords": "offset points", "xytext": (4, 3), "fontsize": 5}
        axis.annotate(f"{len(scores)}", (place, scores.mean()), **text)
    solver = mine.dropna(subset=["nmi_minibatch"])
    if len(solver):
        hollow = {"marker": "D", "mfc": "white", "linestyle": "none"}
        hollow |= {"label": f"the same, mini-batch ({len(solver)})"}
        draw_bars(axis, solver, "place", "nmi_minibatch", **(look | hollow))


def _parts(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(str(part), mine) for part, mine in table.groupby("part", sort=False)]


def _draw_curves(axis: Axes, curves: pd.DataFrame) -> None:
    """Draw the Nyström excess of each n, a line for its statistical one, and √n."""
    least = limit(curves) if curves.n.nunique() > 1 else np.nan
    for position, (n, mine) in enumerate(curves.groupby("n")):
        mine = mine.assign(excess=mine.cost_test - mine.anchor)
        look = style(position)
        draw_band(axis, mine, "m", "excess", **look, label=f"n = {n:,}")
        level = mine.anchor.mean() - least
        axis.axhline(level, color=look["color"], lw=0.8, ls=":")
        axis.plot([sqrt(n)], [level], marker="*", color=look["color"], markersize=8)
    share = curves.anchor.mean() * LOOKS_FLAT
    axis.axhline(
        share, color="grey", lw=1.0, ls="--", label=f"{LOOKS_FLAT:.0%} of the cost"
    )
    axis.set(xscale="log", yscale="log", xlabel="landmarks m")
    axis.set_ylabel("Nyström excess\n(dotted: statistical, star: claimed)", fontsize=8)
    axis.legend(fontsize=6, frameon=False)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return NMI, and what the curves have at √n and at n/4."""
    table = complete(table)
    curves = with_base(table)
    curves = curves.assign(
        nystrom=curves.cost_test - curves.anchor,
        statistical=curves.anchor - (limit(curves) if len(curves) else np.nan),
    )
    roots = curves[curves.m == np.sqrt(curves.n).round()]
    largest = curves[curves.m == curves.groupby("n").m.transform("max")]
    scored = table[table.nmi.notna()]
    found = pd.concat([roots, largest, scored])
    columns = ["nystrom", "statistical", "cost_test", "nmi", "nmi_minibatch"]
    means = found.groupby(["part", "n", "m"], sort=False)[columns].mean().reset_index()
    paper = np.where(
        means.part.str.startswith("shifts") & (means.m == 400), PAPER_NMI, np.nan
    )
    return pd.DataFrame(
        {
            "Nyström excess · 10³": 1e3 * means.nystrom.to_numpy(),
            "statistical excess · 10³": 1e3 * means.statistical.to_numpy(),
            "cost on new digits": means.cost_test.to_numpy(),
            "NMI": means.nmi.to_numpy(),
            "NMI, mini-batch": means.nmi_minibatch.to_numpy(),
            "paper's NMI": paper,
        },
        index=[
            f"{row.part}, n = {row.n:,}, m = {row.m:,}" for row in means.itertuples()
        ],
    )
