"""Landmarks by the size of their column: diagonal entries and column norms."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from sketchmeans.data.rows import Block, Rows, block_height, filled
from sketchmeans.kernels import Kernel
from sketchmeans.landmarks.base import Landmarks, draw_landmarks, row_weights
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import check_integer


class Diagonal(BaseEstimator):
    """Rows drawn with probability proportional to ``w_i k(x_i, x_i)``.

    Drineas & Mahoney draw in proportion to ``k(x_i, x_i)²``, where the error bound is
    additive; the first power is each row's share of the trace (OG17 §4.1).  For
    kernels of constant diagonal, such as rbf, the draws are uniform.  Costs O(n·d).

    Parameters
    ----------
    replace : bool, default=False
        With replacement a row may be drawn again, and `Landmarks.weights` are set.

    References
    ----------
    Drineas & Mahoney, "On the Nyström method for approximating a Gram matrix for
    improved kernel-based learning", JMLR 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import select_landmarks
    >>> X = np.array([[1.0], [0.0], [0.0], [0.0]])
    >>> select_landmarks(X, 1, "diagonal", kernel="linear", random_state=0).indices
    array([0])
    """

    def __init__(self, replace: bool = False) -> None:
        self.replace = replace

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks; their scores are ``w_i k(x_i, x_i)``."""
        # Only an indefinite kernel has negative entries.
        scores = row_weights(rows) * np.maximum(kernel.row_diagonal(rows), 0.0)
        return draw_landmarks(
            rows, kernel, n_landmarks, rng, scores=scores, replace=self.replace
        )


class ColumnNorm(BaseEstimator):
    """Rows drawn with probability proportional to the squared norm of their column.

    The weighted kernel matrix ``D^½ K D^½`` has the squared column norms
    ``w_i Σ_j w_j k(x_i, x_j)²``.  Costs n·min(n, max_columns)·d and memory for one
    block of rows: with more than `max_columns` rows the sum over j is taken over so
    many rows drawn uniformly (by weight), an unbiased estimate up to a factor.

    Parameters
    ----------
    max_columns : int, default=2000
        Most rows over which the norms are summed.
    replace : bool, default=False
        With replacement a row may be drawn again, and `Landmarks.weights` are set.

    References
    ----------
    Drineas, Kannan & Mahoney, "Fast Monte Carlo algorithms for matrices II",
    SIAM J. Comput. 2006.  OG17 §4.1.
    """

    def __init__(self, max_columns: int = 2000, replace: bool = False) -> None:
        self.max_columns = max_columns
        self.replace = replace

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks; their scores are the squared column norms."""
        size = check_integer("max_columns", self.max_columns)
        columns, weights = _sampled_columns(rows, size, rng)
        scores = row_weights(rows) * squared_column_norms(
            rows, kernel, columns, weights
        )
        return draw_landmarks(
            rows, kernel, n_landmarks, rng, scores=scores, replace=self.replace
        )


def squared_column_norms(
    rows: Rows, kernel: Kernel, columns: Array, weights: Array
) -> Array:
    """Return ``Σ_j weights_j k(x_i, x_j)²`` for all rows i, over the rows `columns`."""
    diagonal = np.maximum(kernel.row_diagonal(rows), 0.0)
    # |k(x, z)|² <= k(x, x) k(z, z): scaled by the largest, no square overflows.
    scale = float(diagonal.max()) or 1.0
    values_of = kernel.against(kernel.points(rows, columns), rows.dtype, rows.workers)
    shares = (weights / weights.sum()).astype(rows.dtype)
    kind, buffer = rows.dtype, rows.workers.buffer

    def norms_of(block: Block) -> Array:
        out = buffer("columns", (block.shape[0], len(columns)), kind)
        values = values_of(block, out)
        values /= kind.type(scale)
        np.square(values, out=values)
        return values @ shares

    height = block_height(rows.n_features, len(columns))
    norms = filled(rows.map(norms_of, height), (len(rows),))
    return norms * (scale**2 * float(weights.sum()))


def _sampled_columns(
    rows: Rows, size: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return at most `size` row numbers and weights that stand for all rows."""
    if len(rows) <= size:
        return np.arange(len(rows)), row_weights(rows)
    share = None if rows.weights is None else rows.weights / rows.total_weight
    columns = rng.choice(len(rows), size, replace=share is not None, p=share)
    return np.sort(columns), np.full(size, rows.total_weight / size)
