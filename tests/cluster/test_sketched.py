"""k-means on sketches, plugged back and polished; reducers in front of kernels."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sketchmeans import (
    ApproximateSVD,
    FeatureSampling,
    NystromKMeans,
    SignProjection,
    SketchedKMeans,
)
from sketchmeans.engine.restarts import Search
from sketchmeans.reduction import REDUCERS
from tests import oracles
from tests.pairs import every_value

K = 4
NAMES = sorted(REDUCERS)
#: Reducers whose features of a CSR matrix are a CSR matrix.
SELECTING = ["laplacian", "sampling"]


# --- transformers and a seeding that leave nothing to chance --------------------------


class Rotation(TransformerMixin, BaseEstimator):
    """As many features as before, times a random orthogonal matrix."""

    def __init__(self, seed=0):
        self.seed = seed

    def fit(self, X, y=None):
        d = X.shape[1]
        normal = np.random.default_rng(self.seed).normal(size=(d, d))
        self.matrix_ = np.linalg.qr(normal)[0]
        return self

    def transform(self, X):
        return np.asarray(X @ self.matrix_)


class Revealed(TransformerMixin, BaseEstimator):
    """A sketch in which the clusters are a given partition, whatever the rows are."""

    def __init__(self, labels):
        self.labels = labels

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return 10.0 * np.eye(max(self.labels) + 1)[self.labels]


class At(BaseEstimator):
    """Centres start at rows of these numbers."""

    def __init__(self, rows):
        self.rows = rows

    def seed(self, distances_to, weights, k, rngs):
        assert len(self.rows) == k
        return np.array([self.rows] * len(rngs))


class AtEach(BaseEstimator):
    """Centres of every restart start at rows of these numbers."""

    def __init__(self, starts):
        self.starts = starts

    def seed(self, distances_to, weights, k, rngs):
        assert len(self.starts) == len(rngs)
        return np.array(self.starts)


def revealing(labels, refine=0, **params):
    """Return the estimator whose sketch has these clusters, with the same numbers."""
    k = int(max(labels)) + 1
    start = At([int(np.flatnonzero(labels == j)[0]) for j in range(k)])
    return SketchedKMeans(
        k,
        reducer=Revealed(labels),
        init=start,
        n_init=1,
        refine_max_iter=refine,
        **params,
    )


# --- naive formulas -------------------------------------------------------------------


def as_floats(X):
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def naive_means(X, labels, weights=None):
    X = as_floats(X)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, float)
    return np.array(
        [
            np.average(X[labels == j], axis=0, weights=weights[labels == j])
            for j in range(labels.max() + 1)
        ]
    )


def naive_objective(X, labels, weights=None):
    """Return the sum of squared distances to the mean of the own cluster."""
    means = naive_means(X, labels, weights)
    squared = ((as_floats(X) - means[labels]) ** 2).sum(axis=1)
    return float(squared.sum() if weights is None else squared @ weights)


def overlapping(n=240, d=15, seed=0, spread=1.2):
    """Return clusters that overlap, so that polishing has something to do."""
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(K, d))
    return centres[rng.integers(K, size=n)] + rng.normal(size=(n, d))


@pytest.fixture(scope="module", name="X")
def rows():
    return overlapping()


@pytest.fixture(scope="module", name="weights")
def row_weights(X):
    return np.random.default_rng(1).integers(1, 4, size=len(X)).astype(float)


@pytest.fixture(scope="module", name="S")
def sparse_rows(X):
    return sparse.csr_array(np.where(X > 0.5, X, 0.0))


@pytest.fixture(scope="module")
def separated():
    """Clusters far apart, and which row is of which."""
    rng = np.random.default_rng(5)
    truth = np.arange(200) % K
    return 30.0 * rng.normal(size=(K, 40))[truth] + rng.normal(size=(200, 40)), truth


# --- scikit-learn's checks ------------------------------------------------------------


def _expected_failures(estimator):
    # Repeated rows are shuffled by the checks, so the same seed draws other rows: equal
    # in law only.  scikit-learn's own KMeans does not pass the shuffled check either.
    reason = "sample_weight is not equivalent to repeating samples: the draws differ"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


# Some checks fit eight clusters (our default) to fewer distinct rows, and are told so.
@pytest.mark.filterwarnings("ignore:(Only [46] landmarks|Number of distinct)")
# The one check that reports a skip here, check_array_api_input, needs an environment
# variable that is read at import: test_estimator_checks.py runs it in a process.
@parametrize_with_checks([SketchedKMeans()], expected_failed_checks=_expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)


# --- the partition of the sketch, plugged back ----------------------------------------


@every_value
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("reducer", NAMES)
def test_plugged_back_objective_is_the_naive_one(reducer, dtype, weighted, X, weights):
    X, w = X.astype(dtype), weights if weighted else None
    model = SketchedKMeans(K, reducer=reducer, refine_max_iter=0, random_state=0)
    model.fit(X, sample_weight=w)
    rtol = 1e2 * float(np.finfo(dtype).eps)
    objective = naive_objective(X, model.labels_, w)
    mass = np.ones(len(X)) if w is None else w
    assert model.inertia_ == pytest.approx(objective, rel=rtol)
    assert model.cost_ == pytest.approx(objective / mass.sum(), rel=rtol)
    assert model.cost_path_.tolist() == [model.cost_]
    means = naive_means(X, model.labels_, w)
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=rtol, atol=rtol)
    assert model.cluster_centers_.dtype == dtype
    np.testing.assert_allclose(
        model.cluster_sizes_, np.bincount(model.labels_, mass, minlength=K)
    )


@pytest.mark.parametrize("reducer", NAMES)
def test_without_polish_the_labels_are_those_of_the_sketch(reducer, X):
    params = {"refine_max_iter": 0, "n_init": 1, "random_state": 3}
    model = SketchedKMeans(K, reducer=reducer, **params).fit(X)
    sketch = model.reducer_.transform(X)
    assert sketch.shape[1] < X.shape[1] or reducer != "svd"
    on_sketch = SketchedKMeans(K, reducer=FunctionTransformer(), **params).fit(sketch)
    np.testing.assert_array_equal(model.labels_, on_sketch.labels_)
    assert model.n_iter_ == on_sketch.n_iter_
    assert model.converged_


def test_a_partition_is_kept_even_where_other_centres_are_nearer(X):
    labels = np.arange(len(X)) % K  # says nothing of the rows
    model = revealing(labels).fit(X)
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.inertia_ == pytest.approx(naive_objective(X, labels))
    assert (model.predict(X) != labels).any()
    assert model.score(X) > -model.inertia_


def test_sketch_has_a_pass_in_common_with_no_other_count(X):
    plugged = SketchedKMeans(
        K, n_init=1, reducer="sign", refine_max_iter=0, random_state=0
    ).fit(X)
    polished = SketchedKMeans(K, n_init=1, reducer="sign", random_state=0).fit(X)
    assert polished.cost_path_[0] == pytest.approx(plugged.cost_, rel=1e-12)
    assert polished.n_iter_ == plugged.n_iter_ + len(polished.cost_path_) - 1
    assert polished.converged_


# --- an orthogonal sketch loses nothing -----------------------------------------------


@every_value
@pytest.mark.parametrize(
    "sketch",
    [FunctionTransformer(), Rotation(), ApproximateSVD(15, svd="exact")],
    ids=["identity", "rotation", "svd"],
)
@pytest.mark.parametrize("refine", [0, 300])
def test_orthogonal_sketch_of_all_features_is_plain_k_means(sketch, refine, X):
    start = [3, 50, 99, 200]
    model = SketchedKMeans(
        K, reducer=sketch, init=At(start), n_init=1, refine_max_iter=refine, tol=0.0
    ).fit(X)
    plain = KMeans(K, init=X[start], n_init=1, tol=0.0, max_iter=300).fit(X)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_)
    assert model.inertia_ == pytest.approx(plain.inertia_)


@pytest.mark.parametrize("seed", range(3))
def test_rotation_finds_what_the_identity_finds(seed, X):
    one, two = (
        SketchedKMeans(K, reducer=reducer, n_init=1, random_state=seed, tol=0.0).fit(X)
        for reducer in (FunctionTransformer(), Rotation(seed))
    )
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.inertia_ == pytest.approx(two.inertia_)
    # Lloyd has nothing left to do in the original space.
    assert one.cost_path_[-1] == pytest.approx(one.cost_path_[0])


# --- refine ---------------------------------------------------------------------------


def assert_never_rises(path, dtype):
    rounding = 1e2 * np.finfo(dtype).eps * path[0]
    assert (np.diff(path) <= rounding).all()


@every_value
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("reducer", NAMES)
def test_polish_never_raises_the_objective(reducer, seed, dtype):
    X = overlapping(seed=seed, spread=0.7).astype(dtype)
    model = SketchedKMeans(7, reducer=reducer, random_state=seed, tol=0.0).fit(X)
    assert len(model.cost_path_) > 2
    assert_never_rises(model.cost_path_, dtype)
    assert model.cost_ == pytest.approx(model.cost_path_.min(), rel=1e-6)


@pytest.mark.parametrize("refine", [0, 300])
def test_restarts_are_compared_in_the_original_space(refine):
    # Rows at the corners of a rectangle of 10 x 4, of which the sketch makes 4 x 4.2:
    # to split the long side is best, but the second best on the sketch.  Both splits
    # are fixed points, here and there.
    corners = np.array([[-5.0, -2.0], [-5.0, 2.0], [5.0, -2.0], [5.0, 2.0]])
    X = np.repeat(corners, 5, axis=0)
    sketch = FunctionTransformer(lambda rows: rows * [0.4, 1.05])
    across, along = [0, 5], [0, 10]
    model = SketchedKMeans(2, reducer=sketch, init=At(across), refine_max_iter=refine)
    assert model.set_params(n_init=1).fit(X).cost_ == pytest.approx(25.0)
    for starts in ([across, along], [along, across]):
        model.set_params(init=AtEach(starts), n_init=2).fit(X)
        assert model.cost_ == pytest.approx(4.0)
        assert len(set(model.labels_[:10])) == len(set(model.labels_[10:])) == 1


@pytest.mark.parametrize("seed", range(4))
def test_passes_are_those_of_the_finalist_that_won(seed, monkeypatch):
    found, won = [], []
    search, polished = Search.find, SketchedKMeans._refine

    def searched(self, *arguments):
        engine, results = search(self, *arguments)
        found.extend(results)
        return engine, results

    def winner(self, engine, plugged, progress):
        result, best = polished(self, engine, plugged, progress)
        # The winner's path starts with the cost of its own plugged-back partition.
        assert result.cost_path[0] == plugged[best].cost
        won.append(best)
        return result, best

    monkeypatch.setattr(Search, "find", searched)
    monkeypatch.setattr(SketchedKMeans, "_refine", winner)
    model = SketchedKMeans(7, reducer=SignProjection(2), random_state=seed)
    model.fit(overlapping(spread=0.7))
    passes = found[won[0]].n_iter
    assert model.n_iter_ == passes + len(model.cost_path_) - 1


def test_the_polished_partition_is_that_of_the_best_finalist(monkeypatch):
    X = overlapping(spread=0.7)
    search, winners = Search.find, set()
    for seed in range(6):
        found = []

        def searched(self, *arguments, found=found):
            engine, results = search(self, *arguments)
            found.extend(results[:3])
            return engine, results

        monkeypatch.setattr(Search, "find", searched)
        model = SketchedKMeans(
            7, reducer=SignProjection(2), tol=0.0, random_state=seed
        ).fit(X)
        assert len(found) == 3
        starts = [naive_means(X, result.labels) for result in found]
        runs = [oracles.plain_lloyd(X, means) for means in starts]
        # Three passes decide; the path of a run that settled before stays where it is.
        winner = int(np.argmin([path[:3][-1] for _, _, path in runs]))
        labels, _, path = runs[winner]
        np.testing.assert_array_equal(model.labels_, labels)
        # The one that goes on starts with its last pass.
        path = [*path[:3], *path[2:]] if len(path) > 3 else path
        np.testing.assert_allclose(model.cost_path_[1:], path)
        plugged = naive_objective(X, found[winner].labels) / len(X)
        assert model.cost_path_[0] == pytest.approx(plugged)
        winners.add(winner)
    assert len(winners) > 1  # what is best on the sketch is not always best


@every_value
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("reducer", NAMES)
def test_polish_is_lloyd_from_the_partition_of_the_sketch(
    reducer, weighted, X, weights
):
    w = weights if weighted else None
    params = {"reducer": reducer, "n_init": 1, "random_state": 2, "tol": 0.0}
    plugged = SketchedKMeans(K, refine_max_iter=0, **params).fit(X, sample_weight=w)
    polished = SketchedKMeans(K, **params).fit(X, sample_weight=w)
    labels, centers, path = oracles.plain_lloyd(X, plugged.cluster_centers_, w)
    np.testing.assert_array_equal(polished.labels_, labels)
    np.testing.assert_allclose(polished.cluster_centers_, centers)
    np.testing.assert_allclose(polished.cost_path_[1:], path)
    assert polished.converged_


@pytest.mark.parametrize("reducer", NAMES)
def test_polished_result_is_a_fixed_point(reducer, X):
    model = SketchedKMeans(K, reducer=reducer, random_state=1, tol=0.0).fit(X)
    means = naive_means(X, model.labels_)
    np.testing.assert_allclose(model.cluster_centers_, means)
    np.testing.assert_array_equal(cdist(X, means).argmin(axis=1), model.labels_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.inertia_ == pytest.approx(naive_objective(X, model.labels_))


@pytest.mark.filterwarnings(
    "ignore:No convergence:sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.parametrize("refine", [1, 2, 3])
def test_polish_is_the_most_passes(refine, X):
    labels = np.arange(len(X)) % K
    model = revealing(labels, refine, tol=0.0).fit(X)
    assert len(model.cost_path_) == 1 + refine
    # The first pass assigns the rows to the centres that were plugged back.
    if refine == 1:
        means = naive_means(X, labels)
        np.testing.assert_allclose(model.cluster_centers_, means)
        np.testing.assert_array_equal(cdist(X, means).argmin(axis=1), model.labels_)
        squared = cdist(X, means, "sqeuclidean").min(axis=1).sum()
        assert model.inertia_ == pytest.approx(squared)


def test_too_few_polishing_passes_are_told(X):
    with pytest.warns(
        ConvergenceWarning, match=r"refine_max_iter=2 passes.*Raise refine_max_iter"
    ):
        revealing(np.arange(len(X)) % K, 2, tol=0.0).fit(X)


def test_too_few_passes_on_the_sketch_are_told(X):
    model = SketchedKMeans(K, refine_max_iter=0, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="No convergence after max_iter=1 "):
        model.fit(X)
    assert not model.converged_


# --- weights --------------------------------------------------------------------------


# Reducers do not look at weights: only those that do not look at rows are exact here.
@every_value
@pytest.mark.parametrize(
    "reducer",
    [FunctionTransformer(), SignProjection(6, random_state=0)],
    ids=["identity", "sign"],
)
@pytest.mark.parametrize("refine", [0, 300])
def test_weights_are_repeats(reducer, refine, X, weights):
    repeats = weights.astype(int)
    first = np.cumsum(repeats) - repeats  # the first copy of each row
    start = np.array([3, 50, 99, 200])
    params = {"reducer": reducer, "refine_max_iter": refine, "n_init": 1, "tol": 0.0}
    weighted = SketchedKMeans(K, init=At(start), **params)
    repeated = SketchedKMeans(K, init=At(first[start]), **params)
    weighted.fit(X, sample_weight=weights)
    repeated.fit(np.repeat(X, repeats, axis=0))
    np.testing.assert_array_equal(
        np.repeat(weighted.labels_, repeats), repeated.labels_
    )
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_)
    np.testing.assert_allclose(weighted.cost_path_, repeated.cost_path_)
    np.testing.assert_allclose(weighted.cluster_sizes_, repeated.cluster_sizes_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)


def test_polish_of_one_partition_takes_weights_as_repeats(X, weights):
    labels, repeats = np.arange(len(X)) % K, weights.astype(int)
    weighted = revealing(labels, 300, tol=0.0).fit(X, sample_weight=weights)
    repeated = revealing(np.repeat(labels, repeats), 300, tol=0.0)
    repeated.fit(np.repeat(X, repeats, axis=0))
    np.testing.assert_array_equal(
        np.repeat(weighted.labels_, repeats), repeated.labels_
    )
    np.testing.assert_allclose(weighted.cost_path_, repeated.cost_path_)


def test_rows_without_weight_change_nothing(X):
    weights = (np.arange(len(X)) % 3 > 0).astype(float)
    kept = np.flatnonzero(weights)
    start = kept[[3, 50, 99, 150]]
    params = {"reducer": SignProjection(6, random_state=0), "n_init": 1, "tol": 0.0}
    weighted = SketchedKMeans(K, init=At(start), **params)
    fewer = SketchedKMeans(K, init=At(np.searchsorted(kept, start)), **params)
    weighted.fit(X, sample_weight=weights)
    fewer.fit(X[kept])
    np.testing.assert_array_equal(weighted.labels_[kept], fewer.labels_)
    np.testing.assert_allclose(weighted.cluster_centers_, fewer.cluster_centers_)
    np.testing.assert_array_equal(
        weighted.exemplar_indices_, kept[fewer.exemplar_indices_]
    )


# --- how rows are stored --------------------------------------------------------------


@every_value
@pytest.mark.parametrize("refine", [0, 300])
@pytest.mark.parametrize("reducer", NAMES)
def test_csr_rows_give_what_dense_ones_give(reducer, refine, S):
    dense, csr = (
        SketchedKMeans(K, reducer=reducer, refine_max_iter=refine, random_state=0).fit(
            rows
        )
        for rows in (S.toarray(), S)
    )
    # Which cluster has which number may hang on the last bits of a sketch.
    same = csr.labels_[dense.exemplar_indices_]
    assert sorted(same) == list(range(K))
    np.testing.assert_array_equal(csr.labels_, same[dense.labels_])
    centers = csr.cluster_centers_
    assert isinstance(centers, np.ndarray)
    np.testing.assert_allclose(centers[same], dense.cluster_centers_, atol=1e-12)
    np.testing.assert_allclose(csr.cost_path_, dense.cost_path_)
    np.testing.assert_array_equal(csr.exemplar_indices_[same], dense.exemplar_indices_)
    assert sparse.issparse(csr.exemplars_)
    np.testing.assert_array_equal(
        csr.predict(S), csr.labels_ if refine else same[dense.predict(S.toarray())]
    )
    np.testing.assert_allclose(csr.transform(S)[:, same], dense.transform(S.toarray()))


@pytest.mark.parametrize("reducer", NAMES)
def test_bytes_are_exact_floats(reducer, X):
    table = np.clip(20.0 * X + 100.0, 0.0, 255.0).astype(np.uint8)
    small, wide = (
        SketchedKMeans(K, reducer=reducer, random_state=0).fit(rows)
        for rows in (table, table.astype(np.float32))
    )
    np.testing.assert_array_equal(small.labels_, wide.labels_)
    np.testing.assert_array_equal(small.cluster_centers_, wide.cluster_centers_)
    assert small.inertia_ == wide.inertia_
    assert small.exemplars_.dtype == np.uint8
    np.testing.assert_array_equal(small.predict(table), wide.predict(table))


@pytest.mark.parametrize("dtype", [np.int16, np.int64, bool])
def test_integers_of_any_width(dtype, X):
    table = (3.0 * X > 0.0) if dtype is bool else np.round(3.0 * X).astype(dtype)
    model = SketchedKMeans(K, reducer="sign", refine_max_iter=0, random_state=0).fit(
        table
    )
    expected = naive_objective(table, model.labels_)
    assert model.inertia_ == pytest.approx(expected, rel=1e-5)


@every_value
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize("reducer", NAMES)
def test_memory_map_gives_the_same_bits(reducer, dtype, X, tmp_path):
    table = np.clip(20.0 * X + 100.0, 0.0, 255.0).astype(dtype)
    np.save(tmp_path / "rows.npy", table)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    one, two = (
        SketchedKMeans(K, reducer=reducer, random_state=0).fit(rows)
        for rows in (table, mapped)
    )
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    np.testing.assert_array_equal(one.cost_path_, two.cost_path_)


def test_lists_frames_and_fortran_order(X):
    def fit(rows):
        return SketchedKMeans(K, reducer="sampling", random_state=0).fit(rows)

    plain = fit(X)
    for rows in (X.tolist(), pd.DataFrame(X), np.asfortranarray(X)):
        model = fit(rows)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_)


# --- far from the origin --------------------------------------------------------------


@pytest.mark.parametrize("reducer", NAMES)
def test_float32_far_from_the_origin(reducer, separated):
    X, truth = separated
    # Sixteenths of less than 2¹⁴ are exact in float32.
    near = np.round(16.0 * X) / 16.0
    far = (near + 10_000.0).astype(np.float32)
    np.testing.assert_array_equal(far.astype(np.float64) - 10_000.0, near)
    model = SketchedKMeans(K, reducer=reducer, random_state=0).fit(far)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert model.inertia_ == pytest.approx(naive_objective(near, truth), rel=1e-4)
    means = naive_means(near, model.labels_) + 10_000.0
    np.testing.assert_allclose(model.cluster_centers_, means, atol=2e-3)
    np.testing.assert_array_equal(model.predict(far), model.labels_)
    assert model.score(far) == pytest.approx(-model.inertia_, rel=1e-3)
    squared = model.transform(far).astype(np.float64) ** 2
    np.testing.assert_allclose(squared, cdist(far, means, "sqeuclidean"), rtol=2e-3)
    assert_never_rises(model.cost_path_, np.float32)


def test_polish_far_from_the_origin_is_that_near_it(X):
    near = np.round(64.0 * X) / 64.0
    labels = np.arange(len(X)) % K
    at_home = revealing(labels, 300, tol=0.0).fit(near)
    away = revealing(labels, 300, tol=0.0).fit((near + 1e4).astype(np.float32))
    np.testing.assert_array_equal(away.labels_, at_home.labels_)
    assert away.inertia_ == pytest.approx(at_home.inertia_, rel=1e-5)


def test_csr_rows_are_predicted_after_a_fit_far_from_the_origin(separated):
    far = (separated[0] + 1e4).astype(np.float32)
    model = SketchedKMeans(K, random_state=0).fit(far)
    np.testing.assert_array_equal(model.predict(sparse.csr_array(far)), model.labels_)


@pytest.mark.parametrize("reducer", ["sign", "svd"])
def test_overflow_is_told(reducer, X):
    huge = 1e200 * X.astype(np.float64)
    with pytest.raises(ValueError, match="overflow"):
        SketchedKMeans(K, reducer=reducer, random_state=0).fit(huge)


# --- after the fit --------------------------------------------------------------------


@every_value
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("refine", [0, 300])
@pytest.mark.parametrize("reducer", NAMES)
def test_new_rows_meet_the_centres_in_the_original_space(reducer, refine, dtype, X):
    new = overlapping(seed=9).astype(dtype)
    model = SketchedKMeans(K, reducer=reducer, refine_max_iter=refine, random_state=0)
    model.fit(X.astype(dtype))
    distances = cdist(new, model.cluster_centers_)
    rtol = 1e3 * float(np.finfo(dtype).eps)
    np.testing.assert_array_equal(model.predict(new), distances.argmin(axis=1))
    transformed = model.transform(new)
    assert transformed.dtype == dtype
    np.testing.assert_allclose(transformed, distances, rtol=rtol)
    nearest = distances.min(axis=1) ** 2
    assert model.score(new) == pytest.approx(-nearest.sum(), rel=rtol)
    assert model.cost(new) == pytest.approx(nearest.mean(), rel=rtol)
    w = np.arange(len(new)) % 3.0
    assert model.score(new, sample_weight=w) == pytest.approx(-w @ nearest, rel=rtol)
    assert model.cost(new, sample_weight=w) == pytest.approx(
        w @ nearest / w.sum(), rel=rtol
    )


def test_score_of_the_training_rows_is_the_objective(X):
    model = SketchedKMeans(K, random_state=0).fit(X)
    assert model.score(X) == pytest.approx(-model.inertia_)
    assert model.cost(X) == pytest.approx(model.cost_)
    np.testing.assert_array_equal(
        SketchedKMeans(K, random_state=0).fit_predict(X), model.labels_
    )
    np.testing.assert_allclose(
        SketchedKMeans(K, random_state=0).fit_transform(X), model.transform(X)
    )


def test_rows_of_another_type_are_predicted(X):
    model = SketchedKMeans(K, random_state=0).fit(X)
    labels = model.predict(X)
    np.testing.assert_array_equal(model.predict(sparse.csr_array(X)), labels)
    np.testing.assert_array_equal(model.predict(pd.DataFrame(X)), labels)
    agreement = model.predict(X.astype(np.float32)) == labels
    assert agreement.mean() > 0.99


@every_value
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("refine", [0, 300])
@pytest.mark.parametrize("reducer", NAMES)
def test_exemplars_are_the_members_nearest_to_their_centre(
    reducer, refine, weighted, X
):
    w = np.arange(len(X)) % 3.0 if weighted else None
    model = SketchedKMeans(K, reducer=reducer, refine_max_iter=refine, random_state=0)
    model.fit(X, sample_weight=w)
    distances = cdist(X, model.cluster_centers_)
    for j in range(K):
        member = model.labels_ == j
        if weighted:
            member &= w > 0.0
        nearest = np.flatnonzero(member)[distances[member, j].argmin()]
        assert model.exemplar_indices_[j] == nearest
    np.testing.assert_array_equal(model.exemplars_, X[model.exemplar_indices_])


# --- few rows, few values, empty clusters ---------------------------------------------


@pytest.mark.parametrize("reducer", NAMES)
def test_one_cluster_is_the_mean(reducer, X):
    model = SketchedKMeans(1, reducer=reducer, random_state=0).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, X.mean(axis=0)[None])
    assert model.inertia_ == pytest.approx(((X - X.mean(axis=0)) ** 2).sum())
    assert not model.labels_.any()
    nearest = cdist(X, model.cluster_centers_).argmin()
    assert model.exemplar_indices_.tolist() == [nearest]


@every_value
@pytest.mark.parametrize("refine", [0, 300])
@pytest.mark.parametrize("reducer", NAMES)
def test_as_many_clusters_as_rows(reducer, refine, X):
    few = X[:9]
    model = SketchedKMeans(
        9, reducer=reducer, refine_max_iter=refine, random_state=0
    ).fit(few)
    assert sorted(model.labels_) == list(range(9))
    assert model.inertia_ == pytest.approx(0.0, abs=1e-10)
    np.testing.assert_allclose(model.cluster_centers_[model.labels_], few)
    np.testing.assert_array_equal(model.exemplar_indices_[model.labels_], np.arange(9))


@every_value
@pytest.mark.parametrize("refine", [0, 300])
@pytest.mark.parametrize("reducer", NAMES)
def test_fewer_distinct_rows_than_clusters_are_told(reducer, refine, X):
    table = np.repeat(X[:3], 5, axis=0)
    model = SketchedKMeans(4, reducer=reducer, refine_max_iter=refine, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(3\) found"):
        model.fit(table)
    assert model.inertia_ == pytest.approx(0.0, abs=1e-10)
    assert (model.cluster_sizes_ > 0).sum() == 3
    assert np.isfinite(model.cluster_centers_).all()
    np.testing.assert_allclose(model.cluster_centers_[model.labels_], table)


def _nothing(X):
    """A sketch that loses everything."""
    return np.zeros((X.shape[0], 1))


def test_clusters_that_the_sketch_leaves_empty_are_filled_by_polish(separated):
    X, _ = separated
    blind = FunctionTransformer(_nothing)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(1\) found"):
        plugged = SketchedKMeans(
            K, reducer=blind, refine_max_iter=0, random_state=0
        ).fit(X)
    mean = X.mean(axis=0)
    np.testing.assert_allclose(plugged.cluster_centers_, np.tile(mean, (K, 1)))
    assert plugged.inertia_ == pytest.approx(((X - mean) ** 2).sum())
    polished = SketchedKMeans(K, reducer=blind, random_state=0).fit(X)
    assert (polished.cluster_sizes_ > 0.0).all()
    assert polished.inertia_ < plugged.inertia_
    assert_never_rises(polished.cost_path_, np.float64)


def test_a_cluster_that_polishing_empties_is_filled_again():
    # Centre 1 lies between the others' rows: no row is nearest to it.
    X = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0], [-90.0], [100.0]])
    labels = np.array([0, 0, 0, 2, 2, 2, 1, 1])
    model = revealing(labels, 300, tol=0.0).fit(X)
    assert (model.cluster_sizes_ > 0).all()
    assert model.inertia_ == pytest.approx(naive_objective(X, model.labels_))
    assert model.inertia_ < naive_objective(X, labels)


@pytest.mark.parametrize("reducer", NAMES)
def test_all_rows_zero(reducer):
    model = SketchedKMeans(3, reducer=reducer, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(1\) found"):
        model.fit(np.zeros((10, 6)))
    assert model.inertia_ == 0.0
    assert not model.cluster_centers_.any()


@pytest.mark.parametrize("reducer", NAMES)
def test_one_feature_and_a_constant_column(reducer, X):
    narrow = SketchedKMeans(2, reducer=reducer, random_state=0).fit(X[:, :1])
    assert narrow.cluster_centers_.shape == (2, 1)
    table = np.column_stack([X, np.full(len(X), 3.0)])
    model = SketchedKMeans(K, reducer=reducer, random_state=0).fit(table)
    np.testing.assert_allclose(model.cluster_centers_[:, -1], 3.0)


# --- errors ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"refine_max_iter": -1}, "refine_max_iter=-1 should be an integer >= 0."),
        ({"refine_max_iter": 1.5}, "refine_max_iter=1.5 should be an integer >= 0."),
        ({"refine_max_iter": True}, "refine_max_iter=True should be an integer >= 0."),
        ({"n_clusters": 0}, "n_clusters=0 should be an integer >= 1."),
        ({"n_clusters": 241}, "n_samples=240 should be >= n_clusters=241."),
        ({"tol": -1.0}, "tol=-1.0 should be a finite number >= 0."),
        (
            {"reducer": "pca"},
            "reducer='pca' should be one of ['laplacian', 'sampling', 'sign', 'svd'] "
            "or a transformer.",
        ),
        (
            {"reducer": ApproximateSVD(16)},
            "n_components=16 should be <= n_features=15.",
        ),
        (
            {"reducer": SignProjection(16)},
            "n_components=16 should be <= n_features=15.",
        ),
        (
            {"init": "kmeans"},
            "init='kmeans' should be one of ['auto', 'greedy-k-means++', 'k-means++', "
            "'k-means||', 'local-search', 'random']",
        ),
        ({"max_memory": "lots"}, "max_memory='lots' should be a positive number"),
        ({"n_jobs": 0}, "n_jobs=0 should be a nonzero integer or None."),
    ],
)
def test_errors_say_what_is_valid(params, text, X):
    with pytest.raises(ValueError, match=re.escape(text)):
        SketchedKMeans(**{"n_clusters": K, **params}).fit(X)


def test_error_of_init_says_what_else_it_may_be(X):
    with pytest.raises(ValueError, match=r"init='kmeans'.*centers of shape \(k, d\)"):
        SketchedKMeans(K, init="kmeans").fit(X)


@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
def test_a_class_is_no_transformer(estimator, X):
    with pytest.raises(ValueError, match=r"reducer=.*or a transformer"):
        estimator(K, reducer=PCA).fit(X)


def test_too_little_memory(X):
    text = r"The sketch of 240 rows needs .*max_memory allows 1 kB\. Lower the reducer"
    with pytest.raises(MemoryError, match=text):
        SketchedKMeans(K, max_memory="1kB").fit(X)


def test_centres_of_many_features_are_in_the_plan_of_memory():
    wide = sparse.random_array((300, 2**20), density=1e-5, rng=0, format="csr")
    with pytest.raises(MemoryError, match="centres of 1,048,576 features"):
        SketchedKMeans(4, max_memory="500MB").fit(wide)


def test_memory_is_checked_before_the_sketch_is_made(X, monkeypatch):
    def made(self):
        raise AssertionError("the sketch is made")

    monkeypatch.setattr("sketchmeans.reduction.base.ReducedRows.load", made)
    model = SketchedKMeans(K, reducer=SignProjection(3), max_memory="1kB")
    with pytest.raises(MemoryError, match="The sketch of 240 rows needs"):
        model.fit(X)
    with pytest.raises(AssertionError, match="the sketch is made"):
        model.set_params(max_memory="1GB").fit(X)


@every_value
@pytest.mark.parametrize("refine", [0, 300])
@pytest.mark.parametrize("reducer", NAMES)
def test_values_that_are_not_finite_are_found(reducer, refine, X):
    bad = X.copy()
    bad[150, 7] = np.nan
    model = SketchedKMeans(K, reducer=reducer, refine_max_iter=refine)
    with pytest.raises(ValueError, match=r"NaN \(row 150, column 7\)"):
        model.fit(bad)


def test_a_failed_fit_leaves_the_fit_before(X):
    model = SketchedKMeans(K, random_state=0).fit(X)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((50, 15), np.nan))
    assert vars(model).keys() == before.keys()
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("method", ["predict", "transform", "score", "cost"])
def test_not_fitted(method, X):
    with pytest.raises(NotFittedError, match="SketchedKMeans"):
        getattr(SketchedKMeans(), method)(X)


# --- the reducer ----------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
def test_reducer_is_cloned_and_told_the_number_of_clusters(estimator, X):
    given = ApproximateSVD()
    model = estimator(5, reducer=given, n_jobs=1, random_state=0).fit(X)
    assert model.reducer is given
    assert given.get_params() == ApproximateSVD().get_params()
    assert not [name for name in vars(given) if name.endswith("_")]
    assert model.reducer_ is not given
    assert model.reducer_.n_clusters == 5
    assert model.reducer_.n_components_ == 5
    assert model.reducer_.n_jobs == 1
    assert isinstance(model.reducer_.random_state, int)


@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
def test_reducer_keeps_the_seed_and_threads_it_was_given(estimator, X):
    given = SignProjection(3, random_state=7, n_jobs=2)
    model = estimator(K, reducer=given, n_jobs=1, random_state=0).fit(X)
    assert model.reducer_.random_state == 7
    assert model.reducer_.n_jobs == 2
    np.testing.assert_array_equal(
        model.reducer_.signs_, SignProjection(3, random_state=7).fit(X).signs_
    )


@every_value
@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
@pytest.mark.parametrize("name", NAMES)
def test_names_stand_for_reducers(estimator, name, X):
    model = estimator(K, reducer=name, random_state=0).fit(X)
    assert type(model.reducer_) is REDUCERS[name]
    by_object = estimator(K, reducer=REDUCERS[name](), random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, by_object.labels_)


@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
def test_transformers_from_elsewhere(estimator, separated):
    X, truth = separated
    for reducer in (PCA(3), make_pipeline(StandardScaler(), PCA(3)), TruncatedSVD(4)):
        model = estimator(K, reducer=reducer, random_state=0).fit(X)
        assert adjusted_rand_score(truth, model.labels_) == 1.0
        np.testing.assert_array_equal(model.predict(X), model.labels_)


class Bare(BaseEstimator):
    """The least that `reducer` asks for: no fit_transform."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return X[:, :3]


