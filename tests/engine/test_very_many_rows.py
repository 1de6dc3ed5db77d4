"""Swaps on a subsample where passes over all rows are so long that they pay."""

from __future__ import annotations

import numpy as np
import pytest

from sketchmeans import NystromKMeans
from sketchmeans.engine import restarts
from sketchmeans.engine.checkpoint import SavedFit

_K = 20


class Cut(BaseException):
    """The process ends."""


@pytest.fixture(autouse=True)
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


@pytest.mark.parametrize("seed", range(2))
def test_groups_that_seeds_have_missed_are_found(groups, seed):
    X, labels = groups
    planted = _model(init=labels, n_init=1, random_state=seed).fit(X)
    found = _model(random_state=seed).fit(X)
    assert found.cost_ == pytest.approx(planted.cost_, rel=1e-3)


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
