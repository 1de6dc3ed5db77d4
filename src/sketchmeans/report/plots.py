"""Plots of clusters, fits and paths.

Every function draws on the axes `ax` that it is given, or on those of a new figure, in
the colours of `theme`, `LIGHT` or `DARK`, and returns the axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from sketchmeans.diagnostics import Agreement, Certificate, ClusterSummary, RowMap
from sketchmeans.numerics.linalg import Array
from sketchmeans.report.drawing import (
    LIGHT,
    MARKERS,
    Theme,
    choose_shape,
    draw_heat,
    draw_histogram,
    draw_line,
    mark_value,
    prepare_axes,
    use_count_axis,
    use_log_axis,
)

#: Clusters that get a bar or a row of their own, and columns of a heat map.
MOST_BARS, MOST_COLUMNS = 40, 24
#: Up to how many clusters all are numbered on a map; beyond, only the largest few.
_MOST_NUMBERS, _FEW_NUMBERS = 30, 12
#: Names of the columns of paths.
_PATH_NAMES = {
    "ratio": "Certified ratio",
    "stability": "Stability",
    "effective_dimension": "Effective dimension",
    "cost": "Cost on new rows",
    "lower_bound": "Lower bound of the cost",
}


def plot_map(row_map: RowMap, ax: Axes | None = None, *, theme: Theme = LIGHT) -> Axes:
    """Draw a sample of rows along two principal axes, coloured by cluster."""
    ax = prepare_axes(ax, theme)
    flat = not row_map.shares[1] > 0.0
    # Rows on a line would cover each other: they are scattered across it.
    scatter = np.random.default_rng(0).uniform(-1.0, 1.0, len(row_map.points))
    x, y = row_map.points[:, 0], scatter if flat else row_map.points[:, 1]
    for cluster in np.unique(row_map.labels).tolist():
        own = row_map.labels == cluster
        ax.scatter(
            x[own],
            y[own],
            s=11,
            marker=MARKERS[choose_shape(cluster)],
            color=theme.color(cluster),
            alpha=0.75,
            linewidths=0,
            rasterized=True,
        )
    if row_map.landmarks is not None:
        places = row_map.landmarks
        ax.scatter(
            places[:, 0],
            np.zeros(len(places)) if flat else places[:, 1],
            s=20,
            marker="o",
            facecolors="none",
            edgecolors=theme.ink,
            alpha=0.85,
            linewidths=0.7,
            rasterized=True,
            label="landmarks",
        )
    _number_clusters(ax, row_map, flat, theme)
    names = [
        f"{which} axis ({share:.0%} of the variance)"
        for which, share in zip(("First", "Second"), row_map.shares, strict=True)
    ]
    ax.set(xlabel=names[0], ylabel="" if flat else names[1])
    if flat:
        ax.yaxis.set_major_locator(NullLocator())
    ax.margins(0.04)
    return ax


def _number_clusters(ax: Axes, row_map: RowMap, flat: bool, theme: Theme) -> None:
    sizes = np.bincount(row_map.labels, minlength=len(row_map.centers))
    most = _FEW_NUMBERS if len(sizes) > _MOST_NUMBERS else _MOST_NUMBERS
    outline = patheffects.withStroke(linewidth=3.5, foreground=theme.surface)
    for cluster in np.argsort(-sizes, kind="stable")[:most].tolist():
        if sizes[cluster]:
            x, y = row_map.centers[cluster]
            ax.annotate(
                str(cluster),
                (x, 0.0 if flat else y),
                ha="center",
                va="center",
                color=theme.ink,
                fontsize=11,
                fontweight="bold",
                path_effects=[outline],
            )


def plot_sizes(
    summary: ClusterSummary, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw the number of rows of each cluster, the largest first."""
    ax = prepare_axes(ax, theme)
    order = np.argsort(-summary.sizes, kind="stable")
    n, sizes = len(order), summary.sizes[order]
    many = n > MOST_BARS
    if many:  # of bars so narrow only the edges would be visible
        ax.stairs(sizes, np.arange(n + 1) - 0.5, fill=True, color=theme.accent)
    else:
        colors = [theme.color(j) for j in order.tolist()]
        ax.bar(np.arange(n), sizes, width=0.72, color=colors)
    dashed = (0, (4, 3))
    ax.axhline(summary.n_rows / n, color=theme.muted, linewidth=1, linestyle=dashed)
    if many:
        ax.set_xlabel("Clusters, from the largest to the smallest")
    else:
        fontsize = 9 if n < 16 else 6
        ax.set_xticks(np.arange(n), [str(j) for j in order], fontsize=fontsize)
        ax.set_xlabel("Cluster")
        ax.tick_params(axis="x", length=0)
    ax.set_ylabel("Rows")
    ax.set_xlim(-0.7, n - 0.3)
    use_count_axis(ax)
    ax.grid(visible=False, axis="x")
    return ax


