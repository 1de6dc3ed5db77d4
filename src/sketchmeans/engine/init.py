"""Where to start: seedings for several restarts at once.

Each seeding sees the rows only through ``distances_to(indices)``, the exact squared
distances (n × q) in feature space from every row to the rows of these numbers, so the
same code seeds plain, kernel and Gram-matrix k-means.  Restarts advance in step: a
step is one pass over the rows for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from sketchmeans.data.sampling import draw
from sketchmeans.engine.types import TwoNearest
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import (
    canonical_name,
    check_integer,
    check_integer_or,
    check_number,
    is_auto,
)

#: Restarts for few clusters; for more of them, this many clusters in all restarts:
#: swaps mend the start of many clusters sooner than other starts do.
_MOST_RESTARTS, _CLUSTERS_STARTED = 12, 600

#: Clusters for which seeds are drawn one after the other.
_MANY_CLUSTERS = 300

Distances = Callable[[Array], Array]
Generators = Sequence[np.random.Generator]


def auto_restarts(n_clusters: int, n_init: int | str = "auto") -> int:
    """Return how many restarts `n_init` stands for: one rule for all estimators.

    Examples
    --------
    >>> [auto_restarts(k) for k in (2, 25, 100, 1000)]
    [12, 12, 6, 1]
    """
    if not is_auto(n_init):
        return int(n_init)
    return max(1, min(_MOST_RESTARTS, round(_CLUSTERS_STARTED / n_clusters)))


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
        check_integer_or("auto", "n_candidates", self.n_candidates)

    def seed(
        self, distances_to: Distances, weights: Array, k: int, rngs: Generators
    ) -> Array:
        chosen = np.empty((len(rngs), k), dtype=np.intp)
        chosen[:, 0] = [draw(weights, 1, rng)[0] for rng in rngs]
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
                costs = weights @ nearer.reshape(len(weights), -1)
                best = costs.reshape(candidates.shape).argmin(axis=1)
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


class KMeansParallel(BaseEstimator):
    """k-means‖ (Bahmani et al. 2012): many rows are drawn at a time by D² sampling.

    A few rounds draw about `oversampling` k rows in all, each with probability
    proportional to its weight times its squared distance to the rows drawn before.
    They get the weight of the rows that are nearest to them, and greedy k-means++
    chooses k among them.  Costs as many passes as there are rounds, whatever k is.

    Parameters
    ----------
    n_rounds : int, default=5
    oversampling : float, default=2.0
        Rows drawn per cluster, in all rounds.
    """

    def __init__(self, n_rounds: int = 5, oversampling: float = 2.0) -> None:
        self.n_rounds = n_rounds
        self.oversampling = oversampling

    def check_params(self) -> None:
        """Raise where a parameter has no meaning."""
        check_integer("n_rounds", self.n_rounds)
        check_number("oversampling", self.oversampling, low=1.0)

    def seed(
        self, distances_to: Distances, weights: Array, k: int, rngs: Generators
    ) -> Array:
        return np.stack([self._seed(distances_to, weights, k, rng) for rng in rngs])

    def _seed(
        self, distances_to: Distances, weights: Array, k: int, rng: np.random.Generator
    ) -> Array:
        size = max(1, round(self.oversampling * k / self.n_rounds))
        closest, owner = np.ones(len(weights)), np.zeros(len(weights), dtype=np.intp)
        drawn, among = np.empty(0, dtype=np.intp), np.empty((0, 0))
        # A round more where many rows are drawn several times.
        for i in range(2 * self.n_rounds):
            if i >= self.n_rounds and len(drawn) >= k:
                break
            chances = weights * closest
            if not chances.any():
                break
            new = np.setdiff1d(draw(chances, size, rng), drawn)
            distances = distances_to(new)
            place = distances.argmin(axis=1)
            nearest = distances[np.arange(len(weights)), place]
            closer = nearest < closest if i else np.ones(len(weights), dtype=bool)
            closest[closer], owner[closer] = nearest[closer], len(drawn) + place[closer]
            drawn = np.append(drawn, new)
            # Of rows drawn before, and of those drawn now, to the latter.
            wide = np.zeros((len(drawn), len(drawn)))
            wide[: len(among), : len(among)] = among
            wide[:, len(among) :] = distances[drawn]
            wide[len(among) :] = wide[:, len(among) :].T
            among = wide
        if len(drawn) >= k:
            sizes = np.bincount(owner, weights, minlength=len(drawn))
            greedy = KMeansPlusPlus("auto")
            chosen = greedy.seed(lambda rows: among[:, rows], sizes, k, [rng])[0]
            drawn = np.unique(drawn[chosen])
        # There may be fewer distinct rows: any others will do.
        others = np.setdiff1d(np.flatnonzero(weights), drawn)
        return np.resize(np.append(drawn, others), k)


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
        check_integer_or("auto", "n_steps", self.n_steps, low=0)

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


def find_swaps(
    near: TwoNearest, distances: Array, weights: Array, k: int
) -> tuple[Array, Array]:
    """Return the centre to replace by each of some rows, and the cost afterwards.

    `distances` (n, q) are those of all rows to these.  A row that loses its centre
    falls back on the second, or on the new one.
    """
    kept = np.minimum(near.first[:, None], distances)
    loss = np.minimum(near.second[:, None], distances)
    loss -= kept
    rows = np.arange(len(weights) + 1)
    members = sparse.csc_array((weights, near.labels, rows), shape=(k, len(weights)))
    losses = members @ loss
    removed = losses.argmin(axis=0)
    return removed, weights @ kept + losses[removed, np.arange(len(removed))]


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
        (removed,), (cost,) = find_swaps(near, candidate[:, None], weights, k)
        return int(removed) if cost < float(weights @ self.first) else None

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
    return draw(chances if chances.any() else weights, size, rng)


class AutoSeeding(BaseEstimator):
    """Greedy k-means++, and k-means‖ for more clusters than that has time for."""

    def seed(
        self, distances_to: Distances, weights: Array, k: int, rngs: Generators
    ) -> Array:
        is_many = k > _MANY_CLUSTERS
        seeding = KMeansParallel() if is_many else KMeansPlusPlus("auto")
        return seeding.seed(distances_to, weights, k, rngs)


SEEDINGS: dict[str, Callable[[], Seeding]] = {
    "auto": AutoSeeding,
    "random": RandomSeeding,
    "k-means++": KMeansPlusPlus,
    "greedy-k-means++": lambda: KMeansPlusPlus(n_candidates="auto"),
    "k-means||": KMeansParallel,
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
