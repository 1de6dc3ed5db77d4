"""Progress on the screen: bars or lines, also as a callback of scikit-learn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from sketchmeans.cli.screen import Screen, format_duration

if TYPE_CHECKING:
    from sketchmeans.data.preparation import Table

#: What users call the stages of a fit; those of other names are iterations over rows.
_TITLES = {
    "reading rows": "Reading rows",
    "kernel": "Bandwidth",
    "kernel matrix": "Kernel matrix",
    "landmarks": "Landmarks",
    "seeding": "Initial centres",
    "sketch": "Sketch",
    "original space": "Back to all columns",
    "graphs": "Graphs of a sample",
    "scale": "Scale",
    "spectrum": "Graph of all rows",
}


class _TimeLeft(TimeRemainingColumn):
    """Time left: as it was planned, until the pace of a stage tells."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """Show the time left of a stage, or of the whole fit."""
        planned = task.fields.get("planned")
        if planned is None or task.finished:
            return super().render(task)
        left = max(planned - (task.elapsed or 0.0), 0.0)
        return Text(f"{format_duration(left)} left", style="progress.remaining")


class Display:
    """Shows stages as bars on a terminal, as lines if verbose, or not at all.

    Results are printed after the `with` block, as bars are drawn on the last lines.
    """

    #: scikit-learn passes it on to the estimator within an estimator.
    max_propagation_depth = None

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._tasks: dict[int, TaskID] = {}  # of the stages of fits
        self._current: TaskID | None = None
        self._whole: TaskID | None = None  # of a fit that was planned
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[note]}", style="dim", markup=False),
            _TimeLeft(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
            console=screen.errors,
            redirect_stdout=False,  # which may be a file
            redirect_stderr=False,
            disable=not screen.has_bars,
        )
        self._n_passes = 4  # over all rows, unless a plan says otherwise
        #: Rows of the table that is read, once it is opened.
        self.n_rows: int | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def expect(self, seconds: float, n_passes: int) -> None:
        """Show what a fit is planned to take, and count down to its end."""
        note = f"about {format_duration(seconds)} in all"
        self._whole = self._begin("Whole fit", None)
        self._n_passes = n_passes
        self._progress.update(self._whole, planned=seconds, note=note)
        if self._screen.verbose:
            self._screen.print_error(f"Expected: {note}")

    @contextmanager
    def stage(
        self, title: str, total: int | None = None
    ) -> Iterator[Callable[[], None]]:
        """Show a stage of so many parts; yields what to call after each."""
        task = self._begin(title, total)
        yield lambda: self._progress.advance(task)
        self._end(task)

    def next(self, title: str, total: int | None = None) -> None:
        """End the stage that this began before, and begin another."""
        self.finish()
        self._current = self._begin(title, total)

    def finish(self) -> None:
        """End the stage that `next` began."""
        if self._current is not None:
            self._end(self._current)
            self._current = None

    def expect_rows(self, n_rows: int) -> None:
        """Note how many rows the stage that `next` began reads."""
        self.n_rows = n_rows
        if self._current is not None:
            self._progress.update(self._current, total=n_rows)

    def add_rows(self, n_rows: int) -> None:
        """Note that the stage that `next` began has read some rows."""
        if self._current is not None:
            self._progress.advance(self._current, n_rows)

    def watch(self, table: Table, n_passes: int = 1) -> Table:
        """Return a table whose reading is shown as the stage that `next` began."""
        from sketchmeans.data.preparation import WatchedTable

        def on_open(n_rows: int) -> None:
            self.expect_rows(n_passes * n_rows)

        return WatchedTable(table, on_open, self.add_rows)

    def remove_finished(self) -> None:
        """Remove the bars of finished stages."""
        for task in self._progress.tasks:
            if task.finished:
                self._progress.remove_task(task.id)

    def _begin(self, title: str, total: int | None) -> TaskID:
        # Rich keeps what else is known of a task: the costs of its iterations.
        fields: dict[str, Any] = {
            "note": "",
            "costs": [],
            "limit": total,
            "began": time.monotonic(),
            "planned": None,
            "tenth": 0,
        }
        return self._progress.add_task(title, total=total, **fields)

    def _add_iteration(self, key: TaskID, cost: float, tol: float) -> None:
        from sketchmeans.engine.progress import expected_iterations

        task = self._progress.tasks[self._progress.task_ids.index(key)]
        costs, limit = task.fields["costs"], task.fields["limit"]
        costs.append(cost)
        total = limit and (expected_iterations(costs, tol, limit) or limit)
        task.fields["began"] = time.monotonic()
        note = f"iteration {len(costs)}, cost {cost:.6g}"
        self._progress.update(key, completed=len(costs), total=total, note=note)
        if self._screen.verbose:
            self._screen.print_error(f"{task.description}: {note}")

    def _add_pass_rows(self, key: TaskID, done: int, n_rows: int) -> None:
        """Show how far a pass has come, how fast, and when its stage may end."""
        task = self._progress.tasks[self._progress.task_ids.index(key)]
        n_iter = len(task.fields["costs"])
        seconds = max(time.monotonic() - task.fields["began"], 1e-3)
        note = f"iteration {n_iter + 1}, {done / n_rows:.0%} of the rows, "
        note += f"{format_rate(done / seconds)} rows/s"
        total = task.total or n_iter + 1
        if n_iter < 3:  # costs do not tell yet how many iterations there will be
            total = min(max(self._n_passes, n_iter + 1), task.fields["limit"])
        share = n_iter + done / n_rows
        self._progress.update(key, completed=share, total=total, note=note)
        left = (total - share) * seconds * n_rows / done
        if self._whole is not None:
            whole = self._progress.tasks[self._progress.task_ids.index(self._whole)]
            planned = (whole.elapsed or 0.0) + left
            self._progress.update(self._whole, planned=planned)
        tenth = 10 * done // n_rows
        if self._screen.verbose and tenth != task.fields["tenth"]:
            task.fields["tenth"] = tenth
            end = f"about {format_duration(left)} left"
            self._screen.print_error(f"{task.description}: {note}, {end}")

    def _end(self, key: TaskID) -> None:
        task = self._progress.tasks[self._progress.task_ids.index(key)]
        n_iter = len(task.fields["costs"])
        self._progress.update(key, completed=max(n_iter, 1), total=max(n_iter, 1))
        if self._screen.verbose:
            took = format_duration(task.elapsed or 0.0)
            note = f", {n_iter} iterations" if n_iter else ""
            self._screen.print_error(f"{task.description}: done in {took}{note}")

    # --- scikit-learn's callback protocol ---------------------------------------------

    def attach(self, estimator: Any) -> Any:
        """Return the estimator, whose fits show their stages here."""
        is_shown = self._screen.has_bars or self._screen.verbose
        return estimator.set_callbacks(self) if is_shown else estimator

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a fit: there is nothing to do."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """End a fit: there is nothing to do."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Begin a stage of a fit."""
        if _is_stage(context):
            title = _TITLES.get(context.task_name, f"Clustering {context.task_name}")
            self._tasks[id(context)] = self._begin(title, context.max_subtasks or None)

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: Any = None
    ) -> None:
        """End a stage of a fit, or a part of it."""
        if _is_stage(context):
            self._end(self._tasks.pop(id(context)))
        elif context.task_name == "block":
            self._end_block(context.parent, metadata)
        elif context.task_name == "iteration":
            tol = getattr(estimator, "_tolerance", 0.0)
            self._add_iteration(self._tasks[id(context.parent)], metadata["cost"], tol)

    def _end_block(self, parent: Any, metadata: Any) -> None:
        """Advance a stage, or the iteration of one."""
        if parent.task_name == "iteration":
            key = self._tasks[id(parent.parent)]
            self._add_pass_rows(key, metadata["rows"], metadata["n_rows"])
        else:
            self._progress.advance(self._tasks[id(parent)])


def format_rate(rate: float) -> str:
    """Return a number of rows per second in three digits or so.

    Examples
    --------
    >>> format_rate(1_234_567.0), format_rate(890.0)
    ('1.23 million', '890')
    """
    return f"{rate / 1e6:.3g} million" if rate >= 1e6 else f"{rate:,.0f}"


def _is_stage(context: Any) -> bool:
    """Say whether a task is neither a whole fit nor a part of a stage."""
    is_fit = context.parent is None or context.source_estimator_name is not None
    return not is_fit and context.task_name not in ("iteration", "block", "clustering")
