"""Results on disk: one CSV file an experiment, one row a measurement."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

Cell = dict[str, Any]
Row = dict[str, Any]

#: Packages whose versions are kept with each run.
PACKAGES = ("sketchmeans", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Store:
    """The results of one experiment.

    A cell's rows are written together or not at all.  One process writes at a time.

    Attributes
    ----------
    path : Path
        The CSV file.
    keys : sequence of str
        The columns that are a cell's settings.
    """

    path: Path
    keys: Sequence[str]

    def table(self) -> pd.DataFrame:
        """Return all rows; an empty table if there are none."""
        if not self.path.exists():
            return pd.DataFrame()
        return pd.read_csv(self.path, keep_default_na=False, na_values=["nan"])

    def key(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what tells one cell from another, as it reads in the file."""
        return tuple(_text(settings[name]) for name in self.keys)

    def finished(self) -> set[tuple[str, ...]]:
        """Return the keys of the cells that have rows."""
        table = self.table()
        if table.empty:
            return set()
        unknown = [name for name in self.keys if name not in table.columns]
        if unknown:
            raise ValueError(
                f"{self.path} has no column {unknown[0]!r}: it is of another grid; "
                "move it away"
            )
        distinct = table[list(self.keys)].drop_duplicates()
        return {self.key(row) for row in distinct.to_dict("records")}

    def append(self, rows: Iterable[Row]) -> None:
        """Add the rows of one cell, by a new file that takes the place of the old."""
        added = pd.DataFrame(list(rows))
        table = pd.concat([self.table(), added], ignore_index=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".part")
        table.to_csv(partial, index=False, float_format="%.6g", na_rep="nan")
        os.replace(partial, self.path)


def _text(value: Any) -> str:
    """Return a setting as text, the same before and after a trip through a file."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def describe_run(command: str) -> Row:
    """Return when, where and with which versions a run was made."""
    return {
        "run": datetime.now(UTC).strftime("%Y%m%dT%H%M%S"),
        "commit": current_commit(),
        "protocol": protocol_commit(),
        "command": command,
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": count_cores(),
    }


def count_cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def current_commit() -> str:
    """Return the commit of the code, marked where its files differ from it."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    changed = _git(
        "status", "--porcelain", "--", "src", "benchmarks", "experiments/*.py"
    )
    return f"{commit}-changed" if changed else commit or "unknown"


def protocol_commit() -> str:
    """Return the commit that the protocol was last changed in."""
    path = "experiments/PROTOCOL.md"
    return _git("log", "-1", "--format=%h", "--", path) or "unknown"


def _git(*arguments: str) -> str:
    home = Path(__file__).resolve().parents[1]
    try:
        found = subprocess.run(
            ["git", "-C", str(home), *arguments],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def check_one_origin(
    table: pd.DataFrame, path: Path, commit: str | None = None, grid: str | None = None
) -> str:
    """Return the commit of all rows, or raise where they are of several, or grids."""
    for column, plural, current in (
        ("commit", "commits", commit),
        ("grid", "grids", grid),
    ):
        found = set(table[column]) if column in table else {"before provenance"}
        if len(found | ({current} if current else set())) > 1:
            names = ", ".join(sorted(map(str, found)))
            raise ValueError(
                f"{path} has rows of {names}"
                + (f", and this is {current}" if current else "")
                + f": results of different {plural} do not mix. Move the file away, "
                "or give another folder by --out."
            )
    return str(table["commit"].iloc[0])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor()
