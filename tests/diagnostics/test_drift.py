"""Next month's rows: drift that is planted is found, and chance raises no alarm."""

import numpy as np
import pandas as pd
import pytest

from sketchmeans import NystromKMeans, SketchedKMeans, TableClusterer
from sketchmeans.datasets import make_customers
from sketchmeans.diagnostics import calibrate, drift
from sketchmeans.diagnostics.two_samples import compare_bins, compare_counts


def groups(rng, n, shares=(0.5, 0.3, 0.2)):
    """Return a mixed table with gaps, whose groups have these shares."""
    group = rng.choice(3, n, p=shares)
    income = np.exp(rng.normal(3.0 * group, 0.7))
    income[rng.random(n) < 0.05] = np.nan
    return pd.DataFrame(
        {
            "income": income,
            "age": 30.0 + 15.0 * group + rng.normal(size=n) * 5,
            "plan": np.array(["free", "basic", "gold"])[
                (group + (rng.random(n) < 0.2)) % 3
            ],
            "mail": rng.random(n) < 0.3,
        }
    )


@pytest.fixture(scope="module")
def model():
    table = groups(np.random.default_rng(0), 4000)
    model = TableClusterer(NystromKMeans(3, random_state=0)).fit(table)
    calibrate(model, table)
    return model


def test_a_sample_of_the_same_kind_raises_no_alarm(model):
    """At level 0.02, 8 or more alarms of 100 have a chance of 1 in 1000."""
    rng = np.random.default_rng(1)
    found = [drift(model, groups(rng, 300), level=0.02) for _ in range(100)]
    assert sum(one.has_changed for one in found) <= 7
    raw = [min(part.p_value for part in one.segments) for one in found]
    assert min(raw) < 1.0  # the tests can fail


def test_p_values_of_the_tests_hold_their_level():
    rng = np.random.default_rng(2)
    n, p = 3000, np.array([0.001, 0.02, 0.5])[:, None]
    for n_old, n_new in ((900, 150), (9_000, 9_000)):
        old, new = rng.binomial(n_old, p, (3, n)), rng.binomial(n_new, p, (3, n))
        for a, b in zip(old, new, strict=True):
            found = [
                compare_counts(x, n_old, y, n_new) for x, y in zip(a, b, strict=True)
            ]
            assert np.mean(np.array(found) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 / n)
    bins = np.full(20, 0.05)
    pairs = [(rng.multinomial(500, bins), rng.multinomial(800, bins)) for _ in range(n)]
    found = np.array([compare_bins(a, b)[1] for a, b in pairs])
    assert 0.01 < np.mean(found <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 / n)


def test_planted_drift_is_found_and_named(model):
    rng = np.random.default_rng(3)
    new = groups(rng, 3000, shares=(0.68, 0.3, 0.02))
    new.loc[:600, "income"] = np.nan
    new.loc[2900:, ["income", "age"]] = 5e6, 95.0
    new.loc[1000:1100, "plan"] = "platinum"
    found = drift(model, new)
    old = [part.old_share for part in found.segments]
    verdicts = [found.segments[j].verdict for j in np.argsort(old)]
    assert verdicts[0] in ("shrank", "dissolved")
    assert verdicts[2] == "grew"
    alarms = {(column.name, column.what) for column in found.columns if column.is_alarm}
    assert {("income", "missing"), ("plan", "new levels"), ("plan", "levels")} <= alarms
    assert not any(name == "mail" for name, _ in alarms)
    assert found.unusual.is_alarm
    assert found.unusual.n_rows >= 90
    assert set(found.unusual.row_numbers) <= set(range(2900, 3000))
    assert found.unusual.columns[0].name in ("income", "age")
    text = repr(found)
    assert "New kinds of rows" in text
    assert "plan has new values in 3.4% of the rows, against 0.0% in the fit" in text
    assert found.to_dict()["alarms"] == found.sentences


def test_files_arrays_and_dropped_rows_give_the_same_counts(model, tmp_path):
    rng = np.random.default_rng(4)
    new = groups(rng, 700)
    new.to_csv(tmp_path / "new.csv", index=False)
    one, two = drift(model, new), drift(model, tmp_path / "new.csv")
    assert one.to_dict() == two.to_dict()
    assert sum(part.new_rows for part in one.segments) == one.n_new == 700
    dropping = TableClusterer(SketchedKMeans(2, random_state=0), missing="drop").fit(
        new
    )
    calibrate(dropping, new)
    found = drift(dropping, new)
    assert found.n_new == new["income"].notna().sum()
    assert not found.has_changed
    bare = SketchedKMeans(2, random_state=0).fit(rng.normal(size=(500, 2)))
    with pytest.raises(ValueError, match="calibrate"):
        drift(bare, np.zeros((5, 2)))
    shifted = drift(
        bare, rng.normal(size=(500, 2)) + 1.0, X_old=rng.normal(size=(500, 2))
    )
    assert shifted.columns[0].is_alarm
    assert not hasattr(bare, "reference_")
    for level in (0.0, 1.0, "x"):
        with pytest.raises(ValueError, match="level="):
            drift(model, new, level=level)
    with pytest.raises(ValueError, match="no rows"):
        drift(model, new.head(0))


def test_the_customers_of_the_next_month():
    old, new = (make_customers(3000, random_state=seed)[0] for seed in (0, 1))
    model = TableClusterer(NystromKMeans(4, random_state=0)).fit(old)
    calibrate(model, old)
    assert not drift(model, new).has_changed


def test_medians_of_counts_with_gaps_between_them_are_values_of_the_table():
    rng = np.random.default_rng(3)
    X = rng.permutation(np.repeat([2.0, 4.0, 30.0, 31.0, 60.0], 200))[:, None]
    model = SketchedKMeans(2, random_state=0).fit(X)
    calibrate(model, X)
    (column,) = drift(model, X).columns
    assert (column.old, column.new) == ("30", "30")
    (column,) = drift(model, X[X[:, 0] < 10]).columns
    assert 2.0 <= float(column.new) <= 4.0


def test_a_column_may_move_about_its_median():
    X = np.random.default_rng(0).binomial(20, 0.5, size=(2_000, 1)).astype(float)
    model = SketchedKMeans(2, random_state=0).fit(X)
    calibrate(model, X)
    (column,) = drift(model, 10.0 + 2.0 * (X - 10.0)).columns
    assert (column.old, column.new) == ("10", "10")
    assert column.sentence == "x0 moved: typically 10 as before, others changed"
    (column,) = drift(model, X + np.arange(len(X))[:, None] % 3).columns
    assert float(column.new).is_integer()
