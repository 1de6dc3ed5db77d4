"""One block of rows against all centres: the pure function under every fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.engine.types import Centers
from sketchmeans.kernels import toarray
from sketchmeans.numerics.linalg import (
    CANCELLATION_ROUNDINGS,
    TIE_TOLERANCE,
    ZERO_DISTANCE_ROUNDINGS,
    Array,
)

#: Matrix products run faster when the right-hand side is this many columns wide.
_WIDTH = 8

#: Clusters per row from which on only those that have a row are added up.
_FEW_ROWS = 4

#: Pairs of clusters and rows up to which a dense matrix of memberships costs less than
#: the set-up of a sparse one.
_FEW_MEMBERSHIPS = 2**14

#: Distances of a block to the centres of several restarts that are few.
_FEW_SCORES = 2**14

#: Entries of rows whose differences to their centres are formed at a time, which stay
#: in the cache, and the fewest such rows.
_DIFFERENCES, _LEAST_DIFFERENCES = 2**16, 128


@dataclass(frozen=True)
class Assignment:
    """The nearest centres of the rows of a block, and squared distances (h, R).

    For one restart also the squared distances (h,) to the second nearest centres.
    """

    labels: Array
    distances: Array
    second: Array
    #: Whether some distances had to be computed from differences.
    is_repaired: bool


class CenterMatrix:
    """Centres in the form in which blocks of rows are multiplied by them.

    Blocks have at most `height` rows, in this float type.  In a Euclidean space kernel
    values and coefficients are points, whose difference gives a distance, too.
    """

    def __init__(
        self,
        centers: Centers,
        dtype: np.dtype[Any],
        height: int,
        *,
        is_euclidean: bool = False,
    ) -> None:
        self.n_restarts, self.k, self.n_columns = centers.coefficients.shape
        self.n_centers = self.n_restarts * self.k
        self.dtype = dtype
        self.is_euclidean = is_euclidean
        self._points = centers.coefficients.reshape(self.n_centers, -1)
        self._lengths = centers.squared_norms.ravel()
        # A lone restart is widened by centres that are infinitely far away.
        width = self.n_centers
        if self.n_restarts == 1:
            width = -(-width // _WIDTH) * _WIDTH
        self._columns = np.zeros((self.n_columns, width), dtype=dtype)
        self._columns[:, : self.n_centers] = -2.0 * self._points.T
        self._squared_norms = np.full(width, np.inf, dtype=dtype)
        self._squared_norms[: self.n_centers] = self._lengths
        # Laid out once: in a block of a thousand rows small steps add up.
        self._first: Array = np.arange(self.n_restarts) * (width // self.n_restarts)
        self._offsets = np.arange(height)[:, None] * width + self._first
        eps = float(np.finfo(dtype).eps)
        self._share = CANCELLATION_ROUNDINGS * eps
        self._noise = ZERO_DISTANCE_ROUNDINGS * eps

    def scores(self, b: Array) -> Array:
        """Return ``‖φ(x) − c‖² − ‖φ(x)‖²`` for all centres, and perhaps some more.

        What is left out is the same for every centre; labels do without it.  The
        centres are the first `n_centers` columns; the rest is infinite.
        """
        products: Array = b @ self._columns
        products += self._squared_norms
        return products

    def assign(self, b: Array, norms: Array | float) -> Assignment:
        """Return the nearest centres of a block of rows.

        `norms` are ``‖φ(x)‖²``.  Where distances are small differences of such norms,
        and can be had from differences of points, these decide.
        """
        is_small = b.shape[0] * self.n_centers <= _FEW_SCORES
        if self.n_restarts == 1 or is_small or sparse.issparse(b):
            scores = self.scores(b)
            labels, distances = self._nearest(scores)
        else:
            scores, labels, distances = self._nearest_of_each(b)
        distances = distances + _column(norms)
        lengths = self._lengths[labels + self._first]
        weak = self._weak(distances, norms, lengths) if self.is_euclidean else []
        unsure = [(r, *self._unsure(scores, labels, norms, r)) for r in weak]
        second = np.empty(0)
        if self.n_restarts == 1:
            second = self._second(scores, labels) + norms
        for restart, rows, rivals in unsure:
            points = self._points[self._group(restart)]
            found = _decide(b, rows, points, labels[rows, restart], rivals)
            labels[rows, restart], distances[rows, restart], runner_up = found
            if len(second):
                second[rows] = np.where(np.isfinite(runner_up), runner_up, second[rows])
        np.maximum(distances, 0.0, out=distances)
        return Assignment(labels, distances, second, bool(unsure))

    def predict(self, b: Array, norms: Array | float) -> Array:
        """Return the nearest centres for the only restart; few need the norms."""
        if self.is_euclidean:
            return self.assign(b, norms).labels[:, 0]
        return self._nearest(self.scores(b))[0][:, 0]

    def _nearest(self, scores: Array) -> tuple[Array, Array]:
        """Return each row's nearest centre in each restart, and its score."""
        labels = scores.reshape(len(scores), self.n_restarts, -1).argmin(axis=2)
        return labels, scores.ravel()[self._offsets[: len(scores)] + labels]

    def _nearest_of_each(self, b: Array) -> tuple[Array, Array, Array]:
        """Return scores of dense rows, and what `_nearest` does, for several restarts.

        Minima over a few long rows are vector operations; over many short ones they are
        a good part of a pass.
        """
        scores = self._columns.T @ b.T
        scores += self._squared_norms[:, None]
        groups = scores.reshape(self.n_restarts, self.k, -1)
        lowest = groups.min(axis=1)
        # The first of equal ones has the highest rank; overflow has none.
        order = np.arange(self.k, 0, -1).astype(np.min_scalar_type(self.k))
        ranks = ((groups == lowest[:, None]) * order[:, None]).max(axis=1)
        labels = self.k - np.maximum(ranks, 1).T.astype(np.intp, order="C")
        return scores.T, labels, np.ascontiguousarray(lowest.T)

    def _second(self, scores: Array, labels: Array) -> Array:
        """Return the second lowest scores for one restart; overwrites the lowest."""
        flat = scores.ravel()
        flat[(self._offsets[: len(scores)] + labels).ravel()] = np.inf
        return flat[self._offsets[: len(scores), 0] + scores.argmin(axis=1)]

    def _weak(self, distances: Array, norms: Array | float, lengths: Array) -> Any:
        """Return the restarts in which rounding is a good part of the cost of a block.

        Elsewhere rows that are taken for another cluster's cost hardly more there.
        """
        total = len(lengths) * norms if isinstance(norms, float) else norms.sum()
        least = self._share * (total + lengths.sum(axis=0))
        return np.flatnonzero(np.maximum(distances, 0.0).sum(axis=0) < least).tolist()

    def _group(self, restart: int) -> slice:
        return slice(restart * self.k, (restart + 1) * self.k)

    def _unsure(
        self, scores: Array, labels: Array, norms: Array | float, restart: int
    ) -> tuple[Array, Array]:
        """Return rows whose distance is lost in rounding, and their likely centres."""
        lengths = self._lengths[self._group(restart)]
        first = int(self._first[restart])
        own = labels[:, restart]
        norms = np.broadcast_to(norms, len(own))
        low = scores[np.arange(len(own)), first + own]
        scale = norms + lengths[own]
        rows = np.flatnonzero(low + norms < self._share * scale)
        reach = (low + self._noise * scale)[rows, None]
        reach = reach + self._noise * (norms[rows, None] + lengths)
        near = scores[rows, first : first + len(lengths)] <= reach
        return rows, near & np.isfinite(lengths)

    def distances(self, b: Array, norms: Array | float) -> Array:
        """Return the squared distances to all centres, not below zero."""
        values = self.scores(b)[:, : self.n_centers]
        values = np.maximum(values + _column(norms), 0.0)
        if self.is_euclidean:
            scale = _column(norms) + self._lengths
            rows, centers = np.nonzero(values < self._share * scale)
            for center in np.unique(centers).tolist():
                near = rows[centers == center]
                gap = toarray(b[near]) - self._points[center]
                values[near, center] = np.einsum("ij,ij->i", gap, gap)
        return values

    def own_distances(self, b: Array, norms: Array | float, labels: Array) -> Array:
        """Return the squared distances to centres of the only restart, in float64."""
        if self.is_euclidean and not sparse.issparse(b):
            points, off = self._rounded_points
            squared = _squared_differences(b, points, labels)
            # A centre in float32 may be off by more than the distances to it allow.
            if off * len(squared) > TIE_TOLERANCE * squared.sum():
                return _squared_differences(b, self._points, labels)
            return squared
        if sparse.issparse(b):
            values = self.distances(b, norms)
            return values[np.arange(len(values)), labels].astype(np.float64)
        products = _own_products(b, self._points.astype(b.dtype, copy=False), labels)
        return np.maximum(norms - 2.0 * products + self._lengths[labels], 0.0)

    @cached_property
    def _rounded_points(self) -> tuple[Array, float]:
        """The centres in the type of blocks, and the square of what they may be off."""
        off = float(np.finfo(self.dtype).eps) ** 2 * float(self._lengths.max())
        return self._points.astype(self.dtype), off

    def gains(self, b: Array, old: Array, new: Array) -> Array:
        """Return by how much nearer rows are to new centres than to old ones."""
        step = self._points[new] - self._points[old]
        b = toarray(b).astype(np.float64)
        if self.is_euclidean:
            b = b - 0.5 * (self._points[new] + self._points[old])
            return 2.0 * np.einsum("ij,ij->i", b, step)
        lengths = self._lengths[old] - self._lengths[new]
        return np.asarray(2.0 * np.einsum("ij,ij->i", b, step) + lengths)


