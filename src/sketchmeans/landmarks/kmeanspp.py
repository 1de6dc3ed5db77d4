"""Landmarks by k-means: D² sampling in feature space, and centroids in input space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from sketchmeans.data.rows import Block, Rows, block_height
from sketchmeans.data.sampling import draw, row_weights
from sketchmeans.engine.blocks import new_engine
from sketchmeans.engine.callbacks import CallbackSupportMixin, with_callbacks
from sketchmeans.engine.init import KMeansPlusPlus
from sketchmeans.engine.progress import Progress
from sketchmeans.engine.restarts import Schedule, Search
from sketchmeans.engine.space import InputSpace
from sketchmeans.kernels import Kernel, is_given, squared_distances_among
from sketchmeans.landmarks.base import (
    Landmarks,
    centroid_landmarks,
    kernel_between,
    landmarks_at,
    value_type,
    warn_if_fewer,
)
from sketchmeans.numerics.linalg import Array, check_no_overflow, clip_zero_distances
from sketchmeans.numerics.parameters import check_flag, check_integer, check_number


@dataclass(eq=False, repr=False)
class KernelKMeansPlusPlus(BaseEstimator):
    """Kernel k-means++ samples (OG17 §3).

    Each landmark is a row drawn with probability proportional to its weight times
    ``min_z ‖φ(x) − φ(z)‖²`` over the landmarks so far.  The expected potential

        φ(Z) = Σ_i w_i min_z ‖φ(x_i) − φ(z)‖²

    is at most 8(ln m + 2) times that of the best m centroids (OG17 Thm 3), and it
    bounds the error of the Nyström approximation: ``‖K − K̃‖_F ≤ ‖K − K̃‖₁ ≤ φ(Z)``.

    The draws come in batches with the law of one draw after the other: each is kept
    with the probability by which its distance has shrunk since the batch was drawn.
    Costs about as much as ``k(X, Z)``, n·m·d, and memory of a few numbers per row.

    Parameters
    ----------
    restarts : int, default=3
        Independent samples, of which the one with the lowest potential is kept: a
        single one is at times no better than uniform landmarks.
    refine : bool, default=False
        Move the landmarks by Lloyd steps in input space while the kernel potential
        drops (OG17 §3 and App. B), 2·n·m·d each.  The landmarks are then not rows.  Not
        for precomputed kernels.
    max_iter : int, default=20
        Maximum number of Lloyd steps.
    tol : float, default=1e-3
        Relative drop of the potential over a step at which the refinement ends.

    References
    ----------
    OG17: Oglic & Gärtner, "Nyström method with kernel k-means++ samples as landmarks",
    ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import NystromKMeans
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = NystromKMeans(3, n_landmarks=20, landmarks=KernelKMeansPlusPlus())
    >>> len(set(model.fit(X).landmark_indices_.tolist()))
    20
    """

    restarts: int = 3
    refine: bool = False
    max_iter: int = 20
    tol: float = 1e-3

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks."""
        for name in ("restarts", "max_iter"):
            check_integer(name, getattr(self, name))
        check_number("tol", self.tol)
        if check_flag("refine", self.refine) and is_given(kernel):
            raise ValueError(
                "refine=True should be False with kernel='precomputed': there is no "
                "input space to move landmarks in."
            )
        distances = KernelDistances(rows, kernel)
        rngs = rng.spawn(self.restarts)
        samples = [draw_d2_sample(distances, n_landmarks, child) for child in rngs]
        indices, potential = min(samples, key=lambda sample: sample[1])
        landmarks = landmarks_at(rows, kernel, indices, n_landmarks)
        if not self.refine:
            return landmarks
        return refine_landmarks(
            distances, landmarks, potential, self.max_iter, self.tol
        )


class KernelDistances:
    """Squared distances in the feature space of a kernel, in float64, by blocks."""

    def __init__(self, rows: Rows, kernel: Kernel) -> None:
        self.rows = rows
        self.kernel = kernel
        self.diagonal = kernel.row_diagonal(rows)
        check_no_overflow(self.diagonal)
        self._dtype = value_type(rows, kernel)

    def among(self, indices: Array) -> Array:
        """Return the squared distances between the rows of these numbers."""
        diagonal = self.diagonal[indices]
        scale = diagonal[:, None] + diagonal
        values = kernel_between(self.rows, self.kernel, indices, indices)
        return clip_zero_distances(scale - 2.0 * values, scale, self._dtype)

    def nearest(self, points: Block, diagonal: Array) -> Array:
        """Return each row's squared distance to the nearest of some points.

        `diagonal` holds ``k(z, z)`` of the points.
        """
        rows, m = self.rows, points.shape[0]
        columns = self.kernel.against(points, np.float64, rows.workers)
        buffer = rows.workers.buffer

        def measure(block: Block) -> tuple[Array, Array]:
            out = buffer("to points", (block.shape[0], m), np.float64)
            partial = columns(block, out)
            partial *= -2.0
            partial += diagonal
            closest = partial.argmin(axis=1)
            return partial[np.arange(len(closest)), closest], diagonal[closest]

        parts = zip(*rows.map(measure, block_height(rows.n_features, m)), strict=True)
        partial, lengths = (np.concatenate(part) for part in parts)
        scale = self.diagonal + lengths
        return clip_zero_distances(partial + self.diagonal, scale, self._dtype)

    def potential(self, points: Block) -> float:
        """Return ``φ(Z)`` of points of the input space."""
        distances = self.nearest(points, self.kernel.diagonal(points))
        return float(row_weights(self.rows) @ distances)


