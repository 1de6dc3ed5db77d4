"""ONNX graphs label rows as the models do that they are made from."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from sketchmeans import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
    TableClusterer,
)

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from sketchmeans.onnx import compare_onnx, onnx_inputs, to_onnx  # noqa: E402

N = 600


def rows(dtype="float64", offset=0.0):
    rng = np.random.default_rng(0)
    centers = 2.0 * rng.normal(size=(4, 5))
    X = rng.normal(size=(N, 5)) + centers[rng.integers(4, size=N)]
    return (X + offset).astype(dtype)


def run(model, feeds):
    content = to_onnx(model).SerializeToString()
    session = onnxruntime.InferenceSession(content)
    return session.run(["label"], feeds)[0]


def assert_same(model, X):
    found = compare_onnx(model, X)
    assert found.is_equal, found
    assert len(found.rows) <= 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "kernel", ["rbf", "linear", "polynomial", "laplacian", "cosine"]
)
def test_labels_of_every_kernel(kernel, dtype):
    X = rows(dtype)
    model = NystromKMeans(4, kernel=kernel, n_landmarks=50, random_state=0).fit(X)
    assert_same(model, X)
    again = to_onnx(model).SerializeToString()
    assert again == to_onnx(model).SerializeToString()


@pytest.mark.parametrize(
    "model",
    [
        KernelKMeans(4, random_state=0),
        SketchedKMeans(4, random_state=0),
        NystromKMeans(4, reducer="sign", n_landmarks=40, random_state=0),
        NystromKMeans(4, kernel="linear", random_state=0),
    ],
)
def test_other_estimators_and_rows_far_from_zero(model):
    X = rows(offset=1e3)
    assert_same(model.fit(X), X)


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler(), "passthrough"],
        [MinMaxScaler(clip=True), MaxAbsScaler()],
        [RobustScaler(), PCA(3, whiten=True)],
        [SimpleImputer(), TruncatedSVD(3, random_state=0)],
        *([Normalizer(norm)] for norm in ("l1", "l2", "max")),
    ],
)
def test_pipelines(steps):
    X = rows()
    if isinstance(steps[0], SimpleImputer):
        X[::9, 2] = np.nan
    model = make_pipeline(*steps, NystromKMeans(4, n_landmarks=40, random_state=0))
    assert_same(model.fit(X), X)


# --- tables ---------------------------------------------------------------------------


def make_customers():
    rng = np.random.default_rng(1)
    group = rng.integers(3, size=N)
    frame = pd.DataFrame(
        {
            "revenue": np.exp(rng.normal(size=N) + 2.0 * group),
            "age": 30.0 + 10.0 * group + rng.normal(size=N),
            "plan": np.array(["Free", "Pro", "Team"])[group],
            "mood": np.array(["low", "medium", "high"])[
                (group + (rng.random(N) < 0.3)) % 3
            ],
            "active": np.where(rng.random(N) < 0.3 * group, "yes", "no"),
            "flag": (rng.random(N) < 0.4).astype(float),
        }
    )
    frame.loc[::11, "age"] = np.nan
    frame.loc[::13, "plan"] = None
    frame.loc[::12, "mood"] = None
    frame.loc[::17, "active"] = None
    frame.loc[::19, "flag"] = np.nan
    return frame


def table_model(**params):
    return TableClusterer(NystromKMeans(3, n_landmarks=60, random_state=0), **params)


@pytest.mark.parametrize("missing", ["fill", "drop"])
def test_tables_with_words_and_gaps(missing):
    frame = make_customers()
    model = table_model(missing=missing).fit(frame)
    assert model.kinds_ == {
        "revenue": "numeric",
        "age": "numeric",
        "plan": "category",
        "mood": "ordinal",
        "active": "boolean",
        "flag": "boolean",
    }
    assert any(c.encoder.unit for c in model.plan_ if c.name == "revenue")
    assert_same(model, frame)


def test_words_as_they_are_written():
    frame = make_customers()
    model = table_model().fit(frame)
    few = frame[:6].assign(
        plan=["Free", "NA", "None", "new", "Team", "Pro"],
        active=["YES", "No", "", "true", "yes", "no"],
        mood=["Low", "HIGH", "?", "new", "medium", "high"],
    )
    with pytest.warns(UserWarning, match="no level of the fit"):
        expected = model.predict(few)
    feeds = onnx_inputs(model, few)
    for name in ("plan", "active", "mood"):
        feeds[name] = few[[name]].to_numpy(object)
    assert_array_equal(run(model, feeds), expected)
    feeds["plan"] = few[["plan"]].map(str.upper).to_numpy(object)
    assert_array_equal(run(model, feeds), expected)


def test_tables_without_names_and_rows_that_are_not_finite():
    X = rows()
    model = table_model(columns=[3, 1]).fit(X)
    assert_same(model, X)
    plain = NystromKMeans(3, random_state=0).fit(X)
    X[1, 2], X[5, 0] = np.nan, np.inf
    assert_array_equal(np.flatnonzero(run(plain, {"X": X}) < 0), [1, 5])


def test_differences_are_listed():
    X = rows()
    model = NystromKMeans(4, n_landmarks=40, random_state=0).fit(X)
    other = NystromKMeans(4, n_landmarks=40, random_state=1).fit(X[::-1])
    found = compare_onnx(model, X, to_onnx(other))
    assert not found.is_equal
    assert len(found.rows) == len(found.gaps) > found.n_border
    assert found.size == len(to_onnx(other).SerializeToString())


# --- what cannot be expressed ---------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (SpectralKMeans(3, random_state=0), "model=SpectralKMeans cannot be expressed"),
        (NystromKMeans(3, kernel="arc-cosine"), r"ArcCosine\(\) cannot be expressed"),
        (TableClusterer(KMeans(3)), "model=KMeans cannot be expressed in ONNX"),
        (
            make_pipeline(PowerTransformer(), NystromKMeans(3)),
            "step 'powertransformer' is a PowerTransformer, which cannot be expressed",
        ),
        (
            make_pipeline(SimpleImputer(missing_values=0), NystromKMeans(3)),
            "SimpleImputer should have missing_values=nan",
        ),
        (
            make_pipeline(StandardScaler(), TableClusterer(NystromKMeans(3))),
            "is a TableClusterer behind other steps",
        ),
    ],
)
def test_what_cannot_be_expressed_is_named(model, text):
    with pytest.raises(ValueError, match=text):
        to_onnx(model.fit(rows()))


def test_dates_have_age_and_cycles():
    rng = np.random.default_rng(0)
    hours = 24 * rng.integers(0, 1200, 2000) + rng.integers(8, 18, 2000)
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(hours, unit="h")
    # Working days of the first half of the year: every cycle matters.
    days = days[(days.day_of_week < 5) & (days.month <= 6)]
    frame = pd.DataFrame({"since": days, "size": rng.normal(size=len(days))})
    frame.loc[::50, "since"] = None
    model = table_model().fit(frame)
    assert model.plan_[0].encoder.cycles == ("hour", "weekday", "month")
    found = compare_onnx(model, frame)
    assert len(found.rows) == 0
    assert len(set(model.labels_)) == 3


def test_times_of_a_night_are_hours():
    rng = np.random.default_rng(0)
    hours = (24.0 + rng.normal(0.0, 1.5, 600) + 3.0 * rng.integers(2, size=600)) % 24.0
    written = [f"{int(h):02d}:{int(h * 60) % 60:02d}" for h in hours]
    frame = pd.DataFrame({"start": written, "size": rng.normal(size=600)})
    model = table_model().fit(frame)
    assert model.plan_[0].encoder.day_start > 0.0
    assert len(compare_onnx(model, frame).rows) == 0


def test_given_kernels_are_refused():
    X = rows()
    model = KernelKMeans(3, kernel="precomputed", random_state=0).fit(X @ X.T)
    with pytest.raises(ValueError, match="kernel='precomputed' cannot be expressed"):
        to_onnx(model)
