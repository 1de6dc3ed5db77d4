"""Bounds on the error of a Nyström approximation, as numbers (OG17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Any, ClassVar

import numpy as np

from sketchmeans.cluster.exact import KernelKMeans
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks.leverage import WeightedKernel
from sketchmeans.numerics.linalg import Array, eigen_decomposition, relative_cut
from sketchmeans.numerics.parameters import check_integer
from sketchmeans.theory.leverage import EXACT_ROWS
from sketchmeans.theory.problem import KernelLike, open_problem
from sketchmeans.theory.results import Result


@dataclass(frozen=True, repr=False)
class NystromErrorBounds(Result):
    """What the theory says of ``E‖H − H̃‖₂ / ‖H − H_K‖₂`` for landmarks of rank K.

    Attributes
    ----------
    rank : int
        K.
    n_samples : int
    n_landmarks : int
        l of Li's bound; k-means++ landmarks are K + 1, as in the proof of Theorem 4.
    optimal_error : float
        ``‖H − H_K‖₂``, the least Frobenius error of rank K.
    optimal_trace_error : float
        ``‖H − H_K‖₁``.
    potential : float
        φ(C), the kernel k-means potential of a clustering into K + 1 clusters.
    potential_in_span : float
        φ(C|U_K), its part within the top K left singular vectors.
    theorem_4 : float
        ``8(ln(K+1) + 2)(√(n−K) + Θ_K)``, ``Θ_K = φ(C|U_K)/‖H − H_K‖₂`` (OG17).
    corollary_5 : float or None
        ``16(ln(K+1) + 2)√(n−K)``, where ``Θ_K ≤ √(n−K)``.
    seeding : float
        ``8(ln(K+1) + 2) φ(C)/‖H − H_K‖₂``: what the proof of Theorem 4 starts from, and
        so never above it.
    k_dpp : float
        ``(l+1)/(l+1−K) √(n−K)``, for landmarks of a K-DPP (Li et al. 2016; OG17 eq. 5).

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.theory import nystrom_error_bounds
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = nystrom_error_bounds(X, 3, random_state=0)
    >>> bool(found.seeding <= found.theorem_4)
    True
    """

    rank: int
    n_samples: int
    n_landmarks: int
    optimal_error: float
    optimal_trace_error: float
    potential: float
    potential_in_span: float
    theorem_4: float
    corollary_5: float | None
    seeding: float
    k_dpp: float
    _shown_properties: ClassVar[tuple[str, ...]] = ("corollary_2", "note")

    @property
    def corollary_2(self) -> float:
        """``‖H − H_K‖₁ + φ(C|U_K)``: at least φ(C), and OG17's Corollary 2 where equal.

        For any clustering: ``H − H_K`` is positive semi-definite, so its part of the
        potential is at most its trace.
        """
        return self.optimal_trace_error + self.potential_in_span

    @property
    def note(self) -> str:
        """What the numbers mean in practice."""
        return (
            "Worst cases: uniform landmarks are usually within a small factor of the "
            "optimal error, too."
        )


def nystrom_error_bounds(
    X: Any,
    rank: int,
    kernel: KernelLike = "rbf",
    *,
    n_landmarks: int | None = None,
    labels: Any = None,
    gamma: Gamma = "mean",
    kernel_params: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    max_exact: int = EXACT_ROWS,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> NystromErrorBounds:
    """Return the bounds of OG17 and of Li et al. on the relative error of rank K.

    OG17 states Theorem 4 under the condition of its Theorem 1, which hardly ever holds,
    and for the optimal clustering C*.  Neither is needed: ``φ(C*) ≤ φ(C) ≤ ‖H − H_K‖₁ +
    φ(C|U_K)`` for every clustering C into K + 1 clusters, so any C gives a bound that
    holds (docs/errata.md).  Costs 9n³ for the eigenvalues, and a kernel k-means fit.

    Parameters
    ----------
    rank : int
        K ≥ 1, below the number of rows.
    n_landmarks : int or None, default=None
        l ≥ K of Li's bound; None is K.
    labels : array-like of shape (n,), optional
        A clustering into at most K + 1 clusters; None fits `KernelKMeans`.
    max_exact : int, default=2000
        Maximum number of rows: the bounds need all eigenvalues of the kernel matrix.
    X, kernel, gamma, kernel_params, sample_weight, n_jobs, random_state
        As in `effective_dimension`.

    References
    ----------
    OG17 Theorem 4, Corollaries 2 and 5; Li, Jegelka & Sra, ICML 2016.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> bounds = nystrom_error_bounds(X, 5, random_state=0)
    >>> bounds.seeding <= bounds.theorem_4 and bounds.potential <= bounds.corollary_2
    True
    >>> round(bounds.k_dpp, 1)
    83.8
    """
    K = check_integer("rank", rank)
    size = check_integer("n_landmarks", K if n_landmarks is None else n_landmarks, K)
    check_integer("max_exact", max_exact)
    with open_problem(
        X, kernel, gamma, kernel_params, sample_weight, n_jobs, random_state
    ) as problem:
        n = len(problem.rows)
        if not K < n <= max_exact:
            raise ValueError(
                f"X of {n} rows should have more than rank={K} and at most "
                f"max_exact={max_exact}: the bounds need every eigenvalue."
            )
        matrix = WeightedKernel(problem.rows, problem.kernel)
        gram, roots = matrix.gram(np.arange(n)), np.sqrt(matrix.weights)
        if labels is None:
            model = KernelKMeans(
                K + 1, kernel="precomputed", n_jobs=n_jobs, random_state=problem.rng
            )
            labels = model.fit(gram, sample_weight=matrix.weights).labels_
    H, P = gram * (roots[:, None] * roots), _indicators(labels, roots, K + 1)
    values, vectors = eigen_decomposition(H)
    rest, top = np.maximum(values[: n - K], 0.0), values[n - K :]
    error = float(np.linalg.norm(rest))
    if error <= relative_cut(n, np.float64) * float(values[-1]):
        error = 0.0
    potential = max(float(np.trace(H) - np.einsum("ij,ij->", P, H @ P)), 0.0)
    explained = float(((P.T @ vectors[:, n - K :]) ** 2 @ top).sum())
    inside = max(float(top.sum()) - explained, 0.0)
    factor, root = 8.0 * (log(K + 1) + 2.0), sqrt(n - K)
    theta = inside / error if error > 0.0 else inf
    return NystromErrorBounds(
        rank=K,
        n_samples=n,
        n_landmarks=size,
        optimal_error=error,
        optimal_trace_error=float(rest.sum()),
        potential=potential,
        potential_in_span=inside,
        theorem_4=factor * (root + theta),
        corollary_5=2.0 * factor * root if theta <= root else None,
        seeding=factor * potential / error if error > 0.0 else inf,
        k_dpp=(size + 1.0) / (size + 1.0 - K) * root,
    )


def _indicators(labels: Any, roots: Array, most: int) -> Array:
    """Return the orthonormal indicators ``√w_i / √W_j`` of the clusters."""
    clusters = np.unique(np.asarray(labels), return_inverse=True)[1].ravel()
    if clusters.shape != roots.shape or clusters.max() >= most:
        raise ValueError(
            f"labels of shape {np.shape(labels)} with {clusters.max() + 1} clusters "
            f"should be one per row, {len(roots)}, and of at most rank + 1 = {most}."
        )
    P = np.zeros((len(roots), int(clusters.max()) + 1))
    P[np.arange(len(roots)), clusters] = roots
    lengths = np.sqrt((P**2).sum(axis=0))
    return P / np.where(lengths > 0.0, lengths, 1.0)
