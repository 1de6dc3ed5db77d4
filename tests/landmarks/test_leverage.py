"""Leverage scores against dense formulas, and the law of the draws."""

from __future__ import annotations

from functools import partial
from itertools import permutations, product

import numpy as np
import pytest
from scipy import sparse

from sketchmeans.data.rows import as_rows
from sketchmeans.kernels import as_kernel
from sketchmeans.landmarks import BottomUp, Leverage, RidgeLeverage, select_landmarks
from sketchmeans.landmarks.leverage import (
    Dictionary,
    Ridge,
    Spectrum,
    WeightedKernel,
    bottom_up_ridge_leverage_scores,
    draw_dictionary,
    exact_ridge_leverage_scores,
    inclusion_probabilities,
    recursive_ridge_leverage_scores,
    sketched_leverage_scores,
)
from sketchmeans.numerics.parallel import Workers
from tests.oracles import kernel_matrix, law_p_value, linear, polynomial, rbf

#: A true law is rejected by chance once in a thousand seeds; the seeds are fixed.
LEVEL = 1e-3

KERNELS = {
    "rbf": (as_kernel("rbf", gamma=0.4), partial(rbf, gamma=0.4)),
    "linear": (as_kernel("linear"), linear),
    "polynomial": (
        as_kernel("polynomial", gamma=0.4, degree=2, coef0=0.7),
        partial(polynomial, gamma=0.4, degree=2, coef0=0.7),
    ),
}


def with_ridge(method):
    """Return a method that takes the ridge, or its effective dimension, by keyword."""

    def score(rows, kernel, *args, ridge=0.0, effective_dimension=np.inf, **settings):
        given = Ridge(ridge, effective_dimension)
        return method(rows, kernel, given, *args, **settings)

    return score


exact_scores = with_ridge(exact_ridge_leverage_scores)
APPROXIMATE = {
    "recursive": with_ridge(recursive_ridge_leverage_scores),
    "bottom-up": with_ridge(bottom_up_ridge_leverage_scores),
}
every_approximation = pytest.mark.parametrize("method", APPROXIMATE)


@pytest.fixture
def rows_of():
    """Return a function from a table and weights to rows."""
    with Workers(1) as workers:
        yield lambda X, weights=None: as_rows(
            X, workers, None if weights is None else np.asarray(weights, float)
        )


def scattered(n=40, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def some_weights(n, seed=1):
    """Return weights of which some are zero."""
    return np.random.default_rng(seed).integers(0, 4, n) * 0.7


def weighted_matrix(K, weights=None):
    roots = np.sqrt(np.ones(len(K)) if weights is None else weights)
    return roots[:, None] * K * roots


def dense_scores(K, ridge, weights=None):
    """Return the diagonal of ``K (K + γI)⁻¹`` of the weighted matrix."""
    matrix = weighted_matrix(K, weights)
    return np.diagonal(matrix @ np.linalg.inv(matrix + ridge * np.eye(len(K))))


# --- exact scores ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "weighted", "ridge"),
    [
        ("rbf", False, 1e-3),
        ("linear", True, 0.5),
        ("polynomial", True, 30.0),
        ("rbf", True, 0.5),
    ],
)
def test_exact_scores_are_those_of_the_dense_formula(rows_of, kernel, weighted, ridge):
    X = scattered()
    weights = some_weights(40) if weighted else None
    fast, naive = KERNELS[kernel]
    found = exact_scores(rows_of(X, weights), fast, ridge=ridge)
    expected = dense_scores(kernel_matrix(naive, X, X), ridge, weights)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-7, atol=1e-12)
    assert found.ridge == ridge
    assert found.effective_dimension == pytest.approx(expected.sum())


