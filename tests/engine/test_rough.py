"""The race in a rough space, what is computed beside it, and second looks at rows."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

from sketchmeans import NystromKMeans, open_rows
from sketchmeans.data.rows import Rows, by_block
from sketchmeans.data.source_rows import SourceRows
from sketchmeans.engine import looks
from sketchmeans.engine.blocks import BlockEngine
from sketchmeans.engine.bundles import bundled
from sketchmeans.engine.coordinates import cheap_to_repeat
from sketchmeans.engine.looks import Look
from sketchmeans.engine.spaces import InputSpace, LandmarkSpace
from sketchmeans.kernels import as_kernel
from sketchmeans.numerics import parallel
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
    rough = _space(X, workers, m, rank=rank).rough(k)
    assert (None if rough is None else rough.n_coordinates) == size


def test_input_space_is_never_rough(X, workers):
    assert InputSpace.of(Rows(X, workers), 2).rough(2) is None


@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
def test_lifted_centres_are_the_same_points(X, workers, kernel):
    whole = _space(X, workers, 405, kernel)
    rough = whole.rough(3)
    rows = Rows(X, workers)
    centers = BlockEngine(rows, rough).centers_at(np.array([[0, 1, 2], [5, 6, 7]]))
    lifted = BlockEngine(rows, whole).centers_of_means(rough.lifted(centers))
    for restart in range(2):
        one, other = centers.select([restart]), lifted.select([restart])
        np.testing.assert_allclose(
            BlockEngine(rows, whole).all_distances(other),
            BlockEngine(rows, rough).all_distances(one),
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
    monkeypatch.setattr(LandmarkSpace, "rough", lambda self, k: None)
    assert np.mean(quick) <= 1.003 * np.mean(costs())


def test_passes_over_all_rows_are_cheap_to_repeat_or_not(workers):
    for n, d, cheap in [(2000, 200, True), (2000, 20, False), (2**21, 200, False)]:
        rows = Rows(np.broadcast_to(np.float32(0.0), (n, d)), workers)
        space = _space(np.zeros((100, d)), workers, 100)
        assert cheap_to_repeat(rows, space) is cheap


@pytest.mark.parametrize(
    ("share", "few", "many"),
    [
        (0.04, Look.SINGLE, Look.SINGLE),
        (0.3, Look.SINGLE, Look.PICKED),
        (0.5, Look.ALL, Look.PICKED),
        (0.7, Look.ALL, Look.ALL),
    ],
)
def test_how_rows_are_looked_at_again(share, few, many):
    assert Look.at(int(share * 1000), 1000, 20) is few
    assert Look.at(int(share * 1000), 1000, 200) is many


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("look", [Look.SINGLE, Look.PICKED])
def test_a_second_look_finds_what_a_full_pass_finds(X, workers, look, weighted):
    weights = np.random.default_rng(1).uniform(size=1000) if weighted else None
    space = _space(X, workers, 150)
    engine = BlockEngine(Rows(X, workers, weights), space)
    start = engine.centers_at(np.array([[0, 1, 2, 3]]))
    first = engine.assign(start)
    moved = engine.update(first, start)
    active = engine._bounds.follow(moved)
    assert 0 < len(active) < 1000
    again = engine._reassign(engine._bounds, active, look)
    fresh = BlockEngine(Rows(X, workers, weights), space).assign(moved)
    np.testing.assert_array_equal(again.labels, fresh.labels)
    np.testing.assert_allclose(again.costs, fresh.costs, rtol=1e-12)
    np.testing.assert_allclose(again.sums, fresh.sums, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(again.counts, fresh.counts, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("look", [Look.SINGLE, Look.PICKED])
@pytest.mark.parametrize("kind", ["landmarks", "not constant", "input", "sparse"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_looked_at_together_have_the_bits_of_each_alone(
    X, n_jobs, kind, look, weighted, monkeypatch
):
    monkeypatch.setattr(parallel, "_TASK_WORK", 1e3)
    weights = np.random.default_rng(1).uniform(size=1000) if weighted else None
    found, bundles = {}, {}
    for most in (1, 2, 16):
        with Workers(n_jobs) as workers:
            rows = Rows(
                sparse.csr_array(X) if kind == "sparse" else X, workers, weights
            )
            if kind in ("input", "sparse"):
                space = InputSpace.of(rows, 4)
            else:
                name = "rbf" if kind == "landmarks" else "polynomial"
                space = _space(X, workers, 150, name)
            space.height = 64  # 16 blocks
            monkeypatch.setattr(looks, "_BUNDLES_PER_THREAD", 16 / most / n_jobs)
            engine = BlockEngine(rows, space, 10**9)
            start = engine.centers_at(np.array([[0, 1, 2, 3]]))
            first = engine.assign(start)
            moved = engine.update(first, start)
            active = engine._bounds.follow(moved)
            active = active[np.random.default_rng(2).random(len(active)) < 0.15]
            active = active[active // 64 != 5]
            n_blocks = int(engine._most_blocks())
            bundles[most] = len(list(bundled(active, 16, 64, n_blocks)))
            again = engine._reassign(engine._bounds, active, look)
            bounds = engine._bounds
            found[most] = [again.labels, again.sums, again.counts]
            found[most] += [bounds.upper, bounds.lower]
            changed = np.flatnonzero(again.labels != first.labels)
            assert len(np.unique(changed // 64)) > 1  # rows of several blocks move
    assert bundles[1] == 16
    assert (bundles[16] < bundles[2] < 16) is (kind != "sparse")
    for most in (2, 16):
        for one, other in zip(found[1], found[most], strict=True):
            np.testing.assert_array_equal(one, other)


def test_rows_of_a_file_are_looked_at_block_by_block(X, tmp_path, monkeypatch):
    """Threads that are far apart in a file would decode it more than once."""
    np.save(tmp_path / "rows.npy", X)
    seen = []
    map_blocks = Workers.map

    def recorded(self, function, items, work=np.inf):
        seen.append((len(list(items)), work))
        return map_blocks(self, function, items, work)

    with Workers(2) as workers:
        for source in (X, open_rows(tmp_path / "rows.npy")):
            rows = (Rows if source is X else SourceRows)(source, workers)
            space = _space(X, workers, 150)
            space.height = 64
            engine = BlockEngine(rows, space)
            start = engine.centers_at(np.array([[0, 1, 2, 3]]))
            moved = engine.update(engine.assign(start), start)
            active = engine._bounds.follow(moved)[::20]
            with monkeypatch.context() as patch:
                patch.setattr(Workers, "map", recorded)
                engine._reassign(engine._bounds, active, Look.SINGLE)
    (n_near, near), (n_far, far) = seen
    assert n_near == 8
    assert n_far == 16
    assert near < far == np.inf


@pytest.mark.parametrize(("n_jobs", "most"), [(1, 4), (2, 2), (8, 1)])
def test_there_are_bundles_for_every_thread(X, n_jobs, most):
    with Workers(n_jobs) as workers:
        space = _space(X, workers, 150)
        space.height = 64  # 16 blocks
        assert BlockEngine(Rows(X, workers), space)._most_blocks() == most


@pytest.mark.parametrize("most", [1, 2, 5, 100])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_bundles_have_all_blocks_and_few_rows(share, most):
    rng = np.random.default_rng(0)
    numbers = np.flatnonzero(rng.random(103) < share)
    bundles = list(bundled(numbers, 11, 10, most))
    blocks_of = [b.first + i for b in bundles for i in range(len(b))]
    assert blocks_of == list(range(11))
    seen = [
        (block, number)
        for bundle in bundles
        for block, place, inside in bundle.parts()
        for number in numbers[place]
        if (numbers[bundle.span][inside] == numbers[place]).all()
    ]
    assert seen == [(number // 10, number) for number in numbers]
    assert all(len(b) <= most for b in bundles)
    assert all(len(b) == 1 or len(numbers[b.span]) <= 5 for b in bundles)
    if share == 0.1:  # which are ten rows
        assert len(bundles) == {1: 11, 2: 6, 5: 3, 100: 2}[most]


def test_rows_are_told_apart_by_block():
    numbers = np.array([0, 3, 4, 11])
    assert by_block(numbers, 4) == [(0, (0, 2)), (1, (2, 3)), (2, (3, 4))]
    assert by_block(np.array([], dtype=int), 4) == []


def test_light_work_stays_in_this_thread():
    with Workers(2) as workers:
        here = threading.get_ident()
        names = list(workers.map(lambda _: threading.get_ident(), range(4), work=10.0))
        assert set(names) == {here}
        names = list(workers.map(lambda _: threading.get_ident(), range(4)))
        assert here not in names


def test_light_work_is_handed_over_together():
    task = parallel._TASK_WORK
    with Workers(2) as workers:
        here = threading.get_ident()
        found = list(
            workers.map(lambda i: (i, threading.get_ident()), range(50), task / 10)
        )
        assert [i for i, _ in found] == list(range(50))
        assert here not in {name for _, name in found}
        for part in range(5):  # ten items make a task
            assert len({name for _, name in found[10 * part : 10 * part + 10]}) == 1


def _wide(dtype=np.float32):
    return np.random.default_rng(0).normal(size=(9000, 150)).astype(dtype)


def _engine_of(X, workers, budget=10**9):
    space = LandmarkSpace(as_kernel("rbf", gamma=0.01), X[:64], X.dtype, workers)
    return BlockEngine(Rows(X, workers), space, budget)


def test_blocks_are_stored_beside_other_work():
    X = _wide()
    with Workers(2) as workers:
        engine = _engine_of(X, workers)
        assert len(engine._spans) > 2
        with engine.stored_ahead(beside=100):
            end = time.monotonic() + 60.0
            while not engine._at_hand and time.monotonic() < end:
                time.sleep(0.001)
        assert engine._at_hand
        afresh = _engine_of(X, workers, budget=0)
        for span, block in zip(engine._spans, engine._store, strict=True):
            np.testing.assert_array_equal(block, afresh.coordinates(span))


@pytest.mark.parametrize("why", ["threads", "memory", "file"])
def test_nothing_is_stored_ahead_without(why, tmp_path):
    X = _wide()
    np.save(tmp_path / "rows.npy", X)
    with Workers(1 if why == "threads" else 2) as workers:
        engine = _engine_of(X, workers, budget=len(X) * 64 * 4 + 99 * 64 * 4)
        if why == "file":
            source = SourceRows(open_rows(tmp_path / "rows.npy"), workers)
            engine = BlockEngine(source, engine.space, 10**9)
        with engine.stored_ahead(beside=100 if why == "memory" else 0):
            time.sleep(0.05)
        assert engine._store == [None] * len(engine._spans)


def test_work_ahead_ends_with_the_context_and_hides_no_error():
    X = _wide()
    with Workers(2) as workers:
        engine = _engine_of(X, workers)
        begun, go_on = threading.Event(), threading.Event()
        compute = engine.coordinates

        def slow(span):
            begun.set()
            go_on.wait()
            return compute(span)

        def interrupted():
            with engine.stored_ahead():
                begun.wait()
                raise KeyError

        engine.coordinates = slow
        with pytest.raises(KeyError):
            interrupted()
        go_on.set()
        list(workers.map(lambda _: None, range(8)))  # behind the block in the making
    assert [block is None for block in engine._store].count(False) == 1
    assert engine._store[-1] is not None


def test_what_fails_ahead_fails_in_the_fit():
    X = _wide()
    X[-1, 7] = np.nan
    with pytest.raises(ValueError, match=r"NaN \(row 8999, column 7\)"):
        NystromKMeans(3, gamma=0.01, n_landmarks=20, n_jobs=2).fit(X)
