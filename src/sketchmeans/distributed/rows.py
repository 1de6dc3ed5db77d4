"""Rows that stay on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from dask.delayed import Delayed
from scipy import sparse

from sketchmeans.data.block_sums import Terms, add_up
from sketchmeans.data.rows import (
    Block,
    Moments,
    Result,
    Rows,
    block_height,
    block_slices,
    check_finite,
    float_type,
)
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
from sketchmeans.distributed.table import DaskTable
from sketchmeans.distributed.tasks import PartitionInfo
from sketchmeans.distributed.views import MappedTable, Mapping
from sketchmeans.engine.passes import merge_sums
from sketchmeans.numerics.linalg import ZERO_DISTANCE_ROUNDINGS, Array
from sketchmeans.numerics.memory import memory_budget
from sketchmeans.numerics.parallel import Workers


class DaskRows(Rows):
    """The rows of a Dask array or dataframe, with their weights.

    Blocks end where partitions end.  Where partitions are made of whole blocks (of
    4,096 rows or a part of that, a power of two: see `rows.block_height`), these are
    the blocks of a local table, and all passes have its bits.

    Parameters
    ----------
    X : DaskTable
    workers : Workers
        The threads of this process, for what is small.
    weights : ndarray of shape (n,), optional
    """

    X: DaskTable
    in_memory = False

    def __init__(
        self, X: DaskTable, workers: Workers, weights: Array | None = None
    ) -> None:
        self.X = X
        self.workers = workers
        self.weights = weights
        self.first, self.checked = 0, False
        self.n_features = X.n_features
        self.dtype = float_type(X.dtype)
        self.stored_itemsize = X.dtype.itemsize
        self._moments: Moments | None = None
        self._infos: dict[tuple[int, bool], Delayed] = {}
        #: Bytes of rows that are kept on the workers for this fit.
        self.kept_bytes = 0

    @cached_property
    def n_rows(self) -> int:
        """Number of rows; a pass over a dataframe, which does not know it."""
        return self.X.shape[0]

    @cached_property
    def is_sparse(self) -> bool:
        """Whether the partitions are CSR matrices."""
        return self.X.is_sparse

    @cached_property
    def weight_parts(self) -> list[Delayed | None]:
        """The weights of each partition, beside its rows."""
        weights, partitions = self.weights, self.X.partitions
        if weights is None:
            return [None] * len(partitions)
        parts = [weights[part.start : part.start + part.length] for part in partitions]
        return list(persist([literal(part) for part in parts]))

    def infos(self, height: int) -> Delayed:
        """Return where all partitions are, in blocks of this height."""
        key = height, self.checked
        if key not in self._infos:
            found, block = [], 0
            for part in self.X.partitions:
                dtype, declared = self.X.dtype, part.declared
                info = PartitionInfo(part.start, block, dtype, declared, self.checked)
                found.append(info)
                block += len(block_slices(part.length, height))
            self._infos[key] = literal(found)
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

    def _in_order(self, found: list[list[Any]]) -> Iterator[Any]:
        """Yield results of places by partition, in the order of these."""
        numbers = [number for place in self.places for number in place]
        results = list(chain.from_iterable(found))
        return (results[i] for i in np.argsort(numbers).tolist())

    def persist(self, budget: int) -> None:
        """Keep the rows on the workers, if half of what is free there holds them.

        Else they are computed anew in each pass.
        """
        free, is_elsewhere = free_memory(budget)
        if self.X.is_persisted or 2 * self.X.size <= free:
            self.X.persist()
            self.kept_bytes = self.X.size
            self.memory = 0 if is_elsewhere else self.kept_bytes

    def labels_of(self, labels: Any) -> Any:
        return labels.to_dask()

    def load(self) -> Rows:
        raise TypeError(
            "The rows of a Dask collection are never held in one process. Give what "
            "wants them a sample: fit_rows for a reducer, or X.sample(frac=...) or "
            "X[::100]."
        )

    def view(self, function: Mapping) -> ViewedRows:
        """Return other features of the same rows, computed where these are."""
        return ViewedRows(self, function)

    def to_dask(self, function: Mapping) -> Any:
        """Return what a function makes of blocks of rows, as a lazy Dask array."""
        return MappedTable(self.X, function).to_dask()

    def sum_blocks(self, function: Terms, height: int) -> tuple[Array, ...]:
        """Return the sums of what a function returns for the blocks of all rows."""
        weights, sent = self.by_place(self.weight_parts), literal(function)
        shared = (sent, height)
        sums = self.apply(
            tasks.sum_terms, height, *shared, own=[weights], fold=_add_copies
        )
        found: tuple[Array, ...] = tree_reduce(
            sums, lambda some: task(_add_copies, some)
        )[0]
        return found

    def block(self, start: int, stop: int) -> Block:
        """Return a few rows that follow each other."""
        return self.take(np.arange(start, stop))

    def take(self, indices: Array) -> Block:
        indices = np.asarray(indices, dtype=np.intp)
        partitions = self.X.partitions
        starts = [part.start for part in partitions]
        owners = np.searchsorted(starts, indices, "right") - 1
        order = np.argsort(owners, kind="stable")
        if not len(indices):
            empty = np.empty((0, self.n_features), self.X.dtype)
            return sparse.csr_array(empty) if self.is_sparse else empty
        edges = np.arange(len(partitions) + 1)
        cuts = np.split(indices[order], np.searchsorted(owners[order], edges))[1:-1]
        inside = [own - start for own, start in zip(cuts, starts, strict=True)]
        blocks = self._of_some(
            tasks.take_rows, inside, block_height(self.n_features, 0)
        )
        blocks = [block for block in blocks if block is not None]
        together: Any = (
            sparse.vstack(blocks, format="csr")
            if sparse.issparse(blocks[0])
            else np.concatenate(blocks)
        )
        block = together[np.argsort(order, kind="stable")]
        if not self.checked:
            check_finite(block, indices)
        return block

    def _of_some(
        self,
        function: Callable[..., Any],
        inside: list[Array],
        height: int,
        *shared: Any,
    ) -> list[Any]:
        """Return what a function makes of some rows of partitions, in their order.

        Places of which no row is asked for are left alone.
        """
        numbers = self.by_place(inside)
        calls = self.apply(
            function, height, *shared, own=[[literal(each) for each in numbers]]
        )
        asked = [any(len(own) for own in each) for each in numbers]
        found = iter(
            compute([c for c, is_asked in zip(calls, asked, strict=True) if is_asked])
        )
        none = [[None] * len(each) for each in numbers]
        every = [
            next(found) if is_asked else others
            for is_asked, others in zip(asked, none, strict=True)
        ]
        return list(self._in_order(every))

    def map(self, function: Callable[[Block], Result], height: int) -> Iterator[Result]:
        calls = self.apply(tasks.map_blocks, height, literal(function), height)
        return chain.from_iterable(self._in_order(compute(calls)))

    def map_some(
        self, function: Callable[[Block], Result], numbers: Array, height: int
    ) -> Iterator[Result]:
        edges = [(part.start, part.start + part.length) for part in self.X.partitions]
        inside = [
            numbers[slice(*np.searchsorted(numbers, edge))] - edge[0] for edge in edges
        ]
        shared = (literal(function), height)
        found = self._of_some(tasks.map_some, inside, height, *shared)
        return chain.from_iterable(part for part in found if part is not None)

    def _compute_moments(self) -> Moments:
        shift = self._typical()
        height, weights = (
            block_height(self.n_features, 0),
            self.by_place(self.weight_parts),
        )
        sums = self.apply(
            tasks.moment_sums, height, literal(shift), own=[weights], fold=merge_sums
        )
        terms, _ = tree_reduce(sums, lambda some: task(merge_sums, some))
        return self._moments_of(terms, shift)


class ViewedRows(DaskRows):
    """Other features of rows on a cluster, which a function of blocks computes.

    It maps points that a user gives, too.
    """

    def __init__(self, source: DaskRows, function: Mapping) -> None:
        super().__init__(
            MappedTable(source.X, function), source.workers, source.weights
        )
        self.source = source
        self.points = function
        self.weight_unit, self.memory = source.weight_unit, source.memory
        # The bits of a product depend on where in a block a row is.
        self.rounding = ZERO_DISTANCE_ROUNDINGS * float(np.finfo(self.dtype).eps)

    @property
    def places(self) -> list[list[int]]:
        return self.source.places

    def load(self) -> Rows:
        """Return the rows after the workers were asked to keep them."""
        self.persist(memory_budget(None))
        return self

    def hold(self) -> None:
        """Compute all features once, for many passes."""
        self.load()


def _add_copies(some: list[tuple[Array, ...]]) -> tuple[Array, ...]:
    first, *others = some
    return add_up([tuple(part.copy() for part in first), *others])
