"""
Mixed columns
=============

Numbers, categories, dates and yes or no in one table. What `TableClusterer` took each
column for is in `kinds_`. How much do the columns that are not numbers add?
"""

import matplotlib.pyplot as plt

from sketchmeans import SketchedKMeans, TableClusterer
from sketchmeans.datasets import make_customers
from sketchmeans.diagnostics import agreement

table, segments = make_customers(3000)
model = TableClusterer(SketchedKMeans(4, random_state=0)).fit(table)
for column, kind in model.kinds_.items():
    print(f"{column:18}{kind}")

# %%
# The same fit on some of the columns only, beside the segments in the table.
choices = {
    "numbers": ["age", "orders", "revenue", "days_since_order"],
    "categories, yes or no": ["plan", "region", "newsletter", "churned"],
    "all columns": None,
}
scores = []
for columns in choices.values():
    some = TableClusterer(SketchedKMeans(4, random_state=0), columns=columns).fit(table)
    scores.append(agreement(segments, some.labels_, 4).adjusted_rand)

figure, ax = plt.subplots(figsize=(6, 2.6))
bars = ax.barh(list(choices), scores)
ax.bar_label(bars, fmt="%.2f", padding=4)
ax.set(xlim=(0, 1.1), xlabel="Adjusted Rand index")
