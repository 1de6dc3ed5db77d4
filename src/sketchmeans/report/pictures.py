"""The figures of a report, each with its caption, its alternative text and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from sketchmeans.diagnostics import Agreement, ClusterSummary, RowMap
from sketchmeans.diagnostics.fitted import Model
from sketchmeans.report import words
from sketchmeans.report.drawing import Picture, make_csv, make_picture
from sketchmeans.report.path_plots import plot_cost_path, plot_landmark_path, plot_path
from sketchmeans.report.plots import (
    MOST_BARS,
    choose_columns,
    plot_agreement,
    plot_features,
    plot_map,
    plot_margins,
    plot_residual,
    plot_sizes,
)
from sketchmeans.report.words import format_count, format_share
from sketchmeans.theory.results import format_value


def picture_map(row_map: RowMap, n_rows: int, names: Sequence[str]) -> Picture:
    """Return the map of a sample out of `n_rows` rows, in segments of these names."""
    n = len(row_map.indices)
    rows = format_count(n, "row")
    which = f"All {rows}" if n == n_rows else f"{rows} drawn at random"
    where = "along the two directions in which the rows differ most."
    if not row_map.shares[1] > 0.0:
        where = "along the one direction in which the rows differ, scattered across it."
    marks = row_map.landmarks
    marked = "" if marks is None else f" Rings are the {len(marks):,} landmarks."
    share = format_share(float(row_map.shares.sum()))
    clusters = format_count(len(row_map.centers), "cluster")
    return make_picture(
        partial(plot_map, row_map),
        "Map of the rows",
        f"{which}, each at its place {where} Colour and shape show the cluster, "
        f"numbers name it.{marked} The map shows {share} of the variance: clusters "
        "that overlap here may be apart in other directions.",
        f"Scatter plot of {rows} in two dimensions, coloured by {clusters}.",
        make_csv(
            "map.csv",
            ["row", "cluster", "segment", "first axis", "second axis"],
            row_map.indices,
            row_map.labels,
            [names[label] for label in row_map.labels.tolist()],
            *row_map.points.T,
        ),
        height=4.6,
        wide=True,
    )


def picture_sizes(summary: ClusterSummary) -> Picture:
    """Return the sizes of the clusters."""
    sizes = summary.sizes
    return make_picture(
        partial(plot_sizes, summary),
        "Sizes",
        f"Rows of each cluster, from {sizes.max():,} down to {sizes.min():,}. The "
        "dashed line is the mean.",
        f"Bar chart of the sizes of {format_count(len(sizes), 'cluster')}: the largest "
        f"has {format_count(int(sizes.max()), 'row')}, the smallest {sizes.min():,}.",
        make_csv(
            "sizes.csv",
            ["cluster", "rows", "segment"],
            range(len(sizes)),
            sizes,
            summary.segment_names,
        ),
    )


def picture_margins(summary: ClusterSummary) -> Picture:
    """Return the histogram of the margins."""
    counts, edges = summary.margin_histogram()
    share = format_share(summary.border_share or 0.0)
    return make_picture(
        partial(plot_margins, summary),
        "How clearly rows belong",
        words.describe_margins(summary),
        f"Histogram of margins between 0 and {edges[-1]:.2g}: {share} are below 0.02.",
        make_csv(
            "margins.csv", ["margin from", "to", "rows"], edges[:-1], edges[1:], counts
        ),
    )


def picture_features(summary: ClusterSummary, names: Sequence[str]) -> Picture:
    """Return the heat map of the features' means."""
    assert summary.features is not None
    differences = summary.features.differences
    columns = choose_columns(summary).tolist()
    n_clusters = min(len(differences), MOST_BARS)
    every = len(columns) == differences.shape[1]
    which = "all features" if every else f"the {len(columns)} that differ most"
    return make_picture(
        partial(plot_features, summary, feature_names=names),
        "What sets clusters apart",
        "By how many standard deviations the mean of a cluster lies above or below "
        f"that of all rows, for {which}. Orange is above, blue below.",
        f"Heat map of {format_count(n_clusters, 'cluster')} by "
        f"{format_count(len(columns), 'feature')}: standardised differences of means.",
        make_csv(
            "features.csv",
            ["cluster", "segment", *(names[j] for j in columns)],
            range(len(differences)),
            summary.segment_names,
            *differences[:, columns].T,
        ),
        height=_choose_height(n_clusters),
        wide=True,
    )


