"""``sketchmeans drift``: what has changed in new rows since a fit."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from sketchmeans.cli.columns import MAX_COLUMNS
from sketchmeans.cli.files import check_outputs, open_table
from sketchmeans.cli.options import FileOptions, PrintOptions
from sketchmeans.cli.predict import as_model_table, calibrate_by, load_clusters
from sketchmeans.cli.progress import Display
from sketchmeans.cli.screen import Screen

_PAGE = (".html",)
#: Most segments that are listed, and changes in words.
_MAX_SEGMENTS, _MAX_SENTENCES = 30, 12


def drift(
    model: str,
    data: str,
    *,
    out: str | None = None,
    old: str | None = None,
    level: float = 0.01,
    file_options: FileOptions,
    print_options: PrintOptions,
) -> None:
    """Say what has changed in new rows since the fit: segments, columns, new kinds."""
    screen = Screen(print_options, answers=True)
    inputs = [model, data] if old is None else [model, data, old]
    check_outputs({"--out": out}, inputs, out=_PAGE)
    from sketchmeans.diagnostics import drift as compare

    if out is not None:
        import sketchmeans.report  # noqa: F401 - its error says what to install
    fitted = load_clusters(model, takes_pipelines=False)
    if old is not None:
        calibrate_by(screen, fitted, old, file_options)
    if getattr(fitted, "reference_", None) is None:
        raise ValueError(
            f"{model} keeps nothing of the rows of its fit: give that table with --old "
            "FILE, or fit again."
        )
    with open_table(data, file_options, screen) as table, Display(screen) as display:
        display.next("New rows")
        n_passes = 2 if getattr(fitted, "missing", None) == "drop" else 1
        rows = as_model_table(screen, fitted, display.watch(table, n_passes))
        found = compare(fitted, rows, level=level)
        display.finish()
    files = []
    if out is not None:  # before what is printed, of which somebody may read a part
        from sketchmeans.report import write_drift_report

        command = shlex.join(["sketchmeans", *sys.argv[1:]])
        write_drift_report(found, out, command=command)
        files = [out]
    print_drift(screen, found)
    if files:
        screen.print(f"\nWrote {out}.")
    screen.print_json({**found.to_dict(), "files": files})


def print_drift(screen: Screen, found: Any) -> None:
    """Print the alarms, then segments and columns side by side."""
    screen.print(f"{found.n_old:,} rows in the fit, {found.n_new:,} now.", "bold")
    for text in found.sentences[:_MAX_SENTENCES]:
        screen.print(f"- {text}.")
    if len(found.sentences) > _MAX_SENTENCES:
        n_more = len(found.sentences) - _MAX_SENTENCES
        screen.print(f"- ... and {n_more:,} more changes, in the tables below.")
    if not found.has_changed:
        screen.print(
            "No change beyond chance: such rows raise an alarm with a probability of "
            f"at most {found.level:.2g}."
        )
    parts = sorted(found.segments, key=lambda part: -part.old_share)
    rows = [
        (
            part.name,
            f"{part.old_rows:,}",
            f"{part.new_rows:,}",
            f"{part.old_share:.1%}",
            f"{part.new_share:.1%}",
            "" if part.verdict == "as before" else part.verdict,
        )
        for part in parts[:_MAX_SEGMENTS]
    ]
    titles = ("segment", "rows then", "rows now", "then", "now", "")
    screen.print()
    screen.print_table(titles, rows, right=1)
    screen.print_rest(len(parts), _MAX_SEGMENTS, "smaller segments")
    if found.columns:
        screen.print()
        _print_columns(screen, found.columns)
    _print_unusual(screen, found.unusual)


def _print_columns(screen: Screen, columns: Any) -> None:
    rows = [
        (
            column.name,
            column.what,
            column.old,
            column.new,
            f"{column.distance:.1%}",
            "moved" if column.is_alarm else "",
        )
        for column in columns[:MAX_COLUMNS]
    ]
    titles = ("column", "compared", "then", "now", "shift", "")
    screen.print_table(titles, rows, left=2, right=1)
    screen.print_rest(len(columns), MAX_COLUMNS, "more columns")


def _print_unusual(screen: Screen, found: Any) -> None:
    screen.print(
        f"\n{found.n_rows:,} rows ({found.new_share:.1%}) are unlike those of the fit, "
        f"of which {found.old_share:.0%} were."
    )
    if found.is_alarm:
        numbers = ", ".join(f"{number:,}" for number in found.row_numbers)
        screen.print(f"Farthest out: rows {numbers}.")
        for column in found.columns:
            screen.print(f"  {column.contrast}")
