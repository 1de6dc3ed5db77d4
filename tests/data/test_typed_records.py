"""Rows with the types that their columns have, of every kind of table."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather
from pyarrow import parquet as pq

from sketchmeans.data.preparation import as_table
from sketchmeans.data.sources import files, open_records, records
from sketchmeans.data.sources.formats import OPTIONS
from sketchmeans.data.sources.records import TYPED_READERS

N = 50
TABLE = pa.table(
    {
        "number": pa.array([None if i == 7 else i / 2 for i in range(N)]),
        "count": pa.array(range(N)),
        "word": pa.array([None if i == 3 else f"w{i % 5}" for i in range(N)]),
        "flag": pa.array([i % 2 == 0 for i in range(N)]),
        "day": pa.array([dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(N)]),
        "level": pa.array([f"l{i % 3}" for i in range(N)]).dictionary_encode(),
    }
)


def write_csv(path):
    TABLE.to_pandas().to_csv(path, index=False)


def write_arrow(path):
    with pa.ipc.new_file(path, TABLE.schema) as file:
        file.write_table(TABLE, max_chunksize=12)


WRITERS = {
    "t.parquet": lambda path: pq.write_table(TABLE, path, row_group_size=14),
    "t.arrow": write_arrow,
    "t.feather": lambda path: feather.write_feather(TABLE, str(path)),
}


def check(found, expected):
    assert len(found) == expected.num_rows
    rows = expected.to_pylist()
    assert found.read(0, len(found)).to_pylist() == rows
    assert found.read(11, 31).to_pylist() == rows[11:31]
    assert found.read(5, 5).num_rows == 0
    for wanted in ([], [49, 0, 14, 14, 13], list(range(49, -1, -3))):
        assert found.take(np.array(wanted, int)).to_pylist() == [
            rows[i] for i in wanted
        ]
    assert found.read(3, 9).schema.equals(found.schema)
    found.release()
    assert found.read(40, 41).to_pylist() == rows[40:41]


@pytest.mark.parametrize("name", WRITERS)
def test_files_keep_their_types(tmp_path, name, monkeypatch):
    monkeypatch.setattr(records, "_BATCH_BYTES", 2_000)  # several batches
    WRITERS[name](tmp_path / name)
    found = as_table(tmp_path / name).records()
    assert found.schema.equals(TABLE.schema)
    check(found, TABLE)
    some = as_table(tmp_path / name).records(["word", "count"])
    check(some, TABLE.select(["word", "count"]))


@pytest.mark.parametrize(
    "convert", [lambda t: t, lambda t: t.to_pandas(), pl.from_arrow]
)
def test_data_frames_keep_their_types(convert):
    found = as_table(convert(TABLE)).records()
    check(found, TABLE)
    assert pa.types.is_floating(found.schema.field("number").type)
    assert pa.types.is_boolean(found.schema.field("flag").type)
    assert pa.types.is_dictionary(found.schema.field("level").type)


def test_objects_of_mixed_types_become_strings():
    frame = pd.DataFrame({"x": pd.Series([1, "b", None, np.nan, pd.NA], dtype=object)})
    found = as_table(frame).records()
    assert found.read(0, 5).column("x").to_pylist() == ["1", "b", None, None, None]


def test_arrays_have_columns_by_number():
    found = as_table(np.arange(6.0).reshape(3, 2)).records()
    assert found.schema.names == ["column 0", "column 1"]
    assert found.take([2]).to_pylist() == [{"column 0": 4.0, "column 1": 5.0}]
    assert as_table(np.eye(3)).records([2]).schema.names == ["column 2"]


def test_text_has_numbers_and_strings(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIECE_BYTES", 300)
    write_csv(tmp_path / "t.csv")
    found = as_table(tmp_path / "t.csv").records()
    kinds = [str(kind) for kind in found.schema.types]
    assert kinds == ["double", "int64", "string", "string", "string", "string"]
    expected = TABLE.select(["number", "count", "word"])
    check(as_table(tmp_path / "t.csv").records(["number", "count", "word"]), expected)


@pytest.mark.parametrize(
    ("value", "kind"), [("7", "int64"), ("7.5", "double"), ("x7", "string")]
)
def test_what_comes_late_decides_on_a_type(tmp_path, value, kind, monkeypatch):
    monkeypatch.setattr(files, "PIECE_BYTES", 200)
    lines = [f"{i},2" for i in range(500)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *lines, f"{value},3"]) + "\n")
    found = open_records(tmp_path / "t.csv")
    assert [str(t) for t in found.schema.types] == [kind, "int64"]
    last = found.read(499, 501).to_pydict()
    assert list(map(str, last["a"])) == ["499.0" if kind == "double" else "499", value]


def test_codes_with_leading_zeros_are_strings(tmp_path):
    (tmp_path / "t.csv").write_text("zip,x\n01067,0.5\n89073,-0\n")
    found = open_records(tmp_path / "t.csv").read(0, 2).to_pydict()
    assert found == {"zip": ["01067", "89073"], "x": [0.5, 0.0]}


def test_folders_share_types_that_hold_all_files(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,y\n1.5,two\n")
    found = as_table(tmp_path).records()
    assert found.read(0, 2).to_pydict() == {"x": [1.0, 1.5], "y": ["2", "two"]}
    (tmp_path / "b.csv").write_text("x,z\n1.5,two\n")
    with pytest.raises(ValueError, match=r"b\.csv has the columns 'x', 'z', .*a\.csv"):
        as_table(tmp_path).records()


def test_a_table_does_not_mix_two_files(tmp_path):
    write_csv(tmp_path / "t.csv")
    table = as_table(tmp_path / "t.csv")
    found = table.records()
    (tmp_path / "t.csv").write_text("number\n1\n")
    with pytest.raises(ValueError, match="has changed since it was opened"):
        found.read(0, 1)
    with pytest.raises(ValueError, match="has changed since it was opened"):
        table.records(["number"])


def test_unknown_columns_are_named(tmp_path):
    for name, write in {**WRITERS, "t.csv": write_csv}.items():
        write(tmp_path / name)
        with pytest.raises(ValueError, match="has no column 'wrd'"):
            as_table(tmp_path / name).records(["wrd"])


def test_a_table_without_rows_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match=r"t\.csv has no rows; at least one is needed"):
        open_records(tmp_path / "t.csv")


def test_every_format_with_named_columns_can_be_read_with_types():
    named = {module for module, options in OPTIONS.items() if "columns" in options}
    assert named == set(TYPED_READERS)
