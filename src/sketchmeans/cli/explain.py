"""``sketchmeans info`` and ``certify``: what is known of a saved model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sketchmeans.cli.columns import MAX_COLUMNS
from sketchmeans.cli.files import (
    STREAM,
    STREAM_NAME,
    is_model,
    open_model_rows,
    open_table,
)
from sketchmeans.cli.options import FileOptions, PrintOptions
from sketchmeans.cli.progress import Display
from sketchmeans.cli.screen import Screen, format_duration

if TYPE_CHECKING:
    from sketchmeans.data.preparation import ColumnPlan, Table

#: Most clusters that are listed.
_MAX_CLUSTERS = 30
#: Characters of the bar that stands for the cost.
_WIDTH = 40
#: What users call the parameters.
_TITLES = {
    "n_features": "number of columns",
    "n_clusters": "clusters",
    "n_iter": "iterations",
    "n_landmarks": "landmarks",
    "label_column": "known classes",
}


# --- info -----------------------------------------------------------------------------


def info(
    file: str, *, file_options: FileOptions, as_json: bool = False, debug: bool = False
) -> None:
    """Describe a model file or a table."""
    screen = Screen(PrintOptions(as_json=as_json, debug=debug))
    from sketchmeans.data.sources.files import suffix_of
    from sketchmeans.data.sources.formats import FORMATS, say_what_is_read

    is_table = file == STREAM or suffix_of(file) in FORMATS
    if is_table or os.path.isdir(file) or not os.path.lexists(file):
        with open_table(file, file_options, screen) as table:
            _print_table(screen, table, STREAM_NAME if file == STREAM else file)
    elif os.path.isfile(file) and not is_model(file):
        raise ValueError(
            f"{file} is neither a model, as fit --model writes it, nor a table: "
            f"{say_what_is_read(file)}"
        )
    else:
        _print_model(screen, file)


def _print_table(screen: Screen, table: Table, name: str) -> None:
    from sketchmeans.diagnostics import column_summary

    with screen.show_status("Reading rows"):
        found = column_summary(table)
    screen.print(
        f"{name}: {found.n_rows:,} rows of {len(found.names):,} columns", style="bold"
    )
    plan = _plan(table)
    columns = list(found.columns())
    rows = []
    for column, kind, missing, mean, deviation in columns:
        numbers = (f"{missing:,}", f"{mean:.4g}", f"{deviation:.4g}")
        what = plan.get(str(column))
        words = ("number", "") if what is None else (what.kind, what.reason)
        rows.append(
            (str(column), words[0], *(numbers if kind is None else ("",) * 3), words[1])
        )
    titles = ("column", "kind", "missing", "mean", "deviation", "what is done")
    screen.print_table(titles, rows[:MAX_COLUMNS], left=2, right=1)
    screen.print_rest(len(rows), MAX_COLUMNS, "more columns")
    if plan:
        n_used = sum(what.is_used for what in plan.values())
        screen.print(
            f"\nA fit uses {n_used:,} of these columns; --exclude NAMES leaves out "
            "more, --as NAME=KIND gives a column another kind."
        )
    if found.missing.any():
        filled = "fills in the median" if plan else "stops with an error"
        screen.print(
            f"Missing values: a fit {filled}; --missing mean fills in the mean, "
            "--missing drop leaves out such rows."
        )
    kinds = {name: what.kind for name, what in plan.items()}
    reasons = {name: what.reason for name, what in plan.items()}
    plain = {"kind": "table", **found.to_dict(), "kinds": kinds, "reasons": reasons}
    screen.print_json(plain)


def _plan(table: Table) -> dict[str, ColumnPlan]:
    """Return what a fit would do with each column that has a name, by name."""
    from sketchmeans import NystromKMeans, TableClusterer

    return {what.name: what for what in TableClusterer(NystromKMeans()).plan(table)}


def _print_model(screen: Screen, file: str) -> None:
    from sklearn.pipeline import Pipeline

    from sketchmeans import load
    from sketchmeans.cluster.segment_names import segment_names
    from sketchmeans.numerics.memory import format_bytes

    model, size = load(file), os.path.getsize(file)
    found = _describe_model(model)
    screen.print(f"{file}: {found['model']}, {format_bytes(size)}", style="bold")
    lines = {
        _TITLES.get(name, name): value if isinstance(value, str) else f"{value:,.6g}"
        for name, value in found.items()
        if name not in ("model", "columns", "kinds") and value is not None
    }
    if "columns" in found:
        names = [str(name) for name in found["columns"]]
        more = ", ..." * (len(names) > MAX_COLUMNS)
        kinds = found.get("kinds", {})
        plain = (None, "numeric")
        words = [n if kinds.get(n) in plain else f"{n} ({kinds[n]})" for n in names]
        lines["columns"] = ", ".join(words[:MAX_COLUMNS]) + more
    screen.print_pairs(lines)
    if isinstance(model, Pipeline):
        model = model.steps[-1][1]
    inner = getattr(model, "estimator_", model)
    if hasattr(inner, "cluster_sizes_"):
        screen.print()
        segments = segment_names(model)
        print_sizes(screen, inner.cluster_sizes_, model.exemplar_indices_, segments)
        found["cluster_sizes"] = count_rows(inner.cluster_sizes_)
        found["segment_names"] = segments
    screen.print_json({"kind": "model", "bytes": size, **found})


def _describe_model(model: Any) -> dict[str, Any]:
    """Return what users want to know of a model, by name."""
    found: dict[str, Any] = {"model": type(model).__name__}
    inner = getattr(model, "estimator_", model)
    if inner is not model:
        found["model"] = f"{type(inner).__name__} for tables"
        found["columns"] = model.columns_
        found |= {"kinds": model.kinds_}
        found |= {"scale": model.scale, "missing": model.missing}
        if model.label_column is not None:
            found["label_column"] = str(model.label_column)
    elif hasattr(model, "feature_names_in_"):
        found["columns"] = list(model.feature_names_in_)
    found["n_features"] = model.n_features_in_
    for name in ("n_clusters", "cost_", "n_iter_"):
        if hasattr(inner, name):
            found[name.rstrip("_")] = getattr(inner, name)
    return found | describe_kernel(inner)


def describe_kernel(model: Any) -> dict[str, Any]:
    """Return the kernel and the number of landmarks, if a model has any, by name."""
    found: dict[str, Any] = {}
    if hasattr(model, "kernel_"):
        kernel = model.kernel
        name = kernel if isinstance(kernel, str) else type(kernel).__name__
        found = {"kernel": name, "gamma": model.gamma_}
    if hasattr(model, "landmarks_"):
        found["n_landmarks"] = model.landmarks_.shape[0]
    return found


def count_rows(sizes: Any) -> Any:
    """Return sizes of clusters as integers, unless weights made others of them."""
    whole = sizes.astype("int64")
    return whole if (whole == sizes).all() else sizes


def print_sizes(
    screen: Screen, sizes: Any, exemplars: Any, names: Sequence[str]
) -> None:
    """Print the name and size of every cluster, with bars of up to 20 characters."""
    total, largest = float(sizes.sum()), float(sizes.max())
    rows = [
        (
            str(j),
            "█" * max(round(20 * sizes[j] / largest), int(sizes[j] > 0)),
            f"{sizes[j]:,.0f}",
            f"{sizes[j] / total:.1%}",
            f"{exemplars[j]:,}" if sizes[j] else "",
            names[j],
        )
        for j in (-sizes).argsort(kind="stable")[:_MAX_CLUSTERS].tolist()
    ]
    titles = ("cluster", "", "rows", "share", "typical row", "segment")
    screen.print_table(titles, rows, left=2, right=1)
    screen.print_rest(len(sizes), _MAX_CLUSTERS, "smaller clusters")


# --- certify --------------------------------------------------------------------------


def certify(
    model: str,
    data: str,
    *,
    seconds: float = 60.0,
    ratio: float | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    file_options: FileOptions,
    print_options: PrintOptions,
) -> None:
    """Prove how far a saved model is from the best possible clustering."""
    screen = Screen(print_options)
    from sketchmeans import load

    fitted = load(model)
    with open_table(data, file_options, screen) as table, Display(screen) as display:
        display.next("Rows")
        rows = open_model_rows(screen, fitted, display.watch(table))
        found = find_certificate(
            display,
            fitted,
            rows,
            max_seconds=seconds,
            ratio=ratio,
            confidence=confidence,
            random_state=random_state,
        )
    print_certificate(screen, found)
    screen.print_json({**found.to_dict(), "interval": found.interval})


def find_certificate(display: Display, model: Any, rows: Any, **options: Any) -> Any:
    """Return the certificate of a model, with a bar of the subsets that are solved."""
    from sketchmeans.diagnostics import certificate

    display.next("Proof: subsets")
    done = 0

    def on_progress(n_done: int, n_subsets: int, bound: float) -> None:
        nonlocal done
        display.expect_rows(n_subsets)
        display.add_rows(n_done - done)
        done = n_done

    inner = getattr(model, "estimator_", model)
    found = certificate(inner, rows, on_progress=on_progress, **options)
    display.finish()
    return found


def print_certificate(screen: Screen, found: Any) -> None:
    """Print what is proved, a bar, and how it was found."""
    from sketchmeans.theory.results import format_at_least

    screen.print(f"{found.sentence[0].upper()}{found.sentence[1:]}.", style="bold")
    screen.print(f"{draw_interval(found.lower_bound, found.cost)}  {found.interval}")
    lines = {"method": found.method, "time": format_duration(found.seconds)}
    if found.n_subsets is not None:
        lines["subsets"] = (
            f"{found.n_solved:,} of {found.n_subsets:,} solved, of about "
            f"{found.subset_size:,} rows each"
        )
    if found.confidence == 1.0:
        lines["chance"] = "none: the bound is certain"
    elif found.certain_bound is not None:
        lines["chance"] = (
            f"the bound holds at a confidence of {found.confidence:.4g}; "
            f"{format_at_least(found.certain_bound)} is certain"
        )
    screen.print_pairs(lines)


def draw_interval(lower_bound: float, cost: float) -> str:
    """Return a bar from zero to the cost, light where the optimum may be.

    Examples
    --------
    >>> draw_interval(0.75, 1.0)
    '██████████████████████████████░░░░░░░░░░'
    """
    share = lower_bound / cost if cost > 0.0 else 1.0
    full = min(int(_WIDTH * share), _WIDTH)
    return "█" * full + "░" * (_WIDTH - full)
