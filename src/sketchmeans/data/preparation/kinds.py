"""The kind of each column, found from a sample of its values, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sketchmeans.data.preparation.column_plan import ColumnPlan, Rules, leave_out
from sketchmeans.data.preparation.dates import (
    are_compact_dates,
    find_kind_of_dates,
    plan_dates,
)
from sketchmeans.data.preparation.numbers import find_kind_of_numbers, plan_numbers
from sketchmeans.data.preparation.ordinal import plan_ordinal
from sketchmeans.data.preparation.values import is_date, is_number, is_text, to_floats
from sketchmeans.data.preparation.words import (
    find_kind_of_words,
    plan_booleans,
    plan_categories,
)

if TYPE_CHECKING:
    import pyarrow as pa

#: The plan for a column of each kind that a user may give it.
PLANNERS: dict[str, Callable[[str, pa.ChunkedArray, Rules], ColumnPlan]] = {
    "numeric": plan_numbers,
    "boolean": plan_booleans,
    "category": plan_categories,
    "ordinal": plan_ordinal,
    "date": plan_dates,
}


def find_kind(name: str, column: pa.ChunkedArray, rules: Rules) -> ColumnPlan:
    """Return the kind of a column that the user has said nothing about."""
    kind = column.type
    if is_number(kind):
        values = to_floats(column)
        assert values is not None  # they are numbers
        if are_compact_dates(column, values):
            return find_kind_of_dates(name, column, rules)
        return find_kind_of_numbers(name, values, rules)
    if is_date(kind):
        return find_kind_of_dates(name, column, rules)
    if is_text(kind):
        return find_kind_of_words(name, column, rules)
    import pyarrow as pa

    if pa.types.is_null(kind):
        return leave_out(name, "empty", "no value at all")
    if pa.types.is_boolean(kind):
        return plan_booleans(name, column, rules)
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        return plan_numbers(name, column, rules)
    return leave_out(name, "other", f"values of type {kind} cannot be compared")


def force_kind(
    name: str, column: pa.ChunkedArray, kind: str, rules: Rules
) -> ColumnPlan:
    """Return the plan for a column of the kind that a user gave it."""
    plan = PLANNERS[kind](name, column, rules)
    if not plan.is_used:
        raise ValueError(
            f"as_kinds={{{name!r}: {kind!r}}} does not fit column {name!r}: "
            f"{plan.reason}."
        )
    return plan
