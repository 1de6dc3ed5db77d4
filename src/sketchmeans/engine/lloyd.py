"""Lloyd's algorithm: the loop, for several restarts at once.

The loop asks an engine to assign rows to centres and to move the centres to the
means.  Engines differ in where rows live: `blocks.BlockEngine` streams blocks of
coordinates, `gram.GramEngine` works on a Gram matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from sketchmeans.numerics.linalg import Array, check_no_overflow


@dataclass(frozen=True)
class Centers:
    """Centroids ``c = Σ_i α_i φ(z_i)`` of R restarts.

    Attributes
    ----------
    coefficients : ndarray of shape (R, k, m)
        ``α``, in float64.
    squared_norms : ndarray of shape (R, k)
        ``‖c‖²``.
    means : ndarray of shape (R, k, m)
        The mean coordinates ``b̄`` from which ``α = M b̄``.
    """

    coefficients: Array
    squared_norms: Array
    means: Array

    def __len__(self) -> int:
        return len(self.coefficients)

    def select(self, restarts: Sequence[int] | Array) -> Self:
        """Return the centres of some of the restarts."""
        chosen = np.asarray(restarts, dtype=np.intp)
        return type(self)(
            self.coefficients[chosen], self.squared_norms[chosen], self.means[chosen]
        )


def side_by_side(restarts: Sequence[Centers]) -> Centers:
    """Return the centres of several restarts as one."""
    return Centers(
        np.concatenate([centers.coefficients for centers in restarts]),
        np.concatenate([centers.squared_norms for centers in restarts]),
        np.concatenate([centers.means for centers in restarts]),
    )


@dataclass(frozen=True)
class Assignment:
    """Every row's nearest centre, for R restarts, and the sums over the clusters.

    Attributes
    ----------
    labels : ndarray of shape (n, R)
    costs : ndarray of shape (R,)
        ``W``: weighted mean squared distance to the nearest centre.
    sums : ndarray of shape (R, k, m)
        Weighted sums of the coordinates of each cluster's rows; empty (m = 0) where
        the engine finds the means another way.
    counts : ndarray of shape (R, k)
        Weight of each cluster.
    changed : ndarray of shape (R,), optional
        Whether any label has changed since the pass before, from engines that keep
        the labels out of reach.
    """

    labels: Array
    costs: Array
    sums: Array
    counts: Array
    changed: Array | None = None

    def select(self, restarts: Sequence[int] | Array) -> Self:
        """Return the assignments of some of the restarts."""
        chosen = np.asarray(restarts, dtype=np.intp)
        return type(self)(
            self.labels[:, chosen],
            self.costs[chosen],
            self.sums[chosen],
            self.counts[chosen],
            None if self.changed is None else self.changed[chosen],
        )


class Engine(Protocol):
    """Assigns rows to centres and moves centres to means."""

    def assign(self, centers: Any) -> Assignment:
        """Return every row's nearest centre."""
        ...

    def update(self, assignment: Assignment, centers: Any) -> Any:
        """Return the centroids of the clusters, after a refill of empty ones."""
        ...

    def exemplars(self, centers: Any, labels: Array) -> Array:
        """Return each cluster's row that is nearest to its centre."""
        ...


@dataclass
class LloydResult:
    """One restart: its best assignment and how it got there."""

    labels: Array
    centers: Any
    cost: float
    counts: Array
    cost_path: list[float] = field(default_factory=list)
    converged: bool = False
    #: Whether a callback asked to stop.
    stopped: bool = False

    @property
    def n_iter(self) -> int:
        """Number of passes."""
        return len(self.cost_path)


def cluster_weights(labels: Array, weights: Array | None, k: int) -> Array:
    """Return the weight of each cluster; in parts, as NumPy would widen the labels."""
    counts = np.zeros(k)
    for start in range(0, len(labels), 2**16):
        part = slice(start, start + 2**16)
        mass = None if weights is None else weights[part]
        counts += np.bincount(labels[part], mass, minlength=k)
    return counts


def nearest_members(
    distances: Array, rows: Array, labels: Array, weights: Array | None
) -> Array:
    """Return, for each centre, the nearest of those rows that are of its cluster.

    `distances` has a row for each of `rows`.  A row of weight 0 is no row; for an
    empty cluster any row will do.
    """
    k = distances.shape[1]
    member = labels[rows, None] == np.arange(k)
    if weights is not None:
        member &= weights[rows, None] > 0.0
    member |= ~member.any(axis=0)
    return np.asarray(rows[np.where(member, distances, np.inf).argmin(axis=0)])


