"""The methods that are compared: landmark strategies and feature sketches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.data import Array
from sketchmeans import (
    ApproximateSVD,
    FeatureSampling,
    LaplacianScore,
    SignProjection,
    SketchedKMeans,
)
from sketchmeans.landmarks import (
    KDPP,
    Centroids,
    KernelKMeansPlusPlus,
    LandmarkSelector,
    Leverage,
    RandomCholesky,
    RidgeLeverage,
    Uniform,
)
from sketchmeans.reduction import Reducer

#: OG17's strategies (App. B): K-DPP chains swap as there, one member asked at random.
PAPER_STRATEGIES: dict[str, LandmarkSelector] = {
    "uniform": Uniform(),
    # Sketches by the diagonal are the same: that of the rbf kernel is constant.
    "leverage, uniform sketch": Leverage(),
    "k-dpp, 1,000 steps": KDPP("uniform", 1_000, "uniform"),
    "k-dpp, 10,000 steps": KDPP("uniform", 10_000, "uniform"),
    "k-means": Centroids(),
    "kernel k-means++": KernelKMeansPlusPlus(1),
    "kernel k-means++, restarts": KernelKMeansPlusPlus(5),
    "kernel k-means++, restarts, Lloyd": KernelKMeansPlusPlus(5, refine=True),
}

#: Strategies beyond those of OG17's figures.
MORE_STRATEGIES: dict[str, LandmarkSelector] = {
    "k-dpp, 1,000 steps from k-means++": KDPP("kmeans++", 1_000, "uniform"),
    "ridge leverage": RidgeLeverage(),
    "rpcholesky": RandomCholesky(),
}

#: Sketches of another size than K ln K: as many rows as landmarks at rank 100.
SMALL_SKETCH = "leverage, sketch of K rows"
SKETCH_SIZES: dict[str, LandmarkSelector] = {SMALL_SKETCH: Leverage(sketch_size=100)}

#: The strategies that the paper proposes.
FAMILY = tuple(name for name in PAPER_STRATEGIES if name.startswith("kernel k-means++"))
LEVERAGE = "leverage, uniform sketch"
CHAINS = ("k-dpp, 1,000 steps", "k-dpp, 10,000 steps")
CHAIN_FROM_SEEDS = "k-dpp, 1,000 steps from k-means++"

#: B14's methods for r features and k clusters (§7.1).
SKETCHES: dict[str, Callable[[int, int, int], Reducer]] = {
    "sampling, exact SVD": lambda r, k, seed: FeatureSampling(
        r, k, svd="truncated", random_state=seed
    ),
    "sampling, fast SVD": lambda r, k, seed: FeatureSampling(r, k, random_state=seed),
    "sign projection": lambda r, k, seed: SignProjection(r, random_state=seed),
    "exact SVD": lambda r, k, seed: ApproximateSVD(
        r, svd="truncated", random_state=seed
    ),
    "fast SVD": lambda r, k, seed: ApproximateSVD(r, random_state=seed),
    "Laplacian scores": lambda r, k, seed: LaplacianScore(r),
}
BASELINE = "Laplacian scores"
FULL = "all features"
POLISHED = "fast SVD, polished"


#: How k-means starts: by k-means++, and at random rows as MATLAB's does.
STARTS = ("k-means++", "random")


def kmeans(
    X: Array, k: int, seed: int, start: str = STARTS[0], n_init: int = 5
) -> Array:
    """Return the labels of k-means as B14 runs it: best of 5 starts, 500 passes.

    MATLAB's kmeans starts at random rows and ends with an online phase, which leaves
    poor optima; k-means++ starts do that work.
    """
    model = KMeans(k, init=start, n_init=n_init, max_iter=500, random_state=seed)
    return np.asarray(model.fit(X).labels_)


def sketched_kmeans(
    X: Array, k: int, method: str, r: int, seed: int, start: str = STARTS[0]
) -> Array:
    """Return the labels that a method of B14's comparison finds."""
    if method == FULL:
        return kmeans(X, k, seed, start)
    if method == POLISHED:
        model = SketchedKMeans(
            k, reducer=ApproximateSVD(r), n_init=5, random_state=seed
        )
        return np.asarray(model.fit(X).labels_)
    features = SKETCHES[method](r, k, seed).fit_transform(X)
    return kmeans(np.asarray(features), k, seed, start)
