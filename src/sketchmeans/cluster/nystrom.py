"""Nyström kernel k-means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if

from sketchmeans.cluster.batches import add_batch, forget_earlier
from sketchmeans.cluster.choice import select_landmarks
from sketchmeans.cluster.kernel import KernelClusterer, as_precise
from sketchmeans.cluster.remote import check_possible
from sketchmeans.cluster.resume import (
    check_checkpoint,
    load_or_draw_seed,
    load_or_select_landmarks,
    open_saved_fit,
)
from sketchmeans.cluster.search import search_clusters
from sketchmeans.data.input import check_labels_path, write_labels
from sketchmeans.data.rows import IN_MEMORY_BYTES, Block, Rows
from sketchmeans.engine.callbacks import with_callbacks
from sketchmeans.engine.progress import Progress
from sketchmeans.engine.space import (
    LandmarkSpace,
    SpanSpace,
    origin,
)
from sketchmeans.engine.starts import read_start
from sketchmeans.engine.types import LloydResult
from sketchmeans.kernels import Kernel, is_given, kernel_of
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    all_or_nothing,
    as_generator,
    check_integer_or,
    check_option,
)
from sketchmeans.reduction import (
    Reducer,
    as_reducer,
    fit_reducer,
    reduce_rows,
    shift_rows,
)


def _has_rows(model: NystromKMeans) -> bool:
    """Say whether there can be a second batch; not if kernel values are given."""
    return not model.__sklearn_tags__().input_tags.pairwise


@dataclass(eq=False, repr=False)
class NystromKMeans(KernelClusterer):
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
    gamma : float, "mean", "median", "scale" or "auto", default="mean"
        Bandwidth of the rbf, laplacian, polynomial, sigmoid and chi2 kernels;
        "mean" is one over twice the mean squared distance for rbf; "auto" takes a
        narrower one where clusters of a sample, in few dimensions, allow it.
    degree, coef0 : float, default=3 and 1
        Of the polynomial and sigmoid kernels; of these and `gamma`, what the kernel
        does not have is left out with a warning.
    kernel_params : dict, optional
        More keyword arguments of the kernel.
    n_landmarks : int or "auto", default="auto"
        Number of landmarks m.  "auto" doubles it, from √(nk)/8 or 10k, to at most
        4√(nk) or 4,000, until a sample of the rows shows that twice as many would lower
        the cost by less than 0.5%; see `landmark_path_`.
    landmarks : str, LandmarkSelector or array, default="uniform"
        How landmarks are chosen: "uniform", "diagonal", "column-norm", "leverage",
        "ridge-leverage", "bless", "k-dpp", "kmeans", "k-means++", "greedy", "cholesky",
        "rpcholesky" or a selector object (see `sketchmeans.landmarks`); or points
        (m, d), or row numbers (m,).
    reducer : str, transformer or None, default=None
        Reduce the features first, so that n·m·d becomes n·m·r: "svd", "sign",
        "sampling", "laplacian" or a transformer (`ApproximateSVD`, `SignProjection`,
        ...).  Rows are reduced block by block as they are read, here and in `predict`;
        the result is that of a Pipeline.  Its `fit` is given the weights of the rows if
        it has a `sample_weight`.
    rank : int or None, default=None
        Keep at most this many eigen-directions of ``k(Z, Z)``.
    init : str, Seeding or array, default="auto"
        "random", "k-means++", "greedy-k-means++", "k-means||", "local-search"; or
        points (k, d), row numbers (k,) or an initial partition (n,).  "auto" is greedy
        k-means++ up to 300 clusters, and k-means|| above.
    n_init : int or "auto", default="auto"
        Restarts.  They run side by side and race on the subsamples: the worse half is
        dropped again and again.  "auto" is 12, the best of which is improved by swaps
        of centres for rows far from all centres; or 1 from a given start.
    max_iter : int, default=300
        Maximum number of passes in each stage.
    tol : float or "auto", default="auto"
        Relative drop of the cost over a pass at which Lloyd's algorithm stops; "auto"
        is 1e-4 up to 100 clusters, and k times 1e-6 above.
    algorithm : {"progressive", "full"}, default="progressive"
        "progressive" seeds and iterates on nested subsamples first, then makes full
        passes until `tol` holds on all rows; a given start goes to full passes at
        once.  "full" does everything on all rows.
    max_memory : int, str or None, default=None
        Bytes, or a string such as "2GB", that the fit may use beyond its input; None
        is half of what is free.  It never changes the result.  On a Dask cluster it
        is for the client; workers keep what fits in half of their free memory.
    n_jobs : int or None, default=None
        Threads; None is every core that the process may use, 1 in a joblib worker.
        It never changes the result.
    verbose : int, default=0
        1 prints one line per stage, 2 one line per iteration.
    random_state : int, Generator, RandomState or None, default=None

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row; a lazy Dask array after a fit on a Dask collection.
    cost_ : float
        ``W``, the mean squared distance in feature space.
    inertia_ : float
        The weighted sum of squared distances.
    cost_path_ : ndarray of shape (n_iter,)
        ``W`` after each pass over all rows.
    n_iter_, converged_
        Passes over all rows, and whether they met `tol`.
    cluster_sizes_ : ndarray of shape (k,)
        Weight of each cluster.
    exemplar_indices_, exemplars_
        The row of each cluster that is nearest to its centre: its number, and the
        row itself (not for a precomputed kernel).
    landmarks_ : ndarray or CSR matrix of shape (m, d)
        The landmarks; for a precomputed kernel their row numbers, of shape (m, 1),
        behind a reducer their reduced features.
    landmark_indices_ : ndarray of shape (m,) or None
        Their row numbers, if they are rows.
    landmark_path_ : LandmarkPath or None
        For ``n_landmarks="auto"`` the sizes that were tried with uniform landmarks,
        and the cost and residual trace that they were estimated to have.
    dual_coef_ : ndarray of shape (m, k)
        Centroid j is ``Σ_i dual_coef_[i, j] φ(z_i)``.
    rank_ : int
        Eigen-directions of ``k(Z, Z)`` that are kept.
    reducer_ : transformer or None
        The fitted reducer.
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

    _takes_dask = True

    #: Paths of files belong to one call; they are not metadata to route.
    __metadata_request__fit = {"checkpoint": UNUSED, "labels_out": UNUSED}  # noqa: RUF012

    n_clusters: int = 8
    _: KW_ONLY
    kernel: str | Kernel | Callable[..., float] = "rbf"
    gamma: Gamma = "mean"
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None
    n_landmarks: int | str = "auto"
    landmarks: Any = "uniform"
    reducer: Any = None
    rank: int | None = None
    init: Any = "auto"
    n_init: int | str = "auto"
    max_iter: int = 300
    tol: float | str = "auto"
    algorithm: str = "progressive"
    max_memory: float | str | None = None
    n_jobs: int | None = None
    verbose: int = 0
    random_state: Any = None

    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: None = None,
        sample_weight: Any = None,
        *,
        checkpoint: Any = None,
        labels_out: Any = None,
    ) -> Self:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like, sparse matrix, path, `Source` or Dask collection, shape (n, d)
            With ``kernel="precomputed"``: the n × n kernel matrix.  A Dask array or
            dataframe stays on its workers, which make the passes over all rows.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows.
        checkpoint : str, PathLike or Checkpoint, optional
            A file in which the fit leaves what it has done, after each stage and every
            two minutes.  The same call resumes from it and ends with the same labels
            as an undisturbed fit; a file of another fit is refused, after a pass over
            all rows that compares a digest of them.  Parameters that are code cannot be
            compared and are refused.  If the file cannot be written, a warning says so
            and the fit goes on.  It stays when the fit is done.
        labels_out : str or PathLike, optional
            A .npy file for the labels, which replaces one of that name when the fit is
            done; ``labels_`` is then a read-only memory map of it.
        """
        check_possible(self, X, labels_out)
        check_labels_path(labels_out)
        check_checkpoint(self, checkpoint)
        self._check_params()
        with Workers(self.n_jobs) as workers:
            original = self._training_rows(X, sample_weight, workers)
            check_labels_path(labels_out, len(original))
            original.persist(self.max_memory)
            saved = open_saved_fit(self, checkpoint, original)
            rngs = as_generator(load_or_draw_seed(self, saved)).spawn(5)
            kernel_rng, landmark_rng, cluster_rng, sketch_rng, growth_rng = rngs
            start = read_start(self.init, len(original), self.n_clusters)
            progress = Progress(self, self.verbose)
            with progress.step("kernel"):
                reducer, shift, rows = self._reduce(original, sketch_rng)
                kernel = self._resolved_kernel(rows, kernel_rng)
            with progress.step("landmarks"):
                both = landmark_rng, growth_rng
                choose = partial(select_landmarks, self, rows, kernel, *both)
                landmarks, path = load_or_select_landmarks(saved, rows, kernel, choose)
            search = partial(search_clusters, self, kernel, start, saved)
            found = search(cluster_rng, progress, rows, landmarks)
            if not found.is_sound and rows.dtype == np.float32 and not is_given(kernel):
                # The distances are rounding: start again with more digits.
                wide = found.landmarks.points.astype(np.float64)
                landmarks = replace(found.landmarks, points=wide)
                found = search(cluster_rng, progress, rows.in_float64(), landmarks)
            landmarks, result = found.landmarks, found.result
            exemplars = found.engine.exemplars(
                result.centers, result.labels, result.distances
            )
            found.engine.release()  # before labels are copied
            progress.finish()
        if saved is not None:
            saved.warn_if_unsaved()
        self._warn_of_rounding(result, found.is_sound)
        forget_earlier(self)
        self.landmarks_ = as_precise(landmarks.points, rows.dtype)
        self.landmark_indices_ = landmarks.indices
        self.landmark_path_ = path
        self.rank_ = found.space.rank
        self.reducer_ = reducer
        if shift is not None:
            self._shift = shift
        self._store_kernel(kernel, original, exemplars)
        self._store_centers(found.space, result)
        self._store(original, result, exemplars)
        if labels_out is not None:
            self.labels_ = write_labels(self.labels_, labels_out)
        return self

    @available_if(_has_rows)
    def partial_fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Take in one batch of rows.

        The first batch is clustered by `fit`: it gives the bandwidth, the landmarks and
        the start, unless these are given, and should be like the rest and of at least
        some thousand rows.  Every later batch is assigned to the centres as they are,
        and its rows are added to the running means.  After `fit`, this goes on from
        there.

        ``labels_``, ``cost_`` and the exemplars are of the last batch, ``cost_path_``
        grows by one cost a batch, and ``cluster_sizes_`` counts all rows so far.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n, d)
        y : ignored
        sample_weight : array-like of shape (n,), optional
        """
        if not hasattr(self, "dual_coef_"):
            return self.fit(X, sample_weight=sample_weight)
        return add_batch(self, X, sample_weight)

    def _reduce(
        self, rows: Rows, rng: np.random.Generator
    ) -> tuple[Any, Array | None, Rows]:
        """Return the fitted reducer, where rows are taken about, and the reduced rows.

        A sketch of rows that are far from zero is one of their offset, and little else.
        """
        if self.reducer is None:
            return None, None, rows
        if self.__sklearn_tags__().input_tags.pairwise:
            raise ValueError(
                f"reducer={self.reducer!r} should be None with kernel='precomputed': "
                "there are no features to reduce."
            )
        reducer, shift = (
            as_reducer(self.reducer, self.n_clusters, rng, self.n_jobs),
            None,
        )
        if isinstance(reducer, Reducer) and kernel_of(self).shift_invariant:
            shift = origin(rows)
            shift = shift if shift.any() else None
        names = getattr(self, "feature_names_in_", None)
        shifted = shift_rows(rows, shift)
        view = fit_reducer(reducer, shifted, names, self.max_memory)
        if view.load_memory <= IN_MEMORY_BYTES:  # the data alone decide
            view.hold()
        return reducer, shift, view

    def _view(self, rows: Rows) -> Rows:
        if self.reducer_ is None:
            return rows
        shift = getattr(self, "_shift", None)
        return reduce_rows(shift_rows(rows, shift), self.reducer_)

    def _check_params(self) -> None:
        super()._check_params()
        check_option("algorithm", self.algorithm, ("progressive", "full"))
        check_integer_or("auto", "n_landmarks", self.n_landmarks)
        check_integer_or(None, "rank", self.rank)

    def _store_centers(self, space: SpanSpace, result: LloydResult) -> None:
        centers = result.centers
        self.dual_coef_ = space.dual_coefficients(centers.coefficients[0])
        self._squared_norms = centers.squared_norms[0]
        self.__dict__.pop("_means", None)
        if isinstance(space, LandmarkSpace):
            self._means = centers.means[0]  # where `partial_fit` goes on

    def _span_points(self) -> Block:
        return self.landmarks_
