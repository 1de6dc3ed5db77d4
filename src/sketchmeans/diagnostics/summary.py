"""What the clusters of some rows look like, in one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.cluster.segment_names import segment_names
from sketchmeans.cluster.within import keep_in_line
from sketchmeans.data.input import validate_input
from sketchmeans.data.preparation import PreparedSource
from sketchmeans.data.rows import Block, Rows, as_rows, block_slices
from sketchmeans.diagnostics.agreement import Agreement, agreement
from sketchmeans.diagnostics.described import Described, open_described
from sketchmeans.diagnostics.fitted import (
    Assigner,
    NearestCenters,
    divide,
    has_given_kernel,
)
from sketchmeans.diagnostics.members import (
    Members,
    SmallestRows,
    draw_keys,
    members_per_cluster,
    rank_in_group,
)
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import check_integer
from sketchmeans.theory.results import Result

#: Bins of the margins between 0 and 1, and those of rows close to a border.  There are
#: many, because all distances are nearly the same in spaces of many dimensions.
_BINS, _BORDER_BINS = 250, 5
#: Rows whose mean is subtracted from the features, so that their squares keep digits.
_PROBE_ROWS = 64


@dataclass(frozen=True, repr=False)
class Features(Result):
    """Means of the features: of all rows, and of each cluster.

    Attributes
    ----------
    mean, deviation : ndarray of shape (d,)
        Mean and standard deviation over all rows.
    cluster_means : ndarray of shape (k, d)
        Those of all rows for a cluster without rows.
    scaled : Features or None
        The same as the model sees them, where these are in the units of a table.
    """

    mean: Array
    deviation: Array
    cluster_means: Array
    scaled: Features | None = None

    @cached_property
    def differences(self) -> Array:
        """How many standard deviations a cluster's mean is above that of all rows.

        Of shape (k, d); 0 for a feature that does not vary.  On the scale that the
        model sees, on which skewed amounts are logarithmic: a few rich rows would
        dwarf everything else.
        """
        if self.scaled is not None:
            return self.scaled.differences
        return divide(self.cluster_means - self.mean, self.deviation, 0.0)

    @cached_property
    def largest_difference(self) -> float:
        """The largest absolute difference; 1 if there is none."""
        return float(np.abs(self.differences).max()) or 1.0

    def rank_distinguishing(self, size: int, cluster: int | None = None) -> Array:
        """Return up to `size` features that set a cluster apart, the strongest first.

        Without a cluster: by the largest difference of any cluster.
        """
        rows = slice(None) if cluster is None else [cluster]
        strength = np.abs(self.differences[rows]).max(axis=0)
        order = np.argsort(-strength, kind="stable")[:size]
        return np.asarray(order[strength[order] > 0.0])


@dataclass(frozen=True, repr=False)
class ClusterSummary(Result):
    """Sizes, costs, margins, features and typical rows of the clusters.

    Attributes
    ----------
    n_rows : int
    sizes : ndarray of shape (k,)
        Rows of each cluster.
    costs : ndarray of shape (k,)
        Mean squared distance of a cluster's rows to its centre; not a number for a
        cluster without rows.
    margins : ndarray of shape (k,) or None
        Mean margin of each cluster's rows: 1 less the distance to the own centre as a
        share of that to the next one; 0 on a border, 1 at a centre.  None where there
        is one cluster only.
    margin_counts : ndarray of shape (k, 250) or None
        Rows of each cluster by margin, in equal bins from 0 to 1.
    exemplar_indices : ndarray of shape (k, q)
        Row numbers of those nearest to each centre, the nearest first; -1 where a
        cluster has fewer rows.
    exemplars : ndarray or CSR matrix
        These rows, cluster by cluster, without those that are missing; None for a
        precomputed kernel, as is the next.
    features : Features or None
    agreement : Agreement or None
        With known classes, if these were given.
    segment_names : tuple of str
        What the clusters are called.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import cluster_summary
    >>> X = np.array([[0.0], [1.0], [9.0], [9.0], [9.5]])
    >>> found = cluster_summary(SketchedKMeans(2, random_state=0).fit(X), X)
    >>> sorted(found.sizes.tolist())
    [2, 3]
    """

    n_rows: int
    sizes: Array
    costs: Array
    margins: Array | None
    margin_counts: Array | None
    exemplar_indices: Array
    exemplars: Block | None
    features: Features | None
    agreement: Agreement | None = None
    segment_names: tuple[str, ...] = ()

    @property
    def cost(self) -> float:
        """``W``: the mean squared distance of all rows to their centre."""
        full = self.sizes > 0
        return float(self.sizes[full] @ self.costs[full] / self.n_rows)

    @property
    def border_share(self) -> float | None:
        """Share of the rows with a margin below 0.02: almost as near to the next."""
        if self.margin_counts is None:
            return None
        return float(self.margin_counts[:, :_BORDER_BINS].sum() / self.n_rows)

    def margin_histogram(self, n_bins: int = 30) -> tuple[Array, Array]:
        """Return counts and edges of up to `n_bins` bins over the margins there are."""
        if self.margin_counts is None:
            return np.zeros(0, dtype=np.int64), np.zeros(1)
        counts = self.margin_counts.sum(axis=0)
        used = int(np.flatnonzero(counts).max()) + 1
        width = -(-used // n_bins)
        size = -(-used // width)
        padded = np.zeros(size * width, dtype=np.int64)
        padded[:used] = counts[:used]
        edges = np.arange(size + 1) * (width / _BINS)
        return padded.reshape(size, width).sum(axis=1), edges

    @property
    def n_clusters(self) -> int:
        """Number of clusters, with and without rows."""
        return len(self.sizes)

    def exemplars_of(self, cluster: int) -> tuple[Array, Block | None]:
        """Return the numbers of a cluster's typical rows, and the rows."""
        present = self.exemplar_indices >= 0
        numbers = self.exemplar_indices[cluster][present[cluster]]
        start = int(present[:cluster].sum())
        if self.exemplars is None:
            return numbers, None
        return numbers, self.exemplars[start : start + len(numbers)]

    def in_units_of(self, source: PreparedSource) -> ClusterSummary:
        """Return the summary in the units and row numbers of the unprepared table."""
        prepared, features = source.preparation, self.features
        assert features is not None  # no kernel matrix is prepared
        numbers = source.numbers(self.exemplar_indices)
        return replace(
            self,
            exemplar_indices=np.where(self.exemplar_indices < 0, -1, numbers),
            exemplars=prepared.inverse_transform(self.exemplars),
            features=Features(
                prepared.inverse_transform(features.mean),
                prepared.inverse_deviation(features.mean, features.deviation),
                prepared.inverse_transform(features.cluster_means),
                features,
            ),
        )


