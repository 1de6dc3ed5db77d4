"""Swaps on a subsample: many where passes over all rows are long, else a few."""

from __future__ import annotations

import numpy as np
import pytest

from sketchmeans import NystromKMeans
from sketchmeans.engine import restarts
from sketchmeans.engine.blocks import BlockEngine
from sketchmeans.engine.checkpoint import SavedFit

_K = 20


class Cut(BaseException):
    """The process ends."""


@pytest.fixture
def rows_are_many(monkeypatch):
    """Make passes over few rows count as if these were a hundred times as many."""
    monkeypatch.setattr(restarts, "_SWAP_SHARE", 25.0)


@pytest.fixture(scope="module", name="groups")
def separated_groups():
    """Groups of different sizes, the rarest with 0.5% of the rows."""
    rng = np.random.default_rng(3)
    shares = np.linspace(1.0, 19.0, _K)
    labels = rng.choice(_K, size=33_000, p=shares / shares.sum())
    X = rng.normal(scale=2.0, size=(_K, 20))[labels] + rng.normal(size=(33_000, 20))
    return X.astype(np.float32), labels


def _model(**params):
    return NystromKMeans(_K, n_landmarks=100, gamma=0.003, **params)


@pytest.mark.usefixtures("rows_are_many")
@pytest.mark.parametrize("seed", range(2))
def test_groups_that_seeds_have_missed_are_found(groups, seed):
    X, labels = groups
    planted = _model(init=labels, n_init=1, random_state=seed).fit(X)
    found = _model(random_state=seed).fit(X)
    assert found.cost_ == pytest.approx(planted.cost_, rel=1e-3)


@pytest.mark.parametrize("seed", [1, 6, 12, 17])
def test_a_group_that_seeds_have_missed_in_few_rows_is_found(seed):
    """Restarts alone miss one in a fourth of such tables, and these are among them."""
    rng = np.random.default_rng([5, seed])
    centers = rng.uniform(-2, 2, size=(_K, 20))
    labels = rng.integers(_K, size=33_000)
    X = (centers[labels] + rng.normal(size=(33_000, 20))).astype(np.float32)
    params = {"n_landmarks": 100, "gamma": 0.01, "random_state": 0}
    planted = NystromKMeans(_K, init=labels, n_init=1, **params).fit(X)
    found = NystromKMeans(_K, **params).fit(X)
    assert found.cost_ == pytest.approx(planted.cost_, rel=1e-3)


def test_where_no_swap_gains_a_short_search_tries_none(monkeypatch):
    """It costs a look at a few rows: clusters that overlap are not worth more."""
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=0.8, size=(10, 20))
    X = centers[rng.integers(10, size=33_000)] + rng.normal(size=(33_000, 20))
    tried = []
    monkeypatch.setattr(
        BlockEngine, "replace_centers", lambda self, *given: tried.append(given)
    )
    NystromKMeans(10, n_landmarks=100, random_state=0).fit(X.astype(np.float32))
    assert not tried


@pytest.mark.usefixtures("rows_are_many")
def test_swaps_after_a_cut_are_those_of_the_whole_fit(groups, tmp_path, monkeypatch):
    X, _ = groups
    model = _model(random_state=0)
    whole = model.fit(X)
    write, file = SavedFit.write, tmp_path / "fit.ckpt"
    n_written = []

    def cut(self):
        write(self)
        n_written.append(self)
        if len(n_written) == 4:
            raise Cut

    with monkeypatch.context() as patch:
        patch.setattr(SavedFit, "write", cut)
        with pytest.raises(Cut):
            _model(random_state=0).fit(X, checkpoint=file)
    again = _model(random_state=0).fit(X, checkpoint=file)
    np.testing.assert_array_equal(again.labels_, whole.labels_)
    assert again.cost_ == whole.cost_
