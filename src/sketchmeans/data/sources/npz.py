"""NumPy's .npz archives: a table, or a CSR matrix as SciPy saves it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

from sketchmeans.data.sources.archive import Archive
from sketchmeans.data.sources.base import Source
from sketchmeans.data.sources.batches import BATCH_BYTES, DenseBatches, ForwardBatches
from sketchmeans.data.sources.csr import CSR_PARTS, open_csr
from sketchmeans.data.sources.npy import Header, NpySource, check_table
from sketchmeans.numerics.linalg import Array


def open_npz(path: str) -> Source:
    """Return the rows of an archive.

    What was saved uncompressed is read where it lies.  Compressed values have to be
    unpacked from the first one on, in each pass; a table in Fortran order, of which a
    row is all over the archive, is unpacked into memory when it is first read.
    """
    archive = Archive(path)
    if set(archive.names) >= CSR_PARTS:
        return open_csr(archive)
    name = _table_name(archive)
    if not archive.is_packed(name):
        return NpySource(archive.disk_array(name))
    header = archive.header(name)
    check_table(header.shape, header.dtype, path)
    if header.is_fortran:
        return HeldSource(archive, name, header)
    return PackedSource(archive, name, header)


def _table_name(archive: Archive) -> str:
    if "X" in archive.names:
        return "X"
    tables = [name for name in archive.names if len(archive.header(name).shape) == 2]
    if len(tables) != 1:
        raise ValueError(
            f"{archive.path} holds the arrays {sorted(archive.names)}; one should be "
            "called 'X', or exactly one should have two dimensions."
        )
    return tables[0]


class HeldSource(Source):
    """A compressed table in Fortran order: in memory, as soon as rows are read."""

    order = "F"

    def __init__(self, archive: Archive, name: str, header: Header) -> None:
        self.path = archive.path
        self.shape = (header.shape[0], header.shape[1])
        self.dtype = header.dtype
        self.memory = header.n_items * header.dtype.itemsize
        self._archive, self._name = archive, name
        self._table: Array | None = None
        self._loading = threading.Lock()

    def _loaded(self) -> Array:
        with self._loading:
            if self._table is None:
                values, done = np.empty(self.shape[0] * self.shape[1], self.dtype), 0
                for piece in self._archive.pieces(self._name):
                    values[done : done + len(piece)] = piece
                    done += len(piece)
                self._table = values.reshape(self.shape, order="F")
            return self._table

    def read(self, start: int, stop: int, out: Array | None = None) -> Array:
        out = self._block(stop - start) if out is None else out
        out[...] = self._loaded()[start:stop]
        return out

    def take(self, indices: Array) -> Array:
        return np.asarray(self._loaded()[indices])

    def release(self) -> None:
        with self._loading:
            self._table = None


class PackedSource(DenseBatches):
    """A compressed table, in C order."""

    def __init__(self, archive: Archive, name: str, header: Header) -> None:
        self.path, self.dtype = archive.path, header.dtype
        self.shape = (header.shape[0], header.shape[1])
        self.batches = _PackedBatches(archive, name, header)
        self.memory = self.batches.memory


class _PackedBatches(ForwardBatches):
    def __init__(self, archive: Archive, name: str, header: Header) -> None:
        self._n, self._d = n, d = header.shape
        row_bytes = d * header.dtype.itemsize
        self._step = max(min(BATCH_BYTES // max(row_bytes, 1), n), 1)
        super().__init__(np.zeros(1, int), n, self._step * row_bytes, archive.path)
        self._archive, self._name = archive, name

    def begin(self, start: int) -> Iterator[tuple[Array, int]]:
        return _unpacked(self._archive, self._name, (self._n, self._d), self._step)


def _unpacked(
    archive: Archive, name: str, shape: tuple[int, int], step: int
) -> Iterator[tuple[Array, int]]:
    """Yield batches of a table, and their numbers of rows."""
    n, d = shape
    counts = [min(step, n - start) for start in range(0, n, step)]
    pieces = archive.pieces(name, (count * d for count in counts))
    for count, values in zip(counts, pieces, strict=True):
        yield values.reshape(count, d), count
