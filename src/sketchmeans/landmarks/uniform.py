"""Landmarks drawn uniformly from the rows."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from sketchmeans.data.rows import Rows
from sketchmeans.kernels import Kernel
from sketchmeans.landmarks.base import Landmarks, draw_landmarks


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
        return draw_landmarks(rows, kernel, n_landmarks, rng, replace=self.replace)
