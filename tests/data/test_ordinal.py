"""Columns of ordered words: their order, and what becomes of them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score

from sketchmeans import NystromKMeans, TableClusterer, load, save
from sketchmeans.data.preparation.encoders import OrdinalEncoder
from sketchmeans.data.preparation.ordinal import find_order
from sketchmeans.diagnostics import calibrate, describe_segments, drift

ANSWERS = (
    *("Strongly disagree", "Disagree", "Neither agree nor disagree"),
    *("Agree", "Strongly agree"),
)


@pytest.mark.parametrize(
    "order",
    [
        ANSWERS,
        ("Very dissatisfied", "unsatisfied", "neutral", "satisfied", "Very satisfied"),
        ("not at all important", "moderately important", "very important"),
        ("Not at all", "A little", "A lot"),
        ("trifft nicht zu", "trifft eher zu", "trifft voll und ganz zu"),
        ("jamais", "parfois", "toujours"),
        ("very_low", "low", "medium", "high"),
        ("S", "M", "L", "XL"),
        ("under 18", "18 to 24 years", "25 to 34 years", "35 or older"),
        ("< $10k", "$10k-$50k", "$50k+"),
        ("0-999 €", "1.000-4.999 €", "5.000 € und mehr"),
        ("0", "1", "2", "3+"),
        ("1-10", "11-50", "501–1,000", "1,001+"),
    ],
)
def test_orders_that_are_known(order):
    for seed in range(3):
        shuffled = np.random.default_rng(seed).permutation(np.array(order)).tolist()
        assert find_order(shuffled) == (order, ())


@pytest.mark.parametrize(
    "levels",
    [
        ("red", "green", "blue"),
        ("often", "never", "red"),
        ("often", "never"),
        ("often", "frequently", "never"),  # in one place of the scale
        ("10", "20", "30"),
        ("1-1", "2-1", "3-1"),
        ("10-20", "15-25", "20-30"),
        ("A1-2", "B3-4", "C5-6"),
        ("men 18-24", "women 18-24", "men 25-34"),
        ("agree", "sehr gut", "nie"),
    ],
)
def test_orders_that_are_not(levels):
    assert find_order(levels) is None


def make_survey(n=900):
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=n)
    profile = (np.arange(3)[:, None] + np.arange(9)) % 3 - 1.0
    places = np.digitize(
        profile[group] + 0.8 * rng.normal(size=(n, 9)), [-1.2, -0.4, 0.4, 1.2]
    )
    frame = pd.DataFrame(np.array(ANSWERS)[places]).rename(columns="q{}".format)
    return frame, group, places


def fit(frame, **params):
    return TableClusterer(NystromKMeans(3, random_state=0), **params).fit(frame)


def test_answers_are_clustered_as_their_places(tmp_path):
    frame, group, places = make_survey()
    model = fit(frame)
    assert set(model.kinds_.values()) == {"ordinal"}
    assert model.plan_[0].reason == (
        "5 ordered levels, from 'Strongly disagree' to 'Strongly agree'"
    )
    numbers = fit(pd.DataFrame(1.0 + places, columns=frame.columns), scale="standard")
    assert_array_equal(model.labels_, numbers.labels_)
    assert adjusted_rand_score(group, model.labels_) > 0.9
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.plan_ == model.plan_
    assert_array_equal(again.predict(frame), model.labels_)
    assert set(again.exemplars_.ravel()) <= set(ANSWERS)


def test_new_answers_are_missing_and_counted():
    frame, _, _ = make_survey()
    frame.iloc[:9, 0] = "Prefer not to say"
    model = fit(frame)
    assert model.plan_[0].reason.endswith("'Prefer not to say' count as missing")
    few = frame[:4].copy()
    few.iloc[:, 1] = ["maybe", "AGREE", "", "disagree"]
    with pytest.warns(
        UserWarning, match=r"has 1 value in column 'q1' that is no level"
    ):
        model.predict(few)


def test_the_kind_can_be_given():
    frame = pd.DataFrame({"pay": ["low", "high"] * 50, "x": np.arange(100) % 7.0})
    assert fit(frame).kinds_["pay"] == "category"
    model = fit(frame, as_kinds={"pay": "ordinal"})
    assert model.plan_[0].encoder == OrdinalEncoder(("low", "high"))
    frame["pay"] = ["north", "south"] * 50
    with pytest.raises(ValueError, match="no order of its values is known"):
        fit(frame, as_kinds={"pay": "ordinal"})


def test_levels_are_told_in_words():
    frame, _, _ = make_survey()
    model = fit(frame)
    found = describe_segments(model, frame)
    texts = [fact.text for one in found.segments for fact in one.facts]
    assert "q0: about Disagree (all: Neither agree nor disagree)" in texts
    calibrate(model, frame)
    later = frame.assign(q0="Strongly agree")
    changed = drift(model, later).columns
    said = [one.sentence for one in changed if one.name == "q0" and one.is_alarm]
    assert said
    assert "typically Strongly agree" in said[0]
