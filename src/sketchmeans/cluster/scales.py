"""The scale of a graph: how many neighbours or what bandwidth, tried on a sample."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from sketchmeans.cluster.cuts import SMALL_CUT, Cut, CutSearch, weigh_graph
from sketchmeans.data.rows import Block, Rows
from sketchmeans.engine.blocks import BlockEngine, local_engine
from sketchmeans.graphs.nearest import NearestPoints
from sketchmeans.graphs.space import GraphSpace
from sketchmeans.graphs.spectrum import Spectrum, smallest_eigenvalues
from sketchmeans.graphs.weights import (
    GaussianGraph,
    GivenGraph,
    Graph,
    NeighborGraph,
    neighbor_scales,
    self_tuned_weights,
)
from sketchmeans.numerics.linalg import Array

#: A cluster with less than this share of an even one is likely a few outliers.
_LEAST_SHARE = 1.0 / 20.0

#: Maximum numbers of restarts and passes on the sample.
_RESTARTS, _PASSES = 4, 8


@dataclass(frozen=True)
class ScalePath:
    """The graphs that were tried on a sample of the rows.

    Attributes
    ----------
    n_landmarks : ndarray of shape (t,)
    scale : ndarray of shape (t,)
        Numbers of neighbours, or bandwidths.
    whitened : ndarray of shape (t,)
        1 where distances are those of whitened rows, else 0.
    smallest_share : ndarray of shape (t,)
        Weight of the smallest cluster, as a share of that of an even one.  Graphs
        that have one below 0.05 are taken only if all do.
    gap : ndarray of shape (t,)
        The next eigenvalue over the cut per cluster; the largest is taken.
    chosen : int
        Which one was taken.
    """

    n_landmarks: Array
    scale: Array
    whitened: Array
    smallest_share: Array
    gap: Array
    chosen: int


@dataclass(frozen=True)
class Scale:
    """A graph that is tried on a sample."""

    graph: Graph
    #: The number of neighbours, or the bandwidth.
    value: float
    spectrum: Spectrum
    gram: sparse.csr_array
    engine: BlockEngine

    @classmethod
    def of_graph(cls, sample: Rows, graph: Graph, value: float, n_values: int) -> Scale:
        """Return a graph of the sample with its smallest eigenvalues."""
        Z = sparse.vstack(list(sample.map(graph.weights, graph.height)), format="csr")
        return cls.of_weights(sample, Z, graph, value, n_values)

    @classmethod
    def of_weights(
        cls,
        sample: Rows,
        Z: sparse.csr_array,
        graph: Graph,
        value: float,
        n_values: int,
    ) -> Scale:
        """Return the same where the rows of Z are known."""
        rows = Rows(Z, sample.workers, sample.weights, checked=True)
        engine = local_engine(rows, GraphSpace(GivenGraph(graph.n_columns)))
        gram = weigh_graph(engine)
        return cls(graph, value, smallest_eigenvalues(gram, n_values), gram, engine)


def try_neighbors(
    sample: Rows, nearest: NearestPoints, counts: tuple[int, ...], n_values: int
) -> list[Scale]:
    """Return graphs with several numbers of neighbours, which are found once."""
    p = len(nearest)
    counts = tuple(sorted({min(count, p) for count in counts}))
    height = NeighborGraph(nearest, np.ones(p), counts[-1]).height
    found = sample.map(lambda block: nearest.find(block, counts[-1]), height)
    distances, numbers = map(np.concatenate, zip(*found, strict=True))

    def try_count(count: int) -> Scale:
        near, who = distances[:, :count], numbers[:, :count]
        scales = neighbor_scales(near, who, sample.weights, p)
        Z = self_tuned_weights(near, who, scales)
        graph = NeighborGraph(nearest, scales, count)
        return Scale.of_weights(sample, Z, graph, count, n_values)

    # Many neighbours take longest.
    return [*sample.workers.map(try_count, counts[::-1])][::-1]


def try_bandwidths(
    sample: Rows, landmarks: Block, gammas: list[float], n_values: int
) -> list[Scale]:
    """Return graphs to all landmarks with several bandwidths."""
    return [
        Scale.of_graph(sample, GaussianGraph(landmarks, gamma), gamma, n_values)
        for gamma in gammas
    ]


def choose_scale(
    tried: list[Scale], search: CutSearch, k: int, rng: np.random.Generator
) -> tuple[Scale, ScalePath]:
    """Return the graph with the clearest clusters, and all that were tried."""
    quick = replace(
        search,
        n_init=min(search.n_init, _RESTARTS),
        max_iter=min(search.max_iter, _PASSES),
        swaps=False,
    )

    def cut(one: tuple[Scale, np.random.Generator]) -> Cut:
        scale, own = one
        return quick.run(scale.engine, scale.gram, scale.spectrum, k, own)

    workers = tried[0].engine.rows.workers
    pairs = zip(tried, rng.spawn(len(tried)), strict=True)
    cuts = [*workers.map(cut, pairs)]
    keys = [(cut.smallest_share >= _LEAST_SHARE, cut.gap) for cut in cuts]
    best = max(range(len(tried)), key=lambda i: (keys[i], -i))
    path = ScalePath(
        np.array([one.graph.n_columns for one in tried]),
        np.array([float(one.value) for one in tried]),
        np.array([int(_is_whitened(one.graph)) for one in tried]),
        np.array([cut.smallest_share for cut in cuts]),
        np.array([cut.gap for cut in cuts]),
        best,
    )
    return tried[best], path


def _is_whitened(graph: Graph) -> bool:
    return isinstance(graph, NeighborGraph) and graph.nearest.whitening is not None


def relative_gaps(tried: list[Scale]) -> Array:
    """Return the largest relative eigengap after k eigenvalues, over all graphs.

    Entry k is ``max (μ_{k+1} + ε) / (μ_k + ε)``; entries 0 and 1 mean nothing and are
    zero.
    """
    size = min(len(one.spectrum.values) for one in tried)
    gaps = np.zeros(max(size, 2))
    if size > 2:
        values = np.stack([one.spectrum.values[:size] for one in tried])
        ratio = (values[:, 2:] + SMALL_CUT) / (values[:, 1:-1] + SMALL_CUT)
        gaps[2:] = ratio.max(axis=0)
    return gaps
