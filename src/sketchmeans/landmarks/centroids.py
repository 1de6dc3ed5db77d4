"""Landmarks that are centroids of plain k-means in the input space."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks

from sketchmeans.data.rows import Rows
from sketchmeans.engine.init import KMeansPlusPlus
from sketchmeans.engine.progress import Progress
from sketchmeans.engine.restarts import Schedule, Search
from sketchmeans.engine.space import InputSpace
from sketchmeans.kernels import Kernel, Precomputed, squared_distances_among
from sketchmeans.landmarks.base import Landmarks, warn_if_fewer
from sketchmeans.landmarks.draws import centroid_landmarks
from sketchmeans.numerics.parameters import check_integer, check_number


class Centroids(CallbackSupportMixin, BaseEstimator):
    """Centroids of k-means in the input space: Lloyd from k-means++.

    For smooth kernels of the distance, such as rbf, the error of the Nyström
    approximation is bounded by the cost ``Σ_i w_i min_z ‖x_i − z‖²`` of the centroids
    (Zhang, Tsang & Kwok 2008), and they are among the best landmarks in practice
    (OG17 §4.3).  The landmarks are no rows of the data.  Not for precomputed kernels.

    Costs n·m·d for the seeds, for each pass, and memory of a few numbers a row; where
    n is large against m, both start on subsamples (`Search.race_restarts`).

    Parameters
    ----------
    n_init : int, default=1
        Restarts, of which the one with the lowest cost in input space is kept.
    max_iter : int, default=20
        Most passes in each stage.  Landmarks need no converged clustering: the last
        passes move them little.
    tol : float, default=1e-3
        Relative drop of the cost over a pass at which Lloyd's algorithm stops.

    References
    ----------
    Zhang, Tsang & Kwok, "Improved Nyström low-rank approximation and error analysis",
    ICML 2008.  OG17: Oglic & Gärtner, "Nyström method with kernel k-means++ samples as
    landmarks", ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import NystromKMeans
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = NystromKMeans(3, n_landmarks=20, landmarks=Centroids()).fit(X)
    >>> model.landmarks_.shape, model.landmark_indices_
    ((20, 2), None)
    """

    def __init__(self, n_init: int = 1, max_iter: int = 20, tol: float = 1e-3) -> None:
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol

    @with_callbacks
    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks."""
        if isinstance(kernel, Precomputed):
            raise ValueError(
                "landmarks='kmeans' should be another selector with "
                "kernel='precomputed': there is no input space for centroids."
            )
        schedule = Schedule(
            check_integer("n_init", self.n_init),
            check_integer("max_iter", self.max_iter),
            check_number("tol", self.tol),
            budget=0,
        )
        space = InputSpace.of(rows, n_landmarks)
        progress = Progress(self)
        search = Search(schedule, squared_distances_among, progress)
        engine, start = search.race_restarts(
            rows, space, KMeansPlusPlus(), n_landmarks, rng
        )
        best = search.finish(engine, start)[0]
        progress.finish()
        # Where values repeat, more clusters than values leave some without rows.
        filled = best.counts > 0.0
        centers = space.centers(best.centers.coefficients[0, filled])
        landmarks = centroid_landmarks(rows, centers)
        warn_if_fewer(len(landmarks), n_landmarks)
        return landmarks
