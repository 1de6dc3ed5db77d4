"""Rows that cost much, found where they are: only their numbers travel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchmeans.engine.blocks import BlockEngine, as_columns
from sketchmeans.engine.bounds import RowState
from sketchmeans.engine.passes import Reduction
from sketchmeans.engine.store import KernelBlocks
from sketchmeans.engine.types import LloydResult
from sketchmeans.numerics.linalg import Array


def cluster_costs(engine: BlockEngine, result: LloydResult) -> Array:
    """Return what the rows of each cluster cost at most, as bounds of passes say."""
    state, labels = engine.row_state(result), as_columns(result.labels)
    costs = ClusterCosts(len(result.counts))
    found: Array = engine.backend.run(costs, state, labels)[1]
    return found


def costly_rows(
    engine: BlockEngine, result: LloydResult, limits: Array
) -> tuple[Array, Array]:
    """Return the rows that cost more than the limit of their cluster, and their costs.

    A limit is for a row of weight one.
    """
    state, labels = engine.row_state(result), as_columns(result.labels)
    numbers, costs = engine.backend.run(CostlyRows(limits), state, labels)[1]
    return numbers, costs


@dataclass(frozen=True)
class ClusterCosts(Reduction):
    """The costs of the rows of each cluster, by the upper bounds of a pass."""

    k: int
    reads = "rows"

    def chunk(
        self, blocks: KernelBlocks, state: RowState, labels: Array
    ) -> tuple[None, Array]:
        total = np.zeros(self.k)
        for part in state.parts():
            costs = _row_costs(state, blocks.rows.weights, part)
            total += np.bincount(labels[part, 0], costs, minlength=self.k)
        return None, total

    def combine(self, summaries: list[Array]) -> Array:
        return np.sum(summaries, axis=0)


@dataclass(frozen=True)
class CostlyRows(Reduction):
    """Numbers and costs of the rows beyond the limit of their cluster."""

    limits: Array
    reads = "rows"

    def chunk(
        self, blocks: KernelBlocks, state: RowState, labels: Array
    ) -> tuple[None, tuple[Array, Array]]:
        weights, first = blocks.rows.weights, blocks.rows.first
        found = [(np.empty(0, dtype=np.intp), np.empty(0))]
        for part in state.parts():
            costs = single = _row_costs(state, weights, part)
            if weights is not None:
                own = weights[part]
                single = costs / np.where(own > 0.0, own, 1.0)
            far = np.flatnonzero(single > self.limits[labels[part, 0]])
            found.append((first + part.start + far, costs[far]))
        return None, self.combine(found)

    def combine(self, summaries: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        numbers, costs = (np.concatenate(part) for part in zip(*summaries, strict=True))
        order = np.argsort(numbers, kind="stable")
        return numbers[order], costs[order]


def _row_costs(state: RowState, weights: Array | None, part: slice) -> Array:
    costs = np.square(state.upper[part], dtype=np.float64)
    return costs if weights is None else costs * weights[part]