@pytest.mark.parametrize("form", ["float32", "csr", "precomputed"])
def test_exact_scores_of_other_forms_of_rows(rows_of, form):
    X = scattered().astype(np.float32 if form == "float32" else np.float64)
    fast, naive = KERNELS["rbf"]
    K = kernel_matrix(naive, X, X)
    if form == "precomputed":
        rows, fast = rows_of(K), as_kernel("precomputed")
    else:
        rows = rows_of(sparse.csr_array(X) if form == "csr" else X)
    found = exact_scores(rows, fast, ridge=0.5)
    np.testing.assert_allclose(found.scores, dense_scores(K, 0.5), rtol=1e-7)


@pytest.mark.parametrize(
    "scores",
    [
        exact_scores,
        *(
            partial(score, size=60, rng=np.random.default_rng(0))
            for score in APPROXIMATE.values()
        ),
    ],
    ids=["exact", "recursive", "bottom-up"],
)
def test_the_scores_of_repeated_rows_add_up_to_that_of_a_weight(rows_of, scores):
    X, times = scattered(12), np.arange(12) % 4 + 1
    number = np.repeat(np.arange(12), times)
    kernel = KERNELS["rbf"][0]
    weighted = scores(rows_of(X, times), kernel, effective_dimension=5.0)
    repeated = scores(rows_of(X[number]), kernel, effective_dimension=5.0)
    assert weighted.ridge == pytest.approx(repeated.ridge)
    np.testing.assert_allclose(
        weighted.scores, np.bincount(number, repeated.scores), rtol=1e-8
    )


@pytest.mark.parametrize("wanted", [0.5, 1.0, 7.0, 30.0])
def test_the_ridge_has_the_effective_dimension_that_is_asked_for(rows_of, wanted):
    rows, kernel = rows_of(scattered(), some_weights(40) + 0.1), KERNELS["rbf"][0]
    found = exact_scores(rows, kernel, effective_dimension=wanted)
    assert found.effective_dimension == pytest.approx(wanted)
    again = exact_scores(rows, kernel, ridge=found.ridge)
    np.testing.assert_allclose(again.scores, found.scores)


def test_a_rank_that_is_too_low_for_the_effective_dimension_is_reached(rows_of):
    rows = rows_of(scattered(d=2))
    found = exact_scores(rows, as_kernel("linear"), effective_dimension=9.0)
    assert found.effective_dimension == pytest.approx(2.0)
    assert 0.0 < found.ridge < 1e-9 * (rows.X**2).sum()


def test_a_ridge_of_zero_is_raised_to_rounding(rows_of):
    X = scattered(d=2)
    found = exact_scores(rows_of(X), as_kernel("linear"), ridge=0.0)
    hat = X @ np.linalg.inv(X.T @ X) @ X.T
    np.testing.assert_allclose(found.scores, np.diagonal(hat), rtol=1e-6)
    assert found.ridge > 0.0


@pytest.mark.parametrize("method", ["exact", *APPROXIMATE])
def test_kernel_values_that_are_all_zero_have_no_scores(rows_of, method):
    rows, kernel = rows_of(np.zeros((7, 2))), as_kernel("linear")
    if method == "exact":
        found = exact_scores(rows, kernel, ridge=1.0)
    else:
        rng = np.random.default_rng(0)
        found = APPROXIMATE[method](rows, kernel, 5, rng, ridge=1.0)
    np.testing.assert_array_equal(found.scores, np.zeros(7))


# --- approximate scores ---------------------------------------------------------------


