"""Lloyd passes over blocks of coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Rows
from sketchmeans.engine.assign import (
    BlockSums,
    assign_block,
    dense,
    packed,
    unpacked,
)
from sketchmeans.engine.bounds import Bounds, RowBounds, Totals
from sketchmeans.engine.coordinates import Span
from sketchmeans.engine.lloyd import Assignment, Centers, LloydResult, nearest_members
from sketchmeans.engine.looks import BlockLooks, Look
from sketchmeans.engine.spaces import Space
from sketchmeans.engine.swaps import TwoNearest
from sketchmeans.numerics.linalg import (
    CANCELLATION_ROUNDINGS,
    ZERO_DISTANCE_ROUNDINGS,
    Array,
)
from sketchmeans.numerics.sums import TreeSum


@dataclass(frozen=True)
class Sweep:
    """What a full pass finds: the labels, bounds for one restart, and the sums."""

    labels: Array
    bounds: RowBounds | None
    terms: TreeSum


def new_engine(rows: Rows, space: Space, budget: int = 0) -> BlockEngine:
    """Return the engine for passes over all rows: their own, if they have one."""
    engine: BlockEngine = (rows.engine or BlockEngine)(rows, space, budget)
    return engine


class BlockEngine(BlockLooks):
    """Lloyd passes over the rows of a source; see `BlockCoordinates`."""

    _bounds: Bounds | None = None

    def leading(self, size: int) -> Self:
        part = super().leading(size)
        part._bounds = None
        return part

    def state(self) -> dict[str, Array]:
        """Return what is kept from pass to pass."""
        return {} if self._bounds is None else self._bounds.to_arrays()

    def restore(self, state: dict[str, Array]) -> None:
        """Take up what `state` returned."""
        if state:
            self._bounds = Bounds.from_arrays(state)

    def assign(self, centers: Centers) -> Assignment:
        """Return every row's nearest centre, in at most one pass over the rows.

        A lone restart looks again only at the rows whose nearest centre may have
        changed since the last full pass, unless these are too many.
        """
        if len(centers) == 1 and self._bounds is not None:
            active = self._bounds.follow(centers)
            look = Look.at(len(active), len(self.rows), self.rows.n_features)
            if look is not Look.ALL:
                found = self._reassign(self._bounds, active, look)
                if found.costs[0] > 0.0:
                    return found
        return self._assign_all(centers)

    def _assign_all(self, centers: Centers) -> Assignment:
        found = self.sweep(centers)
        sums, counts, costs = unpacked(found.terms.total(), centers.coefficients.shape)
        if found.bounds is not None:
            self._bounds = Bounds.after(
                centers, found.bounds, Totals(sums[0], counts[0], costs)
            )
        return Assignment(found.labels, costs / self.rows.total_weight, sums, counts)

    def sweep(self, centers: Centers, first: int = 0) -> Sweep:
        """Return what a full pass finds; its blocks are numbered from `first`."""
        table = self._table(centers)

        def assign(span: Span) -> BlockSums:
            weights = self.rows.block_weights(*span)
            return assign_block(
                self.coordinates(span), self._norms(span), weights, table
            )

        lone = len(centers) == 1
        labels = np.empty((len(self.rows), len(centers)), dtype=np.int32)
        nearest = np.empty((2, len(self.rows) if lone else 0), self.space.dtype)
        terms = TreeSum()
        work = len(self.rows) / len(self._spans) * table.n_coordinates * table.n_centers
        if not self._at_hand:
            work = np.inf
        found = self.workers.map(assign, self._spans, work)
        for number, block in enumerate(found, first):
            start, stop = self._spans[number - first]
            labels[start:stop] = block.nearest.labels
            terms.add(number, packed(block.sums, block.counts, block.costs))
            if lone:
                nearest[0, start:stop] = block.nearest.distances[:, 0]
                nearest[1, start:stop] = block.nearest.second
        bounds = RowBounds.at(labels[:, 0], nearest) if lone else None
        return Sweep(labels, bounds, terms)

    def _reassign(self, bounds: Bounds, active: Array, look: Look) -> Assignment:
        """Return the assignment when only the active rows can have changed theirs."""
        bounds.labels, terms = self.look_again(bounds, active, bounds.centers, look)
        shape = bounds.centers.coefficients.shape
        bounds.totals = bounds.totals.changed(*unpacked(terms.total(), shape))
        totals = bounds.totals
        return Assignment(
            bounds.labels[:, None],
            totals.cost / self.rows.total_weight,
            totals.sums[None],
            totals.counts[None],
        )

    def exemplars(self, centers: Centers, labels: Array) -> Array:
        """Return each cluster's row that is nearest to its centre."""
        if self._bounds is None:
            self._assign_all(centers)
        assert self._bounds is not None
        self._bounds.follow(centers)  # the best pass need not be the last
        rows, squared = self.candidate_distances(
            self._bounds, self._bounds.drift, centers, labels
        )
        return nearest_members(squared, rows, labels, self.rows.weights)

    def two_nearest(self, centers: Centers) -> TwoNearest:
        """Return the two nearest centres of every row, for one restart."""
        self._bounds = None  # the next pass is a full one, whatever was before
        bounds = self.sweep(centers).bounds
        assert bounds is not None
        first, second = (
            np.square(bound, dtype=np.float64) for bound in (bounds.upper, bounds.lower)
        )
        return TwoNearest(bounds.labels, first, second)

    def replace_centers(self, centers: Centers, removed: Array, rows: Array) -> Centers:
        """Return a restart for each row that takes the place of a centre."""
        means = np.repeat(centers.means, len(rows), axis=0)
        means[np.arange(len(rows)), removed] = self.coordinates_of(rows)
        return self.centers_of_means(means)

    def update(self, assignment: Assignment, centers: Centers) -> Centers:
        """Return the centroids; an empty cluster takes over one of the costliest rows.

        A cluster that cannot be refilled (there are fewer distinct rows than
        clusters) keeps its centre.
        """
        sums, counts = assignment.sums.copy(), assignment.counts.copy()
        for restart in np.flatnonzero((counts == 0.0).any(axis=1)).tolist():
            self._refill(
                sums[restart],
                counts[restart],
                assignment.labels[:, restart],
                centers.select([restart]),
            )
        full = counts > 0.0
        means = centers.means.copy()
        means[full] = sums[full] / counts[full][:, None]
        return self.centers_of_means(means)

    def _refill(
        self, sums: Array, counts: Array, labels: Array, centers: Centers
    ) -> None:
        """Move costly rows into empty clusters, in place."""
        empty = list(np.flatnonzero(counts == 0.0))
        candidates = self._costliest(labels, centers, 64 + 4 * len(empty))
        weights = self.rows.weights
        b = self.coordinates_of(candidates)
        own = labels[candidates]
        distances, noise = self._reachable(b, centers, own)
        mass = np.ones(len(candidates)) if weights is None else weights[candidates]
        for i in np.argsort(-mass * distances, kind="stable"):
            if not empty:
                break
            source = own[i]
            if distances[i] <= noise[i] or counts[source] <= mass[i]:
                continue
            target = empty.pop(0)
            sums[source] -= mass[i] * b[i]
            counts[source] -= mass[i]
            sums[target] = mass[i] * b[i]
            counts[target] = mass[i]

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

    def _costliest(self, labels: Array, centers: Centers, size: int) -> Array:
        """Return the rows with the largest weighted distance to their own centre."""
        return np.argsort(-self.own_costs(labels, centers), kind="stable")[:size]

    def own_costs(self, labels: Array, centers: Centers) -> Array:
        """Return the weighted squared distances of rows to their own centres."""
        table = self._table(centers)

        def measure(span: Span) -> Array:
            b, norms = self.coordinates(span), self._norms(span)
            return table.own_distances(b, norms, labels[slice(*span)])

        costs = np.concatenate(list(self.workers.map(measure, self._spans)))
        if self.rows.weights is not None:
            costs *= self.rows.weights
        return costs

    def row_costs(self, result: LloydResult) -> Array:
        """Return what each row costs: at most that, where a pass has left bounds."""
        if self._bounds is None:
            return self.own_costs(np.asarray(result.labels), result.centers)
        costs = np.square(self._bounds.upper, dtype=np.float64)
        return costs if self.rows.weights is None else costs * self.rows.weights

    def predict(self, centers: Centers) -> Array:
        """Return every row's nearest centre, without the sums of a pass."""
        table = self._table(centers)

        def nearest(span: Span) -> Array:
            b = self.coordinates(span)
            if self.space.is_euclidean:
                return table.assign(b, self._norms(span)).labels[:, 0]
            return table.nearest(table.scores(b))[0][:, 0]

        labels = np.empty(len(self.rows), dtype=np.int32)
        for span, block in zip(
            self._spans, self.workers.map(nearest, self._spans), strict=True
        ):
            labels[slice(*span)] = block
        return labels

    def all_distances(self, centers: Centers) -> Array:
        """Return the distances of all rows to all centres."""
        distances = [np.sqrt(d) for d in self.distances(centers)]
        return np.concatenate(distances).astype(self.rows.dtype, copy=False)

    def distances(self, centers: Centers) -> Iterator[Array]:
        """Yield the squared distances to all centres, block after block."""
        table = self._table(centers)
        return self.workers.map(
            lambda span: table.distances(self.coordinates(span), self._norms(span)),
            self._spans,
        )

    def total_cost(self, centers: Centers) -> float:
        """Return the weighted sum of the squared distances to the nearest centre."""
        return float(self.cost_terms(centers).total())

    def cost_terms(self, centers: Centers, first: int = 0) -> TreeSum:
        """Return the same in terms for blocks, numbered from `first`."""
        table = self._table(centers)

        def measure(span: Span) -> Array:
            found = table.assign(self.coordinates(span), self._norms(span))
            nearest = found.distances[:, 0].astype(np.float64)
            weights = self.rows.block_weights(*span)
            return np.asarray(nearest.sum() if weights is None else weights @ nearest)

        terms = TreeSum()
        for number, term in enumerate(self.workers.map(measure, self._spans), first):
            terms.add(number, term)
        return terms

    def centers_at(self, indices: Array) -> Centers:
        """Return centres at the projections of these rows, of shape (restarts, k)."""
        flat = self.coordinates_of(indices.ravel())
        return self.centers_of_means(flat.reshape(*indices.shape, -1))

    def partition(self, labels: Array, k: int) -> tuple[Assignment, Centers]:
        """Return the assignment and the centroids of a given partition of all rows.

        A cluster without rows gets the centroid of all rows.
        """
        return self.partitions(labels[:, None], k)

    def partitions(self, labels: Array, k: int) -> tuple[Assignment, Centers]:
        """Return the same for several partitions (n, R), in one pass over the rows."""
        terms = self.partition_terms(labels, k)
        found, centers = self.finished_partition(labels, terms, k)
        # Where a cost is a small difference of large sums, rows are looked at again.
        norms = terms.total()[-1] / self.rows.total_weight
        share = CANCELLATION_ROUNDINGS * float(np.finfo(self.space.dtype).eps)
        for restart in np.flatnonzero(found.costs < share * norms).tolist():
            own = self.own_costs(labels[:, restart], centers.select([restart]))
            found.costs[restart] = own.sum() / self.rows.total_weight
        return found, centers

    def partition_terms(self, labels: Array, k: int, first: int = 0) -> TreeSum:
        """Return the sums over the clusters of partitions (n, R), as `sweep` does."""
        n_partitions = labels.shape[1]
        shift = k * np.arange(n_partitions)

        def add(span: Span) -> Array:
            b, norms = self.coordinates(span), self._norms(span)
            weights = self.rows.block_weights(*span)
            mass = np.ones(span[1] - span[0]) if weights is None else weights
            own = (labels[slice(*span)] + shift).ravel()
            each = np.repeat(mass, n_partitions)
            membership = sparse.csc_array(
                (
                    each.astype(self.space.dtype),
                    own,
                    np.arange(0, len(own) + 1, n_partitions),
                ),
                shape=(n_partitions * k, len(mass)),
            )
            total = float(mass @ np.broadcast_to(norms, mass.shape))
            counts = np.bincount(own, each, minlength=n_partitions * k)
            return packed(dense(membership @ b), counts, total)

        terms = TreeSum()
        for number, term in enumerate(self.workers.map(add, self._spans), first):
            terms.add(number, term)
        return terms

    def finished_partition(
        self, labels: Array, terms: TreeSum, k: int
    ) -> tuple[Assignment, Centers]:
        """Return the assignment and the centroids that belong to these sums."""
        vector, m = terms.total(), self.space.n_coordinates
        shape = (len(vector) // (k * (m + 1)), k, m)
        sums, counts, norms = unpacked(vector, shape)
        means = np.repeat(
            sums.sum(axis=1, keepdims=True) / self.rows.total_weight, k, axis=1
        )
        full = counts > 0.0
        means[full] = sums[full] / counts[full][:, None]
        centers = self.centers_of_means(means)
        # Σ_x ‖φ(x)‖² + Σ_j (n_j ‖c_j‖² − 2 α_jᵀ Σ_{x in j} b_x)
        inside = counts * centers.squared_norms
        inside -= 2.0 * np.einsum("rkj,rkj->rk", sums, centers.coefficients)
        costs = np.maximum(norms + inside.sum(axis=1), 0.0) / self.rows.total_weight
        return Assignment(labels, costs, sums, counts), centers

    def centers_of_means(self, means: Array) -> Centers:
        """Return the centroids with these mean coordinates (restarts, k, m)."""
        means = means.astype(np.float64, copy=False)
        flat = means.reshape(-1, means.shape[-1])
        # In one layout always: the bits of later products depend on it.
        coefficients = np.ascontiguousarray(
            self.space.coefficients(flat).T.reshape(means.shape)
        )
        squared_norms = np.einsum("rkj,rkj->rk", means, coefficients)
        return Centers(coefficients, squared_norms, means)
