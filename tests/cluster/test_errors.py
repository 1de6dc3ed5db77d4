"""Bad input gets an error that names the parameter, the value and what is expected."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

from sketchmeans import KernelKMeans, Nystrom, NystromKMeans, SketchedKMeans
from sketchmeans.data.finite import check_finite
from sketchmeans.engine.init import SEEDINGS, KMeansPlusPlus, LocalSearch
from sketchmeans.kernels import KERNELS, RBF
from sketchmeans.landmarks import SELECTORS, Uniform, select_landmarks
from tests.pairs import every_value

ESTIMATORS = [KernelKMeans, NystromKMeans]
both = pytest.mark.parametrize("estimator", ESTIMATORS)

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(size=(20, 2)) + shift for shift in (-9.0, 0.0, 9.0)])
N = len(X)
K = RBF(0.05)(X, X)


def raises(text, kind=ValueError):
    return pytest.raises(kind, match=re.escape(text))


# --- parameters -----------------------------------------------------------------

NOT_POSITIVE_INTEGERS = [0, -1, 1.5, "3", None, True, np.nan]


@every_value
@both
@pytest.mark.parametrize("value", NOT_POSITIVE_INTEGERS)
@pytest.mark.parametrize("name", ["n_clusters", "n_init", "max_iter"])
def test_counts_should_be_positive_integers(estimator, name, value):
    with raises(f"{name}={value!r} should be an integer >= 1"):
        estimator(**{name: value}).fit(X)


@every_value
@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True, np.nan])
@pytest.mark.parametrize("name", ["rank", "n_landmarks"])
def test_nystrom_counts_should_be_positive_integers(name, value):
    with raises(f"{name}={value!r} should be an integer >= 1"):
        NystromKMeans(3, **{name: value}).fit(X)


@every_value
@pytest.mark.parametrize("value", [[3], np.array([1, 2]), "automatic"])
@pytest.mark.parametrize("name", ["n_clusters", "n_init", "n_landmarks"])
def test_arrays_and_words_are_no_counts(name, value):
    with raises(f"{name}={value!r} should be"):
        NystromKMeans(**{name: value}).fit(X)


@every_value
@both
@pytest.mark.parametrize("value", [-1e-3, np.nan, np.inf, "small", None, True])
def test_tol_should_be_a_number(estimator, value):
    with raises(f"tol={value!r} should be a finite number >= 0"):
        estimator(3, tol=value).fit(X)


@every_value
@both
@pytest.mark.parametrize("value", [0, 1.5, "all", True])
def test_n_jobs_should_be_a_nonzero_integer(estimator, value):
    with raises(f"n_jobs={value!r} should be a nonzero integer or None"):
        estimator(3, n_jobs=value).fit(X)


@every_value
@both
@pytest.mark.parametrize(
    "value", ["lots", "2 XB", "-1GB", "1.2.3GB", "", 0, -5, np.nan, np.inf, True, [1]]
)
def test_max_memory_should_be_a_size(estimator, value):
    with raises(f"max_memory={value!r} should be a positive number of bytes"):
        estimator(3, max_memory=value).fit(X)


@every_value
@both
@pytest.mark.parametrize("value", [-1, 1.5, "seed", [1, 2]])
def test_random_state(estimator, value):
    with raises(f"random_state={value!r} should be None, a non-negative integer"):
        estimator(3, random_state=value).fit(X)


@every_value
@both
@pytest.mark.parametrize("value", ["loud", -1, None, 1.5])
def test_verbose(estimator, value):
    with raises(f"verbose={value!r} should be an integer >= 0"):
        estimator(3, verbose=value).fit(X)


@pytest.mark.parametrize("value", ["turbo", "auto", None, 1, ["full"]])
def test_algorithm_lists_the_known_ones(value):
    with raises(f"algorithm={value!r} should be one of ['progressive', 'full']"):
        NystromKMeans(3, algorithm=value).fit(X)


@every_value
@both
@pytest.mark.parametrize("value", ["gauss", "RBF", None, 3, ["rbf"]])
def test_kernel_lists_the_known_ones(estimator, value):
    with raises(f"kernel={value!r} should be one of [") as caught:
        estimator(3, kernel=value).fit(X)
    for name in [*KERNELS, "additive_chi2"]:
        assert repr(name) in str(caught.value)
    assert "a callable or a Kernel object" in str(caught.value)


@every_value
@both
@pytest.mark.parametrize("value", ["kmeans", "K-means++", None, 3])
def test_init_lists_the_known_ones(estimator, value):
    with raises(f"init={value!r} should be one of [") as caught:
        estimator(3, init=value).fit(X)
    for name in SEEDINGS:
        assert repr(name) in str(caught.value)


@every_value
@pytest.mark.parametrize("estimator", [*ESTIMATORS, SketchedKMeans])
@pytest.mark.parametrize("n_clusters", [1, 3])
@pytest.mark.parametrize(
    ("seeding", "text"),
    [
        (KMeansPlusPlus(n_candidates=0), "n_candidates=0 should be an integer >= 1"),
        (KMeansPlusPlus(n_candidates=1.5), "n_candidates=1.5 should be an integer"),
        (KMeansPlusPlus(n_candidates="many"), "n_candidates='many' should be an"),
        (LocalSearch(n_steps=-1), "n_steps=-1 should be an integer >= 0"),
        (LocalSearch(n_steps=True), "n_steps=True should be an integer >= 0"),
        (LocalSearch(n_steps=None), "n_steps=None should be an integer >= 0"),
    ],
)
def test_parameters_of_a_seeding_are_checked(estimator, n_clusters, seeding, text):
    with raises(text):
        estimator(n_clusters, init=seeding).fit(X)


@pytest.mark.parametrize(
    "selector",
    [
        Uniform(replace="no"),
        SELECTORS["leverage"]().set_params(replace=1),
        SELECTORS["k-means++"]().set_params(refine="no"),
        SELECTORS["rpcholesky"]().set_params(accelerated=None),
    ],
    ids=repr,
)
def test_flags_of_a_selector_are_true_or_false(selector):
    with raises("should be True or False."):
        NystromKMeans(3, n_landmarks=9, landmarks=selector).fit(X)


def test_landmarks_list_the_known_ones():
    with raises("landmarks='unifrom' should be one of [") as caught:
        NystromKMeans(3, landmarks="unifrom").fit(X)
    for name in SELECTORS:
        assert repr(name) in str(caught.value)
    assert "row numbers" in str(caught.value)


@every_value
@both
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial", "chi2"])
@pytest.mark.parametrize(
    "value", ["automatic", "Mean", None, [1.0], np.array([1.0, 2.0])]
)
def test_gamma_lists_the_known_rules(estimator, kernel, value):
    text = f"gamma={value!r} should be a positive number, 'mean', 'median' or 'scale'"
    with raises(text):
        estimator(3, kernel=kernel, gamma=value).fit(np.abs(X))


@every_value
@both
@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf])
def test_gamma_should_be_positive(estimator, value):
    with raises(f"gamma={value!r} should be a positive finite number"):
        estimator(3, gamma=value).fit(X)


@both
def test_gamma_median_has_no_meaning_without_a_distance(estimator):
    with raises("gamma='median' is defined for the rbf and laplacian kernels"):
        estimator(3, kernel="polynomial", gamma="median").fit(X)


@every_value
@both
@pytest.mark.parametrize("name", ["degree", "coef0"])
@pytest.mark.parametrize("value", ["high", None, np.nan, np.inf])
def test_degree_and_coef0_should_be_numbers(estimator, name, value):
    with raises(f"{name}={value!r} should be"):
        estimator(3, kernel="polynomial", **{name: value}).fit(X)


def _dot(x, z):
    return float(x @ z)


@every_value
@both
@pytest.mark.parametrize("kernel", [_dot, RBF(1.0)], ids=["callable", "Kernel"])
@pytest.mark.parametrize("given", [{"gamma": 0.5}, {"degree": 2}, {"coef0": 0.0}])
def test_kernel_numbers_go_with_names_only(estimator, kernel, given):
    ((name, value),) = given.items()
    with raises(f"{name}={value!r}") as caught:
        estimator(3, kernel=kernel, **given).fit(X)
    assert "should be left at their defaults with a callable or a Kernel object" in (
        str(caught.value)
    )


@both
def test_kernel_params_do_not_go_with_a_kernel_object(estimator):
    with raises("kernel_params={'gamma': 2} should be None with a Kernel object"):
        estimator(3, kernel=RBF(1.0), kernel_params={"gamma": 2}).fit(X)


@every_value
@both
@pytest.mark.parametrize(
    ("kernel", "params", "text"),
    [
        ("rbf", {"sigma": 2.0}, "kernel_params has ['sigma'], which kernel='rbf'"),
        ("linear", {"b": 1, "a": 1}, "kernel_params has ['a', 'b'], which kernel="),
        ("additive_chi2", {"gamma": 1.0}, "kernel_params has ['gamma'], which kernel="),
    ],
)
def test_unknown_kernel_params(estimator, kernel, params, text):
    with (
        warnings.catch_warnings(),
        raises(text) as caught,
    ):
        warnings.simplefilter("ignore")  # additive_chi2 is indefinite
        estimator(3, kernel=kernel, kernel_params=params).fit(np.abs(X))
    assert "it takes [" in str(caught.value)


@both
def test_arc_cosine_order(estimator):
    with raises("order=3 should be 0, 1 or 2"):
        estimator(3, kernel="arc-cosine", kernel_params={"order": 3}).fit(X)


@every_value
@both
@pytest.mark.parametrize("kernel", ["chi2", "additive_chi2"])
@pytest.mark.filterwarnings("ignore:.*is not positive semi-definite")
def test_chi2_needs_non_negative_features(estimator, kernel):
    with raises("X contains negative values"):
        estimator(3, kernel=kernel).fit(X)


@every_value
@both
@pytest.mark.parametrize("kernel", ["sigmoid", "additive_chi2"])
def test_indefinite_kernels_warn(estimator, kernel):
    # Two restarts suffice to see the warning; no landmark matrix is inverted exactly.
    with pytest.warns(UserWarning, match="is not positive semi-definite"):
        estimator(2, kernel=kernel, random_state=0).fit(np.abs(X) / 10)


# --- rows -----------------------------------------------------------------------


@every_value
@both
@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (np.array, np.float64),
        (np.array, np.float32),
        (np.array, np.float16),
        (sparse.csr_array, np.float64),
        (sparse.csr_matrix, np.float32),
    ],
)
@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_fit_names_the_row_that_is_not_finite(estimator, make, dtype, value, word):
    bad = X.astype(dtype)
    bad[37, 1] = value
    with raises(f"Input X contains {word} (row 37, column 1)"):
        estimator(3, random_state=0).fit(make(bad))


@every_value
@both
@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("method", ["predict", "transform", "score", "cost"])
def test_prediction_names_the_row_that_is_not_finite(estimator, make, method):
    model = estimator(3, random_state=0).fit(make(X))
    bad = X.copy()
    bad[11, 0] = np.nan
    with raises("Input X contains NaN (row 11, column 0)"):
        getattr(model, method)(make(bad))


def _sparse_frame(values, names):
    return pd.DataFrame(values, columns=names).astype(pd.SparseDtype(float, 0.0))


FRAMES = {
    "pandas": lambda values, names: pd.DataFrame(values, columns=names),
    "nullable": lambda values, names: pd.DataFrame(
        values, columns=names
    ).convert_dtypes(),
    "sparse": _sparse_frame,
    "polars": lambda values, names: pl.DataFrame(values, schema=names),
    "arrow": lambda values, names: pa.table(list(values.T), names=names),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_the_column_of_a_dataframe_is_named(make):
    bad = X.copy()
    bad[11, 1] = np.nan
    table, good = make(bad, ["size", "price"]), make(X, ["size", "price"])
    said = "Input X contains NaN (row 11, column 'price')"
    for fresh in (NystromKMeans(3), KernelKMeans(3), SketchedKMeans(3), Nystrom()):
        with raises(said):
            fresh.fit(table)
    model = NystromKMeans(3, random_state=0).fit(good)
    for method in (model.predict, model.transform, model.cost, model.partial_fit):
        with raises(said):
            method(table)
    with raises(said):
        select_landmarks(table, 5)
    years = pd.DataFrame(bad, columns=[2019, 2020])
    with raises("Input X contains NaN (row 11, column 2020)"):
        model.fit(years)


def test_wrong_names_are_told_before_wrong_values():
    model = NystromKMeans(3, random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]))
    with raises("The feature names should match"):
        model.predict(pd.DataFrame(X * np.nan, columns=["a", "c"]))


@every_value
@both
@pytest.mark.parametrize("kernel", ["rbf", "linear", "cosine", "laplacian", "poly"])
@pytest.mark.parametrize("gamma", [0.5, "mean"])
@pytest.mark.filterwarnings("ignore:.*does not use gamma")
def test_every_kernel_sees_what_is_not_finite(estimator, kernel, gamma):
    bad = X.copy()
    bad[41, 0] = np.inf
    with raises("Input X contains infinity (row 41, column 0)"):
        estimator(3, kernel=kernel, gamma=gamma, random_state=0).fit(bad)


@every_value
@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "params",
    [
        {"gamma": 0.5},  # no pass over the rows sets the bandwidth
        {"gamma": "mean"},
        {"gamma": "median"},
        {"gamma": 0.5, "algorithm": "full", "init": "random", "n_init": 1},
        {"gamma": 0.5, "init": np.array([0, 1, 2])},
        {"kernel": "linear"},
    ],
    ids=lambda params: "-".join(map(str, params.values())),
)
def test_nan_in_one_late_row_is_found(make, params):
    # The last row is in the last block, and in no subsample of these seeds.
    table = np.random.default_rng(1).normal(size=(20_001, 3))
    table[:3] += [[0.0], [9.0], [-9.0]]
    table[-1, 2] = np.nan
    model = NystromKMeans(3, n_landmarks=20, random_state=0, **params)
    with raises("Input X contains NaN (row 20000, column 2)"):
        model.fit(make(table))


def test_late_nan_is_found_by_predict_and_cost():
    table = np.random.default_rng(1).normal(size=(20_001, 3))
    model = NystromKMeans(3, n_landmarks=20, random_state=0).fit(table)
    table[-1, 0] = np.inf
    for method in (model.predict, model.cost):
        with raises("Input X contains infinity (row 20000, column 0)"):
            method(table)


def test_large_finite_values_are_not_called_infinite():
    # Their sum overflows float32; they do not.
    table = np.array([[3e38], [3e38], [3e38], [-3e38]], dtype=np.float32)
    check_finite(table)
    with raises("Input X contains infinity (row 1, column 0)"):
        check_finite(np.array([[3e38], [np.inf]], dtype=np.float32))


# NumPy tells of the overflow as well, in whichever thread it happens.
@every_value
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@both
@pytest.mark.parametrize(
    ("kernel", "scale", "dtype"),
    [
        ("linear", 1e200, np.float64),
        ("polynomial", 1e25, np.float32),
        ("polynomial", 1e80, np.float64),
    ],
)
def test_values_whose_kernel_overflows(estimator, kernel, scale, dtype):
    with raises("kernel values overflow. Scale the features"):
        estimator(3, kernel=kernel, random_state=0).fit((X * scale).astype(dtype))


@every_value
@both
@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (np.empty((0, 2)), "Found array with 0 sample(s)"),
        (np.empty((5, 0)), "Found array with 0 feature(s)"),
        (sparse.csr_array((0, 2)), "Found array with 0 sample(s)"),
        (np.ones(5), "Expected 2D array, got 1D array"),
        (np.ones((2, 2, 2)), "Found array with dim 3"),
        (np.float64(3.0), "Expected 2D array, got scalar array"),
    ],
    ids=["rows", "columns", "csr", "1-D", "3-D", "scalar"],
)
def test_shapes(estimator, rows, text):
    with raises(text):
        estimator(1).fit(rows)


@every_value
@both
@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (np.array([["a", "b"], ["c", "d"]]), "numeric"),
        (np.array([["a", 1], ["c", 2]], object), "could not convert string to float"),
        (np.array([[{}, 1], [{}, 2]], object), "dict"),
        (np.array([[1j, 2], [3, 4]]), "Complex data not supported"),
        (None, "Expected 2D array, got scalar array"),
    ],
    ids=["strings", "object", "dicts", "complex", "None"],
)
def test_types(estimator, rows, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        estimator(1).fit(rows)


@every_value
@both
@pytest.mark.parametrize("dtype", ["datetime64[D]", "timedelta64[D]"])
def test_dates_are_no_numbers(estimator, dtype):
    with pytest.raises((ValueError, TypeError), match=r"datetime64|timedelta64|dtype"):
        estimator(2).fit(np.arange(10).reshape(5, 2).astype(dtype))


@both
def test_more_clusters_than_rows(estimator):
    with raises("n_samples=5 should be >= n_clusters=8."):
        estimator(8).fit(X[:5])
    with raises("n_samples=1 should be >= n_clusters=2."):
        estimator(2).fit(X[:1])


@both
def test_one_row_makes_one_cluster(estimator):
    model = estimator(1, random_state=0).fit(X[:1])
    assert model.labels_.tolist() == [0]
    assert model.cost_ == pytest.approx(0.0, abs=1e-12)
    assert model.exemplar_indices_.tolist() == [0]


def test_more_landmarks_than_rows():
    with raises(f"n_landmarks=61 should be <= n_samples={N}."):
        NystromKMeans(3, n_landmarks=61).fit(X)


@every_value
@both
@pytest.mark.parametrize("method", ["predict", "transform", "score", "cost"])
def test_not_fitted(estimator, method):
    text = f"This {estimator.__name__} instance is not fitted yet"
    with raises(text, NotFittedError):
        getattr(estimator(3), method)(X)


# --- weights --------------------------------------------------------------------


def _weights(position, value):
    weights = np.ones(N)
    weights[position] = value
    return weights


BAD_WEIGHTS = {
    "negative": (_weights(7, -1.0), "sample_weight[7]=-1.0 should be"),
    "nan": (_weights(8, np.nan), "sample_weight[8]=nan should be"),
    "infinite": (_weights(9, np.inf), "sample_weight[9]=inf should be"),
    "zero": (np.zeros(N), "sample_weight is zero for every row"),
    "short": (np.ones(3), f"sample_weight.shape=(3,) should be ({N},)"),
    "table": (np.ones((N, 1)), f"sample_weight.shape=({N}, 1) should be ({N},)"),
    "empty": ([], f"sample_weight.shape=(0,) should be ({N},)"),
    "words": (["heavy"] * N, "sample_weight"),
    "complex": (np.ones(N) * 1j, "sample_weight"),
    "none": ([None] * N, "sample_weight"),
}


@every_value
@both
@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights(estimator, case):
    weights, text = BAD_WEIGHTS[case]
    with raises(text):
        estimator(3, random_state=0).fit(X, sample_weight=weights)


@every_value
@both
@pytest.mark.parametrize("method", ["score", "cost"])
@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights_of_new_rows(estimator, method, case):
    weights, text = BAD_WEIGHTS[case]
    model = estimator(3, random_state=0).fit(X)
    with raises(text):
        getattr(model, method)(X, sample_weight=weights)


# That there are as few landmarks is told as well.
@pytest.mark.filterwarnings("ignore:Only 2 landmarks")
@both
def test_fewer_weighted_rows_than_clusters(estimator):
    # A row of weight 0 is no row: two rows cannot fill three clusters.
    weights = np.zeros(N)
    weights[[0, 30]] = 1.0
    model = estimator(3, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(2\) found"):
        model.fit(X, sample_weight=weights)
    assert sorted(model.cluster_sizes_) == [0.0, 1.0, 1.0]
    assert model.converged_


# --- init and landmarks ---------------------------------------------------------

PARTITION = np.arange(N) // 20


@every_value
@both
@pytest.mark.parametrize(
    ("init", "text"),
    [
        (X[:4], "init of shape (4, 2) and type float64 should be points of shape (3, "),
        (X[:2], "init of shape (2, 2)"),
        (np.ones((3, 5)), "init.shape=(3, 5) should have 2 columns, as X has."),
        (sparse.csr_array(np.ones((3, 5))), "init.shape=(3, 5) should have 2 columns"),
        (np.ones((3, 2, 1)), "init of shape (3, 2, 1)"),
        (
            np.array([[0, np.nan], [1, 1], [2, 2]]),
            "init contains NaN (row 0, column 1)",
        ),
        (np.array([[0, 1], [1, 1], [np.inf, 2]]), "init contains infinity (row 2,"),
        (np.array([["a", "b"]] * 3), "init of shape (3, 2) and type <U1"),
        (np.array([0, 1, N]), f"row numbers from 0 to {N}; they should lie in 0..59"),
        (np.array([-1, 1, 2]), "row numbers from -1 to 2; they should lie in 0..59"),
        (np.array([0.0, 1.0, 2.0]), "init of shape (3,) and type float64"),
        (np.array([0, 1]), "init of shape (2,) and type int64"),
        (np.array([], dtype=int), "init of shape (0,)"),
        (np.minimum(PARTITION, 1), "partition with the labels [0, 1]; it should use"),
        (PARTITION + 1, "partition with the labels [1, 2, 3]; it should use every"),
        (PARTITION.astype(float), f"init of shape ({N},) and type float64"),
        (PARTITION == 1, f"init of shape ({N},) and type bool"),
        (["k-means++"] * 3, "init of shape (3,) and type <U9"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
def test_bad_init_arrays(estimator, init, text):
    with raises(text) as caught:
        estimator(3, init=init).fit(X)
    assert "init" in str(caught.value)


@both
def test_partition_with_a_cluster_of_weightless_rows(estimator):
    weights = (PARTITION != 1).astype(float)
    with raises("init gives cluster 1 only rows with sample_weight 0"):
        estimator(3, init=PARTITION).fit(X, sample_weight=weights)


@both
def test_restarts_from_a_given_start_warn(estimator):
    with pytest.warns(RuntimeWarning, match="performing only one init .* n_init=5"):
        estimator(3, init=PARTITION, n_init=5).fit(X)
    estimator(3, init=PARTITION, n_init=1).fit(X)  # no warning


@pytest.mark.parametrize(
    ("landmarks", "text"),
    [
        (np.ones((5, 3)), "landmarks of shape (5, 3) and type float64 should be"),
        (np.empty((0, 2)), "landmarks of shape (0, 2)"),
        (np.ones((2, 2, 2)), "landmarks of shape (2, 2, 2)"),
        (np.array([[np.nan, 0.0]]), "landmarks contains NaN (row 0, column 0)"),
        (np.array([["a", "b"]]), "landmarks of shape (1, 2) and type <U1"),
        ([0, 1, N], f"landmarks holds row numbers from 0 to {N}; they should lie in "),
        ([-1, 3], "landmarks holds row numbers from -1 to 3; they should lie in 0..59"),
        ([], "landmarks of shape (0,)"),
        ([0.0, 1.0], "landmarks of shape (2,) and type float64"),
        (np.zeros(N, bool), f"landmarks of shape ({N},) and type bool"),
        (None, "landmarks of shape () and type object"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
def test_bad_landmark_arrays(landmarks, text):
    with raises(text):
        NystromKMeans(3, landmarks=landmarks).fit(X)


def test_number_of_given_landmarks():
    with raises("n_landmarks=4 should be 'auto' or the number of given landmarks, 3"):
        NystromKMeans(3, landmarks=[0, 20, 40], n_landmarks=4).fit(X)
    NystromKMeans(3, landmarks=[0, 20, 40], n_landmarks=3, init=PARTITION).fit(X)


# --- precomputed kernels --------------------------------------------------------


@both
def test_precomputed_should_be_square(estimator):
    with raises(f"X.shape=({N}, 20) should be square with kernel='precomputed'"):
        estimator(3, kernel="precomputed").fit(K[:, :20])


@both
def test_precomputed_should_be_symmetric(estimator):
    lopsided = K.copy()
    lopsided[3, 20:] += 0.5
    with raises("kernel matrix should be symmetric; entries differ from their mirror"):
        model = estimator(3, kernel="precomputed")
        if estimator is NystromKMeans:
            model.set_params(n_landmarks=N)  # it looks at k(Z, Z) only
        model.fit(lopsided)


@both
def test_precomputed_symmetry_allows_rounding(estimator):
    noisy = K.astype(np.float32)
    noisy *= 1.0 + 1e-6 * np.random.default_rng(0).normal(size=K.shape)
    estimator(3, kernel="precomputed", random_state=0).fit(noisy)


@every_value
@both
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
@pytest.mark.parametrize("position", [(44, 2), (44, 44)])
def test_precomputed_should_be_finite(estimator, value, word, position):
    bad = K.copy()
    bad[position] = bad[position[::-1]] = value
    with raises(f"Input X contains {word}"):
        estimator(3, kernel="precomputed", random_state=0).fit(bad)


@every_value
@both
@pytest.mark.parametrize("method", ["transform", "score", "cost"])
def test_precomputed_does_not_know_new_norms(estimator, method):
    model = estimator(3, kernel="precomputed", random_state=0).fit(K)
    with raises('kernel="precomputed" does not know k(x, x) of new rows'):
        getattr(model, method)(K[:5])
    np.testing.assert_array_equal(model.predict(K[:5]), model.labels_[:5])


@both
def test_precomputed_predict_wants_all_training_columns(estimator):
    model = estimator(3, kernel="precomputed", random_state=0).fit(K)
    with raises(
        f"X has 7 features, but {estimator.__name__} is expecting {N} features"
    ):
        model.predict(K[:5, :7])


@both
def test_precomputed_has_no_points(estimator):
    with raises("init should be row numbers or a partition with kernel='precomputed'"):
        estimator(3, kernel="precomputed", init=K[:3]).fit(K)


def test_precomputed_landmarks_are_row_numbers():
    with raises("landmarks should be row numbers with kernel='precomputed'"):
        NystromKMeans(3, kernel="precomputed", landmarks=K[:3]).fit(K)


# --- degenerate rows work or warn -----------------------------------------------


@every_value
@pytest.mark.filterwarnings("ignore:Only 1 landmarks")
@both
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "cosine"])
def test_constant_rows_warn_and_cost_nothing(estimator, kernel):
    model = estimator(3, kernel=kernel, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(1\) found"):
        model.fit(np.full((50, 4), 7.0))
    assert model.cost_ == pytest.approx(0.0, abs=1e-9)
    assert sorted(model.cluster_sizes_) == [0.0, 0.0, 50.0]
    assert len(set(model.labels_)) == 1


@both
def test_constant_rows_make_one_cluster_without_a_word(estimator):
    model = estimator(1, random_state=0)
    if estimator is NystromKMeans:
        model.set_params(n_landmarks=1)
    model.fit(np.full((50, 4), 7.0))
    assert model.cost_ == pytest.approx(0.0, abs=1e-12)
    assert model.converged_


@both
def test_too_few_distinct_rows_converge_at_cost_zero(estimator):
    rows = np.repeat([[0.0, 0.0], [4.0, 0.0]], 25, axis=0)
    model = estimator(4, random_state=0)
    with pytest.warns() as caught:
        model.fit(rows)
    assert model.cost_ == pytest.approx(0.0, abs=1e-12)
    assert sorted(model.cluster_sizes_) == [0.0, 0.0, 25.0, 25.0]
    # The cost cannot fall below zero: there is nothing left to converge to.
    assert model.converged_
    assert model.n_iter_ < 5
    assert not [w for w in caught if "No convergence" in str(w.message)]


@both
def test_repeated_rows_make_their_clusters(estimator):
    rows = np.repeat([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]], [5, 30, 15], axis=0)
    model = estimator(3, random_state=0)
    if estimator is NystromKMeans:
        model.set_params(n_landmarks=3)
    model.fit(rows)
    assert sorted(model.cluster_sizes_) == [5.0, 15.0, 30.0]
    assert model.cost_ == pytest.approx(0.0, abs=1e-12)


def test_fewer_distinct_rows_than_landmarks_warn():
    rows = np.repeat(X[::6], 3, axis=0)
    model = NystromKMeans(3, n_landmarks=25, random_state=0)
    with pytest.warns(
        UserWarning, match="Only 10 landmarks were chosen of n_landmarks="
    ):
        model.fit(rows)
    assert len(model.landmarks_) == 10


def test_one_landmark_too_many_for_distinct_rows_without_replacement_only():
    rows = np.repeat(X[::6], 3, axis=0)
    with_replacement = Uniform(replace=True)
    model = NystromKMeans(3, n_landmarks=25, landmarks=with_replacement, random_state=0)
    assert len(model.fit(rows).landmarks_) == 25


@both
def test_constant_column_changes_nothing(estimator):
    wide = np.column_stack([X, np.full(N, 3.0)])
    plain = estimator(3, random_state=0).fit(X)
    found = estimator(3, random_state=0).fit(wide)
    # Products of another width are rounded in another way, and so are seeds drawn.
    assert adjusted_rand_score(found.labels_, plain.labels_) == 1.0
    assert found.cost_ == pytest.approx(plain.cost_, rel=1e-12)


@both
def test_no_convergence_warns(estimator):
    rows = np.random.default_rng(0).normal(size=(300, 3))
    model = estimator(6, max_iter=2, tol=0.0, init="random", n_init=1, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match="No convergence after max_iter=2 passes"
    ):
        model.fit(rows)
    assert not model.converged_
    assert model.n_iter_ == 2


# --- a failed fit ---------------------------------------------------------------


OTHER = np.random.default_rng(0).normal(size=(500, 5))


def _fail_by_parameter(model):
    model.set_params(max_iter=0).fit(OTHER)


def _fail_by_type(model):
    model.fit(np.full((10, 5), "a"))


def _fail_by_memory(model):
    model.set_params(max_memory=1).fit(OTHER)


def _fail_by_nan(model):
    late = OTHER.copy()
    late[-1, -1] = np.nan
    model.set_params(gamma=2.0, init="random").fit(late)


def _fail_by_init(model):
    model.set_params(gamma=2.0, init=np.ones((3, 4))).fit(OTHER)


def _fail_by_weights(model):
    model.fit(OTHER, sample_weight=np.zeros(len(OTHER)))


class _Interrupt:
    """A callback that presses Ctrl-C after the first pass."""

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "iteration":
            raise KeyboardInterrupt


def _fail_by_interrupt(model):
    model.set_callbacks(_Interrupt()).set_params(gamma=3.0).fit(X * 2.0)


FAILURES = [
    _fail_by_parameter,
    _fail_by_type,
    _fail_by_memory,
    _fail_by_nan,
    _fail_by_init,
    _fail_by_weights,
    _fail_by_interrupt,
]
EXCEPTIONS = (ValueError, TypeError, MemoryError, KeyboardInterrupt)

# scikit-learn's own validation sets these two before a fit can fail.
SET_BY_VALIDATION = {"n_features_in_", "feature_names_in_"}


def _fitted_names(model):
    return {name for name in vars(model) if name.endswith("_")}


@every_value
@both
@pytest.mark.parametrize("fail", FAILURES, ids=lambda f: f.__name__)
def test_failed_first_fit_is_no_fit(estimator, fail):
    model = estimator(3, random_state=0)
    with pytest.raises(EXCEPTIONS):
        fail(model)
    with pytest.raises(NotFittedError):
        model.predict(np.ones((2, getattr(model, "n_features_in_", 2))))
    assert _fitted_names(model) <= SET_BY_VALIDATION


@every_value
@both
@pytest.mark.parametrize("fail", FAILURES, ids=lambda f: f.__name__)
def test_failed_second_fit_leaves_the_first_or_none(estimator, fail):
    model = estimator(3, random_state=0).fit(X)
    before = {name: getattr(model, name) for name in _fitted_names(model)}
    with pytest.raises(EXCEPTIONS):
        fail(model)
    if _fitted_names(model) <= SET_BY_VALIDATION:
        with pytest.raises(NotFittedError):
            model.predict(X)
        return
    assert _fitted_names(model) == set(before)
    for name, value in before.items():
        if name != "kernel_":
            assert np.array_equal(getattr(model, name), value), name
    assert model.kernel_.gamma == before["gamma_"]
    np.testing.assert_array_equal(model.predict(X), before["labels_"])
    assert model.cost(X) == pytest.approx(before["cost_"])
