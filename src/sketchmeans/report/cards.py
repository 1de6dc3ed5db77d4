"""What the page says about each cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.diagnostics import ClusterSummary
from sketchmeans.kernels import toarray
from sketchmeans.report.drawing import GLYPHS, LIGHT, choose_shape
from sketchmeans.report.figures import Download, draw_image_strip, make_csv
from sketchmeans.report.words import format_count, format_share
from sketchmeans.theory.results import format_value

#: Features of a card, typical rows in its table, and features in the download.
_MOST_FEATURES, _MOST_ROWS, _MOST_DOWNLOADED = 6, 2, 20
#: Values of typical rows that are worth a download.
_MOST_VALUES = 200_000


@dataclass(frozen=True)
class FeatureLine:
    """One feature of a cluster, ready to be shown.

    The difference is in standard deviations, the width of its bar in percent of half
    the track; values are those of the typical rows.
    """

    name: str
    difference: str
    width: float
    above: bool
    mean: str
    overall: str
    values: list[str]


@dataclass(frozen=True)
class Card:
    """One cluster, ready to be shown.

    The color is an index, numbers are those of typical rows; strip and mean are images
    of the typical rows and of the mean, in links.
    """

    number: int
    color: int
    glyph: str
    rows: str
    share: str
    cost: str
    margin: str
    classes: str
    numbers: list[str]
    lines: list[FeatureLine]
    strip: str | None = None
    mean: str | None = None


def make_cards(
    summary: ClusterSummary,
    names: Sequence[str],
    image_shape: tuple[int, ...] | None,
) -> list[Card]:
    """Return one card per cluster, the largest first."""
    exemplars: Any = summary.exemplars
    bounds = None
    if image_shape is not None:
        bounds = float(exemplars.min()), float(exemplars.max())
    order = np.argsort(-summary.sizes, kind="stable").tolist()
    return [_make_card(summary, j, names, image_shape, bounds) for j in order]


def _make_card(
    summary: ClusterSummary,
    cluster: int,
    names: Sequence[str],
    image_shape: tuple[int, ...] | None,
    bounds: tuple[float, float] | None,
) -> Card:
    size, features = int(summary.sizes[cluster]), summary.features
    numbers, rows = summary.exemplars_of(cluster)
    cost = margin = ""
    strip = mean = None
    lines: list[FeatureLine] = []
    if size:
        cost = format_value(float(summary.costs[cluster]))
        margin = "" if summary.margins is None else f"{summary.margins[cluster]:.2f}"
    if size and features is not None and image_shape and bounds:
        strip = draw_image_strip(toarray(rows), image_shape, bounds)
        mean = draw_image_strip(features.cluster_means[[cluster]], image_shape, bounds)
    elif size and features is not None:
        lines = _make_lines(summary, cluster, rows, names)
    return Card(
        number=cluster,
        color=cluster % len(LIGHT.palette),
        glyph=GLYPHS[choose_shape(cluster)],
        rows=format_count(size, "row"),
        share=format_share(size / summary.n_rows),
        cost=cost,
        margin=margin,
        classes=_name_classes(summary, cluster),
        numbers=[f"{number:,}" for number in numbers.tolist()],
        lines=lines,
        strip=strip,
        mean=mean,
    )


def _name_classes(summary: ClusterSummary, cluster: int) -> str:
    """Return the classes that make up most of a cluster."""
    if summary.agreement is None or not summary.sizes[cluster]:
        return ""
    counts = summary.agreement.counts[:, cluster]
    shares = counts / counts.sum()
    parts = [
        f"{summary.agreement.classes[i]} ({format_share(shares[i])})"
        for i in np.argsort(-counts, kind="stable")[:3].tolist()
        if counts[i] >= 0.05 * counts.sum()
    ]
    return ", ".join(parts) or "very many"


def _make_lines(
    summary: ClusterSummary, cluster: int, rows: Any, names: Sequence[str]
) -> list[FeatureLine]:
    features = summary.features
    assert features is not None
    chosen = features.rank_distinguishing(_MOST_FEATURES, cluster)
    if not len(chosen):  # no feature sets it apart: the first ones, then
        chosen = np.arange(min(_MOST_FEATURES, len(features.mean)))
    values = toarray(rows[:_MOST_ROWS][:, chosen])
    differences, largest = features.differences[cluster], features.largest_difference
    lines = []
    for j, column in zip(chosen.tolist(), values.T, strict=True):
        deviation = features.deviation[j]
        mean, overall, *own = (
            _shorten_value(value, deviation)
            for value in (features.cluster_means[cluster, j], features.mean[j], *column)
        )
        lines.append(
            FeatureLine(
                name=names[j],
                difference=f"{differences[j]:+.2f}".replace("-", "−"),
                width=round(100.0 * abs(float(differences[j])) / largest, 1),
                above=bool(differences[j] >= 0.0),
                mean=mean,
                overall=overall,
                values=own,
            )
        )
    return lines


def _shorten_value(value: float, deviation: float) -> str:
    """Return a value in three digits; 0 where it is tiny beside the deviation."""
    value = 0.0 if abs(value) < 1e-6 * deviation else float(value)
    text = f"{value:,.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"
    return text.replace("-", "−")


def make_downloads(
    summary: ClusterSummary, cards: Sequence[Card], names: Sequence[str]
) -> list[tuple[str, Download]]:
    """Return the files about the clusters, each with the text of its link."""
    header = ["cluster", "rows", "share", "cost", "margin", "typical rows"]
    records = [_make_record(summary, card) for card in cards]
    if summary.agreement is not None:
        header.append("classes")
        both = zip(records, cards, strict=True)
        records = [[*record, card.classes] for record, card in both]
    downloads = [("All clusters", make_csv("clusters.csv", header, records))]
    features = summary.features
    if features is None:
        return downloads
    records = []
    for cluster, means in enumerate(features.cluster_means):
        for j in features.rank_distinguishing(_MOST_DOWNLOADED, cluster).tolist():
            difference = features.differences[cluster, j]
            records.append([cluster, names[j], difference, means[j], features.mean[j]])
    header = ["cluster", "feature", "difference", "mean", "mean of all rows"]
    table = make_csv("distinguishing_features.csv", header, records)
    downloads.append(("Features that set them apart", table))
    exemplars = summary.exemplars
    if exemplars is not None and exemplars.shape[0] * len(names) <= _MOST_VALUES:
        clusters, places = np.nonzero(summary.exemplar_indices >= 0)
        numbers = summary.exemplar_indices[clusters, places]
        rows = zip(clusters, numbers, toarray(exemplars).tolist(), strict=True)
        records = [[cluster, number, *row] for cluster, number, row in rows]
        table = make_csv("typical_rows.csv", ["cluster", "row", *names], records)
        downloads.append(("Typical rows", table))
    return downloads


def _make_record(summary: ClusterSummary, card: Card) -> list[Any]:
    j = card.number
    numbers, _ = summary.exemplars_of(j)
    return [
        j,
        int(summary.sizes[j]),
        float(summary.sizes[j] / summary.n_rows),
        float(summary.costs[j]),
        "" if summary.margins is None else float(summary.margins[j]),
        " ".join(str(number) for number in numbers.tolist()),
    ]
