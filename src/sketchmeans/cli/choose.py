"""``sketchmeans choose``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

import typer

from sketchmeans.cli.data import built_estimator, readable, table_clusterer
from sketchmeans.cli.output import check_can_write
from sketchmeans.cli.report import written_report
from sketchmeans.cli.screen import Screen


def run(
    screen: Screen,
    data: str,
    n_clusters: str,
    gamma: str | None,
    params: Mapping[str, Any],
    table: Mapping[str, Any],
    report: str | None,
) -> None:
    """Try numbers of clusters, then bandwidths, and suggest one of each."""
    counts, gammas = _counts(n_clusters), _gammas(gamma)
    check_can_write("--report", report, (".html",))
    chosen = {name: value for name, value in params.items() if value is not None}
    with readable(data, screen) as path, screen.warnings():
        first = gammas[0] if len(gammas) == 1 else None
        model = table_clusterer(
            built_estimator("nystrom", counts[0], {**params, "gamma": first}),
            path,
            **table,
        )
        with screen.working("Reading rows"):
            rows = model.learn(path).prepare(path)
        k, k_path, k_advice = _count(screen, rows, counts, first, chosen)
        width, g_path, g_advice = _bandwidth(screen, rows, k, gammas, chosen)
        if report is not None:
            paths = [path for path in (k_path, g_path) if path is not None]
            model.set_params(estimator__n_clusters=k, estimator__gamma=width)
            with screen.working("Clustering"):
                model.fit(path)
            written_report(screen, model, path, report, classes=None, paths=paths)
    for advice in (k_advice, g_advice):
        if advice is not None:
            screen.say(("" if advice.is_clear else "Not clear: ") + advice.note)
    screen.say(f"\nNext: {_next(data, k, width, params, table)}", style="bold")
    if report is not None:
        screen.say(f"Wrote {report}.")
    screen.json(
        {
            "n_clusters": k,
            "gamma": width,
            "reasons": [a.note for a in (k_advice, g_advice) if a is not None],
            "is_clear": all(a.is_clear for a in (k_advice, g_advice) if a is not None),
            "cluster_count_path": k_path,
            "bandwidth_path": g_path,
        }
    )


def _next(
    data: str, k: int, gamma: float, params: Mapping[str, Any], table: Mapping[str, Any]
) -> str:
    """Return the command that clusters the table so."""
    words = ["sketchmeans", "fit", data, "-k", str(k), "--gamma", f"{gamma:.4g}"]
    if params["kernel"] is not None:
        words += ["--kernel", params["kernel"]]
    for name, value in table.items():
        if value and value != _DEFAULTS.get(name):
            typed = value if isinstance(value, str) else ",".join(value)
            words += [f"--{name.replace('_', '-')}", typed]
    return shlex.join(words)


def _count(
    screen: Screen,
    rows: Any,
    counts: list[int],
    gamma: float | None,
    params: dict[str, Any],
) -> tuple[int, Any, Any]:
    """Return a number of clusters, with its path and the reason; None if given."""
    if len(counts) == 1:
        return counts[0], None, None
    from sketchmeans.diagnostics import advised_cluster_count, cluster_count_path

    with screen.working(f"Trying {counts[0]} to {counts[-1]} clusters"):
        width = "mean" if gamma is None else gamma
        path = cluster_count_path(rows, counts, gamma=width, **params)
    advice = advised_cluster_count(path)
    _table(screen, path, "n_clusters", "clusters", advice.value)
    return int(advice.value), path, advice


def _bandwidth(
    screen: Screen, rows: Any, k: int, gammas: list[float], params: dict[str, Any]
) -> tuple[float, Any, Any]:
    """Return a bandwidth, with its path and the reason; None if it was given."""
    if len(gammas) == 1:
        return gammas[0], None, None
    from sketchmeans.diagnostics import (
        advised_bandwidth,
        bandwidth_grid,
        bandwidth_path,
    )

    with screen.working(f"Trying bandwidths for {k} clusters"):
        tried = gammas or bandwidth_grid(rows, **params)
        path = bandwidth_path(rows, tried, k, **params)
    advice = advised_bandwidth(path, k, len(rows))
    _table(screen, path, "gamma", "gamma", advice.value)
    return float(advice.value), path, advice


#: Options that need not be typed.
_DEFAULTS = {"scale": "standard", "missing": "error"}
#: What the columns of a path are called, in the order in which they are shown.
_COLUMNS = {
    "stability": "agreement",
    "ratio": "certified",
    "cost": "cost",
    "effective_dimension": "dimension",
}


def _table(screen: Screen, path: Any, first: str, called: str, value: float) -> None:
    names = [name for name in _COLUMNS if name in path]
    rows = [
        [
            f"{path[first][i]:.4g}",
            *(_number(name, float(path[name][i])) for name in names),
        ]
        for i in range(len(path[first]))
    ]
    best = list(path[first]).index(value)
    screen.table([called, *(_COLUMNS[n] for n in names)], rows, left=0, best=best)
    screen.say()


def _number(name: str, value: float) -> str:
    if name == "ratio":
        return "-" if not value < 1e3 else f"≤ {value:.2f} × best"
    return f"{value:.2f}" if name == "stability" else f"{value:.4g}"


def _counts(text: str) -> list[int]:
    """Return the numbers that were typed.

    Examples
    --------
    >>> _counts("2-5"), _counts("5,10")
    ([2, 3, 4, 5], [5, 10])
    """
    between = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", text)
    if between:
        low, high = int(between[1]), int(between[2])
        counts = list(range(low, high + 1))
    else:
        parts = text.split(",")
        counts = sorted({int(part) for part in parts if part.strip().isdecimal()})
        if len(counts) < len(parts):
            counts = []
    if not counts or counts[0] < 1:
        raise typer.BadParameter(
            f"--n-clusters {text} should be such as 2-12, 5,10,20 or 8."
        )
    return counts


def _gammas(text: str | None) -> list[float]:
    """Return the bandwidths that were typed; none if they are left open."""
    if text is None:
        return []
    try:
        gammas = sorted({float(part) for part in text.split(",")})
    except ValueError:
        gammas = []
    if not gammas or not 0.0 < gammas[0] <= gammas[-1] < float("inf"):
        raise typer.BadParameter(
            f"--gamma {text} should be positive numbers, separated by commas."
        )
    return gammas
