"""The bound of all rows from the bounds of disjoint subsets, better with every second.

Total costs of disjoint subsets add up: ``Σ_S OPT(S) ≤ OPT``, for every cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from sketchmeans.data.rows import Rows
from sketchmeans.diagnostics.anticlusters import cut_rows, find_directions
from sketchmeans.diagnostics.betting import bound_mean
from sketchmeans.diagnostics.semidefinite import SubsetProblem
from sketchmeans.kernels import Kernel, is_given, toarray
from sketchmeans.numerics.linalg import Array

#: Rows of a subset: at least, at most, and for each cluster.
_FEW_ROWS, _MOST_ROWS, _ROWS_PER_CLUSTER = 300, 1_000, 6
#: Larger subsets lose less; seconds of one core for each of their rows, and the number
#: of clusters that doubles them.
_LARGE_ROWS, _SECONDS_PER_ROW, _DOUBLING = 600, 2.5e-3, 20
#: Share of the seconds left for spectral bounds of subsets, which all else builds on.
_SPECTRAL_SHARE = 0.4
#: Stop improving a subset where 25 steps gain less, for many and for few subsets.
_GAIN_OF_MANY, _GAIN_OF_FEW, _FEW_SUBSETS = 1e-3, 3e-4, 8

#: Seconds between two looks at the bound of all rows.
_PAUSE = 0.25

#: Called with the number of subsets done, of all subsets, and the bound.
OnProgress = Callable[[int, int, float], object]


@dataclass(frozen=True)
class Goal:
    """When to stop: after some seconds, or when the bound is as large as wanted."""

    start: float
    max_seconds: float
    wanted: float
    confidence: float

    @property
    def seconds_left(self) -> float:
        """The time that is left."""
        return self.start + self.max_seconds - time.perf_counter()


@dataclass
class PartitionBound:
    """Bounds on the total cost, from those of subsets done so far.

    Attributes
    ----------
    n_subsets, subset_size : int
    spectral, excess : list of float
        Spectral bounds of the first subsets in random order, and what better bounds of
        some of these add to them.
    path : list of (float, float, float)
        Seconds, certain bound and bound at the confidence, while it was at work.
    """

    n_subsets: int
    subset_size: int
    confidence: float
    spectral: list[float] = field(default_factory=list)
    excess: list[float] = field(default_factory=list)
    path: list[tuple[float, float, float]] = field(default_factory=list)

    @property
    def certain(self) -> float:
        """A bound without chance: subsets not yet looked at count as zero."""
        return float(sum(self.spectral) + sum(self.excess))

    @property
    def is_complete(self) -> bool:
        """Whether all subsets are solved, so that nothing is left to chance."""
        return len(self.excess) == self.n_subsets

    @property
    def likely(self) -> float:
        """A bound at the confidence; two estimates share the risk where needed."""
        if self.confidence >= 1.0 or self.is_complete:
            return self.certain
        risk = 1.0 - self.confidence
        parts = [np.array(self.spectral), np.array(self.excess)]
        n_chances = sum(len(part) < self.n_subsets for part in parts)
        each = 1.0 - risk / n_chances
        likely = sum(bound_mean(part, self.n_subsets, each) for part in parts)
        return max(self.n_subsets * likely, self.certain)


def choose_subset_size(n: int, k: int, max_seconds: float, n_jobs: int) -> int:
    """Return the rows of a subset; all rows, if they are few.

    Larger ones, which lose less, if all of them can be done in the time.
    """
    if n <= _LARGE_ROWS:
        return n
    least = min(max(_FEW_ROWS, _ROWS_PER_CLUSTER * k), _MOST_ROWS)
    seconds = n * _SECONDS_PER_ROW * (1.0 + k / _DOUBLING)
    is_affordable = seconds <= 0.7 * max_seconds * n_jobs
    return max(least, _LARGE_ROWS) if is_affordable else least


def compute_subset_gram(rows: Rows, kernel: Kernel, numbers: Array) -> Array:
    """Return a matrix in float64 whose ``HKH`` is that of the kernel, in this thread.

    ``−½‖φ(x) − φ(z)‖²`` where that keeps more digits.
    """
    if is_given(kernel):
        K = toarray(rows.take(numbers)[:, numbers]).astype(np.float64)
        return np.asarray(0.5 * (K + K.T))
    points = rows.take(numbers)
    distances = kernel.squared_distances(points, np.float64, rows.workers)
    if distances is not None:
        K = -0.5 * distances(points)
        np.fill_diagonal(K, 0.0)
    else:
        K = np.array(kernel.against(points, np.float64, rows.workers)(points))
        np.fill_diagonal(K, kernel.diagonal(points))
    return np.asarray(0.5 * (K + K.T))


def bound_by_partition(
    rows: Rows,
    kernel: Kernel,
    labels: Array,
    costs: Array,
    n_clusters: int,
    size: int,
    goal: Goal,
    rng: np.random.Generator,
    on_progress: OnProgress | None = None,
) -> PartitionBound:
    """Return bounds from subsets of about `size` rows, until the goal is reached.

    `labels` is -1 for rows that do not count; `costs` are those of single rows for
    centres that are known, times their weights.
    """
    counting = int((labels >= 0).sum())
    n_subsets = max(ceil(counting / size), 1)
    directions = None
    if n_subsets > 1:
        directions = find_directions(rows, kernel, labels, n_clusters, rng)
    subsets = cut_rows(labels, n_subsets, rng, rows, directions)
    order = rng.permutation(len(subsets))
    found = PartitionBound(len(subsets), size, goal.confidence)
    gain = _GAIN_OF_FEW if len(subsets) <= _FEW_SUBSETS else _GAIN_OF_MANY

    def open_problem(number: int) -> SubsetProblem:
        subset = np.sort(subsets[number])
        weights = None if rows.weights is None else rows.weights[subset]
        gram = compute_subset_gram(rows, kernel, subset)
        return SubsetProblem(gram, n_clusters, weights)

    def improve(number: int) -> float:
        problem = open_problem(number)
        better = problem.improve(float(costs[subsets[number]].sum()), gain)
        return max(better.value - better.spectral, 0.0)

    def note() -> bool:
        """Write down where we are, and say whether it is enough."""
        likely = found.likely
        seconds = time.perf_counter() - goal.start
        found.path.append((seconds, found.certain, likely))
        if on_progress is not None:
            on_progress(len(found.excess), len(subsets), likely)
        return likely >= goal.wanted

    # A batch that has begun counts as a whole: stopping depends on the past alone.
    height = 2 * rows.workers.n_jobs
    reserve = (1.0 - _SPECTRAL_SHARE) * goal.seconds_left
    for start in range(0, len(order), height):
        batch = order[start : start + height].tolist()
        found.spectral += rows.workers.map(lambda i: open_problem(i).spectral, batch)
        if goal.seconds_left < reserve:
            break
    enough = note()
    for start in range(0, len(found.spectral), rows.workers.n_jobs):
        if enough or (start and goal.seconds_left <= 0.0):
            break
        batch = order[start : min(start + rows.workers.n_jobs, len(found.spectral))]
        found.excess += rows.workers.map(improve, batch.tolist())
        is_last = len(found.excess) == len(found.spectral) or goal.seconds_left <= 0.0
        if is_last or time.perf_counter() - goal.start - found.path[-1][0] > _PAUSE:
            enough = note()
    return found
