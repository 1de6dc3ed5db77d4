"""``sketchmeans report``: who the segments of a saved model are, for people."""

from __future__ import annotations

import re
import shlex
import sys
from typing import TYPE_CHECKING, Any

import typer

from sketchmeans.cli.explain import print_certificate
from sketchmeans.cli.files import (
    REPORT,
    WORKBOOK,
    check_outputs,
    open_model_rows,
    open_table,
    parse_identifier,
    read_classes,
    suffix_in,
)
from sketchmeans.cli.options import FileOptions, PrintOptions
from sketchmeans.cli.progress import Display
from sketchmeans.cli.screen import Screen

if TYPE_CHECKING:
    from sketchmeans.data.preparation import Table

#: Stages of a report that read all rows.
_READING_STAGES = ("clusters", "certificate")
#: Most segments that are listed.
_MAX_SEGMENTS = 12


def report(
    model: str,
    data: str,
    *,
    out: str = "report.html",
    xlsx: str | None = None,
    identifier: str | None = None,
    image_shape: str | None = None,
    title: str | None = None,
    file_options: FileOptions,
    print_options: PrintOptions,
) -> None:
    """Say who the segments of a saved model are, in words and pictures: one file."""
    screen = Screen(print_options)
    files = {"--out": out, "--xlsx": xlsx}
    check_outputs(files, [model, data], out=REPORT, xlsx=WORKBOOK)
    if xlsx is not None and suffix_in(out, WORKBOOK):
        raise typer.BadParameter(f"--xlsx {xlsx} has no meaning with --out {out}.")
    options: dict[str, Any] = {
        "image_shape": _parse_shape(image_shape),
        "title": title,
        "xlsx": xlsx,
    }
    from sketchmeans import load

    fitted = load(model)
    with open_table(data, file_options, screen) as table:
        if identifier is not None:
            options["id_column"] = parse_identifier(identifier, table)
        classes = read_classes(fitted, table)
        written = write_model_report(screen, fitted, table, out, classes, **options)
    print_segments(screen, written.segments)
    if written.certificate is not None:
        screen.print()
        print_certificate(screen, written.certificate)
    paths = [path for path in files.values() if path is not None]
    screen.print(f"Wrote {', '.join(paths)}.")
    screen.print_json({"files": paths, **describe_report(written)})


def print_segments(screen: Screen, found: Any) -> None:
    """Print what sets the segments apart, and how sure they are."""
    shown = found.by_size()
    for segment in shown[:_MAX_SEGMENTS]:
        sure = "" if segment.verdict is None else f"  ({segment.verdict[0]})"
        screen.print(f"{segment.headline}{sure}")
    screen.print_rest(len(shown), _MAX_SEGMENTS, "smaller segments")


def describe_report(written: Any) -> dict[str, Any]:
    """Return the content of a report for JSON."""
    found, certificate = written.segments, written.certificate
    agreement = written.summary.agreement
    return {
        "title": written.title,
        "n_samples": found.n_rows,
        "n_sampled": found.n_sampled,
        "id_column": found.id_column,
        "segments": [
            segment.to_dict() | detail
            for segment, detail in zip(found.segments, written.details, strict=True)
        ],
        "note": found.note,
        "technical": written.technical,
        "cost": written.summary.cost,
        "explained": written.row_map.explained,
        "agreement": None if agreement is None else agreement.to_dict(),
        "certificate": None if certificate is None else certificate.to_dict(),
    }


def write_model_report(
    screen: Screen, model: Any, table: Table, out: str, classes: Any, **options: Any
) -> Any:
    """Write the report of a model on a table, and return what is in it."""
    from sklearn.pipeline import Pipeline

    from sketchmeans import TableClusterer
    from sketchmeans.report import write_report

    with Display(screen) as display:
        display.next("Report: rows")
        rows: Any = display.watch(table)
        if not isinstance(model, Pipeline | TableClusterer):
            rows = open_model_rows(screen, model, rows)

        def on_stage(name: str) -> None:
            n_rows = display.n_rows if name in _READING_STAGES else None
            display.next(f"Report: {name}", n_rows)

        written = write_report(
            model,
            rows,
            out,
            y=classes,
            source_name=screen.names.get(table.path),
            command=shlex.join(["sketchmeans", *sys.argv[1:]]),
            on_stage=on_stage,
            **options,
        )
        display.finish()
    return written


def _parse_shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)\s*[x×,]\s*(\d+)", text)
    if found is None:
        raise typer.BadParameter(
            f"--image-shape {text} should be height and width, such as 28x28."
        )
    return int(found[1]), int(found[2])
