"""Which rows may change cluster: a test that spares most rows of a pass.

A row whose distance to its own centre is at most u, and to any other at least l, keeps
its label if ``u < l``.  When centre j moves by ``D_j``, u grows by ``D_own`` and l
falls by ``max_{j≠own} D_j``: the triangle inequality (Hamerly), here in feature space,
where the movements are known exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sketchmeans.engine.lloyd import Centers
from sketchmeans.numerics.linalg import Array

#: Rows looked at together, so that what is computed on the way stays small.
_PART = 2**16

#: Roundings of ``‖c‖²`` by which squared distances may be off.
_ROUNDINGS = 512.0


@dataclass(frozen=True)
class Steps:
    """How far centres moved, and what is lost in rounding on the way.

    Attributes
    ----------
    moved : ndarray of shape (k,)
        How far each centre moved.
    others : ndarray of shape (k,)
        The farthest that any *other* centre moved.
    length : float
        The largest ``‖c‖²``, in whose roundings squared distances may be off.
    """

    moved: Array
    others: Array
    length: float

    @classmethod
    def between(cls, before: Centers, after: Centers) -> Steps:
        """Return the steps from old to new centres of one restart."""
        moved = _movements(before, after)
        others = np.zeros_like(moved)
        if len(moved) > 1:
            order = np.argsort(moved)
            others[:] = moved[order[-1]]
            others[order[-1]] = moved[order[-2]]
        return cls(moved, others, float(after.squared_norms.max()))


@dataclass
class RowBounds:
    """What is known of some rows of one restart.

    Attributes
    ----------
    labels : ndarray of shape (n,)
    upper, lower : ndarray of shape (n,)
        Bounds on the distances to the own and to any other centre.
    """

    labels: Array
    upper: Array
    lower: Array

    @classmethod
    def at(cls, labels: Array, nearest: Array) -> RowBounds:
        """Return the bounds after a full pass with squared distances `nearest`."""
        np.sqrt(np.maximum(nearest, 0.0, out=nearest), out=nearest)
        return cls(labels, nearest[0], nearest[1])

    def loosen(self, steps: Steps) -> Array:
        """Loosen the bounds for centres that moved; return rows that may change."""
        # Distances below their rounding are no evidence: ask for a clear margin.
        eps = float(np.finfo(self.upper.dtype).eps)
        noise = _ROUNDINGS * eps * steps.length
        active = [np.empty(0, dtype=np.intp)]
        for part in self._parts():
            own = self.labels[part]
            upper, lower = self.upper[part], self.lower[part]
            upper += steps.moved[own].astype(upper.dtype)
            lower -= steps.others[own].astype(lower.dtype)
            np.maximum(lower, 0.0, out=lower)
            margin = lower * lower - upper * upper
            clear = margin > np.sqrt(eps) * lower**2 + noise
            active.append(part.start + np.flatnonzero(~clear))
        return np.concatenate(active)

    def likely_exemplars(self, labels: Array, weights: Array | None, k: int) -> Array:
        """Return the row of the least upper bound of each cluster that has a bound."""
        least, rows = np.full(k, np.inf), np.full(k, -1)
        for part in self._parts():
            own, clusters = self._own(part, labels, weights), labels[part]
            order = np.argsort(own)[::-1]
            nearest = np.full(k, -1)
            nearest[clusters[order]] = order  # the last that is written is the least
            found = np.flatnonzero(nearest >= 0)
            found = found[own[nearest[found]] < least[found]]
            least[found] = own[nearest[found]]
            rows[found] = part.start + nearest[found]
        return np.sort(rows[rows >= 0])

    def exemplar_candidates(
        self,
        labels: Array,
        weights: Array | None,
        drift: Array,
        reach: Array,
        length: float,
    ) -> Array:
        """Return the rows among which each cluster's row nearest to its centre is.

        `drift` is how far each centre has moved since all bounds were distances,
        `reach` the distance of some row of the cluster, `length` as in `Steps`.
        """
        # An upper bound exceeds its distance by at most twice the drift, and rounding.
        eps = float(np.finfo(self.upper.dtype).eps)
        reach = (1.0 + np.sqrt(eps)) * (reach + 2.0 * drift)
        reach = np.sqrt(reach**2 + _ROUNDINGS * eps * length)
        near = []
        for part in self._parts():
            own = self._own(part, labels, weights)
            close = (own <= reach[labels[part]]) | np.isinf(own)
            near.append(part.start + np.flatnonzero(close))
        return np.concatenate(near)

    def _own(self, part: slice, labels: Array, weights: Array | None) -> Array:
        """Return upper bounds; infinite for rows of another cluster or no weight."""
        own = self.upper[part].copy()
        own[labels[part] != self.labels[part]] = np.inf
        if weights is not None:
            own[weights[part] == 0.0] = np.inf
        return own

    def _parts(self) -> Iterator[slice]:
        for start in range(0, len(self.labels), _PART):
            yield slice(start, start + _PART)


@dataclass(frozen=True)
class Totals:
    """Sums over all rows of one restart.

    Attributes
    ----------
    sums : ndarray of shape (k, m)
        Weighted sums of the coordinates of each cluster's rows.
    counts : ndarray of shape (k,)
        Weight of each cluster.
    cost : ndarray of shape (1,)
        Weighted sum of the squared distances of rows to the centres of their clusters.
    """

    sums: Array
    counts: Array
    cost: Array

    def moved(self, before: Centers, after: Centers) -> Totals:
        """Return the sums when centres have moved, and the clusters have not.

        The cost of a cluster changes by ``n ‖δ‖² − 2 ⟨Σ_x φ(x) − n c, δ⟩``, δ the step
        of its centre: no difference of large numbers, as costs themselves are.
        """
        step = after.coefficients[0] - before.coefficients[0]
        gap = after.means[0] - before.means[0]
        off = self.sums - self.counts[:, None] * before.means[0]
        change = self.counts @ np.einsum("kj,kj->k", gap, step)
        change -= 2.0 * np.einsum("kj,kj->", off, step)
        return Totals(self.sums, self.counts, self.cost + change)

    def changed(self, sums: Array, counts: Array, gain: Array) -> Totals:
        """Return the sums after rows have changed cluster."""
        return Totals(self.sums + sums[0], counts[0], self.cost - gain)


@dataclass
class Bounds(RowBounds):
    """What is known of one restart, kept up to date from pass to pass.

    Attributes
    ----------
    centers : Centers
        The centres that the bounds are for.
    totals : Totals
    drift : ndarray of shape (k,)
        How far each centre has moved since all bounds were distances.
    """

    centers: Centers
    totals: Totals
    drift: Array

    @classmethod
    def after(cls, centers: Centers, rows: RowBounds, totals: Totals) -> Bounds:
        """Return the bounds after a full pass."""
        drift = np.zeros(len(totals.counts))
        return cls(rows.labels, rows.upper, rows.lower, centers, totals, drift)

    def to_arrays(self) -> dict[str, Array]:
        """Return everything as arrays by name."""
        parts: dict[str, Any] = {
            "": self,
            "center_": self.centers,
            "total_": self.totals,
        }
        return {
            prefix + field.name: getattr(part, field.name)
            for prefix, part in parts.items()
            for field in fields(part)
            if field.name not in ("centers", "totals")
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Bounds:
        """Return the bounds whose arrays these are."""
        centers = Centers(**_with_prefix(arrays, "center_", Centers))
        totals = Totals(**_with_prefix(arrays, "total_", Totals))
        own = {name: arrays[name] for name in ("labels", "upper", "lower", "drift")}
        return cls(centers=centers, totals=totals, **own)

    def follow(self, centers: Centers) -> Array:
        """Loosen the bounds for new centres; return the rows that may change label."""
        steps = Steps.between(self.centers, centers)
        self.totals = self.totals.moved(self.centers, centers)
        self.centers = centers
        self.drift += steps.moved
        return self.loosen(steps)


def _with_prefix(arrays: dict[str, Array], prefix: str, kind: Any) -> dict[str, Array]:
    return {field.name: arrays[prefix + field.name] for field in fields(kind)}


def _movements(before: Centers, after: Centers) -> Array:
    """Return the distance between old and new centres of one restart."""
    gap = after.means[0] - before.means[0]
    step = after.coefficients[0] - before.coefficients[0]
    return np.sqrt(np.maximum(np.einsum("kj,kj->k", gap, step), 0.0))
