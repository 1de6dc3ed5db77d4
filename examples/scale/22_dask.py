"""
Dask, on a local cluster
========================

A Dask array stays where it is: the workers make the passes, sums come back along a
tree, and the labels are a lazy array. Partitions of a multiple of 4,096 rows give the
bits of a local fit.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client
from sklearn.datasets import make_circles

from sketchmeans import NystromKMeans
from sketchmeans.report import LIGHT

rows, _ = make_circles(81_920, noise=0.05, factor=0.3, random_state=0)
client = Client(
    n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
)
X = da.from_array(rows, chunks=(4 * 4096, 2))
model = NystromKMeans(2, gamma=5.0, random_state=0).fit(X)
print(model.labels_)

# %%
# The same fit in this process.
local = NystromKMeans(2, gamma=5.0, random_state=0).fit(rows)
labels = model.labels_.compute()
print("same labels:", np.array_equal(labels, local.labels_))
client.close()

# %%
figure, ax = plt.subplots(figsize=(5, 4))
shown = slice(0, 8000)
colors = [LIGHT.color(label) for label in labels[shown]]
ax.scatter(*rows[shown].T, c=colors, s=2, linewidths=0)
ax.set(title=f"{len(rows):,} rows in {X.npartitions} partitions", xticks=[], yticks=[])
