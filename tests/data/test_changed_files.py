"""Files that change while they are used: no pass mixes rows of two files."""

import os
from itertools import cycle, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather
from pyarrow import parquet as pq
from scipy import sparse

from sketchmeans import NystromKMeans, TableClusterer, open_rows
from tests.written import (
    SPARSE,
    TEXT,
    TYPED,
    X,
    stream_small_files,
    write_arrow,
    write_csr_folder,
    write_npy,
    write_npy_folder,
    write_npy_mixed_orders,
    write_npy_pattern,
    write_npz_packed_fortran,
    write_parquet_folder,
    write_svmlight_folder,
)

FOLDERS = {write_csr_folder, write_npy_folder, write_npy_mixed_orders}
FOLDERS |= {write_npy_pattern, write_parquet_folder, write_svmlight_folder}
# One is in memory from the first read on.
ONE_FILE = [
    write
    for write in [*TYPED, *TEXT, *SPARSE]
    if write not in FOLDERS | {write_npz_packed_fortran, write_npy}
]
CHANGED = r"has changed since it was opened"


@pytest.fixture(autouse=True)
def _streamed(monkeypatch):
    stream_small_files(monkeypatch)


def rewritten(path):
    """Write a file's bytes anew, to the same file."""
    before = os.stat(path).st_mtime_ns
    with open(path, "r+b") as file:
        file.write(path.read_bytes())
    os.utime(path, ns=(before, before + 1_000))


def replaced(path):
    """Put a copy in the place of a file, as old as that."""
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    times = os.stat(path)
    os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
    os.replace(copy, path)


def cut_off(path):
    os.truncate(path, path.stat().st_size // 3)


CHANGES = [rewritten, replaced, cut_off, os.unlink]


@pytest.mark.parametrize(
    ("write", "change"),
    [
        *product([write_npy], CHANGES),
        *zip(ONE_FILE, cycle(CHANGES), strict=False),
    ],
)
def test_a_file_that_changes_is_read_no_further(write, change, tmp_path):
    rows = sparse.csr_array(X[:3_000]) if write in SPARSE else X[:3_000]
    path = Path(write(tmp_path, rows))
    source = open_rows(path)
    source.read(0, 10)
    change(path)
    with pytest.raises(ValueError, match=CHANGED) as caught:
        source.read(0, len(source))
    assert str(path) in str(caught.value)
    with pytest.raises(ValueError, match=CHANGED):
        source.take(np.array([2_900, 20]))
    source.release()
    with pytest.raises(ValueError, match=CHANGED):
        source.read(0, len(source))


def test_the_file_of_a_folder_that_changed_is_named(tmp_path):
    source = open_rows(write_npy_folder(tmp_path, X))
    rewritten(tmp_path / "part-3.npy")
    source.read(0, 2_600)
    with pytest.raises(ValueError, match=rf"part-3\.npy {CHANGED}: it was written to"):
        source.read(2_590, 2_610)


@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv"])
def test_columns_in_another_order_do_not_take_the_place_of_others(suffix, tmp_path):
    path = tmp_path / f"rows.{suffix}"
    write = {
        "parquet": lambda table: pq.write_table(table, path),
        "feather": lambda table: feather.write_feather(table, str(path)),
        "csv": lambda table: pa.csv.write_csv(table, path),
    }[suffix]
    table = pa.table({name: X[:, j] for j, name in enumerate("abcdef")})
    write(table)
    source = open_rows(path, list("abc"))
    write(table.select(list("fedcba")))
    with pytest.raises(ValueError, match=CHANGED):
        source.read(0, len(source))


def test_a_fit_stops(tmp_path):
    path = write_arrow(tmp_path, X)
    source = open_rows(path)
    read, passes = source.read, []

    def read_and_change(start, stop, out=None):
        if start == 0:
            passes.append(start)
            if len(passes) == 2:
                cut_off(path)
        return read(start, stop, out)

    source.read = read_and_change
    model = TableClusterer(NystromKMeans(4, n_landmarks=30, random_state=0))
    with pytest.raises(ValueError, match=CHANGED):
        model.fit(source)
    assert not hasattr(model, "estimator_")
