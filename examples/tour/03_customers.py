"""
Segments of customers
=====================

A table as a shop exports it: identifiers, categories, a date, counts, amounts and gaps.
`TableClusterer` prepares the columns and leaves identifiers out; four segments were put
into the table, and are not told to the fit.
"""

import matplotlib.pyplot as plt
import pandas as pd

from sketchmeans import SketchedKMeans, TableClusterer
from sketchmeans.datasets import make_customers

table, segments = make_customers(3000)
print(table.head())

# %%
# Each cluster beside the segments that made the table.
model = TableClusterer(SketchedKMeans(4, random_state=0)).fit(table)
print(pd.crosstab(segments, model.labels_))

# %%
# What sets the clusters apart, in the units of the table.
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2))
for name, ax in zip(("age", "orders", "days_since_order"), axes, strict=True):
    parts = [table[name][model.labels_ == c].dropna() for c in range(4)]
    boxes = ax.boxplot(parts, showfliers=False, patch_artist=True, tick_labels=range(4))
    for cluster, box in enumerate(boxes["boxes"]):
        box.set(facecolor=f"C{cluster}", alpha=0.6)
    ax.set(title=name, xlabel="Cluster")
