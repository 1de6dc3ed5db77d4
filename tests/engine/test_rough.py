"""The race in a rough space, what is computed beside it, and second looks at rows."""

from __future__ import annotations

import threading
import time
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from sketchmeans import NystromKMeans, open_rows
from sketchmeans.data.rows import Rows, by_block
from sketchmeans.data.source_rows import SourceRows
from sketchmeans.engine import restarts
from sketchmeans.engine.blocks import local_engine
from sketchmeans.engine.bounds import CenterShifts, Reassign
from sketchmeans.engine.passes import FullPass, LoosenBounds, PartialPass
from sketchmeans.engine.space import (
    InputSpace,
    LandmarkSpace,
    coarse_space,
    lift_means,
)
from sketchmeans.engine.store import KernelBlocks, cheap_to_repeat
from sketchmeans.kernels import as_kernel
from sketchmeans.numerics.parallel import Workers


@pytest.fixture
def workers():
    with Workers(1) as workers:
        yield workers


def _space(X, workers, m, kernel="rbf", **settings):
    params = {"gamma": 0.1} if kernel == "rbf" else {"gamma": 0.1, "degree": 2}
    return LandmarkSpace(
        as_kernel(kernel, **params), X[:m], np.dtype(np.float64), workers, **settings
    )


@pytest.fixture(name="X", scope="module")
def _rows():
    return np.random.default_rng(0).normal(size=(1000, 3))


@pytest.mark.parametrize(
    ("m", "k", "rank", "size"),
    [
        (1000, 5, None, 200),
        (401, 10, None, 201),
        (900, 30, None, 300),
        (399, 5, None, None),
        (400, 30, None, None),
        (600, 5, 300, 300),
        (500, 5, 300, None),
    ],
)
def test_a_rough_space_has_landmarks_enough(X, workers, m, k, rank, size):
    rough = coarse_space(_space(X, workers, m, rank=rank), k)
    assert (None if rough is None else rough.n_columns) == size


def test_input_space_is_never_rough(X, workers):
    assert coarse_space(InputSpace.of(Rows(X, workers), 2), 2) is None


@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
def test_lifted_centres_are_the_same_points(X, workers, kernel):
    whole = _space(X, workers, 405, kernel)
    rough = coarse_space(whole, 3)
    rows = Rows(X, workers)
    centers = local_engine(rows, rough).centers_at(np.array([[0, 1, 2], [5, 6, 7]]))
    lifted = local_engine(rows, whole).centers_of_means(lift_means(whole, centers))
    for restart in range(2):
        one, other = centers.select([restart]), lifted.select([restart])
        np.testing.assert_allclose(
            local_engine(rows, whole).all_distances(other),
            local_engine(rows, rough).all_distances(one),
            rtol=1e-5,
            atol=1e-5,
        )
    # What the engine relies on: ‖c‖² = b̄ᵀα.
    np.testing.assert_allclose(
        (lifted.means * lifted.coefficients).sum(axis=2), lifted.squared_norms
    )


def test_centres_of_a_rough_space_come_into_that_of_a_rank():
    X = np.random.default_rng(0).normal(size=(12_000, 4)).astype(np.float32)
    model = NystromKMeans(8, n_landmarks=400, rank=10, gamma=0.5, random_state=0)
    model.fit(X)
    assert model.n_iter_ > 2  # from centres outside the space, the cost would rise
    assert (np.diff(model.cost_path_) <= 1e-7).all()
    assert np.linalg.matrix_rank(model.dual_coef_, tol=1e-6) <= 10


@pytest.mark.parametrize("width", [4, 130])
def test_a_race_in_a_rough_space_loses_nothing(width, monkeypatch):
    X, _ = make_blobs(20_000, width, centers=12, cluster_std=3.0, random_state=0)
    X = X.astype(np.float32)

    def costs():
        return [
            NystromKMeans(12, n_landmarks=400, random_state=seed).fit(X).cost_
            for seed in range(4)
        ]

    quick = costs()
    monkeypatch.setattr(restarts, "coarse_space", lambda space, k: None)
    assert np.mean(quick) <= 1.003 * np.mean(costs())


def test_passes_over_all_rows_are_cheap_to_repeat_or_not(workers):
    for n, d, cheap in [(2000, 200, True), (2000, 20, False), (2**21, 200, False)]:
        rows = Rows(np.broadcast_to(np.float32(0.0), (n, d)), workers)
        space = _space(np.zeros((100, d)), workers, 100)
        assert cheap_to_repeat(rows, space) is cheap


@pytest.mark.parametrize(
    ("share", "few", "many"),
    [
        (0.04, Reassign.SINGLE, Reassign.SINGLE),
        (0.3, Reassign.SINGLE, Reassign.PICKED),
        (0.5, Reassign.ALL, Reassign.PICKED),
        (0.7, Reassign.ALL, Reassign.ALL),
    ],
)
def test_how_rows_are_assigned_again(share, few, many):
    assert Reassign.choose(int(share * 1000), 1000, 20) is few
    assert Reassign.choose(int(share * 1000), 1000, 200) is many


