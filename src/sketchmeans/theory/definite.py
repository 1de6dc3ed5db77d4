"""Whether a kernel is one that the theory covers."""

from __future__ import annotations

import numpy as np

from sketchmeans.data.rows import Rows
from sketchmeans.engine.gram import given_matrix, landmark_matrix
from sketchmeans.kernels import Kernel, is_given, is_proven
from sketchmeans.numerics.linalg import Array, largest_eigenvalues

#: Rows whose kernel matrix is looked at.
_ROWS = 200
#: Roundings of kernel values that negative eigenvalues are allowed for.
_ROUNDINGS = 16.0
#: Share of the largest eigenvalue that the eigenvalues themselves may be off.
_RELATIVE = 1e-12


def check_definite(kernel: Kernel, rows: Rows, rng: np.random.Generator) -> None:
    """Raise where a kernel is known, or seen, not to be positive semi-definite.

    Of callables, given matrices and kernels of users nothing is known: the eigenvalues
    of the kernel matrix of some rows are looked at.
    """
    if not kernel.positive_definite:
        raise ValueError(
            f"kernel={kernel!r} should be positive semi-definite: the theory covers no "
            "other, and there is no certificate for it."
        )
    if is_proven(kernel):
        return
    numbers = _some_rows(rows, rng)
    if is_given(kernel):
        K = given_matrix(rows, numbers)
    else:
        K = landmark_matrix(kernel, kernel.points(rows, numbers), rows.workers)
    values = largest_eigenvalues(K, len(K))
    least, largest = float(values[0]), float(values[-1])
    eps = float(np.finfo(rows.dtype).eps)
    noise = _ROUNDINGS * eps * np.sqrt(len(K)) * float(np.abs(K).max())
    if least < -max(noise, _RELATIVE * largest):
        raise ValueError(
            f"kernel={kernel!r} should be positive semi-definite: the theory covers no "
            f"other, and there is no certificate for it. Its matrix of {len(K)} of the "
            f"rows has the eigenvalue {least:.3g} (the largest is {largest:.3g})."
        )


def _some_rows(rows: Rows, rng: np.random.Generator) -> Array:
    """Return the numbers of some rows that count, in ascending order."""
    numbers = np.arange(len(rows))
    if rows.weights is not None:
        numbers = np.flatnonzero(rows.weights)
    if len(numbers) > _ROWS:
        numbers = np.sort(rng.choice(numbers, _ROWS, replace=False))
    return np.asarray(numbers)
