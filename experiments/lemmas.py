"""Lemmas of CR18 and B14, k-means++ and OG17's Theorem 4, as measurements."""

from __future__ import annotations

from functools import lru_cache
from math import log, sqrt
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.data import Array
from experiments import datasets
from experiments.grid import Context
from experiments.lemmas_claims import (
    DELTA,
    EPS,
    FINE_SHARE,
    LADDER,
    MADE,
    SAMPLERS,
    claims,
)
from experiments.lemmas_views import figure, summary
from experiments.partitions import d2_law, lemma_2_bound, optimal_cost
from experiments.simulation import GAMMA
from experiments.sketch_lemmas import measure_sketches
from experiments.store import Cell, Row
from sketchmeans import Nystrom, select_landmarks
from sketchmeans.diagnostics import (
    effective_dimension,
    landmark_budget,
    nystrom_error_bounds,
    preserved_gamma,
)
from sketchmeans.landmarks import KernelKMeansPlusPlus, Landmarks, RidgeLeverage

__all__ = [
    "CLAIMS_OF",
    "REDUCED",
    "TITLE",
    "cells",
    "claims",
    "figure",
    "run",
    "summary",
]

TITLE = "Lemmas of CR18 and B14, k-means++, OG17's Theorem 4"
REDUCED = (
    "Optima are found by trying all partitions of 10 rows. Budgets: landmarks that the "
    "rules of the papers ask for on L21's mixture with 20 clusters; the effective "
    "dimension d_eff(γ) there estimates Definition 4's, which is an expectation."
)
#: The setting in which the sizes of Lemmas 1 and 3 are below n/2.
_SHARE, _BUDGETS = 5, "budgets"
#: rows of the lemmas, draws of a probability for each repeat, tables
_GRIDS = {
    "full": (1_500, 16, (MADE, "mnist", "cal_housing")),
    "quick": (500, 16, (MADE, "cal_housing")),
    "smoke": (200, 3, (MADE,)),
}
_OG17_TABLES = {
    "full": ("cpu_act", "cal_housing", "elevators", "kin8nm"),
    "quick": ("cpu_act", "cal_housing"),
    "smoke": ("small_groups",),
}
#: k-means++ seedings of a case, draws of their law, singular values for each draw.
_SEEDINGS, _LAW_DRAWS, _MORE = 50, 2_000, 4


