"""What this machine does in a second, measured in a few of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sketchmeans.numerics.parallel import Workers

#: Seconds for each rate.
_SECONDS = 0.8
#: Rows of a block, columns of a product, and features: as in a fit of usual size.
_HEIGHT, _COLUMNS, _FEATURES = 4096, 256, 32
#: Bytes that are read: more than caches hold.
_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Machine:
    """Rates of all threads together, in float32.

    Attributes
    ----------
    gemm : float
        Multiplications and additions of matrix products per second.
    exp : float
        Exponentials per second, as of rbf kernel values.
    memory : float
        Bytes that are read and added up per second.
    n_threads : int
    """

    gemm: float
    exp: float
    memory: float
    n_threads: int


@lru_cache(maxsize=4)
def measure_machine(n_jobs: int | None = None) -> Machine:
    """Return the rates of this machine, in two to three seconds; measured once."""
    with Workers(n_jobs) as workers:
        rng = np.random.default_rng(0)
        block = rng.standard_normal((_HEIGHT, _FEATURES), dtype=np.float32)
        columns = rng.standard_normal((_FEATURES, _COLUMNS), dtype=np.float32)
        table = np.ones(_BYTES // 4, dtype=np.float32)

        def multiply(_: int) -> None:
            out = workers.buffer("gemm", (_HEIGHT, _COLUMNS), np.float32)
            np.dot(block, columns, out=out)

        def exponentiate(_: int) -> None:
            out = workers.buffer("exp", (_HEIGHT, _COLUMNS), np.float32)
            out.fill(-1.0)
            np.exp(out, out=out)

        def add(_: int) -> None:
            table.sum()

        flops = 2 * _HEIGHT * _COLUMNS * _FEATURES
        return Machine(
            flops * _count_calls(workers, multiply),
            _HEIGHT * _COLUMNS * _count_calls(workers, exponentiate),
            _BYTES * _count_calls(workers, add),
            workers.n_jobs,
        )


def _count_calls(workers: Workers, function: Callable[[int], None]) -> float:
    """Return how often all threads together call a function in a second.

    The median of short stretches: a processor is faster in some moments than in a fit.
    """
    rates, n_calls, start = [], workers.n_jobs, time.perf_counter()
    while time.perf_counter() - start < _SECONDS:
        before = time.perf_counter()
        for _ in workers.map(function, range(n_calls)):
            pass
        spent = time.perf_counter() - before
        if spent < _SECONDS / 16:
            n_calls *= 2
        else:
            rates.append(n_calls / spent)
    return float(np.median(rates)) if rates else n_calls / _SECONDS
