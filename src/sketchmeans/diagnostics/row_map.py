"""A map of some rows: where they lie along the two main axes of feature space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.cluster import NystromKMeans, SketchedKMeans, SpectralKMeans
from sketchmeans.cluster.within import open_within
from sketchmeans.data.input import validate_input
from sketchmeans.data.rows import Block, Rows, as_rows, block_slices
from sketchmeans.data.sources.base import is_csr
from sketchmeans.diagnostics.fitted import AnyModel, Assigner, check_any_model, divide
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.kernels import compute_gram, is_given, squared_norms, toarray
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import as_generator, check_integer
from sketchmeans.theory.results import Result

#: Rows that span the map of a model which has no landmarks.
_SPAN_ROWS = 400
#: Directions of the search for two axes, and its steps: accurate enough to be drawn.
_SUBSPACE, _ITERATIONS = 12, 12
#: Share of the sum of squares below which a direction is nothing but rounding.
_NOISE = 1e-13


@dataclass(frozen=True, repr=False)
class RowMap(Result):
    """Some rows in two dimensions, and what a sample shows besides.

    Attributes
    ----------
    indices : ndarray of shape (s,)
        Numbers of the rows, ascending.
    points : ndarray of shape (s, 2)
        Their places along the first two principal axes; 0 where there is no axis.
    labels : ndarray of shape (s,)
        Their clusters.
    centers : ndarray of shape (k, 2)
        Mean place of each cluster's rows; not a number for clusters without any.
    landmarks : ndarray of shape (m, 2) or None
        Places of the model's landmarks.
    shares : ndarray of shape (2,)
        Share of the sample's variance along each axis.
    residuals : ndarray of shape (s,) or None
        Share of each row, ``‖φ(x) − Πφ(x)‖²/‖φ(x)‖²``, that the landmarks leave out.
    cost : float
        Mean squared distance of the rows of the sample to their centre.
    spread : float
        Their mean squared distance to the mean of all.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import row_map
    >>> X = load_iris().data
    >>> found = row_map(SketchedKMeans(3, random_state=0).fit(X), X)
    >>> found.points.shape, found.shares.round(2)
    ((150, 2), array([0.92, 0.05]))
    """

    indices: Array
    points: Array
    labels: Array
    centers: Array
    landmarks: Array | None
    shares: Array
    residuals: Array | None
    cost: float
    spread: float

    @property
    def explained(self) -> float:
        """Share of the spread that the clusters take away, estimated on the sample."""
        return 1.0 - self.cost / self.spread if self.spread > 0.0 else 1.0


def row_map(
    model: Any, X: Any, *, sample_size: int = 2_000, random_state: Any = 0
) -> RowMap:
    """Draw a sample of rows and find its first two principal axes.

    In the Nyström features of the model's landmarks, or of 400 rows of the sample for
    `KernelKMeans`; in the input space for `SketchedKMeans`, and in the space of the
    graph, where the axes are its eigenvectors, for `SpectralKMeans`.  A row lies at
    ``(ψ(x) − mean)·u`` for its features ψ(x) and each of the two leading eigenvectors u
    of their covariance.

    Costs s·m·(d + m) for a sample of s rows, and memory s·m.

    Parameters
    ----------
    model : KernelKMeans, NystromKMeans, SketchedKMeans or SpectralKMeans
        Fitted; also in a `TableClusterer`, or at the end of a `Pipeline`.
    X : array-like, sparse matrix, path or `Source`, of shape (n, d)
        The kernel matrix of the fit with ``kernel="precomputed"``.
    sample_size : int, default=2,000
        Rows of the sample, drawn at random without replacement; at most all.
    random_state : int, Generator, RandomState or None, default=0

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sketchmeans import NystromKMeans
    >>> X, y = make_blobs(600, 3, centers=3, random_state=1)
    >>> model = NystromKMeans(3, n_landmarks=30, random_state=0).fit(X)
    >>> found = row_map(model, X, sample_size=100)
    >>> found.points.shape, found.landmarks.shape, found.explained > 0.8
    ((100, 2), (30, 2), True)
    """
    model, X = open_within(model, X)
    model = check_any_model(model)
    check_integer("sample_size", sample_size)
    rng = as_generator(random_state)
    X = validate_input(model, X, reset=False)
    with Workers(model.n_jobs) as workers:
        rows = model._view(as_rows(X, workers))
        size = min(sample_size, len(rows))
        numbers = np.sort(rng.choice(len(rows), size, replace=False))
        block = rows.take(numbers)
        labels, costs = _assign(model, rows, block, numbers)
        features, marks, norms = _compute_features(model, rows, block, numbers, rng)
    mean = np.asarray(features.mean(axis=0)).ravel()
    axes, variances = _find_axes(features, mean, rng)
    points = _project(axes, features, mean)
    spread = max(float(norms.mean() - mean @ mean), 0.0)
    residuals = None
    if marks is not None:
        inside = np.einsum("ij,ij->i", features, features)
        residuals = np.clip(divide(norms - inside, norms, 0.0), 0.0, 1.0)
    return RowMap(
        indices=numbers,
        points=points,
        labels=labels,
        centers=_average_places(points, labels, len(model.cluster_sizes_)),
        landmarks=None if marks is None else _project(axes, marks, mean),
        shares=variances,
        residuals=residuals,
        cost=float(costs.mean()),
        spread=spread,
    )


def _assign(
    model: AnyModel, rows: Rows, block: Block, numbers: Array
) -> tuple[Array, Array]:
    assign = Assigner(model, rows)
    found = [
        assign(block[start:stop], numbers[start:stop])
        for start, stop in block_slices(len(numbers), assign.space.height)
    ]
    labels = np.concatenate([part.labels for part in found])
    return labels, np.concatenate([part.own for part in found])


def _compute_features(
    model: AnyModel, rows: Rows, block: Block, numbers: Array, rng: np.random.Generator
) -> tuple[Block, Array | None, Array]:
    """Return the features of the sample and of the landmarks, and squared norms."""
    if isinstance(model, SpectralKMeans):
        graph = model._space(rows)
        features = graph.features(block)
        return features, None, squared_norms(features)
    if isinstance(model, SketchedKMeans):
        plain = model._space(rows)
        features = plain.kernel_block(block).astype(np.float64)
        return features, None, plain.row_norms(block, numbers).astype(np.float64)
    kernel, given = model.kernel_, is_given(model.kernel_)
    if isinstance(model, NystromKMeans):
        points = model.landmarks_
    else:
        few = rng.choice(numbers, min(_SPAN_ROWS, len(numbers)), replace=False)
        points = kernel.points(rows, few)
    space = LandmarkSpace(
        kernel,
        points,
        np.dtype(np.float64),
        rows.workers,
        gram=compute_gram(model.kernel_, points, rows.workers, rows) if given else None,
        diagonal=kernel.row_diagonal(rows) if given else None,
    )
    root = space.inverse.root()
    norms = np.asarray(space.row_norms(block, numbers), dtype=np.float64)
    features = space.kernel_block(block) @ root
    marks = None
    if isinstance(model, NystromKMeans):
        placed = rows.take(points.ravel()) if given else points
        marks = space.kernel_block(placed) @ root
    return features, marks, norms


def _find_axes(
    features: Block, mean: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the first two axes as columns, and their shares of the variance.

    By subspace iteration on the centred features, which are never formed: there may
    be very many, and sparse.
    """
    d = features.shape[1]
    basis = rng.standard_normal((d, min(_SUBSPACE, d)))
    for _ in range(_ITERATIONS):
        basis = np.linalg.qr(basis)[0]
        places = _project(basis, features, mean)
        basis = toarray(features.T @ places) - np.outer(mean, places.sum(axis=0))
    total = _squares(features) - len(places) * float(mean @ mean)
    left, values, _ = np.linalg.svd(places, full_matrices=False)
    axes, shares = np.zeros((d, 2)), np.zeros(2)
    for i, value in enumerate(values[:2].tolist()):
        if value**2 > _NOISE * _squares(features):
            axis = np.asarray(features.T @ left[:, i]) - mean * left[:, i].sum()
            axis /= np.linalg.norm(axis)
            axes[:, i] = axis * np.sign(axis[np.abs(axis).argmax()])
            shares[i] = min(value**2 / total, 1.0)
    return axes, shares


def _squares(features: Block) -> float:
    values = features.data if is_csr(features) else features.ravel()
    return float(values @ values)


def _project(axes: Array, features: Block, mean: Array) -> Array:
    return np.asarray(toarray(features @ axes) - mean @ axes)


def _average_places(points: Array, labels: Array, k: int) -> Array:
    sums = np.stack([np.bincount(labels, p, k) for p in points.T], axis=1)
    return divide(sums, np.bincount(labels, minlength=k)[:, None], np.nan)
