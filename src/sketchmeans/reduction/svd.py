"""Leading right singular vectors of a table of rows: in one pass, or exact.

``X`` (n × d) is never copied as a whole: blocks of rows are read once, by threads,
and what is kept of them is as small as the sketch.  Where rows have weights w, all of
this is about the rows times √w: a row of weight 3 is three rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import qr
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.block_sums import sum_blocks
from sketchmeans.data.rows import Block, Rows, block_height, block_slices
from sketchmeans.data.sources.base import toarray
from sketchmeans.numerics.linalg import (
    Array,
    eigen_decomposition,
    pseudo_inverse,
    relative_cut,
    thin_svd,
)
from sketchmeans.numerics.memory import format_bytes, memory_budget
from sketchmeans.numerics.parallel import Workers

Span = tuple[int, int]

#: Singular values below this many roundings of the largest are noise of the data.
_RANK_ROUNDINGS = 16.0

#: Each block of a pass adds to sums of the size of the sketch: fewer rows are not worth
#: it.
_MIN_HEIGHT = 256
#: A block of a CSR matrix has at least this many nonzeros a feature, if it can.
_NONZEROS_PER_FEATURE = 4
#: Lanczos' method pays for fewer vectors than this share of all, and sees singular
#: values down to this share of the largest.
_FEW_OF_ALL, _LANCZOS_CUT = 3, 1e-6
#: Rows of a block of the exact SVD, in features.
_HEIGHT_PER_FEATURE = 2


@dataclass(frozen=True)
class RightVectors:
    """Leading right singular vectors ``Z`` (d × q) and values, the largest first.

    The largest entry of each vector is positive.
    """

    vectors: Array
    values: Array


def range_width(k: int, eps: float) -> int:
    """Return the width of the range finder, ``k + ⌈k/ε⌉ + 1`` (B14 Lemma 4).

    Examples
    --------
    >>> range_width(10, 0.5)
    31
    """
    return k + math.ceil(k / eps) + 1


def fast_frobenius_svd(
    rows: Rows, k: int, eps: float, rng: np.random.Generator
) -> RightVectors:
    """Return an orthonormal Z (d × k) with ``E‖X − XZZᵀ‖² ≤ (1+ε)‖X − X_k‖²``.

    B14 Lemma 4: ``Y = X G`` for a Gaussian G (d × r), ``r = k + ⌈k/ε⌉ + 1``; ``Q`` an
    orthonormal basis of the range of Y; Z the top-k right singular vectors of ``QᵀX``.

    Neither Y nor Q is stored.  One pass sums ``YᵀY`` and ``YᵀX`` over blocks, and
    ``QᵀX = C^{-½}(YᵀX)`` for ``C = YᵀY``.  Both sums are formed in float64: their
    rounding counts twice, and in float32 it would drown directions that are a
    thousand times smaller than the first.  What is 10⁻⁶ times smaller is left out.

    Costs O(n d k/ε) time and O(d k/ε) memory.  Where the range finder would be as wide
    as the table the exact vectors are returned.  Where the rank of X is lower than k
    there are fewer vectors, but at least one.
    """
    width = range_width(k, eps)
    if width >= min(rows.n_rows, rows.n_features):
        return exact_svd(rows, k)
    test = rng.standard_normal((rows.n_features, width), dtype=rows.dtype.type)
    gram, cross = _range_sums(rows, test)
    if not np.isfinite(gram).all():
        raise ValueError(
            "X overflows when it is multiplied. Scale the features (for example with "
            "StandardScaler) or use float64."
        )
    return _leading_vectors(pseudo_inverse(gram).root().T @ cross, k, rows.dtype)


def exact_svd(rows: Rows, k: int) -> RightVectors:
    """Return the top-k right singular vectors of the rows.

    The triangular factors of blocks are stacked and factored again, so ``XᵀX``, which
    would square the condition number, is never formed.  Costs O(n d min(n, d)) time
    and O(d min(n, d)) memory, in one pass.  Where the rank of X is lower than k there
    are fewer vectors, but at least one.
    """
    R = _triangular_factor(rows)
    _, values, vectors = thin_svd(R)
    smaller = min(rows.n_rows, rows.n_features)
    cut = max(_RANK_ROUNDINGS * _eps(rows.dtype), smaller * _eps(np.float64))
    rank = max(int((values[:k] > cut * values[0]).sum()), 1)
    return RightVectors(_with_positive_peaks(vectors[:rank].T), values[:rank])


def truncated_svd(rows: Rows, k: int, rng: np.random.Generator) -> RightVectors:
    """Return the top-k right singular vectors of the rows, and no others.

    Lanczos' method on ``XᵀX``, which is never formed: about 3k passes of 2·n·d, where
    `exact_svd` takes n·d·min(n, d) for all of them.  Where k is more than a third of
    these, or the method does not converge, the vectors are those of `exact_svd`.
    Directions a million times smaller than the first are left out.
    """
    d = rows.n_features
    if _FEW_OF_ALL * k >= min(rows.n_rows, d):
        return exact_svd(rows, k)
    workers = rows.workers
    edges = list(block_slices(len(rows), max(pass_height(rows, 1), _MIN_HEIGHT)))

    def multiply(vector: Array) -> Array:
        def product(span: Span) -> Array:
            block = float_block(rows.block(*span), np.float64, workers)
            image, weights = block @ vector.ravel(), rows.block_weights(*span)
            return np.asarray(block.T @ (image if weights is None else image * weights))

        total = np.zeros(d)
        for part in workers.map(product, edges):
            total += part
        return total

    start: Array = rng.standard_normal((d,))
    if not np.any(multiply(start)):
        return exact_svd(rows, k)  # X = 0
    operator = LinearOperator((d, d), matvec=multiply, dtype=np.float64)
    try:
        values, vectors = eigsh(operator, k, v0=start, which="LA")
    except ArpackNoConvergence:
        return exact_svd(rows, k)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    cut = max((_RANK_ROUNDINGS * _eps(rows.dtype)) ** 2, _LANCZOS_CUT**2)
    rank = max(int((values > cut * values[0]).sum()), 1)
    return RightVectors(_with_positive_peaks(vectors[:, :rank]), np.sqrt(values[:rank]))


def check_exact_fits(rows: Rows) -> None:
    """Raise where the exact SVD of the rows would take more memory than it may."""
    n, d = len(rows), rows.n_features
    if find_adapter(rows) is not None:
        raise ValueError(
            "svd='exact' does not work on rows that stay on a cluster: use svd='fast', "
            "or give fit_rows, the number of rows to fit on."
        )
    need, budget = 3 * 8 * min(n, d) * d, memory_budget(None)
    if need > budget:
        raise MemoryError(
            f"svd='exact' of {n:,} × {d:,} values needs {format_bytes(need)}; half of "
            f"the free memory is {format_bytes(budget)}. Use svd='fast'."
        )


def float_block(block: Block, dtype: npt.DTypeLike, workers: Workers) -> Block:
    """Return a block in a float type: itself, or in this thread's scratch array."""
    if block.dtype == dtype:
        return block
    if sparse.issparse(block):
        return block.astype(dtype)
    scratch = workers.buffer(f"block {np.dtype(dtype)}", block.shape, dtype)
    np.copyto(scratch, block, casting="unsafe")
    return scratch


