"""What the page says about each cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.diagnostics import ClusterSummary
from sketchmeans.numerics.linalg import Array
from sketchmeans.report import words
from sketchmeans.report.figures import image_strip
from sketchmeans.report.tables import Download, csv_download
from sketchmeans.report.themes import GLYPHS, LIGHT, shape_number
from sketchmeans.theory.results import format_value

#: Features of a card, typical rows in its table, and features in the download.
_MOST_FEATURES, _MOST_COLUMNS, _MOST_TELLING = 6, 2, 20
#: Values of typical rows that are worth a download.
_MOST_VALUES = 200_000


@dataclass(frozen=True)
class FeatureLine:
    """One feature of a cluster.

    Attributes
    ----------
    name : str
    difference : str
        In standard deviations.
    width : float
        Of the bar, in percent of half its room.
    above : bool
    mean, overall : str
    values : list of str
        Of the typical rows.
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
    """One cluster.

    Attributes
    ----------
    number : int
    color : int
        Number of its colour.
    glyph : str
    rows, share, cost, margin, classes : str
    numbers : list of str
        Typical rows.
    lines : list of FeatureLine
    strip, mean : str or None
        Images of the typical rows and of the mean, in links.
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


def cluster_cards(
    summary: ClusterSummary,
    names: Sequence[str],
    image_shape: tuple[int, ...] | None,
) -> list[Card]:
    """Return a card for each cluster, the largest first."""
    bounds = _value_range(summary) if image_shape is not None else (0.0, 1.0)
    strongest = 1.0
    if summary.features is not None:
        strongest = float(np.abs(summary.features.differences).max()) or 1.0
    cards = []
    for cluster in np.argsort(-summary.sizes, kind="stable").tolist():
        size = int(summary.sizes[cluster])
        numbers, rows = summary.exemplars_of(cluster)
        strip = mean = None
        lines: list[FeatureLine] = []
        if image_shape is not None and summary.features is not None and size:
            strip = image_strip(_dense(rows), image_shape, bounds)
            own = summary.features.cluster_means[cluster : cluster + 1]
            mean = image_strip(own, image_shape, bounds)
        elif summary.features is not None and size:
            lines = _feature_lines(summary, cluster, rows, names, strongest)
        cards.append(
            Card(
                number=cluster,
                color=cluster % len(LIGHT.palette),
                glyph=GLYPHS[shape_number(cluster)],
                rows=words.plural(size, "row"),
                share=words.percent(size / summary.n_rows),
                cost=format_value(float(summary.costs[cluster])) if size else "",
                margin=_margin(summary, cluster),
                classes=_classes(summary, cluster),
                numbers=[f"{number:,}" for number in numbers.tolist()],
                lines=lines,
                strip=strip,
                mean=mean,
            )
        )
    return cards


def _margin(summary: ClusterSummary, cluster: int) -> str:
    if summary.margins is None or not summary.sizes[cluster]:
        return ""
    return f"{summary.margins[cluster]:.2f}"


def _classes(summary: ClusterSummary, cluster: int) -> str:
    """Return the classes that make up most of a cluster."""
    if summary.agreement is None or not summary.sizes[cluster]:
        return ""
    counts = summary.agreement.counts[:, cluster]
    order = np.argsort(-counts, kind="stable")[:3].tolist()
    parts = [
        f"{summary.agreement.classes[i]} ({words.percent(counts[i] / counts.sum())})"
        for i in order
        if counts[i] >= 0.05 * counts.sum()
    ]
    return ", ".join(parts) or "very many"


def _feature_lines(
    summary: ClusterSummary,
    cluster: int,
    rows: Any,
    names: Sequence[str],
    strongest: float,
) -> list[FeatureLine]:
    features = summary.features
    assert features is not None
    telling = features.rank_distinguishing(_MOST_FEATURES, cluster)
    if not len(telling):  # no feature sets it apart: its first ones, then
        telling = np.arange(min(_MOST_FEATURES, len(features.mean)))
    values = _dense(rows[:_MOST_COLUMNS][:, telling])
    differences = features.differences[cluster]
    return [
        FeatureLine(
            name=names[j],
            difference=f"{differences[j]:+.2f}".replace("-", "−"),
            width=round(100.0 * min(abs(float(differences[j])) / strongest, 1.0), 1),
            above=bool(differences[j] >= 0.0),
            mean=_short(features.cluster_means[cluster, j], features.deviation[j]),
            overall=_short(features.mean[j], features.deviation[j]),
            values=[_short(v, features.deviation[j]) for v in values[:, i].tolist()],
        )
        for i, j in enumerate(telling.tolist())
    ]


def _short(value: float, deviation: float) -> str:
    """Return a value in three digits; 0 where it is nothing beside the deviation."""
    value = 0.0 if abs(value) < 1e-6 * deviation else float(value)
    size = abs(value)
    plain = f"{value:,.0f}" if 1e3 <= size < 1e7 else f"{value:.3g}"
    return plain.replace("-", "−")


def _dense(rows: Any) -> Array:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _value_range(summary: ClusterSummary) -> tuple[float, float]:
    """Return the least and the largest value of all typical rows."""
    rows: Any = summary.exemplars
    return float(rows.min()), float(rows.max())


def cluster_downloads(
    summary: ClusterSummary, cards: Sequence[Card], names: Sequence[str]
) -> list[tuple[str, Download]]:
    """Return what can be downloaded about the clusters, with its words."""
    header = ["cluster", "rows", "share", "cost", "margin", "typical rows"]
    header += ["classes"] if summary.agreement is not None else []
    downloads = [
        (
            "All clusters",
            csv_download(
                "clusters.csv",
                header,
                (_cluster_record(summary, card) for card in cards),
            ),
        )
    ]
    features = summary.features
    if features is None:
        return downloads
    downloads.append(
        (
            "Features that set them apart",
            csv_download(
                "telling_features.csv",
                ["cluster", "feature", "difference", "mean", "mean of all rows"],
                _telling_records(summary, names),
            ),
        )
    )
    if summary.exemplars is not None and (
        summary.exemplars.shape[0] * len(names) <= _MOST_VALUES
    ):
        clusters, places = np.nonzero(summary.exemplar_indices >= 0)
        numbers = summary.exemplar_indices[clusters, places]
        downloads.append(
            (
                "Typical rows",
                csv_download(
                    "typical_rows.csv",
                    ["cluster", "row", *names],
                    (
                        [cluster, number, *row]
                        for cluster, number, row in zip(
                            clusters.tolist(),
                            numbers.tolist(),
                            _dense(summary.exemplars).tolist(),
                            strict=True,
                        )
                    ),
                ),
            )
        )
    return downloads


def _cluster_record(summary: ClusterSummary, card: Card) -> list[Any]:
    j = card.number
    margin = "" if summary.margins is None else float(summary.margins[j])
    numbers, _ = summary.exemplars_of(j)
    record = [
        j,
        int(summary.sizes[j]),
        float(summary.sizes[j] / summary.n_rows),
        float(summary.costs[j]),
        margin,
        " ".join(str(number) for number in numbers.tolist()),
    ]
    return record if summary.agreement is None else [*record, card.classes]


def _telling_records(summary: ClusterSummary, names: Sequence[str]) -> list[list[Any]]:
    features = summary.features
    assert features is not None
    differences = features.differences
    return [
        [
            cluster,
            names[j],
            float(differences[cluster, j]),
            float(features.cluster_means[cluster, j]),
            float(features.mean[j]),
        ]
        for cluster in range(summary.n_clusters)
        for j in features.rank_distinguishing(_MOST_TELLING, cluster).tolist()
    ]
