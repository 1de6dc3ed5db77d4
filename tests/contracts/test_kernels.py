"""What holds for every kernel: a new one is tested by a line in CASES."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from sketchmeans.data.rows import as_rows
from sketchmeans.engine.gram import gram_matrix
from sketchmeans.kernels import (
    KERNELS,
    Kernel,
    as_kernel,
    warn_if_indefinite,
)
from sketchmeans.numerics.parallel import Workers
from sketchmeans.testing import KernelContract
from tests import oracles


def histogram_intersection(x, z):
    """A kernel of two rows, as a user writes it."""
    return np.minimum(x, z).sum()


@dataclass(frozen=True)
class Case:
    """A kernel: what the user types, and the naive value of a pair of rows."""

    name: Any
    oracle: Any
    params: dict[str, Any] = field(default_factory=dict)
    kernel_params: dict[str, Any] = field(default_factory=dict)
    nonnegative: bool = False
    sparse: bool = True
    far_from_origin: bool = False

    def kernel(self) -> Kernel:
        return as_kernel(self.name, **self.params, kernel_params=self.kernel_params)

    def naive(self, X, Z):
        params = {**self.params, **self.kernel_params}
        return oracles.kernel_matrix(self.oracle, X, Z, **params)

    def rows(self, n: int, seed: int, dtype=np.float64) -> np.ndarray:
        """Return rows with zeros, a zero row and a repeated row."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.7)
        X[1], X[-1] = 0.0, X[0]
        return (np.abs(X) if self.nonnegative else X).astype(dtype)


POLYNOMIAL = {"gamma": 0.4, "degree": 2, "coef0": 0.7}
CASES = {
    "rbf": Case("rbf", oracles.rbf, {"gamma": 0.3}, far_from_origin=True),
    "laplacian": Case(
        "laplacian", oracles.laplacian, {"gamma": 0.3}, far_from_origin=True
    ),
    "polynomial": Case("polynomial", oracles.polynomial, POLYNOMIAL),
    "linear": Case("linear", oracles.linear),
    "cosine": Case("cosine", oracles.cosine),
    "sigmoid": Case("sigmoid", oracles.sigmoid, {"gamma": 0.3, "coef0": -0.5}),
    "arc-cosine": Case("arc-cosine", oracles.arc_cosine, kernel_params={"order": 1}),
    "chi2": Case("chi2", oracles.chi2, {"gamma": 0.3}, nonnegative=True, sparse=False),
    "additive_chi2": Case(
        "additive_chi2", oracles.additive_chi2, nonnegative=True, sparse=False
    ),
    "a callable": Case(
        histogram_intersection, histogram_intersection, nonnegative=True, sparse=False
    ),
}

shift_invariant = pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.far_from_origin], ids=["rbf", "laplacian"]
)


@pytest.fixture
def workers():
    with Workers(1) as workers:
        yield workers


class TestContract(KernelContract):
    """Every kernel keeps the contract that ships with the package."""

    @pytest.fixture(params=CASES.values(), ids=CASES, autouse=True)
    def case(self, request):
        self.case = request.param
        self.takes_sparse = self.case.sparse
        if callable(self.case.name):
            self.n_many = 300  # slow, pair by pair
        if self.case.name == "arc-cosine":
            # The angle between equal rows is known to the root of a rounding.
            self.atol = 2e-8

    def make_kernel(self):
        return self.case.kernel()

    def make_rows(self, n, seed):
        return self.case.rows(n, seed)

    def value(self, x, z):
        return self.case.naive(x[None], z[None])[0, 0]


def test_every_name_has_a_case():
    named = {case.name for case in CASES.values() if isinstance(case.name, str)}
    known = (set(KERNELS) | set(PAIRWISE_KERNEL_FUNCTIONS)) - {"precomputed"}
    assert named == known - {"poly"}  # which is polynomial


@pytest.mark.parametrize("order", [0, 2])
def test_other_orders_of_the_arc_cosine_kernel(order):
    case = Case("arc-cosine", oracles.arc_cosine, kernel_params={"order": order})
    X, Z = case.rows(9, 0), case.rows(6, 1)
    np.testing.assert_allclose(case.kernel()(X, Z), case.naive(X, Z), atol=2e-8)
    expected = case.naive(X, X).diagonal()
    np.testing.assert_allclose(case.kernel().diagonal(X), expected, atol=2e-8)


@pytest.mark.parametrize("name", ["chi2", "additive_chi2"])
def test_kernels_that_need_dense_rows_say_so(name):
    X = sparse.csr_array(CASES[name].rows(6, 0))
    with pytest.raises(TypeError, match="dense data is required"):
        CASES[name].kernel()(X, X)


def test_indefinite_kernels_warn_and_only_those(recwarn):
    for case in CASES.values():
        kernel = case.kernel()
        if kernel.positive_definite:
            warn_if_indefinite(kernel)
            assert not recwarn.list
        else:
            K = kernel(case.rows(40, 3), case.rows(40, 3))
            values = np.linalg.eigvalsh(0.5 * (K + K.T))
            assert values[0] < -1e-3 * abs(values[-1])
            with pytest.warns(UserWarning, match="not positive semi-definite"):
                warn_if_indefinite(kernel)