def pass_height(rows: Rows, width: int) -> int:
    """Return the rows per block of a product of all rows with `width` columns.

    Of a row of a CSR matrix only the nonzeros are worked on.
    """
    if not rows.is_sparse:
        return block_height(rows.n_features, width)
    return block_height(math.ceil(rows.X.nnz / max(len(rows), 1)), width)


def _range_sums(rows: Rows, test: Array) -> tuple[Array, Array]:
    """Return ``YᵀWY`` and ``YᵀWX`` for ``Y = X G`` and weights W, in float64."""
    workers = rows.workers

    def sums(block: Block, weights: Array | None) -> tuple[Array, ...]:
        with np.errstate(over="ignore", invalid="ignore"):
            y = (float_block(block, test.dtype, workers) @ test).astype(np.float64)
            wide = float_block(block, np.float64, workers)
            left = y
            if weights is not None:
                root = np.sqrt(weights)[:, None]
                y *= root
                left = y * root
            # A sparse factor must stand on the left for the product to be dense.
            cross = (wide.T @ left).T if sparse.issparse(wide) else left.T @ wide
            return y.T @ y, cross

    gram, cross = sum_blocks(rows, sums, _range_height(rows, test.shape[1]))
    return gram, cross


def _range_height(rows: Rows, width: int) -> int:
    height = max(pass_height(rows, width), _MIN_HEIGHT)
    if not rows.is_sparse:
        return height
    per_row = max(rows.X.nnz / len(rows), 1.0)
    return max(height, math.ceil(_NONZEROS_PER_FEATURE * rows.n_features / per_row))


def _leading_vectors(B: Array, k: int, dtype: npt.DTypeLike) -> RightVectors:
    """Return the top-k right singular vectors of a wide B, from those of ``BBᵀ``."""
    q, d = B.shape
    if q == 0:  # X = 0: any direction is as good
        return RightVectors(np.eye(d, 1), np.zeros(1))
    values, left = eigen_decomposition(B @ B.T, largest=min(k, q))
    values, left = values[::-1], left[:, ::-1]
    cut = max((_RANK_ROUNDINGS * _eps(dtype)) ** 2, relative_cut(q, np.float64))
    rank = int((values > cut * values[0]).sum())
    # Small vectors carry the rounding of large ones: orthogonalise, largest first.
    vectors, _ = qr(B.T @ left[:, :rank], mode="economic", check_finite=False)
    return RightVectors(_with_positive_peaks(vectors), np.sqrt(values[:rank]))


def _triangular_factor(rows: Rows) -> Array:
    """Return an R of min(n, d) rows with ``RᵀR = XᵀWX``, in float64."""
    d = rows.n_features

    def factor(span: Span) -> Array:
        block = toarray(rows.block(*span)).astype(np.float64)
        weights = rows.block_weights(*span)
        if weights is not None:
            block *= np.sqrt(weights)[:, None]
        return _triangularise(block)

    height = max(block_height(d, 0), _HEIGHT_PER_FEATURE * d)
    factors = rows.workers.map(factor, block_slices(len(rows), height))
    R = next(factors)
    for other in factors:
        R = _triangularise(np.concatenate([R, other]))
    return R


def _triangularise(block: Array) -> Array:
    """Return the triangular factor of a block with more rows than features."""
    h, d = block.shape
    if h <= d:
        return block
    (R,) = qr(block, mode="r", overwrite_a=True, check_finite=False)
    return np.asarray(R[:d])


def _with_positive_peaks(vectors: Array) -> Array:
    """Return the columns with signs such that the largest entry is positive."""
    peaks = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[peaks, np.arange(vectors.shape[1])])
    return np.ascontiguousarray(vectors * signs)


def _eps(dtype: npt.DTypeLike) -> float:
    return float(np.finfo(np.dtype(dtype)).eps)
