"""Progress of a fit: scikit-learn's callbacks, and lines for ``verbose``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import ceil, log
from typing import Any

from sketchmeans.engine.lloyd import OnPass


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
    def blocks(self, name: str, n_blocks: int) -> Iterator[Callable[[], None]]:
        """Report a pass over blocks of rows; yields what to call after each block."""
        context = self._root.subcontext(task_name=name, max_subtasks=n_blocks)
        context.call_on_fit_task_begin(estimator=self._estimator)

        def on_block() -> None:
            child = context.subcontext(task_name="block")
            child.call_on_fit_task_begin(estimator=self._estimator)
            child.call_on_fit_task_end(estimator=self._estimator)

        yield on_block
        context.call_on_fit_task_end(estimator=self._estimator)
        self._say(1, name)

    @contextmanager
    def within(self, name: str, estimator: Any) -> Iterator[None]:
        """Report the fit of another estimator as a part of this one."""
        context = self._root.subcontext(task_name=name)
        context.call_on_fit_task_begin(estimator=self._estimator)
        with context.propagate_callback_context(estimator):
            yield
        context.call_on_fit_task_end(estimator=self._estimator)

    @contextmanager
    def stage(self, name: str, max_iter: int) -> Iterator[OnPass]:
        """Report a Lloyd loop; yields what to call after each pass.

        Callbacks that ask for `metadata` are told the cost after a pass.
        """
        context = self._root.subcontext(task_name=name, max_subtasks=max_iter)
        context.call_on_fit_task_begin(estimator=self._estimator)
        last = ""

        def on_pass(iteration: int, cost: float) -> bool:
            nonlocal last
            child = context.subcontext(task_name="pass")
            child.call_on_fit_task_begin(estimator=self._estimator)
            last = f"{name}: pass {iteration}, cost {cost:.6g}"
            self._say(2, last)
            stop = child.call_on_fit_task_end(
                estimator=self._estimator, metadata={"cost": cost}
            )
            return bool(stop)

        yield on_pass
        context.call_on_fit_task_end(estimator=self._estimator)
        if self._verbose == 1 and last:
            self._say(1, last)

    def finish(self) -> None:
        """Report the end of the fit."""
        self._root.call_on_fit_task_end(estimator=self._estimator)


def expected_passes(costs: Sequence[float], tol: float, max_iter: int) -> int | None:
    """Return how many passes a Lloyd loop will have made when it meets `tol`.

    The relative drops of the cost fall about geometrically; so many more passes as the
    last few drops suggest.  None while there are too few to tell.

    Examples
    --------
    >>> expected_passes([2.0, 1.5, 1.25, 1.125, 1.0625], tol=1e-3, max_iter=300)
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
    # Hardly falling drops would never end: at least a tenth off in each pass.
    ratio = min((last / first) ** 0.5, 0.9) if first > 0.0 else 0.9
    return min(done + max(ceil(log(tol / last) / log(ratio)), 1), max_iter)
