"""Passes over rows, each defined once for threads, files and clusters.

A `Reduction` says what a pass computes: `chunk` works through the rows of one place and
returns what stays with them and a small summary, `combine` merges summaries, and
`finalize` turns the last one into the result.  A `Backend` runs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.data.rows import by_block, spans
from sketchmeans.engine.assign import (
    Assignment,
    CenterMatrix,
    ClusterSums,
    assign_block,
    sum_clusters,
    sum_moves,
)
from sketchmeans.engine.bounds import CenterShifts, Reassign, RowState
from sketchmeans.engine.store import KernelBlocks, Span
from sketchmeans.engine.types import Centers, have_changed
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.sums import TreeSum


class Reduction(ABC):
    """A pass over all rows: what it computes, wherever they are."""

    #: Whether single rows are taken, for which kept kernel blocks are not enough.
    takes_rows = False

    @abstractmethod
    def chunk(self, blocks: KernelBlocks, *values: Any) -> tuple[Any, Any]:
        """Return what stays with the rows of one place, and a summary of them.

        `values` are what earlier passes left there.
        """

    def combine(self, summaries: list[Any]) -> Any:
        """Return the summary of several places; it may be combined again."""
        raise NotImplementedError(f"{type(self).__name__} has no summary.")

    def finalize(self, summary: Any) -> Any:
        """Return the result of the pass from the summary of all places."""
        return summary


@dataclass(frozen=True)
class Sums:
    """Sums over blocks, added up along the tree of their numbers.

    Attributes
    ----------
    terms : TreeSum
        Of the sums over clusters and of the costs, flattened.
    counts : TreeSum
        Of the weights of the clusters.
    changed : ndarray of shape (R,)
        Whether the label of a row that counts has changed.
    """

    terms: TreeSum
    counts: TreeSum
    changed: Array


@dataclass(frozen=True)
class PassSums:
    """The sums of a pass over all rows: see `PassResult`; costs are sums, too."""

    sums: Array
    counts: Array
    costs: Array
    changed: Array


class ClusterPass(Reduction):
    """A pass that adds up kernel values over clusters."""

    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Return the numbers of restarts, clusters and columns."""

    def combine(self, summaries: list[Sums]) -> Sums:
        return Sums(
            _merge([part.terms for part in summaries]),
            _merge([part.counts for part in summaries]),
            np.any([part.changed for part in summaries], axis=0),
        )

    def finalize(self, summary: Sums) -> PassSums:
        shape = self.shape()
        sums, costs = np.split(summary.terms.total(), [int(np.prod(shape))])
        counts = summary.counts.total().reshape(shape[:2])
        return PassSums(sums.reshape(shape), counts, costs, summary.changed)


def _merge(parts: list[TreeSum]) -> TreeSum:
    total = TreeSum()
    for part in parts:
        total.merge(part)
    return total


def _flatten(sums: Array, costs: Array | float) -> Array:
    return np.append(sums, costs).astype(np.float64, copy=False)


@dataclass(frozen=True)
class FullPass(ClusterPass):
    """Assigns every row to its nearest centre; takes the labels before, if any."""

    centers: Centers

    def shape(self) -> tuple[int, ...]:
        return self.centers.coefficients.shape

    def chunk(
        self, blocks: KernelBlocks, before: Array | None = None
    ) -> tuple[RowState, Sums]:
        matrix = blocks.center_matrix(self.centers)
        n_rows, n_restarts = len(blocks.rows), len(self.centers)

        def assign(span: Span) -> tuple[Assignment, ClusterSums, Array]:
            b, norms = blocks.values(span), blocks.norms(span)
            return assign_block(b, norms, blocks.weights(span), matrix)

        labels = np.empty((n_rows, n_restarts), dtype=np.int32)
        nearest = np.empty((2, n_rows if n_restarts == 1 else 0), blocks.space.dtype)
        terms, counts = TreeSum(), TreeSum()
        for number, span, found in blocks.map(assign, matrix.n_centers):
            rows, (assigned, clusters, costs) = slice(*span), found
            labels[rows] = assigned.labels
            terms.add(number, _flatten(clusters.sums, costs))
            counts.add(number, clusters.counts)
            if n_restarts == 1:
                nearest[0, rows] = assigned.distances[:, 0]
                nearest[1, rows] = assigned.second
        np.sqrt(np.maximum(nearest, 0.0, out=nearest), out=nearest)
        changed = have_changed(before, labels, blocks.rows.weights)
        return RowState(labels, *nearest), Sums(terms, counts, changed)


@dataclass(frozen=True)
class LoosenBounds(Reduction):
    """Loosens bounds for centres that moved; the result is how many rows may change."""

    shifts: CenterShifts

    def chunk(self, blocks: Any, state: RowState) -> tuple[RowState, int]:
        found = state.loosen(self.shifts)
        return found, len(found.active)

    def combine(self, summaries: list[int]) -> int:
        return sum(summaries)