def test_a_transformer_needs_fit_and_transform_only(X):
    model = SketchedKMeans(K, reducer=Bare(), random_state=0).fit(X)
    assert model.converged_


@pytest.mark.parametrize("reducer", ["svd", PCA(3)], ids=["ours", "theirs"])
def test_sketches_may_be_tables(reducer, X):
    plain = SketchedKMeans(K, reducer=reducer, random_state=0).fit(X)
    with sklearn.config_context(transform_output="pandas"):
        model = SketchedKMeans(K, reducer=reducer, random_state=0).fit(X)
        assert isinstance(model.transform(X), pd.DataFrame)
    np.testing.assert_array_equal(model.labels_, plain.labels_)


@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
def test_a_person_can_read_which_features_matter(estimator, X):
    names = [f"gene{j}" for j in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names)
    model = estimator(K, reducer=FeatureSampling(5), random_state=0).fit(table)
    chosen = model.reducer_.get_feature_names_out()
    assert list(chosen) == [f"gene{j}" for j in model.reducer_.get_support(True)]


@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
def test_every_reducer_finds_clusters_that_are_apart(estimator, separated):
    X, truth = separated
    for name in NAMES:
        model = estimator(K, reducer=name, random_state=0).fit(X)
        assert adjusted_rand_score(truth, model.labels_) == 1.0, name


