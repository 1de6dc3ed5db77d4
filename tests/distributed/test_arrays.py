"""Fits on Dask collections: equal to local ones, on every scheduler."""

from __future__ import annotations

import os
import pickle
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

from sketchmeans import ApproximateSVD, Checkpoint, KernelKMeans, NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.distributed import backend as backend_module
from sketchmeans.distributed import rows as rows_module
from sketchmeans.distributed import scheduler
from sketchmeans.distributed.backend import DaskBackend
from sketchmeans.engine.blocks import new_engine
from sketchmeans.engine.bounds import Reassign
from sketchmeans.engine.lloyd import lloyd
from sketchmeans.engine.passes import FullPass, PartialPass
from sketchmeans.engine.progress import Progress
from sketchmeans.engine.restarts import Schedule, Search
from sketchmeans.engine.space import LandmarkSpace, landmark_space
from sketchmeans.kernels import Kernel, Linear
from sketchmeans.landmarks.choice import SELECTORS
from sketchmeans.numerics.parallel import Workers
from sketchmeans.numerics.sums import TreeSum

pytestmark = pytest.mark.dask

#: Whole blocks, for all widths below.
_CHUNK = 4096
_ON_CLUSTERS = (
    "uniform",
    "diagonal",
    "column-norm",
    "leverage",
    "ridge-leverage",
    "bless",
    "k-means++",
    "kmeans",
)


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes of one thread."""
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",  # any port: others may have a cluster too
        memory_limit="1GB",
    ) as running_cluster:
        yield running_cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as connected:
        yield connected


@pytest.fixture(scope="module", name="X")
def rows_without_clusters():
    """Rows without clear clusters: many passes, some over single rows."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(4 * _CHUNK, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def local(X):
    return _model().fit(X)


def _model(**params):
    defaults = {"n_landmarks": 60, "gamma": 0.1, "tol": 1e-4, "random_state": 0}
    return NystromKMeans(5, **{**defaults, **params})


def _short_model(**params):
    """Return a model that stops after a few passes, all of them tasks of a cluster."""
    return _model(**{"tol": 1e-2, **params})


def _chunked(X, rows=_CHUNK):
    return da.from_array(X, chunks=(rows, -1))


