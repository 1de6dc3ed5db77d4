"""Columns that no other column has to do with: noise, as far as groups are concerned.

Groups of rows that differ in several columns make these depend on each other.  A column
that depends on none of the others says nothing about such groups, and at full weight
k-means may split a large group along it rather than find a small one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sketchmeans.data.preparation.column_plan import ColumnPlan
from sketchmeans.data.preparation.encoders import Layout
from sketchmeans.data.preparation.scaling import scale_parts
from sketchmeans.numerics.linalg import Array

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns of whose variance the others explain less than this share lose weight, down
#: to the least one; so many columns should exceed it, or else none loses any.
_EXPLAINED, _LEAST_WEIGHT, _MIN_COLUMNS = 0.05, 0.05, 3
#: Rows that are looked at: at least so many for each feature, and most of them.
_ROWS_PER_FEATURE, _MIN_ROWS, _MAX_ROWS = 20, 500, 5_000
#: Beside variances of one: what makes a matrix of indicators invertible.
_RIDGE = 1e-6


def weigh_columns(
    plans: Sequence[ColumnPlan], sample: pa.Table, free: Collection[str]
) -> list[ColumnPlan]:
    """Return the plans with less weight for columns that depend on no other column.

    Only columns in `free` lose weight.
    """
    encoders = [(p.name, p.encoder) for p in plans if p.encoder is not None]
    if len(encoders) <= _MIN_COLUMNS:
        return list(plans)
    layout = Layout.of(encoders)
    n = min(sample.num_rows, _MAX_ROWS)
    if n < max(_MIN_ROWS, _ROWS_PER_FEATURE * len(layout.names)):
        return list(plans)
    rows = np.linspace(0, sample.num_rows - 1, n).astype(int)
    sample = sample.select([name for name, _ in encoders]).take(rows)
    features = np.empty((n, len(layout.names)))
    for span, (name, encoder) in zip(layout.slices(), encoders, strict=True):
        encoder.encode(sample.column(name), features[:, span])
    explained = explain_columns(features, layout)
    if np.count_nonzero(explained > _EXPLAINED) < _MIN_COLUMNS:
        return list(plans)
    weights = np.clip(explained / _EXPLAINED, _LEAST_WEIGHT, 1.0).round(2).tolist()
    weight_of = dict(zip((name for name, _ in encoders), weights, strict=True))
    return [
        replace(
            plan,
            weight=weight_of[plan.name],
            reason=f"{plan.reason}; depends little on other columns: weight "
            f"{weight_of[plan.name]:g}",
        )
        if plan.name in free and weight_of.get(plan.name, 1.0) < 1.0
        else plan
        for plan in plans
    ]


def explain_columns(features: Array, layout: Layout) -> Array:
    """Return the share of each column's variance that the others explain.

    That of a linear regression on the features of all other columns, less what chance
    would explain (the adjusted R²).  The inverse of the block of a column in the
    inverse of the covariance is the covariance of what is left.
    """
    n, d = features.shape
    present = np.isfinite(features)
    count = np.maximum(present.sum(axis=0), 1)
    centred = np.where(present, features, 0.0)
    centred -= centred.sum(axis=0) / count
    centred[~present] = 0.0
    centred /= scale_parts(np.sqrt(np.square(centred).mean(axis=0)), layout)
    covariance = centred.T @ centred / n
    inverse = np.linalg.inv(covariance + _RIDGE * np.eye(d))
    explained = []
    for span in layout.slices():
        left = np.trace(np.linalg.inv(inverse[span, span]))
        total = max(np.trace(covariance[span, span]), _RIDGE)
        freedom = (n - 1) / (n - 1 - (d - (span.stop - span.start)))
        explained.append(1.0 - min(left / total, 1.0) * freedom)
    return np.array(explained)
