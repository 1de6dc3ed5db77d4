"""Lloyd passes on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed

from sketchmeans.distributed import parts
from sketchmeans.distributed.parts import Nearest, Place, Plan, Summary
from sketchmeans.distributed.rows import DaskRows
from sketchmeans.distributed.running import (
    Node,
    kept,
    literal,
    merged,
    results,
    room,
    task,
)
from sketchmeans.distributed.table import Partition
from sketchmeans.engine.assign import unpacked
from sketchmeans.engine.blocks import BlockEngine
from sketchmeans.engine.bounds import Steps, Totals
from sketchmeans.engine.coordinates import STORE_FEATURES
from sketchmeans.engine.lloyd import Assignment, Centers
from sketchmeans.engine.looks import Look
from sketchmeans.engine.spaces import SpanSpace
from sketchmeans.numerics.linalg import Array


class PartLabels:
    """The labels of all rows for some restarts, which stay with the partitions.

    Parameters
    ----------
    passed : list of Node
        What a pass left with each partition.
    partitions : list of Partition
    columns : list of int
        The restarts.
    """

    def __init__(
        self, passed: list[Node], partitions: list[Partition], columns: list[int]
    ) -> None:
        self.passed = passed
        self.partitions = partitions
        self.columns = columns

    def __getitem__(self, key: Any) -> Any:
        """Return some of the restarts, or the labels of a few rows of the only one."""
        if isinstance(key, tuple):
            chosen = np.atleast_1d(np.asarray(self.columns)[key[1]]).tolist()
            return PartLabels(self.passed, self.partitions, chosen)
        numbers = np.asarray(key)
        labels = np.empty(len(numbers), dtype=np.int32)
        held, tasks = [], []
        for passed, part in zip(self.passed, self.partitions, strict=True):
            own = (numbers >= part.start) & (numbers < part.start + part.length)
            if own.any():
                held.append(own)
                inside = literal(numbers[own] - part.start)
                tasks.append(task(parts.labels_at, passed, self.columns[0], inside))
        for own, found in zip(held, results(tasks), strict=True):
            labels[own] = found
        return labels

    def to_dask(self) -> Any:
        """Return the labels of the only restart as a Dask array."""
        return da.concatenate(
            [
                da.from_delayed(
                    delayed(parts.labels_of, pure=False)(
                        Delayed(passed.key, {passed.key: passed.entry}),
                        self.columns[0],
                    ),
                    (part.length,),
                    np.int32,
                )
                for passed, part in zip(self.passed, self.partitions, strict=True)
            ]
        )


class DaskEngine(BlockEngine):
    """The engine whose passes over all rows run on the workers.

    It decides as `BlockEngine` does, from the same sums in the same order.

    Parameters
    ----------
    rows : DaskRows
    space : SpanSpace
    budget : int
        Bytes in which coordinates may be stored if there is no cluster but this
        process; on a cluster the workers' limits say.
    """

    rows: DaskRows
    space: SpanSpace

    def __init__(self, rows: DaskRows, space: SpanSpace, budget: int = 0) -> None:
        self.rows = rows
        self.space = space
        self.workers = rows.workers
        self._budget = budget
        stored = rows.X.dtype
        self._plan = literal(Plan(space.kernel, space.landmarks, space.dtype, stored))
        self._passed: list[Node] = []
        self._before: PartLabels | None = None
        #: Centres that the bounds are for, while there are bounds.
        self._followed: Centers | None = None

    @contextmanager
    def stored_ahead(self, beside: int = 0) -> Iterator[None]:
        yield  # the workers store what they compute in the first pass

    @cached_property
    def _places(self) -> list[Place]:
        return self.rows.places(self.space.height)

    @cached_property
    def _sources(self) -> list[Node]:
        """What passes read: the rows, or their coordinates where these can be kept."""
        rows, space = self.rows, self.space
        partitions = [part.rows for part in rows.X.partitions]
        (self._plan,) = kept([self._plan])
        size = len(rows) * space.n_coordinates * space.dtype.itemsize
        free, elsewhere = room(self._budget)
        if elsewhere:
            free -= rows.kept_bytes
        many = space.storable and rows.n_features >= STORE_FEATURES
        if not many or size > free:
            return partitions
        return kept(
            [
                task(parts.coordinates, part, self._plan, literal(place))
                for part, place in zip(partitions, self._places, strict=True)
            ]
        )

    def _tasks(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        each: tuple[list[Any], ...] = (),
        sources: list[Node] | None = None,
        weighted: bool = True,
    ) -> list[Node]:
        """Return one task for each partition.

        Its arguments are the rows, their weights, the plan, `arguments`, the place and
        what there is of `each` for that partition.
        """
        sources = self._sources if sources is None else sources
        return [
            task(
                function,
                source,
                *([weights] if weighted else []),
                self._plan,
                *arguments,
                literal(place),
                *own,
            )
            for source, weights, place, *own in zip(
                sources, self.rows.weight_parts, self._places, *each, strict=True
            )
        ]

    @property
    def _row_sources(self) -> list[Node]:
        return [part.rows for part in self.rows.X.partitions]

    def assign(self, centers: Centers) -> Assignment:
        if len(centers) == 1 and self._followed is not None:
            found = self._look_again(centers)
            if found is not None:
                return found
        return self._assign_all(centers)

    def _assign_all(self, centers: Centers) -> Assignment:
        before = self._before
        known = before is not None and len(before.columns) == len(centers)
        earlier = before.passed if before is not None and known else None
        columns = before.columns if before is not None and known else None
        tasks = self._tasks(
            parts.sweep,
            _sent(centers),
            each=(
                earlier or [None] * len(self._sources),
                *_repeated(len(self._sources), columns),
            ),
        )
        summary = self._pass(tasks)
        shape = centers.coefficients.shape
        sums, counts, costs = unpacked(summary.terms.total(), shape)
        self._followed = None
        if len(centers) == 1:
            self._followed = centers
            self._totals = Totals(sums[0], counts[0], costs)
            self._drift = np.zeros(shape[1])
        return self._finished(summary, sums, counts, costs)

    def _look_again(self, centers: Centers) -> Assignment | None:
        """Look at the rows that may have changed cluster, unless they are too many.

        All partitions together decide that.  With few features each looks at its rows
        at once if its own are few, which saves a second round: most often they are of
        one mind.
        """
        assert self._followed is not None
        rows = self.rows
        steps = Steps.between(self._followed, centers)
        self._totals = self._totals.moved(self._followed, centers)
        self._followed = centers
        self._drift += steps.moved
        sent = _sent(centers)
        moves = literal(steps)
        if rows.n_features < STORE_FEATURES:
            tasks = self._tasks(
                parts.follow,
                sent,
                each=(self._passed, *_repeated(len(self._passed), moves)),
                sources=self._row_sources,
            )
        else:
            tasks = [task(parts.loosened, passed, moves) for passed in self._passed]
        summary = self._pass(tasks)
        look = Look.at(summary.active, len(rows), rows.n_features)
        if look is Look.ALL:
            return None
        if summary.waiting:
            tasks = self._tasks(
                parts.look_again,
                sent,
                each=(self._passed, *_repeated(len(self._passed), look)),
                sources=self._sources if look is Look.PICKED else self._row_sources,
            )
            summary = self._pass(tasks)
        shape = centers.coefficients.shape
        self._totals = self._totals.changed(*unpacked(summary.terms.total(), shape))
        found = self._totals
        if found.cost[0] <= 0.0:
            return None
        return self._finished(summary, found.sums[None], found.counts[None], found.cost)

    def _pass(self, tasks: list[Node]) -> Summary:
        """Run a pass, whose labels and bounds stay where the rows are."""
        summaries = [task(parts.summary_of, passed) for passed in tasks]
        summary, self._passed = merged(summaries, parts.merged_summaries, tasks)
        return cast(Summary, summary)

    def _finished(
        self, summary: Summary, sums: Array, counts: Array, costs: Array
    ) -> Assignment:
        columns = list(range(len(costs)))
        labels: Any = PartLabels(self._passed, self.rows.X.partitions, columns)
        costs = costs / self.rows.total_weight
        return Assignment(labels, costs, sums, counts, summary.changed)

    def update(self, assignment: Assignment, centers: Centers) -> Centers:
        self._before = cast(Any, assignment.labels)
        return super().update(assignment, centers)

    def exemplars(self, centers: Centers, labels: Any) -> Array:
        if self._followed is None:
            self._assign_all(centers)
        assert self._followed is not None
        steps = Steps.between(self._followed, centers)
        sent = (literal(steps), literal(self._drift + steps.moved))
        tasks = self._tasks(
            parts.nearest_rows,
            _sent(centers),
            each=(
                self._passed,
                labels.passed,
                *_repeated(len(self._passed), labels.columns[0], *sent),
            ),
            sources=self._row_sources,
        )
        found: list[Nearest] = results(tasks)
        rows = np.array([part.rows for part in found])
        order = np.lexsort(
            (
                rows,
                np.array([part.distances for part in found]),
                np.array([part.strange for part in found]),
            ),
            axis=0,
        )
        return np.asarray(rows[order[0], np.arange(rows.shape[1])])

    def _costliest(self, labels: Any, centers: Centers, size: int) -> Array:
        tasks = self._tasks(
            parts.costliest,
            _sent(centers),
            each=(
                labels.passed,
                *_repeated(len(labels.passed), labels.columns[0], size),
            ),
        )
        found = results(tasks)
        costs = np.concatenate([costs for costs, _ in found])
        numbers = np.concatenate([numbers for _, numbers in found])
        return np.asarray(numbers[np.lexsort((numbers, -costs))[:size]])

    def partition(self, labels: Array, k: int) -> tuple[Assignment, Centers]:
        partitions = self.rows.X.partitions
        given = [labels[part.start : part.start + part.length] for part in partitions]
        passed = kept([literal(parts.Passed(own[:, None])) for own in given])
        tasks = self._tasks(
            parts.partition_terms, each=(passed, *_repeated(len(passed), k))
        )
        terms, _ = merged(tasks, parts.merged_terms, [])
        there: Any = PartLabels(passed, partitions, [0])
        return self.finished_partition(there, terms, k)

    def total_cost(self, centers: Centers) -> float:
        if not self.rows.X.partitions:
            raise ValueError("X has 0 samples; at least one is needed for a cost.")
        tasks = self._tasks(parts.cost_terms, _sent(centers), sources=self._row_sources)
        terms, _ = merged(tasks, parts.merged_terms, [])
        return float(terms.total())

    def predict(self, centers: Centers) -> Any:
        return self._lazy(parts.predict, centers, (), np.dtype(np.int32))

    def all_distances(self, centers: Centers) -> Any:
        k = centers.coefficients.shape[1]
        return self._lazy(parts.distances, centers, (k,), self.rows.dtype)

    def _lazy(
        self,
        function: Callable[..., Any],
        centers: Centers,
        width: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> Any:
        """Return what a function finds in each partition, as a lazy array."""
        table = self.rows.X
        plan, sent = (
            delayed(node.entry, pure=False, traverse=False)
            for node in (self._plan, _sent(centers))
        )
        call = delayed(function, pure=False)
        lengths: list[Any] = table.known_lengths or [np.nan] * len(table.parts)
        starts = np.cumsum([0.0, *lengths])
        blocks = []
        for number, part in enumerate(table.delayed()):
            known = table.known_lengths is not None
            length = lengths[number] if known else None
            place = Place(
                int(starts[number]) if known else 0,
                name="Input X" if known else f"Partition {number} of X",
                declared=table.declared(number, length),
            )
            found = call(part, plan, sent, delayed(place, pure=False, traverse=False))
            shape = (lengths[number], *width)
            blocks.append(da.from_delayed(found, shape, dtype))
        return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _repeated(times: int, *values: Any) -> list[list[Any]]:
    """Return the same values for each partition."""
    return [[value] * times for value in values]


def _sent(centers: Centers) -> Node:
    """Return what workers need of the centres."""
    none = np.empty((*centers.squared_norms.shape, 0))
    return literal(Centers(centers.coefficients, centers.squared_norms, none))
