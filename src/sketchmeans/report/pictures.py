"""All figures of a report, each with its caption, its words and its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from sketchmeans.diagnostics import Agreement, ClusterSummary, RowMap
from sketchmeans.report import words
from sketchmeans.report.figures import Picture, picture
from sketchmeans.report.path_plots import (
    plot_bandwidth_path,
    plot_cost_path,
    plot_k_path,
    plot_landmark_path,
)
from sketchmeans.report.plots import (
    MOST_BARS,
    MOST_COLUMNS,
    plot_agreement,
    plot_features,
    plot_map,
    plot_margins,
    plot_residual,
    plot_sizes,
)
from sketchmeans.report.tables import csv_download
from sketchmeans.report.themes import Theme
from sketchmeans.theory.results import format_value

Draw = Any


def _on_axes(plot: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a plot function of axes and theme alone."""

    def draw(ax: Axes, theme: Theme) -> None:
        plot(*args, ax=ax, theme=theme, **kwargs)

    return draw


def map_picture(row_map: RowMap, n_rows: int) -> Picture:
    """Return the map of a sample, out of so many rows."""
    n, total = len(row_map.indices), float(row_map.shares.sum())
    rows = words.plural(n, "row")
    which = f"All {rows}" if n == n_rows else f"{rows} drawn at random"
    where = "along the two directions in which the rows differ most."
    if not row_map.shares[1] > 0.0:
        where = "along the one direction in which the rows differ, scattered across it."
    marks = row_map.landmarks
    marked = "" if marks is None else f" Rings are the {len(marks):,} landmarks."
    places = np.column_stack([row_map.indices, row_map.labels, row_map.points])
    return picture(
        _on_axes(plot_map, row_map),
        title="Map of the rows",
        caption=(
            f"{which}, each at its place {where} Colour and shape tell the cluster, "
            f"numbers name it.{marked} The map shows {words.percent(total)} of the "
            "variance: clusters that overlap here may be apart in other directions."
        ),
        alt=(
            f"Scatter plot of {rows} in two dimensions, coloured by "
            f"{words.plural(len(row_map.centers), 'cluster')}."
        ),
        table=csv_download(
            "map.csv",
            ["row", "cluster", "first axis", "second axis"],
            ([int(i), int(j), x, y] for i, j, x, y in places.tolist()),
        ),
        height=4.6,
        wide=True,
    )


def sizes_picture(summary: ClusterSummary) -> Picture:
    """Return the sizes of the clusters."""
    sizes = summary.sizes
    return picture(
        _on_axes(plot_sizes, summary),
        title="Sizes",
        caption=(
            f"Rows of each cluster, from {sizes.max():,} down to {sizes.min():,}. The "
            "dashed line is the mean."
        ),
        alt=(
            f"Bar chart of the sizes of {words.plural(len(sizes), 'cluster')}: the "
            f"largest has {words.plural(int(sizes.max()), 'row')}, the smallest "
            f"{sizes.min():,}."
        ),
        table=csv_download("sizes.csv", ["cluster", "rows"], enumerate(sizes.tolist())),
    )


def margin_picture(summary: ClusterSummary) -> Picture:
    """Return the margins."""
    counts, edges = summary.margin_histogram()
    share = words.percent(summary.border_share or 0.0)
    return picture(
        _on_axes(plot_margins, summary),
        title="How clearly rows belong",
        caption=words.margin_words(summary),
        alt=(
            f"Histogram of margins between 0 and {edges[-1]:.2g}: {share} are below "
            "0.02."
        ),
        table=csv_download(
            "margins.csv",
            ["margin from", "to", "rows"],
            zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True),
        ),
    )


def feature_picture(summary: ClusterSummary, names: Sequence[str]) -> Picture:
    """Return the heat map of the features' means."""
    assert summary.features is not None
    differences = summary.features.differences
    columns = summary.features.rank_distinguishing(MOST_COLUMNS).tolist()
    shown_clusters = min(len(differences), MOST_BARS)
    all_features = len(columns) == differences.shape[1]
    which = "all features" if all_features else f"the {len(columns)} that differ most"
    return picture(
        _on_axes(plot_features, summary, feature_names=names),
        title="What sets clusters apart",
        caption=(
            "By how many standard deviations the mean of a cluster lies above or "
            f"below that of all rows, for {which}. Orange is above, blue below."
        ),
        alt=(
            f"Heat map of {words.plural(shown_clusters, 'cluster')} by "
            f"{words.plural(len(columns), 'feature')}: standardised differences of "
            "means."
        ),
        table=csv_download(
            "features.csv",
            ["cluster", *(names[j] for j in columns)],
            ([i, *row[columns].tolist()] for i, row in enumerate(differences)),
        ),
        height=min(1.7 + 0.3 * shown_clusters, 7.0),
        wide=True,
    )


