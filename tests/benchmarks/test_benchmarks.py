"""Benchmarks start, run on little data, and keep what they found."""

import re
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from benchmarks import history, measure

FOLDER = Path(history.__file__).parent
MODULES = [
    path.stem
    for path in sorted(FOLDER.glob("*.py"))
    if re.search(r"^def main\(", path.read_text("utf-8"), re.M)
]


def _run(monkeypatch, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    import_module(f"benchmarks.{name}").main()


@pytest.fixture(name="data")
def make_data(tmp_path, monkeypatch):
    """Return a folder with small tables in place of the real ones."""
    rng = np.random.default_rng(0)
    labels = rng.integers(10, size=450)
    X = (120 + 40 * rng.normal(size=(10, 12)))[labels] + 10 * rng.normal(size=(450, 12))
    for name in ("mnist", "usps"):
        X_bytes = np.clip(X, 0, 255).astype(np.uint8)
        np.savez(tmp_path / f"{name}.npz", X=X_bytes, y=labels)
    monkeypatch.setenv("SKETCHMEANS_DATA", str(tmp_path))
    monkeypatch.setattr(measure, "_REST", 0.0)
    return tmp_path


@pytest.mark.parametrize("name", MODULES)
def test_every_benchmark_starts(name, monkeypatch, capsys):
    with pytest.raises(SystemExit) as stop:
        _run(monkeypatch, name, "--help")
    assert stop.value.code == 0
    assert "--" in capsys.readouterr().out


def test_fits_are_measured_and_judged(data, monkeypatch, capsys):
    rows = ("mnist-gemm", "exact")
    _run(monkeypatch, "fit", "--seeds", 1, "--max-rows", 450, "--rows-only", *rows)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(rows)] == [*rows]
    assert re.fullmatch(r"\d of 4 targets met", lines[-1])


def test_figures_of_a_rehearsal_are_not_stored(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        _run(monkeypatch, "fit", "--store", "--max-rows", 450)
    assert "a rehearsal are not stored" in capsys.readouterr().err


def test_quality_is_counted(monkeypatch, capsys):
    options = ("--problems", 1, "--restarts", 2, "--kernels", "linear")
    _run(monkeypatch, "quality", *options)
    assert "linear" in capsys.readouterr().out


def test_a_cluster_is_simulated(monkeypatch, capsys):
    _run(monkeypatch, "simulate_cluster", "--seeds", 2)
    assert "workers lost" in capsys.readouterr().out


# --- history --------------------------------------------------------------------------


def _figure(**changes):
    measured = {
        "row": "exact",
        "ours_seconds": 1.0,
        "ours_cpu": 2.0,
        "peer": "",
        "peer_seconds": 3.0,
        "peer_cpu": 3.5,
        "time_ratio": 3.0,
        "cost_ratio": 1.0,
        "wanted": "time >= 1.5, cost <= 1",
        "met": "yes",
    }
    return replace(history.new_figure("fit", "a command", **measured), **changes)


def test_the_page_is_that_of_the_stored_figures():
    assert history.PAGE.read_text("utf-8") == history.render(history.read())


def test_figures_are_kept_and_read_again(tmp_path):
    file, page = tmp_path / "history.csv", tmp_path / "page.md"
    file.write_text(history.FILE.read_text("utf-8").splitlines()[0] + "\n", "utf-8")
    first = _figure()
    assert history.store([first], file, page) == []
    assert history.store([_figure(time_ratio=2.9)], file, page) == []
    found = history.read(file)
    assert found == [first, _figure(time_ratio=2.9)]
    text = page.read_text("utf-8")
    assert "| exact | 1 s (2 CPU) |  | 3 s (3.5 CPU) | 2.90 | 1.0000 |" in text
    assert "3.00" in text.partition("## From run to run")[2]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"time_ratio": 2.0}, "time ratio 2 after 3"),
        ({"cost_ratio": 1.01}, "cost 1.01 after 1"),
        ({"time_ratio": 2.5}, ""),
        ({"time_ratio": 9.0}, ""),
        ({"time_ratio": 9.0, "wanted": "time <= 2.5"}, "time ratio 9 after 3"),
        ({"time_ratio": 1.0, "machine": "another"}, ""),
    ],
)
def test_what_is_worse_than_before_is_said(changes, said):
    found = history.find_regression(_figure(**changes), [_figure()])
    assert found.startswith(f"exact: {said}") if said else found == ""
