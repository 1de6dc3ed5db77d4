"""Kernels on blocks of rows: values, diagonals and names.

A kernel is its parameters, ``against(Z)``, which prepares the columns ``k(·, Z)``
once for many blocks of rows, and ``diagonal(X)``, which never forms a matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone
from sklearn.metrics.pairwise import (
    PAIRWISE_KERNEL_FUNCTIONS,
    manhattan_distances,
    pairwise_kernels,
)

from sketchmeans.bandwidth import Gamma, resolve_gamma
from sketchmeans.linalg import Array
from sketchmeans.parallel import Workers
from sketchmeans.rows import Block, Rows, block_height, float_type, spans
from sketchmeans.validation import check_number

#: Landmarks with a larger share of nonzeros are multiplied as dense columns.
_DENSE_SHARE = 0.05

#: Up to this size an exponent is exact to about 1e-4 in float32.
_FLOAT32_EXPONENT = 256.0

#: Rows with no more entries than this are prepared once for many kernel columns.
_PREPARED_ENTRIES = 2**24


class Columns(Protocol):
    """The columns ``k(·, Z)`` of a kernel, ready for blocks of rows."""

    def __call__(self, block: Block, out: Array | None = None) -> Array:
        """Return ``k(block, Z)``, written into `out` if given."""
        ...


class Kernel(BaseEstimator):
    """Base of all kernels.

    A kernel of your own subclasses this and defines `against` and `diagonal`;
    it needs no more than scikit-learn's rule that ``__init__`` only stores its
    parameters.
    """

    #: Whether every kernel matrix is positive semi-definite.
    positive_definite: bool = True

    #: ``k(x, x)``, where it is the same for every x.
    constant_diagonal: float | None = None

    def against(
        self,
        Z: Block,
        dtype: npt.DTypeLike | None = None,
        workers: Workers | None = None,
    ) -> Columns:
        """Return a function ``(block, out) -> k(block, Z)`` in float type `dtype`.

        `workers` lends the scratch arrays; it must be given when the function is
        called from several threads.
        """
        raise NotImplementedError(  # pragma: no cover - abstract
            f"{type(self).__name__} should define against(Z, dtype, workers)."
        )

    def diagonal(self, X: Block) -> Array:
        """Return ``k(x, x)`` for every row, in float64."""
        raise NotImplementedError(  # pragma: no cover - abstract
            f"{type(self).__name__} should define diagonal(X)."
        )

    def resolved(self, rows: Rows, rng: np.random.Generator) -> Self:
        """Return a clone in which every rule (``gamma="mean"``) is a number."""
        kernel = clone(self)
        if hasattr(self, "gamma"):
            kernel.set_params(
                gamma=resolve_gamma(self.gamma, self._distance, rows, rng)
            )
        return kernel

    def points(self, rows: Rows, indices: Array) -> Block:
        """Return the rows of these numbers in the form that `against` takes."""
        return rows.take(indices)

    def among(self, rows: Rows) -> Callable[[Array], Array]:
        """Return a function from row numbers to ``k(X, X[numbers])``, in float64."""

        def values(numbers: Array) -> Array:
            columns = self.against(self.points(rows, numbers), rows.dtype, rows.workers)
            result = np.empty((len(rows), len(numbers)))

            def fill(span: tuple[int, int]) -> None:
                result[slice(*span)] = columns(rows.block(*span))

            edges = spans(len(rows), block_height(rows.n_features, len(numbers)))
            for _ in rows.workers.map(fill, edges):
                pass
            return result

        return values

    def row_diagonal(self, rows: Rows) -> Array:
        """Return ``k(x, x)`` for all rows of a source, in float64."""
        if self.constant_diagonal is not None:
            return np.full(len(rows), self.constant_diagonal)
        edges = spans(len(rows), block_height(rows.n_features, 0))
        return np.concatenate(
            list(rows.workers.map(lambda span: self.diagonal(rows.block(*span)), edges))
        )

    #: The distance that sets the bandwidth: "sqeuclidean", "cityblock" or None.
    _distance: str | None = None

    def __call__(self, X: Block, Z: Block, out: Array | None = None) -> Array:
        """Return the matrix ``k(X, Z)`` in the float type of `X`."""
        return self.against(Z, dtype=float_type(X.dtype))(X, out)


class _ProductKernel(Kernel):
    """A function of inner products: one matrix product, finished in place."""

    def against(
        self,
        Z: Block,
        dtype: npt.DTypeLike | None = None,
        workers: Workers | None = None,
    ) -> Columns:
        kind = np.dtype(float_type(Z.dtype) if dtype is None else dtype)
        products = _Products(Z, kind, workers)

        def columns(block: Block, out: Array | None = None) -> Array:
            return self._finish(products(block, out))

        return columns

    def _finish(self, values: Array) -> Array:
        """Turn inner products into kernel values, in place."""
        return values


class Linear(_ProductKernel):
    """``k(x, z) = x·z``."""

    def diagonal(self, X: Block) -> Array:
        return squared_norms(X)


class Polynomial(_ProductKernel):
    """``k(x, z) = (gamma x·z + coef0)^degree``."""

    def __init__(
        self, gamma: Gamma = "mean", degree: float = 3, coef0: float = 1.0
    ) -> None:
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def _finish(self, values: Array) -> Array:
        values *= float(self.gamma)
        values += self.coef0
        return np.power(values, self.degree, out=values)

    def diagonal(self, X: Block) -> Array:
        return np.asarray(
            (float(self.gamma) * squared_norms(X) + self.coef0) ** self.degree
        )


class Sigmoid(_ProductKernel):
    """``k(x, z) = tanh(gamma x·z + coef0)``, which is not positive definite."""

    positive_definite = False

    def __init__(self, gamma: Gamma = "mean", coef0: float = 1.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    def _finish(self, values: Array) -> Array:
        values *= float(self.gamma)
        values += self.coef0
        return np.tanh(values, out=values)

    def diagonal(self, X: Block) -> Array:
        return np.tanh(float(self.gamma) * squared_norms(X) + self.coef0)


class Cosine(_ProductKernel):
    """``k(x, z) = x·z / (‖x‖ ‖z‖)``; a zero row has the kernel value 0."""

    def against(
        self,
        Z: Block,
        dtype: npt.DTypeLike | None = None,
        workers: Workers | None = None,
    ) -> Columns:
        kind = np.dtype(float_type(Z.dtype) if dtype is None else dtype)
        products = _Products(Z, kind, workers)
        scale_z = _inverse_roots(products.z_norms).astype(kind)

        def columns(block: Block, out: Array | None = None) -> Array:
            values = products(block, out)
            values *= _inverse_roots(squared_norms(block)).astype(kind)[:, None]
            values *= scale_z
            return values

        return columns

    def diagonal(self, X: Block) -> Array:
        return (squared_norms(X) > 0).astype(np.float64)


class ArcCosine(Kernel):
    """Arc-cosine kernel of Cho & Saul: an infinitely wide layer of step units.

    With θ the angle between x and z, order 0 is ``1 − θ/π``, order 1 (rectified
    linear units) ``‖x‖‖z‖ (sin θ + (π − θ) cos θ)/π`` and order 2
    ``‖x‖²‖z‖² (3 sin θ cos θ + (π − θ)(1 + 2 cos²θ))/π``.  A zero row, which has no
    angle, has the kernel value 0.
    """

    def __init__(self, order: int = 1) -> None:
        self.order = order

    def against(
        self,
        Z: Block,
        dtype: npt.DTypeLike | None = None,
        workers: Workers | None = None,
    ) -> Columns:
        if self.order not in (0, 1, 2):
            raise ValueError(f"order={self.order!r} should be 0, 1 or 2.")
        kind = np.dtype(float_type(Z.dtype) if dtype is None else dtype)
        # An angle is the root of a cosine's distance to one: float64 keeps it.
        products = _Products(Z, np.dtype(np.float64), workers)
        z_roots = np.sqrt(products.z_norms)

        def columns(block: Block, out: Array | None = None) -> Array:
            scale = np.sqrt(squared_norms(block))[:, None] * z_roots
            cosine = products(block, None)
            np.divide(cosine, scale, out=cosine, where=scale > 0)
            np.clip(cosine, -1.0, 1.0, out=cosine)
            values = scale**self.order * self._angular(cosine)
            values[scale == 0.0] = 0.0
            if out is None:
                return np.asarray(values, dtype=kind)
            out[...] = values
            return out

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
    prepared = None
    if not rows.is_sparse and shape[0] * shape[1] <= _PREPARED_ENTRIES:
        X = rows.block(0, len(rows))
        shift = X.mean(axis=0, dtype=np.float64).astype(rows.dtype)
        prepared = _augment(X, shift, 1.0, np.empty(shape, dtype=rows.dtype))

    def distances(numbers: Array) -> Array:
        result = np.empty((len(rows), len(numbers)))
        if prepared is not None:
            points = prepared[numbers]
            weights = np.empty((shape[1], len(numbers)), dtype=rows.dtype)
            weights[:-2] = 2.0 * points[:, :-2].T
            weights[-2] = 1.0
            weights[-1] = points[:, -2]
        else:
            points = rows.take(numbers)
            exponents = (
                _sparse_exponents(points, 1.0, rows.dtype)
                if rows.is_sparse
                else _dense_exponents(points, 1.0, rows.dtype, rows.workers)
            )

        def fill(span: tuple[int, int]) -> None:
            part = result[slice(*span)]
            part[...] = (
                exponents(rows.block(*span))
                if prepared is None
                else prepared[slice(*span)] @ weights
            )
            np.negative(part, out=part)
            np.maximum(part, 0.0, out=part)

        edges = spans(len(rows), block_height(rows.n_features, len(numbers)))
        for _ in rows.workers.map(fill, edges):
            pass
        return result

    return distances


def _augment(X: Block, shift: Array, gamma: float, out: Array) -> Array:
    """Write ``[x, −gamma‖x‖², 1]`` about `shift` into `out`."""
    inner = out[:, :-2]
    np.subtract(_toarray(X), shift, out=inner, casting="same_kind")
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
    near rows are small differences of large float32 numbers, float64 is used.
    """
    n_features = Z.shape[1]
    shift = Z.mean(axis=0, dtype=np.float64).astype(kind)
    centred = np.subtract(Z, shift, dtype=np.float64)
    norms = gamma * np.einsum("ij,ij->i", centred, centred)
    inner = kind if norms.max() < _FLOAT32_EXPONENT else np.dtype(np.float64)
    weights = np.empty((n_features + 2, len(Z)), dtype=inner)
    weights[:-2] = 2.0 * gamma * centred.T
    weights[-2] = 1.0
    weights[-1] = -norms

    def exponents(block: Block, out: Array | None = None) -> Array:
        x = _scratch(workers, "augmented", (block.shape[0], n_features + 2), inner)
        _augment(block, shift, gamma, x)
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
    products = _Products(Z, np.dtype(np.float64), None)

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
                distances = cdist(block, _toarray(landmarks), "cityblock")
            distances *= -float(self.gamma)
            np.exp(distances, out=distances)
            if out is None:
                return np.asarray(distances, dtype=kind)
            out[...] = distances
            return out

        return columns

    def diagonal(self, X: Block) -> Array:
        return np.ones(X.shape[0])


