"""Leverage scores: how much of the kernel matrix depends on each row.

With weights w the rows have the covariance ``Σ_i w_i φ_i φ_iᵀ`` in feature space; the
nonzero eigenvalues are those of the weighted kernel matrix ``D^½ K D^½``.  A dictionary
is a sum of the same form over a few rows.  Seen through it, the ridge leverage score of
any row costs no more than its kernel values with the dictionary.  The sum of ridge
leverage scores is the effective dimension d_eff(γ) (CR18 Def. 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp, inf, log

import numpy as np
from scipy.optimize import brentq

from sketchmeans.data.block_sums import sum_blocks
from sketchmeans.data.rows import Block, Rows, block_height, stack_parts
from sketchmeans.data.sampling import row_weights
from sketchmeans.kernels import Kernel, compute_gram
from sketchmeans.landmarks.base import value_type
from sketchmeans.numerics.linalg import (
    Array,
    eigen_decomposition,
    pseudo_inverse,
    relative_cut,
)

#: A level of the recursion has this many times the rows of the level below, and a
#: step of the bottom-up path this part of the ridge before.
_STEP = 4
#: Fewer rows in a dictionary would save no time worth their noise.
SMALL_DICTIONARY = 100


@dataclass(frozen=True)
class Dictionary:
    """Row numbers, and the weights with which they stand for all rows."""

    indices: Array
    weights: Array


@dataclass(frozen=True)
class Ridge:
    """γ: given, or else the one that has an effective dimension.

    One below the rounding of the kernel values is raised to it.
    """

    value: float = 0.0
    effective_dimension: float = inf

    def resolve(self, spectrum: Spectrum) -> float:
        """Return γ, as a dictionary sees it."""
        if self.effective_dimension < inf:
            return spectrum.ridge_for(self.effective_dimension)
        return max(self.value, spectrum.smallest_ridge)


@dataclass(frozen=True)
class LeverageScores:
    """Leverage scores of all rows, and the γ that they are for: 0 for a fixed rank.

    A row of weight w has w times the score of a copy of it: the scores of equal rows
    add up.
    """

    scores: Array
    ridge: float

    @property
    def effective_dimension(self) -> float:
        """The sum of the scores, ``d_eff(γ) = tr K(K + γI)⁻¹``."""
        return float(self.scores.sum())


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
        """Return the ridge below which rounding dominates the scores.

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

        def moment(block: Block, weights: Array | None) -> tuple[Array, ...]:
            projected = project(block)
            if weights is not None:
                projected *= np.sqrt(weights)[:, None]
            return ((projected.T @ projected).astype(np.float64),)

        height = block_height(rows.n_features, sum(root.shape))
        return sum_blocks(rows, moment, height)[0]

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
        self.smallest_ridge = matrix.smallest_ridge(len(values))

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


def exact_ridge_leverage_scores(
    rows: Rows, kernel: Kernel, ridge: Ridge
) -> LeverageScores:
    """Return ``l_i(γ) = [K (K + γI)⁻¹]_ii`` of the weighted matrix ``D^½ K D^½``.

    Forms the n × n matrix and its eigendecomposition: about 9n³, for small n (CR18
    Def. 3; Alaoui & Mahoney, NeurIPS 2015).
    """
    matrix = WeightedKernel(rows, kernel)
    return _score_rows(matrix, _uniform_dictionary(matrix, matrix.support), ridge)


def recursive_ridge_leverage_scores(
    rows: Rows, kernel: Kernel, ridge: Ridge, size: int, rng: np.random.Generator
) -> LeverageScores:
    """Return approximate ridge leverage scores by recursive sampling.

    A dictionary of about `size` rows, drawn by the scores of a quarter of the rows,
    gives the scores of all rows, from which the next dictionary is drawn; the scores of
    the quarter come from a quarter of it in the same way.  Musco & Musco (NeurIPS 2017,
    Alg. 3) have halves; the time saved goes into one more dictionary, drawn from all
    rows, for the scores that are returned.  Where ``size ≳ d_eff(γ) log d_eff(γ)``,
    they are within a constant factor of the exact ones with high probability; where n
    is at most `size`, they are exact.  Costs about 2.3·n·s·(d + s) for size s, in
    memory of a block and s².
    """
    matrix = WeightedKernel(rows, kernel)
    order = rng.permutation(matrix.support)
    dictionary = _uniform_dictionary(matrix, np.sort(order[:size]))
    for count in _level_sizes(len(order), size):
        candidates = np.sort(order[:count])
        spectrum = Spectrum(matrix, dictionary)
        scores = spectrum.scores(ridge.resolve(spectrum), candidates)
        chances = np.full(count, count / len(order))
        dictionary = draw_dictionary(matrix, candidates, scores, chances, size, rng)
    return _score_rows(matrix, dictionary, ridge)


