"""Reducers in front of kernels: NystromKMeans(reducer=...) is a Pipeline."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchmeans import (
    ApproximateSVD,
    FeatureSampling,
    LaplacianScore,
    NystromKMeans,
    SignProjection,
    load,
    save,
)
from sketchmeans.landmarks import SELECTORS
from tests import oracles
from tests.cluster.test_sketched import K, Rotation, as_floats, overlapping
from tests.pairs import every_value


@pytest.fixture(scope="module", name="X")
def rows():
    return overlapping()


@pytest.fixture(scope="module", name="S")
def sparse_rows(X):
    return sparse.csr_array(np.where(X > 0.5, X, 0.0))


def behind(reducer, **params):
    """Return the same fit twice: with a reducer inside, and behind it in a Pipeline."""
    # With restarts, two that find the same partition are told apart by rounding only.
    params = {"n_init": 1, "n_landmarks": 30, "random_state": 0, **params}
    params = {"n_clusters": K, **params}
    inside = NystromKMeans(reducer=reducer, **params)
    outside = clone(reducer)
    if "n_clusters" in outside.get_params():
        outside.set_params(n_clusters=params["n_clusters"])
    return inside, make_pipeline(outside, NystromKMeans(**params))


def assert_same_fit(inside, pipeline, X, new, rtol=1e-9):
    outside = pipeline[-1]
    np.testing.assert_array_equal(inside.labels_, outside.labels_)
    np.testing.assert_array_equal(inside.landmark_indices_, outside.landmark_indices_)
    np.testing.assert_allclose(inside.cost_path_, outside.cost_path_, rtol=rtol)
    assert inside.cost_ == pytest.approx(outside.cost_, rel=rtol)
    assert inside.inertia_ == pytest.approx(outside.inertia_, rel=rtol)
    assert (inside.gamma_ or 0.0) == pytest.approx(outside.gamma_ or 0.0, rel=rtol)
    np.testing.assert_array_equal(inside.exemplar_indices_, outside.exemplar_indices_)
    np.testing.assert_array_equal(inside.predict(new), pipeline.predict(new))
    np.testing.assert_allclose(
        inside.transform(new), pipeline.transform(new), rtol=1e3 * rtol, atol=1e3 * rtol
    )
    assert inside.score(new) == pytest.approx(pipeline.score(new), rel=10 * rtol)
    # The reducer sees rows; what comes out are rows of the original table.
    taken = X[inside.exemplar_indices_]
    np.testing.assert_array_equal(as_floats(inside.exemplars_), as_floats(taken))
    np.testing.assert_allclose(
        as_floats(inside.landmarks_),
        as_floats(outside.landmarks_),
        rtol=1e3 * rtol,
        atol=1e3 * rtol,
    )
    assert inside.n_features_in_ == X.shape[1]


OURS = [
    ApproximateSVD(5, random_state=1),
    SignProjection(5, random_state=1),
    FeatureSampling(8, random_state=1),
    LaplacianScore(5),
]


@every_value
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("reducer", OURS, ids=lambda r: type(r).__name__)
def test_nystrom_behind_a_reducer_is_a_pipeline(reducer, dtype, make, S):
    X = S.toarray().astype(dtype)
    inside, pipeline = behind(reducer)
    table, new = make(X), make(X[::3] * dtype(0.9))
    inside.fit(table)
    pipeline.fit(table)
    assert_same_fit(inside, pipeline, table, new, 1e-9 if dtype is np.float64 else 1e-4)
    assert inside.landmarks_.shape == (30, inside.reducer_.n_components_)


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "laplacian"},
        {"kernel": "cosine"},
        {"kernel": "polynomial", "degree": 2},
        {"kernel": "linear"},
        {"gamma": 0.05},
        {"gamma": "median"},
        {"rank": 8},
        {"algorithm": "full", "init": "greedy-k-means++"},
        {"init": "local-search", "n_init": 2},
        {"init": [3, 50, 99, 200]},
    ],
    ids=str,
)
def test_nystrom_parameters_behind_a_reducer(params, X):
    inside, pipeline = behind(OURS[0], **params)
    assert_same_fit(inside.fit(X), pipeline.fit(X), X, X[::2])


@pytest.mark.parametrize("selector", sorted(SELECTORS))
def test_every_way_to_choose_landmarks_behind_a_reducer(selector, X):
    inside, pipeline = behind(OURS[1], landmarks=selector, n_landmarks=12)
    inside.fit(X)
    pipeline.fit(X)
    np.testing.assert_array_equal(inside.labels_, pipeline[-1].labels_)
    assert inside.cost_ == pytest.approx(pipeline[-1].cost_)
    np.testing.assert_allclose(inside.landmarks_, pipeline[-1].landmarks_)


@pytest.mark.parametrize(
    "reducer",
    [PCA(4), make_pipeline(StandardScaler(), PCA(4)), Rotation()],
    ids=["pca", "pipeline", "rotation"],
)
def test_nystrom_behind_transformers_from_elsewhere(reducer, X):
    inside, pipeline = behind(reducer)
    assert_same_fit(inside.fit(X), pipeline.fit(X), X, X[::2])


def test_nystrom_behind_a_reducer_with_weights(X):
    weights = np.random.default_rng(3).integers(0, 4, size=len(X)).astype(float)
    inside, pipeline = behind(OURS[1])
    inside.fit(X, sample_weight=weights)
    pipeline.fit(X, nystromkmeans__sample_weight=weights)
    assert_same_fit(inside, pipeline, X, X[::2])


@pytest.mark.parametrize("width", [5, 140], ids=["computed", "stored"])
def test_nystrom_behind_a_reducer_on_many_rows(width):
    # Subsamples and several blocks; kernel values of 128 features and more are stored.
    X = overlapping(n=17_000, d=150, seed=3, spread=0.3).astype(np.float32)
    inside, pipeline = behind(SignProjection(width, random_state=1), n_init=2)
    inside.fit(X)
    pipeline.fit(X)
    outside = pipeline[-1]
    # A row on a border may fall on either side: blocks of other heights round another
    # way.
    assert (inside.labels_ == outside.labels_).mean() > 0.9999
    assert inside.cost_ == pytest.approx(outside.cost_, rel=1e-6)
    other = clone(inside).set_params(n_jobs=1).fit(X)
    np.testing.assert_array_equal(inside.labels_, other.labels_)
    np.testing.assert_array_equal(inside.dual_coef_, other.dual_coef_)
    assert inside.cost_ == other.cost_


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_nystrom_behind_a_reducer_reads_memory_maps(dtype, X, tmp_path):
    table = np.clip(20.0 * X + 100.0, 0.0, 255.0).astype(dtype)
    np.save(tmp_path / "rows.npy", table)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    one, two = (
        NystromKMeans(K, reducer="svd", random_state=0).fit(rows)
        for rows in (table.astype(np.float32), mapped)
    )
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.cost_ == two.cost_
    assert two.exemplars_.dtype == dtype
    np.testing.assert_array_equal(one.predict(table), two.predict(mapped))


def test_without_a_reducer_there_is_none(X):
    model = NystromKMeans(K, random_state=0).fit(X)
    assert model.reducer is None
    assert model.reducer_ is None
    assert model.landmarks_.shape[1] == X.shape[1]


def test_predict_applies_the_reducer(X):
    model = NystromKMeans(K, reducer="sign", random_state=0).fit(X)
    features = model.reducer_.transform(X)
    K_mx = model.kernel_(features, model.landmarks_)
    K_mm = model.kernel_(model.landmarks_, model.landmarks_)
    alpha = model.dual_coef_
    norms = np.einsum("ij,ik,kj->j", alpha, K_mm, alpha)
    squared = 1.0 - 2.0 * K_mx @ alpha + norms
    np.testing.assert_array_equal(model.predict(X), squared.argmin(axis=1))
    np.testing.assert_allclose(model.transform(X) ** 2, squared, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_given_landmarks_are_points_of_the_original_space(make, S):
    X = S.toarray()
    numbers = np.arange(0, 240, 8)
    by_points, by_numbers = (
        NystromKMeans(K, reducer=OURS[0], landmarks=given, n_init=1, random_state=0)
        for given in (make(X[numbers]), numbers)
    )
    by_points.fit(make(X))
    by_numbers.fit(make(X))
    np.testing.assert_array_equal(by_points.labels_, by_numbers.labels_)
    assert by_points.cost_ == pytest.approx(by_numbers.cost_)
    np.testing.assert_allclose(by_points.landmarks_, by_numbers.landmarks_)
    np.testing.assert_array_equal(by_numbers.landmark_indices_, numbers)
    assert by_points.landmark_indices_ is None


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_given_centres_are_points_of_the_original_space(make, S):
    X = S.toarray()
    start = [3, 50, 99, 200]
    reducer = SignProjection(5, random_state=1)
    params = {"kernel": "linear", "landmarks": np.arange(240), "random_state": 0}
    by_points = NystromKMeans(K, reducer=reducer, init=make(X[start]), **params)
    by_numbers = NystromKMeans(K, reducer=reducer, init=start, **params)
    by_points.fit(make(X))
    by_numbers.fit(make(X))
    # All rows span the centres: points and rows of the same place start alike.
    np.testing.assert_array_equal(by_points.labels_, by_numbers.labels_)
    features = clone(reducer).fit_transform(X)
    plain = oracles.plain_lloyd(features, features[start])[0]
    settled = NystromKMeans(K, reducer=reducer, init=start, tol=0.0, **params)
    np.testing.assert_array_equal(settled.fit(X).labels_, plain)


def test_a_given_partition_behind_a_reducer(X):
    labels = np.arange(len(X)) % K
    inside, pipeline = behind(OURS[0], init=labels)
    assert_same_fit(inside.fit(X), pipeline.fit(X), X, X)


def test_reducer_needs_features(X):
    text = "reducer='svd' should be None with kernel='precomputed': there are no feat"
    with pytest.raises(ValueError, match=text):
        NystromKMeans(K, kernel="precomputed", reducer="svd").fit(X @ X.T)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"reducer": "pca"}, "reducer='pca' should be one of ['laplacian', 'sampling'"),
        (
            {"reducer": ApproximateSVD(16)},
            "n_components=16 should be <= n_features=15.",
        ),
        (
            {"init": np.zeros((K, 3))},
            "init.shape=(4, 3) should have 15 columns, as X has.",
        ),
        (
            {"init": np.full((K, 15), np.nan)},
            "init contains NaN (row 0, column 0)",
        ),
    ],
    ids=["name", "width", "init", "nan"],
)
def test_nystrom_errors_say_what_is_valid(params, text, X):
    with pytest.raises(ValueError, match=re.escape(text)):
        NystromKMeans(K, **{"reducer": "svd", **params}).fit(X)


FORMS = {
    "list": lambda X: X.tolist(),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "csr": sparse.csr_array,
}


@every_value
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reducer", [None, "svd"])
def test_given_landmarks_are_points_of_x_in_any_form(form, reducer, X):
    params = {"n_init": 1, "random_state": 0, "reducer": reducer}
    model = NystromKMeans(K, landmarks=X[:9], **params).fit(X)
    other = clone(model).set_params(landmarks=FORMS[form](X[:9])).fit(X)
    np.testing.assert_array_equal(other.labels_, model.labels_)
    features = model.reducer_.transform(X[:9]) if reducer else X[:9]
    np.testing.assert_allclose(model.landmarks_, features, atol=1e-12)


@every_value
@pytest.mark.parametrize("reducer", [None, "svd", PCA(4)])
@pytest.mark.parametrize(
    ("landmarks", "text"),
    [
        (
            np.ones((9, 4)),
            "(9, 4) and type float64 should be a selector's name, points "
            "of shape (m, 15)",
        ),
        ([[1.0, 2.0]], "points of shape (m, 15)"),
        (np.full((9, 15), np.nan), "landmarks contains NaN (row 0, column 0)"),
        (np.full((9, 15), "a"), "points of shape (m, 15)"),
        ([0, 9999], "row numbers from 0 to 9999; they should lie in 0.."),
        (None, "should be a selector's name"),
    ],
    ids=["width", "list", "nan", "words", "numbers", "none"],
)
def test_given_landmarks_are_checked_before_they_are_reduced(
    landmarks, text, reducer, X
):
    with pytest.raises(ValueError, match=re.escape(text)):
        NystromKMeans(K, reducer=reducer, landmarks=landmarks).fit(X)


@every_value
@pytest.mark.parametrize("reducer", [ApproximateSVD(3), SignProjection(20)])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_an_offset_does_not_fill_the_sketch(reducer, kernel, tmp_path):
    """Rows far from zero are sketched about their mean, here and in `predict`."""
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(4), 150)
    near = rng.normal(size=(4, 60))[groups] * 3.0 + rng.normal(size=(600, 60))
    X = (near + 1e6 * rng.uniform(0.5, 1.5, size=60)).astype(np.float32)
    model = NystromKMeans(4, kernel=kernel, reducer=reducer, random_state=0)
    model.fit(X)
    plain = clone(model).fit(near)
    assert adjusted_rand_score(groups, plain.labels_) > 0.95
    assert adjusted_rand_score(groups, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    save(model, tmp_path / "model.skm")
    np.testing.assert_array_equal(
        load(tmp_path / "model.skm").predict(X), model.labels_
    )
    # Points and row numbers are given in the space of X.
    given = clone(model).set_params(landmarks=X[::20], init=X[::150]).fit(X)
    numbered = clone(model).set_params(
        landmarks=np.arange(0, 600, 20), init=np.arange(0, 600, 150)
    )
    assert adjusted_rand_score(given.labels_, numbered.fit(X).labels_) > 0.99


def test_kernels_that_see_a_shift_are_given_the_rows_as_they_are():
    X = np.random.default_rng(0).normal(size=(200, 8)) + 1e3
    inside, pipeline = behind(SignProjection(4, random_state=0), kernel="polynomial")
    assert_same_fit(inside.fit(X), pipeline.fit(X), X, X[:9], rtol=1e-6)
