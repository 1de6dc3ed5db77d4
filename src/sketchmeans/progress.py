"""Progress of a fit: scikit-learn's callbacks, and lines for ``verbose``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sketchmeans.lloyd import OnPass


class Progress:
    """Reports the stages of a fit and the passes within them.

    Parameters
    ----------
    estimator : estimator with scikit-learn's callback support
    verbose : int
        0 prints nothing, 1 a line a stage, 2 a line a pass.
    """

    def __init__(self, estimator: Any, verbose: int = 0) -> None:
        self._estimator = estimator
        self._verbose = verbose
        self._root = estimator._init_callback_context(max_subtasks=None)
        self._root.call_on_fit_task_begin(estimator=estimator)

    def _say(self, level: int, text: str) -> None:
        if self._verbose >= level:
            print(f"[{type(self._estimator).__name__}] {text}", flush=True)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Report a piece of work without parts."""
        context = self._root.subcontext(task_name=name)
        context.call_on_fit_task_begin(estimator=self._estimator)
        yield
        context.call_on_fit_task_end(estimator=self._estimator)
        self._say(1, name)

    @contextmanager
    def stage(self, name: str, max_iter: int) -> Iterator[OnPass]:
        """Report a Lloyd loop; yields what to call after each pass."""
        context = self._root.subcontext(task_name=name, max_subtasks=max_iter)
        context.call_on_fit_task_begin(estimator=self._estimator)
        last = ""

        def on_pass(iteration: int, cost: float) -> bool:
            nonlocal last
            child = context.subcontext(task_name="pass")
            child.call_on_fit_task_begin(estimator=self._estimator)
            last = f"{name}: pass {iteration}, cost {cost:.6g}"
            self._say(2, last)
            return bool(child.call_on_fit_task_end(estimator=self._estimator))

        yield on_pass
        context.call_on_fit_task_end(estimator=self._estimator)
        if self._verbose == 1 and last:
            self._say(1, last)

    def finish(self) -> None:
        """Report the end of the fit."""
        self._root.call_on_fit_task_end(estimator=self._estimator)
