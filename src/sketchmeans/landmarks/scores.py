"""Leverage scores: how much of the kernel matrix depends on each row.

The sum of ridge leverage scores is the effective dimension d_eff(γ) (CR18 Def. 3).
Where the functions below take a `ridge`, they take an `effective_dimension` as well:
γ is then the one that has it.  A γ below the rounding of the kernel values is raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from sketchmeans.data.rows import Rows
from sketchmeans.kernels import Kernel
from sketchmeans.landmarks.dictionary import (
    Dictionary,
    Spectrum,
    WeightedKernel,
    draw_dictionary,
)
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


def exact_ridge_leverage_scores(
    rows: Rows,
    kernel: Kernel,
    *,
    ridge: float | None = None,
    effective_dimension: float | None = None,
) -> LeverageScores:
    """Return ``l_i(γ) = [K (K + γI)⁻¹]_ii`` of the weighted matrix ``D^½ K D^½``.

    Forms the n × n matrix and its eigendecomposition: about 9n³, for small n (CR18
    Def. 3; Alaoui & Mahoney, "Fast randomized kernel ridge regression with statistical
    guarantees", NeurIPS 2015).
    """
    matrix = WeightedKernel(rows, kernel)
    dictionary = _uniform_dictionary(matrix, matrix.support)
    return _scores_through(matrix, dictionary, ridge, effective_dimension)


def recursive_ridge_leverage_scores(
    rows: Rows,
    kernel: Kernel,
    size: int,
    rng: np.random.Generator,
    *,
    ridge: float | None = None,
    effective_dimension: float | None = None,
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
        gamma = _resolve_ridge(spectrum, ridge, effective_dimension)
        scores = spectrum.scores(gamma, candidates)
        chances = np.full(count, count / len(order))
        dictionary = draw_dictionary(matrix, candidates, scores, chances, size, rng)
    return _scores_through(matrix, dictionary, ridge, effective_dimension)


def bottom_up_ridge_leverage_scores(
    rows: Rows,
    kernel: Kernel,
    size: int,
    rng: np.random.Generator,
    *,
    ridge: float | None = None,
    effective_dimension: float | None = None,
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
        return LeverageScores(np.zeros(len(rows)), ridge or 0.0)
    lowest = max(ridge or 0.0, matrix.smallest_ridge(size))
    enough_dimension = np.inf if effective_dimension is None else effective_dimension
    gamma, found, dictionary = matrix.trace, 0.0, None
    while dictionary is None or (gamma > lowest and found < enough_dimension):
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
    return _scores_through(matrix, dictionary, ridge, effective_dimension)


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


def _resolve_ridge(
    spectrum: Spectrum, ridge: float | None, effective_dimension: float | None
) -> float:
    """Return γ, which is given or has the given effective dimension."""
    if ridge is not None:
        return max(ridge, spectrum.smallest_ridge)
    if effective_dimension is None:
        raise ValueError("Either ridge or effective_dimension should be given.")
    return spectrum.ridge_for(effective_dimension)


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


def _scores_through(
    matrix: WeightedKernel,
    dictionary: Dictionary,
    ridge: float | None,
    effective_dimension: float | None,
) -> LeverageScores:
    """Return the scores of all rows as a dictionary sees them."""
    if not len(dictionary):  # every k(x, x) is zero
        return LeverageScores(np.zeros(len(matrix.weights)), ridge or 0.0)
    spectrum = Spectrum(matrix, dictionary)
    gamma = _resolve_ridge(spectrum, ridge, effective_dimension)
    if len(dictionary) < len(matrix.support):
        return LeverageScores(spectrum.scores(gamma), gamma)
    scores = np.zeros(len(matrix.weights))
    scores[dictionary.indices] = spectrum.own_scores(gamma)
    return LeverageScores(scores, gamma)
