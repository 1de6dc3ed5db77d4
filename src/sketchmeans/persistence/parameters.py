"""Parameters: what each name stands for, in whatever class."""

from __future__ import annotations

from collections.abc import Mapping

from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from sketchmeans.cluster import KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.engine.init import KMeansPlusPlus, LocalSearch, RandomSeeding
from sketchmeans.kernels import KERNELS, Pairwise
from sketchmeans.landmarks import SELECTORS
from sketchmeans.persistence.kinds import (
    Flag,
    Integer,
    Jobs,
    Kind,
    Names,
    Object,
    OneOf,
    PlainDict,
    PlainList,
    Real,
    Rows,
    Tensor,
    Text,
    nullable,
)
from sketchmeans.reduction import (
    ApproximateSVD,
    FeatureSampling,
    LaplacianScore,
    SignProjection,
)

KERNEL_CLASSES = frozenset(KERNELS.values()) | {Pairwise}
SELECTOR_CLASSES = frozenset(type(make()) for make in SELECTORS.values())
CLUSTERER_CLASSES = frozenset({KernelKMeans, NystromKMeans, SketchedKMeans})
SEEDING_CLASSES = frozenset({KMeansPlusPlus, LocalSearch, RandomSeeding})
REDUCER_CLASSES = frozenset(
    {ApproximateSVD, FeatureSampling, LaplacianScore, SignProjection}
)

COUNT = Integer(1)
_AUTO = Text(("auto",))
_POINTS, _NUMBERS = Rows((None, None)), Tensor((None,), "i")
_REDUCER = OneOf(Text(), Object(REDUCER_CLASSES))
_COLUMNS = nullable(OneOf(PlainList(), Names(None)))

#: A parameter of this name is of this kind, in whatever class.
PARAMETERS: Mapping[str, Kind] = {
    "accelerated": Flag(),
    "algorithm": Text(("progressive", "full")),
    "coef0": Real(),
    "columns": _COLUMNS,
    "degree": Real(),
    "eps": Real(),
    "estimator": Object(CLUSTERER_CLASSES),
    "exchange": Text(),
    "exclude": _COLUMNS,
    "fit_rows": nullable(COUNT),
    "gamma": OneOf(Text(("mean", "median", "scale")), Real()),
    "init": OneOf(Text(), _POINTS, _NUMBERS, PlainList(), Object(SEEDING_CLASSES)),
    "kernel": OneOf(
        Text((*KERNELS, *PAIRWISE_KERNEL_FUNCTIONS)),
        Object(KERNEL_CLASSES),
    ),
    "kernel_params": nullable(PlainDict()),
    "landmarks": OneOf(
        Text(), _POINTS, _NUMBERS, PlainList(), Object(SELECTOR_CLASSES)
    ),
    "label_column": nullable(OneOf(Text(), Integer())),
    "max_columns": COUNT,
    "max_exact": COUNT,
    "max_iter": COUNT,
    "max_memory": OneOf(nullable(Text()), Real()),
    "method": Text(),
    "metric": Text(tuple(PAIRWISE_KERNEL_FUNCTIONS)),
    "missing": Text(("error", "drop", "mean")),
    "n_candidates": OneOf(_AUTO, COUNT),
    "n_clusters": COUNT,
    "n_components": nullable(COUNT),
    "n_init": OneOf(_AUTO, COUNT),
    "n_jobs": nullable(Jobs()),
    "n_landmarks": OneOf(_AUTO, COUNT),
    "n_neighbors": COUNT,
    "n_steps": OneOf(_AUTO, Integer(0)),
    "order": Integer(0),
    "oversampling": Real(),
    "params": nullable(PlainDict()),
    "polish": Integer(0),
    "random_state": nullable(Integer(0)),
    "rank": nullable(COUNT),
    "rank_method": Text(("landmarks", "approximation")),
    "reducer": nullable(_REDUCER),
    "refine": Flag(),
    "replace": Flag(),
    "restarts": COUNT,
    "ridge": nullable(Real()),
    "scale": Text(("standard", "robust", "none")),
    "sketch": Text(),
    "sketch_size": nullable(COUNT),
    "start": Text(),
    "subsample": OneOf(nullable(_AUTO), COUNT),
    "svd": Text(("fast", "exact")),
    "tol": Real(),
    "verbose": OneOf(Flag(), Integer(0)),
}
