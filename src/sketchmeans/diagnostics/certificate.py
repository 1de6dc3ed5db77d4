"""How far a partition can be from the best one: certified lower bounds."""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.cluster import KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.cluster.within import keep_in_line, open_within
from sketchmeans.data.input import as_weighted_rows, validate_input
from sketchmeans.data.rows import Block, Rows, block_slices
from sketchmeans.data.sampling import row_weights
from sketchmeans.diagnostics.certificate_result import Certificate
from sketchmeans.diagnostics.fitted import (
    Assigner,
    Model,
    NearestCenters,
    check_given_rows,
    check_model,
    fitted_space,
)
from sketchmeans.diagnostics.partition_bound import (
    MOST_BYTES,
    Goal,
    OnProgress,
    bound_by_partition,
    choose_drawn_size,
    choose_subset_size,
    cut_evenly,
    draw_subsets,
    is_drawn,
)
from sketchmeans.diagnostics.spectral_bounds import (
    SecondMoment,
    bound_by_subsamples,
    compute_linear_moment,
    compute_nystrom_moment,
)
from sketchmeans.engine.blocks import new_engine
from sketchmeans.kernels import Kernel, Linear, is_given
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    as_generator,
    check_integer,
    check_number,
    check_option,
)
from sketchmeans.theory.problem import (
    Problem,
    check_below,
    check_definite,
    check_positive,
)

#: Landmarks for a model that has none of its own.
_LANDMARKS = 1_000
#: Subsamples, and the bounds of the rows of each.
_SUBSAMPLES, _FEW_ROWS, _MOST_ROWS = 4, 1_200, 1_800
#: Seconds for "auto" and "semidefinite".
_SECONDS = 20.0
#: Most clusters for each row of a subset: with more, subsets say little.
_MOST_CLUSTERS = 0.5
#: Parameters that belong to some methods only.
_OPTIONS = {
    "auto": ("max_seconds", "ratio", "subset_size", "on_progress"),
    "semidefinite": ("max_seconds", "ratio", "subset_size", "on_progress"),
    "nystrom": ("n_landmarks",),
    "subsample": ("n_subsamples", "subsample_size"),
}


