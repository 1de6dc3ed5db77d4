"""One block of rows against all centres: the pure function under every fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.engine.lloyd import Centers
from sketchmeans.numerics.linalg import (
    CANCELLATION_ROUNDINGS,
    TIE_TOLERANCE,
    ZERO_DISTANCE_ROUNDINGS,
    Array,
)

#: Matrix products run faster when the right-hand side is this many columns wide.
_WIDTH = 8

#: Rows whose differences to their centres are formed at a time: they stay in the cache.
_DIFFERENCES = 128


@dataclass(frozen=True)
class NearestCenters:
    """The nearest centres of the rows of a block.

    Attributes
    ----------
    labels : ndarray of shape (h, R)
    distances : ndarray of shape (h, R)
        Squared distances to them; not below zero.
    second : ndarray of shape (h,)
        Squared distance to the second nearest centre, for one restart; else empty.
    is_repaired : bool
        Whether some distances had to be computed from differences.
    """

    labels: Array
    distances: Array
    second: Array
    is_repaired: bool


class Table:
    """Centres in the form in which blocks of rows meet them.

    Parameters
    ----------
    centers : Centers
        k centroids for each of R restarts.
    dtype : dtype
        Float type of the coordinates.
    height : int
        Most rows of a block.
    is_euclidean : bool, default=False
        Whether coordinates and coefficients are points of one Euclidean space, so that
        a distance can be computed from their difference.
    """

    def __init__(
        self,
        centers: Centers,
        dtype: np.dtype[Any],
        height: int,
        *,
        is_euclidean: bool = False,
    ) -> None:
        self.n_restarts, self.k, m = centers.coefficients.shape
        self.n_coordinates = m
        self.n_centers = self.n_restarts * self.k
        self.is_euclidean = is_euclidean
        self._points = centers.coefficients.reshape(self.n_centers, m)
        self._lengths = centers.squared_norms.ravel()
        # A lone restart is widened by centres that are infinitely far away.
        width = self.n_centers
        if self.n_restarts == 1:
            width = -(-width // _WIDTH) * _WIDTH
        self._columns = np.zeros((m, width), dtype=dtype)
        self._columns[:, : self.n_centers] = -2.0 * self._points.T
        self._squared_norms = np.full(width, np.inf, dtype=dtype)
        self._squared_norms[: self.n_centers] = self._lengths
        # Laid out once: in a block of a thousand rows small steps add up.
        self._first: Array = np.arange(self.n_restarts) * (width // self.n_restarts)
        self._offsets = np.arange(height)[:, None] * width + self._first
        self._pointers = np.arange(0, height * self.n_restarts + 1, self.n_restarts)
        self._ones = np.ones(height * self.n_restarts, dtype=dtype)
        eps = float(np.finfo(dtype).eps)
        self._share = CANCELLATION_ROUNDINGS * eps
        self._noise = ZERO_DISTANCE_ROUNDINGS * eps

    def scores(self, coordinates: Array) -> Array:
        """Return ``‖φ(x) − c‖² − ‖φ(x)‖²`` for all centres, and perhaps some more.

        What is left out is the same for every centre; labels do without it.  The
        centres are the first `n_centers` columns; the rest is infinite.
        """
        products: Array = coordinates @ self._columns
        products += self._squared_norms
        return products

    def assign(
        self, coordinates: Array, norms: Array | float, scores: Array | None = None
    ) -> NearestCenters:
        """Return the nearest centres of a block of rows.

        `norms` are ``‖φ(x)‖²``.  Where distances are small differences of such norms,
        and can be had from differences of points, these decide.
        """
        scores = self.scores(coordinates) if scores is None else scores
        labels, distances = self.nearest(scores)
        distances = distances + _column(norms)
        lengths = self._lengths[labels + self._first]
        weak = self._weak(distances, norms, lengths) if self.is_euclidean else []
        unsure = [(r, *self._unsure(scores, labels, norms, r)) for r in weak]
        second = np.empty(0)
        if self.n_restarts == 1:
            second = self.second(scores, labels) + norms
        for restart, rows, rivals in unsure:
            points = self._points[self._group(restart)]
            found = _decide(coordinates, rows, points, labels[rows, restart], rivals)
            labels[rows, restart], distances[rows, restart], runner_up = found
            if len(second):
                second[rows] = np.where(np.isfinite(runner_up), runner_up, second[rows])
        np.maximum(distances, 0.0, out=distances)
        return NearestCenters(labels, distances, second, bool(unsure))

    def nearest(self, scores: Array) -> tuple[Array, Array]:
        """Return each row's nearest centre in each restart, and its score."""
        labels = scores.reshape(len(scores), self.n_restarts, -1).argmin(axis=2)
        return labels, scores.ravel()[self._offsets[: len(scores)] + labels]

    def second(self, scores: Array, labels: Array) -> Array:
        """Return the second lowest score of each row, for one restart.

        Overwrites the lowest; infinite where there is one centre only.
        """
        flat = scores.ravel()
        flat[(self._offsets[: len(scores)] + labels).ravel()] = np.inf
        return flat[self._offsets[: len(scores), 0] + scores.argmin(axis=1)]

    def _weak(self, distances: Array, norms: Array | float, lengths: Array) -> Any:
        """Return the restarts in which rounding is a good part of the cost of a block.

        Elsewhere rows that are taken for another cluster's cost hardly more there.
        """
        scale = self._share * (np.mean(norms) + lengths.mean(axis=0))
        return np.flatnonzero(np.maximum(distances, 0.0).mean(axis=0) < scale).tolist()

    def _group(self, restart: int) -> slice:
        """Return which of all centres are of a restart."""
        return slice(restart * self.k, (restart + 1) * self.k)

    def _unsure(
        self, scores: Array, labels: Array, norms: Array | float, restart: int
    ) -> tuple[Array, Array]:
        """Return rows whose distance is lost in rounding, and their likely centres."""
        group = self._group(restart)
        lengths = self._lengths[group]
        first = int(self._first[restart])
        own = labels[:, restart]
        norms = np.broadcast_to(norms, len(own))
        low = scores[np.arange(len(own)), first + own]
        scale = norms + lengths[own]
        rows = np.flatnonzero(low + norms < self._share * scale)
        reach = (low + self._noise * scale)[rows, None]
        reach = reach + self._noise * (norms[rows, None] + lengths)
        return rows, scores[rows, first : first + len(lengths)] <= reach

    def distances(self, coordinates: Array, norms: Array | float) -> Array:
        """Return the squared distances to all centres, not below zero."""
        values = self.scores(coordinates)[:, : self.n_centers]
        values = np.maximum(values + _column(norms), 0.0)
        if self.is_euclidean:
            scale = _column(norms) + self._lengths
            rows, centers = np.nonzero(values < self._share * scale)
            for center in np.unique(centers).tolist():
                near = rows[centers == center]
                gap = dense(coordinates[near]) - self._points[center]
                values[near, center] = np.einsum("ij,ij->i", gap, gap)
        return values

    def own_distances(self, coordinates: Array, norms: Any, labels: Array) -> Array:
        """Return the squared distances to centres of the only restart, in float64."""
        if self.is_euclidean and not sparse.issparse(coordinates):
            points = self._points.astype(coordinates.dtype)
            squared = _squared_differences(coordinates, points, labels)
            # A centre in float32 may be off by more than the distances to it allow.
            off = float(np.finfo(points.dtype).eps) ** 2 * self._lengths.max()
            if off > TIE_TOLERANCE * squared.mean():
                return _squared_differences(coordinates, self._points, labels)
            return squared
        values = self.distances(coordinates, norms)
        return values[np.arange(len(values)), labels].astype(np.float64)

    def gains(self, coordinates: Array, old: Array, new: Array) -> Array:
        """Return by how much nearer rows are to new centres than to old ones."""
        step = self._points[new] - self._points[old]
        b = dense(coordinates).astype(np.float64)
        if self.is_euclidean:
            b = b - 0.5 * (self._points[new] + self._points[old])
            return 2.0 * np.einsum("ij,ij->i", b, step)
        lengths = self._lengths[old] - self._lengths[new]
        return np.asarray(2.0 * np.einsum("ij,ij->i", b, step) + lengths)

    def membership(
        self, labels: Array, weights: Array | None, dtype: Any = None
    ) -> tuple[Any, Array]:
        """Return the clusters' indicator matrix (R·k × h), and their weights."""
        flat = (labels + self._first).ravel()
        if weights is None:
            mass = self._ones[: len(flat)]
            counts: Array = np.bincount(flat, minlength=self.n_centers) * 1.0
        else:
            mass = np.repeat(weights, self.n_restarts)
            counts = np.bincount(flat, mass, minlength=self.n_centers)
        mass = mass.astype(dtype or self._ones.dtype, copy=False)
        # One column per row of the block: its product sweeps once over the block.
        matrix = sparse.csc_array(
            (mass, flat, self._pointers[: len(labels) + 1]),
            shape=(self.n_centers, len(labels)),
        )
        return matrix, counts


