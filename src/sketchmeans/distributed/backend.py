"""Passes on a Dask cluster: those of the local engine, run where the rows are."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np
from dask.delayed import Delayed

from sketchmeans.data.partitions import PartitionInfo
from sketchmeans.distributed import tasks
from sketchmeans.distributed.rows import DaskRows
from sketchmeans.distributed.scheduler import (
    free_memory,
    literal,
    persist,
    task,
    tree_reduce,
)
from sketchmeans.distributed.table import join_parts
from sketchmeans.engine.bounds import RowState
from sketchmeans.engine.partitions import (
    Call,
    PartitionBackend,
    describe_space,
    keep_blocks,
    make_call,
    map_chunk,
    run_chunk,
    split_state,
    without_means,
)
from sketchmeans.engine.passes import Reduction
from sketchmeans.engine.space import Space, SpanSpace, SparseSpace
from sketchmeans.engine.store import is_worth_keeping

#: What a pass has left at each place: for each of its partitions.
States = list[Delayed]


class DaskBackend(PartitionBackend):
    """Runs reductions on the workers; summaries are combined along a tree.

    Kernel blocks may be kept in `budget` bytes if there is no cluster but this process;
    on a cluster the workers' limits decide.
    """

    def __init__(self, rows: DaskRows, space: Space, budget: int = 0) -> None:
        self.rows = rows
        self.space = space
        self._budget = budget

    def prefetch(self, other_rows: int = 0) -> AbstractContextManager[None]:
        return nullcontext()  # the workers keep what they compute in the first pass

    @property
    def _space_info(self) -> Delayed:
        """The space, as it is now; landmarks are sent to the workers once."""
        is_span = isinstance(self.space, SpanSpace)
        return self._span if is_span else literal(describe_space(self.space))

    @cached_property
    def _span(self) -> Delayed:
        return literal(describe_space(self.space))

    @cached_property
    def _sources(self) -> list[Any]:
        """What passes read: the rows, or their kernel blocks where these are kept."""
        rows, space = self.rows, self.space
        parts = rows.by_place([part.rows for part in rows.X.partitions])
        if isinstance(space, SpanSpace):
            (self._span,) = persist([self._span])
        size = len(rows) * space.n_columns * space.dtype.itemsize
        free, is_elsewhere = free_memory(self._budget)
        if is_elsewhere:
            free -= rows.kept_bytes
        # Norms in the space of a graph are known after a first pass only.
        is_fixed = not isinstance(space, SparseSpace)
        if not (is_fixed and is_worth_keeping(rows, space)) or size > free:
            return parts
        return persist(rows.apply(keep_blocks, space.height, self._space_info))

    def run(self, reduction: Reduction, *values: Any) -> Any:
        made, states = make_call(self, reduction, values)
        call = literal(made)
        rows, sources = self.rows, self._sources
        parts: list[Any] | None = None  # the rows themselves
        if reduction.reads == "blocks":
            parts = sources
        elif reduction.reads == "nothing":
            parts = rows.by_place([None] * len(rows.X.partitions))
        found = rows.apply(
            run_chunk,
            self.space.height,
            self._space_info,
            call,
            own=[rows.by_place(rows.weight_parts), *states],
            parts=parts,
        )
        summary, kept = tree_reduce(
            [task(tasks.summary_of, place, call) for place in found],
            lambda parts: task(tasks.combine, call, parts),
            found,
        )
        return kept, reduction.finalize(summary)

    def send(self, state: RowState) -> States:
        """Bring what a pass has left, and a checkpoint has kept, to the rows."""
        own = split_state(state, [*self.rows.X.partitions])
        places = self.rows.by_place([(part, None) for part in own])
        return persist([literal(place) for place in places])

    def map_rows(self, reduction: Reduction, width: tuple[int, ...], dtype: Any) -> Any:
        """Return a lazy array; nothing is computed, not even the number of rows."""
        table = self.rows.X
        call, space_info = literal(Call(without_means(reduction))), self._space_info
        lengths: list[Any] = table.known_lengths or [np.nan] * len(table.parts)
        starts = np.cumsum([0.0, *lengths])
        found = []
        for number, part in enumerate(table.delayed()):
            is_known = table.known_lengths is not None
            info = PartitionInfo(
                int(starts[number]) if is_known else 0,
                0,
                table.dtype,
                table.declared(number, lengths[number] if is_known else None),
                name="Input X" if is_known else f"Partition {number} of X",
            )
            info = literal(info)
            found.append(task(map_chunk, part, space_info, info, call))
        return join_parts(found, lengths, width, dtype)
