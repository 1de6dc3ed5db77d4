"""Two sides that do the same work: they take turns, and one judge costs both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from benchmarks.data import Array
from benchmarks.measure import Run, measure
from benchmarks.table import Outcome, Target

Result = TypeVar("Result")

#: A side turns a seed into what is judged; what it does is timed as a whole.
Fit = Callable[[int], Result]


@dataclass(frozen=True)
class Side:
    """What one side took and reached, seed by seed."""

    seconds: Array
    costs: Array
    peak_bytes: float
    cpu_seconds: Array

    @property
    def median_seconds(self) -> float:
        return float(np.median(self.seconds))

    @property
    def median_cost(self) -> float:
        return float(np.median(self.costs))


def contest(
    ours: Fit[Result],
    peer: Fit[Result],
    judge: Callable[[Result], float],
    seeds: int,
) -> tuple[Side, Side]:
    """Run both sides for every seed, back to back; odd seeds let the peer go first.

    The judge's work is outside the measurement.
    """
    fits = (ours, peer)
    runs: tuple[list[Run[Result]], list[Run[Result]]] = ([], [])
    costs: tuple[list[float], list[float]] = ([], [])
    for seed in range(seeds):
        for side in (0, 1) if seed % 2 == 0 else (1, 0):
            runs[side].append(measure(lambda: fits[side](seed)))  # noqa: B023
        for side in (0, 1):
            costs[side].append(judge(runs[side][-1].value))
    return _side(runs[0], costs[0]), _side(runs[1], costs[1])


def _side(runs: list[Run[Result]], costs: list[float]) -> Side:
    return Side(
        np.array([run.seconds for run in runs]),
        np.array(costs),
        max(run.peak_bytes for run in runs),
        np.array([run.cpu_seconds for run in runs]),
    )


def compared(ours: Side, peer: Side, time: Target, cost: Target) -> Outcome:
    """Return the line for two sides.

    The time ratio says how many times faster we are where the target is a least
    value, and how many times slower where it is a most.
    """
    slow, fast = (ours, peer) if time.sense == "<=" else (peer, ours)
    ratios = slow.seconds / fast.seconds
    return Outcome(
        slow.median_seconds / fast.median_seconds,
        time,
        spread=(float(ratios.min()), float(ratios.max())),
        seconds=(ours.median_seconds, peer.median_seconds),
        cost_ratio=ours.median_cost / peer.median_cost,
        cost_target=cost,
        peak_bytes=(ours.peak_bytes, peer.peak_bytes),
        cpu_seconds=tuple(float(np.median(s.cpu_seconds)) for s in (ours, peer)),
    )