def problem(name):
    """Return rows, weights and a kernel with one kind of difficulty."""
    rng = np.random.default_rng(5)
    if name == "a flat spectrum":
        return rng.normal(size=(800, 12)), None, as_kernel("rbf", gamma=0.03)
    if name == "a steep spectrum":
        return rng.normal(size=(800, 2)), None, as_kernel("rbf", gamma=0.2)
    if name == "heavy tails":
        X = rng.standard_t(2, size=(800, 4))
        return X, None, as_kernel("rbf", gamma=0.1)
    if name == "float32":
        X = rng.standard_t(3, size=(800, 4)).astype(np.float32)
        return X, None, as_kernel("rbf", gamma=0.1)
    if name == "clusters of different size":
        centres = 8.0 * rng.normal(size=(12, 3))
        labels = rng.choice(12, 800, p=0.5 ** np.arange(1, 13) / (1 - 0.5**12))
        return (
            centres[labels] + rng.normal(size=(800, 3)),
            None,
            as_kernel("rbf", gamma=0.2),
        )
    if name == "a diagonal that is not constant":
        X = rng.normal(size=(800, 6)) * rng.lognormal(size=(800, 1))
        return X, None, as_kernel("polynomial", gamma=0.2, degree=2)
    assert name == "weights"
    X = rng.standard_t(3, size=(800, 4))
    return X, rng.lognormal(sigma=1.5, size=800), as_kernel("rbf", gamma=0.1)


PROBLEMS = [
    "a flat spectrum",
    "a steep spectrum",
    "heavy tails",
    "float32",
    "clusters of different size",
    "a diagonal that is not constant",
    "weights",
]


@pytest.mark.parametrize(
    ("method", "name"),
    [
        *zip(["recursive", "bottom-up"] * 4, PROBLEMS, strict=False),
        ("recursive", "a diagonal that is not constant"),
        ("bottom-up", "weights"),
    ],
)
def test_approximate_scores_are_within_a_constant_factor_of_exact_ones(
    rows_of, method, name
):
    X, weights, kernel = problem(name)
    rows = rows_of(X, weights)
    exact = exact_scores(rows, kernel, effective_dimension=25.0)
    for seed in range(3):
        found = APPROXIMATE[method](
            rows, kernel, 120, np.random.default_rng(seed), ridge=exact.ridge
        )
        assert found.ridge == exact.ridge
        ratio = found.scores / exact.scores
        assert ratio.min() > 1.0 / 4.0
        assert ratio.max() < 8.0
        assert 0.8 < found.effective_dimension / 25.0 < 1.5
    # The effective dimension is about what is asked for.
    found = APPROXIMATE[method](
        rows, kernel, 120, np.random.default_rng(3), effective_dimension=25.0
    )
    exact = exact_scores(rows, kernel, ridge=found.ridge)
    assert 0.8 < found.effective_dimension / exact.effective_dimension < 1.5
    assert 0.8 < found.effective_dimension / 25.0 < 1.6


@every_approximation
def test_rows_far_from_all_others_are_found(rows_of, method):
    # Few of them are in the first dictionaries; all have the score 1/(1 + γ).
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[::300] += 1e3 * np.arange(1, 11)[:, None]
    for seed in range(5):
        found = APPROXIMATE[method](
            rows_of(X),
            as_kernel("rbf", gamma=0.1),
            100,
            np.random.default_rng(seed),
            ridge=0.5,
        )
        np.testing.assert_allclose(found.scores[::300], 1.0 / 1.5, rtol=0.15)


@every_approximation
def test_no_more_rows_than_the_dictionary_holds_have_exact_scores(rows_of, method):
    rows, kernel = rows_of(scattered(), some_weights(40)), KERNELS["rbf"][0]
    found = APPROXIMATE[method](rows, kernel, 100, np.random.default_rng(0), ridge=0.3)
    exact = exact_scores(rows, kernel, ridge=0.3)
    np.testing.assert_allclose(found.scores, exact.scores, rtol=1e-9)


@every_approximation
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_spectrum_that_ends_early_gives_scores_all_the_same(rows_of, method, dtype):
    # The numerical rank is far below the effective dimension that is asked for.
    X = np.random.default_rng(0).normal(size=(800, 1)).astype(dtype)
    found = APPROXIMATE[method](
        rows_of(X),
        as_kernel("rbf", gamma=0.01),
        60,
        np.random.default_rng(0),
        effective_dimension=40.0,
    )
    assert np.isfinite(found.scores).all()
    assert ((found.scores >= 0.0) & (found.scores <= 1.0)).all()
    assert 1.0 < found.effective_dimension < 60.0


