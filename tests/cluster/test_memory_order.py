"""Results do not depend on how a table lies in memory, under any BLAS kernel."""

import numpy as np

from sketchmeans import (
    KernelKMeans,
    Nystrom,
    NystromKMeans,
    SketchedKMeans,
    TableClusterer,
)
from sketchmeans.diagnostics import certificate
from sketchmeans.reduction import REDUCERS
from tests.pairs import every_value

# Odd sizes, so that the edges of the tiles of matrix products are met as well.
N, D = 1_031, 37

LAYOUTS = {
    "columns": np.asfortranarray,
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "a part of the columns": lambda X: np.pad(X, ((0, 0), (3, 4)))[:, 3:-4],
}


def table(dtype=np.float64):
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.normal(size=(5, D))
    X = centers[rng.integers(5, size=N)] + rng.normal(size=(N, D))
    return X.astype(dtype)


def _fitted(model, X):
    """Return the numbers of a fit."""
    fitted = model.fit(X)
    names = ("labels_", "cost_", "cost_path_", "dual_coef_", "landmarks_")
    found = [getattr(fitted, name) for name in names if hasattr(fitted, name)]
    return [*found, fitted.transform(X), fitted.predict(X)]


MODELS = {
    "nystrom": lambda X: _fitted(NystromKMeans(5, n_landmarks=80, random_state=0), X),
    "linear": lambda X: _fitted(
        NystromKMeans(5, kernel="linear", n_landmarks=30, random_state=0), X
    ),
    "polynomial": lambda X: _fitted(
        NystromKMeans(5, kernel="polynomial", n_landmarks=30, random_state=0), X
    ),
    "leverage": lambda X: _fitted(
        NystromKMeans(5, landmarks="leverage", n_landmarks=40, random_state=0), X
    ),
    "given landmarks": lambda X: _fitted(
        NystromKMeans(5, landmarks=X[:90], init=X[:5], random_state=0), X
    ),
    "exact": lambda X: _fitted(KernelKMeans(5, random_state=0), X[:400]),
    "sketched": lambda X: _fitted(SketchedKMeans(5, random_state=0), X),
    "features": lambda X: [Nystrom(n_landmarks=50, random_state=0).fit_transform(X)],
    "certificate": lambda X: [
        certificate(
            NystromKMeans(5, n_landmarks=60, random_state=0).fit(X),
            X,
            method="nystrom",  # the others go on as long as they have time
            random_state=0,
        ).ratio
    ],
    **{
        name: lambda X, reducer=reducer: [
            reducer(6, n_clusters=3, random_state=0).fit_transform(X[:300])
        ]
        for name, reducer in REDUCERS.items()
    },
    "prepared": lambda X: _fitted(
        TableClusterer(NystromKMeans(5, n_landmarks=40, random_state=0)), X
    )[:1],
}


@every_value(run=MODELS, layout=LAYOUTS, dtype=[np.float32, np.float64])
def test_same_bits_for_every_layout(run, layout, dtype):
    X = table(dtype)
    changed = LAYOUTS[layout](X)
    assert not changed.flags.c_contiguous
    for one, other in zip(MODELS[run](X), MODELS[run](changed), strict=True):
        np.testing.assert_array_equal(one, other)
