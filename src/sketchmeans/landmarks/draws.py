"""What the selectors that draw rows share: draws, subsamples, small kernel blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Rows
from sketchmeans.kernels import Kernel, Precomputed
from sketchmeans.landmarks.base import Landmarks, first_of_each, warn_if_fewer
from sketchmeans.numerics.linalg import Array


def draw(mass: Array, size: int, rng: np.random.Generator) -> Array:
    """Return numbers drawn with replacement, in proportion to a mass that is not zero.

    Examples
    --------
    >>> import numpy as np
    >>> draw(np.array([0.0, 2.0, 0.0]), 3, np.random.default_rng(0))
    array([1, 1, 1])
    """
    edges = np.cumsum(mass, dtype=np.float64)
    drawn = np.searchsorted(edges, rng.random(size) * edges[-1], side="right")
    # Rounding can carry a draw past the last edge, on to a number without mass.
    return np.minimum(drawn, np.flatnonzero(mass)[-1])


def draw_rows(rows: Rows, size: int, rng: np.random.Generator) -> Array:
    """Return row numbers drawn with replacement, in proportion to their weight.

    O(size) for unweighted rows, O(n + size log n) for weighted ones.
    """
    if rows.weights is None:
        return rng.integers(len(rows), size=size)
    return draw(rows.weights, size, rng)


def subsample(
    rows: Rows, kernel: Kernel, size: int | None, rng: np.random.Generator
) -> tuple[Rows, Array]:
    """Return at most `size` random rows as a source of their own, and their numbers.

    Weighted rows are drawn in proportion to their weight; how often a row was drawn
    is its weight in the subsample.  A precomputed kernel knows its rows by their
    place in the matrix, so it is never subsampled.
    """
    if size is None or len(rows) <= size or isinstance(kernel, Precomputed):
        return rows, np.arange(len(rows))
    if rows.weights is None:
        numbers = np.sort(rng.choice(len(rows), size, replace=False))
        return rows.subset(numbers, None), numbers
    numbers, counts = np.unique(draw(rows.weights, size, rng), return_counts=True)
    return rows.subset(numbers, counts.astype(np.float64)), numbers


def kernel_between(rows: Rows, kernel: Kernel, left: Array, right: Array) -> Array:
    """Return ``k(X[left], X[right])`` of a few rows, in float64."""
    columns = kernel.against(kernel.points(rows, right), np.float64, rows.workers)
    return columns(rows.take(left))


def value_type(rows: Rows, kernel: Kernel) -> np.dtype[Any]:
    """Return the float type whose roundings a kernel value asked for in float64 has."""
    return rows.dtype if isinstance(kernel, Precomputed) else np.dtype(np.float64)


def landmarks_at(
    rows: Rows, kernel: Kernel, indices: Array, n_landmarks: int
) -> Landmarks:
    """Return the landmarks at these rows, no value twice, and warn if they are few."""
    # Where kernel values are far above their rounding, equal rows may seem apart.
    indices = indices[first_of_each(kernel.points(rows, indices))]
    warn_if_fewer(len(indices), n_landmarks)
    return Landmarks(kernel.points(rows, indices), indices)


def centroid_landmarks(rows: Rows, centers: Array) -> Landmarks:
    """Return the landmarks at these points of the input space, no point twice.

    They take the form of the rows: their float type, dense or CSR.
    """
    points = centers.astype(rows.dtype, copy=False)
    points = points[first_of_each(points)]
    return Landmarks(sparse.csr_array(points) if rows.is_sparse else points)
