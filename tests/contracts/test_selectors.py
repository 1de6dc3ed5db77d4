"""Every selector in SELECTORS keeps the contract that ships with the package."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from sketchmeans.landmarks import SELECTORS, as_selector, select_landmarks
from sketchmeans.testing import SelectorContract
from sketchmeans.testing.selectors import make_table, residual_of

#: These need an input space, which a precomputed kernel has not.
INPUT_SPACE = {"kmeans"}

#: Draws where a law is tested: few of the slow ones, next to none without chance.
DRAWS = {"kmeans": 150, "k-dpp": 200, "greedy": 5, "cholesky": 5}

#: Parameters that make a law cheap to test: it is the same after every step.
QUICK = {"k-dpp": {"n_steps": 12}}


class TestContract(SelectorContract):
    @pytest.fixture(params=SELECTORS, autouse=True)
    def name(self, request):
        self.name = request.param
        self.params = {}
        self.takes_precomputed = self.name not in INPUT_SPACE
        self.n_draws = DRAWS.get(self.name, 250)

    def make_selector(self):
        return as_selector(self.name).set_params(**self.params)

    @pytest.mark.law
    def test_weights_equal_repeats_in_law(self):
        self.params = QUICK.get(self.name, {})
        super().test_weights_equal_repeats_in_law()


def test_a_matrix_of_all_pairs_would_be_seen():
    class Quadratic(SelectorContract):
        def make_selector(self):
            return self

        def select(self, X, n_landmarks, **settings):
            np.ones((len(X), len(X)))

    with pytest.raises(AssertionError):
        Quadratic().test_no_matrix_of_all_pairs_is_formed()


def test_a_law_that_ignores_the_weights_would_be_seen():
    class Unweighted(SelectorContract):
        def make_selector(self):
            return self

        def select(self, rows, kernel, n_landmarks, rng):
            rows.weights = None
            return as_selector("uniform").select(rows, kernel, n_landmarks, rng)

    with pytest.raises(AssertionError, match="both samples have one law"):
        Unweighted().test_weights_equal_repeats_in_law()


def test_more_landmarks_than_rows_are_an_error():
    with pytest.raises(ValueError, match="n_landmarks=31 should be <= n_samples=30"):
        select_landmarks(make_table(30), 31)


def test_more_landmarks_never_raise_the_error():
    X = make_table(50)
    Z = select_landmarks(X, 20, gamma=0.3, random_state=2).points
    before = [np.inf] * 3
    for m in range(1, 21):
        error, _ = residual_of(X, Z[:m], 0.3)
        after = [np.linalg.norm(error, norm) for norm in ("nuc", "fro", 2)]
        assert all(a <= b + 1e-9 for a, b in zip(after, before, strict=True))
        before = after


@pytest.mark.parametrize("name", ["kmeans++", "k-means++"])
def test_k_means_plus_plus_has_two_spellings(name):
    found = select_landmarks(make_table(), 5, name, random_state=0)
    same = select_landmarks(make_table(), 5, "k-means++", random_state=0)
    np.testing.assert_array_equal(found.indices, same.indices)


def test_an_unknown_method_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"method='best' should be one of \['bless',"):
        select_landmarks(make_table(), 3, "best")
    with pytest.raises(ValueError, match=r"method=7 should be one of"):
        select_landmarks(make_table(), 3, 7)


def test_the_number_of_landmarks_should_be_a_positive_integer():
    for m in (0, 2.5, "auto", True):
        with pytest.raises(ValueError, match=r"n_landmarks=.* should be an integer >="):
            select_landmarks(make_table(), m)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_values_that_are_not_finite_are_named(kernel):
    X = make_table()
    X[17, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN \(row 17, column 1\)"):
        select_landmarks(X, 1, kernel=kernel, random_state=0)


def test_a_precomputed_kernel_should_be_square():
    with pytest.raises(ValueError, match=r"\(60, 3\) should be square"):
        select_landmarks(make_table(), 3, kernel="precomputed")


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_precomputed_kernel_should_be_finite_and_symmetric(form):
    K = np.eye(600)
    K[3, 590] = 0.25
    with pytest.raises(ValueError, match=r"symmetric; .* by up to 0\.25"):
        select_landmarks(form(K), 3, kernel="precomputed")
    K[590, 3] = K[3, 590] = np.nan
    with pytest.raises(ValueError, match=r"NaN \(row 3, column 590\)"):
        select_landmarks(form(K), 3, kernel="precomputed")
    # Integers do not wrap around, and rounding is no asymmetry.
    select_landmarks(form(5 - np.eye(9, dtype=np.uint8)), 3, kernel="precomputed")
    K[590, 3], K[3, 590] = 0.5, 0.5 + 1e-6
    assert len(select_landmarks(form(K), 3, kernel="precomputed")) == 3


def test_an_indefinite_kernel_warns():
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        select_landmarks(make_table(), 3, kernel="sigmoid", random_state=0)
