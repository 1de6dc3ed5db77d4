"""Where rows come from: arrays, memory maps, CSR matrices and files, block by block.

Blocks are read in the type in which the rows are stored and turned to floats one
at a time; no source is ever converted as a whole.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.sources import Source, as_source
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.memory import FIXED_NEED, format_bytes
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.sums import TreeSum

#: Bytes of rows and kernel values that one thread works on: a few L2 caches, as
#: small blocks pay the interpreter more often.
_BLOCK_BYTES = 6 * 2**20
_MIN_HEIGHT, _MAX_HEIGHT = 64, 4096

#: Files of up to so many bytes are read into memory: they are gone through many times.
HELD_BYTES = 32 * 2**20

#: Rows whose median is about where all rows are.
_PROBED_ROWS = 31

#: Squares from this to its inverse are far from the limits of float32.
LEAST_SQUARE = 2.0**-60

Block = Any  # a 2-D ndarray or CSR matrix
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
    return min(max(power, _MIN_HEIGHT), _MAX_HEIGHT)


def spans(n_rows: int, height: int) -> list[tuple[int, int]]:
    """Return the (start, stop) of every block."""
    return [(start, min(start + height, n_rows)) for start in range(0, n_rows, height)]


def by_block(numbers: Array, height: int) -> list[tuple[int, tuple[int, int]]]:
    """Return which of some ascending row numbers are of the same block.

    Each block that has any is given with the (start, stop) of its own among `numbers`.
    Single rows are worked on together if they are of the same block, so that what is
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


def filled(parts: Iterable[Array], shape: tuple[int, ...]) -> Array:
    """Return parts, one below the other, in an array of this shape and of float64."""
    values, start = np.empty(shape), 0
    for part in parts:
        values[start : start + len(part)] = part
        start += len(part)
    return values