def _squared_differences(coordinates: Array, points: Array, labels: Array) -> Array:
    """Return ``‖b_x − c‖²`` of rows and the points that they are assigned to."""
    squared = np.empty(len(labels))
    for start in range(0, len(labels), _DIFFERENCES):
        part = slice(start, start + _DIFFERENCES)
        gap = points.take(labels[part], axis=0)
        gap -= coordinates[part]
        squared[part] = np.einsum("ij,ij->i", gap, gap)
    return squared


def _decide(
    coordinates: Array, rows: Array, points: Array, own: Array, rivals: Array
) -> tuple[Array, Array, Array]:
    """Return label, squared distance and that of the second for unsure rows.

    Everything is taken about the centre that seems to be nearest: what is as near as
    that is then close to the origin.  `rivals` says which of the centres `points` are
    to be compared; the second is infinite where there is but one.
    """
    labels, distances = own.copy(), np.empty(len(rows))
    second = np.full(len(rows), np.inf)
    for center in np.unique(own).tolist():
        mine = np.flatnonzero(own == center)
        among = np.flatnonzero(rivals[mine].any(axis=0))
        x = dense(coordinates[rows[mine]]).astype(np.float64)
        x -= points[center]
        c = points[among] - points[center]
        lengths = np.einsum("ij,ij->i", x, x)
        squared = lengths[:, None] - 2.0 * (x @ c.T)
        squared += np.einsum("ij,ij->i", c, c)
        place = squared.argmin(axis=1)
        labels[mine] = among[place]
        gap = x - c[place]
        distances[mine] = np.einsum("ij,ij->i", gap, gap)
        if len(among) > 1:
            squared[np.arange(len(mine)), place] = np.inf
            second[mine] = squared.min(axis=1)
    return labels, distances, second


