"""Which points stand for the rest: one file for each family of landmark selectors."""

from __future__ import annotations

from sketchmeans.landmarks.base import (
    Landmarks,
    LandmarkSelector,
    successive_draws,
)
from sketchmeans.landmarks.centroids import Centroids
from sketchmeans.landmarks.choice import (
    SELECTORS,
    as_selector,
    chosen_landmarks,
    is_selector,
    select_landmarks,
)
from sketchmeans.landmarks.diagonal import ColumnNorm, Diagonal
from sketchmeans.landmarks.dpp import KDPP
from sketchmeans.landmarks.given import check_given_matrix, read_landmarks
from sketchmeans.landmarks.growth import LandmarkPath, grown
from sketchmeans.landmarks.kmeanspp import KernelKMeansPlusPlus
from sketchmeans.landmarks.leverage import BottomUp, Leverage, RidgeLeverage
from sketchmeans.landmarks.pivots import Cholesky, Greedy, RandomCholesky
from sketchmeans.landmarks.uniform import Uniform

__all__ = [
    "KDPP",
    "SELECTORS",
    "BottomUp",
    "Centroids",
    "Cholesky",
    "ColumnNorm",
    "Diagonal",
    "Greedy",
    "KernelKMeansPlusPlus",
    "LandmarkPath",
    "LandmarkSelector",
    "Landmarks",
    "Leverage",
    "RandomCholesky",
    "RidgeLeverage",
    "Uniform",
    "as_selector",
    "check_given_matrix",
    "chosen_landmarks",
    "grown",
    "is_selector",
    "read_landmarks",
    "select_landmarks",
    "successive_draws",
]
