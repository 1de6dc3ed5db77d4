"""What clusters look like: `cluster_summary` and `row_map` against all distances."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import rbf_kernel

from sketchmeans import KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.diagnostics import certificate, cluster_summary, row_map

X, Y = make_blobs(900, 4, centers=3, cluster_std=1.5, random_state=1)


@pytest.fixture(scope="module")
def fitted():
    models = {
        "nystrom": NystromKMeans(3, random_state=0),
        "exact": KernelKMeans(3, random_state=0),
        "sketched": SketchedKMeans(3, random_state=0),
        "reduced": NystromKMeans(3, n_landmarks=40, reducer="svd", random_state=0),
    }
    return {name: model.fit(X) for name, model in models.items()}


@pytest.mark.parametrize("name", ["nystrom", "exact", "sketched", "reduced"])
def test_summary_is_that_of_all_distances(name, fitted):
    model = fitted[name]
    found = cluster_summary(model, X, y=Y, n_exemplars=4)
    distances = model.transform(X)
    labels = distances.argmin(axis=1)
    two = np.sort(distances, axis=1)
    own, after = two[:, 0], two[:, 1]
    np.testing.assert_array_equal(found.sizes, np.bincount(labels))
    assert found.cost == pytest.approx(model.cost(X))
    assert found.margin_counts.sum() == len(X)
    for j in range(3):
        rows = np.flatnonzero(labels == j)
        assert found.costs[j] == pytest.approx(np.mean(own[rows] ** 2))
        assert found.margins[j] == pytest.approx(np.mean(1 - (own / after)[rows]))
        nearest = np.sort(own[rows])[:4]
        np.testing.assert_allclose(own[found.exemplar_indices[j]], nearest)
        np.testing.assert_allclose(
            found.features.cluster_means[j], X[rows].mean(axis=0)
        )
        expected = (X[rows].mean(axis=0) - X.mean(axis=0)) / X.std(axis=0)
        np.testing.assert_allclose(found.features.differences[j], expected)
        order = np.argsort(-np.abs(expected))[:2]
        np.testing.assert_array_equal(found.features.rank_distinguishing(2, j), order)
        numbers, exemplars = found.exemplars_of(j)
        np.testing.assert_array_equal(exemplars, X[numbers])
    shares = found.margin_counts.sum(axis=0) / len(X)
    assert found.border_share == pytest.approx(np.mean(1 - own / after < 0.02))
    counts, edges = found.margin_histogram(7)
    assert counts.sum() == len(X)
    assert len(counts) <= 7
    assert len(edges) == len(counts) + 1
    assert shares.sum() == pytest.approx(1.0)
    assert found.agreement.accuracy > 0.95
    assert found.segment_names == ("Segment 0", "Segment 1", "Segment 2")
    assert found.agreement.counts.sum() == len(X)


def test_summary_does_not_depend_on_where_the_rows_lie(tmp_path, fitted):
    model = fitted["nystrom"]
    dense = cluster_summary(model, X)
    np.save(tmp_path / "rows.npy", X)
    for other in (sparse.csr_array(X), tmp_path / "rows.npy"):
        found = cluster_summary(model, other)
        np.testing.assert_array_equal(found.sizes, dense.sizes)
        np.testing.assert_array_equal(found.exemplar_indices, dense.exemplar_indices)
        np.testing.assert_allclose(found.features.deviation, dense.features.deviation)
        np.testing.assert_allclose(
            found.features.cluster_means, dense.features.cluster_means
        )


def test_features_far_from_the_origin_keep_their_deviation():
    far = np.column_stack([X[:, 0] + 1e9, np.full(len(X), 1e9 + 0.1), X[:, 1]])
    model = SketchedKMeans(2, random_state=0).fit(far)
    found = cluster_summary(model, far).features
    expected = [X[:, 0].std(), 0.0, X[:, 1].std()]
    np.testing.assert_allclose(found.deviation, expected, rtol=1e-6)
    assert not found.differences[:, 1].any()  # a constant sets no cluster apart
    constants = np.tile(np.linspace(0.1, 3.0, 30), (len(X), 1))
    near = sparse.csr_array(np.column_stack([X, constants]))
    model = SketchedKMeans(2, random_state=0).fit(near)
    assert not cluster_summary(model, near).features.deviation[4:].any()


def test_map_is_the_projection_on_principal_axes(fitted):
    model = fitted["sketched"]
    found = row_map(model, X, sample_size=len(X))
    pca = PCA(2).fit(X)
    np.testing.assert_allclose(
        np.abs(found.points), np.abs(pca.transform(X)), atol=1e-6
    )
    np.testing.assert_allclose(found.shares, pca.explained_variance_ratio_)
    assert found.spread == pytest.approx(X.var(axis=0).sum())
    assert found.cost == pytest.approx(model.cost(X))
    assert found.landmarks is None
    assert found.residuals is None
    for j in range(3):
        own = found.points[found.labels == j].mean(axis=0)
        np.testing.assert_allclose(found.centers[j], own)


def test_map_of_landmarks_shows_them_and_what_they_leave_out():
    model = NystromKMeans(3, n_landmarks=30, random_state=0).fit(X)
    found = row_map(model, X, sample_size=len(X))
    np.testing.assert_array_equal(found.indices, np.arange(len(X)))
    # A landmark that is a row lies where that row does, and nothing of it is left out.
    rows = model.landmark_indices_
    np.testing.assert_allclose(found.landmarks, found.points[rows], atol=1e-7)
    np.testing.assert_allclose(found.residuals[rows], 0.0, atol=1e-6)
    trace = certificate(model, X, "nystrom").residual_trace
    assert found.residuals.mean() == pytest.approx(trace, rel=1e-6)
    K = rbf_kernel(X, gamma=model.gamma_)
    assert found.spread == pytest.approx(1.0 - K.mean(), rel=1e-3)


def test_precomputed_kernel_has_the_same_summary_and_map(fitted):
    model = fitted["nystrom"]
    rows, start, gamma = model.landmark_indices_, model.labels_, model.gamma_
    K = rbf_kernel(X, gamma=gamma)
    given = NystromKMeans(3, kernel="precomputed", landmarks=rows, init=start).fit(K)
    plain = NystromKMeans(3, gamma=gamma, landmarks=rows, init=start).fit(X)
    one, other = cluster_summary(given, K), cluster_summary(plain, X)
    np.testing.assert_array_equal(one.sizes, other.sizes)
    np.testing.assert_allclose(one.costs, other.costs)
    assert one.features is None
    a, b = row_map(given, K, sample_size=200), row_map(plain, X, sample_size=200)
    np.testing.assert_allclose(a.points, b.points, atol=1e-7)
    np.testing.assert_allclose(a.landmarks, b.landmarks, atol=1e-7)
