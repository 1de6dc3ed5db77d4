"""What goes wrong on a cluster while a fit runs: the same labels, or a clear error."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections import Counter
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster

from sketchmeans import NystromKMeans
from sketchmeans.distributed.backend import DaskBackend

pytestmark = [pytest.mark.dask, pytest.mark.process]

#: Whole blocks: fits have the bits of a local one.
_CHUNK, _PARTS = 4096, 4
#: Seconds after which a fit counts as one that hangs.
_PATIENCE = 120


@pytest.fixture
def cluster():
    """Two worker processes of one thread, which are replaced if they die."""
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit="1GB",
    ) as running:
        yield running


@pytest.fixture
def client(cluster):
    with Client(cluster) as connected:
        yield connected


@pytest.fixture(scope="module", name="X")
def rows_without_clusters():
    rng = np.random.default_rng(0)
    return rng.normal(size=(_PARTS * _CHUNK, 6)).astype(np.float32)


def _model():
    return NystromKMeans(
        5, n_landmarks=60, gamma=0.1, n_init=1, tol=1e-4, random_state=0
    )


@pytest.fixture(scope="module", name="local")
def local_fit(X):
    return _model().fit(X)


@pytest.fixture(scope="module", name="n_passes")
def count_passes(X):
    """The passes of a fit that nobody disturbs."""
    passes, run = [], DaskBackend.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            DaskBackend, "run", lambda self, *a: passes.append(a) or run(self, *a)
        )
        _model().fit(_lazy(X))
    return len(passes)


def _read(block, folder=None, block_info=None):
    """Return a partition, and leave a file that says that it was read."""
    number = block_info[0]["chunk-location"][0]
    if folder is not None:
        Path(folder, f"{number}-{uuid.uuid4().hex}").touch()
    return block


def _lazy(X, folder=None):
    rows = da.from_array(X, chunks=(_CHUNK, -1))
    return rows.map_blocks(_read, folder=folder, dtype=X.dtype, meta=X[:0])


def _fit_disturbed(rows, monkeypatch, at, disturb):
    """Return a fit in which something happens before pass `at`; it may not hang."""
    passes, run, found = [], DaskBackend.run, []

    def disturbed(self, *arguments):
        passes.append(arguments)
        if len(passes) == at:
            disturb()
        return run(self, *arguments)

    def fit():
        try:
            found.append(_model().fit(rows))
        except BaseException as error:
            found.append(error)

    monkeypatch.setattr(DaskBackend, "run", disturbed)
    thread = threading.Thread(target=fit, daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    assert not thread.is_alive(), "the fit hangs"
    assert len(passes) >= at, found
    (result,) = found
    if isinstance(result, BaseException):
        raise result
    return result


def _assert_same(model, local):
    np.testing.assert_array_equal(model.labels_.compute(), local.labels_)
    np.testing.assert_array_equal(model.dual_coef_, local.dual_coef_)
    assert (model.cost_, model.n_iter_) == (local.cost_, local.n_iter_)


def _pids(client):
    return sorted(client.run(os.getpid).values())


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.4, 0.8])
def test_a_worker_is_killed(X, local, n_passes, client, monkeypatch, tmp_path, share):
    pid = _pids(client)[0]

    def kill():
        threading.Timer(0.02, os.kill, (pid, signal.SIGKILL)).start()

    at = max(1, round(share * n_passes))
    rows = _lazy(X, str(tmp_path))
    _assert_same(_fit_disturbed(rows, monkeypatch, at, kill), local)
    client.wait_for_workers(2, timeout=_PATIENCE)
    assert pid not in _pids(client)
    # Only what the lost worker had is read again, once.
    reads = Counter(path.name.split("-")[0] for path in tmp_path.iterdir())
    assert len(reads) == _PARTS
    assert max(reads.values()) <= 2
    assert min(reads.values()) == 1


@pytest.mark.slow
def test_a_worker_comes_late_and_another_is_slow(X, local, client, monkeypatch):
    cluster, pid = client.cluster, _pids(client)[0]

    def disturb():
        cluster.scale(3)
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(1.0, os.kill, (pid, signal.SIGCONT)).start()

    _assert_same(_fit_disturbed(_lazy(X), monkeypatch, 3, disturb), local)
    client.wait_for_workers(3, timeout=_PATIENCE)


@pytest.mark.slow
def test_a_worker_loses_its_connection(X, local, client, monkeypatch):
    address = min(client.nthreads())

    def disturb():
        client.run(
            lambda dask_worker: dask_worker.batched_stream.comm.abort(),
            workers=[address],
            on_error="ignore",
        )

    _assert_same(_fit_disturbed(_lazy(X), monkeypatch, 3, disturb), local)


@pytest.mark.slow
def test_the_scheduler_is_lost(X, client, monkeypatch):
    def disturb():
        threading.Thread(target=client.cluster.close, daemon=True).start()
        time.sleep(0.5)

    with pytest.raises(ConnectionError, match="The connection to the Dask scheduler"):
        _fit_disturbed(_lazy(X), monkeypatch, 3, disturb)


def _greedy(block, folder=None, block_info=None):
    """Take more memory than a worker has when the first partition is read first."""
    if block_info[0]["chunk-location"][0] == 0 and not any(Path(folder).iterdir()):
        Path(folder, "read").touch()
        taken = np.ones(2**28)  # 2 GB
        time.sleep(30)
        del taken
    return block


@pytest.mark.slow
def test_a_worker_runs_out_of_memory(X, local, client, monkeypatch, tmp_path):
    before = _pids(client)
    rows = da.from_array(X, chunks=(_CHUNK, -1))
    rows = rows.map_blocks(_greedy, folder=str(tmp_path), dtype=X.dtype, meta=X[:0])
    _assert_same(_fit_disturbed(rows, monkeypatch, 1, lambda: None), local)
    assert list(tmp_path.iterdir())
    client.wait_for_workers(2, timeout=_PATIENCE)
    assert len(set(_pids(client)) - set(before)) == 1
