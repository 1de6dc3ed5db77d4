"""Details that a model file keeps, and contradictions that it may not hold."""

from types import SimpleNamespace

import numpy as np
import pytest

from sketchmeans import NystromKMeans, load, save
from sketchmeans.persistence.checks import check_selection


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_keep_their_order_in_memory(order, tmp_path):
    # The last bits of products depend on it.
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = NystromKMeans(2, n_landmarks=9, random_state=0).fit(X)
    model.landmarks_ = np.asarray(model.landmarks_, order=order)
    save(model, tmp_path / "model.skm")
    found = load(tmp_path / "model.skm").landmarks_
    np.testing.assert_array_equal(found, model.landmarks_)
    assert found.flags.c_contiguous == (order == "C")


@pytest.mark.parametrize("features", [[0, 1, 1], [0, 2, 1], [-1, 0, 1], [0, 1, 3]])
def test_chosen_features_are_ascending_and_there(features):
    model = SimpleNamespace(n_features_in_=3)
    model._sketch = SimpleNamespace(features=np.array([0, 1, 2]))
    check_selection(model)
    model._sketch.features = np.array(features)
    with pytest.raises(ValueError, match="ascending and below n_features_in_=3"):
        check_selection(model)