@every_approximation
def test_only_small_kernel_matrices_are_formed(rows_of, method, monkeypatch):
    sizes = []
    gram = WeightedKernel.gram
    monkeypatch.setattr(
        WeightedKernel,
        "gram",
        lambda self, indices: sizes.append(len(indices)) or gram(self, indices),
    )
    X, weights, kernel = problem("weights")
    APPROXIMATE[method](
        rows_of(X, weights), kernel, 60, np.random.default_rng(0), ridge=0.01
    )
    assert len(sizes) > 1
    assert max(sizes) < 100


def rows_looked_at(monkeypatch):
    """Return a list that will hold how many rows each pass has scored."""
    counts = []
    norms = WeightedKernel.projected_norms

    def counted(self, indices, root, among=None):
        counts.append(len(self.rows) if among is None else len(among))
        return norms(self, indices, root, among)

    monkeypatch.setattr(WeightedKernel, "projected_norms", counted)
    return counts


def test_the_recursion_starts_with_a_few_rows(rows_of, monkeypatch):
    counts = rows_looked_at(monkeypatch)
    APPROXIMATE["recursive"](
        rows_of(scattered(5000)),
        KERNELS["rbf"][0],
        100,
        np.random.default_rng(0),
        ridge=10.0,
    )
    assert counts == [313, 1250, 5000, 5000]


def test_every_dictionary_stands_for_all_rows(rows_of, monkeypatch):
    drawn = []

    def record(matrix, candidates, scores, chances, size, rng):
        dictionary = draw_dictionary(matrix, candidates, scores, chances, size, rng)
        drawn.append((chances[0], dictionary))
        return dictionary

    first = []
    spectrum = Spectrum.__init__

    def begin(self, matrix, dictionary):
        first.append(dictionary)
        spectrum(self, matrix, dictionary)

    monkeypatch.setattr("sketchmeans.landmarks.leverage.draw_dictionary", record)
    monkeypatch.setattr(Spectrum, "__init__", begin)
    X = scattered(3000, 2)
    X[::30] += 1e3 * np.arange(1, 101)[:, None]  # drawn for sure, where they are seen
    rng = np.random.default_rng(0)
    kernel = as_kernel("rbf", gamma=0.1)
    APPROXIMATE["recursive"](rows_of(X), kernel, 150, rng, ridge=0.5)
    assert first[0].weights.sum() == pytest.approx(3000.0)
    assert [chance for chance, _ in drawn] == pytest.approx([188 / 3000, 0.25, 1.0])
    for chance, dictionary in drawn:
        assert dictionary.weights.sum() == pytest.approx(3000.0)
        assert dictionary.weights.min() > 0.5 / chance


def test_no_score_exceeds_one_however_poor_the_dictionary(rows_of):
    matrix = WeightedKernel(rows_of(scattered()), KERNELS["rbf"][0])
    dictionary = Dictionary(np.array([3]), np.array([40.0]))
    scores = Spectrum(matrix, dictionary).scores(0.01)
    assert scores.max() == 1.0


def test_the_path_of_ridges_looks_at_a_few_candidates(rows_of, monkeypatch):
    counts = rows_looked_at(monkeypatch)
    X = np.random.default_rng(0).normal(size=(5000, 12))
    rows, kernel = rows_of(X), as_kernel("rbf", gamma=0.03)
    found = APPROXIMATE["bottom-up"](
        rows, kernel, 100, np.random.default_rng(0), effective_dimension=12.0
    )
    # The path goes no further than it must, and its last pass sees all rows.
    assert 10.0 < found.effective_dimension < 16.0
    assert 2 <= len(counts) <= 6
    assert counts[-1] == 5000
    assert sum(counts[:-1]) < 2000


