"""Row numbers: drawn by weight, or the first rows that count."""

from __future__ import annotations

import numpy as np

from sketchmeans.data.rows import Rows
from sketchmeans.numerics.linalg import Array


def row_weights(rows: Rows) -> Array:
    """Return the weights of all rows, ones where there are none."""
    return np.ones(len(rows)) if rows.weights is None else rows.weights


def first_rows(rows: Rows, count: int) -> Array:
    """Return the numbers of the first rows of positive weight, at most `count`."""
    if rows.weights is None:
        return np.arange(min(count, len(rows)))
    return np.flatnonzero(rows.weights)[:count]


def draw(weights: Array, size: int, rng: np.random.Generator) -> Array:
    """Return numbers drawn with replacement, in proportion to their weights.

    Examples
    --------
    >>> import numpy as np
    >>> draw(np.array([0.0, 2.0, 0.0]), 3, np.random.default_rng(0))
    array([1, 1, 1])
    """
    edges = np.cumsum(weights, dtype=np.float64)
    drawn = np.searchsorted(edges, rng.random(size) * edges[-1], side="right")
    # Rounding can carry a draw past the last edge, to a number of weight zero.
    return np.minimum(drawn, np.flatnonzero(weights)[-1])


def sample_rows(rows: Rows, size: int, rng: np.random.Generator) -> Array:
    """Return `size` row numbers that stand for all rows, each with the same weight.

    Unweighted rows are drawn without replacement, weighted rows in proportion to their
    weight with replacement.
    """
    if rows.weights is None:
        return rng.choice(len(rows), size, replace=False)
    return draw(rows.weights, size, rng)
