"""OG17 Fig. 3: lift as the rank grows, at the median bandwidth."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.data import Array
from experiments.approximation import (
    approximations,
    geometric_mean,
    lifts,
    log_lifts,
    majority_margin,
    median_bandwidth,
    table_of,
    whole_draws,
    with_lifts,
)
from experiments.datasets import OG17
from experiments.draws import by_draw, slope
from experiments.evidence import Evidence, Finding, Verdict, exactly, over_draws
from experiments.figures import draw_bars, legend, panels, plain_ticks, strategy_style
from experiments.grid import Context
from experiments.methods import CHAINS, FAMILY, LEVERAGE, PAPER_STRATEGIES
from experiments.og17_bandwidth import QUICK
from experiments.store import Cell, Row

TITLE = "Lift over the rank, median bandwidth (OG17 Fig. 3)"
REDUCED = "12 of 13 datasets; five ranks; errors are measured as over the bandwidths."
_RIVALS = (LEVERAGE, *CHAINS)
_METHODS = ("uniform", *FAMILY, *_RIVALS)
#: datasets, ranks
_GRIDS = {
    "full": (OG17, (5, 10, 25, 50, 100)),
    "quick": (QUICK, (5, 25, 100)),
    "smoke": (("small_groups",), (5, 20)),
}
#: Ranks that decide; the first draws have all, of which the others are drawn.
_DECISIVE, _WHOLE = (5, 20, 25, 100), 5
#: Rows whose eigenvalues say where the mass is, and how many of these count.
_SPECTRUM_ROWS, _TOP = 2_000, 100


def cells(grid: str, repeats: int) -> list[Cell]:
    names, ranks = _GRIDS[grid]
    return [
        {"dataset": name, "rank": rank, "repeat": repeat}
        for first in range(0, repeats, _WHOLE)
        for name in names
        for repeat in range(first, min(first + _WHOLE, repeats))
        for rank in ranks
        if repeat < _WHOLE or rank in _DECISIVE
    ]


def run(cell: Cell, context: Context) -> list[Row]:
    name, rank = cell["dataset"], cell["rank"]
    gamma = median_bandwidth(name, context.data)
    strategies = {method: PAPER_STRATEGIES[method] for method in _METHODS}
    rows = approximations(
        name, context.data, gamma, strategies, rank, rank, context.seed
    )
    mass = top_mass(name, context.data, gamma) if cell["repeat"] == 0 else np.nan
    return [{**row, "mass": mass} for row in rows]


@lru_cache(maxsize=1)
def top_mass(name: str, data: Path | None, gamma: float) -> float:
    """Return the share of the trace that the top 100 eigenvalues of some rows hold."""
    X = table_of(name, data)
    rng = np.random.default_rng(2)
    some = X[rng.permutation(len(X))[:_SPECTRUM_ROWS]]
    values = np.linalg.eigvalsh(rbf_kernel(some, gamma=gamma))
    return float(values[-_TOP:].sum() / values.sum())


def figure(table: pd.DataFrame) -> Figure:
    found = with_lifts(table, ["rank"])
    names = list(dict.fromkeys(table.dataset))
    drawing, axes = panels(len(names), min(4, len(names)))
    methods = [method for method in _METHODS if method in set(found.method)]
    for axis, name in zip(axes, names, strict=True):
        for method in methods:
            mine = found[(found.dataset == name) & (found.method == method)]
            look = strategy_style(method, label=method)
            draw_bars(axis, mine, "rank", "lift", **look)
        axis.set(yscale="log")
        plain_ticks(axis)
        axis.set_title(name, fontsize=8)
        axis.set_xlabel("rank", fontsize=7)
        axis.set_ylabel("lift", fontsize=7)
    legend(drawing, axes[0])
    return drawing


def summary(table: pd.DataFrame) -> pd.DataFrame:
    found = lifts(table, ["dataset", "rank"])
    wide = found.pivot_table(
        index="method", columns="rank", values="lift", aggfunc=geometric_mean
    )
    wide.columns = [f"mean lift, rank {rank}" for rank in wide.columns]
    return wide


def claims(table: pd.DataFrame) -> list[Evidence]:
    table = table[table["rank"].isin(_DECISIVE)]
    table = whole_draws(table, ["dataset", "rank"])
    found = log_lifts(table, ["rank"])
    slopes = _slopes(table, FAMILY[0])
    parts = [
        over_draws("mean slope of log lift", slopes, (0.0, inf), np.mean),
        over_draws(
            "share of datasets with a positive slope",
            slopes,
            (0.5 + 1e-9, inf),
            lambda rows: float((rows.mean(axis=0) > 0.0).mean()),
            margin=lambda rows: majority_margin(rows.mean(axis=0)),
        ),
    ]
    means = found[found.method.isin(FAMILY)].groupby("method").log_lift.mean()
    words = ", ".join(f"{name} {np.exp(mean):.2f}" for name, mean in means.items())
    return [
        Evidence("O4", parts, f"plain k-means++; mean lifts over the ranks: {words}"),
        _mass_claim(table),
        _over_chains(table),
        _longer_chain(table),
        _best_increase(table),
    ]


def _slopes(table: pd.DataFrame, method: str) -> Array:
    """Return the slope of log lift on log rank, draws × datasets."""
    mine = with_lifts(table[table.method.isin(["uniform", method])], ["rank"])
    mine = mine[mine.method == method]
    mine = mine.assign(log_lift=np.log(mine.lift))
    wide = by_draw(mine, ["dataset", "rank"], "log_lift")
    names = list(dict.fromkeys(name for name, _ in wide.columns))
    ranks = sorted({rank for _, rank in wide.columns})
    weights = slope(np.log(ranks))
    return np.stack([wide[name][ranks].to_numpy() @ weights for name in names], 1)


def _over_chains(table: pd.DataFrame) -> Evidence:
    wide = by_draw(log_lifts(table, ["rank"]), ["method", "dataset"], "log_lift")
    parts = [
        over_draws(
            f"log lift, leverage − {name}",
            (wide[LEVERAGE] - wide[name]).mean(axis=1),
            (0.0, inf),
        )
        for name in CHAINS
    ]
    largest, wide = _at_largest(table)
    ends, behind = [], []
    for name in CHAINS:
        gaps = wide[LEVERAGE] - wide[name]
        ends.append(over_draws(name, gaps.mean(axis=1), (0.0, inf)))
        count = int((gaps.mean() < 0.0).sum())
        words = f"behind on {count} of {gaps.shape[1]} tables"
        behind.append(f"{ends[-1].brief} against {name}, {words}")

    def size(finding: Finding) -> str:
        if finding.verdict is not Verdict.SUPPORTED:
            return ""
        gain = np.expm1(np.mean([part.estimate for part in finding.parts]))
        is_reversed = max(part.estimate for part in ends) < 0.0
        words = f"by {gain:.0%} in the mean"
        return words + (f", not at rank {largest}" if is_reversed else "")

    note = (
        "the paper says much better; log lift less that of the chains at rank "
        f"{largest}: {'; '.join(behind)}"
    )
    return Evidence("O7", parts, note, remark=size)


def _at_largest(table: pd.DataFrame) -> tuple[int, pd.DataFrame]:
    """Return the largest rank, and the log lifts there."""
    largest = int(table["rank"].max())
    found = log_lifts(table[table["rank"] == largest], ["rank"])
    return largest, by_draw(found, ["method", "dataset"], "log_lift")


def _longer_chain(table: pd.DataFrame) -> Evidence:
    """Return what the median bandwidth says of O12, in words."""
    largest, wide = _at_largest(table)
    gaps = wide[CHAINS[1]] - wide[CHAINS[0]]
    part = over_draws("", gaps.mean(axis=1), (0.0, inf))
    return Evidence(
        "O12",
        (),
        f"at the median bandwidth and rank {largest} {part.brief}, positive on "
        f"{int((gaps.mean() > 0.0).sum())} of {gaps.shape[1]} tables",
    )


def _best_increase(table: pd.DataFrame) -> Evidence:
    ours = _slopes(table, FAMILY[0]).mean(axis=1)
    parts = [
        over_draws(
            f"slope of log lift, k-means++ − {name}",
            ours - _slopes(table, name).mean(axis=1),
            (0.0, inf),
        )
        for name in _RIVALS
    ]
    return Evidence("O13", parts)


def _mass_claim(table: pd.DataFrame) -> Evidence:
    mass = table.groupby("dataset").mass.first().dropna()
    share = float((mass > 0.5).mean())
    words = ", ".join(f"{name} {value:.2f}" for name, value in mass.items())
    part = exactly("share of datasets with most of the mass", share, (0.5 + 1e-9, 1.0))
    return Evidence("O8", [part], f"share of the trace: {words}")
