"""Files of rows: the same clusters as from the array that they were written from."""

import os
import weakref
import zipfile
from itertools import cycle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from scipy import sparse
from sklearn.decomposition import PCA

from sketchmeans import (
    ApproximateSVD,
    FeatureSampling,
    KernelKMeans,
    LaplacianScore,
    Nystrom,
    NystromKMeans,
    SignProjection,
    SketchedKMeans,
    open_rows,
    select_landmarks,
)
from sketchmeans.data.rows import as_rows
from sketchmeans.data.source_rows import SourceRows
from sketchmeans.data.sources import Source
from sketchmeans.diagnostics import certificate, effective_dimension
from sketchmeans.numerics.parallel import Workers
from tests.numerics.test_memory import _run, linux
from tests.written import (
    N_FEATURES,
    N_ROWS,
    NAMED,
    NAMES,
    SPARSE,
    TEXT,
    TRUTH,
    TYPED,
    WEIGHTS,
    X,
    stream_small_files,
    svmlight,
    write_arrow,
    write_csr,
    write_csr_packed,
    write_csv,
    write_csv_without_header,
    write_npy,
    write_npy_folder,
    write_npy_fortran,
    write_npz_packed,
    write_npz_packed_fortran,
    write_parquet,
    write_parquet_folder,
    write_people,
    write_svmlight_from_one,
)


@pytest.fixture(autouse=True)
def _streamed(monkeypatch):
    stream_small_files(monkeypatch)


# --- the formats --------------------------------------------------------------


def assert_same_numbers(source, rows):
    """Assert that a source gives the rows, in every way of asking."""
    dense = rows.toarray() if sparse.issparse(rows) else rows

    def same(block, expected):
        assert sparse.issparse(block) == source.is_sparse
        assert block.dtype == rows.dtype
        values = block.toarray() if source.is_sparse else block
        np.testing.assert_array_equal(values, expected)

    assert source.shape == rows.shape
    assert source.dtype == rows.dtype
    assert source.is_sparse == sparse.issparse(rows)
    rng = np.random.default_rng(1)
    for start, stop in [(0, 1), (8_990, 9_000), (2_400, 7_050), (0, 9_000), (17, 18)]:
        same(source.read(start, stop), dense[start:stop])
        if not source.is_sparse:
            out = np.empty((stop - start, rows.shape[1]), rows.dtype, source.order)
            assert source.read(start, stop, out) is out
            same(out, dense[start:stop])
    few = np.array([8_999, 0, 5, 5, 2_599, 2_600, 0])
    for indices in (few, np.array([7]), rng.integers(N_ROWS, size=3_000)):
        same(source.take(indices), dense[indices])
    if source.is_sparse:
        assert source.nnz == rows.nnz


@pytest.mark.parametrize(
    ("write", "dtype"), list(zip(TYPED, cycle(["f8", "f4", "u1"]), strict=False))
)
def test_dense_files_hold_the_array(write, dtype, tmp_path):
    rows = (10 * np.abs(X)).astype(dtype)
    source = open_rows(write(tmp_path, rows))
    assert_same_numbers(source, rows)
    assert source.feature_names == (tuple(NAMES) if write in NAMED else None)
    assert repr(source).startswith(f"<9,000 rows of 6 features, {rows.dtype}, in ")
    assert len(source) == 9_000
    source.release()
    np.testing.assert_array_equal(source.read(5, 9), rows[5:9])


@pytest.mark.parametrize(
    ("write", "dtype"), list(zip(TEXT, cycle([None, "float32"]), strict=False))
)
def test_text_holds_the_array(write, dtype, tmp_path):
    rows = X.astype(dtype or "float64")
    source = open_rows(write(tmp_path, rows), dtype=dtype)
    assert_same_numbers(source, rows)
    assert source.feature_names == (tuple(NAMES) if write in NAMED else None)


