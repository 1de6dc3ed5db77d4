"""The estimators against oracles: exact limits, brute force, definitions, laws."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from sketchmeans import KernelKMeans, NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.engine.subsample import Chances, nested_subsample, subsample_sizes
from sketchmeans.kernels import as_kernel
from sketchmeans.numerics.linalg import TIE_TOLERANCE, relative_cut
from sketchmeans.numerics.parallel import Workers
from tests import oracles
from tests.pairs import every_value

LEVEL = 1e-3

#: What the user types, and the naive kernel with its parameters.
KERNELS = {
    "rbf": ({"gamma": 0.4}, oracles.rbf, {"gamma": 0.4}),
    "laplacian": ({"gamma": 0.4}, oracles.laplacian, {"gamma": 0.4}),
    "polynomial": (
        {"gamma": 0.3, "degree": 2, "coef0": 0.5},
        oracles.polynomial,
        {"gamma": 0.3, "degree": 2, "coef0": 0.5},
    ),
    "linear": ({}, oracles.linear, {}),
    "cosine": ({}, oracles.cosine, {}),
    "arc-cosine": ({}, oracles.arc_cosine, {"order": 1}),
    "chi2": ({"gamma": 0.4}, oracles.chi2, {"gamma": 0.4}),
}

every_kernel = pytest.mark.parametrize("kernel", KERNELS)
both_estimators = pytest.mark.parametrize("estimator", [KernelKMeans, NystromKMeans])


@cache
def rows(seed=0, n=60, d=3):
    """Return overlapping groups, so that Lloyd's algorithm has something to do."""
    rng = np.random.default_rng(seed)
    centres = 1.2 * rng.normal(size=(4, d))
    X = centres[rng.integers(4, size=n)] + 0.8 * rng.normal(size=(n, d))
    X = np.abs(X)  # for the chi2 kernel
    return X


@cache
def naive_gram(kernel, seed=0, n=60):
    _, oracle, params = KERNELS[kernel]
    K = oracles.kernel_matrix(oracle, rows(seed, n), rows(seed, n), **params)
    K.setflags(write=False)
    return K


def naive_kernel(kernel, X, Z):
    _, oracle, params = KERNELS[kernel]
    return oracles.kernel_matrix(oracle, X, Z, **params)


def params_of(kernel, **others):
    """Return the estimator's parameters for a kernel, to run on one thread."""
    return {"kernel": kernel, **KERNELS[kernel][0], "n_jobs": 1, **others}


def start_rows(k, seed, n=60):
    return np.random.default_rng([seed, 1]).choice(n, k, replace=False)


def start_partition(k, seed, n=60):
    return np.random.default_rng([seed, 2]).permutation(np.arange(n) % k)


def clear_rows(K, alpha):
    """Return the rows whose two nearest centres are no tie."""
    norms = np.einsum("ij,il,lj->j", alpha, K, alpha)
    distances = np.sort(np.diagonal(K)[:, None] - 2.0 * K @ alpha + norms, axis=1)
    return distances[:, 1] - distances[:, 0] > TIE_TOLERANCE * np.diagonal(K).max()


# --- exact limits ---------------------------------------------------------------------


@every_value(
    kernel=KERNELS,
    start=[start_rows, start_partition],
    seed=range(3),
    weighted=[False, True],
)
def test_all_rows_as_landmarks_is_exact_kernel_kmeans(kernel, start, seed, weighted):
    X, K, k = rows(seed), naive_gram(kernel, seed), 4
    init = start(k, seed)
    weights = np.random.default_rng(seed).integers(1, 5, 60) if weighted else None
    settings = params_of(kernel, n_clusters=k, init=init, tol=0.0)
    exact = KernelKMeans(**settings).fit(X, sample_weight=weights)
    nystrom = NystromKMeans(landmarks=np.arange(60), **settings)
    nystrom.fit(X, sample_weight=weights)
    clear = clear_rows(K, exact.dual_coef_)
    assert clear.sum() >= 57
    np.testing.assert_array_equal(exact.labels_[clear], nystrom.labels_[clear])
    assert nystrom.cost_ == pytest.approx(exact.cost_, rel=1e-7)
    np.testing.assert_allclose(nystrom.cost_path_, exact.cost_path_, rtol=1e-7)


def assert_exact_with_all_landmarks(kernel, seed, init):
    """Compare both estimators from the same start."""
    X = rows(seed)
    settings = params_of(kernel, n_clusters=len(init), init=init, tol=0.0)
    exact = KernelKMeans(**settings).fit(X)
    nystrom = NystromKMeans(landmarks=np.arange(60), **settings).fit(X)
    clear = clear_rows(naive_gram(kernel, seed), exact.dual_coef_)
    np.testing.assert_array_equal(exact.labels_[clear], nystrom.labels_[clear])
    assert nystrom.cost_ == pytest.approx(exact.cost_, rel=1e-7)


def points_near(seed, outside):
    """Return four points at or near rows."""
    rng = np.random.default_rng(seed)
    return rows(seed)[start_rows(4, seed)] + outside * rng.random((4, 3))


