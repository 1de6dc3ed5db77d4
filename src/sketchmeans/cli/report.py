"""``sketchmeans report``, and the report of the other commands."""

from __future__ import annotations

import re
from typing import Any

import typer

from sketchmeans.cli.certify import say_certificate
from sketchmeans.cli.data import Reading, loaded, model_and_rows, readable
from sketchmeans.cli.output import check_apart, check_report
from sketchmeans.cli.screen import Screen
from sketchmeans.cli.stages import WatchedTable, stages
from sketchmeans.data.preparation import Table

#: Stages of a report that go through the rows.
_ROW_BY_ROW = ("clusters", "certificate")


def run(
    screen: Screen,
    model: str,
    data: str,
    out: str,
    image_shape: str | None,
    title: str | None,
    reading: Reading,
) -> None:
    """Write a report of a saved model."""
    check_report("--out", out)
    check_apart({"--out": out}, [model, data])
    shape = _shape(image_shape)
    fitted = loaded(model)
    with readable(data, screen, reading) as table, screen.warnings():
        report = written_report(
            screen,
            fitted,
            table,
            out,
            classes=known_classes(fitted, table),
            image_shape=shape,
            title=title,
        )
    if report.certificate is not None:
        say_certificate(screen, report.certificate)
    screen.say(f"Wrote {out}.")
    screen.json({"files": [out]})


def written_report(
    screen: Screen, model: Any, table: Table, out: str, *, classes: Any, **options: Any
) -> Any:
    """Write the report of a model on a table, and return what is in it."""
    from sketchmeans.cli.fit import command_line
    from sketchmeans.report import write_report

    with stages(screen) as shown:
        shown.next("Report: rows")
        inner, rows = model_and_rows(model, WatchedTable(table, shown), screen)

        def on_stage(name: str) -> None:
            n_rows = len(rows) if name in _ROW_BY_ROW else None
            shown.next(f"Report: {name}", n_rows)

        report = write_report(
            inner,
            rows,
            out,
            y=classes,
            command=command_line(),
            on_stage=on_stage,
            **options,
        )
        shown.finish()
    return report


def known_classes(model: Any, table: Table) -> Any:
    """Return the known classes of a table's rows; None if it has none."""
    if getattr(model, "label_column", None) is None:
        return None
    if table.types is not None and model.label_column not in table.types:
        return None
    return model.label_values(table)


def _shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)\s*[x×,]\s*(\d+)", text)
    if found is None:
        raise typer.BadParameter(
            f"--image-shape {text} should be height and width, such as 28x28."
        )
    return int(found[1]), int(found[2])
