"""Nyström approximations of one kernel matrix by many strategies (OG17)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.data import Array
from experiments import datasets
from experiments.store import Row
from sketchmeans import Nystrom, select_landmarks
from sketchmeans.kernels import paper_gamma, percentile_gammas
from sketchmeans.landmarks import LandmarkSelector

#: Rows of the kernel matrix on which the Frobenius norm of an error is measured.
STRIP_ROWS = 1_024
#: ... and the rows that are measured besides, as they are approximated worst.
HEAVY_ROWS = 128
#: Bandwidths of the grid.
N_BANDWIDTHS = 10


@dataclass(frozen=True)
class Strip:
    """Random rows of a kernel matrix, by which approximations are measured.

    The squared Frobenius norm of an error E is the sum over rows of their squared
    norms.  The rows with the largest ``E_ii``, which bounds the other entries, are all
    taken; the rest is estimated from random rows, the same for all strategies.
    """

    X: Array
    gamma: float
    rows: Array
    K: Array

    def error(self, F: Array) -> tuple[float, float]:
        """Return ``‖K − F Fᵀ‖ / ‖K‖`` and the standard error that the sample leaves.

        The norm of K is that of the sample, which cancels in a lift.
        """
        F, n = F.astype(np.float32), len(F)
        n_heavy = min(HEAVY_ROWS, n - len(self.rows))
        left = 1.0 - np.einsum("ij,ij->i", F, F)
        heavy = np.argpartition(left, n - n_heavy - 1)[n - n_heavy :]
        certain = _row_squares(self.kernel_rows(heavy), F, heavy).sum()
        light = ~np.isin(self.rows, heavy)
        squares = _row_squares(self.K, F, self.rows)[light]
        n_light = n - n_heavy
        total = certain + n_light * squares.mean()
        unseen = max(1.0 - len(squares) / n_light, 0.0)
        spread = n_light * squares.std() * np.sqrt(unseen / len(squares))
        relative = float(np.sqrt(total / (n * self._scale)))
        # The root halves the relative error.
        return relative, float(0.5 * relative * spread / total)

    def kernel_rows(self, rows: Array) -> Array:
        """Return rows of the kernel matrix."""
        if not len(rows):
            return np.empty((0, len(self.X)), np.float32)
        K = rbf_kernel(self.X[rows], self.X, gamma=self.gamma)
        return np.asarray(K, dtype=np.float32)

    @property
    def _scale(self) -> float:
        return float(np.einsum("ij,ij->i", self.K, self.K).mean(dtype=np.float64))


def _row_squares(K: Array, F: Array, rows: Array) -> Array:
    """Return the squared norms of rows of ``K − F Fᵀ``; `K` holds these rows."""
    E = F[rows] @ F.T
    np.subtract(K, E, out=E)
    return np.asarray(np.einsum("ij,ij->i", E, E), dtype=np.float64)


def table_of(name: str, data: Path | None) -> Array:
    """Return a dataset in float64: small eigenvalues drown in float32."""
    return datasets.load(name, data).X.astype(np.float64)


@lru_cache(maxsize=64)
def bandwidths(name: str, data: Path | None) -> tuple[float, ...]:
    """Return OG17's bandwidths as scikit-learn's gamma, ascending."""
    grid = percentile_gammas(table_of(name, data), N_BANDWIDTHS, random_state=0)
    return tuple(float(gamma) for gamma in grid)


@lru_cache(maxsize=64)
def median_bandwidth(name: str, data: Path | None) -> float:
    """Return one over twice the median squared distance."""
    return paper_gamma(table_of(name, data), "og17", random_state=0)


# The kernel values serve all strategies and repeats of neighbouring cells.
@lru_cache(maxsize=1)
def strip_of(name: str, data: Path | None, gamma: float) -> Strip:
    """Return random rows of the kernel matrix of a dataset."""
    X = table_of(name, data)
    rng = np.random.default_rng(1)
    rows = np.sort(rng.choice(len(X), min(STRIP_ROWS, len(X)), replace=False))
    strip = Strip(X, gamma, rows, np.empty(0))
    return replace(strip, K=strip.kernel_rows(rows))


def approximations(
    name: str,
    data: Path | None,
    gamma: float,
    strategies: Mapping[str, LandmarkSelector],
    n_landmarks: int,
    rank: int,
    seed: int,
) -> list[Row]:
    """Return time and error of each strategy, one row each."""
    X, strip = table_of(name, data), strip_of(name, data, gamma)
    rows = []
    for method, selector in strategies.items():
        with warnings.catch_warnings():
            # Rows that repeat leave fewer landmarks than asked for: counted below.
            warnings.filterwarnings("ignore", "Only .* landmarks were chosen")
            start = time.process_time()
            chosen = select_landmarks(
                X, n_landmarks, selector, gamma=gamma, random_state=seed
            )
            seconds = time.process_time() - start
        features = Nystrom(
            gamma=gamma,
            landmarks=chosen.points if chosen.indices is None else chosen.indices,
            rank=rank,
            rank_method="approximation",
        ).fit_transform(X)
        error, spread = strip.error(features)
        rows.append(
            {
                "method": method,
                "gamma": gamma,
                "n": len(X),
                "landmarks": len(chosen),
                "rank": rank,
                "seconds": seconds,
                "error": error,
                "error_se": spread,
            }
        )
    return rows


def lifts(table: pd.DataFrame, by: Iterable[str]) -> pd.DataFrame:
    """Return the lift of each method in each group of settings, and its mean seconds.

    Lift is the mean error of uniform landmarks over the mean error of the method.
    """
    groups = list(by)
    means = table.groupby([*groups, "method"])[["error", "seconds"]].mean()
    means = means.reset_index()
    baseline = means[means.method == "uniform"].set_index(groups)["error"]
    means["lift"] = means.set_index(groups).index.map(baseline) / means["error"]
    return means


def with_lifts(table: pd.DataFrame, within: Iterable[str]) -> pd.DataFrame:
    """Return the rows with their lift over uniform landmarks of the same draw."""
    keys = ["dataset", "repeat", *within]
    base = table[table.method == "uniform"].set_index(keys)["error"]
    uniform = base.reindex(pd.MultiIndex.from_frame(table[keys])).to_numpy()
    return table.assign(lift=uniform / table["error"])


def whole_draws(table: pd.DataFrame, settings: Iterable[str]) -> pd.DataFrame:
    """Return the repeats that have all settings: a run may stop within one."""
    keys = list(settings)
    counts = table.drop_duplicates([*keys, "repeat"]).groupby("repeat").size()
    return table[table.repeat.map(counts) == counts.max()]


def geometric_mean(values: pd.Series) -> float:
    """Return the mean of ratios: that of their logarithms."""
    return float(np.exp(np.log(values).mean()))


def dataset_lifts(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return one lift a dataset (rows) and method (columns): the mean over `by`."""
    found = lifts(table, ["dataset", by])
    return found.pivot_table(
        index="dataset", columns="method", values="lift", aggfunc=geometric_mean
    )


