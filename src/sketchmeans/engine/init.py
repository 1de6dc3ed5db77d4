"""Where to start: seedings for several restarts at once, and starts that users give.

Each seeding sees the rows only through ``distances_to(indices)``, the exact squared
distances (n × q) in feature space from every row to the rows of these numbers, so the
same code seeds plain, kernel and Gram-matrix k-means.  Restarts advance in step: a
step is one pass over the rows for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from sketchmeans.data.rows import Block, Rows, block_height, check_finite
from sketchmeans.engine.types import TwoNearest
from sketchmeans.kernels import Kernel, Precomputed
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import canonical_name, check_integer, is_auto

Distances = Callable[[Array], Array]
Generators = Sequence[np.random.Generator]


class Seeding(Protocol):
    """A way to choose the rows at which the centres start."""

    def seed(
        self, distances_to: Distances, weights: Array, k: int, rngs: Generators
    ) -> Array:
        """Return row numbers of shape (restarts, k), one restart for each generator."""
        ...


class KMeansPlusPlus(BaseEstimator):
    """D² sampling (Arthur & Vassilvitskii).

    Each centre is a row drawn with probability proportional to its weight times its
    squared distance to the nearest centre so far.  The expected cost is at most
    8(ln k + 2) times the optimum (CR18 Prop. 3).  Costs k passes over the rows.

    Parameters
    ----------
    n_candidates : int or "auto", default=1
        Rows drawn for each centre; the one that lowers the cost most is taken.
        More than one is the greedy variant, which is better in practice but outside
        the guarantee.  "auto" is 2 + ⌊ln k⌋.
    """

    def __init__(self, n_candidates: int | str = 1) -> None:
        self.n_candidates = n_candidates

    def check_params(self) -> None:
        """Raise where a parameter has no meaning."""
        if not is_auto(self.n_candidates):
            check_integer("n_candidates", self.n_candidates)

    def seed(
        self, distances_to: Distances, weights: Array, k: int, rngs: Generators
    ) -> Array:
        chosen = np.empty((len(rngs), k), dtype=np.intp)
        chosen[:, 0] = [_draw(weights, rng, 1)[0] for rng in rngs]
        closest = distances_to(chosen[:, 0])
        tries = (
            2 + int(np.log(k)) if is_auto(self.n_candidates) else int(self.n_candidates)
        )
        restarts = np.arange(len(rngs))
        for j in range(1, k):
            candidates = np.stack(
                [
                    _draw_new(
                        self._chances(closest[:, r]), weights, rng, tries, chosen[r, :j]
                    )
                    for r, rng in enumerate(rngs)
                ]
            )
            nearer = distances_to(candidates.ravel()).reshape(
                len(weights), *candidates.shape
            )
            np.minimum(nearer, closest[:, :, None], out=nearer)
            best = np.zeros(len(rngs), dtype=np.intp)
            if tries > 1:
                best = np.einsum("i,irc->rc", weights, nearer).argmin(axis=1)
            chosen[:, j] = candidates[restarts, best]
            closest = nearer[:, restarts, best]
        return chosen

    def _chances(self, closest: Array) -> Array:
        """Return what a row's chance is proportional to, next to its weight."""
        return closest


class RandomSeeding(KMeansPlusPlus):
    """Rows of distinct values drawn with probability proportional to their weight."""

    def __init__(self) -> None:
        super().__init__(n_candidates=1)

    def _chances(self, closest: Array) -> Array:
        return (closest > 0.0).astype(np.float64)


class LocalSearch(BaseEstimator):
    """k-means++ followed by local search (Lattanzi & Sohler; L21 §3.2).

    A step draws one candidate by D² sampling and swaps it for the centre whose loss
    it makes up best, if that lowers the cost.  Nearest and second-nearest distances
    are kept, so a step costs one pass; a swap looks again only at the rows that had
    the old centre nearest or second nearest.

    Parameters
    ----------
    n_steps : int or "auto", default="auto"
        Number of candidates; "auto" is 2k.  O(k ln ln k) steps give a constant-factor
        approximation in expectation.
    """

    def __init__(self, n_steps: int | str = "auto") -> None:
        self.n_steps = n_steps

    def check_params(self) -> None:
        """Raise where a parameter has no meaning."""
        if not is_auto(self.n_steps):
            check_integer("n_steps", self.n_steps, low=0)

    def seed(
        self, distances_to: Distances, weights: Array, k: int, rngs: Generators
    ) -> Array:
        chosen = KMeansPlusPlus().seed(distances_to, weights, k, rngs)
        if k == 1:
            return chosen
        states = [_SwapState(distances_to(centres)) for centres in chosen]
        steps = 2 * k if is_auto(self.n_steps) else int(self.n_steps)
        for _ in range(steps):
            candidates = np.array(
                [
                    _draw_new(state.first, weights, rng, 1, centres)[0]
                    for state, rng, centres in zip(states, rngs, chosen, strict=True)
                ]
            )
            distances = distances_to(candidates)
            for r, state in enumerate(states):
                removed = state.best_swap(distances[:, r], weights)
                if removed is not None:
                    chosen[r, removed] = candidates[r]
                    state.swap(removed, distances[:, r])
        return chosen


