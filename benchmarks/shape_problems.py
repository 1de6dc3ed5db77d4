"""Labelled problems of many shapes, in two halves: one to design with, one to report.

The halves have the same families, but other seeds and other sizes, noise levels and
dimensions.  The real tables are those that come with scikit-learn; iris and digits are
in the half for design, wine and breast cancer in the one for the report.  Another
`seed` draws problems that nobody has seen: sizes, noise and the like are up to a tenth
more or less, and only the real tables stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets

from benchmarks.shape_makers import (
    Array,
    Make,
    blobs,
    bridge,
    curves,
    face,
    linked,
    mixed,
    moons,
    rings,
    shells,
    spirals,
    stripes,
    table,
    target,
    waves,
    with_noise,
)


@dataclass(frozen=True)
class Problem:
    """Rows, their true groups, and the family that they are of."""

    name: str
    family: str
    X: Array
    y: Array

    @property
    def n_clusters(self) -> int:
        return len(np.unique(self.y))


#: The seed of the problems that constants were chosen with, and looked at.
SEEN = 2023


def problems(half: str, seed: int = SEEN) -> Iterator[Problem]:
    """Yield the problems of a half: "design" or "report"."""
    position = ("design", "report").index(half)
    for number, (name, family, make, *variants) in enumerate(_CASES):
        rng = np.random.default_rng([position, number, seed])
        given = variants[position]
        X, y = make(rng, **(given if seed == SEEN else _vary(given, rng)))
        order = rng.permutation(len(X))
        yield Problem(name, family, X[order], y[order])


def _vary(given: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return parameters a little more or less; numbers of groups and columns stay."""
    return {
        name: type(value)(value * rng.uniform(0.9, 1.1))
        if isinstance(value, float) or name == "n"
        else value
        for name, value in given.items()
    }


_Case = tuple[str, str, Make, dict[str, Any], dict[str, Any]]

