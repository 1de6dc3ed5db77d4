"""Labels that go to a file: those of a billion rows take gigabytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans.numerics.atomic_file import check_can_write, open_atomic
from sketchmeans.numerics.linalg import Array


def check_labels_path(labels_out: Any, n_rows: int = 0) -> None:
    """Raise where labels could not be written, before hours of work are lost.

    `n_rows` is their number, where it is known.
    """
    if labels_out is None:
        return
    reason = ""
    if isinstance(labels_out, str | os.PathLike) and Path(labels_out).suffix == ".npy":
        try:
            check_can_write(labels_out, n_rows * np.dtype(np.int32).itemsize)
        except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
            reason = f": {getattr(error, 'strerror', None) or error}"
        else:
            return
    raise ValueError(
        f"labels_out={labels_out!r} should be the path of a .npy file in a folder that "
        f"exists and can be written to{reason}."
    )


def written_labels(labels: Array, labels_out: str | os.PathLike[str]) -> Array:
    """Write labels to a file, all or nothing, and return a read-only map of it."""
    path = Path(labels_out)
    with open_atomic(path) as file:
        np.save(file, labels)
    mapped: Array = np.load(path, mmap_mode="r")
    return mapped
