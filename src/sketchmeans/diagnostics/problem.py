"""A user's table and kernel, ready to be diagnosed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

from sketchmeans.bandwidth import Gamma
from sketchmeans.kernels import Kernel, as_kernel, is_given
from sketchmeans.parallel import Workers
from sketchmeans.rows import Rows, as_rows
from sketchmeans.validation import as_generator, check_weights

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
    table = check_array(
        X,
        accept_sparse="csr",
        dtype="numeric",
        ensure_all_finite=False,
        accept_large_sparse=True,
        input_name="X",
    )
    chosen = as_kernel(kernel, gamma=gamma, kernel_params=kernel_params)
    if not chosen.positive_definite:
        raise ValueError(
            f"kernel={chosen!r} should be positive semi-definite: the theory covers "
            "no other."
        )
    if is_given(chosen) and table.shape[0] != table.shape[1]:
        raise ValueError(
            f"X.shape={table.shape} should be square with kernel='precomputed': "
            "k(X, X) of the rows."
        )
    with Workers(n_jobs) as workers:
        rows = as_rows(table, workers, check_weights(sample_weight, table.shape[0]))
        if not is_given(chosen):
            rows.survey()  # finds every value that is not finite
        resolved = chosen.resolved(rows, kernel_rng)
        rows.dtype = np.dtype(np.float64)
        yield Problem(rows, resolved, rng)
