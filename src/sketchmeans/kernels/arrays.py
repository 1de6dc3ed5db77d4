"""Dense and CSR rows alike: norms, products, scratch arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers

#: Landmarks with a larger share of nonzeros are multiplied as dense columns.
_DENSE_SHARE = 0.05


class Products:
    """Inner products of blocks of rows with the rows of Z."""

    def __init__(self, Z: Block, kind: np.dtype[Any], workers: Workers | None) -> None:
        self.kind = kind
        self.workers = workers
        Z = by_rows(Z)
        self.z_norms = squared_norms(Z)
        self.columns: Any
        if sparse.issparse(Z):
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


def toarray(block: Block) -> Array:
    """Return rows as an ordinary array."""
    return np.asarray(block.toarray() if sparse.issparse(block) else block)


def by_rows(X: Block) -> Block:
    """Return dense rows in C order: the bits of products and sums depend on it."""
    return X if sparse.issparse(X) else np.ascontiguousarray(X)


def squared_norms(X: Block) -> Array:
    """Return ``‖x‖²`` of every row, in float64."""
    if sparse.issparse(X):
        wide = X.astype(np.float64)
        return np.asarray(wide.multiply(wide).sum(axis=1), dtype=np.float64).ravel()
    values = np.ascontiguousarray(X)
    if values.dtype.kind != "f" or values.dtype.itemsize < 8:
        values = values.astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", values, values), dtype=np.float64)
