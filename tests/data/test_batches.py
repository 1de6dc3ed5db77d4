"""Batches of rows: which are decoded when, and how columns become rows."""

import threading
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather
from pyarrow import parquet as pq

from sketchmeans import open_rows
from sketchmeans.data.sources import arrow
from sketchmeans.data.sources.base import BatchedSource, StreamedBatches
from sketchmeans.numerics.parallel import Workers

X = np.random.default_rng(0).normal(size=(500, 9))


class _CountedRows(BatchedSource):
    """Batches of ten rows or other ones, which note when they are decoded."""

    def __init__(self, n_rows, starts=(0,), edges=None):
        self.shape, self.dtype = (n_rows, 1), np.dtype(np.int64)
        edges = list(range(0, n_rows + 1, 10)) if edges is None else edges
        self.decoded = []

        def begin(number):
            for first, stop in pairwise(edges[number:]):
                self.decoded.append(first)
                yield np.arange(first, stop)[:, None]

        self._use(StreamedBatches(edges, 8 * 2**20, begin, "rows", starts))

    def check(self, start, stop):
        np.testing.assert_array_equal(self.read(start, stop)[:, 0], range(start, stop))


def test_a_short_file_is_decoded_once():
    rows = _CountedRows(40)
    for _ in range(3):
        for start in range(0, 40, 4):
            rows.check(start, start + 4)
    assert rows.decoded == [0, 10, 20, 30]
    rows.release()
    assert not rows.batches._cache
    rows.check(0, 40)


def test_blocks_in_nearly_ascending_order_decode_each_batch_once():
    rows, rng = _CountedRows(2000), np.random.default_rng(0)
    for _ in range(3):
        rows.decoded.clear()
        # As threads do: each of four is up to three blocks behind or before the others.
        order = np.argsort(np.arange(500) + rng.uniform(0, 3, size=500))
        for start in (4 * order).tolist():
            rows.check(start, start + 4)
        assert rows.decoded == list(range(0, 2000, 10))
        assert len(rows.batches._cache) <= 4


def test_the_next_batch_is_decoded_ahead_and_no_further():
    rows = _CountedRows(200)
    rows.check(0, 4)
    assert rows.decoded == [0, 10]
    rows.check(4, 10)
    rows.check(10, 12)
    assert rows.decoded == [0, 10, 20]


def test_a_stream_begins_where_it_can():
    rows = _CountedRows(200, starts=[0, 0, 5, 9])
    np.testing.assert_array_equal(rows.take(np.array([75, 152, 3]))[:, 0], [75, 152, 3])
    assert rows.decoded == [0, 50, 60, 70, 90, 100, 110, 120, 130, 140, 150]


def test_a_thread_that_is_late_at_the_end_of_a_row_group_costs_nothing():
    """Row groups end with a small batch, which nobody reads ahead."""
    edges = [0, 10, 20, 22, 32, 42, 44, 54, 64, 66]
    rows = _CountedRows(66, starts=[0, 3, 6], edges=edges)
    for _ in range(2):
        rows.decoded.clear()
        for late in (16, 40):
            for start in (late - 16, late - 8, late + 8, late, late + 16):
                rows.check(start, min(start + 8, 66))
        rows.check(56, 66)
        assert rows.decoded == edges[:-1]


def test_rows_are_right_whatever_threads_ask_for():
    rows, rng = _CountedRows(1000), np.random.default_rng(0)
    starts = rng.permuted(np.arange(0, 1000, 4).reshape(-1, 10), axis=1).ravel()
    with Workers(4) as workers:
        for _ in range(3):
            for _ in workers.map(lambda start: rows.check(start, start + 4), starts):
                pass


def test_a_stream_that_fails_or_ends_early_starts_anew():
    rows = _CountedRows(100)
    good, broken = rows.batches._begin, threading.Event()

    def begin(number):
        yield from (batch for batch, _ in zip(good(number), range(3), strict=False))
        if not broken.is_set():
            broken.set()
            raise ValueError("bad page")

    rows.batches._begin = begin
    with pytest.raises(ValueError, match="bad page"):
        rows.read(0, 100)
    with pytest.raises(ValueError, match="rows ends after row 29"):
        rows.read(0, 100)
    rows.batches._begin = lambda number: iter([np.zeros((7, 1))])
    with pytest.raises(ValueError, match="damaged at row 0: it has 7 rows in place of"):
        rows.read(0, 100)
    rows.batches._begin = good
    rows.check(0, 100)


# --- columns -----------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({f"x{j}": column for j, column in enumerate(X.T)}), path)
    return path


@pytest.mark.parametrize("order", [[8, 3, 5, 0, 1, 7], [4], range(9)])
def test_columns_come_in_the_order_that_was_asked_for(order, path):
    source = open_rows(path, columns=[f"x{j}" for j in order])
    np.testing.assert_array_equal(source.read(0, 500), X[:, order])
    np.testing.assert_array_equal(source.take(np.array([7, 3])), X[[7, 3]][:, order])


def test_damage_in_any_of_the_columns_is_reported_with_its_row(path, tmp_path):
    chunks = pq.ParquetFile(path).metadata.row_group(0)
    whole = path.read_bytes()
    for j in range(X.shape[1]):
        place = chunks.column(j).data_page_offset
        damaged = tmp_path / "damaged.parquet"
        damaged.write_bytes(whole[:place] + b"\xff" * 16 + whole[place + 16 :])
        with pytest.raises(ValueError, match=r"damaged.parquet is damaged at row 0: "):
            open_rows(damaged).read(0, 500)


@pytest.mark.parametrize(
    ("suffix", "kinds"),
    [
        ("feather", ("f4", "f4", "f4")),
        ("parquet", ("f4", "f8", "?")),
        ("feather", ("f2", "f4", "u1")),
        ("feather", ("?", "?", "?")),
    ],
)
def test_types_and_pieces_of_tables(suffix, kinds, tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "_COPY_ROWS", 100)
    rows = np.random.default_rng(0).integers(0, 2, size=(700, 3))
    columns = {f"x{j}": rows[:, j].astype(kind) for j, kind in enumerate(kinds)}
    path = str(tmp_path / f"rows.{suffix}")
    if suffix == "parquet":
        pq.write_table(pa.table(columns), path, row_group_size=450)
    else:
        feather.write_feather(pa.table(columns), path, chunksize=450)
    source = open_rows(path)
    assert source.dtype == np.result_type(*kinds)
    assert source.read(0, 1).dtype == source.dtype
    for start, stop in [(0, 700), (1, 699), (99, 101), (440, 460)]:
        np.testing.assert_array_equal(source.read(start, stop), rows[start:stop])
    numbers = np.random.default_rng(1).permutation(700)[:300]
    np.testing.assert_array_equal(source.take(numbers), rows[numbers])


def test_wide_tables_are_copied_a_few_rows_at_a_time(monkeypatch, path):
    monkeypatch.setattr(arrow, "_COPY_BYTES", 3 * X[0].nbytes)
    source = open_rows(path)
    assert source.thread_memory == 3 * X[0].nbytes
    np.testing.assert_array_equal(source.read(0, len(X)), X)