def assert_same_fit(model, other):
    """Two fits agree in every bit."""
    labels = model.labels_.compute()
    np.testing.assert_array_equal(labels, np.asarray(other.labels_))
    assert labels.dtype == other.labels_.dtype
    for name in ("dual_coef_", "cost_path_", "cluster_sizes_", "exemplar_indices_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))
    assert (model.cost_, model.inertia_) == (other.cost_, other.inertia_)
    assert (model.n_iter_, model.converged_) == (other.n_iter_, other.converged_)


# -- sums ----------------------------------------------------------------------------


def test_sums_do_not_depend_on_who_adds_up_what():
    rng = np.random.default_rng(0)
    terms = rng.normal(size=(37, 3)) * 10.0 ** rng.integers(-8, 8, size=(37, 1))
    whole = TreeSum()
    for number, term in enumerate(terms):
        whole.add(number, term.copy())  # it may be overwritten
    for seed in range(20):
        cuts = np.sort(np.random.default_rng(seed).choice(38, 4))
        parts = []
        for numbers in np.split(np.arange(37), cuts):
            part = TreeSum()
            for number in numbers:
                part.add(int(number), terms[number].copy())
            parts.append(part)
        together = TreeSum()
        for i in np.random.default_rng(seed).permutation(len(parts)):
            together.merge(parts[i])
        np.testing.assert_array_equal(together.total(), whole.total())
    np.testing.assert_allclose(whole.total(), terms.sum(axis=0), rtol=1e-12)


# -- equal to local ------------------------------------------------------------------


def test_the_data_exercise_both_kinds_of_passes(X, monkeypatch):
    calls, run = [], DaskBackend.run

    def counted(self, reduction, *values):
        calls.append(type(reduction).__name__)
        return run(self, reduction, *values)

    monkeypatch.setattr(DaskBackend, "run", counted)
    with dask.config.set(scheduler="synchronous"):
        _model().fit(_chunked(X))
    assert calls.count("FullPass") >= 1
    assert calls.count("PartialPass") >= 3


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_every_local_scheduler_gives_the_local_fit(X, local, scheduler):
    with dask.config.set(scheduler=scheduler):
        assert_same_fit(_model().fit(_chunked(X)), local)


def test_two_worker_processes_give_the_local_fit(X, local, client):
    model = _model().fit(_chunked(X))
    assert isinstance(model.labels_, da.Array)
    assert model.labels_.chunks == ((_CHUNK,) * 4,)
    assert_same_fit(model, local)
    np.testing.assert_array_equal(model.landmarks_, local.landmarks_)
    np.testing.assert_array_equal(model.exemplars_, local.exemplars_)


def test_a_process_for_each_task_gives_the_local_fit(X):
    params = {"landmarks": X[:40], "n_landmarks": "auto", "init": X[:5], "tol": 0.1}
    spawn = get_context("spawn")  # safe beside threads
    with (
        ProcessPoolExecutor(1, spawn) as pool,
        dask.config.set(scheduler="processes", pool=pool),
    ):
        model = _model(**params).fit(_chunked(X, 2 * _CHUNK))
        assert_same_fit(model, _model(**params).fit(X))


@pytest.mark.parametrize(
    "params",
    [
        {"n_landmarks": "auto"},
        {"gamma": "mean", "kernel": "laplacian"},
        {"kernel": "polynomial", "gamma": "scale", "degree": 2},
        {"algorithm": "full", "n_init": 3},
        {"init": "greedy-k-means++", "rank": 30},
        {"init": np.arange(5)},
        {"init": np.arange(4 * _CHUNK) % 5},
        {"init": np.eye(5, 6, dtype=np.float32)},
        {"landmarks": np.arange(0, 6000, 100)},
    ],
    ids=lambda params: "-".join(params),
)
def test_parameters_mean_the_same(X, params):
    params = {**({} if "init" in params else {"n_init": 2}), **params, "tol": 1e-3}
    with dask.config.set(scheduler="synchronous"):
        assert_same_fit(_model(**params).fit(_chunked(X)), _model(**params).fit(X))


@pytest.mark.parametrize("name", _ON_CLUSTERS)
def test_landmarks_are_those_of_a_local_fit(X, name, client):
    params = {"landmarks": name, "n_landmarks": 12, "n_init": 1, "max_iter": 1}
    with pytest.warns(match="No convergence"):
        model = _model(**params).fit(_chunked(X))
    with pytest.warns(match="No convergence"):
        expected = _model(**params).fit(X)
    np.testing.assert_array_equal(model.landmark_indices_, expected.landmark_indices_)
    assert_same_fit(model, expected)


def test_other_partitions_cost_the_same_within_tol(X, local):
    cut = (1, 5000, 0, 3333, 7919, len(X) - 16253)
    with dask.config.set(scheduler="threads"):
        model = _model().fit(da.from_array(X, chunks=(cut, (2, 4))))
    assert model.labels_.chunks == (tuple(n for n in cut if n),)
    assert model.cost_ == pytest.approx(local.cost_, rel=1e-5)
    assert (model.labels_.compute() == local.labels_).mean() > 0.999


def test_few_rows_need_no_subsample(X):
    with dask.config.set(scheduler="synchronous"):
        model = _model(n_init=4).fit(_chunked(X[:5000]))
    assert_same_fit(model, _model(n_init=4).fit(X[:5000]))


def test_empty_clusters_are_refilled_as_in_a_local_fit(X):
    start = np.repeat(X[:1], 5, axis=0)  # four of five have no rows
    with dask.config.set(scheduler="synchronous"):
        model = _model(init=start).fit(_chunked(X))
    assert (model.cluster_sizes_ > 0).all()
    assert_same_fit(model, _model(init=start).fit(X))


# -- what workers keep ---------------------------------------------------------------


def _counted(monkeypatch):
    """Count the kernel blocks that are computed."""
    calls = []
    original = LandmarkSpace.kernel_block

    def kernel_block(self, block, out=None):
        calls.append(block.shape)
        return original(self, block, out)

    monkeypatch.setattr(LandmarkSpace, "kernel_block", kernel_block)
    return calls


def test_kernel_blocks_are_kept_where_they_fit(monkeypatch):
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(3 * _CHUNK, 130)).astype(np.float32)
    params = {"n_landmarks": 30, "init": np.arange(5), "gamma": 0.001, "max_iter": 6}
    with pytest.warns(match="No convergence"):
        expected = _model(tol=0.0, **params).fit(wide)
    blocks = {}
    for space in (2**40, 0):
        free = (space, False)
        monkeypatch.setattr(
            backend_module, "free_memory", lambda budget, free=free: free
        )
        with monkeypatch.context() as patch:
            calls = _counted(patch)
            with (
                dask.config.set(scheduler="synchronous"),
                pytest.warns(match="No convergence"),
            ):
                model = _model(tol=0.0, **params).fit(_chunked(wide))
            blocks[space] = calls.count((_CHUNK, 130))
        assert_same_fit(model, expected)
    assert blocks[2**40] == 3
    assert blocks[0] >= 9  # three full passes, at least