@pytest.mark.parametrize("write", SPARSE, ids=lambda write: write.__name__)
def test_sparse_files_hold_the_matrix(write, tmp_path):
    rows = sparse.csr_array(np.round(X, 2))
    assert_same_numbers(open_rows(write(tmp_path, rows)), rows)


@pytest.mark.parametrize("dtype", [">f8", "f2", "i8", "?"])
def test_types_of_numbers(dtype, tmp_path):
    rows = X.astype(dtype)
    assert_same_numbers(open_rows(write_npy(tmp_path, rows)), rows)
    if np.dtype(dtype).isnative and dtype != "longdouble":
        assert_same_numbers(open_rows(write_parquet(tmp_path, rows)), rows)
        assert_same_numbers(open_rows(write_arrow(tmp_path, rows)), rows)


def test_an_archive_member_behind_a_long_header(tmp_path):
    # The header of a member may be longer than the directory says.
    path = tmp_path / "rows.npz"
    np.save(tmp_path / "X.npy", X)
    with (
        zipfile.ZipFile(path, "w") as archive,
        archive.open("X.npy", "w", force_zip64=True) as member,
    ):
        member.write((tmp_path / "X.npy").read_bytes())
    assert_same_numbers(open_rows(path), X)


# --- fits ---------------------------------------------------------------------


def _model(**params):
    params = {"n_landmarks": 30, "n_init": 2, "n_jobs": 2, "tol": 1e-2} | params
    return NystromKMeans(4, random_state=0, **params)


def _same_model(found, expected, path, rows):
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert found.cost_ == expected.cost_
    np.testing.assert_array_equal(found.exemplars_, expected.exemplars_)
    np.testing.assert_array_equal(found.predict(path), expected.labels_)
    assert found.cost(path) == expected.cost(rows)


@pytest.fixture(scope="module")
def fitted():
    """Models of the array in float32, float64 and Fortran order."""
    forms = {"f4": X.astype("f4"), "f8": X, "F": np.asfortranarray(X.astype("f4"))}
    return {name: (rows, _model().fit(rows)) for name, rows in forms.items()}


@pytest.mark.parametrize(
    "write",
    [
        write_npy,
        write_npy_fortran,
        write_npy_folder,
        write_npz_packed,
        write_npz_packed_fortran,
        write_parquet,
        write_arrow,
        write_csv_without_header,
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_fit_on_a_file_is_fit_on_the_array(write, tmp_path, fitted):
    form = "f8" if write in TEXT else "f4"
    form = "F" if write in (write_npy_fortran, write_npz_packed_fortran) else form
    rows, expected = fitted[form]
    path = write(tmp_path, rows)
    found = _model().fit(path)
    _same_model(found, expected, path, rows)
    assert hasattr(found, "feature_names_in_") == (write in NAMED)


@pytest.mark.parametrize("write", [write_csr_packed, write_svmlight_from_one])
def test_fit_on_a_sparse_file_is_fit_on_the_matrix(write, tmp_path):
    rows = sparse.csr_array(np.round(X, 2))
    path = write(tmp_path, rows)
    found, expected = _model().fit(path), _model().fit(rows)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_array_equal(found.predict(path), expected.labels_)
    assert found.cost_ == expected.cost_
    assert found.cost(path) == expected.cost(rows)
    assert sparse.issparse(found.landmarks_)


def test_every_method_takes_a_path_a_string_and_a_source(tmp_path, fitted):
    rows, expected = fitted["f4"]
    path = write_npy(tmp_path, rows)
    for given in (path, str(path), open_rows(path)):
        model = _model()
        np.testing.assert_array_equal(model.fit_predict(given), expected.labels_)
        np.testing.assert_array_equal(model.transform(given), expected.transform(rows))
        assert model.score(given) == expected.score(rows)


@pytest.mark.parametrize(
    ("write", "n_jobs"),
    [(write_parquet_folder, 3), (write_csv, 3), (write_npz_packed, 1)],
)
def test_threads_change_nothing(write, n_jobs, tmp_path, fitted):
    rows, expected = fitted["f8"]
    found = _model(n_jobs=n_jobs).fit(write(tmp_path, rows))
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert found.cost_ == expected.cost_


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "linear", "algorithm": "full"},
        {"kernel": "laplacian", "n_landmarks": 10, "gamma": "median"},
        {"reducer": "svd", "landmarks": "kmeans++"},
        {"reducer": PCA(3, random_state=0), "init": np.arange(4), "n_init": 1},
    ],
    ids=lambda params: "-".join(params),
)
def test_every_way_to_fit(params, tmp_path):
    rows = X.astype("f4")
    path = write_npy(tmp_path, rows)
    _same_model(_model(**params).fit(path), _model(**params).fit(rows), path, rows)


