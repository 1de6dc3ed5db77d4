"""From what a user asks for to landmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.finite import check_finite
from sketchmeans.data.input import as_weighted_rows, check_table
from sketchmeans.data.memory import plan_points
from sketchmeans.data.rows import Rows
from sketchmeans.kernels import (
    Kernel,
    as_kernel,
    is_given,
    resolve_kernel,
    warn_if_indefinite,
)
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks.base import Landmarks, LandmarkSelector, draw_distinct_rows
from sketchmeans.landmarks.coverage import cover_missed_rows
from sketchmeans.landmarks.dpp import KDPP
from sketchmeans.landmarks.growth import LandmarkPath, choose_n_landmarks
from sketchmeans.landmarks.kmeanspp import Centroids, KernelKMeansPlusPlus
from sketchmeans.landmarks.pivots import Cholesky, Greedy, RandomCholesky
from sketchmeans.landmarks.sampling import (
    BottomUp,
    ColumnNorm,
    Diagonal,
    Leverage,
    RidgeLeverage,
    Uniform,
)
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    as_generator,
    canonical_name,
    check_integer,
    is_auto,
)

SELECTORS: dict[str, Callable[[], LandmarkSelector]] = {
    "uniform": Uniform,
    "diagonal": Diagonal,
    "column-norm": ColumnNorm,
    "leverage": Leverage,
    "ridge-leverage": RidgeLeverage,
    "bless": BottomUp,
    "k-means++": KernelKMeansPlusPlus,
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
    Leverage,
    RidgeLeverage,
    BottomUp,
    KernelKMeansPlusPlus,
    Centroids,
)


def as_selector(value: str | LandmarkSelector, name: str = "") -> LandmarkSelector:
    """Return the selector that a user's `landmarks`, or `name`, stands for."""
    if isinstance(value, str):
        make = SELECTORS.get(canonical_name(value))
        if make is not None:
            return make()
    elif is_selector(value):
        return value
    given = "" if name else ", or an array: points (m, d) or row numbers (m,)"
    raise ValueError(
        f"{name or 'landmarks'}={value!r} should be one of {sorted(SELECTORS)} or a "
        f"selector object{given}."
    )


def is_selector(landmarks: Any) -> bool:
    """Say whether landmarks are to be chosen, by a name or an object, and not given.

    A polars table has a `select` of its own.
    """
    return isinstance(landmarks, str) or (
        hasattr(landmarks, "select") and not hasattr(landmarks, "shape")
    )


def choose_landmarks(
    landmarks: Any,
    n_landmarks: int | str,
    rows: Rows,
    kernel: Kernel,
    n_clusters: int,
    rngs: tuple[np.random.Generator, np.random.Generator],
    budget: int,
) -> tuple[Landmarks, LandmarkPath | None]:
    """Return an estimator's landmarks, given or chosen, and how their number was found.

    ``n_landmarks="auto"`` is found by `choose_n_landmarks`, in `budget` bytes.  For
    kernels whose features are as wide a table as the rows more landmarks than features
    span no more: there, it is 2·n_features, or 10·n_clusters.  The generators are for
    the landmarks, and for their number.
    """
    rng, size_rng = rngs
    if not is_selector(landmarks):
        given = read_landmarks(landmarks, rows, kernel)
        if not is_auto(n_landmarks) and n_landmarks != len(given):
            raise ValueError(
                f"n_landmarks={n_landmarks} should be 'auto' or the number of given "
                f"landmarks, {len(given)}."
            )
        return given, None
    selector = as_selector(landmarks)
    _check_runs_on_clusters(selector, rows)
    path, size = None, n_landmarks
    if is_auto(n_landmarks):
        if not rows.is_sparse and kernel.features(rows.block(0, 1)) is not None:
            most = min(len(rows), max(2 * rows.n_features, 10 * n_clusters))
            size = len(draw_distinct_rows(rows, most, size_rng))
        else:
            path = choose_n_landmarks(rows, kernel, n_clusters, size_rng, budget)
            size = path.chosen
    if int(size) > len(rows):
        raise ValueError(f"n_landmarks={size} should be <= n_samples={len(rows)}.")
    plan_points(rows, int(size), budget)
    found = selector.select(rows, kernel, int(size), rng)
    if is_auto(n_landmarks) and isinstance(landmarks, str) and landmarks == "uniform":
        found = cover_missed_rows(found, path, rows, kernel, rng)
    return found, path


