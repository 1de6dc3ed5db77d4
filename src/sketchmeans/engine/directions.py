"""Rows in the leading directions of a space, where many clusters are looked for.

A sketch of B14's kind (approximate SVD), of features that may be those of a kernel: a
partition that is good in few directions is nearly as good in all, and is found for a
fraction of the work.  Passes in the whole space refine it.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import Rows
from sketchmeans.engine.space import Space
from sketchmeans.engine.store import KernelBlocks, Span
from sketchmeans.kernels import toarray
from sketchmeans.numerics.linalg import Array

#: Directions that are enough to look for any number of clusters, and the rows in which
#: they are found.
DIRECTIONS, DIRECTION_ROWS = 48, 8192

#: From so many clusters on the detour pays, in a space of so many more columns.
_MANY_CLUSTERS, _WIDER = 64, 2.0

#: The rows in their leading directions take no more bytes than that.
_MOST_BYTES = 2**30


def pays_to_project(rows: Rows, space: Space, k: int) -> bool:
    """Say whether the search for clusters starts in few directions.

    The data alone decide, so that a fit in less memory goes the same way.
    """
    is_local = find_adapter(rows) is None and not rows.is_sparse
    is_wide = space.n_columns >= _WIDER * DIRECTIONS
    return (
        is_local
        and is_wide
        and k >= _MANY_CLUSTERS
        and projected_bytes(rows, space) <= _MOST_BYTES
    )


def projected_bytes(rows: Rows, space: Space) -> int:
    """Return the bytes that the rows take in their leading directions."""
    return len(rows) * DIRECTIONS * space.dtype.itemsize


def project_rows(blocks: KernelBlocks, rng: np.random.Generator) -> Rows:
    """Return the rows in their leading directions, about the mean, in memory."""
    rows, space = blocks.rows, blocks.space
    projection, origin = _leading_directions(blocks, rng)
    projection, origin = (part.astype(space.dtype) for part in (projection, origin))
    E = np.empty((len(rows), projection.shape[1]), dtype=space.dtype)

    def project(span: Span) -> None:
        part = E[slice(*span)]
        np.matmul(toarray(blocks.values(span)), projection, out=part)
        part -= origin

    for _ in blocks.map(project):
        pass
    return rows.with_features(E)


def _leading_directions(
    blocks: KernelBlocks, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return a projection (m × r) of kernel values, and that of their mean."""
    rows, space = blocks.rows, blocks.space
    chances = np.ones(len(rows)) if rows.weights is None else rows.weights
    size = min(DIRECTION_ROWS, len(rows))
    drawn = np.unique(rng.choice(len(rows), size, p=chances / chances.sum()))
    b = toarray(space.kernel_block(rows.take(drawn))).astype(np.float64)
    root = space.root()
    features = b if root is None else b @ root
    mean = features.mean(axis=0)
    features -= mean
    width = features.shape[1]
    first = max(0, width - DIRECTIONS)
    _, vectors = eigh(features.T @ features, subset_by_index=[first, width - 1])
    vectors = vectors[:, ::-1]
    projection = vectors if root is None else root @ vectors
    return np.ascontiguousarray(projection), mean @ vectors
