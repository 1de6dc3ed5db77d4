"""Landmarks for rare groups of rows, which uniform ones miss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import (
    Block,
    Rows,
    block_height,
    block_slices,
    stack_parts,
)
from sketchmeans.data.sampling import row_weights
from sketchmeans.engine.blocks import BlockEngine
from sketchmeans.engine.costly import costly_rows
from sketchmeans.engine.space import FeatureSpace, LandmarkSpace, SpanSpace
from sketchmeans.engine.subsample import far_rows
from sketchmeans.engine.types import LloydResult
from sketchmeans.kernels import Kernel, compute_gram, is_given, toarray
from sketchmeans.landmarks.base import Landmarks
from sketchmeans.landmarks.growth import LandmarkPath
from sketchmeans.numerics.linalg import Array, pseudo_inverse

#: What of some points is outside a span: its squared length for each of them, and a
#: function from a point to the inner products of all with it.
Outside = tuple[Array, Callable[[int], Array]]

#: Rows that are searched for rare groups before a fit: all of up to this many.
PROBED_ROWS = 4096
#: After a fit, rows are checked that cost this many times the mean, if together they
#: have this share of the cost, as a group must have; at most this many of them.
_COSTLY, _COSTLY_SHARE, _COSTLY_ROWS = 8.0, 0.01, 1024
#: A row is of the group of a pivot that explains so much of its residual.
_ALIKE = 0.5
#: A pivot is kept while it lowers the residual by this share of the cost; at most so
#: many are.
_GAIN, _MOST_PIVOTS = 0.005, 64


def cover_missed_rows(
    found: Landmarks,
    path: LandmarkPath | None,
    rows: Rows,
    kernel: Kernel,
    rng: np.random.Generator,
) -> Landmarks:
    """Add landmarks for far rows and for rare groups, which uniform ones miss."""
    if is_given(kernel) or found.indices is None:
        return found
    more = np.setdiff1d(far_rows(rows, rng), found.indices)
    found = _extend(found, rows, kernel, more)
    if path is None:  # the kernel has features, and landmarks as many as these
        return cover_columns(found, rows, kernel)
    if not kernel.proven or len(rows) > PROBED_ROWS:
        return found
    return cover_rare_rows(found, rows, kernel, float(path.cost[-1]))


def cover_rare_rows(
    landmarks: Landmarks, rows: Rows, kernel: Kernel, cost: float
) -> Landmarks:
    """Add those rows as landmarks that explain what the others leave unexplained.

    A centre cannot reach a group of rows outside the span of the landmarks, however
    small the group's part in all rows: with tight clusters it may still be a good part
    of the cost.  Rows are added greedily, the one of the largest residual
    ``k(x, x) − b_xᵀ M b_x`` first, as in incomplete Cholesky, while a row lowers the
    total residual by half a percent of the `cost`, about what a row costs in the end.
    Where the residual is spread over all rows, as with kernels of slow decay, none is
    added.  Costs n·m².
    """
    gram = compute_gram(kernel, landmarks.points, rows.workers)
    inverse = pseudo_inverse(gram, dtype=rows.dtype)
    outside = _outside_landmarks(
        kernel, landmarks.points, lambda b: inverse.solve(b.T), rows
    )
    tiny = float(np.sqrt(np.finfo(rows.dtype).eps))
    weights = row_weights(rows)
    least = _GAIN * cost * weights.sum()
    chosen = _choose_pivots(*outside, weights, least, tiny)
    return _extend(landmarks, rows, kernel, np.array(chosen, dtype=np.intp))


def cover_costly_rows(
    landmarks: Landmarks, engine: BlockEngine, result: LloydResult
) -> Landmarks:
    """Add rows as landmarks that cost much because no centre can come near them.

    Of a group that is rare in a large table no uniform landmark need be a member, and
    to look at all rows before the fit would take long: the rows are found by what they
    cost in the end, which is known.  As in `cover_rare_rows`, those are added that
    explain the most of what is outside the span, if they stand for a group: rows of a
    wide cluster cost much, too, and have little in common.  Costs s·m² for at most
    1,024 rows, or nothing where no row costs much more than others.
    """
    rows, space = engine.rows, engine.space
    assert isinstance(space, SpanSpace)
    total = result.cost * rows.total_weight
    numbers, weights = _costly_rows(engine, result, total)
    if not len(numbers):
        return landmarks
    kernel = space.kernel
    if isinstance(space, LandmarkSpace):
        few = rows.subset(numbers, None)
        outside = _outside_landmarks(kernel, space.landmarks, space.coefficients, few)
    else:
        outside = _outside_features(space, rows.take(numbers))
    tiny = float(np.sqrt(np.finfo(rows.dtype).eps)) * result.cost
    least = _COSTLY_SHARE * total
    chosen = _choose_pivots(*outside, weights, least, tiny, _ALIKE)
    return _extend(landmarks, rows, kernel, numbers[chosen])


def _outside_landmarks(
    kernel: Kernel,
    landmarks: Block,
    solve: Callable[[Array], Array],
    rows: Rows,
) -> Outside:
    """Return what of some rows is outside the span of landmarks.

    `solve` turns kernel values ``b_x``, one row each, into columns ``M b_x``.
    """
    wide, height = (
        np.dtype(np.float64),
        block_height(rows.n_features, landmarks.shape[0]),
    )

    def values_with(points: Block) -> Array:
        columns = kernel.against(points, wide, rows.workers)
        parts = rows.map(lambda block: np.array(columns(block), dtype=wide), height)
        return stack_parts(parts, (len(rows), points.shape[0]))

    b = values_with(landmarks)
    solved = solve(b)
    diagonal = stack_parts(rows.map(kernel.diagonal, height), (len(rows),))

    def products_with(pivot: int) -> Array:
        own = values_with(rows.take(np.array([pivot])))
        return own[:, 0] - b @ solved[:, pivot]

    return diagonal - np.einsum("ij,ji->i", b, solved), products_with


def _outside_features(space: FeatureSpace, points: Block) -> Outside:
    """Return what of points is outside the span of landmarks with explicit features."""
    features = toarray(space.kernel_block(points)).astype(np.float64)
    rest = features - space.coefficients(features).T
    return np.einsum("ij,ij->i", rest, rest), lambda pivot: rest @ rest[pivot]


def _costly_rows(
    engine: BlockEngine, result: LloydResult, total: float
) -> tuple[Array, Array]:
    """Return rows that cost much more than others, with the weights they stand for."""
    rows = engine.rows
    limit = _COSTLY * total / rows.total_weight
    costly, own = costly_rows(engine, result, np.full(len(result.counts), limit))
    if own.sum() <= _COSTLY_SHARE * total:
        return costly[:0], own[:0]
    weights = np.ones(len(costly)) if rows.weights is None else rows.weights[costly]
    if len(costly) <= _COSTLY_ROWS:
        return costly, weights
    # At equal steps of their summed costs: no group that matters falls between two.
    edges = np.cumsum(own)
    marks = (np.arange(_COSTLY_ROWS) + 0.5) * (edges[-1] / _COSTLY_ROWS)
    drawn = np.unique(np.searchsorted(edges, marks))
    chances = np.minimum(own[drawn] * (_COSTLY_ROWS / edges[-1]), 1.0)
    return costly[drawn], weights[drawn] / chances


def _choose_pivots(
    residual: Array,
    products_with: Callable[[int], Array],
    weights: Array,
    least: float,
    tiny: float,
    alike: float = 0.0,
) -> list[int]:
    """Return pivots of an incomplete Cholesky factorisation, while they gain `least`.

    Parameters
    ----------
    residual : ndarray of shape (s,)
    products_with : callable
        See `Outside`.
    weights : ndarray of shape (s,)
    least : float
        By how much a pivot must lower the weighted sum of the residuals of rows ...
    alike : float
        ... of which it explains this share.
    tiny : float
        A residual that is rounding.
    """
    residual = np.where(weights > 0.0, residual, 0.0)
    factor = np.empty((len(residual), 0))
    chosen: list[int] = []
    while len(chosen) < min(_MOST_PIVOTS, len(residual)):
        pivot = int(residual.argmax())
        if residual[pivot] <= tiny:
            break
        column = products_with(pivot) - factor @ factor[pivot]
        column /= np.sqrt(residual[pivot])
        explained = np.minimum(np.square(column), residual)
        if weights @ np.where(explained >= alike * residual, explained, 0.0) < least:
            break
        factor = np.column_stack([factor, column])
        residual = np.maximum(residual - np.square(column), 0.0)
        residual[pivot] = 0.0
        chosen.append(pivot)
    return chosen


def _extend(landmarks: Landmarks, rows: Rows, kernel: Kernel, more: Array) -> Landmarks:
    """Return landmarks with further rows among them."""
    if not len(more):
        return landmarks
    assert landmarks.indices is not None
    indices = np.concatenate([landmarks.indices, more])
    return Landmarks(kernel.points(rows, indices), indices)


def cover_columns(landmarks: Landmarks, rows: Rows, kernel: Kernel) -> Landmarks:
    """Add a row for each column in which all landmarks agree and other rows do not.

    Centres in the span of such landmarks could not move along that column: a rare flag,
    once it is scaled, may be a good part of the cost.  One pass over these columns.
    """
    points = toarray(landmarks.points)
    columns = np.flatnonzero((points == points[0]).all(axis=0))
    if not len(columns) or find_adapter(rows) is not None:
        return landmarks
    counts = row_weights(rows) > 0.0
    most, farthest = np.zeros(len(columns)), np.zeros(len(columns), dtype=np.intp)

    def find_farthest(span: tuple[int, int]) -> tuple[Array, Array]:
        values = rows.block(*span)[:, columns].astype(np.float64)
        gaps = np.abs(values - points[0, columns]) * counts[slice(*span), None]
        places = gaps.argmax(axis=0)
        return gaps[places, np.arange(len(columns))], span[0] + places

    edges = block_slices(len(rows), block_height(rows.n_features, 0))
    for gaps, numbers in rows.workers.map(find_farthest, edges):
        further = gaps > most
        most[further] = gaps[further]
        farthest[further] = numbers[further]
    return _extend(landmarks, rows, kernel, np.unique(farthest[most > 0.0]))
