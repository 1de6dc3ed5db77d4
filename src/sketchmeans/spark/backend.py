"""Passes on a Spark cluster: those of the local engine, run where the rows are."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

from sketchmeans.engine.bounds import RowState
from sketchmeans.engine.partitions import (
    PartitionBackend,
    describe_space,
    make_call,
    run_chunk,
    split_state,
)
from sketchmeans.engine.passes import Reduction
from sketchmeans.engine.space import Space
from sketchmeans.spark.rows import (
    SparkRows,
    States,
    keep_states,
    scale_weights,
    tree_reduce,
    zip_states,
)
from sketchmeans.spark.table import keep


class SparkBackend(PartitionBackend):
    """Runs reductions in the executors; summaries are combined along a tree."""

    rows: SparkRows

    def __init__(self, rows: SparkRows, space: Space) -> None:
        self.rows, self.space = rows, space

    def prefetch(self, other_rows: int = 0) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, reduction: Reduction, *values: Any) -> Any:
        call, states = make_call(self, reduction, values)
        rows = self.rows
        is_read, is_one = reduction.reads != "nothing", len(states) == 1

        def work(given: Any, info: Any, unit: Any, *shared: Any) -> Any:
            part, left = given if is_read else ((None, None), given)
            left = [left] if is_one else left
            own = scale_weights(part[1], unit)
            return run_chunk(part[0], info, own, *left, *shared)

        if not is_read:
            given = zip_states(states)
        elif states:
            given = rows.X.parts.zip(zip_states(states))
        else:
            given = rows.X.parts.map(lambda part: (part, []))
        shared = describe_space(self.space), call
        calls = rows.work(given, work, self.space.height, *shared)
        kept = keep_states(calls, states)
        summary = tree_reduce(kept.parts.map(_summary), call.reduction.combine)
        return kept, reduction.finalize(summary)

    def send(self, state: RowState) -> States:
        """Bring what a pass has left, and a checkpoint has kept, to the rows."""
        parts = self.rows.X.partitions
        given: list[Any] = [None] * len(self.rows.X.lengths)
        for part, own in zip(parts, split_state(state, parts), strict=True):
            given[part.declared.number] = own, None
        return States(keep(self.rows.context.parallelize(given, len(given))))

    def map_rows(
        self, reduction: Reduction, width: tuple[int, ...], dtype: Any
    ) -> NoReturn:
        self.rows.map_lazily(reduction)


def _summary(found: Any) -> Any:
    return found[1] if isinstance(found, tuple) else found
