"""Where centroids live: kernel values of rows, and centroids from their means.

Lloyd's algorithm needs three things of a space: the kernel values ``b_x`` of a block
of rows, the squared norms ``‖φ(x)‖²``, and the coefficients ``α = M b̄`` of the
centroid of rows with mean kernel values ``b̄``.  Then

    ‖φ(x) − c‖² = ‖φ(x)‖² − 2 b_xᵀα + b̄ᵀα

is the exact squared distance, and no row is ever mapped to features.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Block, Rows, block_height, block_slices
from sketchmeans.engine.types import Centers
from sketchmeans.kernels import Kernel, compute_gram, squared_norms, toarray
from sketchmeans.numerics.linalg import (
    Array,
    PseudoInverse,
    check_no_overflow,
    pseudo_inverse,
    thin_svd,
)
from sketchmeans.numerics.parallel import Workers

#: Systems of many landmarks are shared out among the threads, in parts of so many
#: right-hand sides at least; the parts follow from the number of these alone.
_MANY_LANDMARKS, _LEAST_SIDES, _PARTS = 512, 32, 8

#: A coarse space has at least this many landmarks in all, and this many per cluster.
_COARSE_LANDMARKS, _COARSE_LANDMARKS_PER_CLUSTER = 200, 10

#: Rows are shifted when their mean is this many squared spreads from the origin.
_FAR = 100.0


class Space(Protocol):
    """What Lloyd's algorithm knows of the space in which it works."""

    dtype: np.dtype[Any]
    n_columns: int
    height: int
    constant_norm: float | None
    #: Whether kernel blocks can be worth keeping.
    storable: bool
    #: Whether kernel values and coefficients are points of one Euclidean space.
    is_euclidean: bool

    def kernel_block(self, block: Block, out: Array | None = None) -> Array:
        """Return ``b_x`` for every row of a block."""
        ...

    def row_norms(self, block: Block, numbers: Array) -> Array:
        """Return ``‖φ(x)‖²`` for every row of a block of rows with these numbers."""
        ...

    def coefficients(self, means: Array) -> Array:
        """Return ``M b̄`` for each row ``b̄`` of `means`, as columns."""
        ...

    def root(self) -> Array | None:
        """Return ``R`` with ``R Rᵀ = M``; None if that is the identity."""
        ...


@runtime_checkable
class SparseSpace(Protocol):
    """What a space has whose kernel values are sparse rows.

    They know their norms, so that no row has to be read again for them.
    """

    #: Bytes of the kernel values of a row.
    row_bytes: int

    def value_norms(self, values: Any) -> Array:
        """Return ``‖φ(x)‖²`` for every row of a block of kernel values."""
        ...


