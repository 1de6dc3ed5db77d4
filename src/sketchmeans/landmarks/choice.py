"""From what a user asks for to landmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.input import checked_table, weighted_rows
from sketchmeans.data.rows import Rows
from sketchmeans.kernels import Kernel, Precomputed, as_kernel, warn_if_indefinite
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks.base import Landmarks, LandmarkSelector
from sketchmeans.landmarks.centroids import Centroids
from sketchmeans.landmarks.diagonal import ColumnNorm, Diagonal
from sketchmeans.landmarks.dpp import KDPP
from sketchmeans.landmarks.given import check_given_matrix, read_landmarks
from sketchmeans.landmarks.kmeanspp import KernelKMeansPlusPlus
from sketchmeans.landmarks.leverage import BottomUp, Leverage, RidgeLeverage
from sketchmeans.landmarks.pivots import Cholesky, Greedy, RandomCholesky
from sketchmeans.landmarks.uniform import Uniform
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import as_generator, check_integer, is_auto

SELECTORS: dict[str, Callable[[], LandmarkSelector]] = {
    "uniform": Uniform,
    "diagonal": Diagonal,
    "column-norm": ColumnNorm,
    "leverage": Leverage,
    "ridge-leverage": RidgeLeverage,
    "bless": BottomUp,
    "kmeans++": KernelKMeansPlusPlus,
    "kmeans": Centroids,
    "k-dpp": KDPP,
    "greedy": Greedy,
    "cholesky": Cholesky,
    "rpcholesky": RandomCholesky,
}


#: Those that look at all rows with functions of single blocks, or not at all.
_ON_CLUSTERS = (
    Uniform,
    Diagonal,
    ColumnNorm,
    RidgeLeverage,
    BottomUp,
    KernelKMeansPlusPlus,
)


def as_selector(landmarks: str | LandmarkSelector) -> LandmarkSelector:
    """Return the selector that a user's `landmarks` stands for."""
    selector = _known_selector(landmarks)
    if selector is None:
        raise ValueError(
            f"landmarks={landmarks!r} should be one of {sorted(SELECTORS)}, a selector "
            "object, or an array: points (m, d) or row numbers (m,)."
        )
    return selector


def is_selector(landmarks: Any) -> bool:
    """Say whether landmarks are to be chosen, by a name or an object, and not given.

    A polars table has a `select` of its own.
    """
    return isinstance(landmarks, str) or (
        hasattr(landmarks, "select") and not hasattr(landmarks, "shape")
    )


def _known_selector(value: Any) -> LandmarkSelector | None:
    if isinstance(value, str):
        return SELECTORS[value]() if value in SELECTORS else None
    return value if is_selector(value) else None


def chosen_landmarks(
    landmarks: Any,
    n_landmarks: int | str,
    rows: Rows,
    kernel: Kernel,
    rng: np.random.Generator,
    auto: Callable[[], int],
) -> Landmarks:
    """Return an estimator's landmarks, which its parameters choose or give.

    `auto` says how many to choose where the user leaves it open.
    """
    if is_selector(landmarks):
        selector = as_selector(landmarks)
        _check_reach(selector, rows)
        size = auto() if is_auto(n_landmarks) else int(n_landmarks)
        if size > len(rows):
            raise ValueError(f"n_landmarks={size} should be <= n_samples={len(rows)}.")
        return selector.select(rows, kernel, size, rng)
    given = read_landmarks(landmarks, rows, kernel)
    if not is_auto(n_landmarks) and n_landmarks != len(given):
        raise ValueError(
            f"n_landmarks={n_landmarks} should be 'auto' or the number of given "
            f"landmarks, {len(given)}."
        )
    return given


def _check_reach(selector: LandmarkSelector, rows: Rows) -> None:
    """Raise where a selector of ours would fetch all rows from a cluster."""
    if find_adapter(rows) is None or type(selector) not in SELECTORS.values():
        return
    refines = isinstance(selector, KernelKMeansPlusPlus) and selector.refine
    if refines or type(selector) not in _ON_CLUSTERS:
        known = [name for name, kind in SELECTORS.items() if kind in _ON_CLUSTERS]
        raise ValueError(
            f"landmarks={selector!r} does not work on a Dask collection; of the names, "
            f"{known} do, and given points or row numbers."
        )


def select_landmarks(
    X: Any,
    n_landmarks: int,
    method: str | LandmarkSelector = "uniform",
    *,
    kernel: str | Kernel | Callable[..., float] = "rbf",
    gamma: Gamma = "mean",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Landmarks:
    """Choose landmarks: the points that stand for all rows in a Nyström approximation.

    `NystromKMeans` with the same kernel, weights and `random_state` has the same
    landmarks.

    Parameters
    ----------
    X : array-like, sparse matrix, path or `Source`, of shape (n, d)
        With ``kernel="precomputed"``: the n × n kernel matrix.
    n_landmarks : int
        Number of landmarks m, at most n.  Where rows repeat, fewer may be found, with
        a warning: no value is a landmark twice, unless the method draws with
        replacement.
    method : str or LandmarkSelector, default="uniform"
        "uniform", "diagonal", "column-norm", "leverage", "ridge-leverage", "bless",
        "k-dpp", "kmeans", "kmeans++", "greedy", "cholesky", "rpcholesky" (the names in
        `SELECTORS`), or a selector object with parameters of its own.
    kernel, gamma, degree, coef0, kernel_params
        The kernel, as in `NystromKMeans`.
    sample_weight : array-like of shape (n,), optional
        A row of weight 3 counts as three rows; one of weight 0 is never chosen.
    n_jobs : int or None, default=None
        Threads; it never changes the result.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    landmarks : Landmarks
        Points, row numbers and, where the method has them, importance weights, the
        scores of all rows and the effective dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> select_landmarks(X, 20, "ridge-leverage", random_state=0).points.shape
    (20, 3)
    """
    selector = _known_selector(method)
    if selector is None:
        raise ValueError(
            f"method={method!r} should be one of {sorted(SELECTORS)} or a selector "
            "object."
        )
    size = check_integer("n_landmarks", n_landmarks)
    kernel_rng, landmark_rng = as_generator(random_state).spawn(2)
    X = checked_table(X)
    if size > X.shape[0]:
        raise ValueError(f"n_landmarks={size} should be <= n_samples={X.shape[0]}.")
    with Workers(n_jobs) as workers:
        rows = weighted_rows(X, sample_weight, workers)
        chosen = as_kernel(
            kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            kernel_params=kernel_params,
        )
        if isinstance(chosen, Precomputed):
            check_given_matrix(rows)
        else:
            rows.survey()  # finds every value that is not finite
        warn_if_indefinite(chosen)
        resolved = chosen.resolved(rows, kernel_rng)
        found = selector.select(rows, resolved, size, landmark_rng)
    if found.weights is None:
        return found
    return replace(found, weights=found.weights * rows.weight_unit)
