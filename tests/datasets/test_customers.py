"""The table of customers that comes with the package."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from sketchmeans import SketchedKMeans
from sketchmeans.datasets import make_customers, write_customers


def test_the_table_is_what_a_shop_would_export():
    table, segments = make_customers()
    assert len(table) == len(segments) == 3_000
    assert table["customer_id"].is_unique
    assert table["email"].str.contains("@").all()
    assert set(table["newsletter"]) == set(table["churned"]) == {"yes", "no"}
    assert 1 < table["plan"].nunique() < 10
    assert table["signed_up"].between("2018-01-01", "2024-12-31").all()
    assert 0.0 < table[["age", "days_since_order"]].isna().to_numpy().mean() < 0.1
    # A few customers have most of the revenue.
    revenue = table["revenue"].sort_values(ascending=False)
    assert revenue.head(450).sum() > 0.5 * revenue.sum()


def test_the_segments_can_be_found():
    table, segments = make_customers()
    numbers = table[["age", "orders", "revenue", "days_since_order"]].copy()
    numbers["years"] = (table["signed_up"].max() - table["signed_up"]).dt.days
    skewed = ["orders", "revenue", "days_since_order"]
    numbers[skewed] = np.log(numbers[skewed])
    rows = pd.get_dummies(table["plan"], dtype=float).join(numbers)
    for name in ("newsletter", "churned"):
        rows[name] = table[name] == "yes"
    X = StandardScaler().fit_transform(rows.fillna(rows.mean()))
    labels = SketchedKMeans(4, random_state=0).fit_predict(X)
    assert adjusted_rand_score(segments, labels) > 0.9


def test_seeds():
    (one, groups), (two, _), (other, _) = (
        make_customers(100, random_state=seed) for seed in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(other)
    assert len(groups) == 100


def test_the_file_holds_the_table(tmp_path):
    segments = write_customers(tmp_path / "c.csv", 200, random_state=3)
    table, expected = make_customers(200, random_state=3)
    read = pd.read_csv(tmp_path / "c.csv", parse_dates=["signed_up"])
    np.testing.assert_array_equal(segments, expected)
    pd.testing.assert_frame_equal(read, table, check_dtype=False)


def test_errors():
    with pytest.raises(ValueError, match="n_samples=0 should be"):
        make_customers(0)
