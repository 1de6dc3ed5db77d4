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

    One pass over the rows; files may be larger than memory.

    Examples
    --------
    >>> import numpy as np
    >>> found = column_summary(np.array([[1.0, 5.0], [3.0, np.nan]]))
    >>> list(found.columns())
    [(0, None, 0, 2.0, 1.0), (1, None, 1, 5.0, 0.0)]
    """
    table = as_table(X)
    types = table.types
    if types is None:
        types_of: tuple[str | None, ...] = (None,) * table.open(None).shape[1]
        names: tuple[Column, ...] = tuple(range(len(types_of)))
    else:
        names, types_of = tuple(types), tuple(types.values())
    numbers = np.array([kind is None for kind in types_of])
    missing = np.zeros(len(names), np.int64)
    mean, deviation = np.full(len(names), np.nan), np.full(len(names), np.nan)
    if not numbers.any():
        n_rows = len(table.values(names[0]))
        return ColumnSummary(n_rows, names, types_of, missing, mean, deviation)
    source = table.open(
        [name for name, is_one in zip(names, numbers, strict=True) if is_one]
    )
    with Workers(n_jobs) as workers:
        found = column_moments(source, workers)
    counted = found.count > 0
    missing[numbers] = len(source) - found.count.astype(np.int64)
    mean[numbers] = np.where(counted, found.mean, np.nan)
    squares = np.where(counted, found.squares, np.nan) / np.maximum(found.count, 1.0)
    deviation[numbers] = np.sqrt(squares)
    return ColumnSummary(len(source), names, types_of, missing, mean, deviation)
