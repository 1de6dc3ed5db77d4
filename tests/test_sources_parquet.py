"""Columns of a Parquet file that are decoded side by side."""

import threading

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from sketchmeans import open_rows
from sketchmeans.sources import parquet

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


def test_what_goes_wrong_in_a_thread_that_helps_is_raised_where_the_batch_is_taken():
    def batches():
        yield "a batch"
        raise pa.ArrowInvalid("bad page")

    lane = parquet._Lane(batches())
    lane.decode(wait=False)
    lane.decode(wait=False)  # it is there
    assert lane.take() == "a batch"
    lane.decode(wait=False)
    with pytest.raises(pa.ArrowInvalid, match="bad page"):
        lane.take()


def test_a_thread_that_helps_does_not_wait_for_others():
    lane = parquet._Lane(iter(["a batch"]))
    with lane._decoding:
        lane.decode(wait=False)
    assert lane.take() == "a batch"


def test_damage_in_any_of_the_columns_is_told_with_its_row(path, tmp_path):
    chunks = pq.ParquetFile(path).metadata.row_group(0)
    whole = path.read_bytes()
    for j in range(X.shape[1]):
        place = chunks.column(j).data_page_offset
        damaged = tmp_path / "damaged.parquet"
        damaged.write_bytes(whole[:place] + b"\xff" * 16 + whole[place + 16 :])
        with pytest.raises(ValueError, match=r"damaged.parquet is damaged at row 0: "):
            open_rows(damaged).read(0, 500)
