"""A second look at a result: its cost, computed in a way that keeps digits.

Squared distances are small differences of large numbers where clusters are tight and
far from the origin of the feature space.  They are computed once more at the end of a
fit, by differences of points where there are points, in float64 where there are not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from sketchmeans.engine.assign import CenterMatrix
from sketchmeans.engine.blocks import BlockEngine
from sketchmeans.engine.queries import OwnCosts
from sketchmeans.engine.space import LandmarkSpace, Space
from sketchmeans.engine.types import LloydResult
from sketchmeans.numerics.linalg import CANCELLATION_ROUNDINGS, Array

#: Rows that are checked where checking all of them would take too long.
_SAMPLE_ROWS = 256

#: Share by which the two costs may differ.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Audit:
    """What a second look at a result has shown.

    Attributes
    ----------
    cost : float
        ``W`` of the labels and centres, as precise as it is known.
    is_sound : bool
        Whether rounding is a small part of it.
    distances : ndarray of shape (n,), optional
        Squared distances of all rows to their centres, if all were checked.
    """

    cost: float
    is_sound: bool
    distances: Array | None = None


def audit(engine: BlockEngine, result: LloydResult) -> Audit:
    """Look at the cost of a result again.

    In a Euclidean space all rows are checked, and the cost is replaced.  Elsewhere a
    few rows are, and it is compared.  Costs n·d, or a few hundred rows.
    """
    space, rows = engine.space, engine.rows
    if space.is_euclidean:
        if not isinstance(result.labels, np.ndarray):  # they stay with the rows
            total = engine.backend.run(OwnCosts(result.centers), result.labels)[1]
            cost = total / rows.total_weight
            return Audit(cost, _agree(cost, result.cost))
        costs = engine.own_costs(result.labels, result.centers)
        cost = float(costs.sum()) / rows.total_weight
        if rows.weights is not None:
            costs /= np.where(rows.weights > 0.0, rows.weights, 1.0)
        return Audit(cost, _agree(cost, result.cost), costs)
    step = max(1, len(rows) // _SAMPLE_ROWS)
    numbers = np.arange(step // 2, len(rows), step)
    here, precise = _both_costs(engine, result, numbers)
    scale = _mean_norm(space, engine, numbers)
    noise = CANCELLATION_ROUNDINGS * float(np.finfo(space.dtype).eps) * scale
    if result.cost >= noise:
        return Audit(result.cost, _agree(here, precise))
    are_equal = _are_exemplars(engine, result, numbers)
    # Rows that are their own centres cost nothing, whatever rounding leaves of them.
    cost = 0.0 if are_equal and len(numbers) == len(rows) else result.cost
    return Audit(cost, are_equal)


def audit_result(engine: BlockEngine, result: LloydResult) -> tuple[LloydResult, bool]:
    """Return the result with the cost that was found, and whether that is sound."""
    found = audit(engine, result)
    path = [*result.cost_path[:-1], found.cost]
    precise = replace(
        result, cost=found.cost, cost_path=path, distances=found.distances
    )
    return precise, found.is_sound


def _are_exemplars(engine: BlockEngine, result: LloydResult, numbers: Array) -> bool:
    """Say whether rows are equal to their exemplars, and so cost nothing."""
    exemplars = engine.exemplars(result.centers, result.labels)
    if engine.rows.weights is not None:
        numbers = numbers[engine.rows.weights[numbers] > 0.0]
    rows = engine.rows.take(numbers)
    same = engine.rows.take(exemplars[np.asarray(result.labels[numbers])])
    if sparse.issparse(rows):
        return bool((rows != same).nnz == 0)
    return bool((rows == same).all())


def _agree(cost: float, other: float) -> bool:
    return abs(cost - other) <= TOLERANCE * max(cost, other)


def _both_costs(
    engine: BlockEngine, result: LloydResult, numbers: Array
) -> tuple[float, float]:
    """Return the cost of some rows in the engine's arithmetic, and in float64."""
    space = engine.space
    block, labels = engine.rows.take(numbers), np.asarray(result.labels[numbers])
    constant = space.constant_norm
    norms = space.row_norms(block, numbers) if constant is None else constant
    costs = []
    for dtype in (space.dtype, np.dtype(np.float64)):
        own = space
        if isinstance(space, LandmarkSpace) and dtype != space.dtype:
            own = space.in_float64()
        table = CenterMatrix(
            result.centers, dtype, len(numbers), is_euclidean=space.is_euclidean
        )
        b = own.kernel_block(block)
        costs.append(float(table.own_distances(b, norms, labels).sum()))
    return costs[0], costs[1]


def _mean_norm(space: Space, engine: BlockEngine, numbers: Array) -> float:
    if space.constant_norm is not None:
        return space.constant_norm
    return float(np.mean(space.row_norms(engine.rows.take(numbers), numbers)))
