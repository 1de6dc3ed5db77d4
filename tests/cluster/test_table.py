"""Raw tables: columns by name, scales, gaps, and rows that are left out."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import (
    DBSCAN,
    AgglomerativeClustering,
    Birch,
    KMeans,
    MiniBatchKMeans,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sketchmeans import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    TableClusterer,
    open_rows,
)
from sketchmeans.data.preparation import (
    PreparedSource,
    as_table,
    fit_scaling,
    scaling,
)
from sketchmeans.data.sources import Source, column_types
from sketchmeans.datasets import make_customers
from sketchmeans.diagnostics import certificate, cluster_summary
from sketchmeans.numerics.parallel import Workers
from tests.pairs import every_value

N = 600
RNG = np.random.default_rng(0)
GROUPS = RNG.integers(3, size=N)


def people(gaps=False):
    """Return a table from the wild: units, words, classes and maybe gaps."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "name": [f"row {i}" for i in range(N)],
            "income": 1e4 * (2 + GROUPS) + 1e3 * rng.normal(size=N),
            "age": (20 + 15 * GROUPS + rng.integers(5, size=N)).astype(np.int32),
            "rate": (0.01 * GROUPS + 0.001 * rng.normal(size=N)).astype(np.float32),
            "group": np.array(["a", "b", "c"])[GROUPS],
        }
    )
    if gaps:
        frame.loc[[3, 77, 599], "income"] = np.nan
        frame.loc[[77, 300], "rate"] = np.nan
    return frame


FEATURES = ["income", "age", "rate"]
GAPS = [3, 77, 300, 599]


def nystrom(**params):
    return NystromKMeans(3, n_landmarks=60, random_state=0, **params)


def model(**params):
    params = {"exclude": ["name"], "label_column": "group"} | params
    return TableClusterer(nystrom(), **params)


# --- the same as scikit-learn's steps -----------------------------------------------


@every_value
@pytest.mark.parametrize(
    ("scale", "scaler"), [("standard", StandardScaler()), ("robust", RobustScaler())]
)
@pytest.mark.parametrize("missing", ["error", "drop", "mean"])
def test_prepared_rows_are_those_of_scikit_learn(scale, scaler, missing):
    frame = people(gaps=missing != "error")
    found = model(scale=scale, missing=missing).fit(frame)
    X = frame[FEATURES].to_numpy(np.float64)
    steps = [scaler] if missing != "mean" else [SimpleImputer(), scaler]
    kept = ~np.isnan(X).any(axis=1) if missing == "drop" else np.ones(N, bool)
    expected = make_pipeline(*steps).fit_transform(X[kept])
    prepared = found.prepare(frame)
    rows = prepared.read(0, len(prepared))
    assert_allclose(rows, expected, rtol=1e-9, atol=1e-9)
    assert found.n_dropped_ == (~kept).sum()
    assert found.n_scale_rows_ == kept.sum()
    # The labels are those of the estimator on these very rows; on scikit-learn's, which
    # differ by rounding, it may draw other seeds.
    assert_array_equal(found.labels_[kept], nystrom().fit(rows).labels_)
    assert_array_equal(found.labels_[~kept], np.full((~kept).sum(), -1))


def test_without_scaling_rows_are_as_they_were():
    frame = people()
    found = model(scale="none").fit(frame)
    assert_array_equal(found.labels_, nystrom().fit(frame[FEATURES].to_numpy()).labels_)
    # The largest unit decides: the other columns are nothing beside it.
    assert_allclose(found.scale_, 1.0)
    assert_allclose(found.center_, 0.0)


def test_float32_rows_far_from_zero_keep_their_digits():
    X = (np.random.default_rng(0).normal(size=(4000, 3)) + 1e6).astype(np.float32)
    found = TableClusterer(nystrom()).fit(X)
    prepared = found.prepare(X).read(0, 4000)
    assert prepared.dtype == np.float32
    wide = StandardScaler().fit_transform(X.astype(np.float64))
    assert_allclose(prepared, wide, atol=2e-6)


