"""What segments are described by: the columns of the table, whatever the model sees."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sketchmeans import NystromKMeans, SketchedKMeans, TableClusterer
from sketchmeans.datasets import make_customers
from sketchmeans.diagnostics import cluster_summary, describe_segments
from sketchmeans.report import plot_features, write_report

NUMBERS = ["age", "orders", "revenue", "days_since_order"]
TABLE = make_customers(900)[0]


def customers():
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    steps = make_column_transformer(
        (numbers, NUMBERS), (OneHotEncoder(handle_unknown="ignore"), ["plan"])
    )
    return make_pipeline(steps, NystromKMeans(4, random_state=0)).fit(TABLE)


def test_pipelines_are_described_in_the_units_of_their_table():
    model = customers()
    found = describe_segments(model, TABLE)
    labels = model.predict(TABLE)
    assert found.id_column == "customer_id"
    numbers = [
        (segment, fact)
        for segment in found.segments
        for fact in segment.facts
        if fact.column in NUMBERS and "on average" not in fact.text
    ]
    assert len(numbers) >= 4
    for segment, fact in numbers:
        values = TABLE[fact.column]
        own = values[labels == segment.label]
        assert fact.value == pytest.approx(own.median(), rel=1e-6)
        assert fact.overall == pytest.approx(values.median(), rel=1e-6)
    for segment in found.segments:
        assert segment.typical[0].startswith("C-")
    plans = [f for s in found.segments for f in s.facts if f.column == "plan"]
    for fact in plans:  # not plan_free, a column of zeros and ones
        assert fact.level in set(TABLE["plan"])


def test_summaries_reports_and_plots_of_pipelines_have_these_units(tmp_path):
    model = customers()
    summary = cluster_summary(model, TABLE)
    assert summary.features is not None
    ages = TABLE["age"]
    labels = model.predict(TABLE)
    path = tmp_path / "r.html"
    report = write_report(model, TABLE, path, certificate=None)
    page = path.read_text()
    assert "onehotencoder" not in page
    assert report.segments.segments[0].typical[0] in page
    assert "pipeline__" not in page
    names = [text.get_text() for text in plot_features(model, TABLE).get_xticklabels()]
    assert "age" in names
    assert not any("pipeline__" in name for name in names)
    assert report.segments.segments == describe_segments(model, TABLE).segments
    # The median of the age takes the place of a missing one.
    filled = ages.fillna(ages.median())
    wanted = [filled[labels == j].mean() for j in range(4)]
    column = np.abs(summary.features.cluster_means - np.c_[wanted]).max(axis=0)
    assert column.min() < 1e-6


def test_arrays_are_described_before_they_are_reduced():
    X = TABLE[NUMBERS].to_numpy()  # with gaps
    steps = SimpleImputer(), StandardScaler(), PCA(2)
    model = make_pipeline(*steps, NystromKMeans(3, random_state=0)).fit(X)
    found = describe_segments(model, X)
    columns = {fact.column for segment in found.segments for fact in segment.facts}
    assert columns <= {"x0", "x1", "x2", "x3"}
    named = describe_segments(model, X, feature_names=NUMBERS)
    assert {f.column for s in named.segments for f in s.facts} <= set(NUMBERS)
    values = [f.value for s in found.segments for f in s.facts]
    assert values == [f.value for s in named.segments for f in s.facts]
    assert max(values) > 1000.0  # revenue, and not its standard deviations
    with pytest.raises(ValueError, match="feature_names of length 2 should have 4"):
        describe_segments(model, X, feature_names=["a", "b"])


def test_what_is_not_a_table_is_described_as_the_last_step_sees_it(tmp_path):
    texts = ["apple banana", "apple pear"] * 20 + ["car truck", "car bus"] * 20
    steps = TfidfVectorizer(), TruncatedSVD(2, random_state=0)
    model = make_pipeline(*steps, SketchedKMeans(2, random_state=0)).fit(texts)
    found = describe_segments(model, texts)
    assert found.segments[0].facts[0].column.startswith("truncatedsvd")
    # Images keep all of their pixels, also those that say nothing.
    X = load_digits(as_frame=True).data[:300]
    pixels = make_pipeline(StandardScaler(), SketchedKMeans(3, random_state=0)).fit(X)
    path = tmp_path / "r.html"
    write_report(pixels, X, path, image_shape=(8, 8), certificate=None)
    assert path.exists()


def test_columns_without_names_are_called_by_their_numbers():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(80), rng.normal(size=(80, 2)), np.arange(80) % 2])
    model = TableClusterer(SketchedKMeans(2, random_state=0), exclude=[0]).fit(X)
    found = describe_segments(model, X, id_column=0)
    assert found.segments[0].facts[0].column == "x3"
    assert found.id_column == "column 0"
    assert found.segments[0].typical[0].isdecimal()
    with pytest.raises(ValueError, match="id_column=7 should be a column of X: 0, 1"):
        describe_segments(model, X, id_column=7)


def test_ids_of_whole_floats_have_no_decimals():
    frame = pd.DataFrame({"id": np.arange(60) + 1000.0, "a": np.arange(60) % 2 * 1.0})
    frame["b"] = np.random.default_rng(0).normal(size=60)
    model = TableClusterer(SketchedKMeans(2, random_state=0), exclude=["id"])
    found = describe_segments(model.fit(frame), frame, id_column="id")
    assert found.segments[0].typical[0] in {str(i) for i in range(1000, 1060)}
