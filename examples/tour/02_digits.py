"""
Digits, with typical images
===========================

Each cluster has an exemplar, the row nearest to its centre, and `cluster_summary`
finds some more of them. So a clustering of images can be looked at.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from sketchmeans import NystromKMeans
from sketchmeans.diagnostics import cluster_summary

X, y = load_digits(return_X_y=True)
model = NystromKMeans(n_clusters=10, random_state=0).fit(X)
summary = cluster_summary(model, X, y=y, n_exemplars=8)

# %%
# One line for each cluster, the most typical image first.
figure, axes = plt.subplots(10, 8, figsize=(6, 7.6))
for cluster, line in enumerate(axes):
    for row, ax in zip(summary.exemplar_indices[cluster], line, strict=True):
        ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(f"{summary.sizes[cluster]:.0f}", rotation=0, labelpad=16)
figure.suptitle("Typical digits of ten clusters, and how many rows each has")

# %%
# The classes were not used. How well do the clusters know them?
found = summary.agreement
print(f"{found.accuracy:.0%} of the rows match, ARI {found.adjusted_rand:.2f}")
