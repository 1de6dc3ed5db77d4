"""Steps of a `TableClusterer`: how its table is prepared, and new ones like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone, is_clusterer, is_outlier_detector
from sklearn.utils.validation import check_is_fitted

from sketchmeans.cluster.base import Clusterer
from sketchmeans.cluster.raw_tables import PreparedElsewhere
from sketchmeans.cluster.resume import check_checkpoint
from sketchmeans.data.input import check_weights, normalise_weights
from sketchmeans.data.preparation import (
    Column,
    ColumnPlan,
    PreparedSource,
    Table,
    are_dicts,
    as_table,
    check_as_kinds,
    check_usable,
    choose_columns,
    find_complete_rows,
    fit_scaling,
    layout_of,
    match_columns,
    open_encoded,
    plan_table,
    table_of_dicts,
)
from sketchmeans.data.preparation.scaling import n_blocks
from sketchmeans.data.source_rows import SourceRows
from sketchmeans.engine.progress import Progress
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.memory import format_bytes, release_free_memory
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import check_option

#: Values of `scale` and of `missing`.
SCALES = ("auto", "standard", "robust", "log", "none")
GAPS = ("auto", "fill", "mean", "drop", "error")


def check_params(model: Any) -> None:
    """Raise if a parameter is wrong, or the estimator is not a clusterer."""
    estimator = model.estimator
    groups = hasattr(estimator, "fit_predict") and not is_outlier_detector(estimator)
    if not (hasattr(estimator, "fit") and (is_clusterer(estimator) or groups)):
        raise ValueError(
            f"estimator={estimator!r} should be a clusterer, such as NystromKMeans."
        )
    check_option("scale", model.scale, SCALES)
    check_option("missing", model.missing, GAPS)
    check_as_kinds(model.as_kinds)
    for name in ("kernel", "metric", "affinity"):
        if str(getattr(estimator, name, None)) == "precomputed":
            raise ValueError(
                f"{name}='precomputed' should be another {name} for a table of "
                "features."
            )


def check_given(
    estimator: Any, method: str, sample_weight: Any, checkpoint: Any = None
) -> None:
    """Raise if an estimator's `fit` or `partial_fit` does not take what is given."""
    taken = signature(getattr(estimator, method)).parameters
    given = {"sample_weight": sample_weight, "checkpoint": checkpoint}
    for name, value in given.items():
        if value is not None and name not in taken:
            raise ValueError(
                f"{name} should be None: {type(estimator).__name__} does not take it."
            )
    check_checkpoint(estimator, checkpoint)


def rows_for(model: Any, estimator: Any, prepared: Any) -> Any:
    """Return prepared rows in a form that an estimator takes."""
    if isinstance(prepared, PreparedElsewhere):
        return prepared.rows
    if isinstance(estimator, Clusterer):
        return prepared
    need = SourceRows(prepared, Workers(1)).load_memory
    if need > model._budget():
        raise MemoryError(
            f"{type(estimator).__name__} takes rows in memory, and those of "
            f"{prepared.path} take {format_bytes(need)}; NystromKMeans reads them "
            "block by block."
        )
    return prepared.read(0, len(prepared))


def fit_labels(estimator: Any, rows: Any, extra: Mapping[str, Any]) -> Any:
    """Fit an estimator, and return the labels; some clusterers keep none."""
    if not extra and hasattr(estimator, "fit_predict"):
        return estimator.fit_predict(rows)
    estimator.fit(rows, **extra)
    found = getattr(estimator, "labels_", None)
    return estimator.predict(rows) if found is None else found


