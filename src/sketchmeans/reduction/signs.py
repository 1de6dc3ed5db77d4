"""A few artificial features: random signs times the features, added up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from sketchmeans.data.rows import Block, Rows, block_height, spans
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import check_option
from sketchmeans.reduction.base import Product, Reducer
from sketchmeans.reduction.mailman import MailmanProduct
from sketchmeans.reduction.svd import float_block

#: Bytes of signs that are floats at a time: the matrix itself is kept in bits.
_PANEL_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Signs:
    """Multiplication by a matrix (d × r) with entries ±1/√r.

    Attributes
    ----------
    bits : ndarray of shape (d, ⌈r/8⌉), uint8
        Eight signs per byte, the first in its highest bit; one stands for plus.
    width : int
        r.
    method : {"gemm", "mailman"}
        How it is multiplied.
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
        edges = spans(len(self.bits), height)
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


class SignProjection(ClassNamePrefixFeaturesOutMixin, Reducer):
    """Features ``X R`` for a matrix R of random signs ±1/√r (B14 Algorithm 2).

    The signs are independent and fair, so that squared norms and distances are right
    on average.  k-means on r = O(k/ε²) such features costs at most 2 + ε times the
    optimum on all features (Theorem 12); the constants of the theorem are far from
    what is needed in practice (see `sketchmeans.diagnostics.sketch_size`).

    R depends on the number of features only, not on the rows or their weights.  It is
    kept in bits, d·r/8 bytes.  Fitting takes O(d r) time and looks at no more
    than the first block of rows; transforming takes O(n d r), or the number of
    nonzeros times r.

    Parameters
    ----------
    n_components : int, optional
        r, at most the number of features d.  None takes ``max(20, 4·n_clusters)``, or
        d if that is less.
    n_clusters : int, default=8
        k; it only sets the default of `n_components`.
    method : {"gemm", "mailman"}, default="gemm"
        How ``X R`` is computed: as a matrix product, or by the mailman algorithm of
        Liberty & Zucker (2009) in O(n d r/log d).  Both give the same numbers up to
        rounding.  Measured (``python -m benchmarks.mailman``), the mailman is slower
        on dense rows, and up to 2.8 times faster on sparse rows with thousands of
        nonzeros, above all in float64.
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

    def __init__(
        self,
        n_components: int | None = None,
        n_clusters: int = 8,
        *,
        method: str = "gemm",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_clusters = n_clusters
        self.method = method
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        check_option("method", self.method, ("gemm", "mailman"))

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
