"""Squared Euclidean distances that keep their digits.

``‖x‖² − 2x·z + ‖z‖²`` is one matrix product, and loses its digits where x and z are far
closer to each other than to the origin.  Such pairs are computed again from ``x − z``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans.data.rows import LEAST_SQUARE, Block, Rows, block_height, filled, spans
from sketchmeans.kernels.arrays import Products, squared_norms, toarray
from sketchmeans.numerics.linalg import (
    CANCELLATION_ROUNDINGS,
    ZERO_DISTANCE_ROUNDINGS,
    Array,
)

#: Numbers in the differences that are formed at a time.
_PART = 2**18

#: Rows with no more entries than this are prepared once for many distances.
_PREPARED_ENTRIES = 2**24


class SquaredDistances:
    """Squared distances from blocks of rows to the rows of Z.

    Parameters
    ----------
    Z : ndarray or CSR matrix of shape (m, d)
    dtype : dtype
        Float type of the distances; float64 where float32 has no room for them.
    origin : ndarray of shape (d,), optional
        The point about which rows are taken; the mean of Z where it is not given.
    """

    def __init__(
        self, Z: Block, dtype: np.dtype[Any], origin: Array | None = None
    ) -> None:
        self.is_sparse = not isinstance(Z, np.ndarray)
        self.Z = Z if self.is_sparse else np.ascontiguousarray(Z)
        self.dtype = dtype
        if self.is_sparse:  # CSR rows cannot be shifted: float64 throughout
            self._products = Products(Z, np.dtype(np.float64), None)
            self._z_norms = squared_norms(Z)
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
            return self._sparse(block, out)
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
        # Most blocks have no such pair: one comparison of each entry finds that.
        if distances.min() > share * norms.max() + least.max():
            return
        scale = (share * norms)[:, None] + least.astype(self.dtype)
        rows, columns = np.nonzero(distances <= scale)
        step = max(1, _PART // max(block.shape[1], 1))
        for start in range(0, len(rows), step):
            i, j = rows[start : start + step], columns[start : start + step]
            gaps = np.subtract(block[i], self.Z[j], dtype=np.float64)
            distances[i, j] = np.einsum("ij,ij->i", gaps, gaps)

    def _sparse(self, block: Block, out: Array | None) -> Array:
        norms = squared_norms(block)
        distances = self._products(block, None)
        scale = norms[:, None] + self._z_norms
        distances *= -2.0
        distances += scale
        noise = ZERO_DISTANCE_ROUNDINGS * float(np.finfo(np.float64).eps)
        distances[distances <= noise * scale] = 0.0
        if out is None:
            return distances.astype(self.dtype, copy=False)
        out[...] = distances
        return out


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
        lengths = filled(rows.map(squared_norms, height), (len(rows),))

    def distances(numbers: Array) -> Array:
        height = block_height(rows.n_features, len(numbers))
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
                spans(len(rows), height),
                height * rows.n_features * len(numbers),
            )
        values = filled(parts, (len(rows), len(numbers)))
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
