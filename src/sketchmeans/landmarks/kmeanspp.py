"""Landmarks by D² sampling in feature space: kernel k-means++."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from sketchmeans.data.rows import Block, Rows, block_height
from sketchmeans.engine.blocks import local_engine
from sketchmeans.engine.space import InputSpace
from sketchmeans.kernels import Kernel, Precomputed
from sketchmeans.landmarks.base import Landmarks, row_weights
from sketchmeans.landmarks.draws import (
    centroid_landmarks,
    draw,
    kernel_between,
    landmarks_at,
    value_type,
)
from sketchmeans.numerics.linalg import (
    ZERO_DISTANCE_ROUNDINGS,
    Array,
    check_no_overflow,
)
from sketchmeans.numerics.parameters import check_flag, check_integer, check_number


class KernelKMeansPlusPlus(BaseEstimator):
    """Kernel k-means++ samples (OG17 §3).

    Each landmark is a row drawn with probability proportional to its weight times
    ``min_z ‖φ(x) − φ(z)‖²`` over the landmarks so far.  The expected potential

        φ(Z) = Σ_i w_i min_z ‖φ(x_i) − φ(z)‖²

    is at most 8(ln m + 2) times that of the best m centroids (OG17 Thm 3), and it
    bounds the error of the Nyström approximation: ``‖K − K̃‖_F ≤ ‖K − K̃‖₁ ≤ φ(Z)``.

    The draws come in batches with the law of one draw after the other.  A batch is
    drawn from the distances as they were at its start; each draw in turn is kept
    with the probability by which its own distance has shrunk since.  So all n rows
    take part, and the whole costs about as much as ``k(X, Z)``: n·m·d, in memory of
    one block and a few numbers a row.

    Parameters
    ----------
    restarts : int, default=3
        Independent samples, of which the one with the lowest potential is kept: a
        single one is at times no better than uniform landmarks.
    refine : bool, default=False
        Move the landmarks by Lloyd steps in input space for as long as the kernel
        potential drops (OG17 §3 and App. B).  The landmarks are then no rows of the
        data.  Not for precomputed kernels.  A step costs about 2·n·m·d.
    max_iter : int, default=20
        Most Lloyd steps.
    tol : float, default=1e-3
        Relative drop of the potential over a step at which the refinement ends.

    References
    ----------
    OG17: Oglic & Gärtner, "Nyström method with kernel k-means++ samples as
    landmarks", ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import NystromKMeans
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = NystromKMeans(3, n_landmarks=20, landmarks=KernelKMeansPlusPlus())
    >>> len(set(model.fit(X).landmark_indices_.tolist()))
    20
    """

    def __init__(
        self,
        restarts: int = 3,
        refine: bool = False,
        max_iter: int = 20,
        tol: float = 1e-3,
    ) -> None:
        self.restarts = restarts
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks."""
        check_integer("restarts", self.restarts)
        check_integer("max_iter", self.max_iter)
        check_number("tol", self.tol)
        if check_flag("refine", self.refine) and isinstance(kernel, Precomputed):
            raise ValueError(
                "refine=True should be False with kernel='precomputed': there is no "
                "input space to move landmarks in."
            )
        space = FeatureSpace(rows, kernel)
        samples = [
            d2_sample(space, n_landmarks, child) for child in rng.spawn(self.restarts)
        ]
        best = min(samples, key=lambda sample: sample.potential)
        landmarks = landmarks_at(rows, kernel, best.indices, n_landmarks)
        if self.refine:
            return refined(space, landmarks, best.potential, self.max_iter, self.tol)
        return landmarks


class FeatureSpace:
    """Squared distances in the feature space of a kernel, in float64, by blocks."""

    def __init__(self, rows: Rows, kernel: Kernel) -> None:
        self.rows = rows
        self.kernel = kernel
        self.diagonal = kernel.row_diagonal(rows)
        check_no_overflow(self.diagonal)
        self._noise = ZERO_DISTANCE_ROUNDINGS * float(
            np.finfo(value_type(rows, kernel)).eps
        )

    def among(self, indices: Array) -> Array:
        """Return the squared distances between the rows of these numbers."""
        diagonal = self.diagonal[indices]
        scale = diagonal[:, None] + diagonal
        values = kernel_between(self.rows, self.kernel, indices, indices)
        return self._cleaned(scale - 2.0 * values, scale)

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

        distances, start = np.empty(len(rows)), 0
        for nearest, lengths in rows.map(measure, block_height(rows.n_features, m)):
            part = slice(start, start + len(nearest))
            own = self.diagonal[part]
            distances[part] = self._cleaned(nearest + own, own + lengths)
            start = part.stop
        return distances

    def potential(self, points: Block) -> float:
        """Return ``φ(Z)`` of points of the input space."""
        distances = self.nearest(points, self.kernel.diagonal(points))
        return float(row_weights(self.rows) @ distances)

    def _cleaned(self, distances: Array, scale: Array) -> Array:
        # Differences of rounding are no distance between equal rows.
        distances[distances <= self._noise * np.abs(scale)] = 0.0
        return distances


@dataclass(frozen=True)
class D2Sample:
    """Row numbers drawn by D² sampling, and their potential."""

    indices: Array
    potential: float


def d2_sample(space: FeatureSpace, size: int, rng: np.random.Generator) -> D2Sample:
    """Return `size` rows drawn by D² sampling, or fewer if no distance is left."""
    weights = row_weights(space.rows)
    chosen = draw(weights, 1, rng)
    closest = _distances_to_rows(space, chosen)
    while len(chosen) < size:
        mass = weights * closest
        if not mass.any():
            break
        # As many as there are already: on the way the potential drops so little
        # that most draws are kept, and log m batches are enough.
        batch = draw(mass, min(len(chosen), size - len(chosen)), rng)
        new = batch[_kept(closest[batch], space.among(batch), rng)]
        np.minimum(closest, _distances_to_rows(space, new), out=closest)
        chosen = np.concatenate([chosen, new])
    return D2Sample(chosen, float(weights @ closest))


def _distances_to_rows(space: FeatureSpace, indices: Array) -> Array:
    points = space.kernel.points(space.rows, indices)
    distances = space.nearest(points, space.diagonal[indices])
    distances[indices] = 0.0
    return distances


def _kept(before: Array, among: Array, rng: np.random.Generator) -> Array:
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


def refined(
    space: FeatureSpace,
    landmarks: Landmarks,
    potential: float,
    max_iter: int,
    tol: float,
) -> Landmarks:
    """Return the landmarks after Lloyd steps that lower the kernel potential.

    A step that does not is taken back, and is the last.  Where the first step is,
    the landmarks are returned as they came.
    """
    rows = space.rows
    inputs = InputSpace.of(rows, len(landmarks))
    engine = local_engine(rows, inputs)
    assert landmarks.indices is not None
    centers = engine.centers_at(landmarks.indices[None])
    for _ in range(max_iter):
        centers = engine.update(engine.assign(centers), centers)
        moved = centroid_landmarks(rows, inputs.centers(centers.coefficients[0]))
        before, after = potential, space.potential(moved.points)
        if after < before:
            landmarks, potential = moved, after
        if before - after <= tol * before:
            break
    return landmarks
