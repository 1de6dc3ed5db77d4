"""``gamma="auto"``: a narrow bandwidth, where its clusters hang together."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from sketchmeans import KernelKMeans, NystromKMeans
from sketchmeans.cluster.bandwidth import (
    _narrow_factor,
    neighbor_graph,
    normalised_cut,
)


@pytest.mark.parametrize("estimator", [KernelKMeans, NystromKMeans])
def test_rings_get_a_narrower_kernel(estimator):
    X, y = make_circles(1500, noise=0.05, factor=0.3, random_state=0)
    plain = estimator(2, random_state=0).fit(X)
    auto = estimator(2, gamma="auto", random_state=0).fit(X)
    assert auto.gamma_ > 3.0 * plain.gamma_
    assert adjusted_rand_score(y, plain.labels_) < 0.1
    assert adjusted_rand_score(y, auto.labels_) > 0.9


def test_blobs_keep_the_smoothest_kernel():
    X, _ = make_blobs(1000, centers=[(0, 0), (9, 0), (0, 9)], random_state=0)
    plain = NystromKMeans(3, random_state=0).fit(X)
    auto = NystromKMeans(3, gamma="auto", random_state=0).fit(X)
    assert auto.gamma_ == plain.gamma_
    assert adjusted_rand_score(auto.labels_, plain.labels_) == 1.0


def test_uneven_blobs_are_not_cut_by_a_narrow_kernel():
    X, y = make_blobs([1500, 60, 60], centers=[(0, 0), (9, 0), (0, 9)], random_state=0)
    auto = NystromKMeans(3, gamma="auto", random_state=0).fit(X)
    assert adjusted_rand_score(y, auto.labels_) == 1.0


def test_rows_of_many_dimensions_keep_the_smoothest_kernel():
    X, _ = load_digits(return_X_y=True)
    plain = NystromKMeans(10, random_state=0).fit(X)
    auto = NystromKMeans(10, gamma="auto", random_state=0).fit(X)
    assert auto.gamma_ == plain.gamma_


def test_a_narrow_kernel_has_a_mean_value_of_an_eighth():
    X = np.random.default_rng(0).normal(size=(300, 2))
    exponents = np.square(X[:, None] - X).sum(axis=2) / 8.0
    K = np.exp(-_narrow_factor(exponents) * exponents)
    assert 0.10 < K[np.triu_indices(300, 1)].mean() < 0.14


def test_equal_rows_have_no_narrow_kernel():
    assert _narrow_factor(np.full((50, 50), 800.0)) is None
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 200, axis=0)
    model = NystromKMeans(2, gamma="auto", random_state=0).fit(X)
    assert sorted(model.cluster_sizes_) == [200.0, 200.0]


def test_the_cut_of_aneighbor_graph_is_the_share_of_edges_that_leave():
    x = np.r_[np.arange(30.0), 100.0 + np.arange(30.0)]
    graph = neighbor_graph(np.square(x[:, None] - x))
    labels = np.repeat([0, 1], 30)
    assert normalised_cut(graph, labels, 2) == pytest.approx(0.0, abs=1e-12)
    labels[15:30] = 1
    leaving = graph[:15, 15:].sum()
    wanted = leaving / graph[:15].sum() + leaving / graph[15:].sum()
    assert normalised_cut(graph, labels, 2) == pytest.approx(wanted)
    assert normalised_cut(graph, np.zeros(60, int), 2) == pytest.approx(0.0)


def test_too_few_rows_to_compare_keep_the_rule():
    X = np.random.default_rng(0).normal(size=(20, 2))
    plain = NystromKMeans(5, random_state=0).fit(X)
    assert NystromKMeans(5, gamma="auto", random_state=0).fit(X).gamma_ == plain.gamma_


def test_kernels_without_a_distance_have_no_such_bandwidth():
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match="gamma='auto' is defined for the rbf and"):
        NystromKMeans(2, kernel="polynomial", gamma="auto").fit(X)
