"""Model files of other versions: what is absent, unknown, or has another name."""

import json

import numpy as np
import pytest

import sketchmeans
from sketchmeans import ModelFileError, NystromKMeans, TableClusterer
from sketchmeans.persistence.history import (
    VERSION,
    Change,
    format_version,
    parse_version,
)
from sketchmeans.persistence.registry import SPECS
from tests.stored_models import FOLDER, read_model, write_model

X = np.random.default_rng(0).random((60, 4))


@pytest.fixture(scope="module", name="original")
def fitted_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.skm"
    params = {"n_landmarks": 10, "tol": 0.01, "random_state": 0}
    sketchmeans.save(TableClusterer(NystromKMeans(3, **params)).fit(X), path)
    return path


@pytest.fixture
def rewritten(original, tmp_path):
    """Return a function that writes the model anew, in another version."""

    def rewrite(version, edit=lambda node: None):
        _, schema, tensors = read_model(original)
        root = json.loads(schema)
        edit(root["model"])
        text = json.dumps(root)
        write_model(tmp_path / "m.skm", text, tensors, format_version(version))
        return tmp_path / "m.skm"

    return rewrite


def inner(node):
    return node["fitted"]["estimator_"]


@pytest.mark.parametrize("version", [(1, 0), VERSION, (1, 99)])
def test_absent_parameters_take_their_defaults(version, rewritten, original):
    def drop(node):
        del node["params"]["scale"], inner(node)["params"]["tol"]
        del inner(node)["params"]["algorithm"]

    model = sketchmeans.load(rewritten(version, drop))
    # The first version standardised every table.
    assert model.scale == ("standard" if version == (1, 0) else "auto")
    assert model.estimator_.tol == NystromKMeans().tol != 0.01
    assert model.estimator_.algorithm == "progressive"
    np.testing.assert_array_equal(
        model.predict(X), sketchmeans.load(original).predict(X)
    )


@pytest.mark.parametrize(
    ("edit", "name"),
    [
        (lambda node: node["params"].update(n_swaps=3), r"params .*\['n_swaps'\]"),
        (
            lambda node: inner(node)["params"].update(n_swaps=3),
            r"estimator_\.params should not have \['n_swaps'\]",
        ),
        (lambda node: node["fitted"].update(swaps_=3), r"fitted .*\['swaps_'\]"),
        (
            lambda node: inner(node)["params"].update(
                init={"object": "Swaps", "params": {}}
            ),
            r"init of class 'Swaps'",
        ),
    ],
    ids=["parameter", "inner parameter", "attribute", "class"],
)
def test_what_only_a_newer_version_knows_is_refused_by_name(edit, name, rewritten):
    newer = rf"m\.skm.*{name}.*newer sketchmeans.* format 1\.99.*Upgrade"
    with pytest.raises(ModelFileError, match=newer):
        sketchmeans.load(rewritten((1, 99), edit))
    with pytest.raises(ModelFileError, match=name) as caught:
        sketchmeans.load(rewritten(VERSION, edit))
    assert "Upgrade" not in str(caught.value)


def test_a_newer_major_version_is_refused(rewritten):
    with pytest.raises(ModelFileError, match=r"newer .* format 2\.0; .* up to 1\."):
        sketchmeans.load(rewritten((2, 0)))


def test_versions_that_are_none(original, tmp_path):
    data = original.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    path = tmp_path / "m.skm"
    for text in ("", "1.", ".1", "01", "1.01", "+1", "1.1.1", "1_0", 1):
        header["__metadata__"]["version"] = text
        changed = json.dumps(header).encode()
        size = len(changed).to_bytes(8, "little")
        path.write_bytes(size + changed + data[8 + length :])
        with pytest.raises(ModelFileError, match=r"version .* should be two numbers"):
            sketchmeans.load(path)


def test_the_history_of_names_is_followed(rewritten, monkeypatch):
    def as_it_was(node):
        params = inner(node)["params"]
        params["n_points"] = params.pop("n_landmarks")
        params["algorithm"] = "racing"
        params["luck"] = 7
        del params["max_iter"], inner(node)["fitted"]["converged_"]
        inner(node)["fitted"]["the_rank_"] = inner(node)["fitted"].pop("rank_")

    changes = [
        Change((1, 2), "NystromKMeans", renamed={"n_points": "n_anchors"}),
        Change(
            (1, 3),
            "NystromKMeans",
            renamed={"n_anchors": "n_landmarks", "the_rank_": "rank_"},
            removed=frozenset({"luck"}),
            older={"max_iter": 17, "converged_": True},
            reworded={"algorithm": {"racing": "full"}},
        ),
    ]
    monkeypatch.setattr("sketchmeans.persistence.history.HISTORY", changes)
    model = sketchmeans.load(rewritten((1, 1), as_it_was)).estimator_
    assert (model.n_landmarks, model.algorithm, model.max_iter) == (10, "full", 17)
    assert model.converged_ is True
    assert model.rank_ >= 1
    # The old names mean nothing in a file that is no older than the change.
    with pytest.raises(ModelFileError, match=r"should not have \['luck', 'n_points'\]"):
        sketchmeans.load(rewritten((1, 3), as_it_was))


def _names(node, found):
    """Collect the parameters of every class in a schema."""
    if isinstance(node, dict):
        if "object" in node:
            found.setdefault(node["object"], set()).update(node["params"])
        for value in node.values():
            _names(value, found)
    elif isinstance(node, list):
        for value in node:
            _names(value, found)


def test_a_change_of_names_raises_the_version():
    """Raise the second number of VERSION once after each release."""
    folders = [folder for folder in FOLDER.iterdir() if folder.is_dir()]
    newest = max(folders, key=lambda f: [int(n) for n in f.name.split(".")])
    found, versions = {}, set()
    for file in newest.glob("*.skm"):
        version, schema, _ = read_model(file)
        versions.add(version)
        _names(json.loads(schema), found)
    now = {name: set(spec.params) for name, spec in SPECS.items()}
    assert max(map(parse_version, versions)) < VERSION or now == found