def first_partition(kernel, seed, points):
    B = naive_kernel(kernel, rows(seed), points)
    norms = np.diagonal(naive_kernel(kernel, points, points))
    return (norms - 2.0 * B).argmin(axis=1)


given_points = pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "polynomial", "linear"]
)


@every_value
@given_points
@pytest.mark.parametrize("outside", [0.0, 0.3], ids=["rows", "elsewhere"])
@pytest.mark.parametrize("seed", range(4))
def test_all_rows_as_landmarks_is_exact_from_given_points(kernel, outside, seed):
    points = points_near(seed, outside)
    assert len(set(first_partition(kernel, seed, points).tolist())) == 4
    assert_exact_with_all_landmarks(kernel, seed, points)


@given_points
def test_all_rows_as_landmarks_is_exact_when_points_have_no_rows(kernel):
    points = points_near(1, 1.0)
    assert len(set(first_partition(kernel, 1, points).tolist())) < 4
    assert_exact_with_all_landmarks(kernel, 1, points)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "arc-cosine"])
def test_landmark_order_and_repeated_landmarks_do_not_matter(kernel):
    X = rows()
    settings = params_of(kernel, n_clusters=4, init=start_rows(4, 0), tol=0.0)
    plain = NystromKMeans(landmarks=np.arange(15), **settings).fit(X)
    mixed = np.r_[14:-1:-1, 3, 3, 7]
    other = NystromKMeans(landmarks=mixed, **settings).fit(X)
    np.testing.assert_array_equal(plain.labels_, other.labels_)
    assert other.cost_ == pytest.approx(plain.cost_, rel=1e-8)


@every_value(
    kernel=KERNELS,
    start=[start_rows, start_partition],
    seed=range(3),
    weighted=[False, True],
)
def test_exact_equals_naive_lloyd_pass_by_pass(kernel, start, seed, weighted):
    X, K, k = rows(seed), naive_gram(kernel, seed), 4
    init = start(k, seed)
    weights = np.random.default_rng(seed).integers(1, 5, 60) if weighted else None
    alpha = (
        oracles.at_rows(60, init)
        if start is start_rows
        else oracles.of_partition(init, k, weights)
    )
    labels, path, gaps = oracles.gram_lloyd(K, alpha, weights)
    model = KernelKMeans(k, init=init, tol=0.0, **params_of(kernel))
    model.fit(X, sample_weight=weights)
    assert gaps.min() > TIE_TOLERANCE * np.diagonal(K).max()
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.cost_path_, path, rtol=1e-10)
    assert model.n_iter_ == len(path) > 2


@every_value(
    seed=range(4),
    weighted=[False, True],
    start=["rows", "points"],
    estimator=[KernelKMeans, NystromKMeans],
)
def test_linear_kernel_equals_scikit_learns_kmeans(estimator, seed, weighted, start):
    X, k = rows(seed, 200), 5
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, 200) if weighted else None
    points = X[start_rows(k, seed, 200)]
    if start == "points":
        points = points + 0.1 * rng.normal(size=points.shape)
    peer = KMeans(k, init=points, n_init=1, tol=0.0).fit(X, sample_weight=weights)
    settings = {} if estimator is KernelKMeans else {"landmarks": np.eye(3)}
    model = estimator(k, kernel="linear", init=points, tol=0.0, n_jobs=1, **settings)
    model.fit(X, sample_weight=weights)
    np.testing.assert_array_equal(model.labels_, peer.labels_)
    assert model.inertia_ == pytest.approx(peer.inertia_, rel=1e-9)


@every_value(kernel=KERNELS, rank=[None, 2, 5], seed=range(3), weighted=[False, True])
def test_assignments_are_those_of_the_explicit_embedding(kernel, rank, seed, weighted):
    X, K, k = rows(seed), naive_gram(kernel, seed), 4
    landmarks, init = start_rows(12, seed + 10), start_rows(k, seed)
    weights = np.random.default_rng(seed).integers(1, 5, 60) if weighted else None
    cut = relative_cut(12, np.float64)
    F = oracles.embedding(K[:, landmarks], K[np.ix_(landmarks, landmarks)], rank, cut)
    labels, _, path = oracles.plain_lloyd(F, F[init], weights)
    model = NystromKMeans(
        k, landmarks=landmarks, rank=rank, init=init, tol=0.0, **params_of(kernel)
    ).fit(X, sample_weight=weights)
    assert model.rank_ == F.shape[1]
    np.testing.assert_array_equal(model.labels_, labels)
    # The embedded cost leaves out what lies outside the span of the landmarks.
    residual = np.diagonal(K) - (F**2).sum(axis=1)
    outside = np.average(residual, weights=weights)
    np.testing.assert_allclose(
        model.cost_path_, np.add(path, outside), rtol=1e-7, atol=1e-9
    )


