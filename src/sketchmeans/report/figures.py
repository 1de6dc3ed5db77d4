"""Figures for a page: drawn twice, for light and for dark, with words and numbers."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imsave

from sketchmeans.numerics.linalg import Array
from sketchmeans.report.tables import Download
from sketchmeans.report.themes import DARK, LIGHT, Theme, darkened

#: The page's own letters, in figures too.
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
#: Inches of a figure; a phone shows it at three quarters of this width.
_WIDTH, _HEIGHT = 4.9, 3.4
#: A figure over the whole page, and the same for a phone.
_WIDE, _NARROW = 6.6, 4.0
#: What is drawn in points and not in lines gets so many dots an inch.
_DPI = 140


@dataclass(frozen=True)
class Picture:
    """A figure on the page.

    Attributes
    ----------
    title, caption, alt : str
    light, dark : str
        The picture in both themes, as links that hold it.
    narrow_light, narrow_dark : str or None
        The same for a phone, where a wide picture would be too small.
    size : tuple of int
        Width and height in pixels, for the browser to keep room.
    table : Download
        The numbers behind the picture.
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


def picture(
    draw: Callable[[Axes, Theme], Any],
    *,
    title: str,
    caption: str,
    alt: str,
    table: Download,
    height: float = _HEIGHT,
    wide: bool = False,
) -> Picture:
    """Return a figure that `draw` puts on axes, in both themes."""
    width = _WIDE if wide else _WIDTH
    size = round(96 * width), round(96 * height)
    if not wide:  # nothing but lines and letters, whose colours can be exchanged
        svg = drawn_svg(draw, LIGHT, width, height)
        light, dark = _svg_link(svg), _svg_link(darkened(svg))
        return Picture(title, caption, alt, light, dark, size, table)
    light, dark, narrow_light, narrow_dark = (
        _svg_link(drawn_svg(draw, theme, *inches))
        for inches in ((width, height), (_NARROW, 0.85 * height))
        for theme in (LIGHT, DARK)
    )
    return Picture(
        title, caption, alt, light, dark, size, table, narrow_light, narrow_dark
    )


def drawn_svg(
    draw: Callable[[Axes, Theme], Any], theme: Theme, width: float, height: float
) -> str:
    """Return a figure as text."""
    buffer = io.StringIO()
    # Letters stay letters; a fixed salt makes the same file of the same results.
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "sketchmeans"}
    with mpl.rc_context(settings), warnings.catch_warnings():
        # Names may be in any script: the browser has the letters that we lack.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
        axes = figure.add_subplot()
        draw(axes, theme)
        axes.set_facecolor("none")
        figure.savefig(
            buffer,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None},
        )
    return buffer.getvalue().replace("'DejaVu Sans'", _FONTS)


def _svg_link(text: str) -> str:
    return _link("image/svg+xml", text.encode())


def image_strip(
    rows: Array, shape: tuple[int, ...], bounds: tuple[float, float]
) -> str:
    """Return rows as images side by side, as a link that holds them.

    Parameters
    ----------
    rows : ndarray of shape (q, d)
    shape : tuple of int
        (height, width), or with 3 or 4 colours at the end.
    bounds : tuple of float
        Values that are black and white.
    """
    low, high = bounds
    scaled = np.clip((rows - low) / ((high - low) or 1.0), 0.0, 1.0)
    images = (255.0 * scaled).astype(np.uint8).reshape(len(rows), *shape)
    gap = max(1, shape[1] // 14)
    channels = 4
    strip = np.zeros((shape[0], len(rows) * (shape[1] + gap) - gap, channels), np.uint8)
    for i, image in enumerate(images):
        start = i * (shape[1] + gap)
        part = strip[:, start : start + shape[1]]
        if image.ndim == 2:
            image = image[:, :, None]
        part[:, :, :3] = image[:, :, :3]
        part[:, :, 3] = image[:, :, 3] if image.shape[2] == channels else 255
    buffer = io.BytesIO()
    imsave(buffer, strip, format="png")
    return _link("image/png", buffer.getvalue())


def _link(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
