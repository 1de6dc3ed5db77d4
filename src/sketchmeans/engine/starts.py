"""Starts that users give: points, row numbers or a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block, Rows, block_height, check_finite
from sketchmeans.engine.init import Seeding, as_seeding
from sketchmeans.kernels import Kernel, Precomputed
from sketchmeans.numerics.linalg import Array

_GIVEN_STARTS = (
    ", or an array: points (k, d), row numbers (k,) or an initial partition (n,)"
)


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
