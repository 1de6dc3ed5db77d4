"""The same rows give the same clusters, in whatever form they come."""

from itertools import cycle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from sketchmeans import Kernel, KernelKMeans, NystromKMeans
from sketchmeans.engine.init import KMeansPlusPlus, LocalSearch
from sketchmeans.kernels import RBF, Laplacian, Polynomial
from sketchmeans.landmarks import Landmarks, Uniform

ESTIMATORS = [KernelKMeans, NystromKMeans]
both = pytest.mark.parametrize("estimator", ESTIMATORS)


def pairs(name, values, ids=None):
    """Give each value to one of the estimators, in turn."""
    names = [ids(value) for value in values] if callable(ids) else ids
    found = list(zip(cycle(ESTIMATORS), values, strict=False))
    return pytest.mark.parametrize(("estimator", name), found, ids=names)


# Whole numbers in 0..100, so that every type of number holds the same rows; four
# separated clusters, and zeros for the sparse forms.
CENTRES = np.array([[10, 0, 0], [90, 0, 0], [50, 80, 0], [50, 0, 90]])
TRUTH = np.random.default_rng(0).integers(4, size=400)
ROWS = np.clip(
    CENTRES[TRUTH] + np.random.default_rng(1).integers(-5, 6, (400, 3)), 0, 100
)
X = ROWS.astype(np.float64)
START_ROWS = np.unique(TRUTH, return_index=True)[1]  # one row of each cluster
LANDMARK_ROWS = np.arange(3, 400, 11)


def _fit(estimator, rows, **params):
    # One restart: among several that find the same clusters rounding picks one, and
    # with it the numbering.
    params = {"n_init": 1, "init": "greedy-k-means++", "random_state": 0} | params
    if (
        estimator is NystromKMeans and "landmarks" not in params
    ):  # what rounding may decide is decided
        params = {"n_landmarks": 40} | params
    return estimator(4, **params).fit(rows)


@pytest.fixture(scope="module")
def expected():
    """Labels from a float64 array: the reference of every other form."""
    labels = {estimator: _fit(estimator, X).labels_ for estimator in ESTIMATORS}
    for found in labels.values():
        assert adjusted_rand_score(TRUTH, found) == 1.0
    return labels


# --- types of numbers -----------------------------------------------------------

TYPES = ["f2", "f4", "i1", "i8", "u2", "u4", "longdouble"]


@pairs("dtype", TYPES)
def test_every_type_of_number(estimator, dtype, expected):
    rows = ROWS.astype(dtype)
    model = _fit(estimator, rows)
    np.testing.assert_array_equal(model.labels_, expected[estimator])
    np.testing.assert_array_equal(model.predict(rows), expected[estimator])
    small = dtype in ("f2", "f4", "i1", "i2", "u1", "u2")
    assert model.transform(rows).dtype == (np.float32 if small else np.float64)
    # A cost is a difference of kernel values of size 1.
    rounding = 1e-6 if small else 1e-12
    assert model.cost_ == pytest.approx(_fit(estimator, X).cost_, abs=rounding)


@pairs("dtype", [">f8", ">f4", ">i4"])
def test_foreign_byte_order(estimator, dtype, expected):
    rows = ROWS.astype(dtype)
    model = _fit(estimator, rows)
    np.testing.assert_array_equal(model.labels_, expected[estimator])
    np.testing.assert_array_equal(model.predict(rows), expected[estimator])


@pairs("kernel", ["rbf", "cosine"])
def test_booleans(estimator, kernel):
    rng = np.random.default_rng(0)
    patterns = rng.random((3, 40)) < 0.5
    truth = rng.integers(3, size=150)
    rows = patterns[truth] ^ (rng.random((150, 40)) < 0.03)
    model = estimator(3, kernel=kernel, random_state=0).fit(rows)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    as_floats = estimator(3, kernel=kernel, random_state=0).fit(rows.astype(np.float32))
    assert adjusted_rand_score(model.labels_, as_floats.labels_) == 1.0
    assert model.cost_ == pytest.approx(as_floats.cost_, rel=1e-5)


