"""NumPy's .npz archives: a table, or a CSR matrix as SciPy saves it."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.linalg import Array
from sketchmeans.sources.base import RUN_BYTES, Block, Source, runs
from sketchmeans.sources.batches import (
    BATCH_BYTES,
    DenseBatches,
    ForwardBatches,
    SparseBatches,
    in_order,
)
from sketchmeans.sources.npy import DiskArray, NpySource, check_table, read_header

_CSR_PARTS = {"data", "indices", "indptr", "shape", "format"}


def open_npz(path: str) -> Source:
    """Return the rows of an archive.

    What was saved uncompressed is read where it lies.  Compressed values have to be
    unpacked from the first one on, in each pass; a table in Fortran order, of which a
    row is all over the archive, is unpacked into memory.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                info.filename.removesuffix(".npy"): info for info in archive.infolist()
            }
    except (zipfile.BadZipFile, OSError) as error:
        raise ValueError(f"{path} cannot be read as .npz: {error}") from None
    if set(members) >= _CSR_PARTS:
        return _open_csr(path, members)
    return _open_dense(path, members)


def _open_dense(path: str, members: dict[str, zipfile.ZipInfo]) -> Source:
    shapes = {name: _member_header(path, info)[0] for name, info in members.items()}
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if "X" not in shapes and len(tables) != 1:
        raise ValueError(
            f"{path} holds the arrays {sorted(shapes)}; one should be called 'X', or "
            "exactly one should have two dimensions."
        )
    info = members["X" if "X" in shapes else tables[0]]
    if info.compress_type == zipfile.ZIP_STORED:
        return NpySource(DiskArray(path, _data_offset(path, info)))
    shape, is_fortran, dtype = _member_header(path, info)
    check_table(shape, dtype, path)
    if is_fortran:
        return HeldSource(path, _whole(path, info))
    return PackedSource(path, info)


class HeldSource(Source):
    """A table that had to be read into memory."""

    def __init__(self, path: str, table: Array) -> None:
        self.path = path
        self.shape = table.shape
        self.dtype = table.dtype
        self.order = "C" if table.flags.c_contiguous else "F"
        self.memory = table.nbytes
        self._table = table

    def read(self, start: int, stop: int, out: Array | None = None) -> Array:
        out = self._block(stop - start) if out is None else out
        out[...] = self._table[start:stop]
        return out

    def take(self, indices: Array) -> Array:
        return np.asarray(self._table[indices])


class PackedSource(DenseBatches):
    """A compressed table, in C order."""

    def __init__(self, path: str, info: zipfile.ZipInfo) -> None:
        shape, _, self.dtype = _member_header(path, info)
        self.path = path
        self.shape = (shape[0], shape[1])
        self.batches = _PackedBatches(path, info, self.shape, self.dtype)
        self.memory = self.batches.memory


