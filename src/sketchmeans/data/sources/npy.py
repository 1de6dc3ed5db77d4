"""NumPy's .npy files, read at the place where rows lie."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format

from sketchmeans.data.sources.base import RUN_BYTES, ReadOptions, Source, runs
from sketchmeans.data.sources.files import DiskFile, FileState
from sketchmeans.numerics.linalg import Array

#: Maximum number of bytes of a header: a description of an array of numbers takes about
#: a hundred.
_HEADER_BYTES = 10_000


@dataclass(frozen=True)
class Header:
    """What stands in front of the values of an array; `length` is its own, in bytes."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]
    length: int

    @property
    def n_items(self) -> int:
        """Number of values; not an integer of NumPy's, which could overflow."""
        return prod(self.shape)

    def check(self, path: str, n_bytes: int, holder: str = "the file") -> None:
        """Raise if an array of this shape does not fit into this many bytes."""
        if any(size < 0 for size in self.shape):
            raise ValueError(
                f"{path} declares an array of shape {self.shape}; no size should be "
                "negative."
            )
        needed = self.length + self.n_items * self.dtype.itemsize
        if n_bytes < needed:
            raise ValueError(
                f"{path} is truncated: an array of shape {self.shape} and type "
                f"{self.dtype} needs {needed:,} bytes, {holder} has {n_bytes:,}."
            )

    def check_table(self, path: str) -> None:
        """Raise if an array is not a table of real numbers."""
        check_real(self.dtype, path)
        if len(self.shape) != 2:
            raise ValueError(
                f"{path} holds an array of shape {self.shape}; it should have two "
                "dimensions: rows and features."
            )


def check_real(dtype: np.dtype[Any], path: str) -> None:
    """Raise if values are not real numbers."""
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{path} holds values of type {dtype}; they should be real numbers."
        )


class DiskArray:
    """An array in a file: where its values start, their type and shape.

    The header is at `offset`, and the array ends `n_bytes` later, or with the file.
    """

    def __init__(
        self, state: FileState, offset: int = 0, n_bytes: int | None = None
    ) -> None:
        self.state, self._file = state, DiskFile(state)
        with open(state.place, "rb") as file:
            file.seek(offset)
            self.header = read_header(file, state.path)
        rest = max(state.size - offset, 0)
        self.header.check(state.path, rest if n_bytes is None else min(n_bytes, rest))
        self._offset = offset + self.header.length
        self.release = self._file.release

    def fill(self, out: Array, item: int) -> None:
        """Read the values from a given one on, in the order of the file."""
        self._file.fill(out, self._offset + item * self.header.dtype.itemsize)

    def items(self, start: int, stop: int) -> Array:
        """Return values start:stop, in the order of the file."""
        values = np.empty(stop - start, self.header.dtype)
        self.fill(values, start)
        return values


class NpySource(Source):
    """A two-dimensional array in a .npy file or an uncompressed .npz.

    Rows are read into the memory of the caller: those of a memory map would count as
    memory of the process.
    """

    #: Rows that are read together to be chosen from.
    thread_memory = RUN_BYTES

    def __init__(self, array: DiskArray) -> None:
        header = array.header
        self.path = array.state.path
        header.check_table(self.path)
        self.shape, self.dtype = (header.shape[0], header.shape[1]), header.dtype
        self.order = "F" if header.is_fortran else "C"
        self._array = array

    def read(self, start: int, stop: int, out: Array | None = None) -> Array:
        n, d = self.shape
        out = self._new_block(stop - start) if out is None else out
        if self.order == "C":
            self._array.fill(out, start * d)
        else:
            for j in range(d):
                column: Any = out[:, j]
                if column.flags.contiguous:
                    self._array.fill(column, j * n + start)
                else:
                    column[:] = self._array.items(j * n + start, j * n + stop)
        self._array.state.check()
        return out

    def take(self, indices: Array) -> Array:
        # In C order whatever the file has, as NumPy does.
        taken = np.empty((len(indices), self.shape[1]), self.dtype)
        order = np.argsort(indices, kind="stable")
        rows = indices[order]
        for start, stop in runs(rows, self.shape[1] * self.dtype.itemsize):
            first = int(rows[start])
            block = self.read(first, int(rows[stop - 1]) + 1)
            taken[order[start:stop]] = block[rows[start:stop] - first]
        return taken

    def release(self) -> None:
        self._array.release()


def open_npy(state: FileState, options: ReadOptions) -> Source:
    """Return the rows of a .npy file."""
    return NpySource(DiskArray(state))


def read_header(file: BinaryIO | Any, path: str) -> Header:
    """Return what a header says; `file` moves past it."""
    start = file.read(8)
    if start[6:] == b"\x03\x00":  # this version is for names of fields beyond latin1
        raise ValueError(f"{path} holds a structured array; it should hold numbers.")
    width = 2 if start[6:7] == b"\x01" else 4
    length = file.read(width)
    n_bytes = int.from_bytes(length, "little")
    if n_bytes > _HEADER_BYTES and start[:6] == npy_format.MAGIC_PREFIX:
        raise ValueError(
            f"{path} cannot be read as .npy: its header has {n_bytes:,} bytes; at most "
            f"{_HEADER_BYTES:,} were expected."
        )
    text = BytesIO(start + length + file.read(min(n_bytes, _HEADER_BYTES)))
    try:
        is_first = npy_format.read_magic(text) == (1, 0)
        read = (
            npy_format.read_array_header_1_0
            if is_first
            else npy_format.read_array_header_2_0
        )
        shape, is_fortran, dtype = read(text)
    # The header is a literal of Python, and a damaged one can fail in any of the ways
    # in which Python's parser and NumPy's types do.
    except Exception as error:
        raise ValueError(f"{path} cannot be read as .npy: {error}") from None
    return Header(shape, is_fortran, dtype, text.tell())
