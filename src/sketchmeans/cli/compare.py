"""``sketchmeans compare``: which landmarks suit a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from sketchmeans.cli.explain import print_certificate
from sketchmeans.cli.files import (
    make_clusterer,
    make_estimator,
    open_table,
)
from sketchmeans.cli.options import FileOptions, PrintOptions, TableOptions
from sketchmeans.cli.progress import Display
from sketchmeans.cli.screen import Screen, format_duration

#: What plain k-means is called.
PLAIN = "plain k-means"


def compare(
    data: str,
    n_clusters: int,
    *,
    table_options: TableOptions,
    file_options: FileOptions,
    kernel: str | None = None,
    gamma: str | None = None,
    landmarks: str = "uniform,kmeans++,ridge-leverage,rpcholesky",
    n_landmarks: str | None = None,
    max_memory: str | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    print_options: PrintOptions,
) -> None:
    """Compare ways to select landmarks, and plain k-means, on a table."""
    screen = Screen(print_options, answers=True)
    kernel_params = {"kernel": kernel, "gamma": gamma, "n_landmarks": n_landmarks}
    shared = {"max_memory": max_memory, "n_jobs": n_jobs, "random_state": random_state}
    models = _make_models(n_clusters, landmarks, kernel_params, shared)
    with open_table(data, file_options, screen) as table:
        found, shape = _compare(screen, models, table_options, table)
    _print_comparison(screen, found, shape)
    screen.print_json(
        {**found.to_dict(), "n_samples": shape[0], "n_clusters": n_clusters}
    )


def _make_models(
    n_clusters: int,
    landmarks: str,
    kernel_params: Mapping[str, Any],
    shared: Mapping[str, Any],
) -> dict[str, Any]:
    from sketchmeans.landmarks import SELECTORS

    names = [name.strip() for name in landmarks.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter(
            f"--landmarks {landmarks!r} should be names, separated by commas, or all."
        )
    if names == ["all"]:
        names = list(SELECTORS)
    params = {**kernel_params, **shared}
    models = {
        name: make_estimator("nystrom", n_clusters, {**params, "landmarks": name})
        for name in dict.fromkeys(names)
    }
    return {**models, PLAIN: make_estimator("sketched", n_clusters, shared)}


def _compare(
    screen: Screen, models: Mapping[str, Any], options: TableOptions, table: Any
) -> tuple[Any, tuple[int, int]]:
    """Return the comparison of the fitted models, and the shape of the table."""
    from sketchmeans.diagnostics import compare_models

    with Display(screen) as display:
        clusterer = make_clusterer(options, models[PLAIN], table)
        rows = display.attach(clusterer).fit_preparation(table).prepare(table)
        classes = None
        if options.label_column is not None:
            classes = clusterer.label_values(table)
        for model in models.values():
            display.attach(model)
        with display.stage("Methods compared", len(models)) as on_compared:

            def on_model(name: str) -> None:
                if name != next(iter(models)):
                    on_compared()
                display.finish()
                display.remove_finished()
                what = name if name == PLAIN else f"{name} landmarks"
                display.next(f"Clustering with {what}")

            found = compare_models(models, rows, classes, on_model=on_model)
            display.finish()
            display.remove_finished()
    return found, rows.shape


def _print_comparison(screen: Screen, found: Any, shape: tuple[int, int]) -> None:
    from sketchmeans.theory.results import format_at_most

    best = found.best
    columns = ["landmarks", "time", "cost", "certified", "agreement"]
    rows = [
        [
            name,
            format_duration(float(found.seconds[i])),
            f"{found.cost[i]:.6g}{'*' if name == PLAIN else ' '}",
            f"≤ {format_at_most(found.ratio[i], 3)} × best"
            if found.ratio[i] < 1e6
            else "-",
            "best" if i == best else f"{found.agreement[i, best]:.3f}",
        ]
        for i, name in enumerate(found.names)
    ]
    if found.class_information is not None:
        columns.append("classes (NMI)")
        for row, value in zip(rows, found.class_information, strict=True):
            row.append(f"{value:.3f}")
    m = int(found.n_landmarks[best])
    screen.print(
        f"{shape[0]:,} rows of {shape[1]:,} columns, {m:,} landmarks", style="bold"
    )
    screen.print_table(columns, rows, best=best)
    if found.certificate is not None:
        screen.print(f"\nProved of {found.names[best]}:")
        print_certificate(screen, found.certificate)
    screen.print(
        "\ncertified: the cost is at most this many times that of the best possible "
        "clusters.\nagreement: with the clusters of the lowest cost (adjusted Rand "
        "index: 1 for the same clusters, 0 for chance).\n* in units of the columns, "
        "not of the kernel, so it cannot be compared with the other costs."
    )
