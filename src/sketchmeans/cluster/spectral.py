"""Spectral clustering at the speed of landmarks."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.metadata_routing import UNUSED

from sketchmeans.cluster.base import Clusterer
from sketchmeans.cluster.cuts import CutSearch, weigh_graph
from sketchmeans.cluster.placement import (
    MOST_CLUSTERS,
    draw_sample,
    landmark_sizes,
    place_landmarks,
    plan_graph_memory,
    try_scales,
    weigh_by_degree,
)
from sketchmeans.cluster.remote import check_possible
from sketchmeans.cluster.resume import (
    check_checkpoint,
    load_or_draw_seed,
    open_saved_fit,
)
from sketchmeans.cluster.saved_graph import (
    FoundGraph,
    load_or_find_graph,
    load_or_weigh_graph,
)
from sketchmeans.cluster.scales import choose_scale, relative_gaps
from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.input import check_labels_path, write_labels
from sketchmeans.data.rows import Rows, float_type
from sketchmeans.engine.blocks import local_engine, new_engine
from sketchmeans.engine.callbacks import with_callbacks
from sketchmeans.engine.progress import Progress
from sketchmeans.engine.types import Centers
from sketchmeans.graphs.nearest import NearestPoints
from sketchmeans.graphs.space import GraphSpace
from sketchmeans.graphs.spectrum import smallest_eigenvalues
from sketchmeans.graphs.weights import (
    GaussianGraph,
    GivenGraph,
    Graph,
    NeighborGraph,
)
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    all_or_nothing,
    as_generator,
    check_flag,
    check_integer_or,
    check_number,
    check_option,
    is_auto,
)

#: Restarts of k-means on the landmarks.
_RESTARTS = 12

#: Eigenvalues after those of the clusters, to look at.
_MORE_VALUES = 6

AFFINITIES = ("nearest-landmarks", "rbf", "precomputed")


@dataclass(eq=False, repr=False)
class SpectralKMeans(Clusterer):
    """Spectral clustering: clusters of any shape, by normalised cuts of a graph.

    Each row is connected to its s nearest landmarks, with weights z that add up to one;
    ``K = Z Λ⁻¹ Zᵀ`` is a graph between all rows that is never formed.  The eigenvectors
    of its Laplacian, from a sparse p × p matrix, give a partition of the landmarks, and
    weighted kernel k-means on the rows of Z lowers its normalised cut.  New rows are
    labelled by the same map.  Costs n·p·d (less by a tree where d is small) and n·s·k
    for each pass; memory n·s where it fits `max_memory`.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters k.  "auto" takes the number before the largest relative gap
        between eigenvalues: a hint, see `eigengaps_`.
    affinity : {"nearest-landmarks", "rbf", "precomputed"}, default="nearest-landmarks"
        How rows are connected: to their nearest landmarks, with self-tuned weights; to
        all landmarks, by ``exp(−gamma ‖x − l‖²)``; or X is an n × n graph of
        non-negative weights, best sparse, of which two steps at a time are taken.
    gamma : float or "auto", default="auto"
        Bandwidth of "rbf"; "auto" tries 1 to 100 times one over twice the mean squared
        distance.
    n_landmarks : int or "auto", default="auto"
        Number of landmarks p.  "auto" tries 0.4 and 0.75 of the rows, at most 1,066 and
        2,000; for "rbf" at most 400.
    n_neighbors : int or "auto", default="auto"
        Landmarks s that a row is connected to.  "auto" tries 4 to 20 on a sample and
        keeps the one with the clearest clusters; see `scale_path_`.
    whiten : bool or "auto", default="auto"
        Whether distances are those of rows whose covariance is made the identity, as
        long, thin groups side by side need it.  "auto" tries both for up to 64 dense
        columns, hardly any of them codes of categories, and keeps the one with the
        clearer clusters.
    n_init : int or "auto", default="auto"
        Restarts of k-means on the landmarks; "auto" is 12.
    max_iter : int, default=300
        Maximum number of passes over all rows.
    tol : float, default=1e-4
        Relative drop of the cut over a pass at which passes stop; at 0 they go on
        until no label changes.
    max_memory : int, str or None, default=None
        Bytes, or a string such as "2GB", that the fit may use beyond its input; None
        is half of what is free.  It never changes the result.
    n_jobs : int or None, default=None
        Threads; None is every core that the process may use, 1 in a joblib worker.
        It never changes the result.
    verbose : int, default=0
        1 prints one line per stage, 2 one line per iteration.
    random_state : int, Generator, RandomState or None, default=None

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row.
    n_clusters_ : int
        Number of clusters.
    ncut_ : float
        The normalised cut of the clusters: the sum, over clusters, of the share of
        their edges that leave them; from 0 to k - 1.
    ncut_bound_ : float
        ``Σ μ_i``, the sum of the k smallest eigenvalues: no partition into k clusters
        has a smaller cut.
    eigenvalues_ : ndarray of shape (k + 6,), or p
        Smallest eigenvalues of the graph's Laplacian, ascending, from 0.
    eigengaps_ : ndarray
        Entry k is the largest relative gap after k eigenvalues of all scales that were
        tried on the sample: large where k clusters are clear, and near the largest
        where another number would be as plausible.
    n_neighbors_, gamma_ : int and float, or None
        The number of neighbours s, or the bandwidth.
    scale_path_ : ScalePath
        Landmarks and neighbours, or bandwidths, that were tried on a sample.
    landmarks_ : ndarray or CSR matrix of shape (p, d), or None
        The landmarks: centroids of rows.
    whitening_ : ndarray of shape (d, r), or None
        Distances are those of ``X @ whitening_``.
    dual_coef_ : ndarray of shape (p, k)
        Coefficients α of the centres: a row belongs to the cluster j with the largest
        ``2 z·α_j − ‖c_j‖²``.
    cost_, inertia_, cost_path_
        Mean and sum of squared distances in the feature space of K, and after each
        pass; the cut is a constant less.
    n_iter_, converged_
        Passes over all rows, and whether they met `tol`.
    cluster_sizes_ : ndarray of shape (k,)
        Weight of each cluster.
    exemplar_indices_, exemplars_
        The row of each cluster that is nearest to its centre.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NystromKMeans : Kernel k-means, for round clusters of any number.

    References
    ----------
    Dhillon, Guan & Kulis, "Weighted graph cuts without eigenvectors", PAMI 2007.
    Zelnik-Manor & Perona, "Self-tuning spectral clustering", NIPS 2004.
    Liu, He & Chang, "Large graph construction for scalable semi-supervised learning",
    ICML 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sketchmeans import SpectralKMeans
    >>> X, y = make_moons(1000, noise=0.06, random_state=0)
    >>> model = SpectralKMeans(2, random_state=0).fit(X)
    >>> sorted(model.cluster_sizes_)
    [np.float64(500.0), np.float64(500.0)]
    """

    _takes_dask = True

    #: Paths of files belong to one call; they are not metadata to route.
    __metadata_request__fit = {"checkpoint": UNUSED, "labels_out": UNUSED}  # noqa: RUF012

    n_clusters: int | str = 8  # type: ignore[assignment]  # also "auto"
    _: KW_ONLY
    affinity: str = "nearest-landmarks"
    gamma: float | str = "auto"
    n_landmarks: int | str = "auto"
    n_neighbors: int | str = "auto"
    whiten: bool | str = "auto"
    n_init: int | str = "auto"
    max_iter: int = 300
    tol: float = 1e-4
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
            With ``affinity="precomputed"``: the n × n graph.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows.
        checkpoint : str, PathLike or Checkpoint, optional
            A file from which the same call resumes: see `NystromKMeans.fit`.
        labels_out : str or PathLike, optional
            A .npy file for the labels, of which ``labels_`` is then a memory map.
        """
        check_possible(self, X, labels_out)
        check_labels_path(labels_out)
        check_checkpoint(self, checkpoint)
        self._check_params()
        with Workers(self.n_jobs) as workers:
            rows = self._training_rows(X, sample_weight, workers)
            check_labels_path(labels_out, len(rows))
            rows.persist(self.max_memory)
            saved = open_saved_fit(self, checkpoint, rows)
            rngs = as_generator(load_or_draw_seed(self, saved)).spawn(3)
            rows, shares = weigh_by_degree(rows) if self._is_given else (rows, None)
            sizes = landmark_sizes(self, rows)
            budget = plan_graph_memory(self, rows, sizes)
            progress = Progress(self, self.verbose)
            n_init = _RESTARTS if is_auto(self.n_init) else int(self.n_init)
            search = CutSearch(n_init, self.max_iter, self._tolerance, progress)
            find = partial(self._find_graph, rows, shares, sizes, search, *rngs[:2])
            found = load_or_find_graph(saved, rows, shares, find)
            space, k = GraphSpace(found.graph), found.n_clusters
            engine = (
                local_engine(rows, space, budget, many_passes=True)
                if find_adapter(rows) is None
                else new_engine(rows, space, budget)
            )
            with progress.step("spectrum"):
                weigh = partial(weigh_graph, engine)
                gram = load_or_weigh_graph(saved, found.graph.n_columns, weigh)
                space.weigh(np.asarray(gram.sum(axis=1)).ravel())
                spectrum = smallest_eigenvalues(gram, k + _MORE_VALUES)
            with progress.stage(f"all {len(rows):,} rows", self.max_iter) as on_pass:
                cut = search.run(engine, gram, spectrum, k, rngs[2], on_pass, saved)
            result = engine.place_labels(cut.result)
            exemplars = engine.exemplars(result.centers, result.labels)
            progress.finish()
        if saved is not None:
            saved.warn_if_unsaved()
        self._store_graph(found.graph, shares)
        self.n_clusters_ = k
        self.scale_path_, self.eigengaps_ = found.path, found.gaps
        self.eigenvalues_ = spectrum.values
        self.ncut_, self.ncut_bound_ = cut.ncut, cut.bound
        self._masses = np.asarray(gram.sum(axis=1)).ravel()
        self.dual_coef_ = np.ascontiguousarray(result.centers.coefficients[0].T)
        self._squared_norms = result.centers.squared_norms[0]
        if not self._is_given:
            self.exemplars_ = rows.take(exemplars)
        self._store(rows, result, exemplars)
        # The unit of the weights is in w and in K⁻¹: sums do not depend on it.
        self.inertia_ = result.cost * rows.total_weight
        if labels_out is not None:
            self.labels_ = write_labels(self.labels_, labels_out)
        return self

    def _find_graph(
        self,
        rows: Rows,
        shares: Array | None,
        sizes: list[int],
        search: CutSearch,
        landmark_rng: np.random.Generator,
        scale_rng: np.random.Generator,
    ) -> FoundGraph:
        """Return the graph that has the clearest clusters on a sample."""
        progress = search.progress
        with progress.step("landmarks"):
            sample = draw_sample(rows, sizes[-1], landmark_rng)
            sets = place_landmarks(self, sample, sizes, landmark_rng)
        with progress.step("graphs"):
            tried = try_scales(self, sample, sets, shares, scale_rng)
        gaps = relative_gaps(tried)
        k = self._count_clusters(gaps)
        with progress.step("scale"):
            scale, path = choose_scale(tried, search, k, scale_rng)
        return FoundGraph(scale.graph, path, gaps, k)

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Return minus the sum of squared distances in the feature space of K."""
        total, _ = self._total_cost(X, sample_weight)
        return -total

    def _check_n_clusters(self) -> None:
        if not is_auto(self.n_clusters):
            super()._check_n_clusters()

    def _check_params(self) -> None:
        super()._check_params()
        check_option("affinity", self.affinity, AFFINITIES)
        check_integer_or("auto", "n_landmarks", self.n_landmarks)
        check_integer_or("auto", "n_neighbors", self.n_neighbors, low=2)
        if not is_auto(self.whiten):
            check_flag("whiten", self.whiten)
        if not is_auto(self.gamma) and not check_number("gamma", self.gamma):
            raise ValueError(f"gamma={self.gamma!r} should be positive, or 'auto'.")

    @property
    def _is_given(self) -> bool:
        return self.affinity == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_given
        return tags

    def _count_clusters(self, gaps: Array) -> int:
        if not is_auto(self.n_clusters):
            return int(self.n_clusters)
        if len(gaps) < 3:
            return 1
        return int(np.argmax(gaps[: MOST_CLUSTERS + 1]))

    def _store_graph(self, graph: Graph, shares: Array | None) -> None:
        """Keep what connects new rows to the landmarks."""
        self.landmarks_ = self.n_neighbors_ = self.gamma_ = None
        self._scales, self._shares, self.whitening_ = None, shares, None
        if isinstance(graph, NeighborGraph):
            self.landmarks_ = graph.nearest.points
            self.whitening_ = graph.nearest.whitening
            self.n_neighbors_, self._scales = graph.n_neighbors, graph.scales
        elif isinstance(graph, GaussianGraph):
            self.landmarks_, self.gamma_ = graph.points, graph.gamma

    def _graph(self) -> Graph:
        if self.landmarks_ is None:
            return GivenGraph(len(self._masses), self._shares)
        if self.gamma_ is not None:
            return GaussianGraph(self.landmarks_, self.gamma_)
        dtype = float_type(self.landmarks_.dtype)
        nearest = NearestPoints(self.landmarks_, dtype, self.whitening_)
        assert self._scales is not None
        assert self.n_neighbors_ is not None
        return NeighborGraph(nearest, self._scales, self.n_neighbors_)

    def _space(self, rows: Rows) -> GraphSpace:
        return GraphSpace(self._graph(), self._masses)

    def _centers(self, space: Any) -> Centers:
        none = np.empty((1, len(self._squared_norms), 0))
        return Centers(self.dual_coef_.T[None], self._squared_norms[None], none)
