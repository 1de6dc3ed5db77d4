"""Landmarks that are the pivots of a partial Cholesky factorisation.

With pivots S the factor ``F`` (n × |S|) has ``F Fᵀ = K̃``, the Nyström approximation,
and ``d = diag(K − K̃)`` is each row's squared distance to the span of the landmarks in
feature space.  The selectors differ in how ``d`` leads to the next pivots, and end
early, with a warning, where every residual is rounding.  A column of ``F`` needs all
before it, so n·m numbers are stored; where n is large, of a subsample only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator

from sketchmeans.data.rows import Rows, block_height, block_slices
from sketchmeans.data.sampling import draw, row_weights, sample_rows
from sketchmeans.kernels import Kernel, is_given
from sketchmeans.landmarks.base import (
    Landmarks,
    kernel_between,
    landmarks_at,
    value_type,
)
from sketchmeans.numerics.linalg import Array, check_no_overflow, relative_cut
from sketchmeans.numerics.parameters import check_flag, check_integer

Result = TypeVar("Result")

#: Maximum number of draws of a batch of random pivots.
_MAX_BATCH = 128

#: With ``subsample="auto"`` there are at least this many rows a landmark.
_ROWS_PER_LANDMARK = 8


def subsample(
    rows: Rows, kernel: Kernel, size: int | None, rng: np.random.Generator
) -> tuple[Rows, Array]:
    """Return at most `size` random rows as a source of their own, and their numbers.

    How often a weighted row was drawn is its weight in the subsample.  A precomputed
    kernel knows its rows by their place in the matrix: it is never subsampled.
    """
    if size is None or len(rows) <= size or is_given(kernel):
        return rows, np.arange(len(rows))
    numbers = np.sort(sample_rows(rows, size, rng))
    if rows.weights is None:
        return rows.subset(numbers, None), numbers
    numbers, counts = np.unique(numbers, return_counts=True)
    return rows.subset(numbers, counts.astype(np.float64)), numbers


class PartialCholesky:
    """A growing factor ``F`` with ``F Fᵀ = K̃``, and the diagonal of ``K − K̃``.

    It holds n·n_pivots numbers.
    """

    def __init__(self, rows: Rows, kernel: Kernel, n_pivots: int) -> None:
        self.rows = rows
        self.kernel = kernel
        self.weights = row_weights(rows)
        self.residual = kernel.row_diagonal(rows)
        check_no_overflow(self.residual)
        self.pivots = np.empty(0, dtype=np.intp)
        self._factor = np.empty((len(rows), n_pivots))
        # What is left of k(x, x) below this, after so many subtractions, is rounding.
        self.cut = np.abs(self.residual)
        self.cut *= relative_cut(n_pivots, value_type(rows, kernel))
        self._drop_rounding()

    def __len__(self) -> int:
        return len(self.pivots)

    @property
    def weighted_residual(self) -> Array:
        """Each row's share of ``tr(K − K̃)``; all zero if the pivots span all rows."""
        return self.weights * self.residual

    def residual_among(self, numbers: Array) -> Array:
        """Return ``K − K̃`` among a few rows."""
        known = self._factor[numbers, : len(self)]
        values = kernel_between(self.rows, self.kernel, numbers, numbers)
        return values - known @ known.T

    def trace_drops(self, numbers: Array) -> Array:
        """Return by how much each row, as the next pivot, would lower ``tr(K − K̃)``.

        For row j that is ``Σ_i w_i (K − K̃)_ij² / d_j``.
        """

        def squares(span: slice, columns: Array) -> Array:
            return np.einsum("i,ij,ij->j", self.weights[span], columns, columns)

        total = np.sum(list(self._residual_columns(numbers, squares)), axis=0)
        return np.asarray(total / self.residual[numbers])

    def append(self, numbers: Array, lower: Array) -> None:
        """Add pivots; `lower` is the Cholesky factor of ``K − K̃`` among them."""
        new = slice(len(self), len(self) + len(numbers))

        def extend(span: slice, columns: Array) -> None:
            part = solve_triangular(lower, columns.T, lower=True, check_finite=False).T
            self._factor[span, new] = part
            self.residual[span] -= np.einsum("ij,ij->i", part, part)

        for _ in self._residual_columns(numbers, extend):
            pass
        self.pivots = np.concatenate([self.pivots, numbers])
        self.residual[numbers] = 0.0
        self._drop_rounding()

    def _residual_columns(
        self, numbers: Array, use: Callable[[slice, Array], Result]
    ) -> Iterator[Result]:
        """Yield ``use(span, columns of K − K̃)`` block after block."""
        rows, rank = self.rows, len(self)
        points = self.kernel.points(rows, numbers)
        columns = self.kernel.against(points, np.float64, rows.workers)
        known = self._factor[numbers, :rank].T

        def work(edges: tuple[int, int]) -> Result:
            shape = (edges[1] - edges[0], len(numbers))
            out = rows.workers.buffer("residual", shape, np.float64)
            values, span = columns(rows.block(*edges), out), slice(*edges)
            values -= self._factor[span, :rank] @ known
            return use(span, values)

        height = block_height(rows.n_features + rank, len(numbers))
        return rows.workers.map(work, block_slices(len(rows), height))

    def _drop_rounding(self) -> None:
        self.residual[self.residual <= self.cut] = 0.0