@dataclass(frozen=True)
class PartialPass(ClusterPass):
    """Assigns the active rows alone; sums are changes, and costs what is gained."""

    centers: Centers
    how: Reassign

    def shape(self) -> tuple[int, ...]:
        return self.centers.coefficients.shape

    @property
    def takes_rows(self) -> bool:  # type: ignore[override]
        return self.how is Reassign.SINGLE

    def chunk(self, blocks: KernelBlocks, state: RowState) -> tuple[RowState, Sums]:
        matrix = blocks.center_matrix(self.centers)
        rows, active, k = blocks.rows, state.active, matrix.k

        def reassign(group: tuple[int, Span]) -> tuple[Assignment, Array | None]:
            number, part = group
            indices = active[slice(*part)]
            picked = not self.takes_rows
            b, norms = blocks.pick(number, indices) if picked else blocks.take(indices)
            found = matrix.assign(b, norms)
            new, old = found.labels[:, 0], state.labels[indices, 0]
            moved = np.flatnonzero(new != old)
            if not len(moved):
                return found, None
            weights = _weights_of(rows.weights, indices[moved])
            new, old, b = new[moved], old[moved], b[moved]
            gain = weights @ matrix.gains(b, old, new)
            return found, _flatten(sum_moves(b, weights, new, old, k), gain)

        labels = state.labels.copy()
        upper, lower = state.upper.copy(), state.lower.copy()
        groups = by_block(active, blocks.space.height)
        width, is_near = k, blocks.is_complete
        if self.takes_rows:
            width, is_near = k + rows.n_features, rows.in_memory
        work = len(active) * matrix.n_columns * width / max(len(groups), 1)
        results = blocks.workers.map(reassign, groups, work if is_near else np.inf)
        terms, counts = TreeSum(), TreeSum()
        changes = {0: np.zeros(k * matrix.n_columns + 1)}  # blocks left out are zero
        for (number, part), (found, change) in zip(groups, results, strict=True):
            indices = active[slice(*part)]
            labels[indices] = found.labels
            upper[indices] = np.sqrt(found.distances[:, 0])
            lower[indices] = np.sqrt(np.maximum(found.second, 0.0))
            if change is not None:
                changes[number] = change
        for number, change in changes.items():
            terms.add(blocks.first + number, change)
        for number, span in enumerate(blocks.spans, blocks.first):
            own = labels[slice(*span), 0]
            counts.add(number, np.bincount(own, blocks.weights(span), k) * 1.0)
        changed = have_changed(state.labels, labels, rows.weights)
        return RowState(labels, upper, lower), Sums(terms, counts, changed)


@dataclass(frozen=True)
class PartitionSums(ClusterPass):
    """Sums of given clusters, for labels (n, R); the cost is ``Σ ‖φ(x)‖²``."""

    n_restarts: int
    k: int
    n_columns: int

    def shape(self) -> tuple[int, ...]:
        return self.n_restarts, self.k, self.n_columns

    def chunk(self, blocks: KernelBlocks, labels: Array) -> tuple[None, Sums]:

        def add(span: Span) -> tuple[ClusterSums, float]:
            own, weights = labels[slice(*span)], blocks.weights(span)
            norms = np.broadcast_to(blocks.norms(span), len(own))
            total = norms.sum() if weights is None else weights @ norms
            dtype = blocks.space.dtype
            return sum_clusters(blocks.values(span), own, weights, self.k, dtype), total

        terms, counts = TreeSum(), TreeSum()
        for number, _, (clusters, norms) in blocks.map(add):
            terms.add(number, _flatten(clusters.sums, norms))
            counts.add(number, clusters.counts)
        return None, Sums(terms, counts, np.ones(self.n_restarts, dtype=bool))


class CostPass(Reduction):
    """A pass that adds up costs."""

    def combine(self, summaries: list[TreeSum]) -> TreeSum:
        return _merge(summaries)

    def finalize(self, summary: TreeSum) -> float:
        return float(summary.total())


@dataclass(frozen=True)
class TotalCost(CostPass):
    """The weighted sum of the squared distances to the nearest centre."""

    centers: Centers

    def chunk(self, blocks: KernelBlocks) -> tuple[None, TreeSum]:
        matrix = blocks.center_matrix(self.centers)

        def measure(span: Span) -> Array:
            found = matrix.assign(blocks.values(span), blocks.norms(span))
            nearest = found.distances[:, 0].astype(np.float64)
            weights = blocks.weights(span)
            return np.asarray(nearest.sum() if weights is None else weights @ nearest)

        terms = TreeSum()
        for number, _, term in blocks.map(measure):
            terms.add(number, term)
        return None, terms


@dataclass(frozen=True)
class OwnCosts(CostPass):
    """The weighted squared distances of rows to their own centres, and their sum."""

    centers: Centers

    def chunk(self, blocks: KernelBlocks, labels: Array) -> tuple[Array, TreeSum]:
        matrix = blocks.center_matrix(self.centers)

        def measure(span: Span) -> Array:
            b, norms = blocks.values(span), blocks.norms(span)
            costs = matrix.own_distances(b, norms, labels[slice(*span), 0])
            weights = blocks.weights(span)
            return costs if weights is None else weights * costs

        costs, terms = np.empty(len(blocks.rows)), TreeSum()
        for number, span, found in blocks.map(measure):
            costs[slice(*span)] = found
            terms.add(number, np.asarray(found.sum()))
        return costs, terms


