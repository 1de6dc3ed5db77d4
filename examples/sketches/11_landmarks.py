"""
Landmark selectors on one picture
=================================

Thirty landmarks that six selectors take from the same rows: two dense groups, a
sparse ring and a few points far away. Uniform landmarks follow the density; leverage
scores and pivots look for what others do not explain; centroids lie between rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from sketchmeans import Nystrom, select_landmarks
from sketchmeans.report import LIGHT

rng = np.random.default_rng(1)
angle = rng.uniform(0, 2 * np.pi, 300)
X = np.concatenate(
    [
        rng.normal([-1, 0], 0.25, (1500, 2)),
        rng.normal([1, 0.5], 0.35, (1500, 2)),
        3 * np.c_[np.cos(angle), np.sin(angle)] + rng.normal(0, 0.1, (300, 2)),
        rng.uniform(-5, 5, (12, 2)),
    ]
)
selectors = [
    "uniform",
    "kmeans",
    "k-means++",
    "ridge-leverage",
    "rpcholesky",
    "cholesky",
]

# %%
# Below each name: the share of the kernel matrix's trace that the landmarks leave out.
figure, axes = plt.subplots(2, 3, figsize=(8.4, 6))
for name, ax in zip(selectors, axes.flat, strict=True):
    chosen = select_landmarks(X, 30, name, gamma=1.0, random_state=0)
    features = Nystrom(landmarks=chosen.points, gamma=1.0).fit_transform(X)
    left_out = 1 - (features**2).sum(axis=1).mean()
    ax.scatter(*X.T, s=2, color="0.8", linewidths=0)
    ax.scatter(*chosen.points.T, s=22, color=LIGHT.accent, edgecolor="white")
    ax.set(title=name, xlabel=f"{100 * left_out:.1f}% left out", xticks=[], yticks=[])

# %%
# To cluster, more uniform landmarks beat better ones in the same time: the figures are
# in the user guide, under "Which landmarks?".
