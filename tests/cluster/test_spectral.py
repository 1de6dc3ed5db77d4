"""SpectralKMeans: cuts, bounds and labels against their definitions."""

import doctest
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.estimator_checks import parametrize_with_checks

from sketchmeans import NystromKMeans, SpectralKMeans, TableClusterer
from sketchmeans.datasets import make_customers
from tests.pairs import every_value


def _expected_failures(estimator):
    # As for the other estimators: the same seed draws other rows of repeated ones.
    reason = "sample_weight is not equivalent to repeating samples: the draws differ"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
# With one scale of the graph a fit takes a fraction of the time.
@parametrize_with_checks(
    [SpectralKMeans(n_neighbors=5, whiten=False)],
    expected_failed_checks=_expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def make_spirals(n, noise=0.02, seed=0):
    rng = np.random.default_rng(seed)
    t = np.sqrt(rng.uniform(0.05, 1.0, n))
    y = np.arange(n) % 2
    angle = 3.0 * np.pi * t + np.pi * y
    X = t[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return X + noise * rng.normal(size=X.shape), y


SHAPES = {
    "moons": make_moons(600, noise=0.06, random_state=0),
    "rings": make_circles(800, noise=0.05, factor=0.5, random_state=0),
    "spirals": make_spirals(900),
    "blobs": make_blobs(500, centers=4, cluster_std=0.6, random_state=2),
}


@pytest.fixture(scope="module", name="moons")
def two_moons():
    return SHAPES["moons"]


def rows_of_z(model, X):
    """Return Z of rows, as the fitted model has it."""
    return model._graph().weights(X).toarray()


def naive_cut(K, weights, labels):
    edges = weights[:, None] * K * weights
    degrees = edges.sum(axis=1)
    return sum(
        edges[np.ix_(labels == c, labels != c)].sum() / degrees[labels == c].sum()
        for c in np.unique(labels)
    )


@every_value
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_found_at_the_defaults(name, seed):
    X, y = SHAPES[name]
    model = SpectralKMeans(len(set(y)), random_state=seed).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.97


@every_value
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("form", ["float64", "float32", "csr", "fortran"])
def test_predict_returns_the_labels_of_the_fit(name, form):
    X, y = SHAPES[name]
    forms = {
        "float32": np.float32,
        "csr": sparse.csr_array,
        "fortran": np.asfortranarray,
    }
    X = forms.get(form, np.asarray)(X)
    model = SpectralKMeans(len(set(y)), random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.transform(X).argmin(axis=1), model.labels_)
    assert adjusted_rand_score(y, model.labels_) > 0.97


@pytest.mark.parametrize("weighted", [False, True])
def test_cut_bound_and_cost_are_those_of_their_definitions(moons, weighted):
    X, _ = moons
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, len(X)).astype(float) if weighted else np.ones(len(X))
    model = SpectralKMeans(3, n_neighbors=8, random_state=0)
    model.fit(X, sample_weight=weights)
    Z, labels = rows_of_z(model, X), model.labels_
    K = Z @ np.diag(1.0 / (Z.T @ weights)) @ Z.T
    np.testing.assert_allclose(K @ weights, np.ones(len(X)))
    np.testing.assert_allclose(model.ncut_, naive_cut(K, weights, labels))
    root = np.sqrt(weights)
    laplacian = np.eye(len(X)) - root[:, None] * K * root
    values = np.linalg.eigvalsh(laplacian)
    np.testing.assert_allclose(model.eigenvalues_, values[:9], atol=1e-9)
    np.testing.assert_allclose(model.ncut_bound_, values[:3].sum(), atol=1e-9)
    assert 0.0 <= model.ncut_bound_ <= model.ncut_
    members = [np.flatnonzero(labels == c) for c in range(3)]
    inside = [
        weights[c] @ K[np.ix_(c, c)] @ weights[c] / weights[c].sum() for c in members
    ]
    inertia = weights @ np.diag(K) - sum(inside)
    np.testing.assert_allclose(model.inertia_, inertia, rtol=1e-6)
    np.testing.assert_allclose(
        model.score(X, sample_weight=weights), -inertia, rtol=1e-6
    )


def test_passes_never_raise_the_cut(moons):
    X, _ = moons
    for k in (2, 5, 9):
        model = SpectralKMeans(k, random_state=0).fit(X)
        assert (np.diff(model.cost_path_) <= 1e-12).all()
        assert model.converged_


def test_passes_stop_when_the_cut_no_longer_falls():
    X = np.random.default_rng(3).normal(size=(2000, 2))
    tight = SpectralKMeans(8, random_state=0, tol=0.0).fit(X)
    loose = SpectralKMeans(8, random_state=0, tol=0.01).fit(X)
    # The cost is the cut and a constant, so the path of one is that of the other.
    cuts = tight.ncut_ + len(X) * (np.array(tight.cost_path_) - tight.cost_)
    drops = -np.diff(cuts) / cuts[:-1]
    assert loose.converged_
    assert loose.n_iter_ == 2 + int(np.argmax(drops <= 0.01)) < tight.n_iter_


@pytest.mark.parametrize("seed", range(12))
def test_the_cut_is_never_below_its_bound(seed):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(20, 200)), int(rng.integers(1, 12)), seed % 6 + 1
    X = rng.normal(size=(n, d)) + 3.0 * rng.integers(3, size=(n, 1))
    if seed % 3 == 0:
        X = np.round(X)  # repeated rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SpectralKMeans(k, random_state=seed).fit(X)
    assert model.ncut_bound_ <= model.ncut_ + 1e-9
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_row_of_weight_three_is_three_rows(moons):
    X, _ = moons
    X = X[:150]
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    repeated = np.repeat(X, weights, axis=0)
    # Every distinct row is a landmark: no draw is left.
    given = {"n_landmarks": len(X), "n_neighbors": 6, "random_state": 0}
    one = SpectralKMeans(2, **given).fit(X, sample_weight=weights)
    many = SpectralKMeans(2, **given).fit(repeated)
    np.testing.assert_allclose(one.ncut_, many.ncut_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.eigenvalues_, many.eigenvalues_, atol=1e-9)
    assert adjusted_rand_score(one.predict(X), many.predict(X)) == 1.0