@both
def test_one_type_for_fit_another_for_predict(estimator, expected):
    model = _fit(estimator, ROWS.astype(np.uint8))
    for rows in (X, ROWS.astype(np.int64), X.astype(np.float32), sparse.csr_array(X)):
        np.testing.assert_array_equal(model.predict(rows), expected[estimator])
    model = _fit(estimator, sparse.csr_array(X))
    np.testing.assert_array_equal(model.predict(X), expected[estimator])
    np.testing.assert_allclose(
        model.transform(X), model.transform(sparse.csr_array(X)), atol=1e-6
    )


@pairs("dtype", [np.uint8, np.int16])
def test_small_integers_do_not_wrap_around(estimator, dtype):
    # Squares and differences of these do not fit in their own type.
    top = min(np.iinfo(dtype).max, 30_000)
    low = max(np.iinfo(dtype).min, -30_000)
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [
            rng.integers(low, low + 9, (50, 6)),
            rng.integers(top - 8, top + 1, (50, 6)),
            np.full((50, 6), (top + low) // 2) + rng.integers(0, 9, (50, 6)),
        ]
    )
    truth = np.repeat([0, 1, 2], 50)
    for kernel in ("rbf", "laplacian", "linear"):
        model = estimator(3, kernel=kernel, random_state=0).fit(rows.astype(dtype))
        assert adjusted_rand_score(truth, model.labels_) == 1.0
        wide = estimator(3, kernel=kernel, random_state=0).fit(rows.astype(np.float64))
        scale = wide.kernel_.diagonal(rows.astype(np.float64)).mean()
        assert model.cost_ == pytest.approx(wide.cost_, abs=1e-6 * scale)


# --- layouts --------------------------------------------------------------------


def _fortran(rows):
    return np.asfortranarray(rows)


def _every_other_row(rows):
    wide = np.full((2 * len(rows), rows.shape[1]), -1.0)
    wide[::2] = rows
    return wide[::2]


def _some_columns(rows):
    wide = np.full((len(rows), 2 * rows.shape[1]), -1.0)
    wide[:, 1::2] = rows
    return wide[:, 1::2]


def _backwards(rows):
    return rows[::-1].copy()[::-1]


def _read_only(rows):
    copy = rows.copy()
    copy.flags.writeable = False
    return copy


def _lists(rows):
    return rows.tolist()


def _subclass(rows):
    return rows.view(np.recarray)


def _pandas(rows):
    return pd.DataFrame(rows, columns=["a", "b", "c"])


def _pandas_mixed(rows):
    return _pandas(rows).astype({"a": np.int64, "b": np.float32})


def _pandas_nullable(rows):
    return _pandas(rows).astype("Float64")


def _polars(rows):
    return pl.DataFrame(rows, schema=["a", "b", "c"])


def _csr_matrix(rows):
    return sparse.csr_matrix(rows)


def _csc(rows):
    return sparse.csc_array(rows)


def _coo(rows):
    return sparse.coo_array(rows)


def _csr_unsorted(rows):
    csr = sparse.csr_array(rows)
    for a, b in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        csr.indices[a:b] = csr.indices[a:b][::-1].copy()
        csr.data[a:b] = csr.data[a:b][::-1].copy()
    csr.has_sorted_indices = False
    return csr


def _csr_with_duplicates(rows):
    # Every value as two halves at the same place: SciPy's sum convention.
    csr = sparse.csr_array(rows)
    return sparse.csr_array(
        (
            np.repeat(csr.data / 2.0, 2),
            np.repeat(csr.indices, 2),
            2 * csr.indptr,
        ),
        shape=csr.shape,
    )


def _csr_with_zeros(rows):
    csr = sparse.csr_array(np.where(rows == 0.0, -1.0, rows))
    csr.data[csr.data == -1.0] = 0.0
    return csr


def _csr_wide_indices(rows):
    csr = sparse.csr_array(rows)
    csr.indices, csr.indptr = csr.indices.astype("i8"), csr.indptr.astype("i8")
    return csr


DENSE_FORMS = [
    _fortran,
    _every_other_row,
    _some_columns,
    _backwards,
    _read_only,
    _lists,
    _subclass,
    _pandas,
    _pandas_mixed,
    _pandas_nullable,
    _polars,
]
SPARSE_FORMS = [
    sparse.csr_array,
    _csr_matrix,
    _csc,
    _coo,
    _csr_unsorted,
    _csr_with_duplicates,
    _csr_with_zeros,
    _csr_wide_indices,
]


