"""Pipelines in model files: steps of scikit-learn that are arrays and plain numbers.

To add a step: a `Spec` in `STEP_SPECS`, with the parameters that its `transform` looks
at, and the fitted attributes.  Other parameters have to be at their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from sketchmeans.persistence.kinds import (
    FLAG,
    PLAIN,
    REAL,
    Kind,
    Many,
    Maybe,
    Names,
    OneOf,
    Size,
    Sizes,
    Spec,
    Tensor,
    integer,
    nullable,
    text,
)

_WIDE = Tensor(("d",))
_FEATURES: Mapping[str, Kind] = {
    "n_features_in_": Size("d"),
    "feature_names_in_": Maybe(Names("d")),
}
_SEEN = {"n_samples_seen_": OneOf(REAL, Tensor(("d",), "n"))}
_COMPONENTS: Mapping[str, Kind] = {
    **_FEATURES,
    "components_": Tensor(("r", "d")),
    **dict.fromkeys(
        ("explained_variance_", "explained_variance_ratio_", "singular_values_"),
        Tensor(("r",)),
    ),
}
_SOLVER = dict.fromkeys(
    ("tol", "n_oversamples", "power_iteration_normalizer", "random_state"), PLAIN
)


def _check_imputer(model: Any) -> None:
    if np.isinf(model.statistics_).any():
        raise ValueError("statistics_ should not hold infinity")


#: Steps of scikit-learn that a model file may hold.
STEP_SPECS = (
    Spec(
        StandardScaler,
        {"copy": FLAG, "with_mean": FLAG, "with_std": FLAG},
        {
            **_FEATURES,
            **_SEEN,
            **dict.fromkeys(("mean_", "var_", "scale_"), nullable(_WIDE)),
        },
    ),
    Spec(
        MinMaxScaler,
        {"copy": FLAG, "clip": FLAG, "feature_range": Many(REAL, 2)},
        {
            **_FEATURES,
            **_SEEN,
            **dict.fromkeys(
                ("scale_", "min_", "data_min_", "data_max_", "data_range_"), _WIDE
            ),
        },
    ),
    Spec(
        MaxAbsScaler,
        {"copy": FLAG},
        {**_FEATURES, **_SEEN, "scale_": _WIDE, "max_abs_": _WIDE},
    ),
    Spec(
        RobustScaler,
        {
            **dict.fromkeys(("copy", "with_centering", "with_scaling"), FLAG),
            "unit_variance": FLAG,
            "quantile_range": Many(REAL, 2),
        },
        {**_FEATURES, "center_": nullable(_WIDE), "scale_": nullable(_WIDE)},
    ),
    Spec(Normalizer, {"copy": FLAG, "norm": text("l1", "l2", "max")}, _FEATURES),
    Spec(
        SimpleImputer,
        {
            "copy": FLAG,
            "strategy": text("mean", "median", "most_frequent", "constant"),
            "fill_value": nullable(REAL),
            "keep_empty_features": FLAG,
        },
        {**_FEATURES, "statistics_": Tensor(("d",), finite=False)},
        {
            "indicator_": lambda model: None,
            "_fit_dtype": lambda model: model.statistics_.dtype,
            "_fill_dtype": lambda model: model.statistics_.dtype,
        },
        check=_check_imputer,
    ),
    Spec(
        PCA,
        {
            **dict.fromkeys(("n_components", "svd_solver", "iterated_power"), PLAIN),
            **_SOLVER,
            "copy": FLAG,
            "whiten": FLAG,
        },
        {
            **_COMPONENTS,
            "mean_": _WIDE,
            "n_components_": Size("r"),
            "n_samples_": integer(1),
            "noise_variance_": REAL,
        },
    ),
    Spec(
        TruncatedSVD,
        {
            "n_components": integer(1),
            "algorithm": text("arpack", "randomized"),
            "n_iter": PLAIN,
            **_SOLVER,
        },
        _COMPONENTS,
    ),
)


@dataclass(frozen=True)
class Steps:
    """The steps of a pipeline: transformers, and a clusterer at the end."""

    transformers: frozenset[type]
    clusterers: frozenset[type]

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        text_of = text()
        if not isinstance(value, list | tuple) or not value:
            raise ValueError(f"{where} should be a list of steps")
        for i, step in enumerate(value):
            if not isinstance(step, list | tuple) or len(step) != 2:
                raise ValueError(f"{where}[{i}] should be a name and a step")
            text_of.check(step[0], f"{where}[{i}][0]", sizes)
            self._check_step(*step, is_last=i == len(value) - 1)
        if len({name for name, _ in value}) < len(value):
            raise ValueError(f"{where} should have different names")
        self._check_widths(value)

    def _check_step(self, name: str, step: Any, *, is_last: bool) -> None:
        known = self.clusterers if is_last else self.transformers
        if type(step) in known or (step == "passthrough" and not is_last):
            return
        listed = ", ".join(sorted(cls.__name__ for cls in known))
        which = "the last step" if is_last else "a step before the last"
        raise ValueError(
            f"step {name!r} is a {type(step).__name__}, and model files know as "
            f"{which}: {listed}. TableClusterer prepares categories, dates and gaps, "
            "and can be saved"
        )

    def _check_widths(self, steps: Any) -> None:
        width = None
        for name, step in steps:
            if isinstance(step, str):
                continue
            is_last = type(step) in self.clusterers
            takes_more = hasattr(step, "columns_")  # of which it uses some
            if width not in (None, step.n_features_in_) and not takes_more:
                raise ValueError(
                    f"step {name!r} has n_features_in_={step.n_features_in_}, and the "
                    f"one before it gives {width}"
                )
            width = None if is_last else len(step.get_feature_names_out())


def pipeline_spec(transformers: frozenset[type], clusterers: frozenset[type]) -> Spec:
    """Return what is known of pipelines; the steps are fitted objects."""
    steps = transformers | {spec.cls for spec in STEP_SPECS}
    return Spec(
        Pipeline,
        {"steps": Steps(frozenset(steps), clusterers), "verbose": FLAG},
        holds_fitted=frozenset({"steps"}),
    )
