"""Lloyd's algorithm: the loop, for several restarts at once.

The loop asks an engine to assign rows to centres and to move the centres to the means:
`blocks.BlockEngine` on blocks of kernel values, `gram.GramEngine` on a Gram matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sketchmeans.engine.types import Assigner, Centers, LloydResult, PassResult
from sketchmeans.numerics.linalg import Array, check_no_overflow


@dataclass
class LloydState:
    """Everything that the rest of a loop depends on, after an iteration."""

    iteration: int
    #: Of all restarts; empty before the first iteration.
    results: list[LloydResult]
    #: Numbers of the restarts that go on, and their centres.
    active: Array
    centers: Any
    #: Empty clusters of each restart.
    empty_before: Array
    #: What the engine keeps from pass to pass.
    engine: dict[str, Array]

    @classmethod
    def start(cls, centers: Any) -> LloydState:
        """Return the state before the first iteration."""
        # More than can be: the first time, empty clusters always count as fewer.
        many = np.full(len(centers), np.iinfo(np.intp).max)
        return cls(0, [], np.arange(len(centers)), centers, many, {})


class SavedLoop(Protocol):
    """Where a loop saves its state, and resumes from it."""

    def resume(self) -> LloydState | None:
        """Return the state from which to continue."""
        ...

    def save(self, state: Callable[[], LloydState]) -> None:
        """Take the state after an iteration, or ignore it."""
        ...


class SavedStages(Protocol):
    """The finished loops of a fit that can resume."""

    def run_stage(
        self,
        run: Callable[[SavedLoop], list[LloydResult]],
        start: Centers,
        n_rows: int,
        *,
        labels: bool,
    ) -> list[LloydResult]:
        """Return the results of the next loop, without running it if they are saved.

        It starts at `start` and goes over `n_rows` rows; `labels` says whether labels
        are needed.
        """
        ...


#: Called after each iteration with its number and the best cost; true stops the loop.
OnPass = Callable[[int, float], bool]


def lloyd(
    engine: Assigner,
    centers: Any,
    *,
    max_iter: int,
    tol: float,
    on_pass: OnPass | None = None,
    saved: SavedLoop | None = None,
    cost_before: float | None = None,
    floor: float = 0.0,
) -> list[LloydResult]:
    """Alternate assignment and update until no restart's cost falls by more than `tol`.

    A restart has converged when an iteration lowers its cost by no more than `tol`
    times the cost, less a constant part of it that is the `floor`, or changes no label.
    The result holds labels, centres and cost that belong together: rows are assigned to
    exactly these centres.  There is a result for each restart; the state after each
    iteration is left with `saved`.  `cost_before` is what the first iteration of a lone
    restart is compared with, if that is known.
    """
    state, before = LloydState.start(centers), None
    earlier = None if saved is None else saved.resume()
    if earlier is not None:
        state = earlier
        engine.restore(state.engine)
        going = [state.results[restart].labels for restart in state.active]
        before = np.stack(going, axis=1)
    while state.iteration < max_iter:
        found = engine.assign(state.centers, before)
        check_no_overflow(found.costs)
        state.iteration += 1
        moving = _record(state, found, tol, cost_before, floor)
        best = min(result.cost for result in state.results)
        if on_pass is not None and on_pass(state.iteration, best):
            for restart in state.active:
                state.results[restart].stopped = True
            break
        if not moving or state.iteration == max_iter:
            break
        found = found.select(moving)
        before = found.labels
        state.centers = engine.update(found, state.centers.select(moving))
        state.active = state.active[moving]
        if saved is not None:
            saved.save(lambda: _with_engine(state, engine))
    return state.results


def _with_engine(state: LloydState, engine: Assigner) -> LloydState:
    state.engine = engine.state()
    return state


def _record(
    state: LloydState,
    found: PassResult,
    tol: float,
    cost_before: float | None,
    floor: float,
) -> list[int]:
    """Take in the results of a pass; return the positions of restarts that go on.

    They go on until they converge, and while refills make empty clusters fewer.
    """
    moving, is_first = [], not state.results
    costs = np.maximum(found.costs, 0.0).tolist()
    empty = (found.counts == 0.0).sum(axis=1)
    fewer = ((empty > 0) & (empty < state.empty_before[state.active])).tolist()
    state.empty_before[state.active] = empty
    for position, restart in enumerate(state.active.tolist()):
        cost = costs[position]
        result = LloydResult(
            found.labels[:, position],
            state.centers.select([position]),
            cost,
            found.counts[position],
        )
        if is_first:
            state.results.append(result)
            if cost_before is not None:
                result.converged = cost_before - cost <= tol * cost_before
        else:
            previous = state.results[restart]
            gain = previous.cost - cost
            if gain < 0.0:
                # Rounding at the optimum, or an indefinite kernel: keep the better one.
                result, previous.converged = previous, True
            else:
                result.cost_path = previous.cost_path
                is_small = gain <= tol * (previous.cost - floor)
                result.converged = is_small or not found.labels_changed[position]
            state.results[restart] = result
        result.cost_path.append(cost)
        if result.converged and fewer[position]:
            result.converged = False  # empty clusters go on being refilled
        if not result.converged:
            moving.append(position)
    return moving
