"""Themes, what the plots share, and what a page links to: figures, images, tables."""

from __future__ import annotations

import base64
import csv
import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.ticker import MaxNLocator, NullLocator

from sketchmeans.numerics.escape import escape_line
from sketchmeans.numerics.linalg import Array

#: Shapes of the points, and the same shapes in text: clusters beyond the number of
#: colours differ in shape.
MARKERS, GLYPHS = ("o", "^", "s", "D", "v", "P"), ("●", "▲", "■", "◆", "▼", "✚")
#: Longest name of a feature or a class in a heat map.
_NAME_LENGTH = 18
#: Inches that a number in a heat map needs.
_NUMBER_WIDTH = 0.38


#: A plot that needs nothing but ``ax`` and ``theme``.
Plot = Callable[..., Axes]

#: Fonts of the page, in figures too.
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
#: Inches of a figure; a phone shows it at three quarters of this width.
_WIDTH, _HEIGHT = 4.9, 3.4
#: Width of a figure over the whole page, and of the same for a phone.
_WIDE, _NARROW = 6.6, 4.0
_SVG = "image/svg+xml"
#: Dots per inch of what is not drawn in lines.
_DPI = 140
#: A spreadsheet takes text that starts like this for a formula, and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True)
class Theme:
    """Colours that go together.

    Costs nothing.

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

    Examples
    --------
    >>> from dataclasses import replace
    >>> from sketchmeans.report import LIGHT, Theme
    >>> mine = replace(LIGHT, accent="#800080")
    >>> isinstance(mine, Theme), mine.color(0)
    (True, '#0072b2')
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
    size = 9 if len(rows) <= 16 else 6
    ax.set_yticks(range(len(rows)), rows, parse_math=False, fontsize=size)
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


@dataclass(frozen=True)
class Download:
    """A file in a link: its name, and its content as a data URI."""

    name: str
    uri: str


@dataclass(frozen=True)
class Picture:
    """A figure on the page, for light and dark; links hold the pictures.

    Wide pictures have a second, narrow form for phones.  The size is in pixels, so
    that the browser can reserve the place; the table has the numbers behind it.
    """

    title: str
    caption: str
    alt: str
    light: str
    dark: str
    size: tuple[int, int]
    table: Download
    narrow_light: str | None = None
    narrow_dark: str | None = None

    @property
    def wide(self) -> bool:
        """Whether it takes the whole width of the page."""
        return self.narrow_light is not None


def make_picture(
    plot: Plot,
    title: str,
    caption: str,
    alt: str,
    table: Download,
    *,
    height: float = _HEIGHT,
    wide: bool = False,
) -> Picture:
    """Return a picture of a plot in both themes."""
    width = _WIDE if wide else _WIDTH
    size = round(96 * width), round(96 * height)
    if not wide:  # only lines and letters, whose colours can be exchanged
        svg = draw_svg(plot, LIGHT, width, height)
        light, dark = (_make_link(_SVG, text.encode()) for text in (svg, darken(svg)))
        return Picture(title, caption, alt, light, dark, size, table)
    light, dark, *narrow = (
        _make_link(_SVG, draw_svg(plot, theme, *inches).encode())
        for inches in ((width, height), (_NARROW, 0.85 * height))
        for theme in (LIGHT, DARK)
    )
    return Picture(title, caption, alt, light, dark, size, table, *narrow)


def draw_svg(plot: Plot, theme: Theme, width: float, height: float) -> str:
    """Return a plot as the text of an SVG."""
    buffer = io.StringIO()
    # Letters stay letters; a fixed salt makes the file the same for the same results.
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "sketchmeans"}
    metadata = {"Date": None, "Creator": None}
    with mpl.rc_context(settings), warnings.catch_warnings():
        # Names may be in any script: the browser has the letters that we lack.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
        axes = plot(ax=figure.add_subplot(), theme=theme)
        axes.set_facecolor("none")
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    return buffer.getvalue().replace("'DejaVu Sans'", _FONTS)


def draw_image_strip(
    rows: Array, shape: tuple[int, ...], bounds: tuple[float, float]
) -> str:
    """Return rows as images side by side, in one link.

    The shape of an image is (height, width), or with 3 or 4 colours at the end; bounds
    are the values that are black and white.
    """
    low, high = bounds
    scaled = np.clip((rows - low) / ((high - low) or 1.0), 0.0, 1.0)
    images = (255.0 * scaled).astype(np.uint8).reshape(len(rows), *shape)
    if images.ndim == 3:
        images = images[:, :, :, None]
    gap = max(1, shape[1] // 14)
    strip = np.zeros((shape[0], len(rows) * (shape[1] + gap) - gap, 4), np.uint8)
    for i, image in enumerate(images):
        part = strip[:, i * (shape[1] + gap) :][:, : shape[1]]
        part[:, :, :3] = image[:, :, :3]
        part[:, :, 3] = image[:, :, 3] if image.shape[2] == 4 else 255
    buffer = io.BytesIO()
    imsave(buffer, strip, format="png")
    return _make_link("image/png", buffer.getvalue())


def make_csv(name: str, header: Sequence[str], *columns: Any) -> Download:
    """Return columns of a table as a CSV file in a link.

    Text that a spreadsheet would take for a formula gets an apostrophe in front.

    Examples
    --------
    >>> found = make_csv("sizes.csv", ["cluster", "rows"], [0, 1], [12, 7])
    >>> found.uri[:21]
    'data:text/csv;charset'
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    for row in (header, *zip(*columns, strict=True)):
        writer.writerow([format_cell(value) for value in row])
    # A name may contain half of a surrogate pair, which no file can.
    text = buffer.getvalue().encode(errors="replace")
    return Download(name, _make_link("text/csv;charset=utf-8", text))


def format_cell(value: Any) -> Any:
    """Return a value for a cell: a formula gets an apostrophe, and numbers 7 digits."""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return f"{value:.7g}" if value == value else ""
    return value


def _make_link(kind: str, data: bytes) -> str:
    """Return data as a link that holds them."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