@pytest.mark.parametrize("write", [write_npy, write_parquet])
def test_weights(write, tmp_path):
    path = write(tmp_path, X)
    found = _model().fit(path, sample_weight=WEIGHTS)
    expected = _model().fit(X, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert found.cost(path, WEIGHTS) == expected.cost(X, WEIGHTS)
    with pytest.raises(
        ValueError, match=r"sample_weight\.shape=\(3,\) should be \(9000"
    ):
        _model().fit(path, sample_weight=[1, 2, 3])


@pytest.mark.parametrize("reducer", ["svd", "laplacian"])
def test_sketched_k_means(reducer, tmp_path):
    rows = X[:3_000].astype("f4")
    path = write_npy(tmp_path, rows)
    model = SketchedKMeans(4, reducer=reducer, n_init=2, random_state=0)
    found = model.fit(path).labels_.copy()
    np.testing.assert_array_equal(found, model.fit(rows).labels_)
    np.testing.assert_array_equal(model.predict(path), model.predict(rows))


@pytest.mark.parametrize(
    ("write", "n_jobs"), [(write_npy_fortran, 1), (write_parquet, 2), (write_csr, 1)]
)
def test_exact_kernel_k_means(write, n_jobs, tmp_path):
    rows = X[:800]
    rows = sparse.csr_array(rows) if write is write_csr else rows
    rows = np.asfortranarray(rows) if write is write_npy_fortran else rows
    path = write(tmp_path, rows)
    model = KernelKMeans(4, n_init=2, n_jobs=n_jobs, random_state=0)
    found = model.fit(path).labels_
    expected = KernelKMeans(4, n_init=2, random_state=0).fit(rows)
    np.testing.assert_array_equal(found, expected.labels_)
    assert model.cost_ == expected.cost_
    assert model.cost(path) == expected.cost(rows)
    assert model.X_fit_.shape == rows.shape


@pytest.mark.parametrize("estimator", [KernelKMeans, NystromKMeans])
def test_a_precomputed_kernel(estimator, tmp_path):
    K = np.exp(-0.1 * ((X[:300, None] - X[:300]) ** 2).sum(axis=2))
    path = write_npy(tmp_path, K)
    model = estimator(4, kernel="precomputed", n_init=2, random_state=0)
    found = model.fit(path).labels_
    np.testing.assert_array_equal(found, model.fit(K).labels_)
    np.testing.assert_array_equal(model.predict(path), model.predict(K))
    with pytest.raises(
        MemoryError, match="copy of the precomputed matrix needs 720 kB"
    ):
        model.set_params(max_memory="700kB").fit(path)


def test_other_estimators(tmp_path):
    rows = X[:2_000]
    path = write_npy(tmp_path, rows)
    for other in (
        Nystrom(n_landmarks=20, rank=5, random_state=0),
        ApproximateSVD(3, random_state=0),
        FeatureSampling(3, random_state=0),
        SignProjection(3, random_state=0),
        LaplacianScore(3),
    ):
        found = other.fit(path).transform(path)
        np.testing.assert_array_equal(found, other.fit(rows).transform(rows))
    nystrom = Nystrom(n_landmarks=20, random_state=0).fit(path)
    for norm in ("trace", "frobenius", "spectral"):
        error = nystrom.approximation_error(path, norm)
        assert error == nystrom.approximation_error(rows, norm)


def test_a_precomputed_kernel_of_the_map(tmp_path):
    K = np.exp(-0.1 * ((X[:300, None] - X[:300]) ** 2).sum(axis=2))
    path = write_npy(tmp_path, K)
    for landmarks in ("uniform", "cholesky"):
        nystrom = Nystrom("precomputed", landmarks=landmarks, n_landmarks=20)
        nystrom.set_params(random_state=0)
        found = nystrom.fit(path).transform(path)
        np.testing.assert_array_equal(found, nystrom.fit(K).transform(K))
        for norm in ("trace", "spectral"):
            error = nystrom.approximation_error(path, norm)
            assert error == nystrom.approximation_error(K, norm)


def test_landmarks_and_diagnostics(tmp_path):
    path = write_npy(tmp_path, X)
    for method in ("uniform", "rpcholesky"):
        found = select_landmarks(path, 20, method, random_state=0)
        expected = select_landmarks(X, 20, method, random_state=0)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.points, expected.points)
    found = effective_dimension(path, gamma=0.1, random_state=0)
    assert found == effective_dimension(X, gamma=0.1, random_state=0)
    model = _model().fit(path)
    bounds = [certificate(model, rows, "nystrom").ratio for rows in (path, X)]
    assert bounds[0] == bounds[1]


