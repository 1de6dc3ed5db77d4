"""Names of segments: kept in the model and its file, until it is fitted again."""

import json

import numpy as np
import pytest

import sketchmeans
from sketchmeans import ModelFileError, SketchedKMeans, TableClusterer
from sketchmeans.cluster.segment_names import rename_segments, segment_names
from tests.commands import refused, said
from tests.stored_models import read_model, write_model

X = np.repeat(np.eye(3), 20, axis=0) + np.arange(60)[:, None] / 1e3


@pytest.fixture(params=["bare", "table"])
def model(request):
    bare = SketchedKMeans(3, random_state=0)
    return (bare if request.param == "bare" else TableClusterer(bare)).fit(X)


@pytest.fixture
def file(model, tmp_path):
    sketchmeans.save(model, tmp_path / "m.skm")
    return tmp_path / "m.skm"


def test_names_stay_until_the_next_fit(model):
    assert segment_names(model) == ("Segment 0", "Segment 1", "Segment 2")
    rename_segments(model, {2: " Heavy buyers "})
    assert model.segment_names_ == ("Segment 0", "Segment 1", "Heavy buyers")
    model.fit(X)
    assert segment_names(model)[2] == "Segment 2"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({3: "a"}, "label 3 of 'a' should be one of 0 to 2"),
        ({True: "a"}, "label True"),
        ({0: ""}, "'' should be a printable text of 1 to 80"),
        ({0: "a\x1b[31m"}, "should be a printable text"),
        ({0: "a" * 81}, "should be a printable text"),
        ({0: 7}, "should be a printable text"),
        ({0: "SEGMENT 1"}, "'Segment 1' is that of another"),
    ],
)
def test_a_bad_name_changes_nothing(model, names, message):
    with pytest.raises(ValueError, match=message):
        rename_segments(model, names)
    assert not hasattr(model, "segment_names_")


def test_rename_writes_the_model_file(file, capsys):
    out = said(capsys, "rename", file, "2=Heavy buyers", "0=A=B").out
    assert "Heavy buyers" in out
    names = ("A=B", "Segment 1", "Heavy buyers")
    assert sketchmeans.load(file).segment_names_ == names
    found = said(capsys, "rename", file, "1=C", "--json").json
    assert found["segment_names"] == ["A=B", "C", "Heavy buyers"]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["3=x"], "label 3"),
        (["Heavy buyers"], "should be LABEL=NAME with a label from 0 to 2"),
        (["-1=x"], "No such option|LABEL=NAME"),
        (["0=x", "0=y"], "names segment 0 twice"),
        (["0="], "printable"),
        (["0=x", "1=X"], "that of another"),
    ],
)
def test_rename_refuses(file, capsys, typed, message):
    before = file.read_bytes()
    refused(said(capsys, "rename", file, *typed), 2, message)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["m.skm"]


def test_rename_needs_a_model(tmp_path, capsys):
    refused(said(capsys, "rename", tmp_path / "none.skm", "0=x"), 1, "No such file")
    refused(said(capsys, "rename", tmp_path / "no" / "m.skm", "0=x"), 2, "no folder")
    (tmp_path / "a.skm").write_text("a,b\n1,2\n")
    refused(said(capsys, "rename", tmp_path / "a.skm", "0=x"), 1, "cannot be loaded")


@pytest.mark.parametrize(
    "names", [["a", "b"], ["a", "b", ""], ["a", "b", "\x07"], "abc"]
)
def test_names_in_a_file_are_checked(file, names):
    _, schema, tensors = read_model(file)
    root = json.loads(schema)
    root["model"]["fitted"]["segment_names_"] = names
    write_model(file, json.dumps(root), tensors, "1.2")
    with pytest.raises(ModelFileError, match="segment_names_"):
        sketchmeans.load(file)
