"""Kernel rows and nearest centres as ONNX operators.

The formulas are those of `sketchmeans.kernels`, about the same origins and in the same
float types: labels differ from `predict` only where two centres are equally near but
for rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans.data.rows import Rows
from sketchmeans.engine.space import FeatureSpace, InputSpace, LandmarkSpace
from sketchmeans.kernels import toarray
from sketchmeans.kernels.base import Kernel
from sketchmeans.kernels.distances import RBF, FromDistances, Laplacian
from sketchmeans.kernels.products import Cosine, Linear, Polynomial, Sigmoid
from sketchmeans.numerics.linalg import Array
from sketchmeans.onnx.graph import Graph

_WIDE = np.dtype(np.float64)
#: Exponents up to which float32 is exact enough, and bandwidths that go with it.
_FLOAT32_EXPONENT, _FLOAT32_GAMMA = 256.0, 1e12


def add_labels(graph: Graph, x: str, model: Any, rows: Rows) -> str:
    """Return the nearest centre of each row; −1 where a value is not finite.

    `rows` are some rows in the form that the model clusters.
    """
    space = model._space(rows)
    centers = model._centers(space)
    b = _add_space(graph, x, space)
    weights = (-2.0 * centers.coefficients[0].T).astype(space.dtype)
    lengths = centers.squared_norms[:1].astype(space.dtype)
    scores = graph.add("Add", graph.add("MatMul", b, weights), lengths)
    labels = graph.add("ArgMin", scores, axis=1, keepdims=0)
    # Zero times what is not finite is not a number.
    zeros = graph.add("Mul", graph.cast(x, _WIDE), np.zeros((1, 1)))
    gaps = graph.add("IsNaN", graph.add("ReduceSum", zeros, np.array([1]), keepdims=0))
    return graph.add("Where", gaps, np.array([-1]), labels)


def _add_space(graph: Graph, x: str, space: Any) -> str:
    """Return ``b_x``, in the float type of the space."""
    if isinstance(space, LandmarkSpace):
        return add_kernel(graph, x, space.kernel, space.landmarks, space.dtype)
    if isinstance(space, FeatureSpace) and isinstance(space.kernel, Cosine):
        wide = graph.cast(x, _WIDE)
        x = graph.add("Mul", wide, _add_inverse_length(graph, wide, _WIDE))
        x = graph.add("Sub", x, space.shift[None])
        return graph.cast(x, space.dtype)
    assert isinstance(space, FeatureSpace | InputSpace)
    x = graph.cast(x, space.dtype)
    if space.shift.any():
        x = graph.add("Sub", x, space.shift[None].astype(space.dtype))
    return x


def add_kernel(
    graph: Graph, x: str, kernel: Kernel, landmarks: Any, dtype: np.dtype[Any]
) -> str:
    """Return the kernel values of rows and landmarks, in a float type."""
    if isinstance(kernel, FromDistances) and kernel.kernel.constant_diagonal == 1.0:
        # −½ ‖φ(x) − φ(z)‖² = k(x, z) − 1
        values = add_kernel(graph, x, kernel.kernel, landmarks, _WIDE)
        return graph.cast(graph.add("Sub", values, np.ones((1, 1))), dtype)
    adders: dict[type, Callable[..., str]] = {
        RBF: _add_rbf,
        Laplacian: _add_laplacian,
        Polynomial: _add_product,
        Sigmoid: _add_product,
        Linear: _add_product,
        Cosine: _add_cosine,
    }
    add = adders.get(type(kernel))
    if add is None:
        known = ", ".join(cls.__name__ for cls in adders)
        raise ValueError(
            f"kernel_={kernel!r} cannot be expressed in ONNX; these can: {known}."
        )
    return add(graph, x, kernel, toarray(landmarks), dtype)


def _add_rbf(graph: Graph, x: str, kernel: Any, Z: Array, dtype: np.dtype[Any]) -> str:
    gamma = float(kernel.gamma)
    same = (Z[0] == Z).all(axis=0)
    shift = np.where(same, Z[0], Z.mean(axis=0, dtype=np.float64)).astype(dtype)
    centred = np.subtract(Z, shift, dtype=np.float64)
    norms = gamma * np.einsum("ij,ij->i", centred, centred)
    is_plain = 1.0 / _FLOAT32_GAMMA < gamma < _FLOAT32_GAMMA
    is_exact = is_plain and norms.max() < _FLOAT32_EXPONENT
    inner = dtype if is_exact else _WIDE
    x = graph.add("Sub", graph.cast(x, inner), shift[None].astype(inner))
    squares = graph.sum_rows(graph.add("Mul", x, x))
    own = graph.add("Mul", squares, np.array([[-gamma]], inner))
    products = graph.add("MatMul", x, (2.0 * gamma * centred.T).astype(inner))
    exponents = graph.add("Add", products, -norms[None].astype(inner))
    exponents = graph.add("Add", exponents, own)
    exponents = graph.add("Min", exponents, np.zeros((1, 1), inner))
    return graph.add("Exp", graph.cast(exponents, dtype))


def _add_laplacian(
    graph: Graph, x: str, kernel: Any, Z: Array, dtype: np.dtype[Any]
) -> str:
    body = Graph("column/")
    column = body.add("Unsqueeze", "x", np.array([1]))
    gaps = body.add("Abs", body.add("Sub", column, "z"))
    body.add("Add", "sum", gaps)
    wide = graph.cast(x, _WIDE)
    distances = graph.add_columns(wide, Z.astype(_WIDE), body, _WIDE)
    exponents = graph.add("Mul", distances, np.array([[-float(kernel.gamma)]]))
    return graph.cast(graph.add("Exp", exponents), dtype)


def _add_product(
    graph: Graph, x: str, kernel: Any, Z: Array, dtype: np.dtype[Any]
) -> str:
    values = graph.add("MatMul", graph.cast(x, dtype), Z.T.astype(dtype))
    if isinstance(kernel, Linear):
        return values
    values = graph.add("Mul", values, np.array([[float(kernel.gamma)]], dtype))
    values = graph.add("Add", values, np.array([[kernel.coef0]], dtype))
    if isinstance(kernel, Sigmoid):
        return graph.add("Tanh", values)
    return graph.add("Pow", values, np.array([[kernel.degree]], dtype))


def _add_cosine(
    graph: Graph, x: str, kernel: Any, Z: Array, dtype: np.dtype[Any]
) -> str:
    lengths = np.sqrt(np.square(Z, dtype=np.float64).sum(axis=1))
    scaled = Z / np.where(lengths > 0.0, lengths, 1.0)[:, None]
    x = graph.cast(x, dtype)
    products = graph.add("MatMul", x, scaled.T.astype(dtype))
    return graph.add("Mul", products, _add_inverse_length(graph, x, dtype))


def _add_inverse_length(graph: Graph, x: str, dtype: np.dtype[Any]) -> str:
    """Return ``1/‖x‖`` as a column; 0 for a zero row."""
    squares = graph.sum_rows(graph.add("Mul", x, x))
    is_zero = graph.add("Equal", squares, np.zeros((1, 1), dtype))
    safe = graph.add("Where", is_zero, np.ones((1, 1), dtype), squares)
    inverse = graph.add("Div", np.ones((1, 1), dtype), graph.add("Sqrt", safe))
    return graph.add("Where", is_zero, np.zeros((1, 1), dtype), inverse)
