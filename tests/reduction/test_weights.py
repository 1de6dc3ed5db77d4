"""Weights in the reducers: a row of weight 3 is three rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans

from sketchmeans import (
    ApproximateSVD,
    FeatureSampling,
    LaplacianScore,
    NystromKMeans,
    SignProjection,
    SketchedKMeans,
)
from sketchmeans.data.rows import Rows, as_rows
from sketchmeans.numerics.parallel import Workers
from sketchmeans.reduction import REDUCERS
from sketchmeans.reduction.base import subsample
from sketchmeans.reduction.laplacian import neighbour_graph
from tests.oracles import law_p_value
from tests.pairs import every_value

SPECTRAL = [ApproximateSVD, FeatureSampling]
FORMS = {"dense": np.asarray, "csr": sparse.csr_array}


@pytest.fixture(scope="module", name="X")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(90, 30)) * np.linspace(3.0, 0.5, 30) + 0.3


@pytest.fixture(scope="module", name="weights")
def row_weights(X):
    return np.random.default_rng(1).integers(0, 4, size=len(X))


@every_value
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("svd", ["exact", "fast"])
@pytest.mark.parametrize("reducer", SPECTRAL)
def test_weights_are_repeated_rows(reducer, svd, form, X, weights):
    model = reducer(8, n_clusters=3, svd=svd, random_state=0)
    # On unweighted rows the features are others: the weights matter here.
    features = model.fit(FORMS[form](X)).transform(X)
    weighted = model.fit(FORMS[form](X), sample_weight=weights).transform(X)
    repeated = FORMS[form](np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted, model.fit(repeated).transform(X), rtol=1e-8)
    assert weighted.shape != features.shape or not np.allclose(weighted, features)


@pytest.mark.parametrize("svd", ["exact", "fast"])
def test_singular_values_are_those_of_the_repeated_rows(svd, X, weights):
    model = ApproximateSVD(5, svd=svd, random_state=0).fit(X, sample_weight=weights)
    repeated = np.repeat(X, weights, axis=0)
    expected = np.linalg.svd(repeated, compute_uv=False)[:5]
    rtol = 1e-10 if svd == "exact" else 0.1
    np.testing.assert_allclose(model.singular_values_, expected, rtol=rtol)


def test_blocks_have_the_weights_of_their_rows(X, weights, monkeypatch):
    expected = [
        ApproximateSVD(5, svd=svd, random_state=0).fit(X, sample_weight=weights)
        for svd in ("exact", "fast")
    ]
    monkeypatch.setattr("sketchmeans.reduction.svd.block_height", lambda *widths: 7)
    monkeypatch.setattr("sketchmeans.reduction.svd._MIN_HEIGHT", 7)
    monkeypatch.setattr("sketchmeans.reduction.svd._HEIGHT_PER_FEATURE", 0)
    for model in expected:
        again = ApproximateSVD(5, svd=model.svd, random_state=0)
        again.fit(X, sample_weight=weights)
        np.testing.assert_allclose(again.components_, model.components_, atol=1e-9)


def test_signs_do_not_depend_on_weights(X, weights):
    plain = SignProjection(9, random_state=0).fit(X)
    weighted = SignProjection(9, random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(plain.signs_, weighted.signs_)


def test_bad_weights_are_an_error(X):
    for reducer in REDUCERS.values():
        with pytest.raises(
            ValueError, match=r"sample_weight.shape=\(3,\) should be \(90,"
        ):
            reducer().fit(X, sample_weight=[1, 2, 3])
        with pytest.raises(ValueError, match=r"sample_weight\[0\]=-1.0 should be"):
            reducer().fit(X, sample_weight=np.full(90, -1.0))


def test_a_weighted_subsample_is_drawn_by_weight(X):
    weights = np.array([0.0, 1.0, 2.0, 5.0])
    with Workers(1) as workers:
        rows = Rows(np.arange(4.0)[:, None], workers, weights)
        drawn = [
            subsample(rows, 2, np.random.default_rng(seed)) for seed in range(3000)
        ]
    assert all(part.weights is None for part in drawn)
    numbers = np.concatenate([part.X.ravel() for part in drawn]).astype(int)
    assert law_p_value(numbers, dict(enumerate(weights / 8.0))) > 1e-3


# --- the graph of neighbours -------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_laplacian_scores_of_rows_that_weigh_three(form, X):
    # Two copies of itself and three of the nearest row: nothing is left to chance.
    model = LaplacianScore(n_neighbors=5).fit(
        FORMS[form](X), sample_weight=np.full(90, 3.0)
    )
    repeated = LaplacianScore(n_neighbors=5).fit(FORMS[form](np.repeat(X, 3, axis=0)))
    np.testing.assert_allclose(model.scores_, repeated.scores_, rtol=1e-9)
    plain = LaplacianScore(n_neighbors=5).fit(FORMS[form](X))
    assert not np.allclose(model.scores_, plain.scores_, rtol=1e-2)


def naive_graph_of_copies(X, weights, n_neighbors, rng):
    """Return the graph of the repeated rows, summed over copies; ties by chance."""
    owner = rng.permutation(np.repeat(np.arange(len(X)), weights))
    squared = ((X[owner][:, None] - X[owner]) ** 2).sum(axis=2)
    spread = 2.0 * X[owner].var(axis=0).sum()
    np.fill_diagonal(squared, np.inf)
    chosen = np.zeros(squared.shape, dtype=bool)
    for a, distances in enumerate(squared):
        order = np.lexsort([rng.random(len(distances)), distances])
        chosen[a, order[:n_neighbors]] = True
    heat = np.where(chosen | chosen.T, np.exp(-squared / (2.0 * spread)), 0.0)
    graph = np.zeros((len(X), len(X)))
    np.add.at(graph, (owner[:, None], owner), heat)
    return graph


def test_the_graph_of_weighted_rows_is_that_of_their_copies_on_average():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 2))
    weights = np.array([1, 2, 3, 1, 9, 2, 1, 4, 1, 1, 2, 3, 1, 6])
    with Workers(1) as workers:
        rows = as_rows(X, workers, weights.astype(float))
        graph = neighbour_graph(rows, 4).toarray()
    np.testing.assert_allclose(graph, graph.T)
    naive = np.array([naive_graph_of_copies(X, weights, 4, rng) for _ in range(400)])
    error = naive.std(axis=0) / np.sqrt(len(naive))
    assert (np.abs(graph - naive.mean(axis=0)) <= 5.0 * error + 1e-9).all()
    assert (error > 0.0).any()  # chance plays a part
    assert (np.diag(graph) > 0.0).sum() == (weights > 1).sum()


def test_small_weights_do_not_make_a_dense_graph(X):
    weights = np.random.default_rng(2).uniform(0.5, 2.0, size=len(X))
    model = LaplacianScore(n_neighbors=3)
    small = model.fit(X, sample_weight=1e-3 * weights).scores_
    np.testing.assert_allclose(
        small, model.fit(X, sample_weight=1e-6 * weights).scores_
    )
    with Workers(1) as workers:
        graph = neighbour_graph(as_rows(X, workers, 1e-3 * weights), 3)
    assert graph.nnz <= 2 * 3 * len(X)


def test_rows_without_weight_are_nobodys_neighbours(X, weights):
    model = LaplacianScore().fit(X, sample_weight=weights)
    kept = LaplacianScore().fit(X[weights > 0], sample_weight=weights[weights > 0])
    np.testing.assert_allclose(model.scores_, kept.scores_)


# --- the estimators pass weights on ------------------------------------------------


class SavedStages(TransformerMixin, BaseEstimator):
    """The rows as they are; remembers the weights of its fit."""

    def fit(self, X, y=None, sample_weight=None):
        self.weights_ = sample_weight
        return self

    def transform(self, X):
        return X


class Farthest(BaseEstimator):
    """Centres start at the first row and at rows far away: no chance is involved."""

    def seed(self, distances_to, weights, k, rngs):
        counts = weights > 0.0
        chosen = [int(counts.argmax())]
        for _ in range(k - 1):
            nearest = distances_to(np.array(chosen)).min(axis=1)
            chosen.append(int((nearest * counts).argmax()))
        return np.array([chosen] * len(rngs))


class Unweighted(SavedStages):
    def fit(self, X, y=None):
        return super().fit(X)


@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
def test_weights_reach_the_reducers_that_take_them(estimator, X):
    weights = np.random.default_rng(1).integers(1, 4, size=len(X))
    model = estimator(3, reducer=SavedStages(), random_state=0)
    np.testing.assert_array_equal(
        model.fit(X, sample_weight=weights).reducer_.weights_, weights
    )
    assert model.fit(X).reducer_.weights_ is None
    model.set_params(reducer=Unweighted()).fit(X, sample_weight=weights)
    assert model.reducer_.weights_ is None


@every_value
@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
@pytest.mark.parametrize("reducer", SPECTRAL)
def test_a_fit_behind_a_reducer_is_that_of_the_repeated_rows(
    estimator, reducer, X, weights
):
    start = KMeans(3, n_init=1, random_state=0).fit(X).cluster_centers_
    reducer = reducer(6, svd="exact", random_state=0)
    if estimator is NystromKMeans:
        # Landmarks and start are given, so nothing is left to chance.
        model = NystromKMeans(3, reducer=reducer, landmarks=X[:20], init=start)
    else:
        model = SketchedKMeans(
            3, reducer=reducer, init=Farthest(), n_init=1, refine_max_iter=0
        )
    weighted = model.fit(X, sample_weight=weights).labels_
    repeated = model.fit(np.repeat(X, weights, axis=0)).labels_
    np.testing.assert_array_equal(np.repeat(weighted, weights), repeated)
