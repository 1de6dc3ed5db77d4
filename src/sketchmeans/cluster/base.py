"""What the kernel estimators share: everything around the fit."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchmeans.bandwidth import Gamma
from sketchmeans.blocks import BlockEngine
from sketchmeans.kernels import Kernel, Precomputed, as_kernel, warn_if_indefinite
from sketchmeans.linalg import Array
from sketchmeans.lloyd import Centers, LloydResult
from sketchmeans.parallel import Workers
from sketchmeans.rows import Block, Rows, as_rows
from sketchmeans.seeding import Seeding
from sketchmeans.spaces import LandmarkSpace
from sketchmeans.start import Start
from sketchmeans.validation import (
    check_integer,
    check_number,
    check_weights,
)


class KernelClusterer(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """What exact and Nyström kernel k-means share: everything after the fit."""

    #: Restarts when ``n_init="auto"``.
    _auto_restarts: int

    n_clusters: int
    kernel: str | Kernel | Callable[..., float]
    gamma: Gamma
    degree: float
    coef0: float
    kernel_params: Mapping[str, Any] | None
    n_init: int | str
    max_iter: int
    tol: float
    n_jobs: int | None
    verbose: int
    random_state: Any
    dual_coef_: Array
    _squared_norms: Array

    @abstractmethod
    def _space(self, workers: Workers) -> LandmarkSpace:
        """Return the span in which the fitted centres live."""

    def _centers(self) -> Centers:
        """Return the fitted centres; prediction does without their means."""
        k = len(self._squared_norms)
        return Centers(
            self.dual_coef_.T[None], self._squared_norms[None], np.empty((1, k, 0))
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(
            self.kernel, Precomputed
        )
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_sizes_)

    def _check_params(self) -> None:
        check_integer("n_clusters", self.n_clusters)
        check_integer("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_integer("verbose", int(self.verbose), low=0)
        if self.n_init != "auto":
            check_integer("n_init", self.n_init)

    def _training_rows(self, X: Any, sample_weight: Any, workers: Workers) -> Rows:
        """Return the validated rows of `fit`."""
        X = _validated(self, X, reset=True)
        n_samples = X.shape[0]
        if n_samples < self.n_clusters:
            raise ValueError(
                f"n_samples={n_samples} should be >= n_clusters={self.n_clusters}."
            )
        rows = as_rows(X, workers, check_weights(sample_weight, n_samples))
        if self.__sklearn_tags__().input_tags.pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X.shape={X.shape} should be square with kernel='precomputed': "
                "k(X, X) of the training rows."
            )
        return rows

    def _fitted_kernel(self, rows: Rows, rng: np.random.Generator) -> Kernel:
        kernel = as_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
        ).resolved(rows, rng)
        warn_if_indefinite(kernel)
        self.kernel_ = kernel
        self.gamma_ = getattr(kernel, "gamma", None)
        return kernel

    def _restarts(self, start: Start | Seeding) -> int:
        """Return how many restarts there are; a given start has one."""
        if not isinstance(start, Start):
            return self._auto_restarts if self.n_init == "auto" else int(self.n_init)
        if self.n_init not in ("auto", 1):
            warnings.warn(
                f"n_init={self.n_init} restarts from a given init would all be the "
                "same: one is run.",
                RuntimeWarning,
                stacklevel=3,
            )
        return 1

    def _store(self, rows: Rows, result: LloydResult, exemplars: Array) -> None:
        """Set the fitted attributes that tell of the result."""
        self.labels_ = np.ascontiguousarray(result.labels)
        self.cost_ = result.cost
        self.inertia_ = result.cost * rows.total_weight
        self.cost_path_ = np.array(result.cost_path)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.cluster_sizes_ = result.counts
        self.exemplar_indices_ = exemplars
        if not isinstance(self.kernel_, Precomputed):
            self.exemplars_ = rows.take(exemplars)
        found = int((result.counts > 0.0).sum())
        if found < self.n_clusters:
            warnings.warn(
                f"Only {found} clusters of n_clusters={self.n_clusters} have rows: "
                "the rows hold too few distinct values.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if not result.converged:
            warnings.warn(
                f"No convergence after max_iter={self.max_iter} passes: the cost still "
                f"fell by more than tol={self.tol:g} of itself. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def fit_predict(self, X: Any, y: None = None, sample_weight: Any = None) -> Array:
        """Fit, and return ``labels_``."""
        labels: Array = self.fit(X, sample_weight=sample_weight).labels_
        return labels

    def predict(self, X: Any) -> Array:
        """Return the nearest centre of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            With ``kernel="precomputed"``: ``k(new rows, training rows)``.

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        with Workers(self.n_jobs) as workers:
            engine = self._new_rows(X, workers)
            return engine.predict(self._centers())

    def transform(self, X: Any) -> Array:
        """Return the distances in feature space from each row to each centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        distances : ndarray of shape (n, k)
        """
        with Workers(self.n_jobs) as workers:
            engine = self._new_rows(X, workers)
            distances = [np.sqrt(d) for d in engine.distances(self._centers())]
        return np.concatenate(distances).astype(engine.rows.dtype, copy=False)

    def cost(self, X: Any, sample_weight: Any = None) -> float:
        """Return ``W(C, μ_X)``: the mean squared distance of rows to their centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Any rows, not just those of the fit.
        sample_weight : array-like of shape (n,), optional
        """
        total, weight = self._total_cost(X, sample_weight)
        return total / weight

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Return minus the sum of squared distances, as scikit-learn's KMeans does."""
        return -self._total_cost(X, sample_weight)[0]

    def _total_cost(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        with Workers(self.n_jobs) as workers:
            engine = self._new_rows(X, workers)
            nearest = np.concatenate(
                [d.min(axis=1) for d in engine.distances(self._centers())]
            )
        weights = check_weights(sample_weight, len(nearest))
        if weights is None:
            return float(nearest.sum()), float(len(nearest))
        return float(weights @ nearest), float(weights.sum())

    def _new_rows(self, X: Any, workers: Workers) -> BlockEngine:
        check_is_fitted(self)
        X = _validated(self, X, reset=False)
        return BlockEngine(as_rows(X, workers), self._space(workers))


def _validated(estimator: BaseEstimator, X: Any, *, reset: bool) -> Block:
    """Return `X` as it is stored: nothing is converted as a whole."""
    return validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype="numeric",
        ensure_all_finite=False,
        accept_large_sparse=True,
    )


def is_given(kernel: Kernel) -> bool:
    """Say whether the kernel values are precomputed."""
    return isinstance(kernel, Precomputed)
