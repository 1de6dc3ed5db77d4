"""Checks of what users give: tables, weights, and where labels go."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.finite import check_finite
from sketchmeans.data.rows import Rows, as_rows
from sketchmeans.data.sources import Source, as_source
from sketchmeans.data.sources.base import is_csr
from sketchmeans.numerics.atomic_file import check_can_write, open_atomic
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers


def check_weights(sample_weight: Any, n_samples: int) -> Array | None:
    """Return sample weights in float64, or None where all are equal to one."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.dtype.kind not in "biuf":
        try:
            weights = weights.astype(np.float64, casting="same_kind")
        except (TypeError, ValueError):
            raise ValueError(
                f"sample_weight of type {weights.dtype} should be real numbers."
            ) from None
    weights = weights.astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight.shape={weights.shape} should be ({n_samples},): one weight "
            "per row."
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}]={weights[bad[0]]} should be a finite number "
            ">= 0; negative weights are not possible."
        )
    if not weights.any():
        raise ValueError(
            "sample_weight is zero for every row; at least one should be positive."
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise ValueError(
                f"sample_weight adds up to more than {np.finfo(float).max:.1e}, the "
                "largest float; divide all weights by the same number."
            )
    return None if (weights == 1.0).all() else weights


def normalise_weights(weights: Array | None) -> tuple[Array | None, float]:
    """Return weights on a scale of about one, and the unit that they are in.

    Only ratios of weights matter to a fit, but squares of tiny and huge ones, and their
    values in float32, underflow or overflow.  The unit is a power of two, so that no
    digit is lost; where all weights but zeros are equal, it is their value, and None
    stands for weights of one.

    Examples
    --------
    >>> import numpy as np
    >>> normalise_weights(np.array([3e-300, 3e-300]))
    (None, 3e-300)
    >>> normalise_weights(np.array([12.0, 0.0, 16.0]))
    (array([0.75, 0.  , 1.  ]), 16.0)
    """
    if weights is None:
        return None, 1.0
    largest = float(weights.max())
    positive = weights > 0.0
    if (weights[positive] == largest).all():
        return None if positive.all() else positive.astype(np.float64), largest
    exponent = math.frexp(largest)[1] - 1
    return np.ldexp(weights, -exponent), math.ldexp(1.0, exponent)


def as_weighted_rows(
    X: Any, sample_weight: Any, workers: Workers, budget: int | None = None
) -> Rows:
    """Return the row source of a checked table, with weights on a scale of one.

    A table may have a column of weights of its own.
    """
    if sample_weight is None:
        sample_weight = getattr(X, "column_weights", None)
    weights = check_weights(sample_weight, X.shape[0])
    weights, unit = normalise_weights(weights)
    return as_rows(X, workers, weights, budget).with_unit(unit)


def check_table(X: Any, *, takes_dask: bool = False) -> Any:
    """Return a user's table as it is stored, or the source that it is or names.

    Whether values are finite is checked as the rows are read; at once if their columns
    have names.
    """
    table = read_table(X, takes_dask=takes_dask)
    _check_named_values(X, table)
    return table


def read_table(X: Any, estimator: Any = None, *, takes_dask: bool = False) -> Any:
    """Return the same, without a look at the values."""
    is_array = type(X) is np.ndarray  # most are, and a single row should be quick
    adapter = None if is_array else find_adapter(X)
    if adapter is not None:
        if not (takes_dask or getattr(estimator, "_takes_dask", False)):
            who = "This" if estimator is None else type(estimator).__name__
            raise TypeError(
                f"{who} does not take a Dask collection ({type(X).__name__}): it works "
                "on rows in one process. NystromKMeans does; or give it a sample, such "
                "as X[::100].compute()."
            )
        return adapter.as_table(X)
    source = None if is_array else as_source(X)
    if source is not None:
        return source
    return check_array(
        X,
        accept_sparse="csr",
        accept_large_sparse=True,
        dtype="numeric",
        ensure_all_finite=False,
        estimator=estimator,
        input_name="X",
    )


def _check_named_values(X: Any, table: Any) -> None:
    """Raise where a dataframe is not finite: its array has no names of columns."""
    if (isinstance(table, np.ndarray) or is_csr(table)) and hasattr(X, "columns"):
        # Arrow has columns of values, and their names apart.
        check_finite(table, columns=list(getattr(X, "column_names", X.columns)))


def validate_input(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return a user's table as it is stored: nothing is converted as a whole.

    Whether values are finite is checked as in `check_table`; at once if the table has
    the wrong width, too, as NaN may well be the reason.
    """
    table = read_table(X, estimator)
    names: Any = X
    if reset:
        vars(estimator).pop("zero_based_", None)
    if find_adapter(table) is not None:
        names = table.meta
    elif isinstance(table, Source):
        if not reset:
            zero_based = getattr(estimator, "zero_based_", None)
            table = table.like_fit(zero_based, estimator.n_features_in_)
        elif table.zero_based is not None:
            estimator.zero_based_ = table.zero_based
        names = table.empty_table()
    elif not reset and table.shape[1] != estimator.n_features_in_:
        _check_named_values(X, table)
        check_finite(table)
    validate_data(estimator, names, reset=reset, skip_check_array=True)
    _check_named_values(X, table)
    return table


def check_labels_path(labels_out: Any, n_rows: int = 0) -> None:
    """Raise where labels could not be written, before hours of work are lost.

    `n_rows` is their number, where it is known.
    """
    if labels_out is None:
        return
    reason = ""
    if isinstance(labels_out, str | os.PathLike) and Path(labels_out).suffix == ".npy":
        try:
            check_can_write(labels_out, n_rows * np.dtype(np.int32).itemsize)
        except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
            reason = f": {getattr(error, 'strerror', None) or error}"
        else:
            return
    raise ValueError(
        f"labels_out={labels_out!r} should be the path of a .npy file in a folder that "
        f"exists and can be written to{reason}."
    )


def write_labels(labels: Array, labels_out: str | os.PathLike[str]) -> Array:
    """Write labels to a file, all or nothing, and return a read-only map of it."""
    path = Path(labels_out)
    with open_atomic(path) as file:
        np.save(file, labels)
    mapped: Array = np.load(path, mmap_mode="r")
    return mapped
