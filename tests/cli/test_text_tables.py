"""Text tables as people write them, from the command line."""

import gzip
from functools import partial

import numpy as np
import pandas as pd
import pytest

from sketchmeans import load
from tests.commands import refused, said

LINES = [f"{(i % 2) * 10 + i / 100:.2f};{i % 5}" for i in range(60)]
GERMAN = "Umsätze im Mai\n\nBetrag;Anzahl\n" + "\n".join(LINES).replace(".", ",") + "\n"


@pytest.fixture
def run(capsys):
    return partial(said, capsys)


def test_what_is_assumed_is_said_once_and_kept(run, tmp_path):
    path, model = tmp_path / "t.csv", tmp_path / "m.skm"
    path.write_bytes(GERMAN.encode("cp1252"))
    printed = run("fit", path, "-k", 2, "--model", model)
    assert printed.code == 0
    line = "text separated by semicolons, decimal comma, in cp1252, 2 lines above the"
    assert printed.out.count(line) == 1
    assert load(model).dialect_["decimal"] == ","
    assert run("fit", path, "-k", 2, "--json").json["n_samples"] == 60
    labels = tmp_path / "labels.npy"
    assert run("predict", model, path, "--out", labels).code == 0
    assert len(np.load(labels)) == 60


def test_options_say_how_to_read(run, tmp_path):
    path = tmp_path / "t.txt.gz"
    path.write_bytes(gzip.compress(("x:y\n" + "1,5:none\n2,5:3\n" * 20).encode()))
    options = ["--sep", ":", "--decimal", ",", "--na", "none", "--skip-rows", 0]
    options += ["--encoding", "utf-8", "--missing", "drop"]
    assert run("fit", path, "-k", 1, "--json", *options).json["n_dropped"] == 20
    table = pd.DataFrame({"a": [1.0, 2.0, 9.0]})
    table.to_excel(str(tmp_path / "t.xlsx"), index=False, sheet_name="May")
    for sheet in ("May", "0"):
        command = ("fit", tmp_path / "t.xlsx", "-k", 2, "--json", "--sheet", sheet)
        assert run(*command).json["n_samples"] == 3


@pytest.mark.parametrize(
    ("option", "value", "code", "text"),
    [
        ("--sep", "::", 2, "--sep :: should be one character"),
        ("--decimal", "x", 2, "--decimal x should be"),
        (
            "--encoding",
            "klingon",
            2,
            "--encoding klingon should be one",
        ),
        ("--sheet", "May", 2, "--sheet May should be None for .*no sheets"),
        ("--skip-rows", "99", 1, "has no names and no rows"),
    ],
)
def test_what_makes_no_sense_is_refused(run, tmp_path, option, value, code, text):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    refused(run("fit", path, "-k", 1, option, value), code, text)


def test_a_sheet_is_not_called_text(run, tmp_path):
    path = tmp_path / "t.xlsx"
    table = pd.DataFrame({"age": [20, 30, 40, 50], "size": [1.5, 1.7, 1.8, 1.6]})
    table.to_excel(str(path), index=False, startrow=2)
    printed = run("info", path)
    assert "t.xlsx: 2 lines above the names." in " ".join(printed.out.split())
    assert "text" not in printed.out
    assert "--sheet" not in printed.out


def test_the_sheet_that_is_read_is_named(run, tmp_path):
    path = tmp_path / "t.xlsx"
    table = pd.DataFrame({"age": [20, 30, 40, 50], "size": [1.5, 1.7, 1.8, 1.6]})
    with pd.ExcelWriter(str(path)) as book:
        pd.DataFrame(["Report of May"]).to_excel(
            book, sheet_name="Notes", index=False, header=False
        )
        table.to_excel(book, sheet_name="Data", index=False)
    printed = " ".join(run("info", path).out.split())
    assert "t.xlsx: sheet 'Data' is read; --sheet takes 'Notes'." in printed
    assert "--sheet" not in run("info", path, "--sheet", "Data").out
