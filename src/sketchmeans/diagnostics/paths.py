"""What other bandwidths and other numbers of clusters would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import ceil, sqrt
from typing import Any

import numpy as np
from sklearn.base import clone

from sketchmeans.data.rows import Rows, as_rows
from sketchmeans.diagnostics.agreement import adjusted_rand_score
from sketchmeans.diagnostics.resampling import interval, jackknife_pairs
from sketchmeans.diagnostics.spectral_bounds import bound_by_subsamples
from sketchmeans.engine.blocks import local_engine
from sketchmeans.engine.init import KMeansPlusPlus
from sketchmeans.engine.lloyd import lloyd
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.kernels import Kernel, as_kernel, compute_gram, is_given
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks.base import draw_distinct_rows
from sketchmeans.numerics.linalg import Array, largest_eigenvalues
from sketchmeans.numerics.parameters import check_integer
from sketchmeans.theory.problem import (
    KernelLike,
    Problem,
    check_below,
    check_positive,
    open_problem,
)

#: Restarts of each fit, and what ends them.
_RESTARTS, _MAX_ITER, _TOL = 4, 100, 1e-3
#: Rows whose spectrum gives the effective dimension, and most whose gives a bound.
_SPECTRUM_ROWS, _BOUND_ROWS = 1_000, 2_000
_NAMES = "cost", "lower_bound", "ratio", "stability", "stability_low", "stability_high"
#: Kernel values of a subsample are always stored.
_STORE = 2**62


def bandwidth_path(
    X: Any,
    gammas: Sequence[float],
    n_clusters: int,
    *,
    kernel: KernelLike = "rbf",
    kernel_params: Mapping[str, Any] | None = None,
    n_subsamples: int = 10,
    subsample_size: int = 1_000,
    confidence: float = 0.95,
    sample_weight: Any = None,
    as_frame: bool = False,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Any:
    """Compare bandwidths on subsamples, so that a person can choose.

    A good bandwidth has a low certified ratio, clusters that are stable, and an
    effective dimension above k but far below n: where it is near 1 all rows look the
    same, where it is near n no two rows do.  Costs of different bandwidths are in
    different units and not to be compared.

    For subsamples of s rows it costs s²·(d + k) for each of them and each bandwidth,
    and s² numbers, whatever n is.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    gammas : sequence of float
        Bandwidths.
    n_clusters : int
    kernel : str or Kernel, default="rbf"
        One that has a bandwidth.
    kernel_params : dict, optional
    n_subsamples, subsample_size : int, default=10 and 1,000
        Subsamples, each of which is clustered; at most a third of the rows.
    confidence : float, default=0.95
        Of each lower bound.
    sample_weight : array-like of shape (n,), optional
    as_frame : bool, default=False
        Return a pandas DataFrame.
    n_jobs : int or None, default=None
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    table : dict of ndarray or DataFrame
        - "gamma";
        - "cost": ``W`` on rows that were not clustered, the mean over subsamples
          (weighted rows are drawn with replacement, and may be among both);
        - "lower_bound", "ratio": the certificate "subsample", see `certificate`;
        - "effective_dimension": ``Tr K(K + √n I)⁻¹``, from at most 1,000 rows;
        - "stability": adjusted Rand index between the labels that two subsamples give
          to the same new rows, the mean over pairs;
        - "stability_low", "stability_high": its interval, by the jackknife; NaN for two
          subsamples.

    See Also
    --------
    advised_bandwidth : The bandwidth that such a path suggests.
    cluster_count_path : The same over numbers of clusters.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> table = bandwidth_path(X, [1e-4, 1e-3], 10, random_state=0)
    >>> table["effective_dimension"].round()
    array([ 7., 29.])
    """
    k = check_integer("n_clusters", n_clusters)
    if not len(gammas):
        raise ValueError(f"gammas={gammas!r} should have at least one bandwidth.")
    if not hasattr(as_kernel(kernel, kernel_params=kernel_params), "gamma"):
        raise ValueError(f"kernel={kernel!r} should have a bandwidth.")
    lines = []
    for gamma in gammas:
        value: Gamma = check_positive("gammas", gamma)
        chosen = kernel
        if isinstance(kernel, Kernel):  # it has its bandwidth in itself
            chosen, value = clone(kernel).set_params(gamma=value), "mean"
        with open_problem(
            X, chosen, value, kernel_params, sample_weight, n_jobs, random_state
        ) as problem:
            study = _Study(problem, [k], n_subsamples, subsample_size, confidence)
            line = {name: values[0] for name, values in study.table().items()}
            dimension = study.effective_dimension()
            lines.append(line | {"gamma": gamma, "effective_dimension": dimension})
    order = "gamma", "effective_dimension", *_NAMES
    table = {name: np.array([line[name] for line in lines]) for name in order}
    return _as_frame(table, as_frame)


def cluster_count_path(
    X: Any,
    ks: Sequence[int],
    *,
    kernel: KernelLike = "rbf",
    gamma: Gamma = "mean",
    kernel_params: Mapping[str, Any] | None = None,
    n_subsamples: int = 10,
    subsample_size: int = 1_000,
    confidence: float = 0.95,
    sample_weight: Any = None,
    as_frame: bool = False,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Any:
    """Compare numbers of clusters on subsamples, so that a person can choose.

    Kernel values and spectra are computed once for all k.  The cost always falls with
    k; a k after which stability drops, or before which ``ratio = cost/lower_bound``
    does, is a good one.

    Costs s²·d for each subsample of s rows and s²·k for each of its fits, and s²
    numbers, whatever n is.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    ks : sequence of int
        Numbers of clusters.
    gamma : float, "mean", "median" or "scale", default="mean"
        Bandwidth of the kernel.
    kernel, kernel_params, sample_weight, as_frame, n_jobs, random_state
        As in `bandwidth_path`.
    n_subsamples, subsample_size, confidence
        As in `bandwidth_path`.

    Returns
    -------
    table : dict of ndarray or DataFrame
        "n_clusters", "cost", "lower_bound", "ratio" and "stability" with its interval,
        as in `bandwidth_path`.

    See Also
    --------
    advised_cluster_count : The number that such a path suggests.
    choose_n_clusters : Tries tables of noise, too.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(1200, 3, centers=4, cluster_std=0.6, random_state=3)
    >>> table = cluster_count_path(X, [4, 5, 7], random_state=0)
    >>> int(table["n_clusters"][table["stability"].argmax()])
    4
    """
    if not len(ks):
        raise ValueError(f"ks={ks!r} should have at least one number of clusters.")
    counts = [check_integer("ks", k) for k in ks]
    with open_problem(
        X, kernel, gamma, kernel_params, sample_weight, n_jobs, random_state
    ) as problem:
        study = _Study(problem, counts, n_subsamples, subsample_size, confidence)
        return _as_frame({"n_clusters": np.array(counts), **study.table()}, as_frame)


class _Study:
    """Fits of several k on several subsamples, evaluated on other rows."""

    def __init__(
        self,
        problem: Problem,
        ks: Sequence[int],
        n_subsamples: int,
        subsample_size: int,
        confidence: float,
    ) -> None:
        check_integer("n_subsamples", n_subsamples, low=2)
        check_integer("subsample_size", subsample_size, low=2)
        self._confidence = check_below("confidence", confidence)
        rows = problem.rows
        if is_given(problem.kernel):
            raise ValueError(
                "kernel='precomputed' should be another kernel: its rows cannot be "
                "predicted from a subsample."
            )
        # One third to evaluate on; each subsample is drawn from the others.
        self._size = min(subsample_size, len(rows) // 3)
        if max(ks) > self._size:
            raise ValueError(
                f"n_clusters={max(ks)} should be <= {self._size}, the rows of a "
                "subsample."
            )
        # Here the float type of the table is enough, which `open_problem` widened.
        self._rows = as_rows(rows.X, rows.workers, rows.weights)
        self._kernel, self._ks = problem.kernel, ks
        rngs = problem.rng.spawn(3 + n_subsamples)
        judge_rng, self._bound_rng, self._spectrum_rng, *self._fit_rngs = rngs
        self._bound_rows = min(subsample_size, len(rows), _BOUND_ROWS)
        judges = self._draw(judge_rng, self._size)
        self._judge = self._rows.subset(judges, None)
        self._judges = judges if rows.weights is None else judges[:0]

    def table(self) -> dict[str, Array]:
        """Return cost, lower bound, ratio and stability for each k."""
        fits = [self._fits(rng) for rng in self._fit_rngs]
        costs = np.mean([[cost for cost, _ in fit] for fit in fits], axis=0)
        labels = [[found for _, found in fit] for fit in fits]
        pairs = combinations(labels, 2)
        scores = np.array([list(map(adjusted_rand_score, *pair)) for pair in pairs])
        problem = Problem(self._rows, self._kernel, self._bound_rng)
        bounds = bound_by_subsamples(
            problem, self._ks, len(fits), self._bound_rows, self._confidence
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(costs > 0.0, costs / bounds, 1.0)
        stability, error = scores.mean(axis=0), jackknife_pairs(scores, len(fits))
        low, high = interval(stability, error, len(fits), self._confidence)
        values = costs, bounds, ratios, stability, low, high
        return dict(zip(_NAMES, values, strict=True))

    def _draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return the numbers of random rows, by weight if they have weights."""
        rows = self._rows
        share = None if rows.weights is None else rows.weights / rows.total_weight
        return rng.choice(len(rows), size, replace=share is not None, p=share)

    def _subsample(self, rng: np.random.Generator) -> Rows:
        """Return rows to cluster, other than those to evaluate on."""
        drawn = self._draw(rng, 2 * self._size)
        drawn = drawn[~np.isin(drawn, self._judges)][: self._size]
        return self._rows.subset(drawn, None)

    def _fits(self, rng: np.random.Generator) -> list[tuple[float, Array]]:
        """Return cost and labels of the rows to evaluate on, for each k."""
        sample, kernel = self._subsample(rng), self._kernel
        m = min(max(max(self._ks), ceil(sqrt(self._size * max(self._ks)))), self._size)
        points = kernel.points(sample, draw_distinct_rows(sample, m, rng))
        space = LandmarkSpace(kernel, points, sample.dtype, sample.workers)
        engine = local_engine(sample, space, _STORE, many_passes=True)
        judge = local_engine(self._judge, space, _STORE, many_passes=True)
        distances, ones = kernel.distances_among(sample), np.ones(len(sample))
        found = []
        for k in self._ks:
            seeds = KMeansPlusPlus().seed(distances, ones, k, rng.spawn(_RESTARTS))
            starts = engine.centers_at(seeds)
            results = lloyd(engine, starts, max_iter=_MAX_ITER, tol=_TOL)
            best = min(results, key=lambda result: result.cost)
            near = judge.two_nearest(best.centers)
            found.append((float(near.first.mean()), near.labels))
        return found

    def effective_dimension(self) -> float:
        """Return ``Tr K(K + √n I)⁻¹`` of all rows, from the spectrum of a few."""
        size = min(_SPECTRUM_ROWS, len(self._rows))
        sample = self._rows.subset(self._draw(self._spectrum_rng, size), None)
        points = self._kernel.points(sample, np.arange(size))
        K = compute_gram(self._kernel, points, sample.workers, sample)
        total = self._rows.total_weight
        values = np.maximum(largest_eigenvalues(K, len(K)), 0.0) * (total / len(sample))
        return float((values / (values + sqrt(total))).sum())


def _as_frame(table: dict[str, Array], as_frame: bool) -> Any:
    if not as_frame:
        return table
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError:  # pragma: no cover - tests have pandas
        raise ImportError(
            "as_frame=True needs pandas, which is not installed."
        ) from None
    return pd.DataFrame(table)
