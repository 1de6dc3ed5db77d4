"""What the digits say about CR18's claims."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pandas as pd

from benchmarks.data import Array
from experiments.cr18_views import (
    LINEAR,
    LOOKS_FLAT,
    NMI,
    PAPER_NMI,
    complete,
    limit_of,
    with_base,
)
from experiments.draws import by_draw, crossing, slope
from experiments.evidence import Evidence, Part, over_draws

#: Sizes m of NMI as shares of √n, and those that decide.
FACTORS, DECISIVE = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0), (0.25, 1.0, 8.0)
#: Powers of n that the statistical excess might fall with, besides −1.
_POWERS = (0.8, 0.7, 0.5)
#: Other shares of the cost than that at which a curve looks flat.
_OTHERS = (0.005, 0.02)
#: Slope on log n that an excess of O(1/√n) has at the most, with the 0.1 that CR1's
#: slope is allowed.
_RATE = (-inf, -0.4)


def claims(table: pd.DataFrame) -> list[Evidence]:
    table = complete(table)
    curves = with_base(table)
    roots = curves[curves.m == np.sqrt(curves.n).round()]
    return [
        _flattens(curves),
        _scores(table[table.part == NMI]),
        _stand_in_claim(table[table.part.str.startswith("shifts")]),
        _rate("CR8", table[table.part == LINEAR]),
        _whole_excess(roots),
    ]


def _flattens(curves: pd.DataFrame) -> Evidence:
    """Return the slope of log m* on log n; resamples have a limit of their own."""
    if curves.n.nunique() < 2:
        return Evidence("CR1", (), "needs several n")
    n, sizes, draws = _curves_by_draw(curves)
    weights = slope(np.log(n))

    def log_sizes(rows: Array, power: float = 1.0) -> Array:
        """Return log m* of each draw and n; the largest m if none is enough."""
        least = limit_of(n, rows[:, :, 0].mean(axis=0), power)
        found = [
            [
                crossing(m, row[1 : len(m) + 1], row[0] - least)
                for m, row in zip(sizes, draw, strict=True)
            ]
            for draw in rows
        ]
        largest = [m[-1] for m in sizes]
        return np.log(np.where(np.isnan(found), largest, found))

    def fit(rows: Array, power: float = 1.0) -> float:
        return float(weights @ log_sizes(rows, power).mean(axis=0))

    part = over_draws("slope of log m* on log n", draws, (0.4, 0.6), fit, paper=0.5)
    found = log_sizes(draws)
    means = np.exp(found.mean(axis=0))
    missed = int((found >= np.log([m[-1] for m in sizes]) - 1e-9).sum())
    words = ", ".join(
        f"{m:.0f} at n = {rows:,.0f} (√n = {sqrt(rows):.0f})"
        for rows, m in zip(n, means, strict=True)
    )
    others = ", ".join(
        f"{fit(draws, power):.2f} if as n^−{power} (χ² {_misfit(n, draws, power):.0f})"
        for power in _POWERS
    )
    return Evidence(
        "CR1",
        [part],
        f"m* is {words}; no m below the largest of the grid was enough in {missed} of "
        f"{found.size} cases. The statistical excess is taken to fall as 1/n, which "
        f"the anchors' costs fit with χ² = {_misfit(n, draws, 1.0):.1f} on "
        f"{len(n) - 2} degrees of freedom; the slope were {others}. "
        f"{_as_in_the_figure(curves)}. The theorem itself (CR9) speaks of rates and "
        "does not promise this",
    )


def flat_sizes(curves: pd.DataFrame, level: float = LOOKS_FLAT) -> pd.Series:
    """Return the m of each n at which the mean excess is a share of the mean cost."""
    found = {}
    for n, mine in curves.groupby("n"):
        means = mine.groupby("m")[["cost_test", "anchor"]].mean()
        excess = (means.cost_test / means.anchor - 1.0).to_numpy()
        found[n] = crossing(means.index.to_numpy(float), excess, level)
    return pd.Series(found, dtype=float).dropna()


def _as_in_the_figure(curves: pd.DataFrame) -> str:
    """Say where a curve of one n looks flat, which hardly depends on n."""
    sizes = flat_sizes(curves)
    if len(sizes) < 2:
        return "The excess is nowhere 1% of the cost"
    slopes = {
        level: float(slope(np.log(some.index.to_numpy(float))) @ np.log(some))
        for level in (LOOKS_FLAT, *_OTHERS)
        if len(some := flat_sizes(curves, level)) > 1
    }
    words = ", ".join(f"{value:.2f} at {level:.2g}" for level, value in slopes.items())
    where = ", ".join(f"{m:.0f} at n = {n:,}" for n, m in sizes.items())
    largest = sizes.index[-1]
    return (
        f"At {LOOKS_FLAT:.0%} of the cost m* is {sizes.iloc[-1]:.0f} at n = "
        f"{largest:,}, where √n = {sqrt(largest):.0f}, as in Fig. 1, but it hardly "
        f"grows with n ({where}; slopes: {words}): the figure is reproduced, the "
        "scaling is not"
    )


def _curves_by_draw(curves: pd.DataFrame) -> tuple[Array, list[Array], Array]:
    """Return n, the sizes m of each, and draws × n × (anchor, Nyström excesses)."""
    curves = curves.assign(excess=curves.cost_test - curves.anchor)
    n = np.sort(curves.n.unique())
    wide = [by_draw(curves[curves.n == rows], "m", "excess") for rows in n]
    anchors = by_draw(curves, "n", "anchor")
    whole = set(anchors.index).intersection(*(set(one.index) for one in wide))
    sizes = [one.columns.to_numpy(float) for one in wide]
    draws = np.full((len(whole), len(n), 1 + max(map(len, sizes))), np.nan)
    for d, repeat in enumerate(sorted(whole)):
        draws[d, :, 0] = anchors.loc[repeat]
        for i, one in enumerate(wide):
            draws[d, i, 1 : 1 + one.shape[1]] = one.loc[repeat]
    return n.astype(float), sizes, draws


def _misfit(n: Array, draws: Array, power: float) -> float:
    """Return χ² of the anchors' mean costs about a line in ``n^−power``.

    The largest n may be one draw: its error is that of the size before, in proportion.
    """
    anchors = draws[:, :, 0]
    if len(anchors) < 2:
        return float("nan")
    errors = anchors.std(axis=0, ddof=1) / sqrt(len(anchors))
    if errors[-1] <= 1e-9:
        errors[-1] = errors[-2] * sqrt(len(anchors) * n[-2] / n[-1])
    means = anchors.mean(axis=0)
    line = np.polyfit(n**-power, means, 1, w=1.0 / errors)
    return float(np.square((means - np.polyval(line, n**-power)) / errors).sum())


def _whole_excess(roots: pd.DataFrame) -> Evidence:
    """Return how fast the excess over the anchors' limit falls with √n landmarks."""
    if roots.n.nunique() < 2:
        return Evidence("CR9", (), "needs several n")
    wide = [by_draw(roots, "n", value) for value in ("cost_test", "anchor")]
    shared = wide[0].index.intersection(wide[1].index)
    n = wide[0].columns.to_numpy(float)
    draws = np.stack([one.loc[shared].to_numpy() for one in wide], axis=2)
    weights = slope(np.log(n))

    def excesses(rows: Array) -> tuple[Array, Array]:
        cost, anchor = rows.mean(axis=0).T
        least = limit_of(n, anchor)
        return cost - least, anchor - least

    def fit(rows: Array) -> float:
        return float(weights @ np.log(excesses(rows)[0]))

    part = over_draws(
        "slope of log excess with √n landmarks on log n", draws, _RATE, fit, paper=-0.5
    )
    whole, statistical = excesses(draws)
    with np.errstate(divide="ignore"):  # where there is none
        ratios = whole / statistical - 1.0
    words = ", ".join(
        f"{ratio:.1f} at n = {rows:,.0f}" for rows, ratio in zip(n, ratios, strict=True)
    )
    return Evidence(
        "CR9",
        [part],
        f"what √n landmarks add over the statistical excess: {words}",
        _rate("CR9", roots).parts,
    )