@every_approximation
def test_a_precomputed_kernel_has_the_scores_of_its_rows(rows_of, method):
    X, weights, kernel = problem("weights")
    found, given = (
        APPROXIMATE[method](rows, k, 60, np.random.default_rng(0), ridge=2.0)
        for rows, k in [
            (rows_of(X, weights), kernel),
            (rows_of(kernel(X, X), weights), as_kernel("precomputed")),
        ]
    )
    np.testing.assert_allclose(found.scores, given.scores, rtol=1e-6)


@pytest.mark.law
def test_a_dictionary_stands_for_all_rows(rows_of):
    weights = np.random.default_rng(0).random(30) + 0.2
    matrix = WeightedKernel(rows_of(scattered(30), weights), KERNELS["rbf"][0])
    scores = np.random.default_rng(1).random(30) + 0.5
    rng = np.random.default_rng(2)
    mean = np.zeros(30)
    for _ in range(1500):
        candidates = np.flatnonzero(rng.random(30) < 0.7)
        dictionary = draw_dictionary(
            matrix,
            candidates,
            scores[candidates],
            np.full(len(candidates), 0.7),
            12,
            rng,
        )
        mean[dictionary.indices] += dictionary.weights / 1500
        # The trace is that of all rows, whatever was drawn.
        assert dictionary.weights.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(mean, weights, rtol=0.15)


@pytest.mark.law
def test_a_row_is_drawn_by_its_score_however_it_became_a_candidate(rows_of):
    matrix = WeightedKernel(rows_of(scattered(30)), KERNELS["rbf"][0])
    rng = np.random.default_rng(0)
    scores, chances = rng.uniform(0.5, 1.0, 30), rng.uniform(0.4, 1.0, 30)
    counts = np.zeros(30)
    for _ in range(2000):
        candidates = np.flatnonzero(rng.random(30) < chances)
        given = scores[candidates], chances[candidates]
        counts[draw_dictionary(matrix, candidates, *given, 6, rng).indices] += 1.0
    share = counts / counts.sum()
    np.testing.assert_allclose(share, scores / scores.sum(), rtol=0.2)


def test_a_dictionary_of_scores_lost_in_rounding_has_rows(rows_of):
    matrix = WeightedKernel(rows_of(scattered(30)), KERNELS["rbf"][0])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        dictionary = draw_dictionary(
            matrix, np.arange(30), np.zeros(30), np.ones(30), 1, rng
        )
        assert len(dictionary.indices) >= 1
        assert Spectrum(matrix, dictionary).scores(1.0).shape == (30,)


def test_inclusion_probabilities_add_up_and_are_proportional():
    for size in (1, 13, 40, 60):
        scores = np.random.default_rng(0).lognormal(sigma=2.0, size=40)
        chances = inclusion_probabilities(scores, size)
        assert chances.sum() == pytest.approx(min(size, 40))
        below = chances < 1.0
        if below.any():
            factors = chances[below] / scores[below]
            np.testing.assert_allclose(factors, factors[0])
            assert (scores[~below] * factors[0] >= 1.0 - 1e-12).all()


# --- leverage scores of a sketch ------------------------------------------------------


def dense_leverage(K, sketch, rank, weights=None):
    """Return the squared rows of the top eigenvectors of the Nyström approximation."""
    approximation = K[:, sketch] @ np.linalg.pinv(K[np.ix_(sketch, sketch)]) @ K[sketch]
    _, vectors = np.linalg.eigh(weighted_matrix(approximation, weights))
    return (vectors[:, -rank:] ** 2).sum(axis=1)


