"""What the pictures share: axes in the colours of a theme, lines, bars, heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator, NullLocator

from sketchmeans.numerics.escape import escape_line
from sketchmeans.report.themes import LIGHT, Theme

#: Longest name of a feature or a class.
_NAME_LENGTH = 18
#: Inches that a number in a heat map takes.
_ROOM = 0.38


def prepared(ax: Axes | None, theme: Theme) -> Axes:
    """Return axes in the colours of a theme; new ones where none are given."""
    if ax is None:
        from matplotlib import pyplot as plt

        ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")[1]
    for side, spine in ax.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(theme.muted)
    ax.tick_params(colors=theme.muted, labelcolor=theme.ink, labelsize=9, length=3)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.label.set(color=theme.muted, fontsize=9.5)
    ax.yaxis.label.set(color=theme.muted, fontsize=9.5)
    ax.grid(visible=True, axis="y", color=theme.line, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_facecolor("none" if theme is not LIGHT else theme.surface)
    return ax


def draw_line(ax: Axes, x: Any, y: Any, theme: Theme) -> None:
    """Draw a line, with points where there are few."""
    size = 5 if len(x) <= 40 else 0
    ax.plot(x, y, color=theme.accent, linewidth=2, marker="o", markersize=size)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.4g}")
    ax.margins(x=0.05, y=0.1)


def draw_histogram(ax: Axes, counts: Any, edges: Any, theme: Theme) -> None:
    """Draw bars between edges."""
    ax.bar(
        edges[:-1],
        counts,
        width=np.diff(edges),
        align="edge",
        color=theme.accent,
        edgecolor=theme.surface,
        linewidth=0.6,
    )
    count_axis(ax)
    ax.xaxis.set_major_locator(MaxNLocator(6))


def count_axis(ax: Axes) -> None:
    """Let the vertical axis count: whole numbers, thousands apart."""
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def mark(ax: Axes, x: float, text: str, theme: Theme) -> None:
    """Draw a line across at x, with a text above it."""
    ax.axvline(x, color=theme.warm, linewidth=1.2, linestyle=(0, (4, 3)))
    ax.annotate(
        text,
        (x, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        color=theme.warm,
        fontsize=9,
    )


def log_axis(ax: Axes, values: Any) -> None:
    """Use a logarithmic axis with plain numbers at the values there are."""
    values = np.asarray(values, dtype=np.float64)
    if len(np.unique(values)) == 1:  # one value has no range of its own
        ax.set_xlim(values[0] / 2.0, values[0] * 2.0)
    ax.set_xscale("log")
    step = -(-len(values) // 6)
    ax.set_xticks(values[::step], [f"{v:,.3g}" for v in values[::step]])
    ax.xaxis.set_minor_locator(NullLocator())


def draw_heat(
    ax: Axes,
    values: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    theme: Theme,
    *,
    one_sided: bool = False,
) -> None:
    """Draw a table of numbers in colours, with the numbers where there is room."""
    columns = [_shortened(escape_line(name)) for name in columns]
    ends = (
        [theme.middle, theme.accent]
        if one_sided
        else [theme.low, theme.middle, theme.high]
    )
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    ax.imshow(
        values,
        cmap=LinearSegmentedColormap.from_list("means", ends),
        vmin=0.0 if one_sided else -largest,
        vmax=largest,
        aspect="auto",
    )
    inches = ax.bbox.width / ax.figure.dpi
    room = inches / max(len(columns), 1)
    if room > _ROOM and len(rows) <= 24:
        for i, j in np.ndindex(*values.shape):
            number = values[i, j]
            text = f"{number:.0%}" if one_sided else _signed(number)
            strong = abs(number) > 0.55 * largest
            color = theme.surface if strong else theme.ink
            if not one_sided or number >= 0.005:
                ax.text(j, i, text, ha="center", va="center", color=color, fontsize=7.5)
    ax.set_yticks(range(len(rows)), rows, fontsize=9 if len(rows) <= 16 else 6)
    ax.set_xticks(
        range(len(columns)),
        columns,
        parse_math=False,  # a dollar is a dollar
        rotation=40 if max(map(len, columns), default=0) > 3 else 0,
        ha="right" if max(map(len, columns), default=0) > 3 else "center",
        rotation_mode="anchor",
        fontsize=8.5,
    )
    ax.grid(visible=False)
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(length=0)


def _signed(number: float) -> str:
    text = f"{number:+.1f}".replace("-", "−")
    return "0" if text in ("+0.0", "−0.0") else text


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"