@every_value
@every_kernel
@both_estimators
def test_precomputed_equals_computed(kernel, estimator):
    X, K = rows(), naive_gram(kernel)
    settings = {"n_clusters": 4, "init": start_rows(4, 3), "tol": 0.0, "n_jobs": 1}
    if estimator is NystromKMeans:
        settings["landmarks"] = start_rows(20, 4)
    computed = estimator(**{**settings, **params_of(kernel)}).fit(X)
    given = estimator(kernel="precomputed", **settings).fit(K)
    np.testing.assert_array_equal(given.labels_, computed.labels_)
    assert given.cost_ == pytest.approx(computed.cost_, rel=1e-8)
    np.testing.assert_array_equal(given.exemplar_indices_, computed.exemplar_indices_)
    new = rows(7, 30)
    np.testing.assert_array_equal(
        given.predict(naive_kernel(kernel, new, X)), computed.predict(new)
    )


# --- costs ----------------------------------------------------------------------------


@every_value
@every_kernel
@pytest.mark.parametrize("weighted", [False, True])
def test_cost_of_exact_kernel_kmeans_is_that_of_its_partition(kernel, weighted):
    X, K = rows(), naive_gram(kernel)
    weights = np.random.default_rng(1).integers(0, 4, 60) if weighted else None
    model = KernelKMeans(4, random_state=0, tol=0.0, **params_of(kernel))
    model.fit(X, sample_weight=weights)
    total = 60 if weights is None else weights.sum()
    expected = oracles.cost_of_partition(K, model.labels_, weights)
    assert model.cost_ == pytest.approx(expected, rel=1e-9)
    assert model.inertia_ == pytest.approx(expected * total, rel=1e-9)
    assert model.cost(X, weights) == pytest.approx(expected, rel=1e-8)
    assert model.score(X, sample_weight=weights) == pytest.approx(
        -expected * total, rel=1e-8
    )
    sizes = np.bincount(model.labels_, weights, minlength=4)
    np.testing.assert_array_equal(model.cluster_sizes_, sizes)


@every_value
@every_kernel
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_iter", [2, 300])
def test_cost_of_nystrom_is_that_of_definition_one(kernel, weighted, max_iter):
    X, K = rows(), naive_gram(kernel)
    weights = np.random.default_rng(1).integers(0, 4, 60) if weighted else None
    model = NystromKMeans(
        4,
        n_landmarks=10,
        random_state=0,
        max_iter=max_iter,
        tol=0.5 if max_iter == 2 else 0.0,
        **params_of(kernel),
    ).fit(X, sample_weight=weights)
    z = model.landmark_indices_
    total = 60 if weights is None else weights.sum()
    expected = oracles.cost_of_centers(
        np.diagonal(K), K[:, z], K[np.ix_(z, z)], model.dual_coef_, weights
    )
    assert model.cost_ == pytest.approx(expected, rel=1e-7)
    assert model.inertia_ == pytest.approx(expected * total, rel=1e-7)
    assert model.cost(X, weights) == pytest.approx(expected, rel=1e-7)
    assert model.score(X, sample_weight=weights) == pytest.approx(
        -expected * total, rel=1e-7
    )
    np.testing.assert_allclose(
        model.cluster_sizes_, np.bincount(model.labels_, weights, minlength=4)
    )


@every_value
@every_kernel
@both_estimators
def test_cost_of_new_rows_is_that_of_definition_one(kernel, estimator):
    X, new = rows(), rows(5, 25)
    weights = np.random.default_rng(2).random(25)
    model = estimator(3, random_state=0, **params_of(kernel)).fit(X)
    Z = X if estimator is KernelKMeans else model.landmarks_
    diagonal = np.diagonal(naive_kernel(kernel, new, new))
    B, K_mm = naive_kernel(kernel, new, Z), naive_kernel(kernel, Z, Z)
    expected = oracles.cost_of_centers(diagonal, B, K_mm, model.dual_coef_, weights)
    assert model.cost(new, weights) == pytest.approx(expected, rel=1e-7)
    assert model.score(new, sample_weight=weights) == pytest.approx(
        -expected * weights.sum(), rel=1e-7
    )
    distances = oracles.squared_distances(diagonal, B, K_mm, model.dual_coef_)
    np.testing.assert_allclose(model.transform(new) ** 2, distances, atol=1e-7)
    np.testing.assert_array_equal(model.predict(new), distances.argmin(axis=1))


@every_value
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", "chi2"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_best_of_many_restarts_reaches_the_optimum_and_none_undercuts_it(
    kernel, k, weighted
):
    for seed in range(3):
        X, K = rows(seed + 20, 8), naive_gram(kernel, seed + 20, 8)
        weights = np.random.default_rng(seed).integers(1, 4, 8) if weighted else None
        optimum = oracles.optimal_cost(K, k, weights)
        settings = params_of(kernel, n_clusters=k, tol=0.0)
        best = KernelKMeans(n_init=60, random_state=0, **settings)
        assert best.fit(X, sample_weight=weights).cost_ == pytest.approx(optimum)
        full = NystromKMeans(n_init=60, n_landmarks=8, random_state=0, **settings)
        assert full.fit(X, sample_weight=weights).cost_ == pytest.approx(optimum)
        for number in range(5):
            settings |= {"init": "random", "n_init": 1, "random_state": number}
            one = KernelKMeans(**settings).fit(X, sample_weight=weights)
            few = NystromKMeans(n_landmarks=4, **settings).fit(X, None, weights)
            assert one.cost_ >= optimum * (1.0 - 1e-9)
            assert few.cost_ >= optimum * (1.0 - 1e-9)


