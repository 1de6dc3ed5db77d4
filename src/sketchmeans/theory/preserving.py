"""Whether landmarks keep the kernel matrix up to γ (CR18 Def. 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sketchmeans.data.rows import Block, as_rows
from sketchmeans.engine.gram import given_matrix, landmark_matrix
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.kernels import is_given
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks import Landmarks, read_landmarks
from sketchmeans.landmarks.dictionary import WeightedKernel
from sketchmeans.numerics.linalg import (
    Array,
    largest_eigenvalues,
    pseudo_inverse,
    relative_cut,
)
from sketchmeans.numerics.memory import memory_budget
from sketchmeans.numerics.parameters import check_integer
from sketchmeans.nystrom.residual import Residual
from sketchmeans.nystrom.transformer import _FeatureRows
from sketchmeans.theory.checks import check_below, resolve_ridge
from sketchmeans.theory.problem import KernelLike, Problem, opened
from sketchmeans.theory.spectrum import EXACT_ROWS


def preserved_gamma(
    landmarks: Any,
    X: Any,
    kernel: KernelLike | None = None,
    eps: float = 0.5,
    *,
    gamma: Gamma = "mean",
    kernel_params: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    max_exact: int = EXACT_ROWS,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> float:
    """Return the smallest γ for which landmarks are γ-preserving.

    CR18's Definition 2 asks that ``Π_n − Π_m ⪯ γ/(1 − ε) (Φ_n Φ_nᵀ + γΠ_n)⁻¹``.  As the
    left side is a projection, that is the same as ``‖K − K̃‖₂ ≤ γ ε/(1 − ε)`` with the
    Nyström approximation K̃, so the smallest γ is ``‖K − K̃‖₂ (1 − ε)/ε``.  Then no
    optimal clustering in the span costs more than ``min(k, d_eff(γ)) γ/((1 − ε)n)``
    above the optimum (CR18 Lemma 2).

    The norm is exact for up to `max_exact` rows, in n³.  Above, Lanczos finds it from
    below, to about 0.1%, in some tens of products of K with a vector: n²·d each, or n²
    where K fits in half of the free memory.  n·m numbers are held.

    Parameters
    ----------
    landmarks : Landmarks, array, or fitted Nystrom or NystromKMeans
        Or row numbers (m,), or points (m, d).  The span of a fitted estimator is that
        of its `rank_` directions, on rows behind its reducer, if it has one.
    X : array-like or sparse matrix of shape (n, d)
        With ``kernel="precomputed"``: the n × n kernel matrix.
    kernel : str, callable, Kernel or None, default=None
        None is the kernel of the fitted estimator, otherwise "rbf".
    eps : float, default=0.5
        ε, between 0 and 1.
    gamma : float, "mean", "median" or "scale", default="mean"
        Bandwidth of the kernel.
    kernel_params : dict, optional
        More parameters of the kernel.
    sample_weight : array-like of shape (n,), optional
        A row of weight 3 counts as three rows.
    max_exact : int, default=2000
        Most rows for which the eigenvalues of the matrix are found.
    n_jobs : int or None, default=None
        Threads; it never changes the result.
    random_state : int, Generator, RandomState or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> [round(preserved_gamma(np.arange(m), X, "rbf"), 2) for m in (1, 10, 300)]
    [38.22, 2.74, 0.0]
    """
    eps = check_below("eps", eps)
    given = _Given.read(landmarks, X, kernel)
    with opened(
        given.table,
        given.kernel,
        gamma=gamma,
        kernel_params=kernel_params,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        random_state=random_state,
    ) as problem:
        return _preserved(given, problem, eps, max_exact)


def is_gamma_preserving(
    landmarks: Any,
    X: Any,
    kernel: KernelLike | None = None,
    gamma_ridge: float | None = None,
    eps: float = 0.5,
    *,
    gamma: Gamma = "mean",
    kernel_params: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    max_exact: int = EXACT_ROWS,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> bool:
    """Say whether landmarks are γ-preserving (CR18 Def. 2): see `preserved_gamma`.

    Parameters
    ----------
    landmarks, X, kernel
        As in `preserved_gamma`.
    gamma_ridge : float or None, default=None
        γ > 0; None is √n, with which the excess risk of Nyström kernel k-means falls
        as fast in n as that of the exact one (CR18 Theorem 1).
    eps, gamma, kernel_params, sample_weight, max_exact, n_jobs, random_state
        As in `preserved_gamma`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> [is_gamma_preserving(np.arange(m), X, "rbf") for m in (1, 10)]
    [False, True]
    """
    eps = check_below("eps", eps)
    given = _Given.read(landmarks, X, kernel)
    with opened(
        given.table,
        given.kernel,
        gamma=gamma,
        kernel_params=kernel_params,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        random_state=random_state,
    ) as problem:
        ridge = resolve_ridge(gamma_ridge, problem.rows)
        return _preserved(given, problem, eps, max_exact) <= ridge


@dataclass(frozen=True)
class _Given:
    """What the user gave: a table, a kernel, and landmarks or a fitted estimator."""

    table: Any
    kernel: KernelLike
    landmarks: Any
    model: Any = None

    @staticmethod
    def read(landmarks: Any, X: Any, kernel: KernelLike | None) -> _Given:
        if not isinstance(landmarks, BaseEstimator):
            return _Given(X, "rbf" if kernel is None else kernel, landmarks)
        model: Any = landmarks
        check_is_fitted(model)
        if not hasattr(model, "landmarks_"):
            raise ValueError(
                f"landmarks={model!r} should be a fitted Nystrom or NystromKMeans, "
                "Landmarks, points (m, d) or row numbers (m,)."
            )
        if kernel is not None:
            raise ValueError(
                f"kernel={kernel!r} should be None with a fitted estimator, which "
                "has its own."
            )
        reducer = getattr(model, "reducer_", None)
        table = X if reducer is None else reducer.transform(X)
        chosen = Landmarks(model.landmarks_, model.landmark_indices_)
        return _Given(table, model.kernel_, chosen, model)

    def span(self, problem: Problem) -> tuple[Block, Array]:
        """Return the landmarks and coefficients R: the features are ``k(X, Z) R``."""
        rows, kernel = problem.rows, problem.kernel
        landmarks = self.landmarks
        if not isinstance(landmarks, Landmarks):
            landmarks = read_landmarks(landmarks, rows, kernel)
        points = landmarks.points
        if landmarks.indices is not None and self.model is None:
            # Draws with replacement repeat rows, which add nothing to the span.
            points = points[np.unique(landmarks.indices, return_index=True)[1]]
        if is_given(kernel):
            gram = given_matrix(rows, np.ravel(points))
        else:
            gram = landmark_matrix(kernel, points, rows.workers)
        directions = getattr(self.model, "components_", None)
        if directions is None:
            rank = getattr(self.model, "rank_", None)
            return points, pseudo_inverse(gram, rank=rank).root()
        # The fit may have been in float32: the same span again, in float64.
        directions = directions.astype(np.float64)
        inner = directions.T @ gram @ directions
        return points, directions @ pseudo_inverse(inner).root()


def _preserved(given: _Given, problem: Problem, eps: float, max_exact: int) -> float:
    limit = check_integer("max_exact", max_exact, low=0)
    rows, kernel = problem.rows, problem.kernel
    points, root = given.span(problem)
    space = LandmarkSpace(kernel, points, rows.dtype, rows.workers)
    features = _FeatureRows(rows, space, root).all(rows.dtype)
    matrix = WeightedKernel(rows, kernel)
    if len(rows) <= limit:
        norm = _dense_norm(matrix, features)
    else:
        residual = Residual(rows, kernel, as_rows(features, rows.workers))
        norm = residual.spectral(problem.rng, memory_budget(None)).error
    noise = relative_cut(len(rows), rows.dtype) * matrix.trace
    return norm * (1.0 - eps) / eps if norm > noise else 0.0


def _dense_norm(matrix: WeightedKernel, features: Array) -> float:
    """Return the largest eigenvalue of ``D^½ (K − F Fᵀ) D^½``."""
    n, roots = len(features), np.sqrt(matrix.weights)
    E = matrix.gram(np.arange(n)) - features @ features.T
    E *= roots[:, None] * roots
    largest = largest_eigenvalues(E, 1)
    return max(float(largest[0]), 0.0)