def test_free_memory_is_that_of_the_scheduler(client):
    free, elsewhere = scheduler.free_memory(7)
    assert elsewhere
    assert 10**8 < free < 10**9  # half of two workers of 1 GB, less what they hold
    with dask.config.set(scheduler="threads"):
        assert scheduler.free_memory(7) == (7, False)
    with dask.config.set(scheduler="processes"):
        assert scheduler.free_memory(7) == (0, False)


def test_rows_are_computed_once_where_they_fit(X, local):
    computed = []

    def read(block):
        computed.append(len(block))
        return block

    rows = _chunked(X).map_blocks(read, dtype=X.dtype, meta=X[:0])
    with dask.config.set(scheduler="synchronous"):
        model = _model().fit(rows)
        assert computed.count(_CHUNK) == 4
        _model(max_memory="100MB", max_iter=3, tol=1.0, n_init=2).fit(rows)
        assert computed.count(_CHUNK) == 8
    assert_same_fit(model, local)


def test_rows_that_do_not_fit_are_computed_in_each_pass(X, local, monkeypatch):
    monkeypatch.setattr(
        "sketchmeans.distributed.rows.free_memory", lambda budget: (0, True)
    )
    computed = []

    def read(block):
        computed.append(len(block))
        return block

    rows = _chunked(X).map_blocks(read, dtype=X.dtype, meta=X[:0])
    with dask.config.set(scheduler="synchronous"):
        assert_same_fit(_model().fit(rows), local)
    assert computed.count(_CHUNK) > 4 * local.n_iter_


# -- nothing is computed whole on the client -----------------------------------------


def _partition(block_info=None, *, client_pid, base):
    start, stop = block_info[None]["array-location"][0]
    assert os.getpid() != client_pid, "computed in the client"
    numbers = np.arange(start, stop)
    return base[numbers % len(base)] + (numbers % 7)[:, None].astype(np.float32)


@pytest.mark.memory
def test_rows_beyond_the_memory_of_the_client(client):
    n, d = 409_600, 64
    base = np.random.default_rng(0).normal(size=(5003, d)).astype(np.float32)
    rows = da.map_blocks(
        _partition,
        chunks=((102_400,) * 4, (d,)),
        dtype=np.float32,
        meta=np.empty((0, 0), dtype=np.float32),
        client_pid=os.getpid(),
        base=base,
    )
    model = NystromKMeans(4, n_landmarks=16, n_init=1, tol=1e-2, random_state=0)
    # Only new allocations of this process count, not what earlier tests left behind.
    tracemalloc.start()
    try:
        model.fit(rows)
        cost = model.cost(rows)
        sizes = np.bincount(model.predict(rows).compute())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * d * 4 * 3 / 4
    assert cost == pytest.approx(model.cost_, rel=1e-5)
    np.testing.assert_allclose(sizes, model.cluster_sizes_, rtol=1e-4)


