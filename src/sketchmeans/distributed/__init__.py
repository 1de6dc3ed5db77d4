"""Rows on a Dask cluster: the same fit, with full passes made where the rows are.

Partitions stay on the workers, which run the block function of the local engine on
them.  What travels is landmarks and coefficients one way, and sums over clusters, added
up along a tree, the other.
"""

from typing import Any

from sketchmeans.distributed.backend import DaskBackend
from sketchmeans.distributed.frames import (
    empty_table,
    map_table,
    sample_table,
    select_columns,
)
from sketchmeans.distributed.rows import DaskRows
from sketchmeans.distributed.table import DaskTable, as_table

__all__ = [
    "DaskRows",
    "DaskTable",
    "as_backend",
    "as_rows",
    "as_table",
    "empty_table",
    "map_table",
    "sample_table",
    "select_columns",
]


def as_rows(X: Any, workers: Any, weights: Any) -> DaskRows:
    """Return the rows of a Dask collection, or of the table of one."""
    return DaskRows(as_table(X), workers, weights)


def as_backend(rows: DaskRows, space: Any, budget: int) -> DaskBackend:
    """Return where passes over such rows run."""
    return DaskBackend(rows, space, budget)
