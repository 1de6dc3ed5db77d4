"""Results of a fit as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from scipy import sparse

from sketchmeans.cluster import SpectralKMeans
from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.input import validate_input
from sketchmeans.data.preparation import Table
from sketchmeans.data.sources import Source
from sketchmeans.diagnostics import (
    Certificate,
    ClusterSummary,
    RowMap,
    Segments,
    certificate,
    row_map,
)
from sketchmeans.diagnostics.described import open_described
from sketchmeans.diagnostics.fitted import AnyModel
from sketchmeans.diagnostics.segment_facts import list_levels, name_features
from sketchmeans.diagnostics.segments import (
    describe_members,
    find_id_column,
    read_ids,
)
from sketchmeans.diagnostics.summary import summarize_members
from sketchmeans.numerics.atomic_file import check_can_write, open_atomic
from sketchmeans.numerics.parameters import as_generator, check_integer, check_option
from sketchmeans.report.cards import list_details
from sketchmeans.report.page import Findings, list_facts, render_page
from sketchmeans.report.workbook import check_workbooks, write_workbook
from sketchmeans.theory.results import Result, format_value

#: Rows of the map.
SAMPLE_SIZE = 2_000
#: Rows on a cluster of which a report is made, at most.
_REMOTE_ROWS = 100_000
#: Typical rows of a cluster: as rows of a table, and as images.
_EXEMPLARS, _IMAGES = 5, 8
#: Seconds to look for a proof, and a ratio that is close enough.
_PROOF_SECONDS, _PROOF_RATIO = 10.0, 1.03

Paths = Mapping[str, Any] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True, repr=False)
class Report(Result):
    """A report that was written, and the numbers in it.

    Attributes
    ----------
    path : str
        The file.
    title : str
    segments : Segments
        Who the clusters are.
    summary : ClusterSummary
    row_map : RowMap
    certificate : Certificate or None
    technical : dict of str to str
        What was clustered and how.
    details : list of dict
        Spread, margin and features of each segment, in the order of labels.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sketchmeans import SketchedKMeans, report
    >>> X = [[0.0], [1.0], [8.0], [9.0]]
    >>> model = SketchedKMeans(2, random_state=0).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     print(report.write_report(model, X, f"{folder}/x.html").segments.n_rows)
    4
    """

    path: str
    title: str
    segments: Segments
    summary: ClusterSummary
    row_map: RowMap
    certificate: Certificate | None
    technical: dict[str, str]
    details: list[dict[str, Any]]

    def _lines(self) -> list[tuple[str, str]]:
        lines = [
            ("path", self.path),
            ("rows", format_value(self.summary.n_rows)),
            ("clusters", format_value(self.summary.n_clusters)),
            ("cost", format_value(self.summary.cost)),
        ]
        if self.certificate is not None:
            lines.append(("ratio", format_value(self.certificate.ratio)))
        return lines


def write_report(
    model: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    y: Any = None,
    feature_names: Sequence[str] | None = None,
    image_shape: Sequence[int] | None = None,
    title: str | None = None,
    command: str | None = None,
    sample_size: int = SAMPLE_SIZE,
    certificate: str | Certificate | None = "auto",
    paths: Paths | None = None,
    id_column: str | int | None = None,
    xlsx: str | os.PathLike[str] | None = None,
    source_name: str | None = None,
    random_state: Any = 0,
    on_stage: Callable[[str], Any] = lambda name: None,
) -> Report:
    """Write what a fitted model found in some rows as one HTML file.

    The page is self-contained: no network, no scripts.  It starts with who the segments
    are, as `describe_segments` does; then come a map of a sample, every cluster with
    its typical rows and the features that set it apart, and in one section at the end
    cost, certified ratio and how the fit went.  Every figure comes with its numbers as
    CSV.  It is readable on a phone, in dark and light, and on paper.

    Costs a pass of n·m·(d + k) over the rows, and up to 10 seconds for the certificate;
    rows are read block by block, so files may be larger than memory.  The file appears
    whole or not at all.

    Parameters
    ----------
    model : TableClusterer, KernelKMeans, NystromKMeans, SketchedKMeans or \