def test_many_blocks_give_the_moments_of_all_rows():
    X = np.random.default_rng(0).normal(size=(20_000, 3)) * [1, 1e-6, 1e6] + [0, 5, 1e9]
    source = as_table(X).open(None)
    ticks = []
    with Workers(2) as workers:
        found, kept = fit_scaling(
            source, "standard", "error", workers, lambda: ticks.append(1)
        )
    assert kept is None
    assert len(ticks) == scaling.n_blocks(source) == 5
    assert_allclose(found.center, X.mean(axis=0), rtol=1e-12, atol=1e-12)
    assert_allclose(found.scale, X.std(axis=0), rtol=1e-9)


def test_quartiles_of_very_many_rows_are_those_of_a_sample(monkeypatch):
    X = np.random.default_rng(0).normal(size=(20_000, 4)) * [1, 2, 3, 4]
    whole = TableClusterer(nystrom(), scale="robust").fit(X)
    monkeypatch.setattr(scaling, "EXACT_VALUES", 4 * 5_000)
    sampled = TableClusterer(nystrom(), scale="robust").fit(X)
    assert (whole.n_scale_rows_, sampled.n_scale_rows_) == (20_000, 5_000)
    assert_allclose(sampled.scale_, whole.scale_, rtol=0.06)
    assert not np.array_equal(sampled.scale_, whole.scale_)


def test_constant_columns_are_divided_by_one():
    X = np.random.default_rng(0).normal(size=(300, 3))
    X[:, 1] = 0.1  # no binary fraction
    X[:, 2] = np.where(np.arange(300) < 280, 5.0, X[:, 2])  # equal quartiles
    for scale in ("standard", "robust"):
        found = TableClusterer(nystrom(), scale=scale).fit(X)
        assert found.scale_[1] == 1.0
        assert_allclose(found.center_[1], 0.1)
    assert_allclose(found.scale_[2], X[:, 2].std())  # in the place of no range


# --- tables of every kind ------------------------------------------------------------


def _written(kind, folder):
    frame = people()
    path = folder / f"people.{kind}"
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    if kind == "csv":
        # In float64: the shortest decimals of a float32 are read as another number.
        frame.astype({"rate": np.float64}).to_csv(path, index=False)
    elif kind == "parquet":
        pa.parquet.write_table(arrow, path)
    else:
        pa.feather.write_feather(arrow, path)
    return path


def test_frames_and_files_give_the_same_labels(tmp_path):
    frame = people()
    expected = model().fit(frame)
    tables = [
        pl.from_pandas(frame),
        pl.from_pandas(frame).lazy(),
        pa.Table.from_pandas(frame),
        frame.convert_dtypes(),
        *[_written(kind, tmp_path) for kind in ("csv", "parquet", "feather")],
    ]
    for table in tables:
        found = model().fit(table)
        assert list(found.feature_names_in_) == FEATURES
        assert_array_equal(found.labels_, expected.labels_)
        assert_array_equal(expected.predict(table), expected.labels_)
        assert list(found.label_values(table)) == list(frame["group"])


def test_gaps_of_every_kind_of_table(tmp_path):
    frame = people(gaps=True)
    frame["age"] = frame["age"].astype("Int32")
    frame.loc[10, "age"] = pd.NA
    expected = [3, 10, 77, 300, 599]
    frame.to_csv(tmp_path / "a.csv", index=False)
    text = (tmp_path / "a.csv").read_text().replace(",,", ",NA,")
    (tmp_path / "b.csv").write_text(text.replace(",NA,", ",?,"))
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    pa.parquet.write_table(arrow, tmp_path / "a.parquet")
    pa.feather.write_feather(arrow, tmp_path / "a.feather")
    names = ("a.csv", "b.csv", "a.parquet", "a.feather")
    tables = [frame, pl.from_pandas(frame), arrow, *(tmp_path / name for name in names)]
    first = None
    for table in tables:
        found = model(missing="drop").fit(table)
        assert list(np.flatnonzero(found.labels_ == -1)) == expected
        filled = model(missing="mean").fit(table)
        assert (filled.labels_ >= 0).all()
        first = first or filled
        assert_allclose(filled.fill_, first.fill_, rtol=1e-6)
        with pytest.raises(ValueError, match=r"row 3, column 'income'.*missing='drop'"):
            model(missing="error").fit(table)


