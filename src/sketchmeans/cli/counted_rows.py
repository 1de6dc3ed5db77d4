"""Tables that report how many rows have been read."""

from __future__ import annotations

from collections.abc import Sequence

from sketchmeans.cli.progress import Display
from sketchmeans.data.preparation import Column, Table
from sketchmeans.data.sources import Source
from sketchmeans.data.sources.base import Block
from sketchmeans.data.sources.derived import WrappedSource
from sketchmeans.numerics.linalg import Array


class CountedTable(Table):
    """A table that reports the rows that are read to a display.

    `n_passes` says how often all rows are read.
    """

    def __init__(self, table: Table, display: Display, n_passes: int = 1) -> None:
        self.path, self.types = table.path, table.types
        self._table, self._display, self._n_passes = table, display, n_passes

    def open(self, columns: Sequence[Column] | None) -> Source:
        source = self._table.open(columns)
        self._display.expect_rows(self._n_passes * len(source))
        return _CountedSource(source, self._display)

    def values(self, column: Column) -> Array:
        return self._table.values(column)

    def like_fit(self, zero_based: bool | None, n_features: int) -> Table:
        alike = self._table.like_fit(zero_based, n_features)
        return CountedTable(alike, self._display, self._n_passes)


class _CountedSource(WrappedSource):
    def __init__(self, inner: Source, display: Display) -> None:
        super().__init__(inner)
        self._display, self.order = display, inner.order

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        block = self.inner.read(start, stop, out)
        self._display.add_rows(stop - start)
        return block

    def take(self, indices: Array) -> Block:
        return self.inner.take(indices)

    def like_fit(self, zero_based: bool | None, n_features: int) -> Source:
        return _CountedSource(
            self.inner.like_fit(zero_based, n_features), self._display
        )
