"""What benchmarks measured, run by run: ``benchmarks/history.csv``, and its page.

``--store`` of `benchmarks.fit` and `benchmarks.plane` adds lines to the file and writes
the page anew; ``python -m benchmarks.history`` writes the page alone.  It says which
figures are worse than those that were measured before, of the same row on the same
machine.
"""

from __future__ import annotations

import csv
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import joblib
import numpy
import sklearn

import sketchmeans

HERE = Path(__file__).parent
FILE = HERE / "history.csv"
PAGE = HERE / "RESULTS.md"
#: A ratio of times below so many times the last one, and a cost above, are worse.
_SLOWER, _COSTLIER = 0.8, 1.005
#: A load above this, as the system tells it, blurs wall times.
_QUIET = 0.5

INTRODUCTION = """# Benchmarks

Written by `python -m benchmarks.history` from what was measured, which is kept in
`benchmarks/history.csv`. `ours` and `theirs` are wall seconds (and CPU seconds of all
threads where they were taken), medians over the seeds. `times faster` is their wall
time over ours: **below 1 we lose**. `cost` is our cost over theirs, for the seed where
that is farthest from 1, and one judge computes both: above 1 ours is worse. To measure
on your machine:

```console
$ make bench          # beside scikit-learn: minutes; stores what it finds
$ make bench-plane    # all table sizes and numbers of clusters, six peers: hours
```

Real tables are read from the folder that `SKETCHMEANS_DATA` names; without it, tables
of the same shape are generated. Figures that were taken while other work ran are
marked: their wall times are rough, and so are the ratios.
"""
TITLES = {
    "fit": """## Beside scikit-learn

Both sides take turns in one process, with the same bandwidth and as many uniform
landmarks. Peers are `Nystroem` + `KMeans` (-kmeans), `Nystroem` + `MiniBatchKMeans`
(-minibatch), and Lloyd's algorithm on the kernel matrix in NumPy (exact). Two rows say
how many times *slower* something is: a fit than the one product of matrices that it
cannot avoid (-gemm), and ten restarts than one (-restarts). `growth` is the exponent of
time over the number of rows.
""",
    "plane": """## Over the plane

Every fit is in a process of its own, on seeds that no setting was tuned on. The peer is
the fastest one of equal cost (within 0.1%), or else the best one, of scikit-learn,
intelex, faiss and superkmeans; in kernel cells peers cluster scikit-learn's Nyström
features. `cost` is here our median over the lowest of all, ours included: 1 says that
no peer had a lower one. Cells that are not listed have not been run. On a few hundred
rows we lose: a fit makes 30 to 60 passes for its restarts and swaps, through Python,
where peers make one run in compiled code.
""",
}
HISTORY = """## From run to run

Times faster, with the version, and cost; the oldest run first.
"""


@dataclass(frozen=True)
class Figure:
    """One row of a benchmark, as it was measured once; "" where it was not."""

    date: str
    commit: str
    version: str
    benchmark: str
    command: str
    machine: str
    cores: int
    load: float | str
    python: str
    numpy: str
    sklearn: str
    row: str
    ours_seconds: float | str
    ours_cpu: float | str
    peer: str
    peer_seconds: float | str
    peer_cpu: float | str
    time_ratio: float
    cost_ratio: float | str
    wanted: str
    met: str


def new_figure(benchmark: str, command: str, **measured: object) -> Figure:
    """Return a figure of this machine, this commit and these versions."""
    return Figure(
        date=datetime.now(UTC).date().isoformat(),
        commit=_commit(),
        version=sketchmeans.__version__,
        benchmark=benchmark,
        command=command,
        machine=_processor(),
        cores=joblib.cpu_count(),
        load=round(os.getloadavg()[0], 1),
        python=platform.python_version(),
        numpy=numpy.__version__,
        sklearn=sklearn.__version__,
        **measured,  # type: ignore[arg-type]
    )


def _commit() -> str:
    """Return the commit, with a plus where files of the library were changed since."""
    ask = ["git", "-C", str(HERE)]
    try:
        found = subprocess.check_output([*ask, "rev-parse", "--short=10", "HEAD"])
        changed = subprocess.check_output([*ask, "status", "--porcelain", "../src"])
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.decode().strip() + ("+" if changed else "")


def _processor() -> str:
    """Return the name of the processor, as far as the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line for line in text.splitlines() if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.machine()


def read(path: Path = FILE) -> list[Figure]:
    """Return all figures, in the order in which they were measured."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_figure(line) for line in csv.DictReader(file)]


