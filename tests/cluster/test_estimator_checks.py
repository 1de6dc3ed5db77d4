"""The estimators behave as scikit-learn's do: its checks, and everyday use."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.estimator_checks import parametrize_with_checks

from sketchmeans import KernelKMeans, NystromKMeans
from sketchmeans.kernels import RBF
from sketchmeans.landmarks import Uniform
from sketchmeans.reduction import REDUCERS
from tests.pairs import every_value

ESTIMATORS = [KernelKMeans, NystromKMeans]


class _Hidden:
    """A method that is not there."""

    def __get__(self, instance, owner=None):
        raise AttributeError("needs k(x, x) of new rows")


class PrecomputedKernelKMeans(KernelKMeans):
    """A precomputed kernel has predict only, here as in NystromKMeans.

    `transform` and `score` need k(x, x) of new rows, so they raise by contract
    (tests/cluster/test_errors.py).  Without them every other check must pass.
    """

    transform = fit_transform = score = _Hidden()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags = None
        return tags


def _expected_failures(estimator):
    if estimator.kernel == "precomputed":
        # scikit-learn hands this check a table of features even where the tags ask
        # for a kernel matrix; its weights-equivalence check leaves those out.
        reason = "the check gives a (50, 2) table to an estimator of kernel matrices"
        return {"check_clustering": reason}
    # Repeated rows are shuffled, so the same seed draws other rows: equal in law only.
    # scikit-learn's own KMeans is listed with the same expected failure.
    reason = "sample_weight is not equivalent to repeating samples: the draws differ"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


# Two checks fit eight clusters (our default) to four distinct rows, and are told so.
@pytest.mark.filterwarnings("ignore:(Only 4 landmarks|Number of distinct)")
# The one check that reports a skip here, check_array_api_input, needs an environment
# variable that is read at import: test_array_api_check runs it in a process of its own.
@parametrize_with_checks(
    [
        KernelKMeans(),
        PrecomputedKernelKMeans(kernel="precomputed"),
        NystromKMeans(),
    ],
    expected_failed_checks=_expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.process
def test_array_api_check():
    pytest.importorskip("sklearn", minversion="1.9")  # the check has other parameters
    code = """
from sklearn.utils.estimator_checks import estimator_checks_generator
from sketchmeans import KernelKMeans, Nystrom, NystromKMeans, SketchedKMeans
from sketchmeans.reduction import REDUCERS
for made in (KernelKMeans, NystromKMeans, SketchedKMeans, Nystrom, *REDUCERS.values()):
    for estimator, check in estimator_checks_generator(made()):
        if check.func.__name__ == "check_array_api_input":
            check(estimator)
            print(made.__name__)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    names = ["KernelKMeans", "NystromKMeans", "SketchedKMeans", "Nystrom"]
    names += [reducer.__name__ for reducer in REDUCERS.values()]
    assert done.stdout.split() == names, done.stderr


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(
        200, centers=[(-8, 0), (0, 8), (8, 0)], n_features=2, random_state=0
    )


@pytest.fixture(scope="module", name="X")
def rows(blobs):
    return blobs[0]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clone_keeps_parameters_and_drops_the_fit(estimator, X):
    model = estimator(3, gamma=0.1, tol=0.0, random_state=3).fit(X)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not [name for name in vars(copy) if name.endswith("_")]
    np.testing.assert_array_equal(copy.fit(X).labels_, model.labels_)


def test_clone_and_parameters_reach_into_objects(X):
    model = NystromKMeans(
        3, kernel=RBF("median"), landmarks=Uniform(replace=True), random_state=0
    )
    params = model.get_params()
    assert params["landmarks__replace"] is True
    assert params["kernel__gamma"] == "median"
    copy = clone(model).set_params(landmarks__replace=False, kernel__gamma=0.25)
    assert copy.landmarks.replace is False
    assert copy.kernel.gamma == 0.25
    assert model.landmarks.replace is True
    assert model.kernel.gamma == "median"
    assert copy.fit(X).gamma_ == 0.25


