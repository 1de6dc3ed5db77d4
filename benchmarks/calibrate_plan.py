"""Fit the cost model behind `sketchmeans.diagnostics.plan` to measured fits.

Fits of many sizes are timed stage by stage; non-negative coefficients minimise the
relative errors; sizes that were not used tell how good they are.  Prints what belongs
into `diagnostics/cost_model`, and the errors of time and memory on the other sizes.

    python -m benchmarks.calibrate_plan
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.measure import measure as measure_call
from sketchmeans import NystromKMeans
from sketchmeans.diagnostics import cost_model, plan
from sketchmeans.diagnostics.cost_model import Problem, memory_terms, stage_work
from sketchmeans.diagnostics.plan import open_space, open_table
from sketchmeans.engine.init import auto_restarts
from sketchmeans.engine.progress import Progress
from sketchmeans.numerics.machine import Machine, measure_machine
from sketchmeans.numerics.parallel import Workers

#: Rows, features, clusters, landmarks.
FITTED = [
    (100_000, 10, 5, 100),
    (100_000, 50, 20, 200),
    (200_000, 20, 10, 400),
    (300_000, 20, 10, 100),
    (300_000, 100, 10, 200),
    (500_000, 10, 20, 200),
    (500_000, 50, 5, 400),
    (1_000_000, 20, 10, 200),
    (1_000_000, 10, 30, 100),
    (1_500_000, 20, 5, 300),
    (120_000, 20, 8, 150),
    (250_000, 40, 12, 300),
    (400_000, 12, 6, 250),
    (800_000, 30, 15, 150),
    (2_000_000, 12, 8, 100),
    (2_500_000, 16, 10, 250),
    (100_000, 150, 10, 200),
    (200_000, 200, 5, 300),
    (100_000, 30, 100, 300),
    (300_000, 20, 50, 400),
    (300_000, 20, 3, 400),
    (200_000, 20, 10, 1000),
    (1_200_000, 40, 4, 600),
    (60_000, 20, 10, 300),
]
HELD_OUT = [
    (150_000, 30, 10, 300),
    (400_000, 15, 15, 150),
    (700_000, 40, 8, 250),
    (2_000_000, 20, 10, 200),
    (3_000_000, 12, 6, 150),
    (130_000, 12, 4, 220),
    (350_000, 60, 25, 500),
    (900_000, 16, 12, 350),
    (90_000, 140, 8, 300),
    (600_000, 8, 2, 800),
    (1_800_000, 24, 40, 120),
]


def make_rows(n: int, d: int, k: int) -> Any:
    rng = np.random.default_rng([n, d, k])
    centres = rng.normal(scale=0.8, size=(k, d)).astype(np.float32)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += centres[rng.integers(k, size=n)]
    return X


@contextmanager
def timed_stages(stages: dict[str, float]) -> Iterator[None]:
    """Add up the seconds of the stages that a fit reports."""
    step, stage = Progress.step, Progress.stage

    def timed(method: Any) -> Any:
        @contextmanager
        def inner(progress: Any, name: str, *given: Any) -> Iterator[Any]:
            start = time.perf_counter()
            with method(progress, name, *given) as value:
                yield value
            kind = "moments" if name == "kernel" else "race"
            kind = "passes" if name.startswith("all ") else kind
            stages[kind] = stages.get(kind, 0.0) + time.perf_counter() - start

        return inner

    Progress.step, Progress.stage = timed(step), timed(stage)  # type: ignore[method-assign]
    try:
        yield
    finally:
        Progress.step, Progress.stage = step, stage  # type: ignore[method-assign]


def run_fit(n: int, d: int, k: int, m: int) -> dict[str, float]:
    """Return the seconds of the stages of a fit, and its peak of memory, in here."""
    X = make_rows(n, d, k)
    model = NystromKMeans(k, n_landmarks=m, random_state=0)
    model.fit(X[:20_000])  # imports
    stages: dict[str, float] = {}
    with timed_stages(stages):
        run = measure_call(lambda: model.fit(X))
    stages["closing"] = max(run.seconds - sum(stages.values()), 0.0)
    return {**stages, "total": run.seconds, "memory": run.peak_bytes}


def measure(sizes: tuple[int, ...]) -> dict[str, float]:
    """Return what `run_fit` does in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.calibrate_plan", "--one"]
    done = subprocess.run(
        [*command, *map(str, sizes)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def fit_coefficients(
    runs: list[tuple[Problem, dict[str, float]]], machine: Machine
) -> dict[str, dict[str, float]]:
    """Return non-negative coefficients that minimise relative errors, by stage."""
    found = {}
    for stage in cost_model.COEFFICIENTS:
        works = [stage_work(problem, machine)[stage] for problem, _ in runs]
        seconds = np.array([max(run.get(stage, 0.0), 1e-3) for _, run in runs])
        kinds = list(works[0])
        A = np.array([[work[kind] for kind in kinds] for work in works])
        # Long stages count: by the root, between absolute and relative errors.
        scale = np.sqrt(seconds)
        values, _ = nnls(A / scale[:, None], seconds / scale)
        found[stage] = dict(zip(kinds, np.round(values, 4).tolist(), strict=True))
    return found


def memory_of(n: int, d: int, k: int, m: int) -> dict[str, float]:
    """Return the parts of the peak memory of a fit."""
    with Workers() as workers:
        rows = open_table((n, d), workers)
        return memory_terms(rows, open_space(rows, m), k, auto_restarts(k))


def fit_memory(
    runs: list[tuple[tuple[int, ...], dict[str, float]]],
) -> dict[str, float]:
    """Return the coefficients of the peak memory."""
    works = [memory_of(*sizes) for sizes, _ in runs]
    peaks = np.array([run["memory"] for _, run in runs])
    kinds = list(works[0])
    A = np.array([[work[kind] for kind in kinds] for work in works])
    values, _ = nnls(A / peaks[:, None], np.ones(len(peaks)))
    return dict(zip(kinds, np.round(values, 4).tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=int, nargs=4)
    parser.add_argument("--validate", action="store_true", help="Do not fit again.")
    parser.add_argument(
        "--memory", action="store_true", help="Fit the coefficients of memory alone."
    )
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_fit(*options.one)))
        return
    machine = measure_machine()
    print(f"# {machine}", flush=True)
    if not options.validate:
        runs = [(sizes, measure(sizes)) for sizes in FITTED]
        if not options.memory:
            problems = [(Problem(*sizes), run) for sizes, run in runs]
            coefficients = fit_coefficients(problems, machine)
            print("COEFFICIENTS =", json.dumps(coefficients, indent=4))
            cost_model.COEFFICIENTS.update(coefficients)
        memory = fit_memory(runs)
        print("MEMORY =", json.dumps(memory, indent=4))
        cost_model.MEMORY.update(memory)
    heads = f"{'planned':>9}{'off':>7}"
    print(f"{'held out':<32}{'s':>8}{heads}{'MB':>8}{heads}")
    for n, d, k, m in HELD_OUT:
        run = measure((n, d, k, m))
        found = plan(NystromKMeans(k, n_landmarks=m), (n, d))
        off = found.seconds / run["total"] - 1.0
        print(
            f"{n:>10,} x {d:<4}k={k:<4}m={m:<6}{run['total']:>8.2f}"
            f"{found.seconds:>9.2f}{off:>+7.0%}{run['memory'] / 1e6:>8.0f}"
            f"{found.memory / 1e6:>9.0f}{found.memory / run['memory'] - 1.0:>+7.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
