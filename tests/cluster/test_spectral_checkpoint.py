"""A spectral fit that is cut off resumes, and ends as if nothing had happened."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.neighbors import kneighbors_graph

from sketchmeans import SpectralKMeans
from sketchmeans.engine.checkpoint import SavedFit

X = make_moons(1500, noise=0.2, random_state=0)[0]
WEIGHTS = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
GRAPH = kneighbors_graph(X[:400], 8)
CASES = {
    "neighbors": (X, {}, None),
    "whitened": (X * [1.0, 30.0], {"whiten": True}, WEIGHTS),
    "rbf, csr": (sparse.csr_array(X[:500]), {"affinity": "rbf"}, None),
    "graph": (0.5 * (GRAPH + GRAPH.T), {"affinity": "precomputed"}, WEIGHTS[:400]),
}


class Cut(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("case", CASES)
def test_every_cut_resumes_to_the_same_fit(case, tmp_path, monkeypatch):
    rows, params, weights = CASES[case]
    model = SpectralKMeans(3, n_init=2, random_state=0, **params)
    whole = model.fit(rows, sample_weight=weights)
    expected = {name: getattr(whole, name) for name in ("labels_", "dual_coef_")}
    path, write = tmp_path / "run.ckpt", SavedFit.write

    def cut(self):
        write(self)
        raise Cut

    monkeypatch.setattr(SavedFit, "write", cut)
    cuts = 0
    while cuts < 10:
        try:
            model.fit(rows, sample_weight=weights, checkpoint=path)
        except Cut:
            cuts += 1
        else:
            break
    assert cuts == 3  # the graph, its weights, the passes
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(model, name), value)
    np.testing.assert_array_equal(model.predict(rows), expected["labels_"])


def test_within_the_passes(tmp_path, monkeypatch):
    from sketchmeans import Checkpoint

    model = SpectralKMeans(5, n_init=1, random_state=0)
    labels, n_iter = model.fit(X).labels_, model.n_iter_
    assert n_iter > 3
    save = SavedFit.save

    def cut(self, state):
        save(self, state)
        if state().iteration == 2:
            raise Cut

    path = Checkpoint(tmp_path / "run.ckpt", every=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(SavedFit, "save", cut)
        with pytest.raises(Cut):
            model.fit(X, checkpoint=path)
    seen = []
    monkeypatch.setattr(
        SavedFit, "save", lambda self, state: seen.append(state().iteration)
    )
    np.testing.assert_array_equal(model.fit(X, checkpoint=path).labels_, labels)
    assert (model.n_iter_, seen[0]) == (n_iter, 3)


def test_another_fit_is_refused_and_labels_go_to_a_file(tmp_path):
    model = SpectralKMeans(2, n_init=1, random_state=0)
    path, out = tmp_path / "run.ckpt", tmp_path / "labels.npy"
    labels = model.fit_predict(X, checkpoint=path, labels_out=out)
    assert isinstance(labels, np.memmap)
    np.testing.assert_array_equal(np.load(out), model.predict(X))
    with pytest.raises(ValueError, match="is of another fit"):
        model.fit(X + 1e-6, checkpoint=path)
    with pytest.raises(ValueError, match="is of another fit: n_neighbors"):
        model.set_params(n_neighbors=5).fit(X, checkpoint=path)
