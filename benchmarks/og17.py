"""The tables of OG17's experiments: features of mean 0 and variance 1, in float32."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml

from benchmarks.data import VARIABLE, Array

#: Rows and features of each table.
SHAPES = {
    "elevators": (16599, 18),
    "ailerons": (13750, 40),
    "cal_housing": (20640, 8),
    "pol": (15000, 26),
    "cpu_act": (8192, 21),
    "kin8nm": (8192, 8),
    "bank32nh": (8192, 32),
    "puma32h": (8192, 32),
    "delta_ailerons": (7129, 5),
    "delta_elevators": (9517, 6),
    "parkinsons": (5875, 21),
}

#: The tables of the evidence in the documentation.
EVIDENCE = ("elevators", "ailerons", "cal_housing", "pol", "cpu_act", "kin8nm")


@dataclass(frozen=True)
class Sample:
    """Standardised rows, and where they come from."""

    name: str
    X: Array
    origin: str


def load(name: str, directory: Path | None, max_rows: int) -> Sample:
    """Return a table by name: a file, or from OpenML, or generated of that shape."""
    if directory is None and VARIABLE in os.environ:
        directory = Path(os.environ[VARIABLE])
    if directory is not None and (directory / f"{name}.npz").is_file():
        X, origin = np.load(directory / f"{name}.npz")["X"], "file"
    else:
        X, origin = _public(name)
    X = standardised(X)
    if len(X) > max_rows:
        chosen = np.random.default_rng(0).choice(len(X), max_rows, replace=False)
        X, origin = X[np.sort(chosen)], f"{origin}, {max_rows:,} of {len(X):,} rows"
    return Sample(name, X, origin)


def _public(name: str) -> tuple[Array, str]:
    try:
        table = fetch_openml(name, version=1, as_frame=False, n_retries=0)
        return table.data, "OpenML"
    except (OSError, ValueError) as error:
        if name not in SHAPES:
            raise SystemExit(f"{name}: no file, and not to be had: {error}") from error
        return generated(*SHAPES[name]), "generated: no file, and no OpenML"


def standardised(X: Array) -> Array:
    """Return features of mean 0 and variance 1; constant ones are left out."""
    X = X.astype(np.float64)
    X = X[:, X.std(axis=0) > 0.0]
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)


def generated(n_rows: int, n_features: int) -> Array:
    """Return flat groups of different sizes, with a few rows far from all of them."""
    rng = np.random.default_rng(n_features)
    n_groups, n_latent = 20, min(6, n_features)
    means = 2.0 * rng.standard_normal((n_groups, n_features))
    axes = rng.standard_normal((n_groups, n_latent, n_features))
    groups = rng.choice(n_groups, n_rows, p=rng.dirichlet(np.ones(n_groups)))
    X = means[groups] + 0.1 * rng.standard_normal((n_rows, n_features))
    for group in range(n_groups):
        members = np.flatnonzero(groups == group)
        X[members] += rng.standard_normal((len(members), n_latent)) @ axes[group]
    return standardised(X * rng.exponential(size=(n_rows, 1)))