_CASES: list[_Case] = [
    ("rings", "shape", rings, {}, {"n": 700, "noise": 0.04}),
    ("rings close", "shape", rings, {"radii": (0.7, 1.0)}, {"radii": (0.65, 1.0)}),
    ("rings noisy", "shape", rings, {"noise": 0.09}, {"noise": 0.1, "n": 2000}),
    (
        "three rings",
        "shape",
        rings,
        {"radii": (0.3, 0.7, 1.1)},
        {"radii": (0.25, 0.6, 1.0), "noise": 0.04, "n": 1500},
    ),
    (
        "four rings",
        "shape",
        rings,
        {"radii": (0.2, 0.5, 0.8, 1.1), "noise": 0.03, "n": 1600},
        {"radii": (0.3, 0.6, 0.9, 1.2), "noise": 0.035, "n": 1200},
    ),
    (
        "rings uneven",
        "shape",
        rings,
        {"shares": (0.1, 0.9)},
        {"shares": (0.85, 0.15), "n": 1500},
    ),
    ("moons", "shape", moons, {"noise": 0.06}, {"noise": 0.07, "n": 600}),
    ("moons noisy", "shape", moons, {"noise": 0.14}, {"noise": 0.13, "n": 1500}),
    ("moons very noisy", "shape", moons, {"noise": 0.2}, {"noise": 0.22, "n": 1500}),
    ("moons uneven", "shape", moons, {"share": 0.15}, {"share": 0.2, "noise": 0.08}),
    ("moons few", "shape", moons, {"n": 120, "noise": 0.06}, {"n": 200, "noise": 0.08}),
    ("moons 5d", "shape", moons, {"d": 5, "noise": 0.1}, {"d": 4, "noise": 0.12}),
    ("moons 10d", "shape", moons, {"d": 10, "noise": 0.1}, {"d": 8, "noise": 0.1}),
    ("spirals", "shape", spirals, {}, {"turns": 1.2, "noise": 0.035}),
    (
        "spirals long",
        "shape",
        spirals,
        {"turns": 2.2, "noise": 0.015, "n": 1500},
        {"turns": 2.0, "noise": 0.02, "n": 2000},
    ),
    (
        "spirals three",
        "shape",
        spirals,
        {"arms": 3, "turns": 1.0, "noise": 0.025},
        {"arms": 3, "turns": 1.2, "noise": 0.02, "n": 1200},
    ),
    (
        "spirals few",
        "shape",
        spirals,
        {"n": 300, "turns": 1.0, "noise": 0.02},
        {"n": 250, "turns": 0.8, "noise": 0.03},
    ),
    ("waves", "shape", waves, {}, {"count": 4, "noise": 0.07, "n": 1200}),
    ("waves noisy", "shape", waves, {"noise": 0.12}, {"noise": 0.14, "count": 2}),
    ("target", "shape", target, {}, {"n": 1500, "noise": 0.08}),
    ("face", "shape", face, {}, {"n": 600, "noise": 0.05}),
    ("mixed", "shape", mixed, {}, {"n": 1600, "noise": 0.09}),
    ("linked", "shape", linked, {}, {"n": 700, "noise": 0.1}),
    ("shells 3d", "shape", shells, {}, {"noise": 0.12, "n": 1500}),
    ("shells 5d", "shape", shells, {"d": 5, "n": 2000}, {"d": 6, "n": 1500}),
    ("curves 10d", "shape", curves, {}, {"d": 6, "noise": 0.08}),
    (
        "rings background",
        "shape",
        with_noise,
        {"make": rings, "share": 0.05},
        {"make": rings, "share": 0.08, "n": 1500, "noise": 0.04},
    ),
    (
        "moons background",
        "shape",
        with_noise,
        {"make": moons, "share": 0.08, "noise": 0.06},
        {"make": moons, "share": 0.05, "noise": 0.08, "n": 600},
    ),
    ("bridge", "blob", bridge, {}, {"links": 30, "gap": 7.0}),
    ("blobs", "blob", blobs, {}, {"k": 4, "n": 600}),
    ("blobs wide", "blob", blobs, {"spread": 1.4}, {"spread": 1.3, "k": 6}),
    ("blobs many", "blob", blobs, {"k": 15, "n": 1500}, {"k": 20, "n": 3000}),
    ("blobs few rows", "blob", blobs, {"k": 3, "n": 90}, {"k": 4, "n": 160}),
    (
        "blobs uneven",
        "blob",
        blobs,
        {"uneven": 20.0, "n": 2000},
        {"uneven": 12.0, "k": 6, "n": 1500},
    ),
    ("blobs densities", "blob", blobs, {"densities": 5.0}, {"densities": 8.0, "k": 4}),
    (
        "blobs both",
        "blob",
        blobs,
        {"densities": 4.0, "uneven": 8.0},
        {"densities": 3.0, "uneven": 10.0, "k": 7, "n": 1500},
    ),
    ("blobs 5d", "blob", blobs, {"d": 5}, {"d": 4, "k": 8, "spread": 1.2}),
    ("blobs 10d", "blob", blobs, {"d": 10}, {"d": 9, "k": 10, "spread": 1.2}),
    (
        "blobs background",
        "blob",
        with_noise,
        {"make": blobs, "share": 0.05},
        {"make": blobs, "share": 0.08, "k": 4},
    ),
    ("stripes", "stretched", stripes, {}, {"k": 4, "noise": 0.3, "n": 1200}),
    ("stripes wide", "stretched", stripes, {"noise": 0.4}, {"noise": 0.45, "k": 2}),
    (
        "stretched",
        "stretched",
        blobs,
        {"stretch": 6.0},
        {"stretch": 8.0, "k": 4, "n": 800},
    ),
    (
        "stretched close",
        "stretched",
        blobs,
        {"stretch": 5.0, "spread": 1.5},
        {"stretch": 6.0, "spread": 1.4, "k": 6},
    ),
    (
        "stretched 5d",
        "stretched",
        blobs,
        {"stretch": 5.0, "d": 5},
        {"stretch": 6.0, "d": 4, "k": 6},
    ),
    (
        "table one",
        "table",
        table,
        {"load": datasets.load_iris},
        {"load": datasets.load_wine},
    ),
    (
        "table two",
        "table",
        table,
        {"load": datasets.load_digits},
        {"load": datasets.load_breast_cancer},
    ),
]
