"""k-means on sketched features, plugged back into the original space."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import with_callbacks

from sketchmeans.cluster.base import Clusterer
from sketchmeans.cluster.memory import plan_memory
from sketchmeans.data.rows import Rows
from sketchmeans.engine.audit import audit_result
from sketchmeans.engine.blocks import BlockEngine, local_engine
from sketchmeans.engine.init import Seeding, as_seeding
from sketchmeans.engine.progress import Progress
from sketchmeans.engine.restarts import Schedule, Search
from sketchmeans.engine.space import InputSpace
from sketchmeans.engine.types import Centers, LloydResult, side_by_side
from sketchmeans.kernels import squared_distances_among
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    all_or_nothing,
    as_generator,
    check_integer,
    is_auto,
)
from sketchmeans.reduction import ShiftedRows, as_reducer, fit_reducer

#: Restarts that go on in the original space, and passes until one is left.
_FINALISTS, _PLAYOFF_PASSES = 3, 3


class SketchedKMeans(Clusterer):
    """k-means that looks for the partition in a few sketched features (B14).

    The rows are reduced to r features, clustered there, and the partition is plugged
    back: a centre is the mean of the *original* rows of its cluster.  If the sketch
    keeps the objective within a factor (B14 Theorems 11-13), so does the partition.
    Up to `refine_max_iter` Lloyd iterations in the original space follow.  Costs the
    sketch, n·r·k for each pass on it, n·d to plug back, and at most n·d·k for each pass
    that refines it, of which all but the first look only at rows near a border.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters k.
    reducer : str or transformer, default="svd"
        "svd" (`ApproximateSVD`), "sign" (`SignProjection`), "sampling"
        (`FeatureSampling`), "laplacian" (`LaplacianScore`), or a transformer of your
        own; it is cloned, and its `n_clusters`, if it has one, is set to k.  Its `fit`
        is given the weights of the rows if it has a `sample_weight`.
    refine_max_iter : int, default=300
        Most Lloyd passes in the original space; they stop at `tol`.  0 returns the
        partition of the sketch, as in the paper.
    init : str or Seeding, default="greedy-k-means++"
        How centres start on the sketch: "random", "k-means++", "greedy-k-means++" or
        "local-search".
    n_init : int or "auto", default="auto"
        Restarts on the sketch; the best three are compared in the original space.
        "auto" is 12, the best of which is improved by swaps of centres for rows far
        from all centres.
    max_iter : int, default=300
        Most passes in each stage on the sketch.
    tol : float, default=1e-4
        Relative drop of the cost over a pass at which Lloyd's algorithm stops.
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
    reducer_ : transformer
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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        reducer: str | BaseEstimator = "svd",
        refine_max_iter: int = 300,
        init: Any = "greedy-k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        max_memory: float | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.reducer = reducer
        self.refine_max_iter = refine_max_iter
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows.
        """
        self._check_params()
        check_integer("refine_max_iter", self.refine_max_iter, low=0)
        seeding = as_seeding(self.init)
        sketch_rng, cluster_rng = as_generator(self.random_state).spawn(2)
        reducer = as_reducer(self.reducer, self.n_clusters, sketch_rng, self.n_jobs)
        with Workers(self.n_jobs) as workers:
            rows = self._training_rows(X, sample_weight, workers)
            rows.widen_for(rows.moments().variance)
            space = InputSpace.of(rows, self.n_clusters)
            progress = Progress(self, self.verbose)
            with progress.step("sketch"):
                near = ShiftedRows(rows, space.shift) if space.shift.any() else rows
                view = fit_reducer(
                    reducer, near, getattr(self, "feature_names_in_", None)
                )
                schedule = self._schedule(view, self._restarts(seeding))
                sketch = view.load()
            search = Search(schedule, squared_distances_among, progress)
            found = self._search(search, sketch, seeding, cluster_rng)
            engine = local_engine(rows, space)
            with progress.step("original space"):
                # What is best on the sketch need not be best in the original space.
                plugged = _plugged_back(engine, found, self.n_clusters)
            best = int(np.argmin([result.cost for result in plugged]))
            result = plugged[best]
            if self.refine_max_iter:
                result, best = self._refine(engine, plugged, search)
                longer = replace(schedule, max_iter=self.refine_max_iter)
                search = replace(search, schedule=longer)
                result = search.rescue_far_rows(engine, result, cluster_rng)
            result, is_sound = audit_result(engine, result)
            exemplars = engine.exemplars(result.centers, result.labels)
            progress.finish()
        self._warn_of_rounding(result, is_sound)
        self.reducer_ = reducer
        means = space.centers(result.centers.coefficients[0])
        self.cluster_centers_ = means.astype(rows.dtype)
        self._shift = space.shift
        self.exemplars_ = rows.take(exemplars)
        self._store(
            rows,
            result,
            exemplars,
            "refine_max_iter" if self.refine_max_iter else "max_iter",
        )
        self.n_iter_ = found[best].n_iter + result.n_iter - 1
        return self

    def _search(
        self,
        search: Search,
        sketch: Rows,
        seeding: Seeding,
        rng: np.random.Generator,
    ) -> list[LloydResult]:
        """Return the best few restarts after passes over the whole sketch."""
        k = self.n_clusters
        space = InputSpace.of(sketch, k)
        engine, centers = search.race_restarts(sketch, space, seeding, k, rng)
        is_small = len(centers) > _FINALISTS  # no subsamples
        if is_small:
            centers = search.drop_worse_half(engine, centers)
        found = search.finish(engine, centers)
        if is_small and search.schedule.swaps:
            found = search.improve_by_swaps(engine, found, rng, "all ")
        return found[:_FINALISTS]

    def _refine(
        self, engine: BlockEngine, left: list[LloydResult], search: Search
    ) -> tuple[LloydResult, int]:
        """Return the best of some partitions after passes in the original space.

        All but the best are dropped after a few passes.  Also returns its number.
        """
        best = 0
        spent, settled = 0, False
        while spent < self.refine_max_iter and not settled:
            passes = self.refine_max_iter - spent
            if len(left) > 1:
                passes = min(passes, _PLAYOFF_PASSES)
            schedule = Schedule(len(left), passes, self.tol, 0)
            centers = side_by_side([result.centers for result in left])
            results = replace(search, schedule=schedule).run(
                engine, centers, name="all "
            )
            spent += max(result.n_iter for result in results)
            for result, before in zip(results, left, strict=True):
                result.cost_path = before.cost_path + result.cost_path
            if len(left) > 1:
                best = int(np.argmin([result.cost for result in results]))
            left = [min(results, key=lambda result: result.cost)]
            settled = left[0].converged or left[0].stopped
        return left[0], best

    def _schedule(self, sketch: Rows, restarts: int) -> Schedule:
        """Return how to iterate, if the sketch fits in memory."""
        width = sketch.n_features * sketch.dtype.itemsize
        spare = plan_memory(
            len(sketch) * (width + 8 * restarts + 48) + sketch.memory,
            self.max_memory,
            f"The sketch of {len(sketch):,} rows needs {{}}",
            "Lower the reducer's n_components or raise max_memory.",
        )
        return Schedule(
            restarts,
            self.max_iter,
            self.tol,
            spare,
            swaps=is_auto(self.n_init),
            n_final=_FINALISTS,
        )

    def _space(self, rows: Rows) -> InputSpace:
        rows.widen_for(float(np.square(self.cluster_centers_ - self._shift).max()))
        return InputSpace.of(rows, self.n_clusters, self._shift)

    def _centers(self, space: Any) -> Centers:
        means = (self.cluster_centers_ - self._shift)[None]
        return Centers(means, np.einsum("rkj,rkj->rk", means, means), means)


def _plugged_back(
    engine: BlockEngine, found: list[LloydResult], k: int
) -> list[LloydResult]:
    """Return partitions of the sketch with their centroids in the original space."""
    labels = np.stack([result.labels for result in found], axis=1)
    assignment, centers = engine.partition(labels, k)
    return [
        LloydResult(
            result.labels,
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