def _squared_differences(b: Array, points: Array, labels: Array) -> Array:
    """Return ``‖b_x − c‖²`` of rows and the points that they are assigned to."""
    squared = np.empty(len(labels))
    step = max(_DIFFERENCES // points.shape[1], _LEAST_DIFFERENCES)
    for start in range(0, len(labels), step):
        part = slice(start, start + step)
        gap = points.take(labels[part], axis=0)
        gap -= b[part]
        squared[part] = np.einsum("ij,ij->i", gap, gap)
    return squared


def _own_products(b: Array, points: Array, labels: Array) -> Array:
    """Return ``b_xᵀα`` of rows and the centres that they are assigned to."""
    products = np.empty(len(labels))
    step = max(_DIFFERENCES // points.shape[1], _LEAST_DIFFERENCES)
    for start in range(0, len(labels), step):
        part = slice(start, start + step)
        own = points.take(labels[part], axis=0)
        products[part] = np.einsum("ij,ij->i", b[part], own)
    return products


def _decide(
    b: Array, rows: Array, points: Array, own: Array, rivals: Array
) -> tuple[Array, Array, Array]:
    """Return label, squared distance and that of the second for unsure rows.

    Everything is taken about the centre that seems to be nearest: what is as near as
    that is then close to the origin.  `rivals` says which of the centres `points` are
    to be compared; the second is infinite where there is only one.
    """
    labels, distances = own.copy(), np.empty(len(rows))
    second = np.full(len(rows), np.inf)
    for center in np.unique(own).tolist():
        mine = np.flatnonzero(own == center)
        among = np.flatnonzero(rivals[mine].any(axis=0))
        x = toarray(b[rows[mine]]).astype(np.float64)
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


class ClusterSums:
    """Weighted sums (R·k, m) of the kernel values of clusters, and weights (R·k,).

    `costs` (R,) are weighted sums of squared distances, or whatever else is summed over
    rows.  They lie behind the sums, so that `flatten` copies nothing.
    """

    def __init__(self, n_restarts: int, k: int, n_columns: int) -> None:
        n_clusters = n_restarts * k
        self._flat = np.zeros(n_clusters * n_columns + n_restarts)
        self.sums = self._flat[:-n_restarts].reshape(n_clusters, n_columns)
        self.costs = self._flat[-n_restarts:]
        self.counts = np.zeros(n_clusters)

    @classmethod
    def zeros(cls, n_restarts: int, k: int, n_columns: int) -> ClusterSums:
        """Return the sums over no rows."""
        return cls(n_restarts, k, n_columns)

    def add(self, b: Array, clusters: Array, weights: Array, dtype: Any) -> None:
        """Add rows with these weights (h, q) to these clusters (h, q), a row to each.

        The clusters of a row are distinct.  Products are formed in this float type, and
        added up in float64.
        """
        (n_rows, width), flat = clusters.shape, clusters.ravel()
        which: Any = slice(None)
        size = len(self.sums)
        if size > _FEW_ROWS * len(flat):  # most clusters have no row
            which, flat = np.unique(flat, return_inverse=True)
            size = len(which)
        membership: Any
        if size * n_rows <= _FEW_MEMBERSHIPS and not sparse.issparse(b):
            membership = np.zeros((size, n_rows), dtype)
            membership[flat, np.arange(n_rows).repeat(width)] = weights.ravel()
        else:
            # One column per row of the block: its product goes over the block once.
            starts = np.arange(0, len(flat) + 1, width)
            membership = sparse.csc_array(
                (weights.ravel().astype(dtype), flat, starts), shape=(size, n_rows)
            )
        self.sums[which] += toarray(membership @ b)
        self.counts[which] += np.bincount(flat, weights.ravel(), minlength=size)

    def add_assigned(
        self, b: Array, labels: Array, weights: Array | None, dtype: Any
    ) -> None:
        """Add the rows of a block to the clusters of labels (h, R)."""
        n_restarts = labels.shape[1]
        clusters = labels + len(self.sums) // n_restarts * np.arange(n_restarts)
        each = np.ones(len(labels)) if weights is None else weights
        self.add(b, clusters, np.repeat(each[:, None], n_restarts, axis=1), dtype)

    def flatten(self) -> Array:
        """Return sums and costs as one term of a sum."""
        return self._flat
