"""What all reducers share: everything but the drawing of the sketch.

And the rows as a reducer shows them, block by block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sketchmeans.data.adapters import find_adapter
from sketchmeans.data.input import as_weighted_rows, validate_input
from sketchmeans.data.lost_digits import warn_of_lost_digits
from sketchmeans.data.rows import Block, Rows, as_rows, block_height, block_slices
from sketchmeans.data.sampling import sample_rows
from sketchmeans.data.sources.base import is_csr
from sketchmeans.kernels import toarray
from sketchmeans.numerics.linalg import ZERO_DISTANCE_ROUNDINGS, Array
from sketchmeans.numerics.memory import format_bytes, memory_budget
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import (
    as_generator,
    check_integer,
    check_integer_or,
)
from sketchmeans.reduction.svd import pass_height

#: Fewer features than this do not make k-means faster, but worse (B14 §7.5).
_FEWEST_FEATURES = 20
_FEATURES_PER_CLUSTER = 4

#: From a block of rows to its features.
Product = Callable[[Block], Block]


class Sketch(Protocol):
    """A linear map from d features to a few."""

    #: Whether the features of CSR rows are a CSR matrix.
    keeps_sparse: bool

    @property
    def width(self) -> int:
        """Number of features after the map."""
        ...

    def product(self, dtype: npt.DTypeLike, workers: Workers) -> Product:
        """Prepare the map for blocks of rows; `dtype` is the type of the result."""
        ...


class Reducer(TransformerMixin, BaseEstimator, ABC):
    """Base of the reducers, linear maps ``X ↦ X S`` to few features.

    A subclass defines `_draw`, and that is all.  What each costs is said with it.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.reduction import REDUCERS, Reducer
    >>> X = np.random.default_rng(0).normal(size=(60, 9))
    >>> reducer = REDUCERS["sign"]().set_params(n_components=2)
    >>> isinstance(reducer, Reducer), reducer.fit_transform(X).shape
    (True, (60, 2))
    """

    _takes_dask = True

    n_components: int | None
    n_clusters: int
    n_jobs: int | None
    random_state: Any
    _sketch: Sketch

    @abstractmethod
    def _draw(self, rows: Rows, n_components: int, rng: np.random.Generator) -> Sketch:
        """Return the sketch for these rows, and set what is public of it."""

    def _fit_bytes(self, rows: Rows) -> int:
        """Return the bytes that `fit` takes, without blocks of rows."""
        return 0

    def check_memory(self, rows: Rows, max_memory: float | str | None) -> None:
        """Raise MemoryError where `fit` would take more than `max_memory` allows."""
        need, budget = self._fit_bytes(rows), memory_budget(max_memory)
        if need > budget:
            raise MemoryError(
                f"{type(self).__name__} of rows of {rows.n_features:,} features needs "
                f"{format_bytes(need)}; half of the free memory, or max_memory, is "
                f"{format_bytes(budget)}. Lower n_components or n_clusters, or choose "
                "another reducer."
            )

    def _default_size(self) -> int:
        """Return the number of features where the user gives none."""
        return max(_FEWEST_FEATURES, _FEATURES_PER_CLUSTER * self.n_clusters)

    def _check_params(self) -> None:
        check_integer("n_clusters", self.n_clusters)
        for name in ("n_components", "fit_rows"):
            check_integer_or(None, name, getattr(self, name, None))

    def _size(self, n_features: int) -> int:
        if self.n_components is None:
            return min(self._default_size(), n_features)
        if self.n_components > n_features:
            raise ValueError(
                f"n_components={self.n_components} should be <= n_features="
                f"{n_features}."
            )
        return int(self.n_components)

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Draw the sketch.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)
            A memory map and integers are read block by block.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            A row of weight 3 counts as three rows.
        """
        self._check_params()
        X = validate_input(self, X, reset=True)
        with Workers(self.n_jobs) as workers:
            rows = as_weighted_rows(X, sample_weight, workers)
            warn_of_lost_digits(rows, getattr(self, "feature_names_in_", None))
            self.check_memory(rows, None)
            return self.fit_view(rows)

    def fit_view(self, rows: Rows) -> Self:
        """Draw the sketch of rows that are seen through a view, and have no table."""
        self._check_params()
        self.n_features_in_ = rows.n_features
        rng = as_generator(self.random_state)
        self._sketch = self._draw(rows, self._size(rows.n_features), rng)
        self.n_components_ = self._sketch.width
        return self

    def transform(self, X: Any) -> Block:
        """Return the features of the rows, in the rows' float type.

        Parameters
        ----------
        X : array-like, sparse matrix, path or `Source`, of shape (n, d)

        Returns
        -------
        features : ndarray of shape (n, n_components)
            Chosen features of a sparse matrix stay sparse; those of a Dask collection
            are a lazy Dask array.
        """
        check_is_fitted(self)
        X = validate_input(self, X, reset=False)
        with Workers(self.n_jobs) as workers:
            return transform_rows(as_rows(X, workers), self._sketch)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def transform_rows(rows: Rows, sketch: Sketch) -> Block:
    """Return the features of all rows, block by block; lazy if these are elsewhere."""
    product = sketch.product(rows.dtype, rows.workers)
    if find_adapter(rows) is not None:
        lazy: Any = rows
        return lazy.map_lazily(lambda block: toarray(product(block)))
    height = pass_height(rows, sketch.width)
    if rows.is_sparse and sketch.keeps_sparse:
        edges = block_slices(len(rows), height)
        blocks = rows.workers.map(lambda span: product(rows.block(*span)), edges)
        return sparse.vstack(list(blocks), format="csr")

    def write(part: slice, out: Array) -> None:
        out[...] = product(rows.block(part.start, part.stop))

    features = np.empty((len(rows), sketch.width), dtype=rows.dtype)
    return rows.workers.fill(features, write, height)