@dataclass(frozen=True)
class Moments:
    """Weighted mean and mean squared norm of the rows, about that mean."""

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

    #: Bytes that the rows take beside what the user holds, and more if they are `held`.
    memory = 0
    held_memory = 0
    #: Share of a row's length by which its values may be off: none if they are stored.
    rounding = 0.0
    #: Whether blocks can be had in any order, at no cost.
    in_memory = True
    #: ``‖x − mean‖²`` of the rows, while they are needed.
    squared_offsets: Array | None = None
    #: What `weights` are to be multiplied by to be those that the user gave.
    weight_unit = 1.0

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
        self._last = _LastBlock()

    def __len__(self) -> int:
        return int(self.n_rows)

    def thread_memory(self, height: int) -> int:
        """Return the bytes that a thread takes to read blocks of this height."""
        if self.is_sparse or not isinstance(self.X, np.ndarray):
            return 0
        return 0 if self.X.flags.c_contiguous else height * self.row_bytes

    def held(self) -> Rows:
        """Return all rows where each can be had at any time: an array, or a map."""
        return self

    @property
    def row_bytes(self) -> int:
        """Bytes of a row as stored, if all its values were."""
        return int(self.n_features * self.stored_itemsize)

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
        block = self._in_rows(self.X[start:stop])
        if not self.checked:
            check_finite(block, self.first + start, self.name)
        return block

    def _in_rows(self, block: Block) -> Block:
        """Return a block in C order: itself, or a copy in memory of this thread."""
        if self.is_sparse or block.flags.c_contiguous:
            return block
        if len(block) > _MAX_HEIGHT:
            return np.ascontiguousarray(block)
        copy = self._last.room(block.shape, block.dtype, "C")
        np.copyto(copy, block)
        return copy

    def block_weights(self, start: int, stop: int) -> Array | None:
        """Return the weights of rows start:stop, or None where all are one."""
        return None if self.weights is None else self.weights[start:stop]

    def take(self, indices: Array) -> Block:
        """Return the rows of these numbers, in memory, in their stored type."""
        taken = self.X[indices]
        if not self.is_sparse:
            taken = np.ascontiguousarray(taken)
        if not self.checked:
            check_finite(taken, self.first + np.asarray(indices), self.name)
        return taken

    def map(self, function: Callable[[Block], Result], height: int) -> Iterator[Result]:
        """Yield ``function(block)`` for the blocks of all rows, in their order.

        It may be run in another process, and returns what it finds.
        """
        return self.workers.map(
            lambda span: function(self.block(*span)), spans(self.n_rows, height)
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
        """Return the rows of these numbers, in memory, as a source of their own."""
        return self._part(self.take(indices), weights)

    def leading(self, size: int) -> Rows:
        """Return the first rows as a source of their own."""
        return self._part(self.block(0, size), self.block_weights(0, size))

    def _part(self, X: Block, weights: Array | None) -> Rows:
        part = Rows(X, self.workers, weights)
        part.rounding, part.dtype = self.rounding, self.dtype
        return part if weights is None else part.with_unit(self.weight_unit)

    def settle(self, budget: int) -> None:
        """Get ready for many passes, in so many bytes."""

    def labels_of(self, labels: Any) -> Any:
        """Return an engine's labels in the form that users get."""
        return np.ascontiguousarray(labels)

    def survey(self) -> Moments:
        """Return the moments of the rows.

        One pass, in float64 and about a typical row: far from the origin the plain sum
        of squares would lose every digit, and so it would about an outlier.
        """
        if self._moments is None:
            self._moments = self._survey()
            self.checked = True
        return self._moments

    def _survey(self) -> Moments:
        shift = self._typical()
        return self._moments_of(self.survey_terms(shift), shift)

    def _typical(self) -> Array:
        """Return the median of the first rows that count; zero for CSR rows."""
        if self.is_sparse:
            return np.zeros(self.n_features)
        few = np.arange(min(_PROBED_ROWS, self.n_rows))
        if self.weights is not None:
            few = np.flatnonzero(self.weights)[:_PROBED_ROWS]
        return np.asarray(np.median(self.take(few).astype(np.float64), axis=0))

    def survey_terms(self, shift: Array, first: int = 0) -> TreeSum:
        """Return sums of the rows and of their squared norms, about `shift`.

        The blocks are numbered from `first`.
        """

        def sums(span: tuple[int, int]) -> Array:
            block, weights = self.block(*span), self.block_weights(*span)
            if self.is_sparse:
                total, squares = _sparse_sums(block, weights)
            else:
                total, squares = _dense_sums(block, weights, shift, self.workers)
            return np.append(total, squares)

        edges = spans(self.n_rows, block_height(self.n_features, 0))
        terms = TreeSum()
        for number, term in enumerate(self.workers.map(sums, edges), first):
            terms.add(number, term)
        return terms

    def _moments_of(self, terms: TreeSum, shift: Array) -> Moments:
        means = terms.total() / self.total_weight
        offset = means[:-1]
        variance = float(means[-1]) - float(offset @ offset)
        return Moments(shift + offset, max(variance, 0.0))


class SourceRows(Rows):
    """Rows of a file, or of another source, read when they are asked for.

    A block of dense rows lies in memory of its thread, which is used again for the
    next block if nobody holds on to this one.
    """

    X: Source
    in_memory = False

    def __init__(
        self, X: Source, workers: Workers, weights: Array | None = None
    ) -> None:
        super().__init__(X, workers, weights)
        self.is_sparse = X.is_sparse
        self.memory = X.memory
        self._stored_bytes = self.row_bytes
        if X.is_sparse:  # a value, its column, and the row's pointer
            self._stored_bytes = X.nnz * (self.stored_itemsize + 8) // len(X) + 8
        self.held_memory = int(self.n_rows * self._stored_bytes)
        self._columns = _LastBlock()

    def thread_memory(self, height: int) -> int:
        tallest = max(height, block_height(self.n_features, 0))
        copies = 1 if self.X.order == "C" else 2
        return int(copies * tallest * self._stored_bytes + self.X.thread_memory)

    def check_room(self, budget: int) -> None:
        """Raise where reading alone takes more than a budget, before any row is read.

        Beside what the source states: a block, and a few numbers for each feature.
        What every fit takes is not worth an error here: the fit's own formula has it.
        """
        height = min(block_height(self.n_features, 0), self.n_rows)
        need = self.memory + self.thread_memory(height) + 32 * self.n_features
        if need > max(budget, FIXED_NEED):
            raise MemoryError(
                f"To read rows of {self.n_features:,} features from {self.X.path} "
                f"takes {format_bytes(need)}; max_memory allows "
                f"{format_bytes(budget)}. Raise max_memory, or write the file in "
                "smaller row groups or batches."
            )

    def held(self) -> Rows:
        X = self.X.read(0, self.n_rows, None)
        self._check(X, 0)
        rows = Rows(X, self.workers, self.weights).with_unit(self.weight_unit)
        rows.memory = self.held_memory
        return rows

    def block(self, start: int, stop: int) -> Block:
        last = self._last
        if last.span != (start, stop):
            last.span = None  # a read that fails leaves half of a block
            shape = (stop - start, self.n_features)
            out = None
            if not self.is_sparse and shape[0] <= _MAX_HEIGHT:
                memory = last if self.X.order == "C" else self._columns
                out = memory.room(shape, self.X.dtype, self.X.order)
            block = self._in_rows(self.X.read(start, stop, out))
            self._check(block, start)
            if shape[0] > _MAX_HEIGHT:
                return block
            if not self.is_sparse:  # it may be asked for again: nobody shall change it
                block = block.view()
                block.flags.writeable = False
            last.span, last.block = (start, stop), block
        return last.block

    def take(self, indices: Array) -> Block:
        indices = np.asarray(indices)
        taken = self.X.take(indices)
        if not self.is_sparse:
            taken = np.ascontiguousarray(taken)
        self._check(taken, indices)
        return taken

    def _check(self, block: Block, rows: int | Array) -> None:
        """Raise where a block is not finite, and say where in which file."""
        found = None if self.checked else not_finite(block)
        if found is not None:
            i, j, kind = found
            number = rows + i if isinstance(rows, int) else int(rows[i])
            path, row = self.X.locate(number)
            names = self.X.feature_names
            column = names[j] if names else j
            raise ValueError(_not_finite_text(path, kind, row, column))


class _LastBlock(threading.local):
    """The block that a thread read last, and the memory that it lies in."""

    span: tuple[int, int] | None = None
    block: Block = None
    _memory: Array | None = None
    _lent: Any = None

    def room(self, shape: tuple[int, int], dtype: np.dtype[Any], order: Any) -> Array:
        """Return memory for a block: the same again, if no block is left in it."""
        self.block = None
        size = shape[0] * shape[1] * dtype.itemsize
        if (
            self._memory is None
            or len(self._memory) < size
            or (self._lent is not None and self._lent() is not None)
        ):
            self._memory = np.empty(size, np.uint8)
        # Every view of an array that borrows its memory refers to that array.
        memory: Any = self._memory
        values = np.frombuffer(memoryview(memory)[:size], dtype)
        self._lent = weakref.ref(values)
        return values.reshape(shape, order=order)


def as_rows(
    X: Block,
    workers: Workers,
    weights: Array | None = None,
    budget: int | None = None,
) -> Rows:
    """Return the row source for `X`: a table, a path, a source or a Dask table.

    Reading a file may take `budget` bytes.
    """
    adapter = find_adapter(X)
    if adapter is not None:
        rows: Rows = adapter.as_rows(X, workers, weights)
        return rows
    source = as_source(X)
    if source is not None:
        read = SourceRows(source, workers, weights)
        if budget is not None:
            read.check_room(budget)
        return read.held() if read.held_memory <= HELD_BYTES else read
    if sparse.issparse(X):
        X = sparse.csr_array(X)
    return Rows(X, workers, weights)


def check_finite(block: Block, rows: int | Array = 0, name: str = "Input X") -> None:
    """Raise where a block holds NaN or infinity, and say in which row.

    `rows` is the number of the block's first row, or the numbers of all its rows.
    """
    found = not_finite(block)
    if found is not None:
        i, j, kind = found
        row = rows + i if isinstance(rows, int) else rows[i]
        raise ValueError(_not_finite_text(name, kind, row, j))


def not_finite(block: Block) -> tuple[int, int, str] | None:
    """Return row, column and kind of the first value that is not finite, if any."""
    values = block.data if sparse.issparse(block) else block
    if values.dtype.kind != "f":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is finite only if all its terms are, and costs a fraction of a test; a
        # sum of squares, which BLAS has, a fraction of that.
        flat = values.reshape(-1) if values.flags.c_contiguous else None
        total = values.sum() if flat is None else flat @ flat
        if np.isfinite(total) or np.isfinite(values).all():
            return None
    dense = block.toarray() if sparse.issparse(block) else block
    i, j = np.argwhere(~np.isfinite(dense))[0]
    return int(i), int(j), "NaN" if np.isnan(dense[i, j]) else "infinity"


def _not_finite_text(name: str, kind: str, row: int, column: int | str) -> str:
    return (
        f"{name} contains {kind} (row {row}, column {column!r}); every value should be "
        "a finite number."
    )


def _dense_sums(
    block: Array, weights: Array | None, shift: Array, workers: Workers
) -> tuple[Array, float]:
    """Return the sums of the rows and of their squared norms, about `shift`."""
    centred = workers.buffer("moments", block.shape, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        np.subtract(block, shift, out=centred)
        norms = np.einsum("ij,ij->i", centred, centred)
        ones = np.ones(len(block)) if weights is None else weights
        return ones @ centred, float(ones @ norms)


def _sparse_sums(block: Block, weights: Array | None) -> tuple[Array, float]:
    wide = block.astype(np.float64)
    ones = np.ones(wide.shape[0]) if weights is None else weights
    with np.errstate(invalid="ignore", over="ignore"):
        squares = wide.multiply(wide).sum(axis=1)
        return np.asarray(ones @ wide), float(ones @ np.asarray(squares).ravel())