def _figure(line: dict[str, str]) -> Figure:
    numbers: tuple[str, ...] = ("time_ratio", "cost_ratio")
    numbers += ("ours_seconds", "ours_cpu", "peer_seconds", "peer_cpu")
    found: dict[str, object] = dict(line)
    found |= {name: float(line[name]) for name in numbers if line[name]}
    found["cores"] = int(line["cores"])
    if line["load"].replace(".", "").isdecimal():
        found["load"] = float(line["load"])
    return Figure(**found)  # type: ignore[arg-type]


def store(figures: Iterable[Figure], path: Path = FILE, page: Path = PAGE) -> list[str]:
    """Add figures to the file, write the page, and return what is worse than before."""
    known, figures = read(path), list(figures)
    names = [field.name for field in fields(Figure)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(figure) for figure in [*known, *figures])
    page.write_text(render(read(path)), encoding="utf-8")
    return [text for new in figures if (text := find_regression(new, known))]


def find_regression(new: Figure, known: list[Figure]) -> str:
    """Return in what a figure is worse than the last one of its row, or nothing."""
    same = [old for old in known if _place(old) == _place(new)]
    if not same:
        return ""
    old, worse = same[-1], []
    slower = new.time_ratio < _SLOWER * old.time_ratio
    if "<=" in new.wanted.partition("cost")[0]:  # times slower
        slower = _SLOWER * new.time_ratio > old.time_ratio
    if slower:
        worse.append(f"time ratio {new.time_ratio:.3g} after {old.time_ratio:.3g}")
    if _costlier(new.cost_ratio, old.cost_ratio):
        worse.append(f"cost {new.cost_ratio:.5g} after {old.cost_ratio:.5g}")
    if not worse:
        return ""
    return f"{new.row}: {', '.join(worse)} ({old.version}, {old.commit}, {old.date})"


def _costlier(new: float | str, old: float | str) -> bool:
    return "" not in (new, old) and float(new) > _COSTLIER * float(old)


def _place(figure: Figure) -> tuple[object, ...]:
    return figure.benchmark, figure.row, figure.machine, figure.cores


def render(figures: list[Figure]) -> str:
    """Return the page: the last figure of each row, and the history of all."""
    parts = [INTRODUCTION]
    for benchmark, title in TITLES.items():
        own = [figure for figure in figures if figure.benchmark == benchmark]
        last = {figure.row: figure for figure in own}
        runs = groupby((f for f in own if last[f.row] is f), _run)
        parts += [title, *(_section(list(run)) for _, run in runs)]
        parts += [] if own else ["No figures are stored yet.\n"]
    parts.append(
        "## From run to run\n\nTimes faster, and the cost, oldest run first.\n"
    )
    parts.append(_history(figures))
    return "\n".join(parts)


def _run(figure: Figure) -> tuple[str, str, str]:
    return figure.date, figure.commit, figure.command


def _section(run: list[Figure]) -> str:
    first = run[0]
    load = max((figure.load for figure in run), key=str)
    busy = load != "" and (isinstance(load, str) or load > _QUIET)
    note = f"; **other work ran, load {load}**" if busy else ""
    head = (
        f"`{first.command}`, {first.date}, commit {first.commit}, sketchmeans "
        f"{first.version}, {first.machine}, {first.cores} cores, Python "
        f"{first.python}, NumPy {first.numpy}, scikit-learn {first.sklearn}{note}.\n"
    )
    titles = ("row", "ours", "peer", "theirs", "times faster", "cost", "wanted", "met")
    rows = (
        (
            *(f.row, _seconds(f.ours_seconds, f.ours_cpu), f.peer),
            *(_seconds(f.peer_seconds, f.peer_cpu), f"{f.time_ratio:.2f}"),
            *(_ratio(f.cost_ratio), f.wanted, f.met),
        )
        for f in run
    )
    return f"{head}\n{_table(titles, rows)}"


def _history(figures: list[Figure]) -> str:
    rows = []
    for _, group in groupby(sorted(figures, key=_place), _place):
        own = list(group)
        times = ", ".join(f"{f.time_ratio:.2f} ({f.version})" for f in own)
        costs = ", ".join(_ratio(f.cost_ratio) for f in own)
        rows.append((f"{own[0].benchmark}: {own[0].row}", times, costs))
    return _table(("row", "times faster", "cost"), rows)


def _seconds(wall: float | str, cpu: float | str) -> str:
    if wall == "":
        return ""
    return f"{wall:.3g} s" + ("" if cpu == "" else f" ({cpu:.3g} CPU)")


def _ratio(ratio: float | str) -> str:
    return ratio if isinstance(ratio, str) else f"{ratio:.4f}"


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [titles, ("---",) * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(render(read()), encoding="utf-8")
    sys.stdout.write(f"Wrote {PAGE.name} from {FILE.name}.\n")
