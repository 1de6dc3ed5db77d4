"""The agreement of clusters with classes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from sketchmeans.diagnostics import (
    adjusted_rand_score,
    clustering_accuracy,
    normalized_mutual_info_score,
)


def best_matching(y, labels, weights=None):
    """Return the accuracy of the best matching, by trying all of them."""
    classes, clusters = sorted(set(y)), sorted(set(labels))
    weights = np.ones(len(y)) if weights is None else weights
    width = max(len(classes), len(clusters))
    slots = [*classes, *[None] * (width - len(classes))]
    return max(
        sum(
            w
            for a, b, w in zip(y, labels, weights, strict=True)
            if order[clusters.index(b)] == a
        )
        for order in permutations(slots)
    ) / sum(weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_accuracy_is_that_of_the_best_matching(weighted):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, rng.integers(1, 6), 25).tolist()
        labels = rng.integers(0, rng.integers(1, 6), 25).tolist()
        weights = rng.integers(0, 3, 25) if weighted else None
        found = clustering_accuracy(y, labels, sample_weight=weights)
        assert found == pytest.approx(best_matching(y, labels, weights))


def test_names_do_not_matter():
    rng = np.random.default_rng(0)
    y, labels = rng.integers(0, 4, 60), rng.integers(0, 5, 60)
    expected = clustering_accuracy(y, labels)
    names = np.array(["red", "green", "blue", "grey"])
    assert clustering_accuracy(names[y], labels) == expected
    assert clustering_accuracy(y, 7 - 2 * labels) == expected
    assert (
        clustering_accuracy(pd.Series(names[y], dtype="category"), labels) == expected
    )
    assert clustering_accuracy(y.astype(float) / 2, labels.astype(bytes)) == expected
    assert clustering_accuracy(labels, y) == expected
    mixed = [None if label == 0 else label for label in labels.tolist()]
    assert clustering_accuracy(y, mixed) == expected


def test_labels_of_several_types_stay_apart():
    assert clustering_accuracy([1, "1", 1, "1"], [0, 1, 0, 1]) == 1.0
    assert clustering_accuracy([1, "1", 1, "1"], [0, 0, 0, 0]) == 0.5


def test_limits():
    y = np.repeat(np.arange(3), 4)
    assert clustering_accuracy(y, (y + 1) % 3) == 1.0
    assert clustering_accuracy(y, np.arange(12)) == pytest.approx(0.25)
    assert clustering_accuracy(y, np.zeros(12)) == pytest.approx(1 / 3)


def test_other_scores_are_those_of_scikit_learn():
    y, labels = [0, 0, 1, 1, 2], [1, 1, 0, 0, 0]
    assert adjusted_rand_score is metrics.adjusted_rand_score
    assert normalized_mutual_info_score is metrics.normalized_mutual_info_score
    assert 0 < adjusted_rand_score(y, labels) < normalized_mutual_info_score(y, labels)


ERRORS = [
    ([0, 1], [0], "labels of 1 rows should be of as many as y, 2"),
    ([], [], r"y.shape=\(0,\) should be \(n,\) with n >= 1"),
    ([[0], [1]], [0, 1], r"y.shape=\(2, 1\) should be \(n,\)"),
    ([0, 1], np.array([0.0, np.nan]), r"labels\[1\]=nan should be a label"),
    ([0, 1], [0.0, np.nan], r"labels\[1\]=nan should be a label"),
]


def test_errors_name_the_parameter():
    for y, labels, message in ERRORS:
        with pytest.raises(ValueError, match=message):
            clustering_accuracy(y, labels)