def test_missing_values_of_files_stay_an_error_unless_asked_for(tmp_path):
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"a": [1, None, 3], "b": [1.0, 2.0, 3.0]}), path)
    with pytest.raises(ValueError, match="no value in row 1, column 'a'"):
        open_rows(path).read(0, 3)
    kept = open_rows(path, missing="nan").read(0, 3)
    assert_array_equal(kept, [[1, 1], [np.nan, 2], [3, 3]])
    with pytest.raises(ValueError, match="missing='drop' should be 'error' or 'nan'"):
        open_rows(path, missing="drop")
    # No integer is NaN: small ones become float32, wide ones float64.
    for kind, float_kind in ((pa.int8(), np.float32), (pa.int64(), np.float64)):
        table = pa.table({"a": pa.array([1, None], kind)})
        pa.parquet.write_table(table, path)
        source = open_rows(path, missing="nan")
        assert source.dtype == float_kind
        assert_array_equal(source.take(np.array([1, 0])), [[np.nan], [1]])


def test_arrays_have_numbers_in_the_place_of_names(tmp_path):
    X = people()[FEATURES].to_numpy()
    both = TableClusterer(nystrom(), columns=[2, 0]).fit(X)
    assert both.columns_ == [2, 0]
    assert not hasattr(both, "feature_names_in_")
    other = TableClusterer(nystrom()).fit(X[:, [2, 0]])
    assert_array_equal(both.labels_, other.labels_)
    np.save(tmp_path / "x.npy", X)
    assert_array_equal(both.predict(tmp_path / "x.npy"), both.labels_)
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", fmt="%.17g")
    assert column_types(tmp_path / "x.csv") is None
    excluded = TableClusterer(nystrom(), exclude=[1]).fit(tmp_path / "x.csv")
    assert excluded.columns_ == [0, 2]


def test_sparse_tables_are_scaled_and_not_centred():
    X = sparse.random(900, 20, 0.2, format="csr", random_state=0)
    found = TableClusterer(nystrom()).fit(X)
    assert_allclose(found.scale_, X.toarray().std(axis=0))
    assert_allclose(found.center_, 0.0)
    prepared = found.prepare(X)
    assert prepared.is_sparse
    assert_allclose(prepared.read(5, 9).toarray(), X.toarray()[5:9] / found.scale_)
    assert_array_equal(found.predict(X), found.labels_)
    for params in ({"scale": "robust"}, {"missing": "drop"}, {"missing": "mean"}):
        with pytest.raises(ValueError, match="for a sparse table"):
            TableClusterer(nystrom(), **params).fit(X)


class Counted(Source):
    """Rows that count how many are asked for at once."""

    def __init__(self, X):
        self.X, self.path, self.tallest = X, "counted", 0
        self.shape, self.dtype = X.shape, X.dtype

    def read(self, start, stop, out=None):
        self.tallest = max(self.tallest, stop - start)
        out = self._new_block(stop - start) if out is None else out
        out[...] = self.X[start:stop]
        return out

    def take(self, indices):
        return self.X[indices]


def test_a_source_is_streamed_block_by_block(monkeypatch):
    monkeypatch.setattr("sketchmeans.data.rows.IN_MEMORY_BYTES", 0)
    X = np.random.default_rng(0).normal(size=(30_000, 24))
    X[::7, 3] = np.nan
    source = Counted(X)
    found = TableClusterer(
        nystrom(max_iter=2, tol=0.1, n_init=1), missing="drop", scale="standard"
    )
    found.fit(source)
    assert source.tallest <= 4 * 4096
    kept = ~np.isnan(X[:, 3])
    assert_array_equal(found.labels_ == -1, ~kept)
    prepared = found.prepare(source)
    assert isinstance(prepared, PreparedSource)
    assert prepared.locate(6) == ("counted", 8)
    expected = (X[kept] - found.center_) / found.scale_
    assert_array_equal(prepared.read(1000, 2000), expected[1000:2000])
    assert_array_equal(prepared.take(np.array([5, 1, 9])), expected[[5, 1, 9]])


