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


def moment_sums(
    part: Any, info: PartitionInfo, weights: Array | None, shift: Array
) -> TreeSum:
    """Return the sums that give the moments of all rows."""
    with Workers(1):
        return rows_of(part, weights, info).moment_sums(shift, info.block)


def take_rows(part: Any, info: PartitionInfo, rows: Array) -> Block | None:
    """Return a few rows of a partition."""
    if not len(rows):
        return None
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
    info: PartitionInfo,
    weights: Array | None,
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


def stack_labels(
    found: list[list[tuple[Any, Any]]], columns: list[int]
) -> list[tuple[Any, None]]:
    """Return labels of several passes side by side, as what a pass leaves."""
    return [
        (
            RowState(
                np.stack(
                    [
                        state.labels[:, column]
                        for (state, _), column in zip(passes, columns, strict=True)
                    ],
                    axis=1,
                )
            ),
            None,
        )
        for passes in zip(*found, strict=True)
    ]


def map_some(
    part: Any,
    info: PartitionInfo,
    numbers: Array,
    function: Callable[[Block], Any],
    height: int,
) -> list[Any]:
    """Return what a function returns for some rows of each block."""
    if not len(numbers):
        return []
    return map_blocks(part, info, function, height, numbers)


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
