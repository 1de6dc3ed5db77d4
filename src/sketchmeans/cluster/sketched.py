"""k-means on sketched features, plugged back into the original space."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from sketchmeans.cluster.base import Clusterer
from sketchmeans.cluster.distinct import labels_of_distinct_rows
from sketchmeans.cluster.memory import centers_need
from sketchmeans.cluster.search import find_elsewhere
from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import Rows
from sketchmeans.engine.audit import audit_result
from sketchmeans.engine.blocks import BlockEngine, new_engine
from sketchmeans.engine.callbacks import with_callbacks
from sketchmeans.engine.directions import DIRECTION_ROWS, DIRECTIONS
from sketchmeans.engine.init import Seeding
from sketchmeans.engine.progress import Progress
from sketchmeans.engine.restarts import Schedule, Search
from sketchmeans.engine.space import InputSpace
from sketchmeans.engine.starts import Start, read_centers
from sketchmeans.engine.types import Centers, LloydResult, side_by_side
from sketchmeans.kernels import squared_distances_among
from sketchmeans.numerics.memory import plan_memory
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    all_or_nothing,
    as_generator,
    check_integer,
    is_auto,
)
from sketchmeans.reduction import ApproximateSVD, as_reducer, fit_reducer, shift_rows

#: Restarts that go on in the original space, and passes until one is left.
_FINALISTS, _PLAYOFF_PASSES = 3, 3

#: Products of numbers in a pass for which a sketch is not worth its loss.
_SMALL_WORK = 2e8

#: Clusters of all restarts that go on there.
_CLUSTERS_REFINED = 150


@dataclass(eq=False, repr=False)
class SketchedKMeans(Clusterer):
    """k-means that looks for the partition in a few sketched features (B14).

    The rows are reduced to r features, clustered there, and the partition is plugged
    back: a centre is the mean of the *original* rows of its cluster.  If the sketch
    keeps the objective ``W = 1/n Σ_x min_j ‖x − c_j‖²`` within a factor (B14 Theorems
    11-13), so does the partition.
    Up to `refine_max_iter` Lloyd iterations in the original space follow.  Costs the
    sketch, n·r·k for each pass on it, n·d to plug back, and at most n·d·k for each pass
    that refines it, of which all but the first look only at rows near a border.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters k.
    reducer : str, transformer or None, default="auto"
        "svd" (`ApproximateSVD`), "sign" (`SignProjection`), "sampling"
        (`FeatureSampling`), "laplacian" (`LaplacianScore`), or a transformer of your
        own; it is cloned, and its `n_clusters`, if it has one, is set to k.  Its `fit`
        is given the weights of the rows if it has a `sample_weight`.  None is plain
        k-means; "auto" is "svd" where it saves time, and None elsewhere.
    refine_max_iter : int, default=300
        Maximum number of Lloyd passes in the original space; they stop at `tol`.  0
        returns the partition of the sketch, as in the paper.
    init : str, Seeding, array or callable, default="auto"
        How centres start: "random", "k-means++", "greedy-k-means++", "k-means||" or
        "local-search"; "auto" is greedy k-means++ up to 300 clusters, and k-means||
        above.  Or centres (k, d), or a function ``init(X, n_clusters, random_state)``
        that returns some, as in scikit-learn's KMeans: "auto" makes no sketch then.
    n_init : int or "auto", default="auto"
        Restarts on the sketch; the best three are compared in the original space.
        "auto" is 12, the best of which is improved by swaps of centres for rows far
        from all centres.
    max_iter : int, default=300
        Maximum number of passes in each stage on the sketch.
    tol : float or "auto", default="auto"
        Relative drop of the cost over a pass at which Lloyd's algorithm stops; "auto"
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
        Cluster of each row.  With ``refine_max_iter=0`` it may not be that of the
        nearest centre.
    cluster_centers_ : ndarray of shape (k, d)
        Centres in the original space.
    inertia_ : float
        The objective in the original space: sum of squared distances of the rows to
        the centre of their cluster.
    cost_ : float
        The same as a mean.
    cost_path_ : ndarray
        ``cost_`` of the partition of the sketch, then after each pass that refines it.
    n_iter_, converged_
        Passes over all rows, on the sketch and in the original space; whether the last
        stage met `tol`.
    cluster_sizes_ : ndarray of shape (k,)
        Weight of each cluster.
    exemplar_indices_, exemplars_
        The row of each cluster that is nearest to its centre.
    reducer_ : transformer or None
        The fitted reducer.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    B14: Boutsidis, Zouzias, Mahoney & Drineas, "Randomized dimensionality reduction for
    k-means clustering", IEEE Transactions on Information Theory, 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sketchmeans import SketchedKMeans
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SketchedKMeans(10, random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (10, 64)
    """

    _takes_dask = True

    n_clusters: int = 8
    _: KW_ONLY
    reducer: str | BaseEstimator | None = "auto"
    refine_max_iter: int = 300
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
        X : array-like, sparse matrix, path, `Source` or Dask collection, shape (n, d)
            A Dask array or dataframe stays on its workers, and so does its sketch.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows.
        """
        self._check_params()
        check_integer("refine_max_iter", self.refine_max_iter, low=0)
        rngs = as_generator(self.random_state).spawn(3)
        sketch_rng, cluster_rng, start_rng = rngs
        with Workers(self.n_jobs) as workers:
            rows = self._training_rows(X, sample_weight, workers)
            # Before the first pass, and before a sketch: centres may be too wide.
            self._plan(rows, centers_need(rows, self.n_clusters, 1))
            rows.persist(self.max_memory)
            rows.widen_for(rows.moments().variance)
            space = InputSpace.of(rows, self.n_clusters)
            start = read_centers(
                self.init, rows, self.n_clusters, self.n_init, start_rng
            )
            reducer = self._make_reducer(rows, isinstance(start, Start), sketch_rng)
            progress = Progress(self, self.verbose)
            find: Any = self._find_on_rows
            if reducer is not None:
                find = partial(self._find_on_sketch, reducer)
            engine, result, search, passes = find(
                rows, space, start, progress, cluster_rng
            )
            if reducer is None or self.refine_max_iter:
                result = search.rescue_far_rows(engine, result, cluster_rng)
            result, is_sound = audit_result(engine, result)
            exemplars = engine.exemplars(
                result.centers, result.labels, result.distances
            )
            engine.release()  # before labels are copied
            progress.finish()
        self._warn_of_rounding(result, is_sound)
        self.reducer_ = reducer
        means = space.centers(result.centers.coefficients[0])
        self.cluster_centers_ = means.astype(rows.dtype)
        self._shift = space.shift
        self.exemplars_ = rows.take(exemplars)
        is_refined = reducer is not None and self.refine_max_iter > 0
        limit = "refine_max_iter" if is_refined else "max_iter"
        self._store(rows, result, exemplars, limit)
        self.n_iter_ = passes + result.n_iter
        if isinstance(start, Start) and reducer is None:
            # Rows are assigned once more after the last update of given centres.
            self.n_iter_ = min(self.n_iter_, self.max_iter)
        return self

    def _find_on_rows(
        self,
        rows: Rows,
        space: InputSpace,
        start: Start | Seeding,
        progress: Progress,
        rng: np.random.Generator,
    ) -> tuple[BlockEngine, LloydResult, Search, int]:
        """Return engine, result and search of plain k-means, and no further passes."""
        schedule = self._schedule(rows, rows, 0, start, n_final=1)
        search = Search(schedule, squared_distances_among, progress)
        engine, (result, *_) = _find(search, rows, space, start, self.n_clusters, rng)
        return engine, result, search, 0

    def _find_on_sketch(
        self,
        reducer: Any,
        rows: Rows,
        space: InputSpace,
        start: Start | Seeding,
        progress: Progress,
        rng: np.random.Generator,
    ) -> tuple[BlockEngine, LloydResult, Search, int]:
        """Return engine, result and search, and the passes on the sketch."""
        k = self.n_clusters
        with progress.step("sketch"):
            names = getattr(self, "feature_names_in_", None)
            shifted = shift_rows(rows, space.shift)
            view = fit_reducer(reducer, shifted, names, self.max_memory)
            width = view.n_features * view.dtype.itemsize
            schedule = self._schedule(view, rows, width, start, _FINALISTS)
            sketch = view.load()
        search = Search(schedule, squared_distances_among, progress)
        if isinstance(start, Start):
            assert start.points is not None
            flat = start.points.reshape(-1, rows.n_features)
            few = view.points(flat).reshape(*start.points.shape[:-1], -1)
            start = Start(points=few)
        inner = InputSpace.of(sketch, k)
        found = _find(search, sketch, inner, start, k, rng)[1][: schedule.n_final]
        engine = new_engine(rows, space)
        with progress.step("original space"):
            # What is best on the sketch need not be best in the original space.
            plugged = _plugged_back(engine, found, k)
        result, best = self._refine(engine, plugged, search)
        return engine, result, search, found[best].n_iter - 1

    def _make_reducer(
        self, rows: Rows, is_started: bool, rng: np.random.Generator
    ) -> Any:
        """Return the reducer that is to be fitted, or None.

        Centres that are given lie among the rows themselves.
        """
        reducer = self.reducer
        if is_auto(reducer):
            width = min(self.n_clusters, DIRECTIONS)
            work = len(rows) * rows.n_features * self.n_clusters
            if is_started or 2 * width > rows.n_features or work < _SMALL_WORK:
                return None
            reducer = ApproximateSVD(width, fit_rows=DIRECTION_ROWS)
        if reducer is None:
            return None
        return as_reducer(reducer, self.n_clusters, rng, self.n_jobs)

    def _refine(
        self, engine: BlockEngine, left: list[LloydResult], search: Search
    ) -> tuple[LloydResult, int]:
        """Return the best of some partitions after passes in the original space.

        All but the best are dropped after a few passes.  Also returns its number.
        """
        best = int(np.argmin([result.cost for result in left]))
        if not self.refine_max_iter:
            return left[best], best
        spent, is_done = 0, False
        while spent < self.refine_max_iter and not is_done:
            passes = self.refine_max_iter - spent
            if len(left) > 1:
                passes = min(passes, _PLAYOFF_PASSES)
            schedule = Schedule(len(left), passes, self._tolerance, 0)
            centers = side_by_side([result.centers for result in left])
            now = replace(search, schedule=schedule)
            if len(left) > 1:
                results = now.run(engine, centers, name="all ")
            else:
                results = now.finish(engine, centers, left[0].labels)
            spent += max(result.n_iter for result in results)
            for result, before in zip(results, left, strict=True):
                result.cost_path = before.cost_path + result.cost_path
            if len(left) > 1:
                best = int(np.argmin([result.cost for result in results]))
            left = [min(results, key=lambda result: result.cost)]
            is_done = left[0].converged or left[0].stopped
        return left[0], best

    def _schedule(
        self, view: Rows, rows: Rows, width: int, start: Start | Seeding, n_final: int
    ) -> Schedule:
        """Return how to iterate, if sketched rows of this many bytes fit in memory."""
        is_started, restarts = isinstance(start, Start), self._restarts(start)
        n_final = max(1, min(n_final, _CLUSTERS_REFINED // self.n_clusters))
        # Of rows that are elsewhere the client has offsets and chances, to draw some.
        each = 48 + (0 if find_adapter(view) is not None else width + 8 * restarts)
        n_starts = restarts if view is rows else n_final
        once = centers_need(rows, self.n_clusters, n_starts) + view.memory
        spare = self._plan(rows, once + len(rows) * each)
        return Schedule(
            restarts,
            self.max_iter + is_started,
            self._tolerance,
            spare,
            swaps=is_auto(self.n_init) and not is_started,
            n_final=n_final,
        )

    def _plan(self, rows: Rows, need: int) -> int:
        """Return the bytes that are left, or raise where too few are allowed."""
        return plan_memory(
            need,
            self.max_memory,
            f"The sketch of {len(rows):,} rows needs {{}}, with centres of "
            f"{rows.n_features:,} features",
            "Lower the reducer's n_components or n_clusters, or raise max_memory.",
        )

    def _space(self, rows: Rows) -> InputSpace:
        rows.widen_for(float(np.square(self.cluster_centers_ - self._shift).max()))
        return InputSpace.of(rows, self.n_clusters, self._shift)

    def _centers(self, space: Any) -> Centers:
        means = (self.cluster_centers_ - self._shift)[None]
        return Centers(means, np.einsum("rkj,rkj->rk", means, means), means)


def _find(
    search: Search,
    rows: Rows,
    space: InputSpace,
    start: Start | Seeding,
    k: int,
    rng: np.random.Generator,
) -> tuple[BlockEngine, list[LloydResult]]:
    """Return what `Search.find` does, or what Lloyd makes of given centres."""
    if not isinstance(start, Start):
        find = (
            search.find
            if find_adapter(rows) is None
            else partial(find_elsewhere, search)
        )
        return find(rows, space, start, k, rng)
    engine = new_engine(rows, space, search.schedule.budget)
    centers = engine.centers_of_means(start.points - space.shift)
    return engine, search.finish(engine, centers)


def _plugged_back(
    engine: BlockEngine, found: list[LloydResult], k: int
) -> list[LloydResult]:
    """Return partitions of the sketch with their centroids in the original space."""
    first, *others = (result.labels for result in found)
    if find_adapter(engine.rows) is not None:  # the labels stay with the rows
        remote: Any = first
        labels, values = remote.stack(others), None
    else:
        labels = np.stack([first, *others], axis=1)
        values = labels_of_distinct_rows(engine.rows, k)
    if values is not None:
        # Equal rows stay together, though rounding may separate their sketches.
        known, first = np.unique(values, return_index=True)
        counts = values >= 0
        labels[counts] = labels[first[np.searchsorted(known, values[counts])]]
    assignment, centers = engine.partition(labels, k)
    return [
        LloydResult(
            assignment.labels[:, i],
            centers.select([i]),
            cost,
            assignment.counts[i],
            [cost],
            result.converged,
        )
        for i, (result, cost) in enumerate(
            zip(found, np.maximum(assignment.costs, 0.0).tolist(), strict=True)
        )
    ]
