"""Which rows a pass must look at: a test that spares most of them.

A row whose distance to its own centre is at most u, and to any other at least l, keeps
its label if ``u < l``.  When centre j moves by ``D_j``, u grows by ``D_own`` and l
falls by ``max_{j≠own} D_j``: the triangle inequality (Hamerly), here in feature space,
where the movements are known exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from enum import Enum, auto
from typing import Any

import numpy as np

from sketchmeans.engine.types import Centers
from sketchmeans.numerics.linalg import Array

#: Rows checked together, so that intermediate arrays stay small.
_PART = 2**16

#: Roundings of ``‖c‖²`` by which squared distances may be off.
_ROUNDINGS = 512.0

#: From this many features on, a stored kernel block is read so much faster than single
#: rows are computed that it pays to pick rows out of it.
_PICK_FROM_FEATURES = 128

#: A pass over single rows pays up to this share of all rows: with few features, and
#: with many.  It computes kernel values even where they are stored, so that the bits
#: are the same.
_SINGLE_SHARE, _SINGLE_SHARE_OF_WIDE_ROWS = 0.4, 0.05

#: With many features, up to this share of the rows are picked out of their blocks.
_PICKED_SHARE = 0.6


class Reassign(Enum):
    """How the rows that may change cluster are assigned again."""

    SINGLE = auto()  # their kernel values are computed for them alone
    PICKED = auto()  # their kernel values are picked out of those of whole blocks
    ALL = auto()  # they are too many: all rows are

    @classmethod
    def choose(cls, n_active: int, n_rows: int, n_features: int) -> Reassign:
        """Return what pays; it follows from the rows alone, not from where they are."""
        if n_features < _PICK_FROM_FEATURES:
            return cls.SINGLE if n_active <= _SINGLE_SHARE * n_rows else cls.ALL
        if n_active <= _SINGLE_SHARE_OF_WIDE_ROWS * n_rows:
            return cls.SINGLE
        return cls.PICKED if n_active <= _PICKED_SHARE * n_rows else cls.ALL


@dataclass(frozen=True)
class CenterShifts:
    """How far centres moved, and the farthest that any *other* centre moved (k,)."""

    moved: Array
    others: Array
    #: The largest ``‖c‖²``, in whose roundings squared distances may be off.
    length: float

    @classmethod
    def between(cls, before: Centers, after: Centers) -> CenterShifts:
        """Return the shifts from old to new centres of one restart."""
        gap = after.means[0] - before.means[0]
        step = after.coefficients[0] - before.coefficients[0]
        moved = np.sqrt(np.maximum(np.einsum("kj,kj->k", gap, step), 0.0))
        others = np.zeros_like(moved)
        if len(moved) > 1:
            order = np.argsort(moved)
            others[:] = moved[order[-1]]
            others[order[-1]] = moved[order[-2]]
        return cls(moved, others, float(after.squared_norms.max()))


@dataclass(frozen=True)
class RowState:
    """What a pass leaves with each row: labels (n, R) and, for one restart, bounds.

    The bounds (n,) are on the distances to the own and to any other centre; `active`
    says which rows may change cluster, as far as the bounds tell.
    """

    labels: Array
    upper: Array = field(default_factory=lambda: np.empty(0))
    lower: Array = field(default_factory=lambda: np.empty(0))
    active: Array = field(default_factory=lambda: np.empty(0, dtype=bool))

    def loosen(self, shifts: CenterShifts, *, in_place: bool = False) -> RowState:
        """Return the bounds for centres that moved, and the rows that may change."""
        # Distances below their rounding prove nothing: require a clear margin.
        eps = float(np.finfo(self.upper.dtype).eps)
        noise = _ROUNDINGS * eps * shifts.length
        uppers, lowers = self.upper, self.lower
        if not in_place:
            uppers, lowers = np.empty_like(uppers), np.empty_like(lowers)
        moved, others = (
            shift.astype(uppers.dtype) for shift in (shifts.moved, shifts.others)
        )
        active = np.empty(len(uppers), dtype=bool)
        for part in self.parts():
            own = self.labels[part, 0]
            upper = np.add(self.upper[part], moved[own], out=uppers[part])
            lower = np.subtract(self.lower[part], others[own], out=lowers[part])
            np.maximum(lower, 0.0, out=lower)
            margin = lower * lower - upper * upper
            clear = margin > np.sqrt(eps) * lower**2 + noise
            np.logical_not(clear, out=active[part])
        return RowState(self.labels, uppers, lowers, active)

    def exemplar_candidates(
        self, labels: Array, weights: Array | None, drift: Array, shifts: CenterShifts
    ) -> Array:
        """Return the rows among which each cluster's row nearest to its centre is.

        `labels` are those that count, `drift` is how far each centre has moved since
        all bounds were distances, and `shifts` lead from their centres to those meant.
        """
        # An upper bound exceeds its distance by at most twice the drift, and rounding.
        eps = float(np.finfo(self.upper.dtype).eps)
        moved = shifts.moved.astype(self.upper.dtype)
        least = np.full(len(drift), np.inf)
        for part in self.parts():
            own = self._own(part, labels, weights, moved)
            np.minimum.at(least, labels[part], own)
        reach = (1.0 + np.sqrt(eps)) * (least + 2.0 * drift)
        reach = np.sqrt(reach**2 + _ROUNDINGS * eps * shifts.length)
        near = [np.empty(0, dtype=np.intp)]
        for part in self.parts():
            own = self._own(part, labels, weights, moved)
            close = (own <= reach[labels[part]]) | np.isinf(own)
            near.append(part.start + np.flatnonzero(close))
        return np.concatenate(near)

    def _own(
        self, part: slice, labels: Array, weights: Array | None, moved: Array
    ) -> Array:
        """Return upper bounds; infinite for rows of another cluster or no weight."""
        before = self.labels[part, 0]
        own = (self.upper[part] + moved[before]).astype(np.float64)
        own[labels[part] != before] = np.inf
        if weights is not None:
            own[weights[part] == 0.0] = np.inf
        return own

    def parts(self) -> Iterator[slice]:
        """Yield all rows, some of them at a time."""
        for start in range(0, len(self.labels), _PART):
            yield slice(start, start + _PART)


@dataclass(frozen=True)
class Totals:
    """Sums over all rows of one restart: see `PassResult`; the cost (1,) is a sum."""

    sums: Array
    counts: Array
    cost: Array

    def move(self, before: Centers, after: Centers) -> Totals:
        """Return the sums when centres have moved, and the clusters have not.

        The cost of a cluster changes by ``n ‖δ‖² − 2 ⟨Σ_x φ(x) − n c, δ⟩``, δ the step
        of its centre: no difference of large numbers, as costs themselves are.
        """
        step = after.coefficients[0] - before.coefficients[0]
        gap = after.means[0] - before.means[0]
        off = self.sums - self.counts[:, None] * before.means[0]
        change = self.counts @ np.einsum("kj,kj->k", gap, step)
        change -= 2.0 * np.einsum("kj,kj->", off, step)
        return replace(self, cost=self.cost + change)


@dataclass(frozen=True)
class Bounds:
    """What is known of one restart, and brought up to date from pass to pass."""

    #: The centres that the bounds are for.
    centers: Centers
    totals: Totals
    #: How far each centre has moved since all bounds were distances.
    drift: Array
    #: A `RowState`, or what stands for it on a cluster.
    rows: Any

    def to_arrays(self) -> dict[str, Array]:
        """Return everything as arrays by name."""
        parts = {"center_": self.centers, "total_": self.totals, "row_": self.rows}
        return {"drift": self.drift} | {
            prefix + f.name: getattr(part, f.name)
            for prefix, part in parts.items()
            for f in fields(part)
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Bounds:
        """Return the bounds whose arrays these are."""

        def read(prefix: str, kind: Any) -> Any:
            return kind(**{f.name: arrays[prefix + f.name] for f in fields(kind)})

        return cls(
            read("center_", Centers),
            read("total_", Totals),
            arrays["drift"],
            read("row_", RowState),
        )
