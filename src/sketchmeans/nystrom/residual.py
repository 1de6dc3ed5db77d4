"""How far a low-rank approximation is from the kernel matrix: ``E = K − F Fᵀ``.

Neither matrix is formed.  A row of weight 3 counts as three rows: every norm is that of
``D^½ E D^½`` with ``D = diag(w)``, the norm for the rows repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigh_tridiagonal

from sketchmeans.data.rows import Rows, block_height, block_slices
from sketchmeans.data.sampling import draw, row_weights
from sketchmeans.kernels import Kernel, is_given
from sketchmeans.numerics.linalg import Array

Span = tuple[int, int]

#: Up to this many rows the Frobenius norm is exact, above it is estimated.
EXACT_ROWS = 30_000

#: The estimate draws rows until its standard error is this share of the norm.
FROBENIUS_PRECISION = 0.01

#: Columns of ``E`` that are worked on at a time, and drawn at a time.
_STRIP = 1_024

#: Lanczos ends when the residual of the outermost eigenpair is this share of its value.
_LANCZOS_TOLERANCE = 1e-3
#: ... or after this many steps, with a value from below.
_LANCZOS_STEPS = 100


class FeatureSource(Protocol):
    """The rows of ``F``, stored or computed as they are asked for."""

    def block(self, start: int, stop: int) -> Array:
        """Return the features of rows start:stop."""
        ...

    def take(self, indices: Array) -> Array:
        """Return the features of the rows of these numbers."""
        ...


@dataclass(frozen=True)
class Norms:
    """The norm of the error, and of the kernel matrix that it is relative to."""

    error: float
    matrix: float

    @property
    def relative(self) -> float:
        """Their ratio; 0 where the kernel matrix is zero."""
        return self.error / self.matrix if self.matrix > 0.0 else 0.0


class Residual:
    """Norms of ``E = K − F Fᵀ`` over the rows of a source.

    `features` are ``F`` (n × r); `Rows` of an array will do.  `dtype` is the float type
    of the kernel values, by default that of the rows.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        features: FeatureSource,
        dtype: np.dtype[Any] | None = None,
    ) -> None:
        self.rows = rows
        self.kernel = kernel
        self.features = features
        self.dtype = rows.dtype if dtype is None else dtype
        self.weights = row_weights(rows)

    def trace(self) -> Norms:
        """Return ``Σ_i w_i E_ii``, the nuclear norm of a positive semi-definite E.

        Exact, in one pass.
        """
        diagonal = self.kernel.row_diagonal(self.rows)
        missing = float(self.weights @ self._residual_diagonal(diagonal))
        return Norms(max(missing, 0.0), float(self.weights @ diagonal))

    def _residual_diagonal(self, diagonal: Array) -> Array:
        """Return ``E_ii = k(x_i, x_i) − ‖F_i‖²``."""

        def squares(span: Span) -> Array:
            F = self.features.block(*span)
            return np.einsum("ij,ij->i", F, F, dtype=np.float64)

        edges = block_slices(len(self.rows), block_height(self.rows.n_features, _STRIP))
        norms = np.concatenate(list(self.rows.workers.map(squares, edges)))
        return np.asarray(diagonal - norms)

    def frobenius(self, rng: np.random.Generator) -> Norms:
        """Return ``(Σ_ij w_i w_j E_ij²)^½``.

        Exact, in time O(n²(d + r)), up to `EXACT_ROWS` rows.  Above, rows i are drawn
        with probability ``p_i ∝ w_i (E_ii / tr E + K_ii / tr K)``, and the mean of
        ``w_i Σ_j w_j E_ij² / p_i`` is an unbiased estimate of the square of the norm
        whose terms are at most ``2 tr E ‖E‖₂``.  Draws end when the standard error of
        both norms is below `FROBENIUS_PRECISION` times the norm, or after
        `EXACT_ROWS`; they cost O(n(d + r)) each.
        """
        n = len(self.rows)
        if n > EXACT_ROWS:
            return self._sampled_frobenius(rng)
        squares = sum(
            self._row_squares(np.arange(*span)) @ self.weights[slice(*span)]
            for span in block_slices(n, _STRIP)
        )
        return Norms(*np.sqrt(squares).tolist())

    def _sampled_frobenius(self, rng: np.random.Generator) -> Norms:
        diagonal = self.kernel.row_diagonal(self.rows)
        residual = self._residual_diagonal(diagonal)
        shares = 0.5 * (self._share(residual) + self._share(diagonal))
        drawn = np.empty((2, 0))
        while True:
            numbers = draw(shares, _STRIP, rng)
            values = self._row_squares(numbers)
            values *= self.weights[numbers] / shares[numbers]
            drawn = np.concatenate([drawn, values], axis=1)
            squares = drawn.mean(axis=1)
            errors = drawn.std(axis=1, ddof=1) / np.sqrt(drawn.shape[1])
            # The norm is a root: its relative error is half that of its square.
            precise = bool((0.5 * errors <= FROBENIUS_PRECISION * squares).all())
            if precise or drawn.shape[1] >= EXACT_ROWS:
                return Norms(*np.sqrt(squares).tolist())

    def _share(self, diagonal: Array) -> Array:
        """Return probabilities proportional to weight times a diagonal."""
        weighted = self.weights * np.maximum(diagonal, 0.0)
        if not weighted.any():
            weighted = self.weights
        return np.asarray(weighted / weighted.sum())

    def _row_squares(self, numbers: Array) -> Array:
        """Return ``Σ_j w_j E_ij²`` and ``Σ_j w_j K_ij²`` for these rows i."""
        rows, dtype, buffer = self.rows, self.dtype, self.rows.workers.buffer
        points = self.kernel.points(rows, numbers)
        columns = self.kernel.against(points, dtype, rows.workers)
        F = np.ascontiguousarray(self.features.take(numbers).T)

        def squares(span: Span) -> Array:
            shape = (span[1] - span[0], len(numbers))
            weights = self.weights[slice(*span)].astype(dtype)
            K = columns(rows.block(*span), buffer("kernel", shape, dtype))
            E = buffer("residual", shape, dtype)
            np.dot(self.features.block(*span), F, out=E)
            np.subtract(K, E, out=E)
            return np.stack([weights @ np.square(A, out=A) for A in (E, K)])

        edges = block_slices(len(rows), block_height(rows.n_features, len(numbers)))
        total = np.zeros((2, len(numbers)))
        return sum(rows.workers.map(squares, edges), total)

    def spectral(self, rng: np.random.Generator, budget: int = 0) -> Norms:
        """Return ``‖D^½ E D^½‖₂`` by Lanczos, to a relative 10⁻³.

        A step multiplies K by a vector, O(n²d) where K is computed block by block and
        O(n²) where it fits into `budget` bytes; there are about ten for each norm.
        """
        F = self.features.block(0, len(self.rows)).astype(np.float64)
        roots = np.sqrt(self.weights)
        apply = self._matrix_product(budget)

        def error(v: Array) -> Array:
            v = roots * v
            return np.asarray(roots * (apply(v) - F @ (F.T @ v)))

        def matrix(v: Array) -> Array:
            return np.asarray(roots * apply(roots * v))

        start = rng.standard_normal(len(self.rows))
        return Norms(spectral_norm(error, start), spectral_norm(matrix, start))

    def _matrix_product(self, budget: int) -> Callable[[Array], Array]:
        """Return the function ``v → K v``; its bits are the same if K is stored."""
        rows, n, workers = self.rows, len(self.rows), self.rows.workers
        height = block_height(rows.n_features, n)
        K: Any = None
        if is_given(self.kernel):
            K = rows.load().X
        else:
            columns = self.kernel.against(rows.block(0, n), self.dtype, workers)
            if n * n * self.dtype.itemsize <= budget:

                def write(part: slice, out: Array) -> None:
                    columns(rows.block(part.start, part.stop), out)

                K = workers.fill(np.empty((n, n), self.dtype), write, height)

        def product(v: Array) -> Array:
            v = v.astype(self.dtype)

            def part(span: Span) -> Array:
                if K is not None:
                    return np.asarray(K[slice(*span)] @ v)
                out = workers.buffer("kernel", (span[1] - span[0], n), self.dtype)
                return np.asarray(columns(rows.block(*span), out) @ v)

            parts = workers.map(part, block_slices(n, height))
            return np.concatenate(list(parts)).astype(float)

        return product


