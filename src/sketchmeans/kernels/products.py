"""Kernels of inner products: one matrix product, finished in place."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sketchmeans.data.rows import Block, Rows
from sketchmeans.kernels.arrays import (
    Products,
    squared_distances_among,
    squared_norms,
    write,
)
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.kernels.base import Kernel, KernelColumns
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers


class _ProductKernel(Kernel):
    """A function of inner products."""

    in_place = True

    def against(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> KernelColumns:
        products = Products(Z, np.dtype(dtype), workers)
        return lambda block, out=None: self._finish(products(block, out))

    def diagonal(self, X: Block) -> Array:
        return self._finish(squared_norms(X))

    def _finish(self, values: Array) -> Array:
        """Turn inner products into kernel values, in place."""
        return values


class _FeatureKernel(_ProductKernel):
    """A kernel whose features are as wide a table as the rows."""

    @abstractmethod
    def features(self, X: Block) -> Block: ...

    def distances_among(self, rows: Rows) -> Callable[[Array], Array]:
        return squared_distances_among(rows, self.features)


class Linear(_FeatureKernel):
    """``k(x, z) = x·z``.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.kernels import Linear
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> Linear()(X, X[1:]).round(4)
    array([[1.],
           [2.]])
    """

    proven = True
    shift_invariant = True

    def features(self, X: Block) -> Block:
        return X


@dataclass(eq=False, repr=False)
class Polynomial(_ProductKernel):
    """``k(x, z) = (gamma x·z + coef0)^degree``.

    Positive semi-definite if `degree` is a whole number and `coef0` at least zero: else
    some powers of inner products are subtracted.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.kernels import Polynomial
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> Polynomial(gamma=1.0, degree=2)(X, X[1:]).round(4)
    array([[4.],
           [9.]])
    """

    proven = True

    gamma: Gamma = "mean"
    degree: float = 3
    coef0: float = 1.0

    @property
    def positive_definite(self) -> bool:  # type: ignore[override]
        """Whether every kernel matrix is positive semi-definite."""
        degree = float(self.degree)
        return degree >= 0.0 and degree.is_integer() and float(self.coef0) >= 0.0

    def _finish(self, values: Array) -> Array:
        values *= float(self.gamma)
        values += self.coef0
        if not float(self.degree).is_integer() and (values < 0.0).any():
            raise ValueError(
                f"degree={self.degree!r} should be a whole number for these rows: "
                f"gamma x·z + coef0 is {values.min():.3g} for some of them, and a "
                "negative number has no such power."
            )
        return np.power(values, self.degree, out=values)


@dataclass(eq=False, repr=False)
class Sigmoid(_ProductKernel):
    """``k(x, z) = tanh(gamma x·z + coef0)``, which is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.kernels import Sigmoid
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> Sigmoid(gamma=1.0, coef0=0.0)(X, X[1:]).round(4)
    array([[0.7616],
           [0.964 ]])
    """

    positive_definite = False

    gamma: Gamma = "mean"
    coef0: float = 1.0

    def _finish(self, values: Array) -> Array:
        values *= float(self.gamma)
        values += self.coef0
        return np.tanh(values, out=values)


class Cosine(_FeatureKernel):
    """``k(x, z) = x·z / (‖x‖ ‖z‖)``; the kernel value of a zero row is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.kernels import Cosine
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> Cosine()(X, X[1:]).round(4)
    array([[0.7071],
           [1.    ]])
    """

    proven = True

    def against(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> KernelColumns:
        kind = np.dtype(dtype)
        products = Products(Z, kind, workers)
        scale_z = _inverse_roots(products.z_norms).astype(kind)

        def columns(block: Block, out: Array | None = None) -> Array:
            values = products(block, out)
            values *= _inverse_roots(squared_norms(block)).astype(kind)[:, None]
            values *= scale_z
            return values

        return columns

    def features(self, X: Block) -> Block:
        # In float64: far from the origin all angles are small.
        lengths = _inverse_roots(squared_norms(X))
        if sparse.issparse(X):
            return sparse.csr_array(sparse.diags_array(lengths) @ X)
        return np.asarray(X, dtype=np.float64) * lengths[:, None]

    def diagonal(self, X: Block) -> Array:
        return (squared_norms(X) > 0).astype(np.float64)


class ArcCosine(Kernel):
    """Arc-cosine kernel of Cho & Saul: an infinitely wide layer of neural units.

    With θ the angle between x and z, order 0 (steps) is ``1 − θ/π``, order 1 (rectified
    linear units) ``‖x‖‖z‖ (sin θ + (π − θ) cos θ)/π`` and order 2
    ``‖x‖²‖z‖² (3 sin θ cos θ + (π − θ)(1 + 2 cos²θ))/π``.  The kernel value of a zero
    row, which has no angle, is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.kernels import ArcCosine
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> ArcCosine()(X, X[1:]).round(4)
    array([[1.0683],
           [2.    ]])
    """

    proven = True
    nonnegative = True

    def __init__(self, order: int = 1) -> None:
        self.order = order

    def against(
        self, Z: Block, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> KernelColumns:
        if self.order not in (0, 1, 2):
            raise ValueError(f"order={self.order!r} should be 0, 1 or 2.")
        kind = np.dtype(dtype)
        # An angle is the root of a cosine's distance to one: float64 keeps it.
        products = Products(Z, np.dtype(np.float64), workers)
        z_roots = np.sqrt(products.z_norms)

        def columns(block: Block, out: Array | None = None) -> Array:
            scale = np.sqrt(squared_norms(block))[:, None] * z_roots
            cosine = products(block, None)
            np.divide(cosine, scale, out=cosine, where=scale > 0)
            np.clip(cosine, -1.0, 1.0, out=cosine)
            values = scale**self.order * self._angular(cosine)
            values[scale == 0.0] = 0.0
            return write(values, kind, out)

        return columns

    def _angular(self, cosine: Array) -> Array:
        angle = np.arccos(cosine)
        if self.order == 0:
            return np.asarray(1.0 - angle / np.pi)
        sine = np.sqrt(np.maximum(1.0 - cosine * cosine, 0.0))
        if self.order == 1:
            return np.asarray((sine + (np.pi - angle) * cosine) / np.pi)
        return np.asarray(
            (3.0 * sine * cosine + (np.pi - angle) * (1.0 + 2.0 * cosine**2)) / np.pi
        )

    def diagonal(self, X: Block) -> Array:
        factor = 3.0 if self.order == 2 else 1.0
        norms = squared_norms(X)
        return np.where(norms > 0.0, factor * norms**self.order, 0.0)


def _inverse_roots(norms: Array) -> Array:
    roots = np.sqrt(norms)
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
