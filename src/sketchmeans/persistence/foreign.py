"""The clusterer of scikit-learn that a `TableClusterer` in a model file may hold.

Its `predict` finds the nearest of some centres, which are an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from joblib import cpu_count
from sklearn.cluster import KMeans

from sketchmeans.persistence.kinds import (
    FLAG,
    PLAIN,
    REAL,
    Kind,
    Size,
    Spec,
    Tensor,
    integer,
    nullable,
    text,
)

_PARAMS: Mapping[str, Kind] = {
    "n_clusters": integer(1),
    "init": text("k-means++", "random"),
    **dict.fromkeys(("n_init", "max_iter", "tol", "verbose"), PLAIN),
    "random_state": nullable(integer(0)),
    "copy_x": FLAG,
    "algorithm": text("lloyd", "elkan"),
}
_FITTED: Mapping[str, Kind] = {
    "n_features_in_": Size("d"),
    "cluster_centers_": Tensor(("k", "d")),
    "inertia_": REAL,
    "n_iter_": integer(0),
}


def _check_centers(model: Any) -> None:
    if model.n_clusters != len(model.cluster_centers_):
        raise ValueError(
            f"n_clusters={model.n_clusters} should be {len(model.cluster_centers_)}, "
            "the number of centres"
        )


#: In model files only within a `TableClusterer`.
FOREIGN_SPECS = (
    Spec(
        KMeans,
        _PARAMS,
        _FITTED,
        {"_n_threads": lambda model: cpu_count()},
        check=_check_centers,
    ),
)
