"""The command line, run in this process: what it says, writes and returns."""

import gzip
import io
import json
import os
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from numpy.testing import assert_array_equal
from rich.console import Console
from scipy import sparse

import sketchmeans
from sketchmeans import (
    KernelKMeans,
    NystromKMeans,
    SketchedKMeans,
    SpectralKMeans,
    TableClusterer,
    diagnostics,
)
from sketchmeans.cli import main
from sketchmeans.cli.files import read_classes
from sketchmeans.cli.options import PrintOptions
from sketchmeans.cli.progress import Display
from sketchmeans.cli.screen import Screen, format_duration
from sketchmeans.data.preparation import as_table
from tests import written
from tests.commands import refused, said
from tests.fuzz.model_mutations import read_checkpoint, write_checkpoint

N = 900
#: Rows where models are compared, which takes many fits.
FEW = 300


def shop():
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=N)
    frame = pd.DataFrame(
        {
            "customer": [f"c{i}" for i in range(N)],
            "income": 2e4 + 1e4 * group + 1e3 * rng.normal(size=N),
            "age": 20 + 10 * group + rng.integers(4, size=N),
            "ratio": 0.1 * group + 0.01 * rng.normal(size=N),
            "segment": np.array(["a", "b", "c"])[group],
        }
    )
    frame.loc[[5, 500], "income"] = np.nan
    return frame


