"""Cuts into subsets: disjoint, of all rows, and each a small copy of the whole."""

import numpy as np
import pytest

from sketchmeans.data.rows import as_rows
from sketchmeans.diagnostics import anticlusters
from sketchmeans.diagnostics.anticlusters import (
    balance_means,
    cut_rows,
    find_directions,
)
from sketchmeans.kernels import as_kernel
from sketchmeans.numerics.parallel import Workers
from sketchmeans.theory.problem import Problem


def make_rows(n=600, k=4, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    return rng.normal(size=(n, 5)) + 3.0 * np.eye(k, 5)[labels], labels


def scatter_of_means(X, labels, subsets):
    """Return how far the clusters' means in the subsets are from those of all rows."""
    total = 0.0
    for label in np.unique(labels[labels >= 0]):
        mean = X[labels == label].mean(axis=0)
        for subset in subsets:
            part = X[subset[labels[subset] == label]]
            total += len(part) * np.square(part.mean(axis=0) - mean).sum()
    return total


@pytest.mark.parametrize("together", [200, 3], ids=["one group", "several groups"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_every_row_is_in_one_subset(kernel, together, monkeypatch):
    monkeypatch.setattr(anticlusters, "_TOGETHER", together)
    X, labels = make_rows()
    labels[:7] = -1  # rows that do not count
    rng = np.random.default_rng(0)
    with Workers(2) as workers:
        rows = as_rows(X, workers)
        chosen = as_kernel(kernel).resolve(rows, rng)
        directions = find_directions(Problem(rows, chosen, rng), labels, 4)
        balanced = cut_rows(labels, 10, rng, rows, directions)
    dealt = cut_rows(labels, 10, rng)
    for subsets in (balanced, dealt):
        assert len(subsets) == 10
        np.testing.assert_array_equal(
            np.sort(np.concatenate(subsets)), np.arange(7, 600)
        )
        counts = [np.bincount(labels[subset], minlength=4) for subset in subsets]
        # The rounds of several groups, and of all clusters, may end in the same subset.
        assert np.ptp(counts, axis=0).max() <= 2
        assert np.ptp([len(subset) for subset in subsets]) <= 3
    loss = [scatter_of_means(X, labels, cut) for cut in (balanced, dealt)]
    # Groups are dealt at random, and only what is within them is balanced.
    assert loss[0] < (0.25 if together > 10 else 0.5) * loss[1]


def test_heavy_rows_are_balanced_by_their_weight():
    rng = np.random.default_rng(0)
    R, weights = rng.normal(size=(400, 3)), rng.exponential(size=400) ** 2
    labels = np.zeros(400, int)

    def imbalance(subset):
        assert np.bincount(subset).tolist() == [40] * 10
        sums = np.zeros((10, 3))
        np.add.at(sums, subset, weights[:, None] * R)
        return np.square(sums).sum()

    heeded = imbalance(balance_means(R, labels, 10, weights))
    assert heeded < 0.25 * imbalance(balance_means(R, labels, 10))


def test_more_subsets_than_rows():
    subsets = cut_rows(np.array([0, 0, 1]), 5, np.random.default_rng(0))
    assert sorted(map(int, np.concatenate(subsets))) == [0, 1, 2]
