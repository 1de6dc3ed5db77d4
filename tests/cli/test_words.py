"""The words of the command line: hostile names, options, standard input."""

import io
import re
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

from sketchmeans.cli.options import OPTIONS, PrintOptions
from sketchmeans.cli.screen import Screen, translate_errors
from sketchmeans.engine.init import SEEDINGS
from sketchmeans.kernels import KERNELS
from sketchmeans.landmarks.choice import SELECTORS
from sketchmeans.numerics.escape import escape_control
from sketchmeans.reduction import REDUCERS
from tests.commands import refused, said

RNG = np.random.default_rng(0)
GROUP = RNG.integers(3, size=240)
ROWS = pd.DataFrame(RNG.normal(size=(240, 3)) + 5 * GROUP[:, None], columns=[*"abc"])


@pytest.fixture
def run(capsys):
    return partial(said, capsys)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    ROWS.to_csv(folder / "rows.csv", index=False)
    np.save(folder / "rows.npy", ROWS.to_numpy())
    return folder


# --- hostile names --------------------------------------------------------------------

HOSTILE = ["\x1b[31mred", "[red]x[/red]", "\x9b2J\x07", "turn\u202eed", "[/]"]
SHOWN = [r"\x1b[31mred", "[red]x[/red]", r"\x9b2J\x07", r"turn\u202eed", "[/]"]


def hostile_table(path):
    noise = np.random.default_rng(0).normal(size=(len(ROWS), len(HOSTILE)))
    table = pd.DataFrame(ROWS[["a"]].to_numpy() + 0.1 * noise, columns=HOSTILE)
    classes = np.array(["\x1b[2Jone", "[bold]two", "three"])[GROUP]
    table.assign(**{"class\x1b]0;title\x07": classes}).to_parquet(path)


def test_control_codes_and_markup_in_names_are_shown_as_they_are(run, tmp_path):
    path = tmp_path / "x\x1b[31m[red].parquet"
    hostile_table(path)
    told = run("info", path)  # which looks for control codes, too
    assert told.code == 0
    for name in SHOWN:
        assert re.search(rf"^{re.escape(name)} +numeric +0 ", told.out, re.M), name
    assert r"x\x1b[31m[red].parquet: 240 rows of 6 columns" in told.out
    wrong = run("fit", path, "-k", 2, "--as", "class\x1b]0;title\x07=numeric")
    refused(
        wrong, 2, r"^Error: --as .*class.*\[?x1b\]0;title.* other values than numbers"
    )
    model = tmp_path / "\x1b[32m.skm"
    label = ("--label-column", "class\x1b]0;title\x07")
    told = run("fit", path, "-k", 3, *label, "--model", model)
    assert (told.code, told.err) == (0, "")
    assert r"\x1b[32m.skm." in told.out
    told = run("info", model)
    assert ", ".join(SHOWN) in told.out
    assert run("info", path, "--json").json["names"][:5] == HOSTILE
    assert run("info", model, "--json").json["columns"] == HOSTILE
    missing = run("predict", model, tmp_path / "no\x1b[31m\nwhere.csv")
    refused(missing, 1, r"no\\x1b\[31m\\nwhere.csv")


def test_warnings_and_bars_are_harmless(capsys):
    screen = Screen(PrintOptions(verbose=True))
    screen.print_error("\x1b[31m [red]")
    with screen.show_status("\x1b[31m"):
        pass
    assert capsys.readouterr().err == "\\x1b[31m [red]\n\\x1b[31m\n"


def test_harmless_keeps_letters_and_lines():
    text = "naïve Größe\n数据 👩\u200d🔬 a,b|c"
    assert escape_control(text) == text
    assert escape_control("\udcff\r\t\x7f") == r"\udcff\r\t\x7f"


def test_a_terminal_that_knows_ascii_only(monkeypatch, folder):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    from sketchmeans.cli import main

    assert main(["fit", str(folder / "rows.csv"), "-k", "2"]) == 0
    out.flush()
    assert b"Clustered 240 rows" in out.buffer.getvalue()


# --- options --------------------------------------------------------------------------