@pairs("form", DENSE_FORMS + SPARSE_FORMS, ids=lambda form: form.__name__)
def test_every_form(estimator, form, expected):
    rows = form(X)
    model = _fit(estimator, rows)
    np.testing.assert_array_equal(model.labels_, expected[estimator])
    np.testing.assert_array_equal(model.predict(rows), expected[estimator])
    assert model.cost_ == pytest.approx(_fit(estimator, X).cost_, rel=1e-9)
    assert model.cost(rows) == pytest.approx(model.cost_, rel=1e-9)


@both
def test_sparse_input_is_left_as_it_is(estimator):
    for form in (_csr_unsorted, _csr_with_duplicates, _csr_with_zeros):
        rows, before = form(X), form(X)
        model = _fit(estimator, rows)
        model.predict(rows)
        np.testing.assert_array_equal(rows.data, before.data)
        np.testing.assert_array_equal(rows.indices, before.indices)
        np.testing.assert_array_equal(rows.indptr, before.indptr)


@both
def test_dense_input_and_weights_are_left_as_they_are(estimator):
    rows, weights = X.copy(), np.random.default_rng(0).random(len(X))
    before = rows.copy(), weights.copy()
    model = estimator(4, random_state=0).fit(rows, sample_weight=weights)
    model.transform(rows)
    np.testing.assert_array_equal(rows, before[0])
    np.testing.assert_array_equal(weights, before[1])


@both
def test_read_only_weights_init_and_landmarks(estimator):
    weights, start = np.linspace(1.0, 2.0, len(X)), np.array([0, 1, 2, 3])
    for array in (weights, start):
        array.flags.writeable = False
    params = {"init": start}
    if estimator is NystromKMeans:
        params["landmarks"] = _read_only(X[:50])
    model = estimator(4, **params).fit(_read_only(X), sample_weight=weights)
    assert model.cluster_sizes_.sum() == pytest.approx(weights.sum())


@pairs("dtype", [np.uint8, np.float32, np.float64])
def test_memory_map(estimator, dtype, tmp_path, expected):
    np.save(tmp_path / "rows.npy", ROWS.astype(dtype))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = _fit(estimator, rows)
    np.testing.assert_array_equal(model.labels_, expected[estimator])
    np.testing.assert_array_equal(model.predict(rows), expected[estimator])
    # The file may go away; the model stays.
    kept = model.landmarks_ if estimator is NystromKMeans else model.exemplars_
    assert not isinstance(kept, np.memmap)


@pairs(
    "kernel",
    ["rbf", "laplacian", "linear", "cosine", "arc-cosine"],
)
@pytest.mark.filterwarnings("ignore:.*is not positive semi-definite")
def test_dense_and_csr_agree_for_every_kernel(estimator, kernel):
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(4, 30)) * (rng.random((4, 30)) < 0.4) * 4.0
    rows = centres[rng.integers(4, size=300)]
    rows = rows + rng.normal(size=rows.shape) * (rng.random(rows.shape) < 0.1)
    dense = _fit(estimator, rows, kernel=kernel)
    csr = _fit(estimator, sparse.csr_array(rows), kernel=kernel)
    np.testing.assert_array_equal(csr.labels_, dense.labels_)
    assert csr.cost_ == pytest.approx(dense.cost_, rel=1e-7, abs=1e-9)
    assert csr.gamma_ == pytest.approx(dense.gamma_)
    assert sparse.issparse(csr.exemplars_)
    np.testing.assert_allclose(csr.exemplars_.toarray(), dense.exemplars_)


def test_dense_and_csr_agree_through_subsamples_and_blocks():
    rng = np.random.default_rng(4)
    truth = rng.integers(4, size=20_001)
    rows = (CENTRES[truth] + rng.integers(-5, 6, (20_001, 3))).astype(np.float32)
    rows[:, 0] *= rows[:, 0] > 20
    dense = _fit(NystromKMeans, rows, n_landmarks=60)
    csr = _fit(NystromKMeans, sparse.csr_array(rows), n_landmarks=60)
    np.testing.assert_array_equal(csr.labels_, dense.labels_)
    np.testing.assert_array_equal(csr.landmark_indices_, dense.landmark_indices_)


