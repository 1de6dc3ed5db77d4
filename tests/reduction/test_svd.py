"""Right singular vectors: the law of Lemma 4, its exact limits, and hard tables."""

import numpy as np
import pytest
from scipy import sparse

import sketchmeans.reduction.svd as svd_module
from sketchmeans.data.rows import as_rows
from sketchmeans.numerics.parallel import Workers
from sketchmeans.reduction.svd import (
    check_exact_fits,
    exact_svd,
    fast_frobenius_svd,
    truncated_svd,
)
from tests.pairs import every_value


@pytest.fixture
def workers():
    with Workers(2) as pool:
        yield pool


def table(n, d, seed=0, decay=0.9, rank=None):
    """Return a table with a known, slowly decaying spectrum."""
    rng = np.random.default_rng(seed)
    q = min(n, d) if rank is None else rank
    left, _ = np.linalg.qr(rng.standard_normal((n, q)))
    right, _ = np.linalg.qr(rng.standard_normal((d, q)))
    return (left * decay ** np.arange(q)) @ right.T


def fast(X, workers, k, eps=0.5, seed=0):
    return fast_frobenius_svd(as_rows(X, workers), k, eps, np.random.default_rng(seed))


def squared_error(X, Z):
    return float(((X - X @ Z @ Z.T) ** 2).sum())


def best_error(X, k):
    return float((np.linalg.svd(X, compute_uv=False)[k:] ** 2).sum())


def lemma_4_oracle(X, k, eps, seed):
    """Return Z as Lemma 4 writes it, with every matrix formed."""
    width = k + int(np.ceil(k / eps)) + 1
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((X.shape[1], width), dtype=X.dtype.type)
    Q, _ = np.linalg.qr(X @ G)
    return np.linalg.svd(Q.T @ X, full_matrices=False)[2][:k].T


@pytest.mark.parametrize("shape", [(300, 40), (60, 400), (1500, 80)])
def test_fast_svd_is_the_algorithm_of_lemma_4(workers, shape):
    X = table(*shape)
    found = fast(X, workers, 3, 0.4, seed=5)
    Z = lemma_4_oracle(X, 3, 0.4, seed=5)
    np.testing.assert_allclose(np.abs(Z.T @ found.vectors), np.eye(3), atol=1e-9)


@pytest.mark.parametrize("eps", [0.3, 0.9])
def test_expected_error_is_within_the_bound_of_lemma_4(workers, eps):
    X = table(200, 60, decay=0.97)
    errors = [squared_error(X, fast(X, workers, 4, eps, s).vectors) for s in range(40)]
    optimum = best_error(X, 4)
    assert min(errors) >= optimum * (1 - 1e-9)
    # The mean is below the bound by more than its own uncertainty, and not by luck of
    # an exact method: the range finder does lose something.
    spread = np.std(errors) / np.sqrt(len(errors))
    assert np.mean(errors) + 3 * spread <= (1 + eps) * optimum
    assert np.mean(errors) > 1.001 * optimum


@pytest.mark.parametrize("method", ["fast", "exact"])
def test_vectors_are_orthonormal_and_the_residual_is_orthogonal(workers, method):
    X = table(500, 70)
    found = (
        fast(X, workers, 6) if method == "fast" else exact_svd(as_rows(X, workers), 6)
    )
    Z = found.vectors
    np.testing.assert_allclose(Z.T @ Z, np.eye(6), atol=1e-12)
    np.testing.assert_allclose((X - X @ Z @ Z.T) @ Z, 0, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((300, 20), np.float32),
        ((20, 300), np.float64),
        ((1, 7), np.float64),
        ((7, 1), np.float32),
    ],
)
def test_exact_svd_is_that_of_lapack(workers, shape, dtype):
    X = table(*shape).astype(dtype)
    k = min(5, *shape)
    found = exact_svd(as_rows(X, workers), k)
    _, values, right = np.linalg.svd(X.astype(float), full_matrices=False)
    np.testing.assert_allclose(found.values, values[:k], rtol=1e-10)
    np.testing.assert_allclose(np.abs(right[:k] @ found.vectors), np.eye(k), atol=1e-8)


