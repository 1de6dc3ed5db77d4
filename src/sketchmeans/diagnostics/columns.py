"""What the columns of a table hold, before it is clustered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.data.preparation import Column, as_table, column_moments
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.theory.results import Result


@dataclass(frozen=True, repr=False)
class ColumnSummary(Result):
    """The columns of a table.

    Attributes
    ----------
    n_rows : int
    names : tuple of str or int
        Numbers where columns have no names.
    types : tuple of str or None
        The type of each column that is not numeric; None for a numeric one.
    missing : ndarray
        Missing values of each numeric column, otherwise 0.
    mean, deviation : ndarray
        Of the values that are present; NaN if there are none, or for other columns.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.diagnostics import column_summary
    >>> found = column_summary(np.array([[1.0, 5.0], [3.0, np.nan]]))
    >>> found.missing, found.mean
    (array([0, 1]), array([2., 5.]))
    """

    n_rows: int
    names: tuple[Column, ...]
    types: tuple[str | None, ...]
    missing: Array
    mean: Array
    deviation: Array

    def columns(self) -> Iterator[tuple[Column, str | None, int, float, float]]:
        """Yield name, type, missing values, mean and deviation of each column."""
        return zip(
            self.names,
            self.types,
            self.missing.tolist(),
            self.mean.tolist(),
            self.deviation.tolist(),
            strict=True,
        )


def column_summary(X: Any, n_jobs: int | None = None) -> ColumnSummary:
    """Describe the columns of a table: a DataFrame, an array, a path or a `Source`.

    Of a numeric column the ``mean = Σ x/n`` and the ``deviation = √(Σ (x − mean)²/n)``
    of the n values that are present.

    One pass over the rows; files may be larger than memory.

    Examples
    --------
    >>> import numpy as np
    >>> found = column_summary(np.array([[1.0, 5.0], [3.0, np.nan]]))
    >>> list(found.columns())
    [(0, None, 0, 2.0, 1.0), (1, None, 1, 5.0, 0.0)]
    """
    table = as_table(X)
    types: dict[Any, str | None] | None = table.types
    if types is None:
        types = dict.fromkeys(range(table.open(None).shape[1]))
    names, types_of = tuple(types), tuple(types.values())
    is_numeric = np.array([kind is None for kind in types_of])
    missing = np.zeros(len(names), np.int64)
    mean, deviation = np.full(len(names), np.nan), np.full(len(names), np.nan)
    if is_numeric.any():
        source = table.open([name for name in names if types[name] is None])
        with Workers(n_jobs) as workers:
            found = column_moments(source, workers)
        n_rows, count = len(source), found.count
        missing[is_numeric] = n_rows - count.astype(np.int64)
        mean[is_numeric] = np.where(count > 0, found.mean, np.nan)
        squares = np.where(count > 0, found.squares, np.nan) / np.maximum(count, 1.0)
        deviation[is_numeric] = np.sqrt(squares)
    else:
        n_rows = len(table.records(names[:1]))
    return ColumnSummary(n_rows, names, types_of, missing, mean, deviation)
