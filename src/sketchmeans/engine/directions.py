"""Rows in the leading directions of a space, where many passes look for clusters.

A sketch of B14's kind (approximate SVD), of features that may be those of a kernel: a
partition that is good in few directions is nearly as good in all, and is found for a
fraction of the work.  Passes in the whole space refine it.
"""

from __future__ import annotations

import numpy as np

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import Block, Rows, block_slices
from sketchmeans.data.sampling import row_weights, sample_rows
from sketchmeans.engine.space import Space
from sketchmeans.engine.store import KernelBlocks, Span
from sketchmeans.kernels import toarray
from sketchmeans.numerics.linalg import Array, eigen_decomposition

#: Directions that are enough to look for any number of clusters, and the rows in which
#: they are found.
DIRECTIONS, DIRECTION_ROWS = 48, 8192

#: Rows of them that a thread adds up at a time; of wide rows so many are enough, or as
#: many as have so many values.
_PART, _MOST_VALUES = 1024, 2**24

#: From this many clusters on the detour saves time, in a space of this many times more
#: columns; and for few rows, all of which several restarts read in every pass.
_MANY_CLUSTERS, _WIDER, _FEW_ROWS = 64, 2.0, 8192

#: The rows in their leading directions take no more bytes than that.
_MOST_BYTES = 2**30


def pays_to_project(rows: Rows, space: Space, k: int, n_init: int) -> bool:
    """Say whether the search for clusters starts in few directions.

    The data alone decide, so that a fit in less memory goes the same way.
    """
    is_local = find_adapter(rows) is None and not rows.is_sparse
    is_wide = space.n_columns >= _WIDER * DIRECTIONS
    are_all_read = n_init > 1 and len(rows) <= _FEW_ROWS
    has_many_passes = k >= _MANY_CLUSTERS or are_all_read
    is_small = projected_bytes(rows, space) <= _MOST_BYTES
    return is_local and is_wide and has_many_passes and is_small


def projected_bytes(rows: Rows, space: Space) -> int:
    """Return the bytes that the rows take in their leading directions."""
    return len(rows) * DIRECTIONS * space.dtype.itemsize


def projection_need(rows: Rows, space: Space) -> int:
    """Return the bytes that the search for directions takes, and then the rows in them.

    A matrix of the columns of narrow rows is part of what their space takes.
    """
    size = min(direction_rows(space.n_columns), len(rows))
    wide = 3 * size * space.n_columns * 8 if space.n_columns > size else 0
    return projected_bytes(rows, space) + wide


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
    drawn, weights = _draw_rows(rows, direction_rows(space.n_columns), rng)
    find = _of_wide_rows if space.n_columns > len(drawn) else _of_scatter
    vectors, mean = find(blocks, rows.take(drawn), weights)
    root = space.root()
    projection = vectors if root is None else root @ vectors
    return np.ascontiguousarray(projection), mean @ vectors


def _draw_rows(rows: Rows, most: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the numbers of rows that stand for all, and their weights.

    All of them if they are not too many: a far one may be a direction of its own.
    """
    if len(rows) <= most:
        weights = row_weights(rows)
        drawn = np.flatnonzero(weights)
        return drawn, weights[drawn]
    drawn, counts = np.unique(sample_rows(rows, most, rng), return_counts=True)
    return drawn, counts.astype(np.float64)


def direction_rows(n_columns: int) -> int:
    """Return the number of rows in which directions are found, at most."""
    return min(DIRECTION_ROWS, max(_PART, _MOST_VALUES // n_columns))


def _of_scatter(
    blocks: KernelBlocks, few: Block, weights: Array
) -> tuple[Array, Array]:
    """Return the leading vectors of the rows' scatter matrix, and their mean."""
    space = blocks.space

    def add_up(span: Span) -> tuple[Array, Array]:
        b = toarray(space.kernel_block(few[slice(*span)])).astype(np.float64)
        weighted = b * weights[slice(*span), None]
        return weighted.sum(axis=0), weighted.T @ b

    parts = blocks.workers.map(add_up, block_slices(few.shape[0], _PART))
    total, second = (sum(part) for part in zip(*parts, strict=True))
    mean, root = total / weights.sum(), space.root()
    scatter = second - np.outer(total, mean)
    if root is not None:
        scatter, mean = root.T @ scatter @ root, mean @ root
    _, vectors = eigen_decomposition(scatter, largest=min(DIRECTIONS, len(mean)))
    return vectors[:, ::-1], mean


def _of_wide_rows(
    blocks: KernelBlocks, few: Block, weights: Array
) -> tuple[Array, Array]:
    """Return the same of fewer rows than columns, from the products of rows."""
    values = toarray(blocks.space.kernel_block(few)).astype(np.float64)
    root = blocks.space.root()
    if root is not None:
        values = values @ root
    mean = weights @ values / weights.sum()
    values -= mean
    values *= np.sqrt(weights)[:, None]
    most = min(DIRECTIONS, *values.shape)
    lengths, weights = eigen_decomposition(values @ values.T, largest=most)
    # What is left of directions that no row has is rounding.
    noise = values.shape[1] * np.finfo(np.float64).eps * lengths[-1]
    scale = np.sqrt(lengths, where=lengths > noise, out=np.full(most, np.inf))
    return (values.T @ weights / scale)[:, ::-1], mean
