"""The landmarks of a Nyström fit: chosen or given, and how many."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchmeans.data.rows import Rows
from sketchmeans.kernels import Kernel
from sketchmeans.landmarks import (
    LandmarkPath,
    Landmarks,
    choose_landmarks,
    is_selector,
    read_landmarks,
)
from sketchmeans.numerics.memory import memory_budget
from sketchmeans.reduction import is_reduced


def select_landmarks(
    model: Any,
    rows: Rows,
    kernel: Kernel,
    rng: np.random.Generator,
    growth_rng: np.random.Generator,
) -> tuple[Landmarks, LandmarkPath | None]:
    """Return the landmarks of a fit, and how their number was found."""
    given = model.landmarks
    if is_reduced(rows) and not is_selector(given):
        view: Any = rows
        # Points are of the space of X: they are checked there, and then reduced.
        read = read_landmarks(given, view.source, kernel)
        given = view.points(read.points) if read.indices is None else read.indices
    return choose_landmarks(
        given,
        model.n_landmarks,
        rows,
        kernel,
        model.n_clusters,
        (rng, growth_rng),
        memory_budget(model.max_memory),
    )
