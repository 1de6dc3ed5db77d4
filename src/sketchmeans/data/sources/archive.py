"""The arrays of a .npz archive, by name: their headers, and their values in pieces.

Nothing is unpacked before it is asked for, and no size is believed before it is checked
against that of the file: some kilobytes can be unpacked to as many megabytes.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sketchmeans.data.sources.base import RUN_BYTES
from sketchmeans.data.sources.files import FileState
from sketchmeans.data.sources.npy import DiskArray, Header, read_header
from sketchmeans.numerics.linalg import Array

#: Most bytes that deflate unpacks from one, and what it needs around them.
_DEFLATE_RATIO, _DEFLATE_EXTRA = 1032, 64
#: Most bytes of an array that is read as a whole: a name or a shape.
_WHOLE_BYTES = 2**16

#: What Python's zipfile raises for damaged archives.
_ERRORS = (
    EOFError,
    IndexError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class Archive:
    """A .npz file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.state = FileState.of(path)
        with self._reading(), zipfile.ZipFile(path) as archive:
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
        with self._opened(name) as stream:
            header = read_header(stream, self.path)
        self._check_header(name, header)
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

    def pieces(self, name: str, counts: Any = None) -> Iterator[Array]:
        """Yield the values of an array, so many at a time or in pieces of any size."""
        with self._opened(name) as stream:
            header = read_header(stream, self.path)
            self._check_header(name, header)
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
        with open(self.path, "rb") as file:
            file.seek(info.header_offset)
            local = file.read(30)
        # The local header need not have the length of that in the directory.
        n_name, n_extra = struct.unpack("<HH", local[26:30])
        offset = int(info.header_offset + 30 + n_name + n_extra)
        return DiskArray(self.state, offset, info.file_size)

    def _check_sizes(self, info: zipfile.ZipInfo) -> None:
        """Raise where a member cannot be as large as it declares."""
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

    def _check_header(self, name: str, header: Header) -> None:
        size = self._members[name].file_size
        header.check(self.path, size, f"its member {name!r}")

    @contextmanager
    def _opened(self, name: str) -> Iterator[Any]:
        info = self._members[name]
        with self._reading():
            archive = zipfile.ZipFile(self.path)
        with archive:
            with self._reading():
                stream = archive.open(info)
            with stream:
                yield _Member(stream, self)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Have errors of zipfile told with the path."""
        try:
            yield
        except _ERRORS as error:
            self.state.check()
            raise ValueError(
                f"{self.path} cannot be read as .npz, or is damaged: {error}"
            ) from None


class _Member:
    """A stream whose errors name the file."""

    def __init__(self, stream: Any, archive: Archive) -> None:
        self._stream, self._archive = stream, archive

    def read(self, n_bytes: int) -> bytes:
        with self._archive._reading():
            return bytes(self._stream.read(n_bytes))
