"""What a source of rows is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sketchmeans.numerics.linalg import Array

Block = Any  # a 2-D ndarray or CSR matrix

#: Rows that lie no farther apart than this are read together: a system call costs as
#: much as these bytes.
_GAP_BYTES = 16 * 2**10
#: Most bytes that are read together.
RUN_BYTES = 2**20


class Source(ABC):
    """Rows that are read when they are asked for, by any number of threads.

    `open_rows` returns one.  The estimators take any subclass in the place of a table:
    it defines `read` and `take` and sets the attributes.

    Attributes
    ----------
    path : str
        What errors call the source.
    shape : tuple of int
    dtype : dtype
        Type of the values that `read` and `take` return.
    feature_names : tuple of str or None
    is_sparse : bool
        Whether blocks are CSR matrices.
    order : {"C", "F"}
        Memory order of dense blocks.
    nnz : int
        Stored values, if the source is sparse.
    zero_based : bool or None
        Whether features are counted from 0, in formats that number them.
    memory, thread_memory : int
        Bytes that reading takes, once and for each thread, beside what is returned.
    """

    path: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    feature_names: tuple[str, ...] | None = None
    is_sparse: bool = False
    order: Literal["C", "F"] = "C"
    nnz: int = 0
    zero_based: bool | None = None
    memory: int = 0
    thread_memory: int = 0

    @abstractmethod
    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        """Return rows start:stop, written into `out` if they are dense."""

    @abstractmethod
    def take(self, indices: Array) -> Block:
        """Return the rows of these numbers, in this order."""

    def labels(self) -> Array:
        """Return the values of the label column, which is not a feature."""
        raise ValueError(f"{self.path} was opened without a label_column.")

    def locate(self, row: int) -> tuple[str, int]:
        """Return the file that holds a row, and the row's number there."""
        return self.path, row

    def like_fit(self, zero_based: bool | None, n_features: int) -> Source:
        """Return the source with features numbered as in a fit, and as many.

        Only formats that number their features leave this open.
        """
        return self

    def release(self) -> None:  # noqa: B027 - most sources keep nothing
        """Free what is kept between reads; the next read gets it again."""

    def empty_table(self) -> Any:
        """Return a table without rows, with the width and the names of this one."""
        if self.feature_names is not None:
            try:
                import pyarrow as pa
            except ImportError:  # names of a data frame in memory
                pass
            else:
                return pa.table({name: pa.nulls(0) for name in self.feature_names})
        return np.empty((0, self.shape[1]))

    def _new_block(self, n_rows: int) -> Array:
        return np.empty((n_rows, self.shape[1]), self.dtype, order=self.order)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<{n:,} rows of {d:,} features, {self.dtype}, in {self.path}>"


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read: the parameters of `open_rows`."""

    columns: Sequence[str] | None = None
    label_column: str | None = None
    dtype: npt.DTypeLike | None = None
    missing: str = "error"
    header: bool | None = None
    zero_based: bool | None = None


def check_not_empty(path: str, shape: tuple[int, ...]) -> None:
    """Raise if there are no rows or no features."""
    if 0 in shape:
        what = "rows" if shape[0] == 0 else "features"
        raise ValueError(f"{path} has no {what}; at least one is needed.")


def runs(rows: Array, row_bytes: float) -> Iterator[tuple[int, int]]:
    """Yield the (start, stop) of ascending row numbers that are read together.

    Examples
    --------
    >>> import numpy as np
    >>> list(runs(np.array([0, 1, 2, 900, 901]), row_bytes=100))
    [(0, 3), (3, 5)]
    """
    far = np.diff(rows) * row_bytes > _GAP_BYTES
    edges = [0, *(np.flatnonzero(far) + 1).tolist(), len(rows)]
    most = max(int(RUN_BYTES // max(row_bytes, 1)), 1)
    for start, stop in pairwise(edges):
        while start < stop:
            end = int(np.searchsorted(rows[start:stop], rows[start] + most)) + start
            yield start, end
            start = end


def stack(parts: list[Block]) -> Block:
    """Return CSR matrices one below the other."""
    return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


def stack_in_order(parts: list[Block], places: Array) -> Block:
    """Return the rows of CSR matrices, each at the place that is given for it."""
    return stack(parts)[np.argsort(places)]
