"""Rows with known groups, and what each method makes of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_circles
from sklearn.metrics import normalized_mutual_info_score

from sketchmeans.cluster import KernelKMeans, NystromKMeans
from sketchmeans.numerics.linalg import Array

#: Rows up to which the exact method is run.
EXACT_ROWS = 5_000


@dataclass(frozen=True)
class Case:
    """Rows with known groups, and a kernel width that suits them."""

    name: str
    X: Array
    y: Array
    gamma: float
    n_landmarks: int
    n_init: int

    @property
    def are_images(self) -> bool:
        """Whether a row is an image of 8 × 8 pixels, and not a point of the plane."""
        return bool(self.X.shape[1] > 2)

    @property
    def title(self) -> str:
        """Name and size."""
        what = "images" if self.are_images else "points"
        return f"{self.name}: {len(self.X):,} {what}"


@dataclass(frozen=True)
class Fit:
    """A fitted model, with its time and its agreement with the known groups."""

    method: str
    model: Any
    seconds: float
    nmi: float


def rings() -> Case:
    """Return a ring within a ring."""
    X, y = make_circles(2_000, noise=0.05, factor=0.3, random_state=0)
    return Case("Two rings", X, y, gamma=5.0, n_landmarks=50, n_init=10)


def digits() -> Case:
    """Return scikit-learn's images of handwritten digits."""
    X, y = load_digits(return_X_y=True)
    return Case("Digits", X / 16.0, y, gamma=0.3, n_landmarks=300, n_init=20)


def arms(n_points: int = 200_000) -> Case:
    """Return three arms that wind half a turn around the origin."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n_points)
    radius = np.sqrt(rng.uniform(0.04, 1.0, size=n_points))
    angle = 2.0 * np.pi * (0.5 * radius + y / 3.0)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X += 0.03 * rng.standard_normal(X.shape)
    X = X.astype(np.float32)
    return Case("Three arms", X, y, gamma=10.0, n_landmarks=200, n_init=10)


def compared(case: Case) -> list[Fit]:
    """Fit every method that can run on the case; plain k-means first, ours last."""
    k = len(np.unique(case.y))
    kernel: dict[str, Any] = {"gamma": case.gamma, "n_init": case.n_init}
    models: list[Any] = [KMeans(k, n_init=case.n_init, random_state=0)]
    if len(case.X) <= EXACT_ROWS:
        models.append(KernelKMeans(k, **kernel, random_state=0))
    models.append(
        NystromKMeans(k, **kernel, n_landmarks=case.n_landmarks, random_state=0)
    )
    fits = []
    for model in models:
        start = time.perf_counter()
        model.fit(case.X)
        seconds = time.perf_counter() - start
        nmi = float(normalized_mutual_info_score(case.y, model.labels_))
        fits.append(Fit(type(model).__name__, model, seconds, nmi))
    return fits
