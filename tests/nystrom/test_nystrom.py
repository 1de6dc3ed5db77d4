"""The Nyström map: features, ranks and errors against dense linear algebra."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sketchmeans import Kernel, Nystrom, NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.landmarks import SELECTORS, Uniform
from sketchmeans.numerics.parallel import Workers
from sketchmeans.nystrom import residual as residual_module
from sketchmeans.nystrom.residual import Residual, spectral_norm
from tests.oracles import embedding
from tests.pairs import every_value

NORMS = ["trace", "frobenius", "spectral"]
METHODS = ["landmarks", "approximation"]
GAMMA = 0.2


def raises(text, kind=ValueError):
    return pytest.raises(kind, match=re.escape(text))


@pytest.fixture(scope="module", name="X")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 4)) + 2.0 * rng.integers(0, 3, size=(150, 1))


@pytest.fixture(scope="module", name="new")
def new_rows():
    return np.random.default_rng(1).normal(size=(40, 4)) + 1.0


@pytest.fixture(scope="module", name="K")
def kernel_matrix(X):
    return rbf_kernel(X, gamma=GAMMA)


def dense_norm(E, norm, weights=None):
    """Return the Schatten norm of a symmetric matrix, from all its eigenvalues."""
    roots = np.sqrt(np.ones(len(E)) if weights is None else weights)
    values = np.abs(np.linalg.eigvalsh(roots[:, None] * E * roots))
    return {
        "trace": values.sum(),
        "frobenius": np.sqrt((values**2).sum()),
        "spectral": values.max(),
    }[norm]


def gram(F):
    return F.astype(np.float64) @ F.astype(np.float64).T


# --- scikit-learn's checks --------------------------------------------------------


def _expected_failures(estimator):
    if estimator.kernel == "precomputed":
        # All rows are landmarks, so K̃ is K; the order of landmarks makes no difference.
        return {}
    # The weighted and the repeated rows are drawn from by the same seed in another
    # order: other landmarks, equal in law only.  scikit-learn lists its own KMeans so.
    reason = "sample_weight is not equivalent to repeating samples: the draws differ"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


# The check that reports a skip, check_array_api_input, needs an environment variable
# that is read at import: cluster/test_estimator_checks.py runs it in a process.
# Some checks fit four or ten distinct rows, often repeated, and are told so.
@pytest.mark.filterwarnings("ignore:Only [0-9]+ landmarks were chosen")
@parametrize_with_checks(
    [
        Nystrom(n_landmarks=5, rank=4, rank_method="approximation"),
        Nystrom("precomputed"),
    ],
    expected_failed_checks=_expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_works_in_a_pipeline(X):
    y = (X[:, 0] > 2.0).astype(int)
    model = make_pipeline(Nystrom(random_state=0), LogisticRegression())
    assert model.fit(X, y).score(X, y) > 0.9
    model.set_params(nystrom__landmarks=Uniform(), nystrom__landmarks__replace=True)
    assert model.fit(X, y).score(X, y) > 0.9


def test_clone_keeps_parameters_and_drops_the_fit(X):
    model = Nystrom("laplacian", rank=3, landmarks=Uniform(True), random_state=3)
    copy = clone(model.fit(X))
    assert str(copy.get_params()) == str(model.get_params())
    with pytest.raises(NotFittedError):
        copy.transform(X)


# --- features against the formula -------------------------------------------------


@pytest.mark.parametrize("rank", [None, 1, 7, 1000])
def test_features_are_those_of_the_papers_up_to_a_rotation(X, new, rank):
    # At this bandwidth all 30 eigenvalues are far above rounding.
    model = Nystrom(gamma=1.0, n_landmarks=30, rank=rank, random_state=0).fit(X)
    Z = X[model.component_indices_]
    np.testing.assert_array_equal(model.components_, Z)
    for rows in (X, new):
        B = rbf_kernel(rows, Z, gamma=1.0)
        expected = embedding(B, rbf_kernel(Z, gamma=1.0), rank)
        F = model.transform(rows)
        assert F.shape == expected.shape == (len(rows), model.rank_)
        np.testing.assert_allclose(gram(F), gram(expected), atol=1e-9)
        np.testing.assert_allclose(F, B @ model.normalization_.T, atol=1e-9)


@pytest.mark.parametrize("rank", [1, 20])
def test_directions_of_the_approximation(X, rank):
    settings = {"gamma": GAMMA, "n_landmarks": 40, "random_state": 0}
    whole = gram(Nystrom(**settings).fit_transform(X))
    model = Nystrom(rank=rank, rank_method="approximation", **settings).fit(X)
    F = model.transform(X)
    values, vectors = np.linalg.eigh(whole)
    best = (vectors[:, -rank:] * values[-rank:]) @ vectors[:, -rank:].T
    np.testing.assert_allclose(gram(F), best, atol=1e-8)
    # The largest first, and uncorrelated.
    np.testing.assert_allclose(F.T @ F, np.diag(values[::-1][:rank]), atol=1e-8)


@pytest.mark.parametrize(
    ("norm", "rank"), [("trace", 1), ("frobenius", 5), ("spectral", 25)]
)
def test_no_matrix_of_that_rank_is_nearer_to_the_approximation(X, norm, rank):
    settings = {"gamma": GAMMA, "n_landmarks": 40, "random_state": 0}
    whole = gram(Nystrom(**settings).fit_transform(X))

    def distance(method):
        model = Nystrom(rank=rank, rank_method=method, **settings)
        return dense_norm(whole - gram(model.fit_transform(X)), norm)

    values = np.linalg.eigvalsh(whole)[::-1][rank:]
    optimum = dense_norm(np.diag(values), norm)  # Eckart-Young
    assert distance("approximation") == pytest.approx(optimum, rel=1e-6)
    assert distance("landmarks") >= optimum * (1.0 - 1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_rank_beyond_the_landmarks_changes_nothing(X, method):
    settings = {"gamma": GAMMA, "n_landmarks": 20, "random_state": 0}
    whole = Nystrom(**settings).fit_transform(X)
    model = Nystrom(rank=20, rank_method=method, **settings)
    np.testing.assert_array_equal(model.fit_transform(X), whole)
    assert model.rank_ == whole.shape[1]


def test_linear_kernel_has_no_more_features_than_the_rows(X):
    model = Nystrom("linear", n_landmarks=30, random_state=0).fit(X)
    assert model.rank_ == X.shape[1]
    np.testing.assert_allclose(gram(model.transform(X)), X @ X.T, atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("rbf", np.float32),
        ("laplacian", np.float64),
        ("polynomial", np.float64),
        ("cosine", np.float32),
        ("arc-cosine", np.float32),
        ("chi2", np.float64),
    ],
)
def test_all_rows_as_landmarks_have_no_error(kernel, dtype, X):
    rows = np.abs(X[:60]).astype(dtype)
    model = Nystrom(kernel, n_landmarks=60, random_state=0).fit(rows)
    rounding = 1e-4 if dtype is np.float32 else 1e-9
    for norm in NORMS:
        assert model.approximation_error(rows, norm) <= rounding


@every_value
@pytest.mark.parametrize("n_landmarks", [12, "auto"])
@pytest.mark.parametrize("kernel", ["rbf", "cosine"])
def test_the_seed_gives_the_landmarks_of_the_clusterer(X, kernel, n_landmarks):
    rows = np.concatenate([X, X + 0.5, X * 1.1])
    settings = {"kernel": kernel, "n_landmarks": n_landmarks, "random_state": 5}
    model = Nystrom(**settings).fit(rows)
    clusters = NystromKMeans(**settings).fit(rows)
    np.testing.assert_array_equal(model.component_indices_, clusters.landmark_indices_)
    assert model.gamma_ == clusters.gamma_
    again = Nystrom(**settings).fit(rows)
    np.testing.assert_array_equal(model.transform(X), again.transform(X))


def test_few_rows_are_all_landmarks(X):
    model = Nystrom(random_state=0).fit(X[:100])
    assert sorted(model.component_indices_) == list(range(100))
    assert model.n_features_in_ == 4


def test_attributes_of_the_same_name_are_those_of_scikit_learn(X, new):
    theirs = Nystroem(gamma=GAMMA, n_components=20, random_state=0).fit(X)
    ours = Nystrom(gamma=GAMMA, landmarks=theirs.component_indices_).fit(X)
    for name in ("components_", "component_indices_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    expected = theirs.normalization_.T @ theirs.normalization_
    found = ours.normalization_.T @ ours.normalization_
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    values = rbf_kernel(new, ours.components_, gamma=GAMMA)
    np.testing.assert_allclose(
        ours.transform(new), values @ ours.normalization_.T, atol=1e-9
    )


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_queries_do_not_advance_the_users_generator(X, make):
    source = make(0)
    model = Nystrom(n_landmarks=10, random_state=source).fit(X)
    errors = [model.approximation_error(X, "spectral") for _ in range(2)]
    lifts = [model.lift(X, n_repeats=2) for _ in range(2)]
    assert errors[0] == errors[1]
    assert lifts[0] == lifts[1]
    twin = make(0)
    Nystrom(n_landmarks=10, random_state=twin).fit(X)
    later = [Nystrom(n_landmarks=9, random_state=rng).fit(X) for rng in (source, twin)]
    np.testing.assert_array_equal(*(model.component_indices_ for model in later))


# --- threads and memory -----------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_threads_do_not_change_a_bit(method):
    rows = np.random.default_rng(2).normal(size=(9000, 3)).astype(np.float32)

    def results(n_jobs):
        model = Nystrom(
            n_landmarks=50, rank=20, rank_method=method, n_jobs=n_jobs, random_state=0
        )
        features = model.fit_transform(rows)
        errors = [model.approximation_error(rows, norm) for norm in NORMS[:2]]
        return features, [*errors, model.approximation_error(rows[:3000], "spectral")]

    one, three = results(1), results(3)
    np.testing.assert_array_equal(one[0], three[0])
    assert one[1] == three[1]


def test_memory_does_not_change_the_spectral_norm(X):
    rows = np.tile(X, (8, 1)) + np.random.default_rng(0).normal(size=(1200, 4))
    model = Nystrom(n_landmarks=20, random_state=0).fit(rows)
    errors = [
        model.set_params(max_memory=size).approximation_error(rows, "spectral")
        for size in ("1GB", "1MB")
    ]
    assert errors[0] == errors[1]


def test_too_little_memory_is_told_beforehand(X):
    with raises("max_memory allows 10 kB. Lower n_landmarks or n_jobs", MemoryError):
        Nystrom(n_landmarks=20, max_memory="10KB").fit(X)


# --- errors -----------------------------------------------------------------------


@every_value
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("m", "dtype"), [(1, np.float64), (60, np.float32)])
def test_errors_against_all_eigenvalues(X, new, norm, m, dtype):
    model = Nystrom(gamma=GAMMA, n_landmarks=m, random_state=0).fit(X.astype(dtype))
    for rows in (X.astype(dtype), new.astype(dtype)):
        full = rbf_kernel(rows.astype(np.float64), gamma=GAMMA)
        E = full - gram(model.transform(rows))
        expected = dense_norm(E, norm)
        scale = dense_norm(full, norm)
        # Lanczos ends at a relative 1e-3; float32 kernel values round at 1e-7.
        rounding = 1e-6 if dtype is np.float32 else 1e-12
        near = {"rel": 2e-3 if norm == "spectral" else 1e-4, "abs": rounding * scale}
        error = model.approximation_error(rows, norm, relative=False)
        assert error == pytest.approx(expected, **near)
        relative = model.approximation_error(rows, norm)
        assert relative == pytest.approx(error / scale, rel=1e-3)


@pytest.mark.parametrize(
    ("norm", "kernel"),
    [("trace", "polynomial"), ("frobenius", "cosine"), ("spectral", "laplacian")],
)
def test_errors_of_other_kernels(X, norm, kernel):
    model = Nystrom(kernel, n_landmarks=8, random_state=0).fit(X)
    full = model.kernel_(X, X)
    expected = dense_norm(full - gram(model.transform(X)), norm)
    tolerance = 2e-3 if norm == "spectral" else 1e-6
    found = model.approximation_error(X, norm, relative=False)
    assert found == pytest.approx(expected, rel=tolerance)


@every_value
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("method", METHODS)
def test_weights_equal_repeats(X, norm, method):
    copies = np.random.default_rng(3).integers(0, 4, size=len(X))
    repeated = np.repeat(X, copies, axis=0)
    settings = {
        "gamma": GAMMA,
        "landmarks": X[:40],
        "rank": 6,
        "rank_method": method,
    }
    weighted = Nystrom(**settings).fit(X, sample_weight=copies)
    twin = Nystrom(**settings).fit(repeated)
    np.testing.assert_allclose(
        gram(weighted.transform(X)), gram(twin.transform(X)), atol=1e-10
    )
    error = weighted.approximation_error(X, norm, sample_weight=copies)
    tolerance = 2e-3 if norm == "spectral" else 1e-9
    assert error == pytest.approx(
        twin.approximation_error(repeated, norm), rel=tolerance
    )
    E = rbf_kernel(X, gamma=GAMMA) - gram(weighted.transform(X))
    absolute = weighted.approximation_error(
        X, norm, relative=False, sample_weight=copies
    )
    assert absolute == pytest.approx(dense_norm(E, norm, copies), rel=tolerance)


def test_weights_choose_the_directions_of_the_approximation(X):
    settings = {"gamma": GAMMA, "landmarks": X[:40], "rank": 3}
    settings["rank_method"] = "approximation"
    heavy = np.where(X[:, 0] > 2.0, 100.0, 1.0)
    weighted = Nystrom(**settings).fit(X, sample_weight=heavy)
    plain = Nystrom(**settings).fit(X)
    error = weighted.approximation_error(X, sample_weight=heavy)
    assert error < 0.9 * plain.approximation_error(X, sample_weight=heavy)


def test_rows_of_weight_zero_are_no_landmarks(X):
    weights = (np.arange(len(X)) % 3 == 0).astype(float)
    model = Nystrom(n_landmarks=30, random_state=0).fit(X, sample_weight=weights)
    assert weights[model.component_indices_].all()


@pytest.mark.parametrize("norm", NORMS)
def test_the_error_never_rises_when_landmarks_are_added(X, norm):
    order = np.random.default_rng(4).permutation(len(X))
    errors = [
        Nystrom(gamma=GAMMA, landmarks=order[:m]).fit(X).approximation_error(X, norm)
        for m in (1, 2, 5, 10, 20, 40, 80, 150)
    ]
    slack = 2e-3 if norm == "spectral" else 1e-9
    assert all(b <= a * (1.0 + slack) + 1e-12 for a, b in pairwise(errors))
    assert errors[-1] < 1e-9


def test_norms_are_ordered(X):
    # ‖E‖₂ ≤ ‖E‖_F ≤ tr E
    model = Nystrom(n_landmarks=9, random_state=0).fit(X)
    trace, frobenius, spectral = (
        model.approximation_error(X, norm, relative=False) for norm in NORMS
    )
    assert spectral < frobenius < trace


def test_lanczos_finds_the_largest_magnitude():
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.normal(size=(700, 700)))[0]
    for values in (np.arange(700) ** 2.0, np.r_[-5.0, rng.random(699)], np.ones(700)):
        A = (basis * values) @ basis.T
        found = spectral_norm(lambda v: A @ v, rng.normal(size=700))  # noqa: B023
        assert found == pytest.approx(np.abs(values).max(), rel=2e-3)
    assert spectral_norm(np.zeros_like, rng.normal(size=700)) == 0.0
    assert spectral_norm(lambda v: -2.0 * v, np.ones(1)) == 2.0


@pytest.fixture(scope="module")
def uneven():
    """A dense cloud that has the landmarks, and a few far rows that have the error."""
    rng = np.random.default_rng(6)
    near, far = rng.normal(size=(2900, 2)), 4.0 * rng.normal(size=(100, 2))
    X = np.concatenate([near, far])
    model = Nystrom(gamma=0.5, landmarks=np.arange(40), random_state=0).fit(X)
    return X, rng.integers(1, 4, size=3000).astype(float), model


def frobenius_norms(uneven, seed):
    X, weights, model = uneven
    with Workers(1) as workers:
        features = as_rows(model.transform(X), workers)
        residual = Residual(as_rows(X, workers, weights), model.kernel_, features)
        return residual.frobenius(np.random.default_rng(seed))


@pytest.mark.law
def test_the_sampled_norm_is_unbiased_and_its_error_as_stated(uneven, monkeypatch):
    exact = frobenius_norms(uneven, 0)
    monkeypatch.setattr(residual_module, "EXACT_ROWS", 2500)
    monkeypatch.setattr(residual_module, "FROBENIUS_PRECISION", 0.03)
    monkeypatch.setattr(residual_module, "_STRIP", 64)
    found = [frobenius_norms(uneven, seed) for seed in range(30)]
    errors = np.array([norms.error for norms in found]) / exact.error
    matrices = np.array([norms.matrix for norms in found]) / exact.matrix
    for ratios in (errors, matrices):
        assert abs(ratios.mean() - 1.0) < 4.0 * 0.03 / np.sqrt(30)
        assert ratios.std() < 1.3 * 0.03
    # Draws end when both are precise enough: the worse of them only just is.
    assert max(errors.std(), matrices.std()) > 0.6 * 0.03


def test_sampling_ends_where_the_exact_norm_would_cost_no_more(uneven, monkeypatch):
    exact = frobenius_norms(uneven, 0)
    monkeypatch.setattr(residual_module, "EXACT_ROWS", 1000)
    monkeypatch.setattr(residual_module, "FROBENIUS_PRECISION", 0.0)
    assert frobenius_norms(uneven, 1).error == pytest.approx(exact.error, rel=0.2)


def test_the_estimator_samples_many_rows(uneven, monkeypatch):
    X, weights, model = uneven

    def error():
        return model.approximation_error(X, "frobenius", sample_weight=weights)

    exact = error()
    monkeypatch.setattr(residual_module, "EXACT_ROWS", 2500)
    monkeypatch.setattr("sketchmeans.nystrom.transformer.EXACT_ROWS", 2500)
    sampled = error()
    assert sampled != exact
    assert sampled == pytest.approx(exact, rel=0.05)
    assert sampled == error()


# --- lift -------------------------------------------------------------------------


def test_lift_is_the_ratio_of_errors(X):
    model = Nystrom(n_landmarks=10, rank=8, random_state=0).fit(X)
    for norm in NORMS:
        # Given landmarks are the same in every repeat.
        other = Nystrom(
            model.kernel_, landmarks=np.arange(10), rank=8, random_state=0
        ).fit(X)
        theirs = other.approximation_error(X, norm)
        expected = theirs / model.approximation_error(X, norm)
        found = model.lift(X, np.arange(10), norm=norm, n_repeats=2)
        assert found == pytest.approx(expected, rel=1e-6)


def test_lift_of_uniform_over_uniform_is_about_one(X):
    lifts = [
        Nystrom(n_landmarks=10, random_state=seed).fit(X).lift(X) for seed in range(5)
    ]
    assert 0.8 < np.median(lifts) < 1.25
    assert len(set(lifts)) == 5
    model = Nystrom(n_landmarks=10, random_state=0).fit(X)
    assert model.lift(X) == lifts[0]
    assert model.lift(X, n_repeats=1) != lifts[0]
    # The baseline does not redraw the landmarks of the fit.
    assert model.lift(X, n_repeats=1) != 1.0


def test_lift_takes_weights(X):
    weights = np.where(X[:, 0] > 2.0, 50.0, 0.0)
    model = Nystrom(n_landmarks=10, random_state=0).fit(X, sample_weight=weights)
    assert model.lift(X, sample_weight=weights) != model.lift(X)
    # Landmarks for the heavy rows only are worse for all rows.
    assert model.lift(X) < 1.0
    seen = []

    class SavedStages(Uniform):
        def select(self, rows, kernel, n_landmarks, rng):
            seen.append((rows.given_weights, kernel.gamma, n_landmarks))
            return super().select(rows, kernel, n_landmarks, rng)

    model.lift(X, SavedStages(), n_repeats=3, sample_weight=weights)
    assert len(seen) == 3
    for given, gamma, n_landmarks in seen:
        np.testing.assert_array_equal(given, weights)
        assert (gamma, n_landmarks) == (model.gamma_, 10)


def test_lift_of_a_perfect_map(X):
    model = Nystrom("linear", landmarks=np.eye(4)[:1]).fit(X * [1.0, 0.0, 0.0, 0.0])
    line = X * [1.0, 0.0, 0.0, 0.0]
    assert model.approximation_error(line, relative=False) == 0.0
    assert model.lift(line, np.eye(4)[:1]) == 1.0
    assert model.lift(line, np.eye(4)[1:2]) == np.inf


# --- precomputed ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rank", "method"), [(None, "landmarks"), (9, "landmarks"), (9, "approximation")]
)
def test_a_precomputed_kernel_with_few_landmarks(X, new, K, rank, method):
    settings = {"rank": rank, "rank_method": method, "landmarks": np.arange(5, 150, 4)}
    given = Nystrom("precomputed", **settings).fit(K)
    known = Nystrom("rbf", gamma=GAMMA, **settings).fit(X)
    assert given.rank_ == known.rank_
    np.testing.assert_array_equal(given.components_[:, 0], np.arange(5, 150, 4))
    cross = rbf_kernel(new, X, gamma=GAMMA)
    np.testing.assert_allclose(
        gram(given.transform(cross)), gram(known.transform(new)), atol=1e-8
    )
    for norm in NORMS:
        weights = np.arange(150.0)
        error = given.approximation_error(K, norm, sample_weight=weights)
        expected = known.approximation_error(X, norm, sample_weight=weights)
        assert error == pytest.approx(expected, rel=2e-3)


def test_landmarks_of_a_precomputed_kernel_are_chosen(K):
    model = Nystrom("precomputed", n_landmarks=20, random_state=0).fit(K)
    assert len(set(model.component_indices_.tolist())) == 20
    assert model.lift(K, n_repeats=3) > 0.0
    assert model.transform(K[:7]).shape == (7, model.rank_)
    assert model.gamma_ is None


def test_a_precomputed_kernel_in_float32(K):
    model = Nystrom("precomputed", n_landmarks=20, random_state=0)
    F = model.fit_transform(K.astype(np.float32))
    assert F.dtype == np.float32
    wide = model.fit_transform(K)
    np.testing.assert_allclose(gram(F), gram(wide), atol=1e-3)


# --- types of rows ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "kernel"),
    [
        (sparse.csr_array, "rbf"),
        (sparse.csr_array, "laplacian"),
        (sparse.csc_matrix, "linear"),
        (sparse.coo_array, "cosine"),
    ],
)
def test_sparse_rows(X, form, kernel):
    rows = np.where(X > 2.0, X, 0.0)
    settings = {"n_landmarks": 20, "rank": 4, "random_state": 0}
    dense = Nystrom(kernel, **settings).fit(rows)
    model = Nystrom(kernel, **settings).fit(form(rows))
    assert sparse.issparse(model.components_)
    F = model.transform(form(rows))
    assert isinstance(F, np.ndarray)
    np.testing.assert_allclose(gram(F), gram(dense.transform(rows)), atol=1e-6)
    np.testing.assert_allclose(gram(model.transform(rows)), gram(F), atol=1e-6)
    for norm in NORMS:
        error = model.approximation_error(form(rows), norm)
        expected = dense.approximation_error(rows, norm)
        assert error == pytest.approx(expected, rel=2e-3, abs=1e-9)


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        ("f2", "f4"),
        ("u1", "f4"),
        ("i8", "f8"),
    ],
)
def test_types_of_numbers(dtype, out):
    rows = np.random.default_rng(7).integers(0, 50, size=(80, 3))
    settings = {"n_landmarks": 20, "rank": 5, "random_state": 0}
    model = Nystrom(**settings).fit(rows.astype(dtype))
    F = model.transform(rows.astype(dtype))
    assert F.dtype == model.normalization_.dtype == out
    expected = Nystrom(**settings).fit_transform(rows.astype(float))
    np.testing.assert_allclose(gram(F), gram(expected), atol=1e-4)


def test_a_coarser_type_than_that_of_the_fit_loses_no_more_than_its_rounding(X):
    # The root of a float64 fit would amplify the rounding of float32 kernel values.
    rows = X.astype(np.float32)
    model = Nystrom(gamma=0.01, random_state=0).fit(rows.astype(np.float64))
    F = model.transform(rows)
    assert F.dtype == np.float32
    np.testing.assert_allclose(F, model.transform(rows.astype(np.float64)), atol=1e-6)
    finer = Nystrom(gamma=0.01, random_state=0).fit(rows)
    assert finer.transform(rows.astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize("replace", [False, True])
def test_float32_rows_that_repeat(replace):
    # scikit-learn clips singular values at an absolute 1e-12, far below the rounding
    # of float32: noise becomes features.
    rng = np.random.default_rng(8)
    X = np.repeat(rng.normal(size=(30, 5)), 40, axis=0).astype(np.float32)
    gamma = 0.1
    full = rbf_kernel(X.astype(np.float64), gamma=gamma)

    def error(F):
        return np.linalg.norm(full - gram(F)) / np.linalg.norm(full)

    theirs = Nystroem(gamma=gamma, n_components=200, random_state=0).fit_transform(X)
    assert error(theirs) > 0.5
    m = 200 if replace else 30
    model = Nystrom(
        gamma=gamma, n_landmarks=m, landmarks=Uniform(replace), random_state=0
    )
    ours = model.fit_transform(X)
    assert ours.dtype == np.float32
    assert model.rank_ <= 30
    assert error(ours) < 1e-3
    for norm in NORMS:
        assert model.approximation_error(X, norm) < 1e-3


def test_constant_rows_and_one_feature():
    with pytest.warns(UserWarning, match="Only 1 landmarks were chosen"):
        model = Nystrom(n_landmarks=5, random_state=0).fit(np.ones((20, 3)))
    np.testing.assert_allclose(np.abs(model.transform(np.ones((2, 3)))), 1.0)
    line = np.arange(50.0)[:, None]
    model = Nystrom(n_landmarks=1, random_state=0).fit(line)
    assert model.transform(line).shape == (50, 1)


def test_a_kernel_that_is_zero_has_no_features():
    model = Nystrom("linear", landmarks=[0, 1]).fit(np.zeros((600, 2)))
    assert model.transform(np.zeros((600, 2))).shape == (600, 0)
    assert model.get_feature_names_out().tolist() == []
    for norm in NORMS:
        assert model.approximation_error(np.zeros((600, 2)), norm) == 0.0


def test_a_kernel_of_ones_own(X):
    class Doubled(Kernel):
        def against(self, Z, dtype=None, workers=None):
            return lambda block, out=None: np.multiply(2.0, block @ Z.T, out=out)

        def diagonal(self, X):
            return 2.0 * (X**2).sum(axis=1)

    model = Nystrom(Doubled(), n_landmarks=10, random_state=0).fit(X)
    np.testing.assert_allclose(gram(model.transform(X)), 2.0 * X @ X.T, atol=1e-9)
    assert model.approximation_error(X, "frobenius") < 1e-12
    by_pairs = Nystrom(lambda x, z: 2.0 * x @ z, n_landmarks=10, random_state=0).fit(X)
    np.testing.assert_allclose(gram(by_pairs.transform(X)), 2.0 * X @ X.T, atol=1e-9)


def test_landmarks_that_are_no_rows(X):
    points = np.random.default_rng(9).normal(size=(25, 4))
    model = Nystrom(gamma=GAMMA, landmarks=points).fit(X)
    assert model.component_indices_ is None
    np.testing.assert_array_equal(model.components_, points)
    B = rbf_kernel(X, points, gamma=GAMMA)
    expected = embedding(B, rbf_kernel(points, gamma=GAMMA))
    np.testing.assert_allclose(gram(model.transform(X)), gram(expected), atol=1e-8)


# --- names and tables -------------------------------------------------------------


def test_feature_names_and_set_output(X):
    names = ["nystrom0", "nystrom1", "nystrom2"]
    settings = {"n_landmarks": 10, "rank": 3, "random_state": 0}
    model = Nystrom(**settings).fit(X)
    assert model.get_feature_names_out().tolist() == names
    plain = model.transform(X)
    table = pd.DataFrame(X, columns=list("abcd"))
    as_pandas = Nystrom(**settings).set_output(transform="pandas").fit(table)
    assert as_pandas.feature_names_in_.tolist() == list("abcd")
    found = as_pandas.transform(table)
    assert isinstance(found, pd.DataFrame)
    assert found.columns.tolist() == names
    np.testing.assert_array_equal(found.to_numpy(), plain)
    as_polars = Nystrom(**settings).set_output(transform="polars")
    found = as_polars.fit_transform(pl.DataFrame(X, schema=list("abcd")))
    assert isinstance(found, pl.DataFrame)
    assert found.columns == names
    np.testing.assert_array_equal(found.to_numpy(), plain)


def test_fit_transform_takes_weights(X):
    weights = np.random.default_rng(10).random(len(X))
    settings = {"n_landmarks": 10, "rank": 3, "random_state": 0}
    settings["rank_method"] = "approximation"
    both = Nystrom(**settings).fit_transform(X, sample_weight=weights)
    apart = Nystrom(**settings).fit(X, sample_weight=weights).transform(X)
    np.testing.assert_array_equal(both, apart)


# --- bad input --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [("rank", 0, "None"), ("rank", 1.5, "None"), ("n_landmarks", "3", "'auto'")],
)
def test_counts_should_be_positive_integers(X, name, value, other):
    with raises(f"{name}={value!r} should be an integer >= 1 or {other}."):
        Nystrom(**{name: value}).fit(X)


def test_options_list_the_known_ones(X):
    text = "rank_method='best' should be one of ['landmarks', 'approximation']."
    with raises(text):
        Nystrom(rank_method="best").fit(X)
    model = Nystrom(random_state=0).fit(X)
    text = "norm='nuclear' should be one of ['trace', 'frobenius', 'spectral']."
    with raises(text):
        model.approximation_error(X, "nuclear")
    with raises(text):
        model.lift(X, norm="nuclear")
    with raises("n_repeats=0 should be an integer >= 1."):
        model.lift(X, n_repeats=0)
    with raises("landmarks='unifrom' should be one of [") as caught:
        Nystrom(landmarks="unifrom").fit(X)
    for name in SELECTORS:
        assert repr(name) in str(caught.value)
    with raises("kernel='gauss' should be one of ["):
        Nystrom("gauss").fit(X)
    with raises("gamma=-1.0 should be a positive finite number."):
        Nystrom(gamma=-1.0).fit(X)
    with raises("random_state=-1 should be None, a non-negative integer"):
        Nystrom(random_state=-1).fit(X)
    with raises("n_jobs=0 should be a nonzero integer or None."):
        Nystrom(n_jobs=0).fit(X)
    with raises("max_memory='lots' should be a positive number of bytes"):
        Nystrom(max_memory="lots").fit(X)


def test_more_landmarks_than_rows(X):
    with raises("n_landmarks=151 should be <= n_samples=150."):
        Nystrom(n_landmarks=151).fit(X)
    with raises("n_landmarks=7 should be 'auto' or the number of given landmarks, 3."):
        Nystrom(n_landmarks=7, landmarks=[1, 2, 3]).fit(X)


def test_weights_are_checked(X):
    with raises("sample_weight.shape=(3,) should be (150,)"):
        Nystrom().fit(X, sample_weight=[1, 2, 3])
    model = Nystrom(random_state=0).fit(X)
    with raises("sample_weight[0]=-1.0 should be a finite number >= 0"):
        model.approximation_error(X, sample_weight=-np.ones(150))


def test_precomputed_shapes(K):
    with raises("X.shape=(150, 20) should be square with kernel='precomputed'"):
        Nystrom("precomputed").fit(K[:, :20])
    model = Nystrom("precomputed", n_landmarks=10, random_state=0).fit(K)
    with raises("X.shape=(20, 150) should be (150, 150) with kernel='precomputed'"):
        model.approximation_error(K[:20])
    with raises("X has 20 features, but Nystrom is expecting 150 features as input."):
        model.transform(K[:, :20])
    with raises("landmarks should be row numbers with kernel='precomputed'"):
        Nystrom("precomputed", landmarks=K[:3]).fit(K)


def test_precomputed_should_be_symmetric(K):
    skew = K.copy()
    skew[7, 100] += 0.5
    with raises("kernel matrix should be symmetric; entries differ from their mirror"):
        Nystrom("precomputed", landmarks=[0, 1]).fit(skew)
    skew[7, 100] = K[7, 100] + 1e-7
    Nystrom("precomputed", landmarks=[0, 1]).fit(skew)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_every_row_is_looked_at(X, kernel):
    bad = X.copy()
    bad[149, 2] = np.nan
    with raises("Input X contains NaN (row 149, column 2)"):
        Nystrom(kernel, landmarks=[0, 1]).fit(bad)
    model = Nystrom(kernel, landmarks=[0, 1]).fit(X)
    for method in (model.transform, model.approximation_error):
        with raises("Input X contains NaN (row 149, column 2)"):
            method(bad)


def test_a_failed_fit_leaves_the_model_as_it_was(X):
    model = Nystrom(n_landmarks=10, random_state=0).fit(X)
    before = model.transform(X)
    with raises("n_landmarks=1000 should be <= n_samples=20."):
        model.set_params(n_landmarks=1000).fit(X[:20, :2])
    np.testing.assert_array_equal(model.transform(X), before)


def test_an_indefinite_kernel_warns(X):
    with pytest.warns(UserWarning, match="positive part only"):
        model = Nystrom("sigmoid", n_landmarks=20, random_state=0).fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert model.rank_ < 20


def test_unfitted(X):
    for method in ("transform", "approximation_error", "lift"):
        with pytest.raises(NotFittedError):
            getattr(Nystrom(), method)(X)