def plot_margins(
    summary: ClusterSummary, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw how clearly rows belong to their cluster.

    The margin is 1 less the distance to the own centre as a share of that to the next
    one: 0 on a border, 1 at a centre.
    """
    ax = prepare_axes(ax, theme)
    draw_histogram(ax, *summary.margin_histogram(), theme)
    ax.set(xlabel="Margin: 0 on a border between clusters", ylabel="Rows")
    return ax


def plot_residual(
    row_map: RowMap, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw how much of each row the landmarks leave out.

    Parameters
    ----------
    row_map : RowMap
        Of a model with landmarks.
    ax : Axes, optional
    theme : Theme
    """
    if row_map.residuals is None:
        raise ValueError("row_map should be of a model that has landmarks.")
    ax = prepare_axes(ax, theme)
    draw_histogram(ax, *np.histogram(row_map.residuals, bins=25), theme)
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
    ax.set_xlabel("Share of a row that no mixture of landmarks reaches")
    ax.set_ylabel("Rows of the sample")
    return ax


def plot_features(
    summary: ClusterSummary,
    ax: Axes | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    theme: Theme = LIGHT,
) -> Axes:
    """Draw how far the means of the clusters are from that of all rows.

    In standard deviations, for the features that differ most: at most 24 of these, and
    the 40 largest clusters.
    """
    if summary.features is None:
        raise ValueError("summary should be of rows that have features.")
    columns = choose_columns(summary)
    clusters = np.argsort(-summary.sizes, kind="stable")[:MOST_BARS]
    names = [f"x{j}" if feature_names is None else feature_names[j] for j in columns]
    values = summary.features.differences[np.ix_(clusters, columns)]
    ax = prepare_axes(ax, theme)
    draw_heat(ax, values, [str(j) for j in clusters], list(map(str, names)), theme)
    ax.set_ylabel("Cluster")
    return ax


def choose_columns(summary: ClusterSummary) -> Array:
    """Return the features that differ most among the clusters, in their order."""
    assert summary.features is not None
    strongest = summary.features.rank_distinguishing(MOST_COLUMNS)
    return np.sort(strongest) if len(strongest) else np.zeros(1, np.intp)


def plot_agreement(
    agreement: Agreement, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw which share of each class is in each cluster.

    Of the 24 largest classes and the 40 largest clusters.
    """
    counts = agreement.counts
    classes = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_COLUMNS])
    clusters = np.argsort(-counts.sum(axis=0), kind="stable")[:MOST_BARS]
    shares = (counts / counts.sum(axis=1, keepdims=True))[np.ix_(classes, clusters)].T
    ax = prepare_axes(ax, theme)
    names = [agreement.classes[i] for i in classes]
    draw_heat(ax, shares, [str(j) for j in clusters], names, theme, one_sided=True)
    ax.set(xlabel="Class", ylabel="Cluster")
    return ax


def plot_cost_path(model: Any, ax: Axes | None = None, *, theme: Theme = LIGHT) -> Axes:
    """Draw the cost after each iteration over all rows.

    Parameters
    ----------
    model : fitted estimator, or array of costs
    ax : Axes, optional
    theme : Theme
    """
    costs = np.asarray(getattr(model, "cost_path_", model), dtype=np.float64)
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

    Parameters
    ----------
    path : LandmarkPath, or NystromKMeans fitted with ``n_landmarks="auto"``
    ax : Axes, optional
    theme : Theme
    """
    path = getattr(path, "landmark_path_", path)
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