@both
def test_weights_as_list_series_and_scalar(estimator):
    weights = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    plain = estimator(4, random_state=0).fit(X, sample_weight=weights)
    for form in (weights.tolist(), pd.Series(weights), pl.Series(weights)):
        other = estimator(4, random_state=0).fit(X, sample_weight=form)
        assert other.cost_ == plain.cost_
    params = {"init": START_ROWS}
    if estimator is NystromKMeans:
        params["landmarks"] = LANDMARK_ROWS
    doubled = estimator(4, **params).fit(X, sample_weight=2.0)
    once = estimator(4, **params).fit(X)
    assert doubled.cost_ == pytest.approx(once.cost_)
    assert doubled.inertia_ == pytest.approx(2.0 * once.inertia_)


# --- kernels as functions, objects and matrices ---------------------------------


def _rbf(x, z, gamma=0.01):
    return float(np.exp(-gamma * ((x - z) ** 2).sum()))


class Vectorised(Kernel):
    """A kernel of a user's own: rbf, the long way."""

    def __init__(self, gamma=0.01):
        self.gamma = gamma

    def against(self, Z, dtype=None, workers=None):
        def columns(block, out=None):
            values = rbf_kernel(block, Z, gamma=self.gamma).astype(dtype or float)
            if out is None:
                return values
            out[...] = values
            return out

        return columns

    def diagonal(self, rows):
        return np.ones(rows.shape[0])


SAME_KERNEL = {
    "name": {"kernel": "rbf", "gamma": 0.01},
    "params": {"kernel": "rbf", "kernel_params": {"gamma": 0.01}},
    "object": {"kernel": RBF(0.01)},
    "callable": {"kernel": _rbf},
    "callable with params": {"kernel": _rbf, "kernel_params": {"gamma": 0.01}},
    "subclass": {"kernel": Vectorised(0.01)},
}


@pairs("how", SAME_KERNEL)
def test_every_way_to_name_a_kernel(estimator, how):
    rows = X[:60]
    named = _fit(estimator, rows, init=START_ROWS, **SAME_KERNEL["name"])
    model = _fit(estimator, rows, init=START_ROWS, **SAME_KERNEL[how])
    np.testing.assert_array_equal(model.labels_, named.labels_)
    np.testing.assert_array_equal(model.predict(X), named.predict(X))
    assert model.cost_ == pytest.approx(named.cost_, rel=1e-9)
    np.testing.assert_allclose(model.transform(X), named.transform(X), atol=1e-7)


@both
def test_callable_that_is_called_with_the_wrong_parameters(estimator):
    with pytest.raises(TypeError, match="sigma"):
        _fit(estimator, X[:50], kernel=_rbf, kernel_params={"sigma": 1.0})


@both
def test_poly_is_polynomial(estimator):
    for kernel in ("polynomial", "poly"):
        model = _fit(estimator, X / 100, kernel=kernel, degree=2, coef0=0.5, gamma=2.0)
        assert model.kernel_.get_params() == {"gamma": 2.0, "degree": 2, "coef0": 0.5}
    same = _fit(estimator, X / 100, kernel=Polynomial(2.0, 2, 0.5))
    assert same.cost_ == model.cost_


@pairs("name", ["chi2", "additive_chi2"])
@pytest.mark.filterwarnings("ignore:.*is not positive semi-definite")
def test_pairwise_kernels_of_scikit_learn(estimator, name):
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.full(8, 0.3), 4)[rng.integers(4, size=150)]
    rows = rows + 0.01 * rng.random(rows.shape)
    model = estimator(4, kernel=name, random_state=0).fit(rows)
    assert set(model.predict(rows)) <= {0, 1, 2, 3}
    assert np.isfinite(model.cost_)


@both
def test_precomputed_equals_the_kernel_itself(estimator):
    # Given starts and landmarks: a precomputed kernel draws other random numbers.
    start, new = np.array([0, 1, 2, 5]), X[:60] + 0.25
    params = {"init": start}
    if estimator is NystromKMeans:
        params["landmarks"] = LANDMARK_ROWS
    computed = _fit(estimator, X, kernel="rbf", gamma=0.002, **params)
    given = _fit(estimator, rbf_kernel(X, gamma=0.002), kernel="precomputed", **params)
    np.testing.assert_array_equal(given.labels_, computed.labels_)
    assert given.cost_ == pytest.approx(computed.cost_, rel=1e-9)
    assert given.inertia_ == pytest.approx(computed.inertia_, rel=1e-9)
    np.testing.assert_array_equal(given.exemplar_indices_, computed.exemplar_indices_)
    np.testing.assert_allclose(given.dual_coef_, computed.dual_coef_, atol=1e-9)
    new_values = rbf_kernel(new, X, gamma=0.002)
    np.testing.assert_array_equal(given.predict(new_values), computed.predict(new))
    assert given.n_features_in_ == len(X)
    assert not hasattr(given, "exemplars_")


