"""Examples with known groups, what each method makes of them, and a picture."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_circles
from sklearn.metrics import (
    adjusted_rand_score,
    confusion_matrix,
    normalized_mutual_info_score,
)

from sketchmeans.cluster import KernelKMeans, NystromKMeans
from sketchmeans.cluster.table import TableClusterer
from sketchmeans.datasets import make_customers, write_customers
from sketchmeans.diagnostics import Segments
from sketchmeans.diagnostics.segments import name_fitted
from sketchmeans.numerics.atomic_file import open_atomic
from sketchmeans.numerics.linalg import Array

COLOURS = ("#0072b2", "#e69f00", "#009e73")
INK, WRONG, GREY = "#1f2937", "#d55e00", "#6b7280"

#: Rows up to which the exact method is run.
EXACT_ROWS = 5_000
#: Columns whose medians are shown for each segment of customers.
NUMBERS = ("age", "orders", "revenue", "days_since_order")
#: Most points that are drawn.
_DRAWN_POINTS = 20_000


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


@dataclass(frozen=True)
class Customers:
    """The table of customers in a file, its segments, and what was found in it."""

    path: Path
    segments: Array
    model: TableClusterer
    found: Segments
    #: Of each cluster and column of `NUMBERS`.
    medians: Array
    adjusted_rand: float


def cluster_customers(path: Path) -> Customers:
    """Write the table of customers to a file, and find four segments in it."""
    segments = write_customers(path)
    model = TableClusterer(NystromKMeans(4, random_state=0)).fit(str(path))
    labels = model.labels_
    table, _ = make_customers()
    values = np.column_stack([np.asarray(table[name], float) for name in NUMBERS])
    medians = np.array([np.nanmedian(values[labels == j], axis=0) for j in range(4)])
    score = float(adjusted_rand_score(segments, labels))
    return Customers(path, segments, model, name_fitted(model, path), medians, score)


def make_rings() -> Case:
    """Return a ring within a ring."""
    X, y = make_circles(2_000, noise=0.05, factor=0.3, random_state=0)
    return Case("Two rings", X, y, gamma=5.0, n_landmarks=50, n_init=10)


def make_digits() -> Case:
    """Return scikit-learn's images of handwritten digits."""
    X, y = load_digits(return_X_y=True)
    return Case("Digits", X / 16.0, y, gamma=0.3, n_landmarks=300, n_init=20)


def make_arms(n_points: int = 200_000) -> Case:
    """Return three arms that wind half a turn around the origin."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n_points)
    radius = np.sqrt(rng.uniform(0.04, 1.0, size=n_points))
    angle = 2.0 * np.pi * (0.5 * radius + y / 3.0)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X += 0.03 * rng.standard_normal(X.shape)
    X = X.astype(np.float32)
    return Case("Three arms", X, y, gamma=10.0, n_landmarks=200, n_init=10)


def compare_methods(case: Case) -> list[Fit]:
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


def draw_results(results: list[tuple[Case, list[Fit]]], path: Path) -> None:
    """Draw plain k-means above NystromKMeans, one column for each case.

    Needs matplotlib.
    """
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(11.0, 8.1), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.15, h_pad=0.15)
    axes = figure.subplots(2, len(results))
    for column, (case, fits) in zip(axes.T, results, strict=True):
        for ax, fit in zip(column, (fits[0], fits[-1]), strict=True):
            panel = _draw_images if case.are_images else _draw_points
            ax.set_xlabel(panel(ax, case, fit), fontsize=10.5, color=GREY, labelpad=8)
            ax.set(xticks=[], yticks=[], aspect="equal")
            ax.spines[:].set_visible(False)
        column[0].set_title(case.title, fontsize=13, color=INK, pad=12)
    for ax, fit in zip(axes[:, 0], (results[0][1][0], results[0][1][-1]), strict=True):
        ax.set_ylabel(fit.method, fontsize=13, color=INK, labelpad=12)
    with open_atomic(path) as file:
        figure.savefig(file, format="png", dpi=125)


def _draw_points(ax: Any, case: Case, fit: Fit) -> str:
    """Draw points, some if they are many, in the colour of their cluster."""
    labels = _match_labels(case.y, fit.model.labels_)
    some = slice(None, None, -(-len(case.X) // _DRAWN_POINTS))
    size = 5 if len(case.X) <= _DRAWN_POINTS else 1.5
    colours = [COLOURS[j] for j in labels[some]]
    ax.scatter(*case.X[some].T, size, colours, linewidths=0)
    name = case.name.split()[-1]
    if fit.method == "KMeans":
        return f"NMI {fit.nmi:.2f}\ncuts the {name} to pieces"
    m = len(fit.model.landmarks_)
    size = 14 if m <= 50 else 7
    ax.scatter(*fit.model.landmarks_.T, size, "white", edgecolors=INK, linewidths=0.7)
    return f"NMI {fit.nmi:.2f}\nfinds the {name} from {m} landmarks (dots)"


def _draw_images(ax: Any, case: Case, fit: Fit) -> str:
    """Draw a column for each cluster: its centre or exemplar, then some members."""
    from matplotlib.colors import to_rgb

    k, n_members = 10, 9
    labels = _match_labels(case.y, fit.model.labels_)
    plain = fit.method == "KMeans"
    heads = fit.model.cluster_centers_ if plain else fit.model.exemplars_
    cluster_of = dict(zip(labels, fit.model.labels_, strict=True))
    canvas = np.ones((9 * (n_members + 1) + 3, 9 * k + 3, 3))
    for column in range(k):
        members = np.flatnonzero(labels == column)
        shown = members[np.linspace(0, len(members) - 1, n_members).astype(int)]
        tiles = [(heads[cluster_of[column]], COLOURS[0])]
        tiles += [(case.X[i], INK if case.y[i] == column else WRONG) for i in shown]
        for row, (grey, colour) in enumerate(tiles):
            top, left = 9 * row + 3 * (row > 0), 9 * column + 2
            ink = np.clip(grey, 0.0, 1.0).reshape(8, 8, 1)
            tile = 1.0 - ink * (1.0 - np.array(to_rgb(colour)))
            canvas[top : top + 8, left : left + 8] = tile
    ax.imshow(canvas, interpolation="nearest")
    first = "averages" if plain else "exemplars"
    return f"NMI {fit.nmi:.2f}\n{first} on top, misplaced images in orange"


def _match_labels(y: Array, labels: Array) -> Array:
    """Return labels renamed so that they agree with the known groups most often."""
    groups, clusters = linear_sum_assignment(-confusion_matrix(y, labels))
    return groups[np.argsort(clusters)][labels]
