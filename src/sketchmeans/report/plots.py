"""Plots of clusters.

Every function draws on the axes `ax` that it is given, or on those of a new figure, in
the colours of `theme`, `LIGHT` or `DARK`, and returns the axes.  Those of clusters take
a fitted model and a table, or in their place what `sketchmeans.diagnostics` found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any, TypeVar

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from sketchmeans.diagnostics import (
    Agreement,
    ClusterSummary,
    RowMap,
    cluster_summary,
    row_map,
)
from sketchmeans.diagnostics.described import open_described
from sketchmeans.diagnostics.summary import summarize_members
from sketchmeans.numerics.linalg import Array
from sketchmeans.report.drawing import (
    LIGHT,
    MARKERS,
    Theme,
    choose_shape,
    draw_heat,
    draw_histogram,
    prepare_axes,
    use_count_axis,
)

Found = TypeVar("Found")

#: Clusters that get a bar or a row of their own, and columns of a heat map.
MOST_BARS, MOST_COLUMNS = 40, 24
#: Up to how many clusters all are numbered on a map; beyond, only the largest few.
_MOST_NUMBERS, _FEW_NUMBERS = 30, 12
#: Clusters that are named below their bars, or beside their rows: of more only the
#: numbers have room.
_NAMED_BARS, _NAMED_ROWS = 4, 12


def _find(
    kind: type[Found], compute: Callable[..., Found], model: Any, X: Any
) -> Found:
    """Return what is known of a model on a table, or the result that is given."""
    if not isinstance(model, kind):
        return compute(model, _check_table(X))
    _check_no_table(X)
    return model


def _find_agreement(model: Any, X: Any, y: Any) -> Agreement:
    if isinstance(model, Agreement):
        _check_no_table(X)
        return model
    if y is None:
        raise ValueError("y=None should be the known classes of the rows of X.")
    found = cluster_summary(model, _check_table(X), y=y).agreement
    assert found is not None  # as there are classes
    return found


def _check_table(X: Any) -> Any:
    if X is None or isinstance(X, Axes):
        raise ValueError(
            f"X={X!r} should be a table, as the first argument is a model. Axes are "
            "given as ax=."
        )
    return X


def _check_no_table(X: Any) -> None:
    if X is not None:
        raise ValueError(
            f"X of type {type(X).__name__} should be None, as the first argument is a "
            "result of sketchmeans.diagnostics. Axes are given as ax=."
        )


def plot_map(
    model: Any, X: Any = None, *, ax: Axes | None = None, theme: Theme = LIGHT
) -> Axes:
    """Draw a sample of rows along two principal axes, coloured by cluster.

    Costs what `row_map` does, and nothing with its result.

    Parameters
    ----------
    model : fitted estimator, `TableClusterer`, `Pipeline` or RowMap
    X : table, optional
        Its rows; None with a RowMap.
    ax : Axes, optional
    theme : Theme

    Examples
    --------
    >>> from sketchmeans import NystromKMeans
    >>> from sketchmeans.report import plot_map
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 9.0], [1.0, 9.0]]
    >>> axes = plot_map(NystromKMeans(2, random_state=0).fit(X), X)
    """
    found = _find(RowMap, row_map, model, X)
    ax = prepare_axes(ax, theme)
    flat = not found.shares[1] > 0.0
    # Rows on a line would cover each other: they are scattered across it.
    scatter = np.random.default_rng(0).uniform(-1.0, 1.0, len(found.points))
    x, y = found.points[:, 0], scatter if flat else found.points[:, 1]
    for cluster in np.unique(found.labels).tolist():
        own = found.labels == cluster
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
    if found.landmarks is not None:
        places = found.landmarks
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
    _number_clusters(ax, found, flat, theme)
    names = [
        f"{which} axis ({share:.0%} of the variance)"
        for which, share in zip(("First", "Second"), found.shares, strict=True)
    ]
    ax.set(xlabel=names[0], ylabel="" if flat else names[1])
    if flat:
        ax.yaxis.set_major_locator(NullLocator())
    ax.margins(0.04)
    return ax


def _number_clusters(ax: Axes, found: RowMap, flat: bool, theme: Theme) -> None:
    sizes = np.bincount(found.labels, minlength=len(found.centers))
    most = _FEW_NUMBERS if len(sizes) > _MOST_NUMBERS else _MOST_NUMBERS
    outline = patheffects.withStroke(linewidth=3.5, foreground=theme.surface)
    for cluster in np.argsort(-sizes, kind="stable")[:most].tolist():
        if sizes[cluster]:
            x, y = found.centers[cluster]
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
    model: Any, X: Any = None, *, ax: Axes | None = None, theme: Theme = LIGHT
) -> Axes:
    """Draw the number of rows of each cluster, the largest first.

    Costs what `cluster_summary` does, and nothing with its result.

    Parameters
    ----------
    model : fitted estimator, `TableClusterer`, `Pipeline` or ClusterSummary
    X : table, optional
        Its rows; None with a ClusterSummary.
    ax : Axes, optional
    theme : Theme

    Examples
    --------
    >>> from sketchmeans import NystromKMeans
    >>> from sketchmeans.report import plot_sizes
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 9.0], [1.0, 9.0]]
    >>> axes = plot_sizes(NystromKMeans(2, random_state=0).fit(X), X)
    """
    summary = _find(ClusterSummary, cluster_summary, model, X)
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
        ticks = _name_clusters(summary, order, _NAMED_BARS, 14, n_lines=5)
        ax.set_xticks(np.arange(n), ticks, parse_math=False, fontsize=fontsize)
        ax.set_xlabel("Cluster")
        ax.tick_params(axis="x", length=0)
    ax.set_ylabel("Rows")
    ax.set_xlim(-0.7, n - 0.3)
    use_count_axis(ax)
    ax.grid(visible=False, axis="x")
    return ax


def _name_clusters(
    summary: ClusterSummary, clusters: Array, most: int, width: int, n_lines: int
) -> list[str]:
    """Return what clusters are called on an axis: with their names if they are few."""
    defaults = tuple(f"Segment {j}" for j in range(len(summary.sizes)))
    names = summary.segment_names
    if len(clusters) > most or names in ((), defaults):
        return [str(j) for j in clusters]
    return [
        "\n".join(wrap(f"{j} {names[j]}", width, max_lines=n_lines, placeholder="…"))
        for j in clusters.tolist()
    ]


def plot_margins(
    model: Any, X: Any = None, *, ax: Axes | None = None, theme: Theme = LIGHT
) -> Axes:
    """Draw how clearly rows belong to their cluster.

    The margin is 1 less the distance to the own centre as a share of that to the next
    one: 0 on a border, 1 at a centre.

    Costs what `cluster_summary` does, and nothing with its result.

    Parameters
    ----------
    model : fitted estimator, `TableClusterer`, `Pipeline` or ClusterSummary
    X : table, optional
        Its rows; None with a ClusterSummary.
    ax : Axes, optional
    theme : Theme

    Examples
    --------
    >>> from sketchmeans import NystromKMeans
    >>> from sketchmeans.report import plot_margins
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 9.0], [1.0, 9.0]]
    >>> axes = plot_margins(NystromKMeans(2, random_state=0).fit(X), X)
    """
    summary = _find(ClusterSummary, cluster_summary, model, X)
    ax = prepare_axes(ax, theme)
    draw_histogram(ax, *summary.margin_histogram(), theme)
    ax.set(xlabel="Margin: 0 on a border between clusters", ylabel="Rows")
    return ax


def plot_residual(
    model: Any, X: Any = None, *, ax: Axes | None = None, theme: Theme = LIGHT
) -> Axes:
    """Draw how much of each row the landmarks leave out.

    Costs what `row_map` does, and nothing with its result.

    Parameters
    ----------
    model : fitted estimator, `TableClusterer`, `Pipeline` or RowMap
    X : table, optional
        Its rows; None with a RowMap.
    ax : Axes, optional
    theme : Theme

    Examples
    --------
    >>> from sketchmeans import NystromKMeans
    >>> from sketchmeans.report import plot_residual
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 9.0], [1.0, 9.0]]
    >>> axes = plot_residual(NystromKMeans(2, random_state=0).fit(X), X)
    """
    found = _find(RowMap, row_map, model, X)
    if found.residuals is None:
        raise ValueError("model should be one that has landmarks.")
    ax = prepare_axes(ax, theme)
    draw_histogram(ax, *np.histogram(found.residuals, bins=25), theme)
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
    ax.set_xlabel("Share of a row that no mixture of landmarks reaches")
    ax.set_ylabel("Rows of the sample")
    return ax


def plot_features(
    model: Any,
    X: Any = None,
    *,
    ax: Axes | None = None,
    feature_names: Sequence[str] | None = None,
    theme: Theme = LIGHT,
) -> Axes:
    """Draw how far the means of the clusters are from that of all rows.

    In standard deviations, for the features that differ most: at most 24 of these, and
    the 40 largest clusters.

    Costs what `cluster_summary` does, and nothing with its result.

    Parameters
    ----------
    model : fitted estimator, `TableClusterer`, `Pipeline` or ClusterSummary
    X : table, optional
        Its rows; None with a ClusterSummary.
    ax : Axes, optional
    feature_names : sequence of str, optional
        Default are the names of the columns in the fit, or x0, x1, ...
    theme : Theme

    Examples
    --------
    >>> from sketchmeans import NystromKMeans
    >>> from sketchmeans.report import plot_features
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 9.0], [1.0, 9.0]]
    >>> axes = plot_features(NystromKMeans(2, random_state=0).fit(X), X)
    """
    if isinstance(model, ClusterSummary):
        summary = _find(ClusterSummary, cluster_summary, model, X)
    else:
        opened = open_described(model, _check_table(X), feature_names)
        summary, feature_names = summarize_members(opened)[0], opened.names
    if summary.features is None:
        raise ValueError("model should have been fitted to rows with features.")
    columns = choose_columns(summary)
    clusters = np.argsort(-summary.sizes, kind="stable")[:MOST_BARS]
    names = [f"x{j}" if feature_names is None else feature_names[j] for j in columns]
    values = summary.features.differences[np.ix_(clusters, columns)]
    ax = prepare_axes(ax, theme)
    rows = _name_clusters(summary, clusters, _NAMED_ROWS, 24, n_lines=2)
    draw_heat(ax, values, rows, list(map(str, names)), theme)
    ax.set_ylabel("Cluster")
    return ax


def choose_columns(summary: ClusterSummary) -> Array:
    """Return the features that differ most among the clusters, in their order."""
    assert summary.features is not None
    strongest = summary.features.rank_distinguishing(MOST_COLUMNS)
    return np.sort(strongest) if len(strongest) else np.zeros(1, np.intp)


def plot_agreement(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    ax: Axes | None = None,
    theme: Theme = LIGHT,
) -> Axes:
    """Draw which share of each class is in each cluster.

    Of the 24 largest classes and the 40 largest clusters.

    Costs one prediction of the rows.

    Parameters
    ----------
    model : fitted estimator, `TableClusterer`, `Pipeline` or Agreement
    X : table, optional
        Its rows; None with a Agreement.
    y : array-like, optional
        Known classes of the rows.
    ax : Axes, optional
    theme : Theme

    Examples
    --------
    >>> from sketchmeans.diagnostics import agreement
    >>> from sketchmeans.report import plot_agreement
    >>> axes = plot_agreement(agreement(list("aabb"), [1, 1, 0, 0], 2))
    """
    agreement = _find_agreement(model, X, y)
    counts = agreement.counts
    classes = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_COLUMNS])
    clusters = np.argsort(-counts.sum(axis=0), kind="stable")[:MOST_BARS]
    shares = (counts / counts.sum(axis=1, keepdims=True))[np.ix_(classes, clusters)].T
    ax = prepare_axes(ax, theme)
    names = [agreement.classes[i] for i in classes]
    draw_heat(ax, shares, [str(j) for j in clusters], names, theme, one_sided=True)
    ax.set(xlabel="Class", ylabel="Cluster")
    return ax
