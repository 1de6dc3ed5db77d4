"""`partial_fit`: one batch of rows after another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.input import as_weighted_rows, validate_input
from sketchmeans.engine.blocks import new_engine
from sketchmeans.engine.space import LandmarkSpace, landmark_space
from sketchmeans.engine.types import LloydResult
from sketchmeans.numerics.linalg import check_no_overflow
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import all_or_nothing

#: Weight of all earlier batches together, in weights of the last one, at the most:
#: means of rows that were assigned to centres of long ago are forgotten.
_MEMORY = 20.0
#: Largest weight of a cluster before a batch, in units of the batch's weights.
_MOST_WEIGHT = 1e300


def refuse_collection(X: Any) -> None:
    """Raise if a batch is a collection on a cluster."""
    if find_adapter(X) is not None:
        raise TypeError(
            "partial_fit does not take a Dask collection, which fit takes as a whole. "
            "Give it one computed partition at a time."
        )


@all_or_nothing
def add_batch(model: Any, X: Any, sample_weight: Any) -> Any:
    """Assign a batch to the centres of a model, and add its rows to the means."""
    with Workers(model.n_jobs) as workers:
        table = validate_input(model, X, reset=False)
        original = as_weighted_rows(table, sample_weight, workers)
        original.persist(model.max_memory)
        rows, unit = model._view(original), original.weight_unit
        space = landmark_space(
            model.kernel_,
            model.landmarks_,
            model._space(rows).dtype,
            workers,
            rank=model.rank,
            inverse=getattr(model, "_inverse", None),
        )
        engine = new_engine(rows, space)
        before = space.read_centers(
            model.dual_coef_, model._squared_norms, getattr(model, "_means", None)
        )
        found = engine.assign(before)
        check_no_overflow(found.costs)
        weights = getattr(model, "_masses", model.cluster_sizes_)
        # In the unit of this batch, but within what floats can hold.
        limits = np.where(weights > 0.0, 1.0 / _MOST_WEIGHT, 0.0)
        weights = np.clip(weights / unit, limits, _MOST_WEIGHT)
        weights *= min(1.0, _MEMORY * rows.total_weight / weights.sum())
        counts = found.counts + weights
        sums = found.sums + before.means * weights[:, None]
        after = engine.update(replace(found, sums=sums, counts=counts), before)
        labels = found.labels[:, 0]
        exemplars = engine.exemplars(before, labels)
    if isinstance(space, LandmarkSpace):
        model._inverse = space.inverse  # the same for all batches
    model._masses = counts[0] * unit
    with np.errstate(over="ignore"):
        sizes = model.cluster_sizes_ / unit + found.counts[0]
    cost = max(float(found.costs[0]), 0.0)
    path = [*model.cost_path_.tolist(), cost]
    result = LloydResult(labels, after, cost, sizes, path, converged=True)
    model._store_kernel(model.kernel_, original, exemplars)
    model._store_centers(space, result)
    model._store(original, result, exemplars)
    return model


def forget_earlier(model: Any) -> None:
    """Drop what earlier fits and batches have left: a new fit starts anew."""
    for name in ("_inverse", "_masses", "_shift"):
        model.__dict__.pop(name, None)
