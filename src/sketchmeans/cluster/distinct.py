"""As many clusters as distinct rows, or more: each value is a cluster of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchmeans.data.rows import Rows, block_height, block_slices
from sketchmeans.numerics.linalg import Array


def labels_of_distinct_rows(rows: Rows, k: int) -> Array | None:
    """Return a label for each distinct row, if there are at most k; else None.

    They are numbered in the order in which they first appear.  Rows of weight 0 get
    the label of an equal row that counts, or -1.  Few rows are read where there are
    more than k distinct ones.
    """
    numbers: dict[Any, int] = {}
    labels = np.full(len(rows), -1, dtype=np.int32)
    left_out: list[tuple[int, Any]] = []
    for start, stop in block_slices(len(rows), block_height(rows.n_features, 0)):
        weights = rows.block_weights(start, stop)
        for i, key in enumerate(_keys(rows, rows.block(start, stop)), start):
            if weights is not None and weights[i - start] == 0.0:
                left_out.append((i, key))
                continue
            labels[i] = numbers.setdefault(key, len(numbers))
            if len(numbers) > k:
                return None
    for i, key in left_out:
        labels[i] = numbers.get(key, -1)
    return labels


def _keys(rows: Rows, block: Any) -> Any:
    """Yield a key for each row; equal rows have equal keys."""
    if not rows.is_sparse:
        for row in block:
            yield (row + 0).tobytes()  # no negative zeros
        return
    block = block.copy()
    block.sum_duplicates()
    block.eliminate_zeros()
    for i in range(block.shape[0]):
        span = slice(block.indptr[i], block.indptr[i + 1])
        yield block.indices[span].tobytes(), block.data[span].tobytes()
