"""Themes, and what the plots share: axes, lines, histograms, heat maps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator, NullLocator

from sketchmeans.numerics.escape import escape_line

#: Shapes of the points, and the same shapes in text: clusters beyond the number of
#: colours differ in shape.
MARKERS, GLYPHS = ("o", "^", "s", "D", "v", "P"), ("●", "▲", "■", "◆", "▼", "✚")
#: Longest name of a feature or a class in a heat map.
_NAME_LENGTH = 18
#: Inches that a number in a heat map needs.
_NUMBER_WIDTH = 0.38


@dataclass(frozen=True)
class Theme:
    """Colours that go together.

    Attributes
    ----------
    ink, muted, line, surface : str
        Text, lesser text, grid lines, background.
    accent : str
        Bars and lines that stand for no cluster.
    warm : str
        What asks for attention.
    palette : tuple of str
        Colours of the clusters, repeated; they can be told apart by people who do not
        tell red from green (after Okabe and Ito).
    low, middle, high : str
        A scale from below to above the mean.
    """

    ink: str
    muted: str
    line: str
    surface: str
    accent: str
    warm: str
    palette: tuple[str, ...]
    low: str
    middle: str
    high: str

    def color(self, cluster: int) -> str:
        """Return the colour of a cluster."""
        return self.palette[cluster % len(self.palette)]


# fmt: off
LIGHT = Theme(
    ink="#1c2430", muted="#5b6676", line="#dfe4ea", surface="#ffffff",
    accent="#2f6f9f", warm="#c4520a",
    palette=("#0072b2", "#d55e00", "#009e73", "#b8589a",
             "#e69f00", "#56b4e9", "#6b7280", "#8c7a00"),
    low="#2166ac", middle="#f6f7f8", high="#c4520a",
)
DARK = Theme(
    ink="#e8ecf1", muted="#a3adba", line="#343c47", surface="#1b2027",
    accent="#6fb3e0", warm="#f0853d",
    palette=("#4fa3dd", "#f0853d", "#2fc49a", "#e39ac3",
             "#f2b63c", "#9bd7f7", "#9ca3af", "#d9c94a"),
    low="#5fa8e6", middle="#262d36", high="#f0853d",
)
# fmt: on


def darken(svg: str) -> str:
    """Return an SVG that was drawn in `LIGHT` with the colours of `DARK`."""
    named = [name for name in vars(LIGHT) if name != "palette"]
    swaps = {getattr(LIGHT, name): getattr(DARK, name) for name in named}
    swaps |= dict(zip(LIGHT.palette, DARK.palette, strict=True))
    return re.sub("|".join(swaps), lambda found: swaps[found[0]], svg)


def choose_shape(cluster: int) -> int:
    """Return the index of a cluster's shape in `MARKERS` and `GLYPHS`."""
    return cluster // len(LIGHT.palette) % len(MARKERS)


def prepare_axes(ax: Axes | None, theme: Theme) -> Axes:
    """Return axes in the colours of a theme; new ones if none are given."""
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
    style: Any = {"color": theme.accent, "edgecolor": theme.surface, "linewidth": 0.6}
    ax.bar(edges[:-1], counts, width=np.diff(edges), align="edge", **style)
    use_count_axis(ax)
    ax.xaxis.set_major_locator(MaxNLocator(6))


def use_count_axis(ax: Axes) -> None:
    """Use whole numbers on the vertical axis, with thousands separated."""
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def mark_value(ax: Axes, x: float, text: str, theme: Theme) -> None:
    """Draw a vertical line at x, with a text above it."""
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


def use_log_axis(ax: Axes, values: Any) -> None:
    """Use a logarithmic axis with plain numbers at the given values."""
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
    """Draw a table of numbers in colours, with the numbers where they fit."""
    columns = [shorten(escape_line(name), _NAME_LENGTH) for name in columns]
    ends = [theme.low, theme.middle, theme.high]
    if one_sided:
        ends = [theme.middle, theme.accent]
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    colors = LinearSegmentedColormap.from_list("means", ends)
    least = 0.0 if one_sided else -largest
    ax.imshow(values, cmap=colors, vmin=least, vmax=largest, aspect="auto")
    width = ax.bbox.width / ax.figure.dpi / max(len(columns), 1)
    if width > _NUMBER_WIDTH and len(rows) <= 24:
        for i, j in np.ndindex(*values.shape):
            number = values[i, j]
            text = f"{number:.0%}" if one_sided else _format_signed(number)
            strong = abs(number) > 0.55 * largest
            color = theme.surface if strong else theme.ink
            if not one_sided or number >= 0.005:
                ax.text(j, i, text, ha="center", va="center", color=color, fontsize=7.5)
    ax.set_yticks(range(len(rows)), rows, fontsize=9 if len(rows) <= 16 else 6)
    is_long = max(map(len, columns), default=0) > 3
    ax.set_xticks(
        range(len(columns)),
        columns,
        parse_math=False,  # a dollar is a dollar
        rotation=40 if is_long else 0,
        ha="right" if is_long else "center",
        rotation_mode="anchor",
        fontsize=8.5,
    )
    ax.grid(visible=False)
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(length=0)


def _format_signed(number: float) -> str:
    text = f"{number:+.1f}".replace("-", "−")
    return "0" if text in ("+0.0", "−0.0") else text


def shorten(text: str, length: int) -> str:
    """Return a text of at most this length, with an ellipsis if it was longer."""
    return text if len(text) <= length else text[: length - 1] + "…"
