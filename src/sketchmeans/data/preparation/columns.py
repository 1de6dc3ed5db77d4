"""Which columns of a table are features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sketchmeans.data.preparation.tables import Column, Table

_MOST_LISTED = 20


def chosen_columns(
    table: Table,
    columns: Sequence[Column] | None,
    exclude: Sequence[Column] | None,
    label_column: Column | None,
) -> list[Column]:
    """Return the columns of a table that a user wants to cluster.

    All of `columns`, or of the table, but `exclude` and the label column.

    Raises
    ------
    ValueError
        If one is not there, is no number, or none is left.
    """
    known = _known(table)
    asked = known if columns is None else _listed("columns", columns)
    aside = _listed("exclude", exclude or ())
    if label_column is not None:
        if columns is not None and label_column in asked:
            raise ValueError(
                f"label_column={label_column!r} should not be one of columns={asked}."
            )
        aside = [*aside, label_column]
    _check_there(table, [*asked, *aside], known)
    chosen = [column for column in asked if column not in aside]
    if not chosen:
        raise ValueError(
            f"exclude={aside} leaves no column of {shown_names(known)}; at least one "
            "is needed."
        )
    _check_numbers(table, chosen)
    return chosen


def known_columns(table: Table, wanted: Sequence[Column]) -> list[Column]:
    """Return the columns of a fit, if a new table has them all; by name, in any order.

    Raises
    ------
    ValueError
        If some are not there; the error lists them.
    """
    known = _known(table)
    if any(isinstance(name, str) for name in wanted) and table.types is None:
        raise ValueError(
            f"{table.path} has no column names; it should have the columns "
            f"{shown_names(list(wanted))} of the fit."
        )
    _check_there(table, list(wanted), known)
    _check_numbers(table, wanted)
    return list(wanted)


def _known(table: Table) -> list[Column]:
    if table.types is not None:
        return list(table.types)
    return list(range(table.open(None).shape[1]))


def _listed(parameter: str, columns: Any) -> list[Column]:
    names = columns if isinstance(columns, str) else list(columns)
    good = not isinstance(columns, str) and all(
        isinstance(name, str | int) and not isinstance(name, bool) for name in names
    )
    if not good or len(set(names)) < len(names):
        raise ValueError(
            f"{parameter}={columns!r} should be a list of different column names, or "
            "numbers where columns have no names."
        )
    return list(names)


def _check_there(table: Table, wanted: list[Column], known: list[Column]) -> None:
    absent = [name for name in dict.fromkeys(wanted) if name not in known]
    if absent:
        what = "no column" if len(absent) == 1 else "no columns"
        have = "its columns are" if table.types is not None else "they are numbered"
        raise ValueError(
            f"{table.path} has {what} {shown_names(absent)}; {have} "
            f"{shown_names(known)}."
        )


def _check_numbers(table: Table, chosen: Sequence[Column]) -> None:
    types = table.types or {}
    words = [f"{c} ({types[str(c)]})" for c in chosen if types.get(str(c))]
    if words:
        what = "a column that is" if len(words) == 1 else "columns that are"
        listed = ", ".join(words[:_MOST_LISTED])
        more = "" if len(words) <= _MOST_LISTED else ", ..."
        raise ValueError(
            f"{table.path} has {what} no numbers: {listed}{more}. Leave them out "
            "with exclude=, or choose others with columns=."
        )


def shown_names(names: Sequence[Column]) -> str:
    """Return names for people: in quotes, and not too many."""
    if len(names) > 1 and list(names) == list(range(len(names))):
        return f"0 to {len(names) - 1}"
    listed = ", ".join(repr(name) for name in names[:_MOST_LISTED])
    return listed if len(names) <= _MOST_LISTED else f"{listed}, ..."
