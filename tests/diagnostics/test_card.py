"""Model cards, and `sketchmeans card` and `export`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchmeans import (
    ApproximateSVD,
    KernelKMeans,
    NystromKMeans,
    SpectralKMeans,
    TableClusterer,
    save,
)
from sketchmeans.cli.app import run
from sketchmeans.cluster.segment_names import rename_segments
from sketchmeans.diagnostics import model_card

EVIL = "a|b <img>\n`x`"


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 2)), columns=["age", EVIL])
    frame["age"] += np.repeat([0.0, 9.0, 18.0], 30)
    return frame.assign(plan=np.repeat(["Free", "Pro", "Team"], 30), same=1.0)


def test_a_card_names_segments_columns_and_limits():
    frame = table()
    frame.loc[3, "age"] = np.nan
    model = TableClusterer(NystromKMeans(3, n_landmarks=30, random_state=0)).fit(frame)
    rename_segments(model, {0: "Heavy *buyers*"})
    text = model_card(model)
    assert text.startswith("# Model card\n\n3 segments of 90 rows, found by Nystrom")
    assert r"| 0 | Heavy \*buyers\* | 30 | 33.3% |" in text
    assert "| plan | category | yes |" in text
    assert "| same | constant | no | every value is 1: left out |" in text
    assert r"a\|b \<img\>\\n\`x\`" in text
    assert "1 rows of the fit had some" in text
    assert "landmarks and typical rows of the training data" in text


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (KernelKMeans(3, random_state=0), "holds all rows of the training data"),
        (SpectralKMeans(3, random_state=0), "| normalised cut | "),
        (
            make_pipeline(StandardScaler(), NystromKMeans(3, random_state=0)),
            "| steps | StandardScaler, NystromKMeans |",
        ),
        (NystromKMeans(60, random_state=0), "and 10 smaller ones."),
        (
            TableClusterer(NystromKMeans(3, random_state=0), missing="drop"),
            "2 columns without names|label −1",
        ),
    ],
)
def test_cards_of_other_models(model, text):
    found = model_card(model.fit(table()[["age", EVIL]].to_numpy()))
    for part in text.split("|") if "names|" in text else [text]:
        assert part in found


def test_a_card_is_of_a_fitted_model():
    with pytest.raises(NotFittedError):
        model_card(NystromKMeans(3))
    with pytest.raises(ValueError, match="should be a fitted KernelKMeans"):
        model_card(StandardScaler().fit([[1.0], [2.0]]))


# --- the commands ---------------------------------------------------------------------


@pytest.fixture
def model_file(tmp_path):
    X = table()[["age", EVIL]].to_numpy()
    save(NystromKMeans(3, n_landmarks=30, random_state=0).fit(X), tmp_path / "m.skm")
    save(ApproximateSVD(1, random_state=0).fit(X), tmp_path / "svd.skm")
    return tmp_path / "m.skm"


def test_card_and_export_write_files(model_file, tmp_path, capsys):
    assert run(["card", str(model_file)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# Model card: m.skm\n")
    assert run(["card", str(model_file), "-o", str(tmp_path / "m.md")]) == 0
    assert (tmp_path / "m.md").read_text() == text
    pytest.importorskip("onnx")
    assert run(["export", str(model_file), "--onnx", str(tmp_path / "m.onnx")]) == 0
    assert "Wrote" in capsys.readouterr().out
    assert (tmp_path / "m.onnx").stat().st_size > 1_000


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["card", "m.skm", "-o", "m.html"], 2, "--out m.html should end in .md"),
        (["export", "m.skm", "--onnx", "m.skm"], 2, "should end in .onnx"),
        (["export", "m.skm"], 2, "--onnx"),
        (["card", "svd.skm"], 1, "holds a ApproximateSVD, which has no clusters"),
        (["card", "none.skm"], 1, "none.skm"),
    ],
)
def test_wrong_commands(
    arguments, code, text, model_file, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert run(arguments) == code
    assert text in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_a_graph_that_cannot_be_made_leaves_no_file(tmp_path, capsys):
    pytest.importorskip("onnx")
    X = table()[["age", EVIL]].to_numpy()
    save(SpectralKMeans(3, random_state=0).fit(X), tmp_path / "m.skm")
    code = run(["export", str(tmp_path / "m.skm"), "--onnx", str(tmp_path / "m.onnx")])
    assert code == 1
    assert "cannot be expressed in ONNX" in capsys.readouterr().err
    assert not (tmp_path / "m.onnx").exists()


def test_commands_take_pipelines(tmp_path, capsys):
    frame = table()[["age"]].assign(other=1.5 * np.arange(90.0))
    model = make_pipeline(StandardScaler(), NystromKMeans(3, random_state=0)).fit(frame)
    save(model, tmp_path / "m.skm")
    frame.to_csv(tmp_path / "t.csv", index=False)
    files = [str(tmp_path / "m.skm"), str(tmp_path / "t.csv")]
    assert run(["predict", *files]) == 0
    labels = [
        int(line.split(",")[1]) for line in capsys.readouterr().out.splitlines()[1:]
    ]
    assert labels == model.predict(frame).tolist()
    assert run(["info", files[0]]) == 0
    assert "Pipeline" in capsys.readouterr().out
    assert run(["certify", *files]) == 0
    assert run(["report", *files, "-o", str(tmp_path / "r.html")]) == 0


def test_a_card_says_what_becomes_of_gaps():
    X = np.random.default_rng(0).normal(size=(60, 3))
    bare = TableClusterer(NystromKMeans(2, random_state=0)).fit(X)
    assert "A missing value is an error." in model_card(bare)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = TableClusterer(NystromKMeans(2, random_state=0)).fit(frame)
    assert "Missing values are filled in as in the fit." in model_card(named)
