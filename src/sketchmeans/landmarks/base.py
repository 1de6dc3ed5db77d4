"""What a landmark selector is, and what it returns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from sketchmeans.kernels import Kernel
from sketchmeans.linalg import Array
from sketchmeans.rows import Block, Rows


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
        Importance weights of the draws, where the method has them.
    """

    points: Block
    indices: Array | None = None
    weights: Array | None = None

    def __len__(self) -> int:
        return int(self.points.shape[0])


class LandmarkSelector(Protocol):
    """A way to choose landmarks."""

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return at most `n_landmarks` landmarks; weights travel with the rows."""
        ...


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
        warnings.warn(
            f"Only {found} landmarks were chosen of n_landmarks={wanted}: the rows "
            "hold no more distinct values.",
            UserWarning,
            stacklevel=3,
        )
