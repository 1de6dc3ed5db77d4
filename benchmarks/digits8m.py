"""Millions of deformed digits from disk: time, memory, passes, cost and NMI.

A stand-in for the 8.1 million digits of CR18 (infinite MNIST is not to be had): MNIST
digits under random shifts, small rotations and smooth elastic fields, as uint8 in a
.npy file.  One fit with 400 landmarks from the file, and in the same run a plain pass
over it as the floor: every block turned to float32 and multiplied by the landmarks.
The file is kept, and used again where it has as many rows.
"""

from __future__ import annotations

import argparse
import shutil
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score
from threadpoolctl import threadpool_limits

from benchmarks.data import VARIABLE, Array, _file
from benchmarks.measure import measure
from sketchmeans import NystromKMeans

SIDE = 28
PIXELS = SIDE * SIDE
#: Digits that share a deformation: one of many thousand, so no two look alike.
_PER_FIELD = 1_000
#: Rows of a block of the plain pass.
_BLOCK = 4_096
#: CR18's figures for the original digits.
CR18 = "CR18 on infinite MNIST: NMI 0.405, under 6 minutes on 36 cores and 128 GB"


def digits(directory: Path | None) -> tuple[Array, Array, Array]:
    """Return digits to deform, their classes, and digits that no fit sees."""
    file = _file(directory, "mnist.npz")
    if file is not None:
        with np.load(file) as data:
            X, y = data["X"], data["y"]
        return X[:60_000], y[:60_000], X[60_000:]
    print(f"# no mnist.npz in --data or {VARIABLE}: scikit-learn's digits, enlarged")
    small, y = load_digits(return_X_y=True)
    where = (np.arange(SIDE) * 8) // SIDE
    X = small.reshape(-1, 8, 8)[:, where][:, :, where] * (255.0 / 16.0)
    X = X.reshape(-1, PIXELS).astype(np.uint8)
    return X[:1500], y[:1500], X[1500:]


def deformation(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return where each pixel comes from: four pixels and their shares."""
    angle = rng.normal(scale=0.12)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    grid = np.stack(np.mgrid[:SIDE, :SIDE].astype(float)) - (SIDE - 1) / 2
    place = np.einsum("ij,jxy->ixy", turn, grid) + (SIDE - 1) / 2
    place += rng.normal(scale=1.0, size=(2, 1, 1))
    field = rng.normal(size=(2, SIDE, SIDE))
    place += 12.0 * gaussian_filter(field, (0, 4, 4), mode="constant")
    np.clip(place, 0.0, SIDE - 1.001, out=place)
    corner = place.astype(int)
    share = place - corner
    x, y = (axis.ravel() for axis in corner)
    s, t = (axis.ravel() for axis in share)
    first = x * SIDE + y
    sources = np.stack([first, first + 1, first + SIDE, first + SIDE + 1])
    shares = np.stack([(1 - s) * (1 - t), (1 - s) * t, s * (1 - t), s * t])
    return sources, shares.astype(np.float32)


def deformed(X: Array, rng: np.random.Generator) -> Array:
    """Return the digits under one random deformation."""
    sources, shares = deformation(rng)
    floats = X.astype(np.float32)
    result = np.zeros((len(X), PIXELS), np.float32)
    for source, share in zip(sources, shares, strict=True):
        result += floats[:, source] * share
    return result.round().astype(np.uint8)


def write(path: Path, X: Array, n_rows: int, seed: int) -> None:
    """Write deformed digits, and the numbers of the digits that they were."""
    size = n_rows * PIXELS
    free = shutil.disk_usage(path.parent).free
    if size > 0.9 * free:
        raise SystemExit(f"{size / 1e9:.1f} GB needed, {free / 1e9:.1f} GB free")
    rng = np.random.default_rng(seed)
    numbers = rng.integers(len(X), size=n_rows).astype(np.int32)
    seeds = rng.spawn(-(-n_rows // _PER_FIELD))
    partial = path.with_suffix(".part")
    out = np.lib.format.open_memmap(partial, "w+", np.uint8, (n_rows, PIXELS))

    def fill(part: int) -> None:
        rows = slice(part * _PER_FIELD, min((part + 1) * _PER_FIELD, n_rows))
        out[rows] = deformed(X[numbers[rows]], seeds[part])

    start = time.perf_counter()
    joblib.Parallel(joblib.cpu_count(), "threading")(
        joblib.delayed(fill)(part) for part in range(len(seeds))
    )
    out.flush()
    np.save(path.with_suffix(".numbers.npy"), numbers)
    partial.rename(path)
    print(
        f"# wrote {n_rows:,} digits in {time.perf_counter() - start:.0f} s", flush=True
    )


def plain_pass(path: Path, Z: Array) -> None:
    """Read all rows, turn them to floats and multiply them by the landmarks.

    Blocks go to as many threads as there are cores, with one BLAS thread each, so that
    the floor does nothing more slowly than it must.
    """
    rows = np.load(path, mmap_mode="r")
    columns = np.ascontiguousarray(Z.T, dtype=np.float32)
    buffers = threading.local()

    def multiply(start: int) -> None:
        if not hasattr(buffers, "floats"):
            buffers.floats = np.empty((_BLOCK, PIXELS), np.float32)
            buffers.products = np.empty((_BLOCK, len(Z)), np.float32)
        block = rows[start : start + _BLOCK]
        floats = buffers.floats[: len(block)]
        floats[...] = block
        np.dot(floats, columns, out=buffers.products[: len(block)])

    with threadpool_limits(1), ThreadPoolExecutor(joblib.cpu_count()) as threads:
        deque(threads.map(multiply, range(0, len(rows), _BLOCK)), maxlen=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.digits8m", description=__doc__
    )
    parser.add_argument("--rows", type=int, default=8_100_000)
    parser.add_argument("--landmarks", type=int, default=400)
    parser.add_argument("--max-memory", default="2GB")
    parser.add_argument("--folder", type=Path, default=Path("digits8m"))
    parser.add_argument("--data", type=Path, metavar="DIR")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    X, y, X_new = digits(options.data)
    path = options.folder / f"digits-{options.rows}.npy"
    if not path.exists():
        write(path, X, options.rows, seed=0)
    numbers = np.load(path.with_suffix(".numbers.npy"))
    model = NystromKMeans(
        10,
        n_landmarks=options.landmarks,
        max_memory=options.max_memory,
        verbose=1,
        random_state=0,
    )
    run = measure(lambda: model.fit(str(path)))
    floor = measure(lambda: plain_pass(path, np.asarray(model.landmarks_)))
    print(f"# {options.rows:,} x {PIXELS} uint8, a stand-in: deformed MNIST digits")
    print(f"# {CR18}")
    print(f"fit               {run.seconds:8.1f} s on {joblib.cpu_count()} cores")
    print(f"one plain pass    {floor.seconds:8.1f} s")
    print(f"fit / plain pass  {run.seconds / floor.seconds:8.2f}   (at most 4 wanted)")
    print(f"peak memory       {run.peak_bytes / 1e6:8.0f} MB (at most 2,000 wanted)")
    print(f"passes            {model.n_iter_:8d}")
    print(f"W, rows of fit    {model.cost_:8.5f}")
    rng = np.random.default_rng(1)
    unseen = np.concatenate(
        [deformed(X_new[rng.integers(len(X_new), size=1_000)], rng) for _ in range(100)]
    )
    print(f"W, unseen digits  {model.cost(unseen):8.5f} on {len(unseen):,}")
    nmi = normalized_mutual_info_score(y[numbers], model.labels_)
    print(f"NMI               {nmi:8.4f}")


if __name__ == "__main__":
    main()
