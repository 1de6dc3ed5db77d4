"""What tasks of a fit do with the partitions of one place.

Nothing here changes its arguments: a worker that is lost takes its results with it, and
the scheduler runs their tasks again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans.data.partitions import PartitionInfo
from sketchmeans.engine.partitions import Call
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


def labels_of(found: list[tuple[Any, Any]], place: int, column: int) -> Array:
    """Return the labels of one of the partitions."""
    return np.ascontiguousarray(found[place][0].labels[:, column], np.int32)


def merge(
    function: Callable[..., Any], found: list[list[Any]], *shared: Any
) -> list[Any]:
    """Return what a function makes of what several passes have left at a place."""
    return [function(list(states), *shared) for states in zip(*found, strict=True)]
