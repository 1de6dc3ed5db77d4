"""Some rows of each cluster, kept while all rows pass by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchmeans.numerics.linalg import Array

#: Rows that are drawn in all, values of these, and rows of a cluster at least.
MOST_MEMBERS, _MOST_VALUES, _FEWEST = 20_000, 4_000_000, 20


@dataclass(frozen=True)
class Members:
    """Random rows of each cluster, as many of a small one as of a large one.

    Attributes
    ----------
    sizes : ndarray of shape (k,)
        All rows of each cluster.
    numbers, labels : ndarray of shape (s,)
        The rows that were drawn, and their clusters; cluster by cluster, and in random
        order within each.
    """

    sizes: Array
    numbers: Array
    labels: Array

    @property
    def weights(self) -> Array:
        """How many rows of its cluster each row stands for."""
        drawn = np.bincount(self.labels, minlength=len(self.sizes))
        return np.asarray((self.sizes / np.maximum(drawn, 1))[self.labels])

    @property
    def are_all(self) -> bool:
        """Whether every row was drawn."""
        return len(self.numbers) == int(self.sizes.sum())

    def select(self, places: Array) -> Members:
        """Return the members in these places."""
        return Members(self.sizes, self.numbers[places], self.labels[places])

    def first(self, size: int) -> Array:
        """Return the places of up to `size` members of each cluster."""
        return np.flatnonzero(rank_in_group(self.labels, len(self.sizes)) < size)


def members_per_cluster(k: int, n_features: int) -> int:
    """Return how many rows of a cluster are worth a look."""
    most = min(MOST_MEMBERS, _MOST_VALUES // max(n_features, 1))
    return max(most // k, _FEWEST)


class SmallestRows:
    """The rows with the smallest keys in each cluster.

    What cannot be among them is dropped at once, and the rest is sorted only when it
    has grown: a row costs a comparison.
    """

    def __init__(self, k: int, size: int) -> None:
        self._k, self._size = k, size
        self._limits = np.full(k, np.inf)
        self._parts: list[tuple[Array, Array, Array]] = []
        self._waiting = 0

    def add(self, labels: Array, keys: Array, numbers: Array) -> None:
        """Take in the rows of a block; of equal keys the first rows win."""
        chosen = np.flatnonzero(keys <= self._limits[labels])
        self._parts.append((labels[chosen], keys[chosen], numbers[chosen]))
        self._waiting += len(chosen)
        if self._waiting > 2 * self._k * self._size + 4096:
            self.sort()

    def sort(self) -> tuple[Array, Array]:
        """Return the clusters and numbers of the rows, by cluster and key."""
        labels, keys, numbers = (
            np.concatenate([part[i] for part in self._parts]) for i in range(3)
        )
        order = np.lexsort((numbers, keys, labels))
        rank = rank_in_group(labels[order], self._k)
        kept = order[rank < self._size]
        self._parts = [(labels[kept], keys[kept], numbers[kept])]
        self._waiting = len(kept)
        last = order[rank == self._size - 1]
        self._limits[labels[last]] = keys[last]
        return labels[kept], numbers[kept]


def draw_keys(numbers: Array) -> Array:
    """Return keys in [0, 1) that are random, and the same for a row in every pass."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def draw_members(labels: Array, k: int, size: int) -> Members:
    """Return up to `size` random rows of each cluster, given the labels of all rows.

    Rows without a cluster have the label −1.
    """
    rows = SmallestRows(k, size)
    for start in range(0, len(labels), 2**20):
        part = np.asarray(labels[start : start + 2**20]).astype(np.intp)
        numbers = start + np.flatnonzero(part >= 0)
        rows.add(part[part >= 0], draw_keys(numbers), numbers)
    clusters, numbers = rows.sort()
    sizes = np.bincount(labels[labels >= 0], minlength=k)
    return Members(sizes, numbers, clusters)


def rank_in_group(sorted_groups: Array, n_groups: int) -> Array:
    """Return the place of each element among the equal ones."""
    first = np.searchsorted(sorted_groups, np.arange(n_groups))
    return np.asarray(np.arange(len(sorted_groups)) - first[sorted_groups])