def certificate(
    model: Model,
    X: Any,
    method: str = "auto",
    n_landmarks: int | None = None,
    confidence: float = 0.95,
    *,
    max_seconds: float | None = None,
    ratio: float | None = None,
    sample_weight: Any = None,
    subset_size: int | None = None,
    n_subsamples: int | None = None,
    subsample_size: int | None = None,
    on_progress: OnProgress | None = None,
    random_state: Any = None,
) -> Certificate:
    """Bound the optimal cost of kernel k-means on `X` from below.

    **Any partition is a projection.**  The cost of a partition is
    ``n W = tr(K) − tr(P K)``, where P projects onto the span of the clusters'
    indicator vectors: the vector of ones and at most k − 1 directions more.  With the
    centring ``H = I − 11ᵀ/n`` this is ``tr(HKH) − tr(P'HKH)`` with P' of rank k − 1, so
    by Ky Fan's theorem

        n W_opt ≥ tr(HKH) − λ_1(HKH) − ... − λ_{k−1}(HKH).

    The right-hand side is the least sum of squared distances to an affine subspace of
    dimension k − 1, and does not fall when a positive semi-definite matrix is added to
    K.  Weights enter as ``D^½KD^½``, with √w in place of 1.

    **method="semidefinite"**, the one that "auto" takes: the rows are cut into disjoint
    subsets, ``Σ_S |S| W_opt(S) ≤ n W_opt`` for every cut, each a small copy of all
    clusters (`anticlusters`).  Each subset has a bound by the semidefinite programme of
    Peng and Wei (`semidefinite`), evaluated in float64 with an allowance for rounding.
    If all subsets are done in time the bound is *certain*.  Else it holds *at a
    confidence*: the spectral bounds of all subsets are certain, and what the programme
    adds to them is sampled in random order, with an interval that holds whenever
    sampling stops.  About a millisecond of one core for each row.  Where the rows are
    on a cluster, in large files, or too many to be cut in time, subsets of a random cut
    are drawn: the bound is looser, and costs a pass over the rows and `max_seconds`.

    **method="nystrom"**: with the Nyström approximation K̃ in place of K, as
    ``K − K̃ ⪰ 0``.  Certain, up to rounding: kernel values are in the float type of the
    rows, the sums of their products in float64, eigen-directions of ``k(Z, Z)`` that
    drown in rounding are left out (which only lowers the bound), and what rounding may
    have added is taken off.  That is, with ``R Rᵀ = k(Z, Z)⁺``, ε the rounding of the
    rows' type and s = max k(x, x): 16εs‖R‖√n off the root of the bound for the kernel
    values, and before that 16·2⁻⁵²·s²‖R‖²n off the bound for the sums; both suppose
    that roundings do not conspire.  It rises as landmarks are added to a set.  One pass
    of n·m·(d + m).

    **method="subsample"**: for rows S drawn at random with replacement,
    ``E W_opt(S) ≤ W_opt``, because the best centres of all rows are some centres for S.
    So the mean of the spectral bounds of some subsamples, minus a margin, is a lower
    bound.  To exchange one of the N rows drawn moves the mean by at most D/N, where D
    is the squared diameter of the rows in feature space, as an optimal affine subspace
    contains the mean of the rows.  By McDiarmid's inequality the margin
    ``D √(ln(1/(1 − confidence))/(2N))`` suffices.  D is at most 2 max k(x, x) for
    kernels without negative values, else 4 max k(x, x).  One pass for the cost.

    For `SketchedKMeans` both are about plain k-means on all features, and "nystrom"
    has the exact eigenvalues of the covariance, without landmarks, in n·d·min(n, d).

    Parameters
    ----------
    model : KernelKMeans, NystromKMeans or SketchedKMeans
        Fitted.  Behind a reducer the bound is about the reduced rows.
    X : array-like, sparse matrix, path, source or Dask collection, of shape (n, d)
        As a rule the rows of the fit.  With ``kernel="precomputed"``: the n × n kernel
        matrix of the fit.
    method : {"auto", "semidefinite", "nystrom", "subsample"}, default="auto"
        "auto" is "semidefinite", but "nystrom" for more clusters than half the rows of
        a subset, and for certainty about rows on a cluster.
    n_landmarks : int, optional
        For "nystrom": landmarks of the bound.  None takes those of the model, or 1,000
        rows for `KernelKMeans`; more than the model has are rows of `X`.
    confidence : float, default=0.95
        For what is left to chance.  With 1 "semidefinite" leaves nothing to chance.
    max_seconds : float, optional
        For "auto" and "semidefinite": subsets begun after that are not looked at.  20
        where it is None.
    ratio : float, optional
        For "auto" and "semidefinite": stop when this ratio is proved.
    sample_weight : array-like of shape (n,), optional
        A row of weight 3 counts as three rows.
    subset_size : int, optional
        For "auto" and "semidefinite": rows of a subset, chosen from n, k and
        `max_seconds` where it is None; all rows, if these are at most 600.
    n_subsamples : int, optional
        For "subsample"; 4 where it is None.
    subsample_size : int, optional
        Rows of each subsample, at most n.  None takes n/2, but at most 1,200, or n/8
        and at most 1,800 if that is more: the bound takes less time than the fit.
    on_progress : callable, optional
        For "auto" and "semidefinite": called with the number of subsets done, of all
        subsets, and the bound.
    random_state : int, Generator, RandomState or None, default=None
        Draws the cut, the order of subsets, subsamples and additional landmarks.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import NystromKMeans
    >>> X = load_iris().data
    >>> model = NystromKMeans(3, random_state=0).fit(X)
    >>> found = certificate(model, X)
    >>> found.lower_bound <= found.cost <= 1.05 * found.lower_bound
    True
    """
    start = time.perf_counter()
    check_option("method", method, tuple(_OPTIONS))
    options = {
        "n_landmarks": n_landmarks,
        "max_seconds": max_seconds,
        "ratio": ratio,
        "subset_size": subset_size,
        "n_subsamples": n_subsamples,
        "subsample_size": subsample_size,
        "on_progress": on_progress,
    }
    confidence = _check_options(method, confidence, options)
    model, X = open_within(model, X)
    model, sample_weight = check_model(model), keep_in_line(X, sample_weight)
    rng = as_generator(random_state)
    X = validate_input(model, X, reset=False)
    with Workers(model.n_jobs) as workers:
        rows = as_weighted_rows(X, sample_weight, workers)
        needs_all = method in ("auto", "semidefinite")  # subsets are from everywhere
        if needs_all and 0 < rows.load_memory <= MOST_BYTES:
            rows = rows.load()
        rows = model._view(rows)
        problem = Problem(rows, _check_kernel(model, rows, rng), rng)
        k = len(model.cluster_sizes_)  # `n_clusters` may have been set since the fit
        seconds = _SECONDS if max_seconds is None else float(max_seconds)
        n, draws = len(rows), is_drawn(rows, seconds, confidence)
        choose = choose_drawn_size if draws else choose_subset_size
        size = subset_size or choose(n, k, seconds, workers.n_jobs)
        if method == "auto":
            few = k > 1 and k > _MOST_CLUSTERS * min(size, n) and k < n
            must_be_certain = draws and confidence == 1.0
            method = "nystrom" if few or must_be_certain else "semidefinite"
        if method == "subsample":
            found = _certify_by_subsamples(
                model, problem, n_subsamples, subsample_size, confidence
            )
        elif method == "nystrom":
            found = _certify_by_landmarks(model, problem, n_landmarks)
        else:
            goal = Goal(start, seconds, inf if ratio is None else ratio, confidence)
            found = _certify_by_subsets(
                model, problem, size, goal, on_progress, draws=draws
            )
    return replace(found, n_clusters=k, seconds=time.perf_counter() - start)