@shift_invariant
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("offset", [100, 10_000])
def test_shift_invariant_kernels_are_precise_far_from_the_origin(case, form, offset):
    # Multiples of 1/64 below 2^14 are exact in float32, so nothing is lost on input.
    rng = np.random.default_rng(5)
    near = rng.integers(-128, 128, size=(20, 6)) / 64.0
    far = (near + offset).astype(np.float32)
    np.testing.assert_array_equal(far.astype(np.float64) - offset, near)
    values = case.kernel()(form(far), form(far[:8]))
    np.testing.assert_allclose(values, case.naive(near, near[:8]), rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("name", "varying", "n_landmarks"),
    [("rbf", (), 90), ("rbf", (1, 3), 90), ("rbf", (4,), 1), ("linear", (1, 3), 90)],
)
def test_landmarks_may_agree_in_features(name, varying, n_landmarks, workers):
    case = CASES[name]
    X, Z = case.rows(8, 6), case.rows(n_landmarks + 2, 7)[:n_landmarks]
    same = np.setdiff1d(np.arange(X.shape[1]), varying)
    Z[:, same] = Z[-1, same]
    columns = case.kernel().against(Z, np.float64, workers)
    for part in (X, X[:3]):  # rows differ in all features
        np.testing.assert_allclose(columns(part), case.naive(part, Z), atol=1e-12)


def test_features_in_which_landmarks_agree_are_not_multiplied(monkeypatch):
    widths = []
    product = np.dot

    def counted(a, b, out=None):
        widths.append(a.shape[1])
        return product(a, b, out=out)

    monkeypatch.setattr(np, "dot", counted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 40)).astype(np.float32)
    Z = rng.normal(size=(100, 40)).astype(np.float32)
    rbf = as_kernel("rbf", gamma=0.01)
    for n_same, width in ((0, 42), (1, 42), (30, 12), (40, 2)):
        Z[:, :n_same] = 0.5
        values = rbf.against(Z, np.float32)(X)
        assert widths.pop() == width
        expected = oracles.kernel_matrix(oracles.rbf, X, Z, gamma=0.01)
        np.testing.assert_allclose(values, expected, atol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3 + 0.1, 1e6 + 0.1])
def test_features_that_are_left_out_cost_no_digits(offset, kind):
    rng = np.random.default_rng(0)
    same = np.float64(kind(offset))
    near, Z = rng.normal(size=(10, 40)), rng.normal(size=(3000, 40))
    X, Z[:, :30] = near.copy(), same
    X[:, :30] = kind(same + near[:, :30])
    near[:, :30] = X[:, :30] - same
    exact = Z.copy()
    exact[:, :30] = 0.0
    values = as_kernel("rbf", gamma=0.01).against(Z, kind)(X)
    expected = oracles.kernel_matrix(oracles.rbf, near, exact[:20], gamma=0.01)
    rounding = 20 * np.finfo(kind).eps
    np.testing.assert_allclose(values[:, :20], expected, rtol=0, atol=rounding)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("rbf", np.float32), ("laplacian", np.float32), ("polynomial", np.float64)],
)
def test_gram_matrix_of_several_tiles(name, dtype, workers):
    case = CASES[name]
    X = case.rows(2100, 8, dtype)
    K = gram_matrix(as_rows(X, workers), case.kernel())
    assert K.dtype == dtype
    np.testing.assert_array_equal(K, K.T)
    some = np.r_[0:3, 1022:1026, 2046:2050, 2097:2100]
    naive = case.naive(X[some], X[some])
    if (K.diagonal() == 0.0).all():  # the same distances, with every row at the origin
        lengths = 0.5 * naive.diagonal()
        naive = naive - lengths - lengths[:, None]
    np.testing.assert_allclose(
        K[np.ix_(some, some)],
        naive,
        rtol=1e-4 if dtype is np.float32 else 1e-10,
        atol=1e-5 if dtype is np.float32 else 1e-12,
    )


@shift_invariant
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_columns_among_rows_are_precise_far_from_the_origin(case, form, workers):
    near = np.random.default_rng(5).integers(-128, 128, size=(20, 6)) / 64.0
    far = as_rows(form((near + 10_000).astype(np.float32)), workers)
    columns = case.kernel().among(far)(np.arange(8))
    np.testing.assert_allclose(columns, case.naive(near, near[:8]), rtol=0, atol=2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precomputed_columns_are_those_of_the_given_matrix(dtype, workers):
    rng = np.random.default_rng(10)
    K = rng.normal(size=(7, 7)).astype(dtype)
    kernel = as_kernel("precomputed")
    rows = as_rows(K, workers)
    numbers = np.array([4, 0, 4])
    columns = kernel.against(kernel.points(rows, numbers), dtype, workers)
    out = np.empty((3, 3), dtype)
    assert columns(K[1:4], out) is out
    np.testing.assert_array_equal(out, K[1:4][:, numbers])
    np.testing.assert_array_equal(columns(K[1:4]), K[1:4][:, numbers])
    np.testing.assert_array_equal(kernel.row_diagonal(rows), np.diagonal(K))
    np.testing.assert_array_equal(kernel.among(rows)(numbers), K[:, numbers])
