"""Progress of a fit: scikit-learn's callbacks, and log messages for ``verbose``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from itertools import pairwise
from math import ceil, log
from typing import Any

_LOGGER = logging.getLogger("sketchmeans")
#: Rows of a pass that is reported in so many parts.
_LONG, _PARTS = 2**20, 100


class Progress:
    """Reports the stages of a fit and the iterations within them.

    Stages are logged at level INFO and iterations at level DEBUG, by the logger
    "sketchmeans".

    Parameters
    ----------
    estimator : estimator with scikit-learn's callback support
    verbose : int
        1 logs one line per stage whatever the level of the logger, 2 one line per
        iteration, too.  Where no handler is configured they are printed to standard
        output.
    """

    def __init__(self, estimator: Any, verbose: int = 0) -> None:
        self._estimator = estimator
        self._verbose = verbose
        self._is_silent = False
        self._root = estimator._init_callback_context(max_subtasks=None)
        self._root.call_on_fit_task_begin(estimator=estimator)

    def silent(self) -> Progress:
        """Return the same for work whose parts are not worth a report of their own."""
        quiet = copy(self)
        quiet._is_silent = True
        return quiet

    def _log(self, verbosity: int, text: str) -> None:
        """Log a line that a `verbose` of at least `verbosity` asks for."""
        if self._is_silent:
            return
        level = logging.INFO if verbosity == 1 else logging.DEBUG
        wanted = self._verbose >= verbosity
        if not wanted and not _LOGGER.isEnabledFor(level):
            return
        message = f"[{type(self._estimator).__name__}] {text}"
        record = _LOGGER.makeRecord(_LOGGER.name, level, __file__, 0, message, (), None)
        if _LOGGER.hasHandlers():
            _LOGGER.handle(record)
        elif wanted:
            logging.StreamHandler(sys.stdout).handle(record)

    @contextmanager
    def _task(self, name: str, max_subtasks: int = 0) -> Iterator[Any]:
        """Report the beginning and the end of a part of the fit."""
        if self._is_silent:
            yield None
            return
        context = self._root.subcontext(task_name=name, max_subtasks=max_subtasks)
        context.call_on_fit_task_begin(estimator=self._estimator)
        yield context
        context.call_on_fit_task_end(estimator=self._estimator)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Report a piece of work without parts."""
        with self._task(name):
            yield
        self._log(1, name)

    @contextmanager
    def blocks(self, name: str, n_blocks: int) -> Iterator[Callable[[], None]]:
        """Report a pass over blocks of rows; yields what to call after each block."""
        with self._task(name, n_blocks) as context:

            def on_block() -> None:
                child = context.subcontext(task_name="block")
                child.call_on_fit_task_begin(estimator=self._estimator)
                child.call_on_fit_task_end(estimator=self._estimator)

            yield on_block
        self._log(1, name)

    @contextmanager
    def within(self, name: str, estimator: Any) -> Iterator[None]:
        """Report the fit of another estimator as a part of this one."""
        with self._task(name) as context, context.propagate_callback_context(estimator):
            yield

    @contextmanager
    def stage(self, name: str, max_iter: int) -> Iterator[Stage]:
        """Report a Lloyd loop; yields what to call after each iteration.

        Callbacks that ask for `metadata` get the cost after the iteration, and after a
        part of a long one how many rows it has looked at.
        """
        with self._task(name, max_iter) as context:
            stage = Stage(self._estimator, context, partial(self._log, 2), name)
            yield stage
            stage.close()
        if stage.last and self._verbose < 2:
            self._log(1, stage.last)

    def finish(self) -> None:
        """Report the end of the fit."""
        self._root.call_on_fit_task_end(estimator=self._estimator)


class Stage:
    """Reports the iterations of a Lloyd loop, and the rows of long ones."""

    def __init__(
        self, estimator: Any, context: Any, log: Callable[[str], None], name: str
    ) -> None:
        self._estimator, self._context = estimator, context
        self._log, self._name = log, name
        self._iteration: Any = None  # the context of the one that runs
        self._part = 0
        self.last = ""

    def __call__(self, iteration: int, cost: float) -> bool:
        """Report an iteration; true asks the loop to stop."""
        if self._context is None:
            return False
        child = self._iteration or self._begin(0)
        self._iteration, self._part = None, 0
        self.last = f"{self._name}: iteration {iteration}, cost {cost:.6g}"
        self._log(self.last)
        stop = child.call_on_fit_task_end(
            estimator=self._estimator, metadata={"cost": cost}
        )
        return bool(stop)

    def close(self) -> None:
        """Report no more: passes that come after the loop are not a part of it."""
        self._context = None

    def on_rows(self, done: int, n_rows: int) -> None:
        """Report how many rows an iteration has looked at, in steps of a hundredth."""
        part = _PARTS * done // n_rows
        if self._context is None or n_rows < _LONG or part <= self._part:
            return
        self._iteration = self._iteration or self._begin(_PARTS)
        self._part = part
        block = self._iteration.subcontext(task_name="block")
        block.call_on_fit_task_begin(estimator=self._estimator)
        block.call_on_fit_task_end(
            estimator=self._estimator, metadata={"rows": done, "n_rows": n_rows}
        )

    def _begin(self, n_parts: int) -> Any:
        child = self._context.subcontext(task_name="iteration", max_subtasks=n_parts)
        child.call_on_fit_task_begin(estimator=self._estimator)
        return child


def expected_iterations(
    costs: Sequence[float], tol: float, max_iter: int
) -> int | None:
    """Return how many iterations a Lloyd loop will have made when it meets `tol`.

    The relative drops of the cost fall about geometrically, so the last few of them
    tell.  None while there are too few.

    Examples
    --------
    >>> expected_iterations([2.0, 1.5, 1.25, 1.125, 1.0625], tol=1e-3, max_iter=300)
    13
    """
    drops = [
        max(1.0 - after / before, 0.0) if before > 0.0 else 0.0
        for before, after in pairwise(costs)
    ]
    if len(drops) < 3:
        return None
    first, last = drops[-3], drops[-1]
    done = len(costs)
    if last <= tol or tol <= 0.0:
        return min(done + 1, max_iter) if tol > 0.0 else max_iter
    # Hardly falling drops would never end: each is at least a tenth smaller.
    ratio = min((last / first) ** 0.5, 0.9) if first > 0.0 else 0.9
    return min(done + max(ceil(log(tol / last) / log(ratio)), 1), max_iter)
