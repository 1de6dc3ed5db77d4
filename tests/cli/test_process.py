"""The command line as a process: a terminal, pipes, signals and kills."""

import io
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from sketchmeans import NystromKMeans, TableClusterer
from sketchmeans.cli import demo_cases, main

pytestmark = pytest.mark.process

COMMAND = [sys.executable, "-m", "sketchmeans"]
LIMIT = 120  # seconds; far more than any takes
ROWS = 120_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a small table, and a large one with its model."""
    folder = tmp_path_factory.mktemp("process")
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=600)
    frame = pd.DataFrame(rng.normal(size=(600, 3)) + 4 * group[:, None])
    frame.columns = ["width", "height", "depth"]
    frame.to_csv(folder / "rows.csv", index=False)
    # No clusters, so that there are many iterations.
    np.save(folder / "many.npy", rng.normal(size=(ROWS, 8)).astype(np.float32))
    model = ("--model", folder / "big.skm", "--missing", "drop", "--quiet")
    assert call("fit", folder / "many.npy", "-k", 2, "--max-iter", 1, *model) == 0
    return folder


def call(*arguments):
    """Run a command in this process, and return its exit code."""
    return main([str(argument) for argument in arguments])


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


def test_a_table_becomes_a_model_and_labels(folder):
    done = run(
        *("fit", "rows.csv", "-k", 3, "--model", "m.skm", "--labels", "labels.csv"),
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Wrote m.skm, labels.csv." in done.stdout
    labels = pd.read_csv(folder / "labels.csv")["label"]
    model = TableClusterer(NystromKMeans(3, random_state=0))
    assert_array_equal(labels, model.fit_predict(folder / "rows.csv"))
    text = (folder / "rows.csv").read_text()
    done = run("predict", "m.skm", "-", "--labels-only", cwd=folder, input=text)
    assert (done.returncode, done.stderr) == (0, "")
    lines = (folder / "labels.csv").read_text().splitlines()
    assert done.stdout.split() == [",".join(line.split(",")[:2]) for line in lines]
    assert not list(folder.glob(".*"))


def test_the_demo_writes_a_picture_and_a_report(tmp_path, capsys, monkeypatch):
    # The same examples with fewer points and restarts.
    cases = {name: getattr(demo_cases, name) for name in ("make_rings", "make_digits")}
    cases["make_arms"] = partial(demo_cases.make_arms, 6_000)
    for name, make in cases.items():
        case = replace(make(), n_init=2)
        monkeypatch.setattr(demo_cases, name, partial(copy, case))
    monkeypatch.setattr("sketchmeans.report.write._PROOF_SECONDS", 0.5)
    assert call("demo", "--out", tmp_path / "there") == 0
    out = capsys.readouterr().out
    found = re.findall(r"^(\S.*?)  +(\d[\d,]*)  +\d+%", out, re.M)
    assert len(found) == 4
    page = (tmp_path / "there" / "customers.html").read_text()
    for name, size in found:  # named as in the report
        assert name in page
        assert f"{size} rows" in page
    for words in ("Two rings: 2,000 points", "Digits: 1,797 images", "Three arms"):
        assert words in out
    assert re.search(r"NystromKMeans +\d.* s +0\.\d+ +1\.000", out)
    # Segments of customers come first.
    assert out.index("Customers: 3,000 rows") < out.index("Two rings")
    assert re.search(r"planted segments is (0\.9\d|1\.00)", out)
    names = sorted(path.name for path in (tmp_path / "there").iterdir())
    shapes = ["sketchmeans-demo.html", "sketchmeans-demo.png"]
    assert names == ["customers.csv", "customers.html", *shapes]


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from sketchmeans.cli import main; main(['fit', '--help']); "
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


@pytest.mark.parametrize(
    ("command", "code", "err"),
    [
        ("predict big.skm many.npy --labels-only | head -n 2", 0, ""),
        ("predict big.skm many.npy | head -n 0", 0, ""),
        ("fit rows.csv -k 2 --json <&- >&- 2>&-", 0, ""),
        ("--help > /dev/full", 1, "Error: standard output: No space left on device.\n"),
    ],
)
def test_streams_that_are_cut_closed_or_full(command, code, err, folder):
    done = subprocess.run(
        ["bash", "-c", " ".join([*COMMAND, command])],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stderr) == (code, err)
    assert done.stdout in ("", "row,label\n0,0\n", "row,label\n0,1\n")


# --- a terminal -----------------------------------------------------------------------

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")


def in_terminal(*arguments, cwd):
    """Return what a command draws on a terminal, with and without control codes."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "110"},
    )
    os.close(theirs)
    data, end = b"", time.monotonic() + LIMIT
    while time.monotonic() < end:
        ready, _, _ = select.select([ours], [], [], 0.2)
        try:
            part = os.read(ours, 65536) if ready else b""
        except OSError:  # the other end is closed
            break
        data += part
        if not part and process.poll() is not None:
            break
    os.close(ours)
    drawn = data.decode()
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn)
    assert process.wait(LIMIT) == 0, plain
    return drawn, plain


