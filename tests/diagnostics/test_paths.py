"""Paths over bandwidths and numbers of clusters."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from sketchmeans import KernelKMeans, NystromKMeans
from sketchmeans.data.rows import as_rows
from sketchmeans.diagnostics import (
    bandwidth_path,
    certificate,
    cluster_count_path,
    effective_dimension,
    paths,
)
from sketchmeans.engine.blocks import local_engine
from sketchmeans.engine.lloyd import lloyd
from sketchmeans.engine.space import LandmarkSpace
from sketchmeans.engine.types import side_by_side
from sketchmeans.kernels import RBF, Linear
from sketchmeans.numerics.parallel import Workers


@pytest.fixture(scope="module")
def blobs():
    X, _ = make_blobs(1200, 3, centers=4, cluster_std=0.6, random_state=3)
    return X


def test_the_true_number_of_clusters_is_the_stable_one(blobs):
    table = cluster_count_path(blobs, [2, 3, 4, 5, 7], random_state=0)
    columns = ["n_clusters", "cost", "lower_bound", "ratio", "stability"]
    assert list(table) == [*columns, "stability_low", "stability_high"]
    assert (table["stability_low"] <= table["stability"]).all()
    assert (table["stability_high"] >= table["stability"]).all()
    assert table["stability"][2] == pytest.approx(1.0)
    assert table["stability"][3:].max() < 0.99
    assert (np.diff(table["cost"]) < 0.0).all()
    assert (np.diff(table["lower_bound"]) <= 0.0).all()
    known = table["lower_bound"] > 0.0
    assert known[:2].all()
    np.testing.assert_allclose(
        table["ratio"][known], table["cost"][known] / table["lower_bound"][known]
    )
    assert np.isinf(table["ratio"][~known]).all()


def test_costs_are_those_of_fits(blobs):
    table = cluster_count_path(blobs, [4], gamma=0.05, random_state=0)
    best = KernelKMeans(4, gamma=0.05, random_state=0).fit(blobs)
    # The cost of 400 other rows.
    assert table["cost"][0] == pytest.approx(best.cost_, rel=0.1)
    assert table["lower_bound"][0] < best.cost_


def test_bounds_are_those_of_certificates(blobs):
    table = cluster_count_path(
        blobs, [2, 4], gamma=0.05, subsample_size=500, confidence=0.8, random_state=0
    )
    for i, k in enumerate([2, 4]):
        model = NystromKMeans(k, gamma=0.05, n_landmarks=50, random_state=0).fit(blobs)
        found = certificate(
            model,
            blobs,
            "subsample",
            confidence=0.8,
            n_subsamples=10,
            subsample_size=500,
            random_state=1,
        )
        assert table["lower_bound"][i] == pytest.approx(found.lower_bound, abs=0.02)


def test_bandwidths(blobs):
    gammas = [1e-4, 0.05, 50.0]
    table = bandwidth_path(blobs, gammas, 4, random_state=0)
    np.testing.assert_array_equal(table["gamma"], gammas)
    assert (np.diff(table["effective_dimension"]) > 0.0).all()
    # In the middle the clusters are seen; far to the right no two rows are alike.
    assert table["stability"][1] == pytest.approx(1.0)
    assert table["stability"][2] < 0.9
    assert (table["cost"] >= table["lower_bound"]).all()


def test_kernels_by_name_and_as_objects(blobs):
    kernel = RBF("median")
    by_name, given = (
        bandwidth_path(blobs[::4], [0.05, 0.5], 4, kernel=k, random_state=0)
        for k in ("rbf", kernel)
    )
    for name in by_name:
        np.testing.assert_array_equal(by_name[name], given[name])
    assert kernel.gamma == "median"


def test_subsamples_differ_and_are_judged_by_other_rows():
    # A centre at every row of a subsample: any other row is as far as can be.
    X = 10.0 * np.random.default_rng(0).normal(size=(90, 5))
    table = cluster_count_path(X, [30], gamma=1.0, random_state=0)
    assert table["cost"][0] > 1.99
    # Restarts from the same rows would find the same two halves of a line.
    line = np.sort(np.random.default_rng(0).uniform(size=(600, 1)), axis=0)
    table = cluster_count_path(line, [2], gamma=1.0, random_state=0)
    assert 0.8 < table["stability"][0] < 1.0


def test_effective_dimension_is_that_of_all_rows(blobs, monkeypatch):
    exact = effective_dimension(blobs[:400], gamma=0.5, gamma_ridge=20.0).value
    table = bandwidth_path(blobs[:400], [0.5], 4, random_state=0)
    assert table["effective_dimension"][0] == pytest.approx(exact, rel=1e-6)
    monkeypatch.setattr(paths, "_SPECTRUM_ROWS", 200)
    table = bandwidth_path(blobs[:400], [0.5], 4, random_state=0)
    assert table["effective_dimension"][0] == pytest.approx(exact, rel=0.1)


def test_seeds_and_threads(blobs):
    one, two, other = (
        cluster_count_path(blobs[::2], [3, 4], random_state=seed, n_jobs=jobs)
        for seed, jobs in ((0, 1), (0, 2), (1, 1))
    )
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    assert (one["cost"] != other["cost"]).all()


def test_weights_are_rows_that_count_more(blobs):
    weights = (blobs[:, 0] > np.median(blobs[:, 0])).astype(float)
    weighted = cluster_count_path(
        blobs, [1], gamma=0.05, sample_weight=weights, random_state=0
    )
    part = cluster_count_path(blobs[weights > 0], [1], gamma=0.05, random_state=0)
    everything = cluster_count_path(blobs, [1], gamma=0.05, random_state=0)
    assert weighted["cost"][0] == pytest.approx(part["cost"][0], rel=0.03)
    assert everything["cost"][0] > 1.1 * part["cost"][0]


@pytest.mark.parametrize("weighted", [False, True])
def test_mixed_restarts_end_where_each_ends_alone(weighted):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 4)), 2, axis=0)  # half of the rows are copies
    weights = rng.integers(0, 3, size=60).astype(float) if weighted else None
    starts = [rng.integers(60, size=(2, k)) for k in (1, 3, 7, 60)]
    with Workers(1) as workers:
        rows = as_rows(X, workers, weights)
        space = LandmarkSpace(RBF(0.1), X[:40:2], rows.dtype, workers)
        alone = []
        for seeds in starts:
            engine = local_engine(rows, space)
            alone += lloyd(engine, engine.centers_at(seeds), max_iter=50, tol=0.0)
        engine = local_engine(rows, space)
        centers = side_by_side([engine.centers_at(seeds) for seeds in starts])
        results = lloyd(engine, centers, max_iter=50, tol=0.0)
    n_real = [int(np.isfinite(one.centers.squared_norms).sum()) for one in results]
    assert n_real == [1, 1, 3, 3, 7, 7, 60, 60]
    assert (results[-1].counts == 0.0).any()  # more clusters than distinct rows
    for one, other in zip(results, alone, strict=True):
        assert adjusted_rand_score(one.labels, other.labels) == 1.0
        assert one.cost == pytest.approx(other.cost, abs=1e-12)
        np.testing.assert_allclose(
            one.centers.means[0][one.labels],
            other.centers.means[0][other.labels],
            atol=1e-12,
        )
        # With more clusters than distinct rows some centres are equal: which of them
        # a row is given to is a matter of rounding, and so of the BLAS kernel.
        if len(other.counts) < 60:
            np.testing.assert_array_equal(one.labels, other.labels)
            np.testing.assert_allclose(one.cost_path, other.cost_path, atol=1e-12)


def test_forms_of_input_and_output(blobs):
    frame = cluster_count_path(pd.DataFrame(blobs[::4]), [2, 3], as_frame=True)
    assert isinstance(frame, pd.DataFrame)
    assert frame["n_clusters"].tolist() == [2, 3]
    dense, csr = (
        bandwidth_path(X, [0.1], 3, random_state=0)
        for X in (blobs[::4], sparse.csr_array(blobs[::4]))
    )
    np.testing.assert_allclose(dense["cost"], csr["cost"], rtol=1e-6)


ERRORS = [
    (lambda X: bandwidth_path(X, [], 3), r"gammas=\[\] should have"),
    (lambda X: bandwidth_path(X, [-1.0], 3), r"gammas=-1.0 should be"),
    (lambda X: bandwidth_path(X, [1.0], 0), r"n_clusters=0 should be"),
    (lambda X: bandwidth_path(X, [1.0], 3, kernel="linear"), "have a bandwidth"),
    (lambda X: bandwidth_path(X, [1.0], 3, kernel=Linear()), "have a bandwidth"),
    (lambda X: bandwidth_path(X, [1.0], 3, kernel=min), "have a bandwidth"),
    (lambda X: cluster_count_path(X, []), r"ks=\[\] should have"),
    (lambda X: cluster_count_path(X, [0]), r"ks=0 should be"),
    (lambda X: cluster_count_path(X, [401]), r"n_clusters=401 should be <= 400"),
    (lambda X: cluster_count_path(X, [2], n_subsamples=1), "n_subsamples=1 should"),
    (lambda X: cluster_count_path(X, [2], confidence=2), "confidence=2 should be"),
    (lambda X: cluster_count_path(X * np.nan, [2]), "NaN"),
    (
        lambda X: cluster_count_path(
            rbf_kernel(X[:50], gamma=1.0), [2], kernel="precomputed"
        ),
        "kernel='precomputed' should be another",
    ),
]


def test_errors(blobs):
    for call, text in ERRORS:
        with pytest.raises(ValueError, match=text):
            call(blobs)
