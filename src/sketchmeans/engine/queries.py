"""Passes that ask something of rows, and move no centres: see `passes`."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from sketchmeans.data.rows import block_slices, by_block
from sketchmeans.engine.assign import CenterMatrix
from sketchmeans.engine.bounds import CenterShifts, RowState
from sketchmeans.engine.passes import Reduction
from sketchmeans.engine.store import KernelBlocks, Span
from sketchmeans.engine.types import Centers
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.sums import TreeSum, merge_sums


class CostPass(Reduction):
    """A pass that adds up costs."""

    def combine(self, summaries: list[TreeSum]) -> TreeSum:
        return merge_sums(summaries)

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
class GatherStates(Reduction):
    """What a pass has left with all rows, brought here: a few numbers per row."""

    def chunk(
        self, blocks: KernelBlocks, state: RowState
    ) -> tuple[None, list[tuple[int, RowState]]]:
        return None, [(blocks.rows.first, state)]

    def combine(
        self, summaries: list[list[tuple[int, RowState]]]
    ) -> list[tuple[int, RowState]]:
        return [part for summary in summaries for part in summary]

    def finalize(self, summary: list[tuple[int, RowState]]) -> RowState:
        states = [state for _, state in sorted(summary, key=lambda part: part[0])]
        if len(states) == 1:
            return states[0]
        return RowState(
            *(
                np.concatenate([getattr(state, name) for state in states])
                for name in ("labels", "upper", "lower")
            )
        )


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
    ignored; an empty cluster gets the nearest row that was compared.
    """

    centers: Centers
    shifts: CenterShifts
    drift: Array
    reads = "rows"

    def chunk(
        self, blocks: KernelBlocks, state: RowState, labels: Array
    ) -> tuple[None, tuple[Array, ...]]:
        labels, weights = labels[:, 0], blocks.rows.weights
        rows = state.exemplar_candidates(labels, weights, self.drift, self.shifts)
        own, k = labels[rows], len(self.drift)
        squared = own_squared_distances(blocks, rows, own, self.centers)
        if weights is not None:
            squared[weights[rows] == 0.0] = np.inf
        least, place = nearest_members(own, squared, k)
        nearest, is_empty = rows[place] if len(rows) else place, np.isinf(least)
        for cluster in np.flatnonzero(is_empty).tolist():
            same = np.full(len(rows), cluster)
            squared = own_squared_distances(blocks, rows, same, self.centers)
            least[cluster] = squared.min(initial=np.inf)
            nearest[cluster] = rows[squared.argmin()] if len(rows) else 0
        numbers = blocks.rows.first + nearest
        return None, (is_empty[None], least[None], numbers[None])

    def combine(self, summaries: list[tuple[Array, ...]]) -> tuple[Array, ...]:
        found = [np.concatenate(parts) for parts in zip(*summaries, strict=True)]
        is_empty, distances, rows = found
        best = np.lexsort((rows, distances, is_empty), axis=0)[:1]
        return tuple(np.take_along_axis(part, best, axis=0) for part in found)

    def finalize(self, summary: tuple[Array, ...]) -> Array:
        return summary[2][0]


def nearest_members(labels: Array, distances: Array, k: int) -> tuple[Array, Array]:
    """Return the least distance in each cluster, and the first row that has it.

    The distance is infinite where there is none; the row is then the first of all.
    """
    least, rows = np.full(k, np.inf), np.zeros(k, dtype=np.intp)
    np.minimum.at(least, labels, distances)
    is_least = (distances == least[labels]) & np.isfinite(distances)
    nearest = np.flatnonzero(is_least)[::-1]
    rows[labels[nearest]] = nearest
    return least, rows


def own_squared_distances(
    blocks: KernelBlocks, rows: Array, own: Array, centers: Centers
) -> Array:
    """Return ``‖φ(x) − c‖²`` of ascending rows to a centre each, in float64.

    Kept kernel values are used where there are some: for exemplars that are equally
    near but for rounding, any of them will do.
    """
    space, kept = blocks.space, blocks.is_kept
    groups = (
        by_block(rows, space.height)
        if kept
        else list(enumerate(block_slices(len(rows), space.height)))
    )
    wide = np.dtype(np.float64)
    matrix = CenterMatrix(centers, wide, 1, is_euclidean=space.is_euclidean)

    def measure(group: tuple[int, Span]) -> Array:
        part = slice(*group[1])
        number, numbers = group[0], rows[part]
        b, norms = blocks.pick(number, numbers) if kept else blocks.take(numbers)
        return matrix.own_distances(b.astype(wide), norms, own[part])

    found = blocks.workers.map(measure, groups)
    return np.concatenate([np.empty(0), *found])


class RowPass(Reduction):
    """A pass that finds a value for every row, and nothing else."""

    centers: Centers

    @abstractmethod
    def allocate(self, blocks: KernelBlocks) -> Array:
        """Return an array for the values of all rows."""

    @abstractmethod
    def compute(self, matrix: CenterMatrix, blocks: KernelBlocks, span: Span) -> Array:
        """Return the values of the rows of a block."""

    def chunk(self, blocks: KernelBlocks) -> tuple[Array, None]:
        matrix, values = blocks.center_matrix(self.centers), self.allocate(blocks)
        for _, span, found in blocks.map(lambda s: self.compute(matrix, blocks, s)):
            values[slice(*span)] = found
        return values, None


@dataclass(frozen=True)
class Predict(RowPass):
    """The nearest centre of every row, without the sums of a pass."""

    centers: Centers

    def allocate(self, blocks: KernelBlocks) -> Array:
        return np.empty(len(blocks.rows), dtype=np.int32)

    def compute(self, matrix: CenterMatrix, blocks: KernelBlocks, span: Span) -> Array:
        norms = blocks.norms(span) if matrix.is_euclidean else 0.0
        return matrix.predict(blocks.values(span), norms)


@dataclass(frozen=True)
class AllDistances(RowPass):
    """The distances of all rows to all centres."""

    centers: Centers

    def allocate(self, blocks: KernelBlocks) -> Array:
        k = self.centers.squared_norms.size
        return np.empty((len(blocks.rows), k), dtype=blocks.rows.dtype)

    def compute(self, matrix: CenterMatrix, blocks: KernelBlocks, span: Span) -> Array:
        return np.sqrt(matrix.distances(blocks.values(span), blocks.norms(span)))
