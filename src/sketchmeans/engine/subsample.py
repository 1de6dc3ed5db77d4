"""Subsamples for the search of a start: no heavy or far row is left to chance."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block, Rows, block_height, stack_parts
from sketchmeans.kernels import squared_norms, toarray
from sketchmeans.numerics.linalg import Array

#: Rounds in which rows that would be drawn more than once are set aside.
_ROUNDS = 20

#: Rows are far if their squared distance to the mean is this many times the mean one;
#: at most this many of them are chosen.
_FAR, _FAR_ROWS = 16.0, 16


def nested_subsample(rows: Rows, size: int, rng: np.random.Generator) -> Rows:
    """Return different rows in random order: every leading part is a subsample.

    Half of the chance to be drawn goes by weight, and half by weight times squared
    distance to the mean of the rows (a lightweight coreset, Bachem et al. 2018): few
    rows that are far from all others are not missed.  A row has the weight that it
    stands for.
    """
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    chances = weights / weights.sum()
    spread = weights * squared_offsets(rows)
    rows.squared_offsets = None  # they are not needed again
    total = spread.sum()
    if 0.0 < total < np.inf:
        chances = 0.5 * chances + 0.5 * spread / total
    included = inclusion_probabilities(chances, size)
    drawn = _systematic(included, rng)
    own = weights[drawn] / included[drawn]
    if rows.weights is None and (own == own[0]).all():
        return rows.subset(drawn, None)
    return rows.subset(drawn, own * (len(own) / own.sum()))


def far_rows(rows: Rows, rng: np.random.Generator) -> Array:
    """Return some row numbers out of those that are far from almost all other rows."""
    weights = 1.0 if rows.weights is None else rows.weights
    offsets = weights * squared_offsets(rows)
    far = np.flatnonzero(offsets > _FAR * offsets.mean())
    chances = offsets[far]
    if len(far) <= _FAR_ROWS or not np.isfinite(chances).all():
        return far[:_FAR_ROWS]
    chosen = rng.choice(far, _FAR_ROWS, replace=False, p=chances / chances.sum())
    return np.sort(chosen)


def inclusion_probabilities(chances: Array, size: int) -> Array:
    """Return with which probability each row is among `size` different ones.

    Proportional to `chances`, which add up to one, but no more than one: what would be
    drawn several times is drawn once, and the rest more often.

    Examples
    --------
    >>> import numpy as np
    >>> inclusion_probabilities(np.array([0.9, 0.05, 0.05]), 2)
    array([1. , 0.5, 0.5])
    """
    included = np.minimum(size * chances, 1.0)
    for _ in range(_ROUNDS):
        certain = included >= 1.0
        left = size - np.count_nonzero(certain)
        rest = included[~certain].sum()
        if not rest or abs(rest - left) <= 1e-9 * size:
            break
        included[~certain] = np.minimum(included[~certain] * (left / rest), 1.0)
    return included


def _systematic(included: Array, rng: np.random.Generator) -> Array:
    """Return row numbers drawn with these probabilities, in random order.

    Rows that are certain to be drawn come first.
    """
    order = rng.permutation(len(included))
    edges = np.cumsum(included[order])
    size = round(float(edges[-1]))
    marks = rng.random() + np.arange(size)
    places = np.searchsorted(edges, marks, side="right")
    drawn = np.unique(order[np.minimum(places, len(edges) - 1)])
    rng.shuffle(drawn)
    certain = included[drawn] >= 1.0
    return np.concatenate([drawn[certain], drawn[~certain]])


def squared_offsets(rows: Rows) -> Array:
    """Return ``‖x − mean‖²`` of every row, which costs a pass the first time."""
    if rows.squared_offsets is not None:
        return rows.squared_offsets
    moments, dtype = rows.moments(), rows.dtype
    mean = moments.mean
    # A product is enough where the mean is not far from the origin.
    is_far = not rows.is_sparse and mean @ mean > moments.variance

    def measure(block: Block) -> Array:
        if is_far:
            gap = np.subtract(toarray(block), mean.astype(dtype), dtype=dtype)
            return np.einsum("ij,ij->i", gap, gap)
        if sparse.issparse(block):
            norms, products = squared_norms(block), block.astype(np.float64) @ mean
        else:
            block = block.astype(dtype, copy=False)
            norms = np.einsum("ij,ij->i", block, block)
            products = block @ mean.astype(dtype)
        return np.maximum(norms - 2.0 * products + mean @ mean, 0.0)

    offsets = stack_parts(
        rows.map(measure, block_height(rows.n_features, 0)), (len(rows),)
    )
    rows.squared_offsets = offsets
    return offsets
