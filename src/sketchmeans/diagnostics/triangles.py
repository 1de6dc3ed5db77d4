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

#: Rows that share at least this part of ``Y_ii`` with a row, times this factor, are
#: candidates; pairs of so many of them are looked at, so many pairs at a time.
_LEAST_SHARED, _MOST_SHARING, _LOOKED_AT, _PART = 0.1, 1.5, 60, 2**20
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
        self._rng = np.random.default_rng(0)
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
        """Return the three rows of inequalities that fail, the worst first.

        They fail most where j and h are at opposite ends of the cluster of i.  So the
        rows that are looked at are drawn from all that share much with i, anew in each
        search, and not only from those that share most.
        """
        scaled = (X / self._roots / self._roots[:, None]).astype(np.float32)
        own = scaled.diagonal().copy()
        np.fill_diagonal(scaled, -np.inf)
        shares = scaled > _LEAST_SHARED * own[:, None]
        width = int(min(_MOST_SHARING * shares.sum(axis=1).mean() + 1, len(own) - 1))
        places = np.arange(width)
        if width > _LOOKED_AT:
            places = np.sort(self._rng.choice(width, _LOOKED_AT, replace=False))
        pairs = np.triu_indices(len(places), 1)
        step = max(_PART // max(len(pairs[0]), 1), 1)
        found, values = [np.empty((0, 3), np.intp)], [np.empty(0, np.float32)]
        for start in range(0, len(own) if len(pairs[0]) else 0, step):
            rows = np.arange(start, min(start + step, len(own)))
            near = np.argpartition(-scaled[rows], width - 1, axis=1)[:, :width]
            part = _worst_pairs(scaled, own, rows, near[:, places], pairs)
            found.append(part[0])
            values.append(part[1])
        triples, slack = np.concatenate(found), np.concatenate(values)
        limit = -_LEAST_VIOLATION * float(own.mean())
        order = np.argsort(slack, kind="stable")[:_MOST_NEW]
        return triples[order[slack[order] < limit]]

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


def _worst_pairs(
    scaled: Array, own: Array, rows: Array, near: Array, pairs: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return the triples of each row that fail most, and their slack."""
    left, right = pairs
    shared = np.take_along_axis(scaled[rows], near, axis=1)
    slack = own[rows, None] - shared[:, left] - shared[:, right]
    slack += scaled[near[:, left], near[:, right]]
    most = min(_NEW_PER_ROW, len(left))
    worst = np.argpartition(slack, most - 1, axis=1)[:, :most]
    sides = [np.take_along_axis(near, side[worst], axis=1).ravel() for side in pairs]
    triples = np.stack([np.repeat(rows, most), *sides], axis=1)
    triples[:, 1:].sort(axis=1)
    return triples, np.take_along_axis(slack, worst, axis=1).ravel()
