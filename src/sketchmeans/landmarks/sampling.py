"""Landmarks drawn at random: uniformly, or in proportion to a score of each row."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from math import ceil, log

import numpy as np
from sklearn.base import BaseEstimator

from sketchmeans.data.rows import Block, Rows, block_height, stack_parts
from sketchmeans.data.sampling import row_weights, sample_rows
from sketchmeans.kernels import Kernel
from sketchmeans.landmarks.base import Landmarks, draw_distinct_rows, draw_landmarks
from sketchmeans.landmarks.leverage import (
    SMALL_DICTIONARY,
    Ridge,
    WeightedKernel,
    bottom_up_ridge_leverage_scores,
    exact_ridge_leverage_scores,
    recursive_ridge_leverage_scores,
    sketched_leverage_scores,
)
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parameters import check_integer, check_number, check_option

#: Maximum number of rows of the sketch of leverage scores, unless there are more
#: landmarks.
_LARGE_SKETCH = 1_000


class ScoreSelector(BaseEstimator):
    """Base of the selectors that draw rows in proportion to a score."""

    replace: bool

    #: Whether the scores are leverage scores, whose sum is an effective dimension.
    _by_leverage = False

    def __init__(self, replace: bool = False) -> None:
        self.replace = replace

    @abstractmethod
    def _scores(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Array | None:
        """Return the scores of all rows; None stands for their weights."""

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks, with the scores where there are any."""
        scores = self._scores(rows, kernel, n_landmarks, rng)
        found = draw_landmarks(
            rows, kernel, n_landmarks, rng, scores=scores, replace=self.replace
        )
        if scores is None or not self._by_leverage:
            return found
        return replace(found, effective_dimension=float(scores.sum()))


class Uniform(ScoreSelector):
    """Rows drawn at random, with probability proportional to their weight.

    O(m) for unweighted rows, O(n log n) for weighted ones.

    Parameters
    ----------
    replace : bool, default=False
        Without replacement, draws skip rows whose values are landmarks already, so
        repeated rows and weights give the same law.  With replacement a row may be
        drawn again, as in the theory (CR18 Lemma 1).

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import Uniform, select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> select_landmarks(X, 12, Uniform(), random_state=0).points.shape
    (12, 2)
    """

    def _scores(self, *_: object) -> None:
        return None


class Diagonal(ScoreSelector):
    """Rows drawn with probability proportional to ``w_i k(x_i, x_i)``.

    Each row's share of the trace (OG17 §4.1); Drineas & Mahoney (JMLR 2005) draw in
    proportion to ``k(x_i, x_i)²``.  Uniform for kernels such as rbf.  Costs O(n·d).

    Parameters
    ----------
    replace : bool, default=False
        With replacement a row may be drawn again, and `Landmarks.weights` are set.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import select_landmarks
    >>> X = np.array([[1.0], [0.0], [0.0], [0.0]])
    >>> select_landmarks(X, 1, "diagonal", kernel="linear", random_state=0).indices
    array([0])
    """

    def _scores(self, rows: Rows, kernel: Kernel, *_: object) -> Array:
        return WeightedKernel(rows, kernel).weighted_diagonal