def test_what_travels_is_small(X, client, monkeypatch):
    received = []
    original = scheduler.compute

    def weighed(tasks):
        found = original(tasks)
        received.append(len(pickle.dumps(found)))
        return found

    for module in (scheduler, rows_module):
        monkeypatch.setattr(module, "compute", weighed)
    model = _short_model(init=np.arange(5)).fit(_chunked(X))
    assert len(received) > model.n_iter_ > 3
    assert max(received) < 20_000  # sums over 5 clusters of 60 numbers, or landmarks


# -- weights, sparse rows, dataframes ------------------------------------------------


@pytest.mark.parametrize("lazy", [False, True])
def test_weights_are_those_of_a_local_fit(X, lazy):
    weights = np.random.default_rng(3).integers(0, 4, size=len(X)).astype(float)
    given = da.from_array(weights, chunks=1000) if lazy else weights
    with dask.config.set(scheduler="synchronous"):
        model = _model().fit(_chunked(X), sample_weight=given)
        cost = model.cost(_chunked(X), sample_weight=given)
    assert_same_fit(model, _model().fit(X, sample_weight=weights))
    assert cost == pytest.approx(model.cost_, rel=1e-6)


def test_weights_are_repetition(X):
    few = X[:3000].astype(np.float64)
    counts = np.random.default_rng(4).integers(1, 4, size=len(few))
    many = np.repeat(few, counts, axis=0)
    params = {"landmarks": few[:50], "n_landmarks": "auto", "init": few[:5]}
    with dask.config.set(scheduler="synchronous"):
        weighted = _model(**params).fit(_chunked(few, 700), sample_weight=counts)
        repeated = _model(**params).fit(_chunked(many, 900))
    np.testing.assert_array_equal(
        np.repeat(weighted.labels_.compute(), counts), repeated.labels_.compute()
    )
    assert weighted.cost_ == pytest.approx(repeated.cost_, rel=1e-12)


def test_sparse_partitions(client):
    rows = sparse.random_array(
        (3 * _CHUNK, 50), density=0.1, format="csr", rng=np.random.default_rng(0)
    )
    chunks = [
        da.from_delayed(
            dask.delayed(rows[start : start + _CHUNK]), (_CHUNK, 50), rows.dtype
        )
        for start in range(0, rows.shape[0], _CHUNK)
    ]
    X = da.concatenate(chunks)
    model, expected = _short_model().fit(X), _short_model().fit(rows)
    assert sparse.issparse(model.landmarks_)
    assert_same_fit(model, expected)
    np.testing.assert_array_equal(model.predict(X).compute(), expected.predict(rows))


@pytest.mark.parametrize(
    ("found", "kept"),
    [((5000, 6), True), ((5000, 6), False), ((_CHUNK, 7), True), ((4000, 6), True)],
)
def test_partitions_of_another_shape_than_declared(X, local, found, kept, monkeypatch):
    blocks = [
        da.from_delayed(
            dask.delayed(np.resize)(X, found if i == 2 else (_CHUNK, 6)),
            (_CHUNK, 6),
            X.dtype,
        )
        for i in range(4)
    ]
    if not kept:
        monkeypatch.setattr(rows_module, "free_memory", lambda budget: (0, False))
    told = rf"Partition 2 of X has the shape \({found[0]}, {found[1]}\); \(4096, 6\)"
    lazy = da.concatenate(blocks)
    with dask.config.set(scheduler="synchronous"):
        for work in (
            lambda: _model().fit(lazy),
            lambda: local.cost(lazy),
            lambda: local.predict(lazy).compute(),
            lambda: local.transform(lazy).compute(),
        ):
            with pytest.raises(ValueError, match=told):
                work()


