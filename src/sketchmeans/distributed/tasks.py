"""What tasks of a fit do with the partitions of one place.

Nothing here changes its arguments: a worker that is lost takes its results with it, and
the scheduler runs their tasks again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans.data.partitions import PartitionInfo
from sketchmeans.engine.partitions import Call, stack_states
from sketchmeans.numerics.linalg import Array


def apply(
    function: Callable[..., Any],
    fold: Callable[[list[Any]], Any] | None,
    parts: list[Any],
    numbers: list[int],
    infos: list[PartitionInfo],
    values: list[list[Any]],
    *shared: Any,
) -> Any:
    """Return what a function returns for each partition of a place, or all folded.

    It is called with a partition, where it is among all, its own of each of the
    `values`, and what is shared.
    """
    found = [
        function(part, infos[number], *own, *shared)
        for part, number, *own in zip(parts, numbers, *values, strict=True)
    ]
    return found if fold is None else fold(found)


def summary_of(found: list[tuple[Any, Any]], call: Call) -> Any:
    """Return what goes up the tree from a place."""
    summaries = [summary for _, summary in found]
    return summaries[0] if len(summaries) == 1 else combine(call, summaries)


def combine(call: Call, summaries: list[Any]) -> Any:
    """Return the summary of several partitions."""
    return call.reduction.combine(summaries)


def labels_of(
    found: list[tuple[Any, Any]], place: int, column: int, rows: Array | None = None
) -> Array:
    """Return the labels of one of the partitions, or of some of its rows."""
    labels = found[place][0].labels[:, column]
    return np.ascontiguousarray(labels if rows is None else labels[rows])


def stack_labels(
    found: list[list[tuple[Any, Any]]], columns: list[int]
) -> list[tuple[Any, None]]:
    """Return labels of several passes side by side, as what a pass leaves."""
    return [
        (stack_states(list(states), columns), None)
        for states in zip(*found, strict=True)
    ]
