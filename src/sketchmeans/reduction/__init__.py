"""Fewer features for k-means: sampled, projected or extracted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from sketchmeans.reduction.approximate_svd import ApproximateSVD
from sketchmeans.reduction.base import Reducer
from sketchmeans.reduction.laplacian import LaplacianScore
from sketchmeans.reduction.sampling import FeatureSampling
from sketchmeans.reduction.signs import SignProjection
from sketchmeans.reduction.view import ReducedRows

__all__ = [
    "REDUCERS",
    "ApproximateSVD",
    "FeatureSampling",
    "LaplacianScore",
    "ReducedRows",
    "Reducer",
    "SignProjection",
    "as_reducer",
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
    elif hasattr(reducer, "transform") and hasattr(reducer, "get_params"):
        chosen = clone(reducer)
    else:
        raise ValueError(
            f"reducer={reducer!r} should be one of {sorted(REDUCERS)} or a transformer."
        )
    seed = int(rng.integers(2**31))
    params = chosen.get_params(deep=False)
    wanted = {"random_state": seed, "n_jobs": n_jobs}
    values = {name: value for name, value in wanted.items() if name in params}
    values = {name: value for name, value in values.items() if params[name] is None}
    if "n_clusters" in params:
        values["n_clusters"] = n_clusters
    return chosen.set_params(**values)