def test_partitions_of_unknown_length_have_the_declared_width(X, local):
    blocks = [
        da.from_delayed(dask.delayed(X[:100, :width]), (np.nan, 6), X.dtype)
        for width in (6, 1)  # a lone column would fit to any number of them
    ]
    lazy = da.concatenate(blocks, allow_unknown_chunksizes=True)
    told = r"Partition 1 of X has the shape \(100, 1\); \(100, 6\) was expected"
    with dask.config.set(scheduler="synchronous"):
        for work in (local.predict, local.transform):
            with pytest.raises(ValueError, match=told):
                work(lazy).compute()


def test_dataframes_have_names_and_unknown_lengths(X, client):
    local = _short_model().fit(X)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    cut = dd.from_pandas(frame, npartitions=1).repartition(
        divisions=[0, *range(_CHUNK, len(X), _CHUNK), len(X) - 1]
    )
    assert np.isnan(cut.to_dask_array().shape[0])
    model = _short_model().fit(cut)
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert_same_fit(model, local)
    lazy = model.predict(cut)
    assert np.isnan(lazy.shape[0])
    np.testing.assert_array_equal(lazy.compute(), local.predict(X))
    assert model.cost(cut) == local.cost(X)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(cut.rename(columns={"a": "z"}))


@pytest.mark.parametrize("source", ["array", "repartitioned", "persisted"])
def test_a_scheduler_meets_no_two_tasks_of_one_key(X, client, caplog, source):
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=3)
    rows = {
        "array": lambda: _chunked(X) + 1.0,
        "repartitioned": lambda: frame.repartition(divisions=[0, 9000, len(X) - 1]),
        "persisted": lambda: frame.persist() + 1.0,
    }[source]()
    with caplog.at_level("WARNING", logger="distributed.scheduler"):
        model = _short_model().fit(rows)
        labels = model.predict(rows).compute()
        model.transform(rows).compute()
        model.cost(rows)
        np.testing.assert_array_equal(labels, model.labels_.compute())
    assert "run_spec" not in caplog.text


def test_dataframes_of_mixed_numbers_and_empty_partitions():
    frame = pd.DataFrame(
        {
            "count": np.arange(4000) % 7,
            "flag": np.arange(4000) % 2 == 0,
            "maybe": pd.array(np.arange(4000) % 5, dtype="Int64"),
            "real": np.linspace(0, 1, 4000, dtype=np.float32),
        }
    )
    cut = dd.from_pandas(frame, npartitions=4)
    some = cut[cut["real"] > 0.3]  # leaves the first partition empty
    with dask.config.set(scheduler="synchronous"):
        model = _model().fit(some)
        labels = model.predict(some).compute()
    expected = _model().fit(frame[frame["real"] > 0.3].astype(np.float64))
    assert model.cost_ == pytest.approx(expected.cost_, rel=1e-9)
    np.testing.assert_array_equal(labels, expected.labels_)


# -- after the fit -------------------------------------------------------------------


def test_predictions_are_lazy_and_equal(X, local, client):
    rows = _chunked(X, 5000)
    labels, distances = local.predict(rows), local.transform(rows)
    for lazy in (labels, distances):
        assert isinstance(lazy, da.Array)
    assert labels.chunks == (rows.chunks[0],)
    assert (distances.shape, distances.dtype) == ((len(X), 5), np.float32)
    np.testing.assert_array_equal(labels.compute(), local.predict(X))
    np.testing.assert_allclose(distances.compute(), local.transform(X), atol=2e-3)
    assert isinstance(local.cost(rows), float)
    assert local.cost(rows) == pytest.approx(local.cost(X), rel=1e-6)
    assert local.score(rows) == pytest.approx(local.score(X), rel=1e-6)


