"""The plot of a spectrum: how many clusters a graph falls into."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from sketchmeans.cluster.within import find_clusterer
from sketchmeans.report.drawing import LIGHT, Theme, prepare_axes


def plot_eigenvalues(
    model: Any, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw the smallest eigenvalues of the graph of a `SpectralKMeans`.

    Those of the clusters are filled: for clear clusters they are near zero, and the
    next one is not.

    Costs nothing: the numbers are given.

    Parameters
    ----------
    model : SpectralKMeans
        Fitted.
    ax : Axes, optional
    theme : Theme

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sketchmeans import SpectralKMeans
    >>> from sketchmeans.report import plot_eigenvalues
    >>> X, _ = make_moons(300, noise=0.05, random_state=0)
    >>> plot_eigenvalues(SpectralKMeans(2, random_state=0).fit(X)).get_xlabel()
    'Number'
    """
    model = find_clusterer(model)
    values = getattr(model, "eigenvalues_", None)
    if values is None:
        raise ValueError(f"model={model!r} should be a fitted SpectralKMeans.")
    ax = prepare_axes(ax, theme)
    numbers, k = np.arange(1, len(values) + 1), model.n_clusters_
    own = numbers <= k
    ax.vlines(numbers, 0.0, values, color=theme.line, linewidth=1.2)
    ax.plot(numbers[own], values[own], "o", color=theme.accent, label=f"{k:,} clusters")
    (rest,) = ax.plot(numbers[~own], values[~own], "o", color=theme.warm, label="next")
    rest.set_markerfacecolor(theme.surface)
    ax.legend(frameon=False, fontsize=9, labelcolor=theme.ink)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="Number", ylabel="Eigenvalue of the Laplacian")
    return ax
