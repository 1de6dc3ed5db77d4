"""A raw table on a cluster: prepared and labelled one partition at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from sketchmeans.cluster.base import Clusterer
from sketchmeans.data.adapters import Adapter
from sketchmeans.data.preparation import as_table, open_encoded
from sketchmeans.data.rows import float_type
from sketchmeans.engine.progress import Progress
from sketchmeans.numerics.linalg import Array

#: Rows from which centre, scale and what fills gaps are learned: all, if they are less.
SCALE_ROWS = 500_000


@dataclass(frozen=True)
class PreparedElsewhere:
    """Prepared rows on a cluster: all rows of the table.

    With the methods of a `PreparedSource` of which no row is left out.
    """

    rows: Any

    def select(self, values: Array) -> Array:
        """Return the values of the rows that are kept."""
        return values

    def spread(self, values: Any, other: Any) -> Any:
        """Return values of all rows."""
        return values

    def numbers(self, rows: Array) -> Array:
        """Return the numbers of rows in the table."""
        return rows


def prepare_elsewhere(
    model: Any, adapter: Adapter, X: Any, sample_weight: Any, progress: Progress
) -> tuple[PreparedElsewhere, Array | None]:
    """Return the prepared rows of a table on a cluster, and the weights of all.

    How to prepare them is learned from a random sample, which is brought here.
    """
    if model.missing == "drop":
        raise ValueError(
            "missing='drop' does not take a Dask collection, whose rows should stay in "
            "line with their labels. Give X.dropna(), or missing='mean'."
        )
    if not isinstance(model.estimator, Clusterer):
        raise TypeError(
            f"estimator={model.estimator!r} takes rows in memory; with a Dask "
            "collection it should be one of this package, such as NystromKMeans."
        )
    sample, numbers = adapter.sample_table(X, SCALE_ROWS)
    weights = None if sample_weight is None else np.asarray(sample_weight)
    own = None if weights is None else weights[numbers]
    prepared, _ = model._fit_preparation(sample, own, progress)
    has_names = hasattr(model, "feature_names_in_")
    if has_names:
        X = adapter.select_columns(X, model.columns_)
    prepare = partial(_prepare, _preparing(model))
    width, dtype = (prepared.shape[1],), prepared.dtype
    rows = adapter.as_table(adapter.map_table(X, prepare, width, dtype))
    if has_names:
        # Columns of words and dates have become features of other names.
        is_same = model.features_ == model.columns_
        rows.meta = adapter.empty_table(X) if is_same else prepared.empty_table()
    return PreparedElsewhere(rows), weights


def map_elsewhere(model: Any, adapter: Adapter, method: str, X: Any) -> Any:
    """Return labels or distances of a table on a cluster, as a lazy array."""
    alone = _preparing(model)
    alone.estimator_ = model.estimator_
    function: Callable[[Any], Array] = partial(_call, alone, method)
    width: tuple[int, ...] = ()
    dtype = np.dtype(np.int32)
    if method == "transform":
        width, dtype = (model._n_features_out,), _distance_type(model, adapter, X)
    return adapter.map_table(X, function, width, dtype)


def _distance_type(model: Any, adapter: Adapter, X: Any) -> np.dtype[Any]:
    table = as_table(adapter.empty_table(X))
    if model.plan_:
        return float_type(open_encoded(table, model.plan_).dtype)
    return float_type(table.open(model.columns_).dtype)


def _preparing(model: Any) -> Any:
    """Return the model with what it has learned of columns, and nothing of rows."""
    alone = clone(model)
    for name, value in vars(model).items():
        if name.endswith("_") and name not in ("estimator_", "labels_"):
            setattr(alone, name, value)
    if hasattr(alone.estimator, "n_jobs"):
        alone.estimator.n_jobs = 1  # each worker has its own share of the cores
    return alone


def _prepare(model: Any, part: Any) -> Array:
    prepared = model.prepare(part)
    return np.asarray(prepared.read(0, len(prepared)))


def _call(model: Any, method: str, part: Any) -> Array:
    found: Array = getattr(model, method)(part)
    return found
