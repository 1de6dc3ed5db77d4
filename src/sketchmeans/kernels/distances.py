"""Kernels of distances, which do not change when all rows are shifted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import (
    manhattan_distances,
)

from sketchmeans.bandwidth import Gamma
from sketchmeans.kernels.arrays import (
    Products,
    by_rows,
    scratch,
    squared_norms,
    toarray,
)
from sketchmeans.kernels.base import Columns, Kernel
from sketchmeans.linalg import Array
from sketchmeans.parallel import Workers
from sketchmeans.rows import (
    Block,
    Rows,
    block_height,
    filled,
    float_type,
    spans,
)

#: Up to this size an exponent is exact to about 1e-4 in float32.
_FLOAT32_EXPONENT = 256.0

#: Squares from this to its inverse are far from the limits of float32.
_LEAST_SQUARE = 2.0**-40

#: Numbers that are multiplied in the time in which one is picked out of a row.
_PICKED_PRODUCTS = 32

#: Rows with no more entries than this are prepared once for many kernel columns.
_PREPARED_ENTRIES = 2**24


class RBF(Kernel):
    """``k(x, z) = exp(−gamma ‖x − z‖²)``.

    Parameters
    ----------
    gamma : float, "mean", "median" or "scale"
        A number or a rule, see `sketchmeans.bandwidth.resolve_gamma`.

    Examples
    --------
    >>> import numpy as np
    >>> RBF(gamma=0.5)(np.array([[0.0], [1.0]]), np.array([[0.0]])).round(4)
    array([[1.    ],
           [0.6065]])
    """

    proven = True
    in_place = True
    nonnegative = True
    constant_diagonal = 1.0
    _distance = "sqeuclidean"

    def __init__(self, gamma: Gamma = "mean") -> None:
        self.gamma = gamma

    def against(
        self,
        Z: Block,
        dtype: npt.DTypeLike | None = None,
        workers: Workers | None = None,
    ) -> Columns:
        kind = np.dtype(float_type(Z.dtype) if dtype is None else dtype)
        exponents = (
            _sparse_exponents(Z, float(self.gamma), kind)
            if sparse.issparse(Z)
            else _dense_exponents(Z, float(self.gamma), kind, workers)
        )

        def columns(block: Block, out: Array | None = None) -> Array:
            values = exponents(block, out)
            return np.exp(values, out=values)

        return columns

    def among(self, rows: Rows) -> Callable[[Array], Array]:
        distances = squared_distances_among(rows)

        def values(numbers: Array) -> Array:
            result = distances(numbers)
            result *= -float(self.gamma)
            return np.exp(result, out=result)

        return values

    def diagonal(self, X: Block) -> Array:
        return np.ones(X.shape[0])


def squared_distances_among(rows: Rows) -> Callable[[Array], Array]:
    """Return a function from row numbers to ``‖x − x_number‖²``, in float64.

    The rows are taken about their mean, and few rows that are asked for again and
    again are shifted once.
    """
    shape = (len(rows), rows.n_features + 2)
    unit = 1.0 if rows.is_sparse else _unit(rows.survey().variance)
    prepared = None
    if not rows.is_sparse and shape[0] * shape[1] <= _PREPARED_ENTRIES:
        shift = rows.survey().mean.astype(rows.dtype)
        prepared = np.empty(shape, dtype=rows.dtype)
        for start, stop in spans(len(rows), block_height(rows.n_features, 0)):
            _augment(rows.block(start, stop), shift, 1.0, unit, prepared[start:stop])

    def distances(numbers: Array) -> Array:
        height = block_height(rows.n_features, len(numbers))
        if prepared is not None:
            points = prepared[numbers]
            weights = np.empty((shape[1], len(numbers)), dtype=rows.dtype)
            weights[:-2] = 2.0 * points[:, :-2].T
            weights[-2] = 1.0
            weights[-1] = points[:, -2]
            values = rows.workers.map(
                lambda span: _positive(prepared[slice(*span)] @ weights),
                spans(len(rows), height),
                height * weights.size,
            )
        else:
            points = rows.take(numbers)
            exponents = (
                _sparse_exponents(points, 1.0, np.dtype(np.float64))
                if rows.is_sparse
                else _dense_exponents(points, unit**2, rows.dtype, rows.workers)
            )
            values = rows.map(lambda block: _positive(exponents(block)), height)
        found = filled(values, (len(rows), len(numbers)))
        return found if unit == 1.0 else found / unit**2

    return distances


def _positive(negative_distances: Array) -> Array:
    """Return distances, in place, without what rounding leaves below zero."""
    np.negative(negative_distances, out=negative_distances)
    return np.maximum(negative_distances, 0.0, out=negative_distances)


def _unit(spread: float) -> float:
    """Return what rows of such a squared spread are multiplied by: a power of two.

    It is one for all but tiny and huge rows, whose squares would underflow or overflow
    in float32; no digit is lost.
    """
    if not 0.0 < spread < np.inf or _LEAST_SQUARE < spread < 1.0 / _LEAST_SQUARE:
        return 1.0
    return float(2.0 ** -round(0.5 * math.log2(spread)))


def _augment(X: Block, shift: Array, gamma: float, unit: float, out: Array) -> Array:
    """Write ``[x, −gamma‖x‖², 1]``, about `shift` and times `unit`, into `out`."""
    inner = out[:, :-2]
    np.subtract(toarray(X), shift, out=inner, casting="same_kind")
    if unit != 1.0:
        inner *= out.dtype.type(unit)
    np.einsum("ij,ij->i", inner, inner, out=out[:, -2])
    out[:, -2] *= -gamma
    out[:, -1] = 1.0
    return out


def _dense_exponents(
    Z: Array, gamma: float, kind: np.dtype[Any], workers: Workers | None
) -> Columns:
    """Return ``−gamma ‖x − z‖²`` as one product of augmented rows.

    ``[x, −gamma‖x‖², 1] · [2 gamma z, 1, −gamma‖z‖²]``, with x and z taken about the
    mean of Z: the products lose all digits far from the origin.  Where the exponents of
    near rows are small differences of large float32 numbers, float64 is used.  Features
    that are the same in all of Z, as the margins of images are, are in ‖x‖² alone:
    where they are many, the product does without them.
    """
    Z = by_rows(Z)
    n_features = Z.shape[1]
    same = (Z[0] == Z).all(axis=0)
    shift = np.where(same, Z[0], Z.mean(axis=0, dtype=np.float64)).astype(kind)
    centred = np.subtract(Z, shift, dtype=np.float64)
    # Rows are taken in a unit in which the bandwidth is about one: a gamma that no
    # float32 can hold goes with rows whose squares none can hold.
    unit = 1.0 / _unit(gamma)
    gamma, centred = gamma / unit**2, centred * unit
    norms = gamma * np.einsum("ij,ij->i", centred, centred)
    limits = np.finfo(kind)
    is_exact = norms.max() < _FLOAT32_EXPONENT and limits.tiny < unit < limits.max
    inner = kind if is_exact else np.dtype(np.float64)
    weights = np.empty((n_features + 2, len(Z)), dtype=inner)
    weights[:-2] = 2.0 * gamma * centred.T
    weights[-2] = 1.0
    weights[-1] = -norms
    varying = np.flatnonzero(centred.any(axis=0))
    is_narrow = (n_features - len(varying)) * len(Z) > _PICKED_PRODUCTS * len(varying)
    if is_narrow:
        varying = np.append(varying, [n_features, n_features + 1])
        weights = weights[varying]

    def exponents(block: Block, out: Array | None = None) -> Array:
        h = block.shape[0]
        x = scratch(workers, "centred", (h, n_features + 2), inner)
        _augment(block, shift, gamma, unit, x)
        if is_narrow:
            narrow = scratch(workers, "narrow", (h, len(varying)), inner)
            x = x.take(varying, axis=1, out=narrow, mode="clip")
        if inner == kind:
            return np.dot(x, weights, out=out)
        values = np.minimum(x @ weights, 0.0)
        if out is None:
            return np.asarray(values, dtype=kind)
        out[...] = values
        return out

    return exponents


def _sparse_exponents(Z: Block, gamma: float, kind: np.dtype[Any]) -> Columns:
    """Return ``−gamma ‖x − z‖²`` for CSR rows, which cannot be centred: in float64."""
    products = Products(Z, np.dtype(np.float64), None)

    def exponents(block: Block, out: Array | None = None) -> Array:
        distances = products(block, None)
        distances *= -2.0
        distances += squared_norms(block)[:, None]
        distances += products.z_norms
        np.maximum(distances, 0.0, out=distances)
        distances *= -gamma
        if out is None:
            return distances.astype(kind, copy=False)
        out[...] = distances
        return out

    return exponents


class Laplacian(Kernel):
    """``k(x, z) = exp(−gamma ‖x − z‖₁)``."""

    proven = True
    nonnegative = True
    constant_diagonal = 1.0
    _distance = "cityblock"

    def __init__(self, gamma: Gamma = "mean") -> None:
        self.gamma = gamma

    def against(
        self,
        Z: Block,
        dtype: npt.DTypeLike | None = None,
        workers: Workers | None = None,
    ) -> Columns:
        kind = np.dtype(float_type(Z.dtype) if dtype is None else dtype)
        landmarks = Z if sparse.issparse(Z) else np.asarray(Z, dtype=np.float64)

        def columns(block: Block, out: Array | None = None) -> Array:
            if sparse.issparse(block):
                distances = manhattan_distances(
                    _short_indices(block), _short_indices(landmarks)
                )
            else:
                distances = cdist(block, toarray(landmarks), "cityblock")
            distances *= -float(self.gamma)
            np.exp(distances, out=distances)
            if out is None:
                return np.asarray(distances, dtype=kind)
            out[...] = distances
            return out

        return columns

    def diagonal(self, X: Block) -> Array:
        return np.ones(X.shape[0])


def _short_indices(X: Block) -> Block:
    """Return CSR rows with 32-bit indices, which scikit-learn's loops insist on."""
    if not sparse.issparse(X) or X.indices.dtype == np.int32:
        return X
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=X.shape)