@both_estimators
def test_more_restarts_cost_no_more_and_sometimes_less(estimator):
    # The first restarts of many are those of few.
    gains = 0
    for seed in range(6):
        settings = params_of("rbf", n_clusters=6, init="random", random_state=seed)
        fits = (estimator(n_init=n, **settings) for n in (1, 2, 5, 20))
        costs = np.array([fit.fit(rows(seed)).cost_ for fit in fits])
        assert (np.diff(costs) <= 1e-12).all()
        gains += costs[-1] < 0.999 * costs[0]
    assert gains >= 3


# --- weights --------------------------------------------------------------------------

TIMES = np.random.default_rng(9).integers(0, 5, 60)


@every_value
@every_kernel
@pytest.mark.parametrize("start", ["points", "rows", "partition"])
@pytest.mark.parametrize("estimator", [KernelKMeans, NystromKMeans])
def test_weights_equal_repeated_rows(kernel, start, estimator):
    X, k = rows(), 4
    number = np.repeat(np.arange(60), TIMES)
    present = np.flatnonzero(TIMES)
    seeds = np.random.default_rng(3).choice(present, k, replace=False)
    partition = np.random.default_rng(4).permutation(np.arange(60) % k)
    starts = {
        "points": (X[seeds], X[seeds]),
        "rows": (seeds, np.searchsorted(number, seeds)),
        "partition": (partition, partition[number]),
    }[start]
    settings = params_of(kernel, n_clusters=k, tol=0.0)
    if estimator is NystromKMeans:
        settings["landmarks"] = X[present[::3]]
    weighted = estimator(init=starts[0], **settings).fit(X, sample_weight=TIMES)
    repeated = estimator(init=starts[1], **settings).fit(X[number])
    np.testing.assert_array_equal(weighted.labels_[number], repeated.labels_)
    assert weighted.cost_ == pytest.approx(repeated.cost_, rel=1e-10)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-10)
    np.testing.assert_allclose(weighted.cluster_sizes_, repeated.cluster_sizes_)
    np.testing.assert_array_equal(weighted.exemplars_, repeated.exemplars_)
    new = rows(6, 20)
    np.testing.assert_allclose(weighted.transform(new), repeated.transform(new))
    coefficients = weighted.dual_coef_
    if estimator is KernelKMeans:
        summed = np.zeros_like(coefficients)
        np.add.at(summed, number, repeated.dual_coef_)
        np.testing.assert_allclose(coefficients, summed, atol=1e-12)
    # Not what the rows give without their weights.
    assert estimator(init=starts[0], **settings).fit(X).cost_ != pytest.approx(
        weighted.cost_, rel=1e-3
    )


@every_value
@both_estimators
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cosine", "chi2"])
@pytest.mark.parametrize(
    "zeros", [False, True], ids=["all present", "some of weight 0"]
)
def test_weights_take_the_passes_of_repeated_rows(estimator, kernel, zeros):
    # A row of weight 0 is no row: that its label still changes is no reason to go on.
    X, times = rows(), TIMES if zeros else np.maximum(TIMES, 1)
    number = np.repeat(np.arange(60), times)
    settings = params_of(kernel, n_clusters=4, tol=0.0)
    if estimator is NystromKMeans:
        settings["landmarks"] = X[::3]
    for seed in range(4):
        partition = start_partition(4, seed)
        weighted = estimator(init=partition, **settings).fit(X, sample_weight=times)
        repeated = estimator(init=partition[number], **settings).fit(X[number])
        np.testing.assert_allclose(weighted.cost_path_, repeated.cost_path_, rtol=1e-10)