def _check_options(method: str, confidence: Any, options: dict[str, Any]) -> float:
    """Check the parameters of a method, and return the confidence."""
    for name, value in options.items():
        if value is None:
            continue
        if name not in _OPTIONS[method]:
            raise ValueError(f"{name}={value!r} should be None with method={method!r}.")
        if name == "ratio" and not check_number(name, value) >= 1.0:
            raise ValueError(f"ratio={value!r} should be >= 1.")
        if name == "max_seconds":
            check_positive(name, value)
        if name in ("n_landmarks", "n_subsamples", "subset_size", "subsample_size"):
            check_integer(name, value, low=2 if name.endswith("_size") else 1)
    if (
        method in ("auto", "semidefinite")
        and check_number("confidence", confidence) == 1
    ):
        return 1.0
    return check_below("confidence", confidence)


def _certify_by_subsets(
    model: Model,
    problem: Problem,
    size: int,
    goal: Goal,
    on_progress: OnProgress | None,
    *,
    draws: bool,
) -> Certificate:
    k, total = len(model.cluster_sizes_), problem.rows.total_weight
    if draws:
        cost = _compute_cost(model, problem.rows)
        drawn, cut = draw_subsets(problem, size, goal)
        problem = replace(problem, rows=drawn)
        _, costs = _assign_rows(model, problem.rows)
    else:
        labels, costs = _assign_rows(model, problem.rows)
        cost = float(costs.sum())
        cut = cut_evenly(problem, labels, k, size)
    goal = replace(goal, wanted=cost / goal.wanted if goal.wanted < inf else inf)

    def show(done: int, of_all: int, bound: float) -> None:
        if on_progress is not None:
            on_progress(done, of_all, bound / total)

    found = bound_by_partition(problem, cut, costs, k, goal, show)
    path = np.array(found.path)
    path[:, 1:] /= total
    is_certain = goal.confidence == 1.0 or found.is_complete
    return Certificate(
        method="semidefinite",
        lower_bound=found.likely / total,
        cost=cost / total,
        residual_trace=None,
        confidence=1.0 if is_certain else goal.confidence,
        n_subsets=found.n_subsets,
        n_solved=len(found.excess),
        subset_size=found.subset_size,
        certain_bound=found.certain / total,
        path=path,
    )


