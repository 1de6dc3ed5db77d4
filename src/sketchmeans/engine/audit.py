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
from sketchmeans.kernels.arrays import squared_norms
from sketchmeans.numerics.linalg import CANCELLATION_ROUNDINGS, Array

#: Rows that are checked where checking all of them would take too long: of wide ones
#: fewer, so that they have no more values than this.
_SAMPLE_ROWS, _LEAST_ROWS, _SAMPLE_VALUES = 256, 32, 2**20

#: Points with up to this many values are all checked, and others if a sample leaves
#: doubts; it has so many rows.
_FEW_VALUES, _SAMPLE_POINTS = 2**19, 4096

#: Roundings, or share, by which the cost of rows of the sample may be off, and the
#: standard error of the total that it stands for.
_ROUNDINGS, _EXACT, _STANDARD_ERROR = 32.0, 1e-9, 3e-4

#: Of so many rows one is computed as in passes; of all the cost is known.
_CHECKED = 4

#: Rows that cost this many times the mean are all checked, or as many as the sample.
_FAR = 16.0

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

    In a Euclidean space all rows are checked, and the cost is replaced, unless a sample
    of many rows shows that it is exact.  Elsewhere a few rows are checked, and it is
    compared.  Costs n·d, or a few hundred rows.
    """
    space, rows = engine.space, engine.rows
    if space.is_euclidean and _is_exact(engine, result):
        return Audit(result.cost, True)
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
    most = min(_SAMPLE_ROWS, max(_LEAST_ROWS, _SAMPLE_VALUES // rows.n_features))
    numbers = _at_equal_steps(len(rows), most)
    here, precise = _both_costs(engine, result, numbers)
    scale = _mean_norm(space, engine, numbers)
    noise = CANCELLATION_ROUNDINGS * float(np.finfo(space.dtype).eps) * scale
    if result.cost >= noise:
        return Audit(result.cost, _agree(here, precise))
    are_equal = _are_exemplars(engine, result, numbers)
    # Rows that are their own centres cost nothing, whatever rounding leaves of them.
    cost = 0.0 if are_equal and len(numbers) == len(rows) else result.cost
    return Audit(cost, are_equal)


def _is_exact(engine: BlockEngine, result: LloydResult) -> bool:
    """Say whether a sample of many points shows that their cost is exact.

    The squares of the bounds ``u >= ‖x − c‖`` that the last pass has left are known for
    all rows; times the share of them that the sampled rows cost they are an estimate of
    the cost that has hardly any variance.  Rows that cost far more than others, and
    those of clusters that the sample would miss, are checked with it: each kind has to
    cost what differences of points in float64 say, but for roundings.
    """
    rows, state = engine.rows, engine.state_at(result)
    is_large = (
        len(rows) * rows.n_features > _FEW_VALUES and len(rows) > 4 * _SAMPLE_POINTS
    )
    if state is None or rows.is_sparse or not is_large:
        return False
    n, labels = len(rows), state.labels[:, 0]
    sampled = _at_equal_steps(n, _SAMPLE_POINTS)
    squares = np.square(state.upper)
    if rows.weights is not None:
        squares *= rows.weights.astype(squares.dtype)
    total = float(squares.sum(dtype=np.float64))
    # Of a cluster of so many rows the sample has some.
    small = np.bincount(labels, minlength=len(result.counts)) < 8 * n / len(sampled)
    kinds = [sampled, np.flatnonzero(squares > _FAR / n * total)]
    kinds += [np.flatnonzero(small[labels])] if small.any() else []
    few = [
        kind[_at_equal_steps(len(kind), _SAMPLE_POINTS)] for kind in kinds if len(kind)
    ]
    table = CenterMatrix(
        result.centers, engine.space.dtype, _SAMPLE_POINTS, is_euclidean=True
    )
    eps = float(np.finfo(engine.space.dtype).eps)
    for numbers in few:
        here, precise = _both_distances(engine, table, result, numbers)
        same = precise[::_CHECKED]
        if abs(here.sum() - same.sum()) > max(_ROUNDINGS * eps, _EXACT) * same.sum():
            return False
        if numbers is few[0]:
            own = precise if rows.weights is None else precise * rows.weights[numbers]
            bounds = squares[numbers].astype(np.float64)
            ratio = own.sum() / max(bounds.sum(), np.finfo(float).tiny)
            spread = float(np.std(own - ratio * bounds)) * n / np.sqrt(len(own))
            cost = result.cost * rows.total_weight
            is_known = spread <= _STANDARD_ERROR * cost
            off = abs(ratio * total - cost)
            if not is_known or off > 3.0 * spread + TOLERANCE / 10.0 * cost:
                return False
    return True


def _both_distances(
    engine: BlockEngine, table: CenterMatrix, result: LloydResult, numbers: Array
) -> tuple[Array, Array]:
    """Return squared distances of some in the engine's arithmetic, and of all precise.

    The latter are from differences of points in float64.
    """
    b = engine.space.kernel_block(engine.rows.take(numbers))
    gaps = result.centers.coefficients[0].take(result.labels[numbers], axis=0)
    gaps -= b
    some = np.ascontiguousarray(b[::_CHECKED])
    here = table.assign(some, squared_norms(some)).distances[:, 0]
    return here.astype(np.float64), np.einsum("ij,ij->i", gaps, gaps)


def _at_equal_steps(n: int, most: int) -> Array:
    """Return numbers of rows at equal steps, not many more than `most`."""
    step = max(1, n // most)
    return np.arange(step // 2, n, step)


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
