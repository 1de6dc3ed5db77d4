"""What holds for every kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from sklearn.base import clone

from sketchmeans.cluster import NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.kernels import Kernel, compute_gram
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers


class KernelContract:
    """Tests of a kernel; a subclass defines `make_kernel`.

    Running it costs seconds.

    See Also
    --------
    sketchmeans.kernels.Kernel : What is tested.

    Examples
    --------
    >>> from sketchmeans.kernels import RBF
    >>> from sketchmeans.testing import KernelContract
    >>> class TestMine(KernelContract):
    ...     def make_kernel(self):
    ...         return RBF(gamma=0.5)
    """

    #: Whether rows may be CSR matrices.
    takes_sparse = True
    #: Rows where several blocks are wanted; fewer for kernels that are slow.
    n_many = 4200
    #: Relative and absolute precision in float64.
    rtol, atol = 1e-10, 1e-12

    def make_kernel(self) -> Kernel:
        """Return the kernel, with numbers for all parameters."""
        raise NotImplementedError

    def value(self, x: Array, z: Array) -> float:
        """Return ``k(x, z)`` of two rows; a plain formula makes a better test."""
        return float(self.make_kernel()(x[None], z[None])[0, 0])

    def make_rows(self, n: int, seed: int) -> Array:
        """Return n rows, with zeros, a zero row and a repeated row among them."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.7)
        X[1], X[-1] = 0.0, X[0]
        return X

    def _expected(self, X: Array, Z: Array) -> Array:
        wide = X.astype(float), Z.astype(float)
        return np.array([[self.value(x, z) for z in wide[1]] for x in wide[0]])

    def _assert_close(self, found: Any, expected: Any, dtype: Any = np.float64) -> None:
        rounding = 50 * float(np.finfo(dtype).eps)
        rtol, atol = max(self.rtol, rounding), max(self.atol, rounding)
        if dtype != np.float64:
            atol = max(atol, 2e-8)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)

    def test_values_in_the_float_type_of_the_rows(self) -> None:
        for dtype in (np.float64, np.float32, np.uint8, np.int64):
            self._check_values(dtype)

    def _check_values(self, dtype: npt.DTypeLike) -> None:
        X, Z = self.make_rows(9, 0), self.make_rows(6, 1)
        if np.dtype(dtype).kind != "f":
            X, Z = np.abs(3 * X), np.abs(3 * Z)
        X, Z = X.astype(dtype), Z.astype(dtype)
        kind = np.float32 if np.dtype(dtype).itemsize < 8 else np.float64
        values, expected = self.make_kernel()(X, Z), self._expected(X, Z)
        assert values.shape == (9, 6)
        assert values.dtype == kind
        self._assert_close(values, expected, kind)
        out = np.full((9, 6), np.nan, kind)
        assert np.shares_memory(self.make_kernel()(X, Z, out=out), out)
        np.testing.assert_array_equal(out, values)

    def test_blocks_share_scratch_arrays_and_leak_nothing(self) -> None:
        X, Z = self.make_rows(20, 0), self.make_rows(6, 1)
        with Workers(1) as workers:
            columns = self.make_kernel().against(Z, np.float64, workers)
            parts = [columns(X[a:b]).copy() for a, b in ((0, 12), (12, 15), (15, 20))]
        self._assert_close(np.concatenate(parts), self._expected(X, Z))

    def test_any_layout_of_the_rows_will_do_and_is_left_as_it_is(self) -> None:
        X, Z = self.make_rows(9, 0), self.make_rows(6, 1)
        kernel, before = self.make_kernel(), X.copy()
        expected = kernel(X, Z)
        kernel.diagonal(X)
        np.testing.assert_array_equal(X, before)
        for x, z in (
            (np.asfortranarray(X), np.asfortranarray(Z)),
            (np.repeat(X, 2, axis=1)[:, ::2], np.repeat(Z, 2, axis=1)[:, ::2]),
        ):
            np.testing.assert_allclose(kernel(x, z), expected, rtol=1e-12)
        X.setflags(write=False)  # as a memory map opened for reading is
        Z.setflags(write=False)
        np.testing.assert_array_equal(kernel(X, Z), expected)
        kernel.diagonal(X)

    def test_diagonal(self) -> None:
        X, kernel = self.make_rows(9, 0), self.make_kernel()
        diagonal = kernel.diagonal(X)
        assert diagonal.dtype == np.float64
        expected = [self.value(x, x) for x in X]
        np.testing.assert_allclose(diagonal, expected, rtol=1e-7, atol=1e-7)
        if kernel.constant_diagonal is not None:
            np.testing.assert_array_equal(diagonal, kernel.constant_diagonal)
        if self.takes_sparse:
            found = kernel.diagonal(sparse.csr_array(X))
            np.testing.assert_allclose(found, diagonal, rtol=1e-12)

    def test_csr_rows_have_the_values_of_dense_rows(self) -> None:
        if not self.takes_sparse:
            pytest.skip("takes_sparse is False")
        kernel, csr = self.make_kernel(), sparse.csr_array
        near = self.make_rows(9, 0), self.make_rows(6, 1)
        wide = np.zeros((15, 40))  # rare nonzeros
        wide[:9, :5], wide[9:, 33:38], wide[9, :5] = near[0], near[1], near[0][0]
        for X, Z in (near, (wide[:9], wide[9:])):
            expected = self._expected(X, Z)
            for x, z in ((csr(X), csr(Z)), (csr(X), Z), (X, csr(Z))):
                self._assert_close(kernel(x, z), expected)
                narrow = kernel(x.astype(np.float32), z, out=np.empty((9, 6), "f4"))
                np.testing.assert_allclose(narrow, expected, rtol=1e-4, atol=1e-6)

    def test_matrices_are_symmetric_and_as_definite_as_declared(self) -> None:
        kernel, X = self.make_kernel(), self.make_rows(40, 3)
        K = kernel(X, X)
        np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-12)
        values = np.linalg.eigvalsh(0.5 * (K + K.T))
        if kernel.positive_definite:
            assert values[0] >= -1e-7 * values[-1]
        if kernel.nonnegative:
            assert K.min() >= 0.0

    def test_cloning_and_resolving_keep_the_values(self) -> None:
        X, kernel = self.make_rows(9, 0), self.make_kernel()
        expected = kernel(X, X)
        np.testing.assert_array_equal(clone(kernel)(X, X), expected)
        with Workers(1) as workers:  # which tries kernels that are not ours
            resolved = kernel.resolve(as_rows(X, workers), np.random.default_rng(0))
        np.testing.assert_array_equal(resolved(X, X), expected)

    def test_sources_of_several_blocks(self) -> None:
        n, kernel = self.n_many, self.make_kernel()
        X, numbers = self.make_rows(n, 9), np.array([3, n - 1, 3, 0])
        some = np.r_[0:3, n - 106 : n - 102, n - 3 : n]
        with Workers(2) as workers:
            rows = as_rows(X, workers)
            columns, diagonal = kernel.among(rows)(numbers), kernel.row_diagonal(rows)
            distances = kernel.distances_among(rows)(numbers)
            gram = compute_gram(kernel, X[: min(n, 300)], workers)
        assert columns.dtype == diagonal.dtype == distances.dtype == np.float64
        self._assert_close(columns[some], self._expected(X[some], X[numbers]))
        lengths = np.array([self.value(x, x) for x in X[some]])
        np.testing.assert_allclose(diagonal[some], lengths, rtol=1e-7, atol=1e-7)
        direct = lengths[:, None] - 2 * columns[some] + diagonal[numbers]
        scale = float(np.abs(diagonal).max()) or 1.0
        np.testing.assert_allclose(distances[some], direct, atol=1e-7 * scale)
        assert distances[n - 1, 3] == distances[0, 1] == 0.0  # equal rows
        np.testing.assert_array_equal(gram, gram.T)
        expected = self._expected(X[:4], X[:4])
        np.testing.assert_allclose(gram[:4, :4], expected, rtol=1e-7, atol=1e-7)

    @pytest.mark.filterwarnings("ignore:.* is not positive semi-definite")
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_the_estimator_takes_it(self) -> None:
        X = self.make_rows(120, 4)
        model = NystromKMeans(
            3, kernel=self.make_kernel(), n_landmarks=30, n_init=2, random_state=0
        ).fit(X)
        if model.converged_ and model.kernel_.positive_definite:
            np.testing.assert_array_equal(model.predict(X), model.labels_)
