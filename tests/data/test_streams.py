"""Tables from elsewhere: streams of Arrow batches, folders with partitions, URLs."""

import duckdb
import fsspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from sketchmeans import NystromKMeans, TableClusterer, open_rows
from sketchmeans.data.preparation import as_table
from sketchmeans.data.sources import as_source, open_records, streams

N = 500
RNG = np.random.default_rng(0)
TABLE = pa.table(
    {
        "x": RNG.normal(size=N) + np.repeat([0.0, 9.0], N // 2),
        "word": [f"w{i % 3}" for i in range(N)],
        "n": np.arange(N),
    }
)


def write_dataset(folder):
    pq.write_table(TABLE, folder / "t.parquet", row_group_size=100)
    return ds.dataset(folder / "t.parquet")


STREAMS = {
    "reader": lambda folder: TABLE.to_reader(max_chunksize=60),
    "dataset": write_dataset,
    "lazy frame": lambda folder: pl.from_arrow(TABLE).lazy(),
    "relation": lambda folder: duckdb.arrow(TABLE).order("n"),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_streams_are_tables(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(streams, "_BATCH_BYTES", 2_000)
    table = as_table(STREAMS[kind](tmp_path))
    assert {name: kind is None for name, kind in table.types.items()} == {
        "x": True,
        "word": False,
        "n": True,
    }
    found = table.records()
    assert found.read(0, N).to_pydict() == TABLE.to_pydict()
    assert found.take([499, 3])["word"].to_pylist() == ["w1", "w0"]
    rows = table.open(["n", "x"])
    expected = np.column_stack([TABLE["n"], TABLE["x"]])
    np.testing.assert_array_equal(rows.read(0, N), expected)
    assert table.values("word")[:2].tolist() == ["w0", "w1"]


@pytest.mark.parametrize("kind", STREAMS)
def test_estimators_take_streams(tmp_path, kind):
    numbers = TABLE.select(["x", "n"]).cast(pa.schema([("x", "f8"), ("n", "f8")]))
    direct = NystromKMeans(2, random_state=0).fit(numbers.to_pandas().to_numpy())
    model = TableClusterer(
        NystromKMeans(2, random_state=0), columns=["x"], scale="none"
    )
    labels = model.fit(STREAMS[kind](tmp_path)).labels_
    assert len(set(labels[:250])) == len(set(labels[250:])) == 1
    assert direct.labels_.shape == labels.shape


def test_a_stream_without_words_is_a_source():
    stream = TABLE.select(["x", "n"]).to_reader()
    source = as_source(stream)
    assert source.shape == (N, 2)
    assert NystromKMeans(2, random_state=0).fit(source).labels_.shape == (N,)
    assert as_source(TABLE) is None  # in memory already


def test_decimals_of_a_database_are_numbers():
    relation = duckdb.sql("select 1.25::decimal(9, 2) as price, 'a' as word")
    table = as_table(relation)
    assert table.types == {"price": None, "word": "string"}
    assert table.records().read(0, 1).to_pylist() == [{"price": 1.25, "word": "a"}]


def test_a_stream_that_breaks_off():
    def batches():
        yield from TABLE.to_batches(max_chunksize=100)[:1]
        raise pa.ArrowInvalid("the line is dead")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(ValueError, match=r"RecordBatchReader cannot be read: .*dead.$"):
        as_table(reader)


# --- folders whose names are values ---------------------------------------------------


def write_hive(folder, **more):
    for year, town, value in ((2023, "Ulm", 1.5), (2024, "Bad Urach", 2.5)):
        table = pa.table({"x": [value, value + 0.25], "year": [year] * 2, **more})
        table = table.append_column("town", pa.array([town] * 2))
        pq.write_to_dataset(table, folder, partition_cols=["year", "town"])
    return folder


def test_folders_name_columns(tmp_path):
    folder = write_hive(tmp_path / "rows")
    table = as_table(folder)
    assert table.types == {"x": None, "year": None, "town": "string"}
    assert table.records().read(1, 3).to_pylist() == [
        {"x": 1.75, "year": 2023, "town": "Ulm"},
        {"x": 2.5, "year": 2024, "town": "Bad Urach"},
    ]
    assert table.records(["town"]).read(0, 1).to_pylist() == [{"town": "Ulm"}]
    rows = open_rows(folder)
    assert rows.feature_names == ("x", "year")
    np.testing.assert_array_equal(
        rows.read(0, 4), [[1.5, 2023], [1.75, 2023], [2.5, 2024], [2.75, 2024]]
    )
    some = open_rows(folder, ["year", "x"], label_column="town")
    np.testing.assert_array_equal(some.take(np.array([3])), [[2024, 2.75]])
    assert some.labels().tolist() == ["Ulm", "Ulm", "Bad Urach", "Bad Urach"]
    assert ds.dataset(folder, partitioning="hive").count_rows() == len(rows)


def test_partitions_that_do_not_fit(tmp_path):
    folder = write_hive(tmp_path / "rows")
    with pytest.raises(ValueError, match="should have a column that is in the files"):
        open_rows(folder, ["year"])
    with pytest.raises(ValueError, match="no column 'monht'"):
        open_rows(folder, ["x", "monht"])
    with pytest.raises(ValueError, match="no column 'town'"):
        open_rows(folder, ["x", "town"])  # of words
    (folder / "year=2025").mkdir()
    pq.write_table(pa.table({"x": [1.0]}), folder / "year=2025" / "t.parquet")
    with pytest.raises(ValueError, match=r"name the columns \['year'\].*\['year', 'to"):
        open_rows(folder)


def test_a_partition_without_a_value(tmp_path):
    for name in ("a=1", "a=__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"x": [1.0]}), tmp_path / name / "t.parquet")
    rows = open_rows(tmp_path, missing="nan").read(0, 2)
    np.testing.assert_array_equal(rows, [[1.0, 1.0], [1.0, np.nan]])
    assert open_records(tmp_path).read(0, 2)["a"].to_pylist() == [1, None]


# --- files elsewhere ------------------------------------------------------------------


@pytest.fixture
def bucket():
    memory = fsspec.filesystem("memory")
    with memory.open("/bucket/a.csv", "wb") as file:
        file.write(b"x;y\n1,5;a\n2,5;b\n")
    with memory.open("/bucket/b.parquet", "wb") as file:
        pq.write_table(TABLE, file)
    yield "memory://bucket"
    memory.rm("/bucket", recursive=True)


def test_urls_are_read_through_fsspec(bucket):
    table = as_table(f"{bucket}/a.csv")
    assert table.records().read(0, 2).to_pydict() == {"x": [1.5, 2.5], "y": ["a", "b"]}
    rows = open_rows(f"{bucket}/*.parquet", ["x"])
    np.testing.assert_array_equal(rows.read(0, N)[:, 0], TABLE["x"])
    assert rows.path == "memory:///bucket/b.parquet" or "b.parquet" in rows.path
    with pytest.raises(ValueError, match="holds both"):
        open_rows(bucket)
    with pytest.raises(FileNotFoundError, match="There is no file memory://bucket/c"):
        open_rows(f"{bucket}/c.csv")
    with pytest.raises(ValueError, match=r"nowhere://x\.csv cannot be opened"):
        open_rows("nowhere://x.csv")


def test_a_stream_that_has_been_read_is_an_error():
    table = pa.table({"a": np.arange(40.0) % 7, "b": ["x", "y"] * 20})
    reader = table.to_reader()
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(reader)
    for work in (model.fit, model.predict):
        with pytest.raises(ValueError, match="RecordBatchReader has no rows: a stream"):
            work(reader)


@pytest.mark.parametrize("form", [lambda t: t, lambda t: t.to_pandas(), pl.from_arrow])
def test_a_raw_table_without_rows_is_an_error(form):
    empty = pa.table({"a": pa.array([], "float64"), "b": pa.array([], "string")})
    with pytest.raises(ValueError, match="has no rows"):
        TableClusterer(NystromKMeans(2)).fit(form(empty))
