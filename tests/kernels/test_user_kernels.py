"""Callables and kernels that users write: checked, and certified only where right."""

from itertools import cycle

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sketchmeans import Kernel, KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.diagnostics import certificate, effective_dimension
from sketchmeans.numerics.linalg import eigen_decomposition, largest_eigenvalues

X = np.random.default_rng(0).normal(size=(60, 3))
ESTIMATORS = [KernelKMeans, NystromKMeans]


def in_turn(names, cases):
    """Give each case to one of the estimators, in turn."""
    pairs = zip(cycle(ESTIMATORS), cases, strict=False)
    return pytest.mark.parametrize(("estimator", *names), [(e, *c) for e, c in pairs])


both = pytest.mark.parametrize("estimator", ESTIMATORS)


def dot(x, z):
    return x @ z


def asymmetric(x, z):
    return x @ z + x[0]


def broken(x, z):
    return np.nan if x[0] > 1.0 else x @ z


def elementwise(x, z):
    return x * z


def wordy(x, z):
    return "near"


def imaginary(x, z):
    return 1j * (x @ z)


def tanh(x, z):
    return np.tanh(x @ z - 1.0)


@in_turn(
    ("kernel", "text"),
    [
        (asymmetric, r"asymmetric at .* should be symmetric; k\(x, z\) and k\(z, x\)"),
        (broken, "kernel=broken returned nan for two rows"),
        (elementwise, "kernel=elementwise should return one real number for two rows"),
        (wordy, "kernel=wordy should return one real number for two rows, not str"),
        (imaginary, "kernel=imaginary should return one real number"),
    ],
)
def test_callables_that_are_no_kernels(estimator, kernel, text):
    with pytest.raises(ValueError, match=text):
        estimator(3, kernel=kernel, random_state=0).fit(X)


@both
def test_callables_may_return_arrays_of_one_number(estimator):
    found = estimator(3, kernel=lambda x, z: np.array([[x @ z]]), random_state=0).fit(X)
    expected = estimator(3, kernel=dot, random_state=0).fit(X)
    np.testing.assert_array_equal(found.labels_, expected.labels_)


class Wrong(Kernel):
    """A kernel whose values are wrong in one way."""

    def __init__(self, way="shape"):
        self.way = way

    def against(self, Z, dtype=None, workers=None):
        def columns(block, out=None):
            values = block @ Z.T + (block[:, :1] if self.way == "symmetry" else 0.0)
            if self.way == "shape":
                values = values[:, :-1]
            if self.way == "type":
                values = values.tolist()
            if self.way == "value":
                values[0, 0] = np.inf
            return values

        return columns

    def diagonal(self, X):
        squares = (X * X).sum(axis=1)
        if self.way == "other diagonal":
            return 2.0 * squares
        return squares[:-1] if self.way == "diagonal" else squares


@in_turn(
    ("way", "text"),
    [
        ("shape", r"should return real numbers of shape \(16, 16\) as k\(X, X\)"),
        ("type", r"of 16 rows, not list of shape \(16, 16\)"),
        ("value", "should return finite numbers"),
        ("symmetry", "should be symmetric"),
        ("other diagonal", r"should agree with its diagonal; k\(x, x\) and diagonal"),
        ("diagonal", r"should return real numbers of shape \(16,\) as diagonal\(X\)"),
    ],
)
def test_kernel_objects_that_are_no_kernels(estimator, way, text):
    with pytest.raises(ValueError, match=rf"kernel=Wrong\(.*{text}"):
        estimator(3, kernel=Wrong(way), random_state=0).fit(X)


# --- certificates ---------------------------------------------------------------

INDEFINITE = [
    {"kernel": "polynomial", "coef0": -1.0},
    {"kernel": "polynomial", "degree": 2.5, "coef0": 30.0},
    {"kernel": "polynomial", "degree": -1, "coef0": 30.0},
    {"kernel": "sigmoid"},
]


@in_turn(
    ("params", "method"),
    zip(INDEFINITE, ["nystrom", "subsample", "subsample", "nystrom"], strict=True),
)
def test_no_certificate_for_indefinite_kernels(estimator, params, method):
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        model = estimator(3, **params, gamma=0.1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="should be positive semi-definite"):
        certificate(model, X, method)


@in_turn(["method"], [["nystrom"], ["subsample"]])
def test_no_certificate_where_eigenvalues_are_negative(estimator, method):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(60, 60))
    matrix += matrix.T
    for kernel, table in ((tanh, X), ("precomputed", matrix)):
        model = estimator(3, kernel=kernel, random_state=0)
        if isinstance(model, NystromKMeans):
            model.set_params(n_landmarks=30)
        model.fit(table)
        with pytest.raises(ValueError, match=r"has the eigenvalue -\d.* largest is"):
            certificate(model, table, method)


