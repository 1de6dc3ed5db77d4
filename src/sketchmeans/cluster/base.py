"""What the estimators share: everything around the fit."""

from __future__ import annotations

from abc import abstractmethod
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
from sklearn.utils.validation import check_is_fitted

from sketchmeans.data.input import validated, weighted_rows
from sketchmeans.data.rows import Rows, as_rows
from sketchmeans.engine.blocks import BlockEngine, new_engine
from sketchmeans.engine.init import Seeding, Start
from sketchmeans.engine.space import Space
from sketchmeans.engine.types import Centers, LloydResult
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.memory import memory_budget
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    check_integer,
    check_number,
    is_auto,
    warn_user,
)


class FitOnly:
    """An attribute that `fit` sets and model files leave out; its error says so.

    What `fit` sets on the object comes before this, which is of the class.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self._name!r}: fit sets it, "
            "and a model file does not keep it. predict gives the labels of rows."
        )


class Clusterer(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """k-means in some space: parameters in common, and everything after the fit."""

    #: Whether rows may be a Dask collection.
    _takes_dask = False

    #: What ``n_init="auto"`` stands for where restarts are cheap.
    _auto_restarts = 12

    n_clusters: int
    n_init: int | str
    max_iter: int
    tol: float
    max_memory: float | str | None
    n_jobs: int | None
    verbose: int
    random_state: Any

    labels_: Any = FitOnly()

    @abstractmethod
    def _space(self, rows: Rows) -> Space:
        """Return the space in which the fitted centres live, for rows to predict."""

    @abstractmethod
    def _centers(self, space: Any) -> Centers:
        """Return the fitted centres in that space."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_sizes_)

    def _check_params(self) -> None:
        self._check_n_clusters()
        check_integer("max_iter", self.max_iter)
        check_number("tol", self.tol)
        if not isinstance(self.verbose, bool):
            check_integer("verbose", self.verbose, low=0)
        if not is_auto(self.n_init):
            check_integer("n_init", self.n_init)

    def _check_n_clusters(self) -> None:
        check_integer("n_clusters", self.n_clusters)

    def _training_rows(self, X: Any, sample_weight: Any, workers: Workers) -> Rows:
        """Return the validated rows of `fit`."""
        X = validated(self, X, reset=True)
        n_samples = X.shape[0]
        if not is_auto(self.n_clusters) and n_samples < self.n_clusters:
            raise ValueError(
                f"n_samples={n_samples} should be >= n_clusters={self.n_clusters}."
            )
        budget = memory_budget(self.max_memory)
        return weighted_rows(X, sample_weight, workers, budget)

    def _restarts(self, start: Start | Seeding) -> int:
        """Return how many restarts there are; a given start has one."""
        if not isinstance(start, Start):
            return self._auto_restarts if is_auto(self.n_init) else int(self.n_init)
        if not is_auto(self.n_init) and self.n_init != 1:
            warn_user(
                f"n_init={self.n_init} restarts from a given init would all be the "
                "same: one is run.",
                RuntimeWarning,
            )
        return 1

    def _store(
        self,
        rows: Rows,
        result: LloydResult,
        exemplars: Array,
        limit: str = "max_iter",
    ) -> None:
        """Set the fitted attributes that tell of the result.

        `limit` is the parameter that bounds the passes of the last stage.
        """
        self.labels_ = rows.labels_of(result.labels)
        self.cost_ = result.cost
        self.inertia_ = result.cost * rows.total_weight * rows.weight_unit
        self.cost_path_ = np.array(result.cost_path)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.cluster_sizes_ = result.counts * rows.weight_unit
        self.exemplar_indices_ = exemplars
        found = int((result.counts > 0.0).sum())
        if found < len(result.counts):
            warn_user(
                f"Only {found} clusters of n_clusters={len(result.counts)} have rows: "
                "the rows hold too few distinct values.",
                ConvergenceWarning,
            )
        if result.stopped and not result.converged:
            warn_user(
                f"A callback stopped the fit after {result.n_iter} passes, before the "
                f"cost fell by no more than tol={self.tol:g} of itself.",
                ConvergenceWarning,
            )
        elif not result.converged:
            warn_user(
                f"No convergence after {limit}={getattr(self, limit)} passes: the cost "
                f"still fell by more than tol={self.tol:g} of itself. Raise {limit} or "
                "tol.",
                ConvergenceWarning,
            )

    def _warn_of_rounding(self, result: LloydResult, is_sound: bool) -> None:
        """Warn where the cost is no more than the rounding of larger numbers."""
        if not is_sound:
            warn_user(
                f"The cost {result.cost:.3g} is as small as the rounding of the "
                "distances of which it is the mean: clusters may be arbitrary. Look "
                "for rows that are far from all others, give another gamma, or scale "
                "the features.",
                ConvergenceWarning,
            )

    def fit_predict(
        self, X: Any, y: None = None, sample_weight: Any = None, **fit_params: Any
    ) -> Array:
        """Fit, and return ``labels_``; keyword arguments are those of `fit`."""
        labels: Array = self.fit(X, sample_weight=sample_weight, **fit_params).labels_
        return labels

    def predict(self, X: Any) -> Array:
        """Return the nearest centre of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)
            With ``kernel="precomputed"``: ``k(new rows, training rows)``.

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        with Workers(self.n_jobs) as workers:
            engine = self._new_rows(X, workers)
            return engine.predict(self._centers(engine.space))

    def transform(self, X: Any) -> Array:
        """Return the distances in feature space from each row to each centre.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)

        Returns
        -------
        distances : ndarray of shape (n, k)
        """
        with Workers(self.n_jobs) as workers:
            engine = self._new_rows(X, workers)
            return engine.all_distances(self._centers(engine.space))

    def cost(self, X: Any, sample_weight: Any = None) -> float:
        """Return ``W(C, μ_X)``: the mean squared distance of rows to their centre.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)
            Any rows, not just those of the fit.
        sample_weight : array-like of shape (n,), optional
        """
        total, rows = self._total_cost(X, sample_weight)
        return total / rows.total_weight

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Return minus the sum of squared distances, as scikit-learn's KMeans does."""
        total, rows = self._total_cost(X, sample_weight)
        return -total * rows.weight_unit

    def _total_cost(self, X: Any, sample_weight: Any) -> tuple[float, Rows]:
        """Return the cost of all rows, in the unit of their weights, and the rows."""
        with Workers(self.n_jobs) as workers:
            engine = self._new_rows(X, workers, sample_weight)
            return engine.total_cost(self._centers(engine.space)), engine.rows

    def _new_rows(
        self, X: Any, workers: Workers, sample_weight: Any = None
    ) -> BlockEngine:
        check_is_fitted(self, "cluster_sizes_")
        X = validated(self, X, reset=False)
        budget = memory_budget(self.max_memory)
        if sample_weight is None:  # a Dask dataframe would have to be counted
            rows = as_rows(X, workers, budget=budget)
        else:
            rows = weighted_rows(X, sample_weight, workers, budget)
        rows = self._view(rows)
        return new_engine(rows, self._space(rows))

    def _view(self, rows: Rows) -> Rows:
        """Return rows in the form in which they were clustered."""
        return rows
