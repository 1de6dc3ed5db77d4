"""What a landmark selector is and returns, and what selectors share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block, Rows, block_height
from sketchmeans.data.sampling import draw, row_weights
from sketchmeans.kernels import Kernel, is_given
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import check_flag, warn_user

#: Rows of more bytes are told apart by a digest.
_KEY_BYTES = 512


@dataclass(frozen=True)
class Landmarks:
    """The points that stand for all rows.

    Attributes
    ----------
    points : ndarray or CSR matrix of shape (m, d)
        For a precomputed kernel the row numbers, of shape (m, 1).
    indices : ndarray of shape (m,) or None
        Row numbers; None for points that are not rows.
    weights : ndarray of shape (m,) or None
        Importance weights of draws with replacement: ``Σ_j weights_j φ(z_j)φ(z_j)ᵀ``
        is in expectation the same sum over all rows.
    scores : ndarray of shape (n,) or None
        What the draws were proportional to, for all rows, where the method has it.
    effective_dimension : float or None
        The sum of leverage scores, where the method has them.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> landmarks = select_landmarks(X, 5, "uniform", random_state=0)
    >>> bool((X[landmarks.indices] == landmarks.points).all()), len(landmarks)
    (True, 5)
    """

    points: Block
    indices: Array | None = None
    weights: Array | None = None
    scores: Array | None = None
    effective_dimension: float | None = None

    def __len__(self) -> int:
        return int(self.points.shape[0])


class LandmarkSelector(Protocol):
    """A way to choose landmarks.

    Centres lie in the span of the m landmarks Z, ``c = Σ_i α_i φ(z_i)``; what they
    cannot reach of a row x is ``k(x, x) − k(x, Z) K⁺ k(Z, x)``, with K = k(Z, Z).

    `sketchmeans.testing.SelectorContract` tests one of your own.

    What each costs is said with it; `select` keeps the landmarks, m·d numbers, alone.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import SELECTORS, select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> for name in SELECTORS:
    ...     assert len(select_landmarks(X, 9, name, random_state=0)) == 9
    """

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return at most `n_landmarks` landmarks; the rows carry their weights."""


def draw_landmarks(
    rows: Rows,
    kernel: Kernel,
    size: int,
    rng: np.random.Generator,
    *,
    scores: Array | None = None,
    replace: bool = False,
) -> Landmarks:
    """Return rows drawn in proportion to their scores as landmarks.

    Scores are zero for rows of weight zero; without scores the weights are used.
    Without replacement no value is drawn twice, see `draw_distinct_rows`.
    """
    if not check_flag("replace", replace):
        indices = draw_distinct_rows(rows, size, rng, scores)
        warn_if_fewer(len(indices), size)
        return Landmarks(kernel.points(rows, indices), indices, scores=scores)
    weights = row_weights(rows)
    chances = weights if scores is None or not scores.any() else scores
    indices = draw(chances, size, rng)
    importance = weights[indices] / (size * chances[indices] / chances.sum())
    return Landmarks(kernel.points(rows, indices), indices, importance, scores)


def draw_distinct_rows(
    rows: Rows, size: int, rng: np.random.Generator, scores: Array | None = None
) -> Array:
    """Return `size` rows of distinct values, or all distinct values.

    Each draw is in proportion to the scores (or weights) among the rows whose values
    were not drawn before, so a row of weight 3 and three equal rows have the same law.
    Rows of score zero come last, by weight; rows of weight zero never.  O(size) for
    unweighted rows without scores, else O(n log n).
    """
    if scores is None and rows.weights is None:
        return _draw_uniformly(rows, size, rng)
    weights = row_weights(rows)
    scores = weights if scores is None else scores
    last = np.where(scores > 0.0, 0.0, weights)
    order = np.concatenate([_draw_order(scores, rng), _draw_order(last, rng)])
    return _take_distinct(rows, order, size)


def _draw_uniformly(rows: Rows, size: int, rng: np.random.Generator) -> Array:
    # Most data repeat few rows: a few more than are wanted are usually enough.
    order = rng.choice(len(rows), min(len(rows), size + 64), replace=False)
    chosen = order[_first_of_numbered(rows, order)][:size]
    if len(chosen) == size or len(order) == len(rows):
        return chosen
    rest = np.setdiff1d(np.arange(len(rows)), order, assume_unique=True)
    return _take_distinct(rows, np.concatenate([order, rng.permutation(rest)]), size)


