"""What commands read and write: tables, models, labels, standard input."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from glob import glob
from os.path import realpath
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer

from sketchmeans.cli.options import ESTIMATORS, FileOptions, TableOptions
from sketchmeans.cli.screen import Screen

if TYPE_CHECKING:
    from sketchmeans.data.preparation import Table

#: The path of standard input and output, and what messages call the first.
STREAM, STREAM_NAME = "-", "standard input"
#: What is easier to type than a tab.
_SIGNS = {"tab": "\t", "\\t": "\t"}
_SHEETS = (".xlsx", ".xlsm", ".ods")
_YES_NO = {"yes": True, "no": False, None: None}
#: The endings of the files that are written.
LABELS, MODEL = (".csv", ".npy", ".parquet"), (".skm",)
REPORT, WORKBOOK = (".html", ".xlsx"), (".xlsx",)


@contextmanager
def open_table(data: str, options: FileOptions, screen: Screen) -> Iterator[Table]:
    """Yield a table; warnings are printed meanwhile.

    Standard input is copied to a file, as a fit reads its rows many times.  Whatever is
    printed calls that file standard input.
    """
    with screen.print_warnings():
        if data != STREAM:
            yield _read_table(data, options, screen)
            return
        from sketchmeans.data.sources.copies import Copy

        copy = Copy("standard-input.csv", _read_parts(sys.stdin.buffer), STREAM_NAME)
        screen.names[copy.path] = STREAM_NAME
        yield _read_table(copy.path, options, screen)
        del copy  # and its file, not before


def _read_table(path: str, options: FileOptions, screen: Screen) -> Table:
    """Return a table, and say what was assumed of a text."""
    from sketchmeans.data.preparation import as_table
    from sketchmeans.data.sources import Dialect

    sep = options.sep
    sheet = options.sheet
    table = as_table(
        path,
        header=_YES_NO[options.header],
        zero_based=_YES_NO[options.zero_based],
        dialect=Dialect(
            sep=None if sep is None else _SIGNS.get(sep, sep),
            decimal=options.decimal,
            encoding=options.encoding,
            skip_rows=options.skip_rows,
            na=tuple(options.na or ()),
            trim=_YES_NO[options.trim],
        ),
        sheet=int(sheet) if sheet is not None and sheet.isdecimal() else sheet,
    )
    if sheet is None and path.lower().endswith(_SHEETS):
        _say_sheet(path, screen)
    if table.dialect is not None and not table.dialect.is_plain:
        found, what = table.dialect, " is text"
        if path.lower().endswith(_SHEETS):  # copied to text by us
            decimal = "," if found.decimal == "," else None
            found = replace(found, sep=None, encoding=None, decimal=decimal)
            what = ":"
        screen.print(f"{path}{what} {found.describe()}.", style="dim")
    return table


def _say_sheet(path: str, screen: Screen) -> None:
    """Say which of several sheets is read."""
    from sketchmeans.data.sources import file_states
    from sketchmeans.data.sources.spreadsheet import find_sheet

    read, names = find_sheet(file_states(path)[0])
    if len(names) > 1:
        others = ", ".join(repr(name) for name in names if name != read)
        screen.print(
            f"{path}: sheet {read!r} is read; --sheet takes {others}.", style="dim"
        )


def _read_parts(stream: IO[bytes]) -> Iterator[bytes]:
    while part := stream.read(2**20):
        yield part


def make_clusterer(options: TableOptions, estimator: Any, table: Table) -> Any:
    """Return the estimator of raw tables."""
    from sketchmeans import TableClusterer

    label = options.label_column
    return TableClusterer(
        estimator,
        columns=parse_columns("--columns", options.columns, table),
        exclude=parse_columns("--exclude", options.exclude, table),
        label_column=None if label is None else parse_column(label, table),
        as_kinds=_parse_kinds(options.as_kinds),
        scale=options.scale,
        missing=options.missing,
    )


def parse_number(typed: Any) -> Any:
    """Return a number, if text is one, or else what was typed.

    Examples
    --------
    >>> parse_number("400"), parse_number("0.5"), parse_number("auto")
    (400, 0.5, 'auto')
    """
    for kind in (int, float) if isinstance(typed, str) else ():
        with suppress(ValueError):
            return kind(typed)
    return typed


def parse_columns(
    option: str, typed: Sequence[str] | None, table: Table
) -> list[str | int] | None:
    r"""Return the columns that were typed: names, or numbers where there are none.

    Names with a comma are put in quotes.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("a,b,c d\n1,2,3\n")
    >>> from sketchmeans.data.preparation import as_table
    >>> parse_columns("--columns", ["a,c d", "b"], as_table(path))
    ['a', 'c d', 'b']
    """
    if not typed:
        return None
    names = [name.strip() for row in csv.reader(typed) for name in row]
    columns = [parse_column(name, table) for name in names if name]
    if not columns:
        raise typer.BadParameter(f"{option} '' should name at least one column.")
    return columns


def _parse_kinds(typed: Sequence[str] | None) -> dict[str, str] | None:
    """Return kinds by name, as in zip=category; a name may have such signs, too."""
    kinds = {}
    for text in typed or ():
        name, sign, kind = text.rpartition("=")
        if not (sign and name):
            raise typer.BadParameter(f"--as {text} should be NAME=KIND: zip=category.")
        kinds[name] = kind
    return kinds or None


def parse_column(typed: str, table: Table) -> str | int:
    """Return a column that was typed: its name, or its number from 0 without names."""
    if table.types is None:
        return int(typed) if typed.isdecimal() else typed
    has_names = table.dialect is None or table.dialect.header
    return typed if has_names or typed in table.types else f"column {typed}"


def parse_identifier(typed: str, table: Table) -> str | int:
    """Return the column that --id names."""
    column = parse_column(typed, table)
    if column not in table.columns:
        known = ", ".join(map(str, table.columns[:20]))
        raise typer.BadParameter(
            f"--id {typed} should be a column of {table.path}: {known}."
        )
    return column


def make_estimator(name: str, n_clusters: int, params: Mapping[str, Any]) -> Any:
    """Return an estimator with the parameters that were typed.

    Raises
    ------
    typer.BadParameter
        If one of them is not a parameter of this estimator.
    """
    import sketchmeans

    typed = {key: parse_number(v) for key, v in params.items() if v is not None}
    cls = getattr(sketchmeans, ESTIMATORS[name])
    unknown = sorted(set(typed) - set(cls._get_param_names()))
    if unknown:
        option = unknown[0].replace("_", "-")
        raise typer.BadParameter(
            f"--{option} has no meaning for --estimator {name}; leave it out."
        )
    return cls(n_clusters, **typed)


def open_model_rows(screen: Screen, model: Any, table: Table) -> Any:
    """Return the rows of a table as the estimator in a model sees them."""
    from sklearn.pipeline import Pipeline

    from sketchmeans import TableClusterer
    from sketchmeans.cluster.within import load_table
    from sketchmeans.data.preparation import match_columns

    names = getattr(model, "feature_names_in_", None)
    if isinstance(model, Pipeline):  # its steps take tables in memory
        return load_table(model, table)
    if isinstance(model, TableClusterer):
        rows: Any = model.prepare(table)
    elif names is None or table.types is None:
        rows = table.open(None)
    else:
        rows = table.open(match_columns(table, list(names)))
    rows.path = screen.names.get(table.path, rows.path)
    return rows


def find_swapped(model: str, data: str) -> bool:
    """Say whether a table was given for a model, and a model for the table."""
    from sketchmeans.data.sources import FORMATS

    return suffix_in(model, FORMATS) and not suffix_in(data, FORMATS) and is_model(data)


def suffix_in(path: str, formats: Iterable[str]) -> bool:
    """Say whether a file has one of these endings."""
    return Path(path).suffix.lower() in formats


def is_model(path: str) -> bool:
    """Say whether a file is laid out as models are; it may be damaged all the same."""
    try:
        with open(path, "rb") as file:
            start = file.read(9)
    except OSError:
        return False
    # The length of a header, and the header in JSON.
    return len(start) == 9 and start[8:] == b"{"


def read_classes(model: Any, table: Table) -> Any:
    """Return the known classes of a table's rows; None if it has none."""
    if getattr(model, "label_column", None) is None:
        return None
    if table.types is not None and model.label_column not in table.types:
        return None
    return model.label_values(table)


