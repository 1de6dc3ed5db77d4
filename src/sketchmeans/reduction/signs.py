"""A few artificial features: random signs times the features, added up.

`MailmanProduct` multiplies by signs in O(d) for log d columns: b columns have at most
2ᵇ different rows, so the features are first added up by the pattern of their signs
("delivered to their address"), and only the 2ᵇ sums meet the matrix of all patterns,
whose product is b rounds of folding in half (Liberty & Zucker, "The mailman algorithm",
Information Processing Letters 109(3), 2009).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from sketchmeans.data.rows import Block, Rows, block_height, block_slices
from sketchmeans.data.sources.base import is_csr
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import check_option
from sketchmeans.reduction.base import Product, Reducer
from sketchmeans.reduction.svd import float_block

#: Bytes of signs that are floats at a time: the matrix itself is kept in bits.
_PANEL_BYTES = 16 * 2**20


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

    def deliver_sparse(self, block: sparse.csr_array) -> Array:
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
        groups = self._groups(block.nnz / max(h, 1) if is_csr(block) else d)
        for start, stop in block_slices(h, h if is_sparse else _STRIP):
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
        """Return the groups of columns for rows with this many values.

        The first sign of a group is the highest bit of its pattern.
        """
        b = group_width(n_values, self._width)
        if b not in self._known:
            plus = np.unpackbits(self._bits, axis=1, count=self._width)
            powers = 1 << np.arange(b)
            self._known[b] = [
                _Group(a, z, plus[:, a:z] @ powers[: z - a][::-1])
                for a, z in block_slices(self._width, b)
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


@dataclass(frozen=True)
class Signs:
    """Multiplication by a matrix (d × r) with entries ±1/√r.

    `bits`, of shape (d, ⌈r/8⌉), has eight signs per byte, the first in its highest bit;
    one stands for plus.  `method` is "gemm" or "mailman".
    """

    bits: Array
    width: int
    method: str = "gemm"
    keeps_sparse = False

    def panel(self, start: int, stop: int, dtype: npt.DTypeLike) -> Array:
        """Return the signs ±1 of features start:stop."""
        plus = np.unpackbits(self.bits[start:stop], axis=1, count=self.width)
        signs = plus.astype(dtype)
        signs *= 2
        signs -= 1
        return signs

    def product(self, dtype: npt.DTypeLike, workers: Workers) -> Product:
        if self.method == "gemm":
            signed = self._gemm(np.dtype(dtype), workers)
        else:
            signed = MailmanProduct(self.bits, self.width, dtype, workers)
        scale = 1.0 / math.sqrt(self.width)

        def multiply(block: Block) -> Array:
            features = signed(block)
            features *= scale
            return features

        return multiply

    def _gemm(self, dtype: np.dtype[Any], workers: Workers) -> Product:
        """Return the products of blocks with panels of signs."""
        height = max(_PANEL_BYTES // (self.width * dtype.itemsize), 1)
        edges = block_slices(len(self.bits), height)
        # What fits one panel is unpacked once for all blocks.
        only = self.panel(*edges[0], dtype) if len(edges) == 1 else None

        def multiply(block: Block) -> Array:
            block = float_block(block, dtype, workers)
            if only is not None:
                return np.asarray(block @ only)
            features = np.zeros((block.shape[0], self.width), dtype)
            for start, stop in edges:
                features += block[:, start:stop] @ self.panel(start, stop, dtype)
            return features

        return multiply


def draw_signs(n_features: int, r: int, rng: np.random.Generator) -> Array:
    """Return d × r fair signs, eight per byte; r may exceed d."""
    return rng.integers(256, size=(n_features, -(-r // 8)), dtype=np.uint8)


@dataclass(eq=False, repr=False)
class SignProjection(ClassNamePrefixFeaturesOutMixin, Reducer):
    """Features ``X R`` for a matrix R of random signs ±1/√r (B14 Algorithm 2).

    The signs are independent and fair, so that squared norms and distances are right on
    average.  k-means on r = O(k/ε²) such features costs at most 2 + ε times the optimum
    on all features (Theorem 12); fewer are enough in practice (see
    `sketchmeans.diagnostics.sketch_size`).  R depends on the number of features only,
    not on the rows or their weights, and is kept in bits, d·r/8 bytes.  Fitting takes
    O(d r) time; transforming takes O(n d r), or the number of nonzeros times r.

    Parameters
    ----------
    n_components : int, optional
        r, at most the number of features d.  None takes ``max(20, 4·n_clusters)``, or d
        if that is less.
    n_clusters : int, default=8
        k; it only sets the default of `n_components`.
    method : {"gemm", "mailman"}, default="gemm"
        How ``X R`` is computed: as a matrix product, or by the mailman algorithm of
        Liberty & Zucker (2009) in O(n d r/log d); equal up to rounding.  Measured
        (``python -m benchmarks.mailman``), the mailman is slower on dense rows, and up
        to 2.8 times faster on sparse rows with thousands of nonzeros, above all in
        float64.
    n_jobs : int, optional
        Threads; None means all cores.  The result does not depend on it.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    signs_ : ndarray of shape (d, ⌈r/8⌉), uint8
        The signs, eight per byte; ``sign_matrix()`` unpacks them.
    n_components_ : int

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(3, dtype=np.float32)
    >>> SignProjection(2, random_state=0).fit_transform(X).round(4)
    array([[-0.7071,  0.7071],
           [ 0.7071, -0.7071],
           [ 0.7071,  0.7071]], dtype=float32)
    """

    n_components: int | None = None
    n_clusters: int = 8
    _: KW_ONLY
    method: str = "gemm"
    n_jobs: int | None = None
    random_state: Any = None

    def _check_params(self) -> None:
        super()._check_params()
        check_option("method", self.method, ("gemm", "mailman"))

    def _fit_bytes(self, rows: Rows) -> int:
        return rows.n_features * -(-self._size(rows.n_features) // 8)

    def _draw(self, rows: Rows, n_components: int, rng: np.random.Generator) -> Signs:
        # The signs do not depend on the rows.  `transform` checks what it reads; a
        # table that is wrong from its first rows on is refused here.
        rows.block(0, min(len(rows), block_height(rows.n_features, n_components)))
        self.signs_ = draw_signs(rows.n_features, n_components, rng)
        return Signs(self.signs_, n_components, self.method)

    def sign_matrix(self) -> Array:
        """Return the signs ±1 as an int8 matrix (d, r); R is this times 1/√r."""
        signs: Signs = self._sketch  # type: ignore[assignment]
        return signs.panel(0, len(signs.bits), np.int8)
