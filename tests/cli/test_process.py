"""The command line as a process: each command, a terminal, Ctrl-C and kills."""

import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from sketchmeans import NystromKMeans, TableClusterer
from tests import written

COMMAND = [sys.executable, "-m", "sketchmeans"]
LIMIT = 120  # seconds; far more than any takes
ROWS = 120_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("process")
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=600)
    frame = pd.DataFrame(rng.normal(size=(600, 3)) + 4 * group[:, None])
    frame.columns = ["width", "height", "depth"]
    frame.to_csv(folder / "rows.csv", index=False)
    # No clusters, so that passes go on and on.
    np.save(folder / "many.npy", rng.normal(size=(ROWS, 8)).astype(np.float32))
    return folder


def run(*arguments, cwd, **options):
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        **options,
    )
    assert "\x1b" not in done.stdout + done.stderr, "no control characters in a pipe"
    assert "Traceback" not in done.stderr
    return done


def test_a_table_becomes_a_model_labels_and_a_report(folder):
    done = run(
        *("fit", "rows.csv", "-k", 3, "--model", "m.skm"),
        *("--labels", "labels.csv", "--report", "report.html"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "Wrote m.skm, labels.csv, report.html." in done.stdout
    labels = pd.read_csv(folder / "labels.csv")["label"]
    model = TableClusterer(NystromKMeans(3, random_state=0))
    assert_array_equal(labels, model.fit_predict(folder / "rows.csv"))
    report = (folder / "report.html").read_text()
    assert "sketchmeans fit rows.csv -k 3" in report  # the command, to do it again
    assert len(report) < 5e6

    text = (folder / "rows.csv").read_text()
    done = run("predict", "m.skm", "-", cwd=folder, input=text)
    assert done.stdout == (folder / "labels.csv").read_text()
    assert done.returncode == 0
    done = run("report", "m.skm", "rows.csv", "--out", "again.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Wrote again.html.\n"
    again = (folder / "again.html").read_text()
    for word in ("<html", "width", "height", "depth", "sketchmeans report m.skm"):
        assert word in again
    done = run("info", "m.skm", "--json", cwd=folder)
    assert json.loads(done.stdout)["n_clusters"] == 3
    assert not list(folder.glob(".*"))


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
def test_every_format(write, tmp_path):
    rows = written.X[:900]
    if write is written.write_svmlight_from_zero:
        rows = sparse.csr_array(rows)
    path = write(tmp_path, rows)
    if write is written.write_csv:  # with a separator of another kind
        path.write_text(path.read_text().replace(",", ";"))
    for command in (
        ("fit", path, "-k", 4, "--labels", "labels.npy", "--model", "m.skm"),
        ("predict", "m.skm", path, "--out", "again.npy"),
        ("report", "m.skm", path, "--out", "report.html"),
        ("info", path),
    ):
        done = run(*command, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "\x1b" not in done.stdout
    assert "900" in done.stdout
    model = TableClusterer(NystromKMeans(4, random_state=0))
    labels = model.fit_predict(path)
    assert_array_equal(np.load(tmp_path / "labels.npy"), labels)
    assert_array_equal(np.load(tmp_path / "again.npy"), labels)
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_compare_and_choose(folder):
    options = ("-k", 3, "--landmarks", "uniform", "--json")
    done = run("compare", "rows.csv", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["names"] == ["uniform", "plain k-means"]
    done = run("choose", "rows.csv", "-k", "2-4", "--gamma", 0.1, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "3 is the most clusters" in done.stdout


def test_the_demo_leaves_a_picture_and_a_report(tmp_path):
    done = run("demo", "--out", "there", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("Two rings: 2,000 points", "Digits: 1,797 images", "Three arms"):
        assert words in done.stdout
    assert re.search(r"NystromKMeans +\d.* s +0\.\d+ +1\.000", done.stdout)
    names = sorted(path.name for path in (tmp_path / "there").iterdir())
    assert names == ["sketchmeans-demo.html", "sketchmeans-demo.png"]


def test_exit_codes(folder):
    wrong = run("fit", "rows.csv", cwd=folder)
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    bad = run("fit", "nowhere.csv", "-k", 3, cwd=folder)
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr == "Error: There is no file nowhere.csv.\n"


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from sketchmeans.cli import main; main(['--help']); "
        "print([m for m in ('numpy', 'sklearn', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_shell_completion():
    words = {"COMP_WORDS": "sketchmeans co", "COMP_CWORD": "1"}
    done = subprocess.run(
        [*COMMAND],
        env={**os.environ, "_SKETCHMEANS_COMPLETE": "complete_bash", **words},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.stdout.split() == ["compare"], done.stderr


def test_somebody_who_reads_only_the_first_lines(folder):
    run("fit", "many.npy", "-k", 2, "--max-iter", 1, "--model", "big.skm", cwd=folder)
    command = " ".join([*COMMAND, "predict", "big.skm", "many.npy"])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -n 2"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.stdout.splitlines()[0] == "row,label"
    assert done.stderr == ""


# --- a terminal -----------------------------------------------------------------------

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")


def in_terminal(*arguments, cwd, stdout=None):
    """Return the exit code and what a command draws on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        stdin=theirs,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "110"},
    )
    os.close(theirs)
    drawn, end = b"", time.monotonic() + LIMIT
    while time.monotonic() < end:
        ready, _, _ = select.select([ours], [], [], 0.2)
        try:
            part = os.read(ours, 65536) if ready else b""
        except OSError:  # the other end is closed
            break
        drawn += part
        if not part and process.poll() is not None:
            break
    os.close(ours)
    return process.wait(LIMIT), drawn.decode()


def drawn_bars(*arguments, cwd):
    """Return what a command that works draws, without its control codes."""
    code, drawn = in_terminal(*arguments, cwd=cwd)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn)
    assert code == 0, plain
    assert "\x1b[" in drawn
    return plain


BAR = " +[━╸╺]+"


def test_predict_and_report_draw_bars(folder):
    files = ("--model", "bars.skm", "--quiet", "--missing", "drop")
    run("fit", "many.npy", "-k", 2, "--max-iter", 1, *files, cwd=folder)
    plain = drawn_bars("predict", "bars.skm", "many.npy", "--out", "b.npy", cwd=folder)
    assert re.search(rf"Labelling rows{BAR} +0:00:\d\d", plain), plain
    assert f"Labelled {ROWS:,} rows in" in plain
    plain = drawn_bars("report", "bars.skm", "many.npy", "--out", "b.html", cwd=folder)
    for stage in ("rows", "clusters", "map", "certificate", "pictures"):
        assert re.search(rf"Report: {stage}{BAR} +0:00:\d\d", plain), plain
    assert plain.rstrip().endswith("Wrote b.html.")


def test_compare_draws_a_bar_for_all_and_those_of_each_fit(folder):
    plain = drawn_bars(
        *("compare", "rows.csv", "-k", 3, "--landmarks", "uniform"), cwd=folder
    )
    assert re.search(rf"Methods compared{BAR}", plain), plain
    for name in ("uniform landmarks", "plain k-means"):
        assert re.search(rf"Clustering with {name}{BAR}", plain), plain
    assert re.search(rf"Passes over all 600 rows, \d+ restarts{BAR}", plain), plain
    # What is left on the screen is one bar, and the table.
    last = plain[plain.rindex("Methods compared") :]
    assert "Clustering with" not in last
    assert re.search(r"plain k-means .* × best", last)


def test_choose_draws_bars(folder):
    grid = ("-k", "2-4", "--gamma", "0.05,0.1,0.2")
    plain = drawn_bars("choose", "rows.csv", *grid, cwd=folder)
    for stage in (
        "Reading rows",
        "Trying 2 to 4 clusters",
        "Trying bandwidths for 3 clusters",
    ):
        assert re.search(rf"{stage}{BAR} +0:00:\d\d", plain), plain
    code, drawn = in_terminal("choose", "rows.csv", *grid, "--quiet", cwd=folder)
    assert code == 0
    assert not re.search("Trying|━", drawn)
    assert "3 is the most clusters" in drawn


def test_results_do_not_go_where_the_bars_are(folder):
    options = ("-k", 3, "--landmarks", "uniform")
    with (folder / "table.txt").open("w") as file:
        code, drawn = in_terminal(
            "compare", "rows.csv", *options, cwd=folder, stdout=file
        )
    assert code == 0
    assert "Methods compared" in drawn
    assert "600 rows of 3 columns" not in drawn
    text = (folder / "table.txt").read_text()
    assert text.startswith("600 rows of 3 columns")
    assert "\x1b" not in text


def test_bars_are_drawn_on_a_terminal(folder):
    code, drawn = in_terminal("fit", "many.npy", "-k", 3, "--tol", 0.01, cwd=folder)
    assert code == 0
    assert "\x1b[" in drawn
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn)
    for stage in ("Reading rows", "Landmarks", "Passes over 2,048 rows, 12 restarts"):
        assert re.search(rf"{stage} +[━╸╺]+", plain), plain
    assert re.search(rf"all {ROWS:,} rows +━+ +pass \d+, cost 0\.\d+ +0:00:\d\d", plain)
    assert f"Clustered {ROWS:,} rows" in plain
    code, drawn = in_terminal("fit", "rows.csv", "-k", 3, "--quiet", cwd=folder)
    assert (code, drawn) == (0, "")


# --- Ctrl-C and kills -----------------------------------------------------------------

#: A fit of many passes, which ends with a warning.
LONG = ("fit", "many.npy", "-k", 8, "--n-landmarks", 60, "--tol", 0, "--max-iter", 40)


def _heed_ctrl_c():
    """Undo what a shell does to jobs in the background: they ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def started(*arguments, cwd):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        preexec_fn=_heed_ctrl_c,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path):
    end = time.monotonic() + LIMIT
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(folder):
    """Return the labels of the long fit."""
    done = run(*LONG, "--labels", "straight.npy", cwd=folder)
    assert done.returncode == 0
    return np.load(folder / "straight.npy")


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_leaves_a_checkpoint_from_which_the_fit_resumes(
    number, code, undisturbed, folder, tmp_path
):
    checkpoint, labels = tmp_path / "run.ckpt", tmp_path / "labels.npy"
    files = ("--checkpoint", checkpoint, "--labels", labels)
    process = started(*LONG, *files, cwd=folder)
    wait_for(checkpoint)
    time.sleep(0.3)
    process.send_signal(getattr(signal, number))
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == code, err
    assert out == ""
    assert "Stopping when this pass is done" in err
    assert f"{checkpoint} holds what is done: the same command goes on" in err
    assert [path.name for path in tmp_path.iterdir()] == ["run.ckpt"]
    resumed = run(*LONG, *files, cwd=folder)
    assert resumed.returncode == 0, resumed.stderr
    assert_array_equal(np.load(labels), undisturbed)


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGHUP", 129)])
def test_a_signal_without_a_checkpoint_stops_at_once(number, code, folder, tmp_path):
    # Long enough that it cannot be over when the signal comes.
    longer = ("fit", "many.npy", "-k", 60, "--n-landmarks", 300, "--tol", 0, "-v")
    process = started(*longer, "--labels", tmp_path / "labels.csv", cwd=folder)
    while "pass 1," not in (line := process.stderr.readline()):
        assert line
    process.send_signal(getattr(signal, number))
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == code
    assert err.endswith("Stopped. Nothing was written.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("number", ["SIGTERM", "SIGKILL"])
def test_copies_of_standard_input_do_not_outlive_a_kill(number, tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "fit", "-", "-k", "2"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("a,b\n" + "1,2\n" * 50_000)
    process.stdin.flush()
    end = time.monotonic() + LIMIT
    while not list(tmp_path.glob("*/standard-input.csv")):
        # The link leads to a file without a name.
        assert time.monotonic() < end
        if any(os.path.islink(link) for link in tmp_path.glob("*/*")):
            break
        time.sleep(0.01)
    process.send_signal(getattr(signal, number))
    _, err = process.communicate(timeout=LIMIT)
    assert sum(f.lstat().st_size for f in tmp_path.glob("*/*")) < 100
    assert "Traceback" not in err
    if number == "SIGTERM":
        assert list(tmp_path.iterdir()) == []
        return
    # The folder of a process that was killed goes with the next command.
    done = subprocess.run(
        [*COMMAND, "info", "-"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        input=b"a,b\n1,2\n3,4\n",
        capture_output=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", ["rich", "typer", "numpy", "sklearn"])
def test_ctrl_c_while_modules_are_imported(module, folder):
    code = (
        "import sys\n"
        "from sketchmeans.cli import run_process\n"
        "class Interrupted:\n"
        "    def find_spec(name, path, target=None):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted)\n"
        "sys.exit(run_process())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "fit", "rows.csv", "-k", "2"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "Stopped. Nothing was written.\n"


@pytest.mark.parametrize(
    ("command", "code", "err"),
    [
        ("fit rows.csv -k 2 >&-", 0, ""),
        ("fit rows.csv -k 2 --json <&- >&- 2>&-", 0, ""),
        ("fit nowhere.csv -k 2 2>&-", 1, ""),
        ("--help > /dev/full", 1, "Error: standard output: No space left on device.\n"),
    ],
)
def test_streams_that_are_closed_or_full(command, code, err, folder):
    done = subprocess.run(
        ["bash", "-c", " ".join([*COMMAND, command])],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stderr) == (code, err)


#: The kernel kills it, as by SIGKILL, where a file would grow beyond a size.
DOOMED = """
import resource, signal, sys
from sketchmeans.cli import main
size = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
main(sys.argv[2:])
"""


@pytest.mark.parametrize("option", ["labels", "report"])
def test_killed_in_the_middle_of_a_file_none_is_left(option, folder, tmp_path):
    name = {"labels": "l.csv", "report": "r.html"}[option]
    command = ["fit", str(folder / "rows.csv"), "-k", "3", f"--{option}", name]
    assert run(*command, cwd=tmp_path).returncode == 0
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    # Caches of other libraries are smaller than a report.
    least = len(whole) // 2 if option == "report" else 1
    size = random.Random(option).randrange(least, len(whole) - 1)
    for before in (None, b"as it was"):
        if before is not None:
            (tmp_path / name).write_bytes(before)
        done = subprocess.run(
            [sys.executable, "-c", DOOMED, str(size), *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            timeout=LIMIT,
        )
        assert done.returncode == -signal.SIGXFSZ, done.stderr
        seen = {f for f in os.listdir(tmp_path) if not f.startswith(".")}
        assert seen == (set() if before is None else {name})
        assert before is None or (tmp_path / name).read_bytes() == before


def test_killed_fits_leave_whole_files(folder, tmp_path):
    names = {"model": "m.skm", "labels": "l.npy", "checkpoint": "c.ckpt"}
    files = [word for name, file in names.items() for word in (f"--{name}", file)]
    table = folder / "many.npy"
    short = ("fit", table, "-k", 2, "--n-landmarks", 20, "--max-iter", 3, "--tol", 1)
    waits = random.Random(0)
    for _ in range(3):
        process = started(*short, *files, cwd=tmp_path)
        wait_for(tmp_path / "c.ckpt")
        time.sleep(waits.uniform(0.0, 0.6))
        process.kill()
        process.communicate(timeout=LIMIT)
        if (tmp_path / "l.npy").exists():
            assert np.load(tmp_path / "l.npy").shape == (ROWS,)
    # Whatever is there, the same command goes on from it.
    done = run(*short, *files, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "l.npy").shape == (ROWS,)


WRITER = """
import sys, itertools, numpy as np
from sketchmeans.cli.output import write_labels
print("ready", flush=True)
for i in itertools.count():
    write_labels(np.full(200_000, i), sys.argv[1])
"""


@pytest.mark.parametrize("suffix", ["csv", "npy", "parquet"])
def test_killed_writers_leave_whole_files(suffix, tmp_path):
    path = tmp_path / f"labels.{suffix}"
    waits = random.Random(suffix)
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "ready\n"
        wait_for(path)
        time.sleep(waits.uniform(0.0, 0.2))
        process.kill()
        process.communicate(timeout=LIMIT)
        if suffix == "npy":
            labels = np.load(path)
        elif suffix == "csv":
            labels = pd.read_csv(path)["label"].to_numpy()
        else:
            labels = pd.read_parquet(path)["label"].to_numpy()
        assert labels.shape == (200_000,)
        assert len(np.unique(labels)) == 1
        path.unlink()
