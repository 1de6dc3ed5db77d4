"""The plot of a certificate: what was proved after how many seconds."""

from __future__ import annotations

from matplotlib.axes import Axes

from sketchmeans.diagnostics import Certificate
from sketchmeans.report.drawing import LIGHT, Theme, draw_line, prepare_axes


def plot_certificate_path(
    found: Certificate, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw the lower bound over seconds, below the cost.

    A dotted line is the part that is certain, where the rest holds at a confidence.

    Parameters
    ----------
    found : Certificate
        By the method "semidefinite".
    ax : Axes, optional
    theme : Theme
    """
    if found.path is None:
        raise ValueError(
            f"found.method={found.method!r} should be 'semidefinite': no other bound "
            "improves over time."
        )
    ax = prepare_axes(ax, theme)
    seconds, certain, likely = found.path.T
    draw_line(ax, seconds, likely, theme)
    if found.confidence < 1.0:
        ax.plot(seconds, certain, color=theme.muted, linestyle=":", label="certain")
    ax.axhline(found.cost, color=theme.warm, linewidth=1.2, label="cost found")
    ax.legend(frameon=False, fontsize=9, labelcolor=theme.ink)
    ax.set(xlabel="Seconds", ylabel="Proved lower bound of the cost")
    return ax
