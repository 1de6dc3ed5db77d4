"""What the estimators share: everything around the fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import wraps
from types import MethodType
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from sketchmeans.cluster.html import FittedHTML
from sketchmeans.data.input import as_weighted_rows, validate_input
from sketchmeans.data.lost_digits import warn_of_lost_digits
from sketchmeans.data.memory import plan_pass
from sketchmeans.data.rows import Rows, as_rows
from sketchmeans.engine.blocks import BlockEngine, new_engine
from sketchmeans.engine.callbacks import CallbackSupportMixin
from sketchmeans.engine.init import Seeding, auto_restarts
from sketchmeans.engine.space import Space
from sketchmeans.engine.starts import Start
from sketchmeans.engine.types import Centers, LloydResult
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.memory import memory_budget
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    check_integer,
    check_integer_or,
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


class if_estimator_has:  # noqa: N801 - a decorator
    """Decorate a method that the clusterer within must have, too.

    As scikit-learn's `available_if`, with an error that names the clusterer.
    """

    def __init__(self, method: str) -> None:
        self._method = method

    def __call__(self, function: Callable[..., Any]) -> Self:
        @wraps(function)
        def checked(instance: Any, *args: Any, **kwargs: Any) -> Any:
            self._check(instance)
            return function(instance, *args, **kwargs)

        self._checked = checked  # what scikit-learn wraps to set the output
        return self

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self._checked
        self._check(instance)
        return MethodType(self._checked, instance)

    def _check(self, instance: Any) -> None:
        inner = getattr(instance, "estimator_", instance.estimator)
        if not hasattr(inner, self._method):
            raise AttributeError(
                f"{type(instance).__name__!r} object has no attribute "
                f"{self._method!r}: its estimator, {type(inner).__name__}, has none.",
                name=self._method,
                obj=instance,
            )


def of_estimator(name: str, doc: str) -> Any:
    """Return a property that is a fitted attribute of the clusterer within."""
    return property(lambda self: getattr(self.estimator_, name), doc=doc)


#: Relative drop of the cost at which Lloyd's algorithm stops, for this many clusters.
_TOLERANCE, _CLUSTERS = 1e-4, 100


class Clusterer(
    FittedHTML,
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
    n_clusters: int
    n_init: int | str
    max_iter: int
    tol: float | str
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
        if not is_auto(self.tol):
            check_number("tol", self.tol)
        if not isinstance(self.verbose, bool):
            check_integer("verbose", self.verbose, low=0)
        check_integer_or("auto", "n_init", self.n_init)

    def _check_n_clusters(self) -> None:
        check_integer("n_clusters", self.n_clusters)

    @property
    def _tolerance(self) -> float:
        """What `tol` stands for: many clusters gain little, for long."""
        if not is_auto(self.tol):
            return float(self.tol)
        return _TOLERANCE * max(1.0, self.n_clusters / _CLUSTERS)

    def _training_rows(self, X: Any, sample_weight: Any, workers: Workers) -> Rows:
        """Return the validated rows of `fit`."""
        X = validate_input(self, X, reset=True)
        self.__dict__.pop("segment_names_", None)  # of other clusters
        n_samples = X.shape[0]
        if not is_auto(self.n_clusters) and n_samples < self.n_clusters:
            raise ValueError(
                f"n_samples={n_samples} should be >= n_clusters={self.n_clusters}."
            )
        rows = as_weighted_rows(X, sample_weight, workers, self._reading_budget(X))
        plan_pass(rows, self.max_memory)
        warn_of_lost_digits(rows, getattr(self, "feature_names_in_", None))
        return rows

    def _reading_budget(self, X: Any) -> int | None:
        """Return the bytes in which rows may be read; None if they are in memory.

        What is free takes longer to find out than the label of a row.
        """
        is_array = isinstance(X, np.ndarray) and self.max_memory is None
        return None if is_array else memory_budget(self.max_memory)

    def _restarts(self, start: Start | Seeding) -> int:
        """Return how many restarts there are; a given start has one."""
        if not isinstance(start, Start):
            return auto_restarts(self.n_clusters, self.n_init)
        if start.points is not None and start.points.ndim == 3 and callable(self.init):
            return len(start.points)
        if not is_auto(self.n_init) and self.n_init != 1:
            warn_user(
                "Explicit initial center position passed: performing only one init in "
                f"{type(self).__name__} instead of n_init={self.n_init}.",
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
        """Set the fitted attributes that describe the result.

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
        self.__dict__.pop("reference_", None)  # of an earlier fit
        found = int((result.counts > 0.0).sum())
        if found < len(result.counts):
            warn_user(
                f"Number of distinct clusters ({found}) found smaller than n_clusters "
                f"({len(result.counts)}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
            )
        if result.stopped and not result.converged:
            warn_user(
                f"A callback stopped the fit after {result.n_iter} passes, while the "
                f"relative drop of the cost was above tol={self._tolerance:g}.",
                ConvergenceWarning,
            )
        elif not result.converged:
            warn_user(
                f"No convergence after {limit}={getattr(self, limit)} passes: the "
                f"relative drop of the cost was above tol={self._tolerance:g}. Raise "
                f"{limit} or tol.",
                ConvergenceWarning,
            )

    def _warn_of_rounding(self, result: LloydResult, is_sound: bool) -> None:
        """Warn if the cost is only rounding of larger numbers."""
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
        X = validate_input(self, X, reset=False)
        budget = self._reading_budget(X)
        # A Dask dataframe would have to be counted to check weights.
        if sample_weight is None and getattr(X, "weight", None) is None:
            rows = as_rows(X, workers, budget=budget)
        else:
            rows = as_weighted_rows(X, sample_weight, workers, budget)
        rows = self._view(rows)
        return new_engine(rows, self._space(rows))

    def _view(self, rows: Rows) -> Rows:
        """Return rows in the form in which they were clustered."""
        return rows
