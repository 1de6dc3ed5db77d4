"""Plans: what a fit takes, from sizes and rates."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sketchmeans import NystromKMeans, SketchedKMeans, TableClusterer
from sketchmeans.data.rows import Rows
from sketchmeans.diagnostics import cost_model, plan
from sketchmeans.diagnostics.plan import open_space
from sketchmeans.landmarks.growth import first_size
from sketchmeans.numerics.machine import Machine, measure_machine
from sketchmeans.numerics.parallel import Workers

#: A round machine: plans do not depend on where tests run.
_MACHINE = Machine(gemm=1e11, exp=1e9, memory=1e10, n_threads=2)


def _plan(shape=(1_000_000, 20), n_clusters=10, n_landmarks=200, **options):
    model = NystromKMeans(n_clusters, n_landmarks=n_landmarks)
    return plan(model, shape, machine=_MACHINE, **options)


def test_sizes_are_those_of_the_table(tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 7)).astype(np.float32)
    found = plan(NystromKMeans(3, n_landmarks=50), X, machine=_MACHINE)
    assert (found.n_rows, found.n_features, found.n_bytes) == (3000, 7, 84_000)
    assert found.seconds == pytest.approx(sum(found.stages.values()))
    np.save(tmp_path / "rows.npy", np.tile(X, (400, 1)))
    model = TableClusterer(NystromKMeans(3, n_landmarks=50))
    stored = plan(model, str(tmp_path / "rows.npy"), machine=_MACHINE)
    assert stored.n_rows == 1_200_000
    assert stored.stages["reading"] > 0.0


def test_work_grows_as_the_arithmetic_says():
    one, two = _plan(), _plan((2_000_000, 20))
    for stage in ("moments", "passes", "closing"):
        assert two.stages[stage] == pytest.approx(2 * one.stages[stage])
    more = _plan(n_landmarks=400).stages["passes"]
    assert one.stages["passes"] < more < 2 * one.stages["passes"]
    assert two.memory > one.memory


def test_a_faster_machine_takes_less_time():
    problem = cost_model.Problem(10**6, 20, 10, 200)
    fast = Machine(2e11, 2e9, 2e10, 2)
    slow = cost_model.predict_seconds(problem, _MACHINE)
    quick = cost_model.predict_seconds(problem, fast)
    assert quick["passes"] == pytest.approx(slow["passes"] / 2)


def test_workers_share_the_passes_and_send_little():
    alone, found = _plan((10**7, 20)), _plan((10**7, 20), n_workers=20, memory="8GB")
    assert found.stages["passes"] == pytest.approx(alone.stages["passes"] / 10)
    assert found.stages["race"] == alone.stages["race"]
    k, m = found.n_clusters, found.n_landmarks
    assert found.network_per_pass == 20 * (2 * k * m * 8 + k * m * 4)
    assert found.tree_depth == 2
    assert found.problems == ()


def test_what_does_not_fit_is_said():
    (told,) = _plan((10**9, 100), n_workers=10, memory="8GB").problems[:1]
    assert "keep its rows, and has 8 GB" in told
    needed = int(told.split("take ")[1].split(" ")[0].replace(",", ""))
    enough = _plan((10**9, 100), n_workers=needed, memory="8GB")
    assert not any("keep its rows" in problem for problem in enough.problems)
    assert "lower n_landmarks" in _plan(memory="20MB").problems[0]


def test_memory_is_that_of_the_kernel_values_that_a_fit_holds():
    def values(n, d, k, m):
        with Workers(1) as workers:
            rows = Rows(np.zeros((n, d), np.float32), workers)
            terms = cost_model.memory_terms(rows, open_space(rows, m), k, 12)
        return terms["values"] / 4

    # Of the last subsample; of all rows, too, where these are wide; of leading
    # directions in place of many clusters' landmarks.
    assert values(300_000, 20, 3, 400) == 32_768 * (400 + 20)
    assert values(100_000, 128, 10, 200) >= 100_000 * 200
    assert values(100_000, 20, 100, 300) == 100_000 * 48 + 16_384 * (48 + 2.5 * 48)
    # Few rows are all of the sample.
    assert values(1000, 20, 3, 80) == 1000 * 80


def test_no_fit_is_planned_to_take_more_than_it_may():
    shape, most = (50_000_000, 20), 3 * 10**9
    assert _plan(shape, 20, 4000, memory="60GB").memory > most
    assert _plan(shape, 20, 4000, memory=most).memory == most
    model = NystromKMeans(20, n_landmarks=4000, max_memory=most)
    found = plan(model, shape, machine=_MACHINE)
    assert (found.memory, found.problems) == (most, ())


def test_automatic_landmarks_are_the_first_that_are_tried():
    found = _plan((1_000_000, 20), n_landmarks="auto")
    assert found.n_landmarks == first_size(1_000_000, 10)


def test_other_models_are_refused():
    with pytest.raises(ValueError, match="should be a NystromKMeans"):
        plan(SketchedKMeans(3), (1000, 3))
    with pytest.raises(ValueError, match="n_workers"):
        _plan(n_workers=0)


def test_plans_are_readable_and_plain():
    found = _plan(n_workers=4, memory="8GB")
    assert "80 MB" in repr(found)
    assert json.loads(json.dumps(found.to_dict()))["n_workers"] == 4


def test_rates_are_measured_once():
    machine = measure_machine(1)
    assert machine.n_threads == 1
    assert 1e8 < machine.gemm < 1e13
    assert 1e6 < machine.exp < 1e12
    assert 1e8 < machine.memory < 1e13
    assert measure_machine(1) is machine