def _check_runs_on_clusters(selector: LandmarkSelector, rows: Rows) -> None:
    """Raise where a selector of ours would fetch all rows from a cluster."""
    if find_adapter(rows) is None or type(selector) not in SELECTORS.values():
        return
    if type(selector) not in _ON_CLUSTERS:
        known = [name for name, kind in SELECTORS.items() if kind in _ON_CLUSTERS]
        raise ValueError(
            f"landmarks={selector!r} does not work on a Dask collection. Use one of "
            f"{known}, or points or row numbers that you choose on a sample."
        )


def read_landmarks(landmarks: Any, rows: Rows, kernel: Kernel) -> Landmarks:
    """Return given points (m, d) or row numbers (m,) as landmarks."""
    points = landmarks if sparse.issparse(landmarks) else np.asarray(landmarks)
    if points.ndim == 1 and points.dtype.kind in "iu" and len(points):
        if points.min() < 0 or points.max() >= len(rows):
            raise ValueError(
                f"landmarks holds row numbers from {points.min()} to {points.max()}; "
                f"they should lie in 0..{len(rows) - 1}."
            )
        indices = points.astype(np.intp)
        return Landmarks(kernel.points(rows, indices), indices)
    if is_given(kernel):
        raise ValueError(
            "landmarks should be row numbers with kernel='precomputed': there is no "
            "input space for points."
        )
    is_table = points.ndim == 2 and points.dtype.kind in "fiub" and points.shape[0]
    if not is_table or points.shape[1] != rows.n_features:
        raise ValueError(
            f"landmarks of shape {points.shape} and type {points.dtype} should be a "
            f"selector's name, points of shape (m, {rows.n_features}) or a list of row "
            "numbers."
        )
    check_finite(points, name="landmarks")
    return Landmarks(sparse.csr_array(points) if sparse.issparse(points) else points)


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
    """Choose landmarks: the points Z that stand for all rows.

    With them ``K ≈ k(X, Z) k(Z, Z)⁺ k(Z, X)``, the Nyström approximation.

    `NystromKMeans` with the same kernel, weights and `random_state` has the same
    landmarks.

    Costs what the method does, and m·d numbers.

    Parameters
    ----------
    X : array-like, sparse matrix, path, `Source` or Dask collection, shape (n, d)
        With ``kernel="precomputed"``: the n × n kernel matrix.
    n_landmarks : int
        Number of landmarks m, at most n.  Where rows repeat, fewer may be found, with
        a warning: no value is a landmark twice, unless the method draws with
        replacement.
    method : str or LandmarkSelector, default="uniform"
        "uniform", "diagonal", "column-norm", "leverage", "ridge-leverage", "bless",
        "k-dpp", "kmeans", "k-means++", "greedy", "cholesky", "rpcholesky" (the names in
        `SELECTORS`), or a selector object with parameters of its own.
    kernel, gamma, degree, coef0, kernel_params
        The kernel, as in `NystromKMeans`.
    sample_weight : array-like of shape (n,), optional
        A row of weight 3 counts as three rows; rows of weight 0 are ignored.
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
    selector = as_selector(method, "method")
    size = check_integer("n_landmarks", n_landmarks)
    kernel_rng, landmark_rng = as_generator(random_state).spawn(2)
    X = check_table(X, takes_dask=True)
    if size > X.shape[0]:
        raise ValueError(f"n_landmarks={size} should be <= n_samples={X.shape[0]}.")
    chosen = as_kernel(
        kernel, gamma=gamma, degree=degree, coef0=coef0, kernel_params=kernel_params
    )
    with Workers(n_jobs) as workers:
        rows = as_weighted_rows(X, sample_weight, workers)
        _check_runs_on_clusters(selector, rows)
        rows.persist(None)
        resolved = resolve_kernel(chosen, rows, kernel_rng)
        warn_if_indefinite(resolved)
        found = selector.select(rows, resolved, size, landmark_rng)
    if found.weights is None:
        return found
    return replace(found, weights=found.weights * rows.weight_unit)
