"""Rows as dictionaries: what a service gets as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sketchmeans.data.sources.derived import shorten_list, show_names

if TYPE_CHECKING:
    import pyarrow as pa


def are_dicts(X: Any) -> bool:
    """Say whether rows are given as a dictionary, or as a list of dictionaries."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and isinstance(X[0], Mapping)
    # A sparse matrix by keys is a mapping, too.
    return isinstance(X, Mapping) and not hasattr(X, "shape")


def table_of_dicts(
    X: Any, needed: Sequence[str] = (), known: Sequence[str] = ()
) -> pa.Table:
    """Return a table whose rows are dictionaries of values by column.

    Every row has the keys of the first one, and None for a missing value.  Where
    `needed` columns are given, a row without one of them is an error, as is a key that
    is not among the `known` ones.

    Examples
    --------
    >>> table_of_dicts({"age": 31, "plan": "Free"}).to_pylist()
    [{'age': 31, 'plan': 'Free'}]
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError(
            "Rows that are dictionaries are prepared through pyarrow, which is not "
            "installed: pip install sketchmeans[files]"
        ) from None
    rows = [X] if isinstance(X, Mapping) else list(X)
    names = list(needed) or list(rows[0])
    for i, row in enumerate(rows):
        where = "X" if isinstance(X, Mapping) else f"X[{i}]"
        _check_row(where, row, names, known or names)
    columns = {}
    for name in names:
        try:
            columns[name] = pa.array([row[name] for row in rows], from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"X has values in {name!r} of types that do not match: {error}"
            ) from error
    return pa.table(columns)


def _check_row(where: str, row: Any, needed: list[str], known: Sequence[str]) -> None:
    if not isinstance(row, Mapping):
        raise ValueError(
            f"{where} of type {type(row).__name__} should be a dictionary, as the "
            "first row is."
        )
    lacking = [name for name in needed if name not in row]
    if lacking:
        raise ValueError(
            f"{where} should have a value for {show_names(lacking)}; None stands for "
            "one that is missing."
        )
    if unknown := [key for key in row if key not in known]:
        raise ValueError(
            f"{where} has {show_names(unknown)}, of which the fit knows nothing; it "
            f"knows {show_names(list(known))}."
        )
    nested = [n for n in needed if isinstance(row[n], Mapping | list | tuple | set)]
    if nested:
        raise ValueError(
            f"{where} should have one value for {shorten_list(list(map(repr, nested)))}"
            f", not a {type(row[nested[0]]).__name__}; several rows are a list of "
            "dictionaries."
        )