def test_exact_svd_of_many_blocks(workers, monkeypatch):
    X = table(500, 9)
    whole = exact_svd(as_rows(X, workers), 4)
    monkeypatch.setattr(svd_module, "block_height", lambda d, m: 16)
    parts = exact_svd(as_rows(X, workers), 4)
    np.testing.assert_allclose(parts.vectors, whole.vectors, atol=1e-12)
    np.testing.assert_allclose(parts.values, whole.values, rtol=1e-12)


def test_exact_svd_finds_directions_that_a_gram_matrix_would_lose(workers):
    X = table(200, 5, decay=1e-3)  # singular values down to 1e-12 of the first
    found = exact_svd(as_rows(X, workers), 5)
    np.testing.assert_allclose(found.values, 1e-3 ** np.arange(5.0), rtol=1e-3)


def test_every_peak_is_positive(workers):
    for found in (
        fast(table(300, 40), workers, 5),
        exact_svd(as_rows(-table(30, 9), workers), 5),
    ):
        Z = found.vectors
        assert (Z[np.abs(Z).argmax(axis=0), np.arange(Z.shape[1])] > 0).all()


@every_value
@pytest.mark.parametrize("method", ["fast", "exact"])
@pytest.mark.parametrize(("rank", "dtype"), [(1, np.float64), (3, np.float32)])
def test_rank_below_k(workers, dtype, method, rank):
    X = table(400, 60, rank=rank, decay=0.5).astype(dtype)
    rows = as_rows(X, workers)
    found = fast(X, workers, 8) if method == "fast" else exact_svd(rows, 8)
    assert found.vectors.shape == (60, rank)
    noise = 10 * np.finfo(dtype).eps
    assert squared_error(X.astype(float), found.vectors) <= noise


@pytest.mark.parametrize("method", ["fast", "exact"])
def test_zero_table_has_one_direction(workers, method):
    X = np.zeros((100, 30))
    found = (
        fast(X, workers, 3) if method == "fast" else exact_svd(as_rows(X, workers), 3)
    )
    np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=0), [1.0])
    np.testing.assert_array_equal(found.values, [0.0])


@pytest.mark.parametrize("shape", [(300, 12), (12, 300)])
def test_wide_range_finder_gives_the_exact_vectors(workers, shape):
    X = table(*shape)
    found = fast(X, workers, 4, eps=0.5)  # 4 + 8 + 1 > 12
    exact = exact_svd(as_rows(X, workers), 4)
    np.testing.assert_array_equal(found.vectors, exact.vectors)


def test_rounding_of_float32_products_is_no_direction(workers):
    # Sums of 2,000 float32 products leave noise that the range finder takes for range.
    X = table(2000, 2000, rank=1).astype(np.float32)
    assert fast(X, workers, 2).vectors.shape == (2000, 1)


def test_vectors_of_very_different_length_are_orthonormal(workers):
    X = table(300, 40, rank=6, decay=0.1)
    found = fast(X, workers, 6)
    np.testing.assert_allclose(found.values, 0.1 ** np.arange(6.0), rtol=1e-5)
    Z = found.vectors
    np.testing.assert_allclose(Z.T @ Z, np.eye(6), atol=1e-13)


def test_small_directions_survive_float32_far_from_the_origin(workers):
    # The mean is a thousand times longer than the spread: sums of float32 products
    # would keep nothing of the other directions.
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.standard_normal((60, 4)))
    scores = rng.standard_normal((2000, 3)) * [4.0, 2.0, 1.0]
    X = (scores @ basis[:, 1:].T + 4000.0 * basis[:, 0]).astype(np.float32)
    exact = exact_svd(as_rows(X, workers), 4).vectors
    found = fast(X, workers, 4).vectors
    # Float32 steps of 2⁻¹³ at 4,000 leave three digits.
    assert np.linalg.svd(exact.T @ found, compute_uv=False).min() > 0.999


