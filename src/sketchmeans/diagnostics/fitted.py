"""A fitted model, and rows assigned by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sketchmeans.cluster import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
)
from sketchmeans.data.rows import Block, Rows
from sketchmeans.engine.assign import CenterMatrix
from sketchmeans.engine.space import LandmarkSpace, Space
from sketchmeans.kernels import Kernel, is_given
from sketchmeans.numerics.linalg import Array

Model = KernelKMeans | NystromKMeans | SketchedKMeans
AnyModel = Model | SpectralKMeans


def check_model(model: Any) -> Model:
    """Return a fitted estimator of this library whose cost is that of k-means."""
    if not isinstance(model, Model):
        raise ValueError(
            f"model={model!r} should be a fitted KernelKMeans, NystromKMeans or "
            "SketchedKMeans."
        )
    check_is_fitted(model, "cluster_sizes_")
    return model


def check_any_model(model: Any) -> AnyModel:
    """Return a fitted estimator of this library."""
    if not isinstance(model, SpectralKMeans):
        return check_model(model)
    check_is_fitted(model, "cluster_sizes_")
    return model


def has_given_kernel(model: AnyModel) -> bool:
    """Say whether the rows of a model are kernel values or edges, without features."""
    if isinstance(model, SpectralKMeans):
        return model.landmarks_ is None
    return not isinstance(model, SketchedKMeans) and is_given(model.kernel_)


def check_given_rows(kernel: Kernel, rows: Rows) -> None:
    """Raise if a given matrix is not that of the rows of the fit."""
    if is_given(kernel) and len(rows) != rows.n_features:
        raise ValueError(
            f"X.shape={rows.X.shape} should be ({rows.n_features}, {rows.n_features}) "
            "with kernel='precomputed': the kernel matrix of the fit."
        )


def fitted_space(model: AnyModel, rows: Rows) -> Space:
    """Return the space of the centres, for rows in the form that the model clusters."""
    if isinstance(model, SketchedKMeans | SpectralKMeans):
        return model._space(rows)
    if not is_given(model.kernel_):
        return model._space(rows)
    check_given_rows(model.kernel_, rows)
    return LandmarkSpace(
        model.kernel_,
        model._span_points(),
        rows.dtype,
        rows.workers,
        diagonal=model.kernel_.row_diagonal(rows),
    )


def divide(a: Array, b: Array, otherwise: float | Array) -> Array:
    """Return ``a/b`` where b is positive, and another value elsewhere."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    result = np.array(np.broadcast_to(otherwise, shape), dtype=np.float64)
    return np.divide(a, b, out=result, where=b > 0.0)


@dataclass(frozen=True)
class NearestCenters:
    """Labels of some rows, and the squared distances to the two nearest centres."""

    labels: Array
    own: Array
    next: Array

    @property
    def margins(self) -> Array:
        """``1 − own/next`` of the distances: 0 on a border, 1 at a centre."""
        return np.asarray(1.0 - np.sqrt(divide(self.own, self.next, 1.0)))


class Assigner:
    """Finds the two nearest centres of a model for blocks of rows."""

    def __init__(self, model: AnyModel, rows: Rows) -> None:
        self.space = fitted_space(model, rows)
        self._table = CenterMatrix(
            model._centers(self.space),
            self.space.dtype,
            self.space.height,
            is_euclidean=self.space.is_euclidean,
        )

    def __call__(self, block: Block, numbers: Array) -> NearestCenters:
        """Return the nearest centres; at most ``space.height`` rows at a time."""
        return self._find_nearest(*self._values(block, numbers))

    def measure(self, block: Block, numbers: Array) -> tuple[NearestCenters, Array]:
        """Return the nearest centres, and the squared distances to all of them."""
        values = self._values(block, numbers)
        squared = self._table.distances(*values).astype(np.float64)
        return self._find_nearest(*values), squared

    def _values(self, block: Block, numbers: Array) -> tuple[Array, Array | float]:
        """Return kernel values of rows and their squared norms."""
        norms = self.space.constant_norm
        return (
            self.space.kernel_block(block),
            self.space.row_norms(block, numbers) if norms is None else norms,
        )

    def _find_nearest(self, b: Array, norms: Array | float) -> NearestCenters:
        found = self._table.assign(b, norms)
        own, after = found.distances[:, 0], np.maximum(found.second, 0.0)
        return NearestCenters(
            found.labels[:, 0].astype(np.int32),
            own.astype(np.float64),
            after.astype(np.float64),
        )