def bottom_up_ridge_leverage_scores(
    rows: Rows,
    kernel: Kernel,
    ridge: Ridge,
    size: int,
    rng: np.random.Generator,
    oversampling: float = 4.0,
) -> LeverageScores:
    """Return approximate ridge leverage scores along a falling path of ridges.

    At a large γ all scores are about ``w_i k(x_i, x_i)/γ``; a dictionary that is right
    for one γ gives the scores for a quarter of it up to a factor of four, and from them
    the next dictionary, of about `oversampling` rows for each effective dimension and
    at most `size`.  No score exceeds ``w_i k(x_i, x_i)/γ``, so a step looks only at
    candidates drawn in proportion to that: about ``oversampling·tr(K)/γ`` rows.  The
    path ends at the ridge, or at the effective dimension asked for, and a last pass
    scores all rows.  Each step costs c·s·(d + s) for c candidates and a dictionary of s
    rows, the last pass n·s·(d + s).

    BLESS-R of Rudi et al. (NeurIPS 2018, Alg. 2), with each row's own bound
    ``w_i k(x_i, x_i)`` in place of the largest.
    """
    matrix = WeightedKernel(rows, kernel)
    if not len(matrix.support):
        return LeverageScores(np.zeros(len(rows)), ridge.value)
    lowest = max(ridge.value, matrix.smallest_ridge(size))
    gamma, found, dictionary = matrix.trace, 0.0, None
    while dictionary is None or (gamma > lowest and found < ridge.effective_dimension):
        gamma = max(gamma / _STEP, lowest)
        bounds = matrix.weighted_diagonal / gamma
        # More than the theory asks for, where that is next to nothing.
        enough = max(oversampling, _STEP * SMALL_DICTIONARY / bounds.sum())
        chances = np.minimum(1.0, enough * bounds)
        candidates = np.flatnonzero(rng.random(len(rows)) < chances)
        chances = chances[candidates]
        scores = np.minimum(bounds[candidates], 1.0)
        if dictionary is not None:
            scores = Spectrum(matrix, dictionary).scores(gamma, candidates)
        found = float((scores / chances).sum())
        wanted = max(ceil(oversampling * found), SMALL_DICTIONARY)
        dictionary = draw_dictionary(
            matrix, candidates, scores, chances, min(wanted, size), rng
        )
    return _score_rows(matrix, dictionary, ridge)


def sketched_leverage_scores(
    rows: Rows, kernel: Kernel, sketch: Array, rank: int
) -> LeverageScores:
    """Return the leverage scores of the best rank-r part of a Nyström approximation.

    With sketch rows J, ``K̃ = D^½ K_nJ K_JJ⁺ K_Jn D^½ = U Λ Uᵀ``, and row i has the
    score ``Σ_{l<=r} U_il²`` over the r largest eigenvalues, or all that are above
    rounding (Gittens & Mahoney, JMLR 2016; OG17 §4.1).  Two passes: 3·n·s² for the
    eigenvectors, 2·n·s·r for the scores, each with the n·s·d of the kernel values.
    """
    matrix = WeightedKernel(rows, kernel)
    whitener = pseudo_inverse(matrix.gram(sketch), dtype=rows.dtype).root()
    if not whitener.shape[1]:  # every kernel value is zero
        return LeverageScores(np.zeros(len(rows)), 0.0)
    moment = matrix.second_moment(sketch, whitener)
    values, vectors = eigen_decomposition(moment, driver="evd")
    above = values > relative_cut(len(values), rows.dtype) * values[-1]
    above[: max(len(values) - rank, 0)] = False
    root = whitener @ (vectors[:, above] / np.sqrt(values[above]))
    norms = matrix.projected_norms(sketch, root)
    return LeverageScores(np.minimum(matrix.weights * norms, 1.0), 0.0)


def _level_sizes(n_rows: int, size: int) -> list[int]:
    """Return the growing numbers of rows of the levels, the last of them all rows."""
    counts = []
    while n_rows > size:
        counts.append(n_rows)
        n_rows = ceil(n_rows / _STEP)
    return counts[::-1]


def _uniform_dictionary(matrix: WeightedKernel, indices: Array) -> Dictionary:
    """Return the dictionary of rows drawn uniformly from those that count."""
    scale = len(matrix.support) / max(len(indices), 1)
    return Dictionary(indices, scale * matrix.weights[indices])


def _score_rows(
    matrix: WeightedKernel, dictionary: Dictionary, ridge: Ridge
) -> LeverageScores:
    """Return the scores of all rows as a dictionary sees them."""
    scores = np.zeros(len(matrix.weights))
    if not len(dictionary.indices):  # every k(x, x) is zero
        return LeverageScores(scores, ridge.value)
    spectrum = Spectrum(matrix, dictionary)
    gamma = ridge.resolve(spectrum)
    if len(dictionary.indices) < len(matrix.support):
        return LeverageScores(spectrum.scores(gamma), gamma)
    scores[dictionary.indices] = spectrum.own_scores(gamma)
    return LeverageScores(scores, gamma)
