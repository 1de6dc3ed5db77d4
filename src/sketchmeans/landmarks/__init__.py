"""Which points stand for the rest: landmark selectors, and how many are enough."""

from __future__ import annotations

from sketchmeans.landmarks.base import Landmarks, LandmarkSelector, draw_distinct_rows
from sketchmeans.landmarks.choice import (
    SELECTORS,
    as_selector,
    choose_landmarks,
    is_selector,
    read_landmarks,
    select_landmarks,
)
from sketchmeans.landmarks.dpp import KDPP
from sketchmeans.landmarks.growth import LandmarkPath, choose_n_landmarks
from sketchmeans.landmarks.kmeanspp import Centroids, KernelKMeansPlusPlus
from sketchmeans.landmarks.pivots import Cholesky, Greedy, RandomCholesky
from sketchmeans.landmarks.potential import landmark_potential
from sketchmeans.landmarks.sampling import (
    BottomUp,
    ColumnNorm,
    Diagonal,
    Leverage,
    RidgeLeverage,
    Uniform,
)

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
    "choose_landmarks",
    "choose_n_landmarks",
    "draw_distinct_rows",
    "is_selector",
    "landmark_potential",
    "read_landmarks",
    "select_landmarks",
]
