"""What holds for every kernel: a new one is tested by a line in CASES."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from sketchmeans.data.rows import as_rows
from sketchmeans.engine.gram import gram_matrix, landmark_matrix
from sketchmeans.kernels import KERNELS, Kernel, as_kernel, warn_if_indefinite
from sketchmeans.numerics.parallel import Workers
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
    "poly": Case("poly", oracles.polynomial, {**POLYNOMIAL, "degree": 3}),
    "linear": Case("linear", oracles.linear),
    "cosine": Case("cosine", oracles.cosine),
    "sigmoid": Case("sigmoid", oracles.sigmoid, {"gamma": 0.3, "coef0": -0.5}),
    "arc-cosine": Case("arc-cosine", oracles.arc_cosine, kernel_params={"order": 1}),
    "arc-cosine of order 0": Case(
        "arc-cosine", oracles.arc_cosine, kernel_params={"order": 0}
    ),
    "arc-cosine of order 2": Case(
        "arc-cosine", oracles.arc_cosine, kernel_params={"order": 2}
    ),
    "chi2": Case("chi2", oracles.chi2, {"gamma": 0.3}, nonnegative=True, sparse=False),
    "additive_chi2": Case(
        "additive_chi2", oracles.additive_chi2, nonnegative=True, sparse=False
    ),
    "a callable": Case(
        histogram_intersection, histogram_intersection, nonnegative=True, sparse=False
    ),
}

every_kernel = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_sparse_kernel = pytest.mark.parametrize(
    "case",
    [c for c in CASES.values() if c.sparse],
    ids=[n for n in CASES if CASES[n].sparse],
)
shift_invariant = pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.far_from_origin], ids=["rbf", "laplacian"]
)

# The angle between equal rows is known to the root of a rounding.
ANGLE = {"rtol": 1e-10, "atol": 2e-8}
EXACT = {"rtol": 1e-10, "atol": 1e-12}


def tolerance(case: Case) -> dict[str, float]:
    return ANGLE if case.name == "arc-cosine" else EXACT


@pytest.fixture
def workers():
    with Workers(1) as workers:
        yield workers


def test_every_name_has_a_case():
    named = {case.name for case in CASES.values() if isinstance(case.name, str)}
    known = (set(KERNELS) | set(PAIRWISE_KERNEL_FUNCTIONS)) - {"precomputed"}
    assert named == known


@every_kernel
def test_equals_the_value_pair_by_pair(case):
    X, Z = case.rows(9, 0), case.rows(6, 1)
    values = case.kernel()(X, Z)
    assert values.shape == (9, 6)
    np.testing.assert_allclose(values, case.naive(X, Z), **tolerance(case))


@every_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keeps_the_float_type_and_its_precision(case, dtype):
    X, Z = case.rows(9, 0, dtype), case.rows(6, 1, dtype)
    values = case.kernel()(X, Z)
    assert values.dtype == dtype
    rounding = 50 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        values, case.naive(X, Z), rtol=rounding, atol=max(rounding, 2e-8)
    )


@every_kernel
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.uint8, np.float32),
        (np.int16, np.float32),
        (np.bool_, np.float32),
        (np.int32, np.float64),
        (np.int64, np.float64),
        (np.float16, np.float32),
    ],
)
def test_other_types_become_floats_that_hold_them(case, dtype, expected):
    rng = np.random.default_rng(2)
    X = rng.integers(0, 4, size=(8, 5)).astype(dtype)
    Z = rng.integers(0, 4, size=(5, 5)).astype(dtype)
    values = case.kernel()(X, Z)
    assert values.dtype == expected
    naive = case.naive(X.astype(float), Z.astype(float))
    np.testing.assert_allclose(values, naive, rtol=1e-5, atol=1e-5)


@every_sparse_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [1.0, 0.02], ids=["dense", "rare"])
@pytest.mark.parametrize(
    ("wrap_x", "wrap_z"),
    [(True, True), (True, False), (False, True)],
    ids=["both", "rows", "landmarks"],
)
def test_csr_equals_dense(case, dtype, density, wrap_x, wrap_z):
    # Rare landmarks are multiplied as sparse columns, others as dense ones.
    X, Z = case.rows(9, 0, dtype), case.rows(6, 1, dtype)
    if density < 1.0:
        wide = np.zeros((15, 40), dtype)
        wide[:9, :5], wide[9:, 33:38] = X, Z
        wide[9, :5] = X[0]
        X, Z = wide[:9], wide[9:]
    csr_x = sparse.csr_array(X) if wrap_x else X
    csr_z = sparse.csr_array(Z) if wrap_z else Z
    expected, rounding = case.naive(X, Z), 1e-4 if dtype is np.float32 else 1e-9
    for out in (None, np.empty((9, 6), dtype)):
        values = case.kernel()(csr_x, csr_z, out=out)
        assert values.dtype == dtype
        assert out is None or np.shares_memory(values, out)
        np.testing.assert_allclose(values, expected, rtol=rounding, atol=1e-6)


@pytest.mark.parametrize("name", ["chi2", "additive_chi2"])
def test_kernels_that_need_dense_rows_say_so(name):
    X = sparse.csr_array(CASES[name].rows(6, 0))
    with pytest.raises(TypeError, match="dense data is required"):
        CASES[name].kernel()(X, X)


@every_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_out_is_filled_and_returned(case, dtype):
    X, Z = case.rows(9, 0, dtype), case.rows(6, 1, dtype)
    out = np.full((9, 6), np.nan, dtype)
    values = case.kernel()(X, Z, out=out)
    assert np.shares_memory(values, out)
    np.testing.assert_array_equal(out, case.kernel()(X, Z))


@every_kernel
def test_input_is_left_as_it_is(case):
    X, Z = case.rows(9, 0), case.rows(6, 1)
    before = X.copy(), Z.copy()
    kernel = case.kernel()
    kernel(X, Z)
    kernel.diagonal(X)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Z, before[1])


@every_kernel
def test_read_only_input_will_do(case):
    # As a memory map opened for reading is.
    X, Z = case.rows(9, 0), case.rows(6, 1)
    expected = case.kernel()(X, Z)
    X.setflags(write=False)
    Z.setflags(write=False)
    np.testing.assert_array_equal(case.kernel()(X, Z), expected)
    case.kernel().diagonal(X)


@every_kernel
def test_layout_of_the_input_does_not_matter(case):
    X, Z = case.rows(9, 0), case.rows(6, 1)
    kernel = case.kernel()
    expected = kernel(X, Z)
    for layout in (np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2]):
        np.testing.assert_allclose(kernel(layout(X), layout(Z)), expected, rtol=1e-12)


@every_kernel
def test_blocks_of_different_heights_share_one_set_of_columns(case, workers):
    # The scratch arrays of a thread are reused: nothing may leak between blocks.
    X, Z = case.rows(20, 0), case.rows(6, 1)
    columns = case.kernel().against(Z, np.float64, workers)
    heights = [(0, 12), (12, 15), (15, 20)]
    values = np.concatenate([columns(X[a:b]).copy() for a, b in heights])
    np.testing.assert_allclose(values, case.naive(X, Z), **tolerance(case))


@every_kernel
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_diagonal_is_the_diagonal_of_the_matrix(case, dtype):
    X = case.rows(9, 0) * (3 if dtype is np.uint8 else 1)
    X = np.abs(X).astype(dtype) if dtype is np.uint8 else X.astype(dtype)
    diagonal = case.kernel().diagonal(X)
    assert diagonal.dtype == np.float64
    assert diagonal.shape == (9,)
    wide = X.astype(np.float64)
    np.testing.assert_allclose(
        diagonal, np.diagonal(case.naive(wide, wide)), rtol=1e-7, atol=1e-7
    )
    np.testing.assert_allclose(
        diagonal, np.diagonal(case.kernel()(wide, wide)), rtol=1e-7, atol=1e-7
    )


@every_sparse_kernel
def test_diagonal_of_csr_rows(case):
    X = case.rows(9, 0)
    kernel = case.kernel()
    np.testing.assert_allclose(
        kernel.diagonal(sparse.csr_array(X)), kernel.diagonal(X), rtol=1e-12
    )


@shift_invariant
def test_constant_diagonal_is_the_diagonal(case, workers):
    kernel, X = case.kernel(), case.rows(9, 0)
    np.testing.assert_array_equal(kernel.diagonal(X), kernel.constant_diagonal)
    np.testing.assert_array_equal(kernel.row_diagonal(as_rows(X, workers)), np.ones(9))


@every_kernel
def test_positive_definite_kernels_have_no_negative_eigenvalue(case):
    kernel = case.kernel()
    X = case.rows(40, 3)
    K = kernel(X, X)
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-12)
    values = np.linalg.eigvalsh(0.5 * (K + K.T))
    if kernel.positive_definite:
        assert values[0] >= -1e-7 * values[-1]
    else:
        assert values[0] < -1e-3 * abs(values[-1])


@every_kernel
def test_indefinite_kernels_warn_and_only_those(case, recwarn):
    kernel = case.kernel()
    if kernel.positive_definite:
        warn_if_indefinite(kernel)
        assert not recwarn.list
    else:
        with pytest.warns(UserWarning, match="not positive semi-definite"):
            warn_if_indefinite(kernel)


@shift_invariant
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("offset", [0, 100, 1_000, 10_000])
def test_shift_invariant_kernels_are_precise_far_from_the_origin(case, form, offset):
    # Multiples of 1/64 below 2^14 are exact in float32, so nothing is lost on input.
    rng = np.random.default_rng(5)
    near = rng.integers(-128, 128, size=(20, 6)) / 64.0
    far = (near + offset).astype(np.float32)
    np.testing.assert_array_equal(far.astype(np.float64) - offset, near)
    values = case.kernel()(form(far), form(far[:8]))
    np.testing.assert_allclose(values, case.naive(near, near[:8]), rtol=0, atol=2e-6)


@every_kernel
@pytest.mark.parametrize("varying", [(), (1, 3), (4,)])
@pytest.mark.parametrize("n_landmarks", [1, 90])
def test_landmarks_may_agree_in_features(case, varying, n_landmarks, workers):
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
        values = rbf.against(Z)(X)
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


@every_kernel
def test_landmark_matrix_is_symmetric_and_in_float64(case, workers):
    n = 40 if callable(case.name) else 300  # a callable is slow, pair by pair
    Z = case.rows(n, 7, np.float32)
    K = landmark_matrix(case.kernel(), Z, workers)
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(K), case.kernel().diagonal(Z))
    some = np.r_[0:4, n - 46 : n - 42, n - 4 : n] if n > 50 else np.arange(n)
    wide = Z[some].astype(np.float64)
    np.testing.assert_allclose(
        K[np.ix_(some, some)], case.naive(wide, wide), **tolerance(case)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "polynomial", "cosine"])
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


@every_kernel
def test_columns_among_rows_and_their_diagonal(case):
    n = 300 if callable(case.name) else 4200  # more than one block
    X = case.rows(n, 9)
    numbers = np.array([3, n - 1, 3, 0])
    with Workers(2) as workers:
        rows = as_rows(X, workers)
        columns = case.kernel().among(rows)(numbers)
        diagonal = case.kernel().row_diagonal(rows)
    some = np.r_[0:3, n - 106 : n - 102, n - 3 : n]
    assert columns.dtype == diagonal.dtype == np.float64
    assert columns.shape == (n, 4)
    np.testing.assert_allclose(
        columns[some], case.naive(X[some], X[numbers]), **tolerance(case)
    )
    np.testing.assert_allclose(
        diagonal[some],
        [case.naive(X[i : i + 1], X[i : i + 1])[0, 0] for i in some],
        rtol=1e-7,
        atol=1e-7,
    )


@shift_invariant
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_columns_among_rows_are_precise_far_from_the_origin(case, form, workers):
    near = np.random.default_rng(5).integers(-128, 128, size=(20, 6)) / 64.0
    far = as_rows(form((near + 10_000).astype(np.float32)), workers)
    columns = case.kernel().among(far)(np.arange(8))
    np.testing.assert_allclose(columns, case.naive(near, near[:8]), rtol=0, atol=2e-6)


@every_kernel
def test_cloning_and_resolving_keep_the_values(case, workers):
    X = case.rows(9, 0)
    kernel = case.kernel()
    expected = kernel(X, X)
    np.testing.assert_array_equal(clone(kernel)(X, X), expected)
    resolved = kernel.resolved(as_rows(X, workers), np.random.default_rng(0))
    np.testing.assert_array_equal(resolved(X, X), expected)


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
