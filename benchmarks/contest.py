"""Two sides that do the same work: they take turns, and one judge costs both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.data import Array
from benchmarks.measure import Run, measure
from benchmarks.peers import Centers

#: A side turns a seed into centres; what it does is timed as a whole.
Fit = Callable[[int], Centers]


@dataclass(frozen=True)
class Side:
    """What one side took and reached, seed by seed."""

    seconds: Array
    costs: Array
    peak_bytes: float

    @property
    def median_seconds(self) -> float:
        return float(np.median(self.seconds))

    @property
    def median_cost(self) -> float:
        return float(np.median(self.costs))


def contest(
    ours: Fit, peer: Fit, judge: Callable[[Centers], float], seeds: int
) -> tuple[Side, Side]:
    """Run both sides for every seed, back to back; odd seeds let the peer go first.

    The judge's work is outside the measurement.
    """
    fits = (ours, peer)
    runs: tuple[list[Run[Centers]], list[Run[Centers]]] = ([], [])
    costs: tuple[list[float], list[float]] = ([], [])
    for seed in range(seeds):
        for side in (0, 1) if seed % 2 == 0 else (1, 0):
            runs[side].append(measure(lambda: fits[side](seed)))  # noqa: B023
        for side in (0, 1):
            costs[side].append(judge(runs[side][-1].value))
    return _side(runs[0], costs[0]), _side(runs[1], costs[1])


def _side(runs: list[Run[Centers]], costs: list[float]) -> Side:
    return Side(
        np.array([run.seconds for run in runs]),
        np.array(costs),
        max(run.peak_bytes for run in runs),
    )
