"""From raw tables to rows that can be clustered: columns of any kind as features."""

from __future__ import annotations

from sketchmeans.data.preparation.chosen import choose_columns, match_columns
from sketchmeans.data.preparation.column_plan import (
    LEFT_OUT_KINDS,
    USED_KINDS,
    ColumnPlan,
)
from sketchmeans.data.preparation.dicts import are_dicts, table_of_dicts
from sketchmeans.data.preparation.encoded import open_encoded, warn_of_unseen
from sketchmeans.data.preparation.encoders import (
    BooleanEncoder,
    CategoryEncoder,
    DateEncoder,
    NumberEncoder,
    OrdinalEncoder,
)
from sketchmeans.data.preparation.plan import (
    check_as_kinds,
    check_usable,
    layout_of,
    plan_table,
)
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
)

__all__ = [
    "LEFT_OUT_KINDS",
    "USED_KINDS",
    "BooleanEncoder",
    "CategoryEncoder",
    "Column",
    "ColumnPlan",
    "DateEncoder",
    "NumberEncoder",
    "OrdinalEncoder",
    "Preparation",
    "PreparedSource",
    "Table",
    "WatchedTable",
    "are_dicts",
    "as_table",
    "check_as_kinds",
    "check_usable",
    "choose_columns",
    "column_moments",
    "find_complete_rows",
    "fit_scaling",
    "layout_of",
    "match_columns",
    "open_encoded",
    "plan_table",
    "table_of_dicts",
    "warn_of_unseen",
]
