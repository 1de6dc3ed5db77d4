"""Which columns of a table are used: those a user chose, or those of a fit."""

from __future__ import annotations

from collections.abc import Sequence

from sketchmeans.data.preparation.tables import Column, Table
from sketchmeans.data.sources.derived import (
    check_columns,
    check_known,
    shorten_list,
    show_names,
)
from sketchmeans.numerics.parameters import warn_user


def choose_columns(
    table: Table,
    columns: Sequence[Column] | None,
    exclude: Sequence[Column] | None,
    label_column: Column | None,
) -> list[Column]:
    """Return the columns of a table that a user wants to cluster.

    All of `columns`, or of the table, but `exclude` and the label column.  It is an
    error if one is not there, or none is left.
    """
    known = table.columns
    asked = known
    if columns is not None:
        asked = check_columns("columns", columns, label_column)
    aside = check_columns("exclude", exclude or ())
    if label_column is not None:
        aside = [*aside, label_column]
    check_known(table.path, [*asked, *aside], known)
    chosen = [column for column in asked if column not in aside]
    if not chosen:
        raise ValueError(
            f"exclude={aside} leaves no column of {show_names(known)}; at least one is "
            "needed."
        )
    return chosen


def match_columns(
    table: Table, wanted: Sequence[Column], *, of_any_type: bool = False
) -> list[Column]:
    """Return the columns of a fit, if a new table has them all; by name, in any order.

    Names that differ only in case or in spaces around them are taken for the same, with
    a warning.  An error lists those that are missing, and those that do not hold
    numbers unless they may be `of_any_type`.
    """
    if any(isinstance(name, str) for name in wanted) and table.types is None:
        raise ValueError(
            f"{table.path} has no column names; it should have the columns "
            f"{show_names(wanted)} of the fit."
        )
    matched = _match_names(table, wanted)
    check_known(table.path, matched, table.columns)
    if not of_any_type:
        _check_numbers(table, matched)
    return matched


def _match_names(table: Table, wanted: Sequence[Column]) -> list[Column]:
    """Return the names that a table has for columns of a fit, where that is clear."""
    known = table.columns
    folded: dict[str, list[Column]] = {}
    for name in known:
        folded.setdefault(_fold(name), []).append(name)
    matched: list[Column] = []
    for name in wanted:
        alike = [] if name in known else folded.get(_fold(name), [])
        is_clear = len(alike) == 1 and alike[0] not in wanted
        matched.append(alike[0] if is_clear else name)
    others = [
        f"{new!r} for {old!r}"
        for old, new in zip(wanted, matched, strict=True)
        if old != new
    ]
    if others:
        warn_user(
            f"{table.path} has {shorten_list(others)}: taken for the same column."
        )
    return matched


def _fold(name: Column) -> str:
    return str(name).strip().casefold()


def _check_numbers(table: Table, chosen: Sequence[Column]) -> None:
    types = table.types or {}
    others = [f"{c} ({types[str(c)]})" for c in chosen if types.get(str(c))]
    if others:
        what = "a column that does" if len(others) == 1 else "columns that do"
        raise ValueError(
            f"{table.path} has {what} not hold numbers: {shorten_list(others)}. Leave "
            "them out with exclude=, or choose others with columns=."
        )