class Terminal(io.StringIO):
    """A stream of this process that says that people look at it."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Return what a command that runs in this process draws on a terminal."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "110")

    def draw(*arguments):
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        assert call(*arguments) == 0
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())

    return draw


BAR = " +[━╸╺]+"


def test_fit_draws_bars(folder):
    drawn, plain = in_terminal("fit", "many.npy", "-k", 3, "--tol", 0.01, cwd=folder)
    assert "\x1b[" in drawn
    stages = ("Reading rows", "Landmarks", "Clustering 2,048 rows, 12 restarts")
    for stage in stages:
        assert re.search(rf"{stage}{BAR}", plain), plain
    last = rf"all {ROWS:,} rows +━+ +iteration \d+, cost 0\.\d+ +0:00:\d\d"
    assert re.search(last, plain), plain
    assert f"Clustered {ROWS:,} rows" in plain
    assert in_terminal("fit", "rows.csv", "-k", 3, "--quiet", cwd=folder)[0] == ""


def test_predict_draws_bars(folder):
    files = ("big.skm", "many.npy", "--out", "b.npy")
    _, plain = in_terminal("predict", *files, cwd=folder)
    assert re.search(rf"Labelling rows{BAR} +0:00:\d\d", plain), plain
    assert f"Labelled {ROWS:,} rows in" in plain


def test_report_draws_bars(folder, terminal, capsys, monkeypatch):
    monkeypatch.setattr("sketchmeans.report.write._PROOF_SECONDS", 0.5)
    table, model, page = (folder / name for name in ("rows.csv", "s.skm", "b.html"))
    assert call("fit", table, "-k", 3, "--model", model, "--quiet") == 0
    command = ["report", str(model), str(table), "--out", str(page)]
    monkeypatch.setattr(sys, "argv", ["sketchmeans", *command])
    plain = terminal(*command)
    for stage in ("rows", "clusters", "map", "certificate", "pictures"):
        assert re.search(rf"Report: {stage}{BAR} +0:00:\d\d", plain), plain
    assert capsys.readouterr().out.rstrip().endswith("b.html.")
    # The command is in the report, to do it again.
    assert f"sketchmeans report {model}" in page.read_text()


def test_compare_draws_bars_which_are_not_in_its_results(folder, terminal, capsys):
    options = ("-k", 3, "--landmarks", "uniform")
    plain = terminal("compare", folder / "rows.csv", *options)
    assert re.search(rf"Methods compared{BAR}", plain), plain
    for name in ("uniform landmarks", "plain k-means"):
        assert re.search(rf"Clustering with {name}{BAR}", plain), plain
    assert re.search(rf"Clustering all 600 rows, \d+ restarts{BAR}", plain), plain
    # One bar is left on the screen.
    last = plain[plain.rindex("Methods compared") :]
    assert "Clustering with" not in last
    assert "600 rows of 3 columns" not in plain
    text = capsys.readouterr().out
    assert text.startswith("600 rows of 3 columns")
    assert re.search(r"plain k-means .* × best", text)
    assert "\x1b" not in text


def test_choose_draws_bars(folder, terminal, capsys):
    plain = terminal("choose", folder / "rows.csv", "-k", "2-3", "--gamma", "0.1,0.2")
    stages = ("Reading rows", "Trying 2 to 3 clusters", "Trying bandwidths for 3 clus")
    for stage in stages:
        assert re.search(rf"{stage}\w*{BAR} +0:00:\d\d", plain), plain
    assert "3 is the most clusters" in capsys.readouterr().out


# --- signals and kills ----------------------------------------------------------------

#: A fit of many iterations, which ends with a warning.
LONG = ("fit", "many.npy", "-k", 8, "--n-landmarks", 60, "--tol", 0, "--max-iter", 25)


def _heed_ctrl_c():
    """Undo what a shell does to jobs in the background: they ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def started(*arguments, cwd, **options):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        preexec_fn=_heed_ctrl_c,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def wait_for(exists):
    end = time.monotonic() + LIMIT
    while not exists():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_ctrl_c_leaves_a_checkpoint_from_which_the_fit_resumes(
    folder, tmp_path, monkeypatch
):
    checkpoint, labels = tmp_path / "run.ckpt", tmp_path / "labels.npy"
    files = ("--checkpoint", checkpoint, "--labels", labels)
    process = started(*LONG, *files, cwd=folder)
    wait_for(checkpoint.exists)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (130, ""), err
    assert "Stopping after this iteration is finished and saved; press Ctrl-C" in err
    assert f"{checkpoint} holds the work so far; the same command resumes" in err
    assert [path.name for path in tmp_path.iterdir()] == ["run.ckpt"]
    monkeypatch.chdir(folder)
    assert call(*LONG, *files, "--quiet") == 0
    resumed = np.load(labels)
    assert call(*LONG, "--labels", labels, "--quiet") == 0
    assert_array_equal(resumed, np.load(labels))


