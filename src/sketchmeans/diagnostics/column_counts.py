"""Values of columns, counted by bin and by level as rows are read."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from sketchmeans.cluster.reference import LEVELS, ColumnCounts, ColumnSpan
from sketchmeans.data.rows import Block
from sketchmeans.kernels import toarray
from sketchmeans.numerics.linalg import Array


def find_edges(columns: Sequence[ColumnSpan], rows: Block) -> Array | None:
    """Return quantiles of the columns of numbers; zeros for one without values."""
    numbers = [column for column in columns if column.levels is None]
    if not numbers:
        return None
    edges = np.zeros((len(numbers), len(LEVELS)))
    for j, column in enumerate(numbers):
        values = _values(rows, column)
        values = values[~np.isnan(values)]
        if len(values):
            edges[j] = np.quantile(values, LEVELS, method="inverted_cdf")
    return edges


def _values(rows: Block, column: ColumnSpan) -> Array:
    """Return the first feature of a column, dense and in float64."""
    values = toarray(rows[:, [column.features.start]])
    return np.asarray(values, dtype=np.float64)[:, 0]


def count_columns(
    columns: Sequence[ColumnSpan], edges: Array | None, rows: Block
) -> ColumnCounts:
    """Count the values of some rows, which are encoded and have NaN for gaps."""
    missing = np.zeros(len(columns), np.int64)
    bins = None if edges is None else np.zeros((len(edges), len(LEVELS) + 1), np.int64)
    levels: list[Array] = []
    number = 0
    if sparse.issparse(rows):
        rows = sparse.csc_array(rows)
    for j, column in enumerate(columns):
        values = _values(rows, column)
        is_missing = np.isnan(values)
        missing[j] = is_missing.sum()
        if column.levels is not None:
            levels.append(_count_levels(column, rows[~is_missing]))
            continue
        assert edges is not None
        assert bins is not None
        places = np.searchsorted(edges[number], values[~is_missing], side="left")
        bins[number] = np.bincount(places, minlength=len(LEVELS) + 1)
        number += 1
    flat = np.concatenate(levels) if levels else None
    return ColumnCounts(rows.shape[0], missing, bins, flat)


def _count_levels(column: ColumnSpan, rows: Array) -> Array:
    """Return the rows of each level, and those that have none of them."""
    block = rows[:, column.features]
    if block.shape[1] == 1:  # yes or no
        n_yes = int((block[:, 0] == 1.0).sum())
        n_no = int((block[:, 0] == 0.0).sum())
        counts = np.array([n_no, n_yes])
    else:
        counts = (block == 1.0).sum(axis=0)
    return np.append(counts, len(block) - counts.sum()).astype(np.int64)


class ColumnCounter:
    """Adds up the counts of blocks, from any number of threads.

    Rows with gaps are not counted where the model is `is_dropping` them.
    """

    def __init__(
        self,
        columns: Sequence[ColumnSpan],
        edges: Array | None,
        *,
        is_dropping: bool = False,
    ) -> None:
        self._columns, self._edges = columns, edges
        self._is_dropping = is_dropping
        self._lock = threading.Lock()
        self.counts: ColumnCounts | None = None

    def __call__(self, block: Block) -> None:
        if self._is_dropping:
            block = block[~np.isnan(toarray(block)).any(axis=1)]
        counts = count_columns(self._columns, self._edges, block)
        with self._lock:
            self.counts = counts if self.counts is None else self.counts + counts
