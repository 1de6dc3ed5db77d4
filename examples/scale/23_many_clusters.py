"""
Hundreds of clusters
====================

With many clusters a plain Lloyd loop compares every row with every centre in each
pass, and ends in the first optimum it meets. `SketchedKMeans` searches in the leading
directions of the rows, moves centres in groups from where there are too many to where
there are too few, and finishes with exact passes.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from sketchmeans import SketchedKMeans

rng = np.random.default_rng(3)
centers = rng.uniform(0, 1, (400, 2))
X = (
    centers[rng.integers(400, size=40_000)] + rng.normal(0, 0.006, (40_000, 2))
).astype(np.float32)

figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), sharex=True, sharey=True)
models = [KMeans(400, n_init=1, random_state=0), SketchedKMeans(400, random_state=0)]
for model, ax in zip(models, axes, strict=True):
    start = perf_counter()
    model.fit(X)
    seconds = perf_counter() - start
    cost = model.inertia_ / len(X)
    ax.scatter(*X[::4].T, s=0.5, color="0.75", linewidths=0)
    ax.scatter(*model.cluster_centers_.T, s=6)
    title = f"{type(model).__name__}: {seconds:.1f} s, cost {1e6 * cost:.1f}e-6"
    ax.set(title=title, xticks=[], yticks=[], xlim=(0, 0.5), ylim=(0, 0.5))
