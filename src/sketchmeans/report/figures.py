"""Parts of a page that are links with their content: figures, images, CSV files."""

from __future__ import annotations

import base64
import csv
import io
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imsave

from sketchmeans.numerics.linalg import Array
from sketchmeans.report.drawing import DARK, LIGHT, Theme, darken

#: A plot that needs nothing but ``ax`` and ``theme``.
Plot = Callable[..., Axes]

#: Fonts of the page, in figures too.
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
#: Inches of a figure; a phone shows it at three quarters of this width.
_WIDTH, _HEIGHT = 4.9, 3.4
#: Width of a figure over the whole page, and of the same for a phone.
_WIDE, _NARROW = 6.6, 4.0
#: Dots per inch of what is not drawn in lines.
_DPI = 140
#: A spreadsheet takes text that starts like this for a formula, and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


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
        light, dark = _link_svg(svg), _link_svg(darken(svg))
        return Picture(title, caption, alt, light, dark, size, table)
    light, dark, *narrow = (
        _link_svg(draw_svg(plot, theme, *inches))
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


def make_csv(
    name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Download:
    """Return a table as a CSV file in a link.

    Text that a spreadsheet would take for a formula gets an apostrophe in front.

    Examples
    --------
    >>> found = make_csv("sizes.csv", ["cluster", "rows"], [[0, 12], [1, 7]])
    >>> found.uri[:21]
    'data:text/csv;charset'
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerows([_format_cell(value) for value in row] for row in (header, *rows))
    # A name may contain half of a surrogate pair, which no file can.
    text = buffer.getvalue().encode(errors="replace")
    return Download(name, _make_link("text/csv;charset=utf-8", text))


def _format_cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return f"{value:.7g}" if value == value else ""
    return value


def _link_svg(svg: str) -> str:
    return _make_link("image/svg+xml", svg.encode())


def _make_link(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
