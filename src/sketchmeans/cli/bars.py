"""Progress of a fit on the screen, through scikit-learn's callbacks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

from sketchmeans.cli.screen import Screen

#: What a person calls the stages.
_NAMES = {
    "reading rows": "Reading rows",
    "kernel": "Bandwidth",
    "kernel matrix": "Kernel matrix",
    "landmarks": "Landmarks",
    "seeding": "First centres",
    "sketch": "Sketch",
    "original space": "Back to all columns",
}
#: Names of tasks that are parts of a stage.
_PARTS = ("iteration", "block")


class _Time(TimeElapsedColumn):
    """The time that a stage may still take; if nobody knows, what it has taken.

    One of both, and never cut, so that there is room for a bar in 80 columns.
    """

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        if task.finished or left is None:
            return super().render(task)
        return Text(f"{duration(left)} left", style="dim")


class StageCallback:
    """What bars and lines share: which tasks are stages, which are parts of them."""

    #: scikit-learn hands it on to the estimator within an estimator.
    max_propagation_depth = None

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """End, after an error as well."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Begin a stage."""
        if _is_stage(context):
            self.begin(id(context), _title(context.task_name), context.max_subtasks)

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: Any = None
    ) -> None:
        """End a stage, or a part of it."""
        if _is_stage(context):
            self.end(id(context))
        elif context.task_name in _PARTS:
            cost = (metadata or {}).get("cost")
            self.part(id(context.parent), cost, getattr(estimator, "tol", 0.0))

    def begin(self, stage: int, title: str, n_parts: int | None) -> None:
        """Begin a stage of at most so many parts; 0 if it has none."""
        raise NotImplementedError  # pragma: no cover - abstract

    def part(
        self, stage: int, cost: float | None = None, tol: float = 0.0, count: int = 1
    ) -> None:
        """Note that a part is done, at this cost; or so many of them."""
        raise NotImplementedError  # pragma: no cover - abstract

    def expect(self, stage: int, n_parts: int) -> None:
        """Note how many parts a stage has, where that is known after it began."""

    def end(self, stage: int) -> None:
        """End a stage."""
        raise NotImplementedError  # pragma: no cover - abstract


class Bars(StageCallback):
    """A bar a stage, on a terminal."""

    def __init__(self, screen: Screen) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[note]}", style="dim", markup=False),
            _Time(table_column=Column(no_wrap=True)),
            console=screen.errors,
            redirect_stdout=False,  # which may be a file
            redirect_stderr=False,
        )
        self._is_held = False
        self._bars: dict[int, Any] = {}
        self._costs: dict[int, list[float]] = {}
        self._most: dict[int, int] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        self._progress.start()

    def teardown(self, estimator: Any, context: Any) -> None:
        if not self._is_held:
            self._progress.stop()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Draw for more than one fit."""
        self._is_held = True
        try:
            with self._progress:
                yield
        finally:
            self._is_held = False

    def tidy(self) -> None:
        """Take away bars that are full."""
        for task in self._progress.tasks:
            if task.finished:
                self._progress.remove_task(task.id)

    def begin(self, stage: int, title: str, n_parts: int | None) -> None:
        self._most[stage] = n_parts or 1
        self._costs[stage] = []
        self._bars[stage] = self._progress.add_task(
            title, total=n_parts or None, note=""
        )

    def part(
        self, stage: int, cost: float | None = None, tol: float = 0.0, count: int = 1
    ) -> None:
        bar = self._bars[stage]
        if cost is None:
            self._progress.advance(bar, count)
            return
        from sketchmeans.engine.progress import expected_iterations

        costs = self._costs[stage]
        costs.append(cost)
        total = expected_iterations(costs, tol, self._most[stage]) or self._most[stage]
        note = f"pass {len(costs)}, cost {cost:.6g}"
        self._progress.update(bar, completed=len(costs), total=total, note=note)

    def expect(self, stage: int, n_parts: int) -> None:
        self._progress.update(self._bars[stage], total=n_parts)

    def end(self, stage: int) -> None:
        bar = self._bars.pop(stage)
        done = max(len(self._costs.pop(stage)), 1)
        self._progress.update(bar, completed=done, total=done)


class Lines(StageCallback):
    """A line a stage and a pass."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._stages: dict[int, tuple[str, float, list[float]]] = {}

    def begin(self, stage: int, title: str, n_parts: int | None) -> None:
        self._stages[stage] = (title, time.perf_counter(), [])

    def part(
        self, stage: int, cost: float | None = None, tol: float = 0.0, count: int = 1
    ) -> None:
        if cost is not None:
            title, _, costs = self._stages[stage]
            costs.append(cost)
            self._screen.say_error(f"{title}: pass {len(costs)}, cost {cost:.6g}")

    def end(self, stage: int) -> None:
        title, start, costs = self._stages.pop(stage)
        took = duration(time.perf_counter() - start)
        note = f", {len(costs)} passes" if costs else ""
        self._screen.say_error(f"{title}: done in {took}{note}")


def display(screen: Screen) -> Bars | Lines | None:
    """Return what shows progress, where somebody may look."""
    if screen.quiet:
        return None
    if screen.verbose:
        return Lines(screen)
    return Bars(screen) if screen.has_bars else None


def watched(estimator: Any, screen: Screen) -> Any:
    """Return an estimator that shows its progress, where somebody may look."""
    shown = display(screen)
    return estimator if shown is None else estimator.set_callbacks(shown)


def duration(seconds: float) -> str:
    """Return a time for people.

    Examples
    --------
    >>> duration(0.0123), duration(4.56), duration(75), duration(7260)
    ('0.01 s', '4.6 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 1.0:
        return f"{seconds:.2f} s"
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _is_stage(context: Any) -> bool:
    """Say whether a task is neither a whole fit nor a part of a stage."""
    is_fit = context.parent is None or context.source_estimator_name is not None
    return not is_fit and context.task_name not in (*_PARTS, "clustering")


def _title(name: str) -> str:
    return _NAMES.get(name, f"Passes over {name}")
