"""One page of HTML out of results: nothing is computed here."""

from __future__ import annotations

import platform
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from sketchmeans.cluster import NystromKMeans, SpectralKMeans
from sketchmeans.diagnostics import Certificate, ClusterSummary, RowMap, Segments
from sketchmeans.diagnostics.fitted import Model
from sketchmeans.numerics.escape import escape_control, escape_line
from sketchmeans.report import pictures, words
from sketchmeans.report.cards import make_cards, make_downloads, make_segment_cards
from sketchmeans.report.drawing import DARK, LIGHT, Picture, shorten
from sketchmeans.theory.results import format_at_most, format_value

#: Cards that are open from the start.
_OPEN_CARDS = 24
#: Longest value of a parameter.
_VALUE_LENGTH = 200
_PACKAGES = ("sketchmeans", "numpy", "scipy", "scikit-learn", "matplotlib")


@dataclass(frozen=True)
class Findings:
    """What a page is made of.

    `data` describes what was clustered; a given kernel has no feature names; the paths
    are tables of `bandwidth_path` and `cluster_count_path`.
    """

    model: Model
    data: str
    names: Sequence[str]
    #: Which of these stand for a level of a category.
    levels: Collection[int]
    #: Whether some columns are on a logarithmic scale.
    has_logarithms: bool
    summary: ClusterSummary
    segments: Segments
    row_map: RowMap
    certificate: Certificate | None
    paths: Sequence[Mapping[str, Any]]
    image_shape: tuple[int, ...] | None
    title: str
    command: str | None


