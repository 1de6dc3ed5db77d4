"""Lloyd passes for several numbers of clusters at once.

The centres of all restarts lie side by side, however many each has, so that a pass is
one product with the coordinates of a block for all of them.  `Centers` and `Assignment`
of such restarts hold arrays of arrays, one for each restart, and `lloyd` is none the
wiser.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from sketchmeans.engine.assign import Table, unpacked
from sketchmeans.engine.blocks import BlockEngine
from sketchmeans.engine.lloyd import Assignment, Centers
from sketchmeans.numerics.linalg import Array


def mixed(groups: Sequence[Centers]) -> Centers:
    """Return the centres of restarts whose numbers of clusters differ.

    Restarts that follow each other should have as many, where they can.
    """
    return Centers(
        _ragged([one for centers in groups for one in centers.coefficients]),
        _ragged([one for centers in groups for one in centers.squared_norms]),
        _ragged([one for centers in groups for one in centers.means]),
    )


def joined(centers: Centers) -> Centers:
    """Return the centres of all restarts as if they were of one."""
    return Centers(
        np.concatenate(list(centers.coefficients))[None],
        np.concatenate(list(centers.squared_norms))[None],
        np.concatenate(list(centers.means))[None],
    )


def batches(widths: Sequence[int], most: int) -> Iterator[slice]:
    """Yield which consecutive widths add up to at most `most`; one may be wider.

    Examples
    --------
    >>> list(batches([2, 3, 4, 9], 6))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    first, total = 0, 0
    for number, width in enumerate(widths):
        if number > first and total + width > most:
            yield slice(first, number)
            first, total = number, 0
        total += width
    yield slice(first, len(widths))


class MixedEngine(BlockEngine):
    """Passes over the rows of a source, for centres that are `mixed`."""

    def assign(self, centers: Centers) -> Assignment:
        """Return every row's nearest centre in each restart, in one pass."""
        found = self.sweep(centers)
        shape = 1, sum(_counts(centers)), self.space.n_coordinates
        sums, counts, costs = unpacked(found.terms.total(), shape)
        edges = list(accumulate(_counts(centers)))[:-1]
        return Assignment(
            found.labels,
            costs / self.rows.total_weight,
            _ragged(np.split(sums[0], edges)),
            _ragged(np.split(counts[0], edges)),
        )

    def update(self, assignment: Assignment, centers: Centers) -> Centers:
        """Return the centroids, after a refill of empty clusters."""
        means = []
        for i, (sums, counts) in enumerate(
            zip(assignment.sums, assignment.counts, strict=True)
        ):
            if counts.all():
                means.append(sums / counts[:, None])
            else:
                labels, costs = assignment.labels[:, [i]], assignment.costs[[i]]
                alone = Assignment(labels, costs, sums[None], counts[None])
                means.append(super().update(alone, _one(centers, i)).means[0])
        together = self.centers_of_means(np.concatenate(means)[None])
        edges = list(accumulate(_counts(centers)))[:-1]
        return Centers(
            _ragged(np.split(together.coefficients[0], edges)),
            _ragged(np.split(together.squared_norms[0], edges)),
            _ragged(np.split(together.means[0], edges)),
        )

    def _table(self, centers: Centers) -> Table:
        space = self.space
        return _MixedTable(centers, space.dtype, space.height, space.is_euclidean)


class _MixedTable(Table):
    """Centres of restarts that have different numbers of them."""

    def __init__(
        self, centers: Centers, dtype: np.dtype[Any], height: int, is_euclidean: bool
    ) -> None:
        super().__init__(joined(centers), dtype, height, is_euclidean=is_euclidean)
        restarts = len(centers)
        ends = np.cumsum(_counts(centers))
        self.n_restarts = restarts
        self._first = ends - _counts(centers)
        self._groups = [slice(*edge) for edge in zip(self._first, ends, strict=True)]
        self._pointers = np.arange(0, height * restarts + 1, restarts)
        self._ones = np.ones(height * restarts, dtype=dtype)

    def nearest(self, scores: Array) -> tuple[Array, Array]:
        labels = np.stack(
            [scores[:, group].argmin(axis=1) for group in self._groups], axis=1
        )
        return labels, np.take_along_axis(scores, labels + self._first, axis=1)

    def _group(self, restart: int) -> slice:
        return self._groups[restart]


def _counts(centers: Centers) -> list[int]:
    """Return the number of clusters of each restart."""
    return [len(one) for one in centers.squared_norms]


def _one(centers: Centers, restart: int) -> Centers:
    """Return the centres of one restart in ordinary arrays."""
    return joined(centers.select([restart]))


def _ragged(arrays: Sequence[Array]) -> Array:
    """Return an array of arrays."""
    found = np.empty(len(arrays), dtype=object)
    for i, array in enumerate(arrays):  # NumPy would stack those of equal lengths
        found[i] = array
    return found