def test_few_kept_rows_among_many_are_taken_one_by_one():
    X = np.full((50_000, 2), np.nan)
    X[::500] = np.random.default_rng(0).normal(size=(100, 2))
    source = Counted(X)
    found = TableClusterer(NystromKMeans(2, random_state=0), missing="drop").fit(source)
    assert (found.labels_ >= 0).sum() == 100
    assert found.exemplar_indices_ % 500 == pytest.approx([0, 0])


# --- new tables ----------------------------------------------------------------------


def test_columns_are_found_by_name_in_any_order():
    frame = people()
    found = model().fit(frame)
    shuffled = frame[["rate", "group", "age", "name", "income"]].assign(more="x")
    assert_array_equal(found.predict(shuffled), found.labels_)
    only = frame[["rate", "income", "age"]]
    assert_array_equal(found.predict(only), found.labels_)
    assert_array_equal(found.predict(only.iloc[::-1]), found.labels_[::-1])
    with pytest.raises(ValueError, match="no columns 'income', 'rate'; its columns"):
        found.predict(frame[["age", "name"]])
    with pytest.raises(ValueError, match="has no column names"):
        found.predict(frame[FEATURES].to_numpy())
    with pytest.raises(ValueError, match="row 0, column 'age': 'old' is not a number"):
        found.predict(frame.assign(age="old"))


def test_new_rows_with_gaps():
    frame = people()
    gaps = people(gaps=True)
    dropping = model(missing="drop").fit(frame)
    expected = dropping.labels_.copy()
    expected[GAPS] = -1
    assert_array_equal(dropping.predict(gaps), expected)
    distances = dropping.transform(gaps)
    assert distances.shape == (N, 3)
    assert_array_equal(np.isnan(distances).all(axis=1), expected == -1)
    kept = np.setdiff1d(np.arange(N), GAPS)
    assert dropping.cost(gaps) == pytest.approx(dropping.cost(frame.iloc[kept]))
    assert dropping.score(gaps) == pytest.approx(-dropping.cost(gaps) * len(kept))
    assert list(dropping.label_values(gaps)) == list(frame["group"].iloc[kept])
    none = gaps.assign(age=np.nan)
    assert_array_equal(dropping.predict(none), np.full(N, -1))
    with pytest.raises(ValueError, match="missing value in every row"):
        dropping.transform(none)
    filling = model(missing="mean").fit(frame)
    means = gaps.fillna(frame[FEATURES].mean())
    assert_array_equal(filling.predict(gaps), filling.predict(means))
    with pytest.raises(
        ValueError, match=r"no value \(NaN\) in row 3, column 'income', and the"
    ):
        model(missing="error").fit(frame).predict(gaps)


def test_exemplars_are_rows_of_the_table():
    frame = people(gaps=True)
    found = model(missing="drop").fit(frame)
    rows = frame[FEATURES].iloc[found.exemplar_indices_].to_numpy(float)
    assert_allclose(found.exemplars_, rows, rtol=1e-6)
    assert set(found.labels_[found.exemplar_indices_]) == {0, 1, 2}


def test_clusters_are_described_in_the_units_of_the_table():
    frame = people(gaps=True)
    found = model(missing="drop").fit(frame)
    summary = cluster_summary(found.estimator_, found.prepare(frame))
    table = frame[FEATURES].astype(float)
    whole = table.dropna()
    means = whole.groupby(found.labels_[whole.index]).mean()
    assert_allclose(summary.features.cluster_means, means.to_numpy(), rtol=1e-6)
    assert_allclose(summary.features.mean, whole.mean(), rtol=1e-6)
    assert_allclose(summary.features.deviation, whole.std(ddof=0), rtol=1e-6)
    assert_array_equal(summary.exemplar_indices[:, 0], found.exemplar_indices_)
    for cluster in range(3):
        numbers, rows = summary.exemplars_of(cluster)
        assert_allclose(rows, table.iloc[numbers].to_numpy(), rtol=1e-5)


# --- an estimator as others -----------------------------------------------------------


