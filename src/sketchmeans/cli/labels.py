"""Labels on paper: beside row numbers, identifiers or all columns of the table."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sketchmeans.cli.files import STREAM, parse_identifier
from sketchmeans.numerics.atomic_file import open_atomic

if TYPE_CHECKING:
    import pyarrow as pa

#: Lines that are written at a time.
_LINES = 100_000
#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = r"^[=+\-@\t\r]"


def choose_beside(
    table: Any, path: str | None, identifier: str | None, keep_columns: bool
) -> Any:
    """Return the columns that are written beside labels; None for row numbers."""
    if identifier is None and not keep_columns:
        return None
    option = "--id" if identifier is not None else "--keep-columns"
    if path is None or path.endswith(".npy"):
        raise typer.BadParameter(f"{option} needs labels in a .csv or .parquet file.")
    column = None if identifier is None else parse_identifier(identifier, table)
    if keep_columns and table.types is None and table.open(None).is_sparse:
        raise typer.BadParameter(f"--keep-columns: {table.path} is a sparse table.")
    return table.records(None if keep_columns else [column])


def write_labels(
    labels: Any, path: str, beside: Any = None, names: Sequence[str] | None = None
) -> None:
    """Write labels to a file, or to standard output as CSV.

    `beside` are records to write in front of them, in place of row numbers; `names` are
    those of the segments, written after them.  A .npy has the labels alone.
    """
    import numpy as np

    if Path(path).suffix.lower() == ".npy":
        with open_atomic(path) as file:
            np.save(file, labels)
    elif beside is None and Path(path).suffix.lower() != ".parquet":
        _write_parts(_plain_lines(labels, names), path)
    else:
        write_tables(_tables(labels, beside, names), path)


def write_tables(tables: Iterable[pa.Table], path: str) -> None:
    """Write tables one below the other to a file, or to standard output as CSV.

    Texts in CSV that a spreadsheet would run as formulas get an apostrophe.
    """
    if Path(path).suffix.lower() != ".parquet":
        _write_parts(_csv_parts(tables), path)
        return
    import pyarrow.parquet as pq

    with open_atomic(path) as file:
        writer = None
        for table in tables:
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def _write_parts(parts: Iterable[bytes], path: str) -> None:
    if path == STREAM:
        for part in parts:
            sys.stdout.write(part.decode())
        sys.stdout.flush()
        return
    with open_atomic(path) as file:
        file.writelines(parts)


def _plain_lines(labels: Any, names: Sequence[str] | None) -> Iterator[bytes]:
    """Yield lines of CSV; pyarrow is not needed for these."""
    ends = {label: f"{label}\n" for label in range(-1, int(labels.max(initial=-1)) + 1)}
    yield b"row,label\n" if names is None else b"row,label,segment\n"
    if names is not None:
        ends = {j: f"{j},{_quote(name)}\n" for j, name in enumerate(names)}
        ends[-1] = "-1,\n"
    for start in range(0, len(labels), _LINES):
        part = labels[start : start + _LINES].tolist()
        yield "".join(f"{row},{ends[j]}" for row, j in enumerate(part, start)).encode()


def _quote(name: str) -> str:
    """Return a name for CSV, which a spreadsheet does not take for a formula."""
    name = f"'{name}" if re.match(_FORMULA, name) else name
    return '"' + name.replace('"', '""') + '"' if re.search('[,"\n\r]', name) else name


def _csv_parts(tables: Iterable[pa.Table]) -> Iterator[bytes]:
    from pyarrow import BufferOutputStream, csv

    for number, table in enumerate(tables):
        stream = BufferOutputStream()
        options = csv.WriteOptions(include_header=number == 0, quoting_style="needed")
        csv.write_csv(_disarm(table), stream, options)
        yield stream.getvalue().to_pybytes()


def _tables(
    labels: Any, beside: Any, names: Sequence[str] | None
) -> Iterator[pa.Table]:
    """Yield records with labels; a table without rows, too, so that it has names."""
    for start in range(0, max(len(labels), 1), _LINES):
        stop = min(start + _LINES, len(labels))
        columns = {"label": labels[start:stop]}
        if names is not None:
            columns["segment"] = name_labels(columns["label"], names)
        yield put_beside(beside, (start, stop), columns)


def name_labels(labels: Any, names: Sequence[str]) -> pa.Array:
    """Return the names of segments by label; nothing for rows that are left out."""
    import pyarrow as pa

    words = pa.array([*names, None], pa.string())
    return words.take(pa.array(labels % len(words)))


def put_beside(
    beside: Any, span: tuple[int, int], columns: Mapping[str, Any]
) -> pa.Table:
    """Return a span of records with columns after them; None for row numbers.

    A name that the records have already is made longer.
    """
    import numpy as np
    import pyarrow as pa

    if beside is None:
        table = pa.table({"row": np.arange(*span)})
    else:
        table = beside.read(*span)
    for name, values in columns.items():
        while name in table.schema.names:
            name += " of the cluster"
        table = table.append_column(name, pa.array(values))
    return table


def _disarm(table: pa.Table) -> pa.Table:
    """Put an apostrophe before texts and names that a spreadsheet runs as formulas."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for i, field in enumerate(table.schema):
        column = table.column(i)
        if pa.types.is_dictionary(field.type):
            column = column.cast(field.type.value_type)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            is_number = pc.match_substring_regex(column, r"^[+-]?[\d.,]+\s?%?$")
            is_formula = pc.match_substring_regex(column, _FORMULA)
            armed = pc.fill_null(pc.and_not(is_formula, is_number), False)
            if pc.any(armed).as_py():
                safe = pc.binary_join_element_wise("'", column, "")
                column = pc.if_else(armed, safe, column)
            table = table.set_column(i, field.name, column)
    names = [
        f"'{name}" if re.match(_FORMULA, name) else name for name in table.schema.names
    ]
    return table.rename_columns(names)
