"""Input-space centroids as landmarks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from sketchmeans import NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.landmarks import Centroids, select_landmarks
from sketchmeans.landmarks.base import centroid_landmarks
from sketchmeans.numerics.parallel import Workers
from tests.oracles import plain_lloyd


def blobs(n=200, k=5, d=3, seed=0):
    """Return rows in far groups, and the number of each row's group."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(k, size=n - k)])
    return 50.0 * rng.normal(size=(k, d))[labels] + rng.normal(size=(n, d)), labels


def in_order(points):
    points = points.toarray() if sparse.issparse(points) else np.asarray(points)
    return points[np.lexsort(points.T)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_centroids_of_far_groups_are_their_means(form, weighted):
    X, labels = blobs()
    weights = np.random.default_rng(1).random(200) if weighted else np.ones(200)
    chosen = select_landmarks(
        form(X), 5, Centroids(n_init=5), sample_weight=weights, random_state=0
    )
    means = [
        np.average(X[labels == j], axis=0, weights=weights[labels == j])
        for j in range(5)
    ]
    assert chosen.indices is None
    assert sparse.issparse(chosen.points) == (form is sparse.csr_array)
    np.testing.assert_allclose(in_order(chosen.points), in_order(means), rtol=1e-9)


def test_centroids_are_a_fixed_point_of_lloyds_algorithm():
    X = np.random.default_rng(2).normal(size=(300, 2))
    selector = Centroids(max_iter=200, tol=0.0)
    points = select_landmarks(X, 20, selector, random_state=3).points
    _, centers, _ = plain_lloyd(X, points, max_iter=1)
    np.testing.assert_allclose(points, centers, atol=1e-12)


def cost(X, points):
    return ((X[:, None] - points) ** 2).sum(axis=2).min(axis=1).sum()


def test_more_passes_and_more_restarts_lower_the_cost():
    X = np.random.default_rng(4).normal(size=(400, 2))

    def mean_cost(**params):
        selector = Centroids(tol=0.0, **params)
        return np.mean(
            [
                cost(X, select_landmarks(X, 25, selector, random_state=seed).points)
                for seed in range(5)
            ]
        )

    costs = [mean_cost(max_iter=1), mean_cost(max_iter=3), mean_cost(max_iter=30)]
    assert costs[0] > costs[1] > costs[2] > mean_cost(max_iter=30, n_init=6)


def test_no_point_is_a_landmark_twice():
    centers = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    with Workers(1) as workers:
        landmarks = centroid_landmarks(as_rows(np.ones((5, 2)), workers), centers)
    np.testing.assert_array_equal(landmarks.points, centers[:2])


def test_in_an_estimator_with_progress():
    class SavedStages:
        """A callback that notes the names of the tasks."""

        def __init__(self):
            self.names = []

        def setup(self, estimator, context):
            self.names.append("setup")

        def teardown(self, estimator, context):
            self.names.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            self.names.append(context.task_name)

        def on_fit_task_end(self, estimator, context):
            self.names.append(f"end of {context.task_name}")
            return False

    X, _ = blobs()
    recorder = SavedStages()
    selector = Centroids().set_callbacks(recorder)
    model = NystromKMeans(5, n_landmarks=20, landmarks=selector, random_state=0).fit(X)
    assert model.landmarks_.shape == (20, 3)
    assert model.landmark_indices_ is None
    assert recorder.names[0] == "setup"
    assert recorder.names[-2:] == ["end of fit", "teardown"]
    assert "seeding" in recorder.names
    assert clone(selector).get_params() == {"n_init": 1, "max_iter": 20, "tol": 1e-3}


ERRORS = [("n_init", 0), ("max_iter", 1.5), ("tol", -0.1)]


def test_parameters_are_checked():
    for name, value in ERRORS:
        selector = Centroids().set_params(**{name: value})
        with pytest.raises(ValueError, match=f"{name}={value} should be"):
            select_landmarks(blobs()[0], 5, selector)
