"""From raw tables to rows that can be clustered: columns chosen, scaled and filled."""

from __future__ import annotations

from sketchmeans.data.preparation.columns import chosen_columns, known_columns
from sketchmeans.data.preparation.scaling import (
    Preparation,
    Scaling,
    column_moments,
    complete_rows,
    learned,
)
from sketchmeans.data.preparation.source import PreparedSource
from sketchmeans.data.preparation.tables import Column, Table, as_table

__all__ = [
    "Column",
    "Preparation",
    "PreparedSource",
    "Scaling",
    "Table",
    "as_table",
    "chosen_columns",
    "column_moments",
    "complete_rows",
    "known_columns",
    "learned",
]
