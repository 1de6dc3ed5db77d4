"""Checks across the fitted attributes of a model, and a warning of large ones."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from sketchmeans.cluster.reference import LEVELS, TAIL_SHARES, column_spans
from sketchmeans.data.preparation import CategoryEncoder, OrdinalEncoder
from sketchmeans.data.sources import Dialect
from sketchmeans.kernels import Pairwise, Precomputed, is_given
from sketchmeans.numerics.memory import format_bytes
from sketchmeans.persistence.kinds import REAL, Tensor


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


def check_points(model: Any, name: str, *, reduced: bool = False) -> None:
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
    check_reference(model)


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


def check_nystrom(model: Any) -> None:
    """Check a `NystromKMeans` or a `Nystrom`."""
    name = "landmarks_" if hasattr(model, "landmarks_") else "components_"
    reduced = getattr(model, "reducer_", None) is not None
    check_points(model, name, reduced=reduced)
    if model.rank_ > getattr(model, name).shape[0]:
        raise ValueError(f"rank_={model.rank_} should be at most that of {name}")


def check_sketched(model: Any) -> None:
    """Check a `SketchedKMeans`."""
    if model.reducer_ is not None:
        _check_same_features(model, "reducer_")
    check_reference(model)


def check_spectral(model: Any) -> None:
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
    check_reference(model)


def check_table(model: Any) -> None:
    """Check a `TableClusterer`."""
    Dialect.from_dict(getattr(model, "dialect_", None) or {})
    inner = model.estimator_
    if inner.n_features_in_ != len(model.center_):
        raise ValueError(
            f"estimator_.n_features_in_={inner.n_features_in_} should be "
            f"{len(model.center_)}"
        )
    is_own = hasattr(inner, "cluster_sizes_")  # and not one of scikit-learn
    n_exemplars = len(getattr(model, "exemplar_indices_", ()))
    if n_exemplars != (len(inner.cluster_sizes_) if is_own else 0):
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
    has_names = _feature_names(model) is not None and is_own
    if _feature_names(inner) != (model.features_ if has_names else None):
        raise ValueError("estimator_.feature_names_in_ should be features_")
    check_reference(model)


def _check_plan(model: Any) -> None:
    """Check the columns of a `TableClusterer` that have names."""
    used = [column for column in model.plan_ if column.encoder is not None]
    if model.plan_ and [column.name for column in used] != model.columns_:
        raise ValueError("columns_ should be the columns of plan_ that are used")
    for column in used:
        encoder = column.encoder
        if isinstance(encoder, OrdinalEncoder) and not encoder.levels:
            raise ValueError(f"plan_ should have levels of {column.name!r}")
        if isinstance(encoder, CategoryEncoder):
            n_levels = len(set(encoder.levels))
            if not n_levels == len(encoder.levels) == len(encoder.shares):
                raise ValueError(
                    f"plan_ should have one share for each level of {column.name!r}"
                )


def check_reference(model: Any) -> None:
    """Check what a model keeps of the rows of its fit, if it does."""
    found = getattr(model, "reference_", None)
    if found is None:
        return
    if len(found.tail) != len(TAIL_SHARES) or (np.diff(found.tail) < 0.0).any():
        raise ValueError(f"reference_.tail should be {len(TAIL_SHARES)} rising scores")
    if found.scales.min() <= 0.0:
        raise ValueError("reference_.scales should be positive")
    if (counts := found.columns) is None:
        return
    columns = column_spans(model)
    levels = [column.levels for column in columns if column.levels is not None]
    n_numbers, n_levels = len(columns) - len(levels), sum(len(v) + 1 for v in levels)
    shapes = {
        "edges": (found.edges, (n_numbers, len(LEVELS))),
        "columns.bins": (counts.bins, (n_numbers, len(LEVELS) + 1)),
        "columns.levels": (counts.levels, (n_levels,)),
    }
    for name, (values, shape) in shapes.items():
        if (None if values is None else values.shape) != (shape if shape[0] else None):
            raise ValueError(f"reference_.{name} should be of shape {shape}")


def check_selection(model: Any) -> None:
    """Check a reducer that selects features."""
    features = model._sketch.features
    inside = features[0] >= 0 and features[-1] < model.n_features_in_
    if not inside or (features[1:] <= features[:-1]).any():
        raise ValueError(
            "_sketch.features should be ascending and below "
            f"n_features_in_={model.n_features_in_}"
        )


def check_signs(model: Any) -> None:
    """Check a `SignProjection`."""
    signs = model._sketch
    if signs.bits.shape[1] != -(-signs.width // 8):
        raise ValueError(f"_sketch.bits.shape={signs.bits.shape} should fit the width")


def warn_of_rows(model: Any) -> str | None:
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
