"""What holds for every landmark selector, and for every seeding."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone

from sketchmeans.cluster import KernelKMeans, NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.engine.init import Seeding
from sketchmeans.kernels import RBF, toarray
from sketchmeans.landmarks import Landmarks, LandmarkSelector, select_landmarks
from sketchmeans.numerics.linalg import Array
from sketchmeans.numerics.parallel import Workers

#: A true law is rejected by chance once in a thousand seeds; the seeds are fixed.
LEVEL = 1e-3


def assert_same_law(first: Iterable[Array], second: Iterable[Array]) -> None:
    """Fail where a chi-square test tells the outcomes of two samples apart.

    Outcomes that are rare in both samples together count as one.
    """
    a, b = (
        Counter(tuple(np.atleast_1d(draw).tolist()) for draw in draws)
        for draws in (first, second)
    )
    table = np.array([[c[key] for key in a | b] for c in (a, b)])
    rare = table.sum(axis=0) < 20
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] > 1:  # else nothing is left to chance
        p_value = float(stats.chi2_contingency(table).pvalue)
        assert p_value > LEVEL, f"p = {p_value:.1e} that both samples have one law"


def make_table(n: int = 60, d: int = 3, dtype: Any = np.float64) -> Array:
    """Return a table of distinct rows."""
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


def residual_of(X: Array, Z: Array, gamma: float) -> tuple[Array, Array]:
    """Return ``K − K̃`` of the rbf kernel, and ``k(X, Z)``."""
    kernel = RBF(gamma)
    B, M = kernel(X, Z), np.linalg.pinv(kernel(Z, Z), rcond=1e-13, hermitian=True)
    return kernel(X, X) - B @ M @ B.T, B


class SelectorContract:
    """Tests of a landmark selector; a subclass defines `make_selector`.

    Running it costs seconds.

    See Also
    --------
    sketchmeans.landmarks.LandmarkSelector : What is tested.

    Examples
    --------
    >>> from sketchmeans.landmarks import Uniform
    >>> from sketchmeans.testing import SelectorContract
    >>> class TestMine(SelectorContract):
    ...     def make_selector(self):
    ...         return Uniform()
    """

    #: Whether the selector works without an input space, on a kernel matrix.
    takes_precomputed = True
    #: Draws on which the law of weights is tested; few where little is left to chance.
    n_draws = 500

    def make_selector(self) -> LandmarkSelector:
        """Return the selector."""
        raise NotImplementedError

    def select(self, X: Any, n_landmarks: int, **settings: Any) -> Landmarks:
        """Return landmarks of a table, by the public function."""
        settings = {"random_state": 0} | settings
        return select_landmarks(X, n_landmarks, self.make_selector(), **settings)

    def _check(self, found: Landmarks, X: Any, m: int) -> None:
        points = toarray(found.points)
        assert points.shape == (m, X.shape[1])
        assert len(np.unique(points, axis=0)) == len(found) == m
        if found.indices is not None:
            assert found.indices.dtype.kind == "i"
            np.testing.assert_array_equal(points, toarray(X[found.indices]))
        if found.scores is not None:
            assert found.scores.shape == (X.shape[0],)
            assert np.isfinite(found.scores).all()
            assert (found.scores >= 0.0).all()
        if found.effective_dimension is not None:
            assert 0.0 < found.effective_dimension <= X.shape[0]

    def test_it_can_be_cloned(self) -> None:
        selector: Any = self.make_selector()
        assert clone(selector).get_params() == selector.get_params()

    def test_any_number_of_landmarks_up_to_n(self) -> None:
        for m, d in ((1, 4), (2, 1), (30, 4), (30, 1)):
            X = make_table(30, d)
            self._check(self.select(X, m, gamma=200.0), X, m)

    def test_seeds_reproduce_and_threads_change_nothing(self) -> None:
        # Several blocks, the last one partial; more rows than small-n shortcuts take.
        X = make_table(5003, 2, np.float32)
        first = self.select(X, 12, n_jobs=1, random_state=3)
        self._check(first, X, 12)
        assert first.points.dtype == np.float32
        again = self.select(X, 12, n_jobs=2, random_state=3)
        np.testing.assert_array_equal(first.points, again.points)
        for name in ("indices", "scores", "effective_dimension"):
            np.testing.assert_array_equal(getattr(first, name), getattr(again, name))

    def test_no_matrix_of_all_pairs_is_formed(self) -> None:
        X = make_table(4000, 2)  # whose kernel matrix takes 128 MB
        tracemalloc.start()
        try:
            self.select(X, 12, n_jobs=1)
            assert tracemalloc.get_traced_memory()[1] < 32e6
        finally:
            tracemalloc.stop()

    def test_the_estimator_has_the_same_landmarks(self) -> None:
        X = np.random.default_rng(0).integers(0, 255, size=(200, 4), dtype=np.uint8)
        settings: Any = {"gamma": 1e-5, "random_state": 5}
        model = NystromKMeans(
            3, n_landmarks=9, landmarks=self.make_selector(), **settings
        ).fit(X)
        found = self.select(X, 9, **settings)
        np.testing.assert_array_equal(model.landmarks_, found.points)

    def test_csr_rows_have_the_landmarks_of_dense_rows(self) -> None:
        X = make_table(60, 8) * (np.random.default_rng(1).random((60, 8)) < 0.6)
        for kernel in ("rbf", "linear"):
            found = self.select(sparse.csr_array(X), 6, kernel=kernel)
            assert sparse.issparse(found.points)
            self._check(found, sparse.csr_array(X), 6)
            dense = self.select(X, 6, kernel=kernel)
            np.testing.assert_allclose(toarray(found.points), dense.points, atol=1e-12)

    def test_a_precomputed_kernel_has_the_landmarks_of_its_rows(self) -> None:
        X = make_table(40)
        K = RBF(0.5)(X, X)
        np.fill_diagonal(K, 1.0)
        if not self.takes_precomputed:
            with pytest.raises(ValueError, match=r"precomputed.*no input space"):
                self.select(K, 8, kernel="precomputed")
            return
        found = self.select(K, 8, kernel="precomputed")
        expected = self.select(X, 8, gamma=0.5)
        np.testing.assert_array_equal(found.indices, expected.indices)

    def test_no_value_is_a_landmark_twice(self) -> None:
        values = make_table(6, 2)
        X = np.repeat(values, [40, 1, 30, 1, 2, 6], axis=0)
        with pytest.warns(UserWarning, match=r"Only 6 landmarks .* n_landmarks=9"):
            points = self.select(X, 9, gamma=1.0).points
        first, second = (a[np.lexsort(a.T)] for a in (points, values))
        np.testing.assert_allclose(first, second, rtol=1e-12)
        for kernel, value in (("rbf", 3.5), ("linear", 0.0)):
            same = np.full((150, 2), value)
            with pytest.warns(UserWarning, match=r"Only 1 landmarks .* n_landmarks=4"):
                points = self.select(same, 4, kernel=kernel).points
            np.testing.assert_array_equal(points, same[:1])

    def test_rows_of_weight_zero_are_never_landmarks(self) -> None:
        X, weights = make_table(20, 2), np.ones(20)
        zero = [0, 3, 4, 5, 8, 11, 12, 15, 16, 18, 19]
        weights[zero] = 0.0
        X[zero] += 100.0
        for seed, m in enumerate((9, 1, 9, 1, 9)):
            settings = {"sample_weight": weights, "random_state": seed}
            found = self.select(X, m, gamma=5.0, **settings)
            assert len(found) == m
            assert found.points.max() < 50.0
            if found.scores is not None:
                assert not found.scores[zero].any()

    def test_the_scale_of_the_weights_does_not_matter(self) -> None:
        X, weights = make_table(), np.random.default_rng(0).random(60)
        first, scaled = (
            self.select(X, 8, sample_weight=weights * scale).points
            for scale in (1.0, 2.0**20)
        )
        np.testing.assert_array_equal(first, scaled)

    def test_weights_equal_repeats_in_law(self) -> None:
        values = np.array([[0.0], [0.4], [1.1], [2.5], [2.9]])
        times, selector = np.array([1, 6, 2, 4, 3]), self.make_selector()

        def draw(X: Array, weights: Array | None, seed: int) -> list[Array]:
            rngs = np.random.default_rng(seed).spawn(self.n_draws)
            with Workers(1) as workers:
                rows = as_rows(X, workers, weights)
                found = [selector.select(rows, RBF(0.7), 2, rng) for rng in rngs]
            return [np.sort(f.points[:, 0]).round(6) for f in found]

        weighted = draw(values, times.astype(float), 1)
        assert_same_law(weighted, draw(np.repeat(values, times, axis=0), None, 2))

    def test_the_potential_bounds_the_error_of_the_approximation(self) -> None:
        X = make_table(30)
        for m in (4, 30):
            error, B = residual_of(X, self.select(X, m, gamma=0.5).points, 0.5)
            trace, potential = np.linalg.norm(error, "nuc"), (2.0 - 2.0 * B).min(axis=1)
            assert np.linalg.norm(error) <= trace * (1.0 + 1e-9)
            assert trace <= potential.sum() * (1.0 + 1e-9) + 1e-9


class SeedingContract:
    """Tests of a seeding; a subclass defines `make_seeding`.

    Running it costs seconds.

    See Also
    --------
    sketchmeans.NystromKMeans : Takes one as `init`.

    Examples
    --------
    >>> from sketchmeans.engine.init import SEEDINGS
    >>> from sketchmeans.testing import SeedingContract
    >>> class TestMine(SeedingContract):
    ...     def make_seeding(self):
    ...         return SEEDINGS["k-means++"]()
    """

    #: Restarts on which the law of weights is tested.
    n_draws = 1500

    def make_seeding(self) -> Seeding:
        """Return the seeding."""
        raise NotImplementedError

    def seed(
        self,
        X: Array,
        k: int,
        restarts: int,
        *,
        seed: int = 0,
        weights: Array | None = None,
    ) -> Array:
        """Return the row numbers of the centres, of shape (restarts, k)."""
        table = ((X[:, None] - X) ** 2).sum(axis=2)
        weights = np.ones(len(X)) if weights is None else np.asarray(weights, float)
        rngs = np.random.default_rng(seed).spawn(restarts)
        return self.make_seeding().seed(lambda i: table[:, i], weights, k, rngs)

    def test_k_different_rows_for_each_restart(self) -> None:
        tables = make_table(40, 2), np.ones((40, 2))
        for X, k in product(tables, (1, 7, 40)):
            chosen = self.seed(X, k, 5)
            assert chosen.shape == (5, k)
            assert chosen.dtype.kind == "i"
            assert chosen.min() >= 0
            assert chosen.max() < 40
            assert all(len(set(row)) == k for row in chosen.tolist())

    def test_k_different_values_where_rows_repeat(self) -> None:
        X = np.repeat(make_table(6, 2), [30, 1, 20, 1, 2, 6], axis=0)
        chosen = self.seed(X, 6, 50)
        assert all(len(np.unique(X[seeds], axis=0)) == 6 for seeds in chosen)

    def test_the_same_generators_give_the_same_rows(self) -> None:
        X = make_table(40, 2)
        first = self.seed(X, 5, 4, seed=3)
        np.testing.assert_array_equal(first, self.seed(X, 5, 4, seed=3))
        assert (first != self.seed(X, 5, 4, seed=4)).any()
        # A restart does not depend on the others.
        np.testing.assert_array_equal(first[:1], self.seed(X, 5, 1, seed=3))

    def test_rows_of_weight_zero_are_never_drawn(self) -> None:
        X, weights = make_table(20, 2), np.ones(20)
        weights[[0, 3, 4, 5, 8, 11, 12, 15, 16, 18, 19]] = 0.0
        same = np.where(weights[:, None] > 0.0, 1.0, X)
        # Nothing is left to gain after the first centre, but rows to choose from.
        for rows, k in product((X, same), (1, 4, 9)):
            assert weights[self.seed(rows, k, 100, weights=weights)].all()

    def test_the_scale_of_the_weights_does_not_matter(self) -> None:
        X, weights = make_table(40, 2), np.random.default_rng(0).random(40)
        first = self.seed(X, 5, 10, weights=weights)
        scaled = self.seed(X, 5, 10, weights=weights * 2.0**20)
        np.testing.assert_array_equal(first, scaled)

    @pytest.mark.parametrize("k", [1, 3])
    def test_weights_equal_repeats_in_law(self, k: int) -> None:
        # Different weights: swapping two rows that are near each other is no tie.
        X, times = make_table(5, 2), np.array([1, 6, 2, 4, 3])
        number = np.repeat(np.arange(5), times)
        weighted = self.seed(X, k, self.n_draws, seed=1, weights=times)
        repeated = number[self.seed(X[number], k, self.n_draws, seed=2)]
        assert_same_law(weighted, repeated)

    def test_the_estimator_takes_it(self) -> None:
        X = make_table(60, 2)
        seeding = self.make_seeding()
        model = KernelKMeans(4, init=seeding, n_init=2, random_state=0).fit(X)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
