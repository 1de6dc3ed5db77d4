"""
A certificate that tightens
===========================

k-means says nothing about clusterings that it has not seen. A certificate does: no
clustering into as many groups costs less than its bound. The bound comes from
semidefinite programmes on subsets of the rows, and rises while they are solved.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from sketchmeans import SketchedKMeans
from sketchmeans.diagnostics import certificate
from sketchmeans.report import plot_certificate_path

X, _ = make_blobs(1500, n_features=6, centers=6, cluster_std=2.2, random_state=2)
model = SketchedKMeans(6, random_state=0).fit(X)
found = certificate(model, X, max_seconds=20, random_state=0)
print(found.sentence)

# %%
figure, ax = plt.subplots(figsize=(6.4, 3.6))
plot_certificate_path(found, ax)
