"""Dask dataframes whose partitions are not quite what Dask says, on any scheduler."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

from sketchmeans import NystromKMeans  # noqa: E402 - after the check for Dask

pytestmark = pytest.mark.dask

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    RNG.normal(size=(600, 3)) * [1.0, 5.0, 9.0] + np.repeat([[0.0], [20.0]], 300, 0),
    columns=["a", "b", "c"],
)


def frame_of(second):
    """Return a dataframe whose second partition Dask knows nothing about."""
    parts = [FRAME[:300], second]
    delayed = [dask.delayed(part.copy)() for part in parts]
    return dd.from_delayed(delayed, meta=FRAME[:0], verify_meta=False)


def model():
    return NystromKMeans(2, n_landmarks=20, random_state=0)


@pytest.fixture(autouse=True)
def _threads():
    with dask.config.set(scheduler="threads"):
        yield


@pytest.mark.parametrize("order", [["a", "b", "c"], ["c", "a", "b"]])
def test_columns_of_partitions_are_taken_by_name(order):
    expected = model().fit(dd.from_pandas(FRAME, npartitions=2))
    table = frame_of(FRAME[300:][order])
    fitted = model().fit(table)
    assert fitted.cost_ == expected.cost_
    labels = expected.labels_.compute()
    np.testing.assert_array_equal(fitted.labels_.compute(), labels)
    np.testing.assert_array_equal(fitted.predict(table).compute(), labels)
    np.testing.assert_array_equal(expected.predict(table).compute(), labels)
    # Partitions that are no whole blocks: equal up to rounding, numbers may change.
    local = model().fit(FRAME).predict(FRAME)
    assert adjusted_rand_score(local, labels) == 1.0


@pytest.mark.parametrize("names", [["a", "b", "z"], ["a", "b", "b"]])
def test_other_names_are_an_error(names):
    table = frame_of(FRAME[300:].set_axis(names, axis=1))
    text = r"Partition 1 of X has the columns .*; \['a', 'b', 'c'\] were expected"
    with pytest.raises(ValueError, match=text):
        model().fit(table)
    found = model().fit(FRAME).predict(table)
    with pytest.raises(ValueError, match=text):
        found.compute()


SCRIPT = """
import sys
import numpy as np
from sketchmeans import NystromKMeans
X = np.random.default_rng(0).normal(size=(500, 3))
NystromKMeans(2, n_landmarks=5).fit(X)
assert "dask" not in sys.modules
import dask.array as da
assert "distributed" not in sys.modules
table = da.from_array(X, chunks=(250, 3))
for _ in range(2):
    model = NystromKMeans(2, n_landmarks=20, random_state=0).fit(table)
    assert (model.predict(table).compute() == model.labels_.compute()).all()
import dask, distributed
assert dask.config.get("distributed.comm.timeouts.connect")
"""


@pytest.mark.process
def test_only_what_is_needed_is_imported():
    pytest.importorskip("distributed")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
