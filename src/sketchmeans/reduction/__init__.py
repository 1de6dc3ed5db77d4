"""Fewer features for k-means: sampled, projected or extracted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.rows import Rows
from sketchmeans.numerics.linalg import Array
from sketchmeans.reduction.base import (
    Reducer,
    ShiftedRows,
    is_reduced,
    reduce_rows,
    shift_rows,
)
from sketchmeans.reduction.laplacian import LaplacianScore
from sketchmeans.reduction.signs import SignProjection
from sketchmeans.reduction.spectral import ApproximateSVD, FeatureSampling

__all__ = [
    "REDUCERS",
    "ApproximateSVD",
    "FeatureSampling",
    "LaplacianScore",
    "Reducer",
    "SignProjection",
    "as_reducer",
    "fit_reducer",
    "is_reduced",
    "reduce_rows",
    "shift_rows",
]

REDUCERS: dict[str, Callable[[], Reducer]] = {
    "laplacian": LaplacianScore,
    "sampling": FeatureSampling,
    "sign": SignProjection,
    "svd": ApproximateSVD,
}


def as_reducer(
    reducer: str | BaseEstimator,
    n_clusters: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> Any:
    """Return the transformer that a user's `reducer` stands for, ready to be fitted.

    A transformer is cloned.  Its `n_clusters`, if it has one, is set; a seed and a
    number of threads only where it has the parameter and leaves it at None.
    """
    if isinstance(reducer, str) and reducer in REDUCERS:
        chosen: Any = REDUCERS[reducer]()
    elif not isinstance(reducer, type | str) and all(
        hasattr(reducer, name) for name in ("fit", "transform", "get_params")
    ):
        chosen = clone(reducer)
    else:
        raise ValueError(
            f"reducer={reducer!r} should be one of {sorted(REDUCERS)} or a transformer."
        )
    seed, params = int(rng.integers(2**31)), chosen.get_params(deep=False)
    values = {"random_state": seed, "n_jobs": n_jobs}
    values = {n: v for n, v in values.items() if n in params and params[n] is None}
    if "n_clusters" in params:
        values["n_clusters"] = n_clusters
    return chosen.set_params(**values)


def fit_reducer(
    reducer: Any, rows: Rows, names: Array | None, max_memory: float | str | None
) -> Any:
    """Fit a reducer to the rows, and return the view of the rows through it.

    Raises MemoryError where one of ours would take more than `max_memory` allows.

    Our own reducers are given the `names` of the features, so that a person can read
    which were chosen.  Weights go to every reducer whose `fit` takes them.
    """
    own, weights = isinstance(reducer, Reducer), rows.given_weights
    is_remote = find_adapter(rows) is not None
    if is_remote and not own:
        raise ValueError(
            f"reducer={reducer!r} cannot be fitted to a Dask collection: fit it on a "
            "sample, and give X.map_blocks(reducer.transform) with reducer=None."
        )
    if own:
        reducer.check_memory(rows, max_memory)
    if own and (is_remote or isinstance(rows, ShiftedRows)):
        reducer.fit_view(rows)
    else:  # a transformer of another library needs a table in memory
        weighted = weights is not None and has_fit_parameter(reducer, "sample_weight")
        given = {"sample_weight": weights} if weighted else {}
        reducer.fit(rows.X if own else rows.load().X, **given)
    if own and names is not None:
        reducer.feature_names_in_ = names
    return reduce_rows(rows, reducer)