def subsample(rows: Rows, size: int | None, rng: np.random.Generator) -> Rows:
    """Return `size` rows that stand for all, each counted once; None is all rows."""
    if size is None or size >= len(rows):
        return rows
    # In ascending order, as a file is read.
    return rows.subset(np.sort(sample_rows(rows, size, rng)), None)


@dataclass(frozen=True)
class Selection:
    """Multiplication by ``ΩS``: chosen features, each times its scale."""

    #: Column numbers in ascending order.
    features: Array
    scale: Array
    keeps_sparse = True

    @property
    def width(self) -> int:
        return len(self.features)

    def product(self, dtype: npt.DTypeLike, workers: Workers) -> Product:
        scale = self.scale.astype(dtype)

        def choose(block: Block) -> Block:
            if is_csr(block):
                chosen = block[:, self.features].astype(dtype)
                chosen.data *= scale[chosen.indices]
                return chosen
            chosen = np.take(block, self.features, axis=1).astype(dtype, copy=False)
            chosen *= scale
            return chosen

        return choose


class FeatureSelector(OneToOneFeatureMixin, Reducer):
    """Base of the reducers that choose among the features."""

    _sketch: Selection

    def get_support(self, indices: bool = False) -> Array:
        """Return which features are chosen.

        Parameters
        ----------
        indices : bool, default=False
            Return column numbers instead of a mask.

        Returns
        -------
        support : ndarray
            A mask of shape (d,), or numbers of shape (n_components,).
        """
        check_is_fitted(self)
        if indices:
            return self._sketch.features.copy()
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self._sketch.features] = True
        return mask

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the chosen features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of all features, where `fit` saw none.
        """
        names: Array = super().get_feature_names_out(input_features)
        return names[self.get_support()]


def _find_product(rows: Rows, reducer: Any) -> Product:
    """Return what a fitted reducer, of ours or from elsewhere, does with blocks."""
    sketch: Sketch | None = getattr(reducer, "_sketch", None)
    if sketch is None:
        return cast(Product, reducer.transform)
    return sketch.product(rows.dtype, rows.workers)


class ReducedRows(Rows):
    """A lazy view: the features of a row are computed when it is read."""

    def __init__(self, source: Rows, reducer: Any) -> None:
        self.source = source
        self._multiply = _find_product(source, reducer)
        probe = self._reduce(source.block(0, 1))
        super().__init__(probe, source.workers, source.weights)
        self.weight_unit = source.weight_unit
        # The bits of a product depend on where in a block a row is.
        self.rounding = ZERO_DISTANCE_ROUNDINGS * float(np.finfo(self.dtype).eps)
        self.n_rows = source.n_rows
        self.memory = source.memory
        self.load_memory = self.n_rows * self.n_features * self.dtype.itemsize
        self._held: Rows | None = None

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        return self._held is not None or self.source.in_memory

    def thread_memory(self, height: int) -> int:
        return self.source.thread_memory(height)

    def block(self, start: int, stop: int) -> Block:
        if self._held is not None:
            return self._held.block(start, stop)
        return self._reduce(self.source.block(start, stop))

    def take(self, indices: Array) -> Block:
        if self._held is not None:
            return self._held.take(indices)
        return self._reduce(self.source.take(indices))

    def hold(self) -> None:
        """Compute all features once, for many passes."""
        self._held = self.load()
        self.memory += self.load_memory

    def load(self) -> Rows:
        """Return all rows in memory, as a source of their own."""

        def write(part: slice, out: Array) -> None:
            out[...] = self.block(part.start, part.stop)

        features = np.empty((self.n_rows, self.n_features), dtype=self.dtype)
        height = block_height(self.source.n_features, self.n_features)
        return self._part(self.workers.fill(features, write, height), self.weights)

    def _reduce(self, block: Block) -> Array:
        return toarray(self._multiply(block))

    def points(self, X: Any) -> Block:
        """Return given points of the source's space as points of this one."""
        if isinstance(self.source, ShiftedRows):
            X = self.source.points(X)
        return self._reduce(X)


