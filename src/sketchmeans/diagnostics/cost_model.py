"""How long the stages of a Nyström fit take: work divided by rates of a machine.

The coefficients are fitted by ``python -m benchmarks.calibrate_plan`` to measured fits.
"""

from __future__ import annotations

from dataclasses import dataclass

from sketchmeans.cluster.memory import sum_bytes
from sketchmeans.data.rows import Rows
from sketchmeans.engine.directions import DIRECTIONS, pays_to_project
from sketchmeans.engine.space import LandmarkSpace, coarse_step
from sketchmeans.engine.store import cheap_to_repeat, is_worth_keeping
from sketchmeans.engine.subsample import sizes_for, subsample_sizes
from sketchmeans.numerics.machine import Machine

#: Seconds of a stage per second of work, by kind of work.
COEFFICIENTS: dict[str, dict[str, float]] = {
    "moments": {"memory": 4.30},
    "race": {"gemm": 3.56, "exp": 0.0, "fixed": 0.085},
    "passes": {"gemm": 0.0, "exp": 4.81, "memory": 10.45},
    "closing": {"memory": 13.14},
}
#: Copies of its rows that swaps on a subsample make, in float32.
_ROWS_OF_SWAPS = 2.5
#: Peak memory in units of what the parts of a fit add up to.
MEMORY = {"fixed": 0.794, "rows": 0.484, "values": 1.049, "sums": 2.045}
#: Times that a file is read: for moments, offsets, samples and passes.
FILE_READS = 8.0
#: Passes over all rows of a fit; most of them look at few rows.
PASSES = 4
#: Passes of the race over each subsample, in restarts.
_RACE_PASSES = 16


@dataclass(frozen=True)
class Problem:
    """The sizes that the time of a fit depends on."""

    n_rows: int
    n_features: int
    n_clusters: int
    n_landmarks: int
    itemsize: int = 4

    @property
    def n_bytes(self) -> int:
        """Bytes of all rows."""
        return self.n_rows * self.n_features * self.itemsize


def stage_work(problem: Problem, machine: Machine) -> dict[str, dict[str, float]]:
    """Return the work of each stage in seconds, if rates were all that counts."""
    n, d = problem.n_rows, problem.n_features
    k, m = problem.n_clusters, problem.n_landmarks
    wide = problem.itemsize / 4  # rates are those of float32
    sizes = subsample_sizes(n, k, d * problem.itemsize) or [n]
    sampled = sum(sizes)
    coarse = min(m, max(200, 10 * k))
    race = sampled * coarse * k * _RACE_PASSES + sizes[-1] * coarse * d
    # Bounds, labels and norms of a row, beside its features.
    row_bytes = d * problem.itemsize + 24
    return {
        "moments": {"memory": n * (d * 8 + 16) / machine.memory},
        "race": {
            "gemm": 2 * race * wide / machine.gemm,
            "exp": sizes[-1] * coarse * wide / machine.exp,
            "fixed": 1.0,
        },
        "passes": {
            "gemm": 2 * n * m * (d + k) * wide / machine.gemm,
            "exp": n * m * wide / machine.exp,
            "memory": n * row_bytes / machine.memory,
        },
        "closing": {"memory": n * row_bytes / machine.memory},
    }


def memory_terms(
    rows: Rows, space: LandmarkSpace, k: int, restarts: int
) -> dict[str, float]:
    """Return bytes of the parts of a fit at its peak, beyond its input."""
    n, itemsize = len(rows), rows.dtype.itemsize
    width, columns = rows.n_features, space.n_columns
    values = n * columns if is_worth_keeping(rows, space) else 0
    sizes = sizes_for(rows, space, k)
    if pays_to_project(rows, space, k, restarts):
        values += n * DIRECTIONS
        width = columns = DIRECTIONS
    if sizes:
        # Kernel values of every few landmarks, and rows with copies of them in swaps;
        # then those of all landmarks, if full passes are dear.
        step = max(coarse_step(space, k), 1)
        race = -(-columns // step) + _ROWS_OF_SWAPS * width
        last = 0 if cheap_to_repeat(rows, space) else columns + width
        values += int(sizes[-1] * max(race, last))
    return {
        "fixed": 1e7,
        "rows": n * (4.0 + 2 * itemsize),
        "values": float(values * itemsize),
        "sums": float(sum_bytes(rows, space, k, restarts, bool(sizes))),
    }


def predict_memory(rows: Rows, space: LandmarkSpace, k: int, restarts: int) -> int:
    """Return the bytes at the peak of a fit on one machine, beyond its input."""
    terms = memory_terms(rows, space, k, restarts)
    return int(sum(MEMORY[kind] * size for kind, size in terms.items()))


def predict_seconds(problem: Problem, machine: Machine) -> dict[str, float]:
    """Return the seconds of each stage on one machine, for rows in memory."""
    return {
        stage: sum(COEFFICIENTS[stage].get(kind, 0.0) * t for kind, t in work.items())
        for stage, work in stage_work(problem, machine).items()
    }