def cost_picture(model: Any) -> Picture | None:
    """Return the cost over passes, if the model has it."""
    costs = getattr(model, "cost_path_", None)
    if costs is None or not len(costs):
        return None
    costs = np.asarray(costs, dtype=np.float64)
    end = "It settled" if model.converged_ else "It had not settled"
    return picture(
        _on_axes(plot_cost_path, costs),
        title="Cost over passes",
        caption=(
            f"{end} after {words.plural(len(costs), 'pass')} over all rows. Passes "
            "over samples, which come before, are not shown."
        ),
        alt=(
            f"Line chart: the cost goes from {format_value(float(costs[0]))} to "
            f"{format_value(float(costs[-1]))}."
        ),
        table=csv_download(
            "cost.csv", ["pass", "cost"], enumerate(costs.tolist(), start=1)
        ),
    )


def residual_picture(row_map: RowMap, n_landmarks: int) -> Picture:
    """Return what the landmarks leave out of the rows of a sample."""
    assert row_map.residuals is not None
    share = words.percent(float(row_map.residuals.mean()))
    return picture(
        _on_axes(plot_residual, row_map),
        title="What the landmarks leave out",
        caption=words.residual_words(row_map, n_landmarks),
        alt=f"Histogram of the share of each row left out: {share} on average.",
        table=csv_download(
            "residual.csv",
            ["row", "share left out"],
            zip(row_map.indices.tolist(), row_map.residuals.tolist(), strict=True),
        ),
    )


def landmark_picture(path: Any) -> Picture:
    """Return how the number of landmarks was found."""
    columns = path.n_landmarks, path.residual_trace, path.cost, path.gain
    return picture(
        _on_axes(plot_landmark_path, path),
        title="How many landmarks",
        caption=(
            "Sets of landmarks grew until twice as many would have lowered the cost by "
            f"less than 0.5%: {path.chosen:,} were taken. Estimated on a sample."
        ),
        alt=f"Line chart of the residual over the number of landmarks; {path.chosen:,} "
        "were chosen.",
        table=csv_download(
            "landmarks.csv",
            ["landmarks", "residual", "cost", "gain"],
            zip(*(np.asarray(c).tolist() for c in columns), strict=True),
        ),
    )


def agreement_picture(found: Agreement) -> Picture:
    """Return classes against clusters."""
    shown_clusters = min(found.counts.shape[1], MOST_BARS)
    return picture(
        _on_axes(plot_agreement, found),
        title="Classes in clusters",
        caption="The share of each class that is in each cluster; columns add up to 1.",
        alt=(
            f"Heat map of {words.plural(found.counts.shape[1], 'cluster')} by "
            f"{len(found.classes)} classes; they agree on "
            f"{words.percent(found.accuracy)} of the rows."
        ),
        table=csv_download(
            "classes.csv",
            ["class", *(f"cluster {j}" for j in range(found.counts.shape[1]))],
            (
                [name, *row]
                for name, row in zip(found.classes, found.counts.tolist(), strict=True)
            ),
        ),
        height=min(1.7 + 0.3 * shown_clusters, 7.0),
        wide=True,
    )


#: What is drawn of a path, and what to look for.
_PATH_CAPTIONS = {
    "stability": (
        "Do different samples give the same clusters? 1 is yes. High is good.",
        "stability",
    ),
    "ratio": (
        "The cost is at most this many times the best possible. Low is good.",
        "certified ratio",
    ),
    "effective_dimension": (
        "How many directions matter: more than there are clusters, and far fewer than "
        "rows, is good.",
        "effective dimension",
    ),
}


def path_pictures(table: Mapping[str, Any], model: Any) -> list[Picture]:
    """Return the pictures of a path over bandwidths or numbers of clusters."""
    names = [str(name) for name in table]
    over = "gamma" if "gamma" in names else "n_clusters"
    if over == "gamma":
        word, plot = (
            "bandwidth",
            partial(plot_bandwidth_path, chosen=getattr(model, "gamma_", None)),
        )
    else:
        word, plot = (
            "number of clusters",
            partial(plot_k_path, chosen=len(model.cluster_sizes_)),
        )
    columns = [np.asarray(table[name]).tolist() for name in table]
    download = csv_download(
        f"{word.replace(' ', '_')}.csv", names, zip(*columns, strict=True)
    )
    found = []
    for column, (caption, name) in _PATH_CAPTIONS.items():
        if column in names and np.isfinite(np.asarray(table[column])).any():
            values = np.asarray(table[column], dtype=np.float64)
            best = np.asarray(table[over])[
                np.nanargmin(values) if column == "ratio" else np.nanargmax(values)
            ]
            peak = "lowest" if column == "ratio" else "highest"
            found.append(
                picture(
                    _on_axes(plot, table, column=column),
                    title=f"{name.capitalize()} by {word}",
                    caption=caption,
                    alt=f"Line chart of the {name} over the {word}: {peak} at "
                    f"{format_value(best.item())}.",
                    table=download,
                )
            )
    return found
