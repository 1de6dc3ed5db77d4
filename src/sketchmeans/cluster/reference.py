"""What a model keeps of the rows of its fit, to compare other rows with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from sketchmeans.data.preparation import (
    BooleanEncoder,
    CategoryEncoder,
    NumberEncoder,
    layout_of,
)
from sketchmeans.data.preparation.encoders import Encoder
from sketchmeans.numerics.linalg import Array

#: Shares of the rows of the fit whose scores are beyond the thresholds that are kept.
TAIL_SHARES = np.array([0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001])
#: Quantiles that are kept of each column of numbers.
LEVELS = np.array([0.0, 0.01, *np.arange(1, 20) / 20, 0.99, 1.0])
#: Models of more columns keep nothing of them: such files should stay small.
MOST_COLUMNS = 1_000


@dataclass(frozen=True)
class ColumnSpan:
    """A column of a model: its name, how it is encoded, and its features."""

    name: str
    encoder: Encoder
    features: slice

    @property
    def levels(self) -> tuple[str, ...] | None:
        """The levels of a category or the words for no and yes; None for numbers."""
        if isinstance(self.encoder, CategoryEncoder):
            return self.encoder.levels
        if isinstance(self.encoder, BooleanEncoder):
            return self.encoder.words
        return None


def column_spans(model: Any) -> list[ColumnSpan]:
    """Return the columns of a fitted model, with the features that they became."""
    plan = [column for column in getattr(model, "plan_", ()) if column.is_used]
    if plan:
        return [
            ColumnSpan(column.name, column.encoder, span)
            for column, span in zip(plan, layout_of(plan).slices(), strict=True)
        ]
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [f"x{j}" for j in getattr(model, "columns_", ())]
        names = names or [f"x{j}" for j in range(model.n_features_in_)]
    return [
        ColumnSpan(str(name), NumberEncoder(), slice(j, j + 1))
        for j, name in enumerate(names)
    ]


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """Values of columns by bin and by level.

    Attributes
    ----------
    n_rows : int
    missing : ndarray of shape (d,)
        Missing values of each column.
    bins : ndarray of shape (columns of numbers, 24) or None
        Values up to each of the edges and above the one before; then those above all.
    levels : ndarray or None
        Values of each level of each category, column by column; after the levels of a
        column those that are none of them.
    """

    n_rows: int
    missing: Array
    bins: Array | None
    levels: Array | None

    def __add__(self, other: ColumnCounts) -> ColumnCounts:
        def add(one: Array | None, two: Array | None) -> Array | None:
            return None if one is None or two is None else one + two

        return ColumnCounts(
            self.n_rows + other.n_rows,
            self.missing + other.missing,
            add(self.bins, other.bins),
            add(self.levels, other.levels),
        )


@dataclass(frozen=True, eq=False)
class Reference:
    """What is kept of the rows of a fit.

    Attributes
    ----------
    n_rows : int
        Rows of the table, without those that were left out.
    n_sampled : int
        Rows of the sample that all but sizes are of.
    sizes : ndarray of shape (k,)
        Rows by cluster: all, or of the sample if the rows had weights.
    variance : float
        Pooled variance of the rows of a cluster along the lines between centres.
    scales : ndarray of shape (k,)
        Typical distance of a row to its centre.
    tail : ndarray of shape (9,)
        Scores beyond which there are `TAIL_SHARES` of the rows.
    edges : ndarray of shape (columns of numbers, 23) or None
        Quantiles of the columns, as they are encoded, at `LEVELS`.
    columns : ColumnCounts or None
        Of the sample; None where there are too many columns.
    """

    n_rows: int
    n_sampled: int
    sizes: Array
    variance: float
    scales: Array
    tail: Array
    edges: Array | None
    columns: ColumnCounts | None

    def threshold(self, share: float) -> float:
        """Return the score beyond which there is this share of the rows of the fit."""
        return float(
            np.interp(np.log(share), np.log(TAIL_SHARES[::-1]), self.tail[::-1])
        )

    def permute(self, order: Array) -> Self:
        """Return this for clusters in another order."""
        return replace(self, sizes=self.sizes[order], scales=self.scales[order])
