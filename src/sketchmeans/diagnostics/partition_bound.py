"""The bound of all rows from the bounds of disjoint subsets, better with every second.

Total costs of disjoint subsets add up: ``Σ_S OPT(S) ≤ OPT``, for every cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import ceil, log

import numpy as np

from sketchmeans.data.partitioned_rows import PartitionedRows
from sketchmeans.data.rows import Rows
from sketchmeans.diagnostics.anticlusters import cut_rows, find_directions
from sketchmeans.diagnostics.semidefinite import SubsetProblem
from sketchmeans.kernels import Kernel, is_given, toarray
from sketchmeans.numerics.linalg import Array
from sketchmeans.theory.problem import Problem

#: Rows of a subset: at least, at most, and for each cluster.
_FEW_ROWS, _MOST_ROWS, _ROWS_PER_CLUSTER = 300, 1_000, 6
#: Larger subsets lose less; seconds of one core for each of their rows, the number of
#: clusters that doubles them, and seconds of the spectral bound of such a subset.
_LARGE_ROWS, _SECONDS_PER_ROW, _DOUBLING, _SPECTRAL_SECONDS = 600, 1.5e-3, 20, 0.1
#: Share of the seconds left for spectral bounds of subsets, which all else builds on.
_SPECTRAL_SHARE = 0.4
#: With fewer subsets, what is not known of the others outweighs how tight they are.
_ENOUGH_SUBSETS = 20
#: Bytes of rows that are brought here where they live elsewhere, or in a file.
MOST_BYTES = 2**28
#: Seconds of one core to cut a row of few columns, the number of columns that doubles
#: them, and the share of the time that this may take.
_CUT_SECONDS, _CUT_DOUBLING, _CUT_SHARE = 5e-6, 150, 0.25
#: Stop improving a subset where 25 steps gain less: for few subsets, many, and where
#: time is too short for all, so that one more subset says more than better ones.
_GAIN_OF_FEW, _GAIN_OF_MANY, _GAIN_OF_SOME, _FEW_SUBSETS = 3e-4, 1e-3, 1e-2, 8

#: Least time of a subset for triangle inequalities, in units of that without them.
_TIGHTEN_TIME = 3.0

#: Seconds between two looks at the bound of all rows.
_PAUSE = 0.25

#: Shares of the capital that are bet, and how much capital starts with each.  Values
#: that are nearly equal, as those of balanced subsets, are best met with all of it.
_SHARES = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
_START = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.5])
#: Halvings of the interval that holds the bound.
_HALVINGS = 50

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
    """Bounds on the total cost, from those of subsets done so far."""

    n_subsets: int
    subset_size: int
    confidence: float
    #: Spectral bounds of the first subsets in random order, and what better bounds of
    #: some of these add to them.
    spectral: list[float] = field(default_factory=list)
    excess: list[float] = field(default_factory=list)
    #: Seconds, certain bound and bound at the confidence, while it was at work.
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


def bound_mean(values: Array, n_total: int, confidence: float) -> float:
    """Return a lower bound on the mean of `n_total` numbers ``X_i ≥ 0``.

    `values` are those drawn so far, in random order and without replacement, or lower
    bounds on them that are not negative.  The bound holds with the given probability
    for *every* moment at which sampling may be stopped, whatever made it stop.

    Suppose that the mean is m or less.  Given the first t − 1 draws, the next has a
    mean of at most ``m_t = (n m − x_1 − ... − x_{t−1})/(n − t + 1)``.  A gambler who
    bets the share c of a capital on it, which then is multiplied by
    ``1 − c + c x_t/m_t ≥ 0``, does not gain in expectation, nor do several who begin
    with 1 together.  By Ville's inequality they ever own ``1/(1 − confidence)`` with a
    probability of at most ``1 − confidence``.  Every m at which they do is refuted;
    their capital falls with m, so bisection finds the largest (Waudby-Smith and Ramdas,
    2024, bet in this way).  Where all numbers are nearly the same, the loss is about
    ``1 − (1 − confidence)^(1/t)`` of the mean, whatever the range of the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> round(bound_mean(np.full(20, 5.0), 1000, 0.95), 2)
    4.22
    >>> bound_mean(np.array([1.0, 2.0, 3.0]), 3, 0.95)
    2.0
    """
    x = np.asarray(values, np.float64)
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    left = n_total - np.arange(len(x))
    certain = float(x.sum()) / n_total
    if len(x) == n_total or not x.any():
        return certain
    needed = -log(1.0 - confidence)

    def is_refuted(m: float) -> bool:
        means = (n_total * m - before) / left
        if (means <= 0.0).any():
            return True
        growth = 1.0 - _SHARES[:, None] + _SHARES[:, None] * (x / means)
        with np.errstate(divide="ignore"):
            capital = np.cumsum(np.log(growth), axis=1) + np.log(_START)[:, None]
        return bool(np.logaddexp.reduce(capital, axis=0).max() >= needed)

    low, high = certain, float(x.mean())
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def choose_subset_size(n: int, k: int, max_seconds: float, n_jobs: int) -> int:
    """Return the rows of a subset; all rows, if they are few.

    Larger ones, which lose less, if all of them can be done in the time, or enough to
    speak for the others.
    """
    if n <= _LARGE_ROWS:
        return n
    least = min(max(_FEW_ROWS, _ROWS_PER_CLUSTER * k), _MOST_ROWS)
    seconds, n_large = max_seconds * n_jobs, n / _LARGE_ROWS
    each = _LARGE_ROWS * _SECONDS_PER_ROW * (1.0 + k / _DOUBLING)
    for_spectral = _SPECTRAL_SHARE * seconds
    for_all = n_large * each <= 0.7 * seconds
    for_some = (
        n_large * _SPECTRAL_SECONDS <= for_spectral
        and _ENOUGH_SUBSETS * each <= seconds - for_spectral
    )
    return max(least, _LARGE_ROWS) if for_all or for_some else least


def is_drawn(rows: Rows, max_seconds: float, confidence: float) -> bool:
    """Say whether some subsets are drawn, because to cut all rows takes too long."""
    if isinstance(rows, PartitionedRows):
        return True
    width = 0 if rows.is_sparse else rows.n_features
    seconds = len(rows) * _CUT_SECONDS * (1.0 + width / _CUT_DOUBLING)
    takes_long = seconds > _CUT_SHARE * max_seconds * rows.workers.n_jobs
    return confidence < 1.0 and (takes_long or not rows.in_memory)


def choose_drawn_size(n: int, k: int, max_seconds: float, n_jobs: int) -> int:
    """Return the rows of a subset where only a few subsets are drawn."""
    few = min(n, _ENOUGH_SUBSETS * _LARGE_ROWS)
    return choose_subset_size(few, k, max_seconds, n_jobs)


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


@dataclass(frozen=True)
class Cut:
    """Disjoint subsets of about `size` rows: all `n_subsets`, or some of them."""

    subsets: list[Array]
    n_subsets: int
    size: int


def cut_evenly(problem: Problem, labels: Array, n_clusters: int, size: int) -> Cut:
    """Cut all rows into small copies of the whole; rows of the label -1 are in none."""
    n_subsets = max(ceil(int((labels >= 0).sum()) / size), 1)
    directions = None
    if n_subsets > 1:
        directions = find_directions(problem, labels, n_clusters)
    subsets = cut_rows(labels, n_subsets, problem.rng, problem.rows, directions)
    return Cut(subsets, len(subsets), size)


def draw_subsets(problem: Problem, size: int, goal: Goal) -> tuple[Rows, Cut]:
    """Draw some subsets of a random cut, and bring their rows into memory.

    As many as have a spectral bound in time, and fit into memory.  Only the rows drawn
    have to be known: the rest of the cut may be any.
    """
    rows, rng = problem.rows, problem.rng
    counting = np.arange(len(rows))
    if rows.weights is not None:
        counting = np.flatnonzero(rows.weights)
    n_subsets = max(ceil(len(counting) / size), 1)
    each = _SPECTRAL_SECONDS * size / _LARGE_ROWS
    in_time = _SPECTRAL_SHARE * goal.seconds_left * rows.workers.n_jobs / each
    in_memory = MOST_BYTES // (size * rows.row_bytes)
    n_drawn = min(max(min(int(in_time), in_memory), _ENOUGH_SUBSETS), n_subsets)
    least, larger = divmod(len(counting), n_subsets)
    sizes = rng.permutation(least + (np.arange(n_subsets) < larger))[:n_drawn]
    numbers = rng.choice(counting, int(sizes.sum()), replace=False)
    subsets = np.split(np.arange(len(numbers)), np.cumsum(sizes)[:-1])
    weights = None if rows.weights is None else rows.weights[numbers]
    return rows.subset(numbers, weights), Cut(subsets, n_subsets, size)


def bound_by_partition(
    problem: Problem,
    cut: Cut,
    costs: Array,
    n_clusters: int,
    goal: Goal,
    on_progress: OnProgress,
) -> PartitionBound:
    """Return bounds from disjoint subsets, until the goal is reached.

    `costs` are those of single rows for centres that are known, times their weights.
    """
    found = PartitionBound(cut.n_subsets, cut.size, goal.confidence)
    work = _SubsetWork(
        problem, cut.subsets, costs, n_clusters, found, goal, on_progress
    )
    work.bound_by_spectra()
    work.solve_programmes()
    work.tighten()
    return found


class _SubsetWork:
    """Works through subsets in random order, in batches, until the goal is reached.

    A batch that has begun counts as a whole: stopping depends on the past alone.
    """

    def __init__(
        self,
        problem: Problem,
        subsets: list[Array],
        costs: Array,
        n_clusters: int,
        found: PartitionBound,
        goal: Goal,
        on_progress: OnProgress,
    ) -> None:
        self._problem, self._subsets, self._costs = problem, subsets, costs
        self._n_clusters, self._found, self._goal = n_clusters, found, goal
        self._on_progress = on_progress
        self._workers = problem.rows.workers
        self._n_batches = ceil(len(subsets) / self._workers.n_jobs)
        self._order = problem.rng.permutation(len(subsets))
        self._gain = _GAIN_OF_FEW if len(subsets) <= _FEW_SUBSETS else _GAIN_OF_MANY
        self._is_enough = False

    def bound_by_spectra(self) -> None:
        """Add spectral bounds of subsets, for a share of the time."""
        height = 2 * self._workers.n_jobs
        reserve = (1.0 - _SPECTRAL_SHARE) * self._goal.seconds_left
        for start in range(0, len(self._order), height):
            batch = self._order[start : start + height].tolist()
            self._found.spectral += self._workers.map(
                lambda i: self._open(i).spectral, batch
            )
            if self._goal.seconds_left < reserve:
                break
        self._note()

    def solve_programmes(self) -> None:
        """Add what semidefinite programmes say beyond the spectral bounds."""
        goal, found, n_jobs = self._goal, self._found, self._workers.n_jobs
        self._started = time.perf_counter()
        for start in range(0, len(found.spectral), n_jobs):
            if self._is_enough or (start and goal.seconds_left <= 0.0):
                break
            batch = self._order[start : min(start + n_jobs, len(found.spectral))]
            begun = time.perf_counter()
            found.excess += self._workers.map(self._improve, batch.tolist())
            needed = (time.perf_counter() - begun) * self._n_batches
            if start == 0 and needed > goal.seconds_left:
                self._gain = max(self._gain, _GAIN_OF_SOME)
            is_last = (
                len(found.excess) == len(found.spectral) or goal.seconds_left <= 0.0
            )
            if is_last or time.perf_counter() - goal.start - found.path[-1][0] > _PAUSE:
                self._note()

    def tighten(self) -> None:
        """Give the time that is left to triangle inequalities, if all are solved."""
        goal, found, n_jobs = self._goal, self._found, self._workers.n_jobs
        spent = time.perf_counter() - self._started
        least = _TIGHTEN_TIME * spent / self._n_batches
        for done in range(self._n_batches):
            if self._is_enough or not found.is_complete or goal.seconds_left <= 0.0:
                break
            share = max(goal.seconds_left / (self._n_batches - done), least)
            until = time.perf_counter() + min(share, goal.seconds_left)
            span = slice(done * n_jobs, (done + 1) * n_jobs)
            tighten = partial(self._improve, tighten_until=until)
            tighter = self._workers.map(tighten, self._order[span].tolist())
            found.excess[span] = map(max, found.excess[span], tighter)
            self._note()

    def _open(self, number: int) -> SubsetProblem:
        rows, subset = self._problem.rows, np.sort(self._subsets[number])
        weights = None if rows.weights is None else rows.weights[subset]
        gram = compute_subset_gram(rows, self._problem.kernel, subset)
        return SubsetProblem(gram, self._n_clusters, weights)

    def _improve(self, number: int, tighten_until: float | None = None) -> float:
        cost = float(self._costs[self._subsets[number]].sum())
        better = self._open(number).improve(
            cost, self._gain, tighten_until=tighten_until
        )
        return max(better.value - better.spectral, 0.0)

    def _note(self) -> None:
        """Write down where we are, and whether it is enough."""
        found, likely = self._found, self._found.likely
        seconds = time.perf_counter() - self._goal.start
        found.path.append((seconds, found.certain, likely))
        self._on_progress(len(found.excess), found.n_subsets, likely)
        self._is_enough = likely >= self._goal.wanted
