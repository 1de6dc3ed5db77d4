"""How many uniform landmarks are enough, and which rows they miss."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from sketchmeans.data.memory import points_need
from sketchmeans.data.rows import Block, Rows
from sketchmeans.data.sampling import sample_rows
from sketchmeans.engine.backend import LocalBackend
from sketchmeans.engine.blocks import BlockEngine
from sketchmeans.engine.init import KMeansPlusPlus
from sketchmeans.engine.lloyd import lloyd
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.engine.store import KernelBlocks
from sketchmeans.engine.types import Centers
from sketchmeans.kernels import Kernel, compute_gram, is_given
from sketchmeans.landmarks.base import draw_distinct_rows
from sketchmeans.numerics.linalg import Array, ridged_inverse
from sketchmeans.numerics.memory import FIXED_NEED, format_bytes

#: A doubling that lowers the estimated cost by less than this share ends the growth.
GAIN = 0.005
#: Never more landmarks than this (or than clusters), nor this many times √(nk).
MOST, _MOST_FACTOR = 4_000, 4.0
#: The first size is √(nk) divided by this, or so many for each cluster: with fewer, two
#: sets in a row may miss the same cluster, and nothing seems to be gained.
_FIRST_DIVISOR, _FIRST_PER_CLUSTER = 8.0, 10
#: All of so few rows are landmarks: that costs nothing, and leaves out no small group.
_FEW_ROWS = 256

#: Rows on which the cost is estimated: a share of all, between two limits.
_SAMPLE_SHARE, _LEAST_ROWS, _MOST_ROWS = 0.125, 512, 4_096
#: Rows on which the residual is measured.
_RESIDUAL_ROWS = 256
#: Iterations at each size that find the partition on which the gain is measured.
_ITERATIONS = 5
#: The kernel values of the sample are always stored.
_STORE = 2**62
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class LandmarkPath:
    """What a growing set of landmarks would cost, estimated on a sample of the rows.

    Attributes
    ----------
    n_landmarks : ndarray of shape (t,)
        Sizes, each twice the one before; the largest may be less.
    residual_trace : ndarray of shape (t,)
        Mean of ``‖φ(x) − Π φ(x)‖²``: what of a row is outside the span.
    cost : ndarray of shape (t,)
        ``W`` of a rough partition with its centroids in the span.
    gain : ndarray of shape (t,)
        How much more the same partition costs with half as many landmarks, as a share;
        the first is not a number.
    chosen : int
        The size whose double lowers the cost by no more than 0.5%, or the largest.

    See Also
    --------
    NystromKMeans : Has one, `landmark_path_`, with ``n_landmarks="auto"``.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import NystromKMeans
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> path = NystromKMeans(3, random_state=0).fit(X).landmark_path_
    >>> bool(path.chosen in path.n_landmarks)
    True
    """

    n_landmarks: Array
    residual_trace: Array
    cost: Array
    gain: Array
    chosen: int


def choose_n_landmarks(
    rows: Rows,
    kernel: Kernel,
    n_clusters: int,
    rng: np.random.Generator,
    budget: int = _STORE,
) -> LandmarkPath:
    """Return how the cost falls with uniform landmarks, and where to stop.

    CR18's √(nk) is right for a kernel of slow decay and too much for others, so nested
    sets grow from an eighth of it, or from 10k.  A centroid loses ``‖φ̄ − Πφ̄‖²`` in
    the span of m landmarks.  What doubling them gains is measured on a sample of s rows
    (n/8 or 512 at most), for a rough partition found in the larger span; the mean over
    a sampled cluster is freed of the variance that the mean over all its rows does not
    have.  Costs s·m·d.  Nothing but the rows, the kernel, k and chance decides: not
    memory, not the clock.
    """
    n = len(rows)
    size = min(max(int(_SAMPLE_SHARE * n), _LEAST_ROWS), _MOST_ROWS, n)
    most = _most(n, n_clusters)
    _check_memory(rows, size, _sizes(n, n_clusters, most)[0], budget)
    sampled = sample_rows(rows, size, rng)
    sample = rows.subset(sampled, None)
    numbers = draw_distinct_rows(rows, most, rng)
    if is_given(kernel):
        diagonal = np.asarray(kernel.row_diagonal(rows)[sampled])
    else:
        diagonal = np.asarray(kernel.diagonal(rows.take(sampled)), dtype=np.float64)
    path: list[tuple[int, float, float, float]] = []
    ladder = _sizes(n, n_clusters, len(numbers))
    chosen, smaller = ladder[-1], None
    points = kernel.points(rows, numbers[: ladder[min(1, len(ladder) - 1)]])
    for m in ladder:
        _check_memory(rows, size, m, budget)
        if points.shape[0] < m or is_given(kernel):  # else they were read before
            points = kernel.points(rows, numbers[:m])
        space = _rough_space(rows, kernel, points[:m], diagonal)
        blocks = KernelBlocks(sample, space, _STORE, many_passes=True)
        larger = _Span(blocks, diagonal, n_clusters)
        if smaller is None:
            labels, gain = larger.partition(larger.seed(rng)), np.nan
        else:
            labels = larger.partition(larger.engine.partition(labels, n_clusters)[1])
            gain = smaller.cost(labels) / max(larger.cost(labels), _TINY) - 1.0
        path.append((m, larger.residual, larger.cost(labels), gain))
        if gain <= GAIN:
            chosen = path[-2][0]
            break
        smaller = larger
    sizes, residuals, costs, gains = np.array(path).T
    return LandmarkPath(sizes.astype(int), residuals, costs, gains, chosen)


def first_size(n: int, n_clusters: int) -> int:
    """Return the number of landmarks that is tried first, which often is enough.

    Examples
    --------
    >>> first_size(1_000_000, 10)
    396
    """
    return _sizes(n, n_clusters, _most(n, n_clusters))[0]


def _most(n: int, n_clusters: int) -> int:
    return min(n, max(MOST, n_clusters), ceil(_MOST_FACTOR * sqrt(n * n_clusters)))


def _sizes(n: int, n_clusters: int, most: int) -> list[int]:
    """Return the numbers of landmarks that are tried, each twice the one before."""
    theory = sqrt(n * n_clusters)
    enough = min(_FIRST_PER_CLUSTER * n_clusters, theory)
    first = max(n_clusters, ceil(max(theory / _FIRST_DIVISOR, enough)))
    sizes = [min(n if n <= _FEW_ROWS else first, most)]
    while sizes[-1] < most:
        sizes.append(min(2 * sizes[-1], most))
    return sizes


def _check_memory(rows: Rows, sample: int, m: int, budget: int) -> None:
    """Raise where the kernel values and matrices of the next size do not fit."""
    values = int(1.5 * sample * m) * rows.dtype.itemsize  # of two sizes
    need = FIXED_NEED + sample * rows.taken_bytes + values + 5 * m * m * 8
    need += points_need(rows, m)
    if need > budget:
        raise MemoryError(
            f"n_landmarks='auto' tries {m:,} landmarks, which needs "
            f"{format_bytes(need)}; max_memory allows {format_bytes(budget)}. Give "
            "n_landmarks as a number or raise max_memory."
        )


def _rough_space(
    rows: Rows, kernel: Kernel, points: Block, diagonal: Array
) -> LandmarkSpace:
    gram = compute_gram(kernel, points, rows.workers, rows)
    return LandmarkSpace(
        kernel,
        points,
        rows.dtype,
        rows.workers,
        diagonal=diagonal if is_given(kernel) else None,
        inverse=ridged_inverse(gram, rows.dtype),
    )


class _Span:
    """The span of some landmarks, and what it shows of a sample."""

    def __init__(self, blocks: KernelBlocks, diagonal: Array, n_clusters: int) -> None:
        self._blocks = blocks
        self.engine = BlockEngine(LocalBackend(blocks))
        self._diagonal = diagonal
        self._k = n_clusters
        some = np.arange(min(_RESIDUAL_ROWS, len(diagonal)))
        B = self.engine.kernel_values(some)
        lengths = np.einsum("ij,ji->i", B, blocks.space.coefficients(B))
        self._inside = float(np.minimum(lengths, diagonal[some]).mean())
        #: The residual trace, as a mean over the sample.
        self.residual = max(float(diagonal[some].mean()) - self._inside, 0.0)

    def seed(self, rng: np.random.Generator) -> Centers:
        """Return centres at rows of the sample, by k-means++ in the span."""
        engine, diagonal = self.engine, self._diagonal
        B = self._blocks.matrix()

        def distances_to(indices: Array) -> Array:
            inner = B @ engine.space.coefficients(B[indices])
            return np.maximum(diagonal[:, None] + diagonal[indices] - 2.0 * inner, 0.0)

        seeds = KMeansPlusPlus().seed(distances_to, np.ones(len(B)), self._k, [rng])
        return engine.centers_at(seeds)

    def partition(self, centers: Centers) -> Array:
        """Return the labels after a few iterations."""
        found = lloyd(self.engine, centers, max_iter=_ITERATIONS, tol=GAIN)
        return np.asarray(found[0].labels)

    def cost(self, labels: Array) -> float:
        """Return the cost of a partition, estimated for all rows.

        With ``F`` the features in the span, the mean of ``F_i·F_j`` over pairs of
        different rows of a cluster has the squared length of its true mean as
        expectation; with ``i = j`` the variance would come on top.
        """
        assignment, centers = self.engine.partition(labels, self._k)
        counts = assignment.counts[0]
        pairs = np.maximum(counts * (counts - 1.0), 1.0)
        products = np.square(counts) * centers.squared_norms[0] - counts * self._inside
        explained = float((counts * np.maximum(products / pairs, 0.0)).sum())
        return max(float(self._diagonal.mean()) - explained / counts.sum(), 0.0)
