"""Cuts of the rows into disjoint subsets, each a small copy of every cluster.

For every cut, ``Σ_S OPT(S) ≤ OPT`` in total costs, because the best centres of all rows
are some centres for each subset.  What is lost is small where the means of the clusters
within a subset are those of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from sketchmeans.data.rows import Rows, block_height, block_slices
from sketchmeans.kernels import KernelColumns
from sketchmeans.numerics.linalg import Array, eigen_decomposition, pseudo_inverse
from sketchmeans.theory.problem import Problem

#: Directions in which the means of subsets are balanced, and landmarks that span them.
_DIRECTIONS, _LANDMARKS = 150, 400
#: Rows whose within-cluster scatter gives the directions.
_SCATTER_ROWS = 4_000
#: Most subsets that rows are dealt to together: an assignment takes the third power.
_TOGETHER = 100


@dataclass(frozen=True)
class Directions:
    """Leading directions of the rows about the centres of their clusters."""

    #: Kernel values of a block of rows with some landmarks; times the matrix (m, p),
    #: these are coordinates.
    columns: KernelColumns
    matrix: Array
    #: Coordinates (k, p) of the clusters' means.
    means: Array

    def locate(self, rows: Rows, numbers: Array, labels: Array) -> Array:
        """Return coordinates of some rows about the means of their clusters."""
        located = np.empty((len(numbers), self.matrix.shape[1]), self.matrix.dtype)
        height = block_height(rows.n_features, len(self.matrix))
        for start, stop in block_slices(len(numbers), height):
            values = self.columns(rows.take(numbers[start:stop]))
            np.matmul(values, self.matrix, out=located[start:stop])
        located -= self.means[labels]
        return located


def find_directions(problem: Problem, labels: Array, n_clusters: int) -> Directions:
    """Return leading directions, from the Nyström features of a sample of rows."""
    rows, kernel = problem.rows, problem.kernel
    counting = np.flatnonzero(labels >= 0)
    sample = problem.rng.permutation(counting)[:_SCATTER_ROWS]
    points = kernel.points(rows, np.sort(sample[:_LANDMARKS]))
    columns = kernel.against(points, np.float64, rows.workers)
    values = columns(rows.take(np.sort(sample)))
    own = columns(rows.take(np.sort(sample[:_LANDMARKS])))
    root = pseudo_inverse(0.5 * (own + own.T), dtype=np.float32).root()
    features, of_sample = values @ root, labels[np.sort(sample)]
    member = np.zeros((n_clusters, len(of_sample)))
    member[of_sample, np.arange(len(of_sample))] = 1.0
    means = member @ features / np.maximum(member.sum(axis=1), 1.0)[:, None]
    features -= means[of_sample]
    leading = min(_DIRECTIONS, features.shape[1])
    _, vectors = eigen_decomposition(features.T @ features, largest=leading)
    narrow = kernel.against(points, rows.dtype, rows.workers)
    matrix = (root @ vectors).astype(rows.dtype)
    return Directions(narrow, matrix, (means @ vectors).astype(rows.dtype))


def cut_rows(
    labels: Array,
    n_subsets: int,
    rng: np.random.Generator,
    rows: Rows | None = None,
    directions: Directions | None = None,
) -> list[Array]:
    """Return the row numbers of disjoint subsets, of about the same size.

    Rows of the label -1 are in none.  Every subset has its share of every cluster.
    With `directions` its clusters have about the means of all rows, too; without, rows
    are dealt at random.  At most 100 subsets are balanced together, over rows that are
    dealt at random: n·p·100 products, and n/100 assignments of that size.
    """
    n_groups = -(-n_subsets // _TOGETHER)
    dealt = _deal(labels, n_subsets, rng)
    group = np.where(dealt >= 0, dealt % n_groups, -1)
    sizes = np.bincount(np.arange(n_subsets) % n_groups)
    seeds = rng.spawn(n_groups)

    def cut(g: int) -> list[Array]:
        numbers = np.flatnonzero(group == g)
        count = min(int(sizes[g]), max(len(numbers), 1))
        if directions is None or rows is None:
            subset = _deal(labels[numbers], count, seeds[g])
        else:
            located = directions.locate(rows, numbers, labels[numbers])
            weights = None if rows.weights is None else rows.weights[numbers]
            subset = balance_means(located, labels[numbers], count, weights)
        order = np.argsort(subset, kind="stable")
        ends = np.cumsum(np.bincount(subset, minlength=count))[:-1]
        return [part for part in np.split(numbers[order], ends) if len(part)]

    each = map if rows is None else rows.workers.map
    return [subset for part in each(cut, range(n_groups)) for subset in part]


def balance_means(
    R: Array, labels: Array, n_subsets: int, weights: Array | None = None
) -> Array:
    """Return a subset for each row so that sums over clusters and subsets are small.

    Rows R (n, p) are given about the means of their clusters.  Round by round, each
    subset gets one row of the cluster, by the assignment of least inner products with
    the sums so far: a subset is drawn back to where it started.  The rows farthest out
    go first.
    """
    if weights is not None:
        R = R * weights[:, None].astype(R.dtype)
    subset = np.empty(len(R), dtype=np.intp)
    filled = np.zeros(n_subsets, dtype=np.intp)
    squares = np.einsum("ij,ij->i", R, R)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        members = members[np.argsort(-squares[members], kind="stable")]
        sums = np.zeros((n_subsets, R.shape[1]), R.dtype)
        for start in range(0, len(members), n_subsets):
            chosen = members[start : start + n_subsets]
            # In a last round, subsets that have the fewest rows.
            open_subsets = np.argsort(filled, kind="stable")[: len(chosen)]
            found = linear_sum_assignment(R[chosen] @ sums[open_subsets].T)[1]
            places = open_subsets[found]
            subset[chosen] = places
            sums[places] += R[chosen]
            filled[places] += 1
    return subset


def _deal(labels: Array, n_hands: int, rng: np.random.Generator) -> Array:
    """Deal the rows of each cluster in random order; -1 where there is no cluster."""
    hand = np.full(len(labels), -1, dtype=np.intp)
    counting = rng.permutation(np.flatnonzero(labels >= 0))
    order = counting[np.argsort(labels[counting], kind="stable")]
    hand[order] = np.arange(len(order)) % n_hands
    return hand