@pytest.mark.parametrize("estimator", [NystromKMeans, KernelKMeans, SketchedKMeans])
def test_estimators_within(estimator):
    frame = people()
    found = TableClusterer(estimator(3, random_state=0), exclude=["name", "group"])
    labels = found.fit_predict(frame)
    assert_array_equal(labels, found.labels_)
    assert_array_equal(found.predict(frame), labels)
    assert found.cost_ == pytest.approx(found.cost(frame))
    assert found.inertia_ == pytest.approx(-found.score(frame))
    assert found.cluster_sizes_.sum() == N
    assert found.converged_
    assert found.n_iter_ >= 1
    bound = certificate(found.estimator_, found.prepare(frame))
    assert bound.cost == pytest.approx(found.cost_)


def test_parameters_nest_and_clone():
    first = model(missing="mean")
    first.set_params(estimator__n_clusters=2, scale="robust")
    second = clone(first)
    assert second.get_params()["estimator__n_clusters"] == 2
    assert second.scale == "robust"
    frame = people()
    fitted = second.fit(frame)
    assert not hasattr(second.estimator, "labels_")
    assert fitted.get_feature_names_out().tolist() == [
        "tableclusterer0",
        "tableclusterer1",
    ]


def test_a_failed_fit_leaves_the_model_as_it_was():
    frame = people()
    found = model(missing="error").fit(frame)
    before = dict(vars(found))
    with pytest.raises(ValueError, match="no value"):
        found.fit(people(gaps=True))
    assert vars(found) == before


def test_checkpoints_are_those_of_the_estimator(tmp_path):
    path = tmp_path / "run.ckpt"
    frame = people()
    first = model().fit(frame, checkpoint=path)
    assert path.exists()
    assert_array_equal(model().fit(frame, checkpoint=path).labels_, first.labels_)
    with pytest.raises(ValueError, match="is of another fit"):
        model(scale="robust").fit(frame, checkpoint=path)
    exact = TableClusterer(KernelKMeans(3), exclude=["name", "group"])
    with pytest.raises(
        ValueError, match="checkpoint should be None: KernelKMeans does not"
    ):
        exact.fit(frame, checkpoint=path)


class Events:
    """A callback that is handed on to the estimator within."""

    max_propagation_depth = None

    def __init__(self):
        self.ended, self.costs = [], []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        self.ended.append(context.task_name)
        if context.task_name == "iteration":
            self.costs.append(metadata["cost"])


def test_callbacks_see_the_stages_of_both():
    events = Events()
    found = model().set_callbacks(events).fit(people())
    for name in ("block", "reading rows", "landmarks", "iteration"):
        assert name in events.ended
    assert events.ended.index("reading rows") < events.ended.index("landmarks")
    assert events.ended[-1] == "fit"
    assert min(events.costs) == pytest.approx(found.cost_)


# --- any clusterer --------------------------------------------------------------------


def _expected_failures(estimator):
    # Repeated rows are shuffled, so the same seed draws other rows: equal in law only,
    # as in scikit-learn's own KMeans.
    reason = "sample_weight is not equivalent to repeating samples: the draws differ"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


