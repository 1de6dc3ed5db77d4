"""Labels that go to a file: those of a billion rows take gigabytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans.linalg import Array
from sketchmeans.whole_file import whole_file


def check_labels_path(labels_out: Any) -> None:
    """Raise where labels could not be written, before hours of work are lost."""
    if labels_out is None:
        return
    if isinstance(labels_out, str | os.PathLike):
        path = Path(labels_out)
        folder = path.parent
        if path.suffix == ".npy" and not path.is_dir() and os.access(folder, os.W_OK):
            return
    raise ValueError(
        f"labels_out={labels_out!r} should be the path of a .npy file in a folder that "
        "exists and can be written to."
    )


def written_labels(labels: Array, labels_out: str | os.PathLike[str]) -> Array:
    """Write labels to a file, all or nothing, and return a read-only map of it."""
    path = Path(labels_out)
    with whole_file(path) as file:
        np.save(file, labels)
    mapped: Array = np.load(path, mmap_mode="r")
    return mapped