def test_predictions_compute_nothing(X, local):
    def never(block):
        raise AssertionError("computed")

    rows = da.map_blocks(
        never, _chunked(X), dtype=X.dtype, meta=np.empty((0, 0), dtype=X.dtype)
    )
    assert local.predict(rows).shape == (len(X),)
    assert local.transform(rows).shape == (len(X), 5)


def test_a_kernel_of_the_user(X, client):
    class Triangle(Kernel):
        constant_diagonal = 1.0

        def against(self, Z, dtype=None, workers=None):
            def columns(block, out=None):
                far = np.abs(block[:, None] - Z).max(axis=2)
                values = np.maximum(1.0 - far / 8.0, 0.0).astype(dtype)
                if out is None:
                    return values
                out[...] = values
                return out

            return columns

        def diagonal(self, X):
            return np.ones(len(X))

    params = {"kernel": Triangle(), "gamma": "mean", "n_landmarks": 10}
    few = X[: 2 * _CHUNK]
    model = _short_model(**params)
    assert_same_fit(clone(model).fit(_chunked(few)), model.fit(few))


# -- errors --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "gamma"), [(np.nan, "NaN", 0.1), (np.inf, "infinity", "mean")]
)
def test_a_row_that_is_not_finite_is_named(X, value, kind, gamma, client):
    bad = X.copy()
    bad[9001, 2] = value
    where = r"\(row 9001, column 2\)"
    message = rf"Partition 2 of X \(rows from 8192\) contains {kind} {where}"
    with pytest.raises(ValueError, match=message):
        _model(gamma=gamma).fit(_chunked(bad))


@pytest.mark.parametrize("row", [0, 9001])  # in a sample, and in a pass
def test_the_column_of_a_dataframe_is_named(X, row):
    bad = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    bad.loc[row, "x2"] = np.nan
    with dask.config.set(scheduler="synchronous"):
        frame = dd.from_pandas(bad, npartitions=3)
        with pytest.raises(ValueError, match=rf"NaN \(row {row}, column 'x2'\)"):
            _model(gamma=0.1).fit(frame)


def test_a_new_row_that_is_not_finite_is_named(X, local):
    bad = X.copy()
    bad[9001, 2] = np.nan
    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(ValueError, match=r"Input X contains NaN \(row 9001"):
            local.predict(_chunked(bad)).compute()
        unknown = _chunked(bad)[da.from_array(np.ones(len(X), bool), chunks=_CHUNK)]
        with pytest.raises(ValueError, match=r"Partition 2 of X .* \(row 809"):
            local.predict(unknown).compute()


@pytest.mark.parametrize("name", sorted(set(SELECTORS) - set(_ON_CLUSTERS)))
def test_other_selectors_are_refused(X, name):
    with pytest.raises(ValueError, match=r"'uniform', .*'kmeans'\], or .*on a sample"):
        _model(landmarks=name).fit(_chunked(X))


@pytest.mark.parametrize(
    ("params", "fit", "message"),
    [
        ({}, {"labels_out": "labels.npy"}, "labels_out='labels.npy' should be None"),
        ({"reducer": PCA(2)}, {}, r"PCA\(.*\) cannot be fitted to a Dask"),
        ({"reducer": "laplacian"}, {}, "never loaded into one process.*fit_rows"),
        ({"reducer": ApproximateSVD(svd="exact")}, {}, "svd='exact' does not work"),
        ({"kernel": "precomputed"}, {}, "'precomputed' does not take a Dask"),
        ({}, {"sample_weight": np.ones(3)}, r"shape=\(3,\) should be \(16384,\)"),
        ({"n_landmarks": 10**6}, {}, "should be <= n_samples=16384"),
    ],
)
def test_what_is_not_possible_is_said(X, params, fit, message):
    with pytest.raises((ValueError, TypeError), match=message):
        _model(**params).fit(_chunked(X), **fit)


