"""The table of everything that a model file may hold.

To add a class: a line in `_SPECS`, with the kinds of its fitted attributes, and lines
in `PARAMETERS` for parameters of a new name.  Nothing depends on where a class lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any

from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from sketchmeans.cluster import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
)
from sketchmeans.cluster.scales import ScalePath
from sketchmeans.cluster.table import TableClusterer
from sketchmeans.engine.init import KMeansPlusPlus, LocalSearch, RandomSeeding
from sketchmeans.kernels import KERNELS, Pairwise
from sketchmeans.landmarks import SELECTORS, LandmarkPath
from sketchmeans.nystrom import Nystrom
from sketchmeans.persistence.consistency import (
    check_exact,
    check_nystrom,
    check_selection,
    check_signs,
    check_sketched,
    check_spectral,
    check_table,
    warn_of_rows,
)
from sketchmeans.persistence.kinds import (
    FLAG,
    INTEGER,
    NONZERO,
    PLAIN_DICT,
    PLAIN_LIST,
    REAL,
    Columns,
    Kind,
    Maybe,
    Names,
    Object,
    OneOf,
    Record,
    Size,
    Sizes,
    Tensor,
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
_SEEDINGS = frozenset({KMeansPlusPlus, LocalSearch, RandomSeeding})
_CLUSTERERS = frozenset({KernelKMeans, NystromKMeans, SketchedKMeans, SpectralKMeans})
_REDUCERS = frozenset({ApproximateSVD, FeatureSampling, LaplacianScore, SignProjection})

# --- parameters -----------------------------------------------------------------------

_COUNT = integer(1)
_AUTO = text("auto")
_GIVEN = (text(), rows(None, None), Tensor((None,), "i"), PLAIN_LIST)
_COLUMNS = nullable(PLAIN_LIST, Names(None))

#: A parameter of this name is of this kind, in whatever class.
PARAMETERS: Mapping[str, Kind] = {
    "accelerated": FLAG,
    "affinity": text("nearest-landmarks", "rbf", "precomputed"),
    "algorithm": text("progressive", "full"),
    "coef0": REAL,
    "columns": _COLUMNS,
    "degree": REAL,
    "eps": REAL,
    "estimator": Object(_CLUSTERERS),
    "exchange": text(),
    "exclude": _COLUMNS,
    "fit_rows": nullable(_COUNT),
    "gamma": OneOf(text("auto", "mean", "median", "scale"), REAL),
    "init": OneOf(*_GIVEN, Object(_SEEDINGS)),
    "kernel": OneOf(text(*KERNELS, *PAIRWISE_KERNEL_FUNCTIONS), Object(_KERNELS)),
    "kernel_params": nullable(PLAIN_DICT),
    "landmarks": OneOf(*_GIVEN, Object(_SELECTORS)),
    "label_column": nullable(text(), INTEGER),
    "max_columns": _COUNT,
    "max_exact": _COUNT,
    "max_iter": _COUNT,
    "max_memory": nullable(text(), REAL),
    "method": text(),
    "metric": text(*PAIRWISE_KERNEL_FUNCTIONS),
    "missing": text("error", "drop", "mean"),
    "n_candidates": OneOf(_AUTO, _COUNT),
    "n_clusters": OneOf(_AUTO, _COUNT),
    "n_components": nullable(_COUNT),
    "n_init": OneOf(_AUTO, _COUNT),
    "n_jobs": nullable(NONZERO),
    "n_landmarks": OneOf(_AUTO, _COUNT),
    "n_neighbors": OneOf(_AUTO, _COUNT),
    "n_steps": OneOf(_AUTO, integer(0)),
    "order": integer(0),
    "oversampling": REAL,
    "params": nullable(PLAIN_DICT),
    "refine_max_iter": integer(0),
    "random_state": nullable(integer(0)),
    "rank": nullable(_COUNT),
    "rank_method": text("landmarks", "approximation"),
    "reducer": nullable(text(), Object(_REDUCERS)),
    "refine": FLAG,
    "replace": FLAG,
    "restarts": _COUNT,
    "ridge": nullable(REAL),
    "scale": text("standard", "robust", "none"),
    "sketch": text(),
    "sketch_size": nullable(_COUNT),
    "start": text(),
    "subsample": nullable(_AUTO, _COUNT),
    "svd": text("fast", "exact"),
    "tol": REAL,
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

# --- the table ------------------------------------------------------------------------


def constructor_parameters(cls: type[Any]) -> dict[str, bool]:
    """Return the parameters of a constructor, and whether each is required."""
    if cls.__init__ is object.__init__:  # it has none
        return {}
    parameters = list(signature(cls.__init__).parameters.values())[1:]  # not self
    return {p.name: p.default is Parameter.empty for p in parameters}


def _accept(model: Any) -> None:
    """Accept everything, without a warning."""


@dataclass(frozen=True)
class Spec:
    """One class: its parameters, and the attributes that its `fit` sets.

    Attributes
    ----------
    cls : type
        The constructor takes the parameters and only stores them.
    fitted : mapping of str to Kind
        In the file; whatever else `fit` sets is left out.
    derived : mapping of str to callable
        Attributes that follow from those in the file.
    check : callable
        Raises ValueError where attributes contradict one another.
    warn : callable
        Returns what a user should know when such a model is saved, or None.
    """

    cls: type[Any]
    fitted: Mapping[str, Kind] = field(default_factory=dict)
    derived: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    check: Callable[[Any], None] = _accept
    warn: Callable[[Any], str | None] = _accept

    @property
    def name(self) -> str:
        """What files call the class."""
        return self.cls.__name__

    @property
    def params(self) -> dict[str, Kind]:
        """The kinds of the parameters of the constructor."""
        return {name: PARAMETERS[name] for name in constructor_parameters(self.cls)}

    def check_params(self, model: Any, where: str) -> None:
        """Raise if a parameter is of another kind."""
        for name, kind in self.params.items():
            kind.check(getattr(model, name), f"{where}{name}", {})
        # An estimator knows more of its parameters than their kinds do.
        getattr(model, "_check_params", lambda: None)()

    def check_fitted(self, model: Any, where: str) -> None:
        """Raise if a fitted attribute is missing or of another kind; set the others."""
        sizes: Sizes = {}
        for name, kind in self.fitted.items():
            if name in vars(model):
                kind.check(getattr(model, name), f"{where}{name}", sizes)
            elif not isinstance(kind, Maybe):
                raise ValueError(f"{where}{name} is missing")
        self.check(model)
        for name, value in self.derived.items():
            setattr(model, name, value(model))


_GAMMA = {"gamma_": lambda model: getattr(model.kernel_, "gamma", None)}
_WIDTH = {"n_components_": lambda model: model._sketch.width}

_SPECS = [
    Spec(
        KernelKMeans,
        {
            **_KERNEL_CLUSTERER,
            "X_fit_": rows("m", "w"),
            "_variances": Maybe(Tensor(("k",))),
        },
        _GAMMA,
        check=check_exact,
        warn=warn_of_rows,
    ),
    Spec(
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
    Spec(
        SketchedKMeans,
        {
            **_CLUSTERER,
            "cluster_centers_": Tensor(("k", "d")),
            "reducer_": Object(_REDUCERS),
            "_shift": Tensor(("d",)),
        },
        check=check_sketched,
    ),
    Spec(
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
    Spec(
        TableClusterer,
        {
            **_FEATURES,
            "columns_": Columns("d"),
            "center_": Tensor(("d",)),
            "scale_": Tensor(("d",)),
            "fill_": nullable(Tensor(("d",))),
            "n_scale_rows_": _COUNT,
            "n_dropped_": integer(0),
            "estimator_": Object(_CLUSTERERS),
            "exemplar_indices_": Tensor(("k",), "i"),
        },
        check=check_table,
    ),
    Spec(
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
    Spec(
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
    Spec(
        LaplacianScore,
        {**_FEATURES, "scores_": Tensor(("d",), finite=False), "_sketch": _SELECTION},
        _WIDTH,
        check=check_selection,
    ),
    Spec(
        ApproximateSVD,
        {**_FEATURES, "singular_values_": Tensor(("r",)), "_sketch": _PROJECTION},
        {**_WIDTH, "components_": lambda model: model._sketch.matrix.T},
    ),
    Spec(
        SignProjection,
        {**_FEATURES, "_sketch": _SIGNS},
        {**_WIDTH, "signs_": lambda model: model._sketch.bits},
        check=check_signs,
    ),
    *(Spec(cls) for cls in (*_KERNELS, *_SELECTORS, *_SEEDINGS)),
]

_RECORDS = (_PATH, _PROJECTION, _SCALES, _SELECTION, _SIGNS)

#: What is known of classes and of records, by the name that files use.
SPECS = {spec.name: spec for spec in _SPECS}
RECORDS = {record.name: record for record in _RECORDS}


def find_spec(value: Any) -> Spec | None:
    """Return what is known of an object's class; a subclass is another class."""
    return next((spec for spec in _SPECS if spec.cls is type(value)), None)


def find_record(value: Any) -> Record | None:
    """Return what is known of a dataclass."""
    return next((r for r in RECORDS.values() if r.cls is type(value)), None)
