"""Rows on a Spark cluster: the same fit, with full passes made by the executors.

A `SparkTable` is a Spark DataFrame as partitions of rows; `transform_spark` writes the
clusters of a fitted model beside the other columns.  ``pip install sketchmeans[spark]``
brings what this needs.
"""

from importlib.util import find_spec
from typing import Any, NoReturn

if _missing := [n for n in ("pyspark", "pandas", "pyarrow") if find_spec(n) is None]:
    raise ImportError(
        f"sketchmeans.spark needs {_missing[0]}, which is not installed: "
        "pip install sketchmeans[spark]",
        name=_missing[0],
    )

from sketchmeans.spark.backend import SparkBackend
from sketchmeans.spark.rows import SparkRows
from sketchmeans.spark.table import SparkTable, as_table
from sketchmeans.spark.transform import transform_spark

__all__ = ["SparkRows", "SparkTable", "as_backend", "as_rows", "as_table", "map_table"]
__all__ += ["empty_table", "sample_table", "select_columns", "transform_spark"]


def as_rows(X: Any, workers: Any, weights: Any) -> SparkRows:
    """Return the rows of a Spark DataFrame, or of the table of one."""
    return SparkRows(as_table(X), workers, weights)


def as_backend(rows: SparkRows, space: Any, budget: int) -> SparkBackend:
    """Return where passes over such rows run; kernel blocks are not kept."""
    return SparkBackend(rows, space)


def empty_table(X: Any, *_: Any) -> NoReturn:
    """Raise: raw tables are prepared in memory, or by Dask."""
    raise TypeError(
        "Raw tables and reports do not take a Spark DataFrame: give a sample, such as "
        "X.sample(0.01).toPandas(), and label all rows with "
        "sketchmeans.spark.transform_spark(model, X)."
    )


select_columns = sample_table = map_table = empty_table
