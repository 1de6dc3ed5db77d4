"""Second looks: at those rows alone that may change cluster, or be exemplars."""

from __future__ import annotations

from enum import Enum, auto
from itertools import pairwise
from typing import Any

import numpy as np

from sketchmeans.data.rows import block_slices, by_block
from sketchmeans.engine.assign import Table, moved_sums, packed
from sketchmeans.engine.bounds import RowBounds
from sketchmeans.engine.bundles import Bundle, bundled
from sketchmeans.engine.coordinates import STORE_FEATURES, BlockCoordinates, Span
from sketchmeans.engine.lloyd import Centers, cluster_weights
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.sums import TreeSum

#: A pass over single rows pays if it has at most this share of all rows: with few
#: features, and with many, when reading stored blocks is much faster.  It computes
#: coordinates even where they are stored, so that the bits are the same.
_SINGLE_SHARES = (0.4, 0.05)

#: With many features, up to this share of the rows are picked out of their blocks.
_PICKED_SHARE = 0.6

#: Bundles of blocks that each thread gets at least, where there are as many blocks.
_BUNDLES_PER_THREAD = 4


class Look(Enum):
    """How the rows that may change cluster are looked at again."""

    SINGLE = auto()  # their coordinates are computed for them alone
    PICKED = auto()  # their coordinates are picked out of those of whole blocks
    ALL = auto()  # they are too many: all rows are

    @classmethod
    def at(cls, n_active: int, n_rows: int, n_features: int) -> Look:
        """Return what pays; it follows from the rows alone, not from where they are."""
        many = n_features >= STORE_FEATURES
        if n_active <= _SINGLE_SHARES[many] * n_rows:
            return cls.SINGLE
        return cls.PICKED if many and n_active <= _PICKED_SHARE * n_rows else cls.ALL


