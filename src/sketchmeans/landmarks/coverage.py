"""Landmarks for rare groups of rows, which uniform ones miss."""

from __future__ import annotations

import numpy as np

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import Block, Rows, block_height
from sketchmeans.data.sampling import row_weights
from sketchmeans.kernels import Kernel, compute_gram, toarray
from sketchmeans.landmarks.base import Landmarks
from sketchmeans.numerics.linalg import Array, pseudo_inverse

#: Rows among which rare groups are looked for: all of up to so many.
PROBED_ROWS = 4096
#: A pivot is kept while it lowers the residual by this share of the cost; at most so
#: many are.
_GAIN, _MOST_PIVOTS = 0.005, 64


def cover_rare_rows(
    landmarks: Landmarks, rows: Rows, kernel: Kernel, numbers: Array, cost: float
) -> Landmarks:
    """Add those rows as landmarks that explain what the others leave unexplained.

    A centre cannot reach a group of rows outside the span of the landmarks, however
    small the group's part in all rows: with tight clusters it may still be a good part
    of the cost.  Rows are added greedily, the one of the largest residual
    ``k(x, x) − b_xᵀ M b_x`` first, as in incomplete Cholesky, while a row lowers the
    total residual by half a percent of the cost.  Where the residual is spread
    over all rows, as with kernels of slow decay, none is added.  Costs s·m² for s rows.

    Parameters
    ----------
    landmarks : Landmarks
        With row numbers.
    rows : Rows
    kernel : Kernel
    numbers : ndarray of shape (s,)
        The rows that are looked at.
    cost : float
        About what a row costs in the end.
    """
    assert landmarks.indices is not None
    wide = np.dtype(np.float64)
    points = rows.take(numbers)
    columns = kernel.against(landmarks.points, wide, rows.workers)
    gram = compute_gram(kernel, landmarks.points, rows.workers)
    inverse = pseudo_inverse(gram, dtype=rows.dtype)
    b = np.array(columns(points), dtype=wide)
    solved = inverse.solve(b.T)
    residual = kernel.diagonal(points) - np.einsum("ij,ji->i", b, solved)
    weights = row_weights(rows)[numbers]
    residual[weights == 0.0] = 0.0
    least = _GAIN * cost * weights.sum()
    factor = np.empty((len(numbers), 0))
    chosen: list[int] = []
    while len(chosen) < min(_MOST_PIVOTS, len(numbers)):
        pivot = int(residual.argmax())
        if residual[pivot] <= np.sqrt(np.finfo(rows.dtype).eps):
            break
        own = kernel.against(points[pivot : pivot + 1], wide, rows.workers)(points)
        column = np.array(own, dtype=wide)[:, 0] - b @ solved[:, pivot]
        column -= factor @ factor[pivot]
        column /= np.sqrt(residual[pivot])
        if weights @ np.minimum(np.square(column), residual) < least:
            break
        factor = np.column_stack([factor, column])
        residual = np.maximum(residual - np.square(column), 0.0)
        residual[pivot] = 0.0
        chosen.append(pivot)
    indices = np.concatenate([landmarks.indices, numbers[chosen]])
    if not chosen:
        return landmarks
    return Landmarks(kernel.points(rows, indices), indices)


def cover_columns(landmarks: Landmarks, rows: Rows, kernel: Kernel) -> Landmarks:
    """Add a row for each column in which all landmarks agree and other rows do not.

    Centres in the span of such landmarks could not move along that column: a rare flag,
    once it is scaled, may be a good part of the cost.  One pass over these columns.
    """
    points = toarray(landmarks.points)
    columns = np.flatnonzero((points == points[0]).all(axis=0))
    if landmarks.indices is None or not len(columns) or find_adapter(rows) is not None:
        return landmarks
    height = block_height(rows.n_features, 0)
    most, farthest = np.zeros(len(columns)), np.zeros(len(columns), dtype=np.intp)

    def find_farthest(block: Block) -> tuple[Array, Array]:
        gaps = np.abs(block[:, columns].astype(np.float64) - points[0, columns])
        places = gaps.argmax(axis=0)
        return gaps[places, np.arange(len(columns))], places

    for number, (gaps, places) in enumerate(rows.map(find_farthest, height)):
        further = gaps > most
        most[further] = gaps[further]
        farthest[further] = number * height + places[further]
    more = np.unique(farthest[most > 0.0])
    more = more[row_weights(rows)[more] > 0.0]
    if not len(more):
        return landmarks
    indices = np.concatenate([landmarks.indices, more])
    return Landmarks(kernel.points(rows, indices), indices)