@in_turn(["dtype"], [[np.float32], [np.float64]])
def test_rounding_is_no_negative_eigenvalue(estimator, dtype):
    # Of rank 3: all other eigenvalues are rounding.
    K = (X.astype(dtype) @ X.T.astype(dtype)) * dtype(1e6)
    K = (K + K.T) / dtype(2)
    for kernel, table in ((dot, X.astype(dtype)), ("precomputed", K)):
        model = estimator(3, kernel=kernel, random_state=0).fit(table)
        assert certificate(model, table).ratio >= 1.0
    with pytest.raises(ValueError, match="should be positive semi-definite"):
        effective_dimension(X, kernel=tanh, gamma_ridge=1.0)


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (KernelKMeans, "nystrom"),
        (NystromKMeans, "subsample"),
        (SketchedKMeans, "nystrom"),
    ],
)
def test_a_certificate_is_about_the_clusters_of_the_fit(estimator, method):
    model = estimator(5, random_state=0).fit(X)
    before = certificate(model, X, method, random_state=0)
    model.set_params(n_clusters=2)
    assert certificate(model, X, method, random_state=0) == before


@in_turn(["n"], [[500], [700]])
def test_certificates_of_orthogonal_rows(estimator, n):
    model = estimator(3, kernel="linear", random_state=0).fit(np.eye(n))
    assert certificate(model, np.eye(n)).ratio >= 1.0


def test_eigenvalues_where_fast_drivers_give_up():
    n = 400
    K = np.eye(n) - 1.0 / n
    values, vectors = eigen_decomposition(K, largest=5)
    np.testing.assert_allclose(values, 1.0)
    np.testing.assert_allclose(K @ vectors, vectors, atol=1e-12)
    np.testing.assert_allclose(largest_eigenvalues(K, n)[1:], 1.0)


def test_a_failing_driver_has_a_substitute(monkeypatch):
    from sketchmeans.numerics import linalg

    plain, calls = linalg.eigh, []

    def failing(K, *, driver=None, **params):
        calls.append(driver)
        if driver != "ev":
            raise np.linalg.LinAlgError("Internal Error.")
        return plain(K, driver=driver, **params)

    monkeypatch.setattr(linalg, "eigh", failing)
    K = np.diag([3.0, 1.0, 2.0])
    values, vectors = eigen_decomposition(K, largest=2, driver="evr")
    np.testing.assert_allclose(values, [2.0, 3.0])
    assert vectors.shape == (3, 2)
    np.testing.assert_allclose(largest_eigenvalues(K, 2), [2.0, 3.0])
    assert calls == ["evr", "ev", None, "ev"]


def test_a_driver_that_loses_eigenvalues_has_a_substitute(monkeypatch):
    from sketchmeans.numerics import linalg

    plain = linalg.eigh

    def losing(K, *, driver=None, **params):
        found = plain(K, driver=driver, **params)
        if driver == "ev":
            return found
        if params.get("eigvals_only"):
            return found[:0]
        return found[0][:0], found[1][:, :0]

    monkeypatch.setattr(linalg, "eigh", losing)
    K = np.diag([3.0, 1.0, 2.0])
    values, vectors = eigen_decomposition(K, largest=2, driver="evr")
    np.testing.assert_allclose(values, [2.0, 3.0])
    np.testing.assert_allclose(K @ vectors, vectors * values)
    np.testing.assert_allclose(largest_eigenvalues(K, 2), [2.0, 3.0])


# --- as many clusters as distinct rows -------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "form", "weighted"),
    [
        ("rbf", np.float32, True),
        ("linear", np.asarray, False),
        ("cosine", sparse.csr_array, True),
        ("polynomial", np.float32, False),
    ],
)
def test_more_clusters_than_distinct_rows(kernel, form, weighted):
    rng = np.random.default_rng(0)
    distinct = rng.normal(size=(7, 3))
    places = np.concatenate([np.arange(7), rng.integers(7, size=53)])
    rows = form(distinct[places])
    weights = rng.integers(1, 4, size=60) * 1.0 if weighted else None
    model = KernelKMeans(10, kernel=kernel, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(7\) found"):
        model.fit(rows, sample_weight=weights)
    np.testing.assert_array_equal(model.labels_, places)
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
    assert model.cost_ == 0.0
    assert model.cost(rows) == pytest.approx(0.0, abs=1e-5)
    assert model.cluster_sizes_.sum() == (60 if weights is None else weights.sum())


def test_as_many_clusters_as_distinct_rows():
    rows = np.repeat(X[:12], 3, axis=0)
    found = KernelKMeans(12, random_state=0).fit(rows)
    np.testing.assert_array_equal(found.labels_, np.repeat(np.arange(12), 3))
    np.testing.assert_array_equal(found.predict(rows), found.labels_)


def test_rows_of_weight_zero_are_not_counted_as_distinct():
    rows, weights = np.repeat(X[:4], 2, axis=0), np.array([1, 1, 1, 1, 1, 1, 0, 0.0])
    found = KernelKMeans(3, random_state=0).fit(rows, sample_weight=weights)
    np.testing.assert_array_equal(found.labels_[:6], [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(found.predict(rows), found.labels_)


@both
def test_a_broken_power_of_negative_values_is_no_overflow(estimator):
    model = estimator(3, kernel="polynomial", degree=2.5, random_state=0)
    with (
        pytest.warns(UserWarning, match="not positive semi-definite"),
        pytest.raises(ValueError, match=r"degree=2\.5 should be a whole number"),
    ):
        model.fit(X)