def _assign_rows(model: Model, rows: Rows) -> tuple[Array, Array]:
    """Return labels, -1 for rows of weight 0, and weighted costs of all rows."""
    assign = Assigner(model, rows)

    def read(span: tuple[int, int]) -> NearestCenters:
        return assign(rows.block(*span), np.arange(*span))

    edges = block_slices(len(rows), assign.space.height)
    found = list(rows.workers.map(read, edges))
    labels = np.concatenate([nearest.labels for nearest in found])
    weights = row_weights(rows)
    costs = weights * np.concatenate([nearest.own for nearest in found])
    return np.where(weights > 0.0, labels, -1), costs


def _certify_by_subsamples(
    model: Model,
    problem: Problem,
    n_subsamples: int | None,
    subsample_size: int | None,
    confidence: float,
) -> Certificate:
    rows, k = problem.rows, len(model.cluster_sizes_)
    n = len(rows)
    size = min(_MOST_ROWS, max(n // 8, min(n // 2, _FEW_ROWS), 2))
    size = min(subsample_size or size, n)
    count = n_subsamples or _SUBSAMPLES
    bound = bound_by_subsamples(problem, [k], count, size, confidence)[0]
    cost = _compute_cost(model, rows) / rows.total_weight
    return Certificate("subsample", float(bound), cost, None, confidence)


def _certify_by_landmarks(
    model: Model, problem: Problem, n_landmarks: int | None
) -> Certificate:
    moment, cost = _compute_moment(model, problem, n_landmarks)
    total = problem.rows.total_weight
    bound = moment.lower_bound(len(model.cluster_sizes_)) / total
    residual, m = moment.residual / total, moment.n_landmarks
    return Certificate(
        "nystrom", bound, cost / total, residual, 1.0, m, certain_bound=bound
    )


def _check_kernel(model: Model, rows: Rows, rng: np.random.Generator) -> Kernel:
    if isinstance(model, SketchedKMeans):
        return Linear()
    check_given_rows(model.kernel_, rows)
    check_definite(model.kernel_, rows, rng.spawn(1)[0])
    return model.kernel_


def _compute_cost(model: Model, rows: Rows) -> float:
    engine = new_engine(rows, fitted_space(model, rows))
    return engine.total_cost(model._centers(engine.space))


def _compute_moment(
    model: Model, problem: Problem, n_landmarks: int | None
) -> tuple[SecondMoment, float]:
    """Return the moment behind the bound, and the total cost of the centres."""
    rows, kernel = problem.rows, problem.kernel
    if isinstance(model, SketchedKMeans):
        if n_landmarks is not None:
            raise ValueError(
                f"n_landmarks={n_landmarks} should be None for SketchedKMeans: its "
                "bound needs no landmarks."
            )
        return compute_linear_moment(rows), _compute_cost(model, rows)
    points = _choose_landmarks(model, problem, n_landmarks)
    if isinstance(model, NystromKMeans) and len(model.dual_coef_) <= points.shape[0]:
        space = fitted_space(model, rows)
        # The model's landmarks come first: one pass over kernel values serves both.
        if not (space.is_euclidean or is_given(kernel)):
            return compute_nystrom_moment(rows, kernel, points, model._centers(space))
    moment, _ = compute_nystrom_moment(rows, kernel, points)
    return moment, _compute_cost(model, rows)


def _choose_landmarks(
    model: KernelKMeans | NystromKMeans, problem: Problem, n_landmarks: int | None
) -> Block:
    """Return the model's landmarks, and rows in random order after them."""
    rows, kernel = problem.rows, problem.kernel
    own = model.landmarks_ if isinstance(model, NystromKMeans) else None
    n_own = 0 if own is None else int(own.shape[0])
    wanted = n_landmarks or n_own or min(_LANDMARKS, len(rows))
    if own is not None and wanted <= n_own:
        return own[:wanted]
    if wanted > n_own + len(rows):
        raise ValueError(
            f"n_landmarks={wanted} should be <= {n_own + len(rows)}: those of the "
            "model, and all rows."
        )
    order = problem.rng.permutation(len(rows))
    if is_given(kernel) and own is not None:  # points are numbers: no row twice
        order = order[~np.isin(order, own.ravel())]
    drawn = kernel.points(rows, order[: wanted - n_own])
    if own is None:
        return drawn
    if sparse.issparse(own) or sparse.issparse(drawn):
        return sparse.vstack([own, drawn], format="csr")
    return np.concatenate([own, drawn])