@dataclass(frozen=True)
class LloydState:
    """Everything that the rest of a loop depends on, after a pass.

    Attributes
    ----------
    iteration : int
        Passes that were made.
    results : list of LloydResult
    active : ndarray
        Numbers of the restarts that go on.
    centers : Centers
        Where the next pass starts.
    empty_before : ndarray
        Empty clusters of each restart.
    engine : dict of ndarray
        What the engine keeps from pass to pass.
    """

    iteration: int
    results: list[LloydResult]
    active: Array
    centers: Centers
    empty_before: Array
    engine: dict[str, Array]


class SavedLoop(Protocol):
    """Where a loop saves its state, and resumes from it."""

    def resume(self) -> LloydState | None:
        """Return the state from which to continue."""
        ...

    def save(self, state: Callable[[], LloydState]) -> None:
        """Save the state after an iteration, if it is time."""
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


#: Called after each pass with its number and the best cost; true stops the loop.
OnPass = Callable[[int, float], bool]


def lloyd(
    engine: Engine,
    centers: Any,
    *,
    max_iter: int,
    tol: float,
    weights: Array | None = None,
    on_pass: OnPass | None = None,
    saved: SavedLoop | None = None,
) -> list[LloydResult]:
    """Alternate assignment and update until no restart's cost falls by more than `tol`.

    A restart has converged when a pass lowers its cost by no more than `tol` times the
    cost, or changes no label.  The result holds labels, centres and cost that belong
    together: rows are assigned to exactly these centres.

    Parameters
    ----------
    engine : Engine
    centers : Centers
        The start of each restart, in the form that the engine works with.
    max_iter : int
        At most this many passes over the rows.
    tol : float
        Relative drop of the cost over a pass.
    weights : ndarray of shape (n,), optional
        The labels of rows of weight 0 do not count.
    on_pass : callable, optional
    saved : SavedLoop, optional
        Where the state is saved after each pass; the engine must have `state` and
        `restore`.

    Returns
    -------
    results : list of LloydResult
        One for each restart.
    """
    results: list[LloydResult | None] = [None] * len(centers)
    active = np.arange(len(centers))
    # More than can be: the first time, empty clusters always count as fewer.
    empty_before = np.full(len(centers), np.iinfo(np.intp).max)
    first, state = 1, None if saved is None else saved.resume()
    if state is not None:
        first, active, centers = state.iteration + 1, state.active, state.centers
        results[:], empty_before = state.results, state.empty_before
        engine.restore(state.engine)  # type: ignore[attr-defined]
    for iteration in range(first, max_iter + 1):
        assignment = engine.assign(centers)
        check_no_overflow(assignment.costs)
        moving = []
        for position, restart in enumerate(active):
            result = _record(
                results[restart], assignment, centers, position, tol, weights
            )
            results[restart] = result
            # Empty clusters go on being refilled while that makes them fewer.
            empty = int((assignment.counts[position] == 0.0).sum())
            if result.converged and 0 < empty < empty_before[restart]:
                result.converged = False
            empty_before[restart] = empty
            if not result.converged:
                moving.append(position)
        best = min(r.cost for r in results if r is not None)
        stop = on_pass is not None and on_pass(iteration, best)
        for restart in active if stop else ():
            results[restart].stopped = True  # type: ignore[union-attr]
        if stop or not moving or iteration == max_iter:
            break
        centers = engine.update(assignment.select(moving), centers.select(moving))
        active = active[moving]
        if saved is not None:
            saved.save(
                lambda: LloydState(
                    iteration,  # noqa: B023 - called at once or never
                    [result for result in results if result is not None],
                    active,  # noqa: B023
                    centers,  # noqa: B023
                    empty_before,
                    engine.state(),  # type: ignore[attr-defined]
                )
            )
    return [result for result in results if result is not None]


def _record(
    previous: LloydResult | None,
    assignment: Assignment,
    centers: Any,
    position: int,
    tol: float,
    weights: Array | None,
) -> LloydResult:
    """Return the state of one restart after a pass."""
    cost = max(float(assignment.costs[position]), 0.0)
    if previous is not None and cost > previous.cost:
        # Rounding at the optimum, or an indefinite kernel: keep the better state.
        previous.cost_path.append(cost)
        previous.converged = True
        return previous
    result = LloydResult(
        assignment.labels[:, position],
        centers.select([position]),
        cost,
        assignment.counts[position],
    )
    if previous is not None:
        result.cost_path = previous.cost_path
        settled = (
            _same(previous.labels, result.labels, weights)
            if assignment.changed is None
            else not assignment.changed[position]
        )
        result.converged = previous.cost - cost <= tol * previous.cost or settled
    result.cost_path.append(cost)
    return result


def _same(before: Array, after: Array, weights: Array | None) -> bool:
    changed = before != after
    if weights is not None:
        changed &= weights > 0.0
    return not changed.any()
