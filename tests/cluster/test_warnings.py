"""Warnings point at the user's line, and tell of parameters that are not used."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchmeans import KernelKMeans, Nystrom, NystromKMeans, SketchedKMeans
from sketchmeans.diagnostics import effective_dimension
from sketchmeans.kernels import KERNELS
from sketchmeans.landmarks import select_landmarks
from tests.pairs import every_value

X = np.random.default_rng(0).normal(size=(60, 3))
REPEATED = np.repeat(X[:4], 10, axis=0)
PARTITION = np.arange(60) % 2

#: A call that warns, for each place in the library that does.
REFINED_ONCE = SketchedKMeans(
    5, reducer="svd", refine_max_iter=1, n_init=1, random_state=0
)
CALLS = {
    "max_iter": lambda: KernelKMeans(5, max_iter=1, random_state=0).fit(X),
    "refine_max_iter": lambda: REFINED_ONCE.fit(X),
    "fit_predict": lambda: KernelKMeans(5, max_iter=1, random_state=0).fit_predict(X),
    "empty": lambda: KernelKMeans(6, random_state=0).fit(REPEATED),
    "n_init": lambda: KernelKMeans(2, init=PARTITION, n_init=3).fit(X),
    "few landmarks": lambda: NystromKMeans(2, n_landmarks=9).fit(REPEATED),
    "few centroids": lambda: select_landmarks(REPEATED, 9, "kmeans"),
    "few pivots": lambda: select_landmarks(REPEATED, 9, "greedy", random_state=0),
    "indefinite": lambda: KernelKMeans(2, kernel="sigmoid", random_state=0).fit(X),
    "indefinite features": lambda: Nystrom(n_landmarks=5, kernel="sigmoid").fit(X),
    "unused": lambda: NystromKMeans(2, kernel="linear", gamma=1.0).fit(X),
    "unused in a context": lambda: effective_dimension(X, "cosine", 1.0, gamma=2.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_points_at_the_line_that_called(name):
    call = CALLS[name]
    with pytest.warns() as caught:
        call()
    places = {(warning.filename, warning.lineno) for warning in caught}
    assert places == {(__file__, call.__code__.co_firstlineno)}


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
def test_a_warning_points_past_a_pipeline(method):
    model = make_pipeline(StandardScaler(), KernelKMeans(5, max_iter=1, random_state=0))
    with pytest.warns(ConvergenceWarning, match="No convergence") as caught:
        getattr(model, method)(X)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_warning_points_past_a_search():
    search = GridSearchCV(
        KernelKMeans(random_state=0), {"max_iter": [1], "n_clusters": [5]}, cv=2
    )
    with pytest.warns(ConvergenceWarning, match="No convergence") as caught:
        search.fit(X)
    assert {warning.filename for warning in caught} == {__file__}


#: Which of the kernel parameters each kernel has.
USED = {
    "rbf": ["gamma"],
    "laplacian": ["gamma"],
    "chi2": ["gamma"],
    "polynomial": ["gamma", "degree", "coef0"],
    "poly": ["gamma", "degree", "coef0"],
    "sigmoid": ["gamma", "coef0"],
    "linear": [],
    "cosine": [],
    "arc-cosine": [],
    "precomputed": [],
    "additive_chi2": [],
}
GIVEN = {"gamma": 0.1, "degree": 2, "coef0": 0.5}


def test_every_kernel_is_listed():
    assert set(KERNELS) < set(USED)


@every_value
@pytest.mark.parametrize("kernel", USED)
@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.filterwarnings("ignore:.*is not positive semi-definite")
def test_a_parameter_that_the_kernel_does_not_have_warns(kernel, name):
    table = np.abs(X)
    table = table @ table.T if kernel == "precomputed" else table
    given = {name: GIVEN[name]}
    model = KernelKMeans(2, kernel=kernel, max_iter=1000, random_state=0, **given)
    if name in USED[kernel]:
        model.fit(table)  # a warning would be an error
        return
    text = f"^kernel='{kernel}' does not use {name}={GIVEN[name]}.$"
    with pytest.warns(UserWarning, match=text):
        model.fit(table)


def test_one_warning_names_all_parameters_without_use():
    with pytest.warns(UserWarning, match="kernel='linear'") as caught:
        KernelKMeans(2, kernel="linear", random_state=0, **GIVEN).fit(X)
    (warning,) = caught
    assert "does not use gamma=0.1, degree=2, coef0=0.5." in str(warning.message)


def test_defaults_are_not_given_however_they_are_spelt():
    defaults = {"gamma": "mean", "degree": 3.0, "coef0": np.float32(1)}
    KernelKMeans(2, kernel="linear", random_state=0, **defaults).fit(X)


@pytest.mark.filterwarnings("ignore:kernel='linear' does not use gamma")
def test_a_search_over_kernels_and_their_parameters_runs():
    grid = {"kernel": ["rbf", "linear"], "gamma": [0.1, 0.5]}
    search = GridSearchCV(KernelKMeans(2, random_state=0), grid, cv=2)
    search.fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("estimator", [KernelKMeans, NystromKMeans])
def test_a_kernel_parameter_is_given_once(estimator):
    model = estimator(2, gamma=0.5, kernel_params={"gamma": 2.0})
    with pytest.raises(ValueError, match=r"gamma=0.5 is given twice.*gamma=2.0"):
        model.fit(X)
    model = estimator(2, kernel_params={"gamma": 2.0}, random_state=0).fit(X)
    assert model.gamma_ == 2.0