SpectralKMeans
        Fitted; also at the end of a `Pipeline`.
    X : DataFrame, array-like, sparse matrix, path, `Source` or Dask collection
        As a rule the rows of the fit; its kernel matrix with
        ``kernel="precomputed"``.  Of a Dask collection 100,000 rows are drawn at
        random, and the report says so.
    path : str or PathLike
        The HTML file to write; one that exists is replaced.  If it ends in .xlsx, the
        same is written as a workbook (``pip install sketchmeans[excel]``).
    y : array-like of shape (n,), optional
        Known classes, to compare the clusters with.
    feature_names : sequence of str, optional
        Default are the names in the fit or in the file, or x0, x1, ...
    image_shape : tuple of int, optional
        Show rows as images of (height, width), or (height, width, 3 or 4 colours).
    title : str, optional
        Default is the name of the file, if `X` is one.
    command : str, optional
        The command behind the report, to be shown; by default the Python estimator.
    sample_size : int, default=2,000
        Rows of the map.
    certificate : {"auto", "semidefinite", "nystrom", "subsample"}, Certificate or None
        How the best possible cost is bounded, see `diagnostics.certificate`; or a
        certificate that you have.  There is none for a kernel that is not positive
        semi-definite.
    paths : table or sequence of tables, optional
        What `diagnostics.bandwidth_path` and `diagnostics.cluster_count_path` returned,
        to be drawn.
    id_column : str or int, optional
        Column that names rows, a number where columns have no names; by default the
        first that the fit took for an identifier.  For a `TableClusterer` or a
        `Pipeline`.
    xlsx : str or PathLike, optional
        Write a workbook, too.
    source_name : str, optional
        What the page calls the file `X`, if not by its path.
    random_state : int, Generator, RandomState or None, default=0
        Draws the samples, and the subsamples of a certificate.
    on_stage : callable, optional
        Called with the name of each stage before it: "clusters", "segments", "map",
        "certificate" and "pictures".

    Returns
    -------
    report : Report
        The path, and the numbers in the report.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sketchmeans import NystromKMeans
    >>> from sketchmeans.report import write_report
    >>> model = NystromKMeans(2, random_state=0).fit(X := [[0.0], [1.0], [8.0], [9.0]])
    >>> with TemporaryDirectory() as folder:
    ...     report = write_report(model, X, f"{folder}/table.html")
    """
    page, book = _check_files(path, xlsx)
    check_integer("sample_size", sample_size)
    X, origin = _fetch_sample(X, y)
    are_images = image_shape is not None
    opened = open_described(model, X, feature_names, are_images=are_images)
    inner, source, names = opened.inner, opened.source, opened.names
    id_column = find_id_column(opened, id_column)
    rows = opened.units
    if rows is source:
        rows = validate_input(inner, source, reset=False)
    shape = _check_shape(image_shape, names)
    tables = _check_paths(paths)
    if not isinstance(certificate, Certificate | None):
        check_option(
            "certificate", certificate, ("auto", "semidefinite", "nystrom", "subsample")
        )
    segment_rng = as_generator(random_state, copy=True)  # as in describe_segments
    map_rng, bound_rng = as_generator(random_state).spawn(2)
    on_stage("clusters")
    n_exemplars = _EXEMPLARS if shape is None else _IMAGES
    summary, members = summarize_members(opened, y=y, n_exemplars=n_exemplars)
    on_stage("segments")
    segments = describe_members(
        opened,
        members,
        summary.exemplar_indices,
        ids=read_ids(opened, id_column, summary),
        are_images=are_images,
        rng=segment_rng,
    )
    on_stage("map")
    sampled = row_map(inner, source, sample_size=sample_size, random_state=map_rng)
    on_stage("certificate")
    bound = _certify(inner, source, certificate, bound_rng)
    on_stage("pictures")
    if summary.features is not None and feature_names is None:
        means = summary.features.cluster_means[summary.sizes > 0]
        names = name_features(opened.units, means, names)
    called = source_name if isinstance(rows, Source) else None
    found = Findings(
        model=inner,
        data=origin + _describe_table(rows, called),
        names=names,
        levels=list_levels(opened.units),
        has_logarithms=_has_logarithms(opened.units),
        summary=replace(summary, segment_names=segments.names),
        segments=segments,
        row_map=sampled,
        certificate=bound,
        paths=tables,
        image_shape=shape,
        title=_make_title(rows, called) if title is None else str(title),
        command=command,
    )
    return _write(found, page, book)


def _has_logarithms(source: Any) -> bool:
    encoders = source.preparation.encoders if hasattr(source, "preparation") else ()
    return any(getattr(encoder, "unit", None) is not None for _, encoder in encoders)


def _write(found: Findings, page: Path | None, book: Path | None) -> Report:
    """Write the page and the workbook, and return what is in them."""
    report = Report(
        os.fspath(page or book or ""),
        found.title,
        found.segments,
        found.summary,
        found.row_map,
        found.certificate,
        dict(list_facts(found)),
        list_details(found.summary, () if found.image_shape else found.names),
    )
    if page is not None:
        # A name may hold half of a surrogate pair, which no file can.
        text = render_page(found).encode("utf-8", errors="replace")
        with open_atomic(page) as file:
            file.write(text)
    if book is not None:
        with open_atomic(book) as file:
            write_workbook(file, report)
    return report


def _fetch_sample(X: Any, y: Any) -> tuple[Any, str]:
    """Return a sample of rows that are on a cluster, and words that say so."""
    if (adapter := find_adapter(X)) is None:
        return X, ""
    if y is not None:
        raise ValueError("y should be None with rows on a cluster, which are sampled.")
    rows, numbers = adapter.sample_table(X, _REMOTE_ROWS)
    is_part = len(numbers) == _REMOTE_ROWS
    return rows, f"{len(numbers):,} rows drawn at random, as " if is_part else ""


def _certify(
    model: AnyModel, X: Any, wanted: str | Certificate | None, rng: Any
) -> Certificate | None:
    kernel = getattr(model, "kernel_", None)
    if not isinstance(wanted, str):
        return wanted
    if isinstance(model, SpectralKMeans):  # which has a bound of its own
        return None
    if kernel is not None and not kernel.positive_definite:
        return None
    takes_time = wanted in ("auto", "semidefinite")
    return certificate(
        model,
        X,
        wanted,
        max_seconds=_PROOF_SECONDS if takes_time else None,
        ratio=_PROOF_RATIO if takes_time else None,
        random_state=rng,
    )


def _check_files(path: Any, xlsx: Any) -> tuple[Path | None, Path | None]:
    """Return the page and the workbook to write, of which one may be missing."""
    page = _check_path("path", path)
    book = None if xlsx is None else _check_path("xlsx", xlsx)
    is_book = page.suffix.lower() == ".xlsx"
    if is_book and book is not None:
        raise ValueError(f"xlsx={xlsx!r} should be None: path={path!r} is a workbook.")
    if is_book or book is not None:
        check_workbooks()
    return (None, page) if is_book else (page, book)


def _check_path(name: str, path: Any) -> Path:
    """Raise if the file cannot be written, before the work is done."""
    reason = ""
    if isinstance(path, str | os.PathLike):
        try:
            check_can_write(path)
        except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
            reason = f": {getattr(error, 'strerror', None) or error}"
        else:
            return Path(path)
    raise ValueError(
        f"{name}={path!r} should be the path of a file in a folder that exists and can "
        f"be written to{reason}."
    )


def _check_shape(given: Any, names: Sequence[str]) -> tuple[int, ...] | None:
    if given is None:
        return None
    try:
        shape = tuple(check_integer("image_shape", size) for size in given)
    except (TypeError, ValueError):
        shape = ()
    is_image = len(shape) == 2 or (len(shape) == 3 and shape[2] in (3, 4))
    if not is_image or prod(shape) != len(names):
        raise ValueError(
            f"image_shape={given!r} should be (height, width) or (height, width, 3 or "
            f"4), with a product of {len(names)}, the number of features."
        )
    return shape


def _check_paths(paths: Any) -> list[Any]:
    if paths is None:
        return []
    tables = list(paths) if isinstance(paths, list | tuple) else [paths]
    for table in tables:
        columns = list(table) if hasattr(table, "__getitem__") else []
        if not ({"gamma", "n_clusters"} & set(columns) and "stability" in columns):
            raise ValueError(
                f"paths with a table of {columns} should be what bandwidth_path or "
                "cluster_count_path returned, or a list of these."
            )
    return tables


def _make_title(table: Any, called: str | None) -> str:
    if isinstance(table, Source) and table.path != Table.path:
        name = os.path.basename(os.path.normpath(called or table.path))
        return f"Segments of {name}"
    return "Segments"


def _describe_table(table: Any, called: str | None) -> str:
    n, d = table.shape
    size = f"{n:,} rows × {d:,} columns, {table.dtype}"
    if isinstance(table, Source):
        kind = ", sparse" if table.is_sparse else ""
        return f"{called or table.path}: {size}{kind}"
    if sparse.issparse(table):
        return f"a sparse table: {size}, {table.nnz:,} values stored"
    return f"a table in memory: {size}"
