"""``sketchmeans report``, and the report of other commands."""

from __future__ import annotations

import re
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sketchmeans.cli import options as o
from sketchmeans.cli.certify import print_certificate
from sketchmeans.cli.data import open_model_rows, open_table, read_classes
from sketchmeans.cli.output import REPORT, check_outputs
from sketchmeans.cli.progress import Display
from sketchmeans.cli.screen import Screen

if TYPE_CHECKING:
    from sketchmeans.data.preparation import Table

#: Stages of a report that read all rows.
_READING_STAGES = ("clusters", "certificate")


def report(
    model: o.ModelFile,
    data: o.Data,
    *,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="Write the report to this file.")
    ] = "report.html",
    image_shape: Annotated[
        str | None,
        typer.Option(
            metavar="HEIGHTxWIDTH",
            help="Show rows as images of this shape, such as 28x28.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    file_options: o.FileOptions,
    print_options: o.PrintOptions,
) -> None:
    """Explain a saved model on a table in pictures, as one HTML file."""
    screen = Screen(print_options)
    check_outputs({"--out": out}, [model, data], {"--out": REPORT})
    shape = _parse_shape(image_shape)
    from sketchmeans import load

    fitted = load(model)
    with open_table(data, file_options, screen) as table:
        classes = read_classes(fitted, table)
        written = write_model_report(
            screen,
            fitted,
            table,
            out,
            classes=classes,
            image_shape=shape,
            title=title,
        )
    if written.certificate is not None:
        print_certificate(screen, written.certificate)
    screen.print(f"Wrote {out}.")
    screen.print_json({"files": [out]})


def write_model_report(
    screen: Screen, model: Any, table: Table, out: str, *, classes: Any, **options: Any
) -> Any:
    """Write the report of a model on a table, and return what is in it."""
    from sketchmeans.cli.counted_rows import CountedTable
    from sketchmeans.report import write_report

    with Display(screen) as display:
        display.next("Report: rows")
        rows = open_model_rows(model, CountedTable(table, display))
        rows.path = screen.names.get(table.path, rows.path)

        def on_stage(name: str) -> None:
            n_rows = len(rows) if name in _READING_STAGES else None
            display.next(f"Report: {name}", n_rows)

        written = write_report(
            getattr(model, "estimator_", model),
            rows,
            out,
            y=classes,
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
