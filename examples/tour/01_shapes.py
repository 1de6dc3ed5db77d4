"""
Shapes, beside KMeans and HDBSCAN
=================================

k-means cuts the plane into cells about centres. `SpectralKMeans` follows the points:
it is told the number of clusters and nothing else, and labels new rows, too. HDBSCAN
finds the number by itself and leaves points out as noise (grey); its smallest cluster
has to be chosen.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons

from sketchmeans import SpectralKMeans
from sketchmeans.report import LIGHT

uneven = make_blobs(
    [2200, 500, 300],
    centers=[[0, 0], [6, 0], [0, 6]],
    cluster_std=[1.6, 0.4, 0.5],
    random_state=0,
)
tables = [
    make_circles(3000, noise=0.06, factor=0.4, random_state=0),
    make_moons(3000, noise=0.08, random_state=0),
    uneven,
]
methods = {
    "KMeans": lambda k: KMeans(k, n_init=10, random_state=0),
    "HDBSCAN": lambda k: HDBSCAN(min_cluster_size=50, copy=True),
    "SpectralKMeans": lambda k: SpectralKMeans(k, random_state=0),
}

# %%
# The seconds are those of one fit on the machine that built this page.
figure, axes = plt.subplots(3, 3, figsize=(8, 8))
for (X, y), line in zip(tables, axes, strict=True):
    for (name, make), ax in zip(methods.items(), line, strict=True):
        start = perf_counter()
        labels = make(len(np.unique(y))).fit_predict(X)
        seconds = perf_counter() - start
        colors = [LIGHT.color(label) if label >= 0 else "0.8" for label in labels]
        ax.scatter(*X.T, c=colors, s=3, linewidths=0)
        ax.set(title=f"{name}, {seconds:.2f} s", xticks=[], yticks=[])
