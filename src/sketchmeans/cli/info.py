"""``sketchmeans info``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sketchmeans.cli.data import STREAM, STREAM_NAME, Reading, loaded, readable
from sketchmeans.cli.screen import Screen

if TYPE_CHECKING:
    from sketchmeans.data.preparation import Table

#: Most columns that are listed.
_LISTED = 40
#: What a person calls the parameters.
_CALLED = {
    "n_features": "number of columns",
    "n_clusters": "clusters",
    "n_iter": "passes",
    "n_landmarks": "landmarks",
    "label_column": "known classes",
}


def run(screen: Screen, file: str, reading: Reading) -> None:
    """Say what is in a file: a table if its name ends as such, else a model."""
    from sketchmeans.data.sources import FORMATS

    is_table = file == STREAM or Path(file).suffix.lower() in FORMATS
    if is_table or os.path.isdir(file) or not os.path.lexists(file):
        with readable(file, screen, reading) as table:
            _table(screen, table, STREAM_NAME if file == STREAM else file)
    else:
        _model(screen, file)


def _table(screen: Screen, table: Table, called: str) -> None:
    from sketchmeans.diagnostics import column_summary

    with screen.working("Reading rows"):
        found = column_summary(table)
    screen.say(
        f"{called}: {found.n_rows:,} rows of {len(found.names):,} columns", style="bold"
    )
    rows = [
        (
            str(name),
            kind or "number",
            *(
                (f"{missing:,}", f"{mean:.4g}", f"{deviation:.4g}")
                if kind is None
                else ("", "", "")
            ),
        )
        for name, kind, missing, mean, deviation in found.columns()
    ]
    screen.table(
        ("column", "type", "missing", "mean", "deviation"), rows[:_LISTED], left=2
    )
    if len(rows) > _LISTED:
        screen.say(f"... and {len(rows) - _LISTED:,} more columns")
    words = [str(name) for name, kind, *_ in found.columns() if kind is not None]
    if words:
        screen.say(f"\nNo numbers, so leave out with --exclude: {', '.join(words)}")
    if found.missing.any():
        screen.say(
            "Missing values: leave out such rows with --missing drop, or fill them in "
            "with --missing mean."
        )
    screen.json({"kind": "table", **found.to_dict()})


def _model(screen: Screen, file: str) -> None:
    from sketchmeans import TableClusterer
    from sketchmeans.cli.fit import say_sizes
    from sketchmeans.numerics.memory import format_bytes

    model = loaded(file)
    found = _described(model)
    size = os.path.getsize(file)
    screen.say(f"{file}: {found['model']}, {format_bytes(size)}", style="bold")
    lines = {
        _CALLED.get(name, name): value if isinstance(value, str) else f"{value:,.6g}"
        for name, value in found.items()
        if name not in ("model", "columns") and value is not None
    }
    if "columns" in found:
        names = [str(name) for name in found["columns"]]
        lines["columns"] = ", ".join(names[:_LISTED]) + (
            ", ..." * (len(names) > _LISTED)
        )
    screen.pairs(lines)
    inner: Any = model.estimator_ if isinstance(model, TableClusterer) else model
    if hasattr(inner, "cluster_sizes_"):
        screen.say()
        say_sizes(screen, inner.cluster_sizes_, model.exemplar_indices_)
        found["cluster_sizes"] = inner.cluster_sizes_
    screen.json({"kind": "model", "bytes": size, **found})


def _name(kernel: Any) -> str:
    return kernel if isinstance(kernel, str) else type(kernel).__name__


def _described(model: Any) -> dict[str, Any]:
    """Return what is worth to know of a model, by name."""
    from sketchmeans import TableClusterer

    found: dict[str, Any] = {"model": type(model).__name__}
    inner = model
    if isinstance(model, TableClusterer):
        inner = model.estimator_
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
        found |= {"kernel": _name(inner.kernel), "gamma": inner.gamma_}
    if hasattr(inner, "landmarks_"):
        found["n_landmarks"] = inner.landmarks_.shape[0]
    return found
