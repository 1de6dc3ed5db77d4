"""What workers do: the passes of the local engine, on one partition.

Nothing here changes its arguments: a worker that is lost takes its results with it, and
the scheduler runs their tasks again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.data.block_sums import Terms, add_up
from sketchmeans.data.rows import Block, Rows, block_slices, by_block
from sketchmeans.distributed.table import Declared, as_block, as_declared
from sketchmeans.engine.bounds import RowState
from sketchmeans.engine.passes import Reduction
from sketchmeans.engine.space import Space, landmark_space
from sketchmeans.engine.store import KernelBlocks
from sketchmeans.kernels import Kernel
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers, process_buffers
from sketchmeans.numerics.sums import TreeSum


@dataclass(frozen=True)
class PartitionInfo:
    """Where a partition is among all rows, and what it should look like."""

    #: Numbers of its first row and block.
    row: int
    block: int
    #: Type in which dataframes are read.
    dtype: np.dtype[Any]
    declared: Declared
    #: Whether all values are known to be finite.
    checked: bool = False
    #: What errors call the table.
    name: str = "Input X"


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


def rows_of(part: Any, weights: Array | None, info: PartitionInfo) -> Rows:
    """Return the rows of a partition, numbered as among all rows in errors."""
    return Rows(
        as_block(as_declared(part, info.declared), info.dtype),
        process_buffers(),
        weights,
        first=info.row,
        name=info.name,
        checked=info.checked,
    )


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


def keep_blocks(part: Any, space_info: SpaceInfo, info: PartitionInfo) -> KeptBlocks:
    """Return the kernel blocks of a partition, to be kept."""
    with Workers(1):
        blocks = blocks_of(part, None, space_info, info)
        values = [blocks.values(span).copy() for span in blocks.spans]
        norms = [blocks.norms(span) for span in blocks.spans]
        return KeptBlocks(values, norms, len(blocks.rows))


def run_chunk(
    part: Any,
    weights: Array | None,
    space_info: SpaceInfo,
    info: PartitionInfo,
    call: Call,
    states: list[Any],
) -> tuple[Any, Any]:
    """Return what a pass leaves with the rows of a partition, and its summary."""
    values = [
        state if columns is None else state.labels[:, columns]
        for (state, _), columns in zip(states, call.columns, strict=True)
    ]
    with Workers(1):
        blocks: Any = None  # for passes that read no rows
        if part is not None:
            blocks = blocks_of(part, weights, space_info, info)
        return call.reduction.chunk(blocks, *values)


def map_chunk(
    part: Any, space_info: SpaceInfo, info: PartitionInfo, call: Call
) -> Array:
    """Return a value for every row of a partition."""
    found: Array = run_chunk(part, None, space_info, info, call, [])[0]
    return found


def summary_of(found: tuple[Any, Any]) -> Any:
    """Return what goes up the tree."""
    return found[1]


def combine(call: Call, summaries: list[Any]) -> Any:
    """Return the summary of several partitions."""
    return call.reduction.combine(summaries)


def labels_of(found: tuple[Any, Any], column: int, rows: Array | None = None) -> Array:
    """Return the labels of a partition, or of some of its rows."""
    labels = found[0].labels[:, column]
    return np.ascontiguousarray(labels if rows is None else labels[rows])


def moment_sums(
    part: Any, weights: Array | None, info: PartitionInfo, shift: Array
) -> TreeSum:
    """Return the sums that give the moments of all rows."""
    with Workers(1):
        return rows_of(part, weights, info).moment_sums(shift, info.block)


def take_rows(part: Any, info: PartitionInfo, rows: Array) -> Block:
    """Return a few rows of a partition."""
    return as_block(as_declared(part, info.declared), info.dtype)[rows]


def map_part(
    part: Any, info: PartitionInfo, function: Callable[[Block], Block], height: int
) -> Array:
    """Return other features of the rows of a partition."""
    if not part.shape[0]:  # as its functions may not like blocks without rows
        part = np.zeros((1, info.declared.width), info.dtype)
        return np.asarray(function(part))[:0]
    return np.concatenate(map_blocks(part, info, function, height))


def sum_terms(
    part: Any,
    weights: Array | None,
    info: PartitionInfo,
    function: Terms,
    height: int,
) -> tuple[Array, ...]:
    """Return the sums of what a function returns for the blocks of a partition."""
    with Workers(1):
        rows = rows_of(part, weights, info)
        return add_up(
            function(rows.block(*span), rows.block_weights(*span))
            for span in block_slices(len(rows), height)
        )


def stack_labels(found: list[tuple[Any, Any]], columns: list[int]) -> tuple[Any, None]:
    """Return labels of several passes side by side, as what a pass leaves."""
    labels = [
        state.labels[:, column]
        for (state, _), column in zip(found, columns, strict=True)
    ]
    return RowState(np.stack(labels, axis=1)), None


def map_blocks(
    part: Any,
    info: PartitionInfo,
    function: Callable[[Block], Any],
    height: int,
    numbers: Array | None = None,
) -> list[Any]:
    """Return what a function returns for each block, or for some rows of each."""
    with Workers(1):
        rows = rows_of(part, None, info)
        if numbers is None:
            return [
                function(rows.block(*span)) for span in block_slices(len(rows), height)
            ]
        groups = by_block(numbers, height)
        return [function(rows.take(numbers[slice(*span)])) for _, span in groups]