class PivotSelector(BaseEstimator):
    """Base of the selectors by pivots; a subclass chooses the next ones."""

    subsample: int | str | None

    #: Numbers that the factor may hold when ``subsample="auto"``.
    _auto_entries: int

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks."""
        self._check_params()
        sample_rng, pivot_rng = rng.spawn(2)
        size = self._subsample_size(n_landmarks)
        part, numbers = subsample(rows, kernel, size, sample_rng)
        cholesky = PartialCholesky(part, kernel, n_landmarks)
        while len(cholesky) < n_landmarks and cholesky.weighted_residual.any():
            self._extend(cholesky, n_landmarks - len(cholesky), pivot_rng)
        pivots = numbers[cholesky.pivots]
        if not len(pivots):  # k(x, x) is zero for every row: one is as good as another
            pivots = sample_rows(rows, 1, pivot_rng)
        return landmarks_at(rows, kernel, pivots, n_landmarks)

    @abstractmethod
    def _extend(
        self, cholesky: PartialCholesky, size: int, rng: np.random.Generator
    ) -> None:
        """Add at least one pivot and at most `size`."""

    def _check_params(self) -> None:
        if self.subsample not in ("auto", None):
            check_integer("subsample", self.subsample)

    def _subsample_size(self, n_landmarks: int) -> int | None:
        """Return the most rows that take part; None if all do."""
        if self.subsample == "auto":
            least = _ROWS_PER_LANDMARK * n_landmarks
            return max(self._auto_entries // n_landmarks, least)
        if self.subsample is None:
            return None
        if int(self.subsample) < n_landmarks:
            raise ValueError(
                f"subsample={self.subsample} should be >= n_landmarks={n_landmarks}."
            )
        return int(self.subsample)


@dataclass(eq=False, repr=False)
class Cholesky(PivotSelector):
    """Greedy pivots: the row farthest from the span of the landmarks comes next.

    Each pivot is the row with the largest ``d_i = (K − K̃)_ii``, the residual diagonal
    of the incomplete Cholesky factorisation (Fine & Scheinberg, JMLR 2001; Bach &
    Jordan 2005), whatever its weight.  Where the spectrum decays slowly the farthest
    rows are outliers, and uniform landmarks are better.  Nothing is random but the
    subsample.  Costs s·m·(d + m), and s·m numbers in memory, for the s rows that take
    part.

    Parameters
    ----------
    subsample : int, "auto" or None, default="auto"
        Rows that take part, drawn by weight; None is all.  "auto" is as many as have a
        factor of 64 MB, at least 8 m.  A precomputed kernel is never subsampled.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import Cholesky, select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> select_landmarks(X, 12, Cholesky(), random_state=0).points.shape
    (12, 2)
    """

    _auto_entries = 2**23

    subsample: int | str | None = "auto"

    def _extend(
        self, cholesky: PartialCholesky, size: int, rng: np.random.Generator
    ) -> None:
        residual = np.where(cholesky.weights > 0.0, cholesky.residual, 0.0)
        _append_one(cholesky, int(residual.argmax()))


@dataclass(eq=False, repr=False)
class RandomCholesky(PivotSelector):
    """Random pivots: rows drawn in proportion to the residual diagonal.

    Each pivot is drawn with probability proportional to its weight times ``d_i = (K −
    K̃)_ii`` (Chen, Epperly, Tropp & Webber, CPAM 2025).  The expected trace of ``K −
    K̃`` is within 1 + ε of the best rank-r one after about ``r/ε + r log(1/(εη))``
    pivots, η the relative error of that best one.  Costs s·m·(d + m), and s·m numbers
    in memory, for the s rows that take part.

    Parameters
    ----------
    accelerated : bool, default=True
        Draw pivots in batches, and keep each draw with the probability by which its
        residual has shrunk since (Epperly, Tropp & Webber, "Embrace rejection", 2024):
        the same law, and almost all work is matrix products.
    subsample : int, "auto" or None, default="auto"
        Rows that take part, as in `Cholesky`.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import RandomCholesky, select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> select_landmarks(X, 12, RandomCholesky(), random_state=0).points.shape
    (12, 2)
    """

    _auto_entries = 2**23

    accelerated: bool = True
    subsample: int | str | None = "auto"

    def _check_params(self) -> None:
        super()._check_params()
        check_flag("accelerated", self.accelerated)

    def _extend(
        self, cholesky: PartialCholesky, size: int, rng: np.random.Generator
    ) -> None:
        if not self.accelerated:
            _append_one(cholesky, int(draw(cholesky.weighted_residual, 1, rng)[0]))
            return
        # As many as there are already: most of their residual outlives the batch.
        batch = draw(
            cholesky.weighted_residual, min(max(len(cholesky), 1), _MAX_BATCH), rng
        )
        among = cholesky.residual_among(batch)
        # Where the running residual was rounding after all, no draw comes back.
        cholesky.residual[batch[among.diagonal() <= cholesky.cut[batch]]] = 0.0
        kept, lower = rejection_cholesky(among, cholesky.cut[batch], size, rng)
        cholesky.append(batch[kept], lower)


@dataclass(eq=False, repr=False)
class Greedy(PivotSelector):
    """Sparse greedy approximation: the best of a few random candidates comes next.

    For each pivot some rows are drawn at random, by weight, and the one that lowers the
    trace of ``K − K̃`` most is taken: row j lowers it by ``Σ_i w_i (K − K̃)_ij² / d_j``
    (Smola & Schölkopf, ICML 2000).  Costs s·m·c·(d + m) for c candidates and the s rows
    that take part, and s·m numbers in memory.

    Parameters
    ----------
    n_candidates : int, default=59
        The best of 59 is among the best 5% of all rows with probability 95%.
    subsample : int, "auto" or None, default="auto"
        Rows that take part, as in `Cholesky`, but for a factor of 16 MB: candidates are
        compared by means over rows, for which fewer are enough.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import Greedy, select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> select_landmarks(X, 12, Greedy(), random_state=0).points.shape
    (12, 2)
    """

    _auto_entries = 2**21

    n_candidates: int = 59
    subsample: int | str | None = "auto"

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("n_candidates", self.n_candidates)

    def _extend(
        self, cholesky: PartialCholesky, size: int, rng: np.random.Generator
    ) -> None:
        left = np.flatnonzero(cholesky.weighted_residual)
        if len(left) > self.n_candidates:
            left = left[draw(cholesky.weights[left], self.n_candidates, rng)]
        _append_one(cholesky, int(left[cholesky.trace_drops(left).argmax()]))


def _append_one(cholesky: PartialCholesky, pivot: int) -> None:
    root = np.sqrt(cholesky.residual[pivot])
    cholesky.append(np.array([pivot]), np.array([[root]]))


def rejection_cholesky(
    among: Array, cut: Array, size: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return which draws of a batch are kept, in turn, and their Cholesky factor.

    `among` is the residual matrix of the draws when the batch was drawn.  Kept with
    probability now/before, a draw has the law that is proportional to the residual
    diagonal as it is now (Epperly, Tropp & Webber 2024, Alg. 2).  What is not above
    `cut` is rounding and never kept; at most `size` draws are.
    """
    before = among.diagonal()
    thresholds = np.maximum(rng.random(len(among)) * before, cut)
    columns = np.zeros((len(among), min(size, len(among))))
    kept: list[int] = []
    for i, threshold in enumerate(thresholds):
        own = columns[i, : len(kept)]
        now = before[i] - own @ own
        if now > threshold:
            column = among[:, i] - columns[:, : len(kept)] @ own
            columns[:, len(kept)] = column / np.sqrt(now)
            kept.append(i)
            if len(kept) == size:
                break
    numbers = np.array(kept, dtype=np.intp)
    return numbers, np.tril(columns[numbers, : len(kept)])