def _scores(table: pd.DataFrame) -> Evidence:
    sizes = np.sort(table.m.unique())
    if len(sizes) < len(FACTORS):
        return Evidence("CR2", (), "needs all sizes")
    decisive = [sizes[FACTORS.index(factor)] for factor in DECISIVE]
    wide = by_draw(table[table.m.isin(decisive)], "m", "nmi")
    low, root, high = (wide[m] for m in decisive)
    means = ", ".join(
        f"{mean:.3f} at m = {m}" for m, mean in table.groupby("m").nmi.mean().items()
    )
    parts = [
        over_draws("NMI(8√n) − NMI(√n)", high - root, (-0.01, 0.01)),
        over_draws("NMI(√n) − NMI(√n/4)", root - low, (0.0, inf)),
    ]
    lloyd = table[table.m == decisive[1]].nmi.mean()
    solver = _mini_batch(table, (lloyd - 0.01, lloyd + 0.01))
    return Evidence(
        "CR2",
        parts,
        f"{len(wide)} draws; NMI {means}: these are Lloyd's levels; by mini-batch, the "
        f"paper's solver, at √n: {solver} of ±0.01 about Lloyd's {lloyd:.3f}",
    )


def _mini_batch(table: pd.DataFrame, region: tuple[float, float]) -> str:
    """Return the NMI of the paper's own solver in words: no rule decides by it."""
    scores = table.nmi_minibatch.dropna()
    if len(scores) < 2:
        return "not known"
    part = over_draws("NMI", scores, region)
    return f"{part.brief}, {_place(part)}"


