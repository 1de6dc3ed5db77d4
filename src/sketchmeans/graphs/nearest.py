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
from sketchmeans.numerics.linalg import Array

#: Up to so many features a tree is faster than one product with all points.
_TREE_FEATURES = 8

#: Entries of a table of distances in which the nearest are looked for at a time.
_PART = 2**20


class NearestPoints:
    """Finds the points that are nearest to rows: by a tree, or by matrix products.

    Parameters
    ----------
    points : ndarray or CSR matrix of shape (p, d)
    dtype : dtype
        The float type in which products are computed.

    Examples
    --------
    >>> import numpy as np
    >>> points = NearestPoints(np.array([[0.0], [1.0], [5.0]]), np.dtype(float))
    >>> points.find(np.array([[0.9]]), 2)
    (array([[0.1, 0.9]]), array([[1, 0]], dtype=int32))
    """

    def __init__(self, points: Block, dtype: np.dtype[Any]) -> None:
        self.points = by_rows(points)
        self._dtype = dtype
        self._tree: KDTree | None = None
        if not sparse.issparse(points) and points.shape[1] <= _TREE_FEATURES:
            wide = np.asarray(points, dtype=np.float64)
            # A power of two loses no digit; squares of tiny or huge rows would.
            largest = float(np.ptp(wide, axis=0).max(initial=0.0))
            self._unit = 2.0 ** -round(math.log2(largest)) if largest > 0.0 else 1.0
            self._tree = KDTree(wide * self._unit)
        else:
            self._distances = SquaredDistances(self.points, dtype)

    def __len__(self) -> int:
        return int(self.points.shape[0])

    @property
    def table_width(self) -> int:
        """Columns of the table of distances of a row: none where there is a tree."""
        return len(self) if self._tree is None else 0

    def find(self, block: Block, count: int) -> tuple[Array, Array]:
        """Return distances (h, count) to the nearest points, ascending, and numbers."""
        if self._tree is not None:
            rows = np.asarray(toarray(block), dtype=np.float64) * self._unit
            distances, numbers = self._tree.query(rows, k=np.arange(1, count + 1))
            return distances / self._unit, numbers.astype(np.int32)
        height = max(1, _PART // len(self))
        starts = range(0, block.shape[0], height)
        parts = [self._in_table(block[i : i + height], count) for i in starts]
        distances, numbers = (np.concatenate(both) for both in zip(*parts, strict=True))
        return distances, numbers

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
