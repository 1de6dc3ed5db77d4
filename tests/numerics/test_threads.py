"""Threads change the time and nothing else."""

import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from sketchmeans import KernelKMeans, NystromKMeans
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.engine.store import KEEP_FROM_FEATURES, KernelBlocks
from sketchmeans.numerics.parallel import Workers, effective_n_jobs

# Several blocks, the last one partial, and two subsamples before the full passes.
N_ROWS = 33_001


def _table(n_features, dtype, n_rows=N_ROWS):
    """Return overlapping clusters, so that rounding would show in the labels."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, n_features)) * 2.0
    X = centres[rng.integers(6, size=n_rows)] + rng.normal(size=(n_rows, n_features))
    if np.dtype(dtype).kind in "iu":
        return np.clip(20.0 * X + 128.0, 0, 255).astype(dtype)
    return X.astype(dtype)


def _same_bits(first, second):
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.cost_ == second.cost_
    assert first.gamma_ == second.gamma_
    np.testing.assert_array_equal(first.cost_path_, second.cost_path_)
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    np.testing.assert_array_equal(first.exemplar_indices_, second.exemplar_indices_)


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("rbf", np.float64),
        ("rbf", np.uint8),
        ("laplacian", np.float32),
        ("linear", np.float64),
        ("cosine", np.float32),
    ],
)
def test_thread_count_changes_no_bit(kernel, dtype):
    X = _table(8, dtype)
    one, two = (
        NystromKMeans(
            6, kernel=kernel, n_landmarks=60, n_jobs=n_jobs, random_state=0
        ).fit(X)
        for n_jobs in (1, 2)
    )
    _same_bits(one, two)


def test_thread_count_changes_no_bit_of_csr_rows():
    dense = _table(20, np.float32, 20_001)
    dense[np.abs(dense) < 2.0] = 0.0
    X = sparse.csr_array(dense)
    one, two = (
        NystromKMeans(6, n_landmarks=60, n_jobs=n_jobs, random_state=0).fit(X)
        for n_jobs in (1, 2)
    )
    _same_bits(one, two)


@pytest.mark.parametrize("algorithm", ["progressive", "full"])
def test_thread_count_changes_no_bit_of_weighted_rows(algorithm):
    X = _table(8, np.float32)
    weights = np.random.default_rng(1).exponential(size=len(X))
    one, two = (
        NystromKMeans(
            6, n_landmarks=50, algorithm=algorithm, n_jobs=n_jobs, random_state=0
        ).fit(X, sample_weight=weights)
        for n_jobs in (1, 2)
    )
    _same_bits(one, two)


@pytest.mark.parametrize("init", ["random", "greedy-k-means++", "local-search"])
def test_thread_count_changes_no_bit_of_a_seeding(init):
    X = _table(8, np.float32, 20_001)
    one, two = (
        NystromKMeans(6, n_landmarks=50, init=init, n_jobs=n_jobs, random_state=0).fit(
            X
        )
        for n_jobs in (1, 2)
    )
    _same_bits(one, two)


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [("rbf", np.float32), ("laplacian", np.float64), ("linear", np.float32)],
)
def test_thread_count_changes_no_bit_of_the_exact_fit(kernel, dtype):
    X = _table(8, dtype, 2200)  # three tiles a side
    fits = [
        KernelKMeans(6, kernel=kernel, n_jobs=n_jobs, random_state=0).fit(X)
        for n_jobs in (1, 5)
    ]
    _same_bits(*fits)


@pytest.mark.parametrize("estimator", [KernelKMeans, NystromKMeans])
def test_thread_count_changes_no_bit_of_predictions(estimator):
    X = _table(8, np.float32, 12_001)
    model = estimator(6, n_jobs=1, random_state=0).fit(X[:1500])
    one = model.predict(X), model.transform(X), model.cost(X), model.score(X)
    model.set_params(n_jobs=2)
    two = model.predict(X), model.transform(X), model.cost(X), model.score(X)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    assert one[2:] == two[2:]


# --- stored and recomputed kernel blocks ----------------------------------------


@pytest.fixture
def stores(monkeypatch):
    """Collect, for each engine over all rows, whether it stores kernel values."""
    found = []
    build = KernelBlocks.__init__

    def record(self, rows, space, *args, **kwargs):
        build(self, rows, space, *args, **kwargs)
        if len(rows) == N_ROWS:
            found.append(self.is_kept)

    monkeypatch.setattr(KernelBlocks, "__init__", record)
    return found


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("rbf", np.float64),
        ("rbf", np.uint8),
        ("polynomial", np.float32),
    ],
)
def test_stored_and_recomputed_blocks_have_the_same_bits(stores, kernel, dtype):
    X = _table(KEEP_FROM_FEATURES, dtype)
    # The kernel values take 33,001 · 800 · itemsize bytes: 106 or 211 MB.
    plenty, little = "1GB", "90MB" if dtype != np.float64 else "180MB"
    first, second = (
        NystromKMeans(
            6,
            kernel=kernel,
            n_landmarks=800,
            n_init=2,
            max_memory=memory,
            n_jobs=n_jobs,
            random_state=0,
        ).fit(X)
        for memory, n_jobs in ((plenty, 2), (little, 1))
    )
    assert stores == [True, False]
    _same_bits(first, second)


def test_a_store_is_read_after_it_is_written(stores, monkeypatch):
    # With a store each kernel block is computed once, whatever the number of passes.
    X = _table(KEEP_FROM_FEATURES, np.float32)
    heights = []
    compute = LandmarkSpace.kernel_block

    def count(self, block, out=None):
        heights.append(block.shape[0])
        return compute(self, block, out)

    monkeypatch.setattr(LandmarkSpace, "kernel_block", count)
    fits, computed = [], []
    for memory in ("1GB", "90MB"):
        heights.clear()
        model = NystromKMeans(
            6,
            n_landmarks=800,
            init=np.arange(6),
            tol=1e-3,
            max_memory=memory,
            random_state=0,
        )
        fits.append(model.fit(X))
        computed.append(sum(heights))
    assert stores == [True, False]
    _same_bits(*fits)
    assert fits[0].n_iter_ > 2
    assert computed[0] < 1.1 * N_ROWS
    assert computed[1] > 1.9 * N_ROWS


# --- the pool -------------------------------------------------------------------


def test_none_is_every_core():
    assert effective_n_jobs(None) == joblib.cpu_count()
    assert effective_n_jobs(-1) == joblib.cpu_count()
    assert effective_n_jobs(3) == 3
    assert effective_n_jobs(np.int64(3)) == 3


def test_negative_counts_from_the_end(monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    assert effective_n_jobs(None) == 8
    assert effective_n_jobs(-1) == 8
    assert effective_n_jobs(-2) == 7
    assert effective_n_jobs(-100) == 1


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_none_is_one_in_a_joblib_worker(backend):
    counts = Parallel(n_jobs=2, backend=backend)(
        delayed(effective_n_jobs)(n_jobs) for n_jobs in (None, None, 3)
    )
    assert counts == [1, 1, 3]


def test_fits_in_joblib_threads_agree_with_a_fit_alone():
    X = _table(8, np.float32, 20_001)

    def labels(seed):
        return NystromKMeans(6, n_landmarks=40, random_state=seed).fit(X).labels_

    together = Parallel(n_jobs=2, backend="threading")(
        delayed(labels)(seed) for seed in (0, 1, 2, 3)
    )
    for seed, found in enumerate(together):
        np.testing.assert_array_equal(found, labels(seed))


def _blas_threads():
    return {
        library["filepath"]: library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        before = _blas_threads()
        assert set(before.values()) == {2}
        yield before


def test_workers_limit_blas_and_restore_it(two_blas_threads):
    with Workers(2):
        assert set(_blas_threads().values()) == {1}
    assert _blas_threads() == two_blas_threads


def test_workers_restore_blas_after_an_error(two_blas_threads):
    with pytest.raises(RuntimeError, match="stop"), Workers(2):
        raise RuntimeError("stop")
    assert _blas_threads() == two_blas_threads


def test_nested_workers_restore_blas(two_blas_threads):
    with Workers(1):
        with Workers(1):
            assert set(_blas_threads().values()) == {1}
        assert set(_blas_threads().values()) == {1}
    assert _blas_threads() == two_blas_threads


def test_overlapping_workers_restore_blas(two_blas_threads):
    # Two fits in two threads of one process need not end in the order of their start.
    first, second = Workers(1), Workers(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    still_limited = set(_blas_threads().values())
    second.__exit__(None, None, None)
    assert _blas_threads() == two_blas_threads
    assert still_limited == {1}  # else the second fit's bits would depend on the first


def test_blas_is_restored_by_another_thread_than_limited_it(two_blas_threads):
    # threadpoolctl lets one thread at a time set limits, and ignores all others.
    first, second = Workers(1), Workers(1)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(first.__enter__).result()
        with second:
            thread.submit(first.__exit__, None, None, None).result()
            assert set(_blas_threads().values()) == {1}
        assert _blas_threads() == two_blas_threads


@pytest.mark.parametrize("estimator", [KernelKMeans, NystromKMeans])
def test_a_fit_restores_blas(estimator, two_blas_threads):
    X = _table(4, np.float64, 500)
    model = estimator(3, n_jobs=2, random_state=0).fit(X)
    model.predict(X)
    assert _blas_threads() == two_blas_threads
    with pytest.raises(ValueError, match="n_samples=2"):
        model.fit(X[:2])
    assert _blas_threads() == two_blas_threads


def _own_threads():
    return [t for t in threading.enumerate() if t.name.startswith("sketchmeans")]


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_map_keeps_the_order_and_runs_a_few_ahead_only(n_jobs):
    started = []

    def work(i):
        started.append(i)
        return i * i

    with Workers(n_jobs) as workers:
        results = workers.map(work, range(1000))
        assert [next(results) for _ in range(5)] == [0, 1, 4, 9, 16]
        assert len(started) < 100  # what waits in the queue is memory
        assert list(results) == [i * i for i in range(5, 1000)]
    assert not _own_threads()


def test_what_nobody_waits_for_is_not_worked_off():
    release, started = threading.Event(), []

    def work(i):
        started.append(i)
        if i > 0:
            release.wait()

    with Workers(2) as workers:
        results = workers.map(work, range(1000))
        next(results)
        results.close()  # the caller has seen enough
        release.set()
        list(workers.map(lambda i: i, range(20)))  # whatever was queued is through
    # The first, and at most one in the hands of each thread.
    assert len(started) <= 3


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_block_reaches_the_caller(n_jobs):
    done = []

    def work(i):
        if i == 7:
            raise ZeroDivisionError("block 7")
        done.append(i)
        return i

    with (
        pytest.raises(ZeroDivisionError, match="block 7"),
        Workers(n_jobs) as workers,
    ):
        list(workers.map(work, range(100_000)))
    assert len(done) < 1000  # the rest is not worked off
    assert not _own_threads()


@pytest.mark.parametrize(
    ("estimator", "n_jobs"), [(KernelKMeans, 1), (NystromKMeans, 2)]
)
def test_an_error_in_a_kernel_reaches_the_caller(estimator, n_jobs, two_blas_threads):
    def kernel(x, z):
        raise ArithmeticError("no such kernel")

    model = estimator(2, kernel=kernel, n_jobs=n_jobs)
    with pytest.raises(ArithmeticError, match="no such kernel"):
        model.fit(_table(3, np.float64, 200))
    assert not _own_threads()
    assert _blas_threads() == two_blas_threads


class _Interrupt:
    """A callback that presses Ctrl-C, at a task of this name."""

    def __init__(self, name, when):
        self.name, self.when, self.torn_down = name, when, False

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context):
        self.torn_down = True

    def on_fit_task_begin(self, estimator, context):
        self._press("begin", context)

    def on_fit_task_end(self, estimator, context):
        self._press("end", context)

    def _press(self, when, context):
        if (when, context.task_name) == (self.when, self.name):
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("estimator", "name", "when", "n_jobs"),
    [
        (KernelKMeans, "seeding", "end", 2),
        (KernelKMeans, "iteration", "begin", 1),
        (NystromKMeans, "seeding", "begin", 1),
        (NystromKMeans, "iteration", "end", 2),
    ],
)
def test_interrupt_shuts_the_threads_down(
    estimator, name, when, n_jobs, two_blas_threads
):
    X = _table(4, np.float64, 1000)
    interrupt = _Interrupt(name, when)
    model = estimator(3, n_jobs=n_jobs, random_state=0).set_callbacks(interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert interrupt.torn_down
    assert not _own_threads()
    assert _blas_threads() == two_blas_threads
    assert len(model.set_callbacks().fit(X).labels_) == 1000


def test_interrupt_between_blocks_drops_the_rest():
    done = []

    def interrupted():
        with Workers(2) as workers:
            for i, _ in enumerate(workers.map(done.append, range(100_000))):
                if i == 10:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(done) < 1000
    assert not _own_threads()


def test_a_task_may_map_over_the_same_pool():
    with Workers(2) as workers:

        def add_up(start):
            return sum(workers.map(lambda i: i, range(start, start + 10)))

        # In a thread of its own, so that tasks that wait for each other show.
        found = []
        thread = threading.Thread(
            target=lambda: found.extend(workers.map(add_up, range(8))), daemon=True
        )
        thread.start()
        thread.join(20.0)
        assert found == [10 * start + 45 for start in range(8)]
