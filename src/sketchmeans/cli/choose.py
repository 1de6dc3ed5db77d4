"""``sketchmeans choose``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

import typer

from sketchmeans.cli.bars import watched
from sketchmeans.cli.data import Reading, built_estimator, readable, table_clusterer
from sketchmeans.cli.output import check_apart, check_report
from sketchmeans.cli.report import known_classes, written_report
from sketchmeans.cli.screen import Screen
from sketchmeans.cli.stages import stages


def run(
    screen: Screen,
    data: str,
    n_clusters: str,
    gamma: str | None,
    params: Mapping[str, Any],
    choice: Mapping[str, Any],
    report: str | None,
    reading: Reading,
) -> None:
    """Try numbers of clusters, then bandwidths, and suggest one of each."""
    counts, gammas = _counts(n_clusters), _gammas(gamma)
    has_width = _has_width(params["kernel"])
    if gammas and not has_width:
        raise typer.BadParameter(
            f"--gamma means nothing to --kernel {params['kernel']}; leave it out."
        )
    check_report("--report", report)
    check_apart({"--report": report}, [data])
    chosen = {name: value for name, value in params.items() if value is not None}
    with readable(data, screen, reading) as table, screen.warnings():
        first = gammas[0] if len(gammas) == 1 else None
        model = table_clusterer(
            built_estimator("nystrom", counts[0], {**params, "gamma": first}),
            table,
            **choice,
        )
        with stages(screen) as shown:
            rows = shown.watch(model).fit_preparation(table).prepare(table)
        model.set_callbacks()
        if len(counts) > 1 or (has_width and len(gammas) != 1):
            counts = _possible(screen, rows, counts)
        k, k_path, k_advice = _count(screen, rows, counts, first, chosen)
        width, g_path, g_advice = first, None, None
        if has_width and len(gammas) != 1:
            width, g_path, g_advice = _bandwidth(screen, rows, k, gammas, chosen)
        if report is not None:
            paths = [path for path in (k_path, g_path) if path is not None]
            model.set_params(estimator__n_clusters=k)
            if width is not None:
                model.set_params(estimator__gamma=width)
            watched(model, screen).fit(table)
            classes = known_classes(model, table)
            written_report(screen, model, table, report, classes=classes, paths=paths)
    for advice in (k_advice, g_advice):
        if advice is not None:
            screen.say(advice.note)
    if not has_width:
        screen.say(
            f"The {params['kernel']} kernel has no bandwidth: there was none to choose."
        )
    screen.say(
        f"\nNext: {_next(data, k, width, params, {**choice, **vars(reading)})}",
        style="bold",
    )
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


def _has_width(kernel: str | None) -> bool:
    """Say whether a kernel has a bandwidth, if there is a kernel of that name."""
    from sketchmeans.kernels import as_kernel

    return kernel is None or hasattr(as_kernel(kernel), "gamma")


def _possible(screen: Screen, rows: Any, counts: list[int]) -> list[int]:
    """Return the numbers of clusters that a third of the rows can have."""
    n, most = len(rows), len(rows) // 3
    few = [k for k in counts if k <= most]
    if not few:
        clusters = "1 cluster" if counts[0] == 1 else f"{counts[0]:,} clusters"
        raise ValueError(
            f"{rows.path} has too few rows, {n:,}: to compare samples of them with "
            f"{clusters} takes at least {3 * counts[0]:,}."
        )
    if len(few) < len(counts):
        screen.say(
            f"{n:,} rows are too few to compare more than {few[-1]:,} clusters; with "
            f"{3 * counts[-1]:,} it would be up to {counts[-1]:,}.\n"
        )
    return few


def _next(
    data: str,
    k: int,
    gamma: float | None,
    params: Mapping[str, Any],
    table: Mapping[str, Any],
) -> str:
    """Return the command that clusters the table so."""
    words = ["sketchmeans", "fit", data, "-k", str(k)]
    if gamma is not None:
        words += ["--gamma", f"{gamma:.4g}"]
    if params["kernel"] is not None:
        words += ["--kernel", params["kernel"]]
    for name, value in table.items():
        if value and value != _DEFAULTS.get(name):
            typed = value if isinstance(value, str) else ",".join(value)
            words += [f"--{name.replace('_', '-')}", typed]
    if params["random_state"] != _DEFAULTS["seed"]:
        words += ["--seed", str(params["random_state"])]
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

    width = "mean" if gamma is None else gamma
    title = f"Trying {counts[0]} to {counts[-1]} clusters"
    # All of them share the passes, so there are no parts to count.
    with stages(screen) as shown, shown.stage(title):
        path = cluster_count_path(rows, counts, gamma=width, **params)
    advice = advised_cluster_count(path)
    _table(screen, path, "n_clusters", "clusters", advice.value)
    return int(advice.value), path, advice


def _bandwidth(
    screen: Screen, rows: Any, k: int, gammas: list[float], params: dict[str, Any]
) -> tuple[float, Any, Any]:
    """Return a bandwidth, with its path and the reason."""
    from sketchmeans.diagnostics import (
        advised_bandwidth,
        bandwidth_grid,
        bandwidth_path,
    )

    tried = gammas or bandwidth_grid(rows, **params)
    title = f"Trying bandwidths for {k} clusters"
    parts = []
    with stages(screen) as shown, shown.stage(title, len(tried)) as stage:
        for gamma in tried:  # the seed is a number: each by itself gives the same
            parts.append(bandwidth_path(rows, [gamma], k, **params))
            stage.advance()
    path = {
        name: [value for part in parts for value in part[name]] for name in parts[0]
    }
    advice = advised_bandwidth(path, k, len(rows))
    _table(screen, path, "gamma", "gamma", advice.value)
    return float(advice.value), path, advice


#: Options that need not be typed.
_DEFAULTS = {"scale": "standard", "missing": "error", "seed": 0}
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
