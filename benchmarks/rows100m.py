"""A hundred million rows on a laptop: fitted in 2 GB, killed twice, and resumed.

Writes a Parquet file with an id and 20 float32 features for each row, which have 20
planted groups, and runs

    sketchmeans fit FILE -k 20 --max-memory 2GB --checkpoint C --labels L.parquet \\
        --id id

once with a SIGKILL in the first pass over all rows and another one in the second, and
once undisturbed.  Prints whether both have written the same labels beside the same ids,
how well the planted groups are found, peak memory, seconds of wall and processor time,
how often each stage has decoded row groups, and how busy the cores were, which tells
whether reading and computing overlap.

    python -m benchmarks.rows100m --data FOLDER

FOLDER takes 10 GB for the table, and 4 GB for labels and checkpoints; a table that is
there is used again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import Array
from benchmarks.table import banner

_FEATURES, _CLUSTERS = 20, 20
#: Rows of a row group.
_HEIGHT = 2**20
#: Seconds between two looks at a process.
_INTERVAL = 0.05
#: What the stages in which the fit is killed have in their names, in this order, and
#: the seconds after which it is killed at the latest: a second pass is short.
_KILLED_IN = {"all ": 600.0, "#2": 5.0}


def planted(group: int, n_rows: int) -> Array:
    """Return the planted groups of the rows of a row group; the rarest has 0.5%."""
    shares = np.linspace(1.0, 19.0, _CLUSTERS)
    rng = np.random.default_rng([20, group])
    return rng.choice(_CLUSTERS, size=n_rows, p=shares / shares.sum())


def make_ids(group: int, n_rows: int) -> Array:
    """Return different ids, in no order."""
    rows = np.arange(group * _HEIGHT, group * _HEIGHT + n_rows)
    return rows * 2654435761 % 2**40  # an odd factor: each id once


def make_group(number: int, n_rows: int) -> pa.Table:
    """Return a row group: ids, and features around the planted centres."""
    centres = np.random.default_rng(20).normal(scale=2.0, size=(_CLUSTERS, _FEATURES))
    groups = planted(number, n_rows)
    rng = np.random.default_rng([21, number])
    X = rng.standard_normal((n_rows, _FEATURES), dtype=np.float32)
    X += centres.astype(np.float32)[groups]
    columns = {"id": make_ids(number, n_rows)}
    columns |= {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(_FEATURES)}
    return pa.table(columns)


def group_sizes(n_rows: int) -> list[int]:
    full, rest = divmod(n_rows, _HEIGHT)
    return [_HEIGHT] * full + [rest] * bool(rest)


def write_table(path: Path, n_rows: int) -> None:
    """Write the table, row group by row group."""
    part = path.with_suffix(".part")
    with pq.ParquetWriter(part, make_group(0, 1).schema) as writer:
        for number, size in enumerate(group_sizes(n_rows)):
            writer.write_table(make_group(number, size), row_group_size=_HEIGHT)
    part.rename(path)


# --- the fit, in a process of its own -------------------------------------------------


class Trace:
    """What the stages of a fit decode, and how long they take."""

    def __init__(self, place: Path) -> None:
        self.stage, self._place = "start", place
        self.rows: list[dict[str, Any]] = []
        self._decoded: Counter[int] = Counter()
        self._seconds, self._since = 0.0, (time.perf_counter(), time.process_time())

    def decode(self, inner: Any) -> Any:
        """Return pyarrow's reading of row groups with a count of them."""

        def decode(state: Any, metadata: Any, names: Any, groups: range, *rest: Any):
            batches = inner(state, metadata, names, groups, *rest)
            edges = np.cumsum(
                [0, *(metadata.row_group(i).num_rows for i in range(groups.stop))]
            )
            last = -1
            while True:
                start = time.perf_counter()
                item = next(batches, None)
                self._seconds += time.perf_counter() - start
                if item is None:
                    return
                group = int(np.searchsorted(edges, item[1], side="right")) - 1
                if group != last:
                    self._decoded[group] += 1
                    last = group
                yield item

        return decode

    def next(self, stage: str) -> None:
        """Note what the stage that ends has done."""
        now = time.perf_counter(), time.process_time()
        wall, cpu = (b - a for a, b in zip(self._since, now, strict=True))
        counts = self._decoded.values()
        self.rows.append(
            {
                "stage": self.stage,
                "wall": wall,
                "cpu": cpu,
                "decoding": self._seconds,
                "least": min(counts, default=0),
                "most": max(counts, default=0),
                "groups": len(self._decoded),
            }
        )
        self.stage, self._since, self._seconds = stage, now, 0.0
        self._decoded = Counter()
        self._place.write_text(stage)


