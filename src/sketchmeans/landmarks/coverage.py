"""Landmarks for rare groups of rows, which uniform ones miss."""

from __future__ import annotations

import numpy as np

from sketchmeans.data.rows import Rows
from sketchmeans.data.sampling import row_weights
from sketchmeans.kernels import Kernel, compute_gram
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