def test_rows_of_weight_zero_are_ignored(moons):
    X, y = moons
    far = np.concatenate([X, [[50.0, 50.0], [60.0, -50.0]]])
    weights = np.append(np.ones(len(X)), [0.0, 0.0])
    model = SpectralKMeans(2, random_state=0).fit(far, sample_weight=weights)
    assert adjusted_rand_score(y, model.labels_[:-2]) > 0.97
    assert np.abs(model.landmarks_).max() < 10.0


def test_threads_and_memory_change_nothing(tmp_path):
    X, _ = make_moons(20_000, noise=0.06, random_state=0)
    options = {"n_landmarks": 300, "random_state": 0}
    model = SpectralKMeans(2, **options, n_jobs=1).fit(X)
    np.save(tmp_path / "X.npy", X)
    others = [
        SpectralKMeans(2, **options, n_jobs=2).fit(X),
        SpectralKMeans(2, **options, max_memory="62MB").fit(X),
        SpectralKMeans(2, **options).fit(tmp_path / "X.npy"),
    ]
    for other in others:
        np.testing.assert_array_equal(other.labels_, model.labels_)
        assert other.ncut_ == model.ncut_


def test_too_little_memory_is_an_error_that_says_so(moons):
    with pytest.raises(MemoryError, match="450 landmarks on 600 rows of 2 features"):
        SpectralKMeans(2, max_memory="1MB").fit(moons[0])


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e150])
def test_the_unit_of_the_rows_does_not_matter(moons, scale):
    X, y = moons
    model = SpectralKMeans(2, random_state=0).fit(X * scale)
    assert adjusted_rand_score(y, model.labels_) > 0.97


def test_rows_far_from_zero(moons):
    X, y = moons
    model = SpectralKMeans(2, random_state=0).fit(X + 1e6)
    assert adjusted_rand_score(y, model.labels_) > 0.97


def test_number_of_clusters_by_the_eigengap():
    X, y = make_blobs(600, centers=[(0, 0), (8, 0), (0, 8), (8, 8)], random_state=0)
    model = SpectralKMeans("auto", random_state=0).fit(X)
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.eigengaps_.argmax() == 4


def test_the_scale_that_was_chosen_is_on_the_path(moons):
    model = SpectralKMeans(2, random_state=0).fit(moons[0])
    path = model.scale_path_
    assert path.n_landmarks[path.chosen] == len(model.landmarks_)
    assert path.scale[path.chosen] == model.n_neighbors_
    balanced = path.smallest_share >= 0.05
    assert path.gap[path.chosen] == path.gap[balanced].max()
    fixed = SpectralKMeans(2, n_neighbors=9, random_state=0).fit(moons[0])
    assert fixed.n_neighbors_ == 9
    assert fixed.scale_path_.n_landmarks.tolist() == [240, 450, 240]
    assert fixed.scale_path_.whitened.tolist() == [0, 0, 1]


def make_stripes(n, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) * [2.0, 0.2] + 1.8 * y[:, None] * [0.0, 1.0]
    return X @ [[0.6, -0.6], [-0.4, 0.8]], y


