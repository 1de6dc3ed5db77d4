"""From raw tables to rows that can be clustered: columns chosen, scaled and filled."""

from __future__ import annotations

from sketchmeans.data.preparation.scaling import (
    Preparation,
    column_moments,
    find_complete_rows,
    fit_scaling,
)
from sketchmeans.data.preparation.source import PreparedSource, WatchedTable
from sketchmeans.data.preparation.tables import (
    Column,
    Table,
    as_table,
    choose_columns,
    match_columns,
)

__all__ = [
    "Column",
    "Preparation",
    "PreparedSource",
    "Table",
    "WatchedTable",
    "as_table",
    "choose_columns",
    "column_moments",
    "find_complete_rows",
    "fit_scaling",
    "match_columns",
]