# check_array_api_input reports a skip: it needs an environment variable that is read at
# import, and tables are read through NumPy in any case.
@parametrize_with_checks(
    [TableClusterer(NystromKMeans(3, n_init=1, random_state=0))],
    expected_failed_checks=_expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_a_clusterer_of_scikit_learn():
    frame = people(gaps=True)
    found = model(missing="drop").set_params(estimator=KMeans(3, random_state=0))
    labels = found.fit_predict(frame)
    rows = found.prepare(frame)
    expected = KMeans(3, random_state=0).fit(rows.read(0, len(rows)))
    kept = np.setdiff1d(np.arange(N), GAPS)
    assert_array_equal(labels[kept], expected.labels_)
    assert_array_equal(found.predict(frame), labels)
    assert found.inertia_ == expected.inertia_
    assert found.score(frame) == pytest.approx(-expected.inertia_)
    assert found.transform(frame).shape == (N, 3)
    assert len(found.get_feature_names_out()) == 3
    for name in ("cost", "cost_", "exemplars_", "exemplar_indices_"):
        assert not hasattr(found, name)
    centres = found.inverse_transform(found.estimator_.cluster_centers_)
    means = frame[FEATURES].iloc[kept].astype(float).groupby(labels[kept]).mean()
    assert_allclose(centres, means, rtol=1e-5)


def test_a_clusterer_that_only_fits():
    frame = people()
    found = model().set_params(estimator=DBSCAN(eps=0.5, min_samples=3))
    assert adjusted_rand_score(GROUPS, found.fit_predict(frame)) > 0.9
    assert not hasattr(found, "predict")
    assert not hasattr(found, "score")
    with pytest.raises(AttributeError, match="'transform': its estimator, DBSCAN, has"):
        found.transform(frame)
    with pytest.raises(AttributeError, match="'partial_fit': its estimator, DBSCAN"):
        found.partial_fit(frame)
    found.set_params(estimator=AgglomerativeClustering(3))
    with pytest.raises(ValueError, match="sample_weight should be None: Agglomerative"):
        found.fit(frame, sample_weight=np.ones(N))


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianMixture(3, random_state=0),
        make_pipeline(PCA(2), NystromKMeans(3, random_state=0)),
        make_pipeline(PCA(2), DBSCAN(eps=0.5, min_samples=3)),
    ],
)
def test_clusterers_that_keep_no_labels(estimator):
    found = model().set_params(estimator=estimator)
    assert adjusted_rand_score(GROUPS, found.fit_predict(people())) > 0.9
    with pytest.raises(ValueError, match="should be a clusterer"):
        model().set_params(estimator=IsolationForest()).fit(people())