def log_lifts(table: pd.DataFrame, within: Iterable[str]) -> pd.DataFrame:
    """Return the mean log lift of each draw, dataset and method.

    Within a draw the error of uniform landmarks in the same setting is divided by that
    of the method.
    """
    found = with_lifts(whole_draws(table, ["dataset", *within]), within)
    found["log_lift"] = np.log(found.lift)
    groups = ["repeat", "dataset", "method"]
    return found.groupby(groups)[["log_lift"]].mean().reset_index()


@dataclass(frozen=True)
class Wins:
    """On which share of datasets one method is ahead of its rivals.

    `names` are the pairs of dataset and method of the columns of draws; who is behind
    by less than `tie` is not behind.
    """

    names: Sequence[tuple[str, str]]
    method: str
    rivals: tuple[str, ...]
    tie: float = 0.0

    def margins(self, rows: Array) -> Array:
        """Return by how much the method is ahead, for each dataset."""
        means = rows.mean(axis=0)
        place = {pair: i for i, pair in enumerate(self.names)}
        tables = dict.fromkeys(name for name, _ in self.names)
        return np.array(
            [
                means[place[name, self.method]]
                - max(means[place[name, rival]] for rival in self.rivals)
                for name in tables
            ]
        )

    def share(self, rows: Array) -> float:
        """Return the share of datasets on which it is ahead."""
        return float((self.margins(rows) > -self.tie).mean())

    def majority_margin(self, rows: Array) -> float:
        """Return what is positive where it is ahead on more than half of them."""
        return majority_margin(self.margins(rows)) + self.tie

    def least_margin(self, rows: Array) -> float:
        """Return what is positive where it is ahead on all of them."""
        return float(self.margins(rows).min()) + self.tie


def majority_margin(values: Array) -> float:
    """Return the value that is positive where more than half of the values are.

    >>> majority_margin(np.array([3.0, -1.0, 2.0, -5.0])), majority_margin(np.ones(3))
    (-1.0, 1.0)
    """
    return float(np.sort(values)[::-1][len(values) // 2])
