"""``sketchmeans predict``."""

from __future__ import annotations

import time
from typing import Any

from sketchmeans.cli.bars import duration
from sketchmeans.cli.data import STREAM, Reading, loaded, readable, rows_by_name
from sketchmeans.cli.output import check_apart, check_labels, write_labels
from sketchmeans.cli.screen import Screen
from sketchmeans.cli.stages import WatchedTable, stages


def run(screen: Screen, model: str, data: str, out: str, reading: Reading) -> None:
    """Label the rows of a table."""
    from sketchmeans import TableClusterer

    check_labels("--out", out)
    check_apart({"--out": out}, [model, data])
    fitted = loaded(model)
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{model} holds a {type(fitted).__name__}, which has no clusters."
        )
    with readable(data, screen, reading) as raw, screen.warnings():
        start = time.perf_counter()
        with stages(screen) as shown, shown.stage("Labelling rows") as stage:
            # Rows with gaps are looked for first.
            n_passes = 2 if getattr(fitted, "missing", None) == "drop" else 1
            table: Any = WatchedTable(raw, stage, n_passes)
            if not isinstance(fitted, TableClusterer):
                table = rows_by_name(fitted, table)
            labels = fitted.predict(table)
        seconds = time.perf_counter() - start
    dropped = int((labels < 0).sum())
    write_labels(labels, out)
    found = {"n_samples": len(labels), "n_dropped": dropped, "seconds": seconds}
    screen.json({**found, "files": [] if out == STREAM else [out]})
    note = f"; {dropped:,} with missing values have the label -1" if dropped else ""
    where = "" if out == STREAM else f" Wrote {out}."
    if out != STREAM or screen.verbose:
        screen.say(
            f"Labelled {len(labels):,} rows in {duration(seconds)}{note}.{where}"
        )
