"""Pipelines of scikit-learn in model files, and in what takes a model and a table."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from sketchmeans import (
    ApproximateSVD,
    ModelFileError,
    Nystrom,
    NystromKMeans,
    TableClusterer,
    load,
    save,
)
from sketchmeans.diagnostics import certificate, cluster_summary, row_map
from sketchmeans.report import write_report
from tests.stored_models import read_model, write_model

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(name="X")
def make_rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 4)) + 6.0 * rng.integers(3, size=200)[:, None]
    return rows * [1.0, 10.0, 100.0, 0.1] + 5.0


def clusterer():
    return NystromKMeans(3, n_landmarks=40, random_state=0)


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [StandardScaler(with_mean=False, with_std=False), "passthrough"],
        [MinMaxScaler(feature_range=(-1, 1), clip=True), MaxAbsScaler()],
        [RobustScaler(quantile_range=(10.0, 90.0), with_centering=False)],
        [SimpleImputer(strategy="median"), Normalizer("l1")],
        [PCA(2, whiten=True, random_state=0)],
        [StandardScaler(), TruncatedSVD(2, random_state=0)],
        [ApproximateSVD(2, random_state=0), Nystrom(n_landmarks=20, random_state=0)],
    ],
)
def test_pipelines_come_back_with_the_same_bits(steps, X, tmp_path):
    table = X.copy()
    if isinstance(steps[0], SimpleImputer):
        table[::7, 1] = np.nan
    model = make_pipeline(*steps, clusterer()).fit(table)
    save(model, tmp_path / "m.skm")
    again = load(tmp_path / "m.skm")
    assert type(again) is Pipeline
    assert [name for name, _ in again.steps] == [name for name, _ in model.steps]
    assert_array_equal(again.predict(table), model.predict(table))
    assert_array_equal(again.transform(table), model.transform(table))


def test_names_of_columns_are_kept(X, tmp_path):
    frame = pd.DataFrame(X, columns=NAMES)
    model = make_pipeline(StandardScaler(), clusterer()).set_output(transform="pandas")
    save(model.fit(frame), tmp_path / "m.skm")
    again = load(tmp_path / "m.skm").set_output(transform="pandas")
    assert_array_equal(again.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"a": "other"}))


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (
            [FunctionTransformer()],
            "step 'functiontransformer' is a FunctionTransformer",
        ),
        ([OneHotEncoder()], "know as a step before the last: ApproximateSVD, .* PCA"),
        (
            [SimpleImputer(missing_values=0)],
            "missing_values=0 should be nan in a model",
        ),
        ([SimpleImputer(add_indicator=True)], "add_indicator=True should be False"),
        ([make_pipeline(StandardScaler())], "step 'pipeline' is a Pipeline"),
    ],
)
def test_other_steps_are_refused_by_name(steps, text, X, tmp_path):
    model = make_pipeline(*steps, clusterer()).fit(np.round(X, -1))
    with pytest.raises(ModelFileError, match=text):
        save(model, tmp_path / "m.skm")
    assert not list(tmp_path.iterdir())


def test_a_pipeline_ends_in_a_clusterer_of_ours(X, tmp_path):
    with pytest.raises(ModelFileError, match="as the last step: KernelKMeans, Nyst"):
        save(make_pipeline(StandardScaler(), PCA(2)).fit(X), tmp_path / "m.skm")
    model = make_pipeline(StandardScaler(), clusterer()).fit(X)
    model.memory = str(tmp_path)
    with pytest.raises(ModelFileError, match=r"memory=.* should be None in a model"):
        save(model, tmp_path / "m.skm")


def _edit(path, change):
    _, text, tensors = read_model(path)
    schema = json.loads(text)
    change(schema["model"]["params"]["steps"])
    write_model(path, json.dumps(schema), tensors, "1.2")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda steps: steps.pop(0), "are not used"),
        (lambda steps: steps.reverse(), "is a NystromKMeans, and model files know"),
        (lambda steps: steps.insert(0, 7), r"steps\[0\] should be a name and a step"),
        (lambda steps: steps[0].update(tuple=["a"]), "should be a name and a step"),
        (lambda steps: steps.clear(), "should be a list of steps|are not used"),
    ],
)
def test_damaged_pipelines_are_refused(change, text, X, tmp_path):
    path = tmp_path / "m.skm"
    save(make_pipeline(PCA(2), clusterer()).fit(X), path)
    _edit(path, change)
    with pytest.raises(ModelFileError, match=text):
        load(path)


def test_steps_that_do_not_fit_one_another_are_refused(X, tmp_path):
    path = tmp_path / "m.skm"
    model = make_pipeline(PCA(2), clusterer()).fit(X)
    model.steps[0] = ("pca", PCA(3).fit(X))
    with pytest.raises(ModelFileError, match="n_features_in_=2, and the one before it"):
        save(model, path)


# --- what takes a model and a table ---------------------------------------------------


def test_diagnostics_look_into_pipelines(X, tmp_path):
    frame = pd.DataFrame(X, columns=NAMES)
    model = make_pipeline(StandardScaler(), clusterer()).fit(frame)
    rows = StandardScaler().fit_transform(X)
    inner = model[-1]
    assert_array_equal(
        cluster_summary(model, frame).sizes, cluster_summary(inner, rows).sizes
    )
    assert_allclose(row_map(model, frame).points, row_map(inner, rows).points, 1e-6)
    bound = certificate(model, frame, "nystrom")
    assert bound.cost == pytest.approx(certificate(inner, rows, "nystrom").cost)
    report = write_report(model, frame, tmp_path / "r.html", certificate=None)
    assert report.summary.n_rows == 200
    page = (tmp_path / "r.html").read_text()
    assert all(f">{name}<" in page for name in "ad")
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert_array_equal(
        cluster_summary(model, tmp_path / "t.csv").sizes, inner.cluster_sizes_
    )


def test_diagnostics_look_into_tables(X, tmp_path):
    frame = pd.DataFrame(X, columns=NAMES)
    frame.loc[3:5, "a"] = np.nan
    model = TableClusterer(clusterer(), missing="drop").fit(frame)
    found = cluster_summary(model, frame, y=np.arange(200) % 2)
    same = cluster_summary(model.estimator_, model.prepare(frame))
    assert_array_equal(found.exemplar_indices, same.exemplar_indices)
    assert found.agreement is not None
    weights = np.ones(200)
    weights[:50] = 2.0
    assert certificate(model, frame, "nystrom", sample_weight=weights).cost > 0.0
    report = write_report(model, frame, tmp_path / "r.html", certificate=None)
    assert report.summary.n_rows == 197
