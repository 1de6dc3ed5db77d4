"""The picture of the lifts: a panel for each dataset, a line for each method."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from benchmarks.landmark_report import Results


def lift_picture(results: Results, path: Path) -> None:
    """Draw every repeat's lift as a ring and the median as a bar."""
    methods = list(dict.fromkeys(m for found in results.values() for m in found))
    columns = min(3, len(results))
    lines = -(-len(results) // columns)
    figure, axes = plt.subplots(
        lines,
        columns,
        figsize=(2.6 + 3.2 * columns, lines * (1.0 + 0.24 * len(methods))),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axis in axes.ravel()[len(results) :]:
        axis.set_visible(False)
    for axis, (dataset, found) in zip(axes.ravel(), results.items(), strict=False):
        best = max(found, key=lambda m: np.median(found[m]["lift"]))
        for i, method in enumerate(methods):
            if method not in found:
                continue
            lifts = found[method]["lift"]
            color = "tab:red" if method == best else "tab:blue"
            axis.plot(lifts, [i] * len(lifts), "o", ms=4, mfc="none", color=color)
            axis.plot(np.median(lifts), i, "|", ms=14, mew=2.5, color=color)
        axis.axvline(1.0, color="gray", lw=0.8)
        axis.set_title(dataset)
        axis.set_xlabel("lift over uniform")
        axis.grid(axis="x", alpha=0.3)
    first = axes[0, 0]
    first.set_yticks(range(len(methods)), methods)
    first.set_ylim(len(methods) - 0.4, -0.6)
    _label_by_value(first)
    figure.suptitle(
        "rings: repeats; bars: medians; red: the best median", size="medium"
    )
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _label_by_value(axis: Axes) -> None:
    """Make the axis logarithmic, with 0.5, 1, 2, ... instead of powers of ten."""
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    steps = (1, 2, 5) if high > 4.0 * low else (1, 1.1, 1.2, 1.5, 2, 3, 5, 7, 8, 9)
    ticks = [step * 10.0**e for e in range(-3, 5) for step in steps]
    inside = [tick for tick in ticks if low <= tick <= high]
    axis.set_xticks(inside, [f"{tick:g}" for tick in inside])
    axis.set_xticks([], minor=True)