def draw_d2_sample(
    distances: KernelDistances, size: int, rng: np.random.Generator
) -> tuple[Array, float]:
    """Return `size` rows drawn by D² sampling, and their potential.

    Fewer if no distance is left.
    """
    weights = row_weights(distances.rows)
    chosen = draw(weights, 1, rng)
    closest = _distances_to_rows(distances, chosen)
    while len(chosen) < size:
        chances = weights * closest
        if not chances.any():
            break
        # As many as there are already: on the way the potential drops so little
        # that most draws are kept, and log m batches are enough.
        batch = draw(chances, min(len(chosen), size - len(chosen)), rng)
        new = batch[_accept_draws(closest[batch], distances.among(batch), rng)]
        np.minimum(closest, _distances_to_rows(distances, new), out=closest)
        chosen = np.concatenate([chosen, new])
    return chosen, float(weights @ closest)


def _distances_to_rows(distances: KernelDistances, indices: Array) -> Array:
    points = distances.kernel.points(distances.rows, indices)
    nearest = distances.nearest(points, distances.diagonal[indices])
    nearest[indices] = 0.0
    return nearest


def _accept_draws(before: Array, among: Array, rng: np.random.Generator) -> Array:
    """Return which draws of a batch are kept, in turn.

    `before` is each draw's distance when the batch was drawn, `among` holds the
    distances between the draws.  Kept with probability now/before, a draw has the
    law that is proportional to the distances as they are now.  The first always is.
    """
    now = before.copy()
    thresholds = rng.random(len(before)) * before
    kept = []
    for i, threshold in enumerate(thresholds):
        if threshold < now[i]:
            kept.append(i)
            np.minimum(now, among[i], out=now)
    return np.array(kept, dtype=np.intp)


def refine_landmarks(
    distances: KernelDistances,
    landmarks: Landmarks,
    potential: float,
    max_iter: int,
    tol: float,
) -> Landmarks:
    """Return the landmarks after Lloyd steps that lower the kernel potential.

    A step that does not is undone, and is the last.  If it is the first step, the
    landmarks are returned as they were.
    """
    rows = distances.rows
    inputs = InputSpace.of(rows, len(landmarks))
    engine = new_engine(rows, inputs)
    assert landmarks.indices is not None
    centers = engine.centers_at(landmarks.indices[None])
    for _ in range(max_iter):
        centers = engine.update(engine.assign(centers), centers)
        moved = centroid_landmarks(rows, inputs.centers(centers.coefficients[0]))
        before, after = potential, distances.potential(moved.points)
        if after < before:
            landmarks, potential = moved, after
        if before - after <= tol * before:
            break
    return landmarks


@dataclass(eq=False, repr=False)
class Centroids(CallbackSupportMixin, BaseEstimator):
    """Centroids of k-means in the input space: Lloyd from k-means++.

    For smooth kernels of the distance, such as rbf, the error of the Nyström
    approximation is bounded by the cost ``Σ_i w_i min_z ‖x_i − z‖²`` of the centroids
    (Zhang, Tsang & Kwok, ICML 2008), and they are among the best landmarks in practice
    (OG17 §4.3).  The landmarks are not rows of the data.  Not for precomputed kernels.
    Costs n·m·d for the seeds and for each iteration, and memory of a few numbers per
    row; where n is large compared to m, both start on subsamples.

    Parameters
    ----------
    n_init : int, default=1
        Restarts, of which the one with the lowest cost in input space is kept.
    max_iter : int, default=20
        Maximum number of iterations in each stage: the last ones move landmarks little.
    tol : float, default=1e-3
        Relative drop of the cost over an iteration at which Lloyd's algorithm stops.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import NystromKMeans
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = NystromKMeans(3, n_landmarks=20, landmarks=Centroids()).fit(X)
    >>> model.landmarks_.shape, model.landmark_indices_
    ((20, 2), None)
    """

    n_init: int = 1
    max_iter: int = 20
    tol: float = 1e-3

    @with_callbacks
    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks."""
        if is_given(kernel):
            raise ValueError(
                "landmarks='kmeans' should be another selector with "
                "kernel='precomputed': there is no input space for centroids."
            )
        n_init = check_integer("n_init", self.n_init)
        max_iter = check_integer("max_iter", self.max_iter)
        schedule = Schedule(n_init, max_iter, check_number("tol", self.tol), budget=0)
        space, progress = InputSpace.of(rows, n_landmarks), Progress(self)
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
