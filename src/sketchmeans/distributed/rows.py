"""Rows that stay on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from dask.delayed import Delayed

from sketchmeans.data.partitioned_rows import PartitionedRows
from sketchmeans.data.rows import Rows
from sketchmeans.distributed import tasks
from sketchmeans.distributed.scheduler import (
    compute,
    free_memory,
    group_by_worker,
    literal,
    persist,
    task,
    tree_reduce,
)
from sketchmeans.distributed.table import DaskTable, join_parts
from sketchmeans.distributed.views import MappedTable, Mapping
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.memory import memory_budget
from sketchmeans.numerics.parallel import Workers


class DaskRows(PartitionedRows):
    """The rows of a Dask array or dataframe, with their weights."""

    X: DaskTable

    def __init__(
        self, X: DaskTable, workers: Workers, weights: Array | None = None
    ) -> None:
        super().__init__(X, workers, weights)
        self._infos: dict[tuple[int, bool], Delayed] = {}
        #: Bytes of rows that are kept on the workers for this fit.
        self.kept_bytes = 0

    @cached_property
    def is_sparse(self) -> bool:
        """Whether the partitions are CSR matrices."""
        return self.X.is_sparse

    @cached_property
    def weight_parts(self) -> list[Delayed | None]:
        """The weights of each partition, next to its rows."""
        weights, partitions = self.weights, self.X.partitions
        if weights is None:
            return [None] * len(partitions)
        parts = [weights[part.start : part.start + part.length] for part in partitions]
        return list(persist([literal(part) for part in parts]))

    def infos(self, height: int) -> Delayed:
        """Return where all partitions are, in blocks of this height."""
        key = height, self.checked
        if key not in self._infos:
            self._infos[key] = literal(self.list_infos(height))
        return self._infos[key]

    @cached_property
    def places(self) -> list[list[int]]:
        """The partitions that one task works on: those that a worker keeps, in parts.

        A task costs the scheduler and the worker about a millisecond: many small ones
        take longer than what they compute.
        """
        partitions = self.X.partitions
        if not self.kept_bytes:
            return [[number] for number in range(len(partitions))]
        return group_by_worker([part.rows for part in partitions])

    def by_place(self, values: list[Any]) -> list[list[Any]]:
        """Return values of all partitions, grouped as tasks are."""
        return [[values[number] for number in place] for place in self.places]

    def apply(
        self,
        function: Callable[..., Any],
        height: int,
        *shared: Any,
        own: Sequence[list[Any]] = (),
        fold: Callable[[list[Any]], Any] | None = None,
        parts: list[Any] | None = None,
    ) -> list[Delayed]:
        """Return a task for each place: see `tasks.apply`.

        `own` are values of partitions, grouped by place, and `parts` what is read.
        """
        rows = [part.rows for part in self.X.partitions]
        parts = self.by_place(rows) if parts is None else parts
        infos = self.infos(height)
        return [
            task(
                tasks.apply, function, fold, given, place, infos, list(values), *shared
            )
            for given, place, *values in zip(parts, self.places, *own, strict=True)
        ]

    def on_each(
        self,
        function: Callable[..., Any],
        height: int,
        *shared: Any,
        numbers: list[Array] | None = None,
        states: list[Any] | None = None,
    ) -> list[Any]:
        own, is_asked = [], [True] * len(self.places)
        if numbers is not None:
            some = self.by_place(numbers)
            own = [[literal(each) for each in some]]
            is_asked = [any(len(rows) for rows in each) for each in some]
        arguments = map(_as_argument, shared)
        calls = self.apply(function, height, *arguments, own=own, parts=states)
        found = iter(compute([c for c, a in zip(calls, is_asked, strict=True) if a]))
        every = [
            next(found) if asked else [None] * len(place)
            for asked, place in zip(is_asked, self.places, strict=True)
        ]
        return list(self._in_order(every))

    def _in_order(self, found: list[list[Any]]) -> Iterator[Any]:
        """Yield results of places by partition, in the order of these."""
        numbers = [number for place in self.places for number in place]
        results = list(chain.from_iterable(found))
        return (results[i] for i in np.argsort(numbers).tolist())

    def fold(
        self,
        function: Callable[..., Any],
        combine: Callable[[list[Any]], Any],
        height: int,
        *shared: Any,
    ) -> Any:
        weights = self.by_place(self.weight_parts)
        arguments = map(_as_argument, shared)
        parts = self.apply(function, height, *arguments, own=[weights], fold=combine)
        return tree_reduce(parts, lambda some: task(combine, some))[0]

    def persist(self, max_memory: float | str | None) -> None:
        """Keep the rows on the workers, if half of what is free there holds them.

        Else they are computed anew in each pass.
        """
        free, is_elsewhere = free_memory(memory_budget(max_memory))
        if self.X.is_persisted or 2 * self.X.size <= free:
            self.X.persist()
            self.kept_bytes = self.X.size
            self.memory = 0 if is_elsewhere else self.kept_bytes
        self.X.forget_first()

    def merge_states(
        self, function: Callable[..., Any], states: list[Any], *shared: Any
    ) -> list[Delayed]:
        arguments = [_as_argument(value) for value in shared]
        return persist(
            [
                task(tasks.merge, function, list(place), *arguments)
                for place in zip(*states, strict=True)
            ]
        )

    def labels_of(self, labels: Any) -> Any:
        """Return the labels of the only restart as a lazy Dask array."""
        homes = {
            number: task(tasks.labels_of, state, i, labels.columns[0])
            for state, place in zip(labels.states, self.places, strict=True)
            for i, number in enumerate(place)
        }
        lengths = [part.length for part in self.X.partitions]
        found = [homes[number] for number in range(len(lengths))]
        return join_parts(found, lengths, (), np.dtype(np.int32))

    def view(self, function: Mapping) -> ViewedRows:
        """Return other features of the same rows, computed where these are."""
        return ViewedRows(self, function)

    def map_lazily(self, function: Mapping) -> Any:
        """Return what a function makes of blocks of rows, as a lazy Dask array."""
        return MappedTable(self.X, function).to_dask()


class ViewedRows(DaskRows):
    """Other features of rows on a cluster, which a function of blocks computes.

    It maps points that a user gives, too.
    """

    def __init__(self, source: DaskRows, function: Mapping) -> None:
        super().__init__(
            MappedTable(source.X, function), source.workers, source.weights
        )
        self.show(source, function)
        self._places_of = source

    @property
    def places(self) -> list[list[int]]:
        return self._places_of.places

    def load(self) -> Rows:
        """Return the rows after the workers were asked to keep them."""
        self.persist(None)
        return self

    def hold(self) -> None:
        """Compute all features once, for many passes."""
        self.load()


def _as_argument(value: Any) -> Any:
    """Return a value that all tasks of a pass share, as `task` takes it."""
    return value if isinstance(value, int) else literal(value)
