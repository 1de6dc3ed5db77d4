"""The table of everything that a model file may hold.

To add a class: a line in `_SPECS`, with the kinds of its fitted attributes, and lines
in `PARAMETERS` for parameters of a new name.  Nothing depends on where a class lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from sketchmeans.cluster import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
)
from sketchmeans.cluster.reference import ColumnCounts, Reference
from sketchmeans.cluster.scales import ScalePath
from sketchmeans.cluster.segment_names import MAX_NAME_LENGTH
from sketchmeans.cluster.table import TableClusterer
from sketchmeans.cluster.table_steps import GAPS, SCALES
from sketchmeans.engine.init import SEEDINGS, AutoSeeding
from sketchmeans.kernels import KERNELS, Pairwise
from sketchmeans.landmarks import SELECTORS, LandmarkPath
from sketchmeans.numerics.memory import is_memory_size
from sketchmeans.nystrom import Nystrom
from sketchmeans.persistence.checks import (
    check_nystrom,
    check_points,
    check_selection,
    check_signs,
    check_sketched,
    check_spectral,
    check_table,
    warn_of_rows,
)
from sketchmeans.persistence.foreign import FOREIGN_SPECS
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
from sketchmeans.persistence.pipelines import STEP_SPECS, pipeline_spec
from sketchmeans.persistence.plans import PLAN, PLAN_RECORDS
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
_SEEDINGS = frozenset(type(make()) for make in SEEDINGS.values()) - {AutoSeeding}
_CLUSTERERS = frozenset({KernelKMeans, NystromKMeans, SketchedKMeans, SpectralKMeans})
_WITHIN_TABLES = Object(
    _CLUSTERERS | {spec.cls for spec in FOREIGN_SPECS},
    ": a model file holds arrays and no code. Keep others with a library for this, "
    "such as skops",
)
_REDUCERS = frozenset({ApproximateSVD, FeatureSampling, LaplacianScore, SignProjection})

# --- parameters -----------------------------------------------------------------------

_COUNT = integer(1)
_AUTO = text("auto")
_NAME = Plain(
    lambda v: isinstance(v, str) and 0 < len(v) <= MAX_NAME_LENGTH and v.isprintable(),
    f"a printable text of 1 to {MAX_NAME_LENGTH} characters",
)
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
    "estimator": _WITHIN_TABLES,
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
#: What is kept of the rows of the fit, if the model was calibrated.
_COUNTS = Record(
    "ColumnCounts",
    ColumnCounts,
    {
        "n_rows": _COUNT,
        "missing": Tensor(("d",), "i"),
        "bins": nullable(Tensor(("numbers", "bins"), "i")),
        "levels": nullable(Tensor(("levels",), "i")),
    },
)
_REFERENCE = Record(
    "Reference",
    Reference,
    {
        "n_rows": _COUNT,
        "n_sampled": _COUNT,
        "sizes": Tensor(("k",), "i"),
        "variance": POSITIVE,
        "scales": Tensor(("k",)),
        "tail": Tensor(("tail",)),
        "edges": nullable(Tensor(("numbers", "edges"))),
        "columns": nullable(_COUNTS),
    },
)
_SEGMENTS: Mapping[str, Kind] = {"segment_names_": Maybe(Many(_NAME, "k"))}
_CLUSTERER: Mapping[str, Kind] = {
    **_FEATURES,
    "reference_": Maybe(_REFERENCE),
    "cost_": REAL,
    "inertia_": REAL,
    "cost_path_": Tensor(("passes",)),
    "n_iter_": _COUNT,
    "converged_": FLAG,
    "cluster_sizes_": Tensor(("k",)),
    "exemplar_indices_": Tensor(("k",), "i"),
    "exemplars_": Maybe(rows("k", "d")),
    **_SEGMENTS,
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
        check=lambda model: check_points(model, "X_fit_"),
        warn=warn_of_rows,
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
        check=check_nystrom,
    ),
    _spec(
        SketchedKMeans,
        {
            **_CLUSTERER,
            "cluster_centers_": Tensor(("k", "d")),
            "reducer_": nullable(Object(_REDUCERS)),
            "_shift": Tensor(("d",)),
        },
        check=check_sketched,
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
        check=check_spectral,
    ),
    _spec(
        TableClusterer,
        {
            **_FEATURES,
            "dialect_": Maybe(nullable(PLAIN_DICT)),  # of a fit on a text table
            "columns_": Columns("d"),
            "plan_": Many(PLAN),
            "column_weights_": Maybe(Tensor(("d",))),
            "center_": Tensor(("features",)),
            "scale_": Tensor(("features",)),
            "fill_": nullable(Tensor(("features",))),
            "n_scale_rows_": _COUNT,
            "n_dropped_": integer(0),
            "n_filled_": integer(0),
            "estimator_": _WITHIN_TABLES,
            "exemplar_indices_": Maybe(Tensor(("k",), "i")),
            "reference_": Maybe(_REFERENCE),
            **_SEGMENTS,
        },
        check=check_table,
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
        check=check_nystrom,
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
        check=check_selection,
    ),
    _spec(
        LaplacianScore,
        {**_FEATURES, "scores_": Tensor(("d",), finite=False), "_sketch": _SELECTION},
        _WIDTH,
        check=check_selection,
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
        check=check_signs,
    ),
    *(_spec(cls) for cls in (*_KERNELS, *_SELECTORS, *_SEEDINGS)),
    *STEP_SPECS,
    *FOREIGN_SPECS,
    pipeline_spec(_REDUCERS | {Nystrom}, _CLUSTERERS | {TableClusterer}),
]

_RECORDS = (
    *PLAN_RECORDS,
    _COUNTS,
    _PATH,
    _PROJECTION,
    _REFERENCE,
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
