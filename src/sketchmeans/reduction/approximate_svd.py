"""A few artificial features: the rows in their leading singular directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from sketchmeans.data.rows import Block, Rows
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.reduction.base import Product, SpectralReducer
from sketchmeans.reduction.svd import float_block


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

        def multiply(block: Block, out: Array | None = None) -> Array:
            block = float_block(block, dtype, workers)
            if not sparse.issparse(block):
                return np.dot(block, matrix, out=out)
            features = block @ matrix
            if out is None:
                return features
            out[...] = features
            return out

        return multiply


class ApproximateSVD(ClassNamePrefixFeaturesOutMixin, SpectralReducer):
    """Features ``X Z`` in the leading singular directions Z (B14 Algorithm 3).

    Z has r orthonormal columns: the top right singular vectors of the rows, exact or
    those of the fast Frobenius SVD (Lemma 4), with

        E‖X − XZZᵀ‖² ≤ (1 + ε) ‖X − X_r‖².

    k-means on r = k such features costs at most 2 + O(ε) times the optimum on all
    features (Theorem 13).  Rows are not centred, as in the paper.

    A fast fit takes one pass and O(n d r/ε) time, an exact one O(n d min(n, d));
    transforming takes O(n d r).

    Parameters
    ----------
    n_components : int, optional
        r, at most the number of features.  None takes `n_clusters`.  Where the rank of
        the rows is lower there are as many features as the rank, but at least one.
    n_clusters : int, default=8
        k.
    svd : {"fast", "exact"}, default="fast"
    eps : float, default=1/3
        ε of Lemma 4, between 0 and 1: its range finder has r + ⌈r/ε⌉ + 1 columns.
        1/3 is the value of the paper's experiments.
    fit_rows : int, optional
        Fit on so many rows, drawn at random.  None takes all.
    n_jobs : int, optional
        Threads; None means all cores.  The result does not depend on it.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, d)
        Zᵀ.
    singular_values_ : ndarray of shape (n_components_,)
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

    def _default_size(self) -> int:
        return self.n_clusters

    def _draw(
        self, rows: Rows, n_components: int, rng: np.random.Generator
    ) -> Projection:
        found = self._right_vectors(rows, n_components, rng)
        self.components_ = found.vectors.T
        self.singular_values_ = found.values
        return Projection(found.vectors)
