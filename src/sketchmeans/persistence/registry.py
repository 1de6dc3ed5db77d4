"""The table of everything that a model file may hold.

To add a class: a line in `_SPECS`, with the kinds of its fitted attributes and of those
parameters that are not in `PARAMETERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sketchmeans.cluster import KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.cluster.table import TableClusterer
from sketchmeans.landmarks import LandmarkPath
from sketchmeans.nystrom import Nystrom
from sketchmeans.persistence.consistency import (
    check_exact,
    check_nystrom,
    check_nystrom_kmeans,
    check_selection,
    check_signs,
    check_sketched,
    check_table,
    note_rows,
    restore_gamma,
    restore_sampling,
    restore_selection,
    restore_signs,
    restore_svd,
)
from sketchmeans.persistence.kinds import (
    Columns,
    Flag,
    Integer,
    Kind,
    Maybe,
    Names,
    Object,
    Real,
    Record,
    Rows,
    Size,
    Tensor,
    Text,
    nullable,
)
from sketchmeans.persistence.parameters import (
    CLUSTERER_CLASSES,
    COUNT,
    KERNEL_CLASSES,
    PARAMETERS,
    REDUCER_CLASSES,
    SEEDING_CLASSES,
    SELECTOR_CLASSES,
)
from sketchmeans.persistence.specs import Registry, Spec, parameter_names
from sketchmeans.reduction import (
    ApproximateSVD,
    FeatureSampling,
    LaplacianScore,
    SignProjection,
)
from sketchmeans.reduction.approximate_svd import Projection
from sketchmeans.reduction.selection import Selection
from sketchmeans.reduction.signs import Signs

# --- fitted attributes ----------------------------------------------------------------
# Dimensions: d features, w features of the landmarks, m landmarks, k clusters,
# r components.

_FEATURES: Mapping[str, Kind] = {
    "n_features_in_": Size("d"),
    "feature_names_in_": Maybe(Names("d")),
    "zero_based_": Maybe(Flag()),  # of a fit on svmlight files
}
_CLUSTERER: Mapping[str, Kind] = {
    **_FEATURES,
    "cost_": Real(),
    "inertia_": Real(),
    "cost_path_": Tensor(("passes",)),
    "n_iter_": COUNT,
    "converged_": Flag(),
    "cluster_sizes_": Tensor(("k",)),
    "exemplar_indices_": Tensor(("k",), "i"),
    "exemplars_": Maybe(Rows(("k", "d"))),
}
_KERNEL_CLUSTERER: Mapping[str, Kind] = {
    **_CLUSTERER,
    "kernel_": Object(KERNEL_CLASSES),
    "dual_coef_": Tensor(("m", "k")),
    "_squared_norms": Tensor(("k",)),
}
_LANDMARKS: Mapping[str, Kind] = {
    "landmarks_": Rows(("m", "w")),
    "landmark_indices_": nullable(Tensor(("m",), "i")),
}
_PATH = Record(
    LandmarkPath,
    {
        "n_landmarks": Tensor(("tried",), "i"),
        "residual_trace": Tensor(("tried",)),
        "cost": Tensor(("tried",)),
        "gain": Tensor(("tried",), finite=False),
        "chosen": COUNT,
    },
)
_SELECTION = Record(
    Selection, {"features": Tensor(("r",), "i"), "scale": Tensor(("r",))}
)
_PROJECTION = Record(Projection, {"matrix": Tensor(("d", "r"))})
_SIGNS = Record(
    Signs,
    {
        "bits": Tensor(("d", "bytes"), "u1"),
        "width": Size("r"),
        "method": Text(("gemm", "mailman")),
    },
)

# --- the table ------------------------------------------------------------------------


def _spec(
    cls: type[Any],
    fitted: Mapping[str, Kind] | None = None,
    own: Mapping[str, Kind] | None = None,
    **more: Any,
) -> Spec:
    """Return a line of the table; `own` parameters are of kinds that others are not."""
    known = {**PARAMETERS, **(own or {})}
    params = {name: known[name] for name in parameter_names(cls)}
    return Spec(cls, params, fitted or {}, **more)


_SPECS = [
    _spec(
        KernelKMeans,
        {
            **_KERNEL_CLUSTERER,
            "X_fit_": Rows(("m", "w")),
            "_variances": Maybe(Tensor(("k",))),
        },
        check=check_exact,
        restore=restore_gamma,
        note=note_rows,
    ),
    _spec(
        NystromKMeans,
        {
            **_KERNEL_CLUSTERER,
            **_LANDMARKS,
            "landmark_path_": nullable(_PATH),
            "rank_": COUNT,
            "reducer_": nullable(Object(REDUCER_CLASSES)),
            "_means": Maybe(Tensor(("k", "m"))),
            "_masses": Maybe(Tensor(("k",))),
            "_shift": Maybe(Tensor(("d",))),
        },
        check=check_nystrom_kmeans,
        restore=restore_gamma,
    ),
    _spec(
        SketchedKMeans,
        {
            **_CLUSTERER,
            "cluster_centers_": Tensor(("k", "d")),
            "reducer_": Object(REDUCER_CLASSES),
            "_shift": Tensor(("d",)),
        },
        check=check_sketched,
    ),
    _spec(
        TableClusterer,
        {
            **_FEATURES,
            "columns_": Columns("d"),
            "center_": Tensor(("d",)),
            "scale_": Tensor(("d",)),
            "fill_": nullable(Tensor(("d",))),
            "n_scale_rows_": COUNT,
            "n_dropped_": Integer(0),
            "estimator_": Object(CLUSTERER_CLASSES),
            "exemplar_indices_": Tensor(("k",), "i"),
        },
        check=check_table,
    ),
    _spec(
        Nystrom,
        {
            **_FEATURES,
            **_LANDMARKS,
            "kernel_": Object(KERNEL_CLASSES),
            "components_": Tensor(("m", "r")),
            "rank_": Size("r"),
        },
        check=check_nystrom,
        restore=restore_gamma,
    ),
    _spec(
        FeatureSampling,
        {
            **_FEATURES,
            "probabilities_": Tensor(("d",)),
            "counts_": Tensor(("r",), "i"),
            "_sketch": _SELECTION,
        },
        check=check_selection,
        restore=restore_sampling,
    ),
    _spec(
        LaplacianScore,
        {
            **_FEATURES,
            "scores_": Tensor(("d",), finite=False),
            "_sketch": _SELECTION,
        },
        check=check_selection,
        restore=restore_selection,
    ),
    _spec(
        ApproximateSVD,
        {
            **_FEATURES,
            "singular_values_": Tensor(("r",)),
            "_sketch": _PROJECTION,
        },
        restore=restore_svd,
    ),
    _spec(
        SignProjection,
        {**_FEATURES, "_sketch": _SIGNS},
        check=check_signs,
        restore=restore_signs,
    ),
    *(_spec(cls) for cls in (*KERNEL_CLASSES, *SELECTOR_CLASSES, *SEEDING_CLASSES)),
]

REGISTRY = Registry(
    {spec.cls.__name__: spec for spec in _SPECS},
    {
        record.cls.__name__: record
        for record in (_PATH, _PROJECTION, _SELECTION, _SIGNS)
    },
)
