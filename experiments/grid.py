"""Running the cells of an experiment: resumed, in parallel, with a progress bar."""

from __future__ import annotations

import json
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import joblib
import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from experiments.datasets import MissingDataError
from experiments.evidence import Evidence
from experiments.store import (
    Cell,
    Row,
    Store,
    check_one_origin,
    count_cores,
    current_commit,
)

#: A word in all seeds, which PROTOCOL.md names: another one gives other draws.
SALT = "second protocol"


@dataclass(frozen=True)
class Context:
    """What a cell may know beyond its settings."""

    seed: int
    data: Path | None = None


class Experiment(Protocol):
    """One figure or table of a paper: what each module of that kind has."""

    #: What the figure shows.
    TITLE: str
    #: What is smaller or other than in the paper.
    REDUCED: str

    def cells(self, grid: str, repeats: int) -> list[Cell]:
        """Return the settings of a grid, all with the same keys.

        "full", "quick" (minutes) or "smoke" (seconds).  Fewer repeats give a part of
        the cells of more.
        """

    def run(self, cell: Cell, context: Context) -> list[Row]:
        """Return the measurements of one cell."""

    def figure(self, table: pd.DataFrame) -> Figure:
        """Return a figure in the form of the paper's."""

    def summary(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the numbers to print: a small table with names for its rows."""

    def claims(self, table: pd.DataFrame) -> list[Evidence]:
        """Return the numbers on each claim that the table can speak to."""


@dataclass(frozen=True)
class Summary:
    """What became of the cells of one run."""

    done: int
    resumed: int
    left: int
    skipped: dict[str, int]


def seed_of(cell: Cell) -> int:
    """Return the seed of a cell: its settings decide, so a repeat has its own."""
    return zlib.crc32(f"{SALT} {json.dumps(cell, sort_keys=True)}".encode())


def shared_seed(cell: Cell, *varied: str) -> int:
    """Return the seed that cells share which differ in these settings alone."""
    return seed_of({key: value for key, value in cell.items() if key not in varied})


def run_cells(
    experiment: Experiment,
    cells: list[Cell],
    path: Path,
    run: str,
    *,
    grid: str = "full",
    data: Path | None = None,
    jobs: int = 1,
    max_minutes: float = float("inf"),
) -> Summary:
    """Run the cells that the file does not have yet.

    Experiments with an attribute SERIAL run one cell at a time, whatever `jobs` says.
    After `max_minutes` no new cell is started; those under way are finished.
    """
    store = Store(path, list(cells[0]))
    finished = store.finished()
    if finished:
        check_one_origin(store.table(), path, current_commit(), grid)
    wanted = [cell for cell in cells if store.key(cell) not in finished]
    jobs = 1 if getattr(experiment, "SERIAL", False) else jobs
    deadline = time.monotonic() + 60.0 * max_minutes
    skipped: dict[str, int] = {}
    done = 0
    with _progress() as progress:
        bar = progress.add_task(path.stem, total=len(wanted))
        for rows in _results(experiment, wanted, data, jobs, deadline):
            if isinstance(rows, MissingDataError):
                skipped[str(rows)] = skipped.get(str(rows), 0) + 1
            else:
                store.append({**row, "grid": grid, "run": run} for row in rows)
                done += 1
            progress.advance(bar)
    left = len(wanted) - done - sum(skipped.values())
    return Summary(done, len(cells) - len(wanted), left, skipped)


def _results(
    experiment: Experiment,
    cells: list[Cell],
    data: Path | None,
    jobs: int,
    deadline: float,
) -> Iterator[list[Row] | MissingDataError]:
    due = (cell for cell in cells if time.monotonic() < deadline)
    if jobs == 1:
        for cell in due:
            yield measured(experiment, cell, data)
        return
    # Modules cannot be sent to another process, but their names can.
    name = experiment.__name__  # type: ignore[attr-defined]
    yield from joblib.Parallel(
        jobs, return_as="generator_unordered", pre_dispatch=jobs
    )(joblib.delayed(_by_name)(name, cell, data) for cell in due)


def _by_name(name: str, cell: Cell, data: Path | None) -> list[Row] | MissingDataError:
    return measured(sys.modules.get(name) or _imported(name), cell, data)


def _imported(name: str) -> Any:
    from importlib import import_module

    return import_module(name)


def measured(
    experiment: Experiment, cell: Cell, data: Path | None
) -> list[Row] | MissingDataError:
    """Return the rows of a cell with its settings, or why there are none."""
    seed = seed_of(cell)
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            # A fit that stops at its limit of passes is measured all the same.
            warnings.simplefilter("ignore", ConvergenceWarning)
            rows = experiment.run(cell, Context(seed, data))
    except MissingDataError as reason:
        return reason
    provenance = {
        "seed": seed,
        "commit": current_commit(),
        "cores": count_cores(),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "wall_seconds": round(time.perf_counter() - wall, 3),
    }
    return [{**cell, **row, **provenance} for row in rows]


def _progress() -> Progress:
    return Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