def run_traced(arguments: list[str], log: Path) -> None:
    """Run the command line here, and write down what its stages have done."""
    from sketchmeans.cli import main
    from sketchmeans.data.sources import parquet
    from sketchmeans.engine import progress

    trace = Trace(log.with_suffix(".stage"))
    parquet.decode = trace.decode(parquet.decode)
    task, call = progress.Progress._task, progress.Stage.__call__

    def traced(own: Any, name: str, *rest: Any) -> Any:
        trace.next(name)
        return task(own, name, *rest)

    def iterate(own: Any, iteration: int, cost: float) -> bool:
        if "all " in trace.stage:
            trace.next(f"{trace.stage.split(' #')[0]} #{iteration + 1}")
        return call(own, iteration, cost)

    progress.Progress._task = traced  # type: ignore[method-assign,assignment]
    progress.Stage.__call__ = iterate  # type: ignore[method-assign]
    sys.argv = ["sketchmeans", *arguments]
    try:
        sys.exit(main())
    finally:
        trace.next("end")
        usage = resource.getrusage(resource.RUSAGE_SELF)
        cpu = usage.ru_utime + usage.ru_stime
        log.write_text(json.dumps({"stages": trace.rows, "cpu": cpu}))


class Run:
    """A fit in a process of its own, and its peak of anonymous memory."""

    def __init__(self, table: Path, name: str) -> None:
        self.labels = table.with_name(f"{table.stem}-{name}.labels.parquet")
        self.checkpoint = table.with_name(f"{table.stem}-{name}.ckpt")
        self.log = table.with_name(f"{table.stem}-{name}.json")
        self.stage = self.log.with_suffix(".stage")
        self.peak = self.base = 0.0
        self._table = table

    def clear(self) -> None:
        for path in (self.labels, self.checkpoint, self.log, self.stage):
            path.unlink(missing_ok=True)

    def run(self, max_memory: str, kill_in: str = "", delay: float = 0.0) -> float:
        """Return the seconds until the fit has ended, or was killed.

        That is in a stage with `kill_in` in its name, after a delay: a share of the
        seconds until then, if that is not too long for the stage.
        """
        command = [
            *(sys.executable, "-m", "benchmarks.rows100m", "--log", str(self.log)),
            *("fit", str(self._table), "-k", str(_CLUSTERS), "-v"),
            *("--max-memory", max_memory, "--seed", "0", "--id", "id"),
            *("--checkpoint", str(self.checkpoint), "--labels", str(self.labels)),
        ]
        self.stage.unlink(missing_ok=True)
        start = time.perf_counter()
        process = subprocess.Popen(command)
        watch = threading.Thread(target=self._watch, args=(process,))
        watch.start()
        while process.poll() is None:
            if kill_in and self.stage.exists() and kill_in in self.stage.read_text():
                wait = delay * (time.perf_counter() - start)
                time.sleep(min(wait, _KILLED_IN[kill_in]))
                process.kill()
            time.sleep(_INTERVAL)
        watch.join()
        wanted = -signal.SIGKILL if kill_in else 0
        if process.returncode != wanted:
            raise SystemExit(f"the fit has ended with code {process.returncode}")
        return time.perf_counter() - start

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        start, own = time.perf_counter(), 0.0
        while process.poll() is None:
            try:
                text = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
                found = [line for line in text.splitlines() if "RssAnon" in line]
                size = int(found[0].split()[1]) * 1024.0 if found else 0.0
            except OSError:
                size = 0.0
            own = max(own, size)
            self.peak = max(self.peak, own)
            if time.perf_counter() - start < 1.0:  # imports
                self.base = own
            time.sleep(_INTERVAL)


# --- checks ---------------------------------------------------------------------------


def read_labels(path: Path) -> Iterator[tuple[Array, Array]]:
    """Yield ids and labels, a row group of the table at a time."""
    ids, labels = [], []
    for batch in pq.ParquetFile(path).iter_batches(_HEIGHT):
        ids.append(batch.column("id").to_numpy())
        labels.append(batch.column("label").to_numpy())
        if sum(map(len, ids)) >= _HEIGHT:
            every, own = np.concatenate(ids), np.concatenate(labels)
            yield every[:_HEIGHT], own[:_HEIGHT]
            ids, labels = [every[_HEIGHT:]], [own[_HEIGHT:]]
    if sum(map(len, ids)):
        yield np.concatenate(ids), np.concatenate(labels)


def compare(one: Path, other: Path) -> int:
    """Return how many rows differ in id or label."""
    pairs = zip(read_labels(one), read_labels(other), strict=True)
    return sum(int(np.count_nonzero((a[0] != b[0]) | (a[1] != b[1]))) for a, b in pairs)


