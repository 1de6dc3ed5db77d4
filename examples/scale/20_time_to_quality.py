"""
Time to quality, beside scikit-learn
====================================

What does a second buy? One fit each, at the defaults for a given number of restarts,
on 20,000 rows of 32 columns. Down and left is better. This runs in seconds on one
machine; the page of benchmarks has larger tables and more peers.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import make_blobs

from sketchmeans import SketchedKMeans

X, _ = make_blobs(
    20_000, n_features=32, centers=120, center_box=(-3, 3), random_state=0
)
X = X.astype(np.float32)


def run(make):
    """Return seconds and cost of two fits."""
    points = []
    for seed in range(2):
        start = perf_counter()
        model = make(seed).fit(X)
        seconds = perf_counter() - start
        gaps = X - model.cluster_centers_[model.predict(X)]
        points.append((seconds, np.einsum("ij,ij->", gaps, gaps) / len(X)))
    return np.array(points)


rivals = {
    "KMeans, n_init=1": lambda seed: KMeans(100, n_init=1, random_state=seed),
    "KMeans, n_init=3": lambda seed: KMeans(100, n_init=3, random_state=seed),
    "MiniBatchKMeans": lambda seed: MiniBatchKMeans(100, n_init=3, random_state=seed),
    "SketchedKMeans": lambda seed: SketchedKMeans(100, random_state=seed),
}

# %%
figure, ax = plt.subplots(figsize=(6.8, 4))
for (name, make), marker in zip(rivals.items(), "os^D", strict=True):
    ax.scatter(*run(make).T, label=name, marker=marker, s=36)
ax.set(xscale="log", xlabel="Seconds", title="Cost of 100 clusters over time")
ax.legend()
