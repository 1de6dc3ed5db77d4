"""
How many clusters?
==================

The cost always falls with the number of clusters, so it cannot say how many there
are. Samples can: they agree on the clusters where the number is right, and more than
samples of noise do. `choose_n_clusters` compares, and gives its reason.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from sketchmeans.diagnostics import choose_n_clusters
from sketchmeans.report import plot_path

X, _ = make_blobs(3000, 6, centers=5, cluster_std=1.3, random_state=4)
square = np.random.default_rng(0).random((3000, 2))
tables = {"five groups": X, "a square without groups": square}

figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.2), sharey=True)
for ax, (name, table) in zip(axes, tables.items(), strict=True):
    found = choose_n_clusters(table, range(2, 10), random_state=0)
    chosen = found.n_clusters if found.is_clear else None
    plot_path(found.as_path(), ax, chosen=chosen)
    ax.set_title(name, pad=16)
    print(f"{name}: {found.note}")
