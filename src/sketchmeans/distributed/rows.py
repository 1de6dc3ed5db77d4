"""Rows that stay on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

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
from sketchmeans.distributed import parts
from sketchmeans.distributed.parts import Place
from sketchmeans.distributed.running import (
    Node,
    kept,
    literal,
    merged,
    results,
    room,
    task,
)
from sketchmeans.distributed.table import DaskTable
from sketchmeans.numerics.linalg import Array
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
        self.stored = literal(X.dtype)
        #: Bytes of rows that are kept on the workers for this fit.
        self.kept_bytes = 0

    @staticmethod
    def engine(rows: DaskRows, space: Any, budget: int = 0) -> Any:
        """Return the engine that makes passes over these rows."""
        from sketchmeans.distributed.engine import DaskEngine

        return DaskEngine(rows, space, budget)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows; a pass over a dataframe, which does not know it."""
        return self.X.shape[0]

    @cached_property
    def is_sparse(self) -> bool:
        """Whether the partitions are CSR matrices."""
        return self.X.is_sparse

    @cached_property
    def weight_parts(self) -> list[Node | None]:
        """The weights of each partition, beside its rows."""
        if self.weights is None:
            return [None] * len(self.X.partitions)
        found: list[Node | None] = []
        found += kept(
            [
                literal(self.weights[part.start : part.start + part.length])
                for part in self.X.partitions
            ]
        )
        return found

    def places(self, height: int) -> list[Place]:
        """Return where the partitions are, in blocks of this height."""
        found, block = [], 0
        for part in self.X.partitions:
            found.append(Place(part.start, block, self.checked))
            block += len(block_slices(part.length, height))
        return found

    def persist(self, budget: int) -> None:
        """Keep the rows on the workers, if half of what is free there holds them.

        Else they are computed anew in each pass.
        """
        free, elsewhere = room(budget)
        if 2 * self.X.size <= free:
            self.X.keep()
            self.kept_bytes = self.X.size
            self.memory = 0 if elsewhere else self.kept_bytes

    def labels_of(self, labels: Any) -> Any:
        return labels.to_dask()

    def load(self) -> Rows:
        raise TypeError(  # pragma: no cover - refused before
            "The rows of a Dask collection are never held in one process."
        )

    def block(self, start: int, stop: int) -> Block:
        """Return a few rows that follow each other."""
        return self.take(np.arange(start, stop))

    def take(self, indices: Array) -> Block:
        indices = np.asarray(indices, dtype=np.intp)
        partitions = self.X.partitions
        owners = (
            np.searchsorted([part.start for part in partitions], indices, "right") - 1
        )
        order = np.argsort(owners, kind="stable")
        tasks = []
        for owner in np.unique(owners):
            part = partitions[owner]
            numbers = literal(indices[owners == owner] - part.start)
            tasks.append(task(parts.taken, part.rows, self.stored, numbers))
        if not tasks:
            empty = np.empty((0, self.n_features), self.X.dtype)
            return sparse.csr_array(empty) if self.is_sparse else empty
        blocks = results(tasks)
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
        tasks = [
            task(parts.mapped, part.rows, self.stored, sent, height, literal(place))
            for part, place in zip(self.X.partitions, self.places(height), strict=True)
        ]
        return chain.from_iterable(results(tasks))

    def map_some(
        self, function: Callable[[Block], Result], numbers: Array, height: int
    ) -> Iterator[Result]:
        sent = literal(function)
        tasks = []
        for part, place in zip(self.X.partitions, self.places(height), strict=True):
            edges = np.searchsorted(numbers, [part.start, part.start + part.length])
            chosen = numbers[slice(*edges)] - part.start
            if len(chosen):
                tasks.append(
                    task(
                        parts.mapped_some,
                        part.rows,
                        self.stored,
                        sent,
                        height,
                        literal(place),
                        literal(chosen),
                    )
                )
        return chain.from_iterable(results(tasks))

    def _compute_moments(self) -> Moments:
        shift = self._typical()
        sent = literal(shift)
        height = block_height(self.n_features, 0)
        sums = [
            task(
                parts.moment_sums,
                part.rows,
                weights,
                sent,
                self.stored,
                place.row,
                place.block,
            )
            for part, weights, place in zip(
                self.X.partitions, self.weight_parts, self.places(height), strict=True
            )
        ]
        terms, _ = merged(sums, parts.merged_terms, [])
        return self._moments_of(terms, shift)
