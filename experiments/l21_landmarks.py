"""L21 Fig. 2: past which number of landmarks the error stops falling."""

from __future__ import annotations

from math import inf

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.draws import by_draw, crossing, slope
from experiments.evidence import Evidence, Part, over_draws
from experiments.figures import draw_band, legend, panels, plain_ticks, style
from experiments.grid import Context
from experiments.simulation import GAMMA, Mixture
from experiments.store import Cell, Row
from sketchmeans import KernelKMeans, NystromKMeans

TITLE = "Error of Nyström kernel k-means over m (L21 Fig. 2)"
REDUCED = (
    "The excess is counted from exact kernel k-means of the same draw, whose labels "
    "the fits start from. m up to 2,000, where the excess is far below 1%. The "
    "statistical excess is that over the reference of `l21_rates`."
)
#: Whose references are added to the table for the claims.
BORROWS = "l21_rates"
_GRIDS = {
    "full": ((20, 40, 80, 160), 10_000),
    "quick": ((10, 20, 40), 1_500),
    "smoke": ((4, 8), 300),
}
#: Relative excess at which a curve is flat; others are reported; most landmarks.
_FLAT, _OTHERS, _MOST = 0.01, (0.005, 0.02), 2_000


def cells(grid: str, repeats: int) -> list[Cell]:
    clusters, n = _GRIDS[grid]
    return [
        {"k": k, "n": n, "repeat": repeat}
        for k in clusters
        for repeat in range(repeats)
    ]


def run(cell: Cell, context: Context) -> list[Row]:
    k, n, seed = cell["k"], cell["n"], context.seed
    mixture = Mixture.of(k)
    X, _ = mixture.draw(n, seed)
    X_new = mixture.test_rows()
    anchor = KernelKMeans(k, gamma=GAMMA, random_state=seed).fit(X)
    exact = float(anchor.cost(X_new))
    steps = int(2 * np.log2(min(n / 2, _MOST) / 20)) + 1
    rows = []
    for m in 20 * 2 ** (np.arange(steps) / 2):
        model = NystromKMeans(
            k,
            gamma=GAMMA,
            n_landmarks=round(m),
            init=anchor.labels_,
            n_init=1,
            random_state=seed,
        ).fit(X)
        rows.append(
            {"m": round(m), "cost_test": float(model.cost(X_new)), "exact": exact}
        )
    return rows


def _with_excess(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(excess=table.cost_test / table.exact - 1.0)


def figure(table: pd.DataFrame) -> Figure:
    drawing, axes = panels(1, 1, (5.0, 3.4))
    for position, (k, mine) in enumerate(_with_excess(table).groupby("k")):
        look = style(position)
        draw_band(axes[0], mine, "m", "excess", **look, label=f"k = {k}")
        size = np.exp(needed(mine).log_m.mean())
        star = {"marker": "*", "markersize": 11, "zorder": 5, "mec": "white"}
        axes[0].plot([size], [_FLAT], color=look["color"], **star)
    axes[0].axhline(_FLAT, color="grey", lw=0.8, ls=":")
    axes[0].set(xscale="log", xlabel="landmarks m")
    axes[0].set_yscale("symlog", linthresh=1e-3)
    axes[0].set_ylim(bottom=1e-3)
    plain_ticks(axes[0])
    axes[0].set_ylabel("relative excess over the exact fit (star: m*)", fontsize=8)
    legend(drawing, axes[0])
    return drawing


def needed(table: pd.DataFrame, level: float = _FLAT) -> pd.DataFrame:
    """Return m* of each draw: where the relative excess falls to a level.

    With a column `level` in the table, each draw has its own.
    """
    rows = []
    for (k, repeat), mine in _with_excess(table).groupby(["k", "repeat"]):
        mine = mine.sort_values("m")
        own = float(mine.level.iloc[0]) if "level" in mine else level
        size = crossing(mine.m.to_numpy(float), mine.excess.to_numpy(), own)
        rows.append({"k": k, "repeat": repeat, "log_m": np.log(size)})
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    wide = _with_excess(table).pivot_table(index="k", columns="m", values="excess")
    wide.index = [f"relative excess, k = {k}" for k in wide.index]
    wide.columns = [f"m = {m:,}" for m in wide.columns]
    return wide


def claims(table: pd.DataFrame) -> list[Evidence]:
    if "part" not in table:
        return [_grows(table), Evidence("L2s", (), "needs the references of l21_rates")]
    mine = table[table.part != "reference"]
    references = table[table.part == "reference"].set_index("k").cost_test
    return [_grows(mine), _grows_statistically(mine, references)]


def _slope_part(wide: pd.DataFrame) -> Part:
    weights = slope(np.log(wide.columns.to_numpy(float)))
    return over_draws(
        "slope of log m* on log k",
        wide.to_numpy(),
        (0.0, inf),
        lambda rows: float(weights @ rows.mean(axis=0)),
        paper=0.5,
    )


def _grows(table: pd.DataFrame) -> Evidence:
    """Return how m* at a relative level grows with k."""
    largest = _with_excess(table[table.m == table.m.max()])
    wide = by_draw(needed(table), "k", "log_m")
    if wide.shape[1] < max(table.k.nunique(), 2):
        return Evidence("L2", (), "needs several k, and m that come within 1%")
    parts = [
        over_draws(
            "relative excess at the largest m",
            by_draw(largest, "k", "excess").max(axis=1),
            (-inf, _FLAT),
            can_fail=False,
        ),
        _slope_part(wide),
    ]
    words = ", ".join(f"{np.exp(m):.0f} for k = {k}" for k, m in wide.mean().items())
    weights = slope(np.log(wide.columns.to_numpy(float)))
    others = ", ".join(
        f"{weights @ by_draw(needed(table, level), 'k', 'log_m').mean():.2f} at {level}"
        for level in _OTHERS
    )
    note = f"m* is {words} (paper: Theorem 4's √k); slopes at other levels: {others}"
    return Evidence("L2", parts, note)


def _grows_statistically(table: pd.DataFrame, references: pd.Series) -> Evidence:
    """Return how m* grows with k, where it is that of CR1."""
    level = (table.exact - table.k.map(references)) / table.exact
    found = needed(table.assign(level=level))
    largest = np.log(float(table.m.max()))
    missed = int(found.log_m.isna().sum())
    wide = by_draw(found.fillna({"log_m": largest}), "k", "log_m")
    if wide.shape[1] < 2 or level.isna().any():
        return Evidence("L2s", (), "needs several k, and their references")
    words = ", ".join(f"{np.exp(m):.0f} for k = {k}" for k, m in wide.mean().items())
    note = f"m* is {words}; no m of the grid was enough in {missed} draws"
    return Evidence("L2s", [_slope_part(wide)], note)
