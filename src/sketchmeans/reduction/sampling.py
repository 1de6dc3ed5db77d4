"""Features drawn at random in proportion to their leverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.data.rows import Rows
from sketchmeans.numerics.linalg import Array
from sketchmeans.reduction.base import SpectralReducer
from sketchmeans.reduction.selection import FeatureSelector, Selection


@dataclass(frozen=True)
class Draws:
    """Features drawn with replacement: a feature drawn twice is one of two draws."""

    features: Array
    counts: Array
    scale: Array


def sampling_probabilities(Z: Array) -> Array:
    """Return ``p_i = ‖Z_(i)‖² / ‖Z‖²`` for the rows of Z (B14 Definition 5)."""
    squares = np.einsum("ij,ij->i", Z, Z)
    return np.asarray(squares / squares.sum())


def draw_features(probabilities: Array, r: int, rng: np.random.Generator) -> Draws:
    """Draw r features with replacement and rescale them (B14 Definition 5).

    A draw of feature i is scaled by ``1/√(r p_i)``.  Equal columns side by side have
    the distances and norms of one column times the root of their number, so c draws
    are kept as one feature scaled by ``√(c/(r p_i))``.
    """
    counts = rng.multinomial(r, probabilities)
    features = np.flatnonzero(counts)
    counts = counts[features]
    return Draws(features, counts, np.sqrt(counts / (r * probabilities[features])))


class FeatureSampling(FeatureSelector, SpectralReducer):
    """Features of X itself, sampled and rescaled (B14 Algorithm 1).

    Let Z (d × k) hold the top-k right singular vectors of the rows, exact or those of
    the fast Frobenius SVD (Lemma 4).  r features are drawn with replacement, feature i
    with probability ``p_i = ‖Z_(i)‖²/k``, and scaled by ``1/√(r p_i)``, so that
    squared norms and distances are right on average.  A feature drawn c times is kept
    once, times ``√c``.

    k-means on O(k log k/ε²) features costs at most 3 + ε times the optimum on all
    (Theorem 11); the constants of the theorem are far from what is needed in practice
    (see `sketchmeans.diagnostics.sketch_size`).

    A fast fit takes one pass and O(n d k/ε) time, an exact one O(n d min(n, d));
    transforming takes O(n r).

    Parameters
    ----------
    n_components : int, optional
        r, the number of draws, at most the number of features d.  None takes
        ``max(20, 4·n_clusters)``, or d if that is less.
    n_clusters : int, default=8
        k, the rank of Z; the rank of the rows if that is lower.
    svd : {"fast", "exact"}, default="fast"
    eps : float, default=1/3
        ε of Lemma 4, between 0 and 1: its range finder has k + ⌈k/ε⌉ + 1 columns.
        It does not set the number of draws.
    fit_rows : int, optional
        Fit on so many rows, drawn at random.  None takes all.
    n_jobs : int, optional
        Threads; None means all cores.  The result does not depend on it.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    probabilities_ : ndarray of shape (d,)
        p: how much each feature matters.
    counts_ : ndarray of shape (n_components_,)
        How often each of the chosen features was drawn.
    scale_ : ndarray of shape (n_components_,)
        What the chosen features are multiplied by.
    n_components_ : int
        Number of different features drawn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[5.0, 0.0, 1.0], [-5.0, 0.0, 1.0], [5.0, 0.0, -1.0]])
    >>> sampling = FeatureSampling(3, n_clusters=2, random_state=0).fit(X)
    >>> sampling.probabilities_.round(3)
    array([0.5, 0. , 0.5])
    >>> sampling.get_feature_names_out()
    array(['x0', 'x2'], dtype=object)
    """

    def __init__(
        self,
        n_components: int | None = None,
        n_clusters: int = 8,
        *,
        svd: str = "fast",
        eps: float = 1 / 3,
        fit_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_clusters = n_clusters
        self.svd = svd
        self.eps = eps
        self.fit_rows = fit_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _draw(
        self, rows: Rows, n_components: int, rng: np.random.Generator
    ) -> Selection:
        Z = self._right_vectors(rows, self.n_clusters, rng).vectors
        self.probabilities_ = sampling_probabilities(Z)
        drawn = draw_features(self.probabilities_, n_components, rng)
        self.counts_, self.scale_ = drawn.counts, drawn.scale
        return Selection(drawn.features, drawn.scale)
