"""Clusters as cards, and as files to download."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from sketchmeans.diagnostics import ClusterSummary, Segments
from sketchmeans.diagnostics.summary import Features
from sketchmeans.kernels import toarray
from sketchmeans.report.drawing import (
    GLYPHS,
    LIGHT,
    Download,
    choose_shape,
    draw_image_strip,
    make_csv,
)
from sketchmeans.report.words import format_count, format_share
from sketchmeans.theory.results import format_value

#: Features of a card, and features in the download.
_MOST_FEATURES, _MOST_DOWNLOADED = 6, 20
NO_BREAK = "\u00a0"
#: Typical rows of a segment on the first screen.
_MOST_TYPICAL = 3
#: Values of typical rows that are worth a download.
_MOST_VALUES = 200_000


def make_segment_cards(found: Segments) -> list[dict[str, Any]]:
    """Return what the first screen says of each segment, the largest first."""
    cards = []
    for segment in found.by_size():
        sure, score = segment.verdict, segment.stability
        cards.append(
            _make_badge(segment.label)
            | {
                "name": segment.name,
                "rows": format_count(segment.size, "row"),
                "share": format_share(segment.share),
                "width": f"{100.0 * segment.share:.1f}%",
                "facts": [_keep_together(fact.text) for fact in segment.facts],
                "typical": segment.typical[:_MOST_TYPICAL],
                "sure": None if sure is None else (*sure, f"{score:.2f}"),
            }
        )
    return cards


def _keep_together(text: str) -> str:
    """Return a fact whose last part, in parentheses, is not broken between lines."""
    start, _, end = text.rpartition(" (")
    return f"{start} ({end.replace(' ', NO_BREAK)}" if start else text


def _make_badge(cluster: int) -> dict[str, Any]:
    return {
        "number": cluster,
        "color": cluster % len(LIGHT.palette),
        "glyph": GLYPHS[choose_shape(cluster)],
    }


def make_cards(
    summary: ClusterSummary,
    names: Sequence[str],
    image_shape: tuple[int, ...] | None,
    segments: Segments,
    levels: Collection[int] = (),
) -> list[dict[str, Any]]:
    """Return what the template shows of each cluster, the largest first.

    Features in `levels` are one for a level of a category, and zero otherwise.
    """
    exemplars: Any = summary.exemplars
    cards = []
    for j in np.argsort(-summary.sizes, kind="stable").tolist():
        size, features = int(summary.sizes[j]), summary.features
        rows = summary.exemplars_of(j)[1]
        shown: dict[str, Any] = {"strip": None, "mean": None, "lines": []}
        if size and features is not None and image_shape is not None:
            bounds = float(exemplars.min()), float(exemplars.max())
            shown["strip"] = draw_image_strip(toarray(rows), image_shape, bounds)
            mean = features.cluster_means[[j]]
            shown["mean"] = draw_image_strip(mean, image_shape, bounds)
        elif size and features is not None:
            shown["lines"] = _make_lines(summary, j, names, levels)
        margin = ""
        if size and summary.margins is not None:
            margin = f"{summary.margins[j]:.2f}"
        cards.append(
            shown
            | _make_badge(j)
            | {
                "name": segments.names[j],
                "rows": format_count(size, "row"),
                "share": format_share(size / summary.n_rows),
                "cost": format_value(float(summary.costs[j])) if size else "",
                "margin": margin,
                "classes": _name_classes(summary, j),
                "typical": segments.segments[j].typical,
            }
        )
    return cards


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
    summary: ClusterSummary, cluster: int, names: Sequence[str], levels: Collection[int]
) -> list[dict[str, Any]]:
    """Return the features that set a cluster apart, the levels of a category alike."""
    features = summary.features
    assert features is not None
    differences, largest = features.differences[cluster], features.largest_difference
    lines = []
    for j in _choose_features(features, cluster):
        both = features.cluster_means[cluster, j], features.mean[j]
        if j in levels:
            mean, overall = (format_share(min(max(v, 0.0), 1.0)) for v in both)
        else:
            mean, overall = (_shorten_value(v, features.deviation[j]) for v in both)
        lines.append(
            {
                "name": names[j].replace("=", ": ", 1) if j in levels else names[j],
                # In standard deviations; the bar in percent of half of its track.
                "difference": f"{differences[j]:+.2f}".replace("-", "−"),
                "width": round(100.0 * abs(float(differences[j])) / largest, 1),
                "above": bool(differences[j] >= 0.0),
                "mean": mean,
                "overall": overall,
            }
        )
    return lines


def _choose_features(features: Features, cluster: int) -> list[int]:
    """Return the features of a card; the first ones where none sets a cluster apart."""
    chosen = features.rank_distinguishing(_MOST_FEATURES, cluster)
    if not len(chosen):
        chosen = np.arange(min(_MOST_FEATURES, len(features.mean)))
    return chosen.tolist()


def list_details(summary: ClusterSummary, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the values on the cards in the order of labels, for workbooks and JSON.

    Without names, as of pixels, there are no features.
    """
    details = []
    for j, size in enumerate(summary.sizes.tolist()):
        spread = float(summary.costs[j]) if size else None
        margin = None
        if size and summary.margins is not None:
            margin = float(summary.margins[j])
        own: dict[str, Any] = {
            "spread": spread,
            "margin": margin,
            "classes": _name_classes(summary, j),
            "features": [],
        }
        features = summary.features
        if size and names and features is not None:
            own["features"] = [
                {
                    "feature": names[i],
                    "difference": float(features.differences[j, i]),
                    "mean": float(features.cluster_means[j, i]),
                    "overall": float(features.mean[i]),
                }
                for i in _choose_features(features, j)
            ]
        details.append(own)
    return details


