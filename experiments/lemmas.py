"""Lemmas 1-3 and Prop. 3 of CR18 and the local search of L21, as measurements."""

from __future__ import annotations

from functools import lru_cache
from math import log
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.data import Array
from experiments import datasets
from experiments.claims import Finding, judged, untested
from experiments.figures import panels, style
from experiments.grid import Context
from experiments.partitions import optimal_cost
from experiments.store import Cell, Row
from sketchmeans import KernelKMeans, Nystrom, NystromKMeans, select_landmarks
from sketchmeans.diagnostics import (
    effective_dimension,
    landmark_budget,
    preserved_gamma,
)
from sketchmeans.landmarks import Landmarks, RidgeLeverage

TITLE = "Lemmas 1-3 and Prop. 3 of CR18, local search of L21"
REDUCED = (
    "Optima are found by trying all partitions of 10 rows; on 1,000 digits they are "
    "replaced by the best of many starts. δ = 0.1 and 20 dictionaries for each size."
)
#: The setting in which the sizes of Lemmas 1 and 3 are below n/2.
_SHARE, _EPS, _DELTA = 5, 0.9, 0.1
#: ε of Lemma 2, and the ridge of the comparison of sizes as a share of n.
_LEMMA2_EPS, _FINE_SHARE = 0.5, 500
_SAMPLERS = ("uniform", "ridge leverage")
_LADDER = (10, 20, 40, 80, 160, 320, 640)
#: How many times the size counts as far more.
_FAR_FEWER = 2.0


