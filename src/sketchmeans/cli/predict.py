"""``sketchmeans predict``: which segment new rows belong to, and how clearly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sketchmeans.cli.files import (
    LABELS,
    STREAM,
    check_outputs,
    find_swapped,
    is_model,
    open_model_rows,
    open_table,
    suffix_in,
)
from sketchmeans.cli.labels import (
    choose_beside,
    name_labels,
    put_beside,
    write_labels,
    write_tables,
)
from sketchmeans.cli.options import FileOptions, PrintOptions
from sketchmeans.cli.progress import Display
from sketchmeans.cli.screen import Screen, format_duration

if TYPE_CHECKING:
    import pyarrow as pa


def predict(
    model: str,
    data: str,
    *,
    out: str = STREAM,
    identifier: str | None = None,
    keep_columns: bool = False,
    labels_only: bool = False,
    unusual: float | None = None,
    old: str | None = None,
    file_options: FileOptions,
    print_options: PrintOptions,
) -> None:
    """Say which segment the rows of a table belong to, and how clearly."""
    screen = Screen(print_options, labels_on_output=out == STREAM)
    if find_swapped(model, data):
        screen.print_error(f"{data} is the model and {model} the table: swapped.")
        model, data = data, model
    inputs = [model, data] if old is None else [model, data, old]
    check_outputs({"--out": out}, inputs, out=LABELS)
    labels_only = labels_only or out.endswith(".npy")
    for option, value in (("--unusual", unusual), ("--old", old)):
        if labels_only and value is not None:
            raise typer.BadParameter(f"{option} has no meaning for labels alone.")
    fitted = load_clusters(model, takes_pipelines=old is None)
    if old is not None:
        calibrate_by(screen, fitted, old, file_options)
    from sketchmeans.cluster.segment_names import segment_names
    from sketchmeans.cluster.within import find_clusterer
    from sketchmeans.diagnostics.fitted import AnyModel

    with open_table(data, file_options, screen) as table, Display(screen) as display:
        beside = choose_beside(table, out, identifier, keep_columns)
        start = time.perf_counter()
        display.next("Labelling rows")
        # Rows with missing values are found first.
        n_passes = 2 if getattr(fitted, "missing", None) == "drop" else 1
        rows = as_model_table(screen, fitted, display.watch(table, n_passes))
        inner = find_clusterer(fitted)
        is_own = isinstance(inner, AnyModel)
        if labels_only or not is_own:
            labels = fitted.predict(rows)
            counts = _Counts(len(labels), int((labels < 0).sum()))
            names = None if labels_only else segment_names(fitted)
            write_labels(labels, out, beside, names)
            if not labels_only:
                screen.print_error(
                    f"{model} holds a {type(inner).__name__} of another library, which "
                    "gives labels only.",
                    "Warning",
                    "yellow",
                )
        else:
            counts = _Counts()
            share = 0.01 if unusual is None else unusual
            write_tables(_make_tables(fitted, rows, beside, share, counts), out)
            if getattr(fitted, "reference_", None) is None:
                screen.print_error(
                    f"{model} keeps nothing of the rows of its fit: memberships and "
                    "unusual rows are left out. Give that table with --old FILE.",
                    "Warning",
                    "yellow",
                )
        display.finish()
        seconds = time.perf_counter() - start
    _print_counts(screen, counts, seconds, out)


class _Counts:
    """How many rows were labelled, left out and unusual."""

    def __init__(self, n_rows: int = 0, n_dropped: int = 0) -> None:
        self.n_rows, self.n_dropped = n_rows, n_dropped
        self.n_unusual: int | None = None


def load_clusters(path: str, *, takes_pipelines: bool = True) -> Any:
    """Return the model in a file, if it has clusters."""
    from sklearn.pipeline import Pipeline

    from sketchmeans import load
    from sketchmeans.data.sources import FORMATS

    if suffix_in(path, FORMATS) and Path(path).is_file() and not is_model(path):
        raise ValueError(f"{path} is a table, not a model: fit --model writes one.")
    fitted = load(path)
    if isinstance(fitted, Pipeline) and not takes_pipelines:
        raise ValueError(
            f"{path} holds a Pipeline, whose rows cannot be compared with those of "
            "the fit: predict without --old takes it. For the rest, fit a "
            "TableClusterer, which prepares columns itself, as sketchmeans fit does."
        )
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{path} holds a {type(fitted).__name__}, which has no clusters."
        )
    return fitted


def as_model_table(screen: Screen, model: Any, table: Any) -> Any:
    """Return a table in the form that a fitted model takes."""
    from sketchmeans import TableClusterer

    if isinstance(model, TableClusterer):
        return table
    return open_model_rows(screen, model, table)


def calibrate_by(screen: Screen, model: Any, old: str, options: FileOptions) -> None:
    """Learn from the table of the fit what rows are compared with."""
    from sketchmeans.diagnostics import calibrate

    if old == STREAM:
        raise typer.BadParameter("--old - should be a file.")
    with open_table(old, options, screen) as table, Display(screen) as display:
        display.next("Old rows")
        calibrate(model, as_model_table(screen, model, display.watch(table)))
        display.finish()


def _make_tables(
    model: Any, rows: Any, beside: Any, share: float, counts: _Counts
) -> Iterator[pa.Table]:
    """Yield tables of the output: a row for each row of the table."""
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError(
            "predict writes its table through pyarrow, which is not installed: pip "
            "install sketchmeans[files], or give --labels-only."
        ) from None
    from sketchmeans.cluster.segment_names import segment_names
    from sketchmeans.diagnostics.scoring import iterate_scores

    names = segment_names(model)
    for span, found in iterate_scores(model, rows, unusual_share=share):
        counts.n_rows += len(found.labels)
        counts.n_dropped += int((found.labels < 0).sum())
        columns = {
            "label": found.labels,
            "segment": name_labels(found.labels, names),
            "distance": _as_float(found.distances),
            "margin": _as_float(found.margins),
        }
        if found.membership is not None and found.unusual is not None:
            counts.n_unusual = (counts.n_unusual or 0) + int(found.unusual.sum())
            columns |= {"unusual": pa.array(found.unusual)}
            for name, values in zip(names, found.membership.T, strict=True):
                columns |= {f"membership: {name}": _as_float(values)}
        yield put_beside(beside, span, columns)


def _as_float(values: Any) -> pa.Array:
    """Return numbers in the few digits that matter; nothing for NaN."""
    import pyarrow as pa

    return pa.array(values.astype("float32").round(6), from_pandas=True)


def _print_counts(screen: Screen, counts: _Counts, seconds: float, out: str) -> None:
    files = [] if out == STREAM else [out]
    screen.print_json(
        {
            "n_samples": counts.n_rows,
            "n_dropped": counts.n_dropped,
            "n_unusual": counts.n_unusual,
            "seconds": seconds,
            "files": files,
        }
    )
    if not (files or screen.verbose):
        return
    notes = ""
    if counts.n_dropped:
        notes += f"; {counts.n_dropped:,} with missing values have the label -1"
    if counts.n_unusual:
        are = "is" if counts.n_unusual == 1 else "are"
        notes += f"; {counts.n_unusual:,} {are} unlike the rows of the fit"
    where = f" Wrote {out}." if files else ""
    took = format_duration(seconds)
    screen.print(f"Labelled {counts.n_rows:,} rows in {took}{notes}.{where}")
