"""Pseudo-inverses against NumPy's, and the identities that Lloyd rests on."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from sketchmeans.numerics.linalg import (
    CholeskyInverse,
    EigenInverse,
    pseudo_inverse,
    relative_cut,
    ridged_inverse,
)


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """Small matrices: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


EPS32 = float(np.finfo(np.float32).eps)


def orthogonal(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def with_spectrum(values, seed=0):
    """Return a symmetric matrix with these eigenvalues."""
    values = np.asarray(values, float)
    U = orthogonal(len(values), seed)
    K = (U * values) @ U.T
    return 0.5 * (K + K.T)


def rbf_matrix(X, gamma=0.5):
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


def matrix_of(inverse, n):
    return inverse.solve(np.eye(n))


SPECTRA = {
    "well conditioned": np.linspace(1.0, 3.0, 20),
    "spread": np.logspace(0, -6, 20),
    "beyond the cut": np.logspace(0, -24, 25),
    "half of it zero": np.repeat([2.0, 0.0], 10),
    "one eigenvalue": np.r_[5.0, np.zeros(9)],
    "one above the rest": np.r_[1e6, np.ones(9)],
}


@pytest.mark.parametrize("spectrum", SPECTRA.values(), ids=SPECTRA)
def test_equals_numpys_pseudo_inverse(spectrum):
    K = with_spectrum(spectrum) * 1e-12
    n = len(K)
    cut = relative_cut(n, np.float64)
    kept = int((spectrum > cut * spectrum.max()).sum())
    inverse = pseudo_inverse(K)
    expected = np.linalg.pinv(K, rcond=cut, hermitian=True)
    assert inverse.rank == kept
    smallest = spectrum[spectrum > cut * spectrum.max()].min()
    error = np.abs(matrix_of(inverse, n) - expected).max()
    # An inverse carries the rounding of K divided by its smallest eigenvalue.
    allowed = 1e-13 * (spectrum.max() / smallest) * np.abs(expected).max()
    assert error <= allowed


@pytest.mark.parametrize("spectrum", SPECTRA.values(), ids=SPECTRA)
def test_m_k_m_is_m_and_has_a_root(spectrum):
    # ‖c‖² = b̄ᵀ M b̄ rests on this.
    K = with_spectrum(spectrum)
    before = K.copy()
    for dtype in (np.float32, np.float64):
        inverse = pseudo_inverse(K, dtype=dtype)
        M, R = matrix_of(inverse, len(K)), inverse.root()
        kept = spectrum[spectrum > relative_cut(len(K), dtype) * spectrum.max()]
        allowed = 1e-13 * (kept.max() / kept.min()) * np.abs(M).max()
        assert np.abs(M @ K @ M - M).max() <= allowed
        np.testing.assert_allclose(M, M.T, atol=allowed)
        assert R.shape == (len(K), inverse.rank)
        np.testing.assert_allclose(R @ R.T, M, rtol=1e-7, atol=1e-9 * np.abs(M).max())
    np.testing.assert_array_equal(K, before)


def test_cholesky_equals_the_eigendecomposition():
    K = with_spectrum(np.logspace(0, -4, 30))
    cholesky = pseudo_inverse(K)
    eigen = EigenInverse(*np.linalg.eigh(K))
    assert isinstance(cholesky, CholeskyInverse)
    assert cholesky.rank == eigen.rank == 30
    rhs = np.random.default_rng(1).normal(size=(30, 4))
    np.testing.assert_allclose(cholesky.solve(rhs), eigen.solve(rhs), rtol=1e-9)
    np.testing.assert_allclose(
        cholesky.root() @ cholesky.root().T, eigen.root() @ eigen.root().T, rtol=1e-8
    )


@pytest.mark.parametrize(
    ("n", "dtype", "seed"),
    [(2, np.float32, 0), (40, np.float64, 1), (120, np.float32, 0)],
)
def test_an_eigenvalue_below_the_cut_is_always_left_out(n, dtype, seed):
    # Power iteration sees the smallest eigenvalue from above: it must not miss it.
    cut = relative_cut(n, dtype)
    values = np.r_[np.linspace(1.0, 0.5, n - 1), 0.3 * cut]
    inverse = pseudo_inverse(with_spectrum(values, seed), dtype=dtype)
    assert inverse.rank == n - 1
    assert np.abs(matrix_of(inverse, n)).max() < 10.0


@pytest.mark.parametrize(
    ("n", "dtype"), [(2, np.float64), (40, np.float32), (120, np.float64)]
)
def test_an_eigenvalue_above_the_cut_is_always_kept(n, dtype):
    cut = relative_cut(n, dtype)
    for factor in (3.0, 30.0, 1e3):
        values = np.r_[np.linspace(1.0, 0.5, n - 1), factor * cut]
        assert pseudo_inverse(with_spectrum(values), dtype=dtype).rank == n


def test_large_matrices_take_another_driver_to_the_same_rank():
    values = np.r_[np.linspace(1.0, 0.5, 519), 0.3 * EPS32]
    K = with_spectrum(values)
    M = matrix_of(pseudo_inverse(K, dtype=np.float32, rank=519), 520)
    np.testing.assert_allclose(M @ K @ M, M, atol=1e-11)
    assert np.trace(M @ K) == pytest.approx(519)


def test_the_cut_is_relative_to_the_type_and_the_size():
    assert relative_cut(10, np.float32) == EPS32
    assert relative_cut(10, np.float64) < 1e-12
    assert relative_cut(4000, np.float64) == 10 * relative_cut(400, np.float64)
    assert relative_cut(400, np.float64) >= 400 * np.finfo(float).eps


def test_a_float32_cut_is_coarser():
    K = with_spectrum(np.logspace(0, -10, 11))
    assert pseudo_inverse(K, dtype=np.float64).rank == 11
    assert pseudo_inverse(K, dtype=np.float32).rank == 7


@pytest.mark.parametrize(("dtype", "jitter"), [(np.float32, 0.0), (np.float64, 1e-12)])
def test_repeated_rows_lower_the_rank(dtype, jitter):
    rng = np.random.default_rng(2)
    X = np.repeat(3.0 * rng.normal(size=(12, 3)), 5, axis=0)
    X += jitter * rng.normal(size=X.shape)
    K = rbf_matrix(X)
    inverse = pseudo_inverse(K, dtype=dtype)
    assert inverse.rank == 12
    # The rows themselves lie in the span: b_xᵀ M b_x = k(x, x).
    norms = np.einsum("ij,ji->i", K, inverse.solve(K))
    np.testing.assert_allclose(norms, 1.0, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_of_projections_stay_below_the_norms_of_rows(dtype):
    # A smooth kernel on many rows: most eigenvalues drown in rounding.
    X = np.random.default_rng(3).normal(size=(300, 2))
    Z = np.random.default_rng(4).normal(size=(200, 2))
    inverse = pseudo_inverse(rbf_matrix(Z, 0.05), dtype=dtype)
    assert inverse.rank < 150
    B = np.exp(-0.05 * ((X[:, None] - Z) ** 2).sum(axis=2)).astype(dtype)
    B = B.astype(np.float64)
    norms = np.einsum("ij,ji->i", B, inverse.solve(B.T))
    assert norms.max() <= 1.0 + (1e-3 if dtype is np.float32 else 1e-6)
    assert norms.max() >= 0.999


@pytest.mark.parametrize("rank", [1, 9, 50])
def test_rank_keeps_the_largest_eigenvalues(rank):
    values = np.arange(10.0, 0.0, -1.0)
    U = orthogonal(10)
    K = (U * values) @ U.T
    K = 0.5 * (K + K.T)
    inverse = pseudo_inverse(K, rank=rank)
    r = min(rank, 10)
    assert inverse.rank == r
    expected = (U[:, :r] / values[:r]) @ U[:, :r].T
    np.testing.assert_allclose(matrix_of(inverse, 10), expected, atol=1e-12)
    M = matrix_of(inverse, 10)
    np.testing.assert_allclose(M @ K @ M, M, atol=1e-12)


def test_rank_does_not_lift_what_is_noise():
    assert pseudo_inverse(with_spectrum(SPECTRA["half of it zero"]), rank=15).rank == 10


@pytest.mark.parametrize("n", [1, 4])
def test_the_zero_matrix_has_the_zero_inverse(n):
    inverse = pseudo_inverse(np.zeros((n, n)))
    assert inverse.rank == 0
    np.testing.assert_array_equal(inverse.solve(np.ones((n, 3))), np.zeros((n, 3)))
    assert inverse.root().shape == (n, 0)


def test_one_row():
    inverse = pseudo_inverse(np.array([[4.0]]))
    assert inverse.rank == 1
    np.testing.assert_allclose(inverse.solve(np.array([[2.0, 1.0]])), [[0.5, 0.25]])


def test_negative_eigenvalues_are_left_out():
    # An indefinite kernel: what is kept is the positive part.
    values = np.array([3.0, 1.0, 0.0, -0.5, -2.0])
    U = orthogonal(5)
    K = (U * values) @ U.T
    inverse = pseudo_inverse(0.5 * (K + K.T))
    assert inverse.rank == 2
    expected = (U[:, :2] / values[:2]) @ U[:, :2].T
    np.testing.assert_allclose(matrix_of(inverse, 5), expected, atol=1e-12)


def test_the_same_matrix_gives_the_same_bits():
    K = with_spectrum(SPECTRA["spread"])
    rhs = np.random.default_rng(5).normal(size=(20, 3))
    first, again = pseudo_inverse(K).solve(rhs), pseudo_inverse(K).solve(rhs)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("kind", ["smooth", "repeated", "zero"])
def test_large_singular_matrices_are_inverted_over_pivots(kind):
    X = np.random.default_rng(0).normal(size=(600, 2))
    if kind == "repeated":
        X = np.repeat(np.random.default_rng(1).normal(size=(200, 8)), 3, axis=0)
    K = np.zeros((600, 600)) if kind == "zero" else rbf_matrix(X)
    inverse = pseudo_inverse(K, dtype=np.float32)
    assert inverse.pivots is not None
    M, R = matrix_of(inverse, 600), inverse.root()
    assert R.shape == (600, inverse.rank)
    np.testing.assert_allclose(R @ R.T, M, rtol=1e-6, atol=1e-9 * np.abs(M).max())
    # M K M = M: what the length of a centroid rests on.
    np.testing.assert_allclose(M @ K @ M, M, atol=1e-5 * max(np.abs(M).max(), 1.0))
    cut = relative_cut(600, np.float32) * max(np.linalg.eigvalsh(K)[-1], 0.0)
    left = K - K @ M @ K
    assert np.abs(left).max() <= 2.0 * cut + 1e-12
    if kind == "repeated":
        assert inverse.rank == 200
    if kind == "zero":
        assert inverse.rank == 0


def test_a_ridge_is_enough_for_estimates():
    K = rbf_matrix(np.random.default_rng(0).normal(size=(300, 2)))
    rough = ridged_inverse(K, np.float32)
    b = K[:, :5] @ np.ones(5)
    exact = b @ pseudo_inverse(K, dtype=np.float32).solve(b[:, None])[:, 0]
    assert b @ rough.solve(b[:, None])[:, 0] == pytest.approx(exact, rel=1e-3)
    assert ridged_inverse(np.zeros((4, 4)), np.float64).rank == 0