@pytest.mark.parametrize(
    ("kernel", "weighted", "rank"),
    [("rbf", True, 3), ("linear", False, 1), ("polynomial", True, 1)],
)
def test_sketched_scores_are_those_of_the_dense_formula(
    rows_of, kernel, weighted, rank
):
    X = scattered()
    weights = some_weights(40) if weighted else None
    fast, naive = KERNELS[kernel]
    sketch = np.array([1, 4, 8, 20, 33, 39])
    found = sketched_leverage_scores(rows_of(X, weights), fast, sketch, rank)
    expected = dense_leverage(kernel_matrix(naive, X, X), sketch, rank, weights)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-6, atol=1e-10)
    assert found.effective_dimension == pytest.approx(rank)


def test_a_sketch_of_all_rows_has_the_leverage_of_the_matrix_itself(rows_of):
    X = scattered()
    K = kernel_matrix(KERNELS["rbf"][1], X, X)
    found = sketched_leverage_scores(
        rows_of(X), KERNELS["rbf"][0], np.arange(40), rank=7
    )
    vectors = np.linalg.eigh(K)[1][:, -7:]
    np.testing.assert_allclose(found.scores, (vectors**2).sum(axis=1), rtol=1e-6)


def test_a_rank_above_that_of_the_kernel_is_cut(rows_of):
    found = sketched_leverage_scores(
        rows_of(scattered(d=2)), as_kernel("linear"), np.arange(10), rank=6
    )
    assert found.effective_dimension == pytest.approx(2.0)


@pytest.mark.law
def test_the_sketch_follows_the_weights_or_the_diagonal(rows_of, monkeypatch):
    sketches = []

    def record(rows, kernel, sketch, rank):
        sketches.append((sketch[0], len(sketch), rank))
        return sketched_leverage_scores(rows, kernel, sketch, rank)

    monkeypatch.setattr(
        "sketchmeans.landmarks.sampling.sketched_leverage_scores", record
    )
    X, weights = np.array([[1.0], [2.0], [0.5]]), np.array([1.0, 2.0, 3.0])
    masses = {"uniform": weights, "diagonal": weights * X[:, 0] ** 2}
    for sketch, mass in masses.items():
        sketches.clear()
        selector = Leverage(sketch=sketch, sketch_size=1, rank=1)
        for rng in np.random.default_rng(0).spawn(400):
            selector.select(rows_of(X, weights), as_kernel("linear"), 2, rng)
        assert {(size, rank) for _, size, rank in sketches} == {(1, 1)}
        law = dict(enumerate(mass / mass.sum()))
        assert law_p_value([first for first, _, _ in sketches], law) > LEVEL


@pytest.mark.parametrize(
    ("n_landmarks", "size"), [(1, 1), (2, 2), (10, 24), (100, 461), (300, 1000)]
)
def test_the_default_sketch_has_m_ln_m_rows(rows_of, monkeypatch, n_landmarks, size):
    sizes = []

    def record(rows, kernel, sketch, rank):
        sizes.append(len(sketch))
        return sketched_leverage_scores(rows, kernel, sketch, rank)

    monkeypatch.setattr(
        "sketchmeans.landmarks.sampling.sketched_leverage_scores", record
    )
    rng = np.random.default_rng(0)
    Leverage().select(
        rows_of(scattered(1200)), as_kernel("rbf", gamma=1.0), n_landmarks, rng
    )
    assert sizes == [size]


# --- the selectors --------------------------------------------------------------------


def successive_law(mass, size):
    """Return the law of ordered draws without replacement."""
    share = mass / mass.sum()
    law = {}
    for order in permutations(range(len(share)), size):
        probability, left = 1.0, 1.0
        for i in order:
            probability *= share[i] / left
            left -= share[i]
        law[order] = probability
    return law


