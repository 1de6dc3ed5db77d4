"""What all reducers share: everything but the drawing of the sketch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from math import sqrt
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sketchmeans.data.input import validated, weighted_rows
from sketchmeans.data.rows import Block, Rows, as_rows, block_slices
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    as_generator,
    check_integer,
    check_number,
    check_option,
)
from sketchmeans.reduction.svd import (
    RightVectors,
    check_exact_fits,
    exact_svd,
    fast_frobenius_svd,
    pass_height,
)

#: Fewer features than this do not make k-means faster, but worse (B14 §7.5).
_FEWEST_FEATURES = 20
_FEATURES_PER_CLUSTER = 4


class Product(Protocol):
    """A sketch that is ready for blocks of rows."""

    def __call__(self, block: Block, out: Array | None = None) -> Block:
        """Return the features of a block, written into `out` if given.

        What stays sparse is returned and not written.
        """
        ...


class Sketch(Protocol):
    """A linear map from d features to a few."""

    #: Whether the features of CSR rows are a CSR matrix.
    keeps_sparse: bool

    @property
    def width(self) -> int:
        """Number of features after the map."""
        ...

    def product(self, dtype: npt.DTypeLike, workers: Workers) -> Product:
        """Prepare the map for blocks of rows; `dtype` is the type of the result."""
        ...


class Reducer(TransformerMixin, BaseEstimator, ABC):
    """Base of the reducers; one of them defines `_draw`, and that is all."""

    n_components: int | None
    n_clusters: int
    n_jobs: int | None
    random_state: Any
    _sketch: Sketch

    @abstractmethod
    def _draw(self, rows: Rows, n_components: int, rng: np.random.Generator) -> Sketch:
        """Return the sketch for these rows, and set what is public of it."""

    def _default_size(self) -> int:
        """Return the number of features where the user gives none."""
        return max(_FEWEST_FEATURES, _FEATURES_PER_CLUSTER * self.n_clusters)

    def _check_params(self) -> None:
        check_integer("n_clusters", self.n_clusters)
        if self.n_components is not None:
            check_integer("n_components", self.n_components)

    def _size(self, n_features: int) -> int:
        if self.n_components is None:
            return min(self._default_size(), n_features)
        if self.n_components > n_features:
            raise ValueError(
                f"n_components={self.n_components} should be <= n_features="
                f"{n_features}."
            )
        return int(self.n_components)

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Draw the sketch.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)
            A memory map and integers are read block by block.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows.
        """
        self._check_params()
        X = validated(self, X, reset=True)
        rng = as_generator(self.random_state)
        with Workers(self.n_jobs) as workers:
            rows = weighted_rows(X, sample_weight, workers)
            self._sketch = self._draw(rows, self._size(rows.n_features), rng)
        self.n_components_ = self._sketch.width
        return self

    def fit_view(self, rows: Rows) -> None:
        """Draw the sketch of rows that are seen through a view, and have no table."""
        self._check_params()
        self.n_features_in_ = rows.n_features
        rng = as_generator(self.random_state)
        self._sketch = self._draw(rows, self._size(rows.n_features), rng)
        self.n_components_ = self._sketch.width

    def transform(self, X: Any) -> Block:
        """Return the features of the rows, in the rows' float type.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)

        Returns
        -------
        features : ndarray of shape (n, n_components_)
            Chosen features of a sparse matrix stay sparse.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        with Workers(self.n_jobs) as workers:
            return sketched(as_rows(X, workers), self._sketch)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class SpectralReducer(Reducer):
    """Base of the reducers that start from singular vectors of the rows."""

    svd: str
    eps: float
    fit_rows: int | None

    def _check_params(self) -> None:
        super()._check_params()
        check_option("svd", self.svd, ("fast", "exact"))
        check_fit_rows(self.fit_rows)
        if not 0.0 < check_number("eps", self.eps) < 1.0:
            raise ValueError(f"eps={self.eps!r} should be > 0 and < 1.")

    def _right_vectors(
        self, rows: Rows, k: int, rng: np.random.Generator
    ) -> RightVectors:
        rows, k = subsample(rows, self.fit_rows, rng), min(k, rows.n_features)
        if self.svd == "exact":
            check_exact_fits(rows)
            found = exact_svd(rows, k)
        else:
            found = fast_frobenius_svd(rows, k, self.eps, rng)
        return replace(found, values=found.values * sqrt(rows.weight_unit))


def sketched(rows: Rows, sketch: Sketch) -> Block:
    """Return the features of all rows, block by block."""
    product = sketch.product(rows.dtype, rows.workers)
    edges = block_slices(len(rows), pass_height(rows, sketch.width))
    if rows.is_sparse and sketch.keeps_sparse:
        blocks = rows.workers.map(lambda span: product(rows.block(*span)), edges)
        return sparse.vstack(list(blocks), format="csr")
    features = np.empty((len(rows), sketch.width), dtype=rows.dtype)

    def fill(span: tuple[int, int]) -> None:
        product(rows.block(*span), features[slice(*span)])

    for _ in rows.workers.map(fill, edges):
        pass
    return features


def subsample(rows: Rows, size: int | None, rng: np.random.Generator) -> Rows:
    """Return `size` rows drawn without replacement; all rows where it is None.

    Weighted rows are drawn in proportion to their weight, with replacement, and count
    once a draw.
    """
    if size is None or size >= len(rows):
        return rows
    if rows.weights is None:
        indices = rng.choice(len(rows), size, replace=False)
    else:
        indices = rng.choice(len(rows), size, p=rows.weights / rows.total_weight)
    # In ascending order, as a file is read.
    return rows.subset(np.sort(indices), None)


def check_fit_rows(fit_rows: int | None) -> None:
    """Raise where `fit_rows` is neither None nor a number of rows."""
    if fit_rows is not None:
        check_integer("fit_rows", fit_rows)
