"""Lloyd's steps on kernel blocks, wherever the rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sketchmeans.data.rows import Rows
from sketchmeans.engine.backend import Backend, LocalBackend, new_backend
from sketchmeans.engine.bounds import (
    Bounds,
    CenterShifts,
    Reassign,
    RowState,
    Totals,
)
from sketchmeans.engine.passes import (
    FullPass,
    LoosenBounds,
    PartialPass,
    PartitionSums,
    PassSums,
)
from sketchmeans.engine.queries import (
    AllDistances,
    FarthestRows,
    GatherStates,
    NearestMembers,
    OwnCosts,
    Predict,
    TotalCost,
    nearest_members,
)
from sketchmeans.engine.refill import choose_refills
from sketchmeans.engine.space import Space
from sketchmeans.engine.store import KernelBlocks
from sketchmeans.engine.types import Centers, LloydResult, PassResult, TwoNearest
from sketchmeans.kernels import toarray
from sketchmeans.numerics.linalg import (
    CANCELLATION_ROUNDINGS,
    ZERO_DISTANCE_ROUNDINGS,
    Array,
)


def new_engine(rows: Rows, space: Space, budget: int = 0) -> BlockEngine:
    """Return the engine for passes over all rows, which run where the rows are."""
    return BlockEngine(new_backend(rows, space, budget))


def local_engine(
    rows: Rows, space: Space, budget: int = 0, *, many_passes: bool = False
) -> BlockEngine:
    """Return the engine of rows in this process; see `KernelBlocks`."""
    blocks = KernelBlocks(rows, space, budget, many_passes=many_passes)
    return BlockEngine(LocalBackend(blocks))


class BlockEngine:
    """Assigns rows to centres and moves centres to means, by passes of a backend.

    It keeps the bounds of the last lone restart: a pass assigns only the rows again
    whose nearest centre may have changed, unless these are too many.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.rows, self.space = backend.rows, backend.space
        self._bounds: Bounds | None = None

    def leading(self, size: int) -> BlockEngine:
        """Return the engine of the first rows, which shares what is kept."""
        assert isinstance(self.backend, LocalBackend)
        return BlockEngine(LocalBackend(self.backend.blocks.leading(size)))

    def state(self) -> dict[str, Array]:
        if self._bounds is None:
            return {}
        here = self._gather(self._bounds.rows)
        return replace(self._bounds, rows=here).to_arrays()

    def restore(self, state: dict[str, Array]) -> None:
        if state:
            self._bounds = Bounds.from_arrays(state)

    # --- passes -----------------------------------------------------------------------

    def assign(self, centers: Centers, before: Any = None) -> PassResult:
        """Return every row's nearest centre; `before` are the labels so far, if any."""
        if len(centers) == 1 and self._bounds is not None:
            found = self._partial_pass(self._bounds, centers)
            if found is not None:
                return found
        return self._full_pass(centers, before)

    def _full_pass(self, centers: Centers, before: Any = None) -> PassResult:
        values = () if before is None else (before,)
        self._bounds = None  # first: they take much of the memory of a fit
        state, found = self.backend.run(FullPass(centers), *values)
        if len(centers) == 1:
            totals = Totals(found.sums[0], found.counts[0], found.costs)
            drift = np.zeros(len(totals.counts))
            self._bounds = Bounds(centers, totals, drift, state)
        return self._result(state, found)

    def _partial_pass(self, bounds: Bounds, centers: Centers) -> PassResult | None:
        """Return what a pass over the active rows finds; None if all must be read."""
        run, rows = self.backend.run, self.rows
        # On a cluster they may have to be computed again.
        in_place = isinstance(self.backend, LocalBackend)
        shifts = CenterShifts.between(bounds.centers, centers)
        self._bounds = None
        state, n_active = run(LoosenBounds(shifts, in_place), bounds.rows)
        how = Reassign.choose(n_active, len(rows), rows.n_features)
        if how is Reassign.ALL:
            return None
        state, change = run(PartialPass(centers, how, in_place), state)
        before = bounds.totals.move(bounds.centers, centers)
        totals = Totals(
            before.sums + change.sums[0], change.counts[0], before.cost - change.costs
        )
        if totals.cost[0] <= 0.0:
            return None
        self._bounds = Bounds(centers, totals, bounds.drift + shifts.moved, state)
        found = PassSums(
            totals.sums[None], totals.counts[None], totals.cost, change.changed
        )
        return self._result(state, found)

    def _result(self, state: Any, found: PassSums) -> PassResult:
        return PassResult(
            self.backend.labels(state, len(found.costs)),
            found.costs / self.rows.total_weight,
            found.sums,
            found.counts,
            found.changed,
        )

    def centers_of_partition(self, labels: Array, k: int) -> Centers:
        return self.partition(labels, k)[1]

    def partition(self, labels: Array, k: int) -> tuple[PassResult, Centers]:
        """Return the sums and the centroids of given partitions, (n,) or (n, R).

        A cluster without rows gets the centroid of all rows.
        """
        placed = self.backend.place(as_columns(labels))
        n_restarts = 1 if labels.ndim == 1 else labels.shape[1]
        sums = PartitionSums(n_restarts, k, self.space.n_columns)
        _, found = self.backend.run(sums, placed)
        total = self.rows.total_weight
        means = np.repeat(found.sums.sum(axis=1, keepdims=True) / total, k, axis=1)
        full = found.counts > 0.0
        means[full] = found.sums[full] / found.counts[full][:, None]
        centers = self.centers_of_means(means)
        # Σ_x ‖φ(x)‖² + Σ_j (n_j ‖c_j‖² − 2 α_jᵀ Σ_{x in j} b_x)
        inside = found.counts * centers.squared_norms
        inside -= 2.0 * np.einsum("rkj,rkj->rk", found.sums, centers.coefficients)
        costs = np.maximum(found.costs + inside.sum(axis=1), 0.0) / total
        # Where a cost is a small difference of large sums, it is computed again from
        # rows.
        eps = float(np.finfo(self.space.dtype).eps)
        lost = costs < CANCELLATION_ROUNDINGS * eps * found.costs / total
        for restart in np.flatnonzero(lost).tolist():
            own = OwnCosts(centers.select([restart]))
            costs[restart] = self.backend.run(own, placed[:, [restart]])[1] / total
        result = PassResult(placed, costs, found.sums, found.counts, found.changed)
        return result, centers

    def centers_of(self, labels: Array, k: int) -> Centers:
        """Return the centroids of a partition of shape (n,), after a refill."""
        given, centers = self.partition(labels, k)
        return centers if given.counts.all() else self.update(given, centers)

    def two_nearest(self, centers: Centers) -> TwoNearest:
        self._bounds = None  # the next pass is a full one, whatever was before
        left, _ = self.backend.run(FullPass(centers))
        state = self._gather(left)
        first, second = (
            np.square(bound, dtype=np.float64) for bound in (state.upper, state.lower)
        )
        return TwoNearest(state.labels[:, 0], first, second)

    def exemplars(
        self, centers: Centers, labels: Any, distances: Array | None = None
    ) -> Array:
        """Return each cluster's row that is nearest to its centre.

        `distances` (n,) of the rows to their centres, if they are known, spare a pass.
        """
        if distances is not None and distances.size:
            weights, k = self.rows.weights, centers.squared_norms.shape[1]
            if weights is not None:
                distances = np.where(weights > 0.0, distances, np.inf)
            least, rows = nearest_members(labels, distances, k)
            if np.isfinite(least).all():
                return rows
        if self._bounds is None:
            self._full_pass(centers)
        bounds = self._bounds
        assert bounds is not None
        # The best pass need not be the last.
        shifts = CenterShifts.between(bounds.centers, centers)
        nearest = NearestMembers(centers, shifts, bounds.drift + shifts.moved)
        _, found = self.backend.run(nearest, bounds.rows, as_columns(labels))
        return np.asarray(found)

    def own_costs(self, labels: Array, centers: Centers) -> Array:
        """Return the weighted squared distances of rows to their own centres."""
        costs: Array = self.backend.run(OwnCosts(centers), as_columns(labels))[0]
        return costs

    def watch(self, on_rows: Callable[[int, int], None]) -> None:
        """Have passes in this process report how many rows they have looked at."""
        if isinstance(self.backend, LocalBackend):
            self.backend.blocks.on_rows = on_rows

    def release(self) -> None:
        """Free what is kept from pass to pass; the next pass is a full one."""
        self._bounds = None

    def row_state(self, result: LloydResult) -> Any:
        """Return what the last pass has left with the rows: labels and bounds."""
        if self._bounds is None:
            self._full_pass(result.centers)
        assert self._bounds is not None
        return self._bounds.rows

    def state_at(self, result: LloydResult) -> RowState | None:
        """Return what the last pass has left, if it is here and was at this result."""
        bounds, labels = self._bounds, result.labels
        if bounds is None or not isinstance(bounds.rows, RowState):
            return None
        points = bounds.centers.coefficients, result.centers.coefficients
        if not (isinstance(labels, np.ndarray) and np.array_equal(*points)):
            return None
        is_same = np.array_equal(bounds.rows.labels[:, 0], labels.ravel())
        return bounds.rows if is_same else None

    def place_labels(self, result: LloydResult) -> LloydResult:
        """Return a result whose labels are with its rows; a checkpoint had them."""
        labels = self.backend.place(as_columns(result.labels))
        return replace(result, labels=labels[:, 0])

    def _gather(self, state: Any) -> RowState:
        """Return what a pass has left with the rows, here."""
        found: RowState = self.backend.run(GatherStates(), state)[1]
        return found

    def predict(self, centers: Centers) -> Any:
        """Return every row's nearest centre."""
        return self.backend.map_rows(Predict(centers), (), np.dtype(np.int32))

    def all_distances(self, centers: Centers) -> Any:
        """Return the distances of all rows to all centres."""
        width = centers.squared_norms.size
        return self.backend.map_rows(AllDistances(centers), (width,), self.rows.dtype)

    def total_cost(self, centers: Centers) -> float:
        """Return the weighted sum of the squared distances to the nearest centre."""
        return float(self.backend.run(TotalCost(centers))[1])

    # --- centres ----------------------------------------------------------------------

    def update(self, result: PassResult, centers: Centers) -> Centers:
        """Return the centroids; an empty cluster takes over one of the farthest rows.

        A cluster that cannot be refilled (there are fewer distinct rows than
        clusters) keeps its centre.
        """
        sums, counts = result.sums.copy(), result.counts.copy()
        is_filler = np.isinf(centers.squared_norms)
        is_empty = (counts == 0.0) & ~is_filler
        for restart in np.flatnonzero(is_empty.any(axis=1)).tolist():
            real = ~is_filler[restart]
            own, sizes = sums[restart], counts[restart]
            labels = result.labels[:, [restart]]
            self._refill(own, sizes, labels, centers.select([restart]), real)
        full = counts > 0.0
        means = centers.means.copy()
        means[full] = sums[full] / counts[full][:, None]
        moved = self.centers_of_means(means)
        moved.squared_norms[is_filler] = np.inf
        return moved

    def _refill(
        self, sums: Array, counts: Array, labels: Any, centers: Centers, real: Array
    ) -> None:
        """Move far rows into empty clusters, in place."""
        size = 64 + 4 * int((counts[real] == 0.0).sum())
        _, rows = self.backend.run(FarthestRows(centers, size), labels)
        b = self.kernel_values(rows)
        own = np.asarray(labels[:, 0][rows])
        weights = self.rows.weights
        weights = np.ones(len(rows)) if weights is None else weights[rows]
        distances, noise = self._reachable(b, centers, own)
        for i, target in choose_refills(
            own, distances, noise, weights, np.where(real, counts, np.inf)
        ).items():
            change = weights[i] * b[i]
            sums[own[i]] -= change
            counts[own[i]] -= weights[i]
            sums[target], counts[target] = change, weights[i]

    def _reachable(self, b: Array, centers: Centers, own: Array) -> tuple[Array, Array]:
        """Return squared distances of rows to their own centres, and what is rounding.

        The part of φ(x) outside the span no centre can reach: it is left out.
        """
        eps = ZERO_DISTANCE_ROUNDINGS * float(np.finfo(self.space.dtype).eps)
        projected = self.space.coefficients(b)
        lengths = np.einsum("ij,ji->i", b, projected)
        if self.space.is_euclidean:
            gap = projected.T - centers.coefficients[0, own]
            return np.einsum("ij,ij->i", gap, gap), eps**2 * lengths
        products = np.einsum("ij,ij->i", b, centers.coefficients[0, own])
        distances = lengths - 2.0 * products + centers.squared_norms[0, own]
        return distances, eps * np.abs(lengths)

    def replace_centers(self, centers: Centers, removed: Array, rows: Array) -> Centers:
        means = np.repeat(centers.means, len(rows), axis=0)
        means[np.arange(len(rows)), removed] = self.kernel_values(rows)
        return self.centers_of_means(means)

    def kernel_values(self, rows: Array) -> Array:
        """Return ``b_x`` of a few rows, dense and in float64."""
        b = self.space.kernel_block(self.rows.take(rows))
        return toarray(b).astype(np.float64)

    def centers_at(self, indices: Array) -> Centers:
        """Return centres at the projections of these rows, of shape (restarts, k)."""
        flat = self.kernel_values(indices.ravel())
        return self.centers_of_means(flat.reshape(*indices.shape, -1))

    def centers_of_means(self, means: Array) -> Centers:
        """Return the centroids with these mean kernel values (restarts, k, m)."""
        means = means.astype(np.float64, copy=False)
        flat = means.reshape(-1, means.shape[-1])
        # In one layout always: the bits of later products depend on it.
        coefficients = np.ascontiguousarray(
            self.space.coefficients(flat).T.reshape(means.shape)
        )
        squared_norms = np.einsum("rkj,rkj->rk", means, coefficients)
        return Centers(coefficients, squared_norms, means)


def as_columns(labels: Any) -> Any:
    """Return labels of shape (n, R); those on a cluster have it already."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        return labels[:, None]
    return labels
