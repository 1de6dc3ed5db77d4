"""Where rows come from: arrays, memory maps and CSR matrices, block by block.

Blocks are read in the type in which the rows are stored and turned to floats one
at a time; no source is ever converted as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sketchmeans.linalg import Array
from sketchmeans.parallel import Workers

#: Bytes of rows and kernel values that one thread works on: a few L2 caches, as
#: small blocks pay the interpreter more often.
_BLOCK_BYTES = 6 * 2**20
_MIN_HEIGHT, _MAX_HEIGHT = 64, 4096

Block = Any  # a 2-D ndarray or CSR matrix


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
    """

    def __init__(
        self, X: Block, workers: Workers, weights: Array | None = None
    ) -> None:
        self.X = X
        self.workers = workers
        self.weights = weights
        self.n_rows, self.n_features = X.shape
        self.is_sparse = sparse.issparse(X)
        self.dtype = float_type(X.dtype)
        self.stored_itemsize = X.dtype.itemsize
        self._moments: Moments | None = None

    def __len__(self) -> int:
        return int(self.n_rows)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights: the number of rows where there are none."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    def block(self, start: int, stop: int) -> Block:
        """Return rows start:stop as stored, after a check that they are finite."""
        block = self.X[start:stop]
        if self._moments is None and block.dtype.kind == "f":
            check_finite(block, start)
        return block

    def block_weights(self, start: int, stop: int) -> Array | None:
        """Return the weights of rows start:stop, or None where all are one."""
        return None if self.weights is None else self.weights[start:stop]

    def take(self, indices: Array) -> Block:
        """Return the rows of these numbers, in memory, as stored."""
        taken = self.X[indices]
        if self._moments is None and taken.dtype.kind == "f":
            check_finite(taken, indices)
        return taken

    def subset(self, indices: Array, weights: Array | None) -> Rows:
        """Return the rows of these numbers, in memory, as a source of their own."""
        return Rows(self.take(indices), self.workers, weights)

    def leading(self, size: int) -> Rows:
        """Return the first rows as a source of their own."""
        return Rows(self.block(0, size), self.workers, self.block_weights(0, size))

    def survey(self) -> Moments:
        """Return the moments of the rows.

        One pass, about the first row: far from the origin the plain sum of squares
        would lose every digit.
        """
        if self._moments is None:
            self._moments = self._survey()
        return self._moments

    def _survey(self) -> Moments:
        shift = np.zeros(self.n_features)
        if not self.is_sparse:
            shift[:] = self.block(0, 1)[0]
        height = block_height(self.n_features, 0)

        def sums(span: tuple[int, int]) -> tuple[Array, float]:
            block, weights = self.block(*span), self.block_weights(*span)
            if self.is_sparse:
                total, squares = _sparse_sums(block, weights)
            else:
                total, squares = _dense_sums(
                    block, weights, shift, self.dtype, self.workers
                )
            if not np.isfinite(squares):  # float32 squares overflow
                wide = np.dtype(np.float64)
                total, squares = _dense_sums(block, weights, shift, wide, self.workers)
            return total, squares

        total, squares = np.zeros(self.n_features), 0.0
        for block_total, block_squares in self.workers.map(
            sums, spans(self.n_rows, height)
        ):
            total += block_total
            squares += block_squares
        offset = total / self.total_weight
        variance = squares / self.total_weight - float(offset @ offset)
        return Moments(shift + offset, max(variance, 0.0))


def as_rows(X: Block, workers: Workers, weights: Array | None = None) -> Rows:
    """Return the row source for `X`."""
    if sparse.issparse(X):
        X = sparse.csr_array(X)
    return Rows(X, workers, weights)


def check_finite(block: Block, rows: int | Array = 0, name: str = "Input X") -> None:
    """Raise where a block holds NaN or infinity, and say in which row.

    `rows` is the number of the block's first row, or the numbers of all its rows.
    """
    values = block.data if sparse.issparse(block) else block
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is finite only if all its terms are, and costs a fraction of a test.
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    dense = block.toarray() if sparse.issparse(block) else block
    i, j = np.argwhere(~np.isfinite(dense))[0]
    kind = "NaN" if np.isnan(dense[i, j]) else "infinity"
    row = rows + i if isinstance(rows, int) else rows[i]
    raise ValueError(
        f"{name} contains {kind} (row {row}, column {j}); every value should be a "
        "finite number."
    )


def _dense_sums(
    block: Array, weights: Array | None, shift: Array, dtype: Any, workers: Workers
) -> tuple[Array, float]:
    """Return the sums of the rows and of their squared norms, about `shift`."""
    centred = workers.buffer("centred", block.shape, dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        np.subtract(block, shift.astype(dtype), out=centred, casting="unsafe")
        norms = np.einsum("ij,ij->i", centred, centred).astype(np.float64)
        ones = np.ones(len(block)) if weights is None else weights
        return (ones.astype(dtype) @ centred).astype(np.float64), float(ones @ norms)


def _sparse_sums(block: Block, weights: Array | None) -> tuple[Array, float]:
    wide = block.astype(np.float64)
    ones = np.ones(wide.shape[0]) if weights is None else weights
    with np.errstate(invalid="ignore", over="ignore"):
        squares = wide.multiply(wide).sum(axis=1)
        return np.asarray(ones @ wide), float(ones @ np.asarray(squares).ravel())
