"""The service of examples/serve."""

import importlib.util
import warnings
from pathlib import Path

import pytest

from sketchmeans import NystromKMeans, TableClusterer, load, save
from sketchmeans.cluster.segment_names import rename_segments
from sketchmeans.datasets import make_customers

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

APP = Path(__file__).parents[2] / "examples" / "serve" / "app.py"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with warnings.catch_warnings():  # of a newer client, which is not required
        warnings.filterwarnings("ignore", "Using `httpx`")
        from fastapi.testclient import TestClient

    frame = make_customers(400)[0][["age", "plan", "orders"]]
    model = TableClusterer(NystromKMeans(3, n_landmarks=40, random_state=0)).fit(frame)
    rename_segments(model, {j: f"Name {j}" for j in range(3)})
    path = tmp_path_factory.mktemp("serve") / "m.skm"
    save(model, path)
    spec = importlib.util.spec_from_file_location("serve_app", APP)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return TestClient(module.make_app(load(path))), model


def test_rows_get_labels_and_names(client):
    service, model = client
    rows = [
        {"age": 30.0, "plan": "free", "orders": 3.0},
        {"age": None, "plan": None, "orders": 150.0},
    ]
    answer = service.post("/predict", json={"rows": rows}).json()
    assert answer["labels"] == model.predict(rows).tolist()
    assert answer["segments"] == [f"Name {j}" for j in answer["labels"]]
    assert "Name 2" in service.get("/card").json()


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"age": 30.0, "plan": "free"}, "X[0] should have a value for 'orders'"),
        ({"age": "old", "plan": "free", "orders": 3}, "'old' is not a number"),
        ({"age": 1, "plan": "free", "orders": 3, "x": 1}, "of which the fit knows"),
    ],
)
def test_wrong_rows_are_named(client, row, text):
    answer = client[0].post("/predict", json={"rows": [row]})
    assert answer.status_code == 422
    assert text in answer.json()["detail"]


def test_no_rows_and_nested_values_are_refused(client):
    for rows in ([], [{"age": [1]}], 7):
        assert client[0].post("/predict", json={"rows": rows}).status_code == 422
