"""The second look at a result: a sample of many points sees what a look at all does."""

from dataclasses import replace

import numpy as np
import pytest

from sketchmeans import NystromKMeans, SketchedKMeans
from sketchmeans.cluster import search, sketched
from sketchmeans.engine import audit as module
from sketchmeans.engine.audit import audit

MODELS = {
    "linear": NystromKMeans(4, kernel="linear", random_state=0, n_jobs=1),
    "points": SketchedKMeans(4, reducer=None, random_state=0, n_jobs=1),
}
WEIGHTS = [None, "some"]


@pytest.fixture
def looked_at(monkeypatch):
    """Return a function from a model and a table to what its audit is given."""

    def find(model, X, weights=None, look=audit):
        found = []

        def keep(engine, result):
            found.append((engine, result, look(engine, result)))
            return result, True

        monkeypatch.setattr(search, "audit_result", keep)
        monkeypatch.setattr(sketched, "audit_result", keep)
        model.fit(X, sample_weight=weights)
        return found[-1]

    return find


def _table(dtype, n=40_000):
    rng = np.random.default_rng(3)
    groups = rng.integers(4, size=n)
    X = rng.normal(size=(n, 16)) + 4.0 * rng.normal(size=(4, 16))[groups]
    return X.astype(dtype)


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_a_sample_of_many_points_is_enough(name, dtype, kind, looked_at):
    X = _table(dtype)
    weights = None if kind is None else 1.0 + np.arange(len(X)) % 3
    engine, result, found = looked_at(MODELS[name], X, weights)
    assert found.is_sound
    assert found.distances is None  # not all were looked at
    costs = engine.own_costs(result.labels, result.centers)
    precise = costs.sum() / engine.rows.total_weight
    assert found.cost == pytest.approx(precise, rel=32.0 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("share", [-2e-3, 2e-3, 0.5])
@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_total_is_seen(name, share, looked_at):
    def look(engine, result):
        return audit(engine, replace(result, cost=(1.0 + share) * result.cost))

    _, result, wrong = looked_at(MODELS[name], _table(np.float32), look=look)
    assert not wrong.is_sound
    assert wrong.cost == pytest.approx(result.cost, rel=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_rounding_in_the_products_is_seen(name, looked_at):
    def look(engine, result):
        # As if ‖c‖² had been summed in too few digits: the bounds agree all the same.
        lengths = result.centers.squared_norms + 1e-4 * result.cost
        centers = replace(result.centers, squared_norms=lengths)
        wrong = module._is_exact(engine, replace(result, centers=centers))
        return module._is_exact(engine, result), wrong

    assert looked_at(MODELS[name], _table(np.float32), look=look)[2] == (True, False)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("far", [3e2, 1e4])
def test_distances_of_a_few_far_rows_are_looked_at(name, far, looked_at, monkeypatch):
    X = _table(np.float32)
    X[11:41] = far + np.random.default_rng(0).normal(size=(30, 16))
    seen = []
    own = module._both_distances

    def keep(engine, table, result, numbers):
        seen.append(numbers)
        return own(engine, table, result, numbers)

    monkeypatch.setattr(module, "_both_distances", keep)
    engine, result, found = looked_at(MODELS[name], X)
    small = np.flatnonzero(result.labels == result.labels[11])
    assert len(small) == 30
    assert found.distances is not None or np.isin(small, np.concatenate(seen)).all()
    costs = engine.own_costs(result.labels, result.centers)
    precise = costs.sum() / engine.rows.total_weight
    assert found.cost == pytest.approx(precise, rel=1e-5)