def test_batches_are_those_of_a_local_partial_fit(X):
    batches, local, model = np.split(X, [2 * _CHUNK]), _model(), _model()
    for batch in batches:
        local.partial_fit(batch)
        with dask.config.set(scheduler="synchronous"):
            model.partial_fit(_chunked(batch))
    assert_same_fit(model, local)


@pytest.mark.parametrize("at", [2, 5])
def test_a_fit_that_was_stopped_resumes_from_its_checkpoint(
    X, at, tmp_path, monkeypatch
):
    # Without swaps of centres, which on few rows are tried again.
    model = _model(n_init=12)
    local, saved, passes = (
        clone(model).fit(X),
        Checkpoint(tmp_path / "run.ckpt", every=0.0),
        [],
    )
    run = DaskBackend.run

    def stopped(self, reduction, *values):
        if isinstance(reduction, FullPass | PartialPass):
            passes.append(reduction)
            if len(passes) == at:
                saved.stop()
        return run(self, reduction, *values)

    monkeypatch.setattr(DaskBackend, "run", stopped)
    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(KeyboardInterrupt):
            clone(model).fit(_chunked(X), checkpoint=saved)
        before = len(passes)
        assert_same_fit(model.fit(_chunked(X), checkpoint=saved.path), local)
        # All but what was done before; then, of a fit that is done, hardly any.
        assert len(passes) <= before + local.n_iter_ - at + 2
        done = len(passes)
        assert_same_fit(model.fit(_chunked(X), checkpoint=saved.path), local)
        assert len(passes) <= done + 1
        with pytest.raises(ValueError, match="is of another fit: the rows' digest"):
            model.fit(_chunked(X + 1), checkpoint=saved.path)


def test_estimators_of_one_process_name_the_other(X):
    with pytest.raises(TypeError, match=r"does not take a Dask .*NystromKMeans does"):
        KernelKMeans(3).fit(_chunked(X))


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (da.ones(5), ValueError, "two dimensions"),
        (da.ones((5, 0)), ValueError, "0 feature"),
        (da.ones((5, 2), dtype=complex), ValueError, "complex128; it should be num"),
        (dask.delayed(1), TypeError, "should be a Dask array or a Dask dataframe"),
        (
            dd.from_pandas(pd.DataFrame({"a": [1.0], "b": ["x"]}), npartitions=1),
            ValueError,
            "Column 'b' of X",
        ),
        (da.ones((3, 2)), ValueError, "n_samples=3 should be >= n_clusters=5"),
    ],
)
def test_tables_that_are_none(rows, error, message):
    with pytest.raises(error, match=message):
        _model().fit(rows)


def test_a_wrong_width_is_an_error(X, local):
    with pytest.raises(ValueError, match="expecting 6 features"):
        local.predict(_chunked(X[:, :4]))


def test_models_of_reduced_rows_reduce_partitions(X):
    model = _model(reducer="sign").fit(X[:3000])
    with dask.config.set(scheduler="threads"):
        labels = model.predict(_chunked(X))
        assert isinstance(labels, da.Array)
        np.testing.assert_array_equal(labels.compute(), model.predict(X))


@pytest.mark.parametrize(
    ("width", "how"), [(20, Reassign.SINGLE), (130, Reassign.PICKED)]
)
def test_partitions_of_whole_blocks_have_the_labels_of_a_local_fit(
    width, how, monkeypatch
):
    # Weak groups: rows in plenty lie between two centres, where roundings show.
    height, rng = 4096, np.random.default_rng(0)
    X = rng.normal(size=(12 * height, width))
    X += 0.6 * rng.normal(size=(5, width))[rng.integers(5, size=len(X))]
    X = X.astype(np.float32)
    model = NystromKMeans(8, n_landmarks=400, n_init=1, tol=1e-4, random_state=0)
    seen, choose = set(), Reassign.choose

    def spy(*sizes):
        seen.add(choose(*sizes))
        return choose(*sizes)

    monkeypatch.setattr(Reassign, "choose", spy)
    alone = clone(model).fit(X)
    assert how in seen
    with dask.config.set(scheduler="threads"):
        model.fit(_chunked(X, 5 * height))
        np.testing.assert_array_equal(model.labels_.compute(), alone.labels_)
    assert model.cost_ == alone.cost_


