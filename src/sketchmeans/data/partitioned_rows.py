"""Rows that stay with the workers of a cluster, whatever runs them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data import partitions
from sketchmeans.data.block_sums import Terms, add_up
from sketchmeans.data.finite import find_not_finite, not_finite_error
from sketchmeans.data.partitions import PartitionInfo
from sketchmeans.data.rows import (
    Block,
    Moments,
    Result,
    Rows,
    block_height,
    block_slices,
    float_type,
)
from sketchmeans.numerics.linalg import ZERO_DISTANCE_ROUNDINGS, Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.sums import merge_sums


class PartitionedRows(Rows):
    """Rows in partitions that other processes hold, with their weights.

    Blocks end where partitions end.  Where partitions are made of whole blocks (of
    4,096 rows or a part of that, a power of two: see `rows.block_height`), these are
    the blocks of a local table, and all passes have its bits.

    A subclass says how a function is run on partitions: `on_each` and `fold`.

    Parameters
    ----------
    X : object
        A table that has `n_features`, `dtype`, and `partitions`: those that have rows,
        each with its `start`, `length` and what is `declared` of it.
    workers : Workers
        The threads of this process, for what is small.
    weights : ndarray of shape (n,), optional
    """

    in_memory = False

    def __init__(self, X: Any, workers: Workers, weights: Array | None = None) -> None:
        self.X = X
        self.workers = workers
        self.weights = weights
        self.first, self.checked = 0, False
        self.n_features = X.n_features
        self.dtype = float_type(X.dtype)
        self.stored_itemsize = X.dtype.itemsize
        self._moments: Moments | None = None

    @cached_property
    def n_rows(self) -> int:
        """Number of rows; a pass over a collection that does not know it."""
        return int(self.X.shape[0])

    def load(self) -> Rows:
        raise TypeError(
            "Rows on a cluster are never loaded into one process. Use a sample: "
            "fit_rows for a reducer, or X.sample(0.01), or X[::100]."
        )

    def show(self, source: PartitionedRows, function: Callable[[Block], Block]) -> None:
        """Let these rows be a view of others; it maps points that users give, too."""
        self.source, self.points = source, function
        self.weight_unit, self.memory = source.weight_unit, source.memory
        # The bits of a product depend on where in a block a row is.
        self.rounding = ZERO_DISTANCE_ROUNDINGS * float(np.finfo(self.dtype).eps)

    @abstractmethod
    def on_each(
        self,
        function: Callable[..., Any],
        height: int,
        *shared: Any,
        numbers: list[Array] | None = None,
        states: Any = None,
    ) -> list[Any]:
        """Return ``function(part, info, *shared)`` for all partitions, in their order.

        With `numbers` of some rows of each, these come after `info`; the result is None
        where there are none, and the partition is left alone.  With `states`, these are
        what the function gets in place of the partitions.
        """

    @abstractmethod
    def fold(
        self,
        function: Callable[..., Any],
        combine: Callable[[list[Any]], Any],
        height: int,
        *shared: Any,
    ) -> Any:
        """Return ``function(part, info, weights, *shared)`` combined along a tree."""

    @abstractmethod
    def merge_states(
        self, function: Callable[..., Any], states: list[Any], *shared: Any
    ) -> Any:
        """Return ``function([state, ...], *shared)`` of what several passes have left.

        What a pass leaves is one value for each partition, which stays with it.
        """

    def list_infos(self, height: int) -> list[PartitionInfo]:
        """Return where all partitions are, in blocks of this height."""
        found, block = [], 0
        for part in self.X.partitions:
            dtype, declared = self.X.dtype, part.declared
            name = _name(part.start, declared.number)
            info = PartitionInfo(part.start, block, dtype, declared, self.checked, name)
            found.append(info)
            block += len(block_slices(part.length, height))
        return found

    def sum_blocks(self, function: Terms, height: int) -> tuple[Array, ...]:
        """Return the sums of what a function returns for the blocks of all rows."""
        found: tuple[Array, ...] = self.fold(
            partitions.sum_terms, _add_copies, height, function, height
        )
        return found

    def block(self, start: int, stop: int) -> Block:
        """Return a few rows that follow each other."""
        return self.take(np.arange(start, stop))

    def take(self, indices: Array) -> Block:
        indices = np.asarray(indices, dtype=np.intp)
        if not len(indices):
            empty = np.empty((0, self.n_features), self.X.dtype)
            return sparse.csr_array(empty) if self.is_sparse else empty
        inside, order = self.split_numbers(indices)
        height = block_height(self.n_features, 0)
        found = self.on_each(partitions.take_rows, height, numbers=inside)
        blocks = [block for block in found if block is not None]
        together: Any = (
            sparse.vstack(blocks, format="csr")
            if sparse.issparse(blocks[0])
            else np.concatenate(blocks)
        )
        block = together[order]
        bad = None if self.checked else find_not_finite(block)
        if bad is not None:
            i, j, kind = bad
            row, names = int(indices[i]), self.X.partitions[0].declared.names
            owner = max(part for part in self._starts() if part[0] <= row)
            column = names[j] if names else j
            raise not_finite_error(_name(*owner), kind, row, column)
        return block

    def _starts(self) -> list[tuple[int, int]]:
        """Return the first row of each partition, and its number."""
        parts = self.X.partitions
        return [(part.start, part.declared.number) for part in parts]

    def split_numbers(self, indices: Array) -> tuple[list[Array], Array]:
        """Return which rows of each partition are asked for, and where they belong.

        The second says where in these, one below the other, each row is found.
        """
        parts = self.X.partitions
        starts = [part.start for part in parts]
        owners = np.searchsorted(starts, indices, "right") - 1
        order = np.argsort(owners, kind="stable")
        edges = np.arange(len(parts) + 1)
        cuts = np.split(indices[order], np.searchsorted(owners[order], edges))[1:-1]
        inside = [own - start for own, start in zip(cuts, starts, strict=True)]
        return inside, np.argsort(order, kind="stable")

    def map(self, function: Callable[[Block], Result], height: int) -> Iterator[Result]:
        found = self.on_each(partitions.map_blocks, height, function, height)
        return chain.from_iterable(found)

    def map_some(
        self, function: Callable[[Block], Result], numbers: Array, height: int
    ) -> Iterator[Result]:
        edges = [(part.start, part.start + part.length) for part in self.X.partitions]
        inside = [
            numbers[slice(*np.searchsorted(numbers, edge))] - edge[0] for edge in edges
        ]
        found = self.on_each(
            partitions.map_some, height, function, height, numbers=inside
        )
        return chain.from_iterable(part for part in found if part is not None)

    def _compute_moments(self) -> Moments:
        shift, height = self._typical(), block_height(self.n_features, 0)
        terms = self.fold(partitions.moment_sums, merge_sums, height, shift)
        return self._moments_of(terms, shift)


def _name(start: int, number: int) -> str:
    return f"Partition {number} of X (rows from {start})"


def _add_copies(some: list[tuple[Array, ...]]) -> tuple[Array, ...]:
    first, *others = some
    return add_up([tuple(part.copy() for part in first), *others])
