"""Landmarks that the user gives: points or row numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.kernels import Kernel, Precomputed
from sketchmeans.landmarks.base import Landmarks
from sketchmeans.rows import Rows, check_finite


def read_landmarks(landmarks: Any, rows: Rows, kernel: Kernel) -> Landmarks:
    """Return given points (m, d) or row numbers (m,) as landmarks."""
    points = landmarks if sparse.issparse(landmarks) else np.asarray(landmarks)
    if points.ndim == 1 and points.dtype.kind in "iu" and len(points):
        if points.min() < 0 or points.max() >= len(rows):
            raise ValueError(
                f"landmarks holds row numbers from {points.min()} to {points.max()}; "
                f"they should lie in 0..{len(rows) - 1}."
            )
        indices = points.astype(np.intp)
        return Landmarks(kernel.points(rows, indices), indices)
    if isinstance(kernel, Precomputed):
        raise ValueError(
            "landmarks should be row numbers with kernel='precomputed': there is no "
            "input space for points."
        )
    if (
        points.ndim != 2
        or points.dtype.kind not in "fiub"
        or not points.shape[0]
        or points.shape[1] != rows.n_features
    ):
        raise ValueError(
            f"landmarks of shape {points.shape} and type {points.dtype} should be a "
            f"selector's name, points of shape (m, {rows.n_features}) or a list of row "
            "numbers."
        )
    check_finite(points, name="landmarks")
    return Landmarks(sparse.csr_array(points) if sparse.issparse(points) else points)
