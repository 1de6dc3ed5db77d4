"""From what was typed to tables and estimators."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from sketchmeans.cli.screen import Screen
from sketchmeans.cli.standard_input import copied

if TYPE_CHECKING:
    from sketchmeans.cluster.table import TableClusterer
    from sketchmeans.data.preparation import Table

#: The estimators by the name that is typed.
_CLASSES = {
    "nystrom": "NystromKMeans",
    "exact": "KernelKMeans",
    "sketched": "SketchedKMeans",
}

STREAM, STREAM_NAME = "-", "standard input"


@dataclass(frozen=True)
class Reading:
    """How a file is read, as typed: "yes", "no", or None to find out."""

    header: str | None = None
    zero_based: str | None = None

    def table(self, path: str) -> Table:
        """Return the table that a path stands for."""
        from sketchmeans.data.preparation import as_table

        return as_table(
            path, header=_YES_NO[self.header], zero_based=_YES_NO[self.zero_based]
        )


_YES_NO = {"yes": True, "no": False, None: None}


@contextmanager
def readable(data: str, screen: Screen, reading: Reading) -> Iterator[Table]:
    """Yield a table; standard input is kept in a file meanwhile.

    A fit reads its rows many times, which a pipe does not allow.  Whatever is printed
    calls that file standard input.
    """
    if data != STREAM:
        yield reading.table(data)
        return
    with copied(sys.stdin.buffer) as path:
        screen.called[path] = STREAM_NAME
        yield reading.table(path)


def number_or_word(text: str | None) -> float | int | str | None:
    """Return what was typed as a number, if it is one.

    Examples
    --------
    >>> number_or_word("400"), number_or_word("0.5"), number_or_word("auto")
    (400, 0.5, 'auto')
    """
    if text is None:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def whole_or_auto(option: str, text: str | None) -> int | str | None:
    """Return a whole number, or the word auto."""
    value = number_or_word(text)
    if isinstance(value, float) or (isinstance(value, str) and value != "auto"):
        raise typer.BadParameter(f"{option} {text} should be a whole number, or auto.")
    return value


def column_list(typed: Sequence[str] | None, table: Table) -> list[str | int] | None:
    r"""Return the columns that were typed: names, or numbers where there are none.

    Names with a comma are put in quotes.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("a,b,c d\n1,2,3\n")
    >>> column_list(["a,c d", "b"], Reading().table(path))
    ['a', 'c d', 'b']
    """
    if not typed:
        return None
    names = [name.strip() for row in csv.reader(typed) for name in row]
    return [column_name(name, table) for name in names if name]


def _some_columns(
    option: str, typed: Sequence[str] | None, table: Table
) -> list[str | int] | None:
    columns = column_list(typed, table)
    if columns is not None and not columns:
        raise typer.BadParameter(f"{option} '' should name at least one column.")
    return columns


def column_name(typed: str, table: Table) -> str | int:
    """Return a column that was typed: its name, or its number where it has none."""
    if typed.isdecimal() and table.types is None:
        return int(typed)
    return typed


def built_estimator(name: str, n_clusters: int, params: Mapping[str, Any]) -> Any:
    """Return an estimator with the parameters that were typed.

    Raises
    ------
    typer.BadParameter
        If one of them is not a parameter of this estimator.
    """
    import sketchmeans

    typed = {key: value for key, value in params.items() if value is not None}
    family = getattr(sketchmeans, _CLASSES[name])
    unknown = sorted(set(typed) - set(family._get_param_names()))
    if unknown:
        option = unknown[0].replace("_", "-")
        raise typer.BadParameter(
            f"--{option} means nothing to --estimator {name}; leave it out."
        )
    return family(n_clusters, **typed)


def table_clusterer(
    estimator: Any,
    table: Table,
    *,
    columns: Sequence[str] | None,
    exclude: Sequence[str] | None,
    label_column: str | None,
    scale: str,
    missing: str,
) -> TableClusterer:
    """Return the estimator for raw tables."""
    from sketchmeans import TableClusterer

    return TableClusterer(
        estimator,
        columns=_some_columns("--columns", columns, table),
        exclude=_some_columns("--exclude", exclude, table),
        label_column=None if label_column is None else column_name(label_column, table),
        scale=scale,
        missing=missing,
    )


def model_and_rows(model: Any, table: Table, screen: Screen) -> tuple[Any, Any]:
    """Return the estimator within a model, and the rows of a table as it sees them."""
    from sketchmeans import TableClusterer

    if isinstance(model, TableClusterer):
        inner, rows = model.estimator_, model.prepare(table)
    else:
        inner, rows = model, rows_by_name(model, table)
    rows.path = screen.called.get(table.path, rows.path)
    return inner, rows


def rows_by_name(model: Any, table: Table) -> Any:
    """Return the rows of a table, with the columns that an estimator was fitted to."""
    from sketchmeans.data.preparation import match_columns

    names = getattr(model, "feature_names_in_", None)
    if names is None or table.types is None:
        return table.open(None)
    return table.open(match_columns(table, list(names)))


def loaded(path: str) -> Any:
    """Return the model that a file holds."""
    from sketchmeans import load

    return load(path)
