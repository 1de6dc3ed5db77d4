"""How well landmarks cover the rows in feature space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sketchmeans.data.input import as_weighted_rows, check_table
from sketchmeans.data.sampling import row_weights
from sketchmeans.kernels import Kernel, as_kernel, resolve_kernel, warn_if_indefinite
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks.base import Landmarks
from sketchmeans.landmarks.choice import read_landmarks
from sketchmeans.landmarks.kmeanspp import KernelDistances
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import as_generator


def landmark_potential(
    X: Any,
    landmarks: Any,
    *,
    kernel: str | Kernel | Callable[..., float] = "rbf",
    gamma: Gamma = "mean",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> float:
    """Return the kernel k-means potential of landmarks, which bounds their error.

        φ(Z) = Σ_i w_i min_z ‖φ(x_i) − φ(z)‖² ≥ ‖K − K̃‖₁ ≥ ‖K − K̃‖_F,

    as no row is farther from the span of the landmarks than from the nearest of them
    (OG17 §3).  To compare sets of landmarks it costs n·m·d, without the n·m² of the
    error itself.

    Parameters
    ----------
    X : array-like, sparse matrix, path or `Source`, of shape (n, d)
        With ``kernel="precomputed"``: the n × n kernel matrix.
    landmarks : Landmarks or array
        Or points (m, d), or row numbers (m,).
    kernel, gamma, degree, coef0, kernel_params, sample_weight, n_jobs, random_state
        As in `select_landmarks`.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> landmarks = select_landmarks(X, 20, "k-means++", random_state=0)
    >>> landmark_potential(X, landmarks) < landmark_potential(X, np.arange(20))
    True
    """
    kernel_rng, _ = as_generator(random_state).spawn(2)
    chosen = as_kernel(
        kernel, gamma=gamma, degree=degree, coef0=coef0, kernel_params=kernel_params
    )
    with Workers(n_jobs) as workers:
        rows = as_weighted_rows(check_table(X), sample_weight, workers)
        resolved = resolve_kernel(chosen, rows, kernel_rng)
        warn_if_indefinite(resolved, "its potential bounds no error")
        found = landmarks
        if not isinstance(found, Landmarks):
            found = read_landmarks(found, rows, resolved)
        distances = KernelDistances(rows, resolved)
        if found.indices is None:
            return distances.potential(found.points) * rows.weight_unit
        nearest = distances.nearest(found.points, distances.diagonal[found.indices])
        nearest[found.indices] = 0.0  # exactly, whatever rounding makes of it
        return float(row_weights(rows) @ nearest) * rows.weight_unit
