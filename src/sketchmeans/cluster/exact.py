"""Exact kernel k-means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from sketchmeans.cluster.distinct import labels_of_distinct_rows
from sketchmeans.cluster.kernel import KernelClusterer, as_precise
from sketchmeans.data.memory import block_need
from sketchmeans.data.rows import Block, Rows
from sketchmeans.engine.callbacks import with_callbacks
from sketchmeans.engine.gram import (
    GramEngine,
    gram_matrix,
    has_distances,
    tiles_in_memory,
)
from sketchmeans.engine.init import Seeding
from sketchmeans.engine.lloyd import lloyd
from sketchmeans.engine.progress import Progress
from sketchmeans.engine.restarts import SWAP_WORK
from sketchmeans.engine.space import FeatureSpace, LandmarkSpace, SpanSpace
from sketchmeans.engine.starts import Start, read_start
from sketchmeans.engine.swaps import Effort, improve, most_trials
from sketchmeans.engine.types import Centers, LloydResult
from sketchmeans.kernels import Kernel, is_given
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.kernels.distances import FromDistances
from sketchmeans.numerics.linalg import CANCELLATION_ROUNDINGS, Array
from sketchmeans.numerics.memory import FIXED_NEED, plan_memory
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import all_or_nothing, as_generator, is_auto

#: n²k times the number of restarts, at most, for ``n_init="auto"``.
_RESTART_WORK = 2.4e9


@dataclass(eq=False, repr=False)
class KernelKMeans(KernelClusterer):
    """Exact kernel k-means on the n × n Gram matrix.

    Minimises ``W(C) = 1/n Σ_i min_j ‖φ(x_i) − c_j‖²`` over centroids in the feature
    space of the kernel by Lloyd's algorithm (CR18 §2, Prop. 2).  Costs n²d/2 for the
    Gram matrix and n² times the share of rows that move in each pass; memory is one
    Gram matrix in the float type of the data.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters k.
    kernel : str, callable or Kernel, default="rbf"
        A name ("rbf", "laplacian", "polynomial", "linear", "cosine", "sigmoid",
        "arc-cosine", "chi2" or another of scikit-learn's pairwise kernels), a callable
        of two rows, a `Kernel` object, or "precomputed".
    gamma : float, "mean", "median", "scale" or "auto", default="mean"
        Bandwidth of the rbf, laplacian, polynomial, sigmoid and chi2 kernels;
        "mean" is one over twice the mean squared distance for rbf; "auto" takes a
        narrower one where clusters of a sample, in few dimensions, allow it.
    degree, coef0 : float, default=3 and 1
        Of the polynomial and sigmoid kernels; of these and `gamma`, what the kernel
        does not have is left out with a warning.
    kernel_params : dict, optional
        More keyword arguments of the kernel.
    init : str, Seeding or array, default="auto"
        "random", "k-means++", "greedy-k-means++", "k-means||", "local-search"; or
        points (k, d), row numbers (k,) or an initial partition (n,).  "auto" is greedy
        k-means++ up to 300 clusters, and k-means|| above.
    n_init : int or "auto", default="auto"
        Restarts; the best is kept.  "auto" is 12, or fewer (at least 2) where n²k is
        above 2·10⁸, the best of which is improved by swaps of centres for rows far from
        all centres; or 1 from a given start.
    max_iter : int, default=300
        Maximum number of passes of one restart.
    tol : float or "auto", default="auto"
        Relative drop of the cost over a pass at which a restart has converged; "auto"
        is 1e-4 up to 100 clusters, and k times 1e-6 above.
    max_memory : int, str or None, default=None
        Bytes, or a string such as "2GB", that the fit may use beyond its input; None
        is half of what is free.
    n_jobs : int or None, default=None
        Threads; None is every core that the process may use, 1 in a joblib worker.
    verbose : int, default=0
        1 prints one line per stage, 2 one line per iteration.
    random_state : int, Generator, RandomState or None, default=None

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row.
    cost_ : float
        ``W``, the mean squared distance in feature space.
    inertia_ : float
        The weighted sum of squared distances.
    cost_path_ : ndarray of shape (n_iter,)
        ``W`` after each pass of the best restart.
    n_iter_, converged_
        Passes of the best restart, and whether it met `tol`.
    cluster_sizes_ : ndarray of shape (k,)
        Weight of each cluster.
    exemplar_indices_, exemplars_
        The row of each cluster that is nearest to its centre: its number, and the
        row itself (not for a precomputed kernel).
    dual_coef_ : ndarray of shape (n, k)
        Centroid j is ``Σ_i dual_coef_[i, j] φ(x_i)``.
    X_fit_ : ndarray or CSR matrix of shape (n, d)
        The training rows, which prediction needs.
    kernel_, gamma_
        The kernel with its bandwidth as a number.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NystromKMeans : The same from a few landmarks, for millions of rows.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from sketchmeans import KernelKMeans
    >>> X, y = make_circles(300, noise=0.05, factor=0.3, random_state=0)
    >>> model = KernelKMeans(2, gamma=5.0, random_state=0).fit(X)
    >>> sorted(model.cluster_sizes_)
    [np.float64(150.0), np.float64(150.0)]
    """

    n_clusters: int = 8
    _: KW_ONLY
    kernel: str | Kernel | Callable[..., float] = "rbf"
    gamma: Gamma = "mean"
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None
    init: Any = "auto"
    n_init: int | str = "auto"
    max_iter: int = 300
    tol: float | str = "auto"
    max_memory: float | str | None = None
    n_jobs: int | None = None
    verbose: int = 0
    random_state: Any = None

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)
            With ``kernel="precomputed"``: the n × n kernel matrix.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows.
        """
        self._check_params()
        kernel_rng, seed_rng = as_generator(self.random_state).spawn(2)
        with Workers(self.n_jobs) as workers:
            rows = self._training_rows(X, sample_weight, workers)
            start = read_start(self.init, len(rows), self.n_clusters)
            restarts = self._restarts(start)
            if is_auto(self.n_init):
                cheap = int(_RESTART_WORK / (len(rows) ** 2 * self.n_clusters))
                restarts = min(restarts, max(2, cheap))
            self._check_memory(rows, restarts)
            rows = rows.load()
            progress = Progress(self, self.verbose)
            kernel = self._resolved_kernel(rows, kernel_rng)
            search = partial(self._search, kernel, start, seed_rng, progress, restarts)
            engine, result = search(rows)
            # Costs of indefinite kernels are what they are, zero or less.
            is_sound = is_given(kernel) or not kernel.positive_definite
            is_sound = is_sound or _is_sound(engine, result, rows)
            if not is_sound and rows.dtype == np.float32:
                # The distances are rounding: start again with more digits.
                del engine, result  # and the matrix
                rows = rows.in_float64()
                engine, result = search(rows)
                is_sound = _is_sound(engine, result, rows)
            progress.finish()
            exemplars = engine.exemplars(result.centers, result.labels)
        self._warn_of_rounding(result, is_sound)
        self.X_fit_ = np.arange(len(rows))[:, None]
        if not is_given(kernel):
            self.X_fit_ = as_precise(rows.X, rows.dtype)
        self._store_kernel(kernel, rows, exemplars)
        self.dual_coef_ = np.ascontiguousarray(result.centers.coefficients[:, 0])
        self._store_lengths(result.centers.squared_norms[0], kernel, rows.X)
        self._store(rows, result, exemplars)
        return self

    def _search(
        self,
        kernel: Kernel,
        start: Start | Seeding,
        rng: np.random.Generator,
        progress: Progress,
        restarts: int,
        rows: Rows,
    ) -> tuple[GramEngine, LloydResult]:
        """Return the clusters of rows, and the engine that has their kernel matrix."""
        self._check_memory(rows, restarts)  # values may need float64
        with progress.step("kernel matrix"):
            K = rows.X if is_given(kernel) else gram_matrix(rows, kernel)
        engine = GramEngine(K, self.n_clusters, rows.weights, rows.workers)
        if not isinstance(start, Start):
            labels = labels_of_distinct_rows(rows, self.n_clusters)
            if labels is not None:
                return engine, engine.separated(labels)
        rngs = rng.spawn(restarts)
        return engine, self._run(engine, rows, kernel, start, rngs, progress)

    def _run(
        self,
        engine: GramEngine,
        rows: Rows,
        kernel: Kernel,
        start: Start | Seeding,
        rngs: Sequence[np.random.Generator],
        progress: Progress,
    ) -> LloydResult:
        """Return the best of all restarts."""
        k, name = self.n_clusters, f"all {len(rows):,} rows"
        with progress.step("seeding"):
            if not isinstance(start, Start):
                seeds = start.seed(engine.distances_to, engine.weights, k, rngs)
                centers = engine.centers_at(seeds)
            elif start.indices is not None:
                centers = engine.centers_at(start.indices[None])
            else:
                centers = engine.centers_of(start.partition(rows, kernel, k))
        many = f", {len(rngs)} restarts" if len(rngs) > 1 else ""
        limits: dict[str, Any] = {"max_iter": self.max_iter, "tol": self._tolerance}
        with progress.stage(f"{name}{many}", self.max_iter) as on_pass:
            results = lloyd(engine, centers, on_pass=on_pass, **limits)
        if isinstance(start, Start) or not is_auto(self.n_init):
            return min(results, key=lambda result: result.cost)
        spent = sum(one.n_iter for one in results)
        quick = int(10.0 * SWAP_WORK / (len(rows) ** 2 * k))
        with progress.stage(f"{name}, swaps", most_trials(k)) as on_trial:
            return improve(
                engine,
                results,
                engine.distances_to,
                rows.weights,
                rngs[0].spawn(1)[0],
                effort=Effort(max(spent, quick)),
                on_trial=on_trial,
                **limits,
            )

    def _check_memory(self, rows: Rows, restarts: int) -> None:
        n = len(rows)
        matrix = 0 if self.__sklearn_tags__().input_tags.pairwise else n * n
        distances = 4 * n * restarts * self.n_clusters * 8
        if matrix:
            matrix += tiles_in_memory(n, rows.workers.n_jobs)
        need = FIXED_NEED + matrix * rows.dtype.itemsize + distances
        if matrix and (wide := 3 * block_need(rows)) > FIXED_NEED:
            need += wide  # rows of two tiles and their squares
        plan_memory(
            need + rows.memory + rows.load_memory,
            self.max_memory,
            f"Exact kernel k-means on n={n:,} rows needs {{}} for the {n:,} x {n:,} "
            f"kernel matrix and the distances of {restarts} restarts",
            "Use NystromKMeans, which needs no n x n matrix, or raise max_memory.",
        )

    def _store_lengths(self, lengths: Array, kernel: Kernel, points: Block) -> None:
        """Keep the squared norms of the centres, and the variances of the clusters.

        ``Σ_i α_i ‖φ(x) − φ(x_i)‖² = ‖φ(x) − c‖² + v``, v the variance of the cluster:
        predictions from distances need no norms, in which digits would be lost.
        """
        self._squared_norms = lengths
        self.__dict__.pop("_variances", None)
        if not is_given(kernel) and has_distances(kernel, points[:1]):
            self._variances = -lengths
            norms = self.dual_coef_.T @ kernel.diagonal(points)
            self._squared_norms = norms - self._variances

    def _space(self, rows: Rows) -> SpanSpace:
        space = super()._space(rows)
        if isinstance(space, FeatureSpace) or not hasattr(self, "_variances"):
            return space
        kernel = FromDistances(self.kernel_)
        return LandmarkSpace(kernel, self.X_fit_, space.dtype, rows.workers)

    def _centers(self, space: Any) -> Centers:
        if isinstance(space.kernel, FromDistances):
            return space.read_centers(self.dual_coef_, -self._variances)
        return super()._centers(space)

    def _span_points(self) -> Block:
        return self.X_fit_


def _is_sound(engine: GramEngine, result: LloydResult, rows: Rows) -> bool:
    """Say whether the cost is more than rounding of the kernel values.

    It is none where all rows of a cluster are equal.  Kernels with precise distances
    have zeros on the diagonal of their matrix, and nothing to lose.
    """
    norms = float(engine.weights @ np.abs(engine.diagonal)) / engine.total_weight
    eps = float(np.finfo(engine.K.dtype).eps)
    if result.cost >= CANCELLATION_ROUNDINGS * eps * norms:
        return True
    exemplars = engine.exemplars(result.centers, result.labels)
    counted = np.flatnonzero(engine.weights > 0.0)
    own, same = rows.take(counted), rows.take(exemplars[result.labels[counted]])
    return bool((own != same).sum() == 0)
