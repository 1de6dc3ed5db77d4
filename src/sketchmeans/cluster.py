"""The estimators: exact and Nyström kernel k-means."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from math import ceil, sqrt
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchmeans.bandwidth import Gamma
from sketchmeans.blocks import BlockEngine
from sketchmeans.gram import GramCenters, GramEngine, gram_matrix
from sketchmeans.kernels import Kernel, Precomputed, as_kernel, warn_if_indefinite
from sketchmeans.landmarks import (
    Landmarks,
    LandmarkSelector,
    as_selector,
    read_landmarks,
)
from sketchmeans.linalg import Array
from sketchmeans.lloyd import Centers, LloydResult, lloyd
from sketchmeans.memory import format_bytes, memory_budget
from sketchmeans.parallel import Workers
from sketchmeans.progress import Progress
from sketchmeans.progressive import (
    KernelDistances,
    Schedule,
    full_fit,
    seeded_fit,
    subsample_sizes,
)
from sketchmeans.rows import Block, Rows, as_rows, check_finite
from sketchmeans.seeding import Seeding
from sketchmeans.spaces import LandmarkSpace
from sketchmeans.start import Start, read_start
from sketchmeans.validation import (
    as_generator,
    check_integer,
    check_number,
    check_option,
    check_weights,
)

#: Restarts when ``n_init="auto"``: side by side they cost little more than one.
_AUTO_RESTARTS = 4
#: ``n_landmarks="auto"`` never takes more than this.
_AUTO_LANDMARKS = 2000


class _KernelClusterer(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """What exact and Nyström kernel k-means share: everything after the fit."""

    n_clusters: int
    kernel: str | Kernel | Callable[..., float]
    gamma: Gamma
    degree: float
    coef0: float
    kernel_params: Mapping[str, Any] | None
    n_init: int | str
    max_iter: int
    tol: float
    n_jobs: int | None
    verbose: int
    random_state: Any

    @abstractmethod
    def _space(self, workers: Workers) -> LandmarkSpace:
        """Return the span in which the fitted centres live."""

    @abstractmethod
    def _centers(self) -> Centers:
        """Return the fitted centres."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(
            self.kernel, Precomputed
        )
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_sizes_)

    def _check_params(self) -> None:
        check_integer("n_clusters", self.n_clusters)
        check_integer("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_integer("verbose", int(self.verbose), low=0)
        if self.n_init != "auto":
            check_integer("n_init", self.n_init)

    def _training_rows(self, X: Any, sample_weight: Any, workers: Workers) -> Rows:
        """Return the validated rows of `fit`."""
        X = _validated(self, X, reset=True)
        n_samples = X.shape[0]
        if n_samples < self.n_clusters:
            raise ValueError(
                f"n_samples={n_samples} should be >= n_clusters={self.n_clusters}."
            )
        rows = as_rows(X, workers, check_weights(sample_weight, n_samples))
        if X.dtype.kind == "f":
            rows.survey()  # every value is finite
        if self.__sklearn_tags__().input_tags.pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X.shape={X.shape} should be square with kernel='precomputed': "
                "k(X, X) of the training rows."
            )
        return rows

    def _fitted_kernel(self, rows: Rows, rng: np.random.Generator) -> Kernel:
        kernel = as_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
        ).resolved(rows, rng)
        warn_if_indefinite(kernel)
        self.kernel_ = kernel
        self.gamma_ = getattr(kernel, "gamma", None)
        return kernel

    def _restarts(self, start: Start | Seeding) -> int:
        """Return how many restarts there are; a given start has one."""
        if not isinstance(start, Start):
            return _AUTO_RESTARTS if self.n_init == "auto" else int(self.n_init)
        if self.n_init not in ("auto", 1):
            warnings.warn(
                f"n_init={self.n_init} restarts from a given init would all be the "
                "same: one is run.",
                RuntimeWarning,
                stacklevel=3,
            )
        return 1

    def _store(self, rows: Rows, result: LloydResult) -> None:
        """Set the fitted attributes that tell of the result."""
        self.labels_ = np.ascontiguousarray(result.labels)
        self.cost_ = result.cost
        self.inertia_ = result.cost * rows.total_weight
        self.cost_path_ = np.array(result.cost_path)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.cluster_sizes_ = result.counts
        self.exemplar_indices_ = result.exemplars
        if not isinstance(self.kernel_, Precomputed):
            self.exemplars_ = rows.take(result.exemplars)
        found = int((result.counts > 0.0).sum())
        if found < self.n_clusters:
            warnings.warn(
                f"Only {found} clusters of n_clusters={self.n_clusters} have rows: "
                "the rows hold too few distinct values.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if not result.converged:
            warnings.warn(
                f"No convergence after max_iter={self.max_iter} passes: the cost still "
                f"fell by more than tol={self.tol:g} of itself. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def fit_predict(self, X: Any, y: None = None, sample_weight: Any = None) -> Array:
        """Fit, and return ``labels_``."""
        labels: Array = self.fit(X, sample_weight=sample_weight).labels_
        return labels

    def predict(self, X: Any) -> Array:
        """Return the nearest centre of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            With ``kernel="precomputed"``: ``k(new rows, training rows)``.

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        with Workers(self.n_jobs) as workers:
            engine = self._new_rows(X, workers)
            return engine.predict(self._centers())

    def transform(self, X: Any) -> Array:
        """Return the distances in feature space from each row to each centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        distances : ndarray of shape (n, k)
        """
        with Workers(self.n_jobs) as workers:
            engine = self._new_rows(X, workers)
            distances = [np.sqrt(d) for d in engine.distances(self._centers())]
        return np.concatenate(distances).astype(engine.rows.dtype, copy=False)

    def cost(self, X: Any, sample_weight: Any = None) -> float:
        """Return ``W(C, μ_X)``: the mean squared distance of rows to their centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Any rows, not just those of the fit.
        sample_weight : array-like of shape (n,), optional
        """
        total, weight = self._total_cost(X, sample_weight)
        return total / weight

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Return minus the sum of squared distances, as scikit-learn's KMeans does."""
        return -self._total_cost(X, sample_weight)[0]

    def _total_cost(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        with Workers(self.n_jobs) as workers:
            engine = self._new_rows(X, workers)
            nearest = np.concatenate(
                [d.min(axis=1) for d in engine.distances(self._centers())]
            )
        weights = check_weights(sample_weight, len(nearest))
        if weights is None:
            return float(nearest.sum()), float(len(nearest))
        return float(weights @ nearest), float(weights.sum())

    def _new_rows(self, X: Any, workers: Workers) -> BlockEngine:
        check_is_fitted(self)
        X = _validated(self, X, reset=False)
        check_finite(X)
        return BlockEngine(as_rows(X, workers), self._space(workers))


def _validated(estimator: BaseEstimator, X: Any, *, reset: bool) -> Block:
    """Return `X` as it is stored: nothing is converted as a whole."""
    return validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype="numeric",
        ensure_all_finite=False,
        accept_large_sparse=True,
    )


class KernelKMeans(_KernelClusterer):
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
    gamma : float, "mean", "median" or "scale", default="mean"
        Bandwidth of the rbf, laplacian, polynomial, sigmoid and chi2 kernels;
        "mean" is one over twice the mean squared distance for rbf.
    degree, coef0 : float, default=3 and 1
        Of the polynomial and sigmoid kernels.
    kernel_params : dict, optional
        More keyword arguments of the kernel.
    init : str, Seeding or array, default="k-means++"
        "random", "k-means++", "greedy-k-means++", "local-search"; or points (k, d), row
        numbers (k,) or an initial partition (n,).
    n_init : int or "auto", default="auto"
        Restarts; the best is kept.  "auto" is 4, or 1 from a given start.
    max_iter : int, default=300
        Most passes of one restart.
    tol : float, default=1e-4
        Relative drop of the cost over a pass at which a restart has converged.
    max_memory : int, str or None, default=None
        Bytes, or a string such as "2GB", that the fit may use beyond its input; None
        is half of what is free.
    n_jobs : int or None, default=None
        Threads; None is every core that the process may use, 1 in a joblib worker.
    verbose : int, default=0
        1 prints a line a stage, 2 a line a pass.
    random_state : int, Generator, RandomState or None, default=None

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row.
    cost_ : float
        ``W``, the mean squared distance in feature space.
    inertia_ : float
        The weighted sum of squared distances.
    cost_path_ : ndarray of shape (n_iter_,)
        ``W`` after each pass of the best restart.
    n_iter_, converged_
        Passes of the best restart, and whether it met `tol`.
    cluster_sizes_ : ndarray of shape (k,)
        Weight of each cluster.
    exemplar_indices_, exemplars_
        The training row nearest to each centre: its number, and the row itself (not
        for a precomputed kernel).
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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: str | Kernel | Callable[..., float] = "rbf",
        gamma: Gamma = "mean",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        max_memory: float | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
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
            self._check_memory(rows, restarts)
            progress = Progress(self, self.verbose)
            with progress.step("kernel matrix"):
                kernel = self._fitted_kernel(rows, kernel_rng)
                K = _symmetric(rows.X) if _given(kernel) else gram_matrix(rows, kernel)
            engine = GramEngine(K, self.n_clusters, rows.weights, workers)
            with progress.step("seeding"):
                centers = self._seed(engine, rows, start, seed_rng.spawn(restarts))
            with progress.stage(f"all {len(rows):,} rows", self.max_iter) as on_pass:
                results = lloyd(
                    engine,
                    centers,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    on_pass=on_pass,
                )
            progress.finish()
        result = min(results, key=lambda result: result.cost)
        self.X_fit_ = np.arange(len(rows))[:, None] if _given(kernel) else rows.X
        self.dual_coef_ = np.ascontiguousarray(result.centers.coefficients[:, 0])
        self._squared_norms = result.centers.squared_norms[0]
        self._store(rows, result)
        return self

    def _check_memory(self, rows: Rows, restarts: int) -> None:
        n, budget = len(rows), memory_budget(self.max_memory)
        matrix = 0 if self.__sklearn_tags__().input_tags.pairwise else n * n
        need = matrix * rows.dtype.itemsize + 4 * n * restarts * self.n_clusters * 8
        if need > budget:
            raise MemoryError(
                f"Exact kernel k-means on n={n:,} rows needs {format_bytes(need)} for "
                f"the {n:,} x {n:,} kernel matrix and the distances of {restarts} "
                f"restarts; max_memory allows {format_bytes(budget)}. Use "
                "NystromKMeans, which needs no n x n matrix, or raise max_memory."
            )

    def _seed(
        self, engine: GramEngine, rows: Rows, start: Start | Seeding, rngs: Any
    ) -> GramCenters:
        if not isinstance(start, Start):
            seeds = start.seed(
                engine.distances_to, engine.weights, self.n_clusters, rngs
            )
            return engine.centers_at(seeds)
        if start.labels is not None:
            return engine.centers_of(start.labels)
        if start.indices is not None:
            return engine.centers_at(start.indices[None])
        points = start.checked_points(rows, self.kernel_)
        space = LandmarkSpace(self.kernel_, points, rows.dtype, rows.workers)
        values = BlockEngine(rows, space).all_coordinates()
        return engine.centers_near(values, self.kernel_.diagonal(points))

    def _space(self, workers: Workers) -> LandmarkSpace:
        dtype = as_rows(self.X_fit_, workers).dtype
        return LandmarkSpace(self.kernel_, self.X_fit_, dtype, workers)

    def _centers(self) -> Centers:
        return Centers(self.dual_coef_.T[None], self._squared_norms[None])


class NystromKMeans(_KernelClusterer):
    """Nyström kernel k-means: centroids in the span of a few landmarks.

    With m landmarks Z and ``b_x = k(Z, x)``, the centroid of a cluster with mean
    ``b̄`` is ``Σ_i α_i φ(z_i)``, ``α = k(Z, Z)⁺ b̄``.  The assignments are those of CR18
    Algorithm 1, which maps every row to m features first; here no row is mapped, and
    ``cost_`` is the true cost of Definition 1.  With m of the order of √n
    (up to logarithms) the expected cost is that of exact kernel k-means (CR18
    Thm 1).  Costs n·m·d for the kernel values and n·m·k for each pass; memory m² and,
    where it fits `max_memory`, n·m.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters k.
    kernel : str, callable or Kernel, default="rbf"
        A name ("rbf", "laplacian", "polynomial", "linear", "cosine", "sigmoid",
        "arc-cosine", "chi2" or another of scikit-learn's pairwise kernels), a callable
        of two rows, a `Kernel` object, or "precomputed".
    gamma : float, "mean", "median" or "scale", default="mean"
        Bandwidth of the rbf, laplacian, polynomial, sigmoid and chi2 kernels;
        "mean" is one over twice the mean squared distance for rbf.
    degree, coef0 : float, default=3 and 1
        Of the polynomial and sigmoid kernels.
    kernel_params : dict, optional
        More keyword arguments of the kernel.
    n_landmarks : int or "auto", default="auto"
        Number of landmarks m; "auto" is √(nk), but at least k and at most 2,000 or n.
    landmarks : str, LandmarkSelector or array, default="uniform"
        How landmarks are chosen; or points (m, d), or row numbers (m,).
    rank : int or None, default=None
        Keep at most this many eigen-directions of ``k(Z, Z)``.
    init : str, Seeding or array, default="k-means++"
        "random", "k-means++", "greedy-k-means++", "local-search"; or points (k, d), row
        numbers (k,) or an initial partition (n,).
    n_init : int or "auto", default="auto"
        Restarts.  They run side by side and are raced on the subsamples: with each
        doubling the worse half is dropped.  "auto" is 4, or 1 from a given start.
    max_iter : int, default=300
        Most passes in each stage.
    tol : float, default=1e-4
        Relative drop of the cost over a pass at which Lloyd's algorithm stops.
    algorithm : {"progressive", "full"}, default="progressive"
        "progressive" seeds and iterates on nested subsamples first, then makes full
        passes until `tol` holds on all rows; a given start goes to full passes at
        once.  "full" does everything on all rows.
    max_memory : int, str or None, default=None
        Bytes, or a string such as "2GB", that the fit may use beyond its input; None
        is half of what is free.  It never changes the result.
    n_jobs : int or None, default=None
        Threads; None is every core that the process may use, 1 in a joblib worker.
        It never changes the result.
    verbose : int, default=0
        1 prints a line a stage, 2 a line a pass.
    random_state : int, Generator, RandomState or None, default=None

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row.
    cost_ : float
        ``W``, the mean squared distance in feature space.
    inertia_ : float
        The weighted sum of squared distances.
    cost_path_ : ndarray of shape (n_iter_,)
        ``W`` after each pass over all rows.
    n_iter_, converged_
        Passes over all rows, and whether they met `tol`.
    cluster_sizes_ : ndarray of shape (k,)
        Weight of each cluster.
    exemplar_indices_, exemplars_
        The training row nearest to each centre: its number, and the row itself (not
        for a precomputed kernel).
    landmarks_ : ndarray or CSR matrix of shape (m, d)
        The landmarks; for a precomputed kernel their row numbers, of shape (m, 1).
    landmark_indices_ : ndarray of shape (m,) or None
        Their row numbers, if they are rows.
    dual_coef_ : ndarray of shape (m, k)
        Centroid j is ``Σ_i dual_coef_[i, j] φ(z_i)``.
    rank_ : int
        Eigen-directions of ``k(Z, Z)`` that are kept.
    kernel_, gamma_
        The kernel with its bandwidth as a number.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    KernelKMeans : Exact, for up to some ten thousand rows.

    References
    ----------
    CR18: Calandriello & Rosasco, "Statistical and computational trade-offs in kernel
    k-means", NeurIPS 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from sketchmeans import NystromKMeans
    >>> X, y = make_circles(3000, noise=0.05, factor=0.3, random_state=0)
    >>> model = NystromKMeans(2, gamma=5.0, random_state=0).fit(X)
    >>> sorted(model.cluster_sizes_)
    [np.float64(1500.0), np.float64(1500.0)]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: str | Kernel | Callable[..., float] = "rbf",
        gamma: Gamma = "mean",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        n_landmarks: int | str = "auto",
        landmarks: Any = "uniform",
        rank: int | None = None,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        algorithm: str = "progressive",
        max_memory: float | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.rank = rank
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.algorithm = algorithm
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like, memory map or sparse matrix of shape (n, d)
            With ``kernel="precomputed"``: the n × n kernel matrix.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows.
        """
        self._check_params()
        generator = as_generator(self.random_state)
        kernel_rng, landmark_rng, cluster_rng = generator.spawn(3)
        with Workers(self.n_jobs) as workers:
            rows = self._training_rows(X, sample_weight, workers)
            start = read_start(self.init, len(rows), self.n_clusters)
            progress = Progress(self, self.verbose)
            with progress.step("kernel"):
                kernel = self._fitted_kernel(rows, kernel_rng)
            with progress.step("landmarks"):
                landmarks = self._select(rows, kernel, landmark_rng)
                diagonal = kernel.row_diagonal(rows) if _given(kernel) else None
                gram = _submatrix(rows, landmarks) if _given(kernel) else None
                space = LandmarkSpace(
                    kernel,
                    landmarks.points,
                    rows.dtype,
                    workers,
                    rank=self.rank,
                    gram=gram,
                    diagonal=diagonal,
                )
                schedule = self._schedule(rows, space, start)
                self.rank_ = space.inverse.rank
            if isinstance(start, Start):
                engine = BlockEngine(rows, space, schedule.budget)
                centers = _given_centers(engine, start, kernel, self.n_clusters)
                result = full_fit(engine, centers, schedule, progress)
            else:
                result = seeded_fit(
                    rows,
                    space,
                    KernelDistances(kernel),
                    start,
                    self.n_clusters,
                    schedule,
                    cluster_rng,
                    progress,
                )
            progress.finish()
        self.landmarks_ = landmarks.points
        self.landmark_indices_ = landmarks.indices
        self.dual_coef_ = np.ascontiguousarray(result.centers.coefficients[0].T)
        self._squared_norms = result.centers.squared_norms[0]
        self._store(rows, result)
        return self

    def _check_params(self) -> None:
        super()._check_params()
        check_option("algorithm", self.algorithm, ("progressive", "full"))
        if self.n_landmarks != "auto":
            check_integer("n_landmarks", self.n_landmarks)
        if self.rank is not None:
            check_integer("rank", self.rank)

    def _select(
        self, rows: Rows, kernel: Kernel, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks, chosen or given."""
        n, k = len(rows), self.n_clusters
        if isinstance(self.landmarks, str) or hasattr(self.landmarks, "select"):
            if self.n_landmarks == "auto":
                m = min(max(k, min(ceil(sqrt(n * k)), _AUTO_LANDMARKS)), n)
            else:
                m = int(self.n_landmarks)
                if m > n:
                    raise ValueError(f"n_landmarks={m} should be <= n_samples={n}.")
            selector: LandmarkSelector = as_selector(self.landmarks)
            return selector.select(rows, kernel, m, rng)
        landmarks = read_landmarks(self.landmarks, rows, kernel)
        if self.n_landmarks not in ("auto", len(landmarks)):
            raise ValueError(
                f"n_landmarks={self.n_landmarks} should be 'auto' or the number of "
                f"given landmarks, {len(landmarks)}."
            )
        return landmarks

    def _schedule(
        self, rows: Rows, space: LandmarkSpace, start: Start | Seeding
    ) -> Schedule:
        """Return how to iterate, after a check that the work fits in memory."""
        restarts = self._restarts(start)
        progressive = self.algorithm == "progressive" and not _given(self.kernel_)
        sizes = subsample_sizes(len(rows), self.n_clusters) if progressive else []
        sample = sizes[-1] if sizes and not isinstance(start, Start) else 0
        need = _memory_need(rows, space, self.n_clusters, restarts, sample)
        budget = memory_budget(self.max_memory)
        if need > budget:
            raise MemoryError(
                f"{space.n_coordinates:,} landmarks on {len(rows):,} rows of "
                f"{rows.n_features:,} features need {format_bytes(need)}; max_memory "
                f"allows {format_bytes(budget)}. Lower n_landmarks or n_jobs, or raise "
                "max_memory."
            )
        return Schedule(restarts, self.max_iter, self.tol, budget - need, progressive)

    def _space(self, workers: Workers) -> LandmarkSpace:
        dtype = as_rows(self.landmarks_, workers).dtype
        if _given(self.kernel_):
            dtype = np.dtype(np.float64)
        return LandmarkSpace(self.kernel_, self.landmarks_, dtype, workers)

    def _centers(self) -> Centers:
        return Centers(self.dual_coef_.T[None], self._squared_norms[None])


def _given(kernel: Kernel) -> bool:
    return isinstance(kernel, Precomputed)


def _symmetric(K: Block) -> Array:
    """Return a given kernel matrix, if it is one."""
    K = np.asarray(K.toarray() if hasattr(K, "toarray") else K)
    scale = float(np.abs(K).max(initial=0.0))
    worst = max(
        float(np.abs(K[i : i + 512] - K[:, i : i + 512].T).max())
        for i in range(0, len(K), 512)
    )
    if worst > 1e-4 * scale:
        raise ValueError(
            f"The precomputed kernel matrix should be symmetric; entries differ from "
            f"their mirror image by up to {worst:.3g}."
        )
    return K


def _submatrix(rows: Rows, landmarks: Landmarks) -> Array:
    """Return k(Z, Z) out of a given kernel matrix, in float64."""
    numbers = np.asarray(landmarks.indices)
    chosen = rows.take(numbers)[:, numbers]
    K = np.asarray(chosen.toarray() if rows.is_sparse else chosen, dtype=np.float64)
    return 0.5 * (K + K.T)


def _given_centers(
    engine: BlockEngine, start: Start, kernel: Kernel, n_clusters: int
) -> Centers:
    """Return the centres of a start that the user gave."""
    if start.indices is not None:
        return engine.centers_at(start.indices[None])
    if start.labels is not None:
        return engine.centers_of_partition(start.labels, n_clusters)
    points = start.checked_points(engine.rows, kernel)
    return engine.centers_of_means(engine.space.coordinates(points)[None])


def _memory_need(
    rows: Rows, space: LandmarkSpace, k: int, restarts: int, sample: int
) -> int:
    """Return the bytes that a fit uses at its peak, without stored kernel values."""
    m, d, size = space.n_coordinates, rows.n_features, rows.dtype.itemsize
    seeded = sample or len(rows)
    algebra = 3 * m * m * 8  # k(Z, Z), its copy in the solver, the eigenvectors
    threads = rows.workers.n_jobs * space.height * (2 * m + 2 * d + 4 * k * restarts)
    sums = 4 * restarts * k * m * 8
    labels = len(rows) * 12 + seeded * restarts * 12
    seeding = seeded * (2 * restarts + 2) * 8
    return (
        algebra
        + threads * size
        + sums
        + labels
        + seeding
        + sample * d * rows.X.dtype.itemsize
    )
