"""Batches of rows, one after the other."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score

from sketchmeans import NystromKMeans
from tests import oracles
from tests.pairs import every_value


@pytest.fixture(scope="module")
def digits():
    return load_digits().data


def batches(X, size, rng):
    order = rng.permutation(len(X))
    return [X[order[i : i + size]] for i in range(0, len(X), size)]


@every_value
@pytest.mark.parametrize("size", [300, 600])
@pytest.mark.parametrize("seed", range(4))
def test_five_epochs_reach_the_cost_of_a_fit(seed, size, digits):
    rng = np.random.default_rng(seed)
    landmarks = digits[rng.choice(len(digits), 100, replace=False)]
    # From a poor start the two may well end in different local optima.
    part = digits[rng.choice(len(digits), 200, replace=False)]
    start = NystromKMeans(10, gamma=1e-4, random_state=seed).fit(part).exemplars_
    params = {"landmarks": landmarks, "init": start, "gamma": 1e-4}
    whole = NystromKMeans(10, **params).fit(digits)
    model = NystromKMeans(10, **params)
    for _ in range(5):
        for batch in batches(digits, size, rng):
            model.partial_fit(batch)
    assert model.cost(digits) <= 1.02 * whole.cost_


def test_the_first_batch_is_a_fit(digits):
    fit = NystromKMeans(10, n_landmarks=50, random_state=0).fit(digits[:500])
    part = NystromKMeans(10, n_landmarks=50, random_state=0).partial_fit(digits[:500])
    np.testing.assert_array_equal(fit.labels_, part.labels_)
    np.testing.assert_array_equal(fit.dual_coef_, part.dual_coef_)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_a_batch_moves_the_running_means(digits, weighted):
    model = NystromKMeans(5, n_landmarks=40, gamma=1e-3, random_state=0)
    model.fit(digits[:400])
    sizes, before = model.cluster_sizes_.copy(), model.dual_coef_.copy()
    Z, batch = model.landmarks_, digits[400:700]
    weights = 1.0 + np.arange(300) % 3 if weighted else np.ones(300)
    labels = model.predict(batch)
    cost = model.cost(batch, sample_weight=weights)
    model.partial_fit(batch, sample_weight=weights if weighted else None)
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.cost_ == pytest.approx(cost, rel=1e-9)
    member = (labels[:, None] == np.arange(5)) * weights[:, None]
    counts = member.sum(axis=0)
    np.testing.assert_allclose(model.cluster_sizes_, sizes + counts)
    K = oracles.kernel_matrix(oracles.rbf, Z, Z, gamma=1e-3)
    B = oracles.kernel_matrix(oracles.rbf, batch, Z, gamma=1e-3)
    means = (K @ before * sizes + B.T @ member) / (sizes + counts)
    np.testing.assert_allclose(K @ model.dual_coef_, means, rtol=1e-6)
    assert model.n_iter_ == len(model.cost_path_)
    assert model.cost_path_[-1] == model.cost_


def test_rows_of_long_ago_are_forgotten():
    rng = np.random.default_rng(0)
    early = rng.normal(size=(4000, 2))
    late, truth = make_blobs(4000, 2, centers=3, cluster_std=0.3, random_state=2)
    model = NystromKMeans(
        3, landmarks=np.concatenate([early[:40], late[:40]]), gamma=0.1, init=late[:3]
    )
    model.partial_fit(early)
    for _ in range(6):
        for batch in batches(late, 100, rng):
            model.partial_fit(batch)
    whole = NystromKMeans(3, landmarks=model.landmarks_, gamma=0.1, random_state=0)
    assert model.cost(late) <= 1.1 * whole.fit(late).cost_
    assert adjusted_rand_score(truth, model.predict(late)) > 0.9


def test_a_new_fit_starts_anew(digits):
    model = NystromKMeans(5, n_landmarks=40, random_state=0)
    model.fit(digits[:400]).partial_fit(digits[400:800]).fit(digits[:400])
    fresh = clone(model).fit(digits[:400])
    np.testing.assert_array_equal(model.labels_, fresh.labels_)
    model.partial_fit(digits[400:800])
    fresh.partial_fit(digits[400:800])
    np.testing.assert_array_equal(model.dual_coef_, fresh.dual_coef_)


def test_pickles_go_on_where_they_were(digits):
    model = NystromKMeans(5, n_landmarks=40, random_state=0)
    for start in (0, 400):
        model.partial_fit(digits[start : start + 400])
    copy = pickle.loads(pickle.dumps(model))
    for each in (model, copy):
        each.partial_fit(digits[800:])
    np.testing.assert_array_equal(model.dual_coef_, copy.dual_coef_)


@pytest.mark.parametrize("kind", ["csr", "frame", "float32", "reducer", "rank"])
def test_every_input(kind, digits):
    X, params = digits, {}
    if kind == "csr":
        X = sparse.csr_array(digits)
    if kind == "frame":
        X = pd.DataFrame(digits, columns=[f"p{j}" for j in range(64)])
    if kind == "float32":
        X = digits.astype(np.float32)
    if kind == "reducer":
        params = {"reducer": "svd"}
    if kind == "rank":
        params = {"rank": 10}
    model = NystromKMeans(5, n_landmarks=40, random_state=0, **params)
    for start in range(0, 1600, 400):
        model.partial_fit(X[start : start + 400])
    assert model.cluster_sizes_.sum() == 1600
    assert model.exemplars_.shape == (5, 64)
    assert (
        model.cost(X)
        < 1.1
        * NystromKMeans(5, n_landmarks=40, random_state=0, gamma=model.gamma_, **params)
        .fit(X)
        .cost_
    )


def test_threads_do_not_matter(digits):
    one, two = (
        NystromKMeans(5, n_landmarks=40, n_jobs=jobs, random_state=0)
        .partial_fit(digits[:900])
        .partial_fit(digits[900:])
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_bad_batches_change_nothing(digits):
    model = NystromKMeans(5, n_landmarks=40, random_state=0).partial_fit(digits[:400])
    before = model.dual_coef_.copy()
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(digits[:10, :7])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((10, 64), np.nan))
    with pytest.raises(ValueError, match="sample_weight"):
        model.partial_fit(digits[:10], sample_weight=[-1.0] * 10)
    np.testing.assert_array_equal(model.dual_coef_, before)
    model.partial_fit(digits[:1])  # one row will do
    assert not hasattr(NystromKMeans(2, kernel="precomputed"), "partial_fit")
