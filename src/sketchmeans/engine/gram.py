"""Gram matrices, and Lloyd's steps on one: exact kernel k-means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sketchmeans.data.rows import Block, Rows, block_height, block_slices
from sketchmeans.engine.refill import choose_refills
from sketchmeans.engine.types import (
    LloydResult,
    PassResult,
    TwoNearest,
    have_changed,
)
from sketchmeans.kernels import Kernel
from sketchmeans.kernels.distances import FromDistances
from sketchmeans.numerics.linalg import (
    ZERO_DISTANCE_ROUNDINGS,
    Array,
)
from sketchmeans.numerics.parallel import Workers

Span = tuple[int, int]

#: Tiles of the Gram matrix have this many rows and columns.
_TILE = 1024

#: Rows of ``k(Z, Z)`` that are worked on at a time.
_STRIP = 256

#: Sums of clusters that shrink to less than this share are added up anew.
_TIGHTER = 1e-3

#: Sums of kernel values that take so few products are added up anew at once: that takes
#: less time than to see which rows have moved.
_FEW_PRODUCTS = 2**22


def gram_matrix(rows: Rows, kernel: Kernel) -> Array:
    """Return ``k(X, X)`` in the float type of the rows.

    Where the kernel has precise distances, the matrix is that of `FromDistances`: the
    same for means of rows.  Only the tiles on and above the diagonal are computed; each
    is mirrored, so the matrix is exactly symmetric and costs half the arithmetic.
    """
    n = len(rows)
    if has_distances(kernel, rows.block(0, 1)):
        kernel = FromDistances(kernel)
    K = np.empty((n, n), dtype=rows.dtype)
    edges = block_slices(n, min(_TILE, block_height(rows.n_features, _TILE)))

    for start, stop in edges:
        columns = kernel.against(rows.block(start, stop), rows.dtype, rows.workers)

        def tile(span: Span, start: int = start, stop: int = stop) -> None:
            top, bottom = span
            values = columns(rows.block(top, bottom))  # noqa: B023 - used at once
            if top == start:  # a product is symmetric only up to rounding
                values = 0.5 * (values + values.T)
            K[top:bottom, start:stop] = values
            K[start:stop, top:bottom] = values.T

        for _ in rows.workers.map(tile, [span for span in edges if span[0] <= start]):
            pass
    np.fill_diagonal(K, kernel.row_diagonal(rows))
    return K


def tiles_in_memory(n: int, n_jobs: int) -> int:
    """Return how many values the tiles of `gram_matrix` hold at once, at most."""
    tile = min(n, _TILE)
    return min(n_jobs, -(-n // tile)) * 3 * tile**2  # values, distances, a mirror image


def has_distances(kernel: Kernel, Z: Block) -> bool:
    """Say whether a kernel computes distances to points, without its values."""
    return kernel.squared_distances(Z, np.float64) is not None


@dataclass(frozen=True)
class GramCenters:
    """Centroids as means of clusters of rows, for R restarts."""

    #: ``α`` (n, R, k): centroid j is ``Σ_i α_ij φ(x_i)``.
    coefficients: Array
    #: ``Σ_{l in cluster} w_l k(x_i, x_l)`` for every row i, of shape (n, R, k).
    sums: Array
    #: Weights and squared norms of the clusters, of shape (R, k).
    counts: Array
    squared_norms: Array
    #: The cluster of each row (n, R), -1 for a row that is in none.
    labels: Array

    def __len__(self) -> int:
        return len(self.counts)

    def select(self, restarts: Sequence[int] | Array) -> GramCenters:
        """Return the centres of some of the restarts."""
        chosen = np.asarray(restarts, dtype=np.intp)
        return GramCenters(
            self.coefficients[:, chosen],
            self.sums[:, chosen],
            self.counts[chosen],
            self.squared_norms[chosen],
            self.labels[:, chosen],
        )

    def join(self, others: Sequence[GramCenters]) -> GramCenters:
        """Return these restarts and others, side by side."""
        every = [self, *others]
        return GramCenters(
            np.concatenate([one.coefficients for one in every], axis=1),
            np.concatenate([one.sums for one in every], axis=1),
            np.concatenate([one.counts for one in every]),
            np.concatenate([one.squared_norms for one in every]),
            np.concatenate([one.labels for one in every], axis=1),
        )


class GramEngine:
    """Lloyd's steps, which read a Gram matrix only for rows that change cluster."""

    def __init__(
        self, K: Array, k: int, weights: Array | None, workers: Workers
    ) -> None:
        self.K = K
        self.k = k
        self.weights = np.ones(len(K)) if weights is None else weights
        self.total_weight = float(self.weights.sum())
        self.diagonal = K.diagonal().astype(np.float64)
        self.workers = workers
        self._spans = block_slices(len(K), block_height(0, min(len(K), 2**14)))
        self._noise = ZERO_DISTANCE_ROUNDINGS * float(np.finfo(K.dtype).eps)

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        """Do nothing: passes depend on their centres alone."""

    def centers_at(self, indices: Array) -> GramCenters:
        """Return centres at these rows, of shape (restarts, k)."""
        restarts, k = indices.shape
        coefficients = np.zeros((len(self.K), restarts * k))
        coefficients[indices.ravel(), np.arange(restarts * k)] = 1.0
        return self._centers(
            coefficients.reshape(-1, restarts, k),
            self.K[indices.ravel()].T.astype(np.float64).reshape(-1, restarts, k),
            self.diagonal[indices],
        )

    def centers_of(self, labels: Array) -> GramCenters:
        """Return the centroids of a partition of shape (n,), after a refill."""
        nothing = np.zeros((len(self.K), 1, self.k))
        nowhere = self._centers(nothing, nothing, np.zeros((1, self.k)))
        centers = self._moved(nowhere, labels[:, None])
        counts = np.bincount(labels, self.weights, minlength=self.k)[None]
        if counts.all():
            return centers
        given = labels[:, None], np.zeros(1), np.empty((1, 0, 0)), counts, counts[:, 0]
        return self.update(PassResult(*given), centers)

    def centers_of_partition(self, labels: Array, k: int) -> GramCenters:
        return self.centers_of(labels)

    def separated(self, labels: Array) -> LloydResult:
        """Return the partition in which each distinct row is a cluster of its own.

        The cost is zero.  Rows labelled -1 go to the nearest centre; clusters without
        rows are so far away that no row is as near to them as to its own centre.
        """
        nothing = np.zeros((len(self.K), 1, self.k))
        away = np.full((1, self.k), 4.0 * float(np.abs(self.K).max()) + 1.0)
        nowhere = self._centers(nothing, nothing, away)
        known = np.where(labels < 0, 0, labels).astype(np.int32)  # they weigh nothing
        centers = self._moved(nowhere, known[:, None])
        nearest = self.assign(centers).labels[:, 0]
        labels = np.where(labels < 0, nearest, labels).astype(np.int32)
        counts = np.bincount(labels, self.weights, minlength=self.k)
        return LloydResult(labels, centers, 0.0, counts, [0.0], converged=True)

    def _centers(
        self, coefficients: Array, sums: Array, squared_norms: Array
    ) -> GramCenters:
        """Return centres that stand for no partition."""
        labels = np.full((len(self.K), len(squared_norms)), -1, dtype=np.int32)
        counts = np.ones_like(squared_norms)
        return GramCenters(coefficients, sums, counts, squared_norms, labels)

    def distances_to(self, indices: Array) -> Array:
        """Return the squared distances from all rows to these rows, for seeding."""
        scale = self.diagonal[:, None] + self.diagonal[indices]
        distances = scale - 2.0 * self.K[indices].T
        distances[distances <= self._noise * np.abs(scale)] = 0.0
        return distances

    def distances(self, centers: GramCenters) -> Array:
        """Return the squared distances of shape (n, R, k)."""
        distances = centers.sums / centers.counts
        distances *= -2.0
        distances += centers.squared_norms
        distances += self.diagonal[:, None, None]
        return distances

    def assign(self, centers: GramCenters, before: Array | None = None) -> PassResult:
        """Return every row's nearest centre; `before` are the labels so far, if any."""
        distances = self.distances(centers)
        labels = distances.argmin(axis=2)
        closest = np.take_along_axis(distances, labels[:, :, None], axis=2)[:, :, 0]
        counts = np.stack(
            [np.bincount(column, self.weights, minlength=self.k) for column in labels.T]
        )
        return PassResult(
            labels.astype(np.int32),
            self.weights @ closest / self.total_weight,
            np.empty((*counts.shape, 0)),
            counts,
            have_changed(before, labels, self.weights),
        )

    def exemplars(self, centers: GramCenters, labels: Array) -> Array:
        """Return each cluster's row of weight that is nearest to its centre.

        For an empty cluster it is the nearest of all rows.
        """
        member = (labels[:, None] == np.arange(self.k)) & (self.weights > 0.0)[:, None]
        member |= ~member.any(axis=0)
        distances = self.distances(centers)[:, 0]
        return np.asarray(np.where(member, distances, np.inf).argmin(axis=0))

    def two_nearest(self, centers: GramCenters) -> TwoNearest:
        distances = self.distances(centers)[:, 0]
        rows, labels = np.arange(len(distances)), distances.argmin(axis=1)
        first = np.maximum(distances[rows, labels], 0.0)
        distances[rows, labels] = np.inf
        return TwoNearest(labels, first, np.maximum(distances.min(axis=1), first))

    def replace_centers(
        self, centers: GramCenters, removed: Array, rows: Array
    ) -> GramCenters:
        many = centers.select(np.zeros(len(rows), dtype=np.intp))
        restarts = np.arange(len(rows))
        many.coefficients[:, restarts, removed] = 0.0
        many.coefficients[rows, restarts, removed] = 1.0
        many.sums[:, restarts, removed] = self.K[rows].T
        many.counts[restarts, removed] = 1.0
        many.squared_norms[restarts, removed] = self.diagonal[rows]
        many.labels[...] = -1
        return many

    def update(self, result: PassResult, centers: GramCenters) -> GramCenters:
        """Return the centroids; an empty cluster takes over one of the farthest rows.

        A cluster that cannot be refilled keeps its centre.
        """
        labels = result.labels.copy()
        rows = np.arange(len(labels))
        for restart in np.flatnonzero((result.counts == 0.0).any(axis=1)).tolist():
            own = labels[:, restart]
            distances = self.distances(centers.select([restart]))[rows, 0, own]
            # Rows that are equal to all others of their cluster are at no distance.
            means = centers.sums[rows, restart, own] / centers.counts[restart, own]
            noise = self._noise * (np.abs(self.diagonal) + np.abs(means))
            counts = result.counts[restart]
            moves = choose_refills(own, distances, noise, self.weights, counts)
            labels[list(moves), restart] = list(moves.values())
        return self._moved(centers, labels)

    def _moved(self, centers: GramCenters, labels: Array) -> GramCenters:
        """Return the centroids of new partitions, from those of the old ones."""
        if len(self.K) * centers.sums.size <= _FEW_PRODUCTS:
            return self._moved_afresh(centers, labels)
        coefficients, sums = centers.coefficients.copy(), centers.sums.copy()
        counts, squared_norms = centers.counts.copy(), centers.squared_norms.copy()
        for restart in range(len(counts)):
            old, new = centers.labels[:, restart], labels[:, restart]
            total = np.bincount(new, self.weights, minlength=self.k)
            full = total > 0.0
            lengths = self._follow(sums[:, restart], old, new, total)
            # Sums of a cluster that is much tighter now hold the rounding of far rows.
            least = _TIGHTER * np.abs(squared_norms[restart])
            if not (np.abs(lengths) >= least)[full].all():
                nowhere = np.full_like(new, -1)
                lengths = self._follow(sums[:, restart], nowhere, new, total)
            squared_norms[restart, full] = lengths[full]
            counts[restart, full] = total[full]
            coefficients[:, restart, full] = 0.0
            member = np.flatnonzero(full[new])
            coefficients[member, restart, new[member]] = (
                self.weights[member] / counts[restart, new[member]]
            )
        return GramCenters(coefficients, sums, counts, squared_norms, labels)

    def _moved_afresh(self, centers: GramCenters, labels: Array) -> GramCenters:
        """Return what `_moved` does, by one product for all restarts."""
        shape = centers.sums.shape
        members = np.zeros(shape)
        np.put_along_axis(members, labels[:, :, None], self.weights[:, None, None], 2)
        sums = (self.K @ members.reshape(len(members), -1)).reshape(shape)
        counts = members.sum(axis=0)
        full = counts > 0.0
        counts = np.where(full, counts, centers.counts)
        within = np.einsum("irk,irk->rk", members, sums)
        return GramCenters(
            np.where(full, members / counts, centers.coefficients),
            np.where(full, sums, centers.sums),
            counts,
            np.where(full, within / counts**2, centers.squared_norms),
            labels,
        )

    def _follow(self, sums: Array, old: Array, new: Array, total: Array) -> Array:
        """Bring the cluster sums up to date, in place; return ``‖c‖²``."""
        full = total > 0.0
        changed = np.flatnonzero(old != new)
        before = np.bincount(old + 1, self.weights, minlength=self.k + 1)
        if 2 * len(changed) > len(new) or before[0] or not before[1:].all():
            # Most rows moved, or a centre stands for no rows: start afresh.
            changed, old = np.arange(len(new)), np.full_like(new, -1)
            sums[:, full] = 0.0
        self._add(sums, changed, old[changed], new[changed], full)
        inside = sums[np.arange(len(new)), new]
        within = np.bincount(new, self.weights * inside, minlength=self.k)
        return np.divide(within, total**2, out=np.zeros(self.k), where=full)

    def _add(
        self, sums: Array, changed: Array, old: Array, new: Array, full: Array
    ) -> None:
        """Add to the cluster sums what `changed` rows bring, less what they take."""
        if not len(changed):
            return
        step = np.zeros((len(changed), self.k), dtype=self.K.dtype)
        rows = np.arange(len(changed))
        weights = self.weights[changed].astype(self.K.dtype)
        step[rows, new] += weights
        was = old >= 0
        step[rows[was], old[was]] -= weights[was]
        step[:, ~full] = 0.0  # a cluster left empty keeps its centre

        everything = len(changed) == len(self.K)

        def add(span: Span) -> None:
            start, stop = span
            if everything:
                sums[start:stop] += self.K[start:stop] @ step
                return
            # Rows of a symmetric matrix are its columns, and lie together.
            sums[start:stop] += self.K[changed, start:stop].T @ step

        # Threads that are handed small products wait longer than they compute.
        work = len(changed) * len(self.K) * self.k / len(self._spans)
        for _ in self.workers.map(add, self._spans, work):
            pass