def test_messages_speak_of_options():
    for text, words in {
        "exclude=['a'] leaves": "--exclude a leaves",
        "exclude=['a', 'b'] leaves": "--exclude a,b leaves",
        "columns=['a b', \"it's]\", 3] x": "--columns 'a b,it's],3' x",
        "image_shape=(28, 28) should": "--image-shape 28x28 should",
        "kernel=Sigmoid(coef0=1) should": "--kernel sigmoid should",
        "gamma=-1 should; tol=1e-05.": "--gamma -1 should; --tol 1e-05.",
        "Sigmoid(coef0=1, gamma=2) is not": "Sigmoid(coef0=1, gamma=2) is not",
        "X contains negative values.": "X contains negative values. Try --scale none.",
        "init='n_clusters' x": "--init n_clusters x",
        "Use NystromKMeans, or n_jobs.": "Use --estimator nystrom, or --jobs.",
        "column 'n_init' of n_init.csv": "column 'n_init' of n_init.csv",
    }.items():
        assert translate_errors(text) == words


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ("fit DATA -k 2 --columns EMPTY", 2, "--columns '' should name at least one"),
        ("fit DATA -k 2 --exclude EMPTY", 2, "--exclude '' should name at least one"),
        ("fit DATA -k 2 --exclude a,b,c", 2, "--exclude a,b,c leaves no column of"),
        ("fit DATA -k 2 --n-init foo", 2, "--n-init foo should be an integer >= 1"),
        (
            "fit DATA -k 2 --max-memory 1KB",
            1,
            "Give --n-landmarks as a number or raise ",
        ),
        ("compare DATA -k 2 --landmarks EMPTY", 2, "--landmarks '' should be names"),
        (
            "fit DATA -k 2 --estimator exact --checkpoint c",
            2,
            "--checkpoint has no meaning for --estimator exact; leave it out",
        ),
        ("fit DATA -k 2 --kernel chi2", 1, "negative values. Try --scale none"),
        (
            "fit DATA -k 2 --checkpoint OTHER",
            2,
            "rows.npy is not a checkpoint",
        ),
    ],
)
def test_mistakes_in_options(arguments, code, text, folder, run):
    words = {"DATA": folder / "rows.csv", "EMPTY": "", "OTHER": folder / "rows.npy"}
    told = run(*(words.get(word, word) for word in arguments.split()))
    refused(told, code, text)
    assert not re.search(r"_|\[|None", told.err.replace(str(folder), ""))


def test_a_shape_that_does_not_fit(folder, run, tmp_path):
    model = tmp_path / "m.skm"
    assert run("fit", folder / "rows.csv", "-k", 2, "--model", model, "-q").out == ""
    out = ("--out", tmp_path / "r.html", "--image-shape", "28x28")
    told = run("report", model, folder / "rows.csv", *out)
    refused(told, 2, "--image-shape 28x28 should be .* product of 3")


def test_quiet_leaves_what_a_command_is_for(folder, run):
    told = run("compare", folder / "rows.csv", "-k", 3, "--landmarks", "uniform", "-q")
    assert (told.code, told.err) == (0, "")
    assert re.search("^plain k-means .* best", told.out, re.M)
    told = run("choose", folder / "rows.csv", "-k", "2,3", "--gamma", 0.2, "--quiet")
    assert (told.code, told.err) == (0, "")
    assert "Next: sketchmeans fit" in told.out


# --- standard input -------------------------------------------------------------------


def typed(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_standard_input_is_called_so(folder, run, monkeypatch, tmp_path):
    text = ROWS.to_csv(index=False)
    typed(monkeypatch, text)
    assert run("info", "-").out.startswith("standard input: 240 rows of 3 columns\n")
    typed(monkeypatch, "a,b\nx,1\nx,1\n")
    refused(run("fit", "-", "-k", 2), 1, "^Error: standard input has no column to")
    out = tmp_path / "r.html"
    typed(monkeypatch, text)
    assert run("fit", "-", "-k", 2, "--report", out).code == 0
    page = out.read_text()
    assert "Segments of standard input" in page
    assert "standard input: 240 rows" in page
    assert not re.search(r"standard-input|/tmp|sketchmeans-\w{8}/", page)


# --- help -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("kernel", {*KERNELS} - {"poly", "precomputed"}),
        ("landmarks", {*SELECTORS}),
        ("reducer", {*REDUCERS}),
        ("init", {*SEEDINGS}),
    ],
)
def test_help_lists_every_name(option, names):
    listed = re.split(r"[\s,.:]+", OPTIONS[option].help)
    assert names <= {*listed}
