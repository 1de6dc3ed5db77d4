"""
Effective dimension and landmark budgets
========================================

How many landmarks are enough depends on how many directions of the feature space
matter, the *effective dimension*. It grows as the kernel gets narrower.
`landmark_budget` turns the theorems into numbers, and `n_landmarks="auto"` measures
instead.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from sketchmeans import NystromKMeans
from sketchmeans.theory import effective_dimension, landmark_budget

X, _ = load_digits(return_X_y=True)
n = len(X)
gammas = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3]

dimensions = [effective_dimension(X, gamma=gamma).value for gamma in gammas]
chosen = [
    NystromKMeans(10, gamma=gamma, random_state=0).fit(X).landmarks_.shape[0]
    for gamma in gammas
]

# %%
figure, ax = plt.subplots(figsize=(6.4, 3.8))
ax.loglog(gammas, dimensions, marker="o", label="effective dimension")
ax.loglog(gammas, chosen, marker="s", label='landmarks by n_landmarks="auto"')
budget = landmark_budget(n, 10)
ax.axhline(budget.n_landmarks, ls=":", color="0.5")
ax.text(gammas[0], 1.1 * budget.n_landmarks, f"{budget.formula}, an order of magnitude")
ax.set(xlabel="gamma of the rbf kernel", title=f"Digits, {n:,} rows, 10 clusters")
ax.legend()

# %%
print(budget)