def test_no_task_is_sent_in_two_forms(X, client):
    def warned():
        return sum("run_spec" in line for _, line in client.get_scheduler_logs())

    before = warned()
    lazy = (_chunked(X.astype(np.float64)) + 0.0).astype(np.float32)
    model = _short_model().fit(lazy)
    np.testing.assert_array_equal(model.predict(lazy), model.labels_)
    assert warned() == before


def test_the_cost_of_no_rows(X):
    model = _model().fit(X[:3000])
    table = dd.from_pandas(pd.DataFrame(X[:100]), npartitions=2)
    with pytest.raises(ValueError, match="X has 0 samples"):
        model.cost(table[table[0] > 1e9].to_dask_array())


@pytest.mark.parametrize("where", ["here", "on workers"])
def test_rows_that_all_centres_left_behind_get_one_by_a_swap(where):
    """Twenty tight rows of many, in which no restart had a centre."""
    rng = np.random.default_rng(4)
    groups = rng.integers(3, size=20_000)
    X = rng.normal(size=(20_000, 3)) + 40.0 * np.eye(3)[groups]
    X[::1000] = [0.0, 90.0, 0.0] + 0.01 * rng.normal(size=(20, 3))
    groups[::1000] = -1
    one, two, three = (np.flatnonzero(groups == j) for j in range(3))
    seeds = np.array(
        [[one[X[one, 1].argmin()], one[X[one, 1].argmax()], two[0], three[0]]]
    )
    kernel = Linear()
    with Workers(1) as workers, dask.config.set(scheduler="threads"):
        table = da.from_array(X, chunks=(8_192, 3)) if where == "on workers" else X
        rows = as_rows(table, workers)
        rows.persist(2**30)
        engine = new_engine(rows, landmark_space(kernel, X[:8], rows.dtype, workers))
        (result,) = lloyd(engine, engine.centers_at(seeds), max_iter=50, tol=1e-6)
        schedule = Schedule(1, 50, 1e-6, 0, swaps=True)
        search = Search(schedule, kernel.distances_among, Progress(NystromKMeans()))
        found = search.rescue_far_rows(engine, result, np.random.default_rng(0))
        labels = found.labels[np.arange(len(X))]
    assert result.cost > 1.5 * found.cost
    assert len(set(labels[::1000])) == 1
    assert found.counts[labels[0]] == 20.0
    assert found.cost == pytest.approx(3.0, rel=0.05)


@pytest.mark.parametrize("where", ["here", "on workers"])
def test_swaps_on_all_rows_mend_what_subsamples_have_missed(where):
    """A pair of groups that shares a centre, and a group that has two."""
    X, groups = make_blobs(9_000, 4, centers=8, cluster_std=0.5, random_state=1)
    firsts = np.array([np.flatnonzero(groups == j)[0] for j in range(8)])
    firsts[0] = np.flatnonzero(groups == 1)[1]
    kernel = Linear()
    with Workers(1) as workers, dask.config.set(scheduler="threads"):
        table = da.from_array(X, chunks=(8_192, 4)) if where == "on workers" else X
        rows = as_rows(table, workers)
        rows.persist(2**30)
        engine = new_engine(rows, landmark_space(kernel, X[:8], rows.dtype, workers))
        schedule = Schedule(1, 50, 1e-6, 0, swaps=True)
        search = Search(schedule, kernel.distances_among, Progress(NystromKMeans()))
        start = engine.centers_at(firsts[None])
        (stuck,) = search.finish(engine, start)
        (found,) = search.finish_race(engine, start, np.random.default_rng(0))
    assert stuck.cost > 2.0 * found.cost
    assert found.cost == pytest.approx(4 * 0.25, rel=0.05)
