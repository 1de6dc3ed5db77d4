"""Values as people write them: times of day, factors, pairs, spellings of a word."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sketchmeans import NystromKMeans, TableClusterer, load, save
from sketchmeans.data.preparation import plan_table, tables
from sketchmeans.data.preparation.encoders import NumberEncoder
from sketchmeans.data.preparation.quantities import find_writing

N = 300
RNG = np.random.default_rng(0)
BESIDE = RNG.normal(size=N)


def draw(*values):
    return np.array(values, dtype=object)[np.random.default_rng(1).permutation(N) % 5]


def open_as(form, values, path):
    """Return one column beside numbers, in a form in which people have it."""
    frame = pd.DataFrame({"x": values, "beside": BESIDE[: len(values)]})
    if form == "csv":
        frame.to_csv(path / "table.csv", index=False)
        return str(path / "table.csv")
    if form == "polars":
        return pl.DataFrame({"x": list(values), "beside": frame["beside"].to_list()})
    return frame


def plan(table, kinds=None):
    return plan_table(tables.as_table(table), ["x", "beside"], as_kinds=kinds)[0]


def encode(found, values):
    frame = pd.DataFrame({"x": values})
    column = tables.as_table(frame).records(["x"]).read(0, len(frame)).column("x")
    out = np.empty((len(frame), sum(len(p.names) for p in found.encoder.parts("x"))))
    found.encoder.encode(column, out)
    return out


FORMS = pytest.mark.parametrize("form", ["csv", "pandas", "polars"])
TIMES = draw("08:30", "12:00", "9:45", "17:15", "21:00")
AMOUNTS = draw("900", "12k", "1.5M", "250K", "$3M")
CITIES = draw("Berlin", "BERLIN", " berlin ", "New York", "new  york")


@FORMS
@pytest.mark.parametrize(
    ("values", "others", "expected"),
    [
        (TIMES, ["08:30", "9:45:30 PM", "23:59:59"], [8.5, 21.758333, 23.999722]),
        (np.array([f"{t}:15" for t in TIMES]), ["10:00:36", "07:00"], [10.01, 7.0]),
        (draw("25:30", "101:00", "7:15", "8:00", "9:00"), ["120:30"], [120.5]),
        (AMOUNTS, ["2M", "1.2k", "7", "12k €"], [2e6, 1200.0, 7.0, 12e3]),
        (
            draw("1,5 Mio", "3 Tsd.", "800", "2 Mrd. €", "7 k"),
            ["1,25 Mio."],
            [1.25e6],
        ),
    ],
)
def test_quantities_are_numbers(form, values, others, expected, tmp_path):
    found = plan(open_as(form, values, tmp_path))
    assert found.kind == "numeric"
    encoder = found.encoder
    assert_allclose(encoder.restore(encode(found, others))[:, 0], expected, rtol=1e-6)


def test_typed_times_are_hours():
    values = [dt.time(8, 30), dt.time(12), None, dt.time(20, 15, 36)] * 50
    found = plan(pd.DataFrame({"x": values, "beside": BESIDE[:200]}))
    assert "times in hours" in found.reason
    assert_allclose(encode(found, values[:4])[:, 0], [8.5, 12.0, np.nan, 20.26])
    assert_allclose(encode(found, ["08:30"])[:, 0], [8.5])  # next month's file


def test_a_night_is_not_cut_at_midnight():
    hours = np.random.default_rng(0).normal(24.0, 1.5, N) % 24.0
    values = [f"{int(h):02d}:{int(h * 60) % 60:02d}" for h in hours]
    found = plan(pd.DataFrame({"x": values, "beside": BESIDE}))
    late, early, noon = encode(found, ["23:30", "00:30", "13:00"])[:, 0]
    assert early - late == pytest.approx(1.0)
    assert noon < late
    assert "a day begins at" in found.reason


@pytest.mark.parametrize(
    "levels",
    [
        ["5 m", "7 m"],  # metres
        ["293 K", "301 K"],  # kelvin
        ["5 kg", "7 kg"],
    ],
)
def test_units_are_no_factors(levels):
    assert find_writing(levels)[1] in ("m", "k", "kg")


@pytest.mark.parametrize("levels", [["3 m", "7"], ["16:9", "4:3"], ["3k", "x"], []])
def test_others_are_not_guessed(levels):
    assert find_writing(levels) is None


@FORMS
def test_pairs_are_left_out_with_a_sentence(form, tmp_path):
    rng = np.random.default_rng(0)
    pairs = zip(rng.integers(95, 190, N), rng.integers(50, 110, N), strict=True)
    found = plan(open_as(form, [f"{a}/{b}" for a, b in pairs], tmp_path))
    assert not found.is_used
    assert "two numbers in each value" in found.reason


@FORMS
def test_spellings_are_one_category(form, tmp_path):
    found = plan(open_as(form, CITIES, tmp_path))
    assert found.kind == "category"
    assert len(found.encoder.levels) == 2
    assert "counts as '" in found.reason
    assert "2 more spellings" in found.reason
    features = encode(found, ["BERLIN", "berlin", "bERLIN ", "NEW YORK", "Rome"])
    assert_array_equal(features[0], features[1])
    assert_array_equal(features[1], features[2])
    assert_array_equal(features[3], 1.0 - features[0])
    assert_allclose(features[4], found.encoder.shares)


def test_spellings_of_yes_and_of_answers_are_one():
    flags = plan(
        pd.DataFrame({"x": draw("ja", "Ja", "NEIN", "nein", "JA"), "beside": 1})
    )
    assert flags.kind == "boolean"
    answers = draw("never", "Never", "often", "ALWAYS", "Often")
    found = plan(pd.DataFrame({"x": answers, "beside": 1}))
    assert [level.lower() for level in found.encoder.levels] == [
        "never",
        "often",
        "always",
    ]
    assert_array_equal(encode(found, ["Never", "NEVER", "oFTEN"])[:, 0], [1, 1, 2])


@FORMS
def test_no_answer_among_few_numbers(form, tmp_path):
    found = plan(open_as(form, draw("1", "2", "3", "4", "k.A."), tmp_path))
    assert found.kind == "numeric"
    assert_array_equal(
        encode(found, ["k.A.", "2", "\u2013"])[:, 0], [np.nan, 2, np.nan]
    )


def test_levels_that_were_listed_apart_stay_apart():
    """As in models of older files."""
    from sketchmeans.data.preparation.encoders import CategoryEncoder
    from sketchmeans.data.preparation.plan import ColumnPlan

    encoder = CategoryEncoder(("a", "A"), np.array([0.5, 0.5]))
    found = ColumnPlan("x", "category", "", encoder)
    assert_array_equal(encode(found, ["A", "a", "a "]), [[0, 1], [1, 0], [1, 0]])


def test_a_model_file_reads_them_alike(tmp_path):
    frame = pd.DataFrame({"t": TIMES, "a": AMOUNTS, "c": CITIES, "beside": BESIDE})
    nights = pd.Series(["23:10", "23:50", "00:20", "01:05", "22:00"] * (N // 5))
    frame["n"] = nights
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(frame)
    save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    later = frame.assign(
        t=frame["t"] + ":00", c=frame["c"].str.upper(), a=frame["a"].str.upper()
    )
    later.to_csv(tmp_path / "later.csv", index=False)
    assert_array_equal(again.predict(tmp_path / "later.csv"), model.labels_)
    encoders = {column.name: column.encoder for column in again.plan_}
    assert isinstance(encoders["n"], NumberEncoder)
    assert encoders["n"].day_start > 1.0
    assert encoders["a"].suffix == "k/M"


def test_what_is_no_time_is_an_error():
    frame = pd.DataFrame({"x": TIMES, "beside": BESIDE})
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(frame)
    with pytest.raises(ValueError, match=r"row 1, column 'x': 'noonish' is not a num"):
        model.predict(pd.DataFrame({"x": ["08:30", "noonish"], "beside": [0.0, 1.0]}))


def test_the_row_of_a_wrong_value_is_that_of_the_table(tmp_path):
    """Also where rows are taken in another order, as those of a sample are."""
    model = TableClusterer(NystromKMeans(2, random_state=0))
    model.fit(pd.DataFrame({"x": TIMES, "beside": BESIDE}))
    wrong = pd.DataFrame({"x": TIMES, "beside": BESIDE})
    wrong.loc[250, "x"] = "noonish"
    source = model.prepare(wrong)
    with pytest.raises(ValueError, match=r"row 250, column 'x'"):
        source.take(np.array([280, 250, 3]))
