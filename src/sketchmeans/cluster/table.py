"""Clustering of raw tables: columns chosen, scaled and filled in the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from sketchmeans.cluster.base import Clusterer, FitOnly
from sketchmeans.cluster.resume import check_checkpoint
from sketchmeans.data.preparation import (
    Column,
    Preparation,
    PreparedSource,
    as_table,
    chosen_columns,
    complete_rows,
    known_columns,
    learned,
)
from sketchmeans.data.preparation.scaling import n_blocks
from sketchmeans.data.rows import SourceRows
from sketchmeans.data.sources import Source
from sketchmeans.engine.progress import Progress
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.memory import memory_budget
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import all_or_nothing, check_option

#: The label of a row that was left out.
NO_CLUSTER = -1


class TableClusterer(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """Cluster a table as it comes: with names, units, gaps and columns to leave out.

    What is chosen and learned in `fit` (columns, centre, scale, the values that fill
    gaps) is applied by `predict` to new tables, whose columns are found by name, in
    any order; others are ignored.  Tables are streamed: rows are scaled block by block
    as they are read, so files may be larger than memory.  A fit passes over the rows
    once more than that of `estimator`.

    Parameters
    ----------
    estimator : NystromKMeans, KernelKMeans or SketchedKMeans
        It is cloned, and fitted to the prepared rows.
    columns : list of str or int, optional
        Columns to cluster by; numbers where columns have no names.  Default is all.
    exclude : list of str or int, optional
        Columns to leave out.
    label_column : str or int, optional
        A column to leave out because it holds known classes; see `label_values`.
    scale : {"standard", "robust", "none"}, default="standard"
        - "standard": mean 0 and standard deviation 1, as scikit-learn's
          `StandardScaler`.  A sparse table is not centred.
        - "robust": median 0 and distance 1 between the quartiles, as `RobustScaler`;
          a column whose quartiles are equal has standard deviation 1.  Of more than
          4 million values the quartiles are those of a random sample with so many.
        - "none": as it is.  Columns in small units then hardly count.

        A constant column is divided by 1.
    missing : {"error", "drop", "mean"}, default="error"
        What to do with NaN and with what is not there: raise, leave out the row, or
        fill in the mean of the column.  A row that is left out has the label −1, so
        that labels are in line with the rows of the table.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the prepared rows.
    labels_ : ndarray of shape (n,)
        Cluster of each row of the table; −1 for a row that was left out.
    columns_ : list of str or int
        The columns that were clustered by.
    center_, scale_ : ndarray of shape (d,)
        A value x was turned into ``(x − center_) / scale_``.
    fill_ : ndarray of shape (d,) or None
        What takes the place of missing values.
    n_scale_rows_ : int
        Rows from which the scale was learned.
    n_dropped_ : int
        Rows that were left out.
    exemplar_indices_ : ndarray of shape (k,)
        The row of the table that is nearest to the centre of each cluster.
    exemplars_ : ndarray of shape (k, d)
        These rows, in the units of the table.
    cost_, inertia_, cluster_sizes_, n_iter_, converged_
        As in `estimator_`.
    n_features_in_, feature_names_in_
        Number and names of `columns_`.
    zero_based_ : bool
        Whether features were counted from 0, of a fit on svmlight files.

    Examples
    --------
    >>> import pandas as pd
    >>> from sketchmeans import NystromKMeans, TableClusterer
    >>> table = pd.DataFrame({
    ...     "name": ["Ada", "Bea", "Cid", "Dag", "Eva"],
    ...     "income": [31e3, 30e3, 90e3, 95e3, None],
    ...     "age": [25, 27, 52, 55, 40],
    ... })
    >>> model = TableClusterer(
    ...     NystromKMeans(2, random_state=0), exclude=["name"], missing="drop"
    ... )
    >>> labels = model.fit_predict(table)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3]), int(labels[4])
    (True, -1)
    """

    labels_: Any = FitOnly()

    def __init__(
        self,
        estimator: Clusterer,
        *,
        columns: Sequence[Column] | None = None,
        exclude: Sequence[Column] | None = None,
        label_column: Column | None = None,
        scale: str = "standard",
        missing: str = "error",
    ) -> None:
        self.estimator = estimator
        self.columns = columns
        self.exclude = exclude
        self.label_column = label_column
        self.scale = scale
        self.missing = missing

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: None = None, *, checkpoint: Any = None) -> Self:
        """Learn how to prepare the table, and cluster its rows.

        Parameters
        ----------
        X : DataFrame, array-like, sparse matrix, path or `Source`
        y : ignored
        checkpoint : str, PathLike or Checkpoint, optional
            As in `NystromKMeans.fit`; for an estimator that has it.
        """
        self._check_params(checkpoint)
        estimator = clone(self.estimator)
        progress = Progress(self)
        prepared, kept = self._learned(X, progress)
        extra = {} if checkpoint is None else {"checkpoint": checkpoint}
        with progress.within("clustering", estimator):
            estimator.fit(prepared, **extra)
        progress.finish()
        self.estimator_ = estimator
        n_rows = len(prepared) + self.n_dropped_
        self.labels_ = _spread(estimator.labels_, kept, n_rows, NO_CLUSTER)
        numbers = estimator.exemplar_indices_
        self.exemplar_indices_ = numbers if kept is None else kept[numbers]
        return self

    @all_or_nothing
    @with_callbacks
    def learn(self, X: Any) -> Self:
        """Learn how to prepare the table, without clustering it; then `prepare` works.

        Parameters
        ----------
        X : DataFrame, array-like, sparse matrix, path or `Source`
        """
        self._check_params()
        progress = Progress(self)
        self._learned(X, progress)
        progress.finish()
        for name in ("estimator_", "labels_", "exemplar_indices_"):
            self.__dict__.pop(name, None)
        return self

    def _learned(
        self, X: Any, progress: Progress
    ) -> tuple[PreparedSource, Array | None]:
        """Store how to prepare a table; return its rows, and which are kept."""
        table = as_table(X)
        columns = chosen_columns(table, self.columns, self.exclude, self.label_column)
        source = table.open(columns)
        with (
            Workers(self.estimator.n_jobs) as workers,
            progress.blocks("reading rows", n_blocks(source)) as on_block,
        ):
            budget = memory_budget(self.estimator.max_memory)
            SourceRows(source, workers).check_memory(budget)
            preparation, kept = learned(
                source, self.scale, self.missing, workers, on_block
            )
        self._store(columns, table.types is not None, preparation)
        self.__dict__.pop("zero_based_", None)
        if source.zero_based is not None:
            self.zero_based_ = source.zero_based
        prepared = PreparedSource(source, preparation, kept)
        self.n_dropped_ = len(source) - len(prepared)
        return prepared, kept

    def _check_params(self, checkpoint: Any = None) -> None:
        if not isinstance(self.estimator, Clusterer):
            raise ValueError(
                f"estimator={self.estimator!r} should be a KernelKMeans, NystromKMeans "
                "or SketchedKMeans."
            )
        check_option("scale", self.scale, ("standard", "robust", "none"))
        check_option("missing", self.missing, ("error", "drop", "mean"))
        if getattr(self.estimator, "kernel", None) == "precomputed":
            raise ValueError(
                "kernel='precomputed' should be another kernel for a table of features."
            )
        known = "checkpoint" in signature(self.estimator.fit).parameters
        if checkpoint is not None and not known:
            where = str(getattr(checkpoint, "path", checkpoint))
            raise ValueError(
                f"checkpoint={where!r} should be None: "
                f"{type(self.estimator).__name__} has no checkpoints."
            )
        check_checkpoint(self.estimator, checkpoint)

    def _store(
        self, columns: list[Column], are_names: bool, preparation: Preparation
    ) -> None:
        self.columns_ = columns
        self.n_features_in_ = len(columns)
        self.__dict__.pop("feature_names_in_", None)
        if are_names:
            self.feature_names_in_ = np.array(columns, dtype=object)
        self.center_, self.scale_ = preparation.center, preparation.scale
        self.fill_ = preparation.fill
        self.n_scale_rows_ = preparation.n_scale_rows

    def fit_predict(self, X: Any, y: None = None, *, checkpoint: Any = None) -> Array:
        """Fit, and return ``labels_``."""
        labels: Array = self.fit(X, checkpoint=checkpoint).labels_
        return labels

    def predict(self, X: Any) -> Array:
        """Return the cluster of each row; −1 for a row that is left out.

        Parameters
        ----------
        X : DataFrame, array-like, sparse matrix, path or `Source`
            With the columns of the fit, in any order, and maybe others.
        """
        check_is_fitted(self, "estimator_")
        prepared, kept, n_rows = self._prepared(X)
        labels = (
            self.estimator_.predict(prepared) if len(prepared) else np.empty(0, int)
        )
        return _spread(labels, kept, n_rows, NO_CLUSTER)

    def transform(self, X: Any) -> Array:
        """Return the distance of each row to each centre; NaN if it is left out."""
        check_is_fitted(self, "estimator_")
        prepared, kept, n_rows = self._prepared(X)
        distances = self.estimator_.transform(self._some(prepared))
        return _spread(distances, kept, n_rows, np.nan)

    def cost(self, X: Any) -> float:
        """Return the mean squared distance of the rows that are kept, as `cost_`."""
        check_is_fitted(self, "estimator_")
        return float(self.estimator_.cost(self.prepare(X)))

    def score(self, X: Any, y: None = None) -> float:
        """Return minus the sum of squared distances of the rows that are kept."""
        check_is_fitted(self, "estimator_")
        return float(self.estimator_.score(self.prepare(X)))

    def prepare(self, X: Any) -> Source:
        """Return the rows of a table as `estimator_` sees them.

        For what takes a fitted estimator and its rows, such as
        ``certificate(model.estimator_, model.prepare(X))``.
        """
        return self._some(self._prepared(X)[0])

    def label_values(self, X: Any) -> Array:
        """Return the known classes of the rows that are kept, from `label_column`."""
        check_is_fitted(self, "columns_")
        if self.label_column is None:
            raise ValueError("label_column=None should name the column of classes.")
        table = as_table(X)
        known_columns(table, [*self.columns_])
        values = table.values(self.label_column)
        kept = self._prepared(X)[1]
        return values if kept is None else values[kept]

    def in_units(self, rows: Any) -> Array:
        """Return prepared rows in the units of the table."""
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        return np.asarray(self._preparation().in_units(dense))

    def _preparation(self) -> Preparation:
        check_is_fitted(self, "columns_")
        return Preparation(self.center_, self.scale_, self.fill_, self.n_scale_rows_)

    def _prepared(self, X: Any) -> tuple[PreparedSource, Array | None, int]:
        """Return the prepared rows, which are kept, and how many there were."""
        preparation = self._preparation()
        table = as_table(X)
        if hasattr(self, "zero_based_"):  # fitted to features that are numbered
            n_features = 1 + max(int(column) for column in self.columns_)
            table = table.like(self.zero_based_, n_features)
        source = table.open(known_columns(table, self.columns_))
        kept = None
        if self.missing == "drop":
            with Workers(self.estimator.n_jobs) as workers:
                kept = complete_rows(source, workers)
        prepared = PreparedSource(
            source, preparation, kept, is_complete=self.missing != "error"
        )
        return prepared, kept, len(source)

    def _some(self, prepared: PreparedSource) -> PreparedSource:
        if not len(prepared):
            raise ValueError(
                f"{prepared.path} has a missing value in every row: missing='drop' "
                "leaves none."
            )
        return prepared

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_sizes_)

    @property
    def exemplars_(self) -> Array:
        """The row of each cluster that is nearest to its centre, in its units."""
        return self.in_units(self.estimator_.exemplars_)

    @property
    def cost_(self) -> float:
        """The mean squared distance, in feature space, of the rows that are kept."""
        return float(self.estimator_.cost_)

    @property
    def inertia_(self) -> float:
        """The sum of squared distances of the rows that are kept."""
        return float(self.estimator_.inertia_)

    @property
    def cluster_sizes_(self) -> Array:
        """The number of rows of each cluster."""
        sizes: Array = self.estimator_.cluster_sizes_
        return sizes

    @property
    def n_iter_(self) -> int:
        """The number of passes over all rows."""
        return int(self.estimator_.n_iter_)

    @property
    def converged_(self) -> bool:
        """Whether the passes met `tol`."""
        return bool(self.estimator_.converged_)


def _spread(found: Array, kept: Array | None, n_rows: int, other: Any) -> Array:
    """Return what was found for the rows that are kept, with others in between."""
    if kept is None:
        return found
    spread = np.full((n_rows, *found.shape[1:]), other, dtype=found.dtype)
    spread[kept] = found
    return spread
