"""How well a clustering agrees with known classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from sketchmeans.linalg import Array
from sketchmeans.validation import check_weights

__all__ = [
    "adjusted_rand_score",
    "clustering_accuracy",
    "normalized_mutual_info_score",
]


def clustering_accuracy(y: Any, labels: Any, sample_weight: Any = None) -> float:
    """Return the share of rows whose cluster is matched with their class.

    Each cluster is matched with at most one class and each class with at most one
    cluster, such that most rows agree (the Hungarian algorithm).  There may be more
    clusters than classes or the other way round: rows of those left over count as
    wrong.

    Parameters
    ----------
    y : array-like of shape (n,)
        Classes: numbers, strings, or any other keys of a dict.
    labels : array-like of shape (n,)
        Clusters, likewise.
    sample_weight : array-like of shape (n,), optional
        A row of weight 3 counts as three rows.

    Returns
    -------
    accuracy : float
        Between 0 and 1; 1 where clusters and classes are the same partition.

    Examples
    --------
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 2])
    0.75
    """
    classes, clusters = _codes("y", y), _codes("labels", labels)
    if len(classes) != len(clusters):
        raise ValueError(
            f"labels of {len(clusters)} rows should be of as many as y, {len(classes)}."
        )
    weights = check_weights(sample_weight, len(classes))
    counts = np.zeros((classes.max() + 1, clusters.max() + 1))
    np.add.at(counts, (classes, clusters), 1.0 if weights is None else weights)
    matched = counts[linear_sum_assignment(counts, maximize=True)]
    return float(matched.sum() / counts.sum())


def _codes(name: str, labels: Any) -> Array:
    """Return the labels as numbers from 0 on."""
    # An array of several types would turn all labels into strings.
    values = np.asarray(labels, dtype=object if isinstance(labels, list) else None)
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"{name}.shape={values.shape} should be (n,) with n >= 1: one label a row."
        )
    missing = np.asarray(values != values, dtype=bool)
    if missing.any():
        row = int(missing.argmax())
        raise ValueError(f"{name}[{row}]={values[row]} should be a label.")
    if values.dtype != object:
        return np.unique(values, return_inverse=True)[1]
    known: dict[Any, int] = {}  # labels of several types cannot be sorted
    return np.array([known.setdefault(label, len(known)) for label in values])