@pytest.mark.law
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("selector", [RidgeLeverage(ridge=0.5), BottomUp(ridge=0.5)])
def test_draws_are_successive_in_proportion_to_the_scores(rows_of, selector, weighted):
    X = np.array([[0.0], [0.1], [0.3], [2.0]])
    weights = np.array([2.0, 1.0, 3.0, 0.5]) if weighted else None
    rows, kernel = rows_of(X, weights), as_kernel("rbf", gamma=1.0)
    scores = dense_scores(kernel_matrix(rbf, X, X, gamma=1.0), 0.5, weights)
    found = [
        selector.select(rows, kernel, 2, rng)
        for rng in np.random.default_rng(4).spawn(600)
    ]
    np.testing.assert_allclose(found[0].scores, scores)
    assert found[0].effective_dimension == pytest.approx(scores.sum())
    assert law_p_value([f.indices for f in found], successive_law(scores, 2)) > LEVEL


@pytest.mark.law
def test_draws_with_replacement_are_independent_and_weighted(rows_of):
    X, weights = np.array([[0.0], [0.1], [2.0]]), np.array([2.0, 1.0, 0.5])
    rows, kernel = rows_of(X, weights), as_kernel("rbf", gamma=1.0)
    selector = RidgeLeverage(ridge=0.5, replace=True)
    found = [
        selector.select(rows, kernel, 2, rng)
        for rng in np.random.default_rng(4).spawn(1000)
    ]
    share = found[0].scores / found[0].scores.sum()
    law = {(i, j): share[i] * share[j] for i, j in product(range(3), repeat=2)}
    assert law_p_value([f.indices for f in found], law) > LEVEL
    # The mass of each row is its weight, on average.
    mass = sum(np.bincount(f.indices, f.weights, minlength=3) for f in found)
    np.testing.assert_allclose(mass / 1000, weights, rtol=0.1)


def test_the_default_ridge_leaves_a_logarithm_between_dimension_and_landmarks():
    X = scattered(300)
    landmarks = select_landmarks(X, 40, "ridge-leverage", gamma=1.0, random_state=0)
    assert landmarks.effective_dimension == pytest.approx(40 / (1 + np.log(40)))


def test_large_tables_have_approximate_scores(rows_of):
    X, _, kernel = problem("heavy tails")
    rows = rows_of(X)
    for max_exact in (0, 799):
        approximate = RidgeLeverage(max_exact=max_exact).select(
            rows, kernel, 60, np.random.default_rng(0)
        )
    exact = RidgeLeverage(max_exact=800).select(
        rows, kernel, 60, np.random.default_rng(0)
    )
    assert (approximate.scores != exact.scores).any()
    assert exact.effective_dimension == pytest.approx(60 / (1 + np.log(60)))


def test_leverage_finds_the_rare_groups_that_uniform_draws_miss(rows_of):
    X = np.random.default_rng(0).normal(size=(1500, 2))
    X[::100] = 40.0 * np.random.default_rng(1).normal(size=(15, 2))
    rows, kernel = rows_of(X), as_kernel("rbf", gamma=0.3)
    for selector in (RidgeLeverage(max_exact=0), BottomUp()):
        found = selector.select(rows, kernel, 60, np.random.default_rng(0))
        rare = np.count_nonzero(found.indices % 100 == 0)
        # A uniform draw holds 0.6 of them on average.
        assert rare > 3


ERRORS = [
    (Leverage(sketch="best"), r"sketch='best' should be one of"),
    (Leverage(sketch_size=0), r"sketch_size=0 should be an integer >= 1"),
    (Leverage(rank=0.5), r"rank=0.5 should be an integer >= 1"),
    (RidgeLeverage(ridge=-1.0), r"ridge=-1.0 should be a finite number >= 0"),
    (RidgeLeverage(max_exact=None), r"max_exact=None should be an integer >= 0"),
    (RidgeLeverage(sketch_size="m"), r"sketch_size='m' should be an integer"),
    (BottomUp(ridge="auto"), r"ridge='auto' should be a finite number"),
    (BottomUp(oversampling=0.0), r"oversampling=0.0 should be .* >= 1"),
]


def test_errors_name_the_parameter():
    for selector, message in ERRORS:
        with pytest.raises(ValueError, match=message):
            select_landmarks(scattered(), 5, selector)