def _stand_in_claim(table: pd.DataFrame) -> Evidence:
    if table.empty:
        return Evidence("CR3", (), "needs the stand-in")
    region = (PAPER_NMI - 0.02, PAPER_NMI + 0.02)
    most = table[table.m == table.m.max()]
    parts = [
        over_draws(f"NMI, {part}", mine.nmi, region, paper=PAPER_NMI)
        for part, mine in most.groupby("part")
    ]
    words = "; ".join(
        f"{part} {_mini_batch(mine, region)}" for part, mine in most.groupby("part")
    )
    return Evidence(
        "CR3",
        parts,
        f"stand-ins of {int(table.n.iloc[0]):,} digits; the parts are of Lloyd's "
        f"algorithm; NMI by mini-batch, the paper's own solver: {words}",
    )


def _place(part: Part) -> str:
    """Say where an estimate lies, and whether its interval does."""
    low, high = part.region
    if low <= part.estimate <= high:
        return "inside the region"
    if part.low <= high and part.high >= low:
        return "outside the region, into which the interval reaches"
    return "outside the region"


def _rate(claim: str, table: pd.DataFrame) -> Evidence:
    """Return how fast the whole excess with √n landmarks falls with n."""
    if table.n.nunique() < 2:
        return Evidence(claim, (), "needs several n")
    wide = by_draw(table.assign(excess=table.cost_test - table.base), "n", "excess")
    weights = slope(np.log(wide.columns.to_numpy(float)))
    part = over_draws(
        "slope of log excess with √n landmarks on log n",
        wide.to_numpy(),
        _RATE,
        lambda rows: float(weights @ np.log(rows.mean(axis=0))),
        paper=-0.5,
    )
    means = table.groupby("n")[["cost_test", "anchor", "base"]].mean()
    means = means[means.anchor > means.base]
    ratios = (means.cost_test - means.anchor) / (means.anchor - means.base)
    words = ", ".join(f"{ratio:.1f} at n = {n:,}" for n, ratio in ratios.items())
    return Evidence(
        claim,
        [part],
        "on digits, d = 784, alone; what √n landmarks add over the statistical excess: "
        f"{words}",
    )