def _draw_order(scores: Array, rng: np.random.Generator) -> Array:
    """Return all rows with a score in the order of successive draws by score."""
    positive = np.flatnonzero(scores)
    # Sorted exponential times / score are successive weighted draws.
    with np.errstate(over="ignore"):
        times = rng.exponential(size=len(positive)) / scores[positive]
    return positive[np.argsort(times, kind="stable")]


def _take_distinct(rows: Rows, order: Array, size: int) -> Array:
    """Return the first `size` rows of an order that differ from all before them."""
    chosen, step = np.empty(0, dtype=np.intp), max(size, 1024)
    for start in range(0, len(order), step):
        part = np.concatenate([chosen, order[start : start + step]])
        chosen = part[_first_of_numbered(rows, part)][:size]
        if len(chosen) == size:
            break
    return chosen


def first_of_each(X: Block) -> Array:
    """Return the positions of rows that equal no earlier row, in order.

    Examples
    --------
    >>> import numpy as np
    >>> first_of_each(np.array([[1.0], [2.0], [1.0]]))
    array([0, 1])
    """
    return _first_of_keys(_row_keys(X))


def _first_of_numbered(rows: Rows, numbers: Array) -> Array:
    """Return the same of the rows of these numbers."""
    # No copy of all of them, where rows are in memory; files are read once.
    step = block_height(rows.n_features, 0) if rows.in_memory else max(len(numbers), 1)
    parts = (numbers[start : start + step] for start in range(0, len(numbers), step))
    return _first_of_keys(key for part in parts for key in _row_keys(rows.take(part)))


def _first_of_keys(keys: Iterable[bytes]) -> Array:
    seen: dict[bytes, int] = {}
    for i, key in enumerate(keys):
        seen.setdefault(key, i)
    return np.array(list(seen.values()), dtype=np.intp)


def _row_keys(X: Block) -> list[bytes]:
    """Return what is the same for equal rows: bytes, or a digest of many bytes."""
    found = _row_bytes(X)
    return [row if len(row) <= _KEY_BYTES else blake2b(row).digest() for row in found]


def _row_bytes(X: Block) -> Iterable[bytes]:
    if not sparse.issparse(X):
        # Adding zero turns -0.0 into 0.0.
        return (row.tobytes() for row in np.ascontiguousarray(X + X.dtype.type(0)))
    csr = sparse.csr_array(X, copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    edges = list(zip(csr.indptr[:-1], csr.indptr[1:], strict=True))
    columns, values = csr.indices, csr.data
    return [columns[a:b].tobytes() + b"|" + values[a:b].tobytes() for a, b in edges]


def warn_if_fewer(found: int, wanted: int) -> None:
    """Warn that the rows hold fewer distinct values than landmarks were asked for."""
    if found < wanted:
        warn_user(
            f"Only {found} landmarks were chosen of n_landmarks={wanted}: the rows "
            "hold no more distinct values."
        )


def kernel_between(rows: Rows, kernel: Kernel, left: Array, right: Array) -> Array:
    """Return ``k(X[left], X[right])`` of a few rows, in float64."""
    columns = kernel.against(kernel.points(rows, right), np.float64, rows.workers)
    return columns(rows.take(left))


def value_type(rows: Rows, kernel: Kernel) -> np.dtype[Any]:
    """Return the float type whose roundings a kernel value asked for in float64 has."""
    return rows.dtype if is_given(kernel) else np.dtype(np.float64)


def landmarks_at(
    rows: Rows, kernel: Kernel, indices: Array, n_landmarks: int
) -> Landmarks:
    """Return the landmarks at these rows, no value twice, and warn if they are few."""
    # Where kernel values are far above their rounding, equal rows may seem apart.
    indices = indices[first_of_each(kernel.points(rows, indices))]
    warn_if_fewer(len(indices), n_landmarks)
    return Landmarks(kernel.points(rows, indices), indices)


def centroid_landmarks(rows: Rows, centers: Array) -> Landmarks:
    """Return the landmarks at these points of the input space, no point twice.

    They take the form of the rows: their float type, dense or CSR.
    """
    points = centers.astype(rows.dtype, copy=False)
    points = points[first_of_each(points)]
    return Landmarks(sparse.csr_array(points) if rows.is_sparse else points)
