"""Effective dimension and ridge leverage scores, exact or within stated bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks.leverage import Ridge, exact_ridge_leverage_scores
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import check_integer
from sketchmeans.theory.problem import KernelLike, check_below, open_problem
from sketchmeans.theory.results import Result
from sketchmeans.theory.span import LandmarkSpan

#: Maximum number of rows for an n × n kernel matrix: seconds, tens of megabytes.
EXACT_ROWS = 2_000
#: Landmarks of the estimates.
_LANDMARKS = 500


@dataclass(frozen=True, repr=False)
class EffectiveDimension(Result):
    """The effective dimension of a kernel matrix.

    Attributes
    ----------
    value : float
        ``d_eff(γ)``, or the middle of its bounds; ``float(result)`` is the same.
    lower, upper : float
        The bounds; equal to `value` where it is exact.
    confidence : float
        The bounds hold with at least this probability over the draws of the method,
        as far as Student's intervals do; 1 where the value is exact.
    gamma_ridge : float
        γ.
    n_samples, n_landmarks : int, and int or None
        Rows n, and landmarks of the estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.theory import effective_dimension
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = effective_dimension(X, gamma_ridge=1.0)
    >>> found.lower <= found.value <= found.upper, round(float(found))
    (True, 9)
    """

    value: float
    lower: float
    upper: float
    confidence: float
    gamma_ridge: float
    n_samples: int
    n_landmarks: int | None = None
    _shown_properties: ClassVar[tuple[str, ...]] = ("exact",)

    @property
    def exact(self) -> bool:
        """Whether the value is exact, not an estimate."""
        return self.n_landmarks is None

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True, repr=False, eq=False)
class RidgeLeverageScores(Result):
    """The ridge leverage scores of all rows.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        ``l_i(γ)``, or estimates.  A row of weight w has w times the score of one of w
        copies of it.
    lower, upper : ndarray of shape (n,)
        The bounds; equal to `scores` where they are exact.
    confidence : float
        The bounds of all rows hold at once with at least this probability, as in
        `EffectiveDimension`.
    gamma_ridge : float
        γ.
    n_landmarks : int or None
        Landmarks of the estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.theory import ridge_leverage_scores
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> round(ridge_leverage_scores(X, gamma_ridge=1.0).effective_dimension, 2)
    8.57
    """

    scores: Array
    lower: Array
    upper: Array
    confidence: float
    gamma_ridge: float
    n_landmarks: int | None = None
    _shown_properties: ClassVar[tuple[str, ...]] = ("exact", "effective_dimension")

    @property
    def exact(self) -> bool:
        """Whether the scores are exact, not estimates."""
        return self.n_landmarks is None

    @property
    def effective_dimension(self) -> float:
        """The sum of the scores."""
        return float(self.scores.sum())


def effective_dimension(
    X: Any,
    kernel: KernelLike = "rbf",
    gamma_ridge: float | None = None,
    *,
    gamma: Gamma = "mean",
    kernel_params: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    max_exact: int = EXACT_ROWS,
    n_landmarks: int = _LANDMARKS,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> EffectiveDimension:
    """Return ``d_eff(γ) = tr K(K + γI)⁻¹``: a soft rank of the kernel matrix.

    It is about the number of eigenvalues above γ, and, up to logarithms, the number
    of landmarks that preserve the matrix up to γ (CR18 Lemma 3).

    Exact for up to `max_exact` rows, in 9n³.  Above, m landmarks with the Nyström
    approximation K̃ and ``E = K − K̃`` bound it from both sides: with
    ``P = (K̃ + γI)⁻¹``, ``t₁ = γ tr PEP`` and ``t₂ = tr E²/γ²``,

        d_eff(K̃) + t₁²/(t₁ + t₂)  ≤  d_eff(K)  ≤  d_eff(K̃) + t₁/(1 + t₁/(n − d_eff(K̃)))

    by Jensen's inequality on either side.  t₁ and t₂ are means over 512 columns of E,
    drawn in proportion to its diagonal, with Student's intervals at the stated
    confidence in all; both ends allow for rounding.  Costs about 5·n·m·(d + m), in
    memory of a few blocks of rows and m²; the bounds are close where ``‖K − K̃‖₂`` is
    well below γ, and more landmarks bring them closer.

    Parameters
    ----------
    X : array-like, memory map or sparse matrix of shape (n, d)
        With ``kernel="precomputed"``: the n × n kernel matrix.
    kernel : str, callable or Kernel, default="rbf"
        A positive semi-definite kernel, as in `NystromKMeans`.
    gamma_ridge : float or None, default=None
        γ > 0; None is √n, the ridge of CR18's Theorem 1.  For an exact value it is
        raised to the rounding of the kernel values where it is below.
    gamma : float, "mean", "median" or "scale", default="mean"
        Bandwidth of the kernel.
    kernel_params : dict, optional
        More parameters of the kernel.
    sample_weight : array-like of shape (n,), optional
        A row of weight 3 counts as three rows: the matrix is ``D^½ K D^½``.
    confidence : float, default=0.95
        Of the bounds, where the value is an estimate.
    max_exact : int, default=2000
        Maximum number of rows for which the kernel matrix is formed.
    n_landmarks : int, default=500
        m, at most n.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.
    random_state : int, Generator, RandomState or None, default=None

    References
    ----------
    CR18 §4 and Def. 3, where the identity matrix is printed without γ; L21 §4.2, whose
    Ξ is ``d_eff(1)``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> effective_dimension(load_digits().data)
    EffectiveDimension
      value         11.36
      lower         11.36
      upper         11.36
      confidence    1
      gamma_ridge   42.39
      n_samples     1,797
      exact         yes
    """
    _check_limits(confidence, max_exact, n_landmarks)
    with open_problem(
        X, kernel, gamma, kernel_params, sample_weight, n_jobs, random_state
    ) as problem:
        rows, ridge = problem.rows, problem.resolve_ridge(gamma_ridge)
        if len(rows) <= max_exact:
            exact = exact_ridge_leverage_scores(rows, problem.kernel, Ridge(ridge))
            value = exact.effective_dimension
            return EffectiveDimension(value, value, value, 1.0, exact.ridge, len(rows))
        span = LandmarkSpan(problem, ridge, n_landmarks)
        lower, upper = span.bound_dimension(1.0 - confidence)
    return EffectiveDimension(
        value=0.5 * (lower + upper),
        lower=lower,
        upper=upper,
        confidence=float(confidence),
        gamma_ridge=ridge,
        n_samples=len(rows),
        n_landmarks=len(span.indices),
    )


def ridge_leverage_scores(
    X: Any,
    kernel: KernelLike = "rbf",
    gamma_ridge: float | None = None,
    *,
    gamma: Gamma = "mean",
    kernel_params: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    max_exact: int = EXACT_ROWS,
    n_landmarks: int = _LANDMARKS,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> RidgeLeverageScores:
    """Return ``l_i(γ) = [K(K + γI)⁻¹]_ii``: how much of the matrix depends on each row.

    Exact for up to `max_exact` rows, in 9n³.  Above, m landmarks with the Nyström
    approximation K̃ and ``E = K − K̃`` bound every score from both sides: with the scores
    ``l̃_i`` of K̃ and ``θ = ‖E‖₂/γ``,

        l̃_i + (√(E_ii/γ) − √(θ l̃_i))²₊/(1 + θ)  ≤  l_i  ≤  l̃_i + (√(E_ii/γ) + √(θ l̃_i))²

    and ``l_i ≤ K_ii/(K_ii + γ)``.  The norm is at most ``(tr E⁴)^¼``, which 512 columns
    of E estimate, with Student's interval at the stated confidence: only the norm is
    left to chance, and it is the same for all rows.  Costs and memory as in
    `effective_dimension`.

    Parameters
    ----------
    X, kernel, gamma_ridge, gamma, kernel_params, sample_weight, confidence, max_exact
        As in `effective_dimension`.
    n_landmarks, n_jobs, random_state
        As in `effective_dimension`.

    References
    ----------
    CR18 Def. 3; Alaoui & Mahoney, "Fast randomized kernel ridge regression with
    statistical guarantees", NeurIPS 2015.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.append(np.random.default_rng(0).normal(size=(99, 2)), [[50, 50]], axis=0)
    >>> found = ridge_leverage_scores(X, gamma_ridge=1.0, gamma=0.1)
    >>> int(found.scores.argmax()), round(float(found.scores.max()), 3)
    (99, 0.5)
    """
    _check_limits(confidence, max_exact, n_landmarks)
    with open_problem(
        X, kernel, gamma, kernel_params, sample_weight, n_jobs, random_state
    ) as problem:
        rows, ridge = problem.rows, problem.resolve_ridge(gamma_ridge)
        if len(rows) <= max_exact:
            exact = exact_ridge_leverage_scores(rows, problem.kernel, Ridge(ridge))
            scores = exact.scores
            return RidgeLeverageScores(scores, scores, scores, 1.0, exact.ridge)
        span = LandmarkSpan(problem, ridge, n_landmarks)
        bounds = span.bound_scores(1.0 - confidence)
    return RidgeLeverageScores(*bounds, float(confidence), ridge, len(span.indices))


def _check_limits(confidence: float, max_exact: int, n_landmarks: int) -> None:
    check_below("confidence", confidence)
    check_integer("max_exact", max_exact, low=0)
    check_integer("n_landmarks", n_landmarks)
