"""Clustering of raw tables: columns chosen, scaled and filled in the estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from sketchmeans.cluster.base import FitOnly, if_estimator_has, of_estimator
from sketchmeans.cluster.batches import refuse_collection
from sketchmeans.cluster.html import FittedHTML
from sketchmeans.cluster.raw_tables import (
    PreparedElsewhere,
    map_elsewhere,
    prepare_elsewhere,
)
from sketchmeans.cluster.table_steps import (
    check_given,
    check_params,
    evaluate,
    fit_batch,
    fit_labels,
    fit_preparation,
    open_prepared,
    plan_columns,
    rows_for,
    select_weights,
)
from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.preparation import (
    Column,
    ColumnPlan,
    Preparation,
    PreparedSource,
    as_table,
    layout_of,
    warn_of_unseen,
)
from sketchmeans.engine.callbacks import CallbackSupportMixin, with_callbacks
from sketchmeans.engine.progress import Progress
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.memory import memory_budget
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import all_or_nothing

#: The label of a row that was left out.
NO_CLUSTER = -1


@dataclass(eq=False, repr=False)
class TableClusterer(
    FittedHTML,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """Cluster a table as it comes: with names, units, words, dates and gaps.

    The kind of each named column is found from its values: numbers, yes or no,
    categories and dates become features of comparable weight; identifiers, free text,
    constants and duplicates are left out.  `plan` shows what is done, and why.

    `predict` prepares new tables as `fit` did; it finds columns by name, in any order,
    and ignores others.  Rows are scaled block by block as they are read, so files may
    be larger than memory.  A fit costs one pass more than that of `estimator`, n·d.

    Parameters
    ----------
    estimator : clusterer
        It is cloned, and fitted to the prepared rows.  One of this package reads them
        block by block; any other, also a mixture or a `Pipeline` that ends in a
        clusterer, gets them as an array in memory.
    columns : list of str or int, optional
        Columns to cluster by; numbers where columns have no names.  Default is all.
    exclude : list of str or int, optional
        Columns to leave out.
    label_column : str or int, optional
        A column to leave out because it holds known classes; see `label_values`.
    as_kinds : dict of str to str, optional
        The kind of a column, by name, where it is not the one that is found:
        "numeric", "boolean", "category", "ordinal" or "date".
    scale : {"auto", "standard", "robust", "log", "none"}, default="auto"
        - "auto": as "standard", and skewed numbers of named columns by
          ``asinh((x − shift) / unit)``, which is logarithmic, where that halves their
          skewness.
        - "standard": mean 0 and standard deviation 1, as scikit-learn's
          `StandardScaler`.  A sparse table is not centred.
        - "log": as "auto", for all numbers of named columns.
        - "robust": median 0 and distance 1 between the quartiles, as `RobustScaler`;
          a column whose quartiles are equal has standard deviation 1.  Of more than
          4 million values the quartiles are those of a random sample of that size.
        - "none": unchanged.  Columns in small units then hardly count.

        A constant column is divided by 1.
    missing : {"auto", "fill", "mean", "drop", "error"}, default="auto"
        What to do with missing values (NaN, null): fill in the median of the column, or
        its mean, leave out the row, or raise.  "auto" is "fill" for columns with names,
        and "error" for others.  Where gaps are filled, those of a category are a level
        of their own if they are at least 1% of the rows.  A row that is left out has
        the label −1, so that labels are in line with the rows of the table.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the prepared rows.
    labels_ : ndarray of shape (n,)
        Cluster of each row of the table; −1 for a row that was left out.
    columns_ : list of str or int
        The columns that were clustered by; `n_features_in_` is their number, and
        `feature_names_in_` has their names.
    plan_ : list of ColumnPlan
        What each column of a table with names is, why, and how it is used.
    kinds_ : dict of str to str
        The kind of each of these columns.
    column_weights_ : ndarray of shape (d,)
        The share of each of `columns_` in the variance of the prepared rows.
    features_ : list of str or int
        What the columns have become: a category is one feature for each level.
    center_, scale_ : ndarray of shape (n_features,)
        A value x of a feature was turned into ``(x − center_) / scale_``.
    fill_ : ndarray of shape (n_features,) or None
        What takes the place of missing values, in `n_filled_` rows.
    n_scale_rows_, n_dropped_ : int
        Rows from which the scale was learned, and rows that were left out.
    exemplar_indices_, exemplars_ : ndarray of shape (k,) and (k, d)
        The row of the table that is nearest to the centre of each cluster: its number
        and its values, in the units of the table; objects if some are words or dates.
    segment_names_ : tuple of str
        A name for each cluster, once `describe_segments` or `rename_segments` set it.
    cost_, inertia_, cluster_sizes_, n_iter_, converged_
        As in `estimator_`, like the exemplars only if that has them.
    dialect_, zero_based_ : dict or None, bool
        How a text table was written, see `Dialect.from_dict`, and whether svmlight
        files counted features from 0: other files are read in the same way.

    Examples
    --------
    >>> import pandas as pd
    >>> from sketchmeans import NystromKMeans, TableClusterer
    >>> table = pd.DataFrame({"age": [25, 27, 52, None], "pay": [3.1, 3.0, 9.0, 9.5]})
    >>> model = TableClusterer(NystromKMeans(2, random_state=0), missing="drop")
    >>> labels = model.fit_predict(table)
    >>> bool(labels[0] == labels[1] != labels[2]), int(labels[3])
    (True, -1)
    """

    #: A path is of one fit, and not metadata that a search could pass on.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"checkpoint": UNUSED}

    labels_ = cast(Any, FitOnly())
    cost_ = of_estimator("cost_", "Mean squared distance of the rows that are kept.")
    inertia_ = of_estimator("inertia_", "Sum of squared distances of these rows.")
    cluster_sizes_ = of_estimator("cluster_sizes_", "Number of rows by cluster.")
    n_iter_ = of_estimator("n_iter_", "Number of passes over all rows.")
    converged_ = of_estimator("converged_", "Whether the passes met `tol`.")

    estimator: Any
    _: KW_ONLY
    columns: Sequence[Column] | None = None
    exclude: Sequence[Column] | None = None
    label_column: Column | None = None
    as_kinds: Mapping[str, str] | None = None
    scale: str = "auto"
    missing: str = "auto"

    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: None = None,
        sample_weight: Any = None,
        *,
        checkpoint: Any = None,
    ) -> Self:
        """Learn how to prepare the table, and cluster its rows.

        Parameters
        ----------
        X : DataFrame, array-like, sparse matrix, path, `Source` or Dask collection
            Of a Dask array or dataframe, 500,000 random rows determine the scale.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows, in the scale as in the clusters.
            For an estimator that takes weights.
        checkpoint : str, PathLike or Checkpoint, optional
            As in `NystromKMeans.fit`; for an estimator that has it.
        """
        self._check_params()
        check_given(self.estimator, "fit", sample_weight, checkpoint)
        estimator, progress = clone(self.estimator), Progress(self)
        prepared, weights = self._fit_preparation(X, sample_weight, progress)
        extra = select_weights(prepared, weights)
        extra |= {} if checkpoint is None else {"checkpoint": checkpoint}
        with progress.within("clustering", estimator):
            labels = fit_labels(estimator, rows_for(self, estimator, prepared), extra)
        progress.finish()
        self.__dict__.pop("segment_names_", None)
        return self._store(estimator, prepared, labels)

    @if_estimator_has("partial_fit")
    @all_or_nothing
    def partial_fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Take in one batch of rows, as `partial_fit` of the estimator does.

        The first batch determines how tables are prepared, and should be like the rest.
        After `fit`, this goes on from there.  ``labels_`` are those of the last batch.
        """
        refuse_collection(X)
        self._check_params()
        check_given(self.estimator, "partial_fit", sample_weight)
        return self._store(*fit_batch(self, X, sample_weight))

    def _store(self, estimator: Any, prepared: Any, labels: Any) -> Self:
        self.estimator_ = estimator
        self.labels_ = prepared.spread(labels, NO_CLUSTER)
        for name in ("exemplar_indices_", "reference_"):
            self.__dict__.pop(name, None)
        if hasattr(estimator, "exemplar_indices_"):
            self.exemplar_indices_ = prepared.numbers(estimator.exemplar_indices_)
        return self

    @all_or_nothing
    @with_callbacks
    def fit_preparation(self, X: Any) -> Self:
        """Learn how to prepare the table for `prepare`, without clustering it."""
        self._check_params()
        progress = Progress(self)
        self._fit_preparation(X, None, progress)
        progress.finish()
        for name in (
            *("estimator_", "labels_", "exemplar_indices_"),
            *("reference_", "segment_names_"),
        ):
            self.__dict__.pop(name, None)
        return self

    def _fit_preparation(
        self, X: Any, sample_weight: Any, progress: Progress
    ) -> tuple[PreparedSource | PreparedElsewhere, Array | None]:
        """Set how to prepare a table; return its prepared rows, and weights of all."""
        if (adapter := find_adapter(X)) is not None:
            return prepare_elsewhere(self, adapter, X, sample_weight, progress)
        return fit_preparation(self, X, sample_weight, progress)

    def plan(self, X: Any) -> list[ColumnPlan]:
        """Return what a fit would do with each column of a table, and why.

        Nothing is fitted.  It is empty for a table without column names, whose columns
        are all used as numbers.
        """
        self._check_params()
        return plan_columns(self, as_table(X))

    def _check_params(self) -> None:
        check_params(self)

    def _workers(self) -> Workers:
        return Workers(getattr(self.estimator, "n_jobs", None))

    def _budget(self) -> int:
        return memory_budget(getattr(self.estimator, "max_memory", None))

    @if_estimator_has("predict")
    def predict(self, X: Any) -> Any:
        """Return the cluster of each row; −1 for a row that is left out.

        Parameters
        ----------
        X : DataFrame, array, sparse matrix, path, `Source`, Dask collection, dict, ...
            With the columns of the fit, in any order, and maybe others.  A dictionary
            is one row: it has a value for each column that is used, None if that is
            missing, and no other keys than columns of the table of the fit.
        """
        check_is_fitted(self, "estimator_")
        if (adapter := find_adapter(X)) is not None:
            return map_elsewhere(self, adapter, "predict", X)
        prepared = open_prepared(self, X)
        labels = np.empty(0, int)
        if len(prepared):
            labels = self.estimator_.predict(rows_for(self, self.estimator_, prepared))
            warn_of_unseen(prepared.inner)
        return prepared.spread(labels, NO_CLUSTER)

    @if_estimator_has("transform")
    def transform(self, X: Any) -> Any:
        """Return the distance of each row to each centre; NaN if it is left out."""
        check_is_fitted(self, "estimator_")
        if (adapter := find_adapter(X)) is not None:
            return map_elsewhere(self, adapter, "transform", X)
        prepared = self.prepare(X)
        rows = rows_for(self, self.estimator_, prepared)
        return prepared.spread(self.estimator_.transform(rows), np.nan)

    def inverse_transform(self, X: Any) -> Array:
        """Return rows as `estimator_` sees them, or its centres, in their old units."""
        dense = X.toarray() if hasattr(X, "toarray") else X
        return np.asarray(self._preparation().inverse_transform(dense))

    @if_estimator_has("cost")
    def cost(self, X: Any, sample_weight: Any = None) -> float:
        """Return the mean squared distance of the rows that are kept, as `cost_`."""
        return evaluate(self, "cost", X, sample_weight)

    @if_estimator_has("score")
    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Return minus the sum of squared distances of the rows that are kept."""
        return evaluate(self, "score", X, sample_weight)

    def prepare(self, X: Any) -> PreparedSource:
        """Return the rows of a table as `estimator_` sees them.

        For what takes a fitted estimator and its rows, such as
        ``certificate(model.estimator_, model.prepare(X))``.
        """
        prepared = open_prepared(self, X)
        if not len(prepared):
            raise ValueError(
                f"{prepared.path} has a missing value in every row: missing='drop' "
                "leaves none."
            )
        return prepared

    def label_values(self, X: Any) -> Array:
        """Return the known classes of the rows that are kept, from `label_column`."""
        check_is_fitted(self, "columns_")
        if self.label_column is None:
            raise ValueError("label_column=None should name the column of classes.")
        table = as_table(X, like=getattr(self, "dialect_", None))
        return open_prepared(self, table).select(table.values(self.label_column))

    def _preparation(self) -> Preparation:
        check_is_fitted(self, "columns_")
        encoders = tuple(
            (column.name, column.encoder)
            for column in self.plan_
            if column.encoder is not None
        )
        return Preparation(
            self.center_, self.scale_, self.fill_, self.n_scale_rows_, encoders=encoders
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Of tables without column names, which are the ones that can be sparse.
        allows_gaps = self.missing not in ("auto", "error")
        is_plain = not allows_gaps and self.scale != "robust"
        takes_sparse = get_tags(self.estimator).input_tags.sparse
        tags.input_tags.sparse = is_plain and takes_sparse
        tags.input_tags.allow_nan = allows_gaps
        return tags

    @property
    def kinds_(self) -> dict[str, str]:
        """The kind of each column of the fit that has a name, by name."""
        return {column.name: column.kind for column in self.plan_}

    @property
    def features_(self) -> list[Column]:
        """What `estimator_` sees: columns, levels of categories and parts of dates."""
        return list(layout_of(self.plan_).names) if self.plan_ else self.columns_

    @property
    def _n_features_out(self) -> int:
        return len(self.estimator_.get_feature_names_out())

    @property
    def exemplars_(self) -> Array:
        """The row of each cluster that is nearest to its centre, in its units."""
        rows = self.estimator_.exemplars_
        if set(self.kinds_.values()) & {"boolean", "category", "ordinal", "date"}:
            return self._preparation().decode(rows)
        return self.inverse_transform(rows)
