"""Tables that report how many rows have been read."""

from __future__ import annotations

from collections.abc import Sequence

from sketchmeans.cli.progress import Display
from sketchmeans.data.preparation import Column, Table
from sketchmeans.data.sources import Source
from sketchmeans.data.sources.base import Block
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

    def like(self, zero_based: bool, n_features: int) -> Table:
        alike = self._table.like(zero_based, n_features)
        return CountedTable(alike, self._display, self._n_passes)


class _CountedSource(Source):
    def __init__(self, source: Source, display: Display) -> None:
        self._source, self._display = source, display
        for name in Source.__annotations__:
            setattr(self, name, getattr(source, name))

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        block = self._source.read(start, stop, out)
        self._display.add_rows(stop - start)
        return block

    def take(self, indices: Array) -> Block:
        return self._source.take(indices)

    def locate(self, row: int) -> tuple[str, int]:
        return self._source.locate(row)

    def widened(self, n_features: int) -> Source:
        return _CountedSource(self._source.widened(n_features), self._display)

    def like(self, zero_based: bool) -> Source:
        return _CountedSource(self._source.like(zero_based), self._display)

    def release(self) -> None:
        self._source.release()
