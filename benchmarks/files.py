"""Passes over files: what each format costs beside the array and the .npy file.

A pass is one of a fit: all rows are assigned to their centres and added up, from opened
file to labels and sums, with as many threads as there are cores; kernel values are
computed anew.  "predict" is the assignment alone, with the fewest landmarks, and "read"
neither.  Formats take turns, and a line has the least time of a few turns, because
others may be at work here.  Rows are generated float32 clusters, written to a temporary
directory which is removed at the end.  The target is that a pass over Parquet takes at
most 1.5 times as long as one over .npy.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, feather
from pyarrow import parquet as pq

from benchmarks.data import Array
from benchmarks.measure import PeakMemory
from benchmarks.table import at_most, banner
from sketchmeans import NystromKMeans, open_rows
from sketchmeans.data.rows import as_rows, block_slices
from sketchmeans.data.source_rows import SourceRows
from sketchmeans.data.sources import Source
from sketchmeans.engine.blocks import local_engine
from sketchmeans.engine.passes import FullPass
from sketchmeans.numerics.parallel import Workers

_FEATURES, _CLUSTERS = 50, 10
#: Few, some, and √n of a million rows.
_LANDMARKS = (100, 400, 1_000)
_TARGET = at_most(1.5)
#: Bytes on disk for a byte of rows: all formats together, text with the most.
_DISK_SHARE = 12


def clusters(n_rows: int) -> Array:
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=2.0, size=(_CLUSTERS, _FEATURES)).astype(np.float32)
    X = rng.standard_normal((n_rows, _FEATURES), dtype=np.float32)
    X += centres[rng.integers(_CLUSTERS, size=n_rows)]
    return X


def written(X: Array, folder: Path, with_text: bool) -> dict[str, Path]:
    """Return the files of the formats, by name."""
    table = pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])})
    files = {
        ".npy": folder / "rows.npy",
        ".parquet": folder / "rows.parquet",
        ".parquet, plain": folder / "plain.parquet",
        ".feather": folder / "rows.feather",
        ".feather, lz4": folder / "packed.feather",
    }
    np.save(files[".npy"], X)
    pq.write_table(table, files[".parquet"])
    pq.write_table(
        table, files[".parquet, plain"], use_dictionary=False, compression="none"
    )
    feather.write_feather(table, str(files[".feather"]), compression="uncompressed")
    feather.write_feather(table, str(files[".feather, lz4"]), compression="lz4")
    if with_text:
        files[".csv"] = folder / "rows.csv"
        csv.write_csv(table, files[".csv"])
    return files


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Passes:
    """The passes that are timed, with centres from a fit on a few rows."""

    def __init__(self, X: Array) -> None:
        self._models = [
            NystromKMeans(_CLUSTERS, n_landmarks=m, n_init=1, random_state=0).fit(
                X[:20_000]
            )
            for m in _LANDMARKS
        ]

    def timed(self, rows: Array | Source) -> tuple[list[float], float]:
        """Return the times of reading, predicting and passes, and the peak memory."""
        with Workers() as workers, PeakMemory() as memory:
            is_array = isinstance(rows, np.ndarray)
            table = (as_rows if is_array else SourceRows)(rows, workers)

            def read(span: tuple[int, int]) -> None:
                table.block(*span)

            edges = block_slices(len(table), 2048)
            found = [seconds(lambda: list(workers.map(read, edges)))]
            for number, model in enumerate(self._models):
                engine = local_engine(table, model._space(table))
                centers = model._centers(engine.space)
                if number == 0:
                    found.append(seconds(partial(engine.predict, centers)))
                full = partial(engine.backend.run, FullPass(centers))
                found.append(seconds(full))
        return found, memory.peak_bytes


def report(X: Array, files: dict[str, Path], turns: int) -> bool:
    """Print the table, and return whether the target is met."""
    passes = Passes(X)
    sources: dict[str, Array | Source] = {"array": X}
    opening = {}
    for name, path in files.items():
        start = time.perf_counter()
        sources[name] = open_rows(
            path, **({"dtype": "float32"} if name == ".csv" else {})
        )
        opening[name] = time.perf_counter() - start
    least = {name: np.full(2 + len(_LANDMARKS), np.inf) for name in sources}
    peaks = dict.fromkeys(sources, 0.0)
    for _ in range(turns):
        for name, rows in sources.items():
            found, peak = passes.timed(rows)
            least[name] = np.minimum(least[name], found)
            peaks[name] = max(peaks[name], peak)
    titles = ["predict s", *(f"m={m} s" for m in _LANDMARKS)]
    print(
        f"{'format':<17}{'disk MB':>9}{'open s':>8}{'read s':>8}"
        + "".join(f"{title:>11}{'/ .npy':>8}" for title in titles)
        + f"{'peak MB':>9}"
    )
    for name, times in least.items():
        disk = "" if name == "array" else f"{files[name].stat().st_size / 1e6:,.0f}"
        shown = "".join(
            f"{t:>11.2f}{t / base:>8.2f}"
            for t, base in zip(times[1:], least[".npy"][1:], strict=True)
        )
        print(
            f"{name:<17}{disk:>9}{opening.get(name, 0.0):>8.2f}{times[0]:>8.2f}"
            f"{shown}{peaks[name] / 1e6:>9,.0f}"
        )
    ratios = least[".parquet"] / least[".npy"]
    worst = float(ratios[2:].max())
    met = _TARGET.met(worst)
    print(
        f"a pass over Parquet / .npy: at most {worst:.2f}, target {_TARGET}: "
        f"{'met' if met else 'not met'} (predict with {_LANDMARKS[0]} landmarks "
        f"{ratios[1]:.2f})"
    )
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--text", action="store_true", help="a .csv file, too")
    parser.add_argument("--directory", help="where the temporary directory is made")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as name:
        needed = given.rows * _FEATURES * 4 * _DISK_SHARE
        free = shutil.disk_usage(name).free
        if needed > free:
            print(
                f"{name} has {free / 1e9:.1f} GB free; {needed / 1e9:.1f} are needed."
            )
            return 2
        print(f"{banner(1)}\n# {given.rows:,} x {_FEATURES} float32")
        X = clusters(given.rows)
        met = report(X, written(X, Path(name), given.text), given.turns)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
