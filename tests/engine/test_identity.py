"""What tells one fit from another: every value, and nothing but values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from sketchmeans import NystromKMeans, open_rows
from sketchmeans.data.rows import Rows, as_rows
from sketchmeans.data.source_rows import SourceRows
from sketchmeans.engine.identity import describe, digest_rows, identify_fit
from sketchmeans.kernels import RBF
from sketchmeans.landmarks import KernelKMeansPlusPlus
from sketchmeans.numerics.parallel import Workers


def digest(X, weights=None, n_jobs=1):
    with Workers(n_jobs) as workers:
        return digest_rows(as_rows(X, workers, weights))


TABLES = arrays.arrays(
    st.sampled_from([np.float64, np.float32, np.int16, np.uint8, np.bool_]),
    st.tuples(st.integers(1, 30), st.integers(1, 4)),
    elements={"allow_nan": False, "allow_infinity": False},
)


@settings(max_examples=60, deadline=None)
@given(TABLES, st.data())
def test_every_value_counts_and_the_container_does_not(X, data):
    same = [np.asfortranarray(X), X.astype(X.dtype.newbyteorder(">")), X[::-1][::-1]]
    assert {digest(other) for other in same} == {digest(X)}
    assert digest(sparse.csr_array(X)) == digest(sparse.csr_matrix(X))
    other = X.copy()
    place = tuple(data.draw(st.integers(0, size - 1)) for size in X.shape)
    other[place] = 0 if X[place] else 1
    assert digest(other) != digest(X)
    assert digest(sparse.csr_array(other)) != digest(sparse.csr_array(X))


def test_files_threads_and_blocks(tmp_path):
    X = np.random.default_rng(0).normal(size=(10_000, 3)).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    with Workers(2) as workers:
        source = open_rows(tmp_path / "rows.npy")
        assert digest_rows(SourceRows(source, workers)) == digest(X)
        assert digest_rows(Rows(X, workers)) == digest(X, n_jobs=1)
    assert digest(X[::-1]) != digest(X)


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (np.arange(9.0), np.arange(9.0) + (np.arange(9) == 4) * 1e-15),
        (np.arange(2000.0), np.where(np.arange(2000) == 1000, -1.0, np.arange(2000.0))),
        (sparse.eye_array(5, format="csr"), sparse.eye_array(5, format="csr") * 2),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(3, np.float32), np.zeros(3)),
        ([1, 2], (1, 2)),
        ({"a": 1, "b": np.ones(2)}, {"a": 1, "b": np.zeros(2)}),
        (RBF(0.5), RBF(0.25)),
        (KernelKMeansPlusPlus(refine=True), KernelKMeansPlusPlus(refine=False)),
        (np.array(["a", "b"], dtype=object), np.array(["a", "c"], dtype=object)),
        (1, True),
        ("1", 1),
    ],
)
def test_parameters_differ_by_value(value, other):
    assert describe(value, "p") != describe(other, "p")


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (sparse.eye_array(5, format="csr"), sparse.eye_array(5, format="coo")),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.int64(3), 3),
        (RBF(0.5), RBF(0.5)),
        (np.ones((2, 3)), np.asfortranarray(np.ones((2, 3)))),
    ],
)
def test_parameters_of_the_same_value(value, other):
    assert describe(value, "p") == describe(other, "p")


def test_long_lists_are_kept_short():
    X = np.ones((4, 2))
    with Workers(1) as workers:
        rows = as_rows(X, workers)
        one, two = (
            identify_fit(NystromKMeans(2, init=[0] * 10**5 + [last]), rows)["init"]
            for last in (0, 1)
        )
    assert one != two
    assert len(one) < 400
