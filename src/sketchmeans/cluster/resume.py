"""A fit that resumes from a checkpoint, and the landmarks of a Nyström fit in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.finite import check_finite
from sketchmeans.data.rows import Block, Rows
from sketchmeans.engine.checkpoint import SavedFit, as_checkpoint
from sketchmeans.engine.identity import identify_fit, stamp_files
from sketchmeans.engine.lloyd_arrays import Arrays
from sketchmeans.kernels import Kernel
from sketchmeans.landmarks import LandmarkPath, Landmarks
from sketchmeans.numerics.atomic_file import check_can_write

Choice = tuple[Landmarks, LandmarkPath | None]

_CSR = ("data", "indices", "indptr")


def check_checkpoint(estimator: Any, checkpoint: Any) -> None:
    """Raise where a checkpoint could not be written, before the rows are read."""
    if checkpoint is None:
        return
    check_can_write(as_checkpoint(checkpoint).path)
    state = estimator.random_state
    if state is not None and not isinstance(state, Integral):
        raise ValueError(
            f"random_state={state!r} should be an integer or None with a checkpoint: "
            "the fit that resumes must draw the same numbers."
        )


def open_saved_fit(estimator: Any, checkpoint: Any, rows: Rows) -> SavedFit | None:
    """Return what is saved of a fit; None without a checkpoint.

    One pass over all rows, which distinguishes them from others.
    """
    if checkpoint is None:
        return None
    stamps = stamp_files(rows)  # before the pass: a change meanwhile is noticed
    return as_checkpoint(checkpoint).open(identify_fit(estimator, rows), stamps)


def load_or_draw_seed(estimator: Any, saved: SavedFit | None) -> Any:
    """Return the seed of a fit: the user's, or else the one that was drawn first."""
    if saved is None or estimator.random_state is not None:
        return estimator.random_state
    return saved.load_or_compute(
        "seed",
        lambda: {"value": np.random.default_rng().integers(2**62, size=())},
        lambda arrays: int(arrays["value"]),
    )


def load_or_select_landmarks(
    saved: SavedFit | None, rows: Rows, kernel: Kernel, select: Callable[[], Choice]
) -> Choice:
    """Return the landmarks and their path, which are selected only once."""
    if saved is None:
        return select()
    return saved.load_or_compute(
        "landmarks",
        lambda: _flatten(*select()),
        lambda arrays: _unflatten(arrays, rows, kernel),
    )


def _flatten(landmarks: Landmarks, path: LandmarkPath | None) -> Arrays:
    """Return what a fit needs of its landmarks: points, or numbers of rows."""
    if landmarks.indices is None:
        arrays = flatten_points(landmarks.points)
    else:
        arrays = {"indices": landmarks.indices}
    if path is not None:
        for field in fields(path):
            arrays[f"path/{field.name}"] = np.asarray(getattr(path, field.name))
    return arrays


def _unflatten(arrays: Arrays, rows: Rows, kernel: Kernel) -> Choice:
    path = None
    if "path/chosen" in arrays:
        found: dict[str, Any] = {
            field.name: arrays[f"path/{field.name}"] for field in fields(LandmarkPath)
        }
        path = LandmarkPath(**found | {"chosen": int(found["chosen"])})
    if "indices" in arrays:
        indices = arrays["indices"]
        is_list = indices.ndim == 1 and indices.dtype.kind == "i" and len(indices)
        if not is_list or not 0 <= indices.min() <= indices.max() < len(rows):
            raise ValueError("landmarks are not rows")
        return Landmarks(kernel.points(rows, indices), indices), path
    return Landmarks(unflatten_points(arrays, rows.n_features)), path


def flatten_points(points: Block) -> Arrays:
    """Return a dense or sparse matrix as arrays."""
    if not sparse.issparse(points):
        return {"points": np.asarray(points)}
    arrays = {f"csr/{name}": getattr(points, name) for name in _CSR}
    return arrays | {"shape": np.array(points.shape)}


def unflatten_points(arrays: Arrays, n_columns: int) -> Block:
    """Return the matrix that arrays hold; raises if it does not have these columns."""
    if "csr/indptr" in arrays:
        parts = tuple(arrays[f"csr/{name}"] for name in _CSR)
        points = sparse.csr_array(parts, shape=tuple(arrays["shape"].tolist()))
        points.check_format(full_check=True)
    else:
        points = arrays["points"]
    if points.ndim != 2 or points.shape[1] != n_columns or not points.shape[0]:
        raise ValueError(f"landmarks of shape {points.shape} do not fit the rows")
    check_finite(points, name="its list of landmarks")
    return points