@pytest.mark.parametrize(
    "estimator",
    [NystromKMeans(3, random_state=0), MiniBatchKMeans(3, random_state=0), Birch()],
)
def test_batches_are_prepared_as_the_first_one(estimator):
    frame = people(gaps=True)
    found = model(missing="drop").set_params(estimator=estimator)
    found.partial_fit(frame)
    center = found.center_
    expected = clone(estimator)
    for batch in (frame, frame[: N // 2]):
        rows = found.prepare(batch)
        expected.partial_fit(pd.DataFrame(rows.read(0, len(rows)), columns=FEATURES))
    found.partial_fit(frame[: N // 2])
    assert found.center_ is center
    assert_array_equal(found.labels_, found.predict(frame[: N // 2]))
    rows = found.prepare(frame)
    whole = pd.DataFrame(rows.read(0, len(rows)), columns=FEATURES)
    assert_array_equal(
        found.predict(frame)[found.predict(frame) >= 0], expected.predict(whole)
    )


def test_weights_of_batches():
    frame, weights = people(), np.random.default_rng(0).integers(1, 4, N)
    found = model().partial_fit(frame, sample_weight=weights)
    found.partial_fit(frame, sample_weight=weights)
    assert found.cluster_sizes_.sum() == 2 * weights.sum()
    with pytest.raises(ValueError, match=r"sample_weight.shape=\(3,\) should be"):
        found.partial_fit(frame, sample_weight=[1, 2, 3])
    found.set_params(estimator=Birch())
    with pytest.raises(ValueError, match="sample_weight should be None: Birch"):
        found.partial_fit(frame, sample_weight=weights)


# --- rows as dictionaries ------------------------------------------------------------


def test_dictionaries_are_rows():
    frame = people().astype({"name": str})
    found = model(exclude=["name", "rate"], missing="fill").fit(frame)
    rows = [
        {**row, "age": None if i == 1 else row["age"]}
        for i, row in enumerate(frame.to_dict("records"))
    ]
    expected = found.predict(pd.DataFrame.from_records(rows))
    assert_array_equal(found.predict(rows), expected)
    assert_array_equal(found.predict(rows[1]), expected[1:2])
    assert found.transform(rows[:2]).shape == (2, 3)
    assert_array_equal(model().fit_predict(rows), model().fit_predict(frame))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"age": ...}, "X should have a value for 'age'; None stands for"),
        ({"agee": 3}, "X has 'agee', of which the fit knows nothing; it knows 'inc"),
        ({"age": [1, 2]}, "one value for 'age', not a list; several rows are a list"),
        ({"age": "old"}, "column 'age': 'old' is not a number"),
    ],
)
def test_wrong_dictionaries(change, text):
    frame = people()
    found = model().fit(frame)
    row = frame.to_dict("records")[0] | change
    row = {name: value for name, value in row.items() if value is not ...}
    with pytest.raises(ValueError, match=text):
        found.predict(row)
    if "age" in row:  # as a later row of several
        with pytest.raises(ValueError, match=r"X\[1\]|types that do not match|go with"):
            found.predict([frame.to_dict("records")[0], row])
    with pytest.raises(ValueError, match="fitted to columns without names"):
        TableClusterer(nystrom()).fit(frame[FEATURES].to_numpy(float)).predict(row)
    with pytest.raises(ValueError, match=r"X\[1\] of type int should be a dict"):
        found.predict([frame.to_dict("records")[0], 7])


def test_rows_for_a_clusterer_of_scikit_learn_have_to_fit_in_memory(monkeypatch):
    monkeypatch.setattr("sketchmeans.cluster.table.memory_budget", lambda given: 5_000)
    monkeypatch.setattr("sketchmeans.data.source_rows.FIXED_NEED", 10**9)
    found = model().set_params(estimator=KMeans(3))
    with pytest.raises(
        MemoryError, match=r"KMeans takes rows in memory.* take 14\.4 kB"
    ):
        found.fit(people())


def test_quartiles_of_weighted_columns_leave_out_gaps():
    values, weights = np.arange(60.0) * 0.37, np.tile([1, 3], 30)
    frame = pd.DataFrame({"a": values, "b": values % 2.5, "word": ["x", "y"] * 30})
    frame.loc[[3, 8], "a"] = np.nan
    repeated = np.repeat(frame["a"], weights)
    median = np.nanquantile(repeated, 0.5, method="inverted_cdf")
    for scale in ("auto", "robust"):
        found = TableClusterer(KMeans(2, random_state=0), scale=scale)
        found.fit(frame, sample_weight=weights)
        assert (found.fill_[0], found.n_filled_) == (median, 2)


@pytest.mark.parametrize("missing", ["error", "drop", "mean"])
def test_weights_count_rows(missing):
    frame = people(gaps=missing != "error")
    weights = np.random.default_rng(0).integers(0, 4, N)
    repeated = frame.loc[np.repeat(np.arange(N), weights)]
    once = model(missing=missing).fit(frame, sample_weight=weights)
    more = model(missing=missing).fit(repeated)
    tiny = model(missing=missing).fit(frame, sample_weight=weights * 2.0**-1000)
    assert_array_equal(tiny.scale_, once.scale_)
    assert_array_equal(tiny.labels_, once.labels_)
    assert_allclose(once.center_, more.center_, rtol=1e-9)
    assert_allclose(once.scale_, more.scale_, rtol=1e-9)
    assert once.cluster_sizes_.sum() == more.cluster_sizes_.sum()
    assert once.cost(frame, weights) == pytest.approx(once.cost(repeated))
    assert once.score(frame, sample_weight=weights) == pytest.approx(
        once.score(repeated)
    )


def test_weights_of_gaps_that_are_filled_with_medians():
    frame = make_customers(300, random_state=2)[0][["age", "orders", "revenue"]]
    weights = np.random.default_rng(0).integers(1, 4, 300)
    found = TableClusterer(SketchedKMeans(2, random_state=0), scale="standard")
    once = clone(found).fit(frame, sample_weight=weights)
    assert once.n_filled_ > 0
    more = found.fit(frame.loc[np.repeat(np.arange(300), weights)])
    assert_allclose(once.center_, more.center_, rtol=1e-9)
    assert_allclose(once.scale_, more.scale_, rtol=1e-9)


def test_weights_of_sparse_tables_and_of_quartiles():
    X = sparse.random(300, 5, 0.5, format="csr", random_state=0)
    weights = np.random.default_rng(0).integers(0, 4, 300)
    repeated = X[np.repeat(np.arange(300), weights)]
    once = TableClusterer(nystrom()).fit(X, sample_weight=weights)
    assert_allclose(once.scale_, repeated.toarray().std(axis=0), rtol=1e-9)
    robust = TableClusterer(nystrom(), scale="robust")
    robust.fit(X.toarray(), sample_weight=weights)
    quartiles = np.quantile(
        repeated.toarray(), [0.25, 0.5, 0.75], axis=0, method="inverted_cdf"
    )
    assert_allclose(robust.center_, quartiles[1])
    assert_allclose(robust.scale_, quartiles[2] - quartiles[0])


def test_a_path_is_not_metadata_of_a_fit():
    request = model().get_metadata_routing().fit.requests
    assert "sample_weight" in request
    assert "checkpoint" not in request


# --- errors --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"columns": ["age", "height"]}, "no column 'height'; its columns are 'name'"),
        ({"exclude": ["a", "b"]}, "no columns 'a', 'b'"),
        ({"columns": "age"}, "columns='age' should be a list"),
        ({"columns": ["age", "age"]}, "should be a list of different"),
        ({"columns": ["age", "group"]}, "label_column='group' should not be one of"),
        ({"columns": ["age"], "exclude": ["age"]}, "leaves no column"),
        (
            {"columns": ["age", "name"], "exclude": []},
            r"columns=\['name'\] .* nearly every value is",
        ),
        ({"as_kinds": ["age"]}, r"as_kinds=\['age'\] should be a dictionary"),
        ({"as_kinds": {"age": "float"}}, "as_kinds={'age': 'float'} should be one of"),
        ({"as_kinds": {"size": "numeric"}}, "no column 'size'; its columns are"),
        ({"as_kinds": {"rate": "date"}}, "does not fit column 'rate': dates should be"),
        (
            {"as_kinds": {"name": "numeric"}, "exclude": []},
            "it holds other values than numbers",
        ),
        ({"as_kinds": {"name": "category"}}, "clustered by; 'name' is left out"),
        ({"as_kinds": {"age": "boolean"}}, "different values, not two"),
        ({"scale": "unit"}, "scale='unit' should be one of"),
        ({"missing": "zero"}, "missing='zero' should be one of"),
    ],
)
def test_wrong_parameters(params, text):
    with pytest.raises(ValueError, match=text):
        model(**params).fit(people())


def test_wrong_tables(tmp_path, monkeypatch):
    frame = people()
    with pytest.raises(ValueError, match="infinite value in row 4, column 'age'"):
        model(missing="mean").fit(
            frame.assign(age=np.where(np.arange(N) == 4, np.inf, 1))
        )
    empty = np.full((N, 2), np.nan)
    empty[:, 0] = 1.0
    with pytest.raises(ValueError, match=r"no value at all in \[1\]"):
        TableClusterer(nystrom(), missing="mean").fit(empty)
    with pytest.raises(ValueError, match="missing value in every row"):
        TableClusterer(nystrom(), missing="drop").fit(empty)
    with pytest.raises(ValueError, match="'age' that are too large to scale"):
        model().fit(frame.assign(age=np.where(np.arange(N) % 2, 1e200, -1e200)))
    with pytest.raises(ValueError, match=r"more than one column \['age'\]"):
        model().fit(pd.concat([frame, frame[["age"]]], axis=1))
    with pytest.raises(ValueError, match="estimator='x' should be a clusterer"):
        TableClusterer("x").fit(frame)
    with pytest.raises(ValueError, match="kernel='precomputed' should be another"):
        TableClusterer(NystromKMeans(2, kernel="precomputed")).fit(frame)
    with pytest.raises(ValueError, match="label_column=None should name"):
        model(label_column=None, exclude=["name", "group"]).fit(frame).label_values(
            frame
        )
    path = tmp_path / "empty.csv"
    path.write_text("a,b\n")
    with pytest.raises(ValueError, match="has no rows"):
        model().fit(path)
    # Words further down than the rows that tell the kind of a column.
    monkeypatch.setattr("sketchmeans.data.preparation.plan.SAMPLE_ROWS", 1000)
    text = io.StringIO()
    text.write("a,b\n" + "1.5,2.5\n2.5,4\n" * 100_000 + "1.5,word\n")
    path.write_text(text.getvalue())
    with pytest.raises(
        ValueError, match="row 200000, column 'b': 'word' is not a number"
    ):
        TableClusterer(nystrom()).fit(path)
