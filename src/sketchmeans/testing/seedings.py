"""What holds for every seeding."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from sketchmeans.cluster import KernelKMeans
from sketchmeans.engine.init import Seeding
from sketchmeans.numerics.linalg import Array
from sketchmeans.testing.laws import assert_same_law
from sketchmeans.testing.selectors import make_table


class SeedingContract:
    """Tests of a seeding; a subclass defines `make_seeding`."""

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
