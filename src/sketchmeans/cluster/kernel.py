"""What exact and Nyström kernel k-means share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from sketchmeans.cluster.bandwidth import choose_bandwidth
from sketchmeans.cluster.base import Clusterer
from sketchmeans.data.rows import Block, Rows, float_type
from sketchmeans.engine.space import SpanSpace, landmark_space
from sketchmeans.engine.types import Centers
from sketchmeans.kernels import (
    Kernel,
    check_kernel_matrix,
    is_given,
    kernel_of,
    toarray,
    typical_exponent,
    warn_if_indefinite,
)
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.memory import plan_memory
from sketchmeans.numerics.parallel import Workers, process_buffers
from sketchmeans.numerics.parameters import is_auto, warn_user

#: Exponents of the kernel below which float32 keeps less than three digits of a
#: distance, and below which it makes no sense to look for clusters.
_FLOAT32_NEAR, _ALL_NEAR = 2.0**-10, 1e-6
#: Share of all pairs that are near where only few rows, about one in 20, are far: where
#: more are, they are a tight group as the others are, and the bandwidth is right.
_MOST_PAIRS = 0.9


#: Spaces of fitted models with few landmarks: to prepare them takes longer than to
#: predict a row.  They are neither copied nor saved with the models.
_SPACES: WeakKeyDictionary[Any, SpanSpace] = WeakKeyDictionary()
_PREPARED_VALUES = 2**23


class KernelClusterer(Clusterer):
    """k-means in the feature space of a kernel, with centres in the span of rows."""

    kernel: str | Kernel | Callable[..., float]
    gamma: Gamma
    degree: float
    coef0: float
    kernel_params: Mapping[str, Any] | None
    max_memory: float | str | None

    dual_coef_: Array
    kernel_: Kernel
    _squared_norms: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_given(self.kernel)
        return tags

    def _training_rows(self, X: Any, sample_weight: Any, workers: Workers) -> Rows:
        rows = super()._training_rows(X, sample_weight, workers)
        if self.__sklearn_tags__().input_tags.pairwise:
            self._check_copy(rows)
            K = _kernel_matrix(rows.load())
            return Rows(K, workers, rows.weights).with_unit(rows.weight_unit)
        return rows

    def _check_copy(self, rows: Rows) -> None:
        """Raise where a given matrix must be copied to floats and does not fit."""
        is_float = not rows.is_sparse and rows.X.dtype == rows.dtype
        if is_float and not rows.load_memory:
            return
        plan_memory(
            len(rows) * rows.n_features * rows.dtype.itemsize,
            self.max_memory,
            "A dense float copy of the precomputed matrix needs {}",
            "Give an array of floats or raise max_memory.",
        )

    def _resolved_kernel(self, rows: Rows, rng: np.random.Generator) -> Kernel:
        """Return the kernel with its bandwidth as a number."""
        if is_auto(self.gamma):
            kernel = choose_bandwidth(self, rows, rng)
        else:
            kernel = kernel_of(self).resolve(rows, rng)
        warn_if_indefinite(kernel)
        self._check_bandwidth(kernel, rows, rng)
        return kernel

    def _check_bandwidth(
        self, kernel: Kernel, rows: Rows, rng: np.random.Generator
    ) -> None:
        """Make sure that rows that are close for their bandwidth stay distinct.

        Where most kernel values are close to one, what float32 keeps of them is not
        enough: they are computed in float64.
        """
        if kernel.features(rows.block(0, 1)) is not None and not is_given(kernel):
            rows.widen_for(rows.moments().variance)
        exponent = typical_exponent(kernel, rows, rng)
        if exponent >= _FLOAT32_NEAR:
            return
        rows.dtype = np.dtype(np.float64)
        if exponent >= _ALL_NEAR or not isinstance(self.gamma, str):
            return
        if typical_exponent(kernel, rows, rng, _MOST_PAIRS) < _ALL_NEAR:
            warn_user(
                f"gamma={self.gamma!r} is {getattr(kernel, 'gamma', 0.0):.3g}, at "
                "which most kernel values are close to 1: a few outlying rows set it. "
                "Use gamma='median', or leave out such rows.",
            )

    def _store_kernel(self, kernel: Kernel, rows: Rows, exemplars: Array) -> None:
        self.kernel_ = kernel
        self.gamma_ = getattr(kernel, "gamma", None)
        if not is_given(kernel):
            self.exemplars_ = rows.take(exemplars)

    def _span_points(self) -> Block:
        """Return the points whose span holds the centres."""
        raise NotImplementedError  # pragma: no cover - abstract

    def _space(self, rows: Rows) -> SpanSpace:
        points = self._span_points()
        if is_given(self.kernel_):
            return landmark_space(self.kernel_, points, rows.dtype, rows.workers)
        kernel, dtype, space = self.kernel_, float_type(points.dtype), _SPACES.get(self)
        if space is None or space.kernel is not kernel or space.landmarks is not points:
            space = landmark_space(kernel, points, dtype, process_buffers())
            if points.shape[0] * points.shape[1] <= _PREPARED_VALUES:
                _SPACES[self] = space
        return space

    def _centers(self, space: Any) -> Centers:
        return space.read_centers(self.dual_coef_, self._squared_norms)


def as_precise(points: Block, dtype: np.dtype[Any]) -> Block:
    """Return points in float64 if values are computed in it, else as they are stored.

    Prediction works in the float type of the points.
    """
    if np.promote_types(float_type(points.dtype), dtype) == float_type(points.dtype):
        return points
    return points.astype(dtype)


def _kernel_matrix(rows: Rows) -> Array:
    """Return a given kernel matrix as a dense array of floats, if it is one.

    An array of floats is taken as it is.
    """
    check_kernel_matrix(rows)
    K = toarray(rows.X).astype(rows.dtype, copy=False)
    return K.T if K.flags.f_contiguous else K  # its mirror image, in C order
