"""``sketchmeans info``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sketchmeans.cli import options as o
from sketchmeans.cli.data import STREAM, STREAM_NAME, open_table
from sketchmeans.cli.fit import print_sizes
from sketchmeans.cli.screen import Screen

if TYPE_CHECKING:
    from sketchmeans.data.preparation import Table

#: Most columns that are listed.
_MAX_LISTED = 40
#: What users call the parameters.
_TITLES = {
    "n_features": "number of columns",
    "n_clusters": "clusters",
    "n_iter": "iterations",
    "n_landmarks": "landmarks",
    "label_column": "known classes",
}


def info(
    file: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|DATA",
            help="A model or a table; - reads CSV from standard input.",
        ),
    ],
    *,
    file_options: o.FileOptions,
    as_json: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """Describe a model file or a table."""
    screen = Screen(o.PrintOptions(as_json=as_json, debug=debug))
    from sketchmeans.data.sources import FORMATS

    is_table = file == STREAM or Path(file).suffix.lower() in FORMATS
    if is_table or os.path.isdir(file) or not os.path.lexists(file):
        with open_table(file, file_options, screen) as table:
            _print_table(screen, table, STREAM_NAME if file == STREAM else file)
    else:
        _print_model(screen, file)


def _print_table(screen: Screen, table: Table, name: str) -> None:
    from sketchmeans.diagnostics import column_summary

    with screen.show_status("Reading rows"):
        found = column_summary(table)
    screen.print(
        f"{name}: {found.n_rows:,} rows of {len(found.names):,} columns", style="bold"
    )
    columns = list(found.columns())
    rows = [
        (str(name), "number", f"{missing:,}", f"{mean:.4g}", f"{deviation:.4g}")
        if kind is None
        else (str(name), kind, "", "", "")
        for name, kind, missing, mean, deviation in columns
    ]
    titles = ("column", "type", "missing", "mean", "deviation")
    screen.print_table(titles, rows[:_MAX_LISTED], left=2)
    if len(rows) > _MAX_LISTED:
        screen.print(f"... and {len(rows) - _MAX_LISTED:,} more columns")
    others = [str(name) for name, kind, *_ in columns if kind is not None]
    if others:
        screen.print(f"\nNot numbers; leave out with --exclude: {', '.join(others)}")
    if found.missing.any():
        screen.print(
            "Missing values: drop such rows with --missing drop, or fill in the mean "
            "with --missing mean."
        )
    screen.print_json({"kind": "table", **found.to_dict()})


def _print_model(screen: Screen, file: str) -> None:
    from sketchmeans import load
    from sketchmeans.numerics.memory import format_bytes

    model = load(file)
    found = _describe_model(model)
    size = os.path.getsize(file)
    screen.print(f"{file}: {found['model']}, {format_bytes(size)}", style="bold")
    lines = {
        _TITLES.get(name, name): value if isinstance(value, str) else f"{value:,.6g}"
        for name, value in found.items()
        if name not in ("model", "columns") and value is not None
    }
    if "columns" in found:
        names = [str(name) for name in found["columns"]]
        more = ", ..." * (len(names) > _MAX_LISTED)
        lines["columns"] = ", ".join(names[:_MAX_LISTED]) + more
    screen.print_pairs(lines)
    inner = getattr(model, "estimator_", model)
    if hasattr(inner, "cluster_sizes_"):
        screen.print()
        print_sizes(screen, inner.cluster_sizes_, model.exemplar_indices_)
        found["cluster_sizes"] = inner.cluster_sizes_
    screen.print_json({"kind": "model", "bytes": size, **found})


def _describe_model(model: Any) -> dict[str, Any]:
    """Return what users want to know of a model, by name."""
    found: dict[str, Any] = {"model": type(model).__name__}
    inner = getattr(model, "estimator_", model)
    if inner is not model:
        found |= {
            "model": f"{type(inner).__name__} for tables",
            "columns": model.columns_,
            "scale": model.scale,
            "missing": model.missing,
        }
        if model.label_column is not None:
            found["label_column"] = str(model.label_column)
    elif hasattr(model, "feature_names_in_"):
        found["columns"] = list(model.feature_names_in_)
    found["n_features"] = inner.n_features_in_
    if hasattr(inner, "n_clusters"):
        found["n_clusters"] = inner.n_clusters
    for name in ("cost_", "n_iter_"):
        if hasattr(inner, name):
            found[name.rstrip("_")] = getattr(inner, name)
    if hasattr(inner, "kernel_"):
        kernel = inner.kernel
        name = kernel if isinstance(kernel, str) else type(kernel).__name__
        found |= {"kernel": name, "gamma": inner.gamma_}
    if hasattr(inner, "landmarks_"):
        found["n_landmarks"] = inner.landmarks_.shape[0]
    return found
