"""Integers that floats do not tell apart: a warning names the column."""

import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sketchmeans import KernelKMeans, NystromKMeans, SketchedKMeans, TableClusterer
from sketchmeans.data.lost_digits import describe_lost_digits
from sketchmeans.nystrom import Nystrom
from sketchmeans.reduction import SignProjection

pl = pytest.importorskip("polars")

FAR = 2**60


def table(far=FAR):
    """Return whole numbers in three groups, 20 apart, and a column of small ones."""
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=120)
    near = rng.integers(100, size=120)
    return pd.DataFrame({"near": near, "when": far + 20 * group + near % 5})


def warned_of(model, X):
    """Return which columns a fit says have lost digits."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    found = (re.match("Column (.*) has lost digits", str(w.message)) for w in caught)
    return [match[1] for match in found if match]


FORMS = {
    "int64": lambda frame, folder: frame.to_numpy(np.int64),
    "uint64": lambda frame, folder: frame.to_numpy(np.uint64),
    "pandas": lambda frame, folder: frame,
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "pyarrow": lambda frame, folder: pa.Table.from_pandas(frame),
    "csv": lambda frame, folder: frame.to_csv(folder / "t.csv", index=False),
    "parquet": lambda frame, folder: frame.to_parquet(folder / "t.parquet"),
    "npy": lambda frame, folder: np.save(folder / "t.npy", frame.to_numpy()),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_of_any_form_is_warned_of(form, tmp_path):
    def warned(far):
        X = FORMS[form](table(far), tmp_path)
        if X is None:
            (X,) = tmp_path.glob("t.*")
        return warned_of(SketchedKMeans(3, random_state=0), X)

    has_names = form in ("pandas", "polars", "pyarrow", "csv", "parquet")
    assert warned(FAR) == ["'when'" if has_names else "1"]
    assert warned(2**50) == []


@pytest.mark.parametrize(
    "model",
    [
        NystromKMeans(3, gamma=1.0),
        KernelKMeans(3, kernel="linear"),
        SignProjection(1),
        Nystrom(n_landmarks=9),
    ],
    ids=lambda model: type(model).__name__,
)
def test_all_that_fit_tables_warn(model):
    assert warned_of(model, table()) == ["'when'"]
    assert warned_of(model, table(0)) == []


def test_large_numbers_that_differ_are_no_reason_to_warn():
    frame = table()
    frame["when"] = FAR + 10**9 * (frame["when"] - FAR)  # nanoseconds
    assert warned_of(SketchedKMeans(3), frame) == []
    assert describe_lost_digits(-np.inf, np.inf) is None


@pytest.mark.parametrize("kind", [np.int64, np.uint64, str, object])
def test_a_column_of_a_raw_table_is_left_out_with_a_warning(kind):
    frame = table()
    frame["when"] = frame["when"].astype(kind)
    model = TableClusterer(NystromKMeans(3, random_state=0))
    with pytest.warns(UserWarning, match="Column 'when' is left out: numbers near 1.1"):
        model.fit(frame)
    (plan,) = (plan for plan in model.plan_ if plan.name == "when")
    assert plan.kind == "other"
    assert f"subtract {FAR} from them, as integers" in plan.reason
    with pytest.raises(ValueError, match="does not fit column 'when': numbers near"):
        model.set_params(as_kinds={"when": "numeric"}).fit(frame)
    model.set_params(as_kinds={"when": "category"}).fit(frame)  # words are exact
