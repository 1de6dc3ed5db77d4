"""The look of the pictures in the gallery."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl

from sketchmeans.report import LIGHT


def apply(gallery_conf: dict[str, Any], name: str) -> None:
    """Set colours and sizes before an example runs; sphinx-gallery calls this."""
    mpl.rcParams.update(
        {
            "axes.edgecolor": LIGHT.line,
            "axes.labelcolor": LIGHT.muted,
            "axes.prop_cycle": mpl.cycler(color=[LIGHT.color(i) for i in range(8)]),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": LIGHT.ink,
            "axes.titlesize": 11,
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "legend.frameon": False,
            "savefig.dpi": 130,
            "text.color": LIGHT.ink,
            "xtick.color": LIGHT.muted,
            "ytick.color": LIGHT.muted,
        }
    )
