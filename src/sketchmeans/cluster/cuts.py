"""Normalised cuts of a row-landmark graph: start, and passes that lower the cut."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from sketchmeans.data.rows import Rows
from sketchmeans.engine.blocks import BlockEngine
from sketchmeans.engine.init import KMeansPlusPlus
from sketchmeans.engine.lloyd import OnPass, SavedLoop, SavedStages, lloyd
from sketchmeans.engine.progress import Progress
from sketchmeans.engine.restarts import Schedule, Search
from sketchmeans.engine.space import InputSpace
from sketchmeans.engine.types import Centers, LloydResult
from sketchmeans.graphs.space import GraphSpace, LandmarkGram
from sketchmeans.graphs.spectrum import Spectrum
from sketchmeans.kernels import squared_distances_among
from sketchmeans.numerics.linalg import Array

#: Eigenvalues and cuts below this are about as good as zero: what counts is how many
#: times larger the next ones are.
SMALL_CUT = 1e-3

#: Passes on landmarks, where the start is looked for.
_LANDMARK_PASSES = 100


@dataclass(frozen=True)
class Cut:
    """A partition of a graph, its normalised cut, and what no partition is below."""

    spectrum: Spectrum
    result: LloydResult
    ncut: float
    bound: float

    @property
    def smallest_share(self) -> float:
        """The weight of the smallest cluster, as a share of that of an even one."""
        counts = self.result.counts
        return float(len(counts) * counts.min() / counts.sum())

    @property
    def gap(self) -> float:
        """How clear the clusters are: the next eigenvalue over the cut per cluster.

        What one more cluster would cost at least, on top of what each of these costs.
        For perfect clusters the cut is the sum of the eigenvalues, and this the
        eigengap.
        """
        k, values = len(self.result.counts), self.spectrum.values
        following = values[k] if k < len(values) else 0.0
        return float((following + SMALL_CUT) / (self.ncut / max(k - 1, 1) + SMALL_CUT))


@dataclass(frozen=True)
class CutSearch:
    """How cuts are looked for: restarts on the landmarks, passes on the rows."""

    n_init: int
    max_iter: int
    tol: float
    progress: Progress = field(repr=False)
    #: Whether swaps of centres are tried when k-means on the landmarks is at its end.
    swaps: bool = True

    def run(
        self,
        engine: BlockEngine,
        gram: sparse.csr_array,
        spectrum: Spectrum,
        k: int,
        rng: np.random.Generator,
        on_pass: OnPass | None = None,
        saved: SavedStages | None = None,
    ) -> Cut:
        """Return a cut of the rows into k clusters, from the spectrum of the graph.

        k-means on the landmarks' rows of the first k eigenvectors, scaled to length
        one, gives the start; weighted kernel k-means on all rows never raises its cut.
        """
        degrees = np.asarray(gram.sum(axis=1)).ravel()
        labels = self._cluster_landmarks(spectrum, degrees, k, rng, engine.rows)
        centers = _start_centers(engine, gram, degrees, labels, k)
        # The cost is the cut and a constant: Σ k(x, x) − k, over the weight.
        present = degrees > 0.0
        lengths = gram.diagonal()[present] / degrees[present]
        floor = float(lengths.sum() - k) / float(degrees.sum())

        def run(loop: SavedLoop | None = None) -> list[LloydResult]:
            return lloyd(
                engine,
                centers,
                max_iter=self.max_iter,
                tol=self.tol,
                on_pass=on_pass,
                saved=loop,
                floor=floor,
            )

        if saved is None:
            (result,) = run()
        else:
            (result,) = saved.run_stage(run, centers, len(engine.rows), labels=True)
        found, centroids = engine.partition(result.labels, k)
        counts, lengths = found.counts[0], centroids.squared_norms[0]
        n_filled = int((counts > 0.0).sum())
        ncut = max(n_filled - float(counts @ lengths), 0.0)
        bound = float(spectrum.values[:n_filled].sum())
        return Cut(spectrum, result, ncut, bound)

    def _cluster_landmarks(
        self,
        spectrum: Spectrum,
        degrees: Array,
        k: int,
        rng: np.random.Generator,
        rows: Rows,
    ) -> Array:
        """Return a cluster for each landmark, by k-means on its spectral features."""
        labels = np.zeros(len(degrees), dtype=np.int32)
        present = np.flatnonzero(degrees > 0.0)
        if len(present) <= k:
            labels[present] = np.arange(len(present))
            return labels
        # All of the null space if there are more parts than clusters: any k of its
        # vectors would leave landmarks at the origin.
        width = max(k, spectrum.n_parts)
        features = spectrum.vectors[present, :width]
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        features = features / np.maximum(lengths, np.finfo(float).tiny)
        points = Rows(features, rows.workers, degrees[present] / degrees.mean())
        schedule = Schedule(self.n_init, _LANDMARK_PASSES, 1e-4, 0, swaps=self.swaps)
        progress = self.progress.silent()
        search = Search(schedule, squared_distances_among, progress)
        space = InputSpace.of(points, k)
        engine, start = search.race_restarts(points, space, KMeansPlusPlus(), k, rng)
        found = search.finish(engine, start)
        if self.swaps:
            found = search.improve_by_swaps(engine, found, rng)
        labels[present] = found[0].labels
        return labels


def _start_centers(
    engine: BlockEngine, gram: sparse.csr_array, degrees: Array, labels: Array, k: int
) -> Centers:
    """Return the centroids of rows that belong to clusters as their landmarks do.

    A row is in a cluster with the share of its weights z that go to the landmarks of
    the cluster, so that the sums over rows are those of ``Zᵀ W Z``: no pass is needed.
    """
    p = len(degrees)
    member = sparse.csr_array((np.ones(p), (np.arange(p), labels)), shape=(p, k))
    sums = (gram @ member).toarray().T
    sizes = degrees @ member
    means = np.repeat(degrees[None] / degrees.sum(), k, axis=0)
    full = sizes > 0.0
    means[full] = sums[full] / sizes[full, None]
    return engine.centers_of_means(means[None])


def weigh_graph(engine: BlockEngine) -> sparse.csr_array:
    """Return ``Zᵀ W Z`` of all rows, and set the degrees of the engine's space."""
    gram: sparse.csr_array = engine.backend.run(LandmarkGram())[1]
    assert isinstance(engine.space, GraphSpace)
    engine.space.weigh(np.asarray(gram.sum(axis=1)).ravel())
    return gram