class ShiftedRows(Rows):
    """A lazy view of dense rows about a point that is close to them.

    A sketch of rows far from the origin is one of their offset, and little else.
    """

    def __init__(self, source: Rows, shift: Array) -> None:
        super().__init__(source.X, source.workers, source.weights)
        self.source = source
        self.dtype = source.dtype
        self.weight_unit = source.weight_unit
        self.memory, self.load_memory = source.memory, source.load_memory
        self.in_memory = source.in_memory
        self._shift = shift.astype(source.dtype)

    def thread_memory(self, height: int) -> int:
        return self.source.thread_memory(height) + height * self.row_bytes

    def block(self, start: int, stop: int) -> Block:
        return np.subtract(self.source.block(start, stop), self._shift)

    def take(self, indices: Array) -> Block:
        return np.subtract(self.source.take(indices), self._shift)

    def points(self, X: Any) -> Block:
        """Return given points of the source's space as points of this one."""
        return np.subtract(X, self._shift, dtype=self.dtype)

    def load(self) -> Rows:
        return self._part(self.block(0, self.n_rows), self.weights)


def reduce_rows(rows: Rows, reducer: Any) -> Any:
    """Return the view of rows through a fitted reducer, wherever they are."""
    if find_adapter(rows) is None:
        return ReducedRows(rows, reducer)
    remote, multiply = cast(Any, rows), _find_product(rows, reducer)
    return remote.view(lambda block: toarray(multiply(block)))


def shift_rows(rows: Rows, shift: Array | None) -> Any:
    """Return the view of rows about a point, wherever they are; None is the origin."""
    if shift is None or not shift.any():
        return rows
    if find_adapter(rows) is None:
        return ShiftedRows(rows, shift)
    remote, kind, own = cast(Any, rows), rows.dtype, shift.astype(rows.dtype)
    return remote.view(lambda block: np.subtract(block, own, dtype=kind))


def is_reduced(rows: Rows) -> bool:
    """Say whether rows are a view of others."""
    return hasattr(rows, "source")
