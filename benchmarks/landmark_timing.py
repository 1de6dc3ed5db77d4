"""How long landmarks take to select, in units of the kernel values that they need."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.measure import measure
from benchmarks.og17 import generated
from sketchmeans.blocks import BlockEngine
from sketchmeans.kernels import RBF, Kernel
from sketchmeans.landmarks import SELECTORS, LandmarkSelector, as_selector
from sketchmeans.parallel import Workers
from sketchmeans.rows import Rows, as_rows
from sketchmeans.spaces import LandmarkSpace

_ROWS, _FEATURES, _LANDMARKS = 50_000, 50, 500

#: Steps of the k-DPP chain, and rows, whose times are compared.
_STEPS, _FEWER_ROWS = (500, 2500), 5_000


def run(selectors: Mapping[str, LandmarkSelector], repeats: int) -> None:
    """Print the seconds of each selector, and as a multiple of forming k(X, Z)."""
    with Workers() as workers:
        rows = as_rows(generated(_ROWS, _FEATURES), workers)
        kernel = RBF("median").resolved(rows, np.random.default_rng(0))
        rows.survey()
        unit = _median(lambda seed: _kernel_values(rows, kernel, seed), max(repeats, 3))
        print(
            f"# generated data, n = {_ROWS:,}, d = {_FEATURES}, m = {_LANDMARKS}; "
            f"k(X, Z) takes {unit:.3f} s; medians of {repeats}"
        )
        print(f"{'method':<34}{'seconds':>10}{'/ k(X, Z)':>12}")
        for name, selector in selectors.items():
            seconds = _median(lambda s: _select(selector, rows, kernel, s), repeats)  # noqa: B023
            print(f"{name:<34}{seconds:>10.3f}{seconds / unit:>12.2f}", flush=True)
        if "k-dpp" in SELECTORS:
            for n_rows in (_FEWER_ROWS, _ROWS):
                step = _seconds_a_step(rows.leading(n_rows), kernel, repeats)
                print(f"k-dpp, {n_rows:>6,} rows: {1e6 * step:.0f} microseconds a step")


def _kernel_values(rows: Rows, kernel: Kernel, seed: int) -> None:
    chosen = np.random.default_rng(seed).choice(len(rows), _LANDMARKS, replace=False)
    space = LandmarkSpace(kernel, rows.take(chosen), rows.dtype, rows.workers)
    BlockEngine(rows, space).all_coordinates()


def _select(selector: LandmarkSelector, rows: Rows, kernel: Kernel, seed: int) -> None:
    selector.select(rows, kernel, _LANDMARKS, np.random.default_rng(seed))


def _seconds_a_step(rows: Rows, kernel: Kernel, repeats: int) -> float:
    """Return the slope of time over steps: the start does not count."""
    times = []
    for steps in _STEPS:
        chain = as_selector("k-dpp").set_params(start="uniform", n_steps=steps)  # type: ignore[attr-defined]
        times.append(_median(lambda s: _select(chain, rows, kernel, s), repeats))  # noqa: B023
    return (times[1] - times[0]) / (_STEPS[1] - _STEPS[0])


def _median(function: object, repeats: int) -> float:
    return float(
        np.median([measure(lambda: function(s)).seconds for s in range(repeats)])  # type: ignore[operator]  # noqa: B023
    )