class BlockLooks(BlockCoordinates):
    """Looks at some of the rows of a source; see `BlockCoordinates`."""

    def _table(self, centers: Centers) -> Table:
        return Table(
            centers,
            self.space.dtype,
            min(self.space.height, len(self.rows)),
            is_euclidean=self.space.is_euclidean,
        )

    def look_again(
        self,
        bounds: RowBounds,
        active: Array,
        centers: Centers,
        look: Look,
        first: int = 0,
    ) -> tuple[Array, TreeSum]:
        """Return labels after a look at the active rows, and how the sums change.

        The bounds of these rows become distances, in place.  Blocks are numbered from
        `first`.  The terms are for `unpacked`.
        """
        table = self._table(centers)
        k, m, height = table.k, self.space.n_coordinates, self.space.height
        weights = self.rows.weights
        coordinates, buffer = self._single, "coordinates"
        if look is Look.PICKED:
            coordinates, buffer = self._picked, "looked at"

        def reassign(bundle: Bundle) -> tuple[Array, Array, Array, Array, Array]:
            indices = active[bundle.span]
            if not len(indices):
                none = np.empty((0, m))
                return indices, np.empty((2, 0)), indices, none, np.zeros(len(bundle))
            out = self._buffer(buffer, len(indices))
            found = [
                coordinates(number, active[place], out[inside])
                for number, place, inside in bundle.parts()
            ]
            b = found[0][0] if len(found) == 1 else out
            scores = _joined([table.scores(part) for part, _ in found])
            norms = _joined([norms for _, norms in found])
            assigned = table.assign(b, norms, scores)
            nearest = np.stack([assigned.distances[:, 0], assigned.second])
            new, old = assigned.labels[:, 0], bounds.labels[indices]
            moved = np.flatnonzero(new != old)
            mass = np.ones(len(moved)) if weights is None else weights[indices[moved]]
            # Each block has sums of its own, as if it were looked at alone.
            block = k * (indices[moved] // height - bundle.first)
            changed, places = np.unique(
                np.stack([new[moved], old[moved]]) + block, return_inverse=True
            )
            into, out_of = places.reshape(2, -1)
            sums = moved_sums(b[moved], mass, into, out_of, len(changed))
            gains = mass * table.gains(b[moved], old[moved], new[moved])
            gains = np.bincount(block // k, gains, minlength=len(bundle))
            return new, nearest, changed, sums, gains

        labels = bounds.labels.copy()
        is_near = self._at_hand if look is Look.PICKED else self.rows.in_memory
        bundles = list(
            bundled(
                active,
                len(self._spans),
                height,
                self._most_blocks() if is_near else 1,
            )
        )
        width = k + (0 if look is Look.PICKED else self.rows.n_features)
        work = len(active) * m * width / len(bundles)
        terms = TreeSum()
        for bundle, (new, nearest, changed, sums, gains) in zip(
            bundles,
            self.workers.map(reassign, bundles, work if is_near else np.inf),
            strict=True,
        ):
            rows = active[bundle.span]
            labels[rows] = new
            bounds.upper[rows], bounds.lower[rows] = np.sqrt(np.maximum(nearest, 0.0))
            edges = np.searchsorted(changed, k * np.arange(len(bundle) + 1)).tolist()
            for i, part in enumerate(pairwise(edges)):
                number, own = bundle.first + i, slice(*part)
                change = np.zeros((k, m))
                change[changed[own] - k * i] = sums[own]
                start, stop = self._spans[number]
                mass = self.rows.block_weights(start, stop)
                counts = cluster_weights(labels[start:stop], mass, k)
                terms.add(first + number, packed(change, counts, gains[i]))
        return labels, terms

    def _most_blocks(self) -> int:
        """Return of how many blocks single rows are looked at together.

        Each thread gets several bundles, as some are more work than others.  Sparse
        coordinates stay apart.
        """
        if self.rows.is_sparse and not self.space.storable:
            return 1
        n_bundles = _BUNDLES_PER_THREAD * self.workers.n_jobs
        return -(-len(self._spans) // n_bundles)

    def candidate_distances(
        self, bounds: RowBounds, drift: Array, centers: Centers, labels: Array
    ) -> tuple[Array, Array]:
        """Return rows that may be nearest to their centre, and ``‖φ(x) − c‖²``.

        The clusters' nearest rows are among them.
        """
        likely = bounds.likely_exemplars(labels, self.rows.weights, len(drift))
        own = labels[likely]
        reached = self._squared_distances(likely, centers)[np.arange(len(own)), own]
        reach = np.full(len(drift), np.inf)
        reach[own] = np.sqrt(reached)
        length = float(centers.squared_norms.max())
        rows = bounds.exemplar_candidates(
            labels, self.rows.weights, drift, reach, length
        )
        return rows, self._squared_distances(rows, centers)

    def _squared_distances(self, rows: Array, centers: Centers) -> Array:
        """Return ``‖φ(x) − c‖²`` of ascending rows to all centres, in float64.

        Stored coordinates are used where there are some: for exemplars that are
        equally near but for rounding, any of them will do.
        """
        stored = self._store is not None
        height = self.space.height
        coordinates = self._picked if stored else self._single
        groups = (
            by_block(rows, height)
            if stored
            else list(enumerate(block_slices(len(rows), height)))
        )
        wide = np.dtype(np.float64)
        table = Table(centers, wide, 1, is_euclidean=self.space.is_euclidean)

        def distances(group: tuple[int, Span]) -> Array:
            numbers = rows[slice(*group[1])]
            out = self._buffer("looked at", len(numbers))
            b, norms = coordinates(group[0], numbers, out)
            return table.distances(b.astype(wide), norms)

        m, k = self.space.n_coordinates, table.k
        none = np.empty((0, k))
        width = k if stored else k + self.rows.n_features
        work = len(rows) * m * width / max(len(groups), 1)
        if not (stored or self.rows.in_memory):
            work = np.inf  # threads should not be far apart in a file
        return np.concatenate([none, *self.workers.map(distances, groups, work)])


def _joined(parts: list[Any]) -> Any:
    """Return arrays, one below the other; a number stands for all of its kind."""
    if len(parts) == 1 or isinstance(parts[0], float):
        return parts[0]
    return np.concatenate(parts)