def check_groups(path: Path, n_rows: int) -> tuple[bool, float, list[float]]:
    """Return whether ids are right, the ARI, and how much of each group is together."""
    table, are_right, n_found = np.zeros((_CLUSTERS, _CLUSTERS)), True, 0
    for number, (ids, labels) in enumerate(read_labels(path)):
        own = planted(number, len(ids))
        are_right &= np.array_equal(ids, make_ids(number, len(ids)))
        flat = own * _CLUSTERS + labels
        table += np.bincount(flat, minlength=_CLUSTERS**2).reshape(table.shape)
        n_found += len(ids)
    pairs = [
        (np.asarray(c) * (np.asarray(c) - 1) / 2).sum()
        for c in (table, table.sum(axis=0), table.sum(axis=1))
    ]
    expected = pairs[1] * pairs[2] / (n_rows * (n_rows - 1) / 2)
    ari = (pairs[0] - expected) / ((pairs[1] + pairs[2]) / 2 - expected)
    shared = table.max(axis=1) / np.maximum(
        table.sum(axis=1), table.sum(axis=0)[table.argmax(axis=1)]
    )
    return are_right and n_found == n_rows, float(ari), shared.tolist()


def show_stages(log: Path) -> None:
    found = json.loads(log.read_text())
    print(f"{'stage':<40}{'wall':>8}{'cpu':>8}{'decode':>8}{'cores':>7}  row groups")
    for row in found["stages"]:
        if row["wall"] < 0.5 and not row["groups"]:
            continue
        times = (
            f"{row['least']}"
            if row["least"] == row["most"]
            else (f"{row['least']} to {row['most']}")
        )
        print(
            f"{row['stage']:<40.39}{row['wall']:>8.1f}{row['cpu']:>8.1f}"
            f"{row['decoding']:>8.1f}{row['cpu'] / max(row['wall'], 1e-9):>7.2f}  "
            f"{row['groups']} decoded {times} times"
        )
    print(f"CPU seconds of the whole process: {found['cpu']:.0f}", flush=True)


def show_run(run: Run, what: str, n_rows: int, seconds: float, memory: str) -> None:
    print(
        f"{what}: {seconds:.0f} s, {n_rows / seconds:,.0f} rows/s, peak RssAnon "
        f"{run.peak / 1e6:.0f} MB ({(run.peak - run.base) / 1e6:.0f} MB above "
        f"that after one second, of {memory})"
    )
    show_stages(run.log)


def measure(folder: Path, n_rows: int, max_memory: str, seed: int) -> None:
    path = folder / f"rows-{n_rows}.parquet"
    if not path.exists():
        start = time.perf_counter()
        write_table(path, n_rows)
        print(f"table written in {time.perf_counter() - start:.0f} s")
    size = path.stat().st_size
    print(
        f"# {n_rows:,} x {_FEATURES} float32 and ids, {size / 1e9:.2f} GB", flush=True
    )
    killed, seconds = Run(path, "killed"), 0.0
    killed.clear()
    delays = np.random.default_rng(seed).uniform(0.02, 0.2, size=len(_KILLED_IN))
    for stage, delay in zip(_KILLED_IN, delays.tolist(), strict=True):
        spent = killed.run(max_memory, stage, delay)
        seconds += spent
        print(
            f"killed after {spent:.0f} s, in {killed.stage.read_text()!r}; there is a "
            f"checkpoint: {killed.checkpoint.exists()}",
            flush=True,
        )
    seconds += killed.run(max_memory)
    show_run(killed, "all three, stages of the last", n_rows, seconds, max_memory)
    are_right, ari, shared = check_groups(killed.labels, n_rows)
    print(f"ids of all rows in order beside the labels: {are_right}")
    print(
        f"planted groups: ARI {ari:.5f}, least overlap with a cluster "
        f"{min(shared):.4f}",
        flush=True,
    )
    whole = Run(path, "whole")
    whole.clear()
    seconds = whole.run(max_memory)
    show_run(whole, "undisturbed", n_rows, seconds, max_memory)
    n_differ = compare(whole.labels, killed.labels)
    print(f"rows whose id or label differs from those after two kills: {n_differ:,}")


def main() -> None:
    if sys.argv[1:2] == ["--log"]:
        run_traced(sys.argv[3:], Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="Folder; a temporary one by default.")
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--max-memory", default="2GB")
    parser.add_argument("--seed", type=int, default=0, help="Of the moments of kills.")
    options = parser.parse_args()
    print(banner(1), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = options.data or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        needed = options.rows * 150
        stat = os.statvfs(folder)
        free = stat.f_bavail * stat.f_frsize
        if free < needed and not (folder / f"rows-{options.rows}.parquet").exists():
            raise SystemExit(
                f"--data {folder} has {free / 1e9:.0f} GB free, and {needed / 1e9:.0f} "
                "GB are needed."
            )
        measure(folder, options.rows, options.max_memory, options.seed)


if __name__ == "__main__":
    main()
