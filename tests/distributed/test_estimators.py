"""Every estimator on Dask collections: what it finds is what it finds in memory."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans

from sketchmeans import (
    ApproximateSVD,
    FeatureSampling,
    LaplacianScore,
    Nystrom,
    NystromKMeans,
    SignProjection,
    SketchedKMeans,
    SpectralKMeans,
    TableClusterer,
    select_landmarks,
)
from sketchmeans.diagnostics import certificate
from sketchmeans.landmarks import KernelKMeansPlusPlus
from sketchmeans.report import write_report

pytestmark = pytest.mark.dask

#: Whole blocks, for all widths below.
_CHUNK = 4096


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module", name="X")
def groups():
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.normal(size=(6, 24))
    X = rng.normal(size=(5 * _CHUNK, 24)) + centres[rng.integers(6, size=5 * _CHUNK)]
    return X.astype(np.float32)


@pytest.fixture(scope="module", name="weights")
def whole_weights(X):
    return np.random.default_rng(1).integers(0, 4, size=len(X)).astype(float)


def _chunked(X, rows=2 * _CHUNK):
    return da.from_array(X, chunks=(rows, -1))


def _assert_same_fit(model, local):
    np.testing.assert_array_equal(model.labels_.compute(), local.labels_)
    np.testing.assert_array_equal(model.cluster_sizes_, local.cluster_sizes_)
    np.testing.assert_array_equal(model.exemplar_indices_, local.exemplar_indices_)
    assert model.cost_ == pytest.approx(local.cost_, rel=1e-9)
    assert (model.n_iter_, model.converged_) == (local.n_iter_, local.converged_)


# -- SketchedKMeans ------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"reducer": "svd"},
        {"reducer": "sign"},
        {"reducer": "sampling"},
        {"reducer": LaplacianScore(8, fit_rows=2000)},
        {"reducer": "svd", "refine_max_iter": 0},
        {"reducer": None},
        {"reducer": None, "n_init": 2},
    ],
    ids=str,
)
def test_sketched_fits_are_those_in_memory(X, params):
    model = SketchedKMeans(6, random_state=0, **params)
    remote = clone(model).fit(_chunked(X))
    assert isinstance(remote.labels_, da.Array)
    model.fit(X)
    _assert_same_fit(remote, model)
    np.testing.assert_allclose(remote.cluster_centers_, model.cluster_centers_)
    rows = _chunked(X, 7000)
    np.testing.assert_array_equal(remote.predict(rows).compute(), model.predict(X))
    assert remote.cost(rows) == pytest.approx(model.cost(X), rel=1e-6)


@pytest.mark.parametrize("reducer", [None, "svd"])
def test_sketched_fits_with_weights_far_from_zero(X, weights, reducer):
    model = SketchedKMeans(6, reducer=reducer, random_state=0)
    far = X + np.float32(500.0)
    remote = clone(model).fit(_chunked(far), sample_weight=weights)
    _assert_same_fit(remote, model.fit(far, sample_weight=weights))


def test_sketched_fits_from_given_centres(X):
    model = SketchedKMeans(6, init=X[:6], reducer="svd", random_state=0)
    _assert_same_fit(clone(model).fit(_chunked(X)), model.fit(X))


def test_few_rows_of_a_sketched_fit(X):
    few = X[:3000]
    model = SketchedKMeans(4, reducer=None, random_state=0)
    remote = clone(model).fit(_chunked(few, 1000))
    assert remote.cost_ == pytest.approx(model.fit(few).cost_, rel=1e-3)


def test_functions_of_all_rows_are_no_start(X):
    def first(rows, n_clusters, random_state):
        return rows[:n_clusters]

    with pytest.raises(ValueError, match="or stay on a cluster"):
        SketchedKMeans(6, init=first).fit(_chunked(X))


def test_sparse_partitions_are_sketched():
    rows = sparse.random_array(
        (2 * _CHUNK, 60), density=0.1, format="csr", rng=np.random.default_rng(0)
    )
    chunks = [
        da.from_delayed(
            dask.delayed(rows[start : start + _CHUNK]), (_CHUNK, 60), rows.dtype
        )
        for start in range(0, rows.shape[0], _CHUNK)
    ]
    X = da.concatenate(chunks)
    model = SketchedKMeans(4, reducer="svd", random_state=0)
    remote = clone(model).fit(X)
    # Rows without groups have many local optima; blocks follow from guessed sizes.
    assert remote.cost_ == pytest.approx(model.fit(rows).cost_, rel=0.01)
    np.testing.assert_array_equal(remote.predict(X), remote.labels_)


# -- reducers, features, landmarks, graphs -------------------------------------------


@pytest.mark.parametrize(
    "reducer",
    [ApproximateSVD(5), FeatureSampling(8), SignProjection(9)],
    ids=lambda reducer: type(reducer).__name__,
)
def test_reducers_are_fitted_on_workers_and_transform_lazily(X, weights, reducer):
    reducer.random_state = 0
    local = clone(reducer).fit(X, sample_weight=weights)
    remote = reducer.fit(_chunked(X), sample_weight=weights)
    features = remote.transform(_chunked(X))
    assert isinstance(features, da.Array)
    np.testing.assert_allclose(
        features.compute(), local.transform(X), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("reducer", ["svd", "sign"])
def test_kernel_fits_behind_a_reducer(X, reducer):
    params = {"reducer": reducer, "n_landmarks": 50, "random_state": 0}
    model = NystromKMeans(6, **params).fit(_chunked(X))
    _assert_same_fit(model, NystromKMeans(6, **params).fit(X))


def test_given_points_are_reduced_on_the_client(X):
    params = {"reducer": "sign", "landmarks": X[:40], "init": X[:6], "random_state": 0}
    model = NystromKMeans(6, **params).fit(_chunked(X))
    _assert_same_fit(model, NystromKMeans(6, **params).fit(X))


@pytest.mark.parametrize(
    "params", [{}, {"rank": 9}, {"rank": 9, "rank_method": "approximation"}], ids=str
)
def test_nystrom_features_are_lazy(X, weights, params):
    nystrom = Nystrom(n_landmarks=40, random_state=0, **params)
    expected = clone(nystrom).fit(X, sample_weight=weights).transform(X)
    found = nystrom.fit(_chunked(X), sample_weight=weights).transform(_chunked(X))
    assert isinstance(found, da.Array)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found.compute(), expected, atol=1e-4)
    with pytest.raises(TypeError, match="Give a sample"):
        nystrom.approximation_error(_chunked(X))


@pytest.mark.parametrize(
    "method", ["uniform", "leverage", "kmeans", KernelKMeansPlusPlus(refine=True)]
)
def test_landmarks_are_chosen_on_workers(X, method):
    found = select_landmarks(_chunked(X), 30, method, random_state=0)
    expected = select_landmarks(X, 30, method, random_state=0)
    np.testing.assert_allclose(found.points, expected.points, rtol=1e-6)


def test_landmarks_that_need_all_rows_are_refused(X):
    with pytest.raises(ValueError, match="choose on a sample"):
        select_landmarks(_chunked(X), 30, "greedy")


def test_spectral_fits_are_those_in_memory():
    rng = np.random.default_rng(0)
    angles, ring = rng.uniform(0, 2 * np.pi, 2 * _CHUNK), np.arange(2 * _CHUNK) % 2
    X = (1.0 + ring)[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    X += 0.05 * rng.normal(size=X.shape)
    model = SpectralKMeans(2, n_landmarks=200, random_state=0)
    remote = clone(model).fit(_chunked(X, _CHUNK))
    _assert_same_fit(remote, model.fit(X))
    assert remote.ncut_ == pytest.approx(model.ncut_)
    np.testing.assert_array_equal(remote.predict(_chunked(X)).compute(), model.labels_)
    given = SpectralKMeans(2, affinity="precomputed")
    with pytest.raises(ValueError, match="'precomputed' does not take a Dask"):
        given.fit(da.ones((50, 50)))


# -- certificates --------------------------------------------------------------------


@pytest.mark.parametrize("method", ["nystrom", "subsample"])
@pytest.mark.parametrize("estimator", [NystromKMeans, SketchedKMeans])
def test_certificates_work_where_the_rows_are(X, weights, estimator, method):
    model = estimator(6, random_state=0).fit(X)
    options = {"method": method, "sample_weight": weights, "random_state": 0}
    found = certificate(model, _chunked(X), **options)
    expected = certificate(model, X, **options)
    assert found.lower_bound == pytest.approx(expected.lower_bound, rel=1e-6)
    assert found.cost == pytest.approx(expected.cost, rel=1e-6)


def test_a_spectral_fit_is_read_from_its_checkpoint(tmp_path):
    X = np.random.default_rng(0).normal(size=(900, 3))
    rows = da.from_array(X, chunks=(300, -1))
    model = SpectralKMeans(3, n_landmarks=50, random_state=0)
    first, again = (
        clone(model).fit(rows, checkpoint=tmp_path / "run.ckpt") for _ in range(2)
    )
    labels = clone(model).fit(rows).labels_.compute()
    np.testing.assert_array_equal(first.labels_.compute(), labels)
    np.testing.assert_array_equal(again.labels_.compute(), labels)


def test_reports_are_of_a_sample_and_say_so(X, tmp_path, monkeypatch):
    monkeypatch.setattr("sketchmeans.report.write._REMOTE_ROWS", 300)
    rows = da.from_array(X, chunks=(len(X) // 3, -1))
    model = NystromKMeans(3, n_landmarks=20, random_state=0).fit(rows)
    path = tmp_path / "report.html"
    report = write_report(model, rows, path, certificate=None)
    assert report.summary.n_rows == 300
    told = "300 rows drawn at random, as a table in memory: 300 rows"
    assert told in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("estimator", [NystromKMeans, SketchedKMeans])
def test_certificates_draw_subsets_of_rows_elsewhere(X, weights, estimator):
    model = estimator(6, random_state=0).fit(X, sample_weight=weights)
    options = {"sample_weight": weights, "random_state": 0}
    some = certificate(model, _chunked(X), max_seconds=1e-3, subset_size=99, **options)
    assert some.confidence == 0.95
    assert some.n_solved < some.n_subsets == -(-np.count_nonzero(weights) // 99)
    assert 0.0 < some.certain_bound < some.lower_bound < model.cost_
    assert some.cost == pytest.approx(model.cost_, rel=1e-5)
    few, options["sample_weight"] = X[:900], weights[:900]
    here = certificate(model, few, "nystrom", **options)
    every = certificate(model, _chunked(few, 256), subset_size=300, **options)
    # All subsets are drawn, so nothing is left to chance.
    assert (every.method, every.confidence) == ("semidefinite", 1.0)
    assert every.n_solved == every.n_subsets == 3
    assert every.lower_bound <= here.cost == pytest.approx(every.cost, rel=1e-6)
    assert every.ratio < 1.2
    assert certificate(model, _chunked(X), confidence=1.0).method == "nystrom"


# -- raw tables ----------------------------------------------------------------------


@pytest.fixture(name="table")
def raw_table():
    rng = np.random.default_rng(0)
    groups = 3.0 * rng.normal(size=(4, 3))[rng.integers(4, size=2 * _CHUNK)]
    values = (groups + rng.normal(size=groups.shape)) * [1.0, 100.0, 0.01]
    table = pd.DataFrame(values, columns=["a", "b", "c"])
    table["city"] = pd.Categorical(np.where(table.a > 0, "Ulm", "Ems"))
    table.loc[7, "b"] = np.nan
    table["id"] = np.arange(len(table))
    return table


def _table_model(**params):
    inner = NystromKMeans(4, n_landmarks=40, random_state=0)
    params = {"exclude": ["city", "id"], "missing": "mean", **params}
    return TableClusterer(inner, **params)


@pytest.mark.parametrize("scale", ["standard", "robust"])
def test_raw_tables_are_prepared_by_partition(table, scale):
    cut = dd.from_pandas(table, npartitions=2)
    remote, local = _table_model(scale=scale).fit(cut), _table_model(scale=scale)
    local.fit(table)
    np.testing.assert_array_equal(remote.center_, local.center_)
    np.testing.assert_array_equal(remote.labels_.compute(), local.labels_)
    np.testing.assert_array_equal(remote.exemplar_indices_, local.exemplar_indices_)
    np.testing.assert_array_equal(remote.predict(cut).compute(), local.labels_)
    np.testing.assert_array_equal(
        remote.transform(cut).compute(), local.transform(table)
    )
    np.testing.assert_array_equal(remote.predict(table), local.labels_)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask beside pandas 3.1
def test_labels_are_written_beside_the_ids(table, tmp_path):
    cut = dd.from_pandas(table, npartitions=3)
    model = _table_model().fit(cut)
    cut[["id"]].assign(cluster=model.predict(cut)).to_parquet(tmp_path / "labels")
    cut.to_parquet(tmp_path / "rows")
    written = pd.read_parquet(tmp_path / "labels")
    np.testing.assert_array_equal(written["id"], table["id"])
    np.testing.assert_array_equal(written["cluster"], model.labels_.compute())
    stored = dd.read_parquet(tmp_path / "rows")
    np.testing.assert_array_equal(model.predict(stored).compute(), written["cluster"])


def test_a_sample_tells_the_scale_of_many_rows(table, monkeypatch):
    monkeypatch.setattr("sketchmeans.cluster.raw_tables.SCALE_ROWS", 3000)
    weights = np.where(np.arange(len(table)) < 4000, 2.0, 1.0)
    cut = dd.from_pandas(table, npartitions=2)
    model = _table_model().fit(cut, sample_weight=weights)
    assert model.n_scale_rows_ == 3000
    local = _table_model().fit(table, sample_weight=weights)
    np.testing.assert_allclose(model.scale_, local.scale_, rtol=0.05)
    assert model.inertia_ == pytest.approx(local.inertia_, rel=0.1)


def test_raw_arrays_have_columns_by_number(X):
    model = TableClusterer(SketchedKMeans(6, random_state=0), exclude=[3])
    remote = clone(model).fit(_chunked(X))
    np.testing.assert_array_equal(remote.labels_.compute(), model.fit(X).labels_)


def test_what_raw_tables_on_a_cluster_cannot_have(table):
    cut = dd.from_pandas(table, npartitions=2)
    with pytest.raises(ValueError, match=r"X\.dropna\(\), or missing='mean'"):
        _table_model(missing="drop").fit(cut)
    others = TableClusterer(KMeans(2), exclude=["city", "id"])
    with pytest.raises(TypeError, match="one of this package"):
        others.fit(cut)
    with pytest.raises(ValueError, match=r"\(NaN\) in row 7, column 'b'"):
        _table_model(missing="error").fit(cut)


def test_categories_of_partitions_are_those_of_the_table(table):
    cut = dd.from_pandas(table, npartitions=2)
    remote, local = _table_model(exclude=["id"]), _table_model(exclude=["id"])
    labels = remote.fit(cut).labels_.compute()
    np.testing.assert_array_equal(labels, local.fit(table).labels_)
    np.testing.assert_array_equal(remote.predict(cut).compute(), labels)


def test_gaps_of_new_partitions_are_named(table):
    model = _table_model(missing="error").fit(table.drop(index=7))
    table.loc[[7, 6000], "b"] = [0.0, np.nan]
    cut = dd.from_pandas(table, npartitions=2)
    with pytest.raises(ValueError, match=r"Partition 1 of X: .*row 1904, column 'b'"):
        model.predict(cut).compute()
