"""CSR matrices in .npz archives, as SciPy saves them.

Compiled code follows the row pointers and column numbers of a matrix without looking
where they lead, so these are checked: the pointers once, when the archive is opened,
the columns of a batch whenever it is read.  Neither is in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.sources.base import (
    BATCH_BYTES,
    RUN_BYTES,
    BatchedSource,
    Block,
    LoadedBatches,
    Source,
    StreamedBatches,
)
from sketchmeans.data.sources.npy import DiskArray, check_real
from sketchmeans.data.sources.npz import Archive
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
    return CsrSource(archive, _read_layout(archive))


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
                f"{self.path} is not a CSR matrix: it has a value in column "
                f"{low if low < 0 else high}, and its columns are 0 to {d - 1}."
            )
        offsets = pointers - pointers[0]
        parts = (
            values.astype(self.dtype, copy=False),
            columns.astype(self.index_type, copy=False),
            offsets.astype(self.index_type, copy=False),
        )
        return sparse.csr_array(parts, shape=(len(offsets) - 1, d))


def _read_layout(archive: Archive) -> _Layout:
    """Return the layout of a matrix whose parts fit one another."""
    path = archive.path
    shape = archive.whole("shape")
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 0:
        raise ValueError(
            f"{path} is not a CSR matrix: its shape is {shape.tolist()}; two numbers "
            "that are not negative were expected."
        )
    n, d = (int(size) for size in shape)
    values, columns, pointers = (archive.header(name) for name in _VALUES)
    check_real(values.dtype, path)
    for name, header in (("indices", columns), ("indptr", pointers)):
        if header.dtype.kind not in "iu":
            raise ValueError(
                f"{path} is not a CSR matrix: {name!r} has the type {header.dtype}; it "
                "should hold whole numbers."
            )
    lengths = [header.shape for header in (pointers, columns, values)]
    if lengths != [(n + 1,), values.shape, values.shape] or len(values.shape) != 1:
        raise ValueError(
            f"{path} is not a CSR matrix of {n} rows: it has row pointers of shape "
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
    """Where batches start and the last one ends: rows, and stored values."""

    rows: list[int]
    entries: list[int]


def _split_rows(archive: Archive, layout: _Layout, batch_bytes: int) -> _Edges:
    """Return the edges of batches.

    All row pointers are checked: they start at 0, never fall, and end at the last
    value.
    """

    def wrong(what: str) -> ValueError:
        return ValueError(
            f"{layout.path} is not a CSR matrix: its row pointers {what}; they should "
            f"start at 0, never fall, and end at {layout.nnz}, the number of values."
        )

    # A batch has as many rows as fit into its bytes, at least one, and not all of many
    # that are empty.
    most, tallest = batch_bytes // layout.entry_bytes, max(batch_bytes // 8, 1)
    rows, entries, row = [0], [0], 0
    last = np.zeros(0, np.int64)
    for piece in archive.pieces("indptr"):
        if not len(last) and piece[0] != 0:
            raise wrong(f"start at {piece[0]}")
        pointers = np.concatenate([last, piece.astype(np.int64)])
        falls = np.flatnonzero(np.diff(pointers) < 0)
        if len(falls):
            raise wrong(f"fall at row {row + int(falls[0])}")
        end = row + len(pointers) - 1
        while True:
            limit = np.searchsorted(pointers, entries[-1] + most, side="right")
            fitting = row + int(limit) - 1
            stop = min(max(fitting, rows[-1] + 1), rows[-1] + tallest)
            if stop >= end:
                break
            rows.append(stop)
            entries.append(int(pointers[stop - row]))
        row, last = end, pointers[-1:]
    if last[0] != layout.nnz:
        raise wrong(f"end at {last[0]}")
    if rows[-1] < row:
        rows.append(row)
        entries.append(layout.nnz)
    return _Edges(rows, entries)


class CsrSource(BatchedSource):
    """A CSR matrix, of which batches are read where they lie, or unpacked in turn."""

    is_sparse = True

    def __init__(self, archive: Archive, layout: _Layout) -> None:
        self.path, self.shape, self.dtype = layout.path, layout.shape, layout.dtype
        self.nnz = layout.nnz
        is_packed = any(archive.is_packed(name) for name in _VALUES)
        edges = _split_rows(archive, layout, BATCH_BYTES if is_packed else RUN_BYTES)
        heights, counts = np.diff(edges.rows), np.diff(edges.entries)
        size = layout.entry_bytes * counts.max(initial=0) + 8 * heights.max(initial=0)
        self.thread_memory = int(size)
        self._parts: list[DiskArray] = []
        if is_packed:
            begin = partial(_unpack, archive, layout, edges)
            self._use(StreamedBatches(edges.rows, int(size), begin, self.path))
        else:
            self._parts = [archive.disk_array(name) for name in _VALUES]
            load = partial(_load, self._parts, layout, edges)
            self._use(LoadedBatches(edges.rows, int(size), load))

    def release(self) -> None:
        super().release()
        for part in self._parts:
            part.release()


def _load(parts: list[DiskArray], layout: _Layout, edges: _Edges, number: int) -> Block:
    """Return a batch of an uncompressed matrix."""
    values, columns, pointers = parts
    start, stop = edges.rows[number : number + 2]
    span = edges.entries[number], edges.entries[number + 1]
    found = pointers.items(start, stop + 1).astype(np.int64)
    block = values.items(*span), columns.items(*span), found
    pointers.state.check()  # they were right when the archive was opened
    return layout.block(*block)


def _unpack(
    archive: Archive, layout: _Layout, edges: _Edges, _: int
) -> Iterator[Block]:
    """Yield the batches of a compressed matrix."""
    heights, counts = np.diff(edges.rows).tolist(), np.diff(edges.entries).tolist()
    steps = archive.pieces("indptr", [1, *heights])
    values = archive.pieces("data", counts)
    columns = archive.pieces("indices", counts)
    last = next(steps).astype(np.int64)
    for _ in heights:
        pointers = np.concatenate([last, next(steps).astype(np.int64)])
        last = pointers[-1:]
        yield layout.block(next(values), next(columns), pointers)
