"""The feature space of a row-landmark graph, and the pass that adds the graph up.

Let Z (n × p) connect rows to landmarks, its rows adding up to one, W = diag(w) the
weights of the rows and Λ = diag(Zᵀw).  Then ``K = Z Λ⁻¹ Zᵀ`` is a graph between rows in
which every row has degree one, ``K w = 1``, and its normalised cut is weighted kernel
k-means (Dhillon, Guan & Kulis, 2007): with clusters c of weight W_c,

    NCut = k − Σ_c W_c ‖m_c‖²,   m_c the centroid of ``φ(x) = Λ^(−½) z(x)`` over c.

So the engine's passes lower the cut itself: ``b_x = z(x)`` and ``M = Λ⁻¹``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block
from sketchmeans.engine.passes import Reduction
from sketchmeans.engine.store import KernelBlocks, Span
from sketchmeans.graphs.weights import Graph
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.sums import TreeSum, merge_sums


class GraphSpace:
    """Where the rows of a row-landmark graph are points.

    Parameters
    ----------
    graph : Graph
        Maps blocks of rows to rows of Z.
    degrees : ndarray of shape (p,), optional
        The diagonal of Λ, which a first pass over all rows finds: see `weigh`.
    """

    dtype = np.dtype(np.float64)
    storable = True
    is_euclidean = False
    constant_norm: float | None = None

    def __init__(self, graph: Graph, degrees: Array | None = None) -> None:
        self.graph = graph
        self.n_columns = graph.n_columns
        self.height = graph.height
        self.row_bytes = graph.row_bytes
        self._inverse = np.zeros(0)
        if degrees is not None:
            self.weigh(degrees)

    def weigh(self, degrees: Array) -> None:
        """Set Λ; landmarks of weight 0 are connected only to rows of weight 0."""
        self._inverse = np.divide(
            1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0.0
        )

    def kernel_block(self, block: Block, out: Array | None = None) -> sparse.csr_array:
        return self.graph.weights(block)

    def row_norms(self, block: Block, numbers: Array) -> Array:
        return self.value_norms(self.graph.weights(block))

    def value_norms(self, values: sparse.csr_array) -> Array:
        """Return ``‖φ(x)‖²`` from rows of Z."""
        return np.asarray(values.power(2) @ self._inverse)

    def features(self, block: Block) -> sparse.csr_array:
        """Return ``φ(x) = Λ^(−½) z(x)`` for every row of a block."""
        roots = sparse.diags_array(np.sqrt(self._inverse))
        return sparse.csr_array(self.graph.weights(block) @ roots)

    def root(self) -> Array:
        return np.diag(np.sqrt(self._inverse))

    def coefficients(self, means: Array) -> Array:
        columns = np.asarray(means, dtype=np.float64).T
        return np.asarray(columns * self._inverse[:, None])


@dataclass(frozen=True)
class LandmarkGram(Reduction):
    """``Zᵀ W Z`` (p × p, sparse), along the tree of block numbers.

    As rows of Z add up to one, so do its rows to the diagonal of Λ.
    """

    def chunk(self, blocks: KernelBlocks) -> tuple[None, TreeSum]:
        def add(span: Span) -> sparse.csr_array:
            Z, weights = sparse.csr_array(blocks.values(span)), blocks.weights(span)
            scaled = Z
            if weights is not None:
                each = np.repeat(weights, np.diff(Z.indptr))
                scaled = sparse.csr_array((Z.data * each, Z.indices, Z.indptr), Z.shape)
            return sparse.csr_array(Z.T.tocsr() @ scaled)

        total = TreeSum()
        for number, _, term in blocks.map(add):
            total.add(number, term)
        return None, total

    def combine(self, summaries: list[TreeSum]) -> TreeSum:
        return merge_sums(summaries)

    def finalize(self, summary: TreeSum) -> sparse.csr_array:
        gram = summary.total()
        return sparse.csr_array((gram + gram.T) * 0.5)  # equal but for rounding
