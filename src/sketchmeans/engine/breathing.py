"""Centres added where the cost is, and dropped where they are missed least.

Breathing k-means (Fritzke 2020): where clusters are many, several centres at a time go
to where they are needed, and Lloyd's algorithm settles the others around them.
"""

from __future__ import annotations

import numpy as np

from sketchmeans.data.sampling import draw
from sketchmeans.engine.blocks import BlockEngine
from sketchmeans.engine.lloyd import OnPass, lloyd
from sketchmeans.engine.types import Centers, LloydResult, TwoNearest
from sketchmeans.numerics.linalg import Array

#: The first breath adds one centre for this many clusters, and at least this many.
_CLUSTERS, _LEAST = 20, 5
#: Passes after centres are added or dropped, and when to stop them.
_PASSES, _TOL = 3, 3e-4
#: Share of the cost that a breath has to gain.
_GAIN = 1e-4


def breathe(
    engine: BlockEngine,
    result: LloydResult,
    rng: np.random.Generator,
    *,
    max_breaths: int,
    on_breath: OnPass,
) -> LloydResult:
    """Return a result that a few breaths do not improve.

    A breath that gains nothing makes the next one smaller.  `on_breath` gets the number
    of each and the best cost, and stops the search if it returns true.
    """
    k = len(result.counts)
    depth = min(max(_LEAST, k // _CLUSTERS), k - 1)
    for breath in range(1, max_breaths + 1):
        if depth < 1 or result.stopped:
            break
        near = engine.two_nearest(result.centers)
        rows = _costly_rows(near, engine.rows.weights, k, depth, rng)
        if not len(rows):
            break
        wide = _settle(engine, _add(engine, result.centers, rows))
        near = engine.two_nearest(wide.centers)
        left = np.delete(
            np.arange(k + len(rows)),
            _least_missed(near, engine.rows.weights, wide.centers, len(rows)),
        )
        found = _settle(engine, _select(wide.centers, left))
        if found.cost < (1.0 - _GAIN) * result.cost:
            found.cost_path = [*result.cost_path, found.cost]
            result = found
        else:
            depth -= 1
        if on_breath(breath, result.cost):
            result.stopped = True
    return result


def _settle(engine: BlockEngine, centers: Centers) -> LloydResult:
    (found,) = lloyd(engine, centers, max_iter=_PASSES, tol=_TOL)
    return found


def _costly_rows(
    near: TwoNearest, weights: Array | None, k: int, size: int, rng: np.random.Generator
) -> Array:
    """Return a row of each of the costliest clusters, drawn by what it costs."""
    costs = near.first if weights is None else weights * near.first
    totals = np.bincount(near.labels, costs, minlength=k)
    rows = []
    for cluster in np.argsort(-totals, kind="stable")[:size].tolist():
        members = np.flatnonzero((near.labels == cluster) & (costs > 0.0))
        if len(members) > 1:
            rows.append(members[draw(costs[members], 1, rng)[0]])
    return np.array(rows, dtype=np.intp)


def _add(engine: BlockEngine, centers: Centers, rows: Array) -> Centers:
    """Return the centres of one restart, and centres at these rows."""
    new = engine.kernel_values(rows)[None]
    return engine.centers_of_means(np.concatenate([centers.means, new], axis=1))


def _select(centers: Centers, numbers: Array) -> Centers:
    return Centers(
        centers.coefficients[:, numbers],
        centers.squared_norms[:, numbers],
        centers.means[:, numbers],
    )


def _least_missed(
    near: TwoNearest, weights: Array | None, centers: Centers, size: int
) -> Array:
    """Return the centres whose rows have others nearby; no two that are neighbours."""
    k = centers.squared_norms.shape[1]
    loss = near.second - near.first
    missed = np.bincount(near.labels, loss if weights is None else weights * loss, k)
    products = centers.means[0] @ centers.coefficients[0].T
    lengths = np.diagonal(products)
    distances = lengths[:, None] - 2.0 * products + lengths
    np.fill_diagonal(distances, np.inf)
    neighbour = distances.argmin(axis=1)
    dropped: list[int] = []
    spared: set[int] = set()
    order = np.argsort(missed, kind="stable").tolist()
    for center in order:
        if len(dropped) < size and center not in spared:
            dropped.append(center)
            spared.add(int(neighbour[center]))
    rest = [center for center in order if center not in dropped]
    return np.array(dropped + rest[: size - len(dropped)], dtype=np.intp)