# --- scikit-learn's manners -----------------------------------------------------------


@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
def test_nested_parameters_and_clone(estimator, X):
    model = estimator(K, reducer=FeatureSampling(6), random_state=0)
    assert model.get_params()["reducer__n_components"] == 6
    copy = clone(model).set_params(reducer__n_components=3)
    assert model.reducer.n_components == 6
    assert copy.fit(X).reducer_.counts_.sum() == 3
    again = clone(copy)
    assert not [name for name in vars(again) if name.endswith("_")]
    np.testing.assert_array_equal(again.fit(X).labels_, copy.labels_)


@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
def test_grid_search_over_the_sketch(estimator, X):
    grid = {"reducer__n_components": [2, 6]}
    search = GridSearchCV(
        estimator(K, reducer=ApproximateSVD(), random_state=0), grid, cv=2
    )
    search.fit(X)
    assert search.best_estimator_.reducer_.n_components_ in (2, 6)


@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
def test_set_output(estimator, X):
    model = estimator(K, reducer="sign", random_state=0).fit(X)
    plain = model.transform(X)
    names = [f"{estimator.__name__.lower()}{j}" for j in range(K)]
    assert list(model.get_feature_names_out()) == names
    for kind, frame in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        table = model.set_output(transform=kind).transform(X)
        assert isinstance(table, frame)
        assert list(table.columns) == names
        np.testing.assert_array_equal(table.to_numpy(), plain)


