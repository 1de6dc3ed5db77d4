"""Dictionaries: a few weighted rows whose covariance is that of all rows.

With weights w the rows have the covariance ``Σ_i w_i φ_i φ_iᵀ`` in feature space; the
nonzero eigenvalues are those of the weighted kernel matrix ``D^½ K D^½``.  A dictionary
is a sum of the same form over a few rows.  Seen through it, the ridge leverage score of
any row costs no more than its kernel values with the dictionary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log

import numpy as np
from scipy.optimize import brentq

from sketchmeans.data.rows import Block, Rows, block_height, block_slices, stack_parts
from sketchmeans.data.sampling import row_weights
from sketchmeans.kernels import Kernel, compute_gram
from sketchmeans.landmarks.base import value_type
from sketchmeans.numerics.linalg import Array, eigen_decomposition, relative_cut


@dataclass(frozen=True)
class Dictionary:
    """Row numbers, and the weights with which they stand for all rows."""

    indices: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.indices)


class WeightedKernel:
    """``D^½ K D^½``, of which only blocks of columns are ever formed.

    Its `weighted_diagonal` is the product of the `weights` and the `diagonal` of K, its
    sum the `trace`, and its `support` the rows where it is not zero.  Negative entries,
    which only an indefinite kernel has, are set to zero.
    """

    def __init__(self, rows: Rows, kernel: Kernel) -> None:
        self.rows = rows
        self.kernel = kernel
        self.weights = row_weights(rows)
        self.diagonal = np.maximum(kernel.row_diagonal(rows), 0.0)
        self.weighted_diagonal = self.weights * self.diagonal
        self.trace = float(self.weighted_diagonal.sum())
        self.support = np.flatnonzero(self.weighted_diagonal)

    def smallest_ridge(self, n_columns: int) -> float:
        """Return the ridge below which rounding drowns the scores.

        Each row of a dictionary stands for a share of the trace, so with this ridge
        ``K_JJ + γ diag(1/weights)`` is just well-conditioned enough for the float type
        of the kernel values.
        """
        return relative_cut(n_columns, self.rows.dtype) * self.trace

    def gram(self, indices: Array) -> Array:
        """Return ``k(X_J, X_J)`` of the rows of these numbers, in float64."""
        points = self.kernel.points(self.rows, indices)
        K = compute_gram(self.kernel, points, self.rows.workers, self.rows)
        np.fill_diagonal(K, self.diagonal[indices])
        return K

    def second_moment(self, indices: Array, root: Array) -> Array:
        """Return ``Rᵀ (Σ_i w_i b_i b_iᵀ) R`` over all rows, ``b_i = k(X_J, x_i)``.

        The blocks are multiplied by R before they are squared: the other way round
        the squares of the small singular values would be lost.
        """
        rows, project = self.rows, self._projection(indices, root)

        def moment(span: tuple[int, int]) -> Array:
            projected = project(rows.block(*span))
            projected *= np.sqrt(self.weights[slice(*span)])[:, None]
            return (projected.T @ projected).astype(np.float64)

        height = block_height(rows.n_features, sum(root.shape))
        return np.asarray(
            sum(rows.workers.map(moment, block_slices(len(rows), height)))
        )

    def projected_norms(
        self, indices: Array, root: Array, among: Array | None = None
    ) -> Array:
        """Return ``‖Rᵀ k(X_J, x)‖²`` for all rows x, or for those of some numbers.

        Costs n·s·(d + r) for R of shape (s, r), and memory of one block of rows.
        """
        rows, project = self.rows, self._projection(indices, root)

        def norms(block: Block) -> Array:
            projected = project(block)
            return np.einsum("ij,ij->i", projected, projected)

        height = block_height(rows.n_features, sum(root.shape))
        if among is None:
            return stack_parts(rows.map(norms, height), (len(rows),))
        return stack_parts(rows.map_some(norms, among, height), (len(among),))

    def _projection(self, indices: Array, root: Array) -> Callable[[Block], Array]:
        """Return a function from blocks of rows to ``k(block, X_J) R``."""
        rows, dtype, factor = self.rows, self.rows.dtype, root.astype(self.rows.dtype)
        points, buffer = self.kernel.points(rows, indices), rows.workers.buffer
        columns = self.kernel.against(points, dtype, rows.workers)

        def project(block: Block) -> Array:
            height = block.shape[0]
            values = columns(block, buffer("kernel", (height, len(factor)), dtype))
            out = buffer("projected", (height, factor.shape[1]), dtype)
            return np.dot(values, factor, out=out)

        return project


class Spectrum:
    """Eigenvalues of ``D^½ K D^½`` as a dictionary sees them, and scores from them.

    With ``S = diag(weights)``, ``S^½ K_JJ S^½ = V Λ Vᵀ`` has the nonzero eigenvalues of
    the dictionary's covariance.  With all rows, at their weights, everything is exact.
    """

    def __init__(self, matrix: WeightedKernel, dictionary: Dictionary) -> None:
        self.matrix = matrix
        self.dictionary = dictionary
        roots = np.sqrt(dictionary.weights)
        gram = matrix.gram(dictionary.indices)
        gram *= roots[:, None]
        gram *= roots
        values, self.vectors = eigen_decomposition(gram, driver="evd")
        noise = relative_cut(len(values), value_type(matrix.rows, matrix.kernel))
        self.values = np.where(values > noise * values[-1], values, 0.0)
        self.smallest_ridge = matrix.smallest_ridge(len(dictionary))

    def ridge_for(self, effective_dimension: float) -> float:
        """Return γ with ``Σ_l λ_l/(λ_l + γ)`` of this size, above the rounding."""

        def excess(log_ridge: float) -> float:
            shrunk = self.values / (self.values + exp(log_ridge))
            return float(shrunk.sum()) - effective_dimension

        lowest = log(self.smallest_ridge)
        if excess(lowest) <= 0.0:
            return self.smallest_ridge
        # Σ λ/(λ + γ) is below Σ λ/γ.
        highest = log(2.0 * float(self.values.sum()) / effective_dimension)
        return exp(brentq(excess, lowest, highest))

    def own_scores(self, ridge: float) -> Array:
        """Return the scores of the dictionary's rows, exact if it holds all rows."""
        return np.square(self.vectors) @ (self.values / (self.values + ridge))

    def scores(self, ridge: float, among: Array | None = None) -> Array:
        """Return the scores of all rows, or of those of some numbers.

        ``w_i φ_iᵀ (Σ_J s_j φ_j φ_jᵀ + γ)⁻¹ φ_i``, which is
        ``w_i (k_ii − b_iᵀ (K_JJ + γ S⁻¹)⁻¹ b_i)/γ`` with ``b_i = k(X_J, x_i)``.
        """
        matrix, dictionary = self.matrix, self.dictionary
        roots = np.sqrt(dictionary.weights)
        root = roots[:, None] * self.vectors / np.sqrt(self.values + ridge)
        explained = matrix.projected_norms(dictionary.indices, root, among)
        rows = slice(None) if among is None else among
        residual = np.maximum(matrix.diagonal[rows] - explained, 0.0)
        # No row has a score above one; seen through a dictionary it may seem so.
        return np.minimum(matrix.weights[rows] * residual / ridge, 1.0)


