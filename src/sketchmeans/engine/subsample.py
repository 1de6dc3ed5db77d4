"""Subsamples for the search of a start: no heavy or far row is left to chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block, Rows, block_height, stack_parts
from sketchmeans.engine.space import Space
from sketchmeans.engine.store import cheap_to_repeat
from sketchmeans.kernels import squared_norms, toarray
from sketchmeans.numerics.linalg import Array

#: Size of the first subsample, enough rows of it a cluster, and the fewest.
_FIRST_ROWS, _FIRST_ROWS_PER_CLUSTER, _LEAST_ROWS_PER_CLUSTER = 2048, 64, 16
#: The last subsample has at most this share of all rows, and at most so many ...
_LAST_SHARE, _LAST_ROWS, _LAST_ROWS_PER_CLUSTER = 0.25, 32768, 64
#: ... or this share, where a first subsample of enough rows would be more ...
_LARGEST_SHARE = 0.5
#: ... or this share of very many, where full passes are long, in so many bytes.
_LARGE_SHARE, _LARGE_BYTES = 1 / 32, 2**28
#: Where full passes are cheap, a smaller share of more than a few will do.
_CHEAP_SHARE, _FEW_ROWS = 0.125, 4096

#: Rows looked at together, so that what is computed on the way stays small.
_PART = 2**18

#: Rounds in which rows that would be drawn more than once are set aside.
_ROUNDS = 20

#: Rows are far if their squared distance to the mean is this many times the mean one;
#: at most this many of them are chosen.
_FAR, _FAR_ROWS = 16.0, 16


def subsample_sizes(
    n_rows: int, n_clusters: int, row_bytes: int = 1, *, cheap: bool = False
) -> list[int]:
    """Return the sizes of the nested subsamples, each twice the one before.

    They depend on n, k, the bytes of a row and whether full passes are `cheap`.  Empty
    where n is too small for a detour to pay.

    Examples
    --------
    >>> subsample_sizes(100_000, 10)
    [2048, 4096, 8192, 16384]
    >>> subsample_sizes(100_000, 10, cheap=True)
    [2048, 4096, 8192]
    """
    first = _FIRST_ROWS
    while first < _FIRST_ROWS_PER_CLUSTER * n_clusters:
        first *= 2
    most = max(
        _LAST_ROWS,
        _LAST_ROWS_PER_CLUSTER * n_clusters,
        min(_LARGE_SHARE * n_rows, _LARGE_BYTES // max(row_bytes, 1)),
    )
    last = min(_LAST_SHARE * n_rows, most)
    if cheap:
        last = min(last, max(_CHEAP_SHARE * n_rows, _FEW_ROWS))
    # Fewer rows than that will do for many clusters, if there are not so many.
    fewer = int(min(first, _LARGEST_SHARE * n_rows))
    least = max(_FIRST_ROWS, _LEAST_ROWS_PER_CLUSTER * n_clusters)
    if first > max(last, _FIRST_ROWS) and fewer >= least:
        return [fewer]
    sizes = []
    while first <= last:
        sizes.append(first)
        first *= 2
    return sizes


def sizes_for(rows: Rows, space: Space, n_clusters: int) -> list[int]:
    """Return the sizes of the nested subsamples of these rows."""
    cheap = cheap_to_repeat(rows, space)
    return subsample_sizes(len(rows), n_clusters, rows.row_bytes, cheap=cheap)


@dataclass(frozen=True)
class Chances:
    """With which probability each row is among some different ones.

    Proportional to the weight of a row times ``even + far ‖x − mean‖²``, but no more
    than one: what would be drawn several times is drawn once, and the rest more often.
    They are computed where they are asked for, as arrays of all rows would be large.
    """

    offsets: Array
    weights: Array | None
    even: float
    far: float

    @classmethod
    def of(cls, offsets: Array, weights: Array | None, size: int) -> Chances:
        """Return probabilities that add up to `size`.

        Half of them goes by weight, and half by weight times squared distance.
        """
        total = float(len(offsets)) if weights is None else float(weights.sum())
        bare = cls(offsets, weights, 0.0, 1.0)
        spread = sum(float(bare.products(part).sum()) for part in bare.parts())
        even, far = size / total, 0.0
        if 0.0 < spread < np.inf:
            even, far = 0.5 * even, 0.5 * size / spread
        found = cls(offsets, weights, even, far)
        for _ in range(_ROUNDS):
            parts = (found.at(part) for part in found.parts())
            sums = [(np.count_nonzero(p >= 1.0), p[p < 1.0].sum()) for p in parts]
            n_certain, rest = (float(sum(column)) for column in zip(*sums, strict=True))
            left = size - n_certain
            if not rest or abs(rest - left) <= 1e-9 * size:
                break
            even, far = found.even * (left / rest), found.far * (left / rest)
            found = cls(offsets, weights, even, far)
        return found

    def at(self, rows: slice | Array) -> Array:
        """Return the probabilities of some rows."""
        return np.minimum(self.products(rows), 1.0)

    def products(self, rows: slice | Array) -> Array:
        """Return what the probabilities of some rows are before the cut at one."""
        products = self.offsets[rows].astype(np.float64)
        products *= self.far
        products += self.even
        if self.weights is not None:
            products *= self.weights[rows]
        return products

    def parts(self) -> Iterator[slice]:
        """Yield all rows, some of them at a time."""
        for start in range(0, len(self.offsets), _PART):
            yield slice(start, start + _PART)


def nested_subsample(rows: Rows, size: int, rng: np.random.Generator) -> Rows:
    """Return different rows in random order: every leading part is a subsample.

    Half of the chance to be drawn goes by weight, and half by weight times squared
    distance to the mean of the rows (a lightweight coreset, Bachem et al. 2018): few
    rows that are far from all others are not missed.  A row has the weight that it
    stands for.  Takes 8 bytes a row in float32, and 12 in float64.
    """
    chances = Chances.of(squared_offsets(rows), rows.weights, size)
    rows.squared_offsets = None  # they are not needed again
    drawn = _systematic(chances, rng)
    weights = 1.0 if rows.weights is None else rows.weights[drawn]
    own = weights / chances.at(drawn)
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


def _systematic(chances: Chances, rng: np.random.Generator) -> Array:
    """Return row numbers drawn with these probabilities, in random order.

    Rows that are certain to be drawn come first.
    """
    n_rows = len(chances.offsets)
    order = np.arange(n_rows, dtype=np.min_scalar_type(-n_rows))
    rng.shuffle(order)
    first, edge, found = rng.random(), 0.0, []
    # Marks are one apart: a row is drawn if one is between its edges.
    for part in chances.parts():
        steps = chances.at(order[part])
        steps[0] += edge
        edges = np.cumsum(steps)
        marks = np.ceil(np.array([edge, edges[-1]]) - first)
        places = np.searchsorted(edges, first + np.arange(*marks), side="right")
        found.append(order[part][np.minimum(places, len(edges) - 1)])
        edge = float(edges[-1])
    every = np.concatenate(found).astype(np.intp)
    size = round(edge)
    if len(every) < size:  # the last mark is beyond the last edge by rounding
        every = np.append(every, int(order[-1]))
    drawn = np.unique(every[:size])
    rng.shuffle(drawn)
    certain = chances.at(drawn) >= 1.0
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

    parts = rows.map(measure, block_height(rows.n_features, 0))
    offsets = stack_parts(parts, (len(rows),), np.float64 if rows.is_sparse else dtype)
    rows.squared_offsets = offsets
    return offsets
