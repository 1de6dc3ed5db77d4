"""Kernels of distances, which do not change when all rows are shifted."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from sketchmeans.data.rows import Block, Rows
from sketchmeans.data.sources.base import is_csr, toarray
from sketchmeans.kernels.arrays import (
    Products,
    SquaredDistances,
    by_rows,
    scratch,
    squared_distances_among,
    squared_norms,
    write,
)
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.kernels.base import Kernel, KernelColumns, map_columns
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers

#: Up to this size an exponent is exact to about 1e-4 in float32.
_FLOAT32_EXPONENT = 256.0

#: Squares from this to its inverse are far from the limits of float32.
_LEAST_SQUARE = 2.0**-40

#: Numbers that are multiplied in the time in which one is picked out of a row.
_PICKED_PRODUCTS = 32

#: A bandwidth below this, or above its inverse, does not go with float32.
_LEAST_GAMMA = 1e-15

#: Exponents above this have kernel values so close to one that digits are lost.
_NEAR = -0.125


class _ExponentialKernel(Kernel):
    """``exp(−gamma · distance)``."""

    nonnegative = True
    constant_diagonal = 1.0
    shift_invariant = True

    def __init__(self, gamma: Gamma = "mean") -> None:
        self.gamma = gamma

    @abstractmethod
    def _exponents(self, Z: Block, kind: np.dtype[Any]) -> KernelColumns:
        """Return −gamma · distance, exact for near rows, in this type or float64."""

    def squared_distances(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> KernelColumns:
        kind = np.dtype(dtype)
        exponents = self._exponents(Z, kind)
        return lambda block, out=None: _spread(exponents(block, out), kind, out)

    def diagonal(self, X: Block) -> Array:
        return np.ones(X.shape[0])


class RBF(_ExponentialKernel):
    """``k(x, z) = exp(−gamma ‖x − z‖²)``.

    Parameters
    ----------
    gamma : float, "mean", "median" or "scale"
        A number or a rule, see `sketchmeans.kernels.bandwidth.resolve_gamma`.

    Examples
    --------
    >>> import numpy as np
    >>> RBF(gamma=0.5)(np.array([[0.0], [1.0]]), np.array([[0.0]])).round(4)
    array([[1.    ],
           [0.6065]])
    """

    proven = True
    in_place = True
    _distance = "sqeuclidean"

    def against(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> KernelColumns:
        kind, gamma = np.dtype(dtype), float(self.gamma)
        exponents = (
            _sparse_exponents(Z, gamma, kind)
            if sparse.issparse(Z)
            else _dense_exponents(Z, gamma, kind, workers)
        )

        def columns(block: Block, out: Array | None = None) -> Array:
            values = exponents(block, out)
            return np.exp(values, out=values)

        return columns

    def _exponents(self, Z: Block, kind: np.dtype[Any]) -> KernelColumns:
        # Squared distances that are tiny or huge in float32 have a bandwidth that is
        # huge or tiny: float64 holds both.
        gamma = float(self.gamma)
        plain = _LEAST_GAMMA < gamma < 1.0 / _LEAST_GAMMA
        distances = SquaredDistances(Z, kind if plain else np.dtype(np.float64))

        def exponents(block: Block, out: Array | None = None) -> Array:
            values = distances(block, out if distances.dtype == kind else None)
            values *= -gamma
            return values

        return exponents

    def among(self, rows: Rows) -> Callable[[Array], Array]:
        distances = squared_distances_among(rows)

        def values(numbers: Array) -> Array:
            result = distances(numbers)
            result *= -float(self.gamma)
            return np.exp(result, out=result)

        return values

    def distances_among(self, rows: Rows) -> Callable[[Array], Array]:
        distances = squared_distances_among(rows)

        def spreads(numbers: Array) -> Array:
            values = distances(numbers)
            values *= -float(self.gamma)
            return _spread(values, values.dtype, values)

        return spreads


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
) -> KernelColumns:
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
        return write(np.minimum(x @ weights, 0.0), kind, out)

    return exponents


def _sparse_exponents(Z: Block, gamma: float, kind: np.dtype[Any]) -> KernelColumns:
    """Return ``−gamma ‖x − z‖²`` for CSR rows, which cannot be centred: in float64."""
    products = Products(Z, np.dtype(np.float64), None)

    def exponents(block: Block, out: Array | None = None) -> Array:
        distances = products(block, None)
        distances *= -2.0
        distances += squared_norms(block)[:, None]
        distances += products.z_norms
        np.maximum(distances, 0.0, out=distances)
        distances *= -gamma
        return write(distances, kind, out)

    return exponents


def _spread(exponents: Array, kind: np.dtype[Any], out: Array | None) -> Array:
    """Return ``2 − 2 exp(t)`` of exponents ``t <= 0``, precise near zero, in place."""
    near = np.flatnonzero(exponents > _NEAR)
    precise = np.expm1(exponents.ravel()[near])
    values = np.exp(exponents, out=exponents)
    values -= 1.0
    values.ravel()[near] = precise
    values *= -2.0
    return write(values, kind, out)


class Laplacian(_ExponentialKernel):
    """``k(x, z) = exp(−gamma ‖x − z‖₁)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.kernels import Laplacian
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> Laplacian(gamma=1.0)(X, X[1:]).round(4)
    array([[0.3679],
           [1.    ]])
    """

    proven = True
    _distance = "cityblock"

    def against(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> KernelColumns:
        kind = np.dtype(dtype)
        exponents = self._exponents(Z, kind)

        def columns(block: Block, out: Array | None = None) -> Array:
            values = exponents(block)
            return write(np.exp(values, out=values), kind, out)

        return columns

    def distances_among(self, rows: Rows) -> Callable[[Array], Array]:
        def spreads(numbers: Array) -> Array:
            columns = self.squared_distances(rows.take(numbers), np.float64)
            return map_columns(rows, columns, len(numbers))

        return spreads

    def _exponents(self, Z: Block, kind: np.dtype[Any]) -> KernelColumns:
        landmarks = Z if sparse.issparse(Z) else np.asarray(Z, dtype=np.float64)

        def exponents(block: Block, out: Array | None = None) -> Array:
            if sparse.issparse(block):
                distances = manhattan_distances(
                    _short_indices(block), _short_indices(landmarks)
                )
            else:
                distances = cdist(block, toarray(landmarks), "cityblock")
            return np.multiply(distances, -float(self.gamma), out=distances)

        return exponents


def _short_indices(X: Block) -> Block:
    """Return CSR rows with 32-bit indices, which scikit-learn's loops demand."""
    if is_csr(X) and X.indices.dtype != np.int32:
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        return sparse.csr_array(parts, shape=X.shape)
    return X


class FromDistances(Kernel):
    """``−½ ‖φ(x) − φ(z)‖²``: a kernel of the same distances as another.

    Every row is at its own origin: means of clusters that are tight and far from each
    other keep their digits.  It replaces the other one in sums whose coefficients add
    up to one, as those of means of rows do.
    """

    positive_definite = False
    constant_diagonal = 0.0

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def against(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> KernelColumns:
        distances = self.kernel.squared_distances(Z, np.dtype(dtype), workers)
        assert distances is not None

        def columns(block: Block, out: Array | None = None) -> Array:
            values = distances(block, out)
            values *= -0.5
            return values

        return columns

    def diagonal(self, X: Block) -> Array:
        return np.zeros(X.shape[0])
