"""A Nyström fit and its checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from numbers import Integral
from typing import Any

import numpy as np

from sketchmeans.checkpoint import Arrays, Record, as_checkpoint, identity_of
from sketchmeans.kernels import Kernel
from sketchmeans.landmarks import LandmarkPath, Landmarks
from sketchmeans.rows import Rows

Choice = tuple[Landmarks, LandmarkPath | None]


def opened_record(estimator: Any, checkpoint: Any, rows: Rows) -> Record | None:
    """Return what is on disk for a fit; None where no checkpoint is asked for."""
    if checkpoint is None:
        return None
    state = estimator.random_state
    if state is not None and not isinstance(state, Integral):
        raise ValueError(
            f"random_state={state!r} should be an integer or None with a checkpoint: "
            "the fit that resumes must draw the same numbers."
        )
    return as_checkpoint(checkpoint).open(identity_of(estimator, rows))


def seed_of(estimator: Any, record: Record | None) -> Any:
    """Return the seed of a fit; where the user gives none, the recorded one."""
    if record is None or estimator.random_state is not None:
        return estimator.random_state
    drawn = record.remember("seed", _drawn_seed)
    return int(drawn["value"])


def _drawn_seed() -> Arrays:
    return {"value": np.random.default_rng().integers(2**62, size=())}


def remembered(
    record: Record | None, rows: Rows, kernel: Kernel, choose: Callable[[], Choice]
) -> Choice:
    """Return the landmarks and their path, chosen once and for all."""
    if record is None:
        return choose()
    arrays = record.remember("landmarks", lambda: _packed(*choose()))
    path = None
    if "path/chosen" in arrays:
        found: dict[str, Any] = {
            field.name: arrays[f"path/{field.name}"] for field in fields(LandmarkPath)
        }
        found["chosen"] = int(found["chosen"])
        path = LandmarkPath(**found)
    if "indices" in arrays:
        indices = arrays["indices"]
        return Landmarks(kernel.points(rows, indices), indices), path
    return Landmarks(arrays["points"]), path


def _packed(landmarks: Landmarks, path: LandmarkPath | None) -> Arrays:
    """Return what a fit needs of its landmarks: centroids, or numbers of rows."""
    arrays: Arrays = (
        {"points": np.asarray(landmarks.points)}
        if landmarks.indices is None
        else {"indices": landmarks.indices}
    )
    if path is not None:
        for field in fields(path):
            arrays[f"path/{field.name}"] = np.asarray(getattr(path, field.name))
    return arrays