def spectral_norm(apply: Callable[[Array], Array], start: Array) -> float:
    """Return the largest magnitude of an eigenvalue of a symmetric operator.

    Lanczos with full reorthogonalisation: it ends when the residual of the outermost
    Ritz pair is a small share of its value, whose own error is smaller still.

    Examples
    --------
    >>> import numpy as np
    >>> round(spectral_norm(lambda v: np.array([1.0, -3.0]) * v, np.ones(2)), 6)
    3.0
    """
    basis = np.empty((0, len(start)))
    diagonal: list[float] = []  # the tridiagonal matrix of the operator in the basis
    off_diagonal: list[float] = []
    vector, largest = start / np.linalg.norm(start), 0.0
    for _ in range(min(len(start), _LANCZOS_STEPS)):
        basis = np.vstack([basis, vector])
        image = apply(vector)
        diagonal.append(float(vector @ image))
        for _ in range(2):  # once leaves rounding that the next steps would grow
            image = image - basis.T @ (basis @ image)
        values, vectors = eigh_tridiagonal(diagonal, off_diagonal)
        top = int(np.abs(values).argmax())
        largest, rest = abs(float(values[top])), float(np.linalg.norm(image))
        if rest * abs(vectors[-1, top]) <= _LANCZOS_TOLERANCE * largest:
            break
        off_diagonal.append(rest)
        vector = image / rest
    return largest
