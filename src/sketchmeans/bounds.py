"""Which rows may change cluster: a test that spares most rows of a pass.

A row whose distances to its own and its second nearest centre were u and l keeps its
label after centre j has moved by ``D_j`` if ``u + D_own < l − max_{j≠own} D_j``: the
triangle inequality in feature space, where all of these are known exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sketchmeans.linalg import Array
from sketchmeans.lloyd import Centers

#: Rows looked at together, so that what is computed on the way stays small.
_PART = 2**16

#: Roundings of ``‖c‖²`` by which squared distances may be off.
_ROUNDINGS = 64.0


@dataclass(frozen=True)
class Reference:
    """A full pass of one restart, to which later passes refer.

    Attributes
    ----------
    centers : Centers
    labels : ndarray of shape (n,)
    nearest : ndarray of shape (2, n)
        Squared distances to the nearest and second nearest centre.
    sums : ndarray of shape (k, m)
    counts : ndarray of shape (k,)
    """

    centers: Centers
    labels: Array
    nearest: Array
    sums: Array
    counts: Array

    def movements(self, centers: Centers) -> Array:
        """Return how far each centre has moved since."""
        then = self.centers
        cross = np.einsum("kj,kj->k", centers.means[0], then.coefficients[0])
        squared = centers.squared_norms[0] - 2.0 * cross + then.squared_norms[0]
        return np.sqrt(np.maximum(squared, 0.0))

    def active(self, centers: Centers) -> Array:
        """Return the rows whose nearest centre may be another one now."""
        moved = self.movements(centers)
        if len(moved) == 1:
            return np.empty(0, dtype=np.intp)
        # The farthest that any *other* centre has moved, for each centre.
        order = np.argsort(moved)
        others = np.full(len(moved), moved[order[-1]])
        others[order[-1]] = moved[order[-2]]
        # Distances below their rounding are no evidence: ask for a clear margin.
        eps = float(np.finfo(self.nearest.dtype).eps)
        noise = _ROUNDINGS * eps * float(centers.squared_norms.max())
        active = []
        for start in range(0, len(self.labels), _PART):
            own = self.labels[start : start + _PART]
            near = np.sqrt(np.maximum(self.nearest[:, start : start + _PART], 0.0))
            upper = near[0] + moved[own]
            lower = np.maximum(near[1] - others[own], 0.0)
            margin = lower * lower - upper * upper
            clear = margin > np.sqrt(eps) * near[1] ** 2 + noise
            active.append(start + np.flatnonzero(~clear))
        return np.concatenate(active)

    def exemplar_candidates(
        self, centers: Centers, labels: Array, weights: Array | None
    ) -> Array:
        """Return the rows among which each cluster's row nearest to its centre is.

        These are the rows that changed their cluster since, and of the others those
        whose distance then was within twice the movement of the lowest.
        """
        reach = np.full(len(self.counts), np.inf)
        for part, own in self._stayed(labels, weights):
            np.minimum.at(reach, labels[part], own)
        # A centre that moved by D changed each distance by at most D.
        reach += 2.0 * self.movements(centers)
        reach += np.sqrt(np.finfo(self.nearest.dtype).eps) * reach
        near = [
            part.start + np.flatnonzero((own <= reach[labels[part]]) | np.isinf(own))
            for part, own in self._stayed(labels, weights)
        ]
        return np.concatenate(near)

    def _stayed(
        self, labels: Array, weights: Array | None
    ) -> Iterator[tuple[slice, Array]]:
        """Yield the distances to the own centre, infinite for rows that do not count.

        A row does not count if it changed its cluster, or has no weight.
        """
        for start in range(0, len(labels), _PART):
            part = slice(start, start + _PART)
            own = np.sqrt(np.maximum(self.nearest[0, part], 0.0))
            own[labels[part] != self.labels[part]] = np.inf
            if weights is not None:
                own[weights[part] == 0.0] = np.inf
            yield part, own
