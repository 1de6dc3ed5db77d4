"""CSR matrices in .npz archives, as SciPy saves them.

Compiled code follows the row pointers and column numbers of a matrix without looking
where they lead, so these are checked: the pointers once, when the archive is opened,
the columns of a block whenever it is read.  Neither is held in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.sources.archive import Archive
from sketchmeans.data.sources.base import RUN_BYTES, Block, Source, runs
from sketchmeans.data.sources.batches import (
    BATCH_BYTES,
    ForwardBatches,
    SparseBatches,
    in_order,
)
from sketchmeans.data.sources.npy import check_table
from sketchmeans.numerics.linalg import Array

CSR_PARTS = {"data", "indices", "indptr", "shape", "format"}
_VALUES = ("data", "indices", "indptr")


def open_csr(archive: Archive) -> Source:
    """Return the rows of a CSR matrix."""
    kind = archive.whole("format").astype(str)
    if kind.size != 1 or kind.item() != "csr":
        raise ValueError(
            f"{archive.path} holds a sparse matrix in {kind.tolist()!r} format; it "
            "should be 'csr', which is stored row by row: save X.tocsr()."
        )
    layout = _layout(archive)
    edges = _checked_pointers(archive, layout)
    if any(archive.is_packed(name) for name in _VALUES):
        return PackedCsrSource(archive, layout, edges)
    return CsrSource(archive, layout)


@dataclass(frozen=True)
class _Layout:
    """What is known of a CSR matrix before its values are read."""

    path: str
    shape: tuple[int, int]
    nnz: int
    dtype: np.dtype[Any]
    index_type: np.dtype[Any]
    entry_bytes: int

    def block(self, values: Array, columns: Array, pointers: Array) -> Block:
        """Return rows, given what is stored of them, if all columns are there."""
        d = self.shape[1]
        low = int(columns.min(initial=0))
        high = int(columns.max(initial=0))
        if low < 0 or (high >= d and len(columns)):
            raise ValueError(
                f"{self.path} is no CSR matrix: it has a value in column "
                f"{low if low < 0 else high}, and its columns are 0 to {d - 1}."
            )
        offsets = pointers - pointers[0]
        parts = (
            values.astype(self.dtype, copy=False),
            columns.astype(self.index_type, copy=False),
            offsets.astype(self.index_type, copy=False),
        )
        return sparse.csr_array(parts, shape=(len(offsets) - 1, d))


def _layout(archive: Archive) -> _Layout:
    """Return the layout of a matrix whose parts fit one another."""
    path = archive.path
    shape = archive.whole("shape")
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 0:
        raise ValueError(
            f"{path} is no CSR matrix: its shape is {shape.tolist()}; two numbers that "
            "are not negative were expected."
        )
    n, d = (int(size) for size in shape)
    values, columns, pointers = (archive.header(name) for name in _VALUES)
    check_table((n, d), values.dtype, path)
    for name, header in (("indices", columns), ("indptr", pointers)):
        if header.dtype.kind not in "iu":
            raise ValueError(
                f"{path} is no CSR matrix: {name!r} has the type {header.dtype}; it "
                "should hold whole numbers."
            )
    lengths = [header.shape for header in (pointers, columns, values)]
    if lengths != [(n + 1,), values.shape, values.shape] or len(values.shape) != 1:
        raise ValueError(
            f"{path} is no CSR matrix of {n} rows: it has row pointers of shape "
            f"{lengths[0]}, column numbers of {lengths[1]} and values of {lengths[2]}."
        )
    # What SciPy works with: no halves, no foreign order of bytes.
    dtype = np.dtype(np.float32) if values.dtype == np.float16 else values.dtype
    wide = max(d, values.n_items) > np.iinfo(np.int32).max
    return _Layout(
        path,
        (n, d),
        values.n_items,
        dtype.newbyteorder("="),
        np.dtype(np.int64 if wide else np.int32),
        values.dtype.itemsize + columns.dtype.itemsize,
    )


@dataclass(frozen=True)
class _Edges:
    """Where batches start and the last one ends: row by row, and value by value."""

    rows: list[int]
    entries: list[int]

    @property
    def heights(self) -> list[int]:
        """Rows of each batch."""
        return [stop - start for start, stop in pairwise(self.rows)]

    @property
    def counts(self) -> list[int]:
        """Values of each batch."""
        return [stop - start for start, stop in pairwise(self.entries)]


def _checked_pointers(archive: Archive, layout: _Layout) -> _Edges:
    """Return how the rows are cut into batches, after a look at all row pointers.

    Raises
    ------
    ValueError
        If the row pointers do not start at 0, fall, or do not end at the last value.
    """
    edges, row = _Edges([0], [0]), 0
    last = np.zeros(1, np.int64)
    for number, piece in enumerate(archive.pieces("indptr")):
        pointers = piece.astype(np.int64)
        if number == 0 and pointers[0] != 0:
            raise _wrong_pointers(layout, f"start at {pointers[0]}")
        pointers = pointers if number == 0 else np.concatenate([last, pointers])
        falls = np.flatnonzero(np.diff(pointers) < 0)
        if len(falls):
            raise _wrong_pointers(layout, f"fall at row {row + int(falls[0])}")
        _cut(edges, pointers, row, layout.entry_bytes)
        row, last = row + len(pointers) - 1, pointers[-1:]
    if last[0] != layout.nnz:
        raise _wrong_pointers(layout, f"end at {last[0]}")
    if edges.rows[-1] < row:
        edges.rows.append(row)
        edges.entries.append(layout.nnz)
    return edges


def _cut(edges: _Edges, pointers: Array, row: int, entry_bytes: int) -> None:
    """Add the edges of batches that end before the last of some rows.

    The first pointer is that of `row`.  A batch has as many rows as fit into its bytes,
    at least one, and not all of many that are empty.
    """
    most, tallest = BATCH_BYTES // entry_bytes, max(BATCH_BYTES // 8, 1)
    while True:
        start, entry = edges.rows[-1], edges.entries[-1]
        fitting = int(np.searchsorted(pointers, entry + most, side="right")) - 1
        end = min(max(row + fitting, start + 1), start + tallest)
        if end >= row + len(pointers) - 1:
            return
        edges.rows.append(end)
        edges.entries.append(int(pointers[end - row]))


def _wrong_pointers(layout: _Layout, what: str) -> ValueError:
    return ValueError(
        f"{layout.path} is no CSR matrix: its row pointers {what}; they should start "
        f"at 0, never fall, and end at {layout.nnz}, the number of values."
    )


class CsrSource(Source):
    """An uncompressed CSR matrix."""

    is_sparse = True
    thread_memory = RUN_BYTES

    def __init__(self, archive: Archive, layout: _Layout) -> None:
        self.path, self.shape, self.dtype = layout.path, layout.shape, layout.dtype
        self.nnz, self._layout = layout.nnz, layout
        self._row_bytes = layout.entry_bytes * layout.nnz / max(self.shape[0], 1)
        self._parts = [archive.disk_array(name) for name in _VALUES]

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        values, columns, all_pointers = self._parts
        pointers = all_pointers.items(start, stop + 1).astype(np.int64)
        # They were right when the archive was opened.
        all_pointers.state.check()
        span = int(pointers[0]), int(pointers[-1])
        block = self._layout.block(values.items(*span), columns.items(*span), pointers)
        all_pointers.state.check()
        return block

    def take(self, indices: Array) -> Block:
        order = np.argsort(indices, kind="stable")
        rows, found = indices[order], []
        for start, stop in runs(rows, self._row_bytes):
            first = int(rows[start])
            block = self.read(first, int(rows[stop - 1]) + 1)
            found.append(block[rows[start:stop] - first])
        return in_order(found, order)

    def release(self) -> None:
        for part in self._parts:
            part.release()


class PackedCsrSource(SparseBatches):
    """A compressed CSR matrix."""

    def __init__(self, archive: Archive, layout: _Layout, edges: _Edges) -> None:
        self.path, self.shape, self.dtype = layout.path, layout.shape, layout.dtype
        self.nnz = layout.nnz
        self.batches = _PackedCsrBatches(archive, layout, edges)
        self.memory = self.batches.memory


class _PackedCsrBatches(ForwardBatches):
    def __init__(self, archive: Archive, layout: _Layout, edges: _Edges) -> None:
        entries, rows = max(edges.counts, default=0), max(edges.heights, default=0)
        size = entries * layout.entry_bytes + 8 * rows
        super().__init__(np.zeros(1, int), layout.shape[0], size, layout.path)
        self._archive, self._layout, self._edges = archive, layout, edges

    def begin(self, start: int) -> Iterator[tuple[Block, int]]:
        return _unpacked(self._archive, self._layout, self._edges)


def _unpacked(
    archive: Archive, layout: _Layout, edges: _Edges
) -> Iterator[tuple[Block, int]]:
    """Yield batches of a CSR matrix, and their numbers of rows."""
    steps = archive.pieces("indptr", [1, *edges.heights])
    values = archive.pieces("data", edges.counts)
    columns = archive.pieces("indices", edges.counts)
    last = next(steps).astype(np.int64)
    for height in edges.heights:
        pointers = np.concatenate([last, next(steps).astype(np.int64)])
        last = pointers[-1:]
        yield layout.block(next(values), next(columns), pointers), height