@dataclass(frozen=True)
class FarthestRows(Reduction):
    """The rows with the largest weighted distance to their own centre."""

    centers: Centers
    size: int

    def chunk(
        self, blocks: KernelBlocks, labels: Array
    ) -> tuple[None, tuple[Array, Array]]:
        costs, _ = OwnCosts(self.centers).chunk(blocks, labels)
        rows = np.argsort(-costs, kind="stable")[: self.size]
        return None, (costs[rows], blocks.rows.first + rows)

    def combine(self, summaries: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        costs, rows = (np.concatenate(parts) for parts in zip(*summaries, strict=True))
        best = np.lexsort((rows, -costs))[: self.size]
        return costs[best], rows[best]

    def finalize(self, summary: tuple[Array, Array]) -> Array:
        return summary[1]


@dataclass(frozen=True)
class NearestMembers(Reduction):
    """For each centre the nearest row of its cluster, as given labels have it.

    Bounds spare most rows: `shifts` lead from their centres to these, and `drift` is
    how far each centre has moved since all bounds were distances.  Rows of weight 0 are
    ignored; an empty cluster gets the nearest row that was looked at.
    """

    centers: Centers
    shifts: CenterShifts
    drift: Array
    takes_rows = True

    def chunk(
        self, blocks: KernelBlocks, state: RowState, labels: Array
    ) -> tuple[None, tuple[Array, ...]]:
        labels, weights = labels[:, 0], blocks.rows.weights
        rows = state.loosen(self.shifts).exemplar_candidates(
            labels, weights, self.drift, self.shifts.length
        )
        squared = squared_distances(blocks, rows, self.centers)
        clusters = np.arange(len(self.drift))
        member = labels[rows, None] == clusters
        if weights is not None:
            member &= weights[rows, None] > 0.0
        is_empty = ~member.any(axis=0)
        squared[~member & ~is_empty] = np.inf
        nearest = squared.argmin(axis=0)
        numbers = blocks.rows.first + rows[nearest]
        return None, (is_empty[None], squared[nearest, clusters][None], numbers[None])

    def combine(self, summaries: list[tuple[Array, ...]]) -> tuple[Array, ...]:
        found = [np.concatenate(parts) for parts in zip(*summaries, strict=True)]
        is_empty, distances, rows = found
        best = np.lexsort((rows, distances, is_empty), axis=0)[:1]
        return tuple(np.take_along_axis(part, best, axis=0) for part in found)

    def finalize(self, summary: tuple[Array, ...]) -> Array:
        return summary[2][0]


def squared_distances(blocks: KernelBlocks, rows: Array, centers: Centers) -> Array:
    """Return ``‖φ(x) − c‖²`` of ascending rows to all centres, in float64.

    Kept kernel values are used where there are some: for exemplars that are equally
    near but for rounding, any of them will do.
    """
    space, kept = blocks.space, blocks.is_kept
    groups = (
        by_block(rows, space.height)
        if kept
        else list(enumerate(spans(len(rows), space.height)))
    )
    wide = np.dtype(np.float64)
    matrix = CenterMatrix(centers, wide, 1, is_euclidean=space.is_euclidean)

    def measure(group: tuple[int, Span]) -> Array:
        numbers = rows[slice(*group[1])]
        b, norms = blocks.pick(group[0], numbers) if kept else blocks.take(numbers)
        return matrix.distances(b.astype(wide), norms)

    width = matrix.k + (0 if kept else blocks.rows.n_features)
    work = len(rows) * space.n_columns * width / max(len(groups), 1)
    if not (kept or blocks.rows.in_memory):
        work = np.inf  # threads should not be far apart in a file
    found = blocks.workers.map(measure, groups, work)
    return np.concatenate([np.empty((0, matrix.k)), *found])


@dataclass(frozen=True)
class Predict(Reduction):
    """The nearest centre of every row, without the sums of a pass."""

    centers: Centers

    def chunk(self, blocks: KernelBlocks) -> tuple[Array, None]:
        matrix = blocks.center_matrix(self.centers)
        norms = blocks.norms if blocks.space.is_euclidean else lambda span: 0.0
        labels = np.empty(len(blocks.rows), dtype=np.int32)
        for _, span, found in blocks.map(
            lambda span: matrix.predict(blocks.values(span), norms(span))
        ):
            labels[slice(*span)] = found
        return labels, None


@dataclass(frozen=True)
class AllDistances(Reduction):
    """The distances of all rows to all centres."""

    centers: Centers

    def chunk(self, blocks: KernelBlocks) -> tuple[Array, None]:
        matrix = blocks.center_matrix(self.centers)
        distances = np.empty((len(blocks.rows), matrix.n_centers), blocks.rows.dtype)
        for _, span, squared in blocks.map(
            lambda span: matrix.distances(blocks.values(span), blocks.norms(span))
        ):
            distances[slice(*span)] = np.sqrt(squared)
        return distances, None


def _weights_of(weights: Array | None, rows: Array) -> Array:
    return np.ones(len(rows)) if weights is None else weights[rows]
