"""Clusterers of scikit-learn within a `TableClusterer`, in model files."""

import numpy as np
import pytest
from sklearn.cluster import Birch, KMeans, MiniBatchKMeans

from sketchmeans import TableClusterer, load, save
from sketchmeans.cli import main
from sketchmeans.datasets import make_customers
from sketchmeans.diagnostics import rename_segments
from sketchmeans.persistence import ModelFileError

OLD, NEW = (make_customers(400, random_state=seed)[0] for seed in (0, 1))


@pytest.fixture(scope="module")
def model():
    fitted = TableClusterer(KMeans(3, n_init=2, random_state=0)).fit(OLD)
    rename_segments(fitted, {1: "Heavy buyers"})
    return fitted


def test_centres_of_scikit_learn_are_saved_and_loaded(model, tmp_path):
    save(model, tmp_path / "m.skm")
    again = load(tmp_path / "m.skm")
    assert type(again.estimator_) is KMeans
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))
    assert again.score(NEW) == model.score(NEW)
    assert again.segment_names_ == ("Segment 0", "Heavy buyers", "Segment 2")
    assert again.fit(NEW).predict(NEW).max() == 2


def test_predict_writes_labels_and_names(model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(model, "m.skm")
    NEW.to_csv("new.csv", index=False)
    assert main(["predict", "m.skm", "new.csv", "--id", "customer_id"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith('"customer_id","label","segment"\n')
    assert '"Heavy buyers"' in said.out
    assert "holds a KMeans of another library" in said.err
    for command in ("report", "drift"):
        assert main([command, "m.skm", "new.csv"]) == 1
    assert main(["explain", "m.skm", "new.csv", "3"]) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("estimator", "text"),
    [
        (Birch(n_clusters=3), "estimator of class Birch should be one of"),
        (MiniBatchKMeans(3), "of class MiniBatchKMeans should be one of"),
        (KMeans(3, init=np.zeros((3, 18)), n_init=1), "init="),
    ],
)
def test_other_clusterers_are_refused_with_advice(estimator, text, tmp_path):
    table = OLD[["age", "orders"]].fillna(0.0)
    if isinstance(estimator, KMeans):
        estimator = estimator.set_params(init=np.eye(3, 2))
    model = TableClusterer(estimator).fit(table)
    with pytest.raises(ModelFileError, match=text) as raised:
        save(model, tmp_path / "m.skm")
    if not isinstance(estimator, KMeans):
        assert "KMeans" in str(raised.value)
        assert "skops" in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_a_lone_kmeans_is_not_a_model(tmp_path):
    with pytest.raises(ModelFileError):
        save(KMeans(2, n_init=1).fit(np.arange(8.0).reshape(4, 2)), tmp_path / "m.skm")
