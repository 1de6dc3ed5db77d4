"""Packed files, and the temporary copies that they are read from."""

import bz2
import gc
import gzip
import lzma
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pytest

from sketchmeans import NystromKMeans, open_rows
from sketchmeans.data.preparation import as_table
from sketchmeans.data.sources import copies

X = np.arange(60.0).reshape(20, 3)
TEXT = "a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in X.tolist())


def zstd(data):
    return pa.compress(data, codec="zstd", asbytes=True)


PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Temporary files in a folder of the test's, which is empty in the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    gc.collect()
    assert os.listdir(folder) == []


@pytest.mark.parametrize("packing", PACK)
def test_packed_text_is_read(tmp_path, packing):
    path = tmp_path / f"t.csv.{packing}"
    path.write_bytes(PACK[packing](TEXT.encode()))
    source = open_rows(path)
    assert source.path == str(path)
    np.testing.assert_array_equal(source.read(0, 20), X)
    np.testing.assert_array_equal(source.take(np.array([19, 0])), X[[19, 0]])
    table = as_table(path)
    assert table.records(["b"]).read(1, 2).to_pydict() == {"b": [4.0]}
    assert NystromKMeans(2, random_state=0).fit(path).labels_.shape == (20,)


def test_other_formats_may_be_packed_and_recoded(tmp_path):
    path = tmp_path / "rows.npy.gz"
    with gzip.open(path, "wb") as file:
        np.save(file, X)
    np.testing.assert_array_equal(open_rows(path).read(0, 20), X)
    path = tmp_path / "t.tsv.bz2"
    path.write_bytes(bz2.compress("a\tö\n1,5\tü\n".encode("utf-16")))
    assert as_table(path).records().read(0, 1).to_pydict() == {"a": [1.5], "ö": ["ü"]}


@pytest.mark.parametrize("packing", PACK)
def test_damaged_ones_are_refused(tmp_path, packing):
    data = PACK[packing](TEXT.encode() * 50)
    for wrong in (data[: len(data) // 2], data[:30] + b"xxxxxxxx" + data[38:], b"text"):
        path = tmp_path / f"t.csv.{packing}"
        path.write_bytes(wrong)
        with pytest.raises(
            ValueError, match=rf"t\.csv\.{packing} cannot be decompressed"
        ):
            open_rows(path)


def test_one_copy_serves_all_who_read(tmp_path, own_folder):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    first, second = open_rows(path), open_rows(path)
    assert first.state.place == second.state.place
    assert len(os.listdir(own_folder)) == 1


def test_a_file_that_changes_is_noticed(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    source = open_rows(path)
    path.write_bytes(gzip.compress(TEXT.encode() + b"1,2,3\n"))
    source.release()
    with pytest.raises(ValueError, match=r"t\.csv\.gz has changed since it was opened"):
        source.read(0, 1)
    assert len(open_rows(path)) == 21


def test_a_bomb_ends_when_the_disk_is_nearly_full(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n" * 10**7))
    monkeypatch.setattr(copies, "_FREE_BYTES", 2**60)
    with pytest.raises(OSError, match=r"t\.csv\.gz is copied to .* Set TMPDIR"):
        open_rows(path)


def test_names_that_say_nothing_of_the_content(tmp_path):
    (tmp_path / "rows.gz").write_bytes(gzip.compress(TEXT.encode()))
    with pytest.raises(ValueError, match=r"rows\.gz ends in '\.gz'; it should end in"):
        open_rows(tmp_path / "rows.gz")
    (tmp_path / "none.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(ValueError, match=r"none\.csv\.gz is empty"):
        open_rows(tmp_path / "none.csv.gz")


@pytest.mark.process
def test_nothing_is_left_of_a_process_that_is_killed(tmp_path, own_folder):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    code = (
        "import sys, os, signal, sketchmeans as s\n"
        f"source = s.open_rows({str(path)!r})\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(own_folder)}
    )
    assert done.returncode == -signal.SIGKILL
    left = [os.path.join(d, f) for d, _, names in os.walk(own_folder) for f in names]
    assert not any(map(os.path.exists, left))  # a dead link, which takes no room
    open_rows(path)  # and removes that, too