@pairs("init", ["k-means++", "local-search"])
def test_precomputed_finds_the_clusters(estimator, init):
    K = laplacian_kernel(X, gamma=0.02)
    model = _fit(estimator, K, kernel="precomputed", init=init, n_init=10)
    assert adjusted_rand_score(TRUTH, model.labels_) == 1.0


@both
def test_precomputed_takes_weights(estimator):
    weights = np.random.default_rng(5).integers(0, 3, len(X)).astype(float)
    params = {"init": TRUTH, "gamma": 0.002}
    if estimator is NystromKMeans:
        params["landmarks"] = LANDMARK_ROWS
    computed = estimator(4, **params).fit(X, sample_weight=weights)
    params.pop("gamma")
    given = estimator(4, kernel="precomputed", **params).fit(
        rbf_kernel(X, gamma=0.002), sample_weight=weights
    )
    np.testing.assert_array_equal(given.labels_, computed.labels_)
    assert given.cost_ == pytest.approx(computed.cost_, rel=1e-9)


@pairs(
    "form",
    [
        np.asfortranarray,
        _read_only,
        sparse.csr_array,
        lambda K: K.astype(np.float32),
        lambda K: np.rint(1000 * K).astype(np.int64),
        lambda K: np.rint(200 * K).astype(np.uint8),
    ],
    ids=["fortran", "read-only", "csr", "float32", "int64", "uint8"],
)
def test_precomputed_in_every_form(estimator, form):
    K = form(rbf_kernel(X, gamma=0.002))
    model = _fit(estimator, K, kernel="precomputed", init=TRUTH)
    assert adjusted_rand_score(TRUTH, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(K), model.labels_)
    diagonal = K.diagonal().astype(float).mean()
    assert 0.0 < model.cost_ < diagonal


def test_exact_precomputed_fit_leaves_the_matrix_as_it_is():
    K = rbf_kernel(X, gamma=0.002)
    before = K.copy()
    _fit(KernelKMeans, K, kernel="precomputed")
    np.testing.assert_array_equal(K, before)


# --- ways to start --------------------------------------------------------------


@pairs(
    "init",
    [
        "random",
        "k-means++",
        "greedy-k-means++",
        "local-search",
        KMeansPlusPlus(n_candidates=3),
        LocalSearch(n_steps=4),
    ],
    ids=str,
)
def test_every_seeding(estimator, init):
    model = _fit(estimator, X, init=init, n_init=12)
    assert adjusted_rand_score(TRUTH, model.labels_) == 1.0


@pairs(
    "init",
    [
        X[START_ROWS],
        X[START_ROWS].tolist(),
        ROWS[START_ROWS],
        sparse.csr_array(X[START_ROWS]),
        CENTRES,
        START_ROWS,
        START_ROWS.astype(np.uint16),
        TRUTH,
        TRUTH.tolist(),
        pd.Series(TRUTH),
    ],
    ids=[
        *("points", "lists", "integers", "csr", "no rows"),
        *("row numbers", "uint16", "partition", "partition list", "series"),
    ],
)
def test_every_form_of_a_given_start(estimator, init):
    model = estimator(4, init=init).fit(X)
    # Label j is the cluster that started at point j: no relabelling.
    np.testing.assert_array_equal(model.labels_, TRUTH)


@both
def test_as_many_integers_as_rows_and_clusters_are_row_numbers(estimator):
    rows = X[START_ROWS]
    order = np.array([2, 0, 3, 1])
    model = estimator(4, init=order)
    if estimator is NystromKMeans:
        model.set_params(landmarks=rows)
    # Cluster j starts at row order[j]; as a partition the labels would be `order`.
    np.testing.assert_array_equal(model.fit(rows).labels_, np.argsort(order))


@both
def test_sparse_start_for_dense_rows_and_back(estimator):
    points = X[START_ROWS]
    for start, rows in (
        (sparse.csr_array(points), X),
        (points, sparse.csr_array(X)),
    ):
        model = estimator(4, init=start).fit(rows)
        np.testing.assert_array_equal(model.labels_, TRUTH)


