"""Files that cannot be read: the error names the file, the row and the column."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from scipy import sparse

from sketchmeans import (
    NystromKMeans,
    open_rows,
)
from tests.written import (
    NAMED,
    X,
    as_table,
    delimited,
    stream_small_files,
    write_arrow,
    write_csr,
    write_csr_folder,
    write_csr_packed,
    write_csv,
    write_csv_without_header,
    write_feather_packed,
    write_npy,
    write_npy_folder,
    write_npz,
    write_npz_packed,
    write_parquet,
    write_people,
    write_svmlight_folder,
    write_svmlight_from_one,
)


@pytest.fixture(autouse=True)
def _streamed(monkeypatch):
    stream_small_files(monkeypatch)


def _model():
    return NystromKMeans(4, n_landmarks=30, n_init=1, tol=0.1, random_state=0)


def _refused(path, *text, kind=ValueError, **options):
    """Assert that a file is refused, by `open_rows` or when it is read."""
    model = NystromKMeans(1, n_landmarks=2, random_state=0)
    with pytest.raises(kind) as caught:
        model.fit(open_rows(path, **options))
    for part in text:
        assert part in str(caught.value)


def test_what_is_not_there(tmp_path):
    _refused(tmp_path / "no.npy", "There is no file", "no.npy", kind=FileNotFoundError)
    _refused(tmp_path / "no*.npy", "There is no file", kind=FileNotFoundError)
    _refused(tmp_path, "has no file that ends in one of", kind=FileNotFoundError)
    (tmp_path / "rows.docx").write_text("?")
    (tmp_path / "rows.xls").write_text("?")
    _refused(tmp_path / "rows.docx", "rows.docx ends in '.docx'; it should end in one")
    _refused(tmp_path / "rows.xls", "rows.xls ends in '.xls'; save it as .xlsx")
    _refused(7, "path=7 should be a string or a PathLike")
    with pytest.raises(FileNotFoundError, match=r"There is no file no\.npy"):
        _model().fit("no.npy")


@pytest.mark.parametrize(
    "suffix", ["npy", "npz", "parquet", "feather", "csv", "svmlight"]
)
def test_empty_and_foreign_files(suffix, tmp_path):
    path = tmp_path / f"rows.{suffix}"
    path.write_bytes(b"")
    _refused(path, f"rows.{suffix} is empty")
    path.write_bytes(b"\x93\xff no such file \x00\x01\n" * 9)
    _refused(path, f"rows.{suffix} cannot be read")


def test_tables_without_rows_or_features(tmp_path):
    for path in (
        write_npy(tmp_path, X[:0]),
        write_parquet(tmp_path, X[:0]),
        write_npz(tmp_path, X[:0]),
    ):
        _refused(path, f"{path} has no rows")
    _refused(delimited(tmp_path / "rows.csv", X[:0]), "rows.csv has no rows")
    _refused(write_npy(tmp_path, X[:, :0]), "rows.npy has no features")
    pq.write_table(pa.table({"y": [1, 2]}), tmp_path / "y.parquet")
    _refused(tmp_path / "y.parquet", "has no features", label_column="y")
    (tmp_path / "rows.svm").write_text("# nothing\n")
    _refused(tmp_path / "rows.svm", "rows.svm has no rows")
    (tmp_path / "rows.svm").write_text("1\n2\n")
    _refused(tmp_path / "rows.svm", "rows.svm has no features")


@pytest.mark.parametrize(
    "write",
    [
        write_npy,
        write_npz,
        write_npz_packed,
        write_csr,
        write_csr_packed,
        write_parquet,
        write_arrow,
        write_feather_packed,
    ],
)
def test_truncated_files(write, tmp_path):
    rows = sparse.csr_array(X) if write in (write_csr, write_csr_packed) else X
    path = Path(write(tmp_path, rows))
    os.truncate(path, path.stat().st_size - 100_000)
    _refused(
        path, path.name, "is truncated" if write is write_npy else "cannot be read"
    )


def test_a_file_that_is_cut_off_while_it_is_read(tmp_path):
    path = write_npy(tmp_path, X)
    source = open_rows(path)
    source.read(0, 10)
    os.truncate(path, path.stat().st_size - 100_000)
    with pytest.raises(
        ValueError, match=r"rows\.npy has changed since .* 432,128 bytes and has 332"
    ):
        source.read(0, 9_000)


@pytest.mark.parametrize(
    "write", [write_npz_packed, write_parquet, write_feather_packed]
)
def test_damaged_values(write, tmp_path):
    path = Path(write(tmp_path, X))
    if write is write_parquet:  # which notices nothing without these sums
        pq.write_table(as_table(X), path, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 5_000] = bytes(5_000)
    path.write_bytes(data)
    _refused(path, path.name, "damaged")


@pytest.mark.parametrize(
    ("write", "value"),
    [
        (write_npy, "-inf"),
        (write_npy_folder, "nan"),
        (write_npz_packed, "inf"),
        (write_parquet, "nan"),
        (write_csv, "-inf"),
        (write_arrow, "inf"),
    ],
)
def test_values_that_are_not_finite(write, value, tmp_path):
    rows = X.copy()
    rows[6_000, 3] = float(value)
    path = write(tmp_path, rows)
    row = 6_000 - 2_600 if write is write_npy_folder else 6_000
    file = "part-3.npy" if write is write_npy_folder else Path(path).name
    column = "'feature 3'" if write in NAMED else "3"
    what = "NaN" if value == "nan" else "infinity"
    _refused(path, f"{file} contains {what} (row {row}, column {column})")
    model = _model().fit(X) if write not in NAMED else _model().fit(write(tmp_path, X))
    path = write(tmp_path, rows)
    for method in (model.predict, model.transform, model.cost):
        with pytest.raises(ValueError, match=rf"{file} contains {what} \(row {row}"):
            method(path)


def test_a_sparse_value_that_is_not_finite(tmp_path):
    rows = X.copy()
    rows[6_000, 3] = np.nan
    for write in (write_csr_folder, write_csr_packed, write_svmlight_folder):
        folder = tmp_path / write.__name__
        folder.mkdir()
        path = write(folder, sparse.csr_array(rows))
        row = {"write_csr_folder": 1_000, "write_svmlight_folder": 2_000}.get(
            write.__name__, 6_000
        )
        _refused(path, f"contains NaN (row {row}, column 3)")


def test_missing_values(tmp_path):
    for path in write_people(tmp_path, age=[1.0, 2.0, None, 4.0]):
        text = f"{path} has no value in row 2, column 'age'"
        _refused(path, text, columns=["age", "height"])
        open_rows(path, ["height"])


def test_arrays_that_are_no_tables(tmp_path):
    _refused(write_npy(tmp_path, X[0]), "rows.npy holds an array of shape (6,)")
    _refused(write_npy(tmp_path, X * 1j), "rows.npy holds values of type complex128")
    _refused(write_npy(tmp_path, X.astype(str)), "they should be real numbers")
    _refused(write_npy(tmp_path, X.astype(object)), "holds values of type object")
    structured = np.zeros(3, dtype=[("a", float), ("b", float)])
    _refused(write_npy(tmp_path, structured), "they should be real numbers")
    structured = np.zeros(3, dtype=[("α", float)])
    with pytest.warns(UserWarning, match="Stored array in format 3.0"):
        path = write_npy(tmp_path, structured)
    _refused(path, "holds a structured array")
    np.savez(tmp_path / "two.npz", a=X, b=X)
    _refused(tmp_path / "two.npz", "two.npz holds the arrays ['a', 'b']")
    np.savez(tmp_path / "two.npz", X=X[0], b=X)
    _refused(tmp_path / "two.npz", "holds an array of shape (6,)")
    sparse.save_npz(tmp_path / "csc.npz", sparse.csc_array(X))
    _refused(tmp_path / "csc.npz", "in 'csc' format; it should be 'csr'")


def test_a_csr_matrix_whose_parts_do_not_fit(tmp_path):
    parts = {"indptr": [0, 1, 3], "indices": [0, 1], "data": [1.0, 2.0]}
    np.savez(tmp_path / "rows.npz", shape=(2, 2), format=b"csr", **parts)
    text = "its row pointers end at 3; they should start at 0, never fall, and end at 2"
    _refused(tmp_path / "rows.npz", text)


def test_columns_that_are_not_there(tmp_path):
    for path in write_people(tmp_path):
        _refused(path, "has no column 'weight'; its columns are", columns=["weight"])
        _refused(path, "has no column 'y'", columns=["age"], label_column="y")
        _refused(path, "columns='age' should be a list", columns="age")
        _refused(path, "has no features; at least one", columns=[])
        _refused(path, "a list of different names", columns=["age", "age"])
        text = "label_column='age' should not be one of columns=['age']"
        _refused(path, text, columns=["age"], label_column="age")
    two = pa.table([[1.0], [2.0], [3.0]], names=["a", "a", "b"])
    pq.write_table(two, tmp_path / "two.parquet")
    _refused(tmp_path / "two.parquet", "more than one column 'a'")


def test_options_that_mean_nothing(tmp_path):
    path, rows = write_npy(tmp_path, X), sparse.csr_array(X)
    _refused(path, "columns=['a'] should be None for", columns=["a"])
    _refused(path, "label_column='y' should be None", "no named col", label_column="y")
    _refused(path, "dtype='float32' should be None", "a type of its", dtype="float32")
    _refused(path, "dtype='int8' should be 'float32', 'float64' or None", dtype="int8")
    svm = write_svmlight_from_one(tmp_path, rows)
    _refused(svm, "columns=['a'] should be None for", columns=["a"])
    csv = write_csv_without_header(tmp_path, X)
    _refused(csv, "starts with a row and not with names", columns=["a"])


def test_columns_that_are_no_numbers(tmp_path):
    parquet, arrow, csv = write_people(tmp_path)
    for path in (parquet, arrow):
        _refused(path, "has a column 'name' of type string, which is not a number")
    _refused(
        csv, "people.csv cannot be read at row 0, column 'name': 'a' is not a number"
    )
    when = pa.array([0, 1, 2, 3], pa.timestamp("s"))
    parquet, arrow, csv = write_people(tmp_path, name=when)
    _refused(parquet, "has a column 'name' of type timestamp")


def test_text_that_is_no_table(tmp_path):
    path = tmp_path / "rows.csv"
    good = "1.5,2\n" * 20_000  # several pieces

    def refused(text, *message):
        path.write_text("a,b\n" + text)
        _refused(path, *message)

    refused(
        good + "\n1,x\n" + good,
        f"{path} cannot be read at row 20000, column 'b': 'x' is not a number",
    )
    refused(good + "1\n", f"{path} cannot be read at row 20000: it has 1 values, and 2")
    refused(good + "1,2,3\n", "at row 20000: it has 3 values, and 2 were expected")
    refused(good + "1,\n", f"{path} has no value in row 20000, column 'b'")
    path.write_text("\n \n")
    _refused(path, "has no names and no rows")


def test_svmlight_text_that_is_none(tmp_path):
    path = tmp_path / "rows.svm"
    good = "1 1:2.5 7:1 # fine\n" * 5_000
    for bad in ("1 1:x\n", "one 1:2\n", "1 2\n"):
        path.write_text(good + "# more\n" + bad + good)
        _refused(
            path, f"{path} cannot be read at row 5000: ", "A line should be 'label"
        )


def test_folders_whose_files_differ(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X[:, :2])
    _refused(tmp_path, "The number of features of", "b.npy is 2, that of", "is 6")
    np.save(tmp_path / "b.npy", X.astype("f4"))
    _refused(tmp_path, "The type of", "b.npy is float32, that of", "is float64")
    write_csv(tmp_path, X)
    _refused(tmp_path, "holds both", "all files should be of one kind")
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"b": [1.0]}), tmp_path / "b.parquet")
    _refused(tmp_path / "*.parquet", "The list of features of", "('b',)")


@pytest.mark.parametrize("write", [write_parquet, write_csv])
def test_without_pyarrow(tmp_path, monkeypatch, write):
    path = write(tmp_path, X)
    for name in ("parquet", "delimited", "arrow"):
        monkeypatch.delitem(
            sys.modules, f"sketchmeans.data.sources.{name}", raising=False
        )
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    text = "is read through pyarrow, which is not installed: pip install "
    text = rf"{re.escape(str(path))} {text}sketchmeans\[files\]$"
    with pytest.raises(ImportError, match=text):
        open_rows(path)
    with pytest.raises(ImportError, match=text):
        NystromKMeans(2).fit(path)
    assert open_rows(write_npy(tmp_path, X)).shape == X.shape