# --- files that are written -----------------------------------------------------------


def check_outputs(
    files: Mapping[str, str | None], inputs: Iterable[str], **suffixes: tuple[str, ...]
) -> None:
    """Raise if a file cannot be written, or would replace one that is needed.

    `files` has the path of each option, `suffixes` the endings that an option allows.
    """
    # Not `Path.resolve`, which fails if links form a loop.
    names = {realpath(file): "a file that is read" for file in _expand(inputs)}
    for option, path in files.items():
        allowed = suffixes.get(option.strip("-"), ())
        if path is None or (path == STREAM and ".csv" in allowed):
            continue
        _check_output(option, path, allowed)
        place = realpath(path)
        if place in names:
            raise typer.BadParameter(f"{option} {path} is also {names[place]}.")
        names[place] = f"the file of {option}"


def _check_output(option: str, path: str, suffixes: tuple[str, ...]) -> None:
    from sketchmeans.numerics.atomic_file import check_can_write

    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise typer.BadParameter(f"{option} {path}: there is no folder {folder}.")
    if suffixes and Path(path).suffix.lower() not in suffixes:
        *others, last = suffixes
        known = f"{', '.join(others)} or {last}" if others else last
        raise typer.BadParameter(f"{option} {path} should end in {known}.")
    try:
        check_can_write(path)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        reason = getattr(error, "strerror", None) or error
        raise typer.BadParameter(f"{option} {path}: {reason}.") from error
    if suffixes in (REPORT, WORKBOOK):
        from sketchmeans.report.workbook import check_workbooks  # needs [report], too

        if path.lower().endswith(".xlsx"):
            check_workbooks()
    if path.lower().endswith(".parquet"):
        try:
            import pyarrow  # noqa: F401 - before the long work
        except ImportError:
            raise typer.BadParameter(
                f"{option} {path} needs pyarrow: pip install sketchmeans[files]"
            ) from None


def _expand(paths: Iterable[str]) -> Iterator[str]:
    """Yield files, also those of patterns and folders."""
    for path in paths:
        if path != STREAM:
            pattern = str(Path(path) / "*") if Path(path).is_dir() else path
            yield from glob(pattern) or [path]
