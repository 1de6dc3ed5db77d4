"""Landmarks by leverage scores."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from math import ceil, log

import numpy as np
from sklearn.base import BaseEstimator

from sketchmeans.data.rows import Rows
from sketchmeans.kernels import Kernel
from sketchmeans.landmarks.base import Landmarks, draw_landmarks, successive_draws
from sketchmeans.landmarks.dictionary import WeightedKernel
from sketchmeans.landmarks.scores import (
    SMALL_DICTIONARY,
    LeverageScores,
    bottom_up_ridge_leverage_scores,
    exact_ridge_leverage_scores,
    recursive_ridge_leverage_scores,
    sketched_leverage_scores,
)
from sketchmeans.numerics.parameters import check_integer, check_number, check_option


class _ByLeverage(BaseEstimator):
    """Rows drawn with probability proportional to a leverage score."""

    replace: bool

    @abstractmethod
    def _scores(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> LeverageScores:
        """Return the scores."""

    def select(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> Landmarks:
        """Return the landmarks, with the scores and the effective dimension."""
        found = self._scores(rows, kernel, n_landmarks, rng)
        landmarks = draw_landmarks(
            rows, kernel, n_landmarks, rng, scores=found.scores, replace=self.replace
        )
        return replace(landmarks, effective_dimension=found.effective_dimension)


class Leverage(_ByLeverage):
    """Rows drawn by approximate leverage scores (OG17 §4.1).

    The scores are those of the top eigenvectors of the Nyström approximation from a
    sketch: some rows drawn without looking at the spectrum.  A row far from all rows
    of the sketch has next to no score, however special it is; ridge leverage scores
    have no such blind spot.  Costs n·s·(2d + 3s + 2r), see `sketched_leverage_scores`.

    Parameters
    ----------
    sketch : {"uniform", "diagonal"}, default="uniform"
        Rows of the sketch are drawn by weight, or by weight times ``k(x, x)``.
    sketch_size : int or None, default=None
        Rows s of the sketch; None is the number of landmarks.
    rank : int or None, default=None
        Eigenvectors r that count; None is half the number of landmarks, which gave
        better landmarks than all of it on each of OG17's data sets that were tried.
    replace : bool, default=False
        With replacement a row may be drawn again, and `Landmarks.weights` are set.

    References
    ----------
    Gittens & Mahoney, "Revisiting the Nyström method for improved large-scale machine
    learning", JMLR 2016.  OG17: Oglic & Gärtner, "Nyström method with kernel k-means++
    samples as landmarks", ICML 2017.
    """

    def __init__(
        self,
        sketch: str = "uniform",
        sketch_size: int | None = None,
        rank: int | None = None,
        replace: bool = False,
    ) -> None:
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.rank = rank
        self.replace = replace

    def _scores(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> LeverageScores:
        check_option("sketch", self.sketch, ("uniform", "diagonal"))
        size = _size("sketch_size", self.sketch_size, n_landmarks)
        rank = _size("rank", self.rank, ceil(n_landmarks / 2))
        by = WeightedKernel(rows, kernel).mass if self.sketch == "diagonal" else None
        sketch = np.sort(successive_draws(rows, min(size, len(rows)), rng, by))
        return sketched_leverage_scores(rows, kernel, sketch, rank)


class RidgeLeverage(_ByLeverage):
    """Rows drawn by ridge leverage scores (CR18 §6).

    Row i has the score ``l_i(γ) = [K (K + γI)⁻¹]_ii``, and d_eff(γ) is their sum.  With
    ``m ≳ d_eff(γ) log n`` landmarks the dictionary is γ-preserving with high
    probability (CR18 Lemma 3), where uniform draws need ``m ≳ (n/γ) log n``.  The
    scores are exact for up to `max_exact` rows, else from recursive sampling, which
    never forms K: about 2.3·n·s·(d + s) for dictionaries of s rows.

    Parameters
    ----------
    ridge : float or None, default=None
        γ.  None is the γ with ``d_eff(γ) = m/(1 + ln m)`` for m landmarks: the
        smallest, up to constants, that so many landmarks preserve.
    sketch_size : int or None, default=None
        Rows s of a dictionary; None is half the number of landmarks, at least 100.
    max_exact : int, default=1000
        Up to so many rows the scores are exact, at the cost of 9n³ and n² numbers.
    replace : bool, default=False
        With replacement a row may be drawn again, and `Landmarks.weights` are set.

    References
    ----------
    Musco & Musco, "Recursive sampling for the Nyström method", NeurIPS 2017.  CR18:
    Calandriello & Rosasco, "Statistical and computational trade-offs in kernel
    k-means", NeurIPS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.landmarks import select_landmarks
    >>> X = np.append(np.random.default_rng(0).normal(size=(99, 2)), [[50, 50]], axis=0)
    >>> landmarks = select_landmarks(X, 10, "ridge-leverage", random_state=0)
    >>> int(landmarks.scores.argmax()), round(landmarks.effective_dimension, 2)
    (99, 3.03)
    """

    def __init__(
        self,
        ridge: float | None = None,
        sketch_size: int | None = None,
        max_exact: int = 1000,
        replace: bool = False,
    ) -> None:
        self.ridge = ridge
        self.sketch_size = sketch_size
        self.max_exact = max_exact
        self.replace = replace

    def _scores(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> LeverageScores:
        size = _dictionary_size(self.sketch_size, n_landmarks)
        ridge, dimension = _ridge_rule(self.ridge, rows, n_landmarks)
        if len(rows) <= check_integer("max_exact", self.max_exact, low=0):
            return exact_ridge_leverage_scores(
                rows, kernel, ridge=ridge, effective_dimension=dimension
            )
        return recursive_ridge_leverage_scores(
            rows, kernel, size, rng, ridge=ridge, effective_dimension=dimension
        )


class BottomUp(_ByLeverage):
    """Rows drawn by ridge leverage scores from a falling path of ridges (BLESS).

    The same scores as `RidgeLeverage`, found bottom-up: dictionaries for ridges that
    fall fourfold, each drawn by the scores that the one before gives to a few
    candidates.  Fast where the spectrum decays slowly, since candidates are then few;
    at worst, log₄(tr(K)/γ) passes of n·s·(d + s).

    Parameters
    ----------
    ridge : float or None, default=None
        γ.  None is the γ with ``d_eff(γ) = m/(1 + ln m)`` for m landmarks: the
        smallest, up to constants, that so many landmarks preserve.
    sketch_size : int or None, default=None
        Most rows s of a dictionary; None is half the number of landmarks, at least
        100.
    oversampling : float, default=4
        Rows in a dictionary for each effective dimension.
    replace : bool, default=False
        With replacement a row may be drawn again, and `Landmarks.weights` are set.

    References
    ----------
    Rudi, Calandriello, Carratino & Rosasco, "On fast leverage score sampling and
    optimal learning", NeurIPS 2018.
    """

    def __init__(
        self,
        ridge: float | None = None,
        sketch_size: int | None = None,
        oversampling: float = 4.0,
        replace: bool = False,
    ) -> None:
        self.ridge = ridge
        self.sketch_size = sketch_size
        self.oversampling = oversampling
        self.replace = replace

    def _scores(
        self, rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.Generator
    ) -> LeverageScores:
        size = _dictionary_size(self.sketch_size, n_landmarks)
        ridge, dimension = _ridge_rule(self.ridge, rows, n_landmarks)
        return bottom_up_ridge_leverage_scores(
            rows,
            kernel,
            size,
            rng,
            ridge=ridge,
            effective_dimension=dimension,
            oversampling=check_number("oversampling", self.oversampling, low=1.0),
        )


def _size(name: str, value: int | None, default: int) -> int:
    return default if value is None else check_integer(name, value)


def _dictionary_size(sketch_size: int | None, n_landmarks: int) -> int:
    default = max(ceil(n_landmarks / 2), SMALL_DICTIONARY)
    return _size("sketch_size", sketch_size, default)


def _ridge_rule(
    ridge: float | None, rows: Rows, n_landmarks: int
) -> tuple[float | None, float | None]:
    """Return the ridge, or else the effective dimension that sets it."""
    if ridge is not None:
        # As the weights are: the ridge of three times the rows is three times as large.
        return check_number("ridge", ridge) / rows.weight_unit, None
    return None, n_landmarks / (1.0 + log(n_landmarks))