def test_codes_of_categories_are_not_whitened():
    """Rare categories would be clusters: the groups of customers were lost so."""
    customers, groups = make_customers()
    table = TableClusterer(NystromKMeans(4)).fit_preparation(customers)
    model = SpectralKMeans(4, random_state=0).fit(table.prepare(customers))
    assert model.whitening_ is None
    assert not model.scale_path_.whitened.any()
    assert adjusted_rand_score(groups, model.labels_) > 0.7


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_whitened_rows_for_long_groups_side_by_side(form):
    X, y = make_stripes(900)
    plain = SpectralKMeans(3, whiten=False, random_state=0).fit(X)
    assert plain.whitening_ is None
    assert not plain.scale_path_.whitened.any()
    white = SpectralKMeans(3, whiten=True, random_state=0).fit(form(X))
    assert white.scale_path_.whitened.all()
    assert adjusted_rand_score(y, white.labels_) > 0.95
    np.testing.assert_array_equal(white.predict(form(X)), white.labels_)
    product = white.whitening_.T @ np.cov(X.T, bias=True) @ white.whitening_
    np.testing.assert_allclose(product, np.eye(2), atol=1e-8)
    auto = SpectralKMeans(3, random_state=0).fit(X)
    assert auto.whitening_ is not None
    assert adjusted_rand_score(y, auto.labels_) > 0.95
    # An affine map of the rows changes nothing but rounding.
    moved = X @ [[3.0, 1.0], [0.0, 0.5]] + 7.0
    again = SpectralKMeans(3, whiten=True, random_state=0).fit(moved)
    np.testing.assert_allclose(again.ncut_, white.ncut_, rtol=1e-6)


def test_whitening_where_it_is_not_possible():
    X = np.random.default_rng(0).normal(size=(50, 10))
    with pytest.raises(ValueError, match="whiten=True needs 2 to 64 features"):
        SpectralKMeans(2, whiten=True).fit(X)
    assert SpectralKMeans(2, random_state=0).fit(X).whitening_ is None


def test_fewer_distinct_rows_than_clusters():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(2\) found"):
        model = SpectralKMeans(3, random_state=0).fit(X)
    assert adjusted_rand_score(model.labels_, np.repeat([0, 1], 10)) == 1.0


def test_every_row_a_cluster_and_one_cluster():
    X = np.random.default_rng(0).normal(size=(12, 3))
    assert len(set(SpectralKMeans(12, random_state=0).fit(X).labels_)) == 12
    single = SpectralKMeans(1, random_state=0).fit(X)
    assert single.ncut_ == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 should be an integer >= 1"),
        ({"n_clusters": "many"}, "n_clusters='many' should be an integer >= 1"),
        ({"n_neighbors": 1}, "n_neighbors=1 should be an integer >= 2"),
        ({"n_landmarks": 0}, "n_landmarks=0 should be an integer >= 1"),
        ({"whiten": "yes"}, "whiten='yes' should be True or False"),
        ({"affinity": "knn"}, "affinity='knn' should be one of"),
        ({"affinity": "rbf", "gamma": 0.0}, "gamma=0.0 should be positive, or 'auto'"),
    ],
)
def test_errors_name_the_parameter(options, message, moons):
    with pytest.raises(ValueError, match=message):
        SpectralKMeans(**options).fit(moons[0])


def test_rbf_graph(moons):
    X, y = moons
    model = SpectralKMeans(2, affinity="rbf", random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.97
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    gaps = np.square(X[:, None] - model.landmarks_).sum(axis=2)
    Z = np.exp(-model.gamma_ * gaps)
    Z /= Z.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rows_of_z(model, X), Z, atol=1e-9)
    assert model.n_neighbors_ is None
    far = SpectralKMeans(2, affinity="rbf", gamma=1e9, random_state=0).fit(X)
    np.testing.assert_allclose(rows_of_z(far, X).sum(axis=1), 1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_graph_that_is_given(moons, weighted):
    X, y = (part[:300] for part in moons)
    graph = kneighbors_graph(X, 10)
    graph = sparse.csr_array((graph + graph.T) / 2.0)
    weights = np.random.default_rng(0).integers(1, 3, len(X)) if weighted else None
    model = SpectralKMeans(2, affinity="precomputed", random_state=0)
    model.fit(graph, sample_weight=weights)
    assert adjusted_rand_score(y, model.labels_) > 0.97
    np.testing.assert_array_equal(model.predict(graph), model.labels_)
    each = np.ones(len(X)) if weights is None else weights
    edges = each[:, None] * graph.toarray() * each
    degrees = edges.sum(axis=1)
    steps = edges / degrees[:, None]
    # Eigenvalues of two steps of the random walk.
    values = np.sort(np.square(np.linalg.eigvals(steps).real))[::-1]
    np.testing.assert_allclose(model.eigenvalues_, 1.0 - values[:8], atol=1e-8)
    K = steps @ np.diag(1.0 / degrees) @ steps.T
    cut = naive_cut(K, degrees, model.labels_)
    np.testing.assert_allclose(model.ncut_, cut, atol=1e-9)
    assert model.ncut_bound_ <= model.ncut_ + 1e-9


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.ones((3, 2)), r"X.shape=\(3, 2\) should be square"),
        (np.triu(np.ones((3, 3))), "X should be symmetric"),
        (-np.eye(3), "X holds -1: weights of edges should not be negative"),
        (np.zeros((3, 3)), "X has no edges"),
    ],
)
def test_graphs_that_are_none(graph, message):
    with pytest.raises(ValueError, match=message):
        SpectralKMeans(2, affinity="precomputed").fit(graph)


def test_the_examples_of_the_docs():
    page = Path(__file__).parents[2] / "docs" / "spectral.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert (failed, tried > 5) == (0, True)
