"""The nearest of a few points, for blocks of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree

from sketchmeans.data.rows import Block
from sketchmeans.kernels import toarray
from sketchmeans.kernels.arrays import SquaredDistances, by_rows
from sketchmeans.numerics.linalg import Array, eigen_decomposition

#: Up to this many features a tree is faster than one product with all points.
_TREE_FEATURES = 8

#: Share of the largest variance below which a direction is left out.
_LEAST_VARIANCE = 1e-6

#: Entries of a table of distances in which the nearest are looked for at a time.
_PART = 2**20


class NearestPoints:
    """Finds the points that are nearest to rows: by a tree, or by matrix products.

    Parameters
    ----------
    points : ndarray or CSR matrix of shape (p, d)
    dtype : dtype
        The float type in which products are computed.
    whitening : ndarray of shape (d, r), optional
        Distances are those of ``x @ whitening``: see `whitening_of`.

    Examples
    --------
    >>> import numpy as np
    >>> points = NearestPoints(np.array([[0.0], [1.0], [5.0]]), np.dtype(float))
    >>> points.find(np.array([[0.9]]), 2)
    (array([[0.1, 0.9]]), array([[1, 0]], dtype=int32))
    """

    def __init__(
        self, points: Block, dtype: np.dtype[Any], whitening: Array | None = None
    ) -> None:
        self.points = by_rows(points)
        self.whitening = whitening
        self._tree: KDTree | None = None
        seen = self.points
        if whitening is not None:
            dtype = np.dtype(np.float64)
            self._origin = toarray(points).mean(axis=0, dtype=np.float64)
            seen = self._whiten(self.points)
        if not sparse.issparse(points) and points.shape[1] <= _TREE_FEATURES:
            wide = np.asarray(seen, dtype=np.float64)
            # A power of two loses no digit; squares of tiny or huge rows would.
            largest = float(np.ptp(wide, axis=0).max(initial=0.0))
            self._unit = 2.0 ** -round(math.log2(largest)) if largest > 0.0 else 1.0
            self._tree = KDTree(wide * self._unit)
        else:
            self._distances = SquaredDistances(seen, dtype)

    def __len__(self) -> int:
        return int(self.points.shape[0])

    @property
    def table_width(self) -> int:
        """Columns of the table of distances of a row: none where there is a tree."""
        return len(self) if self._tree is None else 0

    def find(self, block: Block, count: int) -> tuple[Array, Array]:
        """Return distances (h, count) to the nearest points, ascending, and numbers."""
        if self.whitening is not None:
            block = self._whiten(block)
        if self._tree is not None:
            rows = np.asarray(toarray(block), dtype=np.float64) * self._unit
            distances, numbers = self._tree.query(rows, k=np.arange(1, count + 1))
            return distances / self._unit, numbers.astype(np.int32)
        height = max(1, _PART // len(self))
        starts = range(0, block.shape[0], height)
        parts = [self._in_table(block[i : i + height], count) for i in starts]
        distances, numbers = (np.concatenate(both) for both in zip(*parts, strict=True))
        return distances, numbers

    def _whiten(self, block: Block) -> Array:
        assert self.whitening is not None
        return np.asarray((toarray(block) - self._origin) @ self.whitening)

    def _in_table(self, block: Block, count: int) -> tuple[Array, Array]:
        table = self._distances(block)
        numbers = np.arange(table.shape[1])[None].repeat(len(table), axis=0)
        if count < table.shape[1]:
            numbers = np.argpartition(table, count - 1, axis=1)[:, :count]
        squared = np.take_along_axis(table, numbers, axis=1)
        order = np.argsort(squared, axis=1, kind="stable")
        numbers = np.take_along_axis(numbers, order, axis=1)
        squared = np.take_along_axis(squared, order, axis=1).astype(np.float64)
        return np.sqrt(np.maximum(squared, 0.0)), numbers.astype(np.int32)


def whitening_of(covariance: Array) -> Array:
    """Return T (d, r) such that rows times T have the identity as their covariance.

    Long, thin groups that lie side by side become rounder.  Directions in which rows
    hardly vary are left out.

    Examples
    --------
    >>> import numpy as np
    >>> abs(whitening_of(np.diag([4.0, 1.0, 0.0])))
    array([[0. , 0.5],
           [1. , 0. ],
           [0. , 0. ]])
    """
    values, vectors = eigen_decomposition(covariance)
    keep = values > _LEAST_VARIANCE * max(values[-1], 0.0)
    return np.asarray(vectors[:, keep] / np.sqrt(values[keep]))
