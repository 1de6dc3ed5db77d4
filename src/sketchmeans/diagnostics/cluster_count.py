"""How many clusters: those that samples agree on, and that noise does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import euclidean_distances
from sklearn.utils.extmath import randomized_svd

from sketchmeans.cluster import NystromKMeans, SpectralKMeans
from sketchmeans.cluster.bandwidth import neighbor_graph, normalised_cut
from sketchmeans.data.input import check_table, check_weights
from sketchmeans.data.rows import as_rows
from sketchmeans.data.sampling import sample_rows
from sketchmeans.diagnostics.agreement import adjusted_rand_score
from sketchmeans.diagnostics.resampling import (
    NEIGHBORS,
    SUBSAMPLE,
    Resampling,
    interval,
    resample,
    resample_noise,
)
from sketchmeans.kernels import toarray
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.parameters import as_generator, check_integer
from sketchmeans.theory.problem import KernelLike, check_below
from sketchmeans.theory.results import Result

#: By how much the logarithm of an eigengap has to exceed that of noise to be enough
#: alone, where agreement exceeds that of noise by _BEYOND as well, and
#: where all samples then find the same clusters: it may fall short of that of noise.
#: Between these, the limit is graded: a step would make a coin of any table near it.
_LARGE_GAP, _CLEAR_GAP, _NO_GAP, _BEYOND = 0.5, 0.3, -0.4, 0.3
#: Agreement below which no number is clear, from which on clusters begin to be the
#: same, and from which on they are.
_HARDLY, _ALIKE, _THE_SAME = 0.75, 0.98, 0.995
#: Differences in agreement that do not count, and where the gap is the largest: rows
#: between many clusters change sides.  Gaps below _SMALL_GAP are shares of it.
_AS_STABLE, _SEPARATED, _SMALL_GAP = 0.02, 0.08, 0.7
#: Tables of noise of either kind, for each subsample of the table: one differs from
#: the next by far more than its subsamples do.
_NOISE_SHARE = 0.4
#: Rows on which kernel k-means and cuts are compared, when they count as equal, and how
#: many times the cut of the latter may that of the former be.
_MOST_COMPARED, _SAME_CLUSTERS, _CUT_RATIO = 2_000, 0.75, 2.0
#: Rows of more columns are replaced by so many principal components.
_MOST_COLUMNS = 50


@dataclass(frozen=True, repr=False)
class ClusterCount(Result):
    """A number of clusters, and what speaks for it and for others.

    Attributes
    ----------
    n_clusters : int
        The suggestion.
    is_clear : bool
        False where the table does not differ from noise, whatever the number.
    note : str
        The reason.
    eigengap_n_clusters : int
        A second opinion: the largest eigengap beside that of noise.
    ks : ndarray of shape (c,)
        The numbers that were tried.
    agreement, agreement_low, agreement_high : ndarray of shape (c,)
        Adjusted Rand index between the clusters that two subsamples find, and its
        interval.
    noise_agreement, noise_agreement_high : ndarray of shape (c,)
        The same for tables of noise, and the upper end of its interval.
    eigengap : ndarray of shape (c,)
        Logarithm of the relative gap between eigenvalues k and k + 1, less that of
        noise.
    n_neighbors : ndarray of shape (c,)
        Landmarks that each row was connected to: the graph with most agreement.
    n_subsamples : int
    confidence : float
        Of each interval.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.diagnostics import choose_n_clusters
    >>> noise = np.random.default_rng(0).normal(size=(600, 2))
    >>> found = choose_n_clusters(noise, [2, 3], random_state=0)
    >>> found.is_clear
    False
    """

    n_clusters: int
    is_clear: bool
    note: str
    eigengap_n_clusters: int
    ks: Array
    agreement: Array
    agreement_low: Array
    agreement_high: Array
    noise_agreement: Array
    noise_agreement_high: Array
    eigengap: Array
    n_neighbors: Array
    n_subsamples: int
    confidence: float

    def as_path(self) -> dict[str, Array]:
        """Return the columns that `cluster_count_path` has for kernel k-means.

        "noise_stability" and "eigengap" are here only.
        """
        return {
            "n_clusters": self.ks,
            "stability": self.agreement,
            "stability_low": self.agreement_low,
            "stability_high": self.agreement_high,
            "noise_stability": self.noise_agreement,
            "eigengap": self.eigengap,
        }


def choose_n_clusters(
    X: Any,
    ks: Sequence[int] = tuple(range(2, 13)),
    *,
    n_subsamples: int = 10,
    subsample_size: int = 4_000,
    confidence: float = 0.95,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> ClusterCount:
    """Suggest a number of clusters of any shape, or say that none is clear.

    Each subsample is cut into k clusters by the eigenvectors of graphs of several
    scales, as in `SpectralKMeans`.  Let a_k be the mean adjusted Rand index of two
    subsamples, and g_k the mean of ``log((μ_{k+1} + ε)/(μ_k + ε))``, ε = 3e-4, for
    eigenvalues μ of their graphs, less the largest of tables of noise with the same
    covariance (and the same categories).  A number counts with ``a_k ≥ 0.75``, and
    ``g_k ≥ 0.6``; or ``g_k ≥ 0.3`` (−0.1 from a_k = 0.985 on), if a_k exceeds that of
    noise.  Of these the largest with ``a_k ≥ max a − 0.04`` is taken (0.08, if its gap
    is large): two large groups are often stable, too, but say less.

    Costs seconds, whatever n is.

    Parameters
    ----------
    X : array-like, sparse matrix, path or `Source`, of shape (n, d)
        Its columns should be on one scale.
    ks : sequence of int, default=2 to 12
        Numbers of clusters, from 2 to a third of the rows.
    n_subsamples : int, default=10
        At least 3; 0.4 times as many tables of noise of each of two kinds, at least 3,
        are compared with.
    subsample_size : int, default=4,000
        Rows of a subsample: at most 0.8 of all rows.
    confidence : float, default=0.95
        Of each interval, by the jackknife over subsamples or over tables of noise.
    sample_weight : array-like of shape (n,), optional
        A row of weight 3 counts as three rows.
    n_jobs : int or None, default=None
    random_state : int, Generator, RandomState or None, default=None

    References
    ----------
    Tibshirani & Walther, "Cluster validation by prediction strength", JCGS 2005.
    von Luxburg, "Clustering stability: an overview", 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, _ = make_moons(600, noise=0.05, random_state=0)
    >>> found = choose_n_clusters(X, [2, 3, 4], random_state=0)
    >>> found.n_clusters, found.is_clear
    (2, True)
    """
    counts = sorted({check_integer("ks", k, low=2) for k in ks})
    if not counts:
        raise ValueError(f"ks={ks!r} should have at least one number of clusters.")
    check_integer("n_subsamples", n_subsamples, low=3)
    check_integer("subsample_size", subsample_size, low=2)
    check_below("confidence", confidence)
    sample_rng, *rngs = as_generator(random_state).spawn(4)
    table = check_table(X)
    with Workers(n_jobs) as workers:
        rows = as_rows(table, workers, check_weights(sample_weight, table.shape[0]))
        if counts[-1] > len(rows) // 3:
            raise ValueError(
                f"ks={counts[-1]} should be <= {len(rows) // 3}, a third of the rows."
            )
        size = min(len(rows), round(subsample_size / SUBSAMPLE))
        drawn = np.sort(sample_rows(rows, size, sample_rng))
        sample = _reduce_columns(rows.take(drawn))
        found = resample(sample, counts, n_subsamples, workers, rngs[0])
        n_noise = max(3, round(_NOISE_SHARE * n_subsamples))
        noises = [
            resample_noise(sample, counts, n_noise, workers, rng, normal=normal)
            for rng, normal in zip(rngs[1:], (False, True), strict=True)
        ]
    return _weigh_evidence(np.array(counts), found, noises, n_subsamples, confidence)


def are_round(
    X: Any,
    n_clusters: int,
    *,
    kernel: KernelLike = "rbf",
    gamma: Gamma = "mean",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> bool:
    """Say whether kernel k-means finds the clusters that `SpectralKMeans` finds.

    That is if the adjusted Rand index of the two, ``(RI − E RI)/(1 − E RI)`` of pairs
    of rows, is at least 0.75 on a sample of at most 2,000 rows, or if its own clusters
    hang together about as well: in a graph of nearest neighbours their normalised cut
    is at most twice the other.  If not, their shape needs `SpectralKMeans`.

    Costs two fits of the sample, and the distances of its pairs of rows.

    Parameters
    ----------
    X : array-like, sparse matrix, path or `Source`, of shape (n, d)
    n_clusters : int
    kernel, gamma
        Of kernel k-means.
    n_jobs, random_state
        As in `choose_n_clusters`.

    See Also
    --------
    choose_n_clusters : How many clusters there are.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> X, _ = make_circles(600, noise=0.05, factor=0.5, random_state=0)
    >>> are_round(X, 2, random_state=0)
    False
    """
    rng = as_generator(random_state)
    table = check_table(X)
    with Workers(n_jobs) as workers:
        rows = as_rows(table, workers)
        size = min(len(rows), _MOST_COMPARED)
        sample = rows.take(np.sort(sample_rows(rows, size, rng)))
    shared: dict[str, Any] = {"n_jobs": n_jobs}
    plain_rng, graph_rng = rng.spawn(2)
    plain = NystromKMeans(
        n_clusters, kernel=kernel, gamma=gamma, random_state=plain_rng, **shared
    ).fit_predict(sample)
    spectral = SpectralKMeans(n_clusters, random_state=graph_rng, **shared)
    curved = spectral.fit_predict(sample)
    if adjusted_rand_score(plain, curved) >= _SAME_CLUSTERS:
        return True
    graph = neighbor_graph(euclidean_distances(sample, squared=True))
    cuts = [normalised_cut(graph, one, n_clusters) for one in (plain, curved)]
    return bool(cuts[0] <= _CUT_RATIO * cuts[1])


def _reduce_columns(block: Any) -> Array:
    """Return rows as float64, of many columns the leading principal components."""
    if block.shape[1] > _MOST_COLUMNS < block.shape[0]:
        left, lengths, _ = randomized_svd(block, _MOST_COLUMNS, random_state=0)
        return np.asarray(left * lengths, dtype=np.float64)
    return np.asarray(toarray(block), dtype=np.float64)


def _weigh_evidence(
    ks: Array,
    found: Resampling,
    noises: list[Resampling],
    n_subsamples: int,
    confidence: float,
) -> ClusterCount:
    def best_graphs(one: Resampling) -> tuple[Array, Array, Array]:
        """Return the graph of most agreement, its agreement and the error of that."""
        graphs = one.agreement.argmax(axis=0)
        place = graphs, np.arange(len(ks))
        return graphs, one.agreement[place], one.error[place]

    graphs, mean, error = best_graphs(found)
    low, high = interval(mean, error, n_subsamples, confidence)
    # The noise that is the harder one to tell from the table, for each number.
    chance = [best_graphs(noise)[1:] for noise in noises]
    by_chance, errors = np.array(chance).swapaxes(0, 1)
    hardest = by_chance.argmax(axis=0), np.arange(len(ks))
    noise_mean = by_chance[hardest]
    n_noise = len(noises[0].gaps)
    _, noise_high = interval(noise_mean, errors[hardest], n_noise, confidence)
    largest = np.max([noise.gaps.mean(axis=0) for noise in noises], axis=0)
    eigengap = (found.gaps.mean(axis=0) - largest).max(axis=0)
    number, is_clear = _choose(mean, noise_mean, eigengap)
    return ClusterCount(
        n_clusters=int(ks[number]),
        is_clear=is_clear,
        note=_explain(int(ks[number]), is_clear, mean[number], noise_mean[number]),
        eigengap_n_clusters=int(ks[eigengap.argmax()]),
        ks=ks,
        agreement=mean,
        agreement_low=low,
        agreement_high=high,
        noise_agreement=noise_mean,
        noise_agreement_high=noise_high,
        eigengap=eigengap,
        n_neighbors=np.array(NEIGHBORS)[graphs],
        n_subsamples=n_subsamples,
        confidence=confidence,
    )


def _choose(mean: Array, by_chance: Array, eigengap: Array) -> tuple[int, bool]:
    """Return the place of the number to suggest, and whether it is clear."""
    beyond = np.maximum(mean - by_chance, 0.0) / _BEYOND
    same = np.clip((mean - _ALIKE) / (_THE_SAME - _ALIKE), 0.0, 1.0)
    least = _LARGE_GAP - np.minimum(beyond, 1.0) * (_LARGE_GAP - _CLEAR_GAP)
    least -= same * np.minimum(2.0 * beyond, 1.0) * (_CLEAR_GAP - _NO_GAP)
    supported = (eigengap >= least) & (mean >= _HARDLY)
    if not supported.any():
        return int(np.argmax(mean)), False
    share = np.maximum(eigengap / max(_SMALL_GAP, eigengap[supported].max()), 0.0)
    differences = _AS_STABLE + share * (_SEPARATED - _AS_STABLE)
    stable = supported & (mean >= mean[supported].max() - differences)
    return int(np.flatnonzero(stable)[-1]), True


def _explain(k: int, is_clear: bool, agreed: float, by_chance: float) -> str:
    figures = f"agreement {agreed:.2f} of 1, on noise {by_chance:.2f}"
    if is_clear:
        return f"{k} is the most clusters that different samples agree on ({figures})."
    return (
        "No number of clusters is clear: samples agree hardly more than on noise. "
        f"{k} is the best of these ({figures})."
    )
