"""A user's table, kernel and numbers, checked and ready to be analysed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from sketchmeans.data.input import check_table, check_weights
from sketchmeans.data.rows import Rows, as_rows
from sketchmeans.kernels import (
    Kernel,
    as_kernel,
    compute_gram,
    is_proven,
    resolve_kernel,
)
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.numerics.linalg import largest_eigenvalues
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import as_generator, check_number

KernelLike = str | Kernel | Callable[..., float]

#: Rows whose kernel matrix is examined for negative eigenvalues.
_DEFINITE_ROWS = 200
#: Roundings of kernel values that negative eigenvalues are allowed for, and the share
#: of the largest eigenvalue that the eigenvalues themselves may be off.
_ROUNDINGS, _RELATIVE = 16.0, 1e-12


def check_below(name: str, value: Any, limit: float = 1.0) -> float:
    """Return a number between 0 and the limit, both excluded."""
    if 0.0 < check_number(name, value) < limit:
        return float(value)
    raise ValueError(f"{name}={value!r} should be > 0 and < {limit:g}.")


def check_positive(name: str, value: Any) -> float:
    """Return a finite number above 0."""
    if check_number(name, value) > 0.0:
        return float(value)
    raise ValueError(f"{name}={value!r} should be a finite number > 0.")


@dataclass(frozen=True)
class Problem:
    """Rows with their weights, a kernel with its bandwidth, and a random generator."""

    rows: Rows
    kernel: Kernel
    rng: np.random.Generator

    def resolve_ridge(self, gamma_ridge: float | None) -> float:
        """Return γ; None is √n, with which CR18's Theorem 1 keeps the rate in n."""
        if gamma_ridge is None:
            return sqrt(self.rows.total_weight)
        return check_positive("gamma_ridge", gamma_ridge)


@contextmanager
def open_problem(
    X: Any,
    kernel: KernelLike,
    gamma: Gamma,
    kernel_params: Mapping[str, Any] | None,
    sample_weight: Any,
    n_jobs: int | None,
    random_state: Any,
) -> Iterator[Problem]:
    """Check the input, resolve the bandwidth and start the threads.

    The same `random_state` gives the same bandwidth as in the estimators.  Blocks are
    in float64 whatever the table is in: results are differences between a kernel
    matrix and its approximation, for which float32 has too few digits.
    """
    kernel_rng, rng = as_generator(random_state).spawn(2)
    table = check_table(X)
    chosen = as_kernel(kernel, gamma=gamma, kernel_params=kernel_params)
    with Workers(n_jobs) as workers:
        rows = as_rows(table, workers, check_weights(sample_weight, table.shape[0]))
        resolved = resolve_kernel(chosen, rows, kernel_rng)
        check_definite(resolved, rows, kernel_rng.spawn(1)[0])
        rows.dtype = np.dtype(np.float64)
        yield Problem(rows, resolved, rng)


def check_definite(kernel: Kernel, rows: Rows, rng: np.random.Generator) -> None:
    """Raise if a kernel is known or found not to be positive semi-definite.

    Nothing is known about callables, given matrices and kernels of users, so the
    eigenvalues of the kernel matrix of a few rows are computed.
    """
    found = ""
    if kernel.positive_definite:
        if is_proven(kernel):
            return
        counting = np.arange(len(rows))
        if rows.weights is not None:
            counting = np.flatnonzero(rows.weights)
        if len(counting) > _DEFINITE_ROWS:
            counting = np.sort(rng.choice(counting, _DEFINITE_ROWS, replace=False))
        K = compute_gram(kernel, kernel.points(rows, counting), rows.workers, rows)
        values = largest_eigenvalues(K, len(K))
        least, largest = float(values[0]), float(values[-1])
        eps = float(np.finfo(rows.dtype).eps)
        noise = _ROUNDINGS * eps * np.sqrt(len(K)) * float(np.abs(K).max())
        if least >= -max(noise, _RELATIVE * largest):
            return
        found = (
            f" Its matrix of {len(K)} of the rows has the eigenvalue {least:.3g} (the "
            f"largest is {largest:.3g})."
        )
    raise ValueError(
        f"kernel={kernel!r} should be positive semi-definite: the theory covers no "
        f"other, and there is no certificate for it.{found}"
    )
