"""A Nyström fit and its checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Rows, check_finite
from sketchmeans.engine.checkpoint import Record, as_checkpoint
from sketchmeans.engine.identity import file_stamps, identity_of
from sketchmeans.engine.lloyd_arrays import Arrays
from sketchmeans.kernels import Kernel
from sketchmeans.landmarks import LandmarkPath, Landmarks

Choice = tuple[Landmarks, LandmarkPath | None]

_CSR = ("data", "indices", "indptr")


def check_checkpoint(estimator: Any, checkpoint: Any) -> None:
    """Raise where no checkpoint could be written, before the rows are read."""
    if checkpoint is None:
        return
    as_checkpoint(checkpoint).check()
    state = estimator.random_state
    if state is not None and not isinstance(state, Integral):
        raise ValueError(
            f"random_state={state!r} should be an integer or None with a checkpoint: "
            "the fit that resumes must draw the same numbers."
        )


def opened_record(estimator: Any, checkpoint: Any, rows: Rows) -> Record | None:
    """Return what is on disk for a fit; None where no checkpoint is asked for.

    A pass over all rows, which tells them from others.
    """
    if checkpoint is None:
        return None
    stamps = file_stamps(rows)  # before the pass: a change meanwhile is noticed
    return as_checkpoint(checkpoint).open(identity_of(estimator, rows), stamps)


def finish_record(record: Record | None) -> None:
    """Say once more if the checkpoint could not be written."""
    if record is not None:
        record.finish()


def seed_of(estimator: Any, record: Record | None) -> Any:
    """Return the seed of a fit; where the user gives none, the recorded one."""
    if record is None or estimator.random_state is not None:
        return estimator.random_state
    drawn = record.remember("seed", _drawn_seed)
    return record.unpacked(lambda arrays: int(arrays["value"]), drawn)


def _drawn_seed() -> Arrays:
    return {"value": np.random.default_rng().integers(2**62, size=())}


def remembered(
    record: Record | None, rows: Rows, kernel: Kernel, choose: Callable[[], Choice]
) -> Choice:
    """Return the landmarks and their path, chosen once and for all."""
    if record is None:
        return choose()
    arrays = record.remember("landmarks", lambda: _packed(*choose()))
    return record.unpacked(lambda found: _unpacked(found, rows, kernel), arrays)


def _unpacked(arrays: Arrays, rows: Rows, kernel: Kernel) -> Choice:
    path = None
    if "path/chosen" in arrays:
        found: dict[str, Any] = {
            field.name: arrays[f"path/{field.name}"] for field in fields(LandmarkPath)
        }
        found["chosen"] = int(found["chosen"])
        path = LandmarkPath(**found)
    if "indices" in arrays:
        indices = arrays["indices"]
        is_list = indices.ndim == 1 and indices.dtype.kind == "i" and len(indices)
        if not is_list or not 0 <= indices.min() <= indices.max() < len(rows):
            raise ValueError("landmarks are not rows")
        return Landmarks(kernel.points(rows, indices), indices), path
    if "csr/indptr" in arrays:
        parts = tuple(arrays[f"csr/{name}"] for name in _CSR)
        points = sparse.csr_array(parts, shape=tuple(arrays["shape"].tolist()))
        points.check_format(full_check=True)
    else:
        points = arrays["points"]
    if points.ndim != 2 or points.shape[1] != rows.n_features or not points.shape[0]:
        raise ValueError(f"landmarks of shape {points.shape} do not fit the rows")
    check_finite(points, name="its list of landmarks")
    return Landmarks(points), path


def _packed(landmarks: Landmarks, path: LandmarkPath | None) -> Arrays:
    """Return what a fit needs of its landmarks: points, or numbers of rows."""
    points, arrays = landmarks.points, Arrays()
    if landmarks.indices is not None:
        arrays["indices"] = landmarks.indices
    elif sparse.issparse(points):
        arrays |= {f"csr/{name}": getattr(points, name) for name in _CSR}
        arrays["shape"] = np.array(points.shape)
    else:
        arrays["points"] = np.asarray(points)
    if path is not None:
        for field in fields(path):
            arrays[f"path/{field.name}"] = np.asarray(getattr(path, field.name))
    return arrays