def cluster_summary(
    model: Any, X: Any, *, y: Any = None, n_exemplars: int = 5
) -> ClusterSummary:
    """Describe the clusters that a fitted model finds in some rows.

    Every row belongs to its nearest centre, and its margin is ``1 − d_own/d_next``, of
    the distances to that one and to the next.  One pass, block by block: n·m·(d + k)
    and n·d for the means; memory k·d, and n labels where `y` is given.

    Parameters
    ----------
    model : KernelKMeans, NystromKMeans, SketchedKMeans or SpectralKMeans
        Fitted; also in a `TableClusterer`, or at the end of a `Pipeline`.
    X : array-like, sparse matrix, path or `Source`, of shape (n, d)
        As a rule the rows of the fit; its kernel matrix with
        ``kernel="precomputed"``.  Rows that `TableClusterer` prepared are described in
        the units of their table, and so is a table that is given to a `Pipeline`.
    y : array-like of shape (n,), optional
        Known classes.
    n_exemplars : int, default=5
        Typical rows of each cluster, at most.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sketchmeans import NystromKMeans
    >>> X, y = make_blobs(600, 3, centers=3, random_state=1)
    >>> model = NystromKMeans(3, random_state=0).fit(X)
    >>> found = cluster_summary(model, X, y=y)
    >>> found.sizes, found.agreement.accuracy
    (array([200, 200, 200]), 1.0)
    """
    found = summarize_members(open_described(model, X), y=y, n_exemplars=n_exemplars)
    return found[0]


def summarize_members(
    opened: Described, *, y: Any = None, n_exemplars: int = 5
) -> tuple[ClusterSummary, Members]:
    """Return the summary, and random rows of each cluster, by their numbers."""
    model, units = opened.inner, opened.units
    y = keep_in_line(opened.source, y)
    n_exemplars = check_integer("n_exemplars", n_exemplars)
    with Workers(model.n_jobs) as workers:
        rows = as_rows(validate_input(model, opened.source, reset=False), workers)
        shown = rows if units is opened.source else as_rows(units, workers)
        if y is not None and len(y) != len(rows):
            raise ValueError(
                f"y of {len(y)} labels should have {len(rows)}, one for each row of X."
            )
        k = len(model.cluster_sizes_)
        n_members = members_per_cluster(k, shown.n_features)
        n_labels = len(rows) if y is not None else 0
        counts = _Counts(k, n_exemplars, n_members, n_labels)
        sums = None if has_given_kernel(model) else _FeatureSums(k, shown)
        view = model._view(rows)
        assign = Assigner(model, view)
        edges = block_slices(len(rows), assign.space.height)

        def read(span: tuple[int, int]) -> tuple[NearestCenters, Any]:
            nearest = assign(view.block(*span), np.arange(*span))
            if sums is None:
                return nearest, None
            return nearest, sums.sum_block(shown.block(*span), nearest.labels)

        for span, found in zip(edges, workers.map(read, edges), strict=True):
            nearest, block_sums = found
            counts.add(span[0], nearest)
            if sums is not None:
                sums.add(*block_sums)
        numbers = counts.find_exemplars()
        exemplars = None if sums is None else shown.take(numbers[numbers >= 0])
    summary = ClusterSummary(
        n_rows=len(rows),
        sizes=counts.sizes,
        costs=divide(counts.costs, counts.sizes, np.nan),
        margins=divide(counts.margins, counts.sizes, np.nan) if k > 1 else None,
        margin_counts=counts.histogram if k > 1 else None,
        exemplar_indices=numbers,
        exemplars=exemplars,
        features=None if sums is None else sums.to_features(counts.sizes),
        agreement=None if y is None else agreement(y, counts.labels, k),
        segment_names=segment_names(opened.model),
    )
    if isinstance(units, PreparedSource):
        summary = summary.in_units_of(units)
    return summary, counts.find_members()


