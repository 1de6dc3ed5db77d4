"""Which rows may change cluster: a test that spares most rows of a pass.

A row whose distances to its own and its second nearest centre were u and l keeps its
label after centre j has moved by ``D_j`` if ``u + D_own < l − max_{j≠own} D_j``: the
triangle inequality in feature space, where all of these are known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchmeans.linalg import Array
from sketchmeans.lloyd import Centers


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
        slack = np.sqrt(np.finfo(self.nearest.dtype).eps)
        active = []
        step = 2**16
        for start in range(0, len(self.labels), step):
            own = self.labels[start : start + step]
            near = np.sqrt(np.maximum(self.nearest[:, start : start + step], 0.0))
            upper = near[0] + moved[own]
            lower = np.maximum(near[1] - others[own], 0.0)
            margin = lower * lower - upper * upper
            active.append(start + np.flatnonzero(~(margin > slack * near[1] ** 2)))
        return np.concatenate(active)

    def exemplar_candidates(self, centers: Centers) -> Array:
        """Return the rows among which each cluster's row nearest to its centre is."""
        own = np.sqrt(np.maximum(self.nearest[0], 0.0))
        reach = np.full(len(self.counts), np.inf)
        np.minimum.at(reach, self.labels, own)
        # A centre that moved by D changed each distance by at most D.
        reach += 2.0 * self.movements(centers)
        reach += np.sqrt(np.finfo(self.nearest.dtype).eps) * reach
        return np.flatnonzero(own <= reach[self.labels])