def _column(norms: Array | float) -> Array | float:
    """Return norms as a column; a number stays one, so that float32 stays float32."""
    return norms if isinstance(norms, float) else norms[:, None]


@dataclass(frozen=True)
class BlockSums:
    """What one block of rows adds to a pass.

    Attributes
    ----------
    nearest : NearestCenters
    sums : ndarray of shape (R·k, m)
        Weighted sums of the coordinates of each cluster's rows.
    counts : ndarray of shape (R·k,)
        Weight of each cluster.
    costs : ndarray of shape (R,)
        Weighted sum of the squared distances of rows to their centres.
    """

    nearest: NearestCenters
    sums: Array
    counts: Array
    costs: Array


def assign_block(
    coordinates: Array, norms: Array | float, weights: Array | None, table: Table
) -> BlockSums:
    """Assign a block of rows to the centres.

    Parameters
    ----------
    coordinates : ndarray of shape (h, m)
        ``b_x`` of each row.
    norms : ndarray of shape (h,) or float
        ``‖φ(x)‖²`` of each row; a number if it is the same for all.
    weights : ndarray of shape (h,) or None
    table : Table
    """
    nearest = table.assign(coordinates, norms)
    wide = np.float64 if nearest.is_repaired else None
    membership, counts = table.membership(nearest.labels, weights, wide)
    sums = dense(membership @ coordinates)
    distances = nearest.distances.astype(np.float64, copy=False)
    costs = distances.sum(axis=0) if weights is None else weights @ distances
    return BlockSums(nearest, sums, counts, costs)


def dense(values: Any) -> Array:
    """Return a product with sparse coordinates as an ordinary array."""
    return np.asarray(values.toarray() if sparse.issparse(values) else values)


def moved_sums(b: Array, mass: Array, new: Array, old: Array, k: int) -> Array:
    """Return by how much the clusters' sums change when rows move to new clusters."""
    change = sparse.csc_array(
        (
            np.stack([mass, -mass], axis=1).ravel(),
            np.stack([new, old], axis=1).ravel(),
            np.arange(0, 2 * len(mass) + 1, 2),
        ),
        shape=(k, len(mass)),
    )
    return dense(change @ b.astype(np.float64))


def packed(sums: Array, counts: Array, costs: Array | float) -> Array:
    """Return what a block adds to a pass as one vector, in float64."""
    parts = [np.ravel(part) for part in (sums, counts, costs)]
    return np.concatenate(parts, dtype=np.float64)


def unpacked(vector: Array, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return sums of this shape (R, k, m), counts (R, k) and costs from a vector."""
    restarts, k, m = shape
    sums, counts, costs = np.split(vector, np.cumsum([restarts * k * m, restarts * k]))
    return sums.reshape(shape), counts.reshape(restarts, k), costs
