"""What a landmark selector is, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block, Rows
from sketchmeans.kernels import Kernel
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import check_flag, warn_user


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
    """

    points: Block
    indices: Array | None = None
    weights: Array | None = None
    scores: Array | None = None
    effective_dimension: float | None = None

    def __len__(self) -> int:
        return int(self.points.shape[0])


class LandmarkSelector(Protocol):
    """A way to choose landmarks."""

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return at most `n_landmarks` landmarks; weights travel with the rows."""
        ...


def row_weights(rows: Rows) -> Array:
    """Return the weights of all rows, ones where there are none."""
    return np.ones(len(rows)) if rows.weights is None else rows.weights


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

    Parameters
    ----------
    scores : ndarray of shape (n,), optional
        Non-negative, and zero for rows of weight zero; the weights if not given.
    replace : bool, default=False
        Without replacement no value is drawn twice, see `successive_draws`.
    """
    if not check_flag("replace", replace):
        indices = successive_draws(rows, size, rng, scores)
        warn_if_fewer(len(indices), size)
        return Landmarks(kernel.points(rows, indices), indices, scores=scores)
    weights = row_weights(rows)
    mass = weights if scores is None or not scores.any() else scores
    share = mass / mass.sum()
    indices = rng.choice(len(rows), size, p=share)
    importance = weights[indices] / (size * share[indices])
    return Landmarks(kernel.points(rows, indices), indices, importance, scores)


def successive_draws(
    rows: Rows, size: int, rng: np.random.Generator, mass: Array | None = None
) -> Array:
    """Return `size` rows of distinct values, or all distinct values.

    Each draw is in proportion to the mass (to the weights, if none is given) among
    the rows whose values were not drawn before, so a row of weight 3 and three equal
    rows have the same law.  Rows of no mass come last, in proportion to their weight;
    rows of no weight never.  O(size) for unweighted rows without a mass, else
    O(n log n).
    """
    if mass is None and rows.weights is None:
        return _uniform_draws(rows, size, rng)
    weights = row_weights(rows)
    mass = weights if mass is None else mass
    massless = np.where(mass > 0.0, 0.0, weights)
    order = [_drawing_order(mass, rng), _drawing_order(massless, rng)]
    return _leading_distinct(rows, np.concatenate(order), size)


def _uniform_draws(rows: Rows, size: int, rng: np.random.Generator) -> Array:
    # Most data repeat few rows: try with little more than what is wanted.
    order = rng.choice(len(rows), min(len(rows), size + 64), replace=False)
    chosen = order[first_of_each(rows.take(order))][:size]
    if len(chosen) == size or len(order) == len(rows):
        return chosen
    rest = np.setdiff1d(np.arange(len(rows)), order, assume_unique=True)
    return _leading_distinct(rows, np.concatenate([order, rng.permutation(rest)]), size)


def _drawing_order(mass: Array, rng: np.random.Generator) -> Array:
    """Return all rows with mass in the order of successive draws by mass."""
    positive = np.flatnonzero(mass)
    # Sorted exponential times / mass are successive weighted draws.
    with np.errstate(over="ignore"):
        times = rng.exponential(size=len(positive)) / mass[positive]
    return positive[np.argsort(times, kind="stable")]


def _leading_distinct(rows: Rows, order: Array, size: int) -> Array:
    """Return the first `size` rows of an order that differ from all before them."""
    chosen = np.empty(0, dtype=np.intp)
    for start in range(0, len(order), max(size, 1024)):
        part = np.concatenate([chosen, order[start : start + max(size, 1024)]])
        chosen = part[first_of_each(rows.take(part))][:size]
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
    seen: set[bytes] = set()
    first = []
    for i, key in enumerate(_row_bytes(X)):
        if key not in seen:
            seen.add(key)
            first.append(i)
    return np.array(first, dtype=np.intp)


def _row_bytes(X: Block) -> list[bytes]:
    if not sparse.issparse(X):
        # Adding zero turns -0.0 into 0.0.
        return [row.tobytes() for row in np.ascontiguousarray(X + X.dtype.type(0))]
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    edges = list(zip(X.indptr[:-1], X.indptr[1:], strict=True))
    return [X.indices[a:b].tobytes() + b"|" + X.data[a:b].tobytes() for a, b in edges]


def warn_if_fewer(found: int, wanted: int) -> None:
    """Warn that the rows hold fewer distinct values than landmarks were asked for."""
    if found < wanted:
        warn_user(
            f"Only {found} landmarks were chosen of n_landmarks={wanted}: the rows "
            "hold no more distinct values.",
        )
