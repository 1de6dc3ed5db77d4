"""Rows that stay with the executors of a Spark cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from sketchmeans.data.partitioned_rows import PartitionedRows
from sketchmeans.data.rows import Block, Rows
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.spark.table import MappedTable, SparkTable, keep, one_each

Function = Callable[..., Any]
Mapping = Callable[[Block], Block]

#: Passes that build on each other before Spark forgets how the first were computed: it
#: sends all that to the executors in every pass.
_MAX_DEPTH = 20


@dataclass(frozen=True)
class Failure:
    """An error in an executor that would come again: Spark need not try once more."""

    error: Exception


@dataclass(frozen=True)
class States:
    """What a pass has left with each partition, and on how many passes it builds."""

    parts: Any
    depth: int = 0


class SparkRows(PartitionedRows):
    """The rows of a Spark DataFrame; weights are of its column, on a scale of one."""

    X: SparkTable
    is_sparse = False

    def __init__(
        self, X: SparkTable, workers: Workers, weights: Array | None = None
    ) -> None:
        super().__init__(X, workers, weights)
        #: A weight of the column is this times the one in `weights`.
        self.unit = 1.0
        if weights is not None and not isinstance(X, MappedTable):
            own = X.column_weights
            if own is not None:
                first = int(np.flatnonzero(weights)[0])
                self.unit = float(own[first] / weights[first]) or 1.0
            if own is None or not np.array_equal(own / self.unit, weights):
                raise ValueError(
                    "sample_weight should be None with a Spark DataFrame, whose rows "
                    "have no order: fit SparkTable(X, weight='...'), which names a "
                    "column of weights."
                )

    @property
    def context(self) -> Any:
        """The Spark context, which runs jobs."""
        return self.X.frame.sparkSession.sparkContext

    def work(self, parts: Any, function: Function, height: int, *shared: Any) -> Any:
        """Return ``function(part, info, unit of weights, *shared)`` of partitions.

        None where there are no rows.  What is shared is sent to an executor once.
        """
        infos = {info.declared.number: info for info in self.list_infos(height)}
        unit = None if self.weights is None else self.unit
        sent = self.context.broadcast((infos, unit, shared))

        def attempt(number: int, given: Iterator[Any]) -> Iterator[Any]:
            infos, unit, shared = sent.value
            for part in given:
                try:
                    info = infos.get(number)
                    yield info and function(part, info, unit, *shared)
                except (TypeError, ValueError) as error:
                    yield Failure(error)

        return parts.mapPartitionsWithIndex(attempt)

    def on_each(
        self,
        function: Function,
        height: int,
        *shared: Any,
        numbers: list[Array] | None = None,
        states: Any = None,
    ) -> list[Any]:
        keys = [part.declared.number for part in self.X.partitions]
        is_rows = states is None
        own: dict[int, tuple[Array, ...]] = dict.fromkeys(keys, ())
        if numbers is not None:
            some = zip(keys, numbers, strict=True)
            own = {key: (rows,) for key, rows in some if len(rows)}

        def call(part: Any, info: Any, unit: Any, own: Any) -> Any:
            value = part[0] if is_rows else part
            return function(value, info, *own[info.declared.number], *shared)

        given = self.X.parts if states is None else states.parts
        calls = self.work(given, call, height, own)
        found = self.context.runJob(calls, list, list(own)) if own else []
        results = dict(zip(own, map(_check, found), strict=True))
        return [results.get(key) for key in keys]

    def fold(
        self, function: Function, combine: Function, height: int, *shared: Any
    ) -> Any:
        def call(part: Any, info: Any, unit: Any, *shared: Any) -> Any:
            return function(part[0], info, scale_weights(part[1], unit), *shared)

        return tree_reduce(self.work(self.X.parts, call, height, *shared), combine)

    def merge_states(self, function: Function, states: Any, *shared: Any) -> States:
        is_one = len(states) == 1

        def call(found: Any) -> Any:
            every = [found] if is_one else found
            return None if every[0] is None else function(every, *shared)

        return keep_states(zip_states(states).map(call), states)

    def labels_of(self, labels: Any) -> Any:
        """Return the labels of the only restart as a lazy DataFrame."""
        column = labels.columns[0]

        def read(number: int, given: Iterator[Any]) -> Iterator[tuple[int, int, int]]:
            for state, _ in filter(None, given):
                for row, label in enumerate(state.labels[:, column].tolist()):
                    yield number, row, label

        found = labels.states.parts.mapPartitionsWithIndex(read)
        session = self.X.frame.sparkSession
        return session.createDataFrame(found, "partition int, row long, label int")

    def view(self, function: Mapping) -> ViewedRows:
        """Return other features of the same rows, computed where these are."""
        return ViewedRows(self, function)

    def map_lazily(self, function: Any) -> NoReturn:
        """Raise: Spark has no lazy arrays."""
        raise TypeError(
            "predict and transform do not take a Spark DataFrame: use "
            "sketchmeans.spark.transform_spark(model, X), or a sample in memory."
        )


class ViewedRows(SparkRows):
    """Other features of rows on a cluster, which a function of blocks computes."""

    def __init__(self, source: SparkRows, function: Mapping) -> None:
        table = MappedTable(source.X, function)
        super().__init__(table, source.workers, source.weights)
        self.show(source, function)
        self.unit = source.unit

    def load(self) -> Rows:
        """Return the rows after the executors were asked to keep them."""
        self.X.parts = keep(self.X.parts)
        return self

    hold = load


def scale_weights(weights: Array | None, unit: float | None) -> Array | None:
    """Return weights of a column on a scale of one; None where all are one."""
    return None if unit is None or weights is None else weights / unit


def zip_states(states: list[States]) -> Any:
    """Return what passes have left with each partition: in lists, if of several."""
    first, *others = [state.parts for state in states]
    for number, other in enumerate(others):
        pairs = one_each(first).zip(other)
        first = pairs.map(list if not number else lambda both: [*both[0], both[1]])
    return one_each(first)


def keep_states(parts: Any, before: list[States]) -> States:
    """Return what a pass leaves with the rows, kept by the executors."""
    depth, kept = 1 + max((states.depth for states in before), default=0), keep(parts)
    if depth < _MAX_DEPTH:
        return States(kept, depth)
    has_folder = kept.context.getCheckpointDir() is not None
    (kept.checkpoint if has_folder else kept.localCheckpoint)()
    return States(kept)


def tree_reduce(parts: Any, combine: Function) -> Any:
    """Return what partitions have found, if not None, combined along a tree."""

    def merge(one: Any, other: Any) -> Any:
        failures = [found for found in (one, other) if isinstance(found, Failure)]
        return failures[0] if failures else combine([one, other])

    return _check(parts.filter(lambda found: found is not None).treeReduce(merge))


def _check(found: Any) -> Any:
    if isinstance(found, Failure):
        raise found.error
    return found
