"""The kinds of columns: what is found, why, and what becomes of the values."""

import datetime as dt
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

import sketchmeans
from sketchmeans import NystromKMeans, TableClusterer
from sketchmeans.data.preparation import plan_table, tables
from sketchmeans.data.preparation.encoders import (
    BooleanEncoder,
    CategoryEncoder,
    DateEncoder,
    NumberEncoder,
)
from sketchmeans.data.preparation.numbers import find_log_scale
from sketchmeans.data.preparation.sentinels import find_date_codes, find_number_codes
from sketchmeans.data.preparation.values import to_days, to_floats, to_words

N = 400
RNG = np.random.default_rng(0)
DAYS = pd.Timestamp("2021-03-01") + pd.to_timedelta(RNG.integers(900, size=N), unit="D")


def plan(values, name="x", **options):
    """Return the plan for one column beside a column of numbers."""
    frame = pd.DataFrame({name: values})
    frame["beside"] = np.random.default_rng(1).normal(size=len(frame))
    found = plan_table(tables.as_table(frame), [name, "beside"], **options)
    return found[0]


def words(*levels, n=N):
    return np.array(levels)[np.random.default_rng(0).integers(len(levels), size=n)]


# --- kinds ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("x", RNG.normal(size=N), "numeric"),
        ("grade", RNG.integers(1, 6, size=N), "numeric"),
        ("year", RNG.integers(1990, 2024, size=N), "numeric"),
        ("x", words("12.5", "7", "3e2"), "numeric"),
        ("x", pd.array(RNG.integers(9, size=N), dtype="Int64"), "numeric"),
        ("x", pd.to_timedelta(RNG.integers(99, size=N), unit="h"), "numeric"),
        ("x", words("yes", "no"), "boolean"),
        ("x", words("Ja", "Nein"), "boolean"),
        ("x", words("oui", "non"), "boolean"),
        ("x", words("y", "n"), "boolean"),
        ("x", words("TRUE", "FALSE"), "boolean"),
        ("x", RNG.integers(2, size=N), "boolean"),
        ("x", RNG.random(N) < 0.5, "boolean"),
        ("x", pd.array(RNG.random(N) < 0.5, dtype="boolean"), "boolean"),
        ("x", words("red", "green", "blue"), "category"),
        ("x", words("Always", "never", "sometimes"), "ordinal"),
        ("x", words("18-24", "25-34", "35+"), "ordinal"),
        ("x", pd.Categorical(words("red", "green")), "category"),
        ("x", DAYS, "date"),
        ("x", DAYS.date, "date"),
        ("x", DAYS.strftime("%Y-%m-%d"), "date"),
        ("x", DAYS.strftime("%Y-%m-%dT%H:%M:%S"), "date"),
        ("x", DAYS.strftime("%d.%m.%Y"), "date"),
        ("x", DAYS.strftime("%m/%d/%Y"), "date"),
        ("x", DAYS.strftime("%d/%m/%y"), "date"),
        ("x", DAYS.strftime("%d-%b-%Y"), "date"),
        ("x", DAYS.strftime("%B %d, %Y"), "date"),
        ("x", DAYS.strftime("%b-%y"), "date"),
        ("x", DAYS.strftime("%m/%d/%Y %I:%M %p"), "date"),
        ("x", DAYS.strftime("%Y%m%d"), "date"),
        ("x", DAYS.strftime("%Y%m%d").astype(int), "date"),
        ("x", RNG.permutation(N) + 20_240_000, "identifier"),
        ("x", words("sì", "no"), "boolean"),
        ("x", words("S", "N"), "boolean"),
        ("x", words("vero", "falso"), "boolean"),
        ("x", [f"1 {i:02d} 05 75 {i:03d} 12" for i in range(N)], "identifier"),
        ("CAP", RNG.integers(10_000, 10_050, size=N), "code"),
        ("market_cap", RNG.integers(10_000, 10_050, size=N), "numeric"),
        ("Area Code", RNG.choice([408, 415, 510], size=N), "code"),
        ("x", [f"they said that {i} was too late" for i in range(N)], "text"),
        ("x", [f"AB-{i:04d}" for i in range(N)], "identifier"),
        ("x", [f"u{i}@example.org" for i in range(N // 4)] * 4, "identifier"),
        ("x", np.arange(N), "identifier"),
        ("x", RNG.permutation(N) + 5000, "identifier"),
        ("customer_id", RNG.choice(10**6, N, replace=False), "identifier"),
        ("orderNo", RNG.choice(10**6, N, replace=False), "identifier"),
        ("x", RNG.choice(10**8, N, replace=False) + 10**8, "identifier"),
        ("zip", RNG.integers(10_000, 10_050, size=N), "code"),
        ("x", np.full(N, 3.5), "constant"),
        ("x", ["DE"] * N, "constant"),
        ("x", [None] * N, "empty"),
        ("x", np.full(N, np.nan), "empty"),
        ("x", ["", "NA"] * (N // 2), "empty"),
        ("x", [[1, 2]] * N, "other"),
    ],
)
def test_kinds(name, values, kind):
    found = plan(values, name)
    assert found.kind == kind, found.reason
    used = ("numeric", "boolean", "category", "ordinal", "date")
    assert found.is_used == (kind in used)
    assert found.reason.endswith(": left out") == (kind not in used)


def test_too_many_levels_are_left_out_and_rare_ones_grouped():
    many = plan(words(*(f"town{i}" for i in range(150))))
    assert (many.kind, many.is_used) == ("category", False)
    assert "different values, most of them in less than 1% of the rows" in many.reason
    some = plan([*["a"] * 200, *["b"] * 194, *"ccdeff"])
    assert some.encoder.levels[2:] == ("(other)",)
    assert some.reason == "6 levels, 4 rare ones together"
    assert some.encoder.shares.sum() == pytest.approx(1.0)


def test_days_and_months_are_told_apart_where_that_can_be():
    assert "month/day/year" in plan(DAYS.strftime("%m/%d/%Y")).reason
    assert "day/month/year" in plan(DAYS.strftime("%d/%m/%Y")).reason
    early = DAYS[DAYS.day <= 12].strftime("%d/%m/%Y")
    assert "day and month may be swapped" in plan(early).reason
    column = pa.chunked_array([["31.12.2023", "30.02.2023", "x", None]])
    assert_allclose(to_days(column, "day.month.year"), [19722, np.nan, np.nan, np.nan])
    short = to_days(pa.chunked_array([["12/31/23", "12/31/71"]]), "month/day/year")
    assert_allclose(short, [19722, 729])


@pytest.mark.parametrize(
    ("text", "written", "day"),
    [
        ("12. März 2023", "day month year", "2023-03-12"),
        ("15 juil. 2020", "day month year", "2020-07-15"),
        ("3-AUG-21", "day month year", "2021-08-03"),
        ("maggio 2022", "month year", "2022-05-01"),
        ("Dez-13", "month year", "2013-12-01"),
        ("2023-05", "year-month", "2023-05-01"),
        ("20240229", "yearmonthday", "2024-02-29"),
        ("20230229", "yearmonthday", None),
        ("12 Foo 2023", "day month year", None),
        ("Maid 13", "month year", None),
    ],
)
def test_dates_with_names_of_months_and_without_signs(text, written, day):
    (found,) = to_days(pa.chunked_array([[text]]), written)
    expected = np.nan if day is None else np.datetime64(day, "D").astype(int)
    assert_allclose(found, expected)


def test_hours_before_and_after_noon():
    column = pa.chunked_array([["1/2/2024 12:30 AM", "1/2/2024 2:30 pm"]])
    found = to_days(column, "month/day/year") % 1.0
    assert_allclose(found, [0.5 / 24, 14.5 / 24])


def test_dates_of_another_form_are_counted():
    dates = DAYS.strftime("%d.%m.%Y").to_numpy().astype(object)
    dates[:5] = "00.00.0000"
    assert "5 of other forms count as missing" in plan(dates).reason


def test_numbers_are_no_dates_of_next_month():
    frame = pd.DataFrame({"d": DAYS.strftime("%Y-%m-%d"), "x": RNG.normal(size=N)})
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(frame)
    with pytest.raises(ValueError, match="is not a date"):
        model.predict(frame.assign(d=np.arange(N)))


def noisy_customers(n=3000, seed=0):
    """Return groups of which one is small, and columns that know nothing of them."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    means = rng.permuted(np.tile([0.0, 1.3, 2.6, 3.9], (6, 1)), axis=1)
    frame = pd.DataFrame(means[:, groups].T + rng.normal(size=(n, 6)))
    frame.columns = [f"x{j}" for j in range(6)]
    frame["agent"] = rng.uniform(1, 350, n)
    frame["region"] = rng.choice(["north", "south"], n)
    return frame, groups


def test_columns_that_depend_on_no_other_weigh_less():
    frame, groups = noisy_customers()
    model = TableClusterer(NystromKMeans(4, random_state=0)).fit(frame)
    weights = {column.name: column.weight for column in model.plan_}
    assert weights == {f"x{j}": 1.0 for j in range(6)} | {"agent": 0.05, "region": 0.05}
    assert "depends little on other columns: weight 0.05" in model.plan_[-1].reason
    assert model.column_weights_[6] == pytest.approx(0.05 / 6.075, rel=1e-3)
    equal = TableClusterer(NystromKMeans(4, random_state=0), scale="standard")
    ours, theirs = (
        adjusted_rand_score(groups, labels)
        for labels in (model.labels_, equal.fit_predict(frame))
    )
    assert ours > max(0.8, theirs)


def test_columns_keep_their_weight_where_there_is_no_doubt():
    frame, _ = noisy_customers()
    table, names = tables.as_table(frame), list(frame)

    def weights(columns=names, frame=table, **options):
        return {p.name: p.weight for p in plan_table(frame, columns, **options)}

    assert set(weights(named=True).values()) == {1.0}
    assert weights(as_kinds={"region": "category"})["region"] == 1.0
    assert set(weights(["x0", "x1", "agent"]).values()) == {1.0}
    few = tables.as_table(frame.head(100))
    assert set(weights(frame=few).values()) == {1.0}
    noise = pd.DataFrame(RNG.normal(size=(1000, 8))).rename(columns=str)
    assert set(weights(list(noise), tables.as_table(noise)).values()) == {1.0}


def test_few_values_are_not_stretched_by_many_gaps():
    values = np.full(N, np.nan)
    values[:20] = RNG.normal(size=20)
    frame = pd.DataFrame({"a": values, "b": RNG.normal(size=N)})
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(frame)
    assert model.scale_[0] == pytest.approx(values[:20].std())


def test_cycles_are_used_where_some_days_are_more_frequent():
    assert plan(DAYS).encoder.cycles == ()
    working = DAYS[DAYS.day_of_week < 5]
    assert plan(working).encoder.cycles == ("weekday",)
    noon = DAYS + pd.to_timedelta(RNG.normal(12, 2, size=N), unit="h")
    assert plan(list(noon) * 2).encoder.cycles == ("hour",)


def test_duplicates_are_left_out_unless_they_are_named():
    rng = np.random.default_rng(0)
    amount = rng.normal(size=N)
    level = words("a", "b", "c")
    frame = pd.DataFrame(
        {
            "euro": amount,
            "cents": 100 * amount + 7,
            "noisy": amount + 0.1 * rng.normal(size=N),
            "level": level,
            "stufe": np.char.upper(level),
        }
    )
    model = TableClusterer(NystromKMeans(3, random_state=0)).fit(frame)
    assert model.columns_ == ["euro", "noisy", "level"]
    assert model.plan_[1].reason == "says the same as 'euro': left out"
    assert model.kinds_["stufe"] == "duplicate"
    model.set_params(as_kinds={"cents": "numeric"}).fit(frame)
    assert model.columns_ == ["cents", "noisy", "level"]
    model.set_params(as_kinds=None, columns=["euro", "cents"]).fit(frame)
    assert model.columns_ == ["euro", "cents"]


def test_duplicates_are_found_beside_gaps_and_in_other_kinds():
    rng = np.random.default_rng(0)
    celsius = rng.normal(20, 5, size=N)
    fahrenheit = np.round(1.8 * celsius + 32, 1)
    sex = words("m", "f")
    frame = pd.DataFrame(
        {
            "celsius": np.where(np.arange(N) % 40 == 3, np.nan, celsius),
            "fahrenheit": np.where(np.arange(N) % 50 == 7, np.nan, fahrenheit),
            "some": np.where(np.arange(N) % 2, np.nan, celsius),
            "sex": np.where(np.arange(N) % 30 == 3, "", sex),
            "is_male": (sex == "m").astype(int),
            "other": words("a", "b", "c")[::-1],
        }
    )
    table = tables.as_table(frame)
    found = {p.name: p for p in plan_table(table, list(frame))}
    assert found["fahrenheit"].reason == "says the same as 'celsius': left out"
    assert found["is_male"].reason == "says the same as 'sex': left out"
    assert found["some"].is_used  # half of the rows say less
    assert found["other"].is_used


@pytest.mark.parametrize(
    ("written", "decimal", "suffix"),
    [
        ("{:,.2f} kg", ".", "kg"),
        ("${:,.2f}", ".", ""),
        ("{:.1f}°C", ".", "°c"),
        ("{:.0f} %", ".", ""),
        ("{:.0f} days", ".", "day"),
    ],
)
def test_quantities_in_words_are_numbers(written, decimal, suffix):
    values = np.round(np.random.default_rng(0).gamma(2.0, 900.0, size=N))
    column = np.array([written.format(v) for v in values], dtype=object)
    column[::50] = None
    found = plan(column)
    assert found.kind == "numeric"
    assert (found.encoder.decimal, found.encoder.suffix) == (decimal, suffix)
    out = np.empty((4, 1))
    plain = NumberEncoder(decimal=decimal, suffix=suffix)
    plain.encode(pa.chunked_array([[*column[1:3], None, "7"]]), out)
    assert_array_equal(out[:, 0], [*values[1:3], np.nan, 7.0])
    assert plan(column, as_kinds={"x": "numeric"}).encoder == found.encoder
    column[7] = "Total"
    assert plan(column).encoder.missing_words == ("Total",)
    with pytest.raises(ValueError, match="'many' is not a number"):
        plain.encode(pa.chunked_array([[column[1], "many"]]), out[:2])


def test_other_words_with_numbers_stay_categories():
    assert plan(words("5 kg", "6 lb", "7 kg")).kind == "category"
    assert plan(words("1st", "2nd", "3rd")).kind == "category"
    assert plan(words("A1", "B2", "C3")).kind == "category"
    assert (
        plan(
            [
                f"{v:,.2f} €".translate({44: 46, 46: 44})
                for v in np.random.default_rng(0).gamma(2.0, 900.0, N)
            ]
        ).encoder.decimal
        == ","
    )


def test_times_of_equal_steps_number_the_rows():
    clock = pd.Timestamp("2024-05-01") + pd.to_timedelta(np.arange(N) * 5, unit="min")
    found = plan(clock)
    assert (found.kind, found.reason) == ("identifier", "running times: left out")
    assert plan(clock[::-1].strftime("%Y-%m-%dT%H:%M:%SZ")).kind == "identifier"
    assert plan(clock.delete([7, 8, 200])).kind == "identifier"
    assert plan(clock, named=True).reason.endswith("in spite of: running times")
    assert plan(clock, as_kinds={"x": "date"}).is_used
    arrivals = np.cumsum(RNG.exponential(size=N))
    assert plan(clock[0] + pd.to_timedelta(arrivals, unit="min")).is_used
    assert plan(list(clock[:200]) * 2).is_used


def test_columns_that_are_named_are_used_in_spite_of_their_looks():
    found = plan(np.arange(N), named=True)
    assert found.is_used
    assert found.reason.endswith("used as it was named, in spite of: running numbers")
    with pytest.raises(ValueError, match=r"columns=\['x'\] of .* free text"):
        plan([f"this is number {i} of all" for i in range(N)], named=True)


# --- sentinels and skewness -----------------------------------------------------------


def test_codes_of_missing_values():
    ages = np.random.default_rng(0).integers(18, 80, size=N).astype(float)
    ages[:7] = 999
    found = plan(ages, "age")
    assert found.reason == "numbers; 999 (7 times) stands for a missing value"
    assert find_number_codes(np.r_[ages, [-1] * 30]) == (-1.0, 999.0)
    assert find_number_codes(np.r_[ages[7:], [-1.0] * 4]) == (-1.0,)  # far from 18
    assert find_number_codes(np.r_[ages[7:], 999, 999]) == ()  # too few
    assert find_number_codes(np.arange(1000.0).repeat(5)) == ()  # no gap before 999
    years = np.arange(1950.0, 2010.0)
    assert find_number_codes(np.r_[years, [0.0] * 5]) == (0.0,)
    assert find_number_codes(np.r_[years - 800, [0.0] * 5]) == ()
    assert find_number_codes(np.array([-1.0, 0, 1] * 9)) == ()  # a scale of three
    for scale, codes in (
        ([1, 2, 3, 4, 5], (97.0, 98.0, 99.0)),  # several codes
        ([1, 2, 3, 4, 5], (8.0, 9.0)),
        ([1, 2], (9.0,)),
        ([0.1, 0.7, 2.5], (-999.9,)),
        ([3.5, 4.5], (9.96921e36,)),
        ([210, 340, 415], (-32768.0,)),
    ):
        assert find_number_codes(np.repeat([*scale, *codes], 3)) == codes
    for quantities in (
        [1, 2, 3, 5, 9],
        [4, 6, 9],
        [10, 30, 60, 99.99],
        [1, 2, 3, 4, 6],
    ):
        assert find_number_codes(np.repeat(quantities, 3)) == ()
    days = np.r_[np.arange(18_000.0, 18_400), [-25567] * 5]
    assert find_date_codes(days) == (-25567.0,)
    text = [*DAYS.strftime("%Y-%m-%d"), *["1900-01-01"] * 9]
    assert "1900-01-01 stands for a missing value" in plan(text).reason
    model = TableClusterer(NystromKMeans(2, random_state=0))
    model.fit(pd.DataFrame({"age": ages, "x": np.random.default_rng(1).normal(size=N)}))
    assert model.n_filled_ == 7
    assert model.fill_[0] == np.median(ages[7:])


def test_skewed_amounts_are_put_on_a_logarithmic_scale():
    rng = np.random.default_rng(0)
    amounts = np.exp(rng.normal(5, 1.2, size=N))
    assert "logarithmic" in plan(amounts).reason
    assert "logarithmic" not in plan(amounts, scale="standard").reason
    assert "logarithmic" not in plan(rng.normal(50, 9, size=N)).reason
    assert "logarithmic" in plan(rng.normal(50, 9, size=N), scale="log").reason
    with_zeros = np.where(rng.random(N) < 0.2, 0.0, amounts)
    assert find_log_scale(with_zeros) is not None
    both_ways = np.where(rng.random(N) < 0.1, -amounts, amounts)
    assert find_log_scale(both_ways) is not None
    encoder = plan(amounts).encoder
    out = np.empty((N, 1))
    encoder.encode(pa.chunked_array([amounts]), out)
    assert_allclose(encoder.restore(out)[:, 0], amounts)
    assert abs(pd.Series(out[:, 0]).skew()) < 0.3 < pd.Series(amounts).skew()


# --- encoders -------------------------------------------------------------------------


def encode(encoder, values):
    column = pa.chunked_array([pa.array(values)])
    width = sum(len(part.names) for part in encoder.parts("x"))
    out = np.empty((len(column), width))
    new = encoder.encode(column, out)
    return out, new


def test_levels_that_are_new_rare_or_missing():
    shares = np.array([0.75, 0.25])
    out, new = encode(CategoryEncoder(("a", "b"), shares), ["b", None, "new", "a"])
    assert_array_equal(out[[0, 3]], [[0, 1], [1, 0]])
    assert np.isnan(out[1]).all()
    assert_array_equal(out[2], shares)
    assert_array_equal(new, [False, False, True, False])
    levels = ("a", "(other)", "(missing)")
    out, _ = encode(CategoryEncoder(levels, np.ones(3) / 3), ["a", "new", None])
    assert_array_equal(out, np.eye(3))


def test_words_are_those_of_numbers_and_dictionaries():
    for column in (
        pa.chunked_array([[1, 2, None, 1]]),
        pa.chunked_array([[1.0, 2.0, None, 1.0]]),
        pa.chunked_array([["1", " 2", "NA", "1"]]),
        pa.chunked_array([pa.array(["1", "2", None, "1"]).dictionary_encode()]),
    ):
        found = to_words(column)
        assert found.levels == ["1", "2"]
        assert_array_equal(found.codes, [0, 1, -1, 0])
        assert_array_equal(to_floats(column), [1, 2, np.nan, 1])


def test_values_come_back():
    numbers, _ = encode(NumberEncoder(unit=2.0), [3.0, -5.0])
    assert NumberEncoder(unit=2.0).decode(numbers) == pytest.approx([3.0, -5.0])
    flag = BooleanEncoder(("nein", "ja"))
    assert flag.decode(encode(flag, ["ja", "nein"])[0]) == ["ja", "nein"]
    date = DateEncoder(19_000.0, ("weekday", "month", "hour"))
    moments = [dt.datetime(2021, 5, 3), dt.datetime(2020, 1, 1, 18, 30)]
    found = date.decode(encode(date, moments)[0])
    assert found == ["2021-05-03", "2020-01-01 18:30"]


@pytest.mark.parametrize("texts", [["0.0", "1.0"], ["-0", "1"], ["0", "0.0", "1e0"]])
def test_numbers_as_text_are_0_and_1_however_they_are_written(texts):
    values = np.array(texts)[np.arange(N) % len(texts)]
    found = plan(values)
    assert found.kind == "boolean"
    assert_array_equal(encode(found.encoder, values)[0][:, 0], values.astype(float))
    others = encode(found.encoder, ["1.0", "2", "x"])[0][:, 0]
    assert_array_equal(others, [1.0, np.nan, np.nan])


def test_a_word_is_the_same_whatever_is_beside_it():
    encoder = BooleanEncoder(("1", "x"))  # no and yes, in this order
    assert encode(encoder, ["1", "x", "yes"])[0][:2, 0].tolist() == [0.0, 1.0]
    assert encode(encoder, ["1"])[0].tolist() == [[0.0]]
    assert np.isnan(encode(encoder, ["yes"])[0]).all()


def test_frames_with_numbers_that_arrow_has_not():
    n = 60
    frame = pd.DataFrame(
        {
            "large": [10**30 * (i % 5) for i in range(n)],
            "sparse": pd.arrays.SparseArray(np.arange(n) % 3 * 1.5),
            "flag": pd.arrays.SparseArray(np.arange(n) % 2 == 0),
            "word": pd.Series(["\ud800", "y", "z"] * 20, dtype=object),
        }
    )
    found = TableClusterer(NystromKMeans(2, random_state=0)).fit(frame)
    assert list(found.kinds_.values()) == ["numeric", "numeric", "boolean", "category"]
    assert_allclose(found.center_[:2], [2e30, 1.5])


# --- tables ---------------------------------------------------------------------------


def customers(seed=0, n=900):
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    likely = np.where(rng.random(n) < 0.8, group, rng.integers(3, size=n))
    frame = pd.DataFrame(
        {
            "customer": rng.permutation(n) + 1000,
            "revenue": np.exp(rng.normal(4 + 1.5 * group, 0.6)),
            "age": 25.0 + 12 * group + rng.normal(0, 5, size=n),
            "plan": np.array(["basic", "plus", "pro"])[likely],
            "news": np.where(rng.random(n) < 0.2 + 0.3 * group, "ja", "nein"),
            "since": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(300 * group + rng.integers(300, size=n), unit="D"),
        }
    )
    frame.loc[::50, "age"] = np.nan
    frame.loc[::60, "plan"] = None
    return frame, group


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_a_mixed_table_is_clustered_as_it_is(make):
    frame, group = customers()
    model = TableClusterer(NystromKMeans(3, random_state=0)).fit(make(frame))
    assert adjusted_rand_score(group, model.labels_) > 0.9
    assert model.columns_ == ["revenue", "age", "plan", "news", "since"]
    assert list(model.feature_names_in_) == model.columns_
    assert "plan=pro" in model.features_
    assert "plan=(missing)" in model.features_
    assert model.column_weights_.sum() == pytest.approx(1.0)
    # Three levels and one of gaps; two words.
    relative = model.column_weights_ / model.column_weights_[0]
    assert_allclose(relative, [1, 1, 0.75, 0.5, 1], rtol=0.03)
    exemplars = model.exemplars_
    for number, row in zip(model.exemplar_indices_, exemplars, strict=True):
        given = frame.iloc[number]
        assert row[0] == pytest.approx(given["revenue"])
        assert row[3] == given["news"]
        assert row[4] == given["since"].strftime("%Y-%m-%d")
    assert_array_equal(model.predict(make(frame)), model.labels_)


def test_files_are_read_in_pieces_with_the_same_labels(tmp_path, monkeypatch):
    frame, _ = customers(n=6000)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=1000)
    expected = TableClusterer(NystromKMeans(3, random_state=0)).fit(frame)
    monkeypatch.setattr("sketchmeans.data.rows.IN_MEMORY_BYTES", 0)
    for name in ("a.csv", "a.parquet"):
        model = TableClusterer(NystromKMeans(3, random_state=0)).fit(tmp_path / name)
        assert_array_equal(model.labels_, expected.labels_)
        assert model.kinds_ == expected.kinds_


def test_the_plan_goes_to_the_model_file(tmp_path):
    frame, _ = customers()
    model = TableClusterer(NystromKMeans(3, random_state=0)).fit(frame)
    sketchmeans.save(model, tmp_path / "m.skm")
    again = sketchmeans.load(tmp_path / "m.skm")
    assert again.kinds_ == model.kinds_
    assert [column.reason for column in again.plan_] == [
        column.reason for column in model.plan_
    ]
    assert_array_equal(again.predict(frame), model.labels_)
    assert_array_equal(again.exemplars_, model.exemplars_)
    assert_array_equal(again.column_weights_, model.column_weights_)


def test_new_tables_are_encoded_as_in_the_fit():
    frame, _ = customers()
    model = TableClusterer(NystromKMeans(3, random_state=0)).fit(frame)
    other = frame.rename(columns={"age": " AGE", "plan": "Plan"})
    with pytest.warns(UserWarning, match="' AGE' for 'age', 'Plan' for 'plan'"):
        assert_array_equal(model.predict(other), model.labels_)
    dates = frame.assign(since=frame["since"].dt.strftime("%Y-%m-%d"))
    assert_array_equal(model.predict(dates), model.labels_)
    new = frame.assign(plan=frame["plan"].where(frame.index != 7, "gold"))
    with pytest.warns(UserWarning, match="1 value in column 'plan' that is no level"):
        model.predict(new)
    with pytest.raises(ValueError, match="'old' is not a number"):
        model.predict(frame.assign(age="old"))
    with pytest.raises(ValueError, match="is not a date"):
        model.predict(frame.assign(since=1.5))


@pytest.mark.parametrize("missing", ["drop", "error"])
def test_gaps_in_words_are_gaps(missing):
    frame, _ = customers()
    model = TableClusterer(NystromKMeans(3, random_state=0), missing=missing)
    if missing == "error":
        with pytest.raises(
            ValueError, match=r"no value \(NaN\) in row 0, column 'age'"
        ):
            model.fit(frame)
        with pytest.raises(ValueError, match="in row 60, column 'plan'"):
            model.fit(
                frame.fillna({"age": 40}).assign(
                    plan=frame["plan"].mask(frame.index < 60, "pro")
                )
            )
        return
    model.fit(frame)
    gaps = frame.isna().any(axis=1).to_numpy()
    assert_array_equal(model.labels_ == -1, gaps)


def test_a_single_row_and_a_table_of_nothing():
    one = pd.DataFrame({"x": [1.5], "y": [2.0]})
    assert TableClusterer(NystromKMeans(1)).fit(one).columns_ == ["x", "y"]
    useless = pd.DataFrame(
        {
            "id": np.arange(50),
            "mail": [f"a{i}@b.org" for i in range(50)],
            "land": "DE",
            "gone": [None] * 50,
        }
    )
    with pytest.raises(ValueError, match="no column to cluster by: ") as error:
        TableClusterer(NystromKMeans(2)).fit(useless)
    assert "'mail' (e-mail addresses), 'land' (every value is 'DE')" in str(error.value)
    assert "'gone' (no value at all)" in str(error.value)


def test_tables_without_names_are_numbers_as_they_are():
    X = np.exp(np.random.default_rng(0).normal(size=(200, 3)))
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(X)
    assert model.plan_ == []
    assert_allclose(model.scale_, X.std(axis=0))
    with pytest.raises(ValueError, match="scale='log' should be 'auto', 'standard'"):
        model.set_params(scale="log").fit(X)
    with pytest.raises(
        ValueError, match=r"as_kinds=.* should be None for a table with"
    ):
        model.set_params(scale="auto", as_kinds={"a": "numeric"}).fit(X)


# --- words among numbers --------------------------------------------------------------


def test_few_words_among_numbers_stand_for_missing_values(tmp_path):
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 80, size=N).astype(str).astype(object)
    ages[::20] = "unknown"
    found = plan(ages)
    assert found.kind == "numeric"
    assert found.encoder.missing_words == ("unknown",)
    assert "missing where it says 'unknown'" in found.reason
    frame = pd.DataFrame({"age": ages, "x": rng.normal(size=N)})
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(frame)
    assert model.n_filled_ == N // 20
    sketchmeans.save(model, tmp_path / "m.skm")
    again = sketchmeans.load(tmp_path / "m.skm")
    assert_array_equal(again.predict(frame), model.labels_)


def test_a_rare_word_among_few_numbers_stands_for_a_missing_value(tmp_path):
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 6, size=N).astype(str).astype(object)
    ratings[::20] = "n.b."
    found = plan(ratings)
    assert (found.kind, found.encoder.missing_words) == ("numeric", ("n.b.",))
    frame = pd.DataFrame({"rating": ratings, "x": rng.normal(size=N)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(tmp_path / "t.csv")
    assert (model.plan_[0].kind, model.n_filled_) == ("numeric", N // 20)
    assert list(model.dialect_["na"]) == ["n.b."]


@pytest.mark.parametrize(
    "values",
    [
        words("1", "2", "3", "many"),  # as frequent as the numbers
        np.where(RNG.random(N) < 0.05, "both", RNG.integers(2, size=N).astype(str)),
        np.where(RNG.random(N) < 0.5, "various", RNG.integers(99, size=N).astype(str)),
        words(*map(str, range(20)), "20a"),  # a word with digits may be a value
    ],
)
def test_words_that_are_values_stay_categories(values):
    assert plan(values).kind != "numeric"


def test_data_frames_without_pyarrow_name_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install sketchmeans\[files\]"):
        TableClusterer(NystromKMeans(2)).fit(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))


def test_a_row_of_totals_in_a_frame_is_pointed_out():
    frame = pd.DataFrame({"shop": [*"abcdefgh"] * 9, "sold": np.arange(72.0)})
    frame["sent"] = frame["sold"] % 7
    total = pd.DataFrame({"shop": ["Grand total"], "sold": [2556.0], "sent": [np.nan]})
    with pytest.warns(UserWarning, match=r"last row .*\(Grand total, 2556.0\)"):
        plan_table(tables.as_table(pd.concat([frame, total])), ["shop", "sold", "sent"])
    plan_table(tables.as_table(frame), ["shop", "sold"])
