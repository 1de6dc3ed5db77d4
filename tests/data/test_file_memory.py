"""Small files that want much memory: refused, or read a little at a time."""

import inspect
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather
from pyarrow import parquet as pq

from sketchmeans import KernelKMeans, NystromKMeans, TableClusterer, open_rows
from sketchmeans.data.sources import files, open_records
from tests.numerics.test_memory import _run, linux
from tests.pairs import every_value
from tests.written import X


def peak_of(function):
    tracemalloc.start()
    try:
        function()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


def test_an_archive_is_opened_without_being_unpacked(tmp_path):
    # 32 MB of row pointers, and 64 MB of values, in some kilobytes.
    n = 4_000_000
    parts = {"data": np.ones(1), "indices": np.zeros(1, np.int32)}
    parts |= {"shape": np.array([n, 3]), "format": np.array("csr")}
    indptr = np.append(np.zeros(n, np.int64), 1)
    np.savez_compressed(tmp_path / "csr.npz", indptr=indptr, **parts)
    table = np.zeros((2_000_000, 4), order="F")
    np.savez_compressed(tmp_path / "table.npz", X=table)
    del indptr, table
    for name in ("csr.npz", "table.npz"):
        path = tmp_path / name
        assert path.stat().st_size < 200_000
        assert peak_of(lambda path=path: open_rows(path)) < 16e6
    with pytest.raises(MemoryError, match=r"table\.npz takes 6\d\.\d MB; max_memory"):
        NystromKMeans(2, max_memory="60MB").fit(tmp_path / "table.npz")


def test_a_line_without_an_end_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_RECORD_BYTES", 2 * 2**20)
    path = tmp_path / "rows.csv"
    path.write_bytes(b"1," * (15 * 2**20))

    def refused():
        with pytest.raises(ValueError, match="has no end within 2,097,152 bytes"):
            open_rows(path)

    assert peak_of(refused) < 12e6


def never_read(monkeypatch, path, model, match):
    """Assert that a model refuses a file before any of its rows is read."""
    source = open_rows(path)
    monkeypatch.setattr(source, "read", lambda *args: pytest.fail("it was read"))
    monkeypatch.setattr(source, "take", lambda *args: pytest.fail("it was read"))
    with pytest.raises(MemoryError, match=match):
        model.fit(source)


@every_value
@pytest.mark.parametrize("wrap", [lambda model: model, TableClusterer])
@pytest.mark.parametrize("estimator", [NystromKMeans, KernelKMeans])
def test_parquet_is_refused_before_it_is_read(estimator, wrap, tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    rows = np.tile(X, (70, 1))  # several batches
    pq.write_table(pa.table({c: rows[:, j] for j, c in enumerate("abcdef")}), path)
    model = wrap(estimator(2, max_memory="20MB"))
    never_read(monkeypatch, path, model, r"To read rows of 6 features from .*20 MB")


def test_large_pages_are_counted(tmp_path):
    path = tmp_path / "rows.parquet"
    n = 400_000
    table = pa.table({"a": np.random.default_rng(0).normal(size=n)})
    pq.write_table(table, path)
    usual = open_rows(path).memory
    large = {"data_page_size": 2**28, "write_batch_size": n, "max_rows_per_page": n}
    if "max_rows_per_page" not in inspect.signature(pq.write_table).parameters:
        large.pop("max_rows_per_page")
    pq.write_table(table, path, use_dictionary=False, compression="none", **large)
    assert open_rows(path).memory >= usual + n * 8


def test_batches_of_arrow_that_have_to_be_unpacked_are_counted(tmp_path):
    path = str(tmp_path / "rows.feather")
    table = pa.table({"a": np.random.default_rng(0).normal(size=500_000)})
    for compression, least in (("uncompressed", 0), ("lz4", 4_000_000)):
        feather.write_feather(
            table, path, compression=compression, chunksize=len(table)
        )
        source = open_rows(path)
        assert source.memory + source.thread_memory >= least + 24e6
        assert (source.thread_memory < 2e6) == (compression == "uncompressed")


def test_features_by_the_billion(tmp_path):
    path = tmp_path / "rows.svmlight"
    path.write_text("1 1:1\n1 2000000000:1\n1 5:2\n")
    with pytest.raises(MemoryError, match=r"rows of 2,000,000,000 features .* 64 GB"):
        NystromKMeans(2, max_memory="1GB").fit(path)


@linux
@pytest.mark.slow
@pytest.mark.memory
@pytest.mark.process
def test_a_raw_table_stays_in_its_budget(tmp_path):
    rng = np.random.default_rng(0)
    n = 260_000
    groups = rng.integers(4, size=n)
    words = np.array(["basic", "plus", "pro", "team", "trial"])
    columns = {
        "id": np.arange(n),
        "revenue": np.exp(rng.normal(groups, 1.0)).round(2),
        "plan": words[np.where(rng.random(n) < 0.7, groups, 4)],
        "city": words[rng.integers(5, size=n)],
        "day": np.datetime64("2020-01-01") + rng.integers(900, size=n),
        "note": words[rng.integers(5, size=n)],
        **{f"x{j}": (groups + rng.normal(size=n)).round(4) for j in range(4)},
    }
    path = tmp_path / "table.csv"
    csv.write_csv(pa.table(columns), path)
    code = """
import pyarrow.compute, pyarrow.csv
from sketchmeans import TableClusterer
model = TableClusterer(NystromKMeans(4, max_memory="180MB", random_state=0, n_jobs=2))
measure(lambda: {"n": len(model.fit(sys.argv[1]).labels_)})
"""
    found = _run(code, path)
    path.unlink()  # pytest would keep it
    assert found["n"] == n
    assert found["peak"] < 180_000_000


def test_reading_a_raw_table_is_counted(tmp_path):
    n = 60_000
    words = np.array(["red", "green", "blue"])[np.arange(n) % 3]
    columns = {"word": words, "x": np.sin(np.arange(n)), "y": np.cos(np.arange(n))}
    for number in range(4):
        csv.write_csv(pa.table(columns), tmp_path / f"{number}.csv")
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(tmp_path / "0.csv")
    assert model.prepare(tmp_path / "0.csv").memory > 24e6
    records = open_records(str(tmp_path / "*.csv"))
    for start in range(0, len(records), n // 2):
        records.read(start, start + n // 2)
    is_kept = [bool(part._cache) for part in records._parts]
    assert is_kept == [False, False, True, True]


def test_rows_of_a_raw_table_are_taken_in_any_order():
    n = 9_000
    frame = {"word": [f"w{i % 5}" for i in range(n)], "x": np.arange(n) % 1_000}
    table = pa.table(frame)
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(table)
    source = model.prepare(table)
    numbers = np.random.default_rng(0).permutation(n)
    np.testing.assert_array_equal(source.take(numbers), source.read(0, n)[numbers])
