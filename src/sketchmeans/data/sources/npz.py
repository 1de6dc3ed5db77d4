"""NumPy's .npz archives: a table, or a CSR matrix as SciPy saves it.

Nothing is unpacked before it is asked for, and no size is believed before it is checked
against that of the file: some kilobytes can be unpacked to as many megabytes.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from sketchmeans.data.sources.base import (
    BATCH_BYTES,
    RUN_BYTES,
    BatchedSource,
    ReadOptions,
    Source,
    StreamedBatches,
    check_not_empty,
)
from sketchmeans.data.sources.files import FileState
from sketchmeans.data.sources.npy import DiskArray, Header, NpySource, read_header
from sketchmeans.numerics.linalg import Array

#: Most bytes that deflate unpacks from one, and what it needs around them.
_DEFLATE_RATIO, _DEFLATE_EXTRA = 1032, 64
#: Most bytes of an array that is read as a whole: a name or a shape.
_WHOLE_BYTES = 2**16
#: What Python's zipfile raises for damaged archives.
_ERRORS = (
    *(EOFError, IndexError, OSError, OverflowError, RuntimeError, ValueError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)


def open_npz(state: FileState, options: ReadOptions) -> Source:
    """Return the rows of an archive.

    What was saved uncompressed is read where it lies.  Compressed values are unpacked
    from the first one on, in each pass.
    """
    from sketchmeans.data.sources.csr import CSR_PARTS, open_csr

    path, archive = state.path, Archive(state)
    if set(archive.names) >= CSR_PARTS:
        return open_csr(archive)
    name = "X"
    if name not in archive.names:
        tables = [n for n in archive.names if len(archive.header(n).shape) == 2]
        if len(tables) != 1:
            raise ValueError(
                f"{path} holds the arrays {sorted(archive.names)}; one should be "
                "called 'X', or exactly one should have two dimensions."
            )
        name = tables[0]
    if not archive.is_packed(name):
        return NpySource(archive.disk_array(name))
    header = archive.header(name)
    header.check_table(path)
    check_not_empty(path, header.shape)
    return PackedSource(archive, name, header)


class Archive:
    """The arrays of a .npz file, by name: their headers, and their values in pieces."""

    def __init__(self, state: FileState) -> None:
        self.path, self.state = state.path, state
        with self._translate_errors(), zipfile.ZipFile(state.place) as archive:
            infos = archive.infolist()
        self._members = {info.filename.removesuffix(".npy"): info for info in infos}
        for info in infos:
            self._check_sizes(info)

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._members)

    def is_packed(self, name: str) -> bool:
        """Say whether an array is compressed."""
        return self._members[name].compress_type != zipfile.ZIP_STORED

    def header(self, name: str) -> Header:
        """Return type and shape of an array, if its values can be in the archive."""
        with self._open(name) as (_, header):
            return header

    def whole(self, name: str) -> Array:
        """Return a small array."""
        header = self.header(name)
        if header.n_items * header.dtype.itemsize > _WHOLE_BYTES:
            raise ValueError(
                f"{self.path} holds an array {name!r} of shape {header.shape}; a few "
                "values were expected."
            )
        (values,) = self.pieces(name, [header.n_items])
        return values.reshape(header.shape)

    def pieces(self, name: str, counts: Iterable[int] | None = None) -> Iterator[Array]:
        """Yield the values of an array, `counts` at a time or in pieces of any size."""
        with self._open(name) as (stream, header):
            dtype = header.dtype
            if dtype.hasobject or not dtype.itemsize:
                raise ValueError(
                    f"{self.path} holds values of type {dtype} in {name!r}; they "
                    "should be numbers."
                )
            if counts is None:
                step = max(RUN_BYTES // dtype.itemsize, 1)
                starts = range(0, header.n_items, step)
                counts = (min(step, header.n_items - start) for start in starts)
            for count in counts:
                with self._translate_errors():
                    data = stream.read(count * dtype.itemsize)
                if len(data) < count * dtype.itemsize:
                    raise ValueError(
                        f"{self.path} is truncated: the values of {name!r} end early."
                    )
                self.state.check()
                yield np.frombuffer(data, dtype)

    def disk_array(self, name: str) -> DiskArray:
        """Return an array that is not compressed, to be read where it lies."""
        info = self._members[name]
        self.header(name)  # zipfile compares the two headers of a member
        with open(self.state.place, "rb") as file:
            file.seek(info.header_offset)
            local = file.read(30)
        # The local header need not have the length of that in the directory.
        n_name, n_extra = struct.unpack("<HH", local[26:30])
        offset = int(info.header_offset + 30 + n_name + n_extra)
        return DiskArray(self.state, offset, info.file_size)

    def _check_sizes(self, info: zipfile.ZipInfo) -> None:
        """Raise if a member cannot be as large as it declares."""
        if info.compress_type == zipfile.ZIP_STORED:
            most = info.compress_size
        elif info.compress_type == zipfile.ZIP_DEFLATED:
            most = _DEFLATE_RATIO * info.compress_size + _DEFLATE_EXTRA
        else:
            raise ValueError(
                f"{self.path} cannot be read as .npz: {info.filename!r} is compressed "
                "in another way than NumPy does."
            )
        if info.file_size > most or info.compress_size > self.state.size:
            raise ValueError(
                f"{self.path} is damaged: {info.filename!r} declares "
                f"{info.file_size:,} bytes from {info.compress_size:,}, and the file "
                f"has {self.state.size:,}."
            )

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[Any, Header]]:
        """Yield the stream of a member, behind its header, and the header."""
        info = self._members[name]
        with self._translate_errors():
            archive = zipfile.ZipFile(self.state.place)
        with archive:
            with self._translate_errors():
                stream = archive.open(info)
            with stream:
                with self._translate_errors():
                    header = read_header(stream, self.path)
                header.check(self.path, info.file_size, f"its member {name!r}")
                yield stream, header

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Name the file in errors of zipfile."""
        try:
            yield
        except _ERRORS as error:
            what = "cannot be read as .npz, or is damaged"
            raise self.state.error(what, error) from None


class PackedSource(BatchedSource):
    """A compressed table.

    One in Fortran order, of which a row is all over the archive, is a single batch.
    """

    def __init__(self, archive: Archive, name: str, header: Header) -> None:
        self.path, self.dtype = archive.path, header.dtype
        self.shape = n, d = header.shape[0], header.shape[1]
        order: Literal["C", "F"] = "F" if header.is_fortran else "C"
        self.order = order
        row_bytes = d * header.dtype.itemsize
        height = n if order == "F" else min(max(BATCH_BYTES // row_bytes, 1), n)
        edges = [*range(0, n, height), n]
        heights = np.diff(edges).tolist()

        def unpack(_: int) -> Iterator[Array]:
            pieces = archive.pieces(name, [d * height for height in heights])
            for height, values in zip(heights, pieces, strict=True):
                yield values.reshape(height, d, order=order)

        self._use(StreamedBatches(edges, height * row_bytes, unpack, self.path))