def test_a_small_file_is_read_once(tmp_path, monkeypatch, fitted):
    rows, expected = fitted["f4"]
    path = write_parquet(tmp_path, rows)
    with Workers(1) as workers:
        assert isinstance(as_rows(path, workers), SourceRows)
        monkeypatch.setattr("sketchmeans.data.rows.IN_MEMORY_BYTES", rows.nbytes)
        held = as_rows(path, workers)
        assert not isinstance(held, SourceRows)
        assert held.memory == rows.nbytes  # the plan has to know
    _same_model(_model().fit(path), expected, path, rows)


class _Squares(Source):
    """A source of a user's own: values are computed."""

    path, shape, dtype = "squares", (20_000, 3), np.dtype(np.float64)

    def read(self, start, stop, out=None):
        return self.take(np.arange(start, stop))

    def take(self, indices):
        return np.stack([np.sin(indices), np.cos(indices), indices % 7], axis=1)


def test_a_source_of_your_own():
    source = _Squares()
    found, expected = _model().fit(source), _model().fit(source.read(0, 20_000))
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    with pytest.raises(ValueError, match="squares was opened without a label_column"):
        source.labels()


# --- blocks -------------------------------------------------------------------


def test_a_block_that_is_held_is_not_overwritten(tmp_path):
    path = write_npy(tmp_path, X)
    with Workers(1) as workers:
        rows = as_rows(path, workers)
        first = rows.block(0, 1_000)
        part = first[10:20, 1:3]
        again = rows.block(0, 1_000)
        assert np.shares_memory(first, again)
        del first, again
        second = rows.block(1_000, 2_000)
        np.testing.assert_array_equal(part, X[10:20, 1:3])
        np.testing.assert_array_equal(second, X[1_000:2_000])
        with pytest.raises(ValueError, match="read-only"):
            second[0, 0] = 1.0
        place = second.ctypes.data
        del second
        assert rows.block(2_000, 3_000).ctypes.data == place  # nobody held it


# --- names, columns and labels ------------------------------------------------


def test_columns_are_chosen_by_name(tmp_path):
    for path in write_people(tmp_path):
        source = open_rows(path, ["height", "age"])
        assert source.feature_names == ("height", "age")
        np.testing.assert_array_equal(
            source.read(1, 4), [[2.0, 30.0], [3.0, 40.0], [4.0, 50.0]]
        )
        source = open_rows(path, label_column="name")
        assert source.feature_names == ("age", "height")
        np.testing.assert_array_equal(source.labels(), list("abba"))
        source = open_rows(path, ["age"], label_column="height")
        assert source.shape == (4, 1)
        assert source.labels().tolist() == [1, 2, 3, 4]
        with pytest.raises(ValueError, match=r"people.* was opened without"):
            open_rows(path, ["age"]).labels()


