"""Nyström features of rows, computed when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.block_sums import sum_blocks
from sketchmeans.data.rows import Block, Rows, block_height
from sketchmeans.kernels import Kernel
from sketchmeans.numerics.linalg import Array, eigen_decomposition


class FeatureRows:
    """The features ``k(X, Z) R`` of the rows of a source, computed when asked for."""

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        points: Block,
        root: Array,
        dtype: np.dtype[Any],
    ) -> None:
        self.rows = rows
        self.dtype = dtype
        self.height = block_height(points.shape[1], points.shape[0])
        self.width = root.shape[1]
        self._map = self._mapping(kernel, points, root.astype(dtype))

    def _mapping(
        self, kernel: Kernel, points: Block, root: Array
    ) -> Callable[[Block], Array]:
        """Return a function of blocks that can travel to workers, without the rows."""
        dtype, buffer = self.dtype, self.rows.workers.buffer
        columns = kernel.against(points, dtype, self.rows.workers)

        def features(block: Block) -> Array:
            out = buffer("FeatureRows", (block.shape[0], len(root)), dtype)
            return np.asarray(columns(block, out) @ root)

        return features

    def block(self, start: int, stop: int) -> Array:
        return self._map(self.rows.block(start, stop))

    def take(self, indices: Array) -> Array:
        return self._map(self.rows.take(indices))

    def compute(self, dtype: np.dtype[Any]) -> Any:
        """Return the features of all rows, in one array; lazy if they are elsewhere."""
        if find_adapter(self.rows) is not None:
            remote: Any = self.rows
            features = self._map
            return remote.map_lazily(lambda block: features(block).astype(dtype))

        def write(part: slice, out: Array) -> None:
            out[...] = self.block(part.start, part.stop)

        values = np.empty((len(self.rows), self.width), dtype)
        return self.rows.workers.fill(values, write, self.height)

    def leading_directions(self, rank: int) -> Array:
        """Return the top eigenvectors of ``Fᵀ D F``, the largest first."""
        features = self._map

        def products(block: Block, weights: Array | None) -> tuple[Array, ...]:
            F = features(block).astype(np.float64)
            return (F.T @ (F if weights is None else weights[:, None] * F),)

        (total,) = sum_blocks(self.rows, products, self.height)
        vectors = eigen_decomposition(total, driver="evd")[1]
        return vectors[:, ::-1][:, :rank]
