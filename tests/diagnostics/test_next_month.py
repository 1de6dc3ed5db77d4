"""Scores of rows, segments that keep their labels, and why a row is where it is."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchmeans import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
    TableClusterer,
    load,
    save,
)
from sketchmeans.cluster.segment_names import rename_segments, segment_names
from sketchmeans.datasets import make_customers
from sketchmeans.diagnostics import (
    calibrate,
    drift,
    explain_row,
    match_labels,
    score_rows,
    soft_membership,
)
from sketchmeans.diagnostics.matching import _AXES, permute_clusters
from sketchmeans.persistence.kinds import Maybe, OneOf, Tensor
from sketchmeans.persistence.registry import SPECS

X, Y = make_blobs(3000, 4, centers=4, cluster_std=2.0, random_state=3)
MODELS = {
    "nystrom": NystromKMeans(4, random_state=0),
    "linear": NystromKMeans(4, kernel="linear", random_state=0),
    "reduced": NystromKMeans(4, reducer="svd", random_state=0),
    "exact": KernelKMeans(4, random_state=0),
    "sketched": SketchedKMeans(4, random_state=0),
    "spectral": SpectralKMeans(4, n_landmarks=60, random_state=0),
    "table": TableClusterer(NystromKMeans(4, random_state=0)),
}


@pytest.fixture(scope="module")
def fitted():
    rows = X[:900]
    for model in MODELS.values():
        calibrate(model.fit(rows), rows)
    return MODELS


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_all_distances(name, fitted, tmp_path):
    model, rows = fitted[name], X[:900]
    found, distances = score_rows(model, rows), model.transform(rows)
    assert_array_equal(found.labels, model.predict(rows))
    two = np.sort(distances, axis=1)
    assert_allclose(found.distances, two[:, 0], atol=1e-6)
    assert_allclose(found.margins, 1.0 - two[:, 0] / two[:, 1], atol=1e-5)
    assert_allclose(found.membership.sum(axis=1), 1.0)
    clear = found.margins > 1e-3
    best = found.membership.argmax(axis=1)
    assert_array_equal(best[clear], found.labels[clear])
    assert 0.009 <= found.unusual.mean() <= 0.0101
    assert score_rows(model, rows, unusual_share=0.1).unusual.mean() == pytest.approx(
        0.1, abs=0.002
    )
    assert score_rows(model, rows[:20] + 300.0).unusual.all() or name == "linear"
    if name != "exact":  # a file keeps what was learned of the fit
        save(model, tmp_path / "m.skm")
        again = score_rows(load(tmp_path / "m.skm"), rows)
        assert_array_equal(again.membership, found.membership)
        assert_array_equal(again.unusual, found.unusual)


def test_memberships_are_the_probabilities_of_a_round_mixture():
    centers = np.array([[0.0, 0.0], [4.0, 0.0]])
    rows, truth = make_blobs(20_000, centers=centers, cluster_std=1.3, random_state=0)
    model = SketchedKMeans(2, random_state=0).fit(rows)
    calibrate(model, rows)
    membership = soft_membership(model, rows)
    squared = ((rows[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    weights = np.exp(-squared / (2 * model.reference_.variance))
    assert_allclose(membership, weights / weights.sum(axis=1, keepdims=True))
    is_swapped = membership[truth == 0, 0].mean() < 0.5
    right = model.labels_ == (1 - truth if is_swapped else truth)
    assert membership.max(axis=1).mean() == pytest.approx(right.mean(), abs=0.02)


def test_a_new_fit_forgets_and_what_is_missing_is_said():
    model = SketchedKMeans(2, random_state=0).fit(X)
    calibrate(model, X)
    assert not hasattr(model.fit(X), "reference_")
    found = score_rows(model, X[:5])
    assert found.membership is None
    assert found.unusual is None
    with pytest.raises(ValueError, match=r"calibrate\(model, X\)"):
        soft_membership(model, X)
    with pytest.raises(ValueError, match=r"unusual_share=0\.9"):
        score_rows(model, X, unusual_share=0.9)
    with pytest.raises(ValueError, match="sample_size=1"):
        calibrate(model, X, sample_size=1)
    given = KernelKMeans(2, kernel="precomputed", random_state=0).fit(X[:50] @ X[:50].T)
    with pytest.raises(ValueError, match="precomputed"):
        calibrate(given, X[:50] @ X[:50].T)


def test_rows_that_are_left_out_have_no_scores():
    table = pd.DataFrame(X[:400], columns=[*"abcd"])
    table.loc[[0, 7, 399], "b"] = np.nan
    model = TableClusterer(SketchedKMeans(3, random_state=0), missing="drop").fit(table)
    calibrate(model, table)
    found = score_rows(model, table)
    assert_array_equal(found.labels, model.labels_)
    assert_array_equal(np.flatnonzero(np.isnan(found.membership[:, 0])), [0, 7, 399])
    assert_array_equal(np.flatnonzero(np.isnan(found.distances)), [0, 7, 399])
    assert found.unusual.sum() == 3


# --- labels ---------------------------------------------------------------------------


def test_every_array_with_an_entry_per_cluster_is_known():
    for spec in SPECS.values():
        for name, kind in spec.fitted.items():
            kinds = [kind.kind] if isinstance(kind, Maybe) else [kind]
            kinds = kinds[0].kinds if isinstance(kinds[0], OneOf) else kinds
            for one in kinds:
                if isinstance(one, Tensor) and "k" in one.dims:
                    assert one.dims.index("k") == _AXES[name], (spec.name, name)


@pytest.mark.parametrize("name", MODELS)
def test_permuted_clusters_are_the_same(name, fitted):
    model, rows = fitted[name], X[:900]
    before, distances = model.labels_, model.transform(rows)
    scores, sizes = score_rows(model, rows), model.cluster_sizes_
    order = np.array([2, 0, 3, 1])
    permute_clusters(model, order)
    assert_array_equal(order[model.labels_], before)
    assert_array_equal(model.labels_, model.predict(rows))
    assert_allclose(model.transform(rows), distances[:, order], rtol=1e-12)
    assert_array_equal(model.cluster_sizes_, sizes[order])
    assert_array_equal(model.predict(X[model.exemplar_indices_]), np.arange(4))
    again = score_rows(model, rows)
    assert_allclose(again.membership, scores.membership[:, order], atol=1e-9)
    assert_array_equal(again.unusual, scores.unusual)
    permute_clusters(model, np.argsort(order))


def test_a_refit_keeps_labels_and_names():
    old = TableClusterer(NystromKMeans(4, random_state=0)).fit(X[:1500])
    rename_segments(old, {2: "Heavy buyers"})
    new = TableClusterer(NystromKMeans(4, random_state=7)).fit(X[1000:])
    found = match_labels(new, old, X[1000:])
    assert np.mean(new.predict(X) == old.predict(X)) >= 0.95
    assert_array_equal(found.old_labels, np.arange(4))
    assert found.dissolved == ()
    assert segment_names(new)[2] == "Heavy buyers"


def test_groups_that_did_not_change_keep_their_labels_beside_new_ones():
    rows, group = make_blobs(1600, 4, centers=5, cluster_std=0.7, random_state=4)
    old = SketchedKMeans(4, random_state=0).fit(rows[group != 4])
    later = rows[group != 1]  # one is gone, and another has come
    new = SketchedKMeans(4, random_state=1).fit(later)
    found = match_labels(new, old, later)
    for unchanged in (0, 2, 3):
        part = rows[group == unchanged]
        assert np.mean(new.predict(part) == old.predict(part)) >= 0.95
    assert found.dissolved == (old.predict(rows[group == 1])[0],)
    assert found.old_labels[new.predict(rows[group == 4])[0]] == -1


def test_other_numbers_of_segments_keep_what_they_can():
    old = SketchedKMeans(4, random_state=0).fit(X)
    rename_segments(old, {3: "Last"})
    last = old.labels_ == 3
    fewer = SketchedKMeans(2, random_state=0).fit(X[last | (old.labels_ == 1)])
    found = match_labels(fewer, old, X[last | (old.labels_ == 1)])
    assert sorted(found.old_labels) == [1, 3]
    assert segment_names(fewer)[fewer.predict(X[last])[0]] == "Last"
    assert fewer.predict(X[old.labels_ == 1])[0] == 1
    more = SketchedKMeans(6, random_state=0).fit(X)
    match_labels(more, old, X)
    assert len(set(segment_names(more))) == 6


# --- reasons --------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_changes_move_a_row_to_the_next_segment(name, fitted):
    model = fitted[name]
    found = explain_row(model, X[:900], 5)
    assert found.label == model.predict(X[5:6])[0] != found.next_label
    assert found.distance < found.next_distance
    moved = X[5:6].copy()
    for column, before, after in found.changes:
        j = int(column[1:])
        assert before == pytest.approx(before)
        moved[0, j] = float(after)
    distances = model.transform(moved)[0]
    assert distances[found.next_label] <= distances[found.label] * 1.001
    total = sum(abs(reason.contribution) for reason in found.reasons)
    assert total == pytest.approx(1.0)
    assert "to move" in repr(found)


def test_reasons_are_exact_for_plain_k_means(fitted):
    model = fitted["sketched"]
    found = explain_row(model, X[:900], 11)
    own, other = model.cluster_centers_[[found.label, found.next_label]]
    target = model.exemplars_[found.next_label]

    def parts(x):
        return (x - other) ** 2 - (x - own) ** 2

    expected = parts(X[11]) - parts(target)
    expected /= np.abs(expected).sum()
    shares = {reason.name: reason.contribution for reason in found.reasons}
    assert_allclose([shares[f"x{j}"] for j in range(4)], expected, rtol=1e-6)


def test_reasons_are_in_the_words_of_the_table():
    rng = np.random.default_rng(0)
    group = np.arange(400) % 2
    table = pd.DataFrame(
        {
            "orders": np.exp(rng.normal(2.0 * group, 0.2)).round(2),
            "plan": np.array(["free", "gold"])[group],
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(300 * group, "D"),
        }
    )
    table.loc[4, "orders"] = np.nan
    model = TableClusterer(NystromKMeans(2, random_state=0)).fit(table)
    found = explain_row(model, table, 4)
    values = {reason.name: (reason.value, reason.other) for reason in found.reasons}
    assert values["orders"][0] == "missing"
    assert values["plan"] == ("free", "gold")
    assert values["since"] == ("2024-01-01", "2024-10-27")
    assert 0 < len(found.changes) <= 3
    for row, message in ((400, "below 400"), (-1, "row=-1")):
        with pytest.raises(ValueError, match=message):
            explain_row(model, table, row)
    one = SketchedKMeans(1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="one cluster only"):
        explain_row(one, X, 0)


@pytest.mark.parametrize("ask", [calibrate, drift, lambda m, X: explain_row(m, X, 0)])
def test_models_without_distances_are_named(ask):
    X = np.random.default_rng(0).normal(size=(60, 2))
    pipe = make_pipeline(StandardScaler(), SketchedKMeans(2, random_state=0)).fit(X)
    with pytest.raises(ValueError, match=r"model\[-1\] and model\[:-1\].transform"):
        ask(pipe, X)
    foreign = TableClusterer(KMeans(2, random_state=0)).fit(X)
    with pytest.raises(ValueError, match=r"model=KMeans\(.*should be a fitted Kernel"):
        ask(foreign, X)


def test_counts_stay_whole_on_the_way_to_another_segment():
    table, _ = make_customers(300, random_state=5)
    model = TableClusterer(NystromKMeans(4, random_state=0)).fit(table)
    seen = 0
    for number in range(40):
        found = explain_row(model, table, number)
        row = table.iloc[number].to_dict()
        for name, before, after in found.changes:
            if name in ("orders", "days_since_order") and before != "missing":
                assert after.isdigit()
                seen += name == found.changes[-1][0]
            row[name] = pd.Timestamp(after) if name == "signed_up" else after
        numbers = ("age", "orders", "days_since_order", "revenue")
        row |= {n: float(str(row[n]).replace(",", "")) for n in numbers}
        if found.changes and found.changes[-1][0] in ("orders", "days_since_order"):
            assert model.predict(row)[0] == found.next_label
    assert seen > 3
