"""Empty clusters take over rows that are far from their own centres."""

from __future__ import annotations

import numpy as np

from sketchmeans.numerics.linalg import Array


def choose_refills(
    own: Array, distances: Array, noise: Array, weights: Array, counts: Array
) -> dict[int, int]:
    """Return which of some rows move to which empty cluster.

    Rows with the largest weighted distance come first; rows at no distance but `noise`,
    of no weight, or all that their cluster has, stay where they are.  `own` are the
    clusters of the rows, `counts` the weights of all clusters.
    """
    empty = np.flatnonzero(counts == 0.0).tolist()
    left, moves = counts.copy(), {}
    for i in np.argsort(-weights * distances, kind="stable").tolist():
        if not empty:
            break
        if distances[i] > noise[i] and 0.0 < weights[i] < left[own[i]]:
            left[own[i]] -= weights[i]
            moves[i] = empty.pop(0)
    return moves
