"""Passes over one partition of rows, in the process that holds it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchmeans.data.partitioned_rows import PartitionedRows
from sketchmeans.data.partitions import Partition, PartitionInfo, rows_of
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


def split_state(state: RowState, parts: list[Partition]) -> list[RowState]:
    """Return what a pass has left with all rows, cut into that of each partition."""
    edges = [(part.start, part.start + part.length) for part in parts]
    return [
        RowState(
            state.labels[start:stop], state.upper[start:stop], state.lower[start:stop]
        )
        for start, stop in edges
    ]


def take_labels(
    found: tuple[RowState, Any], info: Any, rows: Array, column: int
) -> Array:
    """Return the labels of some rows of a partition, for one restart."""
    return found[0].labels[rows, column]


def stack_labels(
    states: list[tuple[RowState, Any]], columns: list[int]
) -> tuple[RowState, None]:
    """Return labels of several passes side by side, as what a pass leaves."""
    labels = [
        state.labels[:, column]
        for (state, _), column in zip(states, columns, strict=True)
    ]
    return RowState(np.stack(labels, axis=1)), None


class PartLabels:
    """The labels of all rows for some restarts, which stay with the partitions.

    `states` are what a pass has left there.
    """

    def __init__(self, states: Any, rows: PartitionedRows, columns: list[int]) -> None:
        self.states = states
        self.columns = columns
        self._rows = rows

    def __getitem__(self, key: Any) -> Any:
        """Return some of the restarts, or the labels of a few rows of the only one."""
        if isinstance(key, tuple):
            chosen = np.atleast_1d(np.asarray(self.columns)[key[1]]).tolist()
            return PartLabels(self.states, self._rows, chosen)
        inside, order = self._rows.split_numbers(np.asarray(key, dtype=np.intp))
        found = self._rows.on_each(
            take_labels, 1, self.columns[0], numbers=inside, states=self.states
        )
        none = np.empty(0, dtype=np.int32)
        parts = [part for part in found if part is not None]
        return np.concatenate([none, *parts])[order]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and restarts."""
        return len(self._rows), len(self.columns)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the labels of all rows for the only restart, in this process."""
        labels: Array = self[np.arange(len(self._rows))]
        return labels if dtype is None else labels.astype(dtype)

    def stack(self, others: list[PartLabels]) -> PartLabels:
        """Return these labels of one restart, and others of the same rows."""
        every = [self, *others]
        columns = [labels.columns[0] for labels in every]
        states = [labels.states for labels in every]
        found = self._rows.merge_states(stack_labels, states, columns)
        return PartLabels(found, self._rows, list(range(len(columns))))


class PartitionBackend(ABC):
    """What backends share whose labels stay with the partitions."""

    rows: Any

    @abstractmethod
    def send(self, state: RowState) -> Any:
        """Bring what a pass has left, and a checkpoint has kept, to the rows."""

    def labels(self, states: Any, n_restarts: int) -> PartLabels:
        return PartLabels(states, self.rows, list(range(n_restarts)))

    def place(self, labels: Array | PartLabels) -> PartLabels:
        if isinstance(labels, PartLabels):
            return labels
        return self.labels(self.send(RowState(labels)), labels.shape[1])


def make_call(
    backend: Any, reduction: Reduction, values: tuple[Any, ...]
) -> tuple[Call, list[Any]]:
    """Return a pass in the form that travels, and what earlier passes have left.

    What a checkpoint had here is brought to the rows.
    """

    def place(value: Any) -> Any:
        if isinstance(value, RowState):
            return backend.send(value)
        if not isinstance(value, np.ndarray):
            return value
        return backend.place(value[:, None] if value.ndim == 1 else value)

    if not len(backend.rows):
        raise ValueError("X has 0 samples; at least one is needed for a pass.")
    placed = [place(value) for value in values]
    columns = tuple(getattr(value, "columns", None) for value in placed)
    call = Call(without_means(reduction), columns)
    return call, [getattr(value, "states", value) for value in placed]
