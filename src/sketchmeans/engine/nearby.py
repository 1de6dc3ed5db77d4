"""Passes against the centres near a row's own: approximate, and cheap for many centres.

Most rows that change their cluster move to one that is close by.  Where there are
hundreds of centres, a few passes in which a row is compared with the neighbours of its
own centre alone take most of the gain, before exact passes take the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sketchmeans.engine.assign import ClusterSums
from sketchmeans.engine.backend import LocalBackend
from sketchmeans.engine.blocks import BlockEngine
from sketchmeans.engine.passes import ClusterPass, PassSums, Sums
from sketchmeans.engine.store import KernelBlocks, Span
from sketchmeans.engine.types import Centers, PassResult, have_changed
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.sums import TreeSum

#: From this many centres on, a pass against the near ones is far cheaper than a full
#: one.
_MANY_CENTERS = 256

#: Neighbours of each centre that its rows are compared with, and centres whose rows are
#: compared together: a matrix product of a few rows at a time would be slow.
_NEIGHBOURS, _GROUP, _GROUPING_STEPS = 24, 16, 3

#: Centres whose distances to all others are one task.
_MEASURED = 128


def can_pass_nearby(engine: BlockEngine, centers: Centers) -> bool:
    """Say whether approximate passes are possible, and faster.

    They gather dense kernel values of rows in this process.
    """
    n_restarts, k = centers.squared_norms.shape
    is_local = isinstance(engine.backend, LocalBackend) and not engine.rows.is_sparse
    return n_restarts == 1 and k >= _MANY_CENTERS and is_local


@dataclass(frozen=True)
class CenterGroups:
    """Centres that lie together, and the centres near any one of them."""

    #: The group of each centre (k,).
    groups: Array
    #: The numbers of the centres near each group, ascending.
    candidates: list[Array]

    @classmethod
    def of(cls, centers: Centers, workers: Workers) -> CenterGroups:
        """Return groups of the centres of one restart."""
        distances = _distances_between(centers, workers)
        k = len(distances)
        width = min(_NEIGHBOURS, k)
        near = np.argpartition(distances, width - 1, axis=1)[:, :width]
        groups = _group(distances, -(-k // _GROUP))
        candidates = [
            np.unique(np.append(near[groups == group], np.flatnonzero(groups == group)))
            for group in range(int(groups.max()) + 1)
        ]
        return cls(groups, candidates)


def _distances_between(centers: Centers, workers: Workers) -> Array:
    """Return the squared distances (k, k) between the centres of one restart.

    The product of all of them would keep one thread busy, and the others idle.
    """
    means, points = centers.means[0], centers.coefficients[0].T
    lengths = centers.squared_norms[0]
    distances = np.empty((len(means), len(means)))

    def measure(rows: slice, part: Array) -> None:
        np.matmul(means[rows], points, out=part)
        part *= -2.0
        part += lengths
        part += lengths[rows, None]

    return workers.fill(distances, measure, _MEASURED)


def _group(distances: Array, size: int) -> Array:
    """Return the group of each point: of the nearest of some medoids."""
    medoids = np.unique(np.linspace(0, len(distances) - 1, size).astype(np.intp))
    for _ in range(_GROUPING_STEPS):
        groups = distances[:, medoids].argmin(axis=1)
        member = np.equal.outer(np.arange(len(medoids)), groups)
        spread = np.where(member, member.astype(np.float64) @ distances, np.inf)
        medoids = np.unique(np.append(spread.argmin(axis=1), medoids[~member.any(1)]))
    return np.asarray(
        np.unique(distances[:, medoids].argmin(axis=1), return_inverse=True)[1]
    )


@dataclass(frozen=True)
class NearbyPass(ClusterPass):
    """Assigns every row to the nearest of the centres near its own, as labels say."""

    centers: Centers
    groups: CenterGroups

    def shape(self) -> tuple[int, ...]:
        return self.centers.coefficients.shape

    def chunk(self, blocks: KernelBlocks, labels: Array) -> tuple[Array, Sums]:
        dtype, k = blocks.space.dtype, self.shape()[1]
        points = (-2.0 * self.centers.coefficients[0]).astype(dtype)
        lengths = self.centers.squared_norms[0].astype(dtype)
        columns = [points[near].T.copy() for near in self.groups.candidates]

        found = np.empty((len(blocks.rows), 1), dtype=np.int32)

        def assign(strip: list[Span]) -> ClusterSums:
            rows = slice(strip[0][0], strip[-1][1])
            groups = self.groups.groups[labels[rows, 0]]
            order = np.argsort(groups, kind="stable")
            b, norms = self._read(blocks, strip, order)
            new, low = np.empty((len(order), 1), np.int32), np.empty(len(order), dtype)
            edges = np.searchsorted(groups[order], np.arange(len(columns) + 1)).tolist()
            for group, near in enumerate(self.groups.candidates):
                part = slice(edges[group], edges[group + 1])
                scores = b[part] @ columns[group]
                scores += lengths[near]
                best = scores.argmin(axis=1)
                new[part, 0] = near[best]
                low[part] = scores[np.arange(len(best)), best]
            weights = blocks.rows.block_weights(rows.start, rows.stop)
            weights = None if weights is None else weights[order]
            clusters = ClusterSums.zeros(*self.shape())
            clusters.add_assigned(b, new, weights, dtype)
            costs = low + norms
            clusters.costs += costs.sum() if weights is None else weights @ costs
            found[rows.start + order] = new
            return clusters

        terms, counts = TreeSum(), TreeSum()
        for number, clusters in blocks.map_strips(assign, k):
            terms.add(number, clusters.flatten())
            counts.add(number, clusters.counts)
        changed = have_changed(labels, found, blocks.rows.weights)
        return found, Sums(terms, counts, changed)

    def _read(
        self, blocks: KernelBlocks, strip: list[Span], order: Array
    ) -> tuple[Array, Array]:
        """Return kernel values and norms of the rows of a strip in this order.

        The products of rows of a group, side by side, are one.
        """
        start, shape = strip[0][0], (len(order), self.shape()[2])
        lend = partial(blocks.workers.buffer, shape=shape, dtype=blocks.space.dtype)
        norms = np.empty(len(order))
        for span in strip:
            norms[span[0] - start : span[1] - start] = blocks.norms(span)
        if blocks.space.storable:
            b = lend("NearbyPass.read")
            for span in strip:
                b[span[0] - start : span[1] - start] = blocks.values(span)
        else:  # rows, which lie side by side as they are
            b = blocks.space.kernel_block(blocks.rows.block(start, strip[-1][1]))
        # Unlike an index, `take` lets other threads work.
        return b.take(
            order, axis=0, out=lend("NearbyPass.ordered"), mode="clip"
        ), norms[order]


class NearbyEngine:
    """Assigns rows as `NearbyPass` does, starting from given labels (n, 1)."""

    def __init__(self, engine: BlockEngine, labels: Any) -> None:
        self.rows = engine.rows
        self.update = engine.update
        self._engine = engine
        self._labels = labels

    def assign(self, centers: Centers, before: Any = None) -> PassResult:
        """Return every row's nearest centre among those near its own so far."""
        labels = self._labels if before is None else before
        nearby = NearbyPass(centers, CenterGroups.of(centers, self.rows.workers))
        state, found = self._engine.backend.run(nearby, labels)
        assert isinstance(found, PassSums)
        total = self.rows.total_weight
        return PassResult(
            state, found.costs / total, found.sums, found.counts, found.changed
        )

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        """Nothing is kept from pass to pass but labels, which the loop hands over."""
