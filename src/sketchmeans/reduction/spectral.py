"""Features from the leading singular vectors: sampled by leverage, or projected."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from sketchmeans.data.rows import Block, Rows
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import check_number, check_option
from sketchmeans.reduction.base import (
    FeatureSelector,
    Product,
    Reducer,
    Selection,
    subsample,
)
from sketchmeans.reduction.svd import (
    RightVectors,
    check_exact_fits,
    exact_svd,
    fast_frobenius_svd,
    float_block,
    range_width,
    truncated_svd,
)


@dataclass(frozen=True)
class Projection:
    """Multiplication by a dense matrix (d × r)."""

    matrix: Array
    keeps_sparse = False

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])

    def product(self, dtype: npt.DTypeLike, workers: Workers) -> Product:
        matrix = self.matrix.astype(dtype)

        def multiply(block: Block) -> Array:
            return np.asarray(float_block(block, dtype, workers) @ matrix)

        return multiply


@dataclass(eq=False, repr=False)
class SpectralReducer(Reducer):
    """Base of the reducers that start from singular vectors of the rows."""

    n_components: int | None = None
    n_clusters: int = 8
    _: KW_ONLY
    svd: str = "fast"
    eps: float = 1 / 3
    fit_rows: int | None = None
    n_jobs: int | None = None
    random_state: Any = None

    def _check_params(self) -> None:
        super()._check_params()
        check_option("svd", self.svd, ("fast", "truncated", "exact"))
        if not 0.0 < check_number("eps", self.eps) < 1.0:
            raise ValueError(f"eps={self.eps!r} should be > 0 and < 1.")

    def _fit_bytes(self, rows: Rows) -> int:
        if self.svd == "exact":
            return 0  # `check_exact_fits`, which knows how many rows are fitted
        k = min(self._rank(), rows.n_features)
        # Lanczos' vectors; or the test matrix, its products, and vectors of these.
        wide = 2 * k + 20 if self.svd == "truncated" else 4 * range_width(k, self.eps)
        return 8 * rows.n_features * min(wide, 4 * rows.n_features)

    def _rank(self) -> int:
        """Return the number of singular vectors that are wanted."""
        return self.n_clusters

    def _right_vectors(
        self, rows: Rows, k: int, rng: np.random.Generator
    ) -> RightVectors:
        rows, k = subsample(rows, self.fit_rows, rng), min(k, rows.n_features)
        if self.svd == "exact":
            check_exact_fits(rows)
            found = exact_svd(rows, k)
        elif self.svd == "truncated":
            found = truncated_svd(rows, k, rng)
        else:
            found = fast_frobenius_svd(rows, k, self.eps, rng)
        return replace(found, values=found.values * sqrt(rows.weight_unit))


class ApproximateSVD(ClassNamePrefixFeaturesOutMixin, SpectralReducer):
    """Features ``X Z`` in the leading singular directions Z (B14 Algorithm 3).

    Z has r orthonormal columns: the top right singular vectors of the rows, exact or
    those of the fast Frobenius SVD (Lemma 4), with ``E‖X − XZZᵀ‖² ≤ (1 + ε) ‖X −
    X_r‖²``.  k-means on r = k such features costs at most 2 + O(ε) times the optimum on
    all features (Theorem 13).  Rows are not centred, as in the paper.  A fast fit takes
    one pass and O(n d r/ε) time, an exact one O(n d min(n, d)); transforming takes O(n
    d r).

    Parameters
    ----------
    n_components : int, optional
        r, at most the number of features.  None takes `n_clusters`.  Where the rank of
        the rows is lower there are as many features as the rank, but at least one.
    n_clusters : int, default=8
        k.
    svd : {"fast", "truncated", "exact"}, default="fast"
        "truncated" finds the exact leading vectors alone, by Lanczos' method, in about
        3r passes; "exact" computes all of them, in one pass.
    eps : float, default=1/3
        ε of Lemma 4, between 0 and 1: its range finder has r + ⌈r/ε⌉ + 1 columns.  1/3
        is the value of the paper's experiments.
    fit_rows : int, optional
        Fit on this many rows, drawn at random.  None takes all.
    n_jobs : int, optional
        Threads; None means all cores.  The result does not depend on it.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    components_ : ndarray of shape (n_components, d)
        Zᵀ.
    singular_values_ : ndarray of shape (n_components,)
        Of ``QᵀX`` (exact: of X), of the rows that were fitted, times the root of their
        weights.
    n_components_ : int

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [3.0, 3.0, 0.0]])
    >>> ApproximateSVD(n_clusters=2).fit_transform(X).round(3).T
    array([[1.414, 2.828, 4.243]])
    """

    def _default_size(self) -> int:
        return self.n_clusters

    def _rank(self) -> int:
        return self.n_components or self.n_clusters

    def _draw(
        self, rows: Rows, n_components: int, rng: np.random.Generator
    ) -> Projection:
        found = self._right_vectors(rows, n_components, rng)
        self.components_ = found.vectors.T
        self.singular_values_ = found.values
        return Projection(found.vectors)


def draw_features(
    probabilities: Array, r: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Draw r features with replacement (B14 Definition 5).

    Returns those that were drawn, how often, and what they are multiplied by.  A draw
    of feature i is scaled by ``1/√(r p_i)``.  Equal columns side by side have the
    distances and norms of one column times the root of their number, so c draws are
    kept as one feature scaled by ``√(c/(r p_i))``.
    """
    counts = rng.multinomial(r, probabilities)
    features = np.flatnonzero(counts)
    counts = counts[features]
    return features, counts, np.sqrt(counts / (r * probabilities[features]))


class FeatureSampling(FeatureSelector, SpectralReducer):
    """Features of X itself, sampled and rescaled (B14 Algorithm 1).

    Let Z (d × k) hold the top-k right singular vectors of the rows, exact or those of
    the fast Frobenius SVD (Lemma 4).  r features are drawn with replacement, feature i
    with probability ``p_i = ‖Z_(i)‖²/k``, and scaled by ``1/√(r p_i)``, so that squared
    norms and distances are right on average; one drawn c times is kept once, times
    ``√c``.  k-means on O(k log k/ε²) features costs at most 3 + ε times the optimum on
    all (Theorem 11); fewer are enough in practice (see
    `sketchmeans.diagnostics.sketch_size`).  A fast fit takes one pass and O(n d k/ε)
    time, an exact one O(n d min(n, d)); transforming takes O(n r).

    Parameters
    ----------
    n_components : int, optional
        r, the number of draws, at most the number of features d.  None takes
        ``max(20, 4·n_clusters)``, or d if that is less.
    n_clusters : int, default=8
        k, the rank of Z; the rank of the rows if that is lower.
    svd, eps, fit_rows, n_jobs, random_state
        As in `ApproximateSVD`; eps does not set the number of draws.

    Attributes
    ----------
    probabilities_ : ndarray of shape (d,)
        p: how much each feature matters.
    counts_ : ndarray of shape (n_components,)
        How often each of the chosen features was drawn.
    scale_ : ndarray of shape (n_components,)
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

    def _draw(
        self, rows: Rows, n_components: int, rng: np.random.Generator
    ) -> Selection:
        Z = self._right_vectors(rows, self.n_clusters, rng).vectors
        squares = np.einsum("ij,ij->i", Z, Z)
        self.probabilities_ = squares / squares.sum()
        features, self.counts_, self.scale_ = draw_features(
            self.probabilities_, n_components, rng
        )
        return Selection(features, self.scale_)
