"""Rows scaled and filled, or counted, as they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from sketchmeans.data.preparation.scaling import IN_NEW_ROWS, Preparation, check_values
from sketchmeans.data.preparation.tables import Column, Table
from sketchmeans.data.rows import float_type
from sketchmeans.data.sources.base import Block, Source
from sketchmeans.data.sources.derived import WrappedSource
from sketchmeans.data.sources.dialect import Dialect
from sketchmeans.numerics.linalg import Array

if TYPE_CHECKING:
    from sketchmeans.data.sources.records import Records

#: Rows that are left out are read along, unless they are so many times more.
_MOST_READ = 4


class PreparedSource(WrappedSource):
    """The rows of another source, scaled and filled block by block.

    Rows of the numbers `kept` alone, if they are given.  Unless the source
    `is_complete`, reading checks that no value is missing that is not filled in.
    """

    def __init__(
        self,
        inner: Source,
        preparation: Preparation,
        kept: Array | None = None,
        *,
        is_complete: bool = True,
    ) -> None:
        super().__init__(inner)
        self.zero_based = None  # columns are chosen already
        self.preparation, self._kept = preparation, kept
        self._is_complete = is_complete
        self.dtype = float_type(inner.dtype)
        if kept is not None:
            self.shape = (len(kept), inner.shape[1])
            self.memory += kept.nbytes
        if not self.is_sparse:  # a raw block, and where it has gaps
            block = 4096 * inner.shape[1]
            self.thread_memory += block * (_MOST_READ * inner.dtype.itemsize + 1)
        self._fill = preparation.fill
        self._shifts = bool(preparation.center.any())
        # In two parts, such that float32 rows far from zero lose no digits.
        self._center = preparation.center.astype(self.dtype)
        rest = preparation.center - self._center.astype(np.float64)
        self._center_rest = rest.astype(self.dtype)
        self._scale = preparation.scale.astype(self.dtype)

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        raw = self._read_raw(start, stop)
        if not self._is_complete:
            check_values(self.inner, raw, start, "error", IN_NEW_ROWS)
        return self._prepare(raw, out)

    def take(self, indices: Array) -> Block:
        return self._prepare(self.inner.take(self.numbers(indices)), None)

    def prepare(self, raw: Block) -> Block:
        """Return rows of the table, read before, as they are prepared."""
        return self._prepare(raw, None)

    def _read_raw(self, start: int, stop: int) -> Block:
        if self._kept is None:
            return self.inner.read(start, stop)
        if start == stop:
            return self.inner.read(0, 0)
        numbers = self._kept[start:stop]
        first, last = int(numbers[0]), int(numbers[-1]) + 1
        if last - first > _MOST_READ * len(numbers):
            return self.inner.take(numbers)
        return self.inner.read(first, last)[numbers - first]

    def _prepare(self, raw: Block, out: Array | None) -> Block:
        if self.is_sparse:
            scaled = sparse.csr_array(raw, dtype=self.dtype, copy=True)
            scaled.data /= self._scale[scaled.indices]
            return scaled
        out = self._new_block(len(raw)) if out is None else out
        if self._fill is not None:
            gaps = np.isnan(raw)
            if gaps.any():
                raw = np.where(gaps, self._fill, raw)
        out[...] = raw
        if self._shifts:
            out -= self._center
            out -= self._center_rest
        out /= self._scale
        return out

    @property
    def n_table_rows(self) -> int:
        """Number of rows of the table, those that are left out included."""
        return len(self.inner)

    def numbers(self, rows: Array) -> Array:
        """Return the numbers of rows in the table, of which some are left out."""
        return rows if self._kept is None else self._kept[rows]

    def select(self, values: Array) -> Array:
        """Return the values of the rows that are kept, given those of all rows."""
        return values if self._kept is None else values[self._kept]

    def spread(self, values: Array, other: Any) -> Array:
        """Return values of all rows: `other` for those that are left out."""
        if self._kept is None:
            return values
        spread = np.full((len(self.inner), *values.shape[1:]), other, values.dtype)
        spread[self._kept] = values
        return spread

    def locate(self, row: int) -> tuple[str, int]:
        return self.inner.locate(row if self._kept is None else int(self._kept[row]))


class WatchedTable(Table):
    """A table that reports how many rows it has, and how many of them are read."""

    def __init__(
        self,
        table: Table,
        on_open: Callable[[int], None],
        on_read: Callable[[int], None],
    ) -> None:
        self.path, self.types, self.dialect = table.path, table.types, table.dialect
        self._table, self._on_open, self._on_read = table, on_open, on_read

    def open(self, columns: Sequence[Column] | None) -> Source:
        source = self._table.open(columns)
        self._on_open(len(source))
        return _WatchedSource(source, self._on_read)

    def records(self, columns: Sequence[Column] | None = None) -> Records:
        records = self._table.records(columns)
        self._on_open(len(records))
        return cast("Records", _WatchedRecords(records, self._on_read))

    def values(self, column: Column) -> Array:
        return self._table.values(column)

    def like_fit(self, zero_based: bool | None, n_features: int) -> Table:
        alike = self._table.like_fit(zero_based, n_features)
        return WatchedTable(alike, self._on_open, self._on_read)

    def read_like(self, dialect: Dialect) -> Table:
        alike = self._table.read_like(dialect)
        return WatchedTable(alike, self._on_open, self._on_read)


class _WatchedRecords:
    """Records that report how many of them are read; all else is that of `inner`."""

    def __init__(self, inner: Records, on_read: Callable[[int], None]) -> None:
        self._inner, self._on_read = inner, on_read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __len__(self) -> int:
        return len(self._inner)

    def read(self, start: int, stop: int) -> Any:
        table = self._inner.read(start, stop)
        self._on_read(stop - start)
        return table


class _WatchedSource(WrappedSource):
    def __init__(self, inner: Source, on_read: Callable[[int], None]) -> None:
        super().__init__(inner)
        self._on_read, self.order = on_read, inner.order

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        block = self.inner.read(start, stop, out)
        self._on_read(stop - start)
        return block

    def take(self, indices: Array) -> Block:
        return self.inner.take(indices)

    def like_fit(self, zero_based: bool | None, n_features: int) -> Source:
        return _WatchedSource(
            self.inner.like_fit(zero_based, n_features), self._on_read
        )