@every_value
@pytest.mark.parametrize("estimator", [KernelKMeans, NystromKMeans])
@pytest.mark.parametrize("gamma", ["mean", "median", "scale"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_the_bandwidth_sees_the_weights(estimator, gamma, kernel):
    X, number = rows(), np.repeat(np.arange(60), TIMES)
    settings = {"kernel": kernel, "gamma": gamma, "n_jobs": 1, "random_state": 0}
    weighted = estimator(2, **settings).fit(X, sample_weight=TIMES)
    repeated = estimator(2, **settings).fit(X[number])
    assert weighted.gamma_ == pytest.approx(repeated.gamma_, rel=1e-12)


@both_estimators
def test_the_scale_of_the_weights_does_not_matter(estimator):
    X, weights = rows(), TIMES / 7.0
    settings = params_of("rbf", n_clusters=4, random_state=0)
    first = estimator(**settings).fit(X, sample_weight=weights)
    scaled = estimator(**settings).fit(X, sample_weight=weights * 1024)
    np.testing.assert_array_equal(first.labels_, scaled.labels_)
    assert scaled.cost_ == pytest.approx(first.cost_, rel=1e-12)
    assert scaled.inertia_ == pytest.approx(1024 * first.inertia_, rel=1e-12)


@both_estimators
def test_weights_of_one_are_no_weights(estimator):
    X, settings = rows(), params_of("rbf", n_clusters=4, random_state=0)
    plain = estimator(**settings).fit(X)
    ones = estimator(**settings).fit(X, sample_weight=np.ones(60))
    np.testing.assert_array_equal(plain.labels_, ones.labels_)
    assert plain.cost_ == ones.cost_


#: Five places on a line, where different starts end in different optima.
PLACES = np.array([[0.0], [1.0], [2.1], [3.3], [4.0]])
COPIES = np.array([4, 1, 2, 1, 3])


@pytest.mark.law
@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_weights_equal_repeats_in_law_for_exact_kernel_kmeans(init):
    def outcomes(X, weights, seeds):
        settings = {"kernel": "linear", "init": init, "n_init": 1, "n_jobs": 1}
        fits = (KernelKMeans(2, random_state=s, **settings) for s in seeds)
        return [round(f.fit(X, sample_weight=weights).cost_, 6) for f in fits]

    weighted = outcomes(PLACES, COPIES, range(300))
    repeated = outcomes(np.repeat(PLACES, COPIES, axis=0), None, range(300, 600))
    assert oracles.same_law_p_value(weighted, repeated) > LEVEL


@pytest.mark.law
def test_weights_equal_repeats_in_law_for_nystrom():
    def outcomes(X, weights, seeds):
        settings = {"gamma": 0.2, "n_landmarks": 2, "n_init": 1, "n_jobs": 1}
        for s in seeds:
            model = NystromKMeans(2, random_state=s, **settings)
            model.fit(X, sample_weight=weights)
            yield sorted(model.landmarks_.ravel().tolist()), round(model.cost_, 6)

    weighted = list(outcomes(PLACES, COPIES, range(300)))
    repeated = list(outcomes(np.repeat(PLACES, COPIES, axis=0), None, range(300, 600)))
    for what in range(2):
        samples = [[outcome[what] for outcome in x] for x in (weighted, repeated)]
        assert oracles.same_law_p_value(*samples) > LEVEL


# --- invariances ----------------------------------------------------------------------


def separated(n=120, k=4, d=3, seed=0):
    """Return rows in well separated groups, exactly representable, and the groups."""
    rng = np.random.default_rng(seed)
    centres = 64.0 * np.eye(k, d) + np.arange(k)[:, None] * 16.0
    groups = np.arange(n) % k
    X = centres[groups] + rng.integers(-64, 64, size=(n, d)) / 64.0
    return X.astype(np.float32), groups


@every_value(
    estimator=[KernelKMeans, NystromKMeans],
    kernel=["rbf", "laplacian", "linear"],
    dtype=[np.float32, np.float64],
    seed=range(3),
)
def test_row_order_does_not_matter_on_separated_rows(estimator, kernel, dtype, seed):
    X, groups = separated()
    X = X.astype(dtype)
    order = np.random.default_rng(seed).permutation(len(X))
    settings = {"kernel": kernel, "random_state": seed, "n_jobs": 1, "n_init": 10}
    if estimator is NystromKMeans:
        settings["landmarks"] = X[::5]
    model = estimator(4, **settings).fit(X)
    mixed = estimator(4, **settings).fit(X[order])
    assert adjusted_rand_score(model.labels_, groups) == 1.0
    assert adjusted_rand_score(mixed.labels_, groups[order]) == 1.0
    assert mixed.cost_ == pytest.approx(
        model.cost_, rel=1e-3 if dtype is np.float32 else 1e-9
    )


@every_value
@both_estimators
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", ["mean", "median", 0.001])
def test_an_offset_of_ten_thousand_changes_no_label_in_float32(
    estimator, kernel, gamma
):
    X, groups = separated()
    far = X + np.float32(10_000)
    np.testing.assert_array_equal(far - np.float32(10_000), X)
    settings = {"kernel": kernel, "gamma": gamma, "n_jobs": 1}
    if estimator is NystromKMeans:
        settings["landmarks"] = np.arange(0, 120, 5)
    # Two starts in one group: the labels are earned, not given.
    for init in (np.array([0, 1, 2, 3]), np.array([0, 4, 1, 2])):
        near = estimator(4, init=init, **settings).fit(X)
        moved = estimator(4, init=init, **settings).fit(far)
        np.testing.assert_array_equal(moved.labels_, near.labels_)
        np.testing.assert_array_equal(moved.predict(far), near.labels_)
        assert moved.cost_ == pytest.approx(near.cost_, rel=1e-3)
    seeded = estimator(4, random_state=0, n_init=10, **settings).fit(far)
    assert adjusted_rand_score(seeded.labels_, groups) == 1.0


REPEATED = {
    "equal rows": lambda rng: np.repeat(rng.normal(size=(12, 4)), 25, axis=0),
    "rows one rounding apart": lambda rng: np.nextafter(
        np.repeat(rng.normal(size=(12, 4)), 25, axis=0).astype(np.float32),
        rng.choice([-np.inf, np.inf], size=(300, 4)).astype(np.float32),
    ),
    "rows close together": lambda rng: (
        np.repeat(rng.normal(size=(12, 4)), 25, axis=0)
        + 1e-5 * rng.normal(size=(300, 4))
    ),
    "equal rows of many large integers": lambda rng: np.repeat(
        rng.integers(0, 256, size=(12, 64)), 25, axis=0
    ),
    "no repeats": lambda rng: rng.normal(size=(300, 4)),
}


@every_value(
    data=REPEATED.values(),
    gamma=[0.01, 0.3, 3.0],
    kernel=["rbf", "laplacian", "polynomial", "chi2"],
    dtype=[np.float32, np.float64],
)
def test_projections_are_never_longer_than_the_rows(data, gamma, kernel, dtype):
    X = np.abs(data(np.random.default_rng(0))).astype(dtype)
    params = {"degree": 2} if kernel == "polynomial" else {}
    with Workers(1) as workers:
        space = LandmarkSpace(
            as_kernel(kernel, gamma=gamma, **params), X[::2], np.dtype(dtype), workers
        )
        B = space.kernel_block(X).astype(np.float64)
        norms = np.einsum("ij,ji->i", B, space.coefficients(B))
        diagonal = space.kernel.diagonal(X)
    assert (norms <= diagonal * (1.0 + 1e-3)).all()
    # The landmarks are rows of their own span.
    if dtype is np.float64:
        np.testing.assert_allclose(norms[::2], diagonal[::2], rtol=1e-3)


@every_value
@pytest.mark.parametrize(
    "data",
    [name for name in REPEATED if "integers" not in name],  # these are all ties
)
@both_estimators
def test_float32_with_repeated_rows_labels_as_float64_does(data, estimator):
    X = REPEATED[data](np.random.default_rng(1)).astype(np.float32)
    settings = params_of("rbf", n_clusters=4, init=np.array([0, 30, 60, 90]), tol=0.0)
    if estimator is NystromKMeans:
        settings["landmarks"] = np.arange(0, 300, 2)
    narrow = estimator(**settings).fit(X)
    wide = estimator(**settings).fit(X.astype(np.float64))
    assert (narrow.labels_ == wide.labels_).mean() > 0.99
    assert narrow.cost_ == pytest.approx(wide.cost_, abs=1e-4)
    np.testing.assert_allclose(narrow.transform(X), wide.transform(X), atol=5e-3)


# --- corners --------------------------------------------------------------------------


@every_value
@every_kernel
@both_estimators
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_cluster_is_the_mean_of_all_rows(kernel, estimator, dtype):
    K = naive_gram(kernel)
    settings = {} if estimator is KernelKMeans else {"n_landmarks": 60}
    model = estimator(1, random_state=0, **settings, **params_of(kernel))
    model.fit(rows().astype(dtype))
    expected = np.diagonal(K).mean() - K.mean()
    assert model.cost_ == pytest.approx(
        expected, rel=1e-3 if dtype is np.float32 else 1e-8
    )
    np.testing.assert_array_equal(model.labels_, 0)


@every_value(
    kernel=KERNELS,
    estimator=[KernelKMeans, NystromKMeans],
    dtype=[np.float32, np.float64],
    init=["random", "k-means++", "local-search"],
)
def test_as_many_clusters_as_rows_cost_nothing(kernel, estimator, dtype, init):
    X = rows(2, 15).astype(dtype)
    model = estimator(15, init=init, random_state=0, **params_of(kernel)).fit(X)
    scale = float(np.diagonal(naive_kernel(kernel, X, X)).max())
    assert model.cost_ <= 1e-5 * scale
    np.testing.assert_array_equal(np.sort(model.labels_), np.arange(15))
    np.testing.assert_array_equal(model.exemplar_indices_[model.labels_], range(15))


@both_estimators
def test_one_row(estimator):
    model = estimator(1, gamma=1.0).fit(np.array([[1.0, 2.0]]))
    assert model.cost_ == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_array_equal(model.predict([[1.0, 2.0], [5.0, 5.0]]), [0, 0])


@both_estimators
def test_equal_rows_leave_clusters_empty_and_say_so(estimator):
    X = np.repeat([[0.0, 0.0], [3.0, 4.0]], 5, axis=0)
    settings = {} if estimator is KernelKMeans else {"landmarks": np.array([0, 5])}
    model = estimator(3, gamma=1.0, random_state=0, **settings)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X)
    (warning,) = caught
    assert "clusters (2) found smaller than n_clusters (3)" in str(warning.message)
    assert model.converged_
    assert model.cost_ == pytest.approx(0.0, abs=1e-12)
    assert adjusted_rand_score(model.labels_, np.repeat([0, 1], 5)) == 1.0


@both_estimators
def test_too_few_passes_warn_and_leave_a_consistent_model(estimator):
    X = rows()
    settings = params_of("rbf", n_clusters=5, init=start_rows(5, 0), tol=0.0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        model = estimator(max_iter=1, **settings).fit(X)
    assert model.n_iter_ == 1
    assert not model.converged_
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.cost(X) == pytest.approx(model.cost_, rel=1e-9)
    full = estimator(**settings).fit(X)  # a warning would be an error
    assert full.converged_
    assert full.n_iter_ > 2
    assert full.cost_ < model.cost_


@every_value
@both_estimators
@pytest.mark.parametrize("tol", [0.3, 0.03, 0.003, 0.0])
def test_passes_stop_at_the_first_small_drop(estimator, tol):
    X = rows(1)
    settings = params_of("rbf", n_clusters=6, init=start_rows(6, 5), random_state=0)
    path = estimator(tol=0.0, **settings).fit(X).cost_path_
    small = np.flatnonzero(-np.diff(path) <= tol * path[:-1])
    expected = 2 + small[0] if len(small) else len(path)
    model = estimator(tol=tol, **settings).fit(X)
    assert model.n_iter_ == expected
    np.testing.assert_array_equal(model.cost_path_, path[:expected])
    assert model.converged_


# --- what a fitted model says ---------------------------------------------------------


@every_value(kernel=KERNELS, estimator=[KernelKMeans, NystromKMeans], seed=range(3))
def test_a_model_agrees_with_itself_on_its_training_rows(kernel, estimator, seed):
    X = rows(seed)
    model = estimator(5, random_state=seed, **params_of(kernel)).fit(X)
    distances = model.transform(X)
    assert distances.shape == (60, 5)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.labels_)
    assert (distances.min(axis=1) ** 2).mean() == pytest.approx(model.cost_, rel=1e-7)
    # The last pass may move no row, and round the same sum otherwise.
    assert model.cost_path_.min() == pytest.approx(model.cost_, rel=1e-12)
    assert len(model.cost_path_) == model.n_iter_
    np.testing.assert_array_equal(
        model.fit_predict(X),
        estimator(5, random_state=seed, **params_of(kernel)).fit(X).labels_,
    )


@every_value
@every_kernel
@both_estimators
@pytest.mark.parametrize("weighted", [False, True])
def test_exemplars_are_the_nearest_rows_of_their_clusters(kernel, estimator, weighted):
    X = rows(3)
    weights = np.random.default_rng(5).integers(0, 2, 60) if weighted else None
    model = estimator(5, random_state=1, **params_of(kernel))
    model.fit(X, sample_weight=weights)
    distances = model.transform(X)
    distances[model.labels_[:, None] != np.arange(5)] = np.inf
    if weights is not None:
        distances[weights == 0] = np.inf
    chosen = model.exemplar_indices_
    np.testing.assert_allclose(
        distances[chosen, np.arange(5)], distances.min(axis=0), rtol=1e-6, atol=1e-7
    )
    np.testing.assert_array_equal(model.exemplars_, X[chosen])


@pytest.mark.parametrize("rank", [1, 4, 10, 30])
def test_rank_is_at_most_what_was_asked_for(rank):
    settings = params_of("rbf", n_clusters=3, landmarks=np.arange(10), init=[0, 1, 2])
    model = NystromKMeans(rank=rank, **settings).fit(rows())
    assert model.rank_ == min(rank, 10)
    # The centres lie in the span of the leading eigenvectors.
    _, vectors = np.linalg.eigh(naive_gram("rbf")[:10, :10])
    dropped = vectors[:, : 10 - model.rank_]
    np.testing.assert_allclose(dropped.T @ model.dual_coef_, 0.0, atol=1e-9)


@pytest.mark.parametrize("n_landmarks", ["auto", 20])
def test_landmarks_are_rows_and_as_many_as_asked_for(n_landmarks):
    X = rows(4, 200)
    model = NystromKMeans(3, n_landmarks=n_landmarks, random_state=0).fit(X)
    expected = model.landmark_path_.chosen if n_landmarks == "auto" else 20
    assert model.landmarks_.shape == (expected, 3)
    assert model.dual_coef_.shape == (expected, 3)
    np.testing.assert_array_equal(model.landmarks_, X[model.landmark_indices_])
    given = NystromKMeans(3, landmarks=X[:7] + 0.5, random_state=0).fit(X)
    np.testing.assert_array_equal(given.landmarks_, X[:7] + 0.5)
    assert given.landmark_indices_ is None


@both_estimators
def test_seeds_give_the_same_fit_and_different_ones_another(estimator):
    X = rows(0, 60)
    settings = params_of("rbf", n_clusters=6, n_init=1, init="random")
    fits = [estimator(random_state=s, **settings).fit(X) for s in (0, 0, 1, 2, 3)]
    np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
    assert fits[0].cost_ == fits[1].cost_
    assert len({fit.cost_ for fit in fits}) > 2


# --- nested subsamples ----------------------------------------------------------------


@cache
def many_rows():
    rng = np.random.default_rng(0)
    centres = 3.0 * rng.normal(size=(6, 4))
    X = centres[rng.integers(6, size=24_000)] + rng.normal(size=(24_000, 4))
    return X.astype(np.float32)


@every_value
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_progressive_reaches_the_cost_of_full_passes(weighted, seed):
    X = many_rows()
    weights = np.random.default_rng(1).integers(0, 3, len(X)) if weighted else None
    settings = {"n_landmarks": 60, "random_state": seed}
    models = {
        name: NystromKMeans(6, algorithm=name, **settings).fit(X, sample_weight=weights)
        for name in ("progressive", "full")
    }
    slow, quick = models["full"], models["progressive"]
    assert quick.cost_ == pytest.approx(slow.cost_, rel=0.01)
    assert quick.cost_ == pytest.approx(quick.cost(X, weights), rel=1e-4)
    assert quick.converged_
    assert adjusted_rand_score(quick.labels_, slow.labels_) > 0.95
    # The subsamples did the work: few full passes are left.
    assert quick.n_iter_ < slow.n_iter_
    np.testing.assert_array_equal(quick.predict(X[:500]), quick.labels_[:500])


def test_progressive_ends_where_a_full_pass_gains_no_more():
    X = many_rows()
    model = NystromKMeans(6, n_landmarks=60, random_state=0, tol=1e-4).fit(X)
    # The centroids of its clusters are one more pass away.
    settings = {"landmarks": model.landmarks_, "gamma": model.gamma_, "tol": 1.0}
    again = NystromKMeans(6, init=model.labels_, **settings).fit(X)
    assert again.cost_path_[0] <= model.cost_ * (1.0 + 1e-6)
    assert again.cost_path_[0] >= model.cost_ * (1.0 - 2e-4)


def test_a_given_start_makes_full_passes_at_once():
    X = many_rows()
    settings = {"landmarks": np.arange(0, 24_000, 600), "init": np.arange(6) * 1000}
    quick = NystromKMeans(6, **settings).fit(X)
    slow = NystromKMeans(6, algorithm="full", **settings).fit(X)
    np.testing.assert_array_equal(quick.labels_, slow.labels_)
    np.testing.assert_array_equal(quick.cost_path_, slow.cost_path_)


@pytest.mark.parametrize("weighted", [False, True])
def test_subsamples_follow_the_weights(weighted):
    X = np.arange(8_000.0)[:, None] // 1000
    share = (
        np.array([1.0, 0.0, 2.0, 1.0, 3.0, 0.5, 1.5, 1.0]) if weighted else np.ones(8)
    )
    with Workers(1) as workers:
        weights = np.repeat(share, 1000) if weighted else None
        rows = as_rows(X, workers, weights)
        samples = [
            nested_subsample(rows, 2000, np.random.default_rng(seed))
            for seed in range(200)
        ]
    # Every leading part is a subsample, too: its weights are unbiased.
    for size in (500, 2000):
        found = np.array(
            [
                np.bincount(
                    sample.X[:size, 0].astype(int), sample.weights[:size], minlength=8
                )
                / sample.weights[:size].sum()
                for sample in samples
            ]
        )
        error = found.std(axis=0) / np.sqrt(len(samples))
        np.testing.assert_array_less(
            np.abs(found.mean(axis=0) - share / share.sum()), 4.0 * error + 1e-12
        )


def test_no_heavy_or_far_row_fills_or_misses_a_subsample():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(50_000, 2)), np.ones(50_000)
    X[7], weights[9] = 1e4, 1e9
    with Workers(1) as workers:
        rows = as_rows(X, workers, weights)
        for seed in range(5):
            sample = nested_subsample(rows, 2048, np.random.default_rng(seed))
            assert len(np.unique(sample.X, axis=0)) == len(sample) > 2000
            assert (X[7] == sample.X).all(axis=1).sum() == 1
            assert (X[9] == sample.X).all(axis=1).sum() == 1