def test_linear_start_from_points_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    rows, points = rng.normal(size=(300, 2)), rng.normal(size=(5, 2))
    theirs = KMeans(5, init=points, n_init=1, tol=0.0).fit(rows)
    ours = KernelKMeans(5, kernel="linear", init=points, tol=0.0).fit(rows)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert ours.inertia_ == pytest.approx(theirs.inertia_)


# --- landmarks ------------------------------------------------------------------


@pytest.mark.parametrize(
    "landmarks",
    [
        LANDMARK_ROWS.tolist(),
        LANDMARK_ROWS.astype(np.uint32),
        X[LANDMARK_ROWS].tolist(),
        sparse.csr_array(X[LANDMARK_ROWS]),
        ROWS[LANDMARK_ROWS].astype(np.uint8),
    ],
    ids=["list", "uint32", "lists", "csr", "uint8"],
)
def test_every_form_of_given_landmarks(landmarks):
    reference = _fit(NystromKMeans, X, landmarks=LANDMARK_ROWS)
    model = _fit(NystromKMeans, X, landmarks=landmarks)
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    assert model.cost_ == pytest.approx(reference.cost_, rel=1e-6)
    np.testing.assert_array_equal(model.predict(X), reference.labels_)
    found = model.landmarks_
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_array_equal(found, X[LANDMARK_ROWS])
    if np.ndim(landmarks) == 1:
        np.testing.assert_array_equal(model.landmark_indices_, LANDMARK_ROWS)
    else:
        assert model.landmark_indices_ is None


def test_sparse_landmarks_for_dense_rows_and_back():
    expected = NystromKMeans(4, landmarks=X[LANDMARK_ROWS], random_state=0).fit(X)
    for landmarks, rows in (
        (sparse.csr_array(X[LANDMARK_ROWS]), X),
        (X[LANDMARK_ROWS], sparse.csr_array(X)),
    ):
        for kernel in ("rbf", "laplacian", "linear"):
            model = NystromKMeans(
                4, kernel=kernel, landmarks=landmarks, random_state=0
            ).fit(rows)
            assert adjusted_rand_score(model.labels_, expected.labels_) == 1.0


class Corners:
    """A selector of a user's own."""

    def select(self, rows, kernel, n_landmarks, rng):
        indices = np.arange(n_landmarks)
        return Landmarks(kernel.points(rows, indices), indices)


def test_every_form_of_a_selector():
    named = NystromKMeans(4, n_landmarks=20, random_state=0).fit(X)
    for selector in ("uniform", Uniform(), Uniform(replace=False)):
        model = NystromKMeans(
            4, n_landmarks=20, landmarks=selector, random_state=0
        ).fit(X)
        np.testing.assert_array_equal(model.landmark_indices_, named.landmark_indices_)
    own = NystromKMeans(4, n_landmarks=20, landmarks=Corners(), random_state=0).fit(X)
    np.testing.assert_array_equal(own.landmark_indices_, np.arange(20))
    np.testing.assert_array_equal(own.landmarks_, X[:20])


@pairs("make", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_fitted_attributes_have_their_shapes(estimator, make):
    model = _fit(estimator, make(X))
    assert model.labels_.shape == (400,)
    assert np.issubdtype(model.labels_.dtype, np.integer)
    assert model.cost_path_.shape == (model.n_iter_,)
    assert model.cost_ == min(model.cost_path_)
    assert model.inertia_ == pytest.approx(400 * model.cost_)
    assert model.cluster_sizes_.tolist() == np.bincount(model.labels_).tolist()
    assert model.exemplars_.shape == (4, 3)
    assert model.exemplar_indices_.shape == (4,)
    assert model.n_features_in_ == 3
    # The exemplar is the row nearest to its centre.
    np.testing.assert_array_equal(
        model.transform(make(X)).argmin(axis=0), model.exemplar_indices_
    )
    np.testing.assert_array_equal(model.labels_[model.exemplar_indices_], np.arange(4))


@both
def test_kernel_objects_with_rules_are_not_changed(estimator):
    kernel = Laplacian("median")
    model = _fit(estimator, X, kernel=kernel)
    assert kernel.gamma == "median"
    assert model.gamma_ == model.kernel_.gamma > 0.0