class _Counts:
    """What adds up over blocks and needs no features."""

    def __init__(self, k: int, n_exemplars: int, n_members: int, n_labels: int) -> None:
        self._k, self._n_exemplars = k, n_exemplars
        self.sizes = np.zeros(k, dtype=np.int64)
        self.histogram = np.zeros((k, _BINS), dtype=np.int64)
        self.labels = np.empty(n_labels, dtype=np.int32)
        self.costs, self.margins = np.zeros(k), np.zeros(k)
        self._nearest = SmallestRows(k, n_exemplars)
        self._drawn = SmallestRows(k, n_members)

    def add(self, start: int, nearest: NearestCenters) -> None:
        """Count a block of rows."""
        labels, margins, k = nearest.labels, nearest.margins, self._k
        if len(self.labels):
            self.labels[start : start + len(labels)] = labels
        self.sizes += np.bincount(labels, minlength=k)
        self.costs += np.bincount(labels, nearest.own, k)
        self.margins += np.bincount(labels, margins, k)
        bins = np.minimum((margins * _BINS).astype(np.intp), _BINS - 1)
        flat = np.bincount(labels * np.intp(_BINS) + bins, minlength=k * _BINS)
        self.histogram += flat.reshape(k, _BINS)
        numbers, clusters = start + np.arange(len(labels)), labels.astype(np.intp)
        self._nearest.add(clusters, nearest.own, numbers)
        self._drawn.add(clusters, draw_keys(numbers), numbers)

    def find_exemplars(self) -> Array:
        """Return the numbers of the rows nearest to each centre."""
        result = np.full((self._k, self._n_exemplars), -1, dtype=np.int64)
        clusters, numbers = self._nearest.sort()
        result[clusters, rank_in_group(clusters, self._k)] = numbers
        return result

    def find_members(self) -> Members:
        """Return random rows of each cluster."""
        clusters, numbers = self._drawn.sort()
        return Members(self.sizes, numbers, clusters)


class _FeatureSums:
    """Sums of features by cluster, and of their squares."""

    def __init__(self, k: int, rows: Rows) -> None:
        d = rows.n_features
        self._k, self._n_rows = k, len(rows)
        self._sums, self._squares = np.zeros((k, d)), np.zeros(d)
        self._shift = np.zeros(d)
        if not rows.is_sparse:
            probe = np.linspace(0, len(rows) - 1, min(_PROBE_ROWS, len(rows)))
            sample = np.asarray(rows.take(probe.astype(np.intp)))
            self._shift = sample.mean(axis=0, dtype=np.float64)

    def sum_block(self, block: Block, labels: Array) -> tuple[Any, Array]:
        """Return the sums of a block; called in threads."""
        member = sparse.csc_array(
            (np.ones(len(labels)), labels, np.arange(len(labels) + 1)),
            shape=(self._k, len(labels)),
        )
        if sparse.issparse(block):
            wide = sparse.csr_array(block, dtype=np.float64)
            return member @ wide, np.asarray(wide.multiply(wide).sum(axis=0)).ravel()
        centred = np.subtract(block, self._shift, dtype=np.float64)
        return member @ centred, np.einsum("ij,ij->j", centred, centred)

    def add(self, sums: Any, squares: Array) -> None:
        """Add the sums of a block."""
        if sparse.issparse(sums):
            entries = sums.tocoo()
            entries.sum_duplicates()
            self._sums[entries.coords] += entries.data
        else:
            self._sums += sums
        self._squares += squares

    def to_features(self, sizes: Array) -> Features:
        """Return means and deviations."""
        n = self._n_rows
        offset = self._sums.sum(axis=0) / n
        variance = self._squares / n - offset**2
        # The variance of a constant feature is nothing but rounding.
        noise = n * np.finfo(np.float64).eps * (self._squares / n)
        means = divide(self._sums, sizes[:, None], offset)
        return Features(
            mean=offset + self._shift,
            deviation=np.sqrt(np.where(variance > noise, variance, 0.0)),
            cluster_means=means + self._shift,
        )