class _PackedBatches(ForwardBatches):
    def __init__(
        self,
        path: str,
        info: zipfile.ZipInfo,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
    ) -> None:
        row_bytes = shape[1] * dtype.itemsize
        self._step = min(max(BATCH_BYTES // max(row_bytes, 1), 1), shape[0])
        super().__init__(np.zeros(1, int), shape[0], self._step * row_bytes, path)
        self._info = info

    def begin(self, start: int) -> Iterator[tuple[Array, int]]:
        return _unpacked_rows(self._path, self._info, self._step)


def _unpacked_rows(
    path: str, info: zipfile.ZipInfo, step: int
) -> Iterator[tuple[Array, int]]:
    """Yield batches of a table, and their numbers of rows."""
    with zipfile.ZipFile(path) as archive, archive.open(info) as stream:
        (n, d), _, dtype = read_header(stream, path)
        for start in range(0, n, step):
            count = min(step, n - start)
            values = _unpacked(stream, count * d, dtype, path, start)
            yield values.reshape(count, d), count


def _open_csr(path: str, members: dict[str, zipfile.ZipInfo]) -> Source:
    kind = str(_whole(path, members["format"]).astype(str))
    if kind != "csr":
        raise ValueError(
            f"{path} holds a sparse matrix in {kind!r} format; it should be 'csr', "
            "which is stored row by row: save X.tocsr()."
        )
    values = members["data"], members["indices"]
    packed = any(info.compress_type != zipfile.ZIP_STORED for info in values)
    return (PackedCsrSource if packed else CsrSource)(path, members)


class _CsrParts:
    """What is known of a CSR matrix before its values are read."""

    def __init__(self, path: str, members: dict[str, zipfile.ZipInfo]) -> None:
        self.pointers = _whole(path, members["indptr"])
        n, d = _whole(path, members["shape"]).tolist()
        self.shape = (int(n), int(d))
        (entries,), _, self.dtype = _member_header(path, members["data"])
        check_table(self.shape, self.dtype, path)
        columns, _, self.index_type = _member_header(path, members["indices"])
        if len(self.pointers) != n + 1 or not (
            self.pointers[-1] == entries == columns[0]
        ):
            raise ValueError(
                f"{path} is no CSR matrix of {n} rows: it has {len(self.pointers)} row "
                f"pointers, {columns[0]} column numbers and {entries} values."
            )
        self.entry_bytes = self.dtype.itemsize + self.index_type.itemsize
        self.row_bytes = self.entry_bytes * entries / max(self.shape[0], 1)

    def block(self, start: int, stop: int, values: Array, columns: Array) -> Block:
        """Return rows start:stop, given what is stored of them."""
        pointers = self.pointers[start : stop + 1] - self.pointers[start]
        shape = (stop - start, self.shape[1])
        return sparse.csr_array((values, columns, pointers), shape=shape)


class CsrSource(Source):
    """An uncompressed CSR matrix; the row pointers are in memory."""

    is_sparse = True
    thread_memory = RUN_BYTES

    def __init__(self, path: str, members: dict[str, zipfile.ZipInfo]) -> None:
        self.path = path
        self._parts = parts = _CsrParts(path, members)
        self.shape, self.dtype = parts.shape, parts.dtype
        self.nnz, self.memory = int(parts.pointers[-1]), parts.pointers.nbytes
        self._values, self._columns = (
            DiskArray(path, _data_offset(path, members[name]))
            for name in ("data", "indices")
        )

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        span = int(self._parts.pointers[start]), int(self._parts.pointers[stop])
        values, columns = self._values.items(*span), self._columns.items(*span)
        return self._parts.block(start, stop, values, columns)

    def take(self, indices: Array) -> Block:
        order = np.argsort(indices, kind="stable")
        rows, found = indices[order], []
        for start, stop in runs(rows, self._parts.row_bytes):
            first = int(rows[start])
            block = self.read(first, int(rows[stop - 1]) + 1)
            found.append(block[rows[start:stop] - first])
        return in_order(found, order)

    def release(self) -> None:
        self._values.release()
        self._columns.release()


class PackedCsrSource(SparseBatches):
    """A compressed CSR matrix; the row pointers are in memory."""

    def __init__(self, path: str, members: dict[str, zipfile.ZipInfo]) -> None:
        self.path = path
        parts = _CsrParts(path, members)
        self.shape, self.dtype = parts.shape, parts.dtype
        self.nnz = int(parts.pointers[-1])
        self.batches = _PackedCsrBatches(path, members, parts)
        self.memory = self.batches.memory + parts.pointers.nbytes


class _PackedCsrBatches(ForwardBatches):
    def __init__(
        self, path: str, members: dict[str, zipfile.ZipInfo], parts: _CsrParts
    ) -> None:
        self._edges = edges = _batch_edges(parts)
        entries = np.diff(parts.pointers[edges]).max(initial=0)
        pointers = np.diff(edges).max(initial=0) * parts.pointers.itemsize
        size = int(entries * parts.entry_bytes + pointers)
        super().__init__(np.zeros(1, int), parts.shape[0], size, path)
        self._members, self._parts = members, parts

    def begin(self, start: int) -> Iterator[tuple[Block, int]]:
        return _unpacked_csr(self._path, self._members, self._parts, self._edges)


def _unpacked_csr(
    path: str, members: dict[str, zipfile.ZipInfo], parts: _CsrParts, edges: list[int]
) -> Iterator[tuple[Block, int]]:
    """Yield batches of a CSR matrix, and their numbers of rows."""
    with (
        zipfile.ZipFile(path) as archive,
        archive.open(members["data"]) as values,
        archive.open(members["indices"]) as columns,
    ):
        read_header(values, path)
        read_header(columns, path)
        for start, stop in pairwise(edges):
            count = int(parts.pointers[stop] - parts.pointers[start])
            block = parts.block(
                start,
                stop,
                _unpacked(values, count, parts.dtype, path, start),
                _unpacked(columns, count, parts.index_type, path, start),
            )
            yield block, stop - start


def _batch_edges(parts: _CsrParts) -> list[int]:
    """Return the rows that start a batch, and the number of rows."""
    n, most = parts.shape[0], BATCH_BYTES // parts.entry_bytes
    edges = [0]
    while edges[-1] < n:
        top = parts.pointers[edges[-1]] + most
        last = np.searchsorted(parts.pointers, top, side="right")
        # At least one row, and not all of many that are empty.
        fitting = min(int(last) - 1, edges[-1] + BATCH_BYTES // 8, n)
        edges.append(max(fitting, edges[-1] + 1))
    return edges


def _data_offset(path: str, info: zipfile.ZipInfo) -> int:
    """Return where the bytes of an uncompressed member start."""
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        header = file.read(30)
    # The local header need not have the length of that in the directory.
    name, extra = struct.unpack("<HH", header[26:30])
    return int(info.header_offset + 30 + name + extra)


def _member_header(path: str, info: zipfile.ZipInfo) -> Any:
    with zipfile.ZipFile(path) as archive, archive.open(info) as stream:
        return read_header(stream, path)


def _whole(path: str, info: zipfile.ZipInfo) -> Array:
    """Return a small member, in memory."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(info) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path} cannot be read as .npz: {error}") from None


def _unpacked(
    stream: Any, count: int, dtype: np.dtype[Any], path: str, row: int
) -> Array:
    """Return the next values of a compressed member."""
    try:
        data = stream.read(count * dtype.itemsize)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise ValueError(f"{path} is damaged near row {row}: {error}") from None
    if len(data) < count * dtype.itemsize:
        raise ValueError(f"{path} is truncated: its values end near row {row}.")
    return np.frombuffer(data, dtype)