def _moved(engine):
    """Return centres, where they move, and what the first pass leaves with rows."""
    start = engine.centers_at(np.array([[0, 1, 2, 3]]))
    state, _ = engine.backend.run(FullPass(start))
    moved = engine.update(engine.assign(start), start)
    shifts = CenterShifts.between(start, moved)
    return start, moved, engine.backend.run(LoosenBounds(shifts), state)[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("how", [Reassign.SINGLE, Reassign.PICKED])
def test_a_partial_pass_finds_what_a_full_pass_finds(X, workers, how, weighted):
    weights = np.random.default_rng(1).uniform(size=1000) if weighted else None
    space = _space(X, workers, 150)
    space.height = 64  # 16 blocks
    engine = local_engine(Rows(X, workers, weights), space)
    start, moved, state = _moved(engine)
    assert 0 < state.active.sum() < 1000
    again, change = engine.backend.run(PartialPass(moved, how), state)
    fresh, sums = engine.backend.run(FullPass(moved), state.labels)
    before = engine.backend.run(FullPass(start))[1]
    np.testing.assert_array_equal(again.labels, fresh.labels)
    np.testing.assert_allclose(change.sums + before.sums, sums.sums, atol=1e-9)
    np.testing.assert_array_equal(change.counts, sums.counts)
    assert change.changed == sums.changed == [True]
    active = state.active
    np.testing.assert_allclose(again.upper[active], fresh.upper[active], atol=1e-7)
    np.testing.assert_allclose(again.lower[active], fresh.lower[active], atol=1e-7)
    assert (again.upper >= fresh.upper - 1e-7).all()
    assert (again.lower <= fresh.lower + 1e-7).all()


def test_passes_leave_what_they_are_given_as_it_was(X, workers):
    """On a cluster a task may run twice on the same state."""
    engine = local_engine(Rows(X, workers), _space(X, workers, 50))
    _, moved, state = _moved(engine)
    before = [state.labels.copy(), state.upper.copy(), state.lower.copy()]
    engine.backend.run(PartialPass(moved, Reassign.SINGLE), state)
    engine.backend.run(LoosenBounds(CenterShifts.between(moved, moved)), state)
    for one, other in zip(
        before, [state.labels, state.upper, state.lower], strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_rows_are_told_apart_by_block():
    numbers = np.array([0, 3, 4, 11])
    assert by_block(numbers, 4) == [(0, (0, 2)), (1, (2, 3)), (2, (3, 4))]
    assert by_block(np.array([], dtype=int), 4) == []


def test_a_lone_item_stays_in_this_thread():
    with Workers(2) as workers:
        here = threading.get_ident()
        assert list(workers.map(lambda _: threading.get_ident(), [0])) == [here]
        assert here not in list(workers.map(lambda _: threading.get_ident(), [0, 1]))


def _wide(dtype=np.float32):
    return np.random.default_rng(0).normal(size=(9000, 150)).astype(dtype)


def _blocks_of(X, workers, budget=10**9):
    space = LandmarkSpace(as_kernel("rbf", gamma=0.01), X[:64], X.dtype, workers)
    return KernelBlocks(Rows(X, workers), space, budget)


def test_blocks_are_computed_beside_other_work():
    X = _wide()
    with Workers(2) as workers:
        blocks = _blocks_of(X, workers)
        assert len(blocks.spans) > 2
        with blocks.prefetch(other_rows=100):
            end = time.monotonic() + 60.0
            while not blocks.is_complete and time.monotonic() < end:
                time.sleep(0.001)
        assert blocks.is_complete
        afresh = _blocks_of(X, workers, budget=0)
        assert not afresh.is_kept
        for span in blocks.spans:
            np.testing.assert_array_equal(blocks.values(span), afresh.values(span))


@pytest.mark.parametrize("why", ["threads", "memory", "file"])
def test_nothing_is_prefetched_without(why, tmp_path):
    X = _wide()
    np.save(tmp_path / "rows.npy", X)
    with Workers(1 if why == "threads" else 2) as workers:
        blocks = _blocks_of(X, workers, budget=len(X) * 64 * 4 + 99 * 64 * 4)
        if why == "file":
            source = SourceRows(open_rows(tmp_path / "rows.npy"), workers)
            blocks = KernelBlocks(source, blocks.space, 10**9)
        with blocks.prefetch(other_rows=100 if why == "memory" else 0):
            time.sleep(0.05)
        assert blocks._kept == [None] * len(blocks.spans)


def test_work_ahead_ends_with_the_context_and_hides_no_error():
    X = _wide()
    with Workers(2) as workers:
        blocks = _blocks_of(X, workers)
        begun, go_on = threading.Event(), threading.Event()
        compute = blocks.values

        def slow(span):
            begun.set()
            go_on.wait()
            return compute(span)

        def interrupted():
            with blocks.prefetch():
                begun.wait()
                raise KeyError

        blocks.values = slow
        with pytest.raises(KeyError):
            interrupted()
        go_on.set()
        list(workers.map(lambda _: None, range(8)))  # behind the block in the making
    assert [block is None for block in blocks._kept].count(False) == 1
    assert blocks._kept[-1] is not None


def test_what_fails_ahead_fails_in_the_fit():
    X = _wide()
    X[-1, 7] = np.nan
    with pytest.raises(ValueError, match=r"NaN \(row 8999, column 7\)"):
        NystromKMeans(3, gamma=0.01, n_landmarks=20, n_jobs=2).fit(X)


def test_a_partial_pass_adds_up_sums_as_they_come(X):
    """All of them at once would be k·m numbers for every block of rows."""
    many = np.tile(X, (20, 1))
    with Workers(1) as lone:
        space = _space(X, lone, 150)
        space.height = 16  # 1,250 blocks
        engine = local_engine(Rows(many, lone), space)
        _, moved, state = _moved(engine)
        tracemalloc.start()
        try:
            engine.backend.run(PartialPass(moved, Reassign.SINGLE), state)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    _, k, m = moved.coefficients.shape
    assert peak < 0.5 * len(many) / space.height * k * m * 8