def _shorten_value(value: float, deviation: float) -> str:
    """Return a value in three digits, none of them below 0.1% of the deviation."""
    if deviation > 0.0:
        value = round(float(value), 3 - int(np.floor(np.log10(deviation)))) or 0.0
    text = f"{value:,.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"
    return text.replace("-", "−")


def make_downloads(
    summary: ClusterSummary, names: Sequence[str], segments: Segments
) -> list[tuple[str, Download]]:
    """Return the files about the clusters, each with the text of its link."""
    order = np.argsort(-summary.sizes, kind="stable").tolist()
    header = ["cluster", "segment", "rows", "share", "cost", "margin", "typical rows"]
    columns = [
        order,
        [segments.names[j] for j in order],
        summary.sizes[order],
        summary.sizes[order] / summary.n_rows,
        summary.costs[order],
        [""] * len(order) if summary.margins is None else summary.margins[order],
        [" ".join(map(str, summary.exemplars_of(j)[0].tolist())) for j in order],
    ]
    if summary.agreement is not None:
        header.append("classes")
        columns.append([_name_classes(summary, j) for j in order])
    downloads = [("All clusters", make_csv("clusters.csv", header, *columns))]
    features, exemplars = summary.features, summary.exemplars
    if features is None:
        return downloads
    chosen = [
        (j, int(feature))
        for j in range(summary.n_clusters)
        for feature in features.rank_distinguishing(_MOST_DOWNLOADED, j)
    ]
    table = make_csv(
        "distinguishing_features.csv",
        ["cluster", "feature", "difference", "mean", "mean of all rows"],
        [j for j, _ in chosen],
        [names[feature] for _, feature in chosen],
        [features.differences[pair] for pair in chosen],
        [features.cluster_means[pair] for pair in chosen],
        [features.mean[feature] for _, feature in chosen],
    )
    downloads.append(("Features that set them apart", table))
    if exemplars is not None and exemplars.shape[0] * len(names) <= _MOST_VALUES:
        clusters, places = np.nonzero(summary.exemplar_indices >= 0)
        numbers = summary.exemplar_indices[clusters, places]
        header, values = ["cluster", "row", *names], toarray(exemplars).T
        table = make_csv("typical_rows.csv", header, clusters, numbers, *values)
        downloads.append(("Typical rows", table))
    return downloads
