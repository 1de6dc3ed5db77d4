"""Fits on Spark DataFrames: the cost of local ones, on executors that keep the rows."""

from __future__ import annotations

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sketchmeans import NystromKMeans, SketchedKMeans, TableClusterer

pytest.importorskip("pyspark", reason="pyspark is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java", allow_module_level=True)

from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

from sketchmeans.spark import SparkTable, transform_spark

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,  # a session takes seconds to start, and a pass a tenth
    # Of Spark about pandas 3.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]

_NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def spark():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.execution.arrow.pyspark.enabled", "true")
            .config("spark.log.level", "OFF")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.default.parallelism", "2")
            .getOrCreate()
        )
        yield session
        session.stop()


@pytest.fixture(scope="module")
def people():
    """Four groups of rows, with weights."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(4, 3)) * 4
    X = centers[rng.integers(4, size=3000)] + rng.normal(size=(3000, 3))
    frame = pd.DataFrame(X.astype(np.float32), columns=_NAMES)
    return frame.assign(id=range(3000), weight=rng.integers(1, 5, size=3000) * 1.0)


@pytest.fixture(scope="module")
def frame(spark, people):
    """The same on Spark: two partitions, and one without rows."""
    whole = spark.createDataFrame(people).coalesce(1)
    return whole.repartitionByRange(2, "id").union(whole.where("id < 0"))


def _nystrom(**params):
    return NystromKMeans(
        4, n_landmarks=40, gamma=0.1, n_init=1, random_state=0, **params
    )


def _in_order(model):
    """Return the labels of a fit, by partition."""
    found = sorted(tuple(row) for row in model.labels_.collect())
    return np.array([label for _, _, label in found])


@pytest.mark.parametrize(
    "model",
    [_nystrom(), SketchedKMeans(4, n_init=1, random_state=0, reducer="svd")],
    ids=["nystrom", "sketched"],
)
def test_fits_cost_what_local_ones_do(frame, people, model):
    model.fit(frame.select(*_NAMES))
    local = clone(model).fit(people[_NAMES])
    assert model.cost_ == pytest.approx(local.cost_, rel=1e-6)
    np.testing.assert_array_equal(_in_order(model), local.labels_)
    assert list(model.feature_names_in_) == _NAMES
    # The clusters of all rows, beside their other columns.
    found = transform_spark(model, frame).select("id", "prediction").collect()
    labels = np.array([label for _, label in sorted(tuple(row) for row in found)])
    np.testing.assert_array_equal(labels, local.predict(people[_NAMES]))


def test_vectors_and_weights(spark, people):
    rows = [
        (Vectors.dense(row), float(weight))
        for row, weight in zip(people[_NAMES].to_numpy(), people["weight"], strict=True)
    ]
    frame = spark.createDataFrame(rows, ["x", "w"])
    model = _nystrom().fit(SparkTable(frame, "x", "w"))
    X = people[_NAMES].to_numpy().astype(np.float64)
    local = _nystrom().fit(X, sample_weight=people["weight"])
    assert model.cost_ == pytest.approx(local.cost_, rel=1e-6)
    assert model.inertia_ == pytest.approx(local.inertia_, rel=1e-6)
    np.testing.assert_array_equal(_in_order(model), local.labels_)
    labels = transform_spark(model, frame, "x", output="cluster").select("cluster")
    np.testing.assert_array_equal([row[0] for row in labels.collect()], local.labels_)


def test_a_value_that_is_not_finite_is_named(spark, people):
    values = people[_NAMES].to_numpy().tolist()
    values[2500][1] = None
    frame = spark.createDataFrame(values, _NAMES)
    told = r"Partition 1 of X \(rows from \d+\) contains NaN \(row 2500, column 'b'\)"
    with pytest.raises(ValueError, match=told):
        _nystrom().fit(frame)


def test_raw_tables_are_labelled_by_the_model_of_a_sample(frame, people):
    table = people[_NAMES].assign(kind=np.where(people["a"] > 0.0, "x", "y"))
    model = TableClusterer(_nystrom()).fit(table[::10])
    raw = frame.selectExpr("id", "if(a > 0, 'x', 'y') kind", *_NAMES)
    found = transform_spark(model, raw).select("id", "prediction").collect()
    labels = [label for _, label in sorted(tuple(row) for row in found)]
    np.testing.assert_array_equal(labels, model.predict(table))


def test_what_is_not_possible_is_said(frame, people):
    with pytest.raises(ValueError, match="'a' of X has the type string; it should be"):
        _nystrom().fit(frame.selectExpr("cast(a as string) a", "b"))
    with pytest.raises(ValueError, match=r"features=\['z'\] should be columns of X"):
        SparkTable(frame, ["z"])
    with pytest.raises(ValueError, match="which names a column of weights"):
        _nystrom().fit(frame.select(*_NAMES), sample_weight=people["weight"])
    with pytest.raises(TypeError, match="transform_spark"):
        TableClusterer(_nystrom()).fit(frame)
    model = _nystrom().fit(people[_NAMES])
    with pytest.raises(TypeError, match="transform_spark"):
        model.predict(frame.select(*_NAMES))
    with pytest.raises(ValueError, match="X has no column 'c'"):
        transform_spark(model, frame.select("a", "b"))
