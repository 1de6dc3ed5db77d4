"""Model files of each release, kept in ``tests/persistence/models/<version>/``.

``python -m tests.stored_models`` writes those of the version that is installed: run it
once when a release is made, and commit the folder.  Folders of older releases are never
written again: they show that today's code reads yesterday's files.

A folder has one small ``.skm`` file for each estimator, transformer, kernel, selector
and seeding, ``tables.npz`` with the rows, and ``expected.npz`` with what the models
answered when they were saved.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

import sketchmeans
from sketchmeans import (
    ApproximateSVD,
    FeatureSampling,
    KernelKMeans,
    LaplacianScore,
    Nystrom,
    NystromKMeans,
    SignProjection,
    SketchedKMeans,
    SpectralKMeans,
    TableClusterer,
)
from sketchmeans.diagnostics import calibrate, rename_segments
from sketchmeans.engine.init import SEEDINGS
from sketchmeans.kernels import KERNELS, Pairwise
from sketchmeans.landmarks import SELECTORS
from sketchmeans.numerics.tensor_file import read_tensors, write_tensors
from sketchmeans.persistence import KIND

FOLDER = Path(__file__).parent / "persistence" / "models"

#: Kernel values are given as such: products differ between processors.
GIVEN = "gram"


def read_model(path):
    """Return the version, the schema and the tensors of an intact file."""
    file = read_tensors(path, KIND, lambda version: None)
    return file.version, file.text, file.tensors


def write_model(path, schema, tensors, version="1.1"):
    """Write a file whose digest is right, whatever it holds."""
    write_tensors(path, KIND, version, schema, tensors)


def stored_tables():
    """Return the rows that go to the folder: three tight groups, and their products."""
    rng = np.random.default_rng(17)
    centres = np.array(
        [
            [0.1, 0.8, 0.2, 0.5, 0.3],
            [0.8, 0.2, 0.4, 0.1, 0.9],
            [0.5, 0.5, 0.9, 0.9, 0.1],
        ]
    )
    X = np.clip(centres[np.arange(42) % 3] + rng.normal(0.0, 0.05, (42, 5)), 0.0, 1.0)
    return {"X": X, GIVEN: X @ X.T}


def raw_table(stored):
    """Return columns of every kind: amounts with a gap, categories, dates, flags."""
    X = stored["X"]
    group = X[:, :3].argmax(axis=1)
    days = pd.to_timedelta((1000 * X[:, 2]).astype(int), unit="D")
    return pd.DataFrame(
        {
            "id": [f"c-{number:03d}" for number in range(len(X))],
            "amount": np.where(np.arange(len(X)) == 4, np.nan, np.exp(5 * X[:, 0])),
            "share": X[:, 1],
            "plan": np.array(["basic", "plus", "pro"])[group],
            "since": pd.Timestamp("2024-01-01") + days,
            "active": np.where(X[:, 4] > 0.5, "yes", "no"),
        }
    )


#: From what is stored to what a model is given.
TABLES = {
    "float64": lambda stored: stored["X"],
    "float32": lambda stored: stored["X"].astype(np.float32),
    "uint8": lambda stored: (stored["X"] * 255).astype(np.uint8),
    "csr": lambda stored: sparse.csr_array(
        np.where(stored["X"] > 0.3, stored["X"], 0.0)
    ),
    "named": lambda stored: pd.DataFrame(stored["X"], columns=list("abcde")),
    "raw": raw_table,
    GIVEN: lambda stored: stored[GIVEN],
}


#: Models that get quantiles of their table and names of segments, too.
CALIBRATED = ("sketched", "table-raw")


def cases():
    """Return models to fit, by name, with the name of the table."""
    small = {"n_landmarks": 9, "random_state": 0}
    found = {
        f"kernel-{name}": (
            NystromKMeans(3, kernel=name, **small),
            GIVEN if name == "precomputed" else "float64",
        )
        for name in KERNELS
    }
    found |= {
        "kernel-pairwise": (
            NystromKMeans(3, kernel=Pairwise("laplacian", {"gamma": 0.5}), **small),
            "float64",
        ),
        "kernel-by-params": (
            NystromKMeans(3, kernel="arc-cosine", kernel_params={"order": 2}, **small),
            "float32",
        ),
    }
    found |= {
        f"landmarks-{name}": (
            NystromKMeans(3, landmarks=type(make())(), **small),
            "float64",
        )
        for name, make in SELECTORS.items()
    }
    found |= {
        f"init-{name}": (
            NystromKMeans(3, init=name if name == "auto" else make(), **small),
            "float32",
        )
        for name, make in SEEDINGS.items()
    }
    found |= {
        "init-rows": (NystromKMeans(3, init=np.arange(3), **small), "uint8"),
        "landmarks-given": (
            NystromKMeans(3, landmarks=np.eye(5), random_state=0),
            "float64",
        ),
        "nystrom-auto": (NystromKMeans(3, random_state=0), "named"),
        "nystrom-rank": (NystromKMeans(3, rank=4, **small), "float64"),
        "nystrom-csr": (NystromKMeans(3, **small), "csr"),
        "nystrom-reducer": (NystromKMeans(3, reducer="sign", **small), "named"),
        "exact": (KernelKMeans(3, random_state=0), "float64"),
        "exact-csr": (KernelKMeans(3, random_state=0), "csr"),
        "exact-given": (KernelKMeans(3, kernel="precomputed", random_state=0), GIVEN),
        "sketched": (SketchedKMeans(3, random_state=0), "float32"),
        "sketched-svd": (
            SketchedKMeans(3, reducer=ApproximateSVD(2), random_state=0),
            "float64",
        ),
        "table-nystrom": (
            TableClusterer(NystromKMeans(3, **small), exclude=["b"], missing="mean"),
            "named",
        ),
        "table-sketched": (
            TableClusterer(SketchedKMeans(3, random_state=0), scale="robust"),
            "float64",
        ),
        "table-raw": (TableClusterer(NystromKMeans(3, **small)), "raw"),
        "table-kmeans": (
            TableClusterer(KMeans(3, n_init=5, random_state=0)),
            "named",
        ),
        "spectral": (SpectralKMeans(3, random_state=0), "float64"),
        "spectral-rbf": (SpectralKMeans(3, affinity="rbf", random_state=0), "float32"),
        "pipeline": (
            make_pipeline(StandardScaler(), NystromKMeans(3, **small)),
            "float64",
        ),
        "pipeline-scalers": (
            make_pipeline(
                SimpleImputer(),
                MinMaxScaler(),
                MaxAbsScaler(),
                RobustScaler(),
                Normalizer(),
                PCA(3, svd_solver="full"),
                NystromKMeans(3, **small),
            ),
            "float64",
        ),
        "pipeline-csr": (
            make_pipeline(
                TruncatedSVD(3, algorithm="arpack", random_state=0),
                NystromKMeans(3, **small),
            ),
            "csr",
        ),
        "map": (Nystrom(n_landmarks=9, random_state=0), "float64"),
        "map-rank": (
            Nystrom(n_landmarks=9, rank=3, rank_method="approximation", random_state=0),
            "float32",
        ),
        "sampling": (FeatureSampling(4, n_clusters=3, random_state=0), "float64"),
        "signs": (SignProjection(4, random_state=0), "float64"),
        "signs-mailman": (SignProjection(4, method="mailman", random_state=0), "csr"),
        "svd": (ApproximateSVD(2, random_state=0), "float64"),
        "laplacian-score": (LaplacianScore(3), "float64"),
    }
    return found


def answers(model, table):
    """Return what a model says of a table, by method; arrays only."""
    found = {}
    if hasattr(model, "predict"):
        found["predict"] = model.predict(table)
    # Distances need k(x, x), which is not given of new rows.
    if not hasattr(model, "predict") or getattr(model, "kernel", "") != "precomputed":
        features = model.transform(table)
        found["transform"] = np.asarray(
            features.toarray() if sparse.issparse(features) else features
        )
    return found


def write(folder):
    """Write the model files of this version."""
    folder.mkdir(parents=True)
    stored, expected = stored_tables(), {}
    np.savez_compressed(folder / "tables.npz", **stored)
    for name, (model, kind) in cases().items():
        table = TABLES[kind](stored)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(table)
            if name in CALIBRATED:
                calibrate(model, table)
                rename_segments(model, {0: "First segment"})
            sketchmeans.save(model, folder / f"{name}.skm")
        expected[f"{name}/table"] = np.array(kind)
        for method, values in answers(model, table).items():
            expected[f"{name}/{method}"] = values
            if method == "transform" and hasattr(model, "predict"):
                # Labels that are the same on every processor.
                nearest = np.sort(values, axis=1)
                assert (nearest[:, 1] - nearest[:, 0] > 1e-4).all(), name
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    target = FOLDER / sketchmeans.__version__
    if target.exists():
        sys.exit(f"{target} is there already; files of a release are written once.")
    write(target)
