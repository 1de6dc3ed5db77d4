"""Rows of Z: who is connected to whom, and how strongly."""

import numpy as np
import pytest
from scipy import sparse

from sketchmeans.graphs.nearest import NearestPoints
from sketchmeans.graphs.weights import (
    NeighborGraph,
    neighbor_scales,
    self_tuned_weights,
)
from tests.pairs import every_value


@every_value
@pytest.mark.parametrize("d", [2, 8, 9, 40])
@pytest.mark.parametrize("kind", ["float64", "float32", "csr"])
def test_nearest_points_are_those_of_all_distances(d, kind):
    rng = np.random.default_rng(d)
    points, X = rng.normal(size=(50, d)), rng.normal(size=(300, d))
    gaps = np.linalg.norm(X[:, None] - points, axis=2)
    if kind == "csr":
        points, X = sparse.csr_array(points), sparse.csr_array(X)
    elif kind == "float32":
        points, X = points.astype(np.float32), X.astype(np.float32)
    dtype = np.dtype(np.float32 if kind == "float32" else np.float64)
    distances, numbers = NearestPoints(points, dtype).find(X, 7)
    np.testing.assert_allclose(distances, np.sort(gaps, axis=1)[:, :7], rtol=1e-4)
    chosen = np.take_along_axis(gaps, numbers.astype(int), axis=1)
    np.testing.assert_allclose(distances, chosen, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_tiny_and_huge_rows_are_told_apart(scale):
    X = np.random.default_rng(0).normal(size=(100, 2))
    plain = NearestPoints(X[:20], X.dtype).find(X, 5)
    scaled = NearestPoints(X[:20] * scale, X.dtype).find(X * scale, 5)
    np.testing.assert_array_equal(plain[1], scaled[1])
    np.testing.assert_allclose(plain[0], scaled[0] / scale, rtol=1e-12)


def test_weights_follow_their_formula():
    rng = np.random.default_rng(0)
    points, X = rng.normal(size=(30, 3)), rng.normal(size=(200, 3))
    nearest = NearestPoints(points, X.dtype)
    distances, numbers = nearest.find(X, 6)
    weights = rng.exponential(size=200)
    scales = neighbor_scales(distances, numbers, weights, 30)
    for j in range(30):
        mine = numbers[:, 0] == j
        expected = np.average(distances[:, -1], weights=weights)
        if mine.any():
            expected = np.average(distances[mine, -1], weights=weights[mine])
        np.testing.assert_allclose(scales[j], expected)
    Z = NeighborGraph(nearest, scales, 6).weights(X).toarray()
    naive = np.zeros((200, 30))
    for i in range(200):
        for distance, j in zip(distances[i], numbers[i], strict=True):
            naive[i, j] = np.exp(-(distance**2) / (distances[i, -1] * scales[j]))
    naive /= naive.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Z, naive, atol=1e-11)


def test_rows_on_equal_landmarks_are_connected_to_all_of_them_alike():
    distances, numbers = np.zeros((2, 3)), np.array([[0, 1, 2], [2, 1, 0]])
    Z = self_tuned_weights(distances, numbers, np.zeros(3)).toarray()
    np.testing.assert_allclose(Z, np.full((2, 3), 1.0 / 3.0))
