"""L21 Fig. 2: past which number of landmarks the error stops falling."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from experiments.claims import Finding, judged
from experiments.figures import draw_band, legend, panels, style
from experiments.grid import Context
from experiments.simulation import GAMMA, Mixture
from experiments.store import Cell, Row
from sketchmeans import NystromKMeans

TITLE = "Error of Nyström kernel k-means over m (L21 Fig. 2)"
REDUCED = (
    "The excess is counted from the lowest mean cost over m, as no reference changes "
    "where a curve flattens."
)
_GRID = ((20, 40, 80, 160), (20, 40, 80, 160, 320, 640, 1280, 2000), 10_000)
#: Share of the whole drop that is left where a curve is flat.
_FLAT = 0.05


def cells(smoke: bool, repeats: int | None) -> list[Cell]:
    clusters, sizes, n = ((4, 8), (4, 16, 64, 128), 600) if smoke else _GRID
    return [
        {"k": k, "n": n, "m": m, "repeat": repeat}
        for k in clusters
        for m in sizes
        for repeat in range(repeats or (2 if smoke else 5))
    ]


def run(cell: Cell, context: Context) -> list[Row]:
    mixture = Mixture.of(cell["k"])
    X, _ = mixture.draw(cell["n"], cell["repeat"] + 1)
    model = NystromKMeans(
        cell["k"],
        gamma=GAMMA,
        n_landmarks=cell["m"],
        n_init=3,
        random_state=context.seed,
    ).fit(X)
    return [{"cost": model.cost_, "cost_test": model.cost(mixture.test_rows())}]


def _with_excess(table: pd.DataFrame) -> pd.DataFrame:
    means = table.groupby(["k", "m"]).cost_test.mean()
    lowest = means.groupby("k").min()
    return table.assign(excess=table.cost_test - table.k.map(lowest))


def figure(table: pd.DataFrame) -> Figure:
    drawing, axes = panels(1, 1, (5.0, 3.4))
    ends = bends(table)
    for position, (k, mine) in enumerate(_with_excess(table).groupby("k")):
        draw_band(axes[0], mine, "m", "excess", **style(position), label=f"k = {k}")
        end = mine[mine.m == ends[k]].excess.mean()
        axes[0].plot(ends[k], end, marker="*", ms=11, color="#d62728", zorder=3)
    axes[0].set(xscale="log", xlabel="landmarks m")
    axes[0].set_ylabel("test cost above the lowest")
    legend(drawing, axes[0])
    return drawing


def bends(table: pd.DataFrame) -> dict[int, int]:
    """Return for each k the first m from which on little of the drop is left."""
    found = {}
    for k, mine in table.groupby("k"):
        means = mine.groupby("m").cost_test.mean()
        left = (means - means.min()) / (means.max() - means.min())
        over = [m for m in means.index if left[m] > _FLAT]
        later = [m for m in means.index if not over or m > over[-1]]
        found[int(k)] = int(later[0]) if later else int(means.index[-1])
    return found


def summary(table: pd.DataFrame) -> pd.DataFrame:
    wide = table.pivot_table(index="k", columns="m", values="cost_test")
    wide.index = [f"test cost, k = {k}" for k in wide.index]
    wide.columns = [f"m = {m:,}" for m in wide.columns]
    return wide


def claims(table: pd.DataFrame) -> list[Finding]:
    found = bends(table)
    largest = int(table.m.max())
    stops = all(m < largest for m in found.values())
    sizes = list(found.values())
    grows = all(a <= b for a, b in pairwise(sizes))
    grows = grows and sizes[-1] > sizes[0]
    trend = ""
    if len(set(sizes)) > 1:
        trend = f"; rank correlation {stats.spearmanr(list(found), sizes)[0]:.2f}"
    words = ", ".join(f"{m} for k = {k}" for k, m in found.items())
    return [
        Finding(
            "L2",
            judged([stops, grows]),
            f"{1 - _FLAT:.0%} of the drop in the test cost is done at m = {words}"
            f"{trend}",
            "" if stops and grows else _tolerances(table),
        )
    ]


def _tolerances(table: pd.DataFrame) -> str:
    """Return where curves are flat if what is left is a share of the cost itself."""
    means = table.groupby(["k", "m"]).cost_test.mean().unstack()
    left = means.div(means.min(axis=1), axis=0) - 1.0
    texts = []
    for tolerance in (0.02, 0.01, 0.005):
        ends = (left <= tolerance).idxmax(axis=1)
        words = ", ".join(f"{m} for k = {k}" for k, m in ends.items())
        texts.append(f"within {tolerance:.1%} of the lowest cost at m = {words}")
    return "counted what is left as a share of the cost itself: " + "; ".join(texts)
