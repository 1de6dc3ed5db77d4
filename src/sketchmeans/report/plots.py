"""Pictures of clusters, one function each; every function returns its axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from sketchmeans.diagnostics import Agreement, ClusterSummary, RowMap
from sketchmeans.report.drawing import (
    count_axis,
    draw_heat,
    draw_histogram,
    prepared,
)
from sketchmeans.report.themes import LIGHT, MARKERS, Theme, shape_number

#: Clusters that get a bar, a row or a number of their own.
MOST_BARS, _MOST_NUMBERS = 40, 30
#: Where there are more than that, so many: the largest.
_FEW_NUMBERS = 12
#: Columns of a heat map.
MOST_COLUMNS = 24


def plot_map(row_map: RowMap, ax: Axes | None = None, *, theme: Theme = LIGHT) -> Axes:
    """Draw a sample of rows along two principal axes, coloured by cluster.

    Parameters
    ----------
    row_map : RowMap
        See `sketchmeans.diagnostics.row_map`.
    ax : Axes, optional
        A new figure by default.
    theme : Theme

    Returns
    -------
    ax : Axes
    """
    ax = prepared(ax, theme)
    flat = not row_map.shares[1] > 0.0
    # Rows on a line would cover each other: they are scattered across it.
    scatter = np.random.default_rng(0).uniform(-1.0, 1.0, len(row_map.points))
    x = row_map.points[:, 0]
    y = scatter if flat else row_map.points[:, 1]
    for cluster in np.unique(row_map.labels).tolist():
        own = row_map.labels == cluster
        ax.scatter(
            x[own],
            y[own],
            s=11,
            marker=MARKERS[shape_number(cluster)],
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
    ax.set_xlabel(_axis_name("First", row_map.shares[0]))
    ax.set_ylabel("" if flat else _axis_name("Second", row_map.shares[1]))
    if flat:
        ax.yaxis.set_major_locator(NullLocator())
    ax.margins(0.04)
    return ax


def _axis_name(which: str, share: float) -> str:
    return f"{which} axis ({share:.0%} of the variance)"


def _number_clusters(ax: Axes, row_map: RowMap, flat: bool, theme: Theme) -> None:
    sizes = np.bincount(row_map.labels, minlength=len(row_map.centers))
    most = _FEW_NUMBERS if len(sizes) > _MOST_NUMBERS else _MOST_NUMBERS
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
                path_effects=[
                    patheffects.withStroke(linewidth=3.5, foreground=theme.surface)
                ],
            )


def plot_sizes(
    summary: ClusterSummary, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw the number of rows of each cluster, the largest first.

    Parameters
    ----------
    summary : ClusterSummary
        See `sketchmeans.diagnostics.cluster_summary`.
    ax : Axes, optional
        A new figure by default.
    theme : Theme

    Returns
    -------
    ax : Axes
    """
    ax = prepared(ax, theme)
    order = np.argsort(-summary.sizes, kind="stable")
    places = np.arange(len(order))
    many = len(order) > MOST_BARS
    if many:  # bars so narrow would show nothing but their edges
        edges = np.arange(len(order) + 1) - 0.5
        ax.stairs(summary.sizes[order], edges, fill=True, color=theme.accent)
    else:
        colors = [theme.color(j) for j in order.tolist()]
        ax.bar(places, summary.sizes[order], width=0.72, color=colors)
    ax.axhline(
        summary.n_rows / len(order),
        color=theme.muted,
        linewidth=1,
        linestyle=(0, (4, 3)),
    )
    if many:
        ax.set_xlabel("Clusters, from the largest to the smallest")
    else:
        ax.set_xticks(
            places, [str(j) for j in order], fontsize=9 if len(order) < 16 else 6
        )
        ax.set_xlabel("Cluster")
        ax.tick_params(axis="x", length=0)
    ax.set_ylabel("Rows")
    ax.set_xlim(-0.7, len(order) - 0.3)
    count_axis(ax)
    ax.grid(visible=False, axis="x")
    return ax


def plot_margins(
    summary: ClusterSummary, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw how clearly rows belong to their cluster.

    The margin is 1 less the distance to the own centre as a share of that to the next
    one: 0 on a border, 1 at a centre.

    Parameters
    ----------
    summary : ClusterSummary
        See `sketchmeans.diagnostics.cluster_summary`.
    ax : Axes, optional
        A new figure by default.
    theme : Theme

    Returns
    -------
    ax : Axes
    """
    ax = prepared(ax, theme)
    counts, edges = summary.margin_histogram()
    draw_histogram(ax, counts, edges, theme)
    ax.set_xlabel("Margin: 0 on a border between clusters")
    ax.set_ylabel("Rows")
    return ax


def plot_residual(
    row_map: RowMap, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw how much of each row the landmarks leave out.

    Parameters
    ----------
    row_map : RowMap
        See `sketchmeans.diagnostics.row_map`; of a model with landmarks.
    ax : Axes, optional
        A new figure by default.
    theme : Theme

    Returns
    -------
    ax : Axes
    """
    if row_map.residuals is None:
        raise ValueError("row_map should be of a model that has landmarks.")
    ax = prepared(ax, theme)
    counts, edges = np.histogram(row_map.residuals, bins=25)
    draw_histogram(ax, counts, edges, theme)
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

    Parameters
    ----------
    summary : ClusterSummary
        See `sketchmeans.diagnostics.cluster_summary`.
    ax : Axes, optional
        A new figure by default.
    feature_names : sequence of str, optional
    theme : Theme

    Returns
    -------
    ax : Axes
    """
    if summary.features is None:
        raise ValueError("summary should be of rows that have features.")
    differences = summary.features.differences
    columns = summary.features.rank_distinguishing(MOST_COLUMNS)
    clusters = np.argsort(-summary.sizes, kind="stable")[:MOST_BARS]
    names = [
        f"x{j}" if feature_names is None else str(feature_names[j])
        for j in columns.tolist()
    ]
    ax = prepared(ax, theme)
    draw_heat(
        ax,
        differences[np.ix_(clusters, columns)],
        [str(j) for j in clusters],
        names,
        theme,
    )
    ax.set_ylabel("Cluster")
    return ax


def plot_agreement(
    agreement: Agreement, ax: Axes | None = None, *, theme: Theme = LIGHT
) -> Axes:
    """Draw which share of each class is in each cluster.

    Of the 24 largest classes and the 40 largest clusters.

    Parameters
    ----------
    agreement : Agreement
        See `sketchmeans.diagnostics.agreement`.
    ax : Axes, optional
        A new figure by default.
    theme : Theme

    Returns
    -------
    ax : Axes
    """
    counts = agreement.counts
    classes = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_COLUMNS])
    clusters = np.argsort(-counts.sum(axis=0), kind="stable")[:MOST_BARS]
    shares = counts / counts.sum(axis=1, keepdims=True)
    ax = prepared(ax, theme)
    draw_heat(
        ax,
        shares[np.ix_(classes, clusters)].T,
        [str(j) for j in clusters],
        [agreement.classes[i] for i in classes],
        theme,
        one_sided=True,
    )
    ax.set_ylabel("Cluster")
    ax.set_xlabel("Class")
    return ax