def cells(smoke: bool, repeats: int | None) -> list[Cell]:
    n = repeats or (4 if smoke else 20)
    large = ("uneven",) if smoke else ("mnist", "uneven")
    rows, ladder = (300, _LADDER[:4]) if smoke else (2_000, _LADDER)
    fits = 300 if smoke else 1_000
    many = n if smoke else 2 * n
    settings: list[tuple[str, str, int, str, int, int]] = [
        ("Lemma 2, all partitions", "small_groups", 10, "uniform", m, repeat)
        for m in (2, 4, 6, 8)
        for repeat in range(many)
    ]
    settings += [
        ("Lemma 2, fits", "digits", fits, "uniform", m, repeat)
        for m in (20, 80)
        for repeat in range(max(n // 4, 1))
    ]
    settings += [
        ("Prop. 3", "small_groups", 10, "k-means++", k, repeat)
        for k in (2, 3, 4)
        for repeat in range(n)
    ]
    settings += [
        (lemma, name, rows, sampler, 0, repeat)
        for name in large
        for lemma, sampler in (("Lemma 1", "uniform"), ("Lemma 3", "ridge leverage"))
        for repeat in range(n)
    ]
    settings += [
        ("sizes", name, fits, sampler, m, repeat)
        for name in large
        for sampler in _SAMPLERS
        for m in ladder
        for repeat in range(n)
        if m < fits
    ]
    settings += [
        ("local search", name, 500 if smoke else 2_000, "seeding", 20, repeat)
        for name in (("digits",) if smoke else ("digits", "segment", "dna"))
        for repeat in range(n)
    ]
    keys = ("part", "dataset", "n", "sampler", "m", "repeat")
    return [dict(zip(keys, values, strict=True)) for values in settings]


def run(cell: Cell, context: Context) -> list[Row]:
    return [_PARTS[cell["part"]](cell, context)]


@lru_cache(maxsize=4)
def _rows(name: str, n: int, data: Path | None, seed: int = 0) -> Array:
    """Return n random rows of a dataset in float64, the same ones for the same seed."""
    X = datasets.load(name, data).X
    rng = np.random.default_rng(seed)
    return X[rng.permutation(len(X))[:n]].astype(np.float64)


def _gamma(X: Array) -> float:
    return 1.0 / (4.0 * float(X.var(axis=0).sum()))


def _drawn(X: Array, sampler: str, m: int, ridge: float, seed: int) -> Landmarks:
    """Return m draws with replacement, as the lemmas have them."""
    if sampler == "uniform":
        indices = np.random.default_rng(seed).integers(len(X), size=m)
        return Landmarks(X[indices], indices)
    method = RidgeLeverage(ridge=ridge, max_exact=len(X), replace=True)
    return select_landmarks(X, m, method, gamma=_gamma(X), random_state=seed)


def _all_partitions(cell: Cell, context: Context) -> Row:
    """Return both sides of Lemma 2 for a few rows, at the smallest γ."""
    X = _rows(cell["dataset"], cell["n"], context.data, context.seed)
    k, gamma = 3, _gamma(X)
    K = rbf_kernel(X, gamma=gamma)
    rng = np.random.default_rng(context.seed)
    landmarks = rng.choice(len(X), cell["m"], replace=False)
    features = Nystrom(gamma=gamma, landmarks=landmarks).fit_transform(X)
    optimum = optimal_cost(K, k)
    excess = optimal_cost(K, k, features @ features.T) - optimum
    return {"value": excess, "bound": _lemma2(X, landmarks, k), "optimum": optimum}


def _lemma2(X: Array, landmarks: Array, k: int) -> float:
    """Return the bound of Lemma 2 at the smallest γ that the landmarks preserve."""
    ridge = preserved_gamma(landmarks, X, eps=_LEMMA2_EPS, gamma=_gamma(X))
    if ridge == 0.0:
        return 0.0
    dimension = effective_dimension(X, gamma_ridge=ridge, gamma=_gamma(X)).value
    return min(k, dimension) * ridge / ((1.0 - _LEMMA2_EPS) * len(X))


def _fits(cell: Cell, context: Context) -> Row:
    """Return both sides of Lemma 2 for the best fits that were found."""
    X = _rows(cell["dataset"], cell["n"], context.data)
    k, gamma, seed = 10, _gamma(X), context.seed
    exact = KernelKMeans(k, gamma=gamma, n_init=20, random_state=seed).fit(X)
    landmarks = np.random.default_rng(seed).choice(len(X), cell["m"], replace=False)
    spanned = {"gamma": gamma, "landmarks": landmarks, "random_state": seed}
    starts = [
        NystromKMeans(k, init=exact.labels_, **spanned),
        NystromKMeans(k, n_init=20, **spanned),
    ]
    cost = min(model.fit(X).cost_ for model in starts)
    return {
        "value": cost - exact.cost_,
        "bound": _lemma2(X, landmarks, k),
        "optimum": exact.cost_,
    }


def _seeding(cell: Cell, context: Context) -> Row:
    """Return the mean cost of 50 k-means++ starts, and Prop. 3's bound on it."""
    X = _rows(cell["dataset"], cell["n"], context.data, context.seed)
    k, gamma = cell["m"], _gamma(X)
    costs = [_seed_cost(X, k, gamma, "k-means++", context.seed + i) for i in range(50)]
    optimum = optimal_cost(rbf_kernel(X, gamma=gamma), k)
    return {
        "value": float(np.mean(costs)),
        "bound": 8.0 * (log(k) + 2.0) * optimum,
        "optimum": optimum,
    }


def _seed_cost(X: Array, k: int, gamma: float, init: str, seed: int) -> float:
    """Return the cost with the seeds themselves as centres: that of the first pass."""
    model = KernelKMeans(
        k, gamma=gamma, init=init, n_init=1, max_iter=1, random_state=seed
    )
    return float(model.fit(X).cost_path_[0])


def _local_search(cell: Cell, context: Context) -> Row:
    X = _rows(cell["dataset"], cell["n"], context.data)
    costs = {
        init: _seed_cost(X, cell["m"], _gamma(X), init, context.seed)
        for init in ("k-means++", "local-search")
    }
    return {"value": costs["local-search"], "bound": costs["k-means++"]}


def _lemma_size(cell: Cell, context: Context) -> Row:
    """Return the γ that a dictionary of the size of a lemma preserves."""
    X = _rows(cell["dataset"], cell["n"], context.data)
    ridge = len(X) / _SHARE
    settings = {"gamma_ridge": ridge, "eps": _EPS, "delta": _DELTA}
    if cell["part"] == "Lemma 1":
        budget = landmark_budget(len(X), 10, rule="lemma1", **settings)
    else:
        dimension = _dimension(cell["dataset"], len(X), context.data, ridge)
        settings["effective_dimension"] = dimension
        budget = landmark_budget(len(X), 10, rule="lemma3", **settings)
    chosen = _drawn(X, cell["sampler"], budget.n_landmarks, ridge, context.seed)
    kept = preserved_gamma(chosen, X, eps=_EPS, gamma=_gamma(X))
    return {"value": kept, "bound": ridge, "size": budget.n_landmarks}


@lru_cache(maxsize=4)
def _dimension(name: str, n: int, data: Path | None, ridge: float) -> float:
    X = _rows(name, n, data)
    return effective_dimension(X, gamma_ridge=ridge, gamma=_gamma(X)).value


def _size(cell: Cell, context: Context) -> Row:
    """Return the γ that m draws preserve, against one that is fine."""
    X = _rows(cell["dataset"], cell["n"], context.data)
    ridge = len(X) / _FINE_SHARE
    chosen = _drawn(X, cell["sampler"], cell["m"], ridge, context.seed)
    kept = preserved_gamma(chosen, X, eps=_LEMMA2_EPS, gamma=_gamma(X))
    return {"value": kept, "bound": ridge, "size": cell["m"]}


_PARTS = {
    "Lemma 2, all partitions": _all_partitions,
    "Lemma 2, fits": _fits,
    "Prop. 3": _seeding,
    "Lemma 1": _lemma_size,
    "Lemma 3": _lemma_size,
    "sizes": _size,
    "local search": _local_search,
}


def figure(table: pd.DataFrame) -> Figure:
    drawing, axes = panels(3, 3, (3.4, 3.0))
    lemma = table[table.part.str.startswith("Lemma 2")]
    axes[0].scatter(lemma.bound, lemma.value, s=6, alpha=0.5, color="#0072b2")
    top = float(max(lemma.bound.max(), lemma.value.max()))
    axes[0].plot([0, top], [0, top], color="black", lw=0.8)
    axes[0].set(xlabel="bound of Lemma 2", ylabel="rise of the optimal cost")
    sizes = table[table.part == "sizes"]
    shares = sizes.assign(kept=sizes.value <= sizes.bound)
    for position, ((name, sampler), mine) in enumerate(
        shares.groupby(["dataset", "sampler"])
    ):
        curve = mine.groupby("m").kept.mean()
        label = f"{name}, {sampler}"
        axes[1].plot(curve.index, curve, **style(position), label=label)
    axes[1].set(xscale="log", xlabel="m", ylabel="share that is γ-preserving")
    axes[1].legend(fontsize=6, frameon=False)
    seeds = table[table.part == "Prop. 3"]
    ratios = [part.value / part.optimum for _, part in seeds.groupby("m")]
    counts = sorted(seeds.m.unique())
    axes[2].boxplot(ratios, positions=range(len(counts)))
    axes[2].set_xticks(range(len(counts)), [f"k = {k}" for k in counts])
    axes[2].set_ylabel("mean k-means++ cost / optimum")
    return drawing


def summary(table: pd.DataFrame) -> pd.DataFrame:
    share = table.assign(used=table.value / table.bound.where(table.bound > 1e-9))
    used = share.groupby(["part", "dataset"], sort=False).used
    found = used.agg(["count", "median", "max"])
    found.index = [f"{part}, {name}" for part, name in found.index]
    found.columns = ["cases", "share of the bound, median", "at the most"]
    return found.astype({"cases": object})


def claims(table: pd.DataFrame) -> list[Finding]:
    return [_lemma2_claim(table), _sizes_claim(table), _prop3(table), _search(table)]


def _lemma2_claim(table: pd.DataFrame) -> Finding:
    mine = table[table.part.str.startswith("Lemma 2")]
    if mine.empty:
        return untested("CR4", "no such cells")
    # Rounding in W is no breach.
    broken = int((mine.value > mine.bound + 1e-9).sum())
    clear = mine[mine.bound > 1e-9]
    tightest = float((clear.value / clear.bound).max())
    return Finding(
        "CR4",
        judged([broken == 0]),
        f"broken in {broken} of {len(mine)} cases; the largest share of the bound "
        f"that was used up is {tightest:.1%}, the median one "
        f"{(clear.value / clear.bound).median():.1%}",
    )


def _sizes_claim(table: pd.DataFrame) -> Finding:
    parts, words = [], []
    for (lemma, name), mine in table[table.part.isin(["Lemma 1", "Lemma 3"])].groupby(
        ["part", "dataset"]
    ):
        share = float((mine.value <= mine.bound).mean())
        parts.append(share >= 1.0 - _DELTA)
        words.append(
            f"{lemma} on {name}, m = {int(mine['size'].iloc[0])}: {share:.0%}, using "
            f"{mine.value.max() / mine.bound.iloc[0]:.1%} of γ at the most"
        )
    needed = _needed(table[table.part == "sizes"])
    fewer = [
        sizes["uniform"] >= _FAR_FEWER * sizes["ridge leverage"]
        for name, sizes in needed.items()
        if name == "uneven"
    ]
    texts = ", ".join(
        f"{name}: {sizes['uniform']:g} uniform, {sizes['ridge leverage']:g} by scores"
        for name, sizes in needed.items()
    )
    return Finding(
        "CR5",
        judged([*parts, *fewer]),
        f"shares of γ-preserving dictionaries: {'; '.join(words)}. Draws of a ladder "
        f"that are γ-preserving in 90% of cases at γ = n/{_FINE_SHARE}: {texts} (inf: "
        "more than the largest size tried)",
    )


def _needed(sizes: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return for each dataset the first size from which on 90% preserve γ."""
    found: dict[str, dict[str, float]] = {}
    kept = sizes.assign(kept=sizes.value <= sizes.bound)
    for (name, sampler), mine in kept.groupby(["dataset", "sampler"]):
        shares = mine.groupby("m").kept.mean().sort_index()
        short = [m for m, share in shares.items() if share < 0.9]
        enough = [m for m in shares.index if not short or m > short[-1]]
        found.setdefault(name, {})[sampler] = float(enough[0]) if enough else np.inf
    return found


def _prop3(table: pd.DataFrame) -> Finding:
    mine = table[table.part == "Prop. 3"]
    broken = int((mine.value > mine.bound).sum())
    ratio = mine.value / mine.optimum
    return Finding(
        "CR6",
        judged([broken == 0]) if len(mine) else judged([]),
        f"broken on {broken} of {len(mine)} problems; the mean cost is "
        f"{ratio.mean():.2f} times the optimum, {ratio.max():.2f} times at the most, "
        f"where the bound allows {(mine.bound / mine.optimum).min():.1f} or more",
    )


def _search(table: pd.DataFrame) -> Finding:
    mine = table[table.part == "local search"]
    ratios = (mine.value / mine.bound).groupby(mine.dataset).agg(["mean", "max"])
    words = ", ".join(
        f"{name} {row['mean']:.3f} (at the most {row['max']:.3f})"
        for name, row in ratios.iterrows()
    )
    parts = [bool(part) for part in ratios["mean"] < 1.0]
    return Finding(
        "L4", judged(parts), f"cost of the seeds against k-means++, mean: {words}"
    )
