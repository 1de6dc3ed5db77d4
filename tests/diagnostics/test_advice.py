"""Suggestions, comparisons and the look at a table's columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from sketchmeans import KernelKMeans, NystromKMeans, SketchedKMeans
from sketchmeans.diagnostics import (
    advised_bandwidth,
    advised_cluster_count,
    bandwidth_grid,
    certificate,
    column_summary,
    compare_models,
)
from sketchmeans.kernels.bandwidth import Gamma

RNG = np.random.default_rng(0)
Y = RNG.integers(3, size=300)
X = RNG.normal(size=(300, 4)) + 5.0 * Y[:, None]


ENDS = {"low": -0.06, "high": 0.06}


def counts(*stability):
    ks = np.arange(2, 2 + len(stability))
    return {"n_clusters": ks, "stability": np.array(stability)}


def test_the_most_clusters_that_samples_agree_on():
    assert advised_cluster_count(counts(0.99, 0.5, 0.98, 0.9)).value == 4
    assert advised_cluster_count(counts(0.99, 0.5, 0.96, 0.9)).value == 2
    clear = advised_cluster_count(counts(0.3, 0.6))
    assert (clear.value, clear.is_clear) == (3, True)
    vague = advised_cluster_count(counts(0.3, 0.2, 0.1))
    assert (vague.value, vague.is_clear) == (2, False)
    assert "hardly agree" in vague.note
    wide = counts(0.9, 0.8)
    wide |= {f"stability_{end}": wide["stability"] + d for end, d in ENDS.items()}
    overlapping = advised_cluster_count(wide)
    assert (overlapping.value, overlapping.is_clear) == (2, False)
    assert "overlaps with that of 3" in overlapping.note


def path(gamma, stability, ratio, dimension):
    return {
        "gamma": np.array(gamma),
        "stability": np.array(stability),
        "ratio": np.array(ratio),
        "effective_dimension": np.array(dimension),
    }


def test_a_bandwidth_that_is_stable_and_close_to_the_optimum():
    found = advised_bandwidth(
        path([1, 2, 4, 8], [0.9, 0.91, 0.89, 0.5], [9, 3, 2, 1.1], [5, 9, 20, 50]),
        4,
        400,
    )
    assert (found.value, found.is_clear) == (4.0, True)
    assert "within 2.00 times" in found.note
    # All rows look the same for the first, no two alike for the last.
    ends = path([1, 2, 4], [1.0, 0.8, 1.0], [1.0, 3.0, 1.0], [2, 9, 350])
    assert advised_bandwidth(ends, 4, 400).value == 2.0
    none = advised_bandwidth(path([1, 2], [1, 1], [2, 3], [1, 2]), 4, 400)
    assert (none.value, none.is_clear) == (1.0, False)
    vague = advised_bandwidth(path([1, 2], [0.1, 0.3], [2, 3], [9, 9]), 4, 400)
    assert (vague.value, vague.is_clear) == (2.0, False)


def test_bandwidths_lie_around_the_rule():
    rule: Gamma = "median"
    grid = bandwidth_grid(X, gamma=rule, size=5, random_state=0)
    middle = NystromKMeans(2, gamma=rule, random_state=0).fit(X).gamma_
    assert grid == pytest.approx([middle * 2.0**i for i in range(-2, 3)])
    with pytest.raises(ValueError, match="kernel='linear' should have a bandwidth"):
        bandwidth_grid(X, kernel="linear")


def test_models_side_by_side():
    models = {
        "exact": KernelKMeans(3, gamma=0.1, random_state=0),
        "few": NystromKMeans(3, gamma=0.1, n_landmarks=3, random_state=0),
        "other": NystromKMeans(3, gamma=1e-6, n_landmarks=30, random_state=0),
        "plain": SketchedKMeans(3, random_state=0),
        "odd": NystromKMeans(3, kernel="sigmoid", n_landmarks=30, random_state=0),
    }
    seen = []
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        found = compare_models(models, X, Y, on_model=seen.append)
    assert seen == list(found.names) == list(models)
    assert not hasattr(models["exact"], "labels_")
    fits = [models[name].fit(X) for name in seen[:4]]
    for i, fit in enumerate(fits):
        assert found.cost[i] == pytest.approx(fit.cost_)
        assert found.class_information[i] == pytest.approx(
            normalized_mutual_info_score(Y, fit.labels_)
        )
        assert found.agreement[i, 0] == pytest.approx(
            adjusted_rand_score(fit.labels_, fits[0].labels_)
        )
    assert found.ratio[1] == pytest.approx(certificate(fits[1], X).ratio)
    assert np.isnan(found.ratio[4])
    assert list(found.n_landmarks[:4]) == [300, 3, 30, 0]
    # The cost of another bandwidth is the lowest, and in other units.
    assert found.cost[:4].argmin() == 2
    assert found.best == int(np.argmin(found.cost[:2]))
    assert (found.seconds > 0.0).all()
    assert compare_models({"a": models["few"]}, X).class_information is None
    with pytest.raises(ValueError, match="at least one model"):
        compare_models({}, X)


def test_columns_of_a_table():
    frame = pd.DataFrame(
        {"a": [1.0, np.nan, 3.0], "b": ["x", "y", "z"], "c": [np.nan] * 3}
    )
    found = column_summary(frame)
    assert found.n_rows == 3
    assert found.names == ("a", "b", "c")
    assert found.types[0] is found.types[2] is None
    assert found.types[1] is not None
    assert list(found.missing) == [1, 0, 3]
    np.testing.assert_array_equal(found.mean, [2.0, np.nan, np.nan])
    np.testing.assert_array_equal(found.deviation, [1.0, np.nan, np.nan])
    words = column_summary(frame[["b"]])
    assert (words.n_rows, words.names) == (3, ("b",))
    assert words.to_dict()["mean"] == [None]
