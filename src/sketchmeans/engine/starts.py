"""Starts that users give: points, row numbers or a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.finite import check_finite
from sketchmeans.data.rows import Block, Rows, block_height
from sketchmeans.engine.init import Seeding, as_seeding, auto_restarts
from sketchmeans.kernels import Kernel, Precomputed, toarray
from sketchmeans.numerics.linalg import Array

_GIVEN_STARTS = (
    ", or an array: points (k, d), row numbers (k,) or an initial partition (n,)"
)


_GIVEN_CENTERS = ", centers of shape (k, d), or a function that returns them"


@dataclass(frozen=True)
class Start:
    """Exactly one of three: k points, k row numbers or n labels."""

    points: Block | None = None
    indices: Array | None = None
    labels: Array | None = None

    def partition(self, rows: Rows, kernel: Kernel, k: int) -> Array:
        """Return the partition that is given, or that of the rows nearest to points.

        Points lie outside the span of the rows: they serve to form the first partition.
        """
        if self.labels is None:
            return nearest_points(rows, kernel, self.check_points(rows, kernel))
        counts = np.bincount(self.labels, rows.weights, minlength=k)
        if not counts.all():
            raise ValueError(
                f"init gives cluster {int(np.flatnonzero(counts == 0.0)[0])} only rows "
                "with sample_weight 0; every cluster should have a row."
            )
        return self.labels

    def check_points(self, rows: Rows, kernel: Kernel) -> Block:
        """Return the points, if they fit the rows."""
        if isinstance(kernel, Precomputed):
            raise ValueError(
                "init should be row numbers or a partition with kernel='precomputed': "
                "there is no input space for points."
            )
        points = self.points
        assert points is not None
        if points.shape[1] != rows.n_features:
            raise ValueError(
                f"init.shape={points.shape} should have {rows.n_features} columns, "
                "as X has."
            )
        check_finite(points, name="init")
        return points


def read_start(init: Any, n_samples: int, n_clusters: int) -> Start | Seeding:
    """Return what `init` stands for: a seeding, or a given start.

    A one-dimensional array of k integers is row numbers, one of n integers is a
    partition; row numbers if k = n.
    """
    if isinstance(init, str) or hasattr(init, "seed"):
        return as_seeding(init, _GIVEN_STARTS)
    if not sparse.issparse(init):
        init = np.asarray(init, order="C")
    if init.ndim == 2 and init.shape[0] == n_clusters and init.dtype.kind in "fiub":
        return Start(points=sparse.csr_array(init) if sparse.issparse(init) else init)
    if init.ndim == 1 and init.dtype.kind in "iu":
        if len(init) == n_clusters:
            return Start(indices=_check_indices(init, n_samples))
        if len(init) == n_samples:
            return Start(labels=_check_partition(init, n_clusters))
    if init.ndim == 0:
        as_seeding(
            init.item(), _GIVEN_STARTS
        )  # not an array: say which words there are
    raise ValueError(
        f"init of shape {init.shape} and type {init.dtype} should be points of shape "
        f"({n_clusters}, n_features), {n_clusters} row numbers, or a partition of "
        f"{n_samples} integers."
    )


def read_centers(
    init: Any,
    rows: Rows,
    n_clusters: int,
    n_init: int | str,
    rng: np.random.Generator,
) -> Start | Seeding:
    """Return what `init` stands for in plain k-means: a seeding, or given centres.

    The points of the start are of shape (restarts, k, d); a function of the rows, the
    number of clusters and a RandomState is called once for each restart.
    """
    if isinstance(init, str) or hasattr(init, "seed"):
        return as_seeding(init, _GIVEN_CENTERS)
    if not callable(init):
        return Start(points=_check_centers(init, rows.n_features, n_clusters)[None])
    if not rows.in_memory:
        raise ValueError(
            f"init={init!r} should not be a function of rows that are read from a file "
            "or stay on a cluster."
        )
    table = rows.block(0, len(rows))
    calls = [
        init(table, n_clusters, random_state=np.random.RandomState(own))
        for own in rng.integers(2**31, size=auto_restarts(n_clusters, n_init))
    ]
    given = [_check_centers(points, rows.n_features, n_clusters) for points in calls]
    return Start(points=np.stack(given))


def _check_centers(points: Any, n_features: int, n_clusters: int) -> Array:
    """Return given centres in float64, if they fit the rows."""
    points = np.array(toarray(points), dtype=np.float64, ndmin=2)
    if points.shape[0] != n_clusters:
        raise ValueError(
            f"The shape of the initial centers {points.shape} does not match the "
            f"number of clusters {n_clusters}."
        )
    if points.shape[1] != n_features:
        raise ValueError(
            f"The shape of the initial centers {points.shape} does not match the "
            f"number of features of the data {n_features}."
        )
    check_finite(points, name="init")
    return points


def _check_indices(indices: Array, n_samples: int) -> Array:
    if indices.min() < 0 or indices.max() >= n_samples:
        raise ValueError(
            f"init holds row numbers from {indices.min()} to {indices.max()}; they "
            f"should lie in 0..{n_samples - 1}."
        )
    return indices.astype(np.intp)


def _check_partition(labels: Array, n_clusters: int) -> Array:
    found = np.unique(labels)
    if not np.array_equal(found, np.arange(n_clusters)):
        raise ValueError(
            f"init is a partition with the labels {found[:10].tolist()}; it should "
            f"use every label in 0..{n_clusters - 1}."
        )
    return labels.astype(np.int32)


def nearest_points(rows: Rows, kernel: Kernel, points: Block) -> Array:
    """Return the number of the point nearest to each row, in feature space."""
    columns = kernel.against(points, rows.dtype, rows.workers)
    norms = kernel.diagonal(points)

    def nearest(block: Block) -> Array:
        return (norms - 2.0 * columns(block)).argmin(axis=1).astype(np.int32)

    height = block_height(rows.n_features, len(norms))
    return np.concatenate(list(rows.map(nearest, height)))
