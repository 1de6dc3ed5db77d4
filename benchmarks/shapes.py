"""Clusters of many shapes: how well they are found, and how fast.

``python -m benchmarks.shapes quality`` fits ours and peers to the problems of
`benchmarks.shape_problems`, with the true number of clusters, and prints the mean
adjusted Rand index of each family; the halves are reported apart.

``python -m benchmarks.shapes speed`` times fits of rings, moons and spirals of up to a
million rows, of MNIST and of covtype, beside a landmark-based spectral pipeline written
plainly, `Nystroem` with `KMeans`, HDBSCAN, coreset spectral clustering (where
`coreset-sc` is installed) and, as far as it goes, scikit-learn's `SpectralClustering`.
The methods take turns on each table.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds
from scipy.spatial import KDTree
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline

from benchmarks.data import _file, covtype, mnist
from benchmarks.measure import measure
from benchmarks.shape_makers import Array, Labelled, moons, rings, spirals
from benchmarks.shape_problems import SEEN, problems
from sketchmeans import NystromKMeans, SpectralKMeans

Fit = Callable[[Array, int, int], Array]

#: Rows up to which scikit-learn's SpectralClustering is fitted.
_MOST_SPECTRAL = 5_000


def fit_spectral_pairs(X: Array, k: int, seed: int) -> Array:
    """Return labels of SpectralClustering on a graph of nearest neighbours."""
    model = SpectralClustering(k, affinity="nearest_neighbors", random_state=seed)
    return model.fit_predict(X)


def fit_plain_landmarks(X: Array, k: int, seed: int) -> Array:
    """Return labels of landmark-based spectral clustering (Chen & Cai, 2011), plainly.

    Random landmarks, one bandwidth, five neighbours, singular vectors, k-means.
    """
    rng = np.random.default_rng(seed)
    points = X[rng.choice(len(X), min(1000, len(X) // 2), replace=False)]
    distances, numbers = KDTree(points).query(X, k=5)
    weights = np.exp(-np.square(distances) / (2.0 * distances.mean() ** 2))
    weights /= weights.sum(axis=1, keepdims=True)
    edges = np.arange(0, weights.size + 1, 5)
    Z = sparse.csr_array((weights.ravel(), numbers.ravel(), edges))
    masses = np.asarray(Z.sum(axis=0)).ravel()
    scaled = Z @ sparse.diags_array(1.0 / np.sqrt(np.maximum(masses, 1e-300)))
    vectors = svds(scaled, k, random_state=rng)[0]
    return KMeans(k, n_init=10, random_state=seed).fit_predict(vectors)


def fit_coreset(X: Array, k: int, seed: int) -> Array:
    """Return labels of coreset spectral clustering on a graph of ten neighbours.

    The coreset is a hundredth of the rows, its default, but at least 2,000 rows.
    """
    from coreset_sc import CoresetSpectralClustering

    np.random.seed(seed)  # noqa: NPY002 - the one generator that it draws from
    graph = kneighbors_graph(X, 10, include_self=True)
    share = min(1.0, max(0.01, 2_000 / len(X)))
    model = CoresetSpectralClustering(k, coreset_ratio=share, ignore_warnings=True)
    return model.fit_predict(sparse.csr_matrix(graph.maximum(graph.T)))


METHODS: dict[str, Fit] = {
    "SpectralKMeans": lambda X, k, s: SpectralKMeans(k, random_state=s).fit_predict(X),
    "NystromKMeans": lambda X, k, s: NystromKMeans(k, random_state=s).fit_predict(X),
    "NystromKMeans auto": lambda X, k, s: NystromKMeans(
        k, gamma="auto", random_state=s
    ).fit_predict(X),
    "KMeans": lambda X, k, s: KMeans(k, n_init=10, random_state=s).fit_predict(X),
    "GaussianMixture": lambda X, k, s: GaussianMixture(
        k, n_init=3, random_state=s
    ).fit_predict(X),
    "SpectralClustering kNN": fit_spectral_pairs,
    "HDBSCAN": lambda X, k, s: HDBSCAN(
        min_cluster_size=max(5, len(X) // (20 * k)), copy=True
    ).fit_predict(X),
    "plain landmarks": fit_plain_landmarks,
    "Nystroem + KMeans": lambda X, k, s: make_pipeline(
        Nystroem(gamma=1.0 / X.var(axis=0).sum() / 4.0, random_state=s),
        KMeans(k, n_init=1, random_state=s),
    ).fit_predict(X),
}
if find_spec("coreset_sc"):
    METHODS["coreset-sc kNN"] = fit_coreset


def report_quality(names: list[str], halves: list[str], seeds: int, drawn: int) -> None:
    """Print the mean adjusted Rand index of each method and family."""
    for half in halves:
        cases = list(problems(half, drawn))
        families = sorted({case.family for case in cases})
        print(f"{half}: {len(cases)} problems of seed {drawn}, {seeds} fits each")
        print(f"{'method':24}{'all':>8}" + "".join(f"{f:>11}" for f in families))
        for name in names:
            scores = [
                np.mean(
                    [
                        adjusted_rand_score(
                            case.y, METHODS[name](case.X, case.n_clusters, seed)
                        )
                        for seed in range(seeds)
                    ]
                )
                for case in cases
            ]
            means = [
                np.mean(
                    [s for s, c in zip(scores, cases, strict=True) if c.family == f]
                )
                for f in families
            ]
            row = "".join(f"{mean:11.3f}" for mean in means)
            print(f"{name:24}{np.mean(scores):8.3f}{row}", flush=True)


def large_problems(directory: Path | None) -> list[tuple[str, Labelled]]:
    """Return the tables that are timed, with their labels."""
    rng = np.random.default_rng(0)
    found = [
        (f"{name} {n:,} x 2", make(rng, n=n, **given))
        for n in (20_000, 200_000, 1_000_000)
        for name, make, given in (
            ("rings", rings, {"noise": 0.05}),
            ("moons", moons, {"noise": 0.06}),
            ("spirals", spirals, {"noise": 0.02}),
        )
    ]
    for name, table in (("mnist", mnist), ("covtype", covtype)):
        file = _file(directory, f"{name}.npz")
        if file is not None:
            X = table(directory).X
            found.append((name, (X, np.load(file)["y"][: len(X)])))
    return found


def report_speed(names: list[str], directory: Path | None, wanted: str) -> None:
    """Print seconds, those of all cores, peak memory and agreement with the labels."""
    for title, (X, y) in large_problems(directory):
        if wanted not in title:
            continue
        k = len(np.unique(y))
        for name in names:
            if _is_too_large(name, X):
                continue
            fit = METHODS[name]
            run = measure(lambda fit=fit, X=X, k=k: fit(X, k, 0))
            ari = adjusted_rand_score(y, run.value)
            nmi = normalized_mutual_info_score(y, run.value)
            print(
                f"{title:22}{name:24}{run.seconds:8.2f} s"
                f"{run.cpu_seconds:8.2f} s of cores{run.peak_bytes / 1e6:8.0f} MB"
                f"   ARI {ari:.3f}   NMI {nmi:.3f}",
                flush=True,
            )


def _is_too_large(name: str, X: Array) -> bool:
    """Say whether a method would take minutes or all memory."""
    n, d = X.shape
    if name == "SpectralClustering kNN":
        return n > _MOST_SPECTRAL
    if name == "coreset-sc kNN":  # the graph of many columns takes n² d
        return d > 50
    return name in ("HDBSCAN", "plain landmarks") and (n > 250_000 or d > 50)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["quality", "speed"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--halves", nargs="+", default=["design", "report"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--draw", type=int, default=SEEN, help="seed of the problems")
    parser.add_argument("--only", default="", help="tables whose name holds this")
    parser.add_argument("--data", type=Path, default=None)
    given: Any = parser.parse_args(arguments)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if given.part == "quality":
            report_quality(given.methods, given.halves, given.seeds, given.draw)
        else:
            report_speed(given.methods, given.data, given.only)
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