@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
def test_feature_names(estimator, X):
    table = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    model = estimator(K, reducer="svd", random_state=0).fit(table)
    assert list(model.feature_names_in_) == list(table.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(table)
    with pytest.raises(ValueError, match="in the same order as they were in fit"):
        model.predict(table[table.columns[::-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table.iloc[:, :3].set_axis(["f0", "f1", "f2"], axis=1))


@every_value
@pytest.mark.parametrize("estimator", [SketchedKMeans, NystromKMeans])
@pytest.mark.parametrize("reducer", NAMES)
def test_pickle_keeps_the_fit(estimator, reducer, X):
    model = estimator(K, reducer=reducer, random_state=0).fit(X)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    np.testing.assert_array_equal(copy.transform(X), model.transform(X))
    assert copy.cost(X) == model.cost(X)


def test_random_state(X):
    def centers(state):
        model = SketchedKMeans(K, reducer="sign", refine_max_iter=0, random_state=state)
        return [model.fit(X).cluster_centers_ for _ in range(2)]

    first, second = centers(5)
    np.testing.assert_array_equal(first, second)
    for make in (np.random.default_rng, np.random.RandomState):
        first, second = centers(make(0))
        assert not np.array_equal(first, second)
        np.testing.assert_array_equal([first, second], centers(make(0)))


def test_verbose_names_the_stages(X, caplog):
    SketchedKMeans(K, reducer="svd", verbose=1, n_init=1, random_state=0).fit(X)
    lines = caplog.messages
    assert all(line.startswith("[SketchedKMeans] ") for line in lines)
    said = [line.split("] ")[1].split(":")[0] for line in lines]
    expected = ["sketch", "seeding", "all 240 rows", "original space", "all 240 rows"]
    assert said == expected


def test_the_number_of_clusters_may_be_a_numpy_integer(X):
    one, two = (SketchedKMeans(k, random_state=0).fit(X) for k in (K, np.int64(K)))
    np.testing.assert_array_equal(one.labels_, two.labels_)


# --- many rows: subsamples, blocks, threads -------------------------------------------


@pytest.fixture(scope="module")
def many():
    """Enough rows for subsamples and for several blocks, the last one partial."""
    return overlapping(n=20_001, d=12, seed=3).astype(np.float32)


@every_value
@pytest.mark.parametrize("refine", [0, 300])
@pytest.mark.parametrize("reducer", ["sampling", "sign", "svd"])
def test_many_rows(reducer, refine, many):
    model = SketchedKMeans(K, reducer=reducer, refine_max_iter=refine, random_state=0)
    one, two = (clone(model).set_params(n_jobs=n).fit(many) for n in (1, 2))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    np.testing.assert_array_equal(one.cost_path_, two.cost_path_)
    np.testing.assert_array_equal(one.exemplar_indices_, two.exemplar_indices_)
    assert_never_rises(one.cost_path_, np.float32)
    if refine:
        nearest = cdist(many, one.cluster_centers_, "sqeuclidean").min(axis=1)
        assert one.inertia_ == pytest.approx(nearest.sum(), rel=1e-4)
    else:
        objective = naive_objective(many, one.labels_)
        assert one.inertia_ == pytest.approx(objective, rel=1e-5)


def test_thread_count_changes_no_bit_of_csr_rows(many):
    S = sparse.csr_array(np.where(many > 1.0, many, 0.0))
    one, two = (
        SketchedKMeans(K, reducer="sign", n_jobs=n, random_state=0).fit(S)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.cost_path_, two.cost_path_)
