"""Passes over one partition of rows, in the process that holds it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchmeans.data.partitions import PartitionInfo, rows_of
from sketchmeans.data.rows import Block, Rows
from sketchmeans.engine.bounds import RowState
from sketchmeans.engine.passes import Reduction
from sketchmeans.engine.space import Space, SpanSpace, landmark_space
from sketchmeans.engine.store import KernelBlocks
from sketchmeans.kernels import Kernel
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers, process_buffers


@dataclass(frozen=True)
class SpanInfo:
    """The span of landmarks, in a form that travels: without its algebra."""

    kernel: Kernel
    landmarks: Block
    dtype: np.dtype[Any]

    def open(self) -> Space:
        """Return the space, for passes in this process."""
        return landmark_space(
            self.kernel, self.landmarks, self.dtype, process_buffers()
        )


#: What travels of the space of the centres: all of it where that is little.
SpaceInfo = SpanInfo | Space


def describe_space(space: Space) -> SpaceInfo:
    """Return what workers need of a space, as it is now."""
    if isinstance(space, SpanSpace):
        return SpanInfo(space.kernel, space.landmarks, space.dtype)
    return space


def without_means(reduction: Any) -> Reduction:
    """Return a pass with what workers need of its centres."""
    centers = getattr(reduction, "centers", None)
    if centers is None:
        return reduction
    none = np.empty((*centers.squared_norms.shape, 0))
    return replace(reduction, centers=replace(centers, means=none))


@dataclass(frozen=True)
class Call:
    """A pass, and which restarts of the labels that it takes; None for all state."""

    reduction: Reduction
    columns: tuple[list[int] | None, ...] = ()


@dataclass(frozen=True)
class KeptBlocks:
    """The kernel blocks of a partition, and ``‖φ(x)‖²`` of its rows."""

    blocks: list[Array]
    norms: list[Any]
    length: int


def blocks_of(
    part: Any, weights: Array | None, space_info: SpaceInfo, info: PartitionInfo
) -> KernelBlocks:
    """Return the kernel blocks of a partition, kept or to be computed."""
    space = space_info.open() if isinstance(space_info, SpanInfo) else space_info
    if not isinstance(part, KeptBlocks):
        return KernelBlocks(rows_of(part, weights, info), space, first=info.block)
    nothing = np.empty((part.length, 0), dtype=space.dtype)
    rows = Rows(nothing, process_buffers(), weights, first=info.row)
    return KernelBlocks.of_kept(rows, space, part.blocks, part.norms, info.block)


def keep_blocks(part: Any, info: PartitionInfo, space_info: SpaceInfo) -> KeptBlocks:
    """Return the kernel blocks of a partition, to be kept."""
    with Workers(1):
        blocks = blocks_of(part, None, space_info, info)
        values = [blocks.values(span).copy() for span in blocks.spans]
        norms = [blocks.norms(span) for span in blocks.spans]
        return KeptBlocks(values, norms, len(blocks.rows))


def run_chunk(
    part: Any, info: PartitionInfo, weights: Array | None, *given: Any
) -> tuple[Any, Any]:
    """Return what a pass leaves with the rows of a partition, and its summary.

    `given` are what earlier passes left, the space and the pass.
    """
    *states, space_info, call = given
    values = [
        state if columns is None else state.labels[:, columns]
        for (state, _), columns in zip(states, call.columns, strict=True)
    ]
    with Workers(1):
        blocks: Any = None  # for passes that read no rows
        if part is not None:
            blocks = blocks_of(part, weights, space_info, info)
        found: tuple[Any, Any] = call.reduction.chunk(blocks, *values)
        return found


def map_chunk(
    part: Any, space_info: SpaceInfo, info: PartitionInfo, call: Call
) -> Array:
    """Return a value for every row of a partition."""
    found: Array = run_chunk(part, info, None, space_info, call)[0]
    return found


def stack_states(states: list[tuple[RowState, Any]], columns: list[int]) -> RowState:
    """Return labels of several passes side by side, one restart of each."""
    labels = [
        state.labels[:, column]
        for (state, _), column in zip(states, columns, strict=True)
    ]
    return RowState(np.stack(labels, axis=1))
