"""Landmarks drawn uniformly from the rows."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from sketchmeans.kernels import Kernel
from sketchmeans.landmarks.base import Landmarks, first_of_each, warn_if_fewer
from sketchmeans.linalg import Array
from sketchmeans.rows import Rows


class Uniform(BaseEstimator):
    """Rows drawn at random, with probability proportional to their weight.

    Costs O(m) for unweighted rows and O(n log n) for weighted ones.

    Parameters
    ----------
    replace : bool, default=False
        Without replacement, successive draws skip rows whose values are landmarks
        already, so repeated rows and weights give the same law.  With replacement
        a row may be drawn again, as in the theory (CR18 Lemma 1).
    """

    def __init__(self, replace: bool = False) -> None:
        self.replace = replace

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks."""
        if self.replace:
            share = None if rows.weights is None else rows.weights / rows.total_weight
            indices = rng.choice(len(rows), n_landmarks, p=share)
        else:
            indices = _successive_draws(rows, n_landmarks, rng)
            warn_if_fewer(len(indices), n_landmarks)
        return Landmarks(kernel.points(rows, indices), indices)


def _successive_draws(rows: Rows, size: int, rng: np.random.Generator) -> Array:
    """Return `size` rows of distinct values, or all distinct values."""
    if rows.weights is None:
        # Most data repeat few rows: try with little more than what is wanted.
        order = rng.choice(len(rows), min(len(rows), size + 64), replace=False)
        chosen = order[first_of_each(rows.take(order))][:size]
        if len(chosen) == size or len(order) == len(rows):
            return chosen
        rest = np.setdiff1d(np.arange(len(rows)), order, assume_unique=True)
        order = np.concatenate([order, rng.permutation(rest)])
    else:
        # Sorted exponential times / weight are successive weighted draws.
        positive = np.flatnonzero(rows.weights)
        times = rng.exponential(size=len(positive)) / rows.weights[positive]
        order = positive[np.argsort(times, kind="stable")]
    return _leading_distinct(rows, order, size)


def _leading_distinct(rows: Rows, order: Array, size: int) -> Array:
    """Return the first `size` rows of an order that differ from all before them."""
    chosen = np.empty(0, dtype=np.intp)
    for start in range(0, len(order), max(size, 1024)):
        part = np.concatenate([chosen, order[start : start + max(size, 1024)]])
        chosen = part[first_of_each(rows.take(part))][:size]
        if len(chosen) == size:
            break
    return chosen