def test_a_signal_without_a_checkpoint_stops_at_once(folder, tmp_path):
    # Long enough that it cannot be over when the signal comes.
    longer = ("fit", "many.npy", "-k", 60, "--n-landmarks", 300, "--tol", 0, "-v")
    process = started(*longer, "--labels", tmp_path / "labels.csv", cwd=folder)
    while "iteration 1," not in (line := process.stderr.readline()):
        assert line
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + signal.SIGHUP
    assert err.endswith("Stopped. Nothing was written.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("number", ["SIGTERM", "SIGKILL"])
def test_copies_of_standard_input_do_not_outlive_a_kill(
    number, folder, tmp_path, monkeypatch
):
    process = started(
        *("fit", "-", "-k", "2"),
        cwd=folder,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
    )
    process.stdin.write("a,b\n" + "1,2\n" * 50_000)
    process.stdin.flush()
    # The link leads to a file without a name.
    wait_for(lambda: any(os.path.islink(link) for link in tmp_path.glob("*/*")))
    process.send_signal(getattr(signal, number))
    _, err = process.communicate(timeout=LIMIT)
    assert sum(f.lstat().st_size for f in tmp_path.glob("*/*")) < 100
    if number == "SIGTERM":
        assert (process.returncode, err) == (143, "Stopped. Nothing was written.\n")
    else:  # the folder of a killed process is removed by the next command
        with (folder / "rows.csv").open() as file:
            done = run(
                "info",
                "-",
                cwd=folder,
                stdin=file,
                env={**os.environ, "TMPDIR": tmp_path},
            )
        assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", ["typer", "sklearn"])
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


#: A signal comes while a module is imported, which swallows exceptions as modules in C
#: do, or makes others of them.  On a busy machine the signal is sent again before the
#: handler of the first one has returned.
SIGNALLED = """
import os, signal, sys, threading, time
from sketchmeans.cli import run_process
start = threading.Timer.start
def start_slowly(timer):
    threading.Timer.start = start
    start(timer)
    time.sleep(0.05)
threading.Timer.start = start_slowly
class Signalled:
    def find_spec(name, path, target=None):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), signal.{name})
                sum(range(10_000))
            except BaseException as error:
                {reaction}
sys.meta_path.insert(0, Signalled)
sys.exit(run_process())
"""


@pytest.mark.parametrize("reaction", ["pass", "raise ImportError from error"])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_in_the_middle_of_an_import_is_not_lost(name, reaction, folder):
    def signalled(module):
        code = SIGNALLED.format(module=module, name=name, reaction=reaction)
        return subprocess.run(
            [sys.executable, "-c", code, "fit", "rows.csv", "-k", "2"],
            cwd=folder,
            preexec_fn=_heed_ctrl_c,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )

    number = getattr(signal, name)
    done = signalled("sklearn.base")
    assert (done.returncode, done.stdout) == (128 + number, ""), done.stderr
    assert done.stderr == "Stopped. Nothing was written.\n"
    done = signalled("typer")  # no command has started
    assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")


#: The system kills it, as by SIGKILL, where a file would grow beyond a size.
DOOMED = """
import resource, signal, sys
from sketchmeans.cli import main
size = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
main(sys.argv[2:])
"""


@pytest.mark.slow
def test_killed_in_the_middle_of_a_file_it_is_as_it_was(folder, tmp_path):
    path = tmp_path / "report.html"
    command = ["fit", str(folder / "rows.csv"), "-k", "3", "--report", str(path)]
    path.write_bytes(b"as it was")
    size = 100_000  # caches of other libraries are smaller, and a report is larger
    done = subprocess.run(
        [sys.executable, "-c", DOOMED, str(size), *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        timeout=LIMIT,
    )
    assert done.returncode == -signal.SIGXFSZ, done.stderr
    assert [f for f in os.listdir(tmp_path) if not f.startswith(".")] == [path.name]
    assert path.read_bytes() == b"as it was"


@pytest.mark.slow
def test_killed_fits_leave_whole_files(folder, tmp_path, monkeypatch):
    names = {"model": "m.skm", "labels": "l.npy", "checkpoint": "c.ckpt"}
    files = [word for name, file in names.items() for word in (f"--{name}", file)]
    table = folder / "many.npy"
    short = ("fit", table, "-k", 2, "--n-landmarks", 20, "--max-iter", 3, "--tol", 1)
    waits = random.Random(0)
    for _ in range(2):
        process = started(*short, *files, cwd=tmp_path)
        wait_for((tmp_path / "c.ckpt").exists)
        time.sleep(waits.uniform(0.0, 0.6))
        process.kill()
        process.communicate(timeout=LIMIT)
        if (tmp_path / "l.npy").exists():
            assert np.load(tmp_path / "l.npy").shape == (ROWS,)
    # The same command resumes from whatever is there.
    monkeypatch.chdir(tmp_path)
    assert call(*short, *files, "--quiet") == 0
    assert np.load(tmp_path / "l.npy").shape == (ROWS,)


WRITER = """
import sys, itertools, numpy as np
from sketchmeans.cli.labels import write_labels
for i in itertools.count():
    for suffix in ("npy", "csv", "parquet"):
        write_labels(np.full(100_000, i), f"labels.{suffix}")
    print("all", flush=True)
"""


def test_killed_writers_leave_whole_files(tmp_path):
    waits = random.Random(3)
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "all\n"
        time.sleep(waits.uniform(0.0, 0.3))
        process.kill()
        process.communicate(timeout=LIMIT)
        found = {
            "npy": np.load(tmp_path / "labels.npy"),
            "csv": pd.read_csv(tmp_path / "labels.csv")["label"].to_numpy(),
            "parquet": pd.read_parquet(tmp_path / "labels.parquet")["label"].to_numpy(),
        }
        for suffix, labels in found.items():
            assert labels.shape == (100_000,), suffix
            assert len(np.unique(labels)) == 1, suffix
