"""What an import loads, and what is said where an extra is not installed."""

import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

#: Hides packages, as if they were not installed.
HIDE = """
import sys
from importlib.machinery import PathFinder

class Hidden(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            return None
        return PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Hidden
"""
EXTRAS = (
    "pyspark",
    "rich",
    "typer",
    "pyarrow",
    "dask",
    "distributed",
    "matplotlib",
    "jinja2",
    "onnx",
    "onnxruntime",
    "openpyxl",
    "python_calamine",
    "fsspec",
)
OTHERS = ("pandas", "polars", "pytest", "_pytest", "hypothesis")


def _run(code, hidden=()):
    """Run code in a process of its own, where some packages are hidden."""
    before = HIDE.format(packages=set(hidden)) if hidden else ""
    command = [sys.executable, "-c", before + textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("from sketchmeans.cli import run_process; sys.exit(run_process())", "cli"),
        ("import sketchmeans.report", "report"),
        ("import sketchmeans.testing", "testing"),
        (
            "open('t.csv', 'w').write('a,b\\n1,2\\n'); "
            "import sketchmeans; sketchmeans.open_rows('t.csv')",
            "files",
        ),
        (
            "open('t.xlsx', 'w').write('a'); "
            "import sketchmeans; sketchmeans.open_rows('t.xlsx')",
            "excel",
        ),
        ("import sketchmeans; sketchmeans.open_rows('s3://bucket/t.csv')", "remote"),
        ("import sketchmeans.onnx", "onnx"),
        ("import sketchmeans.spark", "spark"),
    ],
    ids=["cli", "report", "testing", "files", "excel", "remote", "onnx", "spark"],
)
def test_a_missing_extra_is_named_in_one_line(code, extra, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = _run(f"import sys; {code}", EXTRAS + OTHERS)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"pip install sketchmeans[{extra}]")


def test_every_extra_has_a_test_of_what_is_said_without_it():
    with open(Path(__file__).parents[1] / "pyproject.toml", "rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    marks = test_a_missing_extra_is_named_in_one_line.pytestmark
    tested = next(mark.kwargs["ids"] for mark in marks if mark.name == "parametrize")
    # Without Dask there is no Dask collection that could be passed.
    assert set(tested) == extras - {"dask"}


@pytest.mark.process
def test_the_core_needs_no_extra():
    code = """
        import numpy as np
        import sketchmeans
        from sketchmeans.diagnostics import certificate

        X = np.random.default_rng(0).normal(size=(60, 3))
        for name in ("NystromKMeans", "SketchedKMeans", "KernelKMeans"):
            model = getattr(sketchmeans, name)(3, random_state=0).fit(X)
            assert (model.predict(X) == model.labels_).all(), name
        print(certificate(model, X, max_seconds=1).ratio >= 1)
    """
    done = _run(code, EXTRAS + OTHERS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"


@pytest.mark.process
@pytest.mark.parametrize("page", ["start", "next-month"])
def test_pages_with_tables_need_no_pandas(page, tmp_path, monkeypatch):
    """No extra that the tutorial installs brings it."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("pyarrow")
    text = (Path(__file__).parents[1] / "docs" / f"{page}.md").read_text("utf-8")
    code = "".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))
    monkeypatch.chdir(tmp_path)
    done = _run(code, (*OTHERS, "dask"))
    assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_times_in_nanoseconds_need_no_pandas(tmp_path):
    """Parquet files of pandas have them, and pyarrow asks for pandas to return them."""
    path = tmp_path / "trips.parquet"
    code = f"""
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq
        from sketchmeans import NystromKMeans, TableClusterer
        from sketchmeans.diagnostics import describe_segments

        rng = np.random.default_rng(0)
        days = pa.array(np.sort(rng.integers(0, 2**60, 300)), pa.timestamp("ns"))
        hours = pa.array(rng.integers(0, 3, 300) * 10**9 + 1, pa.time64("ns"))
        size = rng.normal(size=300)
        table = pa.table({{"at": days, "hour": hours, "size": size}})
        pq.write_table(table, {str(path)!r})
        model = TableClusterer(
            NystromKMeans(2, random_state=0), as_kinds={{"hour": "category"}}
        ).fit({str(path)!r})
        print(model.kinds_)
        describe_segments(model, {str(path)!r}, id_column="at")
    """
    done = _run(code, OTHERS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{'at': 'date', 'hour': 'category', 'size': 'numeric'}\n"


@pytest.mark.process
def test_one_core_needs_no_thread_and_no_psutil():
    """As Python in a browser has them: one core, no threads, no processes."""
    code = """
        import os, subprocess, threading
        os.environ["LOKY_MAX_CPU_COUNT"] = "1"

        def refuse(*args, **kwargs):
            raise RuntimeError("can't start new thread")

        threading.Thread.start = subprocess.Popen.__init__ = refuse
        import numpy as np
        import sketchmeans

        X = np.random.default_rng(0).normal(size=(6_000, 3))
        for name, n in {
            "NystromKMeans": 6_000,
            "SketchedKMeans": 6_000,
            "SpectralKMeans": 1_000,
            "KernelKMeans": 300,
        }.items():
            model = getattr(sketchmeans, name)(3, random_state=0).fit(X[:n])
            assert (model.predict(X[:n]) == model.labels_).all(), name
        print("done")
    """
    done = _run(code, (*EXTRAS, *OTHERS, "psutil"))
    assert done.stdout == "done\n", done.stderr


@pytest.mark.process
def test_the_import_loads_next_to_nothing():
    code = """
        import sys
        before = set(sys.modules)
        import sketchmeans
        print(len(set(sys.modules) - before))
    """
    assert int(_run(code).stdout) <= 12


@pytest.mark.process
def test_help_loads_no_numerical_library():
    code = """
        import atexit, sys
        heavy = {"numpy", "scipy", "sklearn", "pyarrow", "dask", "matplotlib"}
        atexit.register(lambda: print(len(sys.modules), heavy & set(sys.modules)))
        sys.argv = ["sketchmeans", "--help"]
        from sketchmeans.cli import run_process
        run_process()
    """
    count, loaded = _run(code).stdout.splitlines()[-1].split(" ", 1)
    assert loaded == "set()"
    assert int(count) <= 450
