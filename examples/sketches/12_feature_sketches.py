"""
Feature sketches
================

A few sketched features stand for all 784 columns. Random signs need no look at the
data; sampling keeps original columns; the SVD needs the fewest features. After the
search on the sketch the partition is plugged back, and the cost below is that in all
columns.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from sketchmeans import ApproximateSVD, FeatureSampling, SignProjection, SketchedKMeans

X, _ = make_blobs(4000, n_features=784, centers=20, cluster_std=9.0, random_state=0)
X = X.astype(np.float32)
sizes = [4, 8, 16, 32, 64]
sketches = {
    "ApproximateSVD": ApproximateSVD,
    "SignProjection": SignProjection,
    "FeatureSampling": FeatureSampling,
}

# %%
# `refine_max_iter=0` keeps the partition of the sketch, to show what it is worth alone.
best = SketchedKMeans(20, reducer=None, random_state=0).fit(X).cost_
figure, ax = plt.subplots(figsize=(6.4, 3.8))
for name, sketch in sketches.items():
    costs = []
    for size in sizes:
        reducer = sketch(size, random_state=0)
        model = SketchedKMeans(20, reducer=reducer, refine_max_iter=0, random_state=0)
        costs.append(model.fit(X).cost_ / best)
    ax.plot(sizes, costs, marker="o", label=name)
ax.set_xscale("log", base=2)
ax.set_xticks(sizes, sizes)
ax.set(
    xlabel="Sketched features", title="Cost, over that of k-means on all 784 columns"
)
ax.legend()
