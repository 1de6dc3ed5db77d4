"""Triangle inequalities, which cut off what no partition is.

In the matrix ``Y_ij = 1/(weight of the cluster)`` for rows i, j of one cluster, else 0,

    Y_ii + Y_jh ≥ Y_ij + Y_ih

for any three rows: where i shares a cluster with both j and h, they share it, too.  The
programme of Peng and Wei knows nothing of this; Piccialli, Sudoso and Wiegele (2022)
solve k-means of thousands of rows by adding those that its solution violates.
"""

from __future__ import annotations

import numpy as np

from sketchmeans.numerics.linalg import Array

#: Rows that share most with a row: pairs of these are looked at.
_NEAREST = 40
#: Inequalities that are added at a time: for each row, and together.
_NEW_PER_ROW, _MOST_NEW = 10, 1_000
#: How much of the mean ``Y_ii`` an inequality must fail by; what price, in units of the
#: highest, is as good as none.
_LEAST_VIOLATION, _NO_PRICE = 1e-3, 1e-6


class TriangleCuts:
    """Some triangle inequalities, each with a price ``≥ 0``.

    Parameters
    ----------
    q : ndarray of shape (s,)
        Roots of the weights, a unit vector.  Matrices are ``X_ij = Y_ij √(w_i w_j)``.
    """

    def __init__(self, q: Array) -> None:
        self._roots = np.asarray(q, np.float64)
        self._rows = np.empty((0, 3), np.intp)
        self.prices = np.empty(0)
        self._places = np.empty((4, 0), np.intp)
        self._factors = np.empty((4, 0))
        self._steps = np.empty(0)
        #: How far prices move, at most 1; less keeps them from swinging.
        self.step_size = 1.0

    def __len__(self) -> int:
        return len(self.prices)

    def matrix(self) -> Array:
        """Return the symmetric T whose product with a partition's X is not negative."""
        s = len(self._roots)
        parts = (self._factors * self.prices).ravel()
        T = np.bincount(self._places.ravel(), parts, minlength=s * s).reshape(s, s)
        return np.asarray(0.5 * (T + T.T))

    def reprice(self, X: Array) -> None:
        """Raise the prices of inequalities that X violates, and lower the others."""
        slack = (self._factors * X.ravel()[self._places]).sum(axis=0)
        self.prices = np.maximum(
            self.prices - self.step_size * self._steps * slack, 0.0
        )

    def separate(self, X: Array) -> int:
        """Add inequalities that X violates, drop those without price; count the new."""
        kept = self.prices > _NO_PRICE * self.prices.max(initial=0.0)
        new = self._find_violated(X)
        rows = np.concatenate([self._rows[kept], new])
        prices = np.concatenate([self.prices[kept], np.zeros(len(new))])
        first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
        self._rows, self.prices = rows[first], prices[first]
        self._prepare()
        return len(new)

    def _find_violated(self, X: Array) -> Array:
        """Return the three rows of inequalities that fail, the worst first."""
        scaled = (X / self._roots / self._roots[:, None]).astype(np.float32)
        s = len(scaled)
        own = scaled.diagonal().copy()
        np.fill_diagonal(scaled, -np.inf)
        count = min(_NEAREST, s - 1)
        near = np.argpartition(-scaled, count - 1, axis=1)[:, :count]
        shared = np.take_along_axis(scaled, near, axis=1)
        left, right = np.triu_indices(count, 1)
        slack = own[:, None] - shared[:, left] - shared[:, right]
        slack += scaled[near[:, left], near[:, right]]
        most = min(_NEW_PER_ROW, len(left))
        if most == 0:
            return np.empty((0, 3), np.intp)
        worst = np.argpartition(slack, most - 1, axis=1)[:, :most]
        values = np.take_along_axis(slack, worst, axis=1).ravel()
        pairs = [
            np.take_along_axis(near, side[worst], axis=1) for side in (left, right)
        ]
        found = np.stack(
            [np.repeat(np.arange(s), most), *(p.ravel() for p in pairs)], 1
        )
        found[:, 1:].sort(axis=1)
        limit = -_LEAST_VIOLATION * float(own.mean())
        order = np.argsort(values, kind="stable")[:_MOST_NEW]
        return found[order[values[order] < limit]]

    def _prepare(self) -> None:
        """Note where the entries are, their factors, and how far prices may move.

        An inequality moves less where others share its entries: the prices of all move
        at once.
        """
        i, j, h = self._rows.T
        s, root = len(self._roots), self._roots
        self._places = np.stack([i * s + i, j * s + h, i * s + j, i * s + h])
        factors = np.stack(
            [
                1.0 / root[i] ** 2,
                1.0 / (root[j] * root[h]),
                -1.0 / (root[i] * root[j]),
                -1.0 / (root[i] * root[h]),
            ]
        )
        self._factors = factors / np.abs(factors).max(axis=0, initial=0.0)
        size = np.abs(self._factors)
        shared = np.bincount(self._places.ravel(), size.ravel(), minlength=s * s)
        self._steps = 1.0 / (size * shared[self._places]).sum(axis=0)