def find_swap(
    near: TwoNearest, distances: Array, weights: Array, k: int
) -> tuple[int, float]:
    """Return the centre to replace by a row, and the cost afterwards.

    `distances` are those of all rows to that row.  A row that loses its centre falls
    back on the second, or on the new one.
    """
    kept = np.minimum(near.first, distances)
    loss = weights * (np.minimum(near.second, distances) - kept)
    losses = np.bincount(near.labels, loss, minlength=k)
    removed = int(losses.argmin())
    return removed, float(weights @ kept) + float(losses[removed])


class _SwapState:
    """Distances to the k centres, with the nearest and second nearest of each row."""

    def __init__(self, distances: Array) -> None:
        self.distances = distances
        rows = np.arange(len(distances))
        self.nearest = distances.argmin(axis=1)
        self.first = distances[rows, self.nearest]
        self.second = np.empty_like(self.first)
        self.runner_up = np.empty_like(self.nearest)
        self._find_second(rows)

    def _find_second(self, rows: Array) -> None:
        others = self.distances[rows]
        others[np.arange(len(rows)), self.nearest[rows]] = np.inf
        self.runner_up[rows] = others.argmin(axis=1)
        self.second[rows] = others[np.arange(len(rows)), self.runner_up[rows]]

    def best_swap(self, candidate: Array, weights: Array) -> int | None:
        """Return the centre to replace by the candidate, or None if none gains."""
        k = self.distances.shape[1]
        near = TwoNearest(self.nearest, self.first, self.second)
        removed, cost = find_swap(near, candidate, weights, k)
        return removed if cost < float(weights @ self.first) else None

    def swap(self, removed: int, candidate: Array) -> None:
        """Replace a centre by the candidate with these distances."""
        self.distances[:, removed] = candidate
        touched = (self.nearest == removed) | (self.runner_up == removed)
        touched |= candidate < self.second
        rows = np.flatnonzero(touched)
        near = self.distances[rows]
        self.nearest[rows] = near.argmin(axis=1)
        self.first[rows] = near[np.arange(len(rows)), self.nearest[rows]]
        self._find_second(rows)


def _draw(chances: Array, rng: np.random.Generator, size: int) -> Array:
    """Return row numbers drawn with probability proportional to `chances`."""
    edges = np.cumsum(chances, dtype=np.float64)
    drawn = np.searchsorted(edges, rng.random(size) * edges[-1], side="right")
    return np.minimum(drawn, np.flatnonzero(chances)[-1])


def _draw_new(
    chances: Array, weights: Array, rng: np.random.Generator, size: int, taken: Array
) -> Array:
    """Return row numbers drawn with probability proportional to weight times `chances`.

    Where no chance is left, every distinct row is a centre already: what is drawn next
    cannot lower the cost, and any row that is not `taken` will do.
    """
    chances = weights * chances
    if not chances.any():
        chances = weights.copy()
        chances[taken] = 0.0
    return _draw(chances if chances.any() else weights, rng, size)


SEEDINGS: dict[str, Callable[[], Seeding]] = {
    "random": RandomSeeding,
    "k-means++": KMeansPlusPlus,
    "greedy-k-means++": lambda: KMeansPlusPlus(n_candidates="auto"),
    "local-search": LocalSearch,
}


def as_seeding(init: Any, others: str = "") -> Seeding:
    """Return the seeding that a user's `init` stands for, with its parameters checked.

    `others` says what else it might have been.
    """
    if isinstance(init, str):
        if (name := canonical_name(init)) in SEEDINGS:
            return SEEDINGS[name]()
    elif hasattr(init, "seed"):
        if hasattr(init, "check_params"):  # now, not when the landmarks are chosen
            init.check_params()
        return cast(Seeding, init)
    raise ValueError(
        f"init={init!r} should be one of {sorted(SEEDINGS)}, or a seeding object"
        f"{others}."
    )


# --- given starts ---------------------------------------------------------------------

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
            return Start(indices=_checked_indices(init, n_samples))
        if len(init) == n_samples:
            return Start(labels=_checked_partition(init, n_clusters))
    if init.ndim == 0:
        as_seeding(
            init.item(), _GIVEN_STARTS
        )  # not an array: say which words there are
    raise ValueError(
        f"init of shape {init.shape} and type {init.dtype} should be points of shape "
        f"({n_clusters}, n_features), {n_clusters} row numbers, or a partition of "
        f"{n_samples} integers."
    )


def _checked_indices(indices: Array, n_samples: int) -> Array:
    if indices.min() < 0 or indices.max() >= n_samples:
        raise ValueError(
            f"init holds row numbers from {indices.min()} to {indices.max()}; they "
            f"should lie in 0..{n_samples - 1}."
        )
    return indices.astype(np.intp)


def _checked_partition(labels: Array, n_clusters: int) -> Array:
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