def test_labels_of_svmlight_and_of_several_files(tmp_path):
    rows = sparse.csr_array(X)
    path = write_svmlight_from_one(tmp_path, rows)
    np.testing.assert_array_equal(open_rows(path).labels(), TRUTH)
    for i, part in enumerate(np.split(np.arange(100), [10, 10, 60])):
        table = pa.table({"x": part * 1.0, "y": part})
        pq.write_table(table, tmp_path / f"{i}.parquet")
    source = open_rows(tmp_path / "*.parquet", label_column="y")
    np.testing.assert_array_equal(source.labels(), np.arange(100))


def test_feature_names(tmp_path):
    path = write_parquet(tmp_path, X)
    model = _model().fit(path)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.n_features_in_ == N_FEATURES
    frame = pd.DataFrame(X, columns=NAMES)
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    expected = _model().fit(frame)
    np.testing.assert_array_equal(expected.predict(path), model.labels_)
    with pytest.raises(ValueError, match="must be in the same order as they were in"):
        model.predict(open_rows(path, NAMES[::-1]))
    with pytest.raises(ValueError, match="now missing"):
        model.predict(open_rows(path, NAMES[:-1]))
    assert not hasattr(model.fit(write_npy(tmp_path, X)), "feature_names_in_")
    with pytest.raises(
        ValueError, match="X has 5 features, but NystromKMeans is expec"
    ):
        model.predict(write_npy(tmp_path, X[:, :5]))


def test_the_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.DataFrame(
        X[:9, :2], columns=["a", "b"], index=[f"r{i}" for i in range(9)]
    )
    frame.to_parquet(tmp_path / "frame.parquet")
    assert open_rows(tmp_path / "frame.parquet").feature_names == ("a", "b")
    named = frame.rename_axis("id")
    named.to_parquet(tmp_path / "named.parquet")
    assert open_rows(tmp_path / "named.parquet").feature_names == ("a", "b")


