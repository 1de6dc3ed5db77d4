"""Plots of how a fit went, and of paths over parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from sketchmeans.cluster.within import find_clusterer
from sketchmeans.diagnostics import Certificate
from sketchmeans.numerics.linalg import Array
from sketchmeans.report.drawing import (
    LIGHT,
    Theme,
    draw_line,
    mark_value,
    prepare_axes,
    use_log_axis,
)

#: Names of the columns of paths.
_PATH_NAMES = {
    "ratio": "Certified ratio",
    "stability": "Stability",
    "effective_dimension": "Effective dimension",
    "cost": "Cost on new rows",
    "lower_bound": "Lower bound of the cost",
}


def plot_cost_path(model: Any, ax: Axes | None = None, *, theme: Theme = LIGHT) -> Axes:
    """Draw the cost after each iteration over all rows.

    Costs nothing: the numbers are given.

    Parameters
    ----------
    model : fitted estimator, or array of costs
    ax : Axes, optional
    theme : Theme

    Examples
    --------
    >>> from sketchmeans.report import plot_cost_path
    >>> plot_cost_path([0.5, 0.4, 0.39]).get_ylabel()
    'Cost'
    """
    costs = getattr(find_clusterer(model), "cost_path_", model)
    costs = np.asarray(costs, dtype=np.float64)
    if costs.ndim != 1 or not len(costs):
        raise ValueError(
            f"model={model!r} should be a fitted estimator, or a list of costs."
        )
    ax = prepare_axes(ax, theme)
    draw_line(ax, np.arange(1, len(costs) + 1), costs, theme)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if len(costs) == 1:
        ax.set_xlim(0.0, 2.0)
    ax.set(xlabel="Iteration over all rows", ylabel="Cost")
    return ax


def plot_landmark_path(
    path: Any, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw what ever more landmarks leave out, and how many were chosen.

    Costs nothing: the numbers are given.

    Parameters
    ----------
    path : LandmarkPath, or NystromKMeans fitted with ``n_landmarks="auto"``
    ax : Axes, optional
    theme : Theme

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import NystromKMeans
    >>> from sketchmeans.report import plot_landmark_path
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> model = NystromKMeans(3, random_state=0).fit(X)
    >>> plot_landmark_path(model).get_xlabel()
    'Landmarks'
    """
    path = getattr(find_clusterer(path), "landmark_path_", path)
    if not hasattr(path, "residual_trace"):
        raise ValueError(
            "path should be the landmark_path_ of a model that was fitted with "
            f"n_landmarks='auto', not {path!r}."
        )
    ax = prepare_axes(ax, theme)
    draw_line(ax, path.n_landmarks, path.residual_trace, theme)
    mark_value(ax, path.chosen, f"chosen: {path.chosen:,}", theme)
    use_log_axis(ax, path.n_landmarks)
    ax.set(xlabel="Landmarks", ylabel="Left out of a row, on average")
    return ax


def plot_path(
    table: Mapping[str, Any],
    ax: Axes | None = None,
    *,
    column: str = "stability",
    chosen: float | None = None,
    theme: Theme = LIGHT,
) -> Axes:
    """Draw one column of a path over bandwidths or numbers of clusters.

    Costs nothing: the numbers are given.

    Parameters
    ----------
    table : dict of arrays or DataFrame
        What `bandwidth_path` or `cluster_count_path` of `sketchmeans.diagnostics`
        returned.
    ax : Axes, optional
    column : {"stability", "ratio", "effective_dimension", "cost", "lower_bound"}
        The effective dimension is in paths over bandwidths only.
    chosen : float, optional
        A bandwidth or number of clusters to mark.
    theme : Theme

    Examples
    --------
    >>> from sketchmeans.report import plot_path
    >>> table = {"n_clusters": [2, 3, 4], "stability": [0.7, 0.99, 0.8]}
    >>> plot_path(table).get_xlabel()
    'Number of clusters'
    """
    over = "gamma" if "gamma" in table else "n_clusters"
    if over not in table:
        raise ValueError(
            f"table with {list(table)} should have a column 'gamma' or 'n_clusters'."
        )
    if column not in _PATH_NAMES or column not in table:
        known = [name for name in _PATH_NAMES if name in table]
        raise ValueError(f"column={column!r} should be one of {known}.")
    x = np.asarray(table[over], dtype=np.float64)
    y = np.asarray(table[column], dtype=np.float64)
    finite = np.isfinite(y)
    order = np.argsort(x[finite], kind="stable")
    ax = prepare_axes(ax, theme)
    draw_line(ax, x[finite][order], y[finite][order], theme)
    if column == "stability":
        _draw_intervals(ax, table, x, y, theme)
    if chosen is not None and x.min() <= chosen <= x.max():
        mark_value(ax, chosen, "this fit", theme)
    if over == "gamma":
        use_log_axis(ax, x)
        ax.set(xlabel="Bandwidth gamma", ylabel=_PATH_NAMES[column])
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        ax.set(xlabel="Number of clusters", ylabel=_PATH_NAMES[column])
    return ax


def _draw_intervals(
    ax: Axes, table: Mapping[str, Any], x: Array, y: Array, theme: Theme
) -> None:
    """Draw error bars of the stability, and the stability on noise, where known."""
    if "noise_stability" in table:
        noise = np.asarray(table["noise_stability"], dtype=np.float64)
        ax.plot(x, noise, color=theme.muted, linestyle=":", label="on noise")
        ax.legend(frameon=False, fontsize=9, labelcolor=theme.ink)
    if "stability_low" in table:
        ends = [np.asarray(table[f"stability_{end}"]) for end in ("low", "high")]
        bars = np.maximum([y - ends[0], ends[1] - y], 0.0)
        ax.errorbar(x, y, bars, fmt="none", ecolor=theme.accent, capsize=4, alpha=0.8)


def plot_certificate_path(
    found: Certificate, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw the lower bound over seconds, below the cost.

    A dotted line is the part that is certain, where the rest holds at a confidence.

    Costs nothing: the numbers are given.

    Parameters
    ----------
    found : Certificate
        By the method "semidefinite".
    ax : Axes, optional
    theme : Theme

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import NystromKMeans
    >>> from sketchmeans import diagnostics, report
    >>> X = load_iris().data
    >>> found = diagnostics.certificate(NystromKMeans(3, random_state=0).fit(X), X)
    >>> report.plot_certificate_path(found).get_xlabel()
    'Seconds'
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
