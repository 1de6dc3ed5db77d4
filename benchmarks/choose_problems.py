"""Tables with a planted number of clusters, and tables without any.

In two halves, one to design with and one to report, which differ in seeds, sizes,
noise, dimensions and numbers of clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.shape_makers import Array, Labelled, Make, blobs, moons, rings


@dataclass(frozen=True)
class Problem:
    """Columns on one scale, and their number of clusters: 0 for noise."""

    name: str
    X: Array
    n_clusters: int


def problems(half: str) -> Iterator[Problem]:
    """Yield the 30 problems of a half, "design" or "report", then noise."""
    position = ("design", "report").index(half)
    for number, (make, *variants) in enumerate([*_CASES, *_NOISE]):
        rng = np.random.default_rng([position, number, 77])
        X, y = make(rng, **variants[position])
        order = rng.permutation(len(X))
        k = len(np.unique(y))
        name = f"{make.__name__.replace('_', ' ')} {k}"
        yield Problem(name, X[order], k if k > 1 else 0)


def standardise(X: Array) -> Array:
    """Return columns of mean 0 and deviation 1, as a table is prepared."""
    deviation = X.std(axis=0)
    return np.asarray((X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0))


def scaled_blobs(rng: np.random.Generator, **given: Any) -> Labelled:
    X, y = blobs(rng, **given)
    return standardise(X), y


def scaled_rings(rng: np.random.Generator, **given: Any) -> Labelled:
    X, y = rings(rng, **given)
    return standardise(X), y


def scaled_moons(
    rng: np.random.Generator, pairs: int = 1, n: int = 1000, **given: Any
) -> Labelled:
    """Return pairs of moons, along a diagonal."""
    parts, groups = [], []
    for pair in range(pairs):
        X, y = moons(rng, n // pairs, **given)
        X[:, :2] += [3.0 * pair, 2.4 * pair]
        parts.append(X)
        groups.append(y + 2 * pair)
    return standardise(np.concatenate(parts)), np.concatenate(groups)


def mixed_tables(
    rng: np.random.Generator,
    k: int,
    n: int = 1500,
    numbers: int = 4,
    categories: int = 3,
    distance: float = 1.7,
    purity: float = 0.75,
) -> Labelled:
    """Return numbers and categories of groups that differ in both, encoded.

    Group means are `distance` deviations of the noise apart, times those of random
    normal vectors; a category has a level that each group prefers.
    """
    y = rng.integers(k, size=n)
    means = rng.normal(size=(k, numbers))
    while k > 1 and _least_distance(means) < 1.1:
        means = rng.normal(size=(k, numbers))
    table = standardise(distance * means[y] + rng.normal(size=(n, numbers)))
    columns = [table]
    for _ in range(categories):
        levels = int(rng.integers(2, 6))
        preferred = rng.permutation(np.arange(k) % levels)
        drawn = rng.integers(levels, size=n)
        if k > 1:
            drawn = np.where(rng.random(n) < purity, preferred[y], drawn)
        columns.append((drawn[:, None] == np.arange(levels)).astype(float))
    return np.hstack(columns), y


def _least_distance(means: Array) -> float:
    gaps = np.linalg.norm(means[:, None] - means, axis=2)
    np.fill_diagonal(gaps, np.inf)
    return float(gaps.min())


def uniform_box(rng: np.random.Generator, n: int, sides: tuple[float, ...]) -> Labelled:
    return rng.uniform(size=(n, len(sides))) * sides, np.zeros(n)


def one_gaussian(rng: np.random.Generator, n: int, d: int) -> Labelled:
    return rng.normal(size=(n, d)), np.zeros(n)


_Case = tuple[Make, dict[str, Any], dict[str, Any]]

_CASES: list[_Case] = [
    (scaled_blobs, {"k": 2}, {"k": 2, "d": 3, "n": 700}),
    (scaled_blobs, {"k": 3, "d": 5, "spread": 1.2}, {"k": 3, "d": 4, "spread": 1.3}),
    (scaled_blobs, {"k": 4, "uneven": 5.0}, {"k": 4, "d": 3, "uneven": 4.0}),
    (scaled_blobs, {"k": 5, "densities": 4.0}, {"k": 5, "d": 3, "densities": 3.0}),
    (scaled_blobs, {"k": 6, "d": 4, "spread": 1.4}, {"k": 6, "spread": 1.2}),
    (scaled_blobs, {"k": 7, "d": 10}, {"k": 7, "d": 8, "n": 2000}),
    (scaled_blobs, {"k": 8, "n": 1500}, {"k": 8, "d": 4, "n": 1200}),
    (scaled_blobs, {"k": 9, "d": 3, "n": 3000}, {"k": 9, "d": 5, "n": 2500}),
    (scaled_blobs, {"k": 10, "d": 8, "spread": 1.3}, {"k": 10, "d": 6, "n": 1500}),
    (scaled_blobs, {"k": 11, "d": 3, "n": 2000}, {"k": 11, "d": 7, "n": 1800}),
    (scaled_blobs, {"k": 12, "n": 3000}, {"k": 12, "d": 3, "n": 3000}),
    (scaled_blobs, {"k": 4, "stretch": 4.0}, {"k": 3, "stretch": 4.0, "d": 3}),
    (scaled_rings, {}, {"n": 1200, "noise": 0.04}),
    (scaled_rings, {"noise": 0.06}, {"radii": (0.4, 1.0), "noise": 0.06}),
    (scaled_rings, {"shares": (0.2, 0.8)}, {"shares": (0.7, 0.3), "n": 1500}),
    (
        scaled_rings,
        {"radii": (0.3, 0.7, 1.1), "n": 1500},
        {"radii": (0.3, 0.8, 1.2), "n": 2000},
    ),
    (
        scaled_rings,
        {"radii": (0.3, 0.6, 0.9, 1.2), "noise": 0.03, "n": 2000},
        {"radii": (0.25, 0.55, 0.85, 1.15), "noise": 0.03, "n": 2500},
    ),
    (scaled_moons, {"noise": 0.06}, {"noise": 0.07, "n": 1500}),
    (scaled_moons, {"noise": 0.08}, {"noise": 0.09}),
    (scaled_moons, {"d": 3, "noise": 0.08}, {"d": 4, "noise": 0.07}),
    (
        scaled_moons,
        {"pairs": 2, "n": 1600, "noise": 0.06},
        {"pairs": 2, "n": 2000, "noise": 0.07},
    ),
    (
        scaled_moons,
        {"pairs": 3, "n": 2000, "noise": 0.06},
        {"pairs": 3, "n": 2400, "noise": 0.05},
    ),
    (mixed_tables, {"k": 2}, {"k": 2, "categories": 4}),
    (mixed_tables, {"k": 3}, {"k": 3, "numbers": 3, "n": 2000}),
    (mixed_tables, {"k": 4, "n": 3000}, {"k": 4, "categories": 5}),
    (mixed_tables, {"k": 5, "distance": 2.0}, {"k": 5, "numbers": 5}),
    (mixed_tables, {"k": 6, "numbers": 6}, {"k": 6, "numbers": 5, "n": 2000}),
    (
        mixed_tables,
        {"k": 8, "numbers": 6, "n": 3000},
        {"k": 7, "numbers": 6, "n": 2500},
    ),
    (mixed_tables, {"k": 4, "categories": 5}, {"k": 3, "categories": 6}),
    (
        mixed_tables,
        {"k": 10, "numbers": 8, "n": 3000},
        {"k": 9, "numbers": 8, "n": 3000},
    ),
]

_NOISE: list[_Case] = [
    (uniform_box, {"n": 1000, "sides": (1.0,)}, {"n": 700, "sides": (1.0,)}),
    (uniform_box, {"n": 1000, "sides": (1.0, 0.01)}, {"n": 800, "sides": (1.0, 0.02)}),
    (uniform_box, {"n": 1500, "sides": (1.0, 1.0)}, {"n": 1000, "sides": (1.0, 1.0)}),
    (uniform_box, {"n": 1000, "sides": (4.0, 1.0)}, {"n": 1200, "sides": (3.0, 1.0)}),
    (uniform_box, {"n": 1000, "sides": (1.0,) * 5}, {"n": 1500, "sides": (1.0,) * 4}),
    (one_gaussian, {"n": 1000, "d": 1}, {"n": 1500, "d": 1}),
    (one_gaussian, {"n": 1000, "d": 2}, {"n": 700, "d": 2}),
    (one_gaussian, {"n": 2000, "d": 5}, {"n": 1000, "d": 4}),
    (one_gaussian, {"n": 1000, "d": 10}, {"n": 1200, "d": 8}),
    (mixed_tables, {"k": 1}, {"k": 1, "categories": 5, "numbers": 3}),
]
