"""Tables of what the landmark selectors reach, and who wins where."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

#: Repeats by dataset, method and measure.
Results = dict[str, dict[str, dict[str, list[float]]]]

#: Measures and the way they are printed; for lift more is better, else less.
_COLUMNS = {
    "seconds": "{:.3f}",
    "trace": "{:.5f}",
    "frobenius": "{:.5f}",
    "spectral": "{:.5f}",
    "lift": "{:.2f}",
    "cost": "{:.5f}",
}

_NAME_WIDTH, _WIDTH = 34, 20


def table(results: Results, dataset: str) -> str:
    """Return median and half the distance of the quartiles, a line a method."""
    lines = [
        "".join([f"{dataset:<{_NAME_WIDTH}}", *(f"{c:>{_WIDTH}}" for c in _COLUMNS)])
    ]
    lines.append("-" * len(lines[0]))
    for method, measures in results[dataset].items():
        cells = (_cell(form, measures[name]) for name, form in _COLUMNS.items())
        lines.append(
            f"{method:<{_NAME_WIDTH}}" + "".join(f"{cell:>{_WIDTH}}" for cell in cells)
        )
    return "\n".join(lines)


def _cell(form: str, values: list[float]) -> str:
    low, middle, high = np.nanquantile(values, (0.25, 0.5, 0.75))
    return f"{form.format(middle)} ±{form.format((high - low) / 2)}"


def summary(results: Results) -> str:
    """Return which method wins where, and the mean lift of each over the datasets."""
    lines = ["", "the three best by median"]
    for dataset, methods in results.items():
        for name in ("lift", "trace", "spectral", "cost"):
            lines.append(f"  {dataset:<18}{name:<10}{_podium(methods, name)}")
    lines += ["", "geometric mean of the lift over the datasets, least and most"]
    everywhere = [
        method
        for method in next(iter(results.values()))
        if all(method in methods for methods in results.values())
    ]
    lifts = {
        method: np.array([np.median(m[method]["lift"]) for m in results.values()])
        for method in everywhere
    }
    for method in sorted(lifts, key=lambda m: -float(np.log(lifts[m]).mean())):
        mean = np.exp(np.log(lifts[method]).mean())
        least, most = lifts[method].min(), lifts[method].max()
        lines.append(f"  {method:<{_NAME_WIDTH}}{mean:6.2f} ({least:.2f}-{most:.2f})")
    return "\n".join(lines)


def _podium(methods: Mapping[str, Mapping[str, list[float]]], name: str) -> str:
    medians = {method: float(np.nanmedian(m[name])) for method, m in methods.items()}
    order = sorted(medians, key=lambda m: medians[m], reverse=name == "lift")
    return ", ".join(f"{m} {_COLUMNS[name].format(medians[m])}" for m in order[:3])
