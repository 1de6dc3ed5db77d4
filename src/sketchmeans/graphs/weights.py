"""How strongly a row is connected to landmarks: rows of a stochastic matrix Z.

Every kind of graph maps a block of rows to a CSR block of Z (h × p), whose rows add up
to one.  `space.GraphSpace` makes a feature space of it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block, Rows, block_height
from sketchmeans.graphs.nearest import NearestPoints
from sketchmeans.kernels import RBF
from sketchmeans.numerics.linalg import SYMMETRY_TOLERANCE, Array

#: Weights below this share of the largest of a row are as good as none, but a graph
#: that they hold together shall not fall apart by underflow.
_LEAST_WEIGHT = 1e-12


class Graph(Protocol):
    """Connects rows to p landmarks."""

    n_columns: int
    #: Rows of a block, and bytes of a row of Z.
    height: int
    row_bytes: int

    def weights(self, block: Block) -> sparse.csr_array:
        """Return rows of Z: non-negative, each with sum one."""
        ...


class NeighborGraph:
    """Connects rows to their s nearest landmarks, with self-tuned weights.

    ``z_ij ∝ exp(−d_ij² / (d_is σ_j))``: d_is is the distance from the row to its s-th
    landmark, and σ_j what that distance is on average near landmark j, so that sparse
    and dense regions have scales of their own (Zelnik-Manor & Perona, 2004).

    Parameters
    ----------
    nearest : NearestPoints
        The landmarks.
    scales : ndarray of shape (p,)
        ``σ_j``.
    n_neighbors : int
        Landmarks per row, s.
    """

    def __init__(self, nearest: NearestPoints, scales: Array, n_neighbors: int) -> None:
        self.nearest = nearest
        self.scales = scales
        self.n_neighbors = n_neighbors
        self.n_columns = len(nearest)
        width = nearest.table_width + n_neighbors
        self.height = block_height(nearest.points.shape[1], width)
        self.row_bytes = 12 * n_neighbors + 8

    def weights(self, block: Block) -> sparse.csr_array:
        found = self.nearest.find(block, self.n_neighbors)
        return self_tuned_weights(*found, self.scales)


def neighbor_scales(
    distances: Array, numbers: Array, weights: Array | None, n_landmarks: int
) -> Array:
    """Return ``σ_j``: the mean distance to the last neighbour of rows nearest to j.

    Landmarks that are nearest to no row take the mean of all rows.
    """
    first, last = numbers[:, 0], distances[:, -1]
    each = np.ones(len(first)) if weights is None else weights
    counts = np.bincount(first, each, n_landmarks)
    sums = np.bincount(first, each * last, n_landmarks)
    mean = sums.sum() / counts.sum()
    return np.divide(sums, counts, out=np.full(n_landmarks, mean), where=counts > 0.0)


def self_tuned_weights(
    distances: Array, numbers: Array, scales: Array
) -> sparse.csr_array:
    """Return rows of Z from distances to the nearest landmarks, and their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> distances, numbers = np.array([[0.0, 1.0]]), np.array([[1, 0]])
    >>> self_tuned_weights(distances, numbers, np.ones(2)).toarray().round(2)
    array([[0.27, 0.73]])
    """
    n_rows, count = distances.shape
    last = distances[:, -1:]
    # Where all are at distance zero, all are as near as can be.
    ratio = np.divide(distances, last, out=np.zeros_like(distances), where=last > 0.0)
    near = scales[numbers]
    exponents = np.divide(distances, near, out=np.zeros_like(ratio), where=near > 0.0)
    exponents *= -ratio
    # Landmarks of scale zero are at rows that have s equal landmarks.
    exponents[(near <= 0.0) & (distances > 0.0)] = -np.inf
    values = np.maximum(np.exp(exponents), _LEAST_WEIGHT)
    values /= values.sum(axis=1, keepdims=True)
    edges = np.arange(0, n_rows * count + 1, count, dtype=np.int32)
    return sparse.csr_array(
        (values.ravel(), numbers.ravel(), edges), shape=(n_rows, len(scales))
    )


class GaussianGraph:
    """Connects rows to all landmarks: ``z_ij ∝ exp(−gamma ‖x_i − l_j‖²)``.

    One scale for all rows, as in the normalised cut of an rbf graph; Z is dense.
    """

    def __init__(self, points: Block, gamma: float) -> None:
        self.points, self.gamma = points, gamma
        self.n_columns = int(points.shape[0])
        self.height = block_height(points.shape[1], self.n_columns)
        self.row_bytes = 12 * self.n_columns + 8
        self._columns = RBF(gamma).against(points, np.dtype(np.float64))
        self._nearest = NearestPoints(points, np.dtype(np.float64))

    def weights(self, block: Block) -> sparse.csr_array:
        values = np.maximum(self._columns(block), 0.0)
        far = np.flatnonzero(values.max(axis=1) < _LEAST_WEIGHT)
        if len(far):  # all weights underflow: the nearest landmark has all
            _, numbers = self._nearest.find(block[far], 1)
            values[far] = 0.0
            values[far, numbers[:, 0]] = 1.0
        values /= values.sum(axis=1, keepdims=True)
        return sparse.csr_array(values)


def check_graph(rows: Rows) -> sparse.csr_array:
    """Return a graph that a user gave, in CSR form: symmetric and non-negative."""
    n = len(rows)
    if rows.n_features != n:
        raise ValueError(
            f"X.shape={(n, rows.n_features)} should be square with "
            "affinity='precomputed': the weights of edges between rows."
        )
    graph = sparse.csr_array(rows.block(0, n), dtype=np.float64)
    graph.eliminate_zeros()
    if graph.nnz and graph.data.min() < 0.0:
        raise ValueError(
            f"X holds {graph.data.min():g}: weights of edges should not be negative."
        )
    gap = abs(graph - graph.T)
    if gap.nnz and gap.max() > SYMMETRY_TOLERANCE * graph.max():
        raise ValueError(
            "X should be symmetric with affinity='precomputed'. Use (X + X.T) / 2 for "
            "a graph of nearest neighbours."
        )
    return graph


class GivenGraph:
    """Rows that are connections already: a graph that the user gave, or rows of Z.

    For a symmetric graph of degrees D, and rows weighted by degree, ``Z = D⁻¹ X`` has
    Λ = D and ``K = D⁻¹ X D⁻¹ X D⁻¹``: two steps of the random walk, with the same
    eigenvectors as one.

    `shares` (p,) multiplies the columns before rows are made to add up to one.
    """

    def __init__(self, n_columns: int, shares: Array | None = None) -> None:
        self.n_columns = n_columns
        self.height = block_height(0, 64)
        self.row_bytes = 0
        self._shares = shares

    def weights(self, block: Block) -> sparse.csr_array:
        wide = sparse.csr_array(block, dtype=np.float64)
        if self._shares is not None:
            wide = sparse.csr_array(wide.multiply(self._shares[None]))
        sums = np.asarray(wide.sum(axis=1)).ravel()
        inverse = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0.0)
        counts = np.diff(wide.indptr)
        return sparse.csr_array(
            (wide.data * np.repeat(inverse, counts), wide.indices, wide.indptr),
            shape=wide.shape,
        )