@pytest.mark.parametrize(
    ("dtype", "method"),
    [
        (np.uint8, "fast"),
        (np.int64, "exact"),
        (np.float32, "exact"),
        (np.float64, "fast"),
    ],
)
def test_types_and_csr_give_the_same_vectors(workers, dtype, method):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 9, (3000, 50)) * (rng.random((3000, 50)) < 0.3)

    def vectors(table):
        if method == "exact":
            return exact_svd(as_rows(table, workers), 3).vectors
        return fast(table, workers, 3).vectors

    wide = {np.uint8: np.float32}.get(dtype, np.float64)
    expected = vectors(X.astype(np.float32 if dtype == np.float32 else wide))
    tolerance = {"rtol": 0, "atol": 1e-5}
    np.testing.assert_allclose(vectors(X.astype(dtype)), expected, **tolerance)
    np.testing.assert_allclose(
        vectors(sparse.csr_array(X.astype(dtype))), expected, **tolerance
    )


def test_threads_give_the_same_bits():
    X = table(5000, 64).astype(np.float32)
    found = []
    for n_jobs in (1, 2, 3):
        with Workers(n_jobs) as pool:
            found.append(fast(X, pool, 5).vectors)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_fast_svd_reads_every_row_once(workers):
    class Counting:
        """A table that counts the rows that are read."""

        def __init__(self, X):
            self.X, self.shape, self.dtype, self.read = X, X.shape, X.dtype, 0

        def __getitem__(self, rows):
            self.read += len(range(*rows.indices(len(self.X))))
            return self.X[rows]

    X = Counting(table(3000, 50))
    fast_frobenius_svd(as_rows(X, workers), 4, 0.5, np.random.default_rng(0))
    assert X.read == 3000


def test_overflow_is_an_error_that_advises(workers):
    X = np.full((300, 50), 3e38, dtype=np.float32)
    X[::2] *= -1
    with pytest.raises(ValueError, match="overflows when it is multiplied"):
        fast(X, workers, 3)


def test_exact_svd_that_does_not_fit_is_an_error(workers, monkeypatch):
    monkeypatch.setattr(svd_module, "memory_budget", lambda m: 1000)
    with pytest.raises(MemoryError, match=r"needs 60 kB; .* is 1 kB. Use svd='fast'"):
        check_exact_fits(as_rows(table(200, 50), workers))
    check_exact_fits(as_rows(table(6, 6), workers))


def truncated(X, workers, k, weights=None):
    rows = as_rows(X, workers, weights)
    return truncated_svd(rows, k, np.random.default_rng(0))


@every_value
@pytest.mark.parametrize("shape", [(300, 90), (60, 400), (3000, 80)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_truncated_svd_is_that_of_lapack(workers, shape, dtype):
    X = table(*shape).astype(dtype)
    found, exact = truncated(X, workers, 5), exact_svd(as_rows(X, workers), 5)
    np.testing.assert_allclose(found.values, exact.values, rtol=1e-9)
    np.testing.assert_allclose(found.vectors, exact.vectors, atol=1e-7)
    in_csr = truncated(sparse.csr_array(X), workers, 5)
    np.testing.assert_allclose(in_csr.vectors, found.vectors, atol=1e-7)


def test_truncated_svd_of_weighted_rows_is_that_of_repeated_ones(workers):
    X, weights = table(200, 50), np.arange(200) % 4 + 1.0
    found = truncated(X, workers, 4, weights)
    repeated = truncated(np.repeat(X, weights.astype(int), axis=0), workers, 4)
    np.testing.assert_allclose(found.vectors, repeated.vectors, atol=1e-7)


def test_truncated_svd_of_few_directions(workers):
    assert truncated(table(200, 60, rank=3), workers, 8).vectors.shape == (60, 3)
    assert truncated(np.zeros((100, 40)), workers, 3).vectors.shape == (40, 1)
    # More than a third of all: the exact method.
    X = table(30, 20)
    whole = exact_svd(as_rows(X, workers), 10)
    np.testing.assert_array_equal(truncated(X, workers, 10).vectors, whole.vectors)
