"""Next month's file on the command line: predict, drift, explain, fit --like."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sketchmeans
from sketchmeans import NystromKMeans, SketchedKMeans
from sketchmeans.cli import main
from sketchmeans.data.sources.text_table import TextTable
from sketchmeans.datasets import make_customers
from sketchmeans.diagnostics import score_rows
from tests.commands import refused, said

OLD = make_customers(800, random_state=0)[0]
NEW = make_customers(600, random_state=1)[0]
HOSTILE = "=<b>\x1b[31m"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("months")
    OLD.to_csv(folder / "old.csv", index=False)
    NEW.to_csv(folder / "new.csv", index=False)
    arguments = ["fit", folder / "old.csv", "-k", 4, "--model", folder / "m.skm", "-q"]
    assert main([str(argument) for argument in arguments]) == 0
    assert main(["rename", str(folder / "m.skm"), "2==cmd()", "-q"]) == 0
    return folder


@pytest.fixture
def run(capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    return partial(said, capsys)


def test_predict_writes_all_that_is_known_of_a_row(run, folder):
    names = ("new.csv", "new.parquet")
    for name in names:
        told = run(
            *("predict", "m.skm", "new.csv", "--id", "customer_id", "-o", f"out-{name}")
        )
        assert told.code == 0, told.err
    one, two = pd.read_csv("out-new.csv"), pd.read_parquet("out-new.parquet")
    assert one.columns.tolist() == two.columns.tolist()
    assert one.columns[0] == "customer_id"
    assert one["customer_id"].tolist() == NEW["customer_id"].tolist()
    found = score_rows(sketchmeans.load("m.skm"), NEW)
    np.testing.assert_array_equal(one["label"], found.labels)
    np.testing.assert_array_equal(one["unusual"], found.unusual)
    np.testing.assert_allclose(one["distance"], found.distances, atol=2e-6)
    members = one[[name for name in one if name.startswith("membership: ")]]
    np.testing.assert_allclose(members, found.membership, atol=2e-6)
    np.testing.assert_allclose(members.sum(axis=1), 1.0, atol=1e-5)
    # A name that a spreadsheet would run gets an apostrophe; Parquet is no sheet.
    assert set(one["segment"][one["label"] == 2]) == {"'=cmd()"}
    assert set(two["segment"][two["label"] == 2]) == {"=cmd()"}
    told = run("predict", "m.skm", "new.csv", "-o", "o.csv", "--json")
    assert told.json["n_unusual"] == found.unusual.sum()
    more = run("predict", "m.skm", "new.csv", "-o", "o.csv", "--unusual", 0.2, "--json")
    assert more.json["n_unusual"] > told.json["n_unusual"]


def test_older_models_say_what_is_missing(run, folder):
    X = np.random.default_rng(0).normal(size=(300, 2))
    np.save("x.npy", X)
    sketchmeans.save(SketchedKMeans(2, random_state=0).fit(X), "bare.skm")
    told = run("predict", "bare.skm", "x.npy", "-o", "bare.csv")
    assert told.code == 0
    assert "bare.skm keeps nothing of the rows of its fit" in told.err
    assert "--old FILE" in told.err
    header = pd.read_csv("bare.csv").columns.tolist()
    assert header == ["row", "label", "segment", "distance", "margin"]
    refused(run("drift", "bare.skm", "x.npy"), 1, "--old FILE")
    told = run("predict", "bare.skm", "x.npy", "--old", "x.npy", "-o", "bare.csv")
    assert (told.code, told.err) == (0, "")
    assert pd.read_csv("bare.csv")["unusual"].sum() == 3
    told = run("drift", "bare.skm", "x.npy", "--old", "x.npy", "--json")
    assert told.json["alarms"] == []


def test_drift_as_text_json_and_page(run, folder):
    told = run("drift", "m.skm", "new.csv")
    assert told.code == 0, told.err
    assert "No change beyond chance" in told.out
    assert run("compare-months", "m.skm", "new.csv").out == told.out
    moved = NEW.copy()
    moved["plan"] = np.where(np.arange(600) % 3, moved["plan"], HOSTILE)
    moved["orders"] *= 3
    moved.to_parquet("moved.parquet")
    told = run("drift", "m.skm", "moved.parquet", "-o", "drift.html")
    assert told.code == 0, told.err
    assert (
        "plan has new values in 33.3% of the rows, against 0.0% in the fit" in told.out
    )
    assert "Wrote drift.html." in told.out
    page = (folder / "drift.html").read_text()
    assert "orders" in page
    assert "=cmd()" in page
    assert "<script" not in page
    found = run("drift", "m.skm", "moved.parquet", "--json").json
    assert len(found["segments"]) == 4
    assert any("orders moved" in text for text in found["alarms"])
    assert sum(part["new_rows"] for part in found["segments"]) == 600


def test_the_file_may_come_from_another_program(run):
    """Semicolons, decimal commas and a title, where the fit had none of them."""
    lines = NEW.to_csv(index=False, sep=";", decimal=",")
    Path("german.csv").write_bytes(f"Kunden im März\n{lines}".encode("cp1252"))
    told = run("predict", "m.skm", "german.csv", "--labels-only", "-o", "german.npy")
    assert told.code == 0, told.err
    assert np.array_equal(np.load("german.npy"), sketchmeans.load("m.skm").predict(NEW))
    run("fit", "german.csv", "-k", 3, "-o", "german.skm")  # the next has no title
    told = run("predict", "german.skm", "new.csv", "--labels-only", "-o", "plain.npy")
    assert told.code == 0, told.err
    Path("bare.csv").write_bytes(lines.encode("cp1252"))
    told = run("predict", "german.skm", "bare.csv", "--labels-only", "-o", "bare.npy")
    assert told.code == 0, told.err
    assert np.array_equal(np.load("bare.npy"), np.load("plain.npy"))


def test_many_changes_are_not_all_told_in_words(run):
    X = np.random.default_rng(0).normal(size=(400, 20))
    np.savetxt("wide.csv", X, delimiter=",")
    np.savetxt("moved.csv", X + 1.0, delimiter=",")
    run("fit", "wide.csv", "-k", 2, "-o", "wide.skm")
    told = run("drift", "wide.skm", "moved.csv", "-o", "wide.html")
    assert told.code == 0, told.err
    assert told.out.count("\n- ") == 13
    assert "more changes, in the tables below" in told.out
    assert "more, in the tables below" in Path("wide.html").read_text()


def test_names_and_calibration_do_not_look_through_the_file_again(run, monkeypatch):
    opened = []
    find = TextTable.find.__func__

    def count(cls, *arguments):
        opened.append(arguments)
        return find(cls, *arguments)

    monkeypatch.setattr(TextTable, "find", classmethod(count))
    counts = []
    for output in (["--labels", "l.npy"], ["--model", "twice.skm"]):
        opened.clear()
        assert run("fit", "old.csv", "-k", 4, *output).code == 0
        counts.append(len(opened))
    assert counts[0] == counts[1]
    found = score_rows(sketchmeans.load("twice.skm"), OLD)
    assert found.unusual.mean() == pytest.approx(0.01, abs=0.002)


def test_a_drift_report_is_there_if_its_reader_leaves(run, monkeypatch):
    def leave(*arguments):
        raise BrokenPipeError

    monkeypatch.setattr("sketchmeans.cli.drift.print_drift", leave)
    assert run("drift", "m.skm", "new.csv", "-o", "left.html").code == 1
    assert Path("left.html").exists()


def test_pipelines_are_reported_in_the_units_of_their_file(run):
    table = NEW[["age", "orders", "revenue"]].fillna(0.0)
    pipe = make_pipeline(StandardScaler(), NystromKMeans(3, random_state=0)).fit(table)
    sketchmeans.save(pipe, "units.skm")
    table.assign(who=NEW["customer_id"]).to_csv("units.csv", index=False)
    command = ("report", "units.skm", "units.csv", "--id", "who", "-o", "units.html")
    told = run(*command, "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)
    labels = pipe.predict(table)
    for segment in found["segments"]:
        assert segment["typical"][0].startswith("C-")
        for fact in segment["facts"]:
            own = table[fact["column"]][labels == segment["label"]]
            assert fact["value"] == pytest.approx(own.median())


def test_pipelines_have_names_and_say_what_they_cannot(run):
    table = NEW[["age", "orders", "revenue"]].fillna(0.0)
    table.to_csv("numbers.csv", index=False)
    pipe = make_pipeline(StandardScaler(), NystromKMeans(3, random_state=0)).fit(table)
    sketchmeans.save(pipe, "pipe.skm")
    assert run("rename", "pipe.skm", "1=Heavy buyers").code == 0
    assert "Heavy buyers" in run("info", "pipe.skm").out
    assert "Heavy buyers" in run("card", "pipe.skm").out
    told = run("predict", "pipe.skm", "numbers.csv")
    assert told.code == 0, told.err
    assert '"Heavy buyers"' in told.out
    for command in (
        "predict pipe.skm numbers.csv --old numbers.csv",
        "drift pipe.skm numbers.csv",
        "explain pipe.skm numbers.csv 1",
    ):
        refused(run(*command.split()), 1, "holds a Pipeline")


def test_explain_a_customer(run):
    customer = NEW["customer_id"][7]
    told = run("explain", "m.skm", "new.csv", customer, "--id", "customer_id")
    assert told.code == 0, told.err
    assert told.out.startswith(f"{customer} is in ")
    assert "It would be in" in told.out
    found = run("explain", "m.skm", "new.csv", 7, "--json").json
    assert found["row"] == 7
    assert {reason["name"] for reason in found["reasons"]} >= {"plan", "orders"}


def test_a_refit_keeps_its_segments(run):
    both = pd.concat([OLD, NEW])
    both.to_csv("both.csv", index=False)
    told = run(
        *("fit", "both.csv", "-k", 4, "--seed", 3, "--like", "m.skm"),
        *("-o", "next.skm", "-o", "both-labels.csv"),
    )
    assert told.code == 0, told.err
    assert "4 of 4 segments are as before" in told.out
    old = sketchmeans.load("m.skm").predict(both)
    labels = pd.read_csv("both-labels.csv")["label"].to_numpy()
    assert np.mean(labels == old) >= 0.95
    assert run("info", "next.skm", "--json").json["cluster_sizes"] == [
        int((labels == j).sum()) for j in range(4)
    ]
    one, two = (sketchmeans.load(name).segment_names_ for name in ("m.skm", "next.skm"))
    assert one == two


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("predict m.skm new.csv --unusual 0.9", 2, "--unusual"),
        ("predict m.skm new.csv --labels-only --unusual 0.1", 2, "--unusual has no"),
        ("predict m.skm new.csv -o x.npy --old old.csv", 2, "--old has no meaning"),
        ("predict m.skm new.csv --old nowhere.csv", 1, "nowhere.csv"),
        ("predict m.skm new.csv --old - -o x.csv", 2, "--old - should be a file"),
        ("predict m.skm new.csv --old old.csv -o old.csv", 2, "also a file that is"),
        ("drift m.skm new.csv --level 2", 2, "--level"),
        ("drift m.skm new.csv -o drift.pdf", 2, "should end in .html"),
        ("drift m.skm nowhere.csv", 1, "nowhere.csv"),
        ("drift new.csv new.csv", 1, "is a table, not a model"),
        ("explain m.skm new.csv Ada", 2, "ROW Ada should be the number of a row"),
        ("explain m.skm new.csv 600", 1, "below 600"),
        ("explain m.skm new.csv Ada --id name", 2, "--id name should be a column"),
        ("explain m.skm new.csv Ada --id plan", 2, "no row has it"),
        ("explain m.skm new.csv free --id plan", 2, "rows have it"),
        ("fit new.csv -k 4 --like nowhere.skm", 1, "nowhere.skm"),
        ("fit x2.csv -k 2 --like m.skm", 1, "has no columns"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(command, code, text, run, folder):
    pd.DataFrame({"a": np.arange(40.0)}).to_csv("x2.csv", index=False)
    before = sorted(folder.iterdir())
    refused(run(*command.split()), code, text)
    assert sorted(folder.iterdir()) == before  # nothing half-written is left
