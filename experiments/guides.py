"""Which landmarks, which feature sketch: answers from the numbers."""

from __future__ import annotations

import pandas as pd

from experiments.approximation import dataset_lifts, geometric_mean
from experiments.b14_claims import PROPOSED
from experiments.cr18_claims import flat_sizes
from experiments.cr18_views import with_base
from experiments.methods import BASELINE, FULL, POLISHED, SKETCH_SIZES
from experiments.tables import markdown
from experiments.whole_fits import at_equal_time, beyond_noise

Tables = dict[str, pd.DataFrame]

#: Lift, as a share of the best, from which on a strategy is as good.
_AS_GOOD = 0.9


def landmark_guide(tables: Tables) -> str:
    """Return the section on landmarks, or nothing without its experiments."""
    if "og17_bandwidth" not in tables:
        return ""
    table = tables["og17_bandwidth"]
    table = table[~table.method.isin(SKETCH_SIZES)]
    lift = dataset_lifts(table, "bandwidth")
    seconds = table.groupby("method").seconds.apply(geometric_mean)
    ranked = pd.DataFrame(
        {
            "mean lift": lift.apply(geometric_mean),
            "least lift": lift.min(),
            "datasets won": lift.idxmax(axis=1).value_counts(),
            "seconds": seconds,
        }
    ).sort_values("mean lift", ascending=False)
    ranked["datasets won"] = ranked["datasets won"].fillna(0).astype(int).astype(str)
    mean = ranked["mean lift"]
    best, good = ranked.index[0], mean[mean >= _AS_GOOD * mean.iloc[0]].index
    fast = seconds[list(good)].idxmin()
    rows = [name for name in ranked.index if not _moves(name) and name != "uniform"]
    row = rows[0]
    lines = [
        "## Which landmarks should I use?\n",
        f"For the best approximation of the kernel matrix: **{best}** (mean lift "
        f"{mean[best]:.2f} over uniform landmarks, {len(lift)} datasets, bandwidths: "
        f"{table.bandwidth.nunique()}; {seconds[best]:.3f} s). The fastest within "
        f"{1 - _AS_GOOD:.0%} of it is **{fast}** ({mean[fast]:.2f}, "
        f"{seconds[fast]:.3f} s). If landmarks must be rows: **{row}** "
        f"({mean[row]:.2f}, {seconds[row]:.3f} s). Seconds are CPU time of the "
        "selection, of cells that ran beside others.\n",
        markdown(ranked, 3),
        "",
        _cluster_note(tables),
        _time_note(tables),
    ]
    return "\n".join(line for line in lines if line is not None)


def _moves(name: str) -> bool:
    """Say whether a strategy returns points that are no rows."""
    return name == "k-means" or "Lloyd" in name


def _cluster_note(tables: Tables) -> str:
    table = tables.get("cr18_mnist")
    if table is None:
        return ""
    sizes = flat_sizes(with_base(table))
    if sizes.empty:
        return ""
    *_, n = sizes.index
    return (
        "To cluster, uniform landmarks go a long way: on "
        f"{n:,} digits, about {sizes[n]:.0f} of them bring the cost on new digits "
        "within 1% of that of exact means (between two sizes that were run).\n"
    )


def _time_note(tables: Tables) -> str:
    table = tables.get("whole_fits")
    if table is None:
        return ""
    found = at_equal_time(table)
    if found.empty:
        return ""
    found = found.drop(columns="CPU seconds")
    # Landmarks whose selection takes longer than the whole time have lost.
    best = found.idxmin(axis=1).value_counts()
    words = ", ".join(f"{name} {count}" for name, count in best.items())
    whole = found.dropna()
    means = ", ".join(f"{mean:.2f}% {name}" for name, mean in whole.mean().items())
    clear = beyond_noise(table)
    names = ", ".join(dict.fromkeys(name.split(",")[0] for name in clear)) or "none"
    return (
        "In the same CPU time of a whole fit the lowest cost is that of (settings of "
        f"`whole_fits`, {len(found)} in all): {words}; *only on {names} "
        f"({len(clear)} settings) by more than the spread of fits, or as nothing else "
        f"can be had in that time*. In {len(found) - len(whole)} of them some "
        "landmarks cannot be had in that time; in the other "
        f"{len(whole)} the mean cost over the least is: {means}.\n"
    )


def feature_guide(tables: Tables) -> str:
    """Return the section on feature sketches, or nothing without its experiment."""
    if "b14_reduction" not in tables:
        return ""
    table = tables["b14_reduction"]
    full = (
        table[table.method == FULL].groupby("dataset")[["objective", "seconds"]].mean()
    )
    sketched = table[table.method != FULL]
    means = sketched.groupby(["dataset", "method", "r"])[
        ["objective", "seconds"]
    ].mean()
    means = means.reset_index()
    means["objective"] /= means.dataset.map(full.objective)
    means["speed"] = means.dataset.map(full.seconds) / means.seconds
    real = means[means.dataset != "synth"]
    chosen = [r for r in (10, 20, 40, 100) if r in set(real.r)] or sorted(set(real.r))
    wide = real[real.r.isin(chosen)].pivot_table(
        index="method", columns="r", values="objective", aggfunc=geometric_mean
    )
    wide.columns = [f"objective, r = {r}" for r in wide.columns]
    speed = real[real.r == chosen[-1]].groupby("method").speed.apply(geometric_mean)
    wide[f"speed, r = {chosen[-1]}"] = speed
    wide = wide.sort_values(f"objective, r = {chosen[0]}")
    plain = wide.loc[[name for name in wide.index if name in PROPOSED]]
    best = plain.index[0]
    lines = [
        "## Which feature sketch?\n",
        f"**{POLISHED}** (the default of `SketchedKMeans`): the objective is "
        f"{wide.loc[POLISHED].iloc[0]:.3f} times that of k-means on all features "
        f"already at r = {chosen[0]}. Without polish, **{best}** needs the fewest "
        f"features ({plain.loc[best].iloc[0]:.3f} at r = {chosen[0]}); {BASELINE} "
        f"reach {wide.loc[BASELINE].iloc[0]:.3f}. Means over the real datasets; "
        "objectives as multiples of k-means on all features, speed likewise.\n",
        markdown(wide, 3),
        "",
    ]
    return "\n".join(lines)
