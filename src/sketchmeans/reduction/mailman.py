"""Products with a sign matrix by the mailman algorithm.

b columns of signs have at most 2ᵇ different rows, so the features of a row of data
are first added up by the pattern of their signs ("delivered to their address"), and
only the 2ᵇ sums meet the matrix of all patterns, whose product is b rounds of folding
in half.  With 2ᵇ ≈ d this is O(d) work for log d columns.

E. Liberty & S. Zucker: The mailman algorithm: a note on matrix-vector multiplication.
Information Processing Letters 109(3), 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sketchmeans.data.rows import Block, spans
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.reduction.svd import float_block

#: Rows that are folded together: their sums should fit a cache.
_STRIP = 256
#: Cost of a pattern over that of a feature: it is summed, and added to another.
_PATTERN_COST = 2.0
_MOST_COLUMNS = 20


def group_width(n_values: float, width: int) -> int:
    """Return the columns b that are handled together, at least cost a column.

    Examples
    --------
    >>> group_width(1000, 100)
    7
    """
    columns = range(1, min(width, _MOST_COLUMNS) + 1)
    return min(columns, key=lambda b: (n_values + _PATTERN_COST * 2**b) / b)


@dataclass(frozen=True)
class _Group:
    """Columns start:stop of the signs, and each feature's pattern in them."""

    start: int
    stop: int
    addresses: Array

    @cached_property
    def delivery(self) -> Any:
        """The matrix (2ᵇ × d) that adds up the features of each pattern."""
        d = len(self.addresses)
        # Stored by columns: features are taken in order, as they lie in memory.
        return sparse.csc_array(
            (np.ones(d, np.float32), self.addresses, np.arange(d + 1)),
            shape=(self.n_patterns, d),
        )

    def deliver_sparse(self, block: Block) -> Array:
        """Return the sums (2ᵇ × h) of the features of each pattern, of CSR rows."""
        # Values of one row with the same address are added up by `toarray`.
        delivered = sparse.csr_array(
            (block.data, self.addresses[block.indices], block.indptr),
            shape=(block.shape[0], self.n_patterns),
        )
        return np.ascontiguousarray(delivered.toarray().T)

    @property
    def n_patterns(self) -> int:
        return int(2 ** (self.stop - self.start))


class MailmanProduct:
    """Products of blocks with a matrix (d × r) of signs ±1, given as bits."""

    def __init__(
        self, bits: Array, width: int, dtype: npt.DTypeLike, workers: Workers
    ) -> None:
        self._bits, self._width = bits, width
        self._dtype, self._workers = np.dtype(dtype), workers
        self._known: dict[int, list[_Group]] = {}

    def __call__(self, block: Block) -> Array:
        """Return the product of a block with the signs."""
        block = float_block(block, self._dtype, self._workers)
        h, d = block.shape
        is_sparse = sparse.issparse(block)
        out = np.empty((h, self._width), self._dtype)
        groups = self._groups(block.nnz / max(h, 1) if is_sparse else d)
        for start, stop in spans(h, h if is_sparse else _STRIP):
            by_feature = (
                None if is_sparse else np.ascontiguousarray(block[start:stop].T)
            )
            for group in groups:
                sums = (
                    group.deliver_sparse(block)
                    if by_feature is None
                    else group.delivery @ by_feature
                )
                out[start:stop, group.start : group.stop] = _fold(sums).T
        return out

    def _groups(self, n_values: float) -> list[_Group]:
        """Return the groups of columns for rows with so many values.

        The first sign of a group is the highest bit of its pattern.
        """
        b = group_width(n_values, self._width)
        if b not in self._known:
            plus = np.unpackbits(self._bits, axis=1, count=self._width)
            powers = 1 << np.arange(b)
            self._known[b] = [
                _Group(a, z, plus[:, a:z] @ powers[: z - a][::-1])
                for a, z in spans(self._width, b)
            ]
        return self._known[b]


def _fold(sums: Array) -> Array:
    """Return the product (b × h) of all patterns with their sums (2ᵇ × h).

    The upper half of the patterns has a plus in the first column and the lower half a
    minus; in the other columns both are alike, so they are added up for the next.
    Overwrites the sums.
    """
    b = len(sums).bit_length() - 1
    signed = np.empty((b, sums.shape[1]), sums.dtype)
    for column in range(b):
        half = len(sums) // 2
        lower, upper = sums[:half], sums[half:]
        np.add.reduce(upper, axis=0, out=signed[column])
        lower += upper
        sums = lower
    # plus − minus = 2·plus − all
    signed *= 2
    signed -= sums
    return signed
