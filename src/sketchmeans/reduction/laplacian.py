"""Features that respect the neighbourhoods of the rows: the baseline."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from sketchmeans.data.rows import Block, Rows, block_height, block_slices
from sketchmeans.data.sources.base import is_csr
from sketchmeans.engine.space import origin
from sketchmeans.numerics.linalg import ZERO_DISTANCE_ROUNDINGS, Array
from sketchmeans.numerics.parameters import check_integer
from sketchmeans.reduction.base import FeatureSelector, Selection, subsample

Span = tuple[int, int]

#: Weights from this to its inverse have squares that floats can hold.
_LEAST_WEIGHT = 1e-100


def neighbour_graph(rows: Rows, n_neighbors: int) -> Any:
    """Return the heat-kernel weights of nearest neighbours, a symmetric CSR matrix.

    ``S_ij = exp(−‖x_i − x_j‖²/(2t²))`` where one of i, j is among the nearest
    neighbours of the other, else 0; t² is the mean squared distance of two rows.

    Rows with weights are that many rows at the same place: entry (i, j) is summed over
    the copies of i and j.
    """
    n = len(rows)
    n_neighbors = min(n_neighbors, n - 1)
    if n_neighbors == 0:
        return sparse.csr_array((n, n))
    variance = rows.moments().variance
    X = rows.load().X.astype(rows.dtype, copy=False)
    shift = origin(rows)
    if not rows.is_sparse:  # the bits of distances depend on the order in memory
        X = np.ascontiguousarray(X)
    if shift.any():
        X = (X - shift).astype(rows.dtype, copy=False)
    with threadpool_limits(rows.workers.n_jobs, user_api="openmp"):
        search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(X)
        distances, neighbours = search.kneighbors()
    # The mean squared distance is twice the variance; equal rows weigh one.
    bandwidth = 4.0 * variance if variance > 0.0 else 1.0
    weights = np.exp(-(distances.astype(np.float64) ** 2) / bandwidth)
    pointers = np.arange(0, n * n_neighbors + 1, n_neighbors)
    directed = sparse.csr_array(
        (weights.ravel(), neighbours.ravel(), pointers), shape=(n, n)
    )
    graph = directed.maximum(directed.T).tocsr()
    copies = rows.given_weights
    if copies is None:
        return graph
    if copies.min() > n_neighbors:  # all neighbours are copies: only ratios matter
        copies = copies / copies.min()
    return _between_copies(graph, neighbours, copies, n_neighbors)


def _between_copies(
    graph: Any, neighbours: Array, weights: Array, n_neighbors: int
) -> Any:
    """Return a graph of rows, summed over the copies that their weights stand for.

    The neighbours of a copy are first the others of its own row, then the nearest rows
    until there are `n_neighbors` copies; of the last row any of them.  Entry (i, j) is
    multiplied by the mean number of pairs of copies that are then linked.  Weights may
    be fractions; however small they are, `n_neighbors` rows are neighbours enough.
    """
    n, others = len(weights), np.maximum(weights - 1.0, 0.0)
    unit = float(weights.max())
    if _LEAST_WEIGHT < unit < 1.0 / _LEAST_WEIGHT:
        unit = 1.0  # else squares overflow; scores are ratios and do without
    near = weights[neighbours]
    missing = n_neighbors - others[:, None] - (np.cumsum(near, axis=1) - near)
    share = np.clip(missing / near, 0.0, 1.0)
    pointers = np.arange(0, neighbours.size + 1, neighbours.shape[1])
    chosen = sparse.csr_array(
        (share.ravel(), neighbours.ravel(), pointers), shape=(n, n)
    )
    linked = chosen + chosen.T - chosen.multiply(chosen.T)
    scale = sparse.diags_array(weights / unit)
    # The copies of one row are at distance zero, where the heat kernel is one.
    own = np.minimum(n_neighbors / np.maximum(others, 1e-300), 1.0)
    loops = (weights / unit) * (others / unit) * (1.0 - (1.0 - own) ** 2)
    between = scale @ graph.multiply(linked) @ scale
    return (between + sparse.diags_array(loops)).tocsr()


def _without_zero_weights(rows: Rows) -> Rows:
    """Return the rows whose weight is not zero: the others are nobody's neighbours."""
    if rows.weights is None or rows.weights.all():
        return rows
    kept = np.flatnonzero(rows.weights)
    return rows.subset(kept, rows.weights[kept])


