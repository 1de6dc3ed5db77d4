"""
The colours of a photograph
===========================

273,280 pixels are clustered by their colour; each is then painted in the colour of
its centre. Plain k-means is what this needs, and `SketchedKMeans` is plain k-means
that is fast on many rows.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from sketchmeans import SketchedKMeans

photograph = load_sample_image("china.jpg")
pixels = photograph.reshape(-1, 3).astype(np.float32) / 255

figure, axes = plt.subplots(2, 2, figsize=(8, 5.8))
axes[0, 0].imshow(photograph)
n_colors = len(np.unique(photograph.reshape(-1, 3), axis=0))
axes[0, 0].set_title(f"{n_colors:,} colours")
for k, ax in zip((4, 16, 64), axes.flat[1:], strict=True):
    start = perf_counter()
    model = SketchedKMeans(k, random_state=0).fit(pixels)
    seconds = perf_counter() - start
    painted = model.cluster_centers_[model.labels_].reshape(photograph.shape)
    ax.imshow(painted.clip(0, 1))
    ax.set_title(f"{k} colours, {seconds:.1f} s")
for ax in axes.flat:
    ax.set_axis_off()
