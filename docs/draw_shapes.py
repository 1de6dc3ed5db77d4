"""Draw shapes and what methods make of them: ``python -m docs.draw_shapes``.

Writes docs/images/shapes.png, in the manner of scikit-learn's comparison of clustering
algorithms: one row for each problem, one column for each method, with the adjusted Rand
index and the seconds of the fastest of three fits.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.shape_makers import blobs, face, mixed, moons, rings, spirals, stripes
from sketchmeans import NystromKMeans, SpectralKMeans
from sketchmeans.report import LIGHT

#: Fits of which the fastest is timed.
_RUNS = 3

PATH = Path(__file__).parent / "images" / "shapes.png"

_METHODS = {
    "KMeans": lambda k: KMeans(k, n_init=10, random_state=0),
    "NystromKMeans": lambda k: NystromKMeans(k, random_state=0),
    "HDBSCAN": lambda k: HDBSCAN(min_cluster_size=50, copy=True),
    "SpectralKMeans": lambda k: SpectralKMeans(k, random_state=0),
}


def _problems() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(7)
    return [
        rings(rng, 2000),
        moons(rng, 2000, noise=0.07),
        spirals(rng, 2000, arms=3, turns=1.0, noise=0.02),
        face(rng, 2000),
        mixed(rng, 2000),
        blobs(rng, 2000, k=5, uneven=8.0, densities=3.0),
        stripes(rng, 2000, noise=0.3),
    ]


def draw() -> Figure:
    """Return the picture."""
    cases = _problems()
    figure = Figure((2.1 * len(_METHODS), 2.05 * len(cases)), layout="constrained")
    axes = figure.subplots(len(cases), len(_METHODS))
    for (X, y), line in zip(cases, axes, strict=True):
        k = len(np.unique(y))
        for (name, make), ax in zip(_METHODS.items(), line, strict=True):
            seconds = np.inf
            for _ in range(_RUNS):
                start = time.perf_counter()
                labels = make(k).fit_predict(X)
                seconds = min(seconds, time.perf_counter() - start)
            colors = [LIGHT.color(c) if c >= 0 else "#c8ccd2" for c in labels]
            ax.scatter(X[:, 0], X[:, 1], s=2, c=colors, linewidths=0)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_color(LIGHT.line)
            if ax in axes[0]:
                ax.set_title(name, fontsize=11, color=LIGHT.ink)
            score = adjusted_rand_score(y, labels)
            score = max(score, 0.0)  # no "-0.00"
            ax.set_xlabel(f"ARI {score:.2f}, {seconds:.2f} s", color=LIGHT.muted)
    return figure


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draw().savefig(PATH, dpi=90)
