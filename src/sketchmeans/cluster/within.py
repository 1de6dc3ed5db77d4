"""The clusterer within a model: behind the preparation of a table, or a pipeline."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sketchmeans.cluster.table import TableClusterer
from sketchmeans.data.preparation import PreparedSource, Table, as_table, match_columns
from sketchmeans.data.sources import Source


def find_clusterer(model: Any) -> Any:
    """Return the fitted estimator that a `TableClusterer` or a `Pipeline` ends in."""
    if isinstance(model, Pipeline):
        return find_clusterer(model.steps[-1][1])
    if isinstance(model, TableClusterer):
        check_is_fitted(model, "estimator_")
        return find_clusterer(model.estimator_)
    return model


def open_within(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the clusterer within a model, and the rows of a table as it sees them.

    A `TableClusterer` prepares them block by block, the steps of a `Pipeline`
    transform all of them in memory.
    """
    model, X = open_pipeline(model, X)
    if isinstance(model, TableClusterer):
        if not isinstance(X, PreparedSource):
            check_is_fitted(model, "estimator_")
            X = model.prepare(X)
        return open_within(model.estimator_, X)
    return model, X


def open_pipeline(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a pipeline, and a table as it sees it."""
    if not isinstance(model, Pipeline):
        return model, X
    check_is_fitted(model)
    if isinstance(X, str | os.PathLike | Source | Table):
        X = load_table(model, X)
    return model.steps[-1][1], model[:-1].transform(X) if len(model.steps) > 1 else X


def keep_in_line(X: Any, values: Any) -> Any:
    """Return values of the rows that a preparation kept, given those of all rows."""
    is_whole = values is not None and isinstance(X, PreparedSource)
    if is_whole and len(X) != X.n_table_rows == np.shape(values)[0]:
        return X.select(np.asarray(values))
    return values


def load_table(model: Any, X: Any) -> Any:
    """Return a file as scikit-learn takes it, with the columns of the fit, in memory.

    For estimators that take nothing else.
    """
    table, names = as_table(X), getattr(model, "feature_names_in_", None)
    columns = None if names is None else match_columns(table, list(names))
    source = table.open(columns)
    block = source.read(0, len(source))
    if names is None:
        return block
    import pyarrow as pa  # as files with names are read

    return pa.table({str(name): block[:, j] for j, name in enumerate(names)})
