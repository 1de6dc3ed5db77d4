"""Rows against the segments of a fitted model: distances, memberships, a flag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sketchmeans.cluster import SpectralKMeans
from sketchmeans.cluster.reference import TAIL_SHARES, Reference
from sketchmeans.cluster.table import NO_CLUSTER, TableClusterer
from sketchmeans.cluster.table_steps import open_prepared
from sketchmeans.cluster.within import open_pipeline
from sketchmeans.data.input import validate_input
from sketchmeans.data.preparation import PreparedSource, warn_of_unseen
from sketchmeans.data.rows import Block, Rows, as_rows, block_slices, float_type
from sketchmeans.data.source_rows import SourceRows
from sketchmeans.data.sources import Source
from sketchmeans.data.sources.derived import WrappedSource
from sketchmeans.diagnostics.fitted import (
    AnyModel,
    Assigner,
    NearestCenters,
    check_any_model,
    has_given_kernel,
)
from sketchmeans.graphs.nearest import NearestPoints
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.theory.results import Result

#: Rows that are scored at a time, about.
_CHUNK = 100_000


@dataclass(frozen=True, repr=False)
class RowScores(Result):
    """How rows belong to the segments of a model.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The segment of each row, as `predict` has it; −1 for a row that is left out,
        whose other values are NaN.
    distances : ndarray of shape (n,)
        To the centre of the segment, as the kernel measures it.
    margins : ndarray of shape (n,)
        1 less the distance as a share of that to the next centre: 0 on a border.
    membership : ndarray of shape (n, k) or None
        See `soft_membership`; None if the model is not calibrated, as is the next.
    unusual : ndarray of bool of shape (n,) or None
        Whether a row is unlike the rows of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import score_rows
    >>> X = np.array([[0.0], [2.0], [8.0], [10.0]])
    >>> model = SketchedKMeans(2, random_state=0).fit(X)
    >>> score_rows(model, [[1.0], [3.0]]).margins.round(2)
    array([1.  , 0.67])
    """

    labels: Array
    distances: Array
    margins: Array
    membership: Array | None
    unusual: Array | None


def score_rows(model: Any, X: Any, *, unusual_share: float = 0.01) -> RowScores:
    """Return segment, distance, margin, soft membership and a flag for each row.

    The margin is ``1 − distance / distance to the next centre``.  A row is unusual if
    its distance to the nearest centre, in units of what is typical for that segment, is
    beyond that of all but `unusual_share` of the rows of the fit.  For a
    `SpectralKMeans`, whose centres are far from everything, it is the distance to the
    nearest landmark.

    One pass of n·m·(d + k).

    Parameters
    ----------
    model : fitted estimator, TableClusterer, or Pipeline that ends in one
        Memberships and the flag need what `calibrate` keeps of the fit.
    X : table, as in ``model.predict``
    unusual_share : float, default=0.01
        Share of the rows of the fit that are unusual, from 0.001 to 0.5.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sketchmeans import NystromKMeans, diagnostics
    >>> X, _ = make_blobs(600, 3, centers=3, random_state=1)
    >>> model = NystromKMeans(3, random_state=0).fit(X)
    >>> sizes = diagnostics.calibrate(model, X).sizes
    >>> score_rows(model, [X[0], X[0] + 100.0]).unusual
    array([False,  True])
    """
    parts = [part for _, part in iterate_scores(model, X, unusual_share=unusual_share)]

    def join(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else np.concatenate(values)

    names = ("labels", "distances", "margins", "membership", "unusual")
    return RowScores(*(join(name) for name in names))


def soft_membership(model: Any, X: Any) -> Array:
    """Return the probability of each segment for each row.

    ``p_j(x) ∝ exp(−‖φ(x) − c_j‖² / 2σ²)``, with a sum of 1: the probabilities of a
    mixture of equally large, round segments about the centres, whose variance σ² along
    the lines between centres is that of the fit (see `calibrate`).  The largest one is
    that of the label; on a border two are equal.

    One pass of n·m·(d + k), and n·k numbers.

    Parameters
    ----------
    model : fitted estimator or TableClusterer
        Calibrated, see `calibrate`.
    X : table, as in ``model.predict``

    Returns
    -------
    membership : ndarray of shape (n, k)
        NaN for rows that are left out.

    See Also
    --------
    score_rows : Memberships beside distances and margins.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans, diagnostics
    >>> X = np.random.default_rng(0).normal(size=(900, 1)) + [[0.0], [6.0], [6.0]] * 300
    >>> model = SketchedKMeans(2, random_state=0).fit(X)
    >>> sizes = diagnostics.calibrate(model, X).sizes
    >>> np.sort(soft_membership(model, [[0.0], [2.7]])).round(2).tolist()
    [[0.0, 1.0], [0.15, 0.85]]
    """
    check_reference(model)
    membership = score_rows(model, X).membership
    assert membership is not None
    return membership


def check_reference(model: Any) -> Reference:
    """Return what a model keeps of its fit; raise if there is nothing."""
    fitted_estimator(model)
    reference: Reference | None = getattr(model, "reference_", None)
    if reference is None:
        raise ValueError(
            f"This {type(model).__name__} keeps nothing of the rows of its fit: call "
            "sketchmeans.diagnostics.calibrate(model, X) with these rows first."
        )
    return reference


def iterate_scores(
    model: Any, X: Any, *, unusual_share: float = 0.01
) -> Iterator[tuple[tuple[int, int], RowScores]]:
    """Yield spans of a table's rows and their scores, about 100,000 rows at a time.

    At least one, which may be empty.  What the model lacks is None.
    """
    model, X = open_pipeline(model, X)
    threshold = _find_threshold(model, unusual_share)
    reference = getattr(model, "reference_", None)
    with Workers(fitted_estimator(model).n_jobs) as workers:
        rows = ScoredRows(model, X, workers)
        for span, part in rows.chunks():
            found = None
            if reference is not None:
                found = (
                    membership_of(part.squared, reference.variance),
                    part.score(reference.scales) > threshold,
                )
            yield span, rows.spread(span, part, found)
        rows.warn()


def _find_threshold(model: Any, share: float) -> float:
    low, high = float(TAIL_SHARES[-1]), float(TAIL_SHARES[0])
    if not isinstance(share, float | int) or not low <= share <= high:
        raise ValueError(
            f"unusual_share={share!r} should be a number from {low} to {high}."
        )
    reference = getattr(model, "reference_", None)
    return np.inf if reference is None else reference.threshold(share)


def membership_of(squared: Array, variance: float) -> Array:
    """Return probabilities from squared distances to all centres."""
    exponents = (squared.min(axis=1, keepdims=True) - squared) / (2.0 * variance)
    shares = np.exp(exponents)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def fitted_estimator(model: Any) -> AnyModel:
    """Return the fitted estimator, which may be within a `TableClusterer`."""
    if isinstance(model, Pipeline):
        raise ValueError(
            "model should be a TableClusterer, which prepares columns itself, or the "
            "last step of this Pipeline with the rows that it sees: model[-1] and "
            "model[:-1].transform(X)."
        )
    if isinstance(model, TableClusterer):
        check_is_fitted(model, "estimator_")
        model = model.estimator_
    return check_any_model(model)


@dataclass(frozen=True)
class ScoredBlock:
    """Rows against all centres; `reach` is how far they are from what was fitted."""

    nearest: NearestCenters
    squared: Array
    reach: Array

    def score(self, scales: Array) -> Array:
        """Return how far rows are, in units of what is typical for their segment."""
        return np.asarray(self.reach / scales[self.nearest.labels])


class ScoredRows:
    """The rows of a table as a fitted model sees them, scored block by block.

    `on_block` is called with every block of raw rows, from several threads: those of a
    `TableClusterer` are encoded, neither filled nor scaled.
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        workers: Workers,
        on_block: Callable[[Block], None] | None = None,
    ) -> None:
        self.estimator = fitted_estimator(model)
        if has_given_kernel(self.estimator):
            raise ValueError(
                "Rows of a precomputed kernel have no features, and so nothing to "
                "compare other rows with: fit with another kernel."
            )
        self._workers, self._on_block = workers, on_block
        self._source: PreparedSource | None = None
        self._encoded: Source | None = None
        if isinstance(model, TableClusterer):
            self._source = X = open_prepared(model, X)
            self._encoded = X.inner
            if on_block is not None:
                X.inner, self._on_block = _SeenSource(X.inner, on_block), None
        X = validate_input(self.estimator, X, reset=False)
        # Loaded rows are not read again, but a table is to be seen as it is read.
        is_seen = self._source is not None and on_block is not None
        rows: Rows = SourceRows(X, workers) if is_seen else as_rows(X, workers)
        self.rows, self._view = rows, self.estimator._view(rows)
        self._assign = Assigner(self.estimator, self._view)
        self._landmarks: NearestPoints | None = None
        if isinstance(self.estimator, SpectralKMeans):
            points = self.estimator.landmarks_
            assert points is not None  # a given graph has no features
            kind = float_type(points.dtype)
            self._landmarks = NearestPoints(points, kind, self.estimator.whitening_)

    def blocks(self, start: int, stop: int) -> Iterator[ScoredBlock]:
        """Yield the scores of blocks of rows."""
        height = self._assign.space.height
        spans = [(start + a, start + b) for a, b in block_slices(stop - start, height)]
        yield from self._workers.map(self._score, spans)

    def _score(self, span: tuple[int, int]) -> ScoredBlock:
        block = self._view.block(*span)
        nearest, squared = self._assign.measure(block, np.arange(*span))
        reach = np.sqrt(nearest.own)
        if self._landmarks is not None:
            reach = self._landmarks.find(block, 1)[0][:, 0]
        if self._on_block is not None:
            self._on_block(self.rows.block(*span))
        return ScoredBlock(nearest, squared, reach)

    def chunks(self) -> Iterator[tuple[tuple[int, int], ScoredBlock]]:
        """Yield spans of the table, rows that are left out included, and scores.

        Chunks begin where the blocks of a pass do, so that labels have the same bits.
        """
        height = self._assign.space.height
        edges = block_slices(len(self.rows), -(-_CHUNK // height) * height)
        first = 0
        for start, stop in edges or [(0, 0)]:
            source = self._source
            last = len(self.rows) if source is None else source.n_table_rows
            if stop < len(self.rows):
                last = int(self.numbers(np.array([stop]))[0])
            yield (first, last), join_blocks(self.blocks(start, stop), self.estimator)
            first = last

    def numbers(self, rows: Array) -> Array:
        """Return the numbers of rows in the table, of which some may be left out."""
        return rows if self._source is None else self._source.numbers(rows)

    def take_raw(self, rows: Array) -> Block:
        """Return a few rows, encoded but neither filled nor scaled."""
        if self._encoded is None:
            return self.rows.take(rows)
        return self._encoded.take(self.numbers(rows))

    def spread(
        self,
        span: tuple[int, int],
        part: ScoredBlock,
        found: tuple[Array, Array] | None,
    ) -> RowScores:
        """Return the scores of all rows of a span, of which some may be left out."""
        membership, unusual = found or (None, None)
        near = part.nearest
        scores = RowScores(
            near.labels, np.sqrt(near.own), near.margins, membership, unusual
        )
        if self._source is None or len(near.labels) == span[1] - span[0]:
            return scores
        kept = self._source.numbers(np.arange(len(self.rows)))
        first = np.searchsorted(kept, span[0])
        places = kept[first : first + len(near.labels)] - span[0]

        def scatter(values: Array, other: Any) -> Array:
            shape = (span[1] - span[0], *values.shape[1:])
            spread = np.full(shape, other, values.dtype)
            spread[places] = values
            return spread

        return RowScores(
            scatter(scores.labels, NO_CLUSTER),
            scatter(scores.distances, np.nan),
            scatter(scores.margins, np.nan),
            None if membership is None else scatter(membership, np.nan),
            None if unusual is None else scatter(unusual, False),
        )

    def warn(self) -> None:
        """Warn of levels that are not those of the fit."""
        if self._encoded is not None:
            warn_of_unseen(self._encoded)


def join_blocks(blocks: Iterator[ScoredBlock], estimator: AnyModel) -> ScoredBlock:
    """Return blocks as one."""
    parts = list(blocks)
    if not parts:
        k, none = len(estimator.cluster_sizes_), np.empty(0)
        nearest = NearestCenters(np.empty(0, np.int32), none, none)
        return ScoredBlock(nearest, np.empty((0, k)), none)
    nearest = NearestCenters(
        *(
            np.concatenate([getattr(part.nearest, name) for part in parts])
            for name in ("labels", "own", "next")
        )
    )
    return ScoredBlock(
        nearest,
        np.concatenate([part.squared for part in parts]),
        np.concatenate([part.reach for part in parts]),
    )


class _SeenSource(WrappedSource):
    """A source whose blocks are shown to somebody when they are read."""

    def __init__(self, inner: Source, on_block: Callable[[Block], None]) -> None:
        super().__init__(inner)
        self._on_block, self.order = on_block, inner.order

    def read(self, start: int, stop: int, out: Array | None = None) -> Block:
        block = self.inner.read(start, stop, out)
        self._on_block(block)
        return block

    def take(self, indices: Array) -> Block:
        block = self.inner.take(indices)
        self._on_block(block)
        return block