class LandmarkSpace:
    """The span of landmarks in the feature space of a kernel.

    For a precomputed kernel landmarks are column numbers (m, 1).  Kernel blocks are in
    `dtype`; at most `rank` eigen-directions of ``k(Z, Z)`` are kept.  What is known may
    be given: ``k(Z, Z)`` (`gram`), ``k(x, x)`` of the training rows, and ``M``.
    """

    storable = True
    is_euclidean = False

    def __init__(
        self,
        kernel: Kernel,
        landmarks: Block,
        dtype: np.dtype[Any],
        workers: Workers,
        *,
        rank: int | None = None,
        gram: Array | None = None,
        diagonal: Array | None = None,
        inverse: PseudoInverse | None = None,
    ) -> None:
        self.kernel = kernel
        self.landmarks = landmarks
        self.dtype = dtype
        self.workers = workers
        self.most_rank = rank
        self.n_columns = landmarks.shape[0]
        self.height = block_height(landmarks.shape[1], self.n_columns)
        self.constant_norm = kernel.constant_diagonal
        self._columns = kernel.against(landmarks, dtype, workers)
        self._diagonal = diagonal
        if gram is not None:
            self.gram = gram
        if inverse is not None:
            self.inverse = inverse

    @cached_property
    def gram(self) -> Array:
        """``k(Z, Z)``, in float64."""
        return compute_gram(self.kernel, self.landmarks, self.workers)

    @cached_property
    def inverse(self) -> PseudoInverse:
        """``M``, the truncated inverse of ``k(Z, Z)``."""
        return pseudo_inverse(self.gram, dtype=self.dtype, rank=self.most_rank)

    @property
    def rank(self) -> int:
        """Eigen-directions of ``k(Z, Z)`` that are kept."""
        return self.inverse.rank

    def kernel_block(self, block: Block, out: Array | None = None) -> Array:
        return self._columns(block, out)

    def row_norms(self, block: Block, numbers: Array) -> Array:
        if self._diagonal is not None:
            return self._diagonal[numbers]
        return self.kernel.diagonal(block)

    def coefficients(self, means: Array) -> Array:
        sides = np.asarray(means, dtype=np.float64).T
        if self.n_columns < _MANY_LANDMARKS:
            return self.inverse.solve(sides)
        width = max(_LEAST_SIDES, -(-len(means) // _PARTS))
        parts = [sides[:, slice(*span)] for span in block_slices(len(means), width)]
        solved = self.workers.map(self.inverse.solve, parts)
        return np.concatenate(list(solved), axis=1)

    def root(self) -> Array | None:
        return self.inverse.root()

    def in_float64(self) -> LandmarkSpace:
        """Return the same space with kernel blocks in float64."""
        wide = np.dtype(np.float64)
        return LandmarkSpace(self.kernel, self.landmarks, wide, self.workers)

    def dual_coefficients(self, coefficients: Array) -> Array:
        """Return α (m × k), such that centre j is ``Σ_i α_ij φ(z_i)``."""
        return np.ascontiguousarray(coefficients.T)

    def read_centers(
        self, dual: Array, squared_norms: Array, means: Array | None = None
    ) -> Centers:
        """Return centres with these dual coefficients; predictions need no means."""
        if means is None:
            means = np.empty((len(squared_norms), 0))
        return Centers(dual.T[None], squared_norms[None], means[None])


def coarse_space(space: Space, k: int) -> LandmarkSpace | None:
    """Return the span of every few landmarks; None where there are too few to skip any.

    It is good enough to compare starts of k centres, and far cheaper.
    """
    step = coarse_step(space, k)
    if step < 2 or not isinstance(space, LandmarkSpace):
        return None
    return LandmarkSpace(
        space.kernel,
        space.landmarks[::step],
        space.dtype,
        space.workers,
        rank=space.most_rank,
        gram=np.ascontiguousarray(space.gram[::step, ::step]),
    )


def lift_means(space: LandmarkSpace, centers: Centers) -> Array:
    """Return the mean kernel values that centres of the coarse space have in a space.

    They stand for the same points, or the nearest where a `rank` keeps these out.
    """
    step = coarse_step(space, centers.squared_norms.shape[1])
    return centers.coefficients @ space.gram[::step]


def coarse_step(space: Space, k: int) -> int:
    """Return of how many landmarks a coarse space keeps one."""
    if not isinstance(space, LandmarkSpace):
        return 0
    enough = max(_COARSE_LANDMARKS, _COARSE_LANDMARKS_PER_CLUSTER * k)
    return space.n_columns // max(enough, space.most_rank or 0)


class InputSpace:
    """A Euclidean space of points: plain k-means, linear and cosine kernels.

    ``b_x = φ(x)``, about an origin `shift` (d,) where the rows lie far from zero, and
    ``M`` is the identity; `features` is φ, from blocks to blocks.
    """

    storable = False  # the rows are their own kernel values
    constant_norm: float | None = None
    is_euclidean = True

    def __init__(
        self,
        n_features: int,
        dtype: np.dtype[Any],
        k: int,
        shift: Array,
        features: Callable[[Block], Block | None] | None = None,
    ) -> None:
        self.dtype = dtype
        self.n_columns = n_features
        self.height = block_height(n_features, k)
        self.shift = shift
        self._features = features

    @classmethod
    def of(cls, rows: Rows, k: int, shift: Array | None = None) -> InputSpace:
        """Return the space of the rows themselves."""
        dtype = np.dtype(np.float64) if rows.is_sparse else rows.dtype
        shift = origin(rows) if shift is None else shift
        return cls(rows.n_features, dtype, k, shift)

    def kernel_block(self, block: Block, out: Array | None = None) -> Block:
        if self._features is not None:
            block = self._features(block)
        if self.shift.any():
            block = toarray(block)
            # Float64 that becomes float32 is rounded after the difference.
            kind = self.dtype if block.dtype.itemsize < 8 else np.dtype(np.float64)
            return np.subtract(
                block, self.shift.astype(kind), out=out, casting="same_kind"
            ).astype(self.dtype, copy=False)
        if block.dtype == self.dtype:
            return block
        if out is None or sparse.issparse(block):
            return block.astype(self.dtype)
        out[...] = block
        return out

    def row_norms(self, block: Block, numbers: Array) -> Array:
        return squared_norms(self.kernel_block(block))

    def coefficients(self, means: Array) -> Array:
        return np.asarray(means, dtype=np.float64).T

    def root(self) -> Array | None:
        return None

    def centers(self, coefficients: Array) -> Array:
        """Return centroids as points of the input space."""
        return coefficients + self.shift


class FeatureSpace:
    """The span of landmarks under a kernel with explicit features: linear or cosine.

    ``b_x`` are the features themselves, so that no kernel value is computed, and
    ``M`` is the projection onto the span.  Far from zero the span is taken through the
    mean of the landmarks: centres move with the rows.  At most `rank` directions of it
    are kept.
    """

    storable = False
    constant_norm: float | None = None
    is_euclidean = True

    def __init__(
        self,
        kernel: Kernel,
        landmarks: Block,
        dtype: np.dtype[Any],
        *,
        rank: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.landmarks = landmarks
        self.dtype = dtype
        features = np.ascontiguousarray(kernel.features(landmarks), dtype=np.float64)
        mean = features.mean(axis=0)
        spread = float(np.square(features - mean).sum()) / len(features)
        check_no_overflow(np.float64(spread).astype(dtype))
        self._is_far = bool(mean @ mean > _FAR * spread)
        shift = mean.astype(dtype).astype(np.float64) * self._is_far
        m, self.n_columns = features.shape
        points = InputSpace(self.n_columns, dtype, m, shift, kernel.features)
        self.shift = shift
        self.height = points.height
        self.kernel_block, self.row_norms = points.kernel_block, points.row_norms
        self._features = features - shift
        self._most = rank

    @cached_property
    def _svd(self) -> tuple[Array, Array, Array]:
        """Left vectors, values and right vectors of the landmarks' features."""
        F = self._features - self._hull
        U, values, V = thin_svd(F)
        eps = float(np.finfo(np.float64).eps)
        keep = values > max(F.shape) * eps * max(values[0], 0.0)
        if self._most is not None:
            keep[self._most :] = False
        return U[:, keep], values[keep], V[keep]

    @property
    def _hull(self) -> Array:
        """Where the span goes through, seen from the origin."""
        return self._features.mean(axis=0) * self._is_far

    @property
    def rank(self) -> int:
        """Dimension of the span."""
        return min(len(self._svd[1]) + self._is_far, self.n_columns)

    def coefficients(self, means: Array) -> Array:
        columns = np.asarray(means, dtype=np.float64).T
        V = self._svd[2]
        if len(V) == self.n_columns:
            return columns
        return np.asarray(V.T @ (V @ columns))

    def root(self) -> Array | None:
        V = self._svd[2]
        return None if len(V) == self.n_columns else V.T

    def dual_coefficients(self, coefficients: Array) -> Array:
        """Return α (m × k), such that centre j is ``Σ_i α_ij φ(z_i)``."""
        U, values, V = self._svd
        dual = U @ ((V @ (coefficients - self._hull).T) / values[:, None])
        if self._is_far:  # coefficients that add up to one do not see a shift
            dual += (1.0 - dual.sum(axis=0)) / len(dual)
        return np.ascontiguousarray(dual)

    def read_centers(self, dual: Array, *_: Any) -> Centers:
        """Return the centres with these dual coefficients."""
        points = np.ascontiguousarray(dual.T @ self._features)[None]
        return Centers(points, np.einsum("rkj,rkj->rk", points, points), points)


#: Where centres are sums of features of landmarks.
SpanSpace = LandmarkSpace | FeatureSpace


def landmark_space(
    kernel: Kernel,
    landmarks: Block,
    dtype: np.dtype[Any],
    workers: Workers,
    *,
    rank: int | None = None,
    **given: Any,
) -> SpanSpace:
    """Return the space of centres in the span of landmarks.

    `given` is what a `LandmarkSpace` may be given.
    """
    if not sparse.issparse(landmarks) and kernel.features(landmarks[:1]) is not None:
        return FeatureSpace(kernel, landmarks, dtype, rank=rank)
    return LandmarkSpace(kernel, landmarks, dtype, workers, rank=rank, **given)


def origin(rows: Rows) -> Array:
    """Return the point about which rows are taken: zero, or their mean if that is far.

    Closer to the origin floats lose nothing that a shift would save; CSR rows cannot
    be shifted, and are worked on in float64.
    """
    if not rows.is_sparse:
        moments = rows.moments()
        # No row is farther from the mean than all squares together.
        check_no_overflow(np.float64(moments.variance * len(rows)).astype(rows.dtype))
        if moments.mean @ moments.mean > _FAR * moments.variance:
            # A float of the rows' own type: the shift itself is then exact.
            return moments.mean.astype(rows.dtype).astype(np.float64)
    return np.zeros(rows.n_features)
