"""A user's table and kernel, ready to be diagnosed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.data.input import check_weights, checked_table
from sketchmeans.data.rows import Rows, as_rows
from sketchmeans.kernels import Kernel, as_kernel, resolve_kernel
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import as_generator
from sketchmeans.theory.definite import check_definite

KernelLike = str | Kernel | Callable[..., float]


@dataclass(frozen=True)
class Problem:
    """Rows with their weights, a kernel with its bandwidth, and a source of chance."""

    rows: Rows
    kernel: Kernel
    rng: np.random.Generator


@contextmanager
def opened(
    X: Any,
    kernel: KernelLike,
    *,
    gamma: Gamma,
    kernel_params: Mapping[str, Any] | None,
    sample_weight: Any,
    n_jobs: int | None,
    random_state: Any,
) -> Iterator[Problem]:
    """Check the input, resolve the bandwidth and start the threads.

    The same `random_state` gives the bandwidth that the estimators have.  Blocks are
    in float64 whatever the table is in: diagnostics are made of differences between a
    kernel matrix and its approximation, in which float32 would drown.
    """
    kernel_rng, rng = as_generator(random_state).spawn(2)
    table = checked_table(X)
    chosen = as_kernel(kernel, gamma=gamma, kernel_params=kernel_params)
    with Workers(n_jobs) as workers:
        rows = as_rows(table, workers, check_weights(sample_weight, table.shape[0]))
        resolved = resolve_kernel(chosen, rows, kernel_rng)
        check_definite(resolved, rows, kernel_rng.spawn(1)[0])
        rows.dtype = np.dtype(np.float64)
        yield Problem(rows, resolved, rng)
