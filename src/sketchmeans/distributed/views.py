"""Rows on a cluster as a function of blocks shows them: shifted, reduced, scaled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from dask.delayed import Delayed

from sketchmeans.data.partitions import Declared, PartitionInfo, map_part
from sketchmeans.data.rows import Block, block_height
from sketchmeans.distributed.scheduler import literal, task
from sketchmeans.distributed.table import DaskPartition, DaskTable, join_parts

#: From a block of rows to other features of the same rows.
Mapping = Callable[[Block], Block]


class MappedTable(DaskTable):
    """Other features of the rows of a table, computed where these are.

    `function` maps a block of rows to dense ones; a row of zeros shows their number and
    type, so that nothing has to be computed for a view.
    """

    def __init__(self, source: DaskTable, function: Mapping) -> None:
        probe = np.asarray(function(np.zeros((1, source.n_features), source.dtype)))
        self.source = source
        self.known_lengths = source.known_lengths
        self.dtype, self.n_features = probe.dtype, probe.shape[1]
        self.meta = np.empty((0, self.n_features), self.dtype)
        self._function = literal(function)
        self._height = block_height(source.n_features, self.n_features)
        self.parts = self._map_parts(source.parts)

    def _map(self, part: Delayed, start: int | None, declared: Declared) -> Delayed:
        name = "Input X" if start is not None else f"Partition {declared.number} of X"
        info = PartitionInfo(start or 0, 0, self.source.dtype, declared, name=name)
        return task(map_part, part, literal(info), self._function, self._height)

    def _map_parts(self, parts: list[Delayed]) -> list[Delayed]:
        """Return parts of the source, mapped; the rows of each may not be counted."""
        known = self.known_lengths
        each: list[Any] = [(None, None)] * len(parts)
        if known is not None:
            each = list(zip(np.cumsum([0, *known]).tolist(), known, strict=False))
        return [
            self._map(part, start, self.source.declared(number, length))
            for number, (part, (start, length)) in enumerate(
                zip(parts, each, strict=True)
            )
        ]

    def to_dask(self) -> Any:
        """Return the features as a lazy array; nothing is computed, no row counted."""
        lengths: list[Any] = self.known_lengths or [np.nan] * len(self.parts)
        return join_parts(self.delayed(), lengths, (self.n_features,), self.dtype)

    def delayed(self) -> list[Delayed]:
        return self._map_parts(self.source.delayed())

    @cached_property
    def lengths(self) -> list[int]:
        return self.source.lengths

    @cached_property
    def partitions(self) -> list[DaskPartition]:
        return [
            DaskPartition(
                part.start,
                part.length,
                self.declared(part.declared.number, part.length),
                self._map(part.rows, part.start, part.declared),
            )
            for part in self.source.partitions
        ]

    @property
    def is_sparse(self) -> bool:
        return False

    @property
    def size(self) -> int:
        return int(self.shape[0] * self.n_features * self.dtype.itemsize)