def test_types_of_columns_have_a_common_one(tmp_path):
    columns = {"a": np.ones(3, "f4"), "b": np.arange(3, dtype="u1"), "c": [True] * 3}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    assert open_rows(tmp_path / "rows.parquet").dtype == np.float32
    assert open_rows(tmp_path / "rows.parquet", ["b", "c"]).dtype == np.uint8
    wide = open_rows(tmp_path / "rows.parquet", dtype="float64")
    np.testing.assert_array_equal(wide.read(0, 2), [[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    assert wide.read(0, 2).dtype == np.float64


def test_svmlight_files_for_prediction_may_miss_the_last_features(tmp_path):
    rows = sparse.csr_array(np.round(X, 2))
    model = _model().fit(svmlight(tmp_path / "rows.svm", rows))
    narrow = rows.copy()[:50]
    narrow.data[narrow.indices == N_FEATURES - 1] = 0.0
    narrow.eliminate_zeros()
    path = svmlight(tmp_path / "narrow.svm", narrow)
    assert open_rows(path).shape == (50, N_FEATURES - 1)
    np.testing.assert_array_equal(model.predict(path), model.predict(narrow))


# --- labels to a file ---------------------------------------------------------


def test_labels_out(tmp_path, fitted):
    rows, expected = fitted["f4"]
    path = tmp_path / "labels.npy"
    path.write_text("an old file")
    model = _model().fit(write_npy(tmp_path, rows), labels_out=path)
    assert isinstance(model.labels_, np.memmap)
    assert not model.labels_.flags.writeable
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(np.load(path), expected.labels_)
    assert sorted(os.listdir(tmp_path)) == ["labels.npy", "rows.npy"]


def test_labels_out_of_a_fit_that_fails_are_not_touched(tmp_path):
    rows = X.copy()
    rows[8_000, 2] = np.nan
    path = tmp_path / "labels.npy"
    np.save(path, np.arange(3))
    with pytest.raises(
        ValueError, match=r"rows\.npy contains NaN \(row 8000, column 2"
    ):
        _model().fit(write_npy(tmp_path, rows), labels_out=path)
    assert np.load(path).tolist() == [0, 1, 2]
    assert sorted(os.listdir(tmp_path)) == ["labels.npy", "rows.npy"]


def test_a_disk_that_is_full_leaves_nothing(tmp_path, monkeypatch):
    def full(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr("numpy.save", full)
    model = _model()
    with pytest.raises(OSError, match="no space left"):
        model.fit(X, labels_out=tmp_path / "labels.npy")
    assert os.listdir(tmp_path) == []
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize("given", ["labels.csv", "no/such/folder/labels.npy", 7])
def test_labels_out_is_checked_first(given):
    with pytest.raises(ValueError, match=r"labels_out=.*should be the path of a \.npy"):
        _model().fit(X, labels_out=given)


# --- memory -------------------------------------------------------------------


def _write_clusters(path, n_rows, n_features):
    """Write float64 rows of eight clusters, never all of them in memory."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=3.0, size=(8, n_features))
    noise = rng.normal(size=(9_973, n_features))
    table = np.lib.format.open_memmap(path, "w+", "f8", (n_rows, n_features))
    for start in range(0, n_rows, len(noise)):
        part = table[start : start + len(noise)]
        part[...] = noise[: len(part)]
        part += centres[rng.integers(8, size=len(part))]
    table.flush()


FIT = """
model = NystromKMeans(8, n_landmarks=40, n_init=2, tol=0.05, random_state=0, n_jobs=2)
def work():
    labels = model.set_params(max_memory=budget).fit(sys.argv[1]).labels_
    return {"n": len(labels), "m": len(model.landmarks_), "budget": budget}
"""


@linux
@pytest.mark.slow
@pytest.mark.memory
@pytest.mark.process
def test_a_file_three_times_as_large_as_the_memory(tmp_path):
    _write_clusters(tmp_path / "rows.npy", 335_000, 180)
    budget = 158_000_000
    assert (tmp_path / "rows.npy").stat().st_size > 3 * budget
    code = f"{FIT}\nbudget = {budget}\nmeasure(work)"
    found = _run(code, tmp_path / "rows.npy")
    (tmp_path / "rows.npy").unlink()  # pytest would keep it
    assert (found["n"], found["m"]) == (335_000, 40)
    assert found["peak"] < budget


@linux
@pytest.mark.slow
@pytest.mark.memory
@pytest.mark.process
def test_a_fit_on_parquet_stays_in_the_smallest_budget_that_it_accepts(tmp_path):
    rows = np.random.default_rng(0).normal(size=(70_000, 60)).astype(np.float32)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({f"c{j}": rows[:, j] for j in range(60)}), path)
    code = """
import re
budget = 1
for _ in range(2):  # what reading takes, then all
    try:
        work()
    except MemoryError as error:
        size = re.search(r"(?:takes|need) ([0-9.]+) MB", str(error))[1]
        budget = int(1.01e6 * float(size))
measure(work)
"""
    found = _run(FIT + code, path)
    assert found["n"] == 70_000
    assert found["peak"] <= found["budget"]


@pytest.mark.parametrize(
    "write", [write_npy, write_npz_packed, write_parquet, write_arrow, write_csv]
)
def test_a_source_is_freed_with_its_last_reference(write, tmp_path):
    # What pyarrow holds would not bring Python to look for cycles.
    source = open_rows(write(tmp_path, X))
    freed = weakref.ref(source)
    _model().fit(source)
    del source
    assert freed() is None
