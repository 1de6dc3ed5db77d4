"""What passes over rows take and return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from sketchmeans.numerics.linalg import Array

#: Rows looked at together, so that what is computed on the way stays small.
_PART = 2**18


@dataclass(frozen=True)
class Centers:
    """Centroids ``c = Σ_i α_i φ(z_i)`` of R restarts, in float64."""

    #: ``α``, of shape (R, k, m).
    coefficients: Array
    #: ``‖c‖²`` (R, k); infinite for a centre that fills up a restart of fewer clusters.
    squared_norms: Array
    #: The mean kernel values ``b̄`` (R, k, m), from which ``α = M b̄``.
    means: Array

    def __len__(self) -> int:
        return len(self.coefficients)

    def select(self, restarts: Sequence[int] | Array) -> Self:
        """Return the centres of some of the restarts."""
        chosen: Any = np.asarray(restarts, dtype=np.intp)
        if len(restarts) == 1:  # nothing is copied
            chosen = slice(restarts[0], restarts[0] + 1)
        return type(self)(
            self.coefficients[chosen], self.squared_norms[chosen], self.means[chosen]
        )

    def join(self, others: Sequence[Centers]) -> Centers:
        """Return these restarts and others, side by side."""
        return side_by_side([self, *others])


def side_by_side(restarts: Sequence[Centers]) -> Centers:
    """Return the centres of several restarts as one.

    Restarts of fewer clusters are filled up with centres that are infinitely far away,
    so that passes for several numbers of clusters are one matrix product, too.
    """
    k = max(centers.squared_norms.shape[1] for centers in restarts)

    def stack(name: str, fill: float) -> Array:
        parts = [getattr(centers, name) for centers in restarts]
        missing = [
            np.full((len(part), k - part.shape[1], *part.shape[2:]), fill)
            for part in parts
        ]
        return np.concatenate(
            [np.concatenate(both, axis=1) for both in zip(parts, missing, strict=True)]
        )

    return Centers(
        stack("coefficients", 0.0), stack("squared_norms", np.inf), stack("means", 0.0)
    )


@dataclass(frozen=True)
class PassResult:
    """Every row's nearest centre, for R restarts, and the sums over the clusters."""

    #: Of shape (n, R), or what stands for it on a cluster.
    labels: Array
    #: ``W`` (R,): weighted mean squared distance to the nearest centre.
    costs: Array
    #: Weighted sums (R, k, m) of the kernel values of each cluster's rows; m is 0
    #: where the engine finds the means another way.
    sums: Array
    #: Weight of each cluster, of shape (R, k).
    counts: Array
    #: Whether the label of a row that counts has changed since the pass before (R,).
    labels_changed: Array

    def select(self, restarts: Sequence[int] | Array) -> Self:
        """Return the results of some of the restarts."""
        chosen = np.asarray(restarts, dtype=np.intp)
        return type(self)(
            self.labels[:, chosen],
            self.costs[chosen],
            self.sums[chosen],
            self.counts[chosen],
            self.labels_changed[chosen],
        )


@dataclass
class LloydResult:
    """One restart: its best pass and how it got there."""

    labels: Array
    centers: Any
    cost: float
    counts: Array
    cost_path: list[float] = field(default_factory=list)
    converged: bool = False
    #: Whether a callback asked to stop.
    stopped: bool = False
    #: Squared distances (n,) of the rows to their centres, where they are known.
    distances: Array | None = None

    @property
    def n_iter(self) -> int:
        """Number of passes."""
        return len(self.cost_path)


@dataclass(frozen=True)
class TwoNearest:
    """Every row's nearest centre, and squared distances to the two nearest."""

    labels: Array
    first: Array
    second: Array


class Assigner(Protocol):
    """Assigns rows to centres and moves centres to means: all that a loop needs."""

    def assign(self, centers: Any, before: Array | None = None) -> PassResult:
        """Return every row's nearest centre; `before` are the labels so far."""
        ...

    def update(self, result: PassResult, centers: Any) -> Any:
        """Return the centroids of the clusters, after a refill of empty ones."""
        ...

    def state(self) -> dict[str, Array]:
        """Return what is kept from pass to pass."""
        ...

    def restore(self, state: dict[str, Array]) -> None:
        """Take up what `state` returned."""
        ...


class Engine(Assigner, Protocol):
    """An assigner whose answers are exact, and that can be asked more."""

    def exemplars(self, centers: Any, labels: Array) -> Array:
        """Return each cluster's row that is nearest to its centre."""
        ...

    def two_nearest(self, centers: Any) -> TwoNearest:
        """Return the two nearest centres of every row, for one restart."""
        ...

    def replace_centers(self, centers: Any, removed: Array, rows: Array) -> Any:
        """Return a restart for each row that takes the place of a centre."""
        ...

    def centers_of_partition(self, labels: Array, k: int) -> Any:
        """Return the centroids of given clusters, as one restart."""
        ...


def have_changed(before: Array | None, after: Array, weights: Array | None) -> Array:
    """Return for each restart whether the label of a row that counts has changed."""
    if before is None:
        return np.ones(after.shape[1], dtype=bool)
    found = np.zeros(after.shape[1], dtype=bool)
    for start in range(0, len(after), _PART):
        part = slice(start, start + _PART)
        changed = before[part] != after[part]
        if weights is not None:
            changed &= (weights[part] > 0.0)[:, None]
        found |= changed.any(axis=0)
    return found
