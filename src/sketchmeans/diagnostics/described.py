"""A fitted model and a table: rows as the model sees them, columns as people do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from sketchmeans.cluster import SketchedKMeans
from sketchmeans.cluster.table import TableClusterer
from sketchmeans.cluster.within import open_pipeline
from sketchmeans.data.input import validate_input
from sketchmeans.data.preparation import (
    Column,
    ColumnPlan,
    PreparedSource,
    Table,
    as_table,
    match_columns,
)
from sketchmeans.data.sources import Source
from sketchmeans.diagnostics.fitted import AnyModel, check_any_model, has_given_kernel


@dataclass(frozen=True)
class Described:
    """What clusters are described by.

    Attributes
    ----------
    model : TableClusterer or estimator
        The model, or the last step of a pipeline: it holds the names of segments.
    inner : estimator
    source : Source or array
        The rows as `inner` sees them.
    units : Source or array
        The same rows in columns whose units are known: the source itself, or what was
        given to a pipeline.
    names : list of str
        The features of `units`.
    table : Table or None
        Where ids are found.
    plan : list of ColumnPlan
        What the columns of the table are.
    """

    model: Any
    inner: AnyModel
    source: Any
    units: Any
    names: list[str]
    table: Table | None = None
    plan: Sequence[ColumnPlan] = ()


def open_described(
    model: Any,
    X: Any,
    feature_names: Sequence[str] | None = None,
    *,
    are_images: bool = False,
) -> Described:
    """Return a model and a table as they are described.

    A `TableClusterer` knows the units of its table.  The table given to a `Pipeline`
    is looked at as a `TableClusterer` would do, which finds numbers, categories, dates
    and identifiers; what is not a table, such as texts, is described by the features
    that its last step sees, as are images.
    """
    last, seen = open_pipeline(model, X)
    if isinstance(last, TableClusterer):
        inner, table = check_any_model(last.estimator_), None
        if not isinstance(seen, PreparedSource):
            table = as_table(seen)  # read once; its rows as those of the fit were
            seen = last.prepare(table)
        names = _check_names(feature_names, inner, seen, last.features_)
        return Described(last, inner, seen, seen, names, table, last.plan_)
    inner = check_any_model(last)
    found = validate_input(inner, seen, reset=False)
    source = found if isinstance(found, Source) else seen
    if isinstance(model, Pipeline) and len(model.steps) > 1 and not are_images:
        table = _find_table(X)
        view = None if table is None else _learn_columns(model, table)
        if table is not None and view is not None:
            units = view.prepare(table)
            names = _check_names(feature_names, inner, units, view.features_)
            return Described(last, inner, source, units, names, table, view.plan_)
    known = getattr(inner, "feature_names_in_", None)
    if known is None:
        known = _find_step_names(model)
    names = _check_names(feature_names, inner, found, known)
    return Described(last, inner, source, source, names)


def _find_table(X: Any) -> Table | None:
    try:
        return as_table(X)
    except (TypeError, ValueError):  # texts, images: the first step knows what it is
        return None


def _learn_columns(model: Pipeline, table: Table) -> TableClusterer | None:
    """Return what prepares the columns of a pipeline; None if words fail for all."""
    names = getattr(model, "feature_names_in_", None)
    exclude: list[Column] = []
    if names is not None:
        own = match_columns(table, list(names), of_any_type=True)
        exclude = [column for column in table.columns if column not in own]
    fills = table.types is None and not table.open(None).is_sparse
    missing = "fill" if fills else "auto"
    view = TableClusterer(SketchedKMeans(2), exclude=exclude, missing=missing)
    try:
        return view.fit_preparation(table)
    except ValueError:  # identifiers and constants alone
        return None


def _find_step_names(model: Any) -> Sequence[Any] | None:
    """Return what a pipeline calls the features of its last step."""
    if not (isinstance(model, Pipeline) and len(model.steps) > 1):
        return None
    try:
        return list(model[:-1].get_feature_names_out())
    except (AttributeError, ValueError):  # a step that has no names
        return None


def _check_names(
    given: Sequence[str] | None, model: AnyModel, units: Any, known: Any
) -> list[str]:
    """Return the names of the features; none where kernel values are given."""
    if has_given_kernel(model):
        if given is not None:
            raise ValueError(
                "feature_names should be None with kernel='precomputed': there are no "
                "features."
            )
        return []
    if given is None and known is None and isinstance(units, Source):
        known = units.feature_names
    names = known if given is None else given
    d = int(units.shape[1])
    names = [
        name if isinstance(name, str) else f"x{name}"
        for name in (range(d) if names is None else names)
    ]
    if len(names) != d:
        raise ValueError(f"feature_names of length {len(names)} should have {d}.")
    return names