def picture_cost(model: Model) -> Picture | None:
    """Return the cost over iterations, if the model has it."""
    costs = getattr(model, "cost_path_", None)
    if costs is None or not len(costs):
        return None
    costs = np.asarray(costs, dtype=np.float64)
    end = "It converged" if model.converged_ else "It had not converged"
    first, last = format_value(float(costs[0])), format_value(float(costs[-1]))
    return make_picture(
        partial(plot_cost_path, costs),
        "Cost over iterations",
        f"{end} after {format_count(len(costs), 'iteration')} over all rows. Earlier "
        "iterations over samples are not shown.",
        f"Line chart: the cost goes from {first} to {last}.",
        make_csv("cost.csv", ["iteration", "cost"], range(1, len(costs) + 1), costs),
    )


def picture_residual(row_map: RowMap, n_landmarks: int) -> Picture:
    """Return what the landmarks leave out of the rows of a sample."""
    assert row_map.residuals is not None
    share = format_share(float(row_map.residuals.mean()))
    return make_picture(
        partial(plot_residual, row_map),
        "What the landmarks leave out",
        words.describe_residual(row_map, n_landmarks),
        f"Histogram of the share of each row left out: {share} on average.",
        make_csv(
            "residual.csv",
            ["row", "share left out"],
            row_map.indices,
            row_map.residuals,
        ),
    )


def picture_landmarks(path: Any) -> Picture:
    """Return how the number of landmarks was chosen."""
    return make_picture(
        partial(plot_landmark_path, path),
        "How many landmarks",
        "Landmarks were added until twice as many would have lowered the cost by less "
        f"than 0.5%: {path.chosen:,} were taken. Estimated on a sample.",
        f"Line chart of the residual over the number of landmarks; {path.chosen:,} "
        "were chosen.",
        make_csv(
            "landmarks.csv",
            ["landmarks", "residual", "cost", "gain"],
            path.n_landmarks,
            path.residual_trace,
            path.cost,
            path.gain,
        ),
    )


def picture_agreement(found: Agreement) -> Picture:
    """Return classes against clusters."""
    k = found.counts.shape[1]
    return make_picture(
        partial(plot_agreement, found),
        "Classes in clusters",
        "The share of each class that is in each cluster; columns add up to 1.",
        f"Heat map of {format_count(k, 'cluster')} by {len(found.classes)} classes; "
        f"they agree on {format_share(found.accuracy)} of the rows.",
        make_csv(
            "classes.csv",
            ["class", *(f"cluster {j}" for j in range(k))],
            found.classes,
            *found.counts.T,
        ),
        height=_choose_height(min(k, MOST_BARS)),
        wide=True,
    )


def _choose_height(n_rows: int) -> float:
    return min(1.7 + 0.3 * n_rows, 7.0)


#: Columns of a path that are drawn, with a name and what to look for.
_PATH_CAPTIONS = {
    "stability": (
        "stability",
        "Do different samples give the same clusters? 1 is yes. High is good.",
    ),
    "ratio": (
        "certified ratio",
        "The cost is at most this many times the best possible. Low is good.",
    ),
    "effective_dimension": (
        "effective dimension",
        "How many directions matter: more than there are clusters, and far fewer than "
        "rows, is good.",
    ),
}


def picture_path(table: Mapping[str, Any], model: Model) -> list[Picture]:
    """Return the pictures of a path over bandwidths or numbers of clusters."""
    values = {str(name): np.asarray(table[name]) for name in table}
    if "gamma" in values:
        over, word, chosen = "gamma", "bandwidth", getattr(model, "gamma_", None)
    else:
        over, word = "n_clusters", "number of clusters"
        chosen = len(model.cluster_sizes_)
    name = f"{word.replace(' ', '_')}.csv"
    download = make_csv(name, list(values), *values.values())
    found = []
    for column, (name, caption) in _PATH_CAPTIONS.items():
        if column in values and np.isfinite(values[column]).any():
            low = column == "ratio"
            best = (np.nanargmin if low else np.nanargmax)(values[column])
            where = f"{'lowest' if low else 'highest'} at "
            where += format_value(values[over][best].item())
            found.append(
                make_picture(
                    partial(plot_path, table, column=column, chosen=chosen),
                    f"{name.capitalize()} by {word}",
                    caption,
                    f"Line chart of the {name} over the {word}: {where}.",
                    download,
                )
            )
    return found
