"""
Scales and eigengaps of a graph
===============================

`SpectralKMeans` tries graphs of several scales on a sample. The eigenvalues of the
chosen one say how clearly the rows fall into k parts: k small ones, then a gap.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from sketchmeans import SpectralKMeans
from sketchmeans.report import LIGHT, plot_eigenvalues

clear, _ = make_moons(3000, noise=0.05, random_state=0)
blurred, _ = make_moons(3000, noise=0.22, random_state=0)

# %%
# Two clear moons have two eigenvalues near zero. With much noise the second is no
# longer near zero, and the gap is small: the labels should be taken with care.
figure, axes = plt.subplots(2, 2, figsize=(8.4, 6.4))
for X, line in zip((clear, blurred), axes, strict=True):
    model = SpectralKMeans(2, random_state=0).fit(X)
    colors = [LIGHT.color(label) for label in model.labels_]
    line[0].scatter(*X.T, c=colors, s=2, linewidths=0)
    line[0].set(xticks=[], yticks=[], title=f"cut {model.ncut_:.4f}")
    plot_eigenvalues(model, line[1])

# %%
# With `n_clusters="auto"` the largest gap decides.
model = SpectralKMeans("auto", random_state=0).fit(clear)
print(model.n_clusters_, "clusters; gaps", np.round(model.eigengaps_, 1))