def test_nested_replace_changes_the_draws():
    # Three distinct rows: without replacement there are no more landmarks than that.
    X = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], 10, axis=0)
    model = NystromKMeans(3, landmarks=Uniform(), n_landmarks=20, random_state=0)
    with pytest.warns(UserWarning, match="Only 3 landmarks"):
        model.fit(X)
    assert len(model.landmarks_) == 3
    model.set_params(landmarks__replace=True).fit(X)
    assert len(model.landmarks_) == 20


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_set_params_rejects_unknown_names(estimator):
    with pytest.raises(ValueError, match="Invalid parameter 'n_cluster' for"):
        estimator().set_params(n_cluster=3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fit_leaves_parameters_as_given(estimator, X):
    given = {
        "n_clusters": 3,
        "kernel": RBF("mean"),
        "init": np.array([0, 1, 2]),
        "random_state": np.random.default_rng(0),
    }
    model = estimator(**given).fit(X)
    for name, value in given.items():
        assert getattr(model, name) is value
    assert model.kernel.gamma == "mean"
    assert isinstance(model.kernel_.gamma, float)


@every_value
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pickle_keeps_the_fit(estimator, make, X):
    rows = make(X)
    model = estimator(3, random_state=0).fit(rows)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(rows), model.labels_)
    np.testing.assert_array_equal(copy.transform(rows), model.transform(rows))
    assert copy.cost(rows) == model.cost(rows)
    assert copy.cost_ == model.cost_


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_html_repr_shows_the_estimator(estimator, X):
    model = estimator(3, gamma=0.125, random_state=0)
    for page in (estimator_html_repr(model), estimator_html_repr(model.fit(X))):
        assert estimator.__name__ in page
        assert "0.125" in page
    assert repr(model) == f"{estimator.__name__}(gamma=0.125, n_clusters=3, " + (
        "random_state=0)"
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_set_output(estimator, X):
    model = estimator(3, random_state=0).fit(X)
    plain = model.transform(X)
    names = [f"{estimator.__name__.lower()}{j}" for j in range(3)]
    assert isinstance(plain, np.ndarray)
    assert list(model.get_feature_names_out()) == names

    table = model.set_output(transform="pandas").transform(X)
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == names
    np.testing.assert_array_equal(table.to_numpy(), plain)

    table = model.set_output(transform="polars").transform(X)
    assert isinstance(table, pl.DataFrame)
    assert table.columns == names
    np.testing.assert_array_equal(table.to_numpy(), plain)

    table = model.fit_transform(X)
    assert isinstance(table, pl.DataFrame)
    assert isinstance(model.predict(X), np.ndarray)


def test_set_output_keeps_the_pandas_index(X):
    table = pd.DataFrame(X, columns=["a", "b"], index=np.arange(len(X)) + 1000)
    model = NystromKMeans(3, random_state=0).set_output(transform="pandas").fit(table)
    assert list(model.transform(table).index) == list(table.index)


@every_value
@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"]
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_feature_names(estimator, frame, X):
    table = frame({"height": X[:, 0], "width": X[:, 1]})
    model = estimator(3, random_state=0).fit(table)
    assert list(model.feature_names_in_) == ["height", "width"]
    assert model.n_features_in_ == 2
    plain = estimator(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.predict(table), plain.labels_)
    assert not hasattr(plain, "feature_names_in_")
    swapped = frame({"width": X[:, 1], "height": X[:, 0]})
    with pytest.raises(ValueError, match="in the same order as they were in fit"):
        model.predict(swapped)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)


@every_value
@pytest.mark.parametrize("method", ["predict", "transform", "score", "cost"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_number_of_features_must_match(estimator, method, X):
    model = estimator(3, random_state=0).fit(X)
    text = f"X has 3 features, but {estimator.__name__} is expecting 2 features"
    with pytest.raises(ValueError, match=text):
        getattr(model, method)(np.ones((4, 3)))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pipeline_clusters(estimator, blobs):
    X, y = blobs
    stretched = X * [1.0, 1000.0]
    pipeline = make_pipeline(StandardScaler(), estimator(3, random_state=0))
    labels = pipeline.fit_predict(stretched)
    assert adjusted_rand_score(y, labels) == 1.0
    np.testing.assert_array_equal(pipeline.predict(stretched), labels)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pipeline_takes_weights(estimator, X):
    name = estimator.__name__.lower()
    weights = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    pipeline = make_pipeline(StandardScaler(), estimator(3, random_state=0))
    pipeline.fit(X, **{f"{name}__sample_weight": weights})
    assert pipeline[-1].cluster_sizes_.sum() == weights.sum()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pipeline_uses_distances_as_features(estimator, blobs):
    X, y = blobs
    pipeline = make_pipeline(estimator(3, random_state=0), LogisticRegression())
    assert pipeline.fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_grid_search_finds_the_number_of_clusters_by_score(estimator, X):
    search = GridSearchCV(
        estimator(gamma=0.05, random_state=0), {"n_clusters": [1, 3]}, cv=3
    )
    search.fit(X)
    # The score is minus a sum of squared distances: more centres are never worse.
    assert search.best_params_ == {"n_clusters": 3}
    assert (search.cv_results_["mean_test_score"] < 0).all()
    assert len(np.unique(search.predict(X))) == 3


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_grid_search_over_a_precomputed_kernel_with_its_own_scorer(estimator, blobs):
    # The pairwise tag makes the search cut rows and columns of the kernel matrix.
    X, y = blobs
    K = RBF(0.05)(X, X)

    def agreement(model, K_new, truth):
        return adjusted_rand_score(truth, model.predict(K_new))

    search = GridSearchCV(
        estimator(kernel="precomputed", random_state=0),
        {"n_clusters": [2, 3]},
        scoring=agreement,
        cv=3,
        error_score="raise",
    )
    search.fit(K, y)
    assert search.best_params_ == {"n_clusters": 3}
    assert search.best_score_ == 1.0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_grid_search_reaches_into_a_pipeline_in_parallel(estimator, X):
    pipeline = make_pipeline(StandardScaler(), estimator(3, random_state=0))
    name = f"{estimator.__name__.lower()}__gamma"
    grid = {name: [0.5, 2.0]}
    one = GridSearchCV(pipeline, grid, cv=2, n_jobs=1).fit(X)
    two = GridSearchCV(pipeline, grid, cv=2, n_jobs=2).fit(X)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


def test_score_is_minus_inertia(X):
    for estimator in ESTIMATORS:
        model = estimator(3, random_state=0).fit(X)
        assert model.score(X) == pytest.approx(-model.inertia_)
        assert model.cost(X) == pytest.approx(model.cost_)
        weights = np.arange(len(X)) % 3.0
        assert model.score(X, sample_weight=weights) == pytest.approx(
            -model.cost(X, sample_weight=weights) * weights.sum()
        )


def test_generator_and_random_state_are_drawn_from(X):
    def draws(state):
        model = NystromKMeans(3, n_landmarks=5, random_state=state)
        return [model.fit(X).landmark_indices_.tolist() for _ in range(2)]

    for make in (np.random.default_rng, np.random.RandomState):
        first, second = draws(make(0))
        assert first != second
        assert [first, second] == draws(make(0))
    first, second = draws(7)
    assert first == second
