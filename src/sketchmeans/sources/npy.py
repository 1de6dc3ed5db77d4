"""NumPy's .npy files, read at the place where rows lie."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format

from sketchmeans.linalg import Array
from sketchmeans.sources.base import RUN_BYTES, OpenFile, Source, runs


class DiskArray:
    """An array in a file: where its values start, their type and shape.

    Parameters
    ----------
    path : str
    offset : int
        Place of the .npy header; that of an array inside an archive is not zero.
    """

    def __init__(self, path: str, offset: int = 0) -> None:
        self.path = path
        self._file: OpenFile | None = None
        with open(path, "rb") as file:
            file.seek(offset)
            self.shape, self.is_fortran, self.dtype = read_header(file, path)
            self.offset = file.tell()
        self.n_items = int(np.prod(self.shape, dtype=np.int64))
        needed = self.offset + self.n_items * self.dtype.itemsize
        size = self.file.size
        self.release()
        if size < needed:
            raise ValueError(
                f"{path} is truncated: an array of shape {self.shape} and type "
                f"{self.dtype} needs {needed:,} bytes, the file has {size:,}."
            )

    @property
    def file(self) -> OpenFile:
        """The open file."""
        file = self._file
        if file is None:
            self._file = file = OpenFile(self.path)
        return file

    def release(self) -> None:
        """Close the file until it is needed again."""
        self._file = None

    def fill(self, out: Array, item: int) -> None:
        """Read the values from a given one on, in the order of the file."""
        self.file.fill(out, self.offset + item * self.dtype.itemsize)

    def items(self, start: int, stop: int) -> Array:
        """Return values start:stop, in the order of the file."""
        values = np.empty(stop - start, self.dtype)
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
        check_table(array.shape, array.dtype, array.path)
        self.path = array.path
        self.shape = (array.shape[0], array.shape[1])
        self.dtype = array.dtype
        self.order = "F" if array.is_fortran else "C"
        self._array = array

    def read(self, start: int, stop: int, out: Array | None = None) -> Array:
        n, d = self.shape
        out = self._block(stop - start) if out is None else out
        if self.order == "C":
            self._array.fill(out, start * d)
            return out
        for j in range(d):
            column: Any = out[:, j]
            if column.flags.contiguous:
                self._array.fill(column, j * n + start)
            else:
                column[:] = self._array.items(j * n + start, j * n + stop)
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


def open_npy(path: str) -> Source:
    """Return the rows of a .npy file."""
    return NpySource(DiskArray(path))


def read_header(
    file: BinaryIO | Any, path: str
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether the order is Fortran's, and type; `file` moves past it."""
    try:
        version = npy_format.read_magic(file)
        read = {
            (1, 0): npy_format.read_array_header_1_0,
            (2, 0): npy_format.read_array_header_2_0,
        }[version]
        return read(file)
    except KeyError:  # version 3 is for names of fields beyond latin1
        raise ValueError(
            f"{path} holds a structured array; it should hold numbers."
        ) from None
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} cannot be read as .npy: {error}") from None


def check_table(shape: tuple[int, ...], dtype: np.dtype[Any], path: str) -> None:
    """Raise where an array is no table of real numbers."""
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{path} holds values of type {dtype}; they should be real numbers."
        )
    if len(shape) != 2:
        raise ValueError(
            f"{path} holds an array of shape {shape}; it should have two dimensions: "
            "rows and features."
        )