FRAME = shop()
NUMBERS = ["income", "age", "ratio"]
TABLE = ["--exclude", "customer", "--label-column", "segment", "--missing", "drop"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with the table in several formats, and a model."""
    folder = tmp_path_factory.mktemp("data")
    FRAME.to_csv(folder / "shop.csv", index=False)
    FRAME.head(FEW).to_csv(folder / "few.csv", index=False)
    FRAME.to_parquet(folder / "shop.parquet", index=False)
    FRAME.to_feather(folder / "shop.feather")
    np.save(folder / "shop.npy", FRAME[NUMBERS].to_numpy())
    table, model = str(folder / "shop.csv"), str(folder / "model.skm")
    assert main(["fit", table, "-k", "3", *TABLE, "--quiet", "--model", model]) == 0
    return folder


@pytest.fixture
def run(capsys, monkeypatch):
    # A report looks for a proof until its time is up.
    monkeypatch.setattr("sketchmeans.report.write._PROOF_SECONDS", 0.5)
    return partial(said, capsys)


# --- fit -----------------------------------------------------------------------------


def python_model(**params):
    return TableClusterer(
        NystromKMeans(3, random_state=0, **params),
        exclude=["customer"],
        label_column="segment",
        missing="drop",
    )


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        (
            "--kernel laplacian --gamma 0.5 --landmarks kmeans++ --n-landmarks 40 "
            "--rank 20 --init random --n-init 3 --max-iter 20 --tol 0.01 --seed 4 "
            "--max-memory 1GB --jobs 1",
            NystromKMeans(
                3,
                kernel="laplacian",
                gamma=0.5,
                landmarks="kmeans++",
                n_landmarks=40,
                rank=20,
                init="random",
                n_init=3,
                max_iter=20,
                tol=0.01,
                random_state=4,
            ),
        ),
        (
            "--kernel polynomial --degree 2 --coef0 0.5 --gamma scale --reducer svd",
            NystromKMeans(
                3,
                kernel="polynomial",
                degree=2,
                coef0=0.5,
                gamma="scale",
                reducer="svd",
                random_state=0,
            ),
        ),
        ("--estimator exact --gamma 2", KernelKMeans(3, gamma=2, random_state=0)),
        (
            "--estimator sketched --reducer sampling",
            SketchedKMeans(3, reducer="sampling", random_state=0),
        ),
        (
            "--method spectral --n-neighbors 7 --n-landmarks 60",
            SpectralKMeans(3, n_neighbors=7, n_landmarks=60, random_state=0),
        ),
    ],
)
def test_options_are_parameters(options, estimator, data, run, tmp_path):
    out = tmp_path / "labels.npy"
    said = run(
        "fit", data / "shop.csv", "-k", 3, *TABLE, *options.split(), "--labels", out
    )
    assert said.code == 0, said.err
    model = python_model().set_params(estimator=estimator)
    assert_array_equal(np.load(out), model.fit_predict(data / "shop.csv"))


@pytest.mark.parametrize(
    "write",
    [
        written.write_parquet,
        written.write_feather_packed,
        written.write_arrow,
        written.write_csv,
        written.write_npz_packed,
        written.write_svmlight_from_zero,
    ],
)
def test_every_format(write, run, tmp_path):
    rows = written.X[:300]
    if write is written.write_svmlight_from_zero:
        rows = sparse.csr_array(rows)
    path = write(tmp_path, rows)
    if write is written.write_csv:  # with a separator of another kind
        path.write_text(path.read_text().replace(",", ";"))
    model, labels = tmp_path / "m.skm", tmp_path / "l.npy"
    told = run("fit", path, "-k", 4, "--labels", labels, "--model", model)
    assert (told.code, told.err) == (0, "")
    expected = TableClusterer(NystromKMeans(4, random_state=0)).fit_predict(path)
    assert_array_equal(np.load(labels), expected)
    assert run("predict", model, path, "--out", labels, "-v").code == 0
    assert_array_equal(np.load(labels), expected)
    assert "300 rows" in run("info", path).out


def test_what_a_fit_says(data, run):
    said = run("fit", data / "shop.csv", "-k", 3, *TABLE)
    assert said.code == 0
    assert said.err == ""
    assert "Clustered 900 rows of 3 columns into 3 clusters in" in said.out
    assert "2 rows with missing values (label -1)" in said.out
    assert "100.0% of rows match, NMI 1.000, ARI 1.000" in said.out
    assert "Nothing was written" in said.out
    model = python_model().fit(FRAME)
    for size in model.cluster_sizes_:
        assert re.search(rf"{size:.0f} +\d+\.\d%", said.out)
    assert f"{model.cost_:.6g}" in said.out


def test_a_fit_for_machines(data, run, tmp_path):
    model_file, labels = tmp_path / "m.skm", tmp_path / "l.csv"
    said = run(
        *("fit", data / "shop.csv", "-k", 3, *TABLE, "--json"),
        *("--model", model_file, "--labels", labels),
    )
    found = said.json
    model = python_model().fit(FRAME)
    assert found["cost"] == pytest.approx(model.cost_)
    assert found["cluster_sizes"] == model.cluster_sizes_.tolist()
    assert found["columns"] == NUMBERS
    assert (found["n_samples"], found["n_dropped"]) == (N, 2)
    assert found["normalized_mutual_information"] == pytest.approx(1.0)
    assert found["files"] == [str(model_file), str(labels)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.csv", "m.skm"]


@pytest.mark.parametrize("suffix", ["csv", "npy", "parquet"])
def test_labels_in_every_format(suffix, data, run, tmp_path):
    out = tmp_path / f"labels.{suffix}"
    said = run("predict", data / "model.skm", data / "shop.csv", "--out", out)
    assert said.code == 0
    assert said.out.startswith("Labelled 900 rows in")
    assert "2 with missing values have the label -1" in said.out
    if suffix == "npy":
        labels = np.load(out)
    else:
        table = pd.read_csv(out) if suffix == "csv" else pyarrow.parquet.read_table(out)
        assert_array_equal(np.asarray(table["row"]), np.arange(N))
        labels = np.asarray(table["label"])
    assert_array_equal(labels, python_model().fit_predict(FRAME))
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_columns_by_number_where_there_are_no_names(data, run, tmp_path):
    out = tmp_path / "labels.npy"
    said = run(
        *("fit", data / "shop.npy", "-k", 3, "--columns", "2,0", "--missing", "mean"),
        *("--labels", out, "--scale", "robust"),
    )
    assert said.code == 0, said.err
    model = TableClusterer(
        NystromKMeans(3, random_state=0), columns=[2, 0], scale="robust", missing="mean"
    )
    assert_array_equal(np.load(out), model.fit_predict(data / "shop.npy"))


def test_names_with_commas_are_quoted(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a,b", "c", "d"])
    frame.to_csv(tmp_path / "x.csv", index=False)
    said = run(
        *("fit", tmp_path / "x.csv", "-k", 2, "--columns", '"a,b",c'),
        *("--columns", "d", "--json"),
    )
    assert said.json["columns"] == ["a,b", "c", "d"]
    said = run("fit", tmp_path / "x.csv", "-k", 2, "--exclude", "a,b")
    refused(said, 1, "no columns 'a', 'b'.*A name with a comma needs quotes: '\"a,b\"'")


def test_warnings_are_lines(data, run):
    said = run("fit", data / "shop.csv", "-k", 3, *TABLE, "--max-iter", 1, "--quiet")
    assert said.code == 0
    assert said.out == ""
    assert said.err.startswith("Warning: No convergence after --max-iter 1")
    assert said.err.count("\n") == 1


def test_verbose_is_lines(data, run):
    said = run("fit", data / "shop.csv", "-k", 3, *TABLE, "--verbose")
    lines = said.err.splitlines()
    assert lines[0].startswith("Reading rows: done in")
    assert any(re.match(r"Landmarks: done in", line) for line in lines)
    rows = r"Clustering all 898 rows.*: "
    assert any(re.match(rf"{rows}iteration 1, cost", line) for line in lines)
    done = rf"{rows}done in .*, \d+ iterations"
    assert any(re.match(done, line) for line in lines)
    assert re.match(rf"{rows}done in", lines[-1])  # swaps, if there were any


def test_a_fit_of_a_large_file_says_what_to_expect(data, run, monkeypatch):
    monkeypatch.setattr("sketchmeans.cli.plan._LARGE_BYTES", 0)
    monkeypatch.setattr("sketchmeans.engine.progress._LONG", 500)
    said = run("fit", data / "shop.csv", "-k", 3, *TABLE, "--verbose")
    assert re.match(r"Expected: about .* in all", said.err)
    line = r"Clustering all 898 rows.*: iteration 1, 100% of the rows, .* rows/s, about"
    assert re.search(rf"{line} .* left", said.err)
    small = run("fit", data / "shop.csv", "-k", 3, *TABLE)
    assert "Expected" not in small.err


def test_a_checkpoint_is_taken_up(data, run, tmp_path):
    path = tmp_path / "run.ckpt"
    first = run(
        "fit", data / "shop.csv", "-k", 3, *TABLE, "--checkpoint", path, "--json"
    )
    assert path.exists()
    again = run(
        "fit", data / "shop.csv", "-k", 3, *TABLE, "--checkpoint", path, "--json"
    )
    assert again.json["cost"] == first.json["cost"]
    other = run("fit", data / "shop.csv", "-k", 4, *TABLE, "--checkpoint", path)
    refused(other, 2, "--checkpoint .* is of another fit: --n-clusters is 4 and was 3")


def test_a_table_as_it_is(data, run, tmp_path):
    """The whole table alone, with words and gaps."""
    model, labels = tmp_path / "m.skm", tmp_path / "l.csv"
    told = run("fit", data / "shop.csv", "-k", 3, "-o", model, "-o", labels)
    assert (told.code, told.err) == (0, "")
    assert re.search(r"numbers +income, age, ratio +\(8\d% of the weight\)", told.out)
    assert re.search(r"categories +segment +\(1\d% of the weight\)", told.out)
    assert "left out    customer (nearly every value is different)" in told.out
    assert "gaps in 2 rows, by the median of the column" in told.out
    expected = pd.read_csv(labels)["label"]
    found = run("fit", data / "shop.parquet", "-k", 3, "--json").json
    assert found["kinds"]["customer"] == "identifier"
    assert sum(found["column_weights"]) == pytest.approx(1.0)
    assert all(type(size) is int for size in found["cluster_sizes"])
    # The table first, its columns in capitals, and a level that the fit has not seen.
    other = FRAME.rename(columns={"age": "AGE"})
    other.loc[0, "segment"] = "z"
    other.to_csv(tmp_path / "other.csv", index=False)
    told = run("predict", tmp_path / "other.csv", model, "-o", labels)
    assert told.code == 0
    assert "m.skm is the model and" in told.err
    assert "'AGE' for 'age': taken for the same column" in told.err
    assert "1 value in column 'segment' that is no level of the fit" in told.err
    assert (pd.read_csv(labels)["label"] == expected)[1:].all()


def test_kinds_are_typed(data, run):
    words = ("fit", data / "shop.csv", "-k", 3, "--json", "--as")
    found = run(*words, "age=category").json
    assert found["kinds"]["age"] == "category"
    refused(run(*words, "age"), 2, "--as age should be NAME=KIND")
    refused(run(*words, "age=float"), 2, "--as age=float should be one of")
    refused(run(*words, "tall=numeric"), 1, "no column 'tall'")
    refused(run(*words, "customer=numeric"), 2, "--as customer=numeric does not fit")


def test_the_ending_says_what_is_written(data, run, tmp_path):
    words = ("fit", data / "shop.csv", "-k", 3, "-o")
    refused(run(*words, tmp_path / "x.txt"), 2, "x.txt should end in .skm")
    twice = run(*words, tmp_path / "x.csv", "--labels", tmp_path / "y.csv")
    refused(twice, 2, "x.csv: --labels .*y.csv is written already")


# --- standard input and output --------------------------------------------------------


def typed(monkeypatch, text):
    stream = io.TextIOWrapper(io.BytesIO(text.encode()))
    monkeypatch.setattr(sys, "stdin", stream)


def test_tables_from_standard_input_and_labels_to_standard_output(
    data, run, monkeypatch
):
    text = (data / "shop.csv").read_text()
    typed(monkeypatch, text)
    said = run("fit", "-", "-k", 3, *TABLE, "--labels", "-")
    assert said.code == 0
    assert "Clustered 900 rows" in said.err  # for people: not between the labels
    fitted = pd.read_csv(io.StringIO(said.out))
    assert_array_equal(fitted["label"], python_model().fit_predict(FRAME))
    # Columns in another order, some more, and fewer rows.
    few = FRAME[["segment", "ratio", "age", "income", "customer"]].head(20)
    typed(monkeypatch, few.assign(more=1).to_csv(index=False))
    said = run("predict", data / "model.skm", "-")
    assert said.err == ""
    labels = pd.read_csv(io.StringIO(said.out))["label"]
    assert_array_equal(labels, fitted["label"].head(20))
    typed(monkeypatch, text)
    assert "900 rows of 5 columns" in run("info", "-").out


def test_json_and_labels_cannot_share_a_stream(data, run):
    said = run("fit", data / "shop.csv", "-k", 3, "--labels", "-", "--json")
    refused(said, 2, "--json and labels cannot both go to standard output")


# --- the other commands ---------------------------------------------------------------


def test_predict_with_a_model_from_python(run, tmp_path):
    X = FRAME[["age", "ratio"]]
    model = NystromKMeans(3, random_state=0).fit(X)
    sketchmeans.save(model, tmp_path / "m.skm")
    FRAME[["ratio", "customer", "age"]].to_parquet(tmp_path / "x.parquet")
    said = run("predict", tmp_path / "m.skm", tmp_path / "x.parquet")
    labels = pd.read_csv(io.StringIO(said.out))["label"]
    assert_array_equal(labels, model.labels_)
    found = run("info", tmp_path / "m.skm", "--json").json
    assert found["model"] == "NystromKMeans"
    assert found["columns"] == ["age", "ratio"]


def test_predict_with_a_model_that_has_no_clusters(data, run, tmp_path):
    X = FRAME[["age", "ratio"]].to_numpy()
    sketchmeans.save(sketchmeans.SignProjection(2).fit(X), tmp_path / "m.skm")
    said = run("predict", tmp_path / "m.skm", data / "shop.csv")
    refused(said, 1, "holds a SignProjection, which has no clusters")
    assert "SignProjection" in run("info", tmp_path / "m.skm").out


def test_predict_lists_the_columns_that_are_not_there(data, run, tmp_path):
    FRAME[["age", "customer"]].to_csv(tmp_path / "x.csv", index=False)
    said = run("predict", data / "model.skm", tmp_path / "x.csv")
    refused(said, 1, "has no columns 'income', 'ratio'; its columns are 'age'")


def test_a_file_keeps_its_mode_and_its_link(data, run, tmp_path):
    (tmp_path / "secret.csv").touch(0o600)
    (tmp_path / "link.csv").symlink_to(tmp_path / "secret.csv")
    out = tmp_path / "link.csv"
    assert run("predict", data / "model.skm", data / "shop.csv", "--out", out).code == 0
    assert out.is_symlink()
    assert (tmp_path / "secret.csv").stat().st_mode & 0o777 == 0o600
    assert out.read_text().startswith('"row","label","segment"')


def test_what_is_no_ordinary_file_is_left_alone(data, run, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    said = run("fit", data / "shop.csv", "-k", 3, "--labels", tmp_path / "pipe.csv")
    refused(said, 2, "is not a regular file")


def test_plan(data, run):
    options = [data / "shop.csv", "-k", "3", *TABLE]
    said = run("plan", *options, "--workers", "4", "--memory", "8GB")
    assert said.code == 0
    assert "into 3 clusters takes about" in said.out
    assert "memory of a worker" in said.out
    found = run("plan", *options, "--memory", "20MB", "--json").json
    assert found["seconds"] > 0.0
    assert "lower n_landmarks" in found["problems"][0]


def test_certify(data, run):
    model = data / "model.skm"
    said = run("certify", model, data / "shop.csv", "--seconds", "5")
    assert said.code == 0
    assert "No clustering into 3 groups can have a cost below" in said.out
    assert "proved optimum between" in said.out
    assert "the bound is certain" in said.out
    assert "█" in said.out
    found = run("certify", model, data / "shop.csv", "--json").json
    assert found["method"] == "semidefinite"
    assert found["lower_bound"] <= found["cost"] <= 1.05 * found["lower_bound"]
    assert found["sentence"].startswith("no clustering")
    refused(run("certify", model, data / "shop.csv", "--ratio", "0.5"), 1, "ratio")


def test_labels_beside_identifiers_and_columns(tmp_path, run):
    table = pd.DataFrame(
        {
            "id": [f"C{i:03}" for i in range(60)],
            "note": ["=1+1", "plain", None] * 20,
            "change": ["-5 %", "+3", "4"] * 20,
            "size": np.repeat([1.0, 5.0], 30) + np.arange(60) / 100,
        }
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    model, out = tmp_path / "m.skm", tmp_path / "out.csv"
    arguments = ("fit", tmp_path / "t.csv", "-k", "2", "--model", model)
    assert run(*arguments, "--labels", out, "--id", "id").code == 0
    fitted = pd.read_csv(out)
    assert fitted.columns.tolist() == ["id", "label", "segment"]
    assert fitted["id"].tolist() == table["id"].tolist()
    for name in ("new.csv", "new.parquet"):
        new = tmp_path / name
        said = run("predict", model, tmp_path / "t.csv", "--keep-columns", "-o", new)
        assert said.code == 0
        read = pd.read_csv(new) if name.endswith("csv") else pd.read_parquet(new)
        more = ["label", "segment", "distance", "margin", "unusual"]
        assert read.columns.tolist()[:9] == [*table.columns, *more]
        assert read["label"].tolist() == fitted["label"].tolist()
        first = "'=1+1" if name.endswith("csv") else "=1+1"  # no formula for a sheet
        assert read["note"].tolist()[:2] == [first, "plain"]
    for wrong in (("--id", "nobody"), ("--id", "id", "-o", tmp_path / "l.npy")):
        refused(run("predict", model, tmp_path / "t.csv", *wrong), 2, "--id")


def test_names_of_columns_are_no_formulas(tmp_path, run):
    size = np.repeat([1.0, 5.0], 30) + np.arange(60) / 100
    names = ["=HYPERLINK(A1)", "-size"]
    frame = pd.DataFrame(np.c_[size, -(size**2)], columns=names)
    frame.to_csv(tmp_path / "t.csv", index=False)
    model, out = tmp_path / "m.skm", tmp_path / "out.csv"
    assert run("fit", tmp_path / "t.csv", "-k", "2", "--model", model).code == 0
    said = run("predict", model, tmp_path / "t.csv", "--keep-columns", "-o", out)
    assert said.code == 0
    assert pd.read_csv(out).columns.tolist()[:2] == ["'=HYPERLINK(A1)", "'-size"]


def test_files_without_names_have_ids_by_position(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids, size = np.arange(60) + 1000, np.repeat([1.0, 5.0], 30) + np.arange(60) / 100
    np.savetxt("n.csv", np.c_[ids, size], ["%d", "%.2f"], delimiter=",")
    np.save("n.npy", np.c_[ids, size])
    for name in ("n.csv", "n.npy"):
        arguments = ("fit", name, "-k", "2", "--exclude", "0", "--id", "0")
        assert run(*arguments, "--labels", "l.csv", "--model", "m.skm").code == 0
        assert pd.read_csv("l.csv")["column 0"].tolist() == ids.tolist()
        assert run("predict", "m.skm", name, "--id", "0", "-o", "p.parquet").code == 0
        assert pd.read_parquet("p.parquet")["column 0"].tolist() == ids.tolist()
        said = run("predict", "m.skm", name, "--keep-columns")
        assert said.out.startswith('"column 0","column 1","label"')
        assert run("explain", "m.skm", name, "1007", "--id", "0").code == 0
        said = run("report", "m.skm", name, "--id", "0", "--json", "-o", "r.html")
        assert 1000 <= int(json.loads(said.out)["segments"][0]["typical"][0]) < 1060
        for command in ("predict", "report"):
            refused(run(command, "m.skm", name, "--id", "2"), 2, "--id 2 should be a")
        refused(
            run("explain", "m.skm", name, "7", "--id", "a"), 2, "--id a should be a"
        )
    Path("x.svmlight").write_text("0 1:1 3:2\n" * 9)
    arguments = ("fit", "x.svmlight", "-k", "2", "--labels", "l.csv")
    refused(run(*arguments, "--keep-columns"), 2, "is a sparse table")


def test_words_without_a_line_of_names_are_columns_of_any_kind(tmp_path, run):
    lines = [f"C-{i},{'red' if i % 2 else 'blue'},{i % 7}.5\n" for i in range(80)]
    (tmp_path / "w.csv").write_text("".join(lines))
    arguments = ("fit", tmp_path / "w.csv", "-k", "2", "--header", "no", "--id", "0")
    out, model = tmp_path / "l.csv", tmp_path / "m.skm"
    said = run(*arguments, "--labels", out, "--model", model)
    assert said.code == 0, said.err
    assert "column 0 (nearly every value is different)" in said.out
    found = pd.read_csv(out)
    assert found["column 0"].tolist() == [f"C-{i}" for i in range(80)]
    assert found["segment"].nunique() == 2
    new = ("predict", model, tmp_path / "w.csv", "--header", "no", "--id", "0")
    assert run(*new).out.splitlines()[1].startswith('"C-0",')
    # Numbers alone stay columns without names, and a word is still no number there.
    with pytest.raises(ValueError, match="'C-0' is not a number"):
        sketchmeans.open_rows(tmp_path / "w.csv", header=False)


def test_labels_of_a_fit_have_the_names_of_segments(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    size = np.repeat([1.0, 5.0], 30) + np.arange(60) / 100
    frame = pd.DataFrame(
        {'=a,"b': size, "gap": np.where(size < 1.05, np.nan, 1 / size)}
    )
    frame.to_csv("t.csv", index=False)
    arguments = ("fit", "t.csv", "-k", "2", "--missing", "drop", "--model", "m.skm")
    for name in ("l.csv", "l.parquet", "-"):
        said = run(*arguments, "--labels", name)
        assert said.code == 0, said.err
        is_table = name.endswith("parquet")
        file = io.StringIO(said.out) if name == "-" else name
        found = pd.read_parquet(name) if is_table else pd.read_csv(file)
        assert found.columns.tolist() == ["row", "label", "segment"]
        names = sketchmeans.load("m.skm").segment_names_
        assert any(',"' in text or '"' in text for text in names)
        wanted = [None if j < 0 else names[j] for j in found["label"]]
        assert (
            found["segment"].astype(object).where(found["label"] >= 0, None).tolist()
            == wanted
        )
        assert (found["label"] < 0).sum() == 5
    assert run("rename", "m.skm", "0==cmd()", "1=a, b").code == 0
    old = ("fit", "t.csv", "-k", "2", "--like", "m.skm", "--labels", "again.csv")
    assert run(*old).code == 0
    assert set(pd.read_csv("again.csv")["segment"]) == {"'=cmd()", "a, b"}


def test_fit_with_a_proof(data, run):
    arguments = ("fit", data / "shop.csv", "-k", "3", "--certify", "1")
    said = run(*arguments)
    assert said.code == 0
    assert "proved optimum between" in said.out
    found = run(*arguments, "--json").json
    assert found["certificate"]["cost"] == pytest.approx(found["cost"], rel=1e-3)
    refused(run(*arguments, "--method", "spectral"), 2, "no meaning for --estimator")


def test_compare(data, run):
    options = ("-k", 3, *TABLE, "--landmarks", "uniform,kmeans++", "--n-landmarks", 30)
    said = run("compare", data / "shop.csv", *options)
    assert said.code == 0, said.err
    for name in ("uniform", "kmeans++", "plain k-means"):
        assert re.search(rf"^{re.escape(name)} .* s .*≤ \d\.\d+ × best", said.out, re.M)
    assert re.search(r"Proved of (uniform|kmeans\+\+):\nNo clustering into 3", said.out)
    assert re.search(r"^█+░*  cost ", said.out, re.M)
    assert "proved optimum between" in said.out
    found = run("compare", data / "shop.csv", *options, "--json").json
    model = python_model(n_landmarks=30).fit(FRAME)
    assert found["names"] == ["uniform", "kmeans++", "plain k-means"]
    assert found["cost"][0] == pytest.approx(model.cost_)
    bound = diagnostics.certificate(
        model.estimator_, model.prepare(FRAME), max_seconds=5.0, random_state=0
    )
    # Both are improved until their time is over.
    assert found["ratio"][0] == pytest.approx(bound.ratio, rel=1e-2)
    assert np.diag(found["agreement"]) == pytest.approx(np.ones(3))
    assert found["class_information"] == pytest.approx([1.0] * 3)
    assert found["best"] == int(np.argmin(found["cost"][:2]))


def test_choose(data, run, tmp_path):
    out = tmp_path / "paths.html"
    said = run(
        *("choose", data / "few.csv", *TABLE, "-k", "2-3"),
        *("--gamma", "0.1,0.2", "--report", out),
    )
    assert said.code == 0, said.err
    assert "3 is the most clusters that different samples agree on" in said.out
    assert re.search(
        r"few.csv -k 3 --gamma 0\.[12] --exclude customer --label-column segment "
        r"--missing drop\n",
        said.out,
    )
    assert "andwidth" in out.read_text()


def test_choose_for_machines(data, run):
    found = run("choose", data / "few.csv", *TABLE, "-k", "2,3", "--json").json
    assert found["n_clusters"] == 3
    assert found["is_clear"]
    assert len(found["reasons"]) == 2
    few = FRAME.head(FEW)
    prepared = python_model().fit_preparation(few).prepare(few)
    path = diagnostics.cluster_count_path(prepared, [2, 3], random_state=0)
    assert found["cluster_count_path"]["cost"] == pytest.approx(path["cost"])
    count = diagnostics.choose_n_clusters(prepared, [2, 3], random_state=0)
    assert found["cluster_count"] == count.to_dict()
    assert found["cluster_count_path"]["stability"] == pytest.approx(count.agreement)
    assert found["method"] == "nystrom"
    grid = diagnostics.bandwidth_grid(prepared, random_state=0)
    assert found["bandwidth_path"]["gamma"] == pytest.approx(grid)
    assert found["gamma"] in found["bandwidth_path"]["gamma"]
    # What is given is not looked for.
    given = ("-k", 3, "--gamma", 0.1, "--json")
    found = run("choose", data / "few.csv", *TABLE, *given).json
    assert found["cluster_count_path"] is found["bandwidth_path"] is None
    assert (found["gamma"], found["n_clusters"]) == (0.1, 3)


@pytest.mark.parametrize("method", ["nystrom", "spectral"])
def test_fit_with_the_number_that_is_clear(method, data, run, tmp_path):
    given = ("-k", "auto", "--method", method)
    said = run("fit", data / "few.csv", *TABLE, *given)
    assert said.code == 0, said.err
    assert "3 is the most clusters that different samples agree on" in said.out
    assert "into 3 clusters" in said.out
    (tmp_path / "few.csv").write_text("a\n1\n2\n3\n")
    refused(run("fit", tmp_path / "few.csv", *given), 1, "needs at least 6 rows")


def test_choose_of_few_rows_tries_what_they_allow(run, tmp_path):
    path = tmp_path / "few.csv"
    FRAME[NUMBERS].dropna().head(20).to_csv(path, index=False)
    said = run("choose", path, "--gamma", 0.2)
    assert said.code == 0, said.err
    assert said.out.startswith("20 rows are too few to compare more than 6 clusters")
    found = run("choose", path, "--json").json
    assert found["cluster_count_path"]["n_clusters"] == [2, 3, 4, 5, 6]
    FRAME[NUMBERS].dropna().head(7).to_csv(path, index=False)
    found = run("choose", path, "--json").json
    assert found["n_clusters"] == 2
    assert found["cluster_count_path"] is None
    FRAME[NUMBERS].dropna().head(5).to_csv(path, index=False)
    refused(run("choose", path), 1, "has too few rows, 5: .* 2 clusters .* at least 6")
    refused(run("choose", path, "-k", 3), 1, "has too few rows, 5: .* at least 9")
    # Nothing to compare: nothing to refuse.
    assert "-k 3 --gamma 1" in run("choose", path, "-k", 3, "--gamma", 1).out


def test_choose_with_a_kernel_without_bandwidth(data, run, tmp_path):
    kernel = "linear"
    said = run(
        *("choose", data / "few.csv", *TABLE, "-k", "2,3", "--kernel", kernel),
        *("--seed", 7, "--report", tmp_path / "r.html"),
    )
    assert said.code == 0, said.err
    assert f"The {kernel} kernel has no bandwidth to choose" in said.out
    assert re.search(rf"Next: .* -k \d --kernel {kernel} .* --seed 7\n", said.out)
    assert "--gamma" not in said.out
    # The known classes are in the report.
    assert "agreement with classes" in (tmp_path / "r.html").read_text()
    for kernel in ("linear", "cosine", "arc-cosine"):
        said = run("choose", data / "shop.csv", "--kernel", kernel, "--gamma", 1)
        refused(said, 2, f"--gamma has no meaning for --kernel {kernel}")


def test_choose_with_an_unknown_kernel_is_refused_at_once(run):
    refused(run("choose", "no.csv", "--kernel", "x"), 2, "--kernel x should be one of")


def test_an_empty_cluster_has_no_bar(run, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n3,4\n" * 30)
    said = run("fit", tmp_path / "x.csv", "-k", 3)
    assert said.code == 0
    sizes = re.findall(r"^\d +(█*) +(\d+) +\S+% *(\d*)", said.out, re.M)
    assert [bool(bar) for bar, _, _ in sizes] == [True, True, False]
    assert sizes[2][1:] == ("0", "")


def test_gaps_in_new_rows_say_what_to_do(run, tmp_path):
    full, gaps, model = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "m.skm"
    FRAME[NUMBERS].dropna().to_csv(full, index=False)
    FRAME[NUMBERS].to_csv(gaps, index=False)
    strict = ("--missing", "error", "--model", model, "-q")
    assert run("fit", full, "-k", 3, *strict).code == 0
    text = (
        r"b.csv has no value \(NaN\) in row 5, column 'income', and the model was "
        "fitted with --missing error. Fill the gap, or fit again with --missing mean"
    )
    refused(run("predict", model, gaps), 1, text)
    refused(run("report", model, gaps, "--out", tmp_path / "r.html"), 1, text)
    with pytest.raises(ValueError, match="row 5, column 'income', and the model was"):
        sketchmeans.load(model).transform(gaps)


def test_info_of_a_table_without_numbers(run, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\nu,v\nw,x\n")
    assert re.search(
        r"a +identifier +nearly every", run("info", tmp_path / "x.csv").out
    )


def test_info_of_a_packed_table(run, tmp_path):
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n1.5,2\n3,4.5\n0,1\n"))
    assert "3 rows of 2 columns" in run("info", tmp_path / "x.csv.gz").out


def test_info_of_a_table(data, run):
    said = run("info", data / "shop.csv")
    assert re.search(r"income +numeric +2 .* numbers", said.out)
    assert re.search(r"customer +identifier +nearly every value is different", said.out)
    assert re.search(r"segment +category +3 levels", said.out)
    assert "A fit uses 4 of these columns" in said.out
    found = run("info", data / "shop.parquet", "--json").json
    assert found["missing"] == [0, 2, 0, 0, 0]
    assert found["n_rows"] == N
    assert found["types"][1:4] == [None] * 3
    ages = FRAME["age"]
    assert found["mean"][2] == pytest.approx(ages.mean())
    assert found["deviation"][2] == pytest.approx(ages.std(ddof=0))
    assert found["mean"][0] is None


def test_info_of_a_model(data, run):
    said = run("info", data / "model.skm")
    assert "NystromKMeans for tables" in said.out
    assert "income, age, ratio" in said.out
    found = run("info", data / "model.skm", "--json").json
    model = python_model().fit(FRAME)
    assert found["cost"] == pytest.approx(model.cost_)
    assert found["cluster_sizes"] == model.cluster_sizes_.tolist()
    assert (found["scale"], found["missing"]) == ("auto", "drop")


def test_a_table_without_the_classes_has_a_report_without_them(data, tmp_path):
    model = sketchmeans.load(data / "model.skm")
    classes = read_classes(model, as_table(data / "shop.csv"))
    assert list(classes)[:5] == list(FRAME.segment[:5])
    FRAME.drop(columns="segment").to_csv(tmp_path / "x.csv", index=False)
    assert read_classes(model, as_table(tmp_path / "x.csv")) is None


def test_how_a_file_is_read_can_be_said(run, tmp_path):
    rows = np.random.default_rng(0).normal(size=(20, 3))
    lines = [",".join(map(str, row)) for row in rows.tolist()]
    (tmp_path / "years.csv").write_text("\n".join(["2019,2020,2021", *lines]) + "\n")
    said = run("info", tmp_path / "years.csv")
    assert "say which with --header yes or --header no" in said.err
    found = run("info", tmp_path / "years.csv", "--header", "yes", "--json").json
    assert (found["n_rows"], found["names"]) == (20, ["2019", "2020", "2021"])
    model, labels = tmp_path / "m.skm", tmp_path / "labels.npy"
    run("fit", tmp_path / "years.csv", "-k", 2, "--header", "yes", "--model", model)
    for header, n_rows in (("yes", 20), ("no", None)):
        options = (model, tmp_path / "years.csv", "--out", labels, "--header", header)
        if n_rows is None:  # the model knows its columns by name
            assert "has no column names" in run("predict", *options).err
        else:
            run("predict", *options)
            assert np.load(labels).shape == (n_rows,)
    (tmp_path / "x.svm").write_text("1 1:2 2:1\n1 1:3 2:7\n1 1:1 2:2\n")
    options = ("--zero-based", "yes", "--json")
    assert run("info", tmp_path / "x.svm", *options).json["names"] == [0, 1, 2]


# --- mistakes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("fti", "No such command 'fti'.*Try 'sketchmeans --help'"),
        ("fit", "Missing argument 'DATA'.*Try 'sketchmeans fit --help'"),
        ("fit DATA", "Missing option '--n-clusters'"),
        ("fit DATA -k none", "--n-clusters none should be a whole number .* or auto"),
        ("fit DATA -k 0", "--n-clusters 0 should be a whole number"),
        ("fit DATA -k 3 --wrong", "--wrong"),
        ("fit DATA -k 3 --scale x", "'--scale'.*'auto', 'standard', 'robust'"),
        ("fit DATA -k 3 --quiet --verbose", "exclude each other"),
        ("fit DATA -k 3 TABLE --landmarks x", "--landmarks x should be one of"),
        ("fit DATA -k 3 TABLE --n-landmarks 9999", "--n-landmarks 9999 should be <="),
        ("fit DATA -k 3 TABLE --jobs 0", "--jobs 0 should be"),
        ("fit DATA -k 3 --estimator exact --rank 3", "--rank has no meaning for"),
        ("fit DATA -k 3 --estimator sketched --kernel rbf", "--kernel has no meaning"),
        ("fit DATA -k 3 --estimator spectral --rank 2", "--rank has no meaning"),
        ("fit DATA -k 3 --labels no/where.csv", "there is no folder no"),
        ("fit DATA -k 3 --labels labels.txt", "should end in .csv, .npy or .parquet"),
        ("fit DATA -k 3 --report report.pdf", "--report report.pdf should end in"),
        ("fit DATA -k 3 --model FOLDER", "is a folder"),
        ("fit DATA -k 3 --labels DATA", "--labels .* is also a file that is read"),
        ("fit DATA -k 3 --model a.csv --labels a.csv", "also the file of --model"),
        ("fit FOLDER -k 3 --model MODEL", "--model .* is also a file that is read"),
        ("predict MODEL DATA --out DATA", "--out .* is also a file that is read"),
        ("report MODEL DATA --image-shape 8", "--image-shape 8 should be height"),
        ("choose DATA -k 5-2", "--n-clusters 5-2 should be an interval"),
        ("choose DATA --gamma 0", "--gamma 0 should be positive"),
        ("demo --out MODEL", "should be a folder"),
    ],
)
def test_wrong_usage_gets_one_line(arguments, text, data, run):
    words = {"DATA": data / "shop.csv", "MODEL": data / "model.skm", "FOLDER": data}
    given = [words.get(word, word) for word in arguments.split()]
    if "TABLE" in given:
        place = given.index("TABLE")
        given[place : place + 1] = TABLE
    refused(run(*given), 2, text)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            "fit DATA -k 3 --exclude income,age,ratio,segment",
            "no column to cluster by: ",
        ),
        ("info README.md", "README.md is neither a model, .* nor a table"),
        ("fit DATA -k 3 --columns age,hight", "no column 'hight'; its columns are"),
        (
            "fit DATA -k 3 --columns income,age --missing error",
            "row 5, column 'income'.*--missing drop",
        ),
        ("fit nowhere.csv -k 3", "There is no file nowhere.csv"),
        ("fit MODEL -k 3", "ends in '.skm'; it should end in one of"),
        ("fit DATA -k 1000 --columns age", "n_samples=900 should be >= "),
        (
            "fit DATA -k 3 TABLE --max-memory 1MB",
            "--max-memory allows .* or raise --max-memory",
        ),
        ("predict DATA DATA", "is a table, not a model"),
        ("predict nowhere.skm DATA", "nowhere.skm"),
        ("info nowhere.csv", "There is no file nowhere.csv"),
    ],
)
def test_bad_data_gets_one_line(arguments, text, data, run):
    words = {"DATA": data / "shop.csv", "MODEL": data / "model.skm"}
    given = [words.get(word, word) for word in arguments.split()]
    if "TABLE" in given:
        place = given.index("TABLE")
        given[place : place + 1] = TABLE
    refused(run(*given), 1, text)


def test_debug_shows_where_an_error_is_from(data):
    with pytest.raises(ValueError, match="nearly every value is different"):
        main(
            ["fit", str(data / "shop.csv"), "-k", "3", "--debug", "--columns=customer"]
        )


def test_help_and_version(run):
    said = run("--help")
    assert said.code == 0
    for command in (
        *("fit", "predict", "report", "certify", "compare", "choose", "info", "demo"),
    ):
        assert re.search(rf"{command}  +[A-Z]", said.out)
        assert run(command, "--help").code == 0
    assert run().out == said.out
    assert run("--version").out == f"sketchmeans {sketchmeans.__version__}\n"


def test_without_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    assert main(["--help"]) == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "pip install sketchmeans[cli]" in said.err


# --- progress ------------------------------------------------------------------------


def test_bars_on_a_terminal():
    screen = Screen()
    stream = io.StringIO()
    screen.errors = Console(file=stream, force_terminal=True, width=110)
    with Display(screen) as display:
        display.attach(python_model()).fit(FRAME)
    text = stream.getvalue()
    for stage in ("Reading rows", "Bandwidth", "Landmarks", "Initial centres"):
        assert stage in text
    assert re.search(r"Clustering all 898 rows.*━.*iteration \d+, cost 0\.\d+", text)


def test_nothing_is_drawn_without_a_terminal_or_if_told_so(capsys):
    for screen in (Screen(), Screen(PrintOptions(quiet=True))):
        with Display(screen) as display, display.stage("A stage"):
            model = display.attach(python_model())
        assert not hasattr(model, "_skl_callbacks")
    assert capsys.readouterr() == ("", "")


def test_durations():
    assert [format_duration(s) for s in (0.5, 59.4, 59.6, 3600)] == [
        "0.50 s",
        "59 s",
        "1 min 0 s",
        "1 h 0 min",
    ]


# --- files that are not what they should be -------------------------------------------


def test_links_that_go_round_in_circles(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("loop.csv", "loop.npy", "loop.skm", "loop.html", "loop.ckpt"):
        os.symlink(name, name)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    circles = "symbolic links"
    refused(run("fit", "loop.csv", "-k", 2), 1, circles)
    refused(run("info", "loop.csv"), 1, circles)
    refused(run("info", "loop.skm"), 1, circles)
    refused(run("predict", "loop.skm", "rows.csv"), 1, circles)
    for option, name in (
        ("--labels", "loop.npy"),
        ("--model", "loop.skm"),
        ("--report", "loop.html"),
        ("--checkpoint", "loop.ckpt"),
    ):
        said = run("fit", "rows.csv", "-k", 2, option, name)
        refused(said, 2, rf"{option} {name}: .*{circles}")


@pytest.mark.parametrize("damage", ["cut", "flipped", "other keys"])
def test_a_damaged_checkpoint(damage, run, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n3,4\n5,7\n" * 20)
    path = tmp_path / "run.ckpt"
    command = ("fit", tmp_path / "rows.csv", "-k", 2, "--checkpoint", path)
    assert run(*command).code == 0
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[-100:]
    elif damage == "flipped":
        data[-50] ^= 1
    else:
        about, arrays = read_checkpoint(path)
        arrays = {n: a for n, a in arrays.items() if "cost" not in n}
        write_checkpoint(path, about, arrays)
        data = path.read_bytes()
    path.write_bytes(data)
    refused(run(*command), 2, r"--checkpoint .*run\.ckpt cannot be read: .*Delete")
    assert path.read_bytes() == data


def test_a_file_that_fails_does_not_keep_the_others_from_being_written(
    run, tmp_path, monkeypatch
):
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n3,4\n5,7\n" * 20)

    def full(labels, path, *_):
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr("sketchmeans.cli.fit.write_labels", full)
    files = {"--model": tmp_path / "m.skm", "--labels": tmp_path / "l.npy"}
    files["--report"] = tmp_path / "r.html"
    words = [word for pair in files.items() for word in pair]
    said = run("fit", tmp_path / "rows.csv", "-k", 2, *words)
    assert said.code == 1
    assert said.err == f"Error: {files['--labels']}: No space left on device.\n"
    assert f"Wrote {files['--model']}, {files['--report']}." in said.out
    assert sorted(os.listdir(tmp_path)) == ["m.skm", "r.html", "rows.csv"]


def test_a_bug_is_reported_in_one_line(run, tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\n5,6\n")

    def broken(*_):
        raise KeyError("left")

    monkeypatch.setattr("sketchmeans.cli.fit.read_classes", broken)
    command = ("fit", tmp_path / "rows.csv", "-k", 2)
    refused(run(*command), 1, r"KeyError: 'left'\. This is a bug.*--debug")
    with pytest.raises(KeyError):
        run(*command, "--debug")
