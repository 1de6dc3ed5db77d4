"""The landmarks of a Nyström fit: chosen or given, and how many."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchmeans.data.rows import Rows
from sketchmeans.engine.subsample import far_rows
from sketchmeans.kernels import Kernel, is_given
from sketchmeans.landmarks import (
    LandmarkPath,
    Landmarks,
    chosen_landmarks,
    grown,
    is_selector,
    read_landmarks,
    successive_draws,
)
from sketchmeans.numerics.memory import memory_budget
from sketchmeans.reduction import ReducedRows


def select_landmarks(
    model: Any,
    rows: Rows,
    kernel: Kernel,
    rng: np.random.Generator,
    growth_rng: np.random.Generator,
) -> tuple[Landmarks, LandmarkPath | None]:
    """Return the landmarks of a fit, and how their number was found."""
    path: LandmarkPath | None = None

    def choose_number() -> int:
        nonlocal path
        k = model.n_clusters
        if not rows.is_sparse and kernel.features(rows.block(0, 1)) is not None:
            # More landmarks than features span no more.
            wanted = min(len(rows), max(2 * rows.n_features, 10 * k))
            return len(successive_draws(rows, wanted, growth_rng))
        path = grown(rows, kernel, k, growth_rng, memory_budget(model.max_memory))
        return path.chosen

    given = model.landmarks
    if isinstance(rows, ReducedRows) and not is_selector(given):
        # Points are of the space of X: they are checked there, and then reduced.
        read = read_landmarks(given, rows.source, kernel)
        given = rows.points(read.points) if read.indices is None else read.indices
    number = model.n_landmarks
    found = chosen_landmarks(given, number, rows, kernel, rng, choose_number)
    if path is None or not isinstance(given, str) or given != "uniform":
        return found, path
    if is_given(kernel) or found.indices is None:
        return found, path
    # A few rows far from all others, which uniform landmarks miss.
    more = np.setdiff1d(far_rows(rows, rng), found.indices)
    if not len(more):
        return found, path
    indices = np.concatenate([found.indices, more])
    return Landmarks(kernel.points(rows, indices), indices), path
