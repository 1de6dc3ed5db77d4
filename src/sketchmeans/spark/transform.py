"""The clusters of a fitted model as a column of a Spark DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from pyspark.ml.functions import vector_to_array
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql


def transform_spark(
    model: Any,
    frame: DataFrame,
    features: str | Sequence[str] | None = None,
    *,
    output: str = "prediction",
) -> DataFrame:
    """Return a Spark DataFrame with a column of the cluster of each row.

    Nothing is computed yet.  Any fitted estimator of this library will do, wherever it
    was fitted: executors call its `predict` on some thousand rows at a time.

    Parameters
    ----------
    model : object
        A fitted estimator.
    frame : pyspark.sql.DataFrame
    features : str or sequence of str, optional
        A column of vectors, or columns of a table; by default those of the fit, and all
        columns if these had no names.
    output : str, default="prediction"
        The name of the new column.

    Examples
    --------
    >>> labelled = transform_spark(model, people)  # doctest: +SKIP
    >>> labelled.select("id", "prediction").write.parquet("...")  # doctest: +SKIP
    """
    if features is None:
        features = getattr(model, "feature_names_in_", frame.columns)
    names = [features] if isinstance(features, str) else list(map(str, features))
    kinds, light = dict(frame.dtypes), copy(model)
    missing = [name for name in names if name not in kinds]
    if missing:
        raise ValueError(f"X has no column {missing[0]!r}; the features are {names}.")
    light.__dict__.pop("labels_", None)  # they may be a DataFrame, which cannot travel
    columns = [sql.col(f"`{name}`").alias(name) for name in names]
    is_vector = len(names) == 1 and kinds[names[0]].startswith(("vector", "array"))
    if is_vector and kinds[names[0]] == "vector":
        columns = [vector_to_array(columns[0])]

    def predict(batches: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:
        for batch in batches:
            X = np.stack(batch.iloc[:, 0].to_list()) if is_vector else batch
            yield pd.Series(light.predict(X))

    # Spark reads the types, which are strings in this module.
    predict.__annotations__["batches"] = Iterator[pd.DataFrame]
    predict.__annotations__["return"] = Iterator[pd.Series]
    made = sql.pandas_udf(predict, "int")
    return frame.withColumn(output, made(sql.struct(*columns)))
