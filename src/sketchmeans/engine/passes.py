"""Passes over rows, each defined once for threads, files and clusters.

A `Reduction` says what a pass computes: `chunk` works through the rows of one place and
returns what stays with them and a small summary, `combine` merges summaries, and
`finalize` turns the last one into the result.  A `Backend` runs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from sketchmeans.engine.assign import ClusterSums
from sketchmeans.engine.bounds import CenterShifts, Reassign, RowState
from sketchmeans.engine.store import KernelBlocks, Span
from sketchmeans.engine.types import Centers, have_changed
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.sums import TreeSum, merge_sums


class Reduction(ABC):
    """A pass over all rows: what it computes, wherever they are."""

    #: What is read: kernel "blocks", single "rows", for which kept blocks are not
    #: enough, or "nothing" but what earlier passes left.
    reads = "blocks"

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
    """Sums over blocks, added up along the tree of their numbers."""

    #: Of the sums over clusters and of the costs, flattened.
    terms: TreeSum
    #: Of the weights of the clusters.
    counts: TreeSum
    #: Whether the label of a row that counts has changed, for each restart.
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
            merge_sums([part.terms for part in summaries]),
            merge_sums([part.counts for part in summaries]),
            np.any([part.changed for part in summaries], axis=0),
        )

    def finalize(self, summary: Sums) -> PassSums:
        shape = self.shape()
        total, size = summary.terms.total(), prod(shape)
        counts = summary.counts.total().reshape(shape[:2])
        return PassSums(
            total[:size].reshape(shape), counts, total[size:], summary.changed
        )


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

        kind = np.min_scalar_type(self.shape()[1])
        labels = np.empty((n_rows, n_restarts), dtype=kind)
        nearest = np.empty((2, n_rows if n_restarts == 1 else 0), blocks.space.dtype)

        def assign(strip: list[Span]) -> ClusterSums:
            clusters = ClusterSums.zeros(*self.shape())
            for span in strip:
                b, weights = blocks.values(span), blocks.weights(span)
                found, rows = matrix.assign(b, blocks.norms(span)), slice(*span)
                labels[rows] = found.labels
                dtype = np.dtype(np.float64) if found.is_repaired else matrix.dtype
                clusters.add_assigned(b, found.labels, weights, dtype)
                far = found.distances.astype(np.float64, copy=False)
                clusters.costs += far.sum(axis=0) if weights is None else weights @ far
                if n_restarts == 1:
                    nearest[0, rows] = found.distances[:, 0]
                    nearest[1, rows] = found.second
            return clusters

        terms, counts = TreeSum(), TreeSum()
        for number, clusters in blocks.map_strips(assign, matrix.n_centers):
            terms.add(number, clusters.flatten(), blocks.first)
            counts.add(number, clusters.counts, blocks.first)
        np.sqrt(np.maximum(nearest, 0.0, out=nearest), out=nearest)
        changed = have_changed(before, labels, blocks.rows.weights)
        return RowState(labels, *nearest), Sums(terms, counts, changed)


@dataclass(frozen=True)
class LoosenBounds(Reduction):
    """Loosens bounds for centres that moved; the result is how many rows may change."""

    shifts: CenterShifts
    #: Whether the bounds before are not needed again.
    in_place: bool = False
    reads = "nothing"

    def chunk(self, blocks: Any, state: RowState) -> tuple[RowState, int]:
        found = state.loosen(self.shifts, in_place=self.in_place)
        return found, int(np.count_nonzero(found.active))

    def combine(self, summaries: list[int]) -> int:
        return sum(summaries)


@dataclass(frozen=True)
class PartialPass(ClusterPass):
    """Assigns the active rows alone; sums are changes, and costs what is gained."""

    centers: Centers
    how: Reassign
    #: Whether the bounds before are not needed again; labels before always are.
    in_place: bool = False

    def shape(self) -> tuple[int, ...]:
        return self.centers.coefficients.shape

    @property
    def reads(self) -> str:  # type: ignore[override]
        return "rows" if self.how is Reassign.SINGLE else "blocks"

    def chunk(self, blocks: KernelBlocks, state: RowState) -> tuple[RowState, Sums]:
        matrix = blocks.center_matrix(self.centers)
        rows, active, k = blocks.rows, state.active, matrix.k
        single = self.how is Reassign.SINGLE

        labels = state.labels.copy()
        upper, lower = state.upper, state.lower
        if not self.in_place:
            upper, lower = upper.copy(), lower.copy()

        def reassign(strip: list[tuple[int, Span]]) -> ClusterSums | None:
            clusters: ClusterSums | None = None
            for number, span in strip:
                indices = span[0] + np.flatnonzero(active[slice(*span)])
                take = blocks.take if single else partial(blocks.pick, number)
                b, norms = take(indices)
                found = matrix.assign(b, norms)
                new, old = found.labels[:, 0], state.labels[indices, 0]
                labels[indices] = found.labels
                upper[indices] = np.sqrt(found.distances[:, 0])
                lower[indices] = np.sqrt(np.maximum(found.second, 0.0))
                moved = np.flatnonzero(new != old)
                if len(moved):
                    clusters = clusters or ClusterSums.zeros(1, k, matrix.n_columns)
                    weights = _weights_of(rows.weights, indices[moved])
                    new, old, b = new[moved], old[moved], b[moved].astype(np.float64)
                    clusters.costs += weights @ matrix.gains(b, old, new)
                    both = np.stack([weights, -weights], axis=1)
                    clusters.add(b, np.stack([new, old], axis=1), both, np.float64)
            return clusters

        groups = [
            (number, span)
            for number, span in enumerate(blocks.spans)
            if active[slice(*span)].any()
        ]
        strips = _strips(groups, blocks.strip_length(k))
        width = k + (rows.n_features if single else 0)
        work = (
            np.count_nonzero(active)
            * blocks.space.n_columns
            * width
            / max(len(strips), 1)
        )
        if not (rows.in_memory if single else blocks.is_ready):
            work = np.inf
        found = blocks.workers.map(reassign, list(strips.values()), work)
        terms, counts = TreeSum(), TreeSum()
        if 0 not in strips:  # blocks left out are zero, but there must be one
            terms.add(blocks.first, np.zeros(k * matrix.n_columns + 1))
        for (number, strip), change in zip(strips.items(), found, strict=True):
            blocks.on_rows(strip[-1][1][1], len(rows))
            if change is not None:  # added up at once: all together take much memory
                terms.add(blocks.first + number, change.flatten(), blocks.first)
            elif number == 0:
                terms.add(blocks.first, np.zeros(k * matrix.n_columns + 1))
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

        def add(strip: list[Span]) -> ClusterSums:
            clusters = ClusterSums.zeros(*self.shape())
            for span in strip:
                own, weights = labels[slice(*span)], blocks.weights(span)
                norms = np.broadcast_to(blocks.norms(span), len(own))
                clusters.costs += norms.sum() if weights is None else weights @ norms
                b = blocks.values(span)
                clusters.add_assigned(b, own, weights, blocks.space.dtype)
            return clusters

        terms, counts = TreeSum(), TreeSum()
        for number, clusters in blocks.map_strips(add, self.n_restarts * self.k):
            terms.add(number, clusters.flatten(), blocks.first)
            counts.add(number, clusters.counts, blocks.first)
        return None, Sums(terms, counts, np.ones(self.n_restarts, dtype=bool))


def _weights_of(weights: Array | None, rows: Array) -> Array:
    return np.ones(len(rows)) if weights is None else weights[rows]


def _strips(
    groups: list[tuple[int, Span]], length: int
) -> dict[int, list[tuple[int, Span]]]:
    """Return the groups of a few blocks each, by the number of the first block."""
    strips: dict[int, list[tuple[int, Span]]] = {}
    for group in groups:
        strips.setdefault(group[0] // length * length, []).append(group)
    return strips
