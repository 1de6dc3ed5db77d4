"""L21 Table 1: exact and Nyström kernel k-means on real data."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix

from benchmarks.data import Array
from experiments import datasets
from experiments.draws import by_draw
from experiments.evidence import Evidence, over_draws
from experiments.figures import COLOURS, band, legend, panels
from experiments.grid import Context, shared_seed
from experiments.store import Cell, Row
from sketchmeans import KernelKMeans, NystromKMeans
from sketchmeans.diagnostics import clustering_accuracy, normalized_mutual_info_score

TITLE = "Exact and Nyström kernel k-means with m = 100 (L21 Table 1)"
REDUCED = (
    "The bandwidth is the mean squared distance (as printed, without a division by "
    "n², the kernel is 1 everywhere). The first 2,000 rows of dna; segment scaled to "
    "[−1, 1]; skin-nonskin and covtype as they are. The paper does not name its "
    "measure: accuracy, NMI and purity are reported."
)
#: The paper's scores: exact, and Nyström with m = 100.
PAPER: dict[tuple[str, str], float] = {
    ("dna", "exact"): 0.53,
    ("segment", "exact"): 0.55,
    ("mushrooms", "exact"): 0.66,
    ("dna", "nystrom"): 0.52,
    ("segment", "nystrom"): 0.55,
    ("mushrooms", "nystrom"): 0.65,
    ("mnist", "nystrom"): 0.43,
    ("skin_nonskin", "nystrom"): 0.63,
    ("covtype", "nystrom"): 0.32,
}
MEASURES = ("accuracy", "nmi", "purity")
#: Exact and Nyström are as good if their accuracies are this near.
_AS_GOOD = 0.03
_LANDMARKS = 100
#: σ²: the mean squared distance; other readings of the formula, to find out more: by
#: the number of features, and so large that the kernel is linear.
_MEAN, _PER_FEATURE, _LINEAR = "mean", "mean / d", "linear"
_PROBES, _STARTS = 3, 20


def cells(grid: str, repeats: int) -> list[Cell]:
    cases = {
        "full": list(PAPER),
        "quick": [("segment", "exact"), ("segment", "nystrom")],
        "smoke": [("digits", "exact"), ("digits", "nystrom")],
    }[grid]
    return [
        {"dataset": name, "method": method, "bandwidth": bandwidth, "repeat": repeat}
        for name, method in cases
        for bandwidth in (_MEAN, _PER_FEATURE, _LINEAR)
        for repeat in range(_draws(name, bandwidth, repeats, grid))
    ]


def _draws(name: str, bandwidth: str, repeats: int, grid: str) -> int:
    """Return how often a setting is drawn.

    Four times as often as others where exact and Nyström are compared, up to 20.
    """
    if bandwidth != _MEAN:
        return min(repeats, _PROBES)
    compared = grid == "full" and (name, "exact") in PAPER
    return min(4 * repeats, _STARTS) if compared else min(repeats, _PROBES + 2)


def run(cell: Cell, context: Context) -> list[Row]:
    data = datasets.load(cell["dataset"], context.data)
    assert data.y is not None
    X, y, k = data.X, data.y, data.n_classes
    if cell["dataset"] == "mnist":
        X, y = X[:60_000], y[:60_000]
    # The same starts for exact and Nyström: they are compared within a draw.
    seed = shared_seed(cell, "method", "bandwidth")
    settings = {"n_clusters": k, "random_state": seed}
    if cell["bandwidth"] == _LINEAR:
        settings["kernel"] = "linear"
    else:
        # The mean squared distance is twice the variance; exp(−‖·‖²/σ²).
        gamma = 1.0 / (2.0 * float(X.var(axis=0, dtype=np.float64).sum()))
        per = X.shape[1] if cell["bandwidth"] == _PER_FEATURE else 1
        settings["gamma"] = gamma * per
    if cell["method"] == "exact":
        model = KernelKMeans(**settings)
    else:
        model = NystromKMeans(n_landmarks=min(_LANDMARKS, len(X)), **settings)
    labels = model.fit(X).labels_
    return [
        {
            "n": len(X),
            "k": k,
            "cost": model.cost_,
            "accuracy": clustering_accuracy(y, labels),
            "nmi": normalized_mutual_info_score(y, labels),
            "purity": _purity(y, labels),
            "majority": float(np.unique(y, return_counts=True)[1].max() / len(y)),
        }
    ]


def _purity(y: Array, labels: Array) -> float:
    """Return the share of rows in the largest class of their cluster."""
    classes = np.unique(y, return_inverse=True)[1]
    return float(confusion_matrix(classes, labels).max(axis=0).sum() / len(y))


def scores(table: pd.DataFrame, bandwidth: str = _MEAN) -> pd.DataFrame:
    """Return the mean measures of each case, with the paper's score."""
    table = table[table.bandwidth == bandwidth]
    means = table.groupby(["dataset", "method"])[list(MEASURES)].mean()
    means["paper"] = [PAPER.get(case, np.nan) for case in means.index]
    return means


def figure(table: pd.DataFrame) -> Figure:
    mine = table[table.bandwidth == _MEAN]
    means = scores(table)
    drawing, axes = panels(1, 1, (7.5, 3.2))
    places = np.arange(len(means))
    groups = mine.groupby(["dataset", "method"])
    for position, measure in enumerate(MEASURES):
        axes[0].bar(
            places + 0.25 * (position - 1),
            means[measure],
            0.23,
            yerr=[band(groups.get_group(case)[measure])[1] for case in means.index],
            color=COLOURS[position + 1],
            label=measure,
        )
    look = {"marker": "*", "s": 45, "color": "black", "zorder": 3}
    axes[0].scatter(places, means.paper, **look, label="L21")
    shares = [groups.get_group(case).majority.iloc[0] for case in means.index]
    look = {"marker": "_", "s": 700, "color": "grey", "zorder": 2}
    axes[0].scatter(places, shares, **look, label="largest class")
    names = [f"{name}\n{method}" for name, method in means.index]
    axes[0].set_xticks(places, names, fontsize=7)
    legend(drawing, axes[0], 5)
    return drawing


def summary(table: pd.DataFrame) -> pd.DataFrame:
    found = {}
    for (name, method), mine in table.groupby(["dataset", "method"], sort=False):
        row = {"paper": f"{PAPER.get((name, method), np.nan):.2f}"}
        for bandwidth, rows in mine.groupby("bandwidth", sort=False):
            for measure in MEASURES:
                mean, reach = band(rows[measure])
                row[f"{measure}, σ² {bandwidth}"] = f"{mean:.3f} ± {reach:.3f}"
        row["largest class"] = f"{mine.majority.iloc[0]:.2f}"
        found[f"{name}, {method}"] = row
    return pd.DataFrame.from_dict(found, orient="index")


def claims(table: pd.DataFrame) -> list[Evidence]:
    mine = table[table.bandwidth == _MEAN]
    parts = []
    for name, rows in mine.groupby("dataset"):
        wide = by_draw(rows, "method", "accuracy")
        if {"exact", "nystrom"} <= set(wide.columns):
            gap = wide["nystrom"] - wide["exact"]
            region = (-_AS_GOOD, _AS_GOOD)
            parts.append(over_draws(f"accuracy gap on {name}", gap, region))
    return [Evidence("L3", parts, "scores by every measure and reading: table below")]
