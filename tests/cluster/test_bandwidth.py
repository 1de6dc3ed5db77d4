"""``gamma="auto"``: the bandwidth of the most stable clusters."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from sketchmeans import KernelKMeans, NystromKMeans
from sketchmeans.cluster.bandwidth import FACTORS


@pytest.mark.parametrize("estimator", [KernelKMeans, NystromKMeans])
def test_rings_get_a_narrower_kernel(estimator):
    X, y = make_circles(1500, noise=0.05, factor=0.3, random_state=0)
    plain = estimator(2, random_state=0).fit(X)
    auto = estimator(2, gamma="auto", random_state=0).fit(X)
    assert round(auto.gamma_ / plain.gamma_, 6) in FACTORS[1:]
    assert adjusted_rand_score(y, plain.labels_) < 0.1
    assert adjusted_rand_score(y, auto.labels_) > 0.9


def test_blobs_keep_the_smoothest_kernel():
    X, _ = make_blobs(1000, centers=[(0, 0), (9, 0), (0, 9)], random_state=0)
    plain = NystromKMeans(3, random_state=0).fit(X)
    auto = NystromKMeans(3, gamma="auto", random_state=0).fit(X)
    assert auto.gamma_ == plain.gamma_
    assert adjusted_rand_score(auto.labels_, plain.labels_) == 1.0


def test_too_few_rows_to_compare_keep_the_rule():
    X = np.random.default_rng(0).normal(size=(20, 2))
    plain = NystromKMeans(5, random_state=0).fit(X)
    assert NystromKMeans(5, gamma="auto", random_state=0).fit(X).gamma_ == plain.gamma_


def test_kernels_without_a_distance_have_no_such_bandwidth():
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match="gamma='auto' is defined for the rbf and"):
        NystromKMeans(2, kernel="polynomial", gamma="auto").fit(X)
