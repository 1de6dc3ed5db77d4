"""One page of HTML out of results: nothing is computed here."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sketchmeans.cluster import NystromKMeans
from sketchmeans.diagnostics import Certificate, ClusterSummary, RowMap
from sketchmeans.numerics.escape import escape_control, escape_line
from sketchmeans.report import pictures, words
from sketchmeans.report.cards import cluster_cards, cluster_downloads
from sketchmeans.report.figures import Picture
from sketchmeans.report.themes import DARK, LIGHT
from sketchmeans.theory.base import shown

#: Cards that are open from the start.
_OPEN_CARDS = 24
#: Longest value of a parameter.
_VALUE_LENGTH = 200
_PACKAGES = ("sketchmeans", "numpy", "scipy", "scikit-learn", "matplotlib")


@dataclass(frozen=True)
class Findings:
    """What a page is made of.

    Attributes
    ----------
    model : fitted estimator
    data : str
        What was clustered, in words.
    names : sequence of str
        Names of the features; none for a precomputed kernel.
    summary : ClusterSummary
    row_map : RowMap
    certificate : Certificate or None
    paths : sequence of tables
    image_shape : tuple of int or None
    title : str
    command : str or None
    """

    model: Any
    data: str
    names: Sequence[str]
    summary: ClusterSummary
    row_map: RowMap
    certificate: Certificate | None
    paths: Sequence[Mapping[str, Any]]
    image_shape: tuple[int, ...] | None
    title: str
    command: str | None


@dataclass(frozen=True)
class Tile:
    """A number that stands out, and what it is."""

    value: str
    name: str
    note: str


def rendered(found: Findings) -> str:
    """Return the page."""
    environment = Environment(
        loader=PackageLoader("sketchmeans.report"),
        autoescape=True,  # names and classes come from the data
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    summary, model = found.summary, found.model
    cards = cluster_cards(summary, found.names, found.image_shape)
    return environment.get_template("page.html").render(
        title=found.title,
        lead=words.lead(model, summary, len(found.names) or None),
        tiles=_tiles(found),
        plain_words=_plain_words(found),
        agreement=None
        if summary.agreement is None
        else words.agreement_words(summary.agreement),
        facts=_facts(found),
        cards=cards[:_OPEN_CARDS],
        more_cards=cards[_OPEN_CARDS:],
        downloads=cluster_downloads(summary, cards, found.names),
        has_images=found.image_shape is not None,
        overview=_overview(found),
        fit=_fit_pictures(found),
        class_picture=None
        if summary.agreement is None
        else pictures.agreement_picture(summary.agreement),
        paths=[pictures.path_pictures(table, model) for table in found.paths],
        command=found.command,
        code=None if found.command else f"{model!r}",
        parameters=_parameters(model),
        versions=_versions(),
        made=datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC"),
        light=LIGHT,
        dark=DARK,
    )


def _tiles(found: Findings) -> list[Tile]:
    summary, certificate = found.summary, found.certificate
    tiles = [
        Tile(f"{summary.n_rows:,}", "rows", ""),
        Tile(f"{summary.n_clusters:,}", "clusters", _size_note(summary)),
        Tile(shown(summary.cost), "cost", "mean squared distance to the centre"),
    ]
    if certificate is not None and isfinite(certificate.ratio):
        value = f"≤\u2009{certificate.ratio:.3g}×"
        tiles.append(Tile(value, "the best possible cost", "certified"))
    if summary.n_clusters > 1:
        share = words.percent(max(found.row_map.explained, 0.0))
        tiles.append(Tile(share, "of the spread explained", "estimated on a sample"))
    if summary.agreement is not None:
        nmi = summary.agreement.normalized_mutual_information
        tiles.append(Tile(f"{nmi:.3f}", "agreement with classes", "NMI; 1 is full"))
    return tiles


def _size_note(summary: ClusterSummary) -> str:
    empty = int((summary.sizes == 0).sum())
    if empty:
        return f"{empty:,} of them without rows"
    least, most = int(summary.sizes.min()), int(summary.sizes.max())
    return f"of {least:,} to {most:,} rows" if least < most else ""


def _plain_words(found: Findings) -> list[str]:
    return [
        words.cost_words(found.summary, found.row_map, found.model),
        words.certificate_words(found.certificate, found.summary.n_clusters),
    ]


def _overview(found: Findings) -> list[Picture]:
    shown_pictures = [pictures.map_picture(found.row_map, found.summary.n_rows)]
    if found.summary.n_clusters > 1:
        shown_pictures.append(pictures.sizes_picture(found.summary))
        shown_pictures.append(pictures.margin_picture(found.summary))
        if found.summary.features is not None and found.image_shape is None:
            shown_pictures.append(pictures.feature_picture(found.summary, found.names))
    return shown_pictures


def _fit_pictures(found: Findings) -> list[Picture]:
    model = found.model
    drawn = [pictures.cost_picture(model)]
    if found.row_map.residuals is not None:
        m = int(model.landmarks_.shape[0])
        drawn.append(pictures.residual_picture(found.row_map, m))
    path = getattr(model, "landmark_path_", None)
    if path is not None:
        drawn.append(pictures.landmark_picture(path))
    return [one for one in drawn if one is not None]


def _facts(found: Findings) -> list[tuple[str, str]]:
    """Return what was clustered and how, line by line."""
    model = found.model
    name = words.method_name(model)
    facts = [
        ("Data", found.data),
        ("Method", f"{name[0].upper()}{name[1:]} ({type(model).__name__})"),
    ]
    weights = words.weight_words(model)
    if weights:
        facts.append(("Weights", weights))
    kernel = getattr(model, "kernel_", None)
    if kernel is not None:
        meaning = words.bandwidth_words(model)
        name = re.sub(r"\d+\.\d{5,}", lambda m: f"{float(m[0]):.5g}", repr(kernel))
        facts.append(("Kernel", f"{name}: {meaning}" if meaning else name))
    if isinstance(model, NystromKMeans):
        m, rank = int(model.landmarks_.shape[0]), int(model.rank_)
        chosen = model.landmarks if isinstance(model.landmarks, str) else "given"
        text = f"{m:,}, chosen by {chosen!r}" if chosen != "given" else f"{m:,}, given"
        facts.append(("Landmarks", text if rank == m else f"{text}; rank {rank:,}"))
    reducer = getattr(model, "reducer_", None)
    if reducer is not None:
        facts.append(("Reduced by", f"{reducer!r}"))
    n_iter = getattr(model, "n_iter_", None)
    if n_iter is not None:
        end = "settled" if model.converged_ else "had not settled"
        facts.append(("Passes", f"{n_iter:,} over all rows; it {end}"))
    if found.certificate is not None:
        few = found.certificate.method == "subsample"
        bound = shown(found.certificate.lower_bound)
        rows = "subsamples" if few else "all rows"
        facts.append(("Lower bound", f"{bound}, from the spectrum of {rows}"))
    return [(label, _shortened(text)) for label, text in facts]


def _parameters(model: Any) -> list[tuple[str, str]]:
    params = model.get_params(deep=False)
    return [(name, _shortened(repr(value))) for name, value in params.items()]


def _versions() -> list[tuple[str, str]]:
    found = [(name, version(name)) for name in _PACKAGES]
    system = f"{platform.system()} {platform.machine()}"
    return [*found, ("Python", platform.python_version()), ("system", system)]


def _breakable(name: str) -> Markup:
    """Return a name that may be broken where its words end."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/.:-])", escape_line(name)))


def _visible(value: Any) -> Any:
    """Return what goes to the page, with control codes spelled out; markup as it is."""
    is_text = type(value) is str and not value.startswith("data:")
    return escape_control(value) if is_text else value


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _VALUE_LENGTH else text[: _VALUE_LENGTH - 1] + "…"
