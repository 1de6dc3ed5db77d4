"""How long landmarks take to select, in units of the kernel values that they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import measure
from benchmarks.og17 import generated
from sketchmeans.data.rows import Rows, as_rows
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.engine.store import KernelBlocks
from sketchmeans.kernels import RBF, Kernel
from sketchmeans.landmarks import SELECTORS, LandmarkSelector, as_selector
from sketchmeans.numerics.parallel import Workers

_ROWS, _FEATURES, _LANDMARKS = 50_000, 50, 500

#: Steps of the k-DPP chain, and rows, whose times are compared.
_STEPS, _FEWER_ROWS = (500, 2500), 5_000


def run(selectors: Mapping[str, LandmarkSelector], repeats: int) -> None:
    """Print the seconds of each selector, and as a multiple of forming k(X, Z)."""
    with Workers() as workers:
        rows = as_rows(generated(_ROWS, _FEATURES), workers)
        kernel = RBF("median").resolve(rows, np.random.default_rng(0))
        rows.moments()
        unit = _median(partial(_form_kernel, rows, kernel), max(repeats, 3))
        print(
            f"# generated data, n = {_ROWS:,}, d = {_FEATURES}, m = {_LANDMARKS}; "
            f"k(X, Z) takes {unit:.3f} s; medians of {repeats}"
        )
        print(f"{'method':<34}{'seconds':>10}{'/ k(X, Z)':>12}")
        for name, selector in selectors.items():
            seconds = _median(partial(_select, rows, kernel, selector), repeats)
            print(f"{name:<34}{seconds:>10.3f}{seconds / unit:>12.2f}", flush=True)
        if "k-dpp" in SELECTORS:
            for n_rows in (_FEWER_ROWS, _ROWS):
                step = _seconds_a_step(rows.leading(n_rows), kernel, repeats)
                print(f"k-dpp, {n_rows:>6,} rows: {1e6 * step:.0f} microseconds a step")


def _form_kernel(rows: Rows, kernel: Kernel, seed: int) -> None:
    chosen = np.random.default_rng(seed).choice(len(rows), _LANDMARKS, replace=False)
    space = LandmarkSpace(kernel, rows.take(chosen), rows.dtype, rows.workers)
    KernelBlocks(rows, space).matrix()


def _select(rows: Rows, kernel: Kernel, selector: LandmarkSelector, seed: int) -> None:
    selector.select(rows, kernel, _LANDMARKS, np.random.default_rng(seed))


def _seconds_a_step(rows: Rows, kernel: Kernel, repeats: int) -> float:
    """Return the slope of time over steps: the start does not count."""
    times = []
    for n_steps in _STEPS:
        chain: Any = as_selector("k-dpp")
        chain.set_params(start="uniform", n_steps=n_steps)
        times.append(_median(partial(_select, rows, kernel, chain), repeats))
    return (times[1] - times[0]) / (_STEPS[1] - _STEPS[0])


def _median(function: Callable[[int], None], repeats: int) -> float:
    runs = [measure(partial(function, seed)) for seed in range(repeats)]
    return float(np.median([run.seconds for run in runs]))
