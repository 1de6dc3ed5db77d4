"""One block of rows against all centres: the pure function under every fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.linalg import Array
from sketchmeans.lloyd import Centers

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
        self.n_coordinates = m
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

    def second(self, scores: Array, labels: Array) -> Array:
        """Return the second lowest score of each row, for one restart.

        Overwrites the lowest; infinite where there is one centre only.
        """
        flat = scores.ravel()
        flat[(self._offsets[: len(scores)] + labels).ravel()] = np.inf
        return flat[self._offsets[: len(scores), 0] + scores.argmin(axis=1)]

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
    """What one block of rows adds to a pass.

    Attributes
    ----------
    labels : ndarray of shape (h, R)
    sums : ndarray of shape (R·k, m)
        Weighted sums of the coordinates of each cluster's rows.
    counts : ndarray of shape (R·k,)
        Weight of each cluster.
    norms : float
        Weighted sum of ``‖φ(x)‖²``.
    nearest : ndarray of shape (2, h) or None
        Squared distances to the nearest and second nearest centre, for one restart.
    """

    labels: Array
    sums: Array
    counts: Array
    norms: float
    nearest: Array | None = None


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
    scores = table.scores(coordinates)
    labels, closest = table.nearest(scores)
    membership, counts = table.membership(labels, weights)
    sums = dense(membership @ coordinates)
    if isinstance(norms, float):
        total = norms * (len(labels) if weights is None else float(weights.sum()))
    else:
        total = float(norms.sum() if weights is None else weights @ norms)
    if table.n_restarts > 1:
        return BlockSums(labels, sums, counts, total)
    nearest = np.stack([closest[:, 0], table.second(scores, labels)])
    nearest += norms
    return BlockSums(labels, sums, counts, total, nearest)


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


def packed(sums: Array, counts: Array, norms: float) -> Array:
    """Return what a block adds to a pass as one vector, in float64."""
    size = sums.size
    vector = np.empty(size + counts.size + 1)
    vector[:size] = sums.ravel()
    vector[size:-1] = counts.ravel()
    vector[-1] = norms
    return vector


def unpacked(vector: Array, shape: tuple[int, ...]) -> tuple[Array, Array, float]:
    """Return sums of this shape (R, k, m), counts (R, k) and norms from a vector."""
    restarts, k, m = shape
    size = restarts * k * m
    counts = vector[size:-1].reshape(restarts, k)
    return vector[:size].reshape(shape), counts, float(vector[-1])
