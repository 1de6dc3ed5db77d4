"""What is printed of the columns of a table: their kinds, and what is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sketchmeans.cli.screen import Screen

if TYPE_CHECKING:
    from sketchmeans.data.preparation import ColumnPlan

#: Most columns that are listed in a line, and in a table.
_MAX_NAMES, MAX_COLUMNS = 8, 40
#: What a group of columns is called.
_TITLES = {
    "numeric": "numbers",
    "boolean": "yes or no",
    "category": "categories",
    "ordinal": "ordered",
    "date": "dates",
}


def print_used_columns(screen: Screen, model: Any) -> None:
    """Print one line for each group of columns: what they are, and their weight."""
    weights = dict(zip(model.columns_, model.column_weights_.tolist(), strict=True))
    groups: dict[str, list[ColumnPlan]] = {}
    for column in model.plan_:
        title = _TITLES[column.kind] if column.is_used else "left out"
        if column.kind == "numeric" and getattr(column.encoder, "unit", None):
            title = "numbers, log"
        groups.setdefault(title, []).append(column)
    lines = {}
    for title, columns in sorted(
        groups.items(), key=lambda item: item[0] == "left out"
    ):
        if title == "left out":
            words = [
                f"{c.name} ({c.reason.removesuffix(': left out')})" for c in columns
            ]
            lines[title] = _join(words)
        else:
            share = sum(weights[column.name] for column in columns)
            names = _join([_describe(column) for column in columns])
            lines[title] = f"{names}  ({share:.0%} of the weight)"
    if model.n_filled_:
        what = "mean" if model.missing == "mean" else "median"
        lines["filled"] = (
            f"gaps in {model.n_filled_:,} rows, by the {what} of the column"
        )
    screen.print_pairs(lines)


def _describe(column: ColumnPlan) -> str:
    """Return a column for a list, with what a user should know of it."""
    said = (
        *("missing value", "swapped", "in spite", "depends little", "other forms"),
        *("counts as", "times in hours", "with factors"),
    )
    if any(words in column.reason for words in said):
        return f"{column.name} ({column.reason})"
    return column.name


def _join(words: Sequence[str]) -> str:
    more = len(words) - _MAX_NAMES
    return ", ".join(words[:_MAX_NAMES]) + (f" and {more:,} more" if more > 0 else "")
