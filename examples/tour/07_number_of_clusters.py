"""
How many clusters?
==================

The cost always falls with the number of clusters, so it cannot say how many there
are. Stability can: clusterings of two halves of the rows agree where the number is
right. `advised_cluster_count` reads the path and gives its reason.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from sketchmeans.diagnostics import advised_cluster_count, cluster_count_path
from sketchmeans.report import plot_path

X, _ = make_blobs(3000, 6, centers=5, cluster_std=1.3, random_state=4)
path = cluster_count_path(X, range(2, 11), random_state=0)
advice = advised_cluster_count(path)
print(advice)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2))
plot_path(path, left, chosen=advice.value)
plot_path(path, right, column="cost", chosen=advice.value)