def cells(grid: str, repeats: int) -> list[Cell]:
    rows, draws, tables = _GRIDS[grid]
    draws *= repeats
    settings: list[tuple[str, str, int, str, int, int]] = [
        ("Lemma 2", "small_groups", 10, "uniform", m, i)
        for m in (2, 4, 6, 8)
        for i in range(4 * repeats)
    ]
    settings += [
        ("Prop. 3", "small_groups", 10, space, k, i)
        for k in (2, 3, 4)
        for space in ("feature space", "H_m")
        for i in range(repeats)
    ]
    settings += [("law", "small_groups", 8, "k-means++", 3, i) for i in range(1)]
    settings += [
        (lemma, name, rows, sampler, 0, i)
        for name in tables
        for lemma, sampler in zip(("Lemma 1", "Lemma 3"), SAMPLERS, strict=True)
        for i in range(draws)
    ]
    settings += [
        ("ladder", name, min(rows, 1_000), "both", 0, i)
        for name in tables
        for i in range(min(repeats, 10))
    ]
    settings += [
        ("singular values", "digits", 0, "both", 0, i) for i in range(_MORE * draws)
    ]
    settings += [
        ("Theorem 4", name, 300, "k-means++", 10, i)
        for name in _OG17_TABLES[grid]
        for i in range(repeats)
    ]
    settings += [
        (_BUDGETS, "mixture", n, "rules", 20, 0) for n in (rows // 2, rows, 2 * rows)
    ]
    keys = ("part", "dataset", "n", "sampler", "m", "repeat")
    return [dict(zip(keys, values, strict=True)) for values in settings]


#: The claims that need each part.
CLAIMS_OF = {
    **{"Lemma 2": ("CR4",), "singular values": ("B6", "B7"), "Theorem 4": ("O11",)},
    **dict.fromkeys(("Prop. 3", "law"), ("CR6",)),
    **dict.fromkeys(("Lemma 1", "Lemma 3"), ("CR5",)),
    **{"ladder": ("CR5s",), _BUDGETS: ()},
}


def run(cell: Cell, context: Context) -> list[Row]:
    found = _PARTS[cell["part"]](cell, context)
    return found if isinstance(found, list) else [found]


@lru_cache(maxsize=4)
def _rows(name: str, n: int, data: Path | None, seed: int = 0) -> Array:
    """Return n random rows of a dataset in float64, the same ones for the same seed."""
    X = datasets.load(name, data).X
    rng = np.random.default_rng(seed)
    return X[rng.permutation(len(X))[:n]].astype(np.float64)


def _gamma(X: Array) -> float:
    return 1.0 / (4.0 * float(X.var(axis=0).sum()))


def _lemma_2(cell: Cell, context: Context) -> Row:
    """Return both sides of Lemma 2 for a few rows, at the best ε."""
    X = _rows(cell["dataset"], cell["n"], context.data, context.seed)
    k, gamma = 3, _gamma(X)
    K = rbf_kernel(X, gamma=gamma)
    landmarks = np.random.default_rng(context.seed).permutation(len(X))[: cell["m"]]
    F = Nystrom(gamma=gamma, landmarks=landmarks).fit_transform(X)
    optimum = optimal_cost(K, k)
    excess = optimal_cost(K, k, F @ F.T) - optimum
    bound, branch = lemma_2_bound(K, F @ F.T, k)
    return {"value": excess, "bound": bound, "branch": branch}


def _seeding(cell: Cell, context: Context) -> Row:
    """Return the mean cost of k-means++ seeds over the optimum, and Prop. 3's bound."""
    X = _rows(cell["dataset"], cell["n"], context.data, context.seed)
    k, gamma = cell["m"], _gamma(X)
    K = rbf_kernel(X, gamma=gamma)
    if cell["sampler"] == "H_m":
        landmarks = np.random.default_rng(context.seed).permutation(len(X))[:6]
        F = Nystrom(gamma=gamma, landmarks=landmarks).fit_transform(X)
        K = F @ F.T  # k-means on the features is kernel k-means with this matrix
    costs = []
    for seed in range(_SEEDINGS):
        chosen = _d2_seeds(K, k, np.random.default_rng([context.seed, seed]))
        distances = np.diag(K)[:, None] - 2.0 * K[:, chosen] + np.diag(K)[chosen]
        costs.append(float(distances.min(axis=1).mean()))
    optimum = optimal_cost(K, k)
    return {"value": float(np.mean(costs)) / optimum, "bound": 8.0 * (log(k) + 2.0)}


def _d2_seeds(K: Array, k: int, rng: np.random.Generator) -> Array:
    """Return seeds by the library's D² sampling on a kernel matrix."""
    found = select_landmarks(
        K, k, KernelKMeansPlusPlus(1), kernel="precomputed", random_state=rng
    )
    assert found.indices is not None
    return found.indices


def _law(cell: Cell, context: Context) -> Row:
    """Return χ² of many draws against the exact law of D² sampling."""
    X = _rows(cell["dataset"], cell["n"], context.data, 1)
    K = rbf_kernel(X, gamma=_gamma(X))
    law = d2_law(K, cell["m"])
    counts = dict.fromkeys(law, 0)
    rng = np.random.default_rng(context.seed)
    for _ in range(_LAW_DRAWS):
        counts[frozenset(_d2_seeds(K, cell["m"], rng).tolist())] += 1
    observed = np.array(list(counts.values()), dtype=float)
    expected = observed.sum() * np.array(list(law.values()))
    value = float((np.square(observed - expected) / expected).sum())
    return {"value": value, "bound": float(stats.chi2.isf(1e-3, len(law) - 1))}


def _drawn(X: Array, sampler: str, m: int, ridge: float, seed: int) -> Landmarks:
    """Return m draws with replacement, as the lemmas have them."""
    if sampler == "uniform":
        indices = np.random.default_rng(seed).integers(len(X), size=m)
        return Landmarks(X[indices], indices)
    method = RidgeLeverage(ridge=ridge, max_exact=len(X), replace=True)
    return select_landmarks(X, m, method, gamma=_gamma(X), random_state=seed)


def _lemma_size(cell: Cell, context: Context) -> Row:
    """Return the γ that a dictionary of the size of a lemma preserves."""
    X = _rows(cell["dataset"], cell["n"], context.data)
    ridge = len(X) / _SHARE
    settings = {"gamma_ridge": ridge, "eps": EPS, "delta": DELTA}
    rule = "lemma1" if cell["part"] == "Lemma 1" else "lemma3"
    if rule == "lemma3":
        settings["effective_dimension"] = _dimension(
            cell["dataset"], len(X), context.data, ridge
        )
    size = landmark_budget(len(X), 10, rule=rule, **settings).n_landmarks
    chosen = _drawn(X, cell["sampler"], size, ridge, context.seed)
    kept = preserved_gamma(chosen, X, eps=EPS, gamma=_gamma(X))
    return {"value": kept, "bound": ridge, "size": size}


@lru_cache(maxsize=4)
def _dimension(name: str, n: int, data: Path | None, ridge: float) -> float:
    X = _rows(name, n, data)
    return effective_dimension(X, gamma_ridge=ridge, gamma=_gamma(X)).value


def _ladder(cell: Cell, context: Context) -> list[Row]:
    """Return the first size of a ladder at which nested draws preserve a fine γ."""
    X = _rows(cell["dataset"], cell["n"], context.data)
    ridge, ladder = len(X) / FINE_SHARE, [m for m in LADDER if m <= len(X)]
    found = []
    for sampler in SAMPLERS:
        drawn = _drawn(X, sampler, ladder[-1], ridge, context.seed)
        assert drawn.indices is not None
        size = 2.0 * ladder[-1]  # where none does
        for m in ladder:
            numbers = drawn.indices[:m]
            kept = preserved_gamma(numbers, X, "rbf", gamma=_gamma(X))
            if kept <= ridge:
                size = float(m)
                break
        found.append({"method": sampler, "value": size, "bound": ridge})
    return found


def _theorem_4(cell: Cell, context: Context) -> Row:
    """Return the relative error of K + 1 k-means++ landmarks, and its bound."""
    X, K = _rows(cell["dataset"], cell["n"], context.data), cell["m"]
    gamma = _gamma(X)
    bounds = nystrom_error_bounds(X, K, gamma=gamma, random_state=0)
    F = Nystrom(
        n_landmarks=K + 1,
        landmarks=KernelKMeansPlusPlus(1),
        gamma=gamma,
        random_state=context.seed,
    ).fit_transform(X)
    error = float(np.linalg.norm(rbf_kernel(X, gamma=gamma) - F @ F.T))
    row = {"value": error / bounds.optimal_error, "bound": bounds.theorem_4}
    share = bounds.potential / bounds.corollary_2
    return {**row, "k_dpp": bounds.k_dpp, "seeding": bounds.seeding, "cor_2": share}


def _budgets(cell: Cell, context: Context) -> list[Row]:
    """Return how many landmarks each rule asks for on L21's mixture."""
    n, k = cell["n"], cell["m"]
    X = _rows(cell["dataset"], n, context.data)
    coarse, fine = (
        effective_dimension(X, gamma_ridge=ridge, gamma=GAMMA).value
        for ridge in (sqrt(n), 1.0)
    )
    given: dict[str, float | None] = {
        **dict.fromkeys(("sqrt-n", "sqrt-n-log-n", "sqrt-nk", "lemma1")),
        **dict.fromkeys(("theorem4", "linear-k", "fast-rate"), fine),
        **dict.fromkeys(("effective-dimension", "lemma3"), coarse),
    }
    found: dict[str, float] = {"d_eff(√n)": coarse, "d_eff(1)": fine}
    for rule, dimension in given.items():
        budget = landmark_budget(n, k, rule=rule, effective_dimension=dimension)
        found[rule] = budget.n_landmarks
    return [{"method": name, "value": value} for name, value in found.items()]


_PARTS = {
    "Lemma 2": _lemma_2,
    "Prop. 3": _seeding,
    "law": _law,
    "Lemma 1": _lemma_size,
    "Lemma 3": _lemma_size,
    "ladder": _ladder,
    "singular values": measure_sketches,
    "Theorem 4": _theorem_4,
    _BUDGETS: _budgets,
}
