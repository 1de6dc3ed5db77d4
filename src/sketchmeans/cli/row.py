"""``sketchmeans explain``: why a row is in its segment."""

from __future__ import annotations

from typing import Any

import typer

from sketchmeans.cli.columns import MAX_COLUMNS
from sketchmeans.cli.files import open_table, parse_identifier
from sketchmeans.cli.options import FileOptions, PrintOptions
from sketchmeans.cli.predict import as_model_table, load_clusters
from sketchmeans.cli.screen import Screen

#: Records that are looked through at a time.
_RECORDS = 100_000


def explain(
    model: str,
    data: str,
    row: str,
    *,
    identifier: str | None = None,
    file_options: FileOptions,
    print_options: PrintOptions,
) -> None:
    """Say why a row is in its segment, and what the nearest other one would need."""
    screen = Screen(print_options, answers=True)
    if identifier is None and not row.isdecimal():
        raise typer.BadParameter(
            f"ROW {row} should be the number of a row from 0, or a value of the column "
            "that --id names."
        )
    from sketchmeans.diagnostics import explain_row

    fitted = load_clusters(model, takes_pipelines=False)
    with open_table(data, file_options, screen) as table:
        number = int(row) if identifier is None else _find_row(table, identifier, row)
        found = explain_row(fitted, as_model_table(screen, fitted, table), number)
    _print_explanation(screen, found, f"Row {row}" if identifier is None else row)
    screen.print_json(found.to_dict())


def _find_row(table: Any, column: str, value: str) -> int:
    """Return the number of the one row that has a value in a column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    records, found = table.records([parse_identifier(column, table)]), []
    for start in range(0, len(records), _RECORDS):
        part = records.read(start, min(start + _RECORDS, len(records))).column(0)
        is_it = pc.fill_null(pc.equal(part.cast(pa.string()), value), False)
        found += [start + i for i in pc.indices_nonzero(is_it).to_pylist()]
    if len(found) != 1:
        what = "no row has it" if not found else f"{len(found):,} rows have it"
        raise typer.BadParameter(
            f"ROW {value} should be one value of {column}: {what}."
        )
    return found[0]


def _print_explanation(screen: Screen, found: Any, row: str) -> None:
    screen.print(f"{row} is in {found.segment}.", style="bold")
    screen.print_pairs(
        {
            "distance": f"{found.distance:.4g}",
            "next": f"{found.next_segment}, at {found.next_distance:.4g}",
        }
    )
    screen.print()
    rows = [
        (reason.name, f"{reason.contribution:+.0%}", reason.value, reason.other)
        for reason in found.reasons[:MAX_COLUMNS]
    ]
    titles = ("column", "says", "here", f"typical of {found.next_segment}")
    screen.print_table(titles, rows)
    screen.print_rest(len(found.reasons), MAX_COLUMNS, "more columns")
    if found.changes:
        screen.print(f"\nIt would be in {found.next_segment} with")
        screen.print_pairs({name: f"{a} → {b}" for name, a, b in found.changes})
