"""The table of everything that a model file may hold.

To add a class: a line in `_SPECS`, with the kinds of its fitted attributes, and lines
in `PARAMETERS` for parameters of a new name.  Nothing depends on where a class lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, TypeVar

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from sketchmeans.cluster import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
)
from sketchmeans.cluster.scales import ScalePath
from sketchmeans.cluster.table import GAPS, SCALES, TableClusterer
from sketchmeans.data.preparation import (
    LEFT_OUT_KINDS,
    USED_KINDS,
    BooleanEncoder,
    CategoryEncoder,
    ColumnPlan,
    DateEncoder,
    NumberEncoder,
)
from sketchmeans.data.preparation.encoders import PERIODS
from sketchmeans.data.preparation.values import DATE_FORMATS
from sketchmeans.data.sources import Dialect
from sketchmeans.engine.init import (
    KMeansParallel,
    KMeansPlusPlus,
    LocalSearch,
    RandomSeeding,
)
from sketchmeans.kernels import KERNELS, Pairwise, Precomputed, is_given
from sketchmeans.landmarks import SELECTORS, LandmarkPath
from sketchmeans.numerics.memory import format_bytes, is_memory_size
from sketchmeans.nystrom import Nystrom
from sketchmeans.persistence.kinds import (
    FLAG,
    INTEGER,
    NONZERO,
    PLAIN_DICT,
    PLAIN_LIST,
    POSITIVE,
    REAL,
    Columns,
    Kind,
    Many,
    Maybe,
    Names,
    Object,
    OneOf,
    Plain,
    Record,
    Size,
    Spec,
    Tensor,
    constructor_parameters,
    integer,
    nullable,
    rows,
    text,
)
from sketchmeans.reduction import (
    ApproximateSVD,
    FeatureSampling,
    LaplacianScore,
    SignProjection,
)
from sketchmeans.reduction.base import Selection
from sketchmeans.reduction.signs import Signs
from sketchmeans.reduction.spectral import Projection

_KERNELS = frozenset(KERNELS.values()) | {Pairwise}
_SELECTORS = frozenset(type(make()) for make in SELECTORS.values())
_SEEDINGS = frozenset({KMeansParallel, KMeansPlusPlus, LocalSearch, RandomSeeding})
_CLUSTERERS = frozenset({KernelKMeans, NystromKMeans, SketchedKMeans, SpectralKMeans})
_REDUCERS = frozenset({ApproximateSVD, FeatureSampling, LaplacianScore, SignProjection})

# --- parameters -----------------------------------------------------------------------

_COUNT = integer(1)
_AUTO = text("auto")
_GIVEN = (text(), rows(None, None), Tensor((None,), "i"), PLAIN_LIST)
_COLUMNS = nullable(PLAIN_LIST, Names(None))

#: A parameter of this name is of this kind, in whatever class.
PARAMETERS: Mapping[str, Kind] = {
    **dict.fromkeys(("accelerated", "refine", "replace"), FLAG),
    **dict.fromkeys(("coef0", "degree", "eps", "oversampling"), REAL),
    **dict.fromkeys(("exchange", "method", "sketch", "start"), text()),
    **dict.fromkeys(("max_columns", "max_exact", "max_iter"), _COUNT),
    **dict.fromkeys(("n_rounds", "restarts"), _COUNT),
    **dict.fromkeys(
        ("fit_rows", "n_components", "rank", "sketch_size"), nullable(_COUNT)
    ),
    **dict.fromkeys(("n_candidates", "n_clusters", "n_init"), OneOf(_AUTO, _COUNT)),
    **dict.fromkeys(("n_landmarks", "n_neighbors"), OneOf(_AUTO, _COUNT)),
    **dict.fromkeys(("as_kinds", "kernel_params", "params"), nullable(PLAIN_DICT)),
    **dict.fromkeys(("columns", "exclude"), _COLUMNS),
    **dict.fromkeys(("order", "refine_max_iter"), integer(0)),
    "algorithm": text("progressive", "full"),
    "estimator": Object(_CLUSTERERS),
    "affinity": text("nearest-landmarks", "rbf", "precomputed"),
    "gamma": OneOf(text("auto", "mean", "median", "scale"), REAL),
    "init": OneOf(*_GIVEN, Object(_SEEDINGS)),
    "kernel": OneOf(text(*KERNELS, *PAIRWISE_KERNEL_FUNCTIONS), Object(_KERNELS)),
    "landmarks": OneOf(*_GIVEN, Object(_SELECTORS)),
    "label_column": nullable(text(), INTEGER),
    "max_memory": Plain(is_memory_size, "bytes, a string such as '2GB' or null"),
    "metric": text(*PAIRWISE_KERNEL_FUNCTIONS),
    "missing": text(*GAPS),
    "n_jobs": nullable(NONZERO),
    "n_steps": OneOf(_AUTO, integer(0)),
    "random_state": nullable(integer(0)),
    "rank_method": text("landmarks", "approximation"),
    "reducer": nullable(text(), Object(_REDUCERS)),
    "ridge": nullable(REAL),
    "scale": text(*SCALES),
    "subsample": nullable(_AUTO, _COUNT),
    "svd": text("fast", "exact"),
    "tol": OneOf(_AUTO, REAL),
    "verbose": OneOf(FLAG, integer(0)),
    "whiten": OneOf(_AUTO, FLAG),
}

# --- fitted attributes ----------------------------------------------------------------
# Dimensions: d features, w features of the landmarks, m landmarks, k clusters,
# r components.

_FEATURES: Mapping[str, Kind] = {
    "n_features_in_": Size("d"),
    "feature_names_in_": Maybe(Names("d")),
    "zero_based_": Maybe(FLAG),  # of a fit on svmlight files
}
_CLUSTERER: Mapping[str, Kind] = {
    **_FEATURES,
    "cost_": REAL,
    "inertia_": REAL,
    "cost_path_": Tensor(("passes",)),
    "n_iter_": _COUNT,
    "converged_": FLAG,
    "cluster_sizes_": Tensor(("k",)),
    "exemplar_indices_": Tensor(("k",), "i"),
    "exemplars_": Maybe(rows("k", "d")),
}
_KERNEL_CLUSTERER: Mapping[str, Kind] = {
    **_CLUSTERER,
    "kernel_": Object(_KERNELS),
    "dual_coef_": Tensor(("m", "k")),
    "_squared_norms": Tensor(("k",)),
}
_LANDMARKS: Mapping[str, Kind] = {
    "landmarks_": rows("m", "w"),
    "landmark_indices_": nullable(Tensor(("m",), "i")),
}
_PATH = Record(
    "LandmarkPath",
    LandmarkPath,
    {
        "n_landmarks": Tensor(("tried",), "i"),
        "residual_trace": Tensor(("tried",)),
        "cost": Tensor(("tried",)),
        "gain": Tensor(("tried",), finite=False),
        "chosen": _COUNT,
    },
)
_SCALES = Record(
    "ScalePath",
    ScalePath,
    {
        "n_landmarks": Tensor(("tried",), "i"),
        "scale": Tensor(("tried",)),
        "whitened": Tensor(("tried",), "i"),
        "smallest_share": Tensor(("tried",)),
        "gap": Tensor(("tried",)),
        "chosen": integer(0),
    },
)
_SELECTION = Record(
    "Selection", Selection, {"features": Tensor(("r",), "i"), "scale": Tensor(("r",))}
)
_PROJECTION = Record("Projection", Projection, {"matrix": Tensor(("d", "r"))})
_SIGNS = Record(
    "Signs",
    Signs,
    {
        "bits": Tensor(("d", "bytes"), "u1"),
        "width": Size("r"),
        "method": text("gemm", "mailman"),
    },
)

_SENTINELS = Many(REAL)
_NUMBER = Record(
    "NumberEncoder",
    NumberEncoder,
    {
        "unit": nullable(POSITIVE),
        "shift": REAL,
        "sentinels": _SENTINELS,
        "missing_words": Many(text()),
    },
)
_BOOLEAN = Record("BooleanEncoder", BooleanEncoder, {"words": Many(text(), 2)})
_CATEGORY = Record(
    "CategoryEncoder",
    CategoryEncoder,
    {"levels": Many(text()), "shares": Tensor((None,))},
)
_DATE = Record(
    "DateEncoder",
    DateEncoder,
    {
        "reference": REAL,
        "cycles": Many(text(*PERIODS)),
        "written": nullable(text(*DATE_FORMATS)),
        "sentinels": _SENTINELS,
    },
)
_PLAN = Record(
    "ColumnPlan",
    ColumnPlan,
    {
        "name": text(),
        "kind": text(*USED_KINDS, *LEFT_OUT_KINDS),
        "reason": text(),
        "encoder": nullable(_NUMBER, _BOOLEAN, _CATEGORY, _DATE),
    },
)

# --- checks across fitted attributes --------------------------------------------------


def _check_kernel(kernel: Any) -> None:
    if hasattr(kernel, "gamma"):
        REAL.check(kernel.gamma, "kernel_.gamma", {})
        if kernel.gamma <= 0.0:
            raise ValueError(f"kernel_.gamma={kernel.gamma} should be positive")
    if getattr(kernel, "order", 0) > 2:
        raise ValueError(f"kernel_.order={kernel.order} should be 0, 1 or 2")
    if type(kernel) is Pairwise:  # a subclass has a name and parameters of its own
        function = PAIRWISE_KERNEL_FUNCTIONS[str(kernel.metric)]
        known = list(signature(function).parameters)[2:]  # after X and Y
        if unknown := set(kernel.params or {}) - set(known):
            raise ValueError(f"kernel_.params should not have {sorted(unknown)}")


def _check_points(model: Any, name: str, *, reduced: bool = False) -> None:
    """Check that points are in the space of the rows that they are compared with."""
    points, width = getattr(model, name), model.n_features_in_
    _check_kernel(model.kernel_)
    if is_given(model.kernel_):
        if reduced:
            raise ValueError("reducer_ should be None where kernel values are given")
        Tensor((None, None), "i").check(points, name, {})
        if points.min() < 0 or points.max() >= width:
            raise ValueError(f"{name} should hold row numbers below {width}")
        width = 1
    elif reduced:
        _check_same_features(model, "reducer_")
        width = model.reducer_.n_components_
    if points.shape[1] != width:
        raise ValueError(f"{name}.shape[1]={points.shape[1]} should be {width}")


def _check_same_features(model: Any, name: str) -> None:
    """Check that an inner estimator was fitted to the features of the outer one."""
    inner = getattr(model, name)
    if inner.n_features_in_ != model.n_features_in_:
        raise ValueError(
            f"{name}.n_features_in_={inner.n_features_in_} should be "
            f"{model.n_features_in_}"
        )
    if _feature_names(inner) != _feature_names(model):
        raise ValueError(f"{name}.feature_names_in_ should be feature_names_in_")


def _feature_names(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else names.tolist()


def _check_nystrom(model: Any) -> None:
    """Check a `NystromKMeans` or a `Nystrom`."""
    name = "landmarks_" if hasattr(model, "landmarks_") else "components_"
    reduced = getattr(model, "reducer_", None) is not None
    _check_points(model, name, reduced=reduced)
    if model.rank_ > getattr(model, name).shape[0]:
        raise ValueError(f"rank_={model.rank_} should be at most that of {name}")


def _check_sketched(model: Any) -> None:
    """Check a `SketchedKMeans`."""
    if model.reducer_ is not None:
        _check_same_features(model, "reducer_")


def _check_spectral(model: Any) -> None:
    """Check a `SpectralKMeans`."""
    is_near, is_dense = model.n_neighbors_ is not None, model.gamma_ is not None
    if (model.landmarks_ is None) == (is_near or is_dense) or (is_near and is_dense):
        raise ValueError("landmarks_ should go with either n_neighbors_ or gamma_")
    if is_near and model._scales is None:
        raise ValueError("_scales should go with n_neighbors_")
    if is_near and model.n_neighbors_ > model.landmarks_.shape[0]:
        raise ValueError(
            f"n_neighbors_={model.n_neighbors_} should be at most that of landmarks_"
        )
    if model.whitening_ is not None and not is_near:
        raise ValueError("whitening_ should go with n_neighbors_")
    if is_dense and model.gamma_ <= 0.0:
        raise ValueError(f"gamma_={model.gamma_} should be positive")
    if model.landmarks_ is None and len(model._masses) != model.n_features_in_:
        raise ValueError(
            f"_masses should be one for each of {model.n_features_in_} nodes"
        )
    for name in ("_masses", "_scales", "_shares"):
        values = getattr(model, name)
        if values is not None and values.min() < 0.0:
            raise ValueError(f"{name} should not be negative")


def _check_table(model: Any) -> None:
    """Check a `TableClusterer`."""
    Dialect.from_dict(getattr(model, "dialect_", None) or {})
    inner = model.estimator_
    if inner.n_features_in_ != len(model.center_):
        raise ValueError(
            f"estimator_.n_features_in_={inner.n_features_in_} should be "
            f"{len(model.center_)}"
        )
    if len(inner.cluster_sizes_) != len(model.exemplar_indices_):
        raise ValueError("exemplar_indices_ should be one for each cluster")
    if isinstance(getattr(inner, "kernel_", None), Precomputed):
        raise ValueError("estimator_.kernel_ should be a kernel of features")
    if not model.scale_.all():
        raise ValueError("scale_ should not hold zero")
    if _feature_names(model) not in (None, model.columns_):
        raise ValueError("feature_names_in_ should be columns_")
    _check_plan(model)
    if len(model.features_) != len(model.center_):
        raise ValueError(f"center_ should have {len(model.features_)} features")
    has_names = _feature_names(model) is not None
    if _feature_names(inner) != (model.features_ if has_names else None):
        raise ValueError("estimator_.feature_names_in_ should be features_")


def _check_plan(model: Any) -> None:
    """Check the columns of a `TableClusterer` that have names."""
    used = [column for column in model.plan_ if column.encoder is not None]
    if model.plan_ and [column.name for column in used] != model.columns_:
        raise ValueError("columns_ should be the columns of plan_ that are used")
    for column in used:
        encoder = column.encoder
        if isinstance(encoder, CategoryEncoder):
            n_levels = len(set(encoder.levels))
            if not n_levels == len(encoder.levels) == len(encoder.shares):
                raise ValueError(
                    f"plan_ should have one share for each level of {column.name!r}"
                )


def _check_selection(model: Any) -> None:
    """Check a reducer that selects features."""
    features = model._sketch.features
    inside = features[0] >= 0 and features[-1] < model.n_features_in_
    if not inside or (features[1:] <= features[:-1]).any():
        raise ValueError(
            "_sketch.features should be ascending and below "
            f"n_features_in_={model.n_features_in_}"
        )


def _check_signs(model: Any) -> None:
    """Check a `SignProjection`."""
    signs = model._sketch
    if signs.bits.shape[1] != -(-signs.width // 8):
        raise ValueError(f"_sketch.bits.shape={signs.bits.shape} should fit the width")


def _warn_of_rows(model: Any) -> str | None:
    """Return a warning of the size of the training rows."""
    if is_given(model.kernel_):
        return None
    rows = model.X_fit_
    size = rows.data.nbytes if hasattr(rows, "indptr") else np.asarray(rows).nbytes
    return (
        f"The model file of a KernelKMeans holds all {rows.shape[0]:,} training rows, "
        f"{format_bytes(size)}, as prediction needs them. That of a NystromKMeans "
        "holds its landmarks only."
    )


# --- the table ------------------------------------------------------------------------


def _spec(cls: type[Any], *fitted_and_derived: Any, **checks: Any) -> Spec:
    names = constructor_parameters(cls)
    params = {name: PARAMETERS[name] for name in names}
    return Spec(cls, params, *fitted_and_derived, **checks)


_GAMMA = {"gamma_": lambda model: getattr(model.kernel_, "gamma", None)}
_WIDTH = {"n_components_": lambda model: model._sketch.width}

_SPECS = [
    _spec(
        KernelKMeans,
        {
            **_KERNEL_CLUSTERER,
            "X_fit_": rows("m", "w"),
            "_variances": Maybe(Tensor(("k",))),
        },
        _GAMMA,
        check=lambda model: _check_points(model, "X_fit_"),
        warn=_warn_of_rows,
    ),
    _spec(
        NystromKMeans,
        {
            **_KERNEL_CLUSTERER,
            **_LANDMARKS,
            "landmark_path_": nullable(_PATH),
            "rank_": _COUNT,
            "reducer_": nullable(Object(_REDUCERS)),
            "_means": Maybe(Tensor(("k", "m"))),
            "_masses": Maybe(Tensor(("k",))),
            "_shift": Maybe(Tensor(("d",))),
        },
        _GAMMA,
        check=_check_nystrom,
    ),
    _spec(
        SketchedKMeans,
        {
            **_CLUSTERER,
            "cluster_centers_": Tensor(("k", "d")),
            "reducer_": nullable(Object(_REDUCERS)),
            "_shift": Tensor(("d",)),
        },
        check=_check_sketched,
    ),
    _spec(
        SpectralKMeans,
        {
            **_CLUSTERER,
            "n_clusters_": Size("k"),
            "ncut_": REAL,
            "ncut_bound_": REAL,
            "eigenvalues_": Tensor(("values",)),
            "eigengaps_": Tensor(("gaps",)),
            "scale_path_": _SCALES,
            "landmarks_": nullable(rows("m", "d")),
            "n_neighbors_": nullable(_COUNT),
            "gamma_": nullable(REAL),
            "whitening_": nullable(Tensor(("d", "white"))),
            "dual_coef_": Tensor(("m", "k")),
            "_squared_norms": Tensor(("k",)),
            "_scales": nullable(Tensor(("m",))),
            "_masses": Tensor(("m",)),
            "_shares": nullable(Tensor(("m",))),
        },
        check=_check_spectral,
    ),
    _spec(
        TableClusterer,
        {
            **_FEATURES,
            "dialect_": Maybe(nullable(PLAIN_DICT)),  # of a fit on a text table
            "columns_": Columns("d"),
            "plan_": Many(_PLAN),
            "column_weights_": Maybe(Tensor(("d",))),
            "center_": Tensor(("features",)),
            "scale_": Tensor(("features",)),
            "fill_": nullable(Tensor(("features",))),
            "n_scale_rows_": _COUNT,
            "n_dropped_": integer(0),
            "n_filled_": integer(0),
            "estimator_": Object(_CLUSTERERS),
            "exemplar_indices_": Tensor(("k",), "i"),
        },
        check=_check_table,
    ),
    _spec(
        Nystrom,
        {
            **_FEATURES,
            "components_": rows("m", "w"),
            "component_indices_": nullable(Tensor(("m",), "i")),
            "kernel_": Object(_KERNELS),
            "_root": Tensor(("m", "r")),
            "rank_": Size("r"),
        },
        _GAMMA,
        check=_check_nystrom,
    ),
    _spec(
        FeatureSampling,
        {
            **_FEATURES,
            "probabilities_": Tensor(("d",)),
            "counts_": Tensor(("r",), "i"),
            "_sketch": _SELECTION,
        },
        {**_WIDTH, "scale_": lambda model: model._sketch.scale},
        check=_check_selection,
    ),
    _spec(
        LaplacianScore,
        {**_FEATURES, "scores_": Tensor(("d",), finite=False), "_sketch": _SELECTION},
        _WIDTH,
        check=_check_selection,
    ),
    _spec(
        ApproximateSVD,
        {**_FEATURES, "singular_values_": Tensor(("r",)), "_sketch": _PROJECTION},
        {**_WIDTH, "components_": lambda model: model._sketch.matrix.T},
    ),
    _spec(
        SignProjection,
        {**_FEATURES, "_sketch": _SIGNS},
        {**_WIDTH, "signs_": lambda model: model._sketch.bits},
        check=_check_signs,
    ),
    *(_spec(cls) for cls in (*_KERNELS, *_SELECTORS, *_SEEDINGS)),
]

_RECORDS = (
    _BOOLEAN,
    _CATEGORY,
    _DATE,
    _NUMBER,
    _PATH,
    _PLAN,
    _PROJECTION,
    _SCALES,
    _SELECTION,
    _SIGNS,
)

#: What is known of classes and of records, by the name that files use.
SPECS = {spec.name: spec for spec in _SPECS}
RECORDS = {record.name: record for record in _RECORDS}


Known = TypeVar("Known", Spec, Record)


def find_class(table: Mapping[str, Known], value: Any) -> Known | None:
    """Return what a table knows of an object's class; a subclass is another class."""
    found = table.get(type(value).__name__)
    return found if found is not None and found.cls is type(value) else None
