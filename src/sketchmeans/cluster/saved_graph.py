"""The graph of a spectral fit, which is found once and kept in a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.cluster.resume import flatten_points, unflatten_points
from sketchmeans.cluster.scales import ScalePath
from sketchmeans.data.rows import Rows
from sketchmeans.engine.checkpoint import SavedFit
from sketchmeans.engine.lloyd_arrays import Arrays, select_prefix
from sketchmeans.graphs.nearest import NearestPoints
from sketchmeans.graphs.weights import GaussianGraph, GivenGraph, Graph, NeighborGraph
from sketchmeans.numerics.linalg import Array


@dataclass(frozen=True)
class FoundGraph:
    """A graph of all rows, the scales that were tried for it, and the clusters."""

    graph: Graph
    path: ScalePath
    gaps: Array
    n_clusters: int


def load_or_find_graph(
    saved: SavedFit | None,
    rows: Rows,
    shares: Array | None,
    find: Callable[[], FoundGraph],
) -> FoundGraph:
    """Return the graph of a fit, which is looked for only once."""
    if saved is None:
        return find()
    return saved.load_or_compute(
        "graph",
        lambda: _flatten(find()),
        lambda arrays: _unflatten(arrays, rows, shares),
    )


def load_or_weigh_graph(
    saved: SavedFit | None, n_landmarks: int, weigh: Callable[[], sparse.csr_array]
) -> sparse.csr_array:
    """Return ``Zᵀ W Z`` of all rows, which takes a pass over them only once."""
    if saved is None:
        return weigh()
    return saved.load_or_compute(
        "gram",
        lambda: flatten_points(sparse.csr_array(weigh())),
        lambda arrays: unflatten_points(arrays, n_landmarks),
    )


def _flatten(found: FoundGraph) -> Arrays:
    graph, arrays = found.graph, Arrays()
    if isinstance(graph, NeighborGraph):
        nearest = graph.nearest
        arrays = flatten_points(nearest.points) | {
            "scales": graph.scales,
            "n_neighbors": np.array(graph.n_neighbors),
        }
        if nearest.whitening is not None:
            arrays["whitening"] = nearest.whitening
    elif isinstance(graph, GaussianGraph):
        arrays = flatten_points(graph.points) | {"gamma": np.array(graph.gamma)}
    for field in fields(found.path):
        arrays[f"path/{field.name}"] = np.asarray(getattr(found.path, field.name))
    sizes = {"gaps": found.gaps, "n_clusters": np.array(found.n_clusters)}
    return arrays | sizes


def _unflatten(arrays: Arrays, rows: Rows, shares: Array | None) -> FoundGraph:
    tried: dict[str, Any] = select_prefix(arrays, "path/")
    path = ScalePath(**tried | {"chosen": int(tried["chosen"])})
    graph: Graph
    if "scales" in arrays:
        points = unflatten_points(arrays, rows.n_features)
        nearest = NearestPoints(points, rows.dtype, arrays.get("whitening"))
        if arrays["scales"].shape != (len(nearest),):
            raise ValueError("scales do not fit the landmarks")
        graph = NeighborGraph(nearest, arrays["scales"], int(arrays["n_neighbors"]))
    elif "gamma" in arrays:
        points = unflatten_points(arrays, rows.n_features)
        graph = GaussianGraph(points, float(arrays["gamma"]))
    else:
        graph = GivenGraph(len(rows), shares)
    return FoundGraph(graph, path, arrays["gaps"], int(arrays["n_clusters"]))