def fit_batch(model: Any, X: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return the estimator after one more batch, its prepared rows and their labels."""
    prepared: Any
    if hasattr(model, "estimator_"):
        estimator, prepared = model.estimator_, model.prepare(X)
        weights = check_weights(sample_weight, prepared.n_table_rows)
    else:
        estimator, progress = clone(model.estimator), Progress(model)
        prepared, weights = fit_preparation(model, X, sample_weight, progress)
        progress.finish()
    rows = rows_for(model, estimator, prepared)
    estimator.partial_fit(rows, **select_weights(prepared, weights))
    found = getattr(estimator, "labels_", None)
    return estimator, prepared, estimator.predict(rows) if found is None else found


def evaluate(model: Any, method: str, X: Any, sample_weight: Any) -> float:
    """Return what a method of the estimator says of the rows that are kept."""
    check_is_fitted(model, "estimator_")
    prepared = model.prepare(X)
    weights = check_weights(sample_weight, prepared.n_table_rows)
    rows = rows_for(model, model.estimator_, prepared)
    value = getattr(model.estimator_, method)
    return float(value(rows, **select_weights(prepared, weights)))


def select_weights(prepared: Any, weights: Array | None) -> dict[str, Any]:
    """Return the weights of the rows that are kept, as a keyword argument."""
    return {} if weights is None else {"sample_weight": prepared.select(weights)}


def fit_preparation(
    model: Any, X: Any, sample_weight: Any, progress: Progress
) -> tuple[PreparedSource, Array | None]:
    """Set how to prepare a table; return its prepared rows, and weights of all."""
    table = as_table(X)
    chosen = choose_columns(table, model.columns, model.exclude, model.label_column)
    scaling, missing = _find_rules(model, table)
    plan: list[ColumnPlan] = []
    if table.types is not None:
        if not any(table.types[str(name)] for name in chosen):  # before it is read
            numbers = SourceRows(table.open(chosen), Workers(1))
            numbers.check_memory(model._budget())
        plan = _plan(model, table, chosen, sample_weight)
        check_usable(table.path, plan)
        chosen = [column.name for column in plan if column.is_used]
    source = open_encoded(table, plan) if plan else table.open(chosen)
    weights = check_weights(sample_weight, len(source))
    layout = layout_of(plan) if plan else None
    with (
        model._workers() as workers,
        progress.blocks("reading rows", n_blocks(source)) as on_block,
    ):
        SourceRows(source, workers).check_memory(model._budget())
        unit_weights, _ = normalise_weights(weights)
        preparation, kept = fit_scaling(
            source, scaling, missing, workers, on_block, unit_weights, layout
        )
    if plan:
        release_free_memory()
    for name in ("feature_names_in_", "zero_based_"):
        model.__dict__.pop(name, None)
    model.plan_ = plan
    model.columns_, model.n_features_in_ = chosen, len(chosen)
    if table.types is not None:
        model.feature_names_in_ = np.array(chosen, dtype=object)
    if source.zero_based is not None:
        model.zero_based_ = source.zero_based
    model.dialect_ = table.dialect and table.dialect.to_dict()
    model.center_, model.scale_ = preparation.center, preparation.scale
    model.fill_, model.n_filled_ = preparation.fill, preparation.n_filled
    model.n_scale_rows_ = preparation.n_scale_rows
    model.column_weights_ = preparation.weigh_columns(layout)
    prepared = PreparedSource(source, model._preparation(), kept)
    model.n_dropped_ = len(source) - len(prepared)
    return prepared, weights


def plan_columns(model: Any, table: Table) -> list[ColumnPlan]:
    """Return what a fit would do with each column of a table that has names."""
    chosen = choose_columns(table, model.columns, model.exclude, model.label_column)
    _find_rules(model, table)
    return [] if table.types is None else _plan(model, table, chosen, None)


def _plan(
    model: Any, table: Table, columns: Sequence[Column], sample_weight: Any
) -> list[ColumnPlan]:
    scaling, missing = _find_rules(model, table)
    return plan_table(
        table,
        [str(column) for column in columns],
        named=model.columns is not None,
        as_kinds=model.as_kinds,
        scale=scaling,
        missing=missing,
        sample_weight=sample_weight,
    )


def _find_rules(model: Any, table: Table) -> tuple[str, str]:
    """Return how this table is scaled, and what becomes of its gaps."""
    scaling, missing = model.scale, model.missing
    if table.types is not None:
        return scaling, "fill" if missing == "auto" else missing
    if scaling == "log":
        raise ValueError(
            "scale='log' should be 'auto', 'standard', 'robust' or 'none' for a table "
            "without column names."
        )
    if model.as_kinds:
        raise ValueError(
            f"as_kinds={model.as_kinds!r} should be None for a table without column "
            "names."
        )
    scaling = "standard" if scaling == "auto" else scaling
    return scaling, "error" if missing == "auto" else missing


def open_prepared(model: Any, X: Any) -> PreparedSource:
    """Return the rows of a table, prepared as in the fit; there may be none."""
    preparation = model._preparation()
    if are_dicts(X):
        X = table_of_dicts(X, *_find_keys(model))
    table = as_table(X, like=getattr(model, "dialect_", None))
    if hasattr(model, "zero_based_"):  # fitted to features that are numbered
        n_features = 1 + max(int(column) for column in model.columns_)
        table = table.like_fit(model.zero_based_, n_features)
    elif table.types is None and model.columns_ == list(range(model.n_features_in_)):
        width = len(table.columns)
        if width != model.n_features_in_:
            raise ValueError(
                f"X has {width} features, but {type(model).__name__} is expecting "
                f"{model.n_features_in_} features as input."
            )
    if model.plan_:
        names = match_columns(table, model.columns_, of_any_type=True)
        source = open_encoded(table, model.plan_, [str(name) for name in names])
    else:
        source = table.open(match_columns(table, model.columns_))
    kept = None
    if model.missing == "drop":
        with model._workers() as workers:
            kept = find_complete_rows(source, workers)
    is_complete = model.missing == "drop" or model.fill_ is not None
    return PreparedSource(source, preparation, kept, is_complete=is_complete)


def _find_keys(model: Any) -> tuple[list[str], list[str]]:
    """Return the keys that a row must have, and those that it may have."""
    if not hasattr(model, "feature_names_in_"):
        raise ValueError(
            "X should be an array: the model was fitted to columns without names, so "
            "that a dictionary has no keys for them."
        )
    planned = [column.name for column in model.plan_]
    aside = [*(model.exclude if model.exclude is not None else ()), model.label_column]
    known = [*model.columns_, *planned, *(name for name in aside if name is not None)]
    return list(model.columns_), list(dict.fromkeys(map(str, known)))
