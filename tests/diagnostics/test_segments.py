"""Clusters in words: facts against counts, names, typical rows and stability."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_wine, make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchmeans import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
    TableClusterer,
)
from sketchmeans.cluster.segment_names import rename_segments, segment_names
from sketchmeans.datasets import make_customers
from sketchmeans.diagnostics import cluster_summary, describe_segments
from sketchmeans.diagnostics.described import open_described
from sketchmeans.diagnostics.members import SmallestRows, draw_keys, draw_members
from sketchmeans.diagnostics.segment_facts import (
    Fact,
    measure_dominance,
    name_features,
)
from sketchmeans.diagnostics.segment_wording import (
    name_segments,
    to_amount,
    to_few_words,
    to_time,
)
from sketchmeans.diagnostics.segments import name_fitted
from sketchmeans.diagnostics.summary import summarize_members

TABLE, PLANTED = make_customers(800, random_state=1)
MODEL = TableClusterer(NystromKMeans(4, random_state=0)).fit(TABLE)


@pytest.fixture(scope="module", name="found")
def described():
    return describe_segments(MODEL, TABLE)


def test_facts_are_medians_and_shares_of_the_table(found):
    assert [s.size for s in found.segments] == MODEL.cluster_sizes_.tolist()
    assert found.n_sampled == found.n_rows == 800
    seen = set()
    for segment in found.segments:
        own = TABLE[MODEL.labels_ == segment.label]
        assert segment.facts
        for fact in segment.facts:
            column, inside = TABLE[fact.column], own[fact.column]
            if fact.level is not None:
                seen.add("share")
                assert fact.value == pytest.approx((inside == fact.level).mean())
                assert fact.overall == pytest.approx((column == fact.level).mean())
                assert f"{fact.value:.0%}" in fact.text
            elif isinstance(fact.value, float):
                seen.add("median")
                assert fact.value == pytest.approx(inside.median())
                assert fact.overall == pytest.approx(column.median())
                assert (fact.strength > 0) == (inside.median() > column.median())
            else:
                seen.add("date")
                when = pd.to_datetime(inside).median()
                assert fact.value == when.strftime("%b %Y")
    assert seen == {"share", "median", "date"}


def test_names_differ_and_say_what_sets_segments_apart(found):
    companies = np.bincount(MODEL.labels_[PLANTED == "companies"]).argmax()
    assert found.names[companies] == "High revenue, many orders"
    assert len(set(found.names)) == 4
    assert "36%: signed up: about" in repr(found)


def test_typical_rows_are_called_by_their_id(found):
    assert found.id_column == "customer_id"
    numbers = cluster_summary(MODEL.estimator_, MODEL.prepare(TABLE)).exemplar_indices
    for segment in found.segments:
        expected = TABLE["customer_id"].iloc[numbers[segment.label]]
        assert segment.typical == tuple(expected)
    with pytest.raises(ValueError, match="id_column='nobody' should be a column of X"):
        describe_segments(MODEL, TABLE, id_column="nobody")


def test_names_from_labels_are_those_of_a_pass_over_all_rows(found):
    named = name_fitted(MODEL, TABLE)
    assert named.names == found.names == MODEL.segment_names_
    assert named.segments[0].stability is None
    MODEL.segment_names_ = ("a", "b", "c", "d")
    assert describe_segments(MODEL, TABLE).names == ("a", "b", "c", "d")
    del MODEL.segment_names_


def test_segments_that_are_there_are_stable_and_others_are_not(monkeypatch):
    for name in ("_RESAMPLES", "_SPECTRAL_RESAMPLES"):
        monkeypatch.setattr(f"sketchmeans.diagnostics.stability.{name}", 3)
    X, _ = make_blobs(150, 3, centers=3, cluster_std=0.5, random_state=1)
    given = {"gamma": 0.05, "init": X[[0, 1, 2]], "landmarks": X[:40], "rank": 30}
    for model in (
        NystromKMeans(3, random_state=0, **given),
        NystromKMeans(3, reducer="svd", random_state=0),
        SketchedKMeans(3, random_state=0),
        KernelKMeans(3, kernel="polynomial", degree=2, random_state=0),
        SpectralKMeans(3, random_state=0),
    ):
        model.fit(X)
        for segment in describe_segments(model, X).segments:
            assert segment.stability > 0.95, model
            assert segment.verdict[0] == "stable"
    noise = np.random.default_rng(0).normal(size=(300, 8))
    model = SketchedKMeans(6, random_state=0).fit(noise)
    found = describe_segments(model, noise).segments
    assert np.mean([segment.stability for segment in found]) < 0.6
    assert {segment.verdict[0] for segment in found} == {"unstable", "uncertain"}


def test_rare_segments_are_looked_at_as_closely_as_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 3))
    X[:60] += 25.0
    model = SketchedKMeans(2, random_state=0).fit(X)
    found = describe_segments(model, X, feature_names=["a", "b", "c"])
    rare = min(found.segments, key=lambda segment: segment.size)
    assert rare.size == 60
    assert rare.stability > 0.95
    assert rare.facts[0].overall == pytest.approx(np.median(X[:, 0]), abs=0.05)
    assert found.n_sampled == 10_060
    assert "Facts are of a random sample of 10,060 rows" in found.note


def test_sparse_wide_and_given_rows_have_segments():
    X = sparse.random_array((300, 900), density=0.05, rng=np.random.default_rng(0))
    X = X.tolil()
    X[:150, [5]] = 9.0
    X = sparse.csr_array(X)
    model = SketchedKMeans(2, random_state=0).fit(X)
    found = describe_segments(model, X)
    assert {s.facts[0].column for s in found.segments} == {"x5"}
    K = rbf_kernel(np.random.default_rng(0).normal(size=(60, 2)))
    model = KernelKMeans(2, kernel="precomputed", random_state=0).fit(K)
    found = describe_segments(model, K)
    assert found.names == ("Segment 0", "Segment 1")
    assert found.segments[0].stability is None
    assert found.segments[0].typical[0].startswith("row ")


def test_gaps_do_not_count_and_whole_columns_of_them_say_nothing():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": np.repeat([1.0, 9.0], 100), "b": rng.normal(size=200)})
    frame.loc[:89, "a"] = np.nan
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(frame)
    found = describe_segments(model, frame)
    for segment in found.segments:
        own = frame["a"][model.labels_ == segment.label]
        for fact in segment.facts:
            if fact.column == "a" and "average" not in fact.text:
                assert fact.value == own.median()


def test_dominance_counts_pairs():
    rng = np.random.default_rng(0)
    values, labels = rng.integers(5, size=60).astype(float), rng.integers(3, size=60)
    weights = rng.integers(1, 4, size=60).astype(float)
    found = measure_dominance(values, labels, weights, 4)
    for j in range(3):
        inside = labels == j
        sign = np.sign(values[inside][:, None] - values[~inside])
        mass = weights[inside][:, None] * weights[~inside]
        assert found[j] == pytest.approx((sign * mass).sum() / mass.sum())
    assert found[3] == 0.0


def test_members_are_the_same_in_blocks_and_random():
    labels = np.random.default_rng(0).integers(-1, 3, size=30_000)
    found = draw_members(labels, 3, 50)
    rows = SmallestRows(3, 50)
    for start in range(0, 30_000, 700):
        numbers = np.arange(start, min(start + 700, 30_000))
        numbers = numbers[labels[numbers] >= 0]
        rows.add(labels[numbers], draw_keys(numbers), numbers)
    np.testing.assert_array_equal(rows.sort()[1], found.numbers)
    np.testing.assert_array_equal(labels[found.numbers], found.labels)
    assert found.weights.sum() == pytest.approx((labels >= 0).sum())
    keys = draw_keys(np.arange(100_000))
    assert np.histogram(keys, 10, (0, 1))[0] == pytest.approx(10_000, rel=0.05)
    assert abs(np.corrcoef(keys[1:], keys[:-1])[0, 1]) < 0.01


def fact(phrase, value=1.0, strength=0.9, level=None):
    return Fact("c", level, strength, value, 0.0, "", phrase)


def test_equal_names_are_told_apart():
    high = [[fact("high orders", value)] for value in (5.0, 9.0, 7.0)]
    names = name_segments([*high, [], []], [10, 10, 10, 10, 0])
    assert names == [
        "High orders (0)",
        "Very high orders",
        "High orders (2)",
        "Segment 3",
        "Empty 4",
    ]
    long = [[fact("high " + "x" * 60), fact("low " + "y" * 60)]] * 2
    assert all(len(name) <= 80 for name in name_segments(long, [1, 1]))
    assert name_segments([[]], [5]) == ["All rows"]


def test_phrases_are_english():
    assert to_amount("orders", True, True) == "many orders"
    assert to_amount("Visits_2024", False, True) == "few Visits 2024"
    for name, is_whole in (("bonus", True), ("sales", False), ("age", True)):
        assert to_amount(name, True, is_whole) == f"high {name}"
    assert to_time("signed_up", False) == "signed up recently"
    assert to_time("joined", True) == "joined early"
    assert to_time("order_date", False) == "recent order date"
    long = [to_few_words(f"a_measurement_of_something_{j}") for j in (12, 113)]
    assert len(to_few_words("x" * 90)) == 28
    assert long == ["a measurement…something 12", "a measurement…something 113"]


def test_small_values_are_told_from_zero():
    rng = np.random.default_rng(0)
    money = np.exp(np.repeat([3.0, 9.0], [400, 100]) + 0.1 * rng.normal(size=500))
    model = SketchedKMeans(2, random_state=0).fit(money[:, None])
    found = describe_segments(model, money[:, None], feature_names=["money"])
    assert "about 0" not in repr(found)
    values = np.repeat([1e-6, 50.0], 40)[:, None]
    found = describe_segments(SketchedKMeans(2, random_state=0).fit(values), values)
    assert "x0: about 0 (all: 25)" in repr(found)


def test_names_of_columns_may_hold_anything():
    frame = pd.DataFrame({"a\u200d\n\x1b_": np.repeat([0.0, 9.0], 20), " ": 1.0})
    model = TableClusterer(SketchedKMeans(2, random_state=0)).fit(frame)
    found = name_fitted(model, frame)
    assert all(name.isprintable() for name in model.segment_names_)
    assert sorted(found.names) == sorted(["High a\\n\\x1b", "Low a\\n\\x1b"])


def test_one_hot_columns_are_shown_as_their_category():
    rng = np.random.default_rng(3)
    levels = np.array(["free", "basic_2", "pro"])
    plan = rng.integers(3, size=400)
    frame = pd.DataFrame({"spend": rng.normal(size=400) + plan})
    for j, level in enumerate(levels):
        frame[f"my_plan_{level}"] = (plan == j).astype(int)
    for name in ("vip_now", "vip_later"):  # of which both may be
        frame[name] = np.where(rng.random(400) < 0.8, plan == 0, plan == 1)
    model = TableClusterer(NystromKMeans(3, random_state=0)).fit(frame)
    found = describe_segments(model, frame)
    facts = [fact for segment in found.segments for fact in segment.facts]
    columns = {"spend", "my_plan", "vip_now", "vip_later"}
    assert {fact.column for fact in facts} <= columns
    own = [fact for fact in facts if fact.column == "my_plan"]
    assert {fact.level for fact in own} <= set(levels)
    shares = {level: (plan == j).mean() for j, level in enumerate(levels)}
    for fact in own:
        assert fact.overall == pytest.approx(shares[fact.level])
    assert any("my plan: 100% free (all: " in fact.text for fact in own)
    opened = open_described(model, frame)
    means = summarize_members(opened)[0].features.cluster_means
    names = name_features(opened.units, means, opened.names)
    assert names[1:4] == ["my_plan=free", "my_plan=basic_2", "my_plan=pro"]
    assert names[4:] == opened.names[4:]
    texts = [fact.text for fact in facts if fact.column.startswith("vip")]
    assert all(" yes (all" in text or " no (all" in text for text in texts)


def test_pipelines_have_segments_and_names():
    X = load_wine(as_frame=True).data
    steps = make_pipeline(StandardScaler(), NystromKMeans(3, random_state=0))
    found = describe_segments(steps.fit(X), X)
    assert all(segment.facts for segment in found.segments)
    assert all(fact.column in X for segment in found.segments for fact in segment.facts)
    rename_segments(steps[-1], {0: "Heavy wines"})
    assert segment_names(steps)[0] == "Heavy wines"
