"""Landmarks for rare groups: added where one is outside the span, and only there."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import rbf_kernel

from sketchmeans import KernelKMeans, NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.kernels import as_kernel
from sketchmeans.landmarks import Landmarks
from sketchmeans.landmarks.coverage import cover_columns, cover_rare_rows
from sketchmeans.numerics.parallel import Workers


@pytest.fixture(scope="module", name="X")
def rows_with_rare_groups():
    """Return 1,200 rows of one wide group, and 3 + 4 rows of two tight ones."""
    rng = np.random.default_rng(3)
    wide = rng.normal(size=(1200, 3))
    first = np.array([6.0, 0.0, 0.0]) + 0.01 * rng.normal(size=(3, 3))
    second = np.array([0.0, 6.0, 0.0]) + 0.01 * rng.normal(size=(4, 3))
    return np.concatenate([wide, first, second])


def cover(X, indices, cost, gamma=0.5, weights=None):
    with Workers(1) as workers:
        rows = as_rows(X, workers, weights)
        kernel = as_kernel("rbf", gamma=gamma)
        given = Landmarks(X[indices], indices)
        found = cover_rare_rows(given, rows, kernel, cost)
    return found


def test_one_landmark_for_each_rare_group(X):
    indices = np.arange(0, 1200, 20)
    found = cover(X, indices, cost=0.3)
    added = found.indices[len(indices) :]
    assert {int(i >= 1203) for i in added if i >= 1200} == {0, 1}
    assert len(added) <= 6
    np.testing.assert_array_equal(found.points, X[found.indices])


def test_pivots_have_the_largest_residuals(X):
    """The first row that is added is the one that a dense formula finds."""
    indices = np.arange(0, 1200, 20)
    K = rbf_kernel(X, gamma=0.5)
    part = K[:, indices]
    residual = 1.0 - np.einsum(
        "ij,ji->i", part, np.linalg.pinv(K[np.ix_(indices, indices)], 1e-12) @ part.T
    )
    found = cover(X, indices, cost=1e-9)
    assert found.indices[len(indices)] == residual.argmax()
    assert len(found.indices) == len(indices) + 64  # no more than that, ever


def test_nothing_is_added_where_the_residual_is_spread_over_all_rows():
    X = np.random.default_rng(0).normal(size=(800, 40))
    assert len(cover(X, np.arange(50), cost=0.8, gamma=0.02)) == 50


def test_rows_of_weight_zero_are_ignored(X):
    weights = np.ones(len(X))
    weights[1200:] = 0.0
    found = cover(X, np.arange(0, 1200, 20), cost=0.3, weights=weights)
    assert found.indices.max() < 1200


@pytest.mark.parametrize("seed", range(3))
def test_the_cost_is_that_of_the_exact_fit(seed):
    """A dozen tight groups of very different sizes, with an rbf kernel."""
    rng = np.random.default_rng([seed, 1])
    sizes = np.r_[np.full(6, 180), np.full(6, 3)]
    X = np.repeat(rng.uniform(-10, 10, size=(12, 4)), sizes, axis=0)
    X += 0.2 * rng.normal(size=X.shape)
    exact = KernelKMeans(12, random_state=seed).fit(X)
    model = NystromKMeans(12, random_state=seed).fit(X)
    assert model.cost_ <= 1.06 * exact.cost_


def test_a_column_in_which_all_landmarks_agree_gets_the_row_farthest_from_them():
    X = np.zeros((9000, 4))
    X[:, 0] = np.arange(9000)
    X[[4, 5000, 8999], 1] = [1.0, -2.0, 1.0]
    X[[7000, 7001], 2] = [1.0, 3.0]
    weights = np.ones(9000)
    weights[7001] = 0.0
    indices = np.arange(100, 110)
    with Workers(2) as workers:
        rows, kernel = as_rows(X, workers, weights), as_kernel("linear")
        found = cover_columns(Landmarks(X[indices], indices), rows, kernel)
    np.testing.assert_array_equal(found.indices, [*indices, 5000, 7000])
    np.testing.assert_array_equal(found.points, X[found.indices])


def test_a_rare_flag_gets_a_landmark_with_a_linear_kernel():
    """Three rows of many have a flag; scaled, it is a fifth of all variance."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(12_000, 4)), np.zeros(12_000)])
    X[[5_000, 9_000, 11_999], -1] = 100.0
    exact = KMeans(6, n_init=3, random_state=0).fit(X).inertia_
    model = NystromKMeans(6, kernel="linear", random_state=0).fit(X)
    assert (model.landmarks_[:, -1] == 100.0).any()
    assert model.inertia_ <= 1.01 * exact


def planted_groups(seed, d, n=20_000, rare=8):
    """Return tight groups, one of them rare and not far from the others."""
    rng = np.random.default_rng([seed, 5])
    centers = 300.0 * rng.normal(size=(6, d))
    labels = rng.integers(5, size=n)
    members = rng.choice(n, rare, replace=False)
    labels[members] = 5
    return centers[labels] + rng.normal(size=(n, d)), labels, members


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 12])
def test_a_rare_group_of_a_large_table_is_reached_with_an_rbf_kernel(d, dtype):
    X, labels, members = planted_groups(d, d)
    model = NystromKMeans(6, random_state=0).fit(X.astype(dtype))
    np.testing.assert_array_equal(
        model.landmarks_, X[model.landmark_indices_].astype(dtype)
    )
    found = model.labels_[members]
    assert (model.labels_ == found[0]).sum() == len(members)
    # The exact cost of the partition that was planted, from all pairs of some rows.
    exact = 0.0
    for j in range(6):
        part = X[labels == j][:1500]
        exact += (labels == j).mean() * (
            1.0 - rbf_kernel(part, gamma=model.gamma_).mean()
        )
    assert model.cost_ <= 1.03 * exact


def test_a_rare_direction_gets_a_landmark_with_a_linear_kernel():
    """Two columns are equal but for a few rows: no column tells these apart."""
    X, labels, members = planted_groups(0, 4)
    X = np.rint(X)
    X = np.column_stack([X, X[:, 0]])
    X[members, -1] += 900.0
    model = NystromKMeans(6, kernel="linear", random_state=0).fit(X)
    assert model.rank_ == 5
    planted = sum(
        np.square(X[labels == j] - X[labels == j].mean(axis=0)).sum() for j in range(6)
    )
    assert model.inertia_ <= 1.01 * planted


def test_no_landmark_is_added_for_rows_that_just_cost_more():
    """A wide cluster beside tight ones: its rows cost much, and centres reach them."""
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [0.1 * rng.normal(size=(9_500, 2)), 8.0 + 2.0 * rng.normal(size=(500, 2))]
    )
    model = NystromKMeans(2, random_state=0).fit(X)
    # At most 16 rows are added before the fit, because they are far from the mean.
    assert len(model.landmarks_) <= model.landmark_path_.chosen + 16
