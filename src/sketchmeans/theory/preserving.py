"""Whether landmarks preserve the kernel matrix up to γ (CR18 Def. 2)."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sketchmeans.data.rows import Block, as_rows
from sketchmeans.kernels import compute_gram
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks import Landmarks, read_landmarks
from sketchmeans.landmarks.leverage import WeightedKernel
from sketchmeans.numerics.linalg import (
    Array,
    largest_eigenvalues,
    pseudo_inverse,
    relative_cut,
)
from sketchmeans.numerics.memory import memory_budget
from sketchmeans.numerics.parameters import check_integer
from sketchmeans.nystrom import Nystrom
from sketchmeans.nystrom.features import FeatureRows
from sketchmeans.nystrom.residual import Residual
from sketchmeans.theory.leverage import EXACT_ROWS
from sketchmeans.theory.problem import (
    KernelLike,
    Problem,
    check_below,
    check_positive,
    open_problem,
)


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
    where K fits in half of the free memory.  n·m numbers are stored.

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
    max_exact : int, default=2000
        Maximum number of rows for which the eigenvalues are computed.
    gamma, kernel_params, sample_weight, n_jobs, random_state
        As in `effective_dimension`.

    See Also
    --------
    is_gamma_preserving : The same as a yes or no.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> [round(preserved_gamma(np.arange(m), X, "rbf"), 2) for m in (1, 10, 300)]
    [38.22, 2.74, 0.0]
    """
    given = (gamma, kernel_params, sample_weight, n_jobs, random_state)
    return _preserve(landmarks, X, kernel, eps, max_exact, *given)[0]


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
    """Say whether landmarks are γ-preserving, ``‖K − K̃‖₂ ≤ γ ε/(1 − ε)`` (CR18 Def. 2).

    Costs as there.

    Parameters
    ----------
    gamma_ridge : float or None, default=None
        γ > 0; None is √n, with which the excess risk of Nyström kernel k-means falls
        as fast in n as that of the exact one (CR18 Theorem 1).
    landmarks, X, kernel, eps, max_exact
        As in `preserved_gamma`.
    gamma, kernel_params, sample_weight, n_jobs, random_state
        As in `effective_dimension`.

    See Also
    --------
    preserved_gamma : The smallest γ for which it holds.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> [is_gamma_preserving(np.arange(m), X, "rbf") for m in (1, 10)]
    [False, True]
    """
    if gamma_ridge is not None:
        check_positive("gamma_ridge", gamma_ridge)
    given = (gamma, kernel_params, sample_weight, n_jobs, random_state)
    least, total_weight = _preserve(landmarks, X, kernel, eps, max_exact, *given)
    return least <= (sqrt(total_weight) if gamma_ridge is None else gamma_ridge)


def _preserve(
    landmarks: Any,
    X: Any,
    kernel: KernelLike | None,
    eps: float,
    max_exact: int,
    *given: Any,
) -> tuple[float, float]:
    """Return the smallest γ, and the total weight of the rows."""
    eps = check_below("eps", eps)
    check_integer("max_exact", max_exact, low=0)
    model = None
    if isinstance(landmarks, BaseEstimator):
        model = _check_model(landmarks, kernel)
        kernel, reducer = model.kernel_, getattr(model, "reducer_", None)
        landmarks = (
            Landmarks(model.components_, model.component_indices_)
            if isinstance(model, Nystrom)
            else Landmarks(model.landmarks_, model.landmark_indices_)
        )
        X = X if reducer is None else reducer.transform(X)
    with open_problem(X, "rbf" if kernel is None else kernel, *given) as problem:
        rows = problem.rows
        points, root = _compute_span(problem, landmarks, model)
        features = FeatureRows(rows, problem.kernel, points, root, rows.dtype).compute(
            rows.dtype
        )
        matrix = WeightedKernel(rows, problem.kernel)
        if len(rows) <= max_exact:
            norm = _compute_dense_norm(matrix, features)
        else:
            residual = Residual(rows, problem.kernel, as_rows(features, rows.workers))
            norm = residual.spectral(problem.rng, memory_budget(None)).error
        noise = relative_cut(len(rows), rows.dtype) * matrix.trace
        least = norm * (1.0 - eps) / eps if norm > noise else 0.0
        return least, rows.total_weight


def _check_model(model: Any, kernel: KernelLike | None) -> Any:
    check_is_fitted(model)
    if not isinstance(model, Nystrom) and not hasattr(model, "landmarks_"):
        raise ValueError(
            f"landmarks={model!r} should be a fitted Nystrom or NystromKMeans, "
            "Landmarks, points (m, d) or row numbers (m,)."
        )
    if kernel is not None:
        raise ValueError(
            f"kernel={kernel!r} should be None with a fitted estimator, which "
            "has its own."
        )
    return model


def _compute_span(problem: Problem, landmarks: Any, model: Any) -> tuple[Block, Array]:
    """Return the landmarks and coefficients R: the features are ``k(X, Z) R``."""
    if not isinstance(landmarks, Landmarks):
        landmarks = read_landmarks(landmarks, problem.rows, problem.kernel)
    points = landmarks.points
    if landmarks.indices is not None and model is None:
        # Draws with replacement repeat rows, which add nothing to the span.
        points = points[np.unique(landmarks.indices, return_index=True)[1]]
    gram = compute_gram(problem.kernel, points, problem.rows.workers, problem.rows)
    directions = getattr(model, "_root", None)
    if directions is None:
        return points, pseudo_inverse(gram, rank=getattr(model, "rank_", None)).root()
    # The fit may have been in float32: the same span again, in float64.
    directions = directions.astype(np.float64)
    inner = directions.T @ gram @ directions
    return points, directions @ pseudo_inverse(inner).root()


def _compute_dense_norm(matrix: WeightedKernel, features: Array) -> float:
    """Return the largest eigenvalue of ``D^½ (K − F Fᵀ) D^½``."""
    roots = np.sqrt(matrix.weights)
    E = matrix.gram(np.arange(len(features))) - features @ features.T
    E *= roots[:, None] * roots
    return max(float(largest_eigenvalues(E, 1)[0]), 0.0)
