"""``sketchmeans plan``: what a fit will take, before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sketchmeans.cli.files import make_clusterer, make_estimator, open_table
from sketchmeans.cli.options import (
    EstimatorOptions,
    FileOptions,
    PrintOptions,
    TableOptions,
)
from sketchmeans.cli.progress import Display
from sketchmeans.cli.screen import Screen, format_duration

#: Bytes of a file whose fit takes so long that a plan of it does not matter.
_LARGE_BYTES = 2**27


def plan(
    data: str,
    n_clusters: int,
    *,
    workers: int | None = None,
    memory: str | None = None,
    table_options: TableOptions,
    file_options: FileOptions,
    estimator_options: EstimatorOptions,
    print_options: PrintOptions,
) -> None:
    """Say what a fit would take: time, memory and network, and what would not fit."""
    screen = Screen(print_options)
    params = dict(vars(estimator_options))
    estimator = make_estimator(params.pop("estimator"), n_clusters, params)
    from sketchmeans.diagnostics import plan as plan_fit

    with open_table(data, file_options, screen) as table:
        model = make_clusterer(table_options, estimator, table)
        source = _open_numbers(model, table)
        found = plan_fit(model, source, n_workers=workers, memory=memory)
    _print_plan(screen, found)
    screen.print_json(found.to_dict())


def expect_duration(display: Display, screen: Screen, model: Any, table: Any) -> None:
    """Show how long the fit of a large file is expected to take.

    To find out takes some seconds, which a fit of a small one would not.
    """
    from sketchmeans import NystromKMeans
    from sketchmeans.diagnostics import plan as plan_fit

    is_shown = screen.has_bars or screen.verbose
    if not is_shown or not isinstance(model.estimator, NystromKMeans):
        return
    try:
        if Path(table.path).stat().st_size >= _LARGE_BYTES:
            found = plan_fit(model, _open_numbers(model, table))
            display.expect(found.seconds, found.n_passes)
    except (OSError, ValueError, MemoryError):
        pass  # the fit says what is wrong


def _open_numbers(model: Any, table: Any) -> Any:
    """Return the columns of numbers: those of text have few features of their own."""
    from sketchmeans.data.preparation import choose_columns

    columns = choose_columns(table, model.columns, model.exclude, model.label_column)
    types = table.types or {}
    return table.open([c for c in columns if not types.get(str(c))])


def _print_plan(screen: Screen, found: Any) -> None:
    from sketchmeans.numerics.memory import format_bytes

    screen.print(
        f"A fit of {found.n_rows:,} rows of {found.n_features:,} columns "
        f"({format_bytes(found.n_bytes)}) into {found.n_clusters:,} clusters takes "
        f"about {format_duration(found.seconds)}.",
        style="bold",
    )
    lines = {
        "landmarks": f"{found.n_landmarks:,}",
        "passes over all rows": f"{found.n_passes}",
    }
    for name, seconds in found.stages.items():
        lines[f"time for {name}"] = format_duration(seconds)
    lines["memory"] = format_bytes(found.memory)
    if found.n_workers is not None:
        lines["memory of a worker"] = format_bytes(found.worker_memory)
        lines["network"] = (
            f"{format_bytes(found.network_bytes)}, "
            f"{format_bytes(found.network_per_pass)} in a pass"
        )
        lines["tree of sums"] = f"{found.tree_depth} levels"
    screen.print_pairs(lines)
    for problem in found.problems:
        screen.print(f"\nDoes not fit: {problem}.")