def load_template(name: str) -> Template:
    """Return a template that escapes everything that comes from data."""
    environment = Environment(
        loader=PackageLoader("sketchmeans.report"),
        autoescape=True,  # names and classes come from the data
        finalize=_make_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _make_breakable
    environment.globals |= {
        "made": datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC"),
        "light": LIGHT,
        "dark": DARK,
    }
    return environment.get_template(name)


def render_page(found: Findings) -> str:
    """Return the HTML of the page."""
    summary, model, agreement = found.summary, found.model, found.summary.agreement
    segments = make_segment_cards(found.segments)
    cards = make_cards(
        summary, found.names, found.image_shape, found.segments, found.levels
    )
    return load_template("page.html").render(
        title=found.title,
        lead=words.describe_certainty(found.segments),
        segments=segments[:_OPEN_CARDS],
        more_segments=segments[_OPEN_CARDS:],
        id_column=found.segments.id_column,
        note=found.segments.note,
        fitted=words.describe_fit(model, summary, len(found.names)),
        tiles=_make_tiles(found),
        plain_words=_describe_result(found),
        proved=_measure_proof(found.certificate),
        agreement=agreement and words.describe_agreement(agreement),
        facts=list_facts(found),
        cards=cards[:_OPEN_CARDS],
        more_cards=cards[_OPEN_CARDS:],
        downloads=make_downloads(summary, found.names, found.segments),
        about_means=words.MEANS_OF_LOGARITHMS if found.has_logarithms else "",
        has_images=found.image_shape is not None,
        overview=_draw_overview(found),
        fit=_draw_fit(found),
        class_picture=agreement and pictures.picture_agreement(agreement),
        paths=[pictures.picture_path(table, model) for table in found.paths],
        command=found.command,
        code=None if found.command else f"{model!r}",
        parameters=[
            (name, _shorten_line(repr(value)))
            for name, value in model.get_params(deep=False).items()
        ],
        versions=_list_versions(),
    )


def _describe_result(found: Findings) -> list[str]:
    """Return what the cost means, and what is certain about the best possible one."""
    if isinstance(found.model, SpectralKMeans):
        return words.describe_cut(found.model)
    return [
        words.describe_cost(found.summary, found.row_map, found.model),
        words.describe_certificate(found.certificate, found.summary.n_clusters),
    ]


def _measure_proof(found: Certificate | None) -> tuple[str, str] | None:
    """Return the interval of the optimum in words, and the proved share of the cost."""
    if found is None or not isfinite(found.ratio):
        return None
    share = min(1.0 / found.ratio, 1.0) if found.cost > 0.0 else 1.0
    return found.interval, f"{share:.2%}"


def _make_tiles(found: Findings) -> list[tuple[str, str, str]]:
    """Return numbers that stand out, each with its name and a note."""
    summary, certificate = found.summary, found.certificate
    least, most = int(summary.sizes.min()), int(summary.sizes.max())
    sizes = f"of {least:,} to {most:,} rows" if least < most else ""
    if not least:
        sizes = f"{int((summary.sizes == 0).sum()):,} of them without rows"
    cost = format_value(summary.cost)
    tiles = [
        (f"{summary.n_rows:,}", "rows", ""),
        (f"{summary.n_clusters:,}", "segments", sizes),
        (cost, "cost", "mean squared distance to the centre"),
    ]
    if certificate is not None and isfinite(certificate.ratio):
        value = f"≤\u2009{format_at_most(certificate.ratio)}×"
        tiles.append((value, "the best possible cost", "certified"))
    if summary.n_clusters > 1:
        share = words.format_share(max(found.row_map.explained, 0.0))
        tiles.append((share, "of the spread explained", "estimated on a sample"))
    if summary.agreement is not None:
        nmi = summary.agreement.normalized_mutual_information
        tiles.append((f"{nmi:.3f}", "agreement with classes", "NMI; 1 is full"))
    return tiles


def _draw_overview(found: Findings) -> list[Picture]:
    summary = found.summary
    drawn = [pictures.picture_map(found.row_map, summary.n_rows, summary.segment_names)]
    if summary.n_clusters > 1:
        drawn.append(pictures.picture_sizes(summary))
        drawn.append(pictures.picture_margins(summary))
        if summary.features is not None and found.image_shape is None:
            drawn.append(pictures.picture_features(summary, found.names))
    return drawn


def _draw_fit(found: Findings) -> list[Picture]:
    model = found.model
    drawn = [pictures.picture_cost(model)]
    if found.row_map.residuals is not None:
        m = int(model.landmarks_.shape[0])
        drawn.append(pictures.picture_residual(found.row_map, m))
    path = getattr(model, "landmark_path_", None)
    if path is not None:
        drawn.append(pictures.picture_landmarks(path))
    return [picture for picture in drawn if picture is not None]


def list_facts(found: Findings) -> list[tuple[str, str]]:
    """Return what was clustered and how, as labels and texts."""
    model = found.model
    name = words.name_method(model)
    facts = [
        ("Data", found.data),
        ("Method", f"{name[0].upper()}{name[1:]} ({type(model).__name__})"),
    ]
    weights = words.describe_weights(model)
    if weights:
        facts.append(("Weights", weights))
    kernel = getattr(model, "kernel_", None)
    if kernel is not None:
        meaning = words.describe_bandwidth(model)
        name = re.sub(r"\d+\.\d{5,}", lambda m: f"{float(m[0]):.5g}", repr(kernel))
        facts.append(("Kernel", f"{name}: {meaning}" if meaning else name))
    if isinstance(model, NystromKMeans):
        m, rank = int(model.landmarks_.shape[0]), int(model.rank_)
        chosen = model.landmarks
        text = (
            f"{m:,}, chosen by {chosen!r}"
            if isinstance(chosen, str)
            else f"{m:,}, given"
        )
        facts.append(("Landmarks", text if rank == m else f"{text}; rank {rank:,}"))
    if isinstance(model, SpectralKMeans) and model.n_neighbors_ is not None:
        m, s = len(model.dual_coef_), model.n_neighbors_
        facts.append(("Graph", f"{m:,} landmarks, of which {s:,} for each row"))
    if found.has_logarithms:
        facts.append(("Means", words.MEANS_OF_LOGARITHMS))
    reducer = getattr(model, "reducer_", None)
    if reducer is not None:
        facts.append(("Reduced by", f"{reducer!r}"))
    n_iter = getattr(model, "n_iter_", None)
    if n_iter is not None:
        end = "converged" if model.converged_ else "had not converged"
        facts.append(("Iterations", f"{n_iter:,} over all rows; the fit {end}"))
    if found.certificate is not None:
        facts.append(("Lower bound", words.describe_method(found.certificate)))
    return [(label, _shorten_line(text)) for label, text in facts]


def _list_versions() -> list[tuple[str, str]]:
    found = [(name, version(name)) for name in _PACKAGES]
    system = f"{platform.system()} {platform.machine()}"
    return [*found, ("Python", platform.python_version()), ("system", system)]


def _make_breakable(name: str) -> Markup:
    """Return a name that may be broken where its words end."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/.:-])", escape_line(name)))


def _make_visible(value: Any) -> Any:
    """Return text with control codes spelled out, and markup as it is."""
    is_text = type(value) is str and not value.startswith("data:")
    return escape_control(value) if is_text else value


def _shorten_line(text: str) -> str:
    return shorten(" ".join(text.split()), _VALUE_LENGTH)
