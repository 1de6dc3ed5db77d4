"""Colours of the figures and of the page, for light and for dark surroundings."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Shapes of the points: clusters beyond the colours differ in shape.
MARKERS = ("o", "^", "s", "D", "v", "P")
#: The same shapes in text.
GLYPHS = ("●", "▲", "■", "◆", "▼", "✚")


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
        One colour a cluster, over and over; people who do not tell red from green can
        tell them apart (after Okabe and Ito).
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


LIGHT = Theme(
    ink="#1c2430",
    muted="#5b6676",
    line="#dfe4ea",
    surface="#ffffff",
    accent="#2f6f9f",
    warm="#c4520a",
    palette=(
        "#0072b2",
        "#d55e00",
        "#009e73",
        "#b8589a",
        "#e69f00",
        "#56b4e9",
        "#6b7280",
        "#8c7a00",
    ),
    low="#2166ac",
    middle="#f6f7f8",
    high="#c4520a",
)

DARK = Theme(
    ink="#e8ecf1",
    muted="#a3adba",
    line="#343c47",
    surface="#1b2027",
    accent="#6fb3e0",
    warm="#f0853d",
    palette=(
        "#4fa3dd",
        "#f0853d",
        "#2fc49a",
        "#e39ac3",
        "#f2b63c",
        "#9bd7f7",
        "#9ca3af",
        "#d9c94a",
    ),
    low="#5fa8e6",
    middle="#262d36",
    high="#f0853d",
)


def darkened(text: str) -> str:
    """Return a picture in text, drawn in `LIGHT`, with the colours of `DARK`."""
    named = [name for name in vars(LIGHT) if name != "palette"]
    swaps = {getattr(LIGHT, name): getattr(DARK, name) for name in named}
    swaps |= dict(zip(LIGHT.palette, DARK.palette, strict=True))
    return re.sub("|".join(swaps), lambda found: swaps[found[0]], text)


def shape_number(cluster: int) -> int:
    """Return the number of a cluster's shape, in `MARKERS` and in `GLYPHS`."""
    return cluster // len(LIGHT.palette) % len(MARKERS)