def laplacian_scores(rows: Rows, graph: Any) -> Array:
    """Return ``f̃ᵀLf̃ / f̃ᵀDf̃`` for every feature f; constant ones get infinity.

    With weights S, degrees ``D = diag(S1)`` and ``L = D − S``, f̃ is f minus its mean
    by degree.  The numerator is summed over edges, ``Σ_{i<j} S_ij (f_i − f_j)²``,
    which loses nothing far from the origin.
    """
    roughness = _edge_sums(rows, sparse.triu(graph, format="coo"))
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    sums, squares = _degree_sums(rows, degrees)
    spread = squares - sums**2 / max(float(degrees.sum()), np.finfo(float).tiny)
    noise = ZERO_DISTANCE_ROUNDINGS * np.finfo(np.float64).eps
    varies = spread > noise * squares
    return np.divide(roughness, spread, out=np.full(len(spread), np.inf), where=varies)


def _edge_sums(rows: Rows, edges: Any) -> Array:
    """Return ``Σ S_ij (x_i − x_j)²`` over the edges, for every feature."""

    def add(span: Span) -> Array:
        ends = edges.row[slice(*span)], edges.col[slice(*span)]
        here, there = (rows.take(end).astype(np.float64) for end in ends)
        return _weighted_squares(here - there, edges.data[slice(*span)])

    height = block_height(2 * rows.n_features, 0)
    parts = rows.workers.map(add, block_slices(edges.nnz, height))
    return sum(parts, np.zeros(rows.n_features))


def _degree_sums(rows: Rows, degrees: Array) -> tuple[Array, Array]:
    """Return the sums of the features and of their squares, weighted by degree.

    Dense rows are taken about their mean, sparse ones as they are.
    """
    shift = None if rows.is_sparse else rows.moments().mean

    def add(span: Span) -> Array:
        block, weights = rows.block(*span).astype(np.float64), degrees[slice(*span)]
        if shift is not None:
            block -= shift
        return np.stack([weights @ block, _weighted_squares(block, weights)])

    height = block_height(rows.n_features, 0)
    total = sum(rows.workers.map(add, block_slices(len(rows), height)), np.zeros(1))
    return total[0], total[1]


def _weighted_squares(block: Block, weights: Array) -> Array:
    squares = block.multiply(block) if is_csr(block) else block * block
    return np.asarray(weights @ squares)


@dataclass(eq=False, repr=False)
class LaplacianScore(FeatureSelector):
    """The features of lowest Laplacian score (He, Cai & Niyogi, NIPS 2005).

    A good feature takes close values on neighbouring rows and varies over all:

        score(f) = Σ_ij S_ij (f_i − f_j)² / (2 Σ_i D_ii (f_i − f̄)²),

    with S the heat-kernel weights ``exp(−‖x_i − x_j‖²/(2t²))`` of the graph of nearest
    neighbours, t² the mean squared distance of two rows, ``D_ii = Σ_j S_ij`` and f̄ the
    mean by D.  This is the baseline of B14 §7; it has no guarantee.  Fitting compares
    all pairs of rows, O(n² d) time in small pieces; the graph takes O(n · n_neighbors)
    memory, and integer rows a copy in floats.  Give `fit_rows` where n is large.

    Parameters
    ----------
    n_components : int, optional
        How many features to choose, at most the number of features d.  None takes
        ``max(20, 4·n_clusters)``, or d if that is less.
    n_clusters : int, default=8
        It only sets the default of `n_components`.
    n_neighbors : int, default=5
        Neighbours of each row; all other rows if there are fewer.  A row of weight 3
        counts as three neighbours.
    fit_rows : int, optional
        Fit on this many rows, drawn at random.  None takes all.
    n_jobs : int, optional
        Threads; None means all cores.
    random_state : int, Generator, RandomState or None
        Used with `fit_rows` only.

    Attributes
    ----------
    scores_ : ndarray of shape (d,)
        Lower is better; infinite for constant features.
    n_components_ : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> X[:30, 1] += 10.0
    >>> LaplacianScore(1).fit(X).get_support()
    array([False,  True, False])
    """

    n_components: int | None = None
    n_clusters: int = 8
    _: KW_ONLY
    n_neighbors: int = 5
    fit_rows: int | None = None
    n_jobs: int | None = None
    random_state: Any = None

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("n_neighbors", self.n_neighbors)

    def _draw(
        self, rows: Rows, n_components: int, rng: np.random.Generator
    ) -> Selection:
        # Every row is compared with all: they have to be in memory.
        rows = _without_zero_weights(subsample(rows, self.fit_rows, rng).load())
        self.scores_ = laplacian_scores(rows, neighbour_graph(rows, self.n_neighbors))
        best = np.argsort(self.scores_, kind="stable")[:n_components]
        return Selection(np.sort(best), np.ones(n_components))