@dataclass(eq=False, repr=False)
class ColumnNorm(ScoreSelector):
    """Rows drawn with probability proportional to the squared norm of their column.

    The weighted kernel matrix ``D^½ K D^½`` has the squared column norms
    ``w_i Σ_j w_j k(x_i, x_j)²`` (Drineas, Kannan & Mahoney, SIAM J. Comput. 2006; OG17
    §4.1).  Costs n·min(n, max_columns)·d.

    Parameters
    ----------
    max_columns : int, default=2000
        With more rows the sum over j is over this many rows drawn by weight, an
        unbiased estimate.
    replace : bool, default=False
        With replacement a row may be drawn again, and `Landmarks.weights` are set.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import ColumnNorm, select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> select_landmarks(X, 12, ColumnNorm(), random_state=0).points.shape
    (12, 2)
    """

    max_columns: int = 2000
    replace: bool = False

    def _scores(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Array:
        size = check_integer("max_columns", self.max_columns)
        columns, weights = np.arange(len(rows)), row_weights(rows)
        if len(rows) > size:
            columns = np.sort(sample_rows(rows, size, rng))
            weights = np.full(size, rows.total_weight / size)
        norms = squared_column_norms(rows, kernel, columns, weights)
        return row_weights(rows) * norms


def squared_column_norms(
    rows: Rows, kernel: Kernel, columns: Array, weights: Array
) -> Array:
    """Return ``Σ_j weights_j k(x_i, x_j)²`` for all rows i, over the rows `columns`."""
    diagonal = np.maximum(kernel.row_diagonal(rows), 0.0)
    # |k(x, z)|² <= k(x, x) k(z, z): scaled by the largest, no square overflows.
    scale = float(diagonal.max()) or 1.0
    values_of = kernel.against(kernel.points(rows, columns), rows.dtype, rows.workers)
    shares = (weights / weights.sum()).astype(rows.dtype)
    kind, buffer = rows.dtype, rows.workers.buffer

    def norms_of(block: Block) -> Array:
        out = buffer("columns", (block.shape[0], len(columns)), kind)
        values = values_of(block, out)
        values /= kind.type(scale)
        np.square(values, out=values)
        return values @ shares

    height = block_height(rows.n_features, len(columns))
    norms = stack_parts(rows.map(norms_of, height), (len(rows),))
    return norms * (scale**2 * float(weights.sum()))


@dataclass(eq=False, repr=False)
class Leverage(ScoreSelector):
    """Rows drawn by approximate leverage scores (OG17 §4.1; Gittens & Mahoney 2016).

    The scores ``l_i = Σ_{j≤r} u_ij²`` are those of the top eigenvectors u_j of the
    Nyström approximation from a sketch: some rows drawn without looking at the
    spectrum.  A row far from all of these has next to no score, however special it is;
    ridge leverage scores have no such blind spot.  Costs n·s·(2d + 3s + 2r).

    Parameters
    ----------
    sketch : {"uniform", "diagonal"}, default="uniform"
        Rows of the sketch are drawn by weight, or by weight times ``k(x, x)``.
    sketch_size : int or None, default=None
        Rows s of the sketch; None is m ln m for m landmarks: so many draws see m groups
        of equal size, of which m draws miss a third (coupon collector).  At most 1,000,
        or m if that is more, as the cost grows as s².
    rank : int or None, default=None
        Eigenvectors r that count; None is half the number of landmarks, which was
        better than all of it on each of OG17's data sets that were tried.
    replace : bool, default=False
        With replacement a row may be drawn again, and `Landmarks.weights` are set.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import Leverage, select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> select_landmarks(X, 12, Leverage(), random_state=0).points.shape
    (12, 2)
    """

    _by_leverage = True

    sketch: str = "uniform"
    sketch_size: int | None = None
    rank: int | None = None
    replace: bool = False

    def _scores(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Array:
        check_option("sketch", self.sketch, ("uniform", "diagonal"))
        wanted = ceil(n_landmarks * max(log(n_landmarks), 1.0))
        default = min(wanted, max(n_landmarks, _LARGE_SKETCH))
        size = min(_read_size("sketch_size", self.sketch_size, default), len(rows))
        rank = _read_size("rank", self.rank, ceil(n_landmarks / 2))
        chances = None
        if self.sketch == "diagonal":
            chances = WeightedKernel(rows, kernel).weighted_diagonal
        sketch = np.sort(draw_distinct_rows(rows, size, rng, chances))
        return sketched_leverage_scores(rows, kernel, sketch, rank).scores


@dataclass(eq=False, repr=False)
class RidgeLeverage(ScoreSelector):
    """Rows drawn by ridge leverage scores (CR18 §6; Musco & Musco, NeurIPS 2017).

    Row i has the score ``l_i(γ) = [K (K + γI)⁻¹]_ii``, and d_eff(γ) is their sum.  With
    ``m ≳ d_eff(γ) log n`` landmarks the dictionary is γ-preserving with high
    probability (CR18 Lemma 3), where uniform draws need ``m ≳ (n/γ) log n``.
    Approximate scores cost about 2.3·n·s·(d + s) for dictionaries of s rows.

    Parameters
    ----------
    ridge : float or None, default=None
        γ.  None is the γ with ``d_eff(γ) = m/(1 + ln m)`` for m landmarks: the
        smallest, up to constants, that this many landmarks preserve.
    sketch_size : int or None, default=None
        Rows s of a dictionary; None is half the number of landmarks, at least 100.
    max_exact : int, default=1000
        Up to this many rows the scores are exact, at the cost of 9n³ and n² numbers.
    replace : bool, default=False
        With replacement a row may be drawn again, and `Landmarks.weights` are set.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import select_landmarks
    >>> X = np.append(np.random.default_rng(0).normal(size=(99, 2)), [[50, 50]], axis=0)
    >>> landmarks = select_landmarks(X, 10, "ridge-leverage", random_state=0)
    >>> int(landmarks.scores.argmax()), round(landmarks.effective_dimension, 2)
    (99, 3.03)
    """

    _by_leverage = True

    ridge: float | None = None
    sketch_size: int | None = None
    max_exact: int = 1000
    replace: bool = False

    def _scores(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Array:
        ridge, size = _read_ridge(self, rows, n_landmarks)
        if len(rows) <= check_integer("max_exact", self.max_exact, low=0):
            return exact_ridge_leverage_scores(rows, kernel, ridge).scores
        return recursive_ridge_leverage_scores(rows, kernel, ridge, size, rng).scores


@dataclass(eq=False, repr=False)
class BottomUp(ScoreSelector):
    """Rows drawn by ridge leverage scores from a falling path of ridges (BLESS).

    The scores of `RidgeLeverage`, found bottom-up (Rudi, Calandriello, Carratino &
    Rosasco, NeurIPS 2018): dictionaries for ridges ``γ_h = tr K/4^h``, each drawn by
    the scores that the one before gives to a few candidates.  Fast where the spectrum
    decays slowly; at worst, log₄(tr K/γ) passes of n·s·(d + s).

    Parameters
    ----------
    ridge : float or None, default=None
        γ.  None is the γ with ``d_eff(γ) = m/(1 + ln m)`` for m landmarks.
    sketch_size : int or None, default=None
        Maximum number of rows s of a dictionary; None is half the number of landmarks,
        at least 100.
    oversampling : float, default=4
        Rows in a dictionary for each effective dimension.
    replace : bool, default=False
        With replacement a row may be drawn again, and `Landmarks.weights` are set.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import BottomUp, select_landmarks
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> select_landmarks(X, 12, BottomUp(), random_state=0).points.shape
    (12, 2)
    """

    _by_leverage = True

    ridge: float | None = None
    sketch_size: int | None = None
    oversampling: float = 4.0
    replace: bool = False

    def _scores(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Array:
        ridge, size = _read_ridge(self, rows, n_landmarks)
        oversampling = check_number("oversampling", self.oversampling, low=1.0)
        return bottom_up_ridge_leverage_scores(
            rows, kernel, ridge, size, rng, oversampling
        ).scores


def _read_size(name: str, value: int | None, default: int) -> int:
    return default if value is None else check_integer(name, value)


def _read_ridge(
    selector: RidgeLeverage | BottomUp, rows: Rows, n_landmarks: int
) -> tuple[Ridge, int]:
    """Return the ridge and the size of a dictionary that a selector stands for."""
    default = max(ceil(n_landmarks / 2), SMALL_DICTIONARY)
    size = _read_size("sketch_size", selector.sketch_size, default)
    if selector.ridge is None:
        wanted = n_landmarks / (1.0 + log(n_landmarks))
        return Ridge(effective_dimension=wanted), size
    # As the weights are: the ridge of three times the rows is three times as large.
    return Ridge(check_number("ridge", selector.ridge) / rows.weight_unit), size
