"""``sketchmeans compare``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from sketchmeans.cli.bars import duration
from sketchmeans.cli.data import Reading, built_estimator, readable, table_clusterer
from sketchmeans.cli.screen import Screen
from sketchmeans.cli.stages import stages

#: What plain k-means is called.
PLAIN = "plain k-means"


def run(
    screen: Screen,
    data: str,
    n_clusters: int,
    landmarks: str,
    params: Mapping[str, Any],
    choice: Mapping[str, Any],
    reading: Reading,
) -> None:
    """Fit one model for each landmark selector, and plain k-means."""
    from sketchmeans.diagnostics import compare_models

    models = _models(n_clusters, landmarks, params)
    with readable(data, screen, reading) as table, screen.warnings():
        tables = table_clusterer(models[PLAIN], table, **choice)
        with stages(screen) as shown:
            rows = shown.watch(tables).learn(table).prepare(table)
            classes = None
            if choice["label_column"] is not None:
                classes = tables.label_values(table)
            for model in models.values():
                shown.watch(model)
            with shown.stage("Methods compared", len(models)) as all_of_them:

                def on_model(name: str) -> None:
                    if name != next(iter(models)):
                        all_of_them.advance()
                    shown.finish()
                    shown.tidy()
                    shown.next(f"Clustering with {_called(name)}")

                found = compare_models(models, rows, classes, on_model=on_model)
                shown.finish()
                shown.tidy()
    _say(screen, found, rows.shape)
    screen.json({**found.to_dict(), "n_samples": len(rows), "n_clusters": n_clusters})


def _models(
    n_clusters: int, landmarks: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    from sketchmeans.landmarks import SELECTORS

    names = [name.strip() for name in landmarks.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter(
            f"--landmarks {landmarks!r} should be names, separated by commas, or all."
        )
    if names == ["all"]:
        names = list(SELECTORS)
    models = {
        name: built_estimator("nystrom", n_clusters, {**params, "landmarks": name})
        for name in dict.fromkeys(names)
    }
    shared = ("max_memory", "n_jobs", "random_state")
    plain = {name: params[name] for name in shared}
    return {**models, PLAIN: built_estimator("sketched", n_clusters, plain)}


def _called(name: str) -> str:
    return name if name == PLAIN else f"{name} landmarks"


def _say(screen: Screen, found: Any, shape: tuple[int, int]) -> None:
    best = found.best
    columns = ["landmarks", "time", "cost", "certified", "agreement"]
    rows = []
    for i, name in enumerate(found.names):
        own_units = name == PLAIN
        ratio = found.ratio[i]
        rows.append(
            [
                name,
                duration(float(found.seconds[i])),
                f"{found.cost[i]:.6g}{'*' if own_units else ' '}",
                "-" if not ratio < 1e6 else f"≤ {ratio:.3f} × best",
                "best" if i == best else f"{found.agreement[i, best]:.3f}",
            ]
        )
    if found.class_information is not None:
        columns.append("classes (NMI)")
        for row, value in zip(rows, found.class_information, strict=True):
            row.append(f"{value:.3f}")
    m = int(found.n_landmarks[best])
    screen.say(
        f"{shape[0]:,} rows of {shape[1]:,} columns, {m:,} landmarks", style="bold"
    )
    screen.table(columns, rows, best=best)
    screen.say()
    screen.say(
        "certified: the cost is at most so many times that of the best possible "
        "clusters\n(at a confidence of 95% where rows are many).\n"
        "agreement: with the clusters of the lowest cost (adjusted Rand "
        "index; 1 is the same, 0 chance).\n* in units of the columns, not of the "
        "kernel: not to be compared."
    )
