"""Lloyd passes over blocks of coordinates, stored or computed as they stream by."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.linalg import ZERO_DISTANCE_ROUNDINGS, Array
from sketchmeans.lloyd import Assignment, Centers
from sketchmeans.rows import Rows, spans
from sketchmeans.spaces import Space

Span = tuple[int, int]

#: Below this many features a kernel block is computed faster than it is read back.
_STORE_FEATURES = 128

#: Matrix products run faster when the right-hand side is this many columns wide.
_WIDTH = 8


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
    """

    def __init__(self, centers: Centers, dtype: np.dtype[Any], height: int) -> None:
        self.n_restarts, self.k, m = centers.coefficients.shape
        self.n_centers = self.n_restarts * self.k
        # A lone restart is widened by centres that are infinitely far away.
        width = self.n_centers
        if self.n_restarts == 1:
            width = -(-width // _WIDTH) * _WIDTH
        self._columns = np.zeros((m, width), dtype=dtype)
        self._columns[:, : self.n_centers] = (
            -2.0 * centers.coefficients.reshape(self.n_centers, m).T
        )
        self._squared_norms = np.full(width, np.inf, dtype=dtype)
        self._squared_norms[: self.n_centers] = centers.squared_norms.ravel()
        # Laid out once: in a block of a thousand rows small steps add up.
        self._first: Array = np.arange(self.n_restarts) * (width // self.n_restarts)
        self._offsets = np.arange(height)[:, None] * width + self._first
        self._pointers = np.arange(0, height * self.n_restarts + 1, self.n_restarts)
        self._ones = np.ones(height * self.n_restarts, dtype=dtype)

    def scores(self, coordinates: Array) -> Array:
        """Return ``‖φ(x) − c‖² − ‖φ(x)‖²`` for all centres, and perhaps some more.

        What is left out is the same for every centre; labels do without it.  The
        centres are the first `n_centers` columns; the rest is infinite.
        """
        products: Array = coordinates @ self._columns
        products += self._squared_norms
        return products

    def nearest(self, scores: Array) -> tuple[Array, Array]:
        """Return each row's nearest centre in each restart, and its score."""
        labels = scores.reshape(len(scores), self.n_restarts, -1).argmin(axis=2)
        return labels, scores.ravel()[self._offsets[: len(scores)] + labels]

    def membership(self, labels: Array, weights: Array | None) -> tuple[Any, Array]:
        """Return the clusters' indicator matrix (R·k × h), and their weights."""
        flat = (labels + self._first).ravel()
        if weights is None:
            mass = self._ones[: len(flat)]
            counts: Array = np.bincount(flat, minlength=self.n_centers) * 1.0
        else:
            mass = np.repeat(weights, self.n_restarts)
            counts = np.bincount(flat, mass, minlength=self.n_centers)
            mass = mass.astype(self._ones.dtype)
        # One column per row of the block: its product sweeps once over the block.
        matrix = sparse.csc_array(
            (mass, flat, self._pointers[: len(labels) + 1]),
            shape=(self.n_centers, len(labels)),
        )
        return matrix, counts


@dataclass(frozen=True)
class BlockSums:
    """What one block of rows adds to a pass."""

    labels: Array
    costs: Array
    sums: Array
    counts: Array
    nearest: Array
    nearest_distances: Array


def assign_block(
    coordinates: Array, norms: Array | float, weights: Array | None, table: Table
) -> BlockSums:
    """Assign a block of rows: the one pure function under every fit.

    Parameters
    ----------
    coordinates : ndarray of shape (h, m)
        ``b_x`` of each row.
    norms : ndarray of shape (h,) or float
        ``‖φ(x)‖²`` of each row; a number if it is the same for all.
    weights : ndarray of shape (h,) or None
    table : Table

    Returns
    -------
    sums : BlockSums
        Labels (h, R), costs (R,), sums of coordinates (R·k, m), counts (R·k,), and
        the row of the block that is nearest to each centre, with its distance.
    """
    scores = table.scores(coordinates)
    labels, closest = table.nearest(scores)
    if weights is None:
        costs = closest.sum(axis=0, dtype=np.float64)
        costs += norms * len(labels) if isinstance(norms, float) else norms.sum()
    else:
        costs = weights @ closest.astype(np.float64)
        costs += weights @ np.broadcast_to(norms, weights.shape)
    membership, counts = table.membership(labels, weights)
    distances = scores if isinstance(norms, float) else scores + norms[:, None]
    if weights is not None:
        # A row of weight 0 is no row, so it is nobody's exemplar.
        distances = np.where(weights[:, None] > 0.0, distances, np.inf)
    nearest = distances[:, : table.n_centers].argmin(axis=0)
    return BlockSums(
        labels,
        costs,
        membership @ coordinates,
        counts,
        nearest,
        distances[nearest, np.arange(table.n_centers)],
    )


class BlockEngine:
    """Lloyd passes over the rows of a source.

    Parameters
    ----------
    rows : Rows
    space : Space
    budget : int
        Bytes in which the coordinates of all rows may be stored; where they do not
        fit they are computed anew in each pass, with the same bits.
    """

    def __init__(self, rows: Rows, space: Space, budget: int = 0) -> None:
        self.rows = rows
        self.space = space
        self.workers = rows.workers
        self._spans = spans(len(rows), space.height)
        shape = (len(rows), space.n_coordinates)
        self._store: Array | None = None
        if (
            rows.n_features >= _STORE_FEATURES
            and shape[0] * shape[1] * space.dtype.itemsize <= budget
        ):
            self._store = np.empty(shape, dtype=space.dtype)
        self._stored = np.zeros(len(self._spans), dtype=bool)

    def leading(self, size: int) -> BlockEngine:
        """Return an engine for the first rows, which shares what is stored.

        `size` is a multiple of the block height or all rows: the blocks, and so the
        bits, are the same.
        """
        part = copy(self)
        part.rows = self.rows.leading(size)
        part._spans = spans(size, self.space.height)
        return part

    def coordinates(self, span: Span) -> Array:
        """Return the coordinates of a block, from the store if it holds them."""
        start, stop = span
        if self._store is None:
            out = self.workers.buffer(
                "coordinates",
                (stop - start, self.space.n_coordinates),
                self.space.dtype,
            )
            return self.space.coordinates(self.rows.block(start, stop), out)
        block, number = self._store[start:stop], start // self.space.height
        if not self._stored[number]:
            self.space.coordinates(self.rows.block(start, stop), block)
            self._stored[number] = True
        return block

    def _table(self, centers: Centers) -> Table:
        return Table(centers, self.space.dtype, self.space.height)

    def _norms(self, span: Span) -> Array | float:
        return self.space.squared_norms(self.rows.block(*span), span[0])

    def assign(self, centers: Centers) -> Assignment:
        """Return every row's nearest centre, in one pass over the rows."""
        restarts, k, m = centers.coefficients.shape
        table = self._table(centers)

        def assign(span: Span) -> BlockSums:
            weights = self.rows.block_weights(*span)
            return assign_block(
                self.coordinates(span), self._norms(span), weights, table
            )

        labels = np.empty((len(self.rows), restarts), dtype=np.int32)
        costs = np.zeros(restarts)
        sums, counts = np.zeros((restarts * k, m)), np.zeros(restarts * k)
        exemplars = np.zeros(restarts * k, dtype=np.intp)
        closest = np.full(restarts * k, np.inf)
        for (start, stop), block in zip(
            self._spans, self.workers.map(assign, self._spans), strict=True
        ):
            labels[start:stop] = block.labels
            costs += block.costs
            sums += block.sums
            counts += block.counts
            nearer = block.nearest_distances < closest
            exemplars[nearer] = start + block.nearest[nearer]
            closest[nearer] = block.nearest_distances[nearer]
        return Assignment(
            labels,
            costs / self.rows.total_weight,
            sums.reshape(restarts, k, m),
            counts.reshape(restarts, k),
            exemplars.reshape(restarts, k),
        )

    def update(self, assignment: Assignment, centers: Centers) -> tuple[Centers, Array]:
        """Return the centroids; an empty cluster takes over one of the costliest rows.

        A cluster that cannot be refilled (there are fewer distinct rows than
        clusters) keeps its centre.
        """
        restarts = len(centers)
        sums, counts = assignment.sums.copy(), assignment.counts.copy()
        refilled = np.zeros(restarts, dtype=bool)
        for restart in np.flatnonzero((counts == 0.0).any(axis=1)).tolist():
            refilled[restart] = self._refill(
                sums[restart],
                counts[restart],
                assignment.labels[:, restart],
                centers.select([restart]),
            )
        full = counts > 0.0
        means = sums[full] / counts[full][:, None]
        coefficients = centers.coefficients.copy()
        squared_norms = centers.squared_norms.copy()
        solved = self.space.coefficients(means).T
        coefficients[full] = solved
        squared_norms[full] = np.einsum("ij,ij->i", means, solved)
        return Centers(coefficients, squared_norms), refilled

    def _refill(
        self, sums: Array, counts: Array, labels: Array, centers: Centers
    ) -> bool:
        """Move costly rows into empty clusters, in place; say if any was moved."""
        empty = list(np.flatnonzero(counts == 0.0))
        candidates = self._costliest(labels, centers, 64 + 4 * len(empty))
        weights = self.rows.weights
        b = self.space.coordinates(self.rows.take(candidates)).astype(np.float64)
        # The part of φ(x) outside the span no centre can reach: leave it out.
        lengths = np.einsum("ij,ji->i", b, self.space.coefficients(b))
        own = labels[candidates]
        distances = (
            lengths
            - 2.0 * np.einsum("ij,ij->i", b, centers.coefficients[0, own])
            + centers.squared_norms[0, own]
        )
        noise = ZERO_DISTANCE_ROUNDINGS * np.finfo(self.space.dtype).eps
        mass = np.ones(len(candidates)) if weights is None else weights[candidates]
        moved = False
        for i in np.argsort(-mass * distances, kind="stable"):
            if not empty:
                break
            source = own[i]
            if distances[i] <= noise * abs(lengths[i]) or counts[source] <= mass[i]:
                continue
            target = empty.pop(0)
            sums[source] -= mass[i] * b[i]
            counts[source] -= mass[i]
            sums[target] = mass[i] * b[i]
            counts[target] = mass[i]
            moved = True
        return moved

    def _costliest(self, labels: Array, centers: Centers, size: int) -> Array:
        """Return the rows with the largest weighted distance to their own centre."""
        costs = np.concatenate(
            [
                distances[np.arange(len(distances)), labels[slice(*span)]]
                for span, distances in zip(
                    self._spans, self.distances(centers), strict=True
                )
            ]
        ).astype(np.float64)
        if self.rows.weights is not None:
            costs *= self.rows.weights
        return np.argsort(-costs, kind="stable")[:size]

    def predict(self, centers: Centers) -> Array:
        """Return every row's nearest centre, without the sums of a pass."""
        table = self._table(centers)

        def nearest(span: Span) -> Array:
            return table.nearest(table.scores(self.coordinates(span)))[0][:, 0]

        labels = np.empty(len(self.rows), dtype=np.int32)
        for span, block in zip(
            self._spans, self.workers.map(nearest, self._spans), strict=True
        ):
            labels[slice(*span)] = block
        return labels

    def distances(self, centers: Centers) -> Iterator[Array]:
        """Yield the squared distances to all centres, block after block."""
        table = self._table(centers)

        def measure(span: Span) -> Array:
            scores = table.scores(self.coordinates(span))[:, : table.n_centers]
            norms = np.broadcast_to(self._norms(span), len(scores))
            return np.maximum(scores + norms[:, None], 0.0)

        return self.workers.map(measure, self._spans)

    def centers_at(self, indices: Array) -> Centers:
        """Return centres at the projections of these rows, of shape (restarts, k)."""
        flat = self.space.coordinates(self.rows.take(indices.ravel()))
        return self.centers_of_means(flat.reshape(*indices.shape, -1))

    def centers_of_partition(self, labels: Array, k: int) -> Centers:
        """Return the centroids of a partition of all rows."""

        def add(span: Span) -> Array:
            weights = self.rows.block_weights(*span)
            mass = np.ones(span[1] - span[0]) if weights is None else weights
            membership = sparse.csc_array(
                (mass, labels[slice(*span)], np.arange(len(mass) + 1)),
                shape=(k, len(mass)),
            )
            return membership @ self.coordinates(span)

        weights = self.rows.weights
        counts = np.bincount(labels, weights, minlength=k)
        if not counts.all():
            raise ValueError(
                f"init gives cluster {int(np.flatnonzero(counts == 0)[0])} only rows "
                "with sample_weight 0; every cluster should have a row."
            )
        sums = sum(self.workers.map(add, self._spans))
        return self.centers_of_means((sums / counts[:, None])[None])

    def all_coordinates(self) -> Array:
        """Return the coordinates of all rows, in one array."""
        values = np.empty((len(self.rows), self.space.n_coordinates), self.space.dtype)

        def fill(span: Span) -> None:
            self.space.coordinates(self.rows.block(*span), values[slice(*span)])

        for _ in self.workers.map(fill, self._spans):
            pass
        return values

    def centers_of_means(self, means: Array) -> Centers:
        """Return the centroids with these mean coordinates (restarts, k, m)."""
        flat = means.reshape(-1, means.shape[-1]).astype(np.float64)
        solved = self.space.coefficients(flat).T
        return Centers(
            solved.reshape(means.shape),
            np.einsum("ij,ij->i", flat, solved).reshape(means.shape[:2]),
        )
