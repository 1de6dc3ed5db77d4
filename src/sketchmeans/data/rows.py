"""Rows with weights, read block by block: arrays, memory maps and CSR matrices.

Blocks are read in the type in which the rows are stored and turned to floats one
at a time; no table is ever converted as a whole.  `source_rows` has rows of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.finite import check_finite
from sketchmeans.data.sources import as_source
from sketchmeans.data.sources.base import Block as Block
from sketchmeans.data.sources.base import is_csr
from sketchmeans.numerics.linalg import ZERO_DISTANCE_ROUNDINGS, Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.sums import TreeSum

#: Bytes of rows and kernel values that one thread works on: a few L2 caches, as
#: small blocks pay the interpreter more often.
_BLOCK_BYTES = 6 * 2**20
_MIN_HEIGHT, MAX_HEIGHT = 64, 4096

#: Files of up to this many bytes are read into memory: they are read many times.
IN_MEMORY_BYTES = 32 * 2**20

#: Rows whose median is about where all rows are.
_PROBED_ROWS = 31

#: Squares from this to its inverse are far from the limits of float32.
LEAST_SQUARE = 2.0**-60

Result = TypeVar("Result")


def float_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the float type in which rows of `dtype` are worked on.

    float32 stays float32; integers of up to 16 bits are exact in float32; what is
    wider becomes float64.
    """
    kind = np.dtype(dtype)
    small = kind.kind in "biu" and kind.itemsize <= 2
    return np.dtype(
        np.float32 if small or kind in (np.float32, np.float16) else np.float64
    )