def inclusion_probabilities(scores: Array, size: int) -> Array:
    """Return ``min(1, c·scores)`` with c such that they add up to `size`.

    With no more positive scores than that, these have probability one.

    Examples
    --------
    >>> import numpy as np
    >>> inclusion_probabilities(np.array([9.0, 1.0, 0.0, 2.0]), 2)
    array([1.        , 0.33333333, 0.        , 0.66666667])
    """
    if np.count_nonzero(scores) <= size:
        return (scores > 0.0).astype(np.float64)
    ranked = np.sort(scores)[::-1]
    rest = np.cumsum(ranked[::-1])[::-1]  # the sum from each rank on
    # With so many of probability one, the others share what is left of `size`.
    factors = (size - np.arange(size)) / rest[:size]
    fewest = int(np.argmax(factors * ranked[:size] <= 1.0))
    return np.minimum(1.0, factors[fewest] * scores)


def draw_dictionary(
    matrix: WeightedKernel,
    candidates: Array,
    scores: Array,
    chances: Array,
    size: int,
    rng: np.random.Generator,
) -> Dictionary:
    """Return about `size` candidates drawn independently by their scores.

    `chances` are the probabilities with which the rows became candidates.
    """
    if not scores.any():  # all are lost in rounding, and any rows will do
        scores = matrix.weighted_diagonal[candidates]
    kept = inclusion_probabilities(scores / chances, size)
    drawn = rng.random(len(kept)) < kept
    if not drawn.any():
        drawn[int(kept.argmax())] = True
    indices, chances = candidates[drawn], (chances * kept)[drawn]
    weights = matrix.weights[indices] / chances
    # The trace of what is left to chance is known: the drawn rows are scaled to it,
    # which takes away the noise of their number.
    lucky = chances < 1.0
    if lucky.any():
        rest = np.delete(matrix.weighted_diagonal, indices[~lucky]).sum()
        weights[lucky] *= rest / (weights @ (lucky * matrix.diagonal[indices]))
    return Dictionary(indices, weights)
