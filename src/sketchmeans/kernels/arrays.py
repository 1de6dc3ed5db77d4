"""Dense and CSR rows alike: norms, products, and distances that keep their digits.

``‖x‖² − 2x·z + ‖z‖²`` is one matrix product, and loses its digits where x and z are far
closer to each other than to the origin.  Such pairs are computed again from ``x − z``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import (
    LEAST_SQUARE,
    Block,
    Rows,
    block_height,
    block_slices,
    stack_parts,
)
from sketchmeans.data.sources.base import is_csr, toarray
from sketchmeans.numerics.linalg import (
    CANCELLATION_ROUNDINGS,
    Array,
    clip_zero_distances,
)
from sketchmeans.numerics.parallel import Workers

#: Landmarks with a larger share of nonzeros are multiplied as dense columns.
_DENSE_SHARE = 0.05

#: Numbers in the differences that are formed at a time.
_PART = 2**18

#: Rows with no more entries than this are prepared once for many distances.
_PREPARED_ENTRIES = 2**24


class Products:
    """Inner products of blocks of rows with the rows of Z."""

    def __init__(self, Z: Block, kind: np.dtype[Any], workers: Workers | None) -> None:
        self.kind = kind
        self.workers = workers
        Z = by_rows(Z)
        self.z_norms = squared_norms(Z)
        self.columns: Any
        if is_csr(Z):
            # Far from the origin float32 products lose all digits, and CSR rows
            # cannot be centred: float64 throughout.
            wide = Z.astype(np.float64)
            share = wide.nnz / max(wide.shape[0] * wide.shape[1], 1)
            self.columns = wide.toarray().T if share > _DENSE_SHARE else wide.T.tocsr()
        else:
            self.columns = np.ascontiguousarray(np.asarray(Z).T, dtype=kind)

    def __call__(self, block: Block, out: Array | None) -> Array:
        if sparse.issparse(block):
            return write(
                toarray(block.astype(np.float64) @ self.columns), self.kind, out
            )
        columns = toarray(self.columns).astype(self.kind, copy=False)
        return np.dot(self._floats(block), columns, out=out)

    def _floats(self, block: Array) -> Array:
        if block.dtype == self.kind and block.flags.c_contiguous:
            return block
        x = scratch(self.workers, "floats", block.shape, self.kind)
        x[...] = block
        return x


def write(values: Array, kind: np.dtype[Any], out: Array | None) -> Array:
    """Return values in a float type, written into `out` if it is given."""
    if out is None:
        return np.asarray(values, dtype=kind)
    if out is not values:
        out[...] = values
    return out


def scratch(
    workers: Workers | None, name: str, shape: tuple[int, int], kind: np.dtype[Any]
) -> Array:
    """Return an array to write into, lent by the workers if there are any."""
    if workers is None:
        return np.empty(shape, dtype=kind)
    return workers.buffer(name, shape, kind)


def by_rows(X: Block) -> Block:
    """Return dense rows in C order: the bits of products and sums depend on it."""
    return X if sparse.issparse(X) else np.ascontiguousarray(X)


def squared_norms(X: Block) -> Array:
    """Return ``‖x‖²`` of every row, in float64."""
    if is_csr(X):
        wide = X.astype(np.float64)
        return np.asarray(wide.multiply(wide).sum(axis=1), dtype=np.float64).ravel()
    values = np.ascontiguousarray(X)
    if values.dtype.kind != "f" or values.dtype.itemsize < 8:
        values = values.astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", values, values), dtype=np.float64)


class SquaredDistances:
    """Squared distances from blocks of rows to the rows of Z.

    In float type `dtype`, or in float64 where squares do not fit float32; about the
    `origin`, which is the mean of Z where it is not given.
    """

    def __init__(
        self, Z: Block, dtype: np.dtype[Any], origin: Array | None = None
    ) -> None:
        self.is_sparse = not isinstance(Z, np.ndarray)
        self.Z = Z if self.is_sparse else np.ascontiguousarray(Z)
        self.dtype = dtype
        if self.is_sparse:  # CSR rows cannot be shifted: float64 throughout
            self._products = Products(Z, np.dtype(np.float64), None)
            self._z_norms = self._products.z_norms
            return
        if origin is None:
            origin = self.Z.mean(axis=0, dtype=np.float64)
        spread = float(np.square(self.Z - origin, dtype=np.float64).sum(axis=1).max())
        if spread and not LEAST_SQUARE < spread < 1.0 / LEAST_SQUARE:
            self.dtype = dtype = np.dtype(np.float64)
        self._origin = origin.astype(dtype)
        centred = np.subtract(self.Z, self._origin, dtype=np.float64)
        self._z_norms = np.einsum("ij,ij->i", centred, centred)
        self._columns = np.ascontiguousarray(-2.0 * centred.T, dtype=dtype)

    def __call__(self, block: Block, out: Array | None = None) -> Array:
        """Return the distances of the rows of a block, in `out` if it is given."""
        if self.is_sparse:
            return self._of_sparse(block, out)
        block = toarray(block)
        centred, norms = _about(self._origin, block, self.dtype)
        return self.of_centred(block, centred, norms, out)

    def of_centred(
        self, block: Array, centred: Array, norms: Array, out: Array | None = None
    ) -> Array:
        """Return the same for rows whose difference to the origin is known."""
        if centred.dtype != self.dtype:
            return self(block, out)
        distances = np.dot(centred, self._columns, out=out)
        distances += norms[:, None]
        distances += self._z_norms.astype(self.dtype)
        self._repair(distances, block, norms)
        return distances

    def _repair(self, distances: Array, block: Array, norms: Array) -> None:
        """Compute distances that are small differences of large numbers again."""
        share = CANCELLATION_ROUNDINGS * float(np.finfo(self.dtype).eps)
        least = share * self._z_norms
        # Most blocks have few such pairs: one comparison of each entry finds them.
        near = np.flatnonzero(distances <= share * norms.max() + least.max())
        rows, columns = np.divmod(near, distances.shape[1])
        scale = (share * norms)[rows] + least.astype(self.dtype)[columns]
        lost = distances[rows, columns] <= scale
        rows, columns = rows[lost], columns[lost]
        step = max(1, _PART // max(block.shape[1], 1))
        for start in range(0, len(rows), step):
            i, j = rows[start : start + step], columns[start : start + step]
            gaps = np.subtract(block[i], self.Z[j], dtype=np.float64)
            distances[i, j] = np.einsum("ij,ij->i", gaps, gaps)

    def _of_sparse(self, block: Block, out: Array | None) -> Array:
        distances = self._products(block, None)
        scale = squared_norms(block)[:, None] + self._z_norms
        distances *= -2.0
        distances += scale
        return write(clip_zero_distances(distances, scale), self.dtype, out)


def squared_distances_among(
    rows: Rows, features: Callable[[Block], Block] = lambda block: block
) -> Callable[[Array], Array]:
    """Return a function from row numbers to ``‖φ(x) − φ(x_number)‖²``, in float64.

    `features` is φ.  Few rows that are asked for again and again are prepared once.
    Distances between equal rows are exactly zero.
    """
    prepared = None
    if not rows.is_sparse and len(rows) * rows.n_features <= _PREPARED_ENTRIES:
        X = features(rows.block(0, len(rows)))
        origin = X.mean(axis=0, dtype=np.float64).astype(rows.dtype)
        prepared = X, *_about(origin, X, rows.dtype)
    lengths = None
    if rows.rounding:  # equal rows need not have equal bits
        height = block_height(rows.n_features, 0)
        lengths = stack_parts(rows.map(squared_norms, height), (len(rows),))

    most = block_height(rows.n_features, 0)

    def distances(numbers: Array) -> Array:
        height = block_height(rows.n_features, len(numbers))
        if prepared is None and len(numbers) > most:  # not all as points at a time
            values = np.empty((len(rows), len(numbers)))
            for start in range(0, len(numbers), most):
                part = numbers[start : start + most]
                values[:, start : start + most] = distances(part)
            return values
        if prepared is None:
            measure = SquaredDistances(features(rows.take(numbers)), rows.dtype)
            parts = rows.map(lambda block: measure(features(block)), height)
        else:
            X, centred, norms = prepared
            measure = SquaredDistances(X[numbers], rows.dtype, origin)
            parts = rows.workers.map(
                lambda span: measure.of_centred(
                    *(part[slice(*span)] for part in (X, centred, norms))
                ),
                block_slices(len(rows), height),
                height * rows.n_features * len(numbers),
            )
        values = stack_parts(parts, (len(rows), len(numbers)))
        if lengths is not None:
            zero = rows.rounding**2 * (lengths[:, None] + lengths[numbers])
            values[values <= zero] = 0.0
        return values

    return distances


def _about(origin: Array, X: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return rows less the origin, one after the other in memory, and their norms."""
    # Float64 that becomes float32 is rounded after the difference, not before.
    is_wide = X.dtype.kind == "f" and X.dtype.itemsize == 8
    kind = np.dtype(np.float64) if is_wide else dtype
    centred = np.subtract(X, origin, dtype=kind, order="C").astype(dtype, copy=False)
    return centred, np.einsum("ij,ij->i", centred, centred)