def block_height(n_features: int, n_columns: int) -> int:
    """Return the rows per block; a function of the widths alone.

    It must not follow the thread count, free memory or the clock: the bits of a
    matrix product depend on the height of its operands.
    """
    fitting = int(_BLOCK_BYTES // (4 * max(n_features + n_columns, 1)))
    power = 1 << max(fitting, 1).bit_length() - 1
    return min(max(power, _MIN_HEIGHT), MAX_HEIGHT)


def block_slices(n_rows: int, height: int) -> list[tuple[int, int]]:
    """Return the (start, stop) of every block."""
    return [(start, min(start + height, n_rows)) for start in range(0, n_rows, height)]


def by_block(numbers: Array, height: int) -> list[tuple[int, tuple[int, int]]]:
    """Return which of some ascending row numbers are in the same block.

    Each block that has any is given with the (start, stop) of its own among `numbers`.
    Single rows are worked on together if they are in the same block, so that what is
    computed in a part of the rows is the same as in all of them.

    Examples
    --------
    >>> import numpy as np
    >>> by_block(np.array([1, 2, 3, 9]), 4)
    [(0, (0, 3)), (2, (3, 4))]
    """
    if not len(numbers):
        return []
    last = int(numbers[-1]) // height
    edges = np.searchsorted(numbers, np.arange(last + 2) * height).tolist()
    return [
        (block, span) for block, span in enumerate(pairwise(edges)) if span[0] < span[1]
    ]


def stack_parts(parts: Iterable[Array], shape: Any, dtype: Any = np.float64) -> Array:
    """Return parts, one below the other, in an array of this shape."""
    values, start = np.empty(shape, dtype), 0
    for part in parts:
        values[start : start + len(part)] = part
        start += len(part)
    return values


@dataclass(frozen=True)
class Moments:
    """Weighted mean of the rows, and their mean squared distance from it."""

    mean: Array
    variance: float


class Rows:
    """Rows of a table, with their weights.

    Parameters
    ----------
    X : ndarray, memory map or CSR matrix of shape (n, d)
    workers : Workers
        The threads that work on the blocks.
    weights : ndarray of shape (n,), optional
        Non-negative; a row of weight 3 is three rows.
    first, name : int and str
        What errors call the first row, and the table.
    checked : bool, default=False
        Whether all values are known to be finite.
    """

    #: The table; in subclasses, where its rows come from.
    X: Any
    #: Bytes that the rows take in addition to the user's table, and how many more
    #: `load` takes.
    memory = 0
    load_memory = 0
    #: Share of a row's length by which its values may be off: none if they are stored.
    rounding = 0.0
    #: Whether blocks can be had in any order, at no cost.
    in_memory = True
    #: ``‖x − mean‖²`` of the rows, while they are needed.
    squared_offsets: Array | None = None
    #: A weight that the user gave is this times the one in `weights`.
    weight_unit = 1.0
    #: Names of the columns, if a partition has them.
    columns: Sequence[Any] | None = None

    def __init__(
        self,
        X: Block,
        workers: Workers,
        weights: Array | None = None,
        *,
        first: int = 0,
        name: str = "Input X",
        checked: bool = False,
    ) -> None:
        self.X = X
        self.first, self.name, self.checked = first, name, checked
        self.workers = workers
        self.weights = weights
        self.n_rows, self.n_features = X.shape
        self.is_sparse = sparse.issparse(X)
        self.dtype = float_type(X.dtype)
        self.stored_itemsize = X.dtype.itemsize
        self._moments: Moments | None = None

    def __len__(self) -> int:
        return int(self.n_rows)

    def thread_memory(self, height: int) -> int:
        """Return the bytes that a thread takes to read blocks of this height."""
        is_c = self.is_sparse or getattr(self.X, "flags", np.ones(0).flags).c_contiguous
        return 0 if is_c else height * self.row_bytes

    def load(self) -> Rows:
        """Return all rows where each can be had at any time: an array, or a map."""
        return self

    @property
    def row_bytes(self) -> int:
        """Bytes of a row as stored, if all its values were."""
        return int(self.n_features * self.stored_itemsize)

    @property
    def taken_bytes(self) -> int:
        """Bytes of a row that is taken, on average: of CSR rows, few values are stored.

        Their number is not known where the rows are elsewhere.
        """
        n_values = getattr(self.X, "nnz", None) if self.is_sparse else None
        if n_values is None:
            return self.row_bytes
        # A value and its column, and the row's pointer.
        return int(n_values * (self.stored_itemsize + 8) // max(self.n_rows, 1) + 8)

    def widen_for(self, square: float) -> None:
        """Work in float64 where squares of this size underflow or overflow float32."""
        if square > 0.0 and not LEAST_SQUARE < square < 1.0 / LEAST_SQUARE:
            self.dtype = np.dtype(np.float64)

    def in_float64(self) -> Self:
        """Return the same rows, to be worked on in float64."""
        wide = copy(self)
        wide.dtype = np.dtype(np.float64)
        return wide

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights: the number of rows where there are none."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @property
    def given_weights(self) -> Array | None:
        """The weights that the user gave, or None where all are one."""
        if self.weight_unit == 1.0:
            return self.weights
        ones = np.ones(self.n_rows) if self.weights is None else self.weights
        return ones * self.weight_unit

    def with_unit(self, unit: float) -> Self:
        """Set the unit of the weights, and return the rows."""
        self.weight_unit = unit
        return self

    def block(self, start: int, stop: int) -> Block:
        """Return rows start:stop in their stored type, and check that they are finite.

        Dense rows are in C order, whatever the order of the table: the bits of matrix
        products and of sums depend on the order of their operands.
        """
        block = self.X[start:stop]
        if not (self.is_sparse or block.flags.c_contiguous):
            block = np.ascontiguousarray(block)
        if not self.checked:
            check_finite(block, self.first + start, self.name, self.columns)
        return block

    def block_weights(self, start: int, stop: int) -> Array | None:
        """Return the weights of rows start:stop, or None where all are one."""
        return None if self.weights is None else self.weights[start:stop]

    def take(self, indices: Array) -> Block:
        """Return the rows of these numbers, in memory, in their stored type."""
        taken = self.X[indices]
        if not self.is_sparse:
            taken = np.ascontiguousarray(taken)
        if not self.checked:
            numbers = self.first + np.asarray(indices)
            check_finite(taken, numbers, self.name, self.columns)
        return taken

    def map(self, function: Callable[[Block], Result], height: int) -> Iterator[Result]:
        """Yield ``function(block)`` for the blocks of all rows, in their order.

        It may be run in another process, and returns what it finds.
        """
        return self.workers.map(
            lambda span: function(self.block(*span)), block_slices(self.n_rows, height)
        )

    def map_some(
        self, function: Callable[[Block], Result], numbers: Array, height: int
    ) -> Iterator[Result]:
        """Yield the same for rows of ascending numbers, some of them at a time."""
        return self.workers.map(
            lambda group: function(self.take(numbers[slice(*group[1])])),
            by_block(numbers, height),
        )

    def subset(self, indices: Array, weights: Array | None) -> Rows:
        """Return the rows of these numbers, in memory."""
        return self._part(self.take(indices), weights)

    def leading(self, size: int) -> Rows:
        """Return the first rows."""
        return self._part(self.block(0, size), self.block_weights(0, size))

    def with_features(self, X: Array) -> Rows:
        """Return other features of the same rows, in memory."""
        part = Rows(X, self.workers, self.weights)
        # The bits of a product depend on where in a block a row is.
        part.rounding = ZERO_DISTANCE_ROUNDINGS * float(np.finfo(X.dtype).eps)
        return part if self.weights is None else part.with_unit(self.weight_unit)

    def _part(self, X: Block, weights: Array | None) -> Rows:
        part = Rows(X, self.workers, weights)
        part.rounding, part.dtype = self.rounding, self.dtype
        return part if weights is None else part.with_unit(self.weight_unit)

    def persist(self, max_memory: float | str | None) -> None:
        """Prepare for many passes, in what `max_memory` stands for."""

    def labels_of(self, labels: Any) -> Any:
        """Return an engine's labels in the form that users get."""
        return np.ascontiguousarray(labels, np.int32)

    def moments(self) -> Moments:
        """Return the moments of the rows.

        One pass, in float64 and about a typical row: far from the origin the plain sum
        of squares would lose every digit, and so it would about an outlier.
        """
        if self._moments is None:
            self._moments = self._compute_moments()
            self.checked = True
        return self._moments

    def _compute_moments(self) -> Moments:
        shift = self._typical()
        return self._moments_of(self.moment_sums(shift), shift)

    def _typical(self) -> Array:
        """Return the median of the first rows that count; zero for CSR rows."""
        if self.is_sparse:
            return np.zeros(self.n_features)
        few = np.arange(min(_PROBED_ROWS, self.n_rows))
        if self.weights is not None:
            few = np.flatnonzero(self.weights)[:_PROBED_ROWS]
        return np.asarray(np.median(self.take(few).astype(np.float64), axis=0))

    def moment_sums(self, shift: Array, first: int = 0) -> TreeSum:
        """Return sums of the rows and of their squared norms, about `shift`.

        The blocks are numbered from `first`.
        """

        def sums(span: tuple[int, int]) -> Array:
            block, weights = self.block(*span), self.block_weights(*span)
            ones = np.ones(block.shape[0]) if weights is None else weights
            with np.errstate(invalid="ignore", over="ignore"):
                if is_csr(block):
                    wide = block.astype(np.float64)
                    norms = np.asarray(wide.multiply(wide).sum(axis=1)).ravel()
                else:
                    wide = self.workers.buffer("moments", block.shape, np.float64)
                    np.subtract(block, shift, out=wide)
                    norms = np.einsum("ij,ij->i", wide, wide)
                return np.append(ones @ wide, ones @ norms)

        edges = block_slices(self.n_rows, block_height(self.n_features, 0))
        terms = TreeSum()
        for number, term in enumerate(self.workers.map(sums, edges), first):
            terms.add(number, term)
        return terms

    def _moments_of(self, terms: TreeSum, shift: Array) -> Moments:
        means = terms.total() / self.total_weight
        offset = means[:-1]
        variance = float(means[-1]) - float(offset @ offset)
        return Moments(shift + offset, max(variance, 0.0))


def as_rows(
    X: Block, workers: Workers, weights: Array | None = None, budget: int | None = None
) -> Rows:
    """Return the rows of `X`: a table, a path, a source or a Dask collection.

    Reading a file may take `budget` bytes.
    """
    if type(X) is np.ndarray:
        return Rows(X, workers, weights)
    adapter = find_adapter(X)
    if adapter is not None:
        return adapter.as_rows(X, workers, weights)
    source = as_source(X)
    if source is not None:
        from sketchmeans.data.source_rows import SourceRows  # which needs Rows

        read = SourceRows(source, workers, weights)
        if budget is not None:
            read.check_memory(budget)
        return read.load() if read.load_memory <= IN_MEMORY_BYTES else read
    return Rows(sparse.csr_array(X) if sparse.issparse(X) else X, workers, weights)