class Pairwise(Kernel):
    """Any other kernel that scikit-learn's `pairwise_kernels` knows, or a callable.

    Parameters
    ----------
    metric : str or callable
        A callable takes two rows and returns a number, as in scikit-learn; a
        vectorised kernel is written as a `Kernel` instead.
    params : dict, optional
        Keyword arguments of the kernel.
    """

    def __init__(
        self,
        metric: str | Callable[..., float] = "chi2",
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.metric = metric
        self.params = params

    @property
    def positive_definite(self) -> bool:  # type: ignore[override]
        """Whether every kernel matrix is positive semi-definite."""
        return self.metric != "additive_chi2"

    def against(
        self,
        Z: Block,
        dtype: npt.DTypeLike | None = None,
        workers: Workers | None = None,
    ) -> Columns:
        kind = np.dtype(float_type(Z.dtype) if dtype is None else dtype)

        def columns(block: Block, out: Array | None = None) -> Array:
            values = pairwise_kernels(
                _writable(block, kind),
                _writable(Z, kind),
                metric=self.metric,
                **(self.params or {}),
            )
            if out is None:
                return np.asarray(values, dtype=kind)
            out[...] = values
            return out

        return columns

    def diagonal(self, X: Block) -> Array:
        if self.metric == "chi2":
            return np.ones(X.shape[0])
        if self.metric == "additive_chi2":
            return np.zeros(X.shape[0])
        return np.array(
            [
                pairwise_kernels(
                    X[i : i + 1].astype(np.float64),
                    metric=self.metric,
                    **(self.params or {}),
                )[0, 0]
                for i in range(X.shape[0])
            ],
            dtype=np.float64,
        )


class Chi2(Pairwise):
    """``k(x, z) = exp(−gamma Σ (x − z)²/(x + z))`` on non-negative features."""

    def __init__(self, gamma: Gamma = "mean") -> None:
        self.gamma = gamma

    metric = "chi2"

    @property
    def params(self) -> Mapping[str, Any]:  # type: ignore[override]
        """Keyword arguments of the kernel."""
        return {"gamma": self.gamma}


class Precomputed(Kernel):
    """Kernel values that are given: a row is ``k(x, ·)`` over the training rows.

    Landmarks are column numbers, as an integer array of shape (m, 1).
    """

    def against(
        self,
        Z: Block,
        dtype: npt.DTypeLike | None = None,
        workers: Workers | None = None,
    ) -> Columns:
        numbers = np.asarray(Z).ravel()

        def columns(block: Block, out: Array | None = None) -> Array:
            chosen = block[:, numbers]
            if sparse.issparse(chosen):
                chosen = chosen.toarray()
            values = np.asarray(chosen, dtype=dtype)
            if out is None:
                return values
            out[...] = values
            return out

        return columns

    def diagonal(self, X: Block) -> Array:
        raise ValueError(
            'kernel="precomputed" does not know k(x, x) of new rows, which distances '
            "and costs need; predict does not."
        )

    def points(self, rows: Rows, indices: Array) -> Block:
        return np.asarray(indices)[:, None]

    def row_diagonal(self, rows: Rows) -> Array:
        return np.array(rows.X.diagonal(), dtype=np.float64)


KERNELS: dict[str, type[Kernel]] = {
    "rbf": RBF,
    "laplacian": Laplacian,
    "polynomial": Polynomial,
    "poly": Polynomial,
    "linear": Linear,
    "cosine": Cosine,
    "sigmoid": Sigmoid,
    "arc-cosine": ArcCosine,
    "chi2": Chi2,
    "precomputed": Precomputed,
}


def as_kernel(
    kernel: str | Kernel | Callable[..., float],
    *,
    gamma: Gamma = "mean",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return the `Kernel` that a user's parameters stand for.

    Parameters that a kernel does not have (the ``degree`` of an rbf) are left out
    at their defaults, as in scikit-learn; with a callable or a `Kernel` object they
    must not be given at all.

    Examples
    --------
    >>> as_kernel("poly", degree=2)
    Polynomial(degree=2)
    """
    if isinstance(kernel, Kernel) or callable(kernel):
        if (gamma, degree, coef0) != ("mean", 3, 1):
            raise ValueError(
                f"gamma={gamma!r}, degree={degree!r} and coef0={coef0!r} should be "
                "left at their defaults with a callable or a Kernel object: give "
                "its parameters in kernel_params or in the object itself."
            )
        if not isinstance(kernel, Kernel):
            return Pairwise(kernel, kernel_params)
        if kernel_params:
            raise ValueError(
                f"kernel_params={kernel_params!r} should be None with a Kernel object."
            )
        return kernel
    named = {"gamma": gamma, "degree": degree, "coef0": coef0}
    if isinstance(kernel, str) and kernel in KERNELS:
        family = KERNELS[kernel]
        known = family._get_param_names()
        chosen = {name: value for name, value in named.items() if name in known}
        for name in {"degree", "coef0"} & set(chosen):
            check_number(name, chosen[name], low=-np.inf)
        chosen |= kernel_params or {}
        _check_known(kernel, chosen, known)
        return family(**chosen)
    if isinstance(kernel, str) and kernel in PAIRWISE_KERNEL_FUNCTIONS:
        known = list(signature(PAIRWISE_KERNEL_FUNCTIONS[kernel]).parameters)[2:]
        _check_known(kernel, kernel_params or {}, known)
        return Pairwise(kernel, kernel_params)
    names = sorted(set(KERNELS) | set(PAIRWISE_KERNEL_FUNCTIONS))
    raise ValueError(
        f"kernel={kernel!r} should be one of {names}, a callable or a Kernel object."
    )


def _check_known(kernel: str, params: Mapping[str, Any], known: list[str]) -> None:
    if unknown := sorted(set(params) - set(known)):
        raise ValueError(
            f"kernel_params has {unknown}, which kernel={kernel!r} does not take; "
            f"it takes {known}."
        )


def is_given(kernel: Kernel) -> bool:
    """Say whether the kernel values are precomputed."""
    return isinstance(kernel, Precomputed)


def warn_if_indefinite(kernel: Kernel) -> None:
    """Warn that the theory does not cover an indefinite kernel."""
    if not kernel.positive_definite:
        warnings.warn(
            f"{kernel!r} is not positive semi-definite: the cost need not fall from "
            "pass to pass, and it has no certificate.",
            UserWarning,
            stacklevel=3,
        )


class _Products:
    """Inner products of blocks of rows with the rows of Z."""

    def __init__(self, Z: Block, kind: np.dtype[Any], workers: Workers | None) -> None:
        self.kind = kind
        self.workers = workers
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
            values: Any = block.astype(np.float64) @ self.columns
            if sparse.issparse(values):
                values = values.toarray()
            if out is None:
                return np.asarray(values, dtype=self.kind)
            out[...] = values
            return out
        columns = self.columns
        if sparse.issparse(columns):
            columns = columns.toarray()
        if columns.dtype != self.kind:  # the landmarks are CSR, the rows are not
            columns = columns.astype(self.kind)
        return np.dot(self._floats(block), columns, out=out)

    def _floats(self, block: Array) -> Array:
        if block.dtype == self.kind and block.flags.c_contiguous:
            return block
        x = _scratch(self.workers, "floats", block.shape, self.kind)
        x[...] = block
        return x


def _scratch(
    workers: Workers | None, name: str, shape: tuple[int, int], kind: np.dtype[Any]
) -> Array:
    if workers is None:
        return np.empty(shape, dtype=kind)
    return workers.buffer(name, shape, kind)


def _short_indices(X: Block) -> Block:
    """Return CSR rows with 32-bit indices, which scikit-learn's loops insist on."""
    if not sparse.issparse(X) or X.indices.dtype == np.int32:
        return X
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=X.shape)


def _writable(X: Block, kind: np.dtype[Any]) -> Block:
    """Return rows of a float type; scikit-learn's compiled loops must own them."""
    if sparse.issparse(X) or X.flags.writeable:
        return X.astype(kind, copy=False)
    return X.astype(kind)


def _toarray(block: Block) -> Array:
    return np.asarray(block.toarray() if sparse.issparse(block) else block)


def squared_norms(X: Block) -> Array:
    """Return ``‖x‖²`` of every row, in float64."""
    if sparse.issparse(X):
        wide = X.astype(np.float64)
        return np.asarray(wide.multiply(wide).sum(axis=1), dtype=np.float64).ravel()
    values = np.asarray(X)
    if values.dtype.kind != "f" or values.dtype.itemsize < 8:
        values = values.astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", values, values), dtype=np.float64)


def _inverse_roots(norms: Array) -> Array:
    roots = np.sqrt(norms)
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
