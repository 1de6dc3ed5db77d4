"""Columns of a Parquet file, which are decoded side by side and turned to rows."""

import gc
import threading
import weakref

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from sketchmeans import open_rows
from sketchmeans.data.sources import parquet, tables

X = np.random.default_rng(0).normal(size=(500, 9))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rows.parquet"
    names = [f"x{j}" for j in range(X.shape[1])]
    pq.write_table(pa.table(dict(zip(names, X.T, strict=True))), path)
    return path


@pytest.mark.parametrize("order", [[8, 3, 5, 0, 1, 7], [4], [2, 1], range(9)])
def test_columns_come_in_the_order_that_was_asked_for(order, path):
    source = open_rows(path, columns=[f"x{j}" for j in order])
    np.testing.assert_array_equal(source.read(0, 500), X[:, order])
    np.testing.assert_array_equal(source.take(np.array([7, 3])), X[[7, 3]][:, order])


def test_a_thread_that_waits_for_a_batch_decodes_some_of_its_columns(monkeypatch, path):
    begun, rest_is_there = threading.Event(), threading.Event()
    decoded = []

    def slow(*given):
        for batch in record_batches(*given):
            if "x0" in batch.schema.names:
                begun.set()
                assert rest_is_there.wait(60), "nobody decoded the other columns"
            else:
                decoded.append(threading.current_thread())
                if len(decoded) == parquet._MOST_LANES - 1:
                    rest_is_there.set()
            yield batch

    record_batches = parquet._record_batches
    monkeypatch.setattr(parquet, "_record_batches", slow)
    source, found = open_rows(path), []
    first = threading.Thread(target=lambda: found.append(source.read(0, 200)))
    first.start()
    assert begun.wait(60)
    np.testing.assert_array_equal(source.read(200, 500), X[200:])
    first.join()
    np.testing.assert_array_equal(found, [X[:200]])
    assert decoded == [threading.current_thread()] * 3


def test_what_goes_wrong_in_a_thread_that_helps_is_raised_where_the_batch_is_taken(
    path,
):
    def batches():
        raise pa.ArrowInvalid("bad page")
        yield

    stream = open_rows(path).batches.begin(0)
    stream._lanes[2]._batches = batches()
    stream.help()
    with pytest.raises(ValueError, match=r"is damaged at row 0: bad page"):
        next(stream)


class _Interrupted:
    """Batches of which one is lost, as Ctrl-C comes when it is there."""

    def __init__(self, batches):
        self._batches = batches

    def __next__(self):
        next(self._batches)
        raise KeyboardInterrupt


def test_a_thread_that_is_interrupted_does_not_mix_up_the_batches(path):
    source = open_rows(path)
    source.batches._batch_height = 100
    stream = source.batches._stream = source.batches.begin(0)
    lane = stream._lanes[1]
    lane._batches, whole = _Interrupted(lane._batches), lane._batches
    with pytest.raises(KeyboardInterrupt):
        stream.help()
    lane._batches = whole  # at the second batch
    with pytest.raises(ValueError, match=r"could not be read at row 0: another thread"):
        source.read(0, 100)
    np.testing.assert_array_equal(source.read(0, 500), X)


def test_a_thread_that_helps_neither_waits_nor_runs_ahead(path):
    source = open_rows(path)
    source.batches._batch_height = 100
    stream = source.batches.begin(0)
    with stream._lanes[3]._decoding:
        stream.help()
        stream.help()
    assert [lane._number for lane in stream._lanes] == [1, 1, 1, 0]
    batch, n_rows = next(stream)
    assert n_rows == 100
    np.testing.assert_array_equal(batch.to_pandas(), X[:100])
    for lane in stream._lanes:
        lane.decode(0, wait=False)  # too late
        assert lane._number == 1


def test_the_end_of_a_stream_leaves_no_cycle(path):
    stream = open_rows(path).batches.begin(0)
    next(stream)
    stream.help()
    with pytest.raises(StopIteration):
        next(stream)
    freed = weakref.ref(stream._lanes[0])
    gc.disable()
    try:
        del stream
        assert freed() is None
    finally:
        gc.enable()


def test_columns_of_different_lengths_are_damage(path):
    stream = open_rows(path).batches.begin(0)
    for batches in ([pa.record_batch({"x0": X[:400, 0]})], []):
        stream._lanes[0]._batches = iter(batches)
        with pytest.raises(ValueError, match=r"damaged at row 0: columns differ in le"):
            next(stream)
        stream = open_rows(path).batches.begin(0)


def test_damage_in_any_of_the_columns_is_told_with_its_row(path, tmp_path):
    chunks = pq.ParquetFile(path).metadata.row_group(0)
    whole = path.read_bytes()
    for j in range(X.shape[1]):
        place = chunks.column(j).data_page_offset
        damaged = tmp_path / "damaged.parquet"
        damaged.write_bytes(whole[:place] + b"\xff" * 16 + whole[place + 16 :])
        with pytest.raises(ValueError, match=r"damaged.parquet is damaged at row 0: "):
            open_rows(damaged).read(0, 500)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_columns_of_a_block_lie_out_of_step_with_the_cache(
    dtype, monkeypatch, tmp_path
):
    matrix, strides, sizes = tables._matrix, [], []

    def noted(part):
        found = matrix(part)
        strides.append(found.strides[1])
        sizes.append(found.nbytes)
        return found

    monkeypatch.setattr(tables, "_matrix", noted)
    rows = np.random.default_rng(0).integers(0, 9, size=(10_000, 5)).astype(dtype)
    pq.write_table(
        pa.table(dict(zip("abcde", rows.T, strict=True))), tmp_path / "x.parquet"
    )
    source = open_rows(tmp_path / "x.parquet")
    for start, stop in [(0, 4096), (4096, 6144), (6144, 7168)]:
        np.testing.assert_array_equal(source.read(start, stop), rows[start:stop])
    assert [stride % 128 for stride in strides] == [64, 64, 64]
    assert max(sizes) == source.thread_memory
