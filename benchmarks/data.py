"""The tables that are clustered: real ones where there are files, else generated."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: The directory of the data files, unless the command line names one.
VARIABLE = "SKETCHMEANS_DATA"


@dataclass(frozen=True)
class Table:
    """float32 rows, and the bandwidth that all methods use on them."""

    X: Array
    gamma: float
    origin: str

    def head(self, n_rows: int | None) -> Table:
        """Return the first rows; the bandwidth stays."""
        return Table(self.X[:n_rows], self.gamma, self.origin)


def mnist(directory: Path | None) -> Table:
    """Return the 60,000 training digits as rows of 784 grey values in 0..1."""
    file = _file(directory, "mnist.npz")
    if file is None:
        rng = np.random.default_rng(784)
        ink = _mixture(60_000, 784, n_groups=10, n_latent=25, rng=rng)
        # Most pixels of a digit are blank.
        ink -= np.float32(1.0)
        return _table(np.clip(ink, 0.0, 1.0, out=ink), "generated")
    X = np.load(file)["X"][:60_000].astype(np.float32)
    X /= np.float32(255)
    return _table(X, "real")


def covtype(directory: Path | None) -> Table:
    """Return the 581,012 forest cells, 54 features of mean 0 and variance 1."""
    file = _file(directory, "covtype.npz")
    if file is None:
        rng = np.random.default_rng(54)
        X = _mixture(581_012, 54, n_groups=40, n_latent=8, rng=rng)
    else:
        X = np.load(file)["X"].astype(np.float32)
    spread = X.std(axis=0, dtype=np.float64)
    X -= X.mean(axis=0, dtype=np.float64).astype(np.float32)
    X /= np.where(spread > 0.0, spread, 1.0).astype(np.float32)
    return _table(X, "generated" if file is None else "real")


def standardised(name: str, directory: Path | None) -> Array:
    """Return a table of any name, features of mean 0 and variance 1; digits in 0..1."""
    if name == "mnist":
        return mnist(directory).X
    if name == "covtype":
        return covtype(directory).X
    file = _file(directory, f"{name}.npz")
    if file is None:
        X = _mixture(10_000, 20, n_groups=20, n_latent=6, rng=np.random.default_rng(0))
    else:
        X = np.load(file)["X"].astype(np.float32)
    spread = X.std(axis=0, dtype=np.float64)
    X -= X.mean(axis=0, dtype=np.float64).astype(np.float32)
    X /= np.where(spread > 0.0, spread, 1.0).astype(np.float32)
    return X


#: Rows, features and clusters of the tables of B14.
B14 = {
    "pie": (2_856, 1_024, 68),
    "coil20": (1_440, 1_024, 20),
    "orl64": (400, 4_096, 40),
    "usps": (9_298, 256, 10),
}


def b14(name: str, directory: Path | None) -> Table:
    """Return one of the tables of images of B14."""
    n, d, k = B14[name]
    file = _file(directory, f"{name}.npz")
    if file is not None:
        return _table(np.load(file)["X"].astype(np.float32), "real")
    X = _mixture(n, d, n_groups=k, n_latent=8, rng=np.random.default_rng(d))
    return _table(X, "generated")


def wide_blobs(n_rows: int, n_features: int = 2_000, n_groups: int = 50) -> Table:
    """Return round clusters in a tenth of the features; the rest is noise."""
    rng = np.random.default_rng(n_features)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    telling = n_features // 10
    means = rng.normal(scale=1.0, size=(n_groups, telling)).astype(np.float32)
    X[:, :telling] += means[rng.integers(n_groups, size=n_rows)]
    return _table(X, "generated")


def blobs(n_rows: int) -> Table:
    """Return round clusters in 20 dimensions; fewer rows are the first of more."""
    rng = np.random.default_rng(20)
    centers = rng.uniform(-4.0, 4.0, size=(10, 20))
    X = np.empty((n_rows, 20), dtype=np.float32)
    for start in range(0, n_rows, 10_000):
        size = min(10_000, n_rows - start)
        groups = rng.integers(10, size=10_000)
        rows = centers[groups] + 2.0 * rng.standard_normal((10_000, 20))
        X[start : start + size] = rows[:size]
    return _table(X, "generated")


def _file(directory: Path | None, name: str) -> Path | None:
    if directory is None and VARIABLE in os.environ:
        directory = Path(os.environ[VARIABLE])
    if directory is None:
        return None
    return directory / name if (directory / name).is_file() else None


def _mixture(
    n_rows: int, n_features: int, n_groups: int, n_latent: int, rng: np.random.Generator
) -> Array:
    """Return groups that are flat ellipsoids of different size, with some noise."""
    means = rng.standard_normal((n_groups, n_features))
    axes = rng.standard_normal((n_groups, n_latent, n_features)) / np.sqrt(n_latent)
    groups = rng.choice(n_groups, n_rows, p=rng.dirichlet(np.full(n_groups, 5.0)))
    X = 0.2 * rng.standard_normal((n_rows, n_features), dtype=np.float32)
    for group in range(n_groups):
        members = np.flatnonzero(groups == group)
        latent = rng.standard_normal((len(members), n_latent))
        X[members] += (means[group] + latent @ axes[group]).astype(np.float32)
    return X


def _table(X: Array, origin: str) -> Table:
    # The mean squared distance over all pairs is twice the total variance.
    variance = float(X.var(axis=0, dtype=np.float64).sum())
    return Table(X, 1.0 / (2.0 * 2.0 * variance), origin)
