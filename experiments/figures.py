"""What the figures share: panels, colours, small files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FuncFormatter,
    Locator,
    LogLocator,
    MaxNLocator,
    NullFormatter,
)
from PIL import Image
from scipy import stats

#: Colours that differ in lightness, too.
COLOURS = (
    "#000000",
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#b8a800",
    "#0072b2",
    "#d55e00",
    "#cc79a7",
    "#7f7f7f",
    "#8c510a",
    "#5e3c99",
    "#66a61e",
    "#e7298a",
)
#: One look for each landmark strategy in all figures: colour, marker, line.  Variants
#: of a strategy share its colour.
_STRATEGIES = {
    "uniform": ("#7f7f7f", "x", "-"),
    "leverage, uniform sketch": ("#0072b2", "o", "-"),
    "leverage, sketch of K rows": ("#0072b2", "v", ":"),
    "ridge leverage": ("#56b4e9", "P", "-"),
    "k-dpp, 1,000 steps": ("#cc79a7", "^", "-"),
    "k-dpp, 10,000 steps": ("#882255", "s", "-"),
    "k-dpp, 1,000 steps from k-means++": ("#9467bd", "D", "-"),
    "k-means": ("#009e73", "v", "-"),
    "kernel k-means++": ("#000000", "o", "-"),
    "kernel k-means++, l = K ln K": ("#000000", "*", ":"),
    "kernel k-means++, restarts": ("#e69f00", "^", "-"),
    "kernel k-means++, restarts, Lloyd": ("#e31a1c", "s", "-"),
    "rpcholesky": ("#8c510a", "D", "-"),
}
_PALETTE = 96
#: Draws from which on there is a band.
_FEWEST = 5


def style(position: int) -> dict[str, Any]:
    """Return how the line of a method looks."""
    return {
        "color": COLOURS[position % len(COLOURS)],
        "linestyle": ("-", "--", ":")[position // len(COLOURS) % 3],
        "linewidth": 1.3,
        "marker": "o^sDv"[position % 5],
        "markersize": 3,
    }


def strategy_style(method: str, **changes: Any) -> dict[str, Any]:
    """Return how a landmark strategy looks, in whatever figure."""
    colour, marker, line = _STRATEGIES[method]
    look = {"color": colour, "marker": marker, "linestyle": line}
    return look | {"linewidth": 1.3, "markersize": 3} | changes


def panels(
    n: int, columns: int, size: tuple[float, float] = (3.0, 2.4)
) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure with n panels in rows of `columns`."""
    n_rows = -(-n // columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, columns, squeeze=False).ravel()
    for spare in axes[n:]:
        spare.set_axis_off()
    for axis in axes[:n]:
        axis.tick_params(labelsize=7)
        axis.tick_params(which="minor", labelsize=5)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes[:n])


def plain_ticks(axis: Axes) -> None:
    """Write the numbers of logarithmic axes out, without powers of ten."""
    for scale, line in (
        (axis.get_xscale(), axis.xaxis),
        (axis.get_yscale(), axis.yaxis),
    ):
        if scale == "log":
            low, high = line.get_view_interval()
            line.set_major_locator(_locator(high / low))
            line.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            line.set_minor_formatter(NullFormatter())


def _locator(span: float) -> Locator:
    """Return where a logarithmic axis is marked: at two places and more, and few."""
    if span <= 4.0:
        return MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])
    if span > 1e3:
        return LogLocator()
    return LogLocator(subs=(1.0, 3.0) if span > 30.0 else (1.0, 2.0, 5.0))


def band(values: pd.Series) -> tuple[float, float]:
    """Return the mean, and half of its 95% interval by Student's law.

    Fewer than five draws have none: it would be wider than the panel.
    """
    n = len(values)
    if n < _FEWEST:
        return float(values.mean()), 0.0
    reach = float(stats.t.isf(0.025, n - 1)) * float(values.std()) / np.sqrt(n)
    return float(values.mean()), reach


def draw_band(axis: Axes, table: pd.DataFrame, x: str, y: str, **look: Any) -> None:
    """Draw the mean of y over x with its 95% band."""
    groups = table.groupby(x)[y]
    points = groups.apply(lambda values: pd.Series(band(values), ["mean", "reach"]))
    points = points.unstack()
    axis.plot(points.index, points["mean"], **look)
    low, high = points["mean"] - points["reach"], points["mean"] + points["reach"]
    axis.fill_between(points.index, low, high, color=look.get("color"), alpha=0.2, lw=0)


def draw_bars(axis: Axes, table: pd.DataFrame, x: str, y: str, **look: Any) -> None:
    """Draw the mean of y over x with a bar for its 95% interval."""
    groups = [(place, *band(values)) for place, values in table.groupby(x)[y]]
    places, means, reaches = zip(*groups, strict=True)
    axis.errorbar(places, means, reaches, elinewidth=0.8, **look)


def legend(figure: Figure, axis: Axes, columns: int = 4) -> None:
    """Put the legend of one panel below all of them."""
    handles, names = axis.get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        loc="outside lower center",
        ncols=columns,
        fontsize=7,
        frameon=False,
    )


def save(figure: Figure, path: Path) -> None:
    """Write a PNG file of few colours, which is a third of the usual size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    image = Image.open(buffer).convert("RGB")
    # Rare colours count: a single star has one of its own.
    few = image.quantize(
        _PALETTE, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    )
    few.save(path, optimize=True)
