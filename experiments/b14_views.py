"""How the sketches of B14 are drawn and summed up."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from experiments.figures import draw_band, legend, panels, style
from experiments.methods import FULL, POLISHED, SKETCHES, STARTS

#: Features of the table; 0 stands for all.
_MIDDLE = 20


def figure(table: pd.DataFrame) -> Figure:
    table = table[(table.start == STARTS[0]) & (table.r >= 0)]
    names = list(dict.fromkeys(table.dataset))
    drawing, axes = panels(3 * len(names), len(names), (2.7, 2.2))
    measures = ("seconds", "objective", "accuracy")
    methods = (*SKETCHES, POLISHED)
    for column, name in enumerate(names):
        mine = table[table.dataset == name]
        for row, measure in enumerate(measures):
            axis = axes[row * len(names) + column]
            for position, method in enumerate(methods):
                curve = mine[(mine.method == method) & (mine.r > 0)]
                look = style(position + 1) | {"label": method}
                draw_band(axis, curve, "r", measure, **look)
            full = mine[mine.method == FULL][measure].mean()
            axis.axhline(full, color="black", lw=1, label=FULL)
            words = "seconds, k-means++ starts" if measure == "seconds" else measure
            axis.set_ylabel(words, fontsize=7)
            if measure == "seconds" or (name, measure) == ("synth", "objective"):
                axis.set_yscale("log")
        axes[column].set_title(name, fontsize=8)
        axes[2 * len(names) + column].set_xlabel("features r", fontsize=7)
    legend(drawing, axes[0])
    return drawing


def summary(table: pd.DataFrame) -> pd.DataFrame:
    middle = table[table.r.isin([0, _MIDDLE]) & (table.start == STARTS[0])]
    wide = middle.pivot_table(
        index="method", columns="dataset", values=["objective", "accuracy"]
    )
    wide.columns = [f"{name}, {measure}" for measure, name in wide.columns]
    wide.index = [
        f"{method}, r = {_MIDDLE}" if method != FULL else method
        for method in wide.index
    ]
    return wide.sort_index(axis=1)
