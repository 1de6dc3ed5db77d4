"""
Drift, month on month
=====================

A model is fitted once and labels the rows of later months. Two figures tell whether
it still fits them: the cost of the new rows, and the sizes of the clusters. Here one
group moves away slowly, and a new one appears in May.
"""

import matplotlib.pyplot as plt
import numpy as np

from sketchmeans import NystromKMeans
from sketchmeans.report import LIGHT

months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun"]


def draw_month(number):
    """Return the rows of a month."""
    rng = np.random.default_rng(number)
    groups = [
        rng.normal([0, 0], 0.6, (800, 2)),
        rng.normal([4 + 0.25 * number, 0], 0.6, (800, 2)),
        rng.normal([2, 4], 0.6, (800, 2)),
    ]
    if number >= 4:
        groups.append(rng.normal([7, 4.5], 0.5, (150 * (number - 3), 2)))
    return np.concatenate(groups)


model = NystromKMeans(3, random_state=0).fit(draw_month(0))
tables = [draw_month(number) for number in range(len(months))]

# %%
# The labels of the January model, month by month.
figure, axes = plt.subplots(1, 6, figsize=(10, 2.2), sharex=True, sharey=True)
for X, name, ax in zip(tables, months, axes, strict=True):
    colors = [LIGHT.color(label) for label in model.predict(X)]
    ax.scatter(*X.T, c=colors, s=2, linewidths=0)
    ax.set(title=name, xticks=[], yticks=[])

# %%
# `cost` is W of given rows. On other rows of January it is what it was in the fit.
# February and March differ little; from then on it rises, and a new fit is due.
costs = [model.cost(X) for X in tables]
shares = np.array([np.bincount(model.predict(X), minlength=3) / len(X) for X in tables])
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
left.plot(months, costs, marker="o")
left.axhline(model.cost_, ls=":", color=LIGHT.muted)
left.set(title="Cost of the rows of a month", ylim=(0, None))
for cluster in range(3):
    right.plot(months, shares[:, cluster], marker="o", color=LIGHT.color(cluster))
right.set(title="Share of each cluster", ylim=(0, None))