@pytest.mark.parametrize("seed", range(2))
def test_inclusion_probabilities_add_up(seed):
    offsets = np.random.default_rng(seed).pareto(0.5, size=300)
    chances = 0.5 + 0.5 * offsets / offsets.mean()
    included = Chances.of(offsets, None, 60).at(slice(None))
    np.testing.assert_allclose(included.sum(), 60.0, rtol=1e-6)
    assert included.max() <= 1.0
    below = included < 1.0
    ratio = included[below] / chances[below]
    np.testing.assert_allclose(ratio, ratio[0])
    assert (chances[~below] >= chances[below].max()).all()


@pytest.mark.parametrize("n", [100, 8_191, 8_192, 10**5, 10**6, 10**7])
def test_subsamples_double_and_stay_a_fraction_of_the_rows(n):
    for k in (1, 8, 100, 1000):
        _check_subsample_sizes(n, k)


def _check_subsample_sizes(n, k):
    sizes = subsample_sizes(n, k)
    assert all(b == 2 * a for a, b in pairwise(sizes))
    assert all(size <= n / 2 and size >= 16 * k for size in sizes)
    assert len(sizes) < 2 or sizes[-1] <= n / 4
    if n >= 10**6 and k <= 100:
        assert len(sizes) >= 2
    if n >= 10**5:  # no cliff: there is a subsample for every k
        assert sizes
    if n < 8_192 and k < 33:
        assert sizes == []


def test_subsamples_smaller_than_a_block():
    # 130 features and few landmarks: blocks are as high as they can be.
    X = np.random.default_rng(0).normal(size=(17_000, 130)).astype(np.float32)
    X[::2, :5] += 4.0
    stored, recomputed = (
        NystromKMeans(2, n_landmarks=40, max_memory=memory, random_state=0).fit(X)
        for memory in (None, "90MB")
    )
    np.testing.assert_array_equal(stored.labels_, recomputed.labels_)
    assert np.bincount(stored.labels_[::2], minlength=2).min() < 20
