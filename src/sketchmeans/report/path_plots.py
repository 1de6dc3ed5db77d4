"""Pictures of paths: over passes, landmarks, bandwidths and numbers of clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from sketchmeans.report.drawing import draw_line, log_axis, mark, prepared
from sketchmeans.report.themes import LIGHT, Theme

#: What the columns of the paths are called.
_PATH_NAMES = {
    "ratio": "Certified ratio",
    "stability": "Stability",
    "effective_dimension": "Effective dimension",
    "cost": "Cost on new rows",
    "lower_bound": "Lower bound of the cost",
}


def plot_cost_path(model: Any, ax: Axes | None = None, *, theme: Theme = LIGHT) -> Axes:
    """Draw the cost after each pass over the rows.

    Parameters
    ----------
    model : fitted estimator, or array of costs
    ax : Axes, optional
        A new figure by default.
    theme : Theme

    Returns
    -------
    ax : Axes
    """
    costs = np.asarray(getattr(model, "cost_path_", model), dtype=np.float64)
    if costs.ndim != 1 or not len(costs):
        raise ValueError(
            f"model={model!r} should be a fitted estimator, or a list of costs."
        )
    ax = prepared(ax, theme)
    draw_line(ax, np.arange(1, len(costs) + 1), costs, theme)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if len(costs) == 1:
        ax.set_xlim(0.0, 2.0)
    ax.set_xlabel("Pass over all rows")
    ax.set_ylabel("Cost")
    return ax


def plot_landmark_path(
    path: Any, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw what ever more landmarks leave out, and how many were chosen.

    Parameters
    ----------
    path : LandmarkPath, or NystromKMeans fitted with ``n_landmarks="auto"``
    ax : Axes, optional
        A new figure by default.
    theme : Theme

    Returns
    -------
    ax : Axes
    """
    path = getattr(path, "landmark_path_", path)
    if not hasattr(path, "residual_trace"):
        raise ValueError(
            "path should be the landmark_path_ of a model that was fitted with "
            f"n_landmarks='auto', not {path!r}."
        )
    ax = prepared(ax, theme)
    draw_line(ax, path.n_landmarks, path.residual_trace, theme)
    mark(ax, path.chosen, f"chosen: {path.chosen:,}", theme)
    log_axis(ax, path.n_landmarks)
    ax.set_xlabel("Landmarks")
    ax.set_ylabel("Left out of a row, on average")
    return ax


def plot_bandwidth_path(
    table: Mapping[str, Any],
    ax: Axes | None = None,
    *,
    column: str = "stability",
    chosen: float | None = None,
    theme: Theme = LIGHT,
) -> Axes:
    """Draw one column of `sketchmeans.diagnostics.bandwidth_path` over bandwidths.

    Parameters
    ----------
    table : dict of arrays or DataFrame
    ax : Axes, optional
        A new figure by default.
    column : {"stability", "ratio", "effective_dimension", "cost", "lower_bound"}
    chosen : float, optional
        A bandwidth to mark.
    theme : Theme

    Returns
    -------
    ax : Axes
    """
    ax = _draw_path(table, "gamma", column, ax, theme)
    values = np.asarray(table["gamma"], dtype=np.float64)
    if chosen is not None and values.min() <= chosen <= values.max():
        mark(ax, chosen, "this fit", theme)
    log_axis(ax, values)
    ax.set_xlabel("Bandwidth gamma")
    return ax


def plot_k_path(
    table: Mapping[str, Any],
    ax: Axes | None = None,
    *,
    column: str = "stability",
    chosen: int | None = None,
    theme: Theme = LIGHT,
) -> Axes:
    """Draw one column of `sketchmeans.diagnostics.cluster_count_path` over k.

    Parameters
    ----------
    table : dict of arrays or DataFrame
    ax : Axes, optional
        A new figure by default.
    column : {"stability", "ratio", "cost", "lower_bound"}
    chosen : int, optional
        A number of clusters to mark.
    theme : Theme

    Returns
    -------
    ax : Axes
    """
    ax = _draw_path(table, "n_clusters", column, ax, theme)
    values = np.asarray(table["n_clusters"])
    if chosen is not None and values.min() <= chosen <= values.max():
        mark(ax, chosen, "this fit", theme)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlabel("Number of clusters")
    return ax


def _draw_path(
    table: Mapping[str, Any], over: str, column: str, ax: Axes | None, theme: Theme
) -> Axes:
    if over not in table:
        raise ValueError(f"table with {list(table)} should have a column {over!r}.")
    if column not in _PATH_NAMES or column not in table:
        known = [name for name in _PATH_NAMES if name in table]
        raise ValueError(f"column={column!r} should be one of {known}.")
    x = np.asarray(table[over], dtype=np.float64)
    y = np.asarray(table[column], dtype=np.float64)
    finite = np.isfinite(y)
    order = np.argsort(x[finite], kind="stable")
    ax = prepared(ax, theme)
    draw_line(ax, x[finite][order], y[finite][order], theme)
    ax.set_ylabel(_PATH_NAMES[column])
    return ax
