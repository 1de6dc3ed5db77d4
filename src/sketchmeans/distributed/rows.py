"""Rows that stay on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        self._infos: dict[tuple[int, bool], list[Delayed]] = {}
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

    def infos(self, height: int) -> list[Delayed]:
        """Return where the partitions are, in blocks of this height."""
        key = height, self.checked
        if key not in self._infos:
            found, block = [], 0
            for part in self.X.partitions:
                dtype, declared = self.X.dtype, part.declared
                info = PartitionInfo(part.start, block, dtype, declared, self.checked)
                found.append(literal(info))
                block += len(block_slices(part.length, height))
            self._infos[key] = found
        return self._infos[key]

    def persist(self, budget: int) -> None:
        """Keep the rows on the workers, if half of what is free there holds them.

        Else they are computed anew in each pass.
        """
        free, is_elsewhere = free_memory(budget)
        if 2 * self.X.size <= free:
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
        sent = literal(function)
        sums = [
            task(tasks.sum_terms, part.rows, weights, info, sent, height)
            for part, weights, info in zip(
                self.X.partitions, self.weight_parts, self.infos(height), strict=True
            )
        ]
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
        infos, calls = self.infos(block_height(self.n_features, 0)), []
        for owner in np.unique(owners):
            part = partitions[owner]
            numbers = literal(indices[owners == owner] - part.start)
            calls.append(task(tasks.take_rows, part.rows, infos[owner], numbers))
        if not calls:
            empty = np.empty((0, self.n_features), self.X.dtype)
            return sparse.csr_array(empty) if self.is_sparse else empty
        blocks = compute(calls)
        together: Any = (
            sparse.vstack(blocks, format="csr")
            if sparse.issparse(blocks[0])
            else np.concatenate(blocks)
        )
        block = together[np.argsort(order, kind="stable")]
        if not self.checked:
            check_finite(block, indices)
        return block

    def map(self, function: Callable[[Block], Result], height: int) -> Iterator[Result]:
        sent = literal(function)
        calls = [
            task(tasks.map_blocks, part.rows, info, sent, height)
            for part, info in zip(self.X.partitions, self.infos(height), strict=True)
        ]
        return chain.from_iterable(compute(calls))

    def map_some(
        self, function: Callable[[Block], Result], numbers: Array, height: int
    ) -> Iterator[Result]:
        sent, calls = literal(function), []
        for part, info in zip(self.X.partitions, self.infos(height), strict=True):
            edges = np.searchsorted(numbers, [part.start, part.start + part.length])
            own = numbers[slice(*edges)] - part.start
            if len(own):
                own = literal(own)
                calls.append(task(tasks.map_blocks, part.rows, info, sent, height, own))
        return chain.from_iterable(compute(calls))

    def _compute_moments(self) -> Moments:
        shift = self._typical()
        sent, infos = literal(shift), self.infos(block_height(self.n_features, 0))
        parts = [part.rows for part in self.X.partitions]
        sums = [
            task(tasks.moment_sums, part, weights, info, sent)
            for part, weights, info in zip(parts, self.weight_parts, infos, strict=True)
        ]
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
