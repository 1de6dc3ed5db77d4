"""Laws that every estimator obeys, on tables of all kinds."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from sketchmeans import KernelKMeans, NystromKMeans, SketchedKMeans
from tests.properties.strategies import as_csr, direct_cost, laws, problems, unit_rows

MODELS = {
    "sketched": lambda p, **kw: SketchedKMeans(p.k, random_state=p.seed, **kw),
    "nystrom-linear": lambda p, **kw: NystromKMeans(
        p.k, kernel="linear", random_state=p.seed, **kw
    ),
    "nystrom-rbf": lambda p, **kw: NystromKMeans(p.k, random_state=p.seed, **kw),
    "exact-linear": lambda p, **kw: KernelKMeans(
        p.k, kernel="linear", random_state=p.seed, **kw
    ),
    "exact-rbf": lambda p, **kw: KernelKMeans(p.k, random_state=p.seed, **kw),
    "exact-cosine": lambda p, **kw: KernelKMeans(
        p.k, kernel="cosine", random_state=p.seed, **kw
    ),
}
LINEAR = ("sketched", "nystrom-linear", "exact-linear")
SHIFT_INVARIANT = (*LINEAR, "nystrom-rbf", "exact-rbf")
every_model = pytest.mark.parametrize("name", MODELS)


def fit(name, problem, X=None, weights="own", **params):
    X = problem.X if X is None else X
    weights = problem.weights if isinstance(weights, str) else weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MODELS[name](problem, **params).fit(X, sample_weight=weights)


def rounding(X):
    """Return squared distances that are no more than rounding of the table."""
    eps = float(np.finfo(X.dtype).eps)
    return 64.0 * (eps * float(np.abs(X).max())) ** 2 * X.shape[1]


@every_model
@laws
@given(problem=problems())
def test_labels_are_predictions(name, problem):
    model = fit(name, problem)
    predicted = model.predict(problem.X)
    different = predicted != model.labels_
    if not different.any():
        return
    # Rows between two centres may go to either, up to rounding.
    distances = np.square(model.transform(problem.X)[different], dtype=float)
    rows = np.arange(len(distances))
    own = distances[rows, model.labels_[different]]
    other = distances[rows, predicted[different]]
    scale = np.square(model.transform(problem.X), dtype=float).max()
    tie = 1e-3 if problem.X.dtype == np.float32 else 1e-6
    # `cluster_centers_` has the type of the table: far from the origin it is rounded.
    slack = rounding(problem.X) if hasattr(model, "cluster_centers_") else 0.0
    allowed = tie * scale + slack + 2.0 * np.sqrt(slack * np.maximum(own, other))
    assert (np.abs(own - other) <= allowed).all() or not model.converged_


@pytest.mark.parametrize("name", [*LINEAR, "exact-cosine"])
@laws
@given(problem=problems())
def test_the_cost_is_that_of_the_labels(name, problem):
    model = fit(name, problem)
    features = unit_rows if name == "exact-cosine" else (lambda X: X)
    expected = direct_cost(problem, model.labels_, features)
    slack = rounding(problem.X)
    if name == "exact-cosine":
        slack /= float(np.square(problem.X, dtype=float).sum(axis=1).mean()) or 1.0
    # At convergence centres are means up to `tol`, and costs above those of means.
    assert expected - slack <= model.cost_ * (1.0 + 1e-4)
    assert model.cost_ <= expected * (1.0 + 2e-3) + slack
    assert model.cost_ >= 0.0


@every_model
@laws
@given(problem=problems())
def test_the_cost_of_the_fit_is_that_of_its_rows(name, problem):
    model = fit(name, problem)
    again = model.cost(problem.X, sample_weight=problem.weights)
    slack = rounding(problem.X) * float(getattr(model, "gamma_", None) or 1.0)
    if problem.X.dtype == np.float32:
        # Distances of new rows are rounded as their kernel values are: 1 = k(x, x).
        slack += 1e-6 * again + 4.0 * np.finfo(np.float32).eps * (name not in LINEAR)
    slack += 1e-13
    assert abs(again - model.cost_) <= 2e-3 * max(again, model.cost_) + slack


@pytest.mark.parametrize("name", SHIFT_INVARIANT)
@laws
@given(problem=problems(dtypes=(np.float64,)))
def test_a_shift_changes_nothing(name, problem):
    model = fit(name, problem)
    far = problem.X + 2.0 ** np.ceil(np.log2(np.abs(problem.X).max() + 1.0))
    moved = fit(name, problem, far)
    slack = rounding(far) * float(getattr(model, "gamma_", None) or 1.0)
    assert abs(moved.cost_ - model.cost_) <= 0.02 * model.cost_ + slack


@pytest.mark.parametrize("name", LINEAR)
@laws
@given(problem=problems())
def test_the_cost_grows_with_the_square_of_the_scale(name, problem):
    model = fit(name, problem)
    scaled = fit(name, problem, problem.X * problem.X.dtype.type(8.0))
    np.testing.assert_array_equal(scaled.labels_, model.labels_)
    np.testing.assert_allclose(scaled.cost_, 64.0 * model.cost_, rtol=1e-6)


@every_model
@laws
@given(problem=problems())
def test_the_unit_of_the_weights_does_not_matter(name, problem):
    mass = problem.mass
    model = fit(name, problem, weights=mass)
    for unit in (2.0**-900, 2.0**900):
        other = fit(name, problem, weights=mass * unit)
        np.testing.assert_array_equal(other.labels_, model.labels_)
        assert other.cost_ == model.cost_


@pytest.mark.parametrize("name", LINEAR)
@laws
@given(problem=problems(weighted=False))
def test_sparse_rows_cost_what_dense_ones_do(name, problem):
    dense, csr = fit(name, problem), fit(name, problem, as_csr(problem.X))
    # CSR rows cannot be shifted: float64 keeps what an offset leaves.
    offset = float(np.square(problem.X, dtype=float).sum(axis=1).max())
    slack = rounding(problem.X) + 1e-11 * offset
    assert abs(csr.cost_ - dense.cost_) <= 0.02 * dense.cost_ + slack


@pytest.mark.parametrize("name", LINEAR)
@laws
@given(problem=problems(weighted=False))
def test_no_worse_than_scikit_learn(name, problem):
    X = problem.X.astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer = KMeans(problem.k, n_init=10, random_state=problem.seed).fit(
            X - X.mean(axis=0)
        )
    found = direct_cost(problem, fit(name, problem).labels_)
    best = direct_cost(problem, peer.labels_)
    assert found <= 1.01 * best + rounding(problem.X)


@pytest.mark.parametrize("name", ["exact-linear", "exact-rbf"])
@laws
@given(problem=problems(weighted=False, dtypes=(np.float64,)))
def test_the_order_of_rows_does_not_matter_from_given_centres(name, problem):
    model = fit(name, problem)
    order = np.random.default_rng(problem.seed).permutation(len(problem.X))
    start = model.labels_
    if len(np.unique(start)) < problem.k:
        return
    one = fit(name, problem, init=start)
    other = fit(name, problem, problem.X[order], init=start[order])
    assert adjusted_rand_score(one.labels_[order], other.labels_) > 0.99
