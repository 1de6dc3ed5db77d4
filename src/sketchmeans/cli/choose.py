"""``sketchmeans choose``: which number of clusters and bandwidth suit a table."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import typer

from sketchmeans.cli.files import (
    REPORT,
    check_outputs,
    make_clusterer,
    make_estimator,
    open_table,
    read_classes,
)
from sketchmeans.cli.options import FileOptions, PrintOptions, TableOptions
from sketchmeans.cli.progress import Display
from sketchmeans.cli.report import write_model_report
from sketchmeans.cli.screen import Screen

#: Options that need not be typed.
_DEFAULTS = {"scale": "auto", "missing": "auto", "seed": 0}
#: The columns of a path that are printed, in this order, with their titles.
_COLUMNS = {
    "stability": "agreement",
    "noise_stability": "on noise",
    "eigengap": "eigengap",
    "ratio": "certified",
    "cost": "cost",
    "effective_dimension": "dimension",
}


@dataclass(frozen=True)
class Choice:
    """A value, and the path and the advice that led to it, if it was not given."""

    value: Any
    path: Any = None
    advice: Any = None


def choose(
    data: str,
    *,
    n_clusters: str = "2-12",
    gamma: str | None = None,
    kernel: str | None = None,
    table_options: TableOptions,
    file_options: FileOptions,
    report: str | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    print_options: PrintOptions,
) -> None:
    """Suggest a number of clusters and a bandwidth, with the reason."""
    screen = Screen(print_options, answers=True)
    counts, gammas = _parse_counts(n_clusters), _parse_gammas(gamma)
    has_gamma = _has_gamma(kernel)
    if gammas and not has_gamma:
        raise typer.BadParameter(
            f"--gamma has no meaning for --kernel {kernel}; leave it out."
        )
    check_outputs({"--report": report}, [data], report=REPORT)
    params = {"kernel": kernel, "n_jobs": n_jobs, "random_state": random_state}
    typed = {name: value for name, value in params.items() if value is not None}
    width = gammas[0] if len(gammas) == 1 else None
    with open_table(data, file_options, screen) as table:
        estimator = make_estimator("nystrom", counts[0], {**params, "gamma": width})
        model = make_clusterer(table_options, estimator, table)
        with Display(screen) as display:
            rows = display.attach(model).fit_preparation(table).prepare(table)
        choose_gamma = has_gamma and len(gammas) != 1
        if len(counts) > 1 or choose_gamma:
            counts = _limit_counts(screen, rows, counts)
        count = _choose_count(screen, rows, counts, width, typed)
        chosen = Choice(width)
        if choose_gamma:
            chosen = _choose_gamma(screen, rows, count.value, gammas, typed)
        is_round = _is_round(screen, rows, count, chosen, typed)
        if report is not None:
            _write_report(screen, model, table, report, count, chosen)
    for choice in (count, chosen):
        if choice.advice is not None:
            screen.print(choice.advice.note)
    if count.advice is not None:
        screen.print(f"By the eigengap alone: {count.advice.eigengap_n_clusters}.")
    if not has_gamma:
        screen.print(f"The {kernel} kernel has no bandwidth to choose.")
    words = {**vars(table_options), **vars(file_options), "seed": random_state}
    command = _next_command(data, count.value, chosen.value, kernel, words)
    if not is_round:
        screen.print("Kernel k-means does not find these clusters; spectral does.")
        words = {"method": "spectral", **words}
        command = _next_command(data, count.value, None, None, words)
    screen.print(f"\nNext: {command}", "bold")
    if report is not None:
        screen.print(f"Wrote {report}.")
    _print_json(screen, count, chosen, "nystrom" if is_round else "spectral")


def _is_round(
    screen: Screen, rows: Any, count: Choice, gamma: Choice, params: Mapping[str, Any]
) -> bool:
    """Say whether kernel k-means finds the clusters whose number was chosen."""
    if count.advice is None or not count.advice.is_clear:
        return True
    from sketchmeans.diagnostics import are_round

    width = "mean" if gamma.value is None else gamma.value
    with screen.show_status("Comparing methods"):
        return are_round(rows, count.value, gamma=width, **params)


def _print_json(screen: Screen, count: Choice, gamma: Choice, method: str) -> None:
    advice = [c.advice for c in (count, gamma) if c.advice is not None]
    screen.print_json(
        {
            "n_clusters": count.value,
            "gamma": gamma.value,
            "method": method,
            "reasons": [found.note for found in advice],
            "is_clear": all(found.is_clear for found in advice),
            "cluster_count": count.advice,
            "cluster_count_path": count.path,
            "bandwidth_path": gamma.path,
        }
    )


def _has_gamma(kernel: str | None) -> bool:
    """Say whether a kernel has a bandwidth; raises if there is no such kernel."""
    from sketchmeans.kernels import as_kernel

    return kernel is None or hasattr(as_kernel(kernel), "gamma")


def _limit_counts(screen: Screen, rows: Any, counts: list[int]) -> list[int]:
    """Return the numbers of clusters that a third of the rows can have."""
    n = len(rows)
    possible = [k for k in counts if k <= n // 3]
    if not possible:
        clusters = "1 cluster" if counts[0] == 1 else f"{counts[0]:,} clusters"
        raise ValueError(
            f"{rows.path} has too few rows, {n:,}: to compare samples of them with "
            f"{clusters} takes at least {3 * counts[0]:,}."
        )
    if len(possible) < len(counts):
        screen.print(
            f"{n:,} rows are too few to compare more than {possible[-1]:,} clusters; "
            f"up to {counts[-1]:,} clusters need {3 * counts[-1]:,} rows.\n"
        )
    return possible


def _choose_count(
    screen: Screen,
    rows: Any,
    counts: list[int],
    gamma: float | None,
    params: Mapping[str, Any],
) -> Choice:
    if len(counts) == 1:
        return Choice(counts[0])
    from sketchmeans.diagnostics import choose_n_clusters, cluster_count_path

    width = "mean" if gamma is None else gamma
    title = f"Trying {counts[0]} to {counts[-1]} clusters"
    shared = {name: params[name] for name in params if name != "kernel"}
    counts = [k for k in counts if k > 1]  # one cluster is always stable
    # All of them share the passes over the rows, so there are no parts to count.
    with Display(screen) as display, display.stage(title):
        found = choose_n_clusters(rows, counts, **shared)
        proved = cluster_count_path(rows, counts, gamma=width, **params)
    path = {**proved, **found.as_path()}
    _print_path(screen, path, "n_clusters", "clusters", found.n_clusters)
    return Choice(found.n_clusters, path, found)


def _choose_gamma(
    screen: Screen, rows: Any, k: int, gammas: list[float], params: Mapping[str, Any]
) -> Choice:
    from sketchmeans.diagnostics import (
        advised_bandwidth,
        bandwidth_grid,
        bandwidth_path,
    )

    tried = gammas or bandwidth_grid(rows, **params)
    title = f"Trying bandwidths for {k} clusters"
    parts = []
    with Display(screen) as display, display.stage(title, len(tried)) as on_tried:
        for gamma in tried:  # each alone gives the same, as the seed is a number
            parts.append(bandwidth_path(rows, [gamma], k, **params))
            on_tried()
    path = {
        name: [value for part in parts for value in part[name]] for name in parts[0]
    }
    advice = advised_bandwidth(path, k, len(rows))
    _print_path(screen, path, "gamma", "gamma", advice.value)
    return Choice(float(advice.value), path, advice)


def _write_report(
    screen: Screen, model: Any, table: Any, report: str, count: Choice, gamma: Choice
) -> None:
    """Fit the model with what was chosen, and write its report with the paths."""
    paths = [choice.path for choice in (count, gamma) if choice.path is not None]
    model.set_params(estimator__n_clusters=count.value)
    if gamma.value is not None:
        model.set_params(estimator__gamma=gamma.value)
    with Display(screen) as display:
        display.attach(model).fit(table)
    classes = read_classes(model, table)
    write_model_report(screen, model, table, report, classes, paths=paths)


def _next_command(
    data: str,
    k: int,
    gamma: float | None,
    kernel: str | None,
    options: Mapping[str, Any],
) -> str:
    """Return the command that clusters the table with what was chosen."""
    words = ["sketchmeans", "fit", data, "-k", str(k)]
    if gamma is not None:
        words += ["--gamma", f"{gamma:.4g}"]
    for name, value in {"kernel": kernel, **options}.items():
        if value and value != _DEFAULTS.get(name):
            if name == "as_kinds":
                words += [word for kind in value for word in ("--as", kind)]
                continue
            typed = ",".join(value) if isinstance(value, list) else str(value)
            words += [f"--{name.replace('_', '-')}", typed]
    return shlex.join(words)


def _print_path(
    screen: Screen, path: Any, name: str, title: str, chosen: float
) -> None:
    shown = [column for column in _COLUMNS if column in path]
    rows = [
        [f"{value:.4g}", *(_format(path, c, i) for c in shown)]
        for i, value in enumerate(path[name])
    ]
    best = list(path[name]).index(chosen)
    titles = [title, *(_COLUMNS[column] for column in shown)]
    screen.print_table(titles, rows, left=0, best=best)
    screen.print()


def _format(path: Any, column: str, i: int) -> str:
    from sketchmeans.theory.results import format_at_most

    value = float(path[column][i])
    if column == "ratio":
        return f"≤ {format_at_most(value)} × best" if value < 1e3 else "-"
    if column == "stability":
        low, high = path["stability_low"][i], path["stability_high"][i]
        return f"{value:.2f} ({low:.2f} to {high:.2f})"
    if column in ("noise_stability", "eigengap"):
        return f"{value:.2f}"
    return f"{value:.4g}"


def _parse_counts(text: str) -> list[int]:
    """Return the numbers of clusters that were typed.

    Examples
    --------
    >>> _parse_counts("2-5"), _parse_counts("5,10")
    ([2, 3, 4, 5], [5, 10])
    """
    interval = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", text)
    parts = [part.strip() for part in text.split(",")]
    counts: list[int] = []
    if interval:
        counts = list(range(int(interval[1]), int(interval[2]) + 1))
    elif all(part.isdecimal() for part in parts):
        counts = sorted({int(part) for part in parts})
    if not counts or counts[0] < 1:
        raise typer.BadParameter(
            f"--n-clusters {text} should be an interval or a list, such as 2-12 or "
            "5,10,20, or a number."
        )
    return counts


def _parse_gammas(text: str | None) -> list[float]:
    """Return the bandwidths that were typed; none if there is no text."""
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
