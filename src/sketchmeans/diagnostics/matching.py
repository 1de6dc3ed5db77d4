"""Segments of a refit under the labels and names that they had before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from sketchmeans.cluster.segment_names import segment_names
from sketchmeans.numerics.linalg import Array
from sketchmeans.theory.results import Result

#: Where the fitted arrays of an estimator have one entry per cluster.
_AXES = {
    "cluster_sizes_": 0,
    "exemplar_indices_": 0,
    "exemplars_": 0,
    "dual_coef_": 1,
    "cluster_centers_": 0,
    "_squared_norms": 0,
    "_variances": 0,
    "_means": 0,
    "_masses": 0,
}
#: Rows in common, as a share of those of either, that make two segments the same.
_SAME = 1 / 3


@dataclass(frozen=True, repr=False)
class LabelMatch(Result):
    """Which segments of a model are those of an earlier one.

    Attributes
    ----------
    old_labels : ndarray of shape (k,)
        The label in the earlier model of each segment; −1 for a new one.
    overlap : ndarray of shape (k,)
        Rows in both, as a share of the rows of either: 1 for the same rows.
    dissolved : tuple of int
        Labels of the earlier model that no segment has taken over.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import match_labels
    >>> X = np.repeat([[0.0], [5.0], [9.0]], 20, axis=0)
    >>> old, new = (SketchedKMeans(3, random_state=s).fit(X) for s in (0, 5))
    >>> match_labels(new, old, X).overlap
    array([1., 1., 1.])
    """

    old_labels: Array
    overlap: Array
    dissolved: tuple[int, ...]


def match_labels(model: Any, reference: Any, X: Any) -> LabelMatch:
    """Give the segments of a model the labels and names of an earlier one, in place.

    Segments are paired such that as many rows as possible are in both of a pair (linear
    assignment).  Two are the same if at least a third of the rows of either are in
    both, ``n_both / n_either ≥ 1/3``; the name is carried over then.  All fitted arrays
    are permuted: labels, centres, sizes, exemplars.  If there are fewer segments than
    before, those with labels that are too large get free ones, and keep their names.

    Costs a prediction of both models for all rows.

    Parameters
    ----------
    model : fitted estimator or TableClusterer
        Its segments are renumbered.
    reference : fitted estimator or TableClusterer
        The earlier model.
    X : table
        Rows that both can predict, as a rule those of the fit of `model`.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> X = np.repeat([[0.0], [5.0], [9.0]], 20, axis=0)
    >>> old, new = (SketchedKMeans(3, random_state=s).fit(X) for s in (0, 5))
    >>> match_labels(new, old, X).overlap
    array([1., 1., 1.])
    >>> bool((new.labels_ == old.labels_).all())
    True
    """
    k, k_old = len(segment_names(model)), len(segment_names(reference))
    before, now = reference.predict(X), model.predict(X)
    both = (before >= 0) & (now >= 0)
    pairs = now[both].astype(np.int64) * k_old + before[both]
    common = np.bincount(pairs, minlength=k * k_old).reshape(k, k_old)
    of_either = common.sum(axis=1)[:, None] + common.sum(axis=0) - common
    share = common / np.maximum(of_either, 1)
    rows, columns = linear_sum_assignment(common, maximize=True)
    old_labels, overlap = np.full(k, -1), np.zeros(k)
    overlap[rows] = share[rows, columns]
    is_same = share[rows, columns] >= _SAME
    old_labels[rows[is_same]] = columns[is_same]
    # Pairs that are not the same keep together where numbers are free.
    wanted = np.full(k, -1)
    wanted[rows] = columns
    order = _choose_order(old_labels, wanted)
    permute_clusters(model, order)
    model.segment_names_ = _carry_names(
        segment_names(reference), segment_names(model), old_labels[order]
    )
    gone = sorted(set(range(k_old)) - set(old_labels.tolist()))
    return LabelMatch(old_labels[order], overlap[order], tuple(gone))


def _choose_order(old_labels: Array, wanted: Array) -> Array:
    """Return the segment that gets each label: its old one, if that is free."""
    k = len(old_labels)
    order = np.full(k, -1)
    for choice in (old_labels, wanted):
        for j, label in enumerate(choice.tolist()):
            if 0 <= label < k and order[label] < 0 and j not in order:
                order[label] = j
    rest = iter(sorted(set(range(k)) - set(order.tolist())))
    return np.array([next(rest) if j < 0 else j for j in order.tolist()])


def _carry_names(
    old: tuple[str, ...], own: Sequence[str], old_labels: Array
) -> tuple[str, ...]:
    """Return the old names of segments that are the same, and others for new ones.

    A new segment keeps its own name, unless another has or had it.
    """
    taken, names = {name.casefold() for name in old}, []
    free = count(len(old_labels))
    for label, name in zip(old_labels.tolist(), own, strict=True):
        if label >= 0:
            name = old[label]
        while label < 0 and name.casefold() in taken:
            name = f"Segment {next(free)}"
        taken.add(name.casefold())
        names.append(name)
    return tuple(names)


def permute_clusters(model: Any, order: Array) -> None:
    """Put the clusters of a fitted model into another order, in place.

    Cluster ``order[j]`` becomes cluster j.
    """
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    inner = getattr(model, "estimator_", model)
    for holder in [model] if inner is model else [model, inner]:
        values = vars(holder)
        for name, axis in _AXES.items():
            array = values.get(name)
            # The masses of a graph are those of its landmarks.
            if array is None or (name == "_masses" and not hasattr(holder, "_means")):
                continue
            values[name] = _take(array, order, axis)
        if isinstance(values.get("labels_"), np.ndarray):
            labels = values["labels_"]
            moved = np.where(labels < 0, labels, numbers[labels])
            values["labels_"] = moved.astype(labels.dtype)
        if "segment_names_" in values:
            values["segment_names_"] = tuple(holder.segment_names_[j] for j in order)
        if "reference_" in values:
            values["reference_"] = holder.reference_.permute(order)


def _take(array: Any, order: Array, axis: int) -> Any:
    if axis == 0:
        return array[order]
    # In the same layout: the bits of products depend on it.
    is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return np.asarray(array[:, order], order="F" if is_fortran else "C")
