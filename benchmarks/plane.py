"""The whole plane: from 150 to 581,012 rows, from 3 to 1,000 clusters, and all peers.

Every fit is the first in a process of its own, after all imports; methods take turns,
and times and costs are medians over the seeds.  A kernel cell gives all methods the
same bandwidth and as many uniform landmarks; peers cluster scikit-learn's Nyström
features.  Everything is float32 and at its defaults, but for what a peer's documents
advise: faiss gets 25 iterations over all rows.  Peers that are not installed are left
out, and named.

The cost is that of the labels: the mean squared distance to the mean of the cluster in
the original space, or in the span of the landmarks, worked out in float64 by one judge.
`time` is the time of the fastest peer that is as good as we are (within 0.1%) over
ours, or of the best peer if none is; `cost` is ours over the lowest of all.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks import data, history
from benchmarks.data import Array
from benchmarks.measure import measure
from benchmarks.table import banner

#: A peer whose cost is no more than so many times ours is as good.
_AS_GOOD = 1.001
#: Seconds after which a fit is given up.
_LIMIT = 600
_BLOCK = 8192


@dataclass(frozen=True)
class Cell:
    """A table, a number of clusters, and the landmarks of a kernel fit (0: plain)."""

    table: str
    k: int
    landmarks: int = 0

    @property
    def name(self) -> str:
        kind = f"rbf m={self.landmarks}" if self.landmarks else "plain"
        return f"{self.table} {kind} k={self.k}"


def cells() -> list[Cell]:
    """Return every cell, the small ones first."""
    sizes = {
        "iris": ((3, 30), 0),
        "digits": ((10, 30, 100, 300), 200),
        "usps": ((10, 30, 100, 300, 1000), 300),
        "mnist": ((10, 30, 100, 300, 1000), 400),
        "covtype": ((7, 30, 100, 300, 1000), 400),
    }
    found = []
    for table, (numbers, m) in sizes.items():
        found += [Cell(table, k) for k in numbers]
        found += [Cell(table, k, max(m, 800 * (k >= 1000))) for k in numbers if m]
    return [*found, Cell("blobs", 10), Cell("blobs", 100), Cell("text", 20)]


def load(name: str, directory: Path | None) -> Array:
    """Return the rows of a table."""
    if name in ("iris", "digits"):
        from sklearn import datasets

        X = getattr(datasets, f"load_{name}")(return_X_y=True)[0].astype(np.float32)
        return np.ascontiguousarray(X)
    if name == "blobs":
        return data.blobs(2_000_000).X
    if name == "text":
        return _text()
    if name == "usps":
        return data.b14("usps", directory).X
    return data.standardised(name, directory)


def _text() -> Array:
    """Return a CSR table like word counts: 100,000 x 20,000, 0.2% of it not zero."""
    from scipy import sparse

    rng, n, d, each = np.random.default_rng(7), 100_000, 20_000, 40
    topics = rng.integers(20, size=n)
    words = rng.zipf(1.3, size=(n, each)) % d
    own = topics[:, None] * (d // 20) + rng.zipf(1.5, size=(n, each)) % (d // 20)
    columns = np.where(rng.random((n, each)) < 0.5, words, own)
    rows = np.repeat(np.arange(n), each)
    values = np.ones(n * each, dtype=np.float32)
    X = sparse.csr_array((values, (rows, columns.ravel())), shape=(n, d))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    return X


# --- methods: from rows (or features) and a seed to labels ----------------------------


def _sklearn(X: Array, k: int, seed: int) -> Array:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=1, random_state=seed).fit(X).labels_


def _minibatch(X: Array, k: int, seed: int) -> Array:
    from sklearn.cluster import MiniBatchKMeans

    return MiniBatchKMeans(k, n_init=3, random_state=seed).fit(X).labels_


def _bisecting(X: Array, k: int, seed: int) -> Array:
    from sklearn.cluster import BisectingKMeans

    return BisectingKMeans(k, random_state=seed).fit(X).labels_


def _intelex(X: Array, k: int, seed: int) -> Array:
    from sklearnex.cluster import KMeans

    return KMeans(k, n_init=1, random_state=seed).fit(X).labels_


def _faiss(X: Array, k: int, seed: int) -> Array:
    import faiss

    faiss.omp_set_num_threads(os.cpu_count())
    most = len(X) // k + 1
    model = faiss.Kmeans(
        X.shape[1], k, niter=25, seed=seed, max_points_per_centroid=most
    )
    model.train(X)
    return model.index.search(X, 1)[1].ravel()


def _superkmeans(X: Array, k: int, seed: int) -> Array:
    from superkmeans import SuperKMeans

    model = SuperKMeans(k, X.shape[1])
    return np.asarray(model.assign(X, model.train(X)))


PEERS: dict[str, tuple[str, Callable[[Array, int, int], Array]]] = {
    "KMeans": ("sklearn", _sklearn),
    "MiniBatch": ("sklearn", _minibatch),
    "Bisecting": ("sklearn", _bisecting),
    "intelex": ("sklearnex", _intelex),
    "faiss": ("faiss", _faiss),
    "superkmeans": ("superkmeans", _superkmeans),
}


def _import(method: str) -> None:
    """Load what a method needs: imports are no part of a fit, ours or a peer's."""
    name = "sketchmeans" if method == "sketchmeans" else PEERS[method][0]
    modules = [f"{name}.cluster" if name.startswith("sk") else name]
    for module in [*modules, "sklearn.kernel_approximation"]:
        import_module(module)


def installed_peers() -> list[str]:
    """Return the peers that can be imported."""
    return [name for name, (module, _) in PEERS.items() if find_spec(module)]


def bandwidth(X: Array) -> float:
    """Return the gamma of a table: 1 over four times the variance ("mean")."""
    return float(1.0 / (4.0 * X.var(axis=0, dtype=np.float64).sum()))


def fit(cell: Cell, method: str, X: Array, seed: int) -> Array:
    """Return the labels of one method."""
    if method == "sketchmeans":
        from sketchmeans import NystromKMeans, SketchedKMeans

        if not cell.landmarks:
            return SketchedKMeans(cell.k, random_state=seed).fit(X).labels_
        gamma, m = bandwidth(X), cell.landmarks
        model = NystromKMeans(cell.k, gamma=gamma, n_landmarks=m, random_state=seed)
        return model.fit(X).labels_
    if cell.landmarks:
        from sklearn.kernel_approximation import Nystroem

        features = Nystroem(
            gamma=bandwidth(X), n_components=cell.landmarks, random_state=seed
        )
        X = np.ascontiguousarray(features.fit_transform(X), dtype=np.float32)
    return PEERS[method][1](X, cell.k, seed)


def judge(cell: Cell, X: Array, labels: Array) -> float:
    """Return the cost of a partition, the same way for all methods.

    Kernel costs are those in the span of landmarks of the judge's own.
    """
    if cell.landmarks:
        return _kernel_cost(X, labels, cell.k, bandwidth(X))
    counts = np.bincount(labels, minlength=cell.k)
    if not isinstance(X, np.ndarray):
        return _sparse_cost(X, labels, counts)
    means = np.zeros((cell.k, X.shape[1]))
    for start in range(0, len(X), _BLOCK):
        part = slice(start, start + _BLOCK)
        order = np.argsort(labels[part], kind="stable")
        own, first = np.unique(labels[part][order], return_index=True)
        rows = X[part][order].astype(np.float64)
        means[own] += np.add.reduceat(rows, first, axis=0)
    means /= np.maximum(counts, 1)[:, None]
    total = 0.0
    for start in range(0, len(X), _BLOCK):
        part = slice(start, start + _BLOCK)
        total += float(np.square(X[part] - means[labels[part]]).sum())
    return total / len(X)


def _sparse_cost(X: Array, labels: Array, counts: Array) -> float:
    from scipy import sparse

    n = X.shape[0]
    member = sparse.csr_array((np.ones(n), (labels, np.arange(n))))
    sums = (member @ X.astype(np.float64)).toarray()
    inside = np.square(sums).sum(axis=1) / np.maximum(counts[: len(sums)], 1)
    return float((X.multiply(X).sum() - inside.sum()) / n)


def _kernel_cost(X: Array, labels: Array, k: int, gamma: float) -> float:
    """Return the cost in the span of a few hundred uniform landmarks."""
    from sklearn.metrics.pairwise import rbf_kernel

    rng = np.random.default_rng(12345)
    Z = X[rng.choice(len(X), min(600, len(X)), replace=False)].astype(np.float64)
    values, vectors = np.linalg.eigh(rbf_kernel(Z, gamma=gamma))
    keep = values > 1e-10 * values[-1]
    root = vectors[:, keep] / np.sqrt(values[keep])
    sums, counts = np.zeros((k, root.shape[1])), np.bincount(labels, minlength=k)
    for start in range(0, len(X), _BLOCK):
        part = slice(start, start + _BLOCK)
        F = rbf_kernel(X[part].astype(np.float64), Z, gamma=gamma) @ root
        order = np.argsort(labels[part], kind="stable")
        own, first = np.unique(labels[part][order], return_index=True)
        sums[own] += np.add.reduceat(F[order], first, axis=0)
    inside = np.square(sums).sum(axis=1) / np.maximum(counts, 1)
    return float(1.0 - inside.sum() / len(X))


# --- one fit in a process of its own, and all of them ---------------------------------


def run_one(cell: Cell, method: str, seed: int, directory: Path | None) -> None:
    """Fit, judge and print seconds, cost and peak memory as JSON."""
    X = load(cell.table, directory)
    _import(method)
    run = measure(lambda: fit(cell, method, X, seed))
    cost = judge(cell, X, np.asarray(run.value).astype(np.intp))
    found = {"seconds": run.seconds, "cost": cost, "peak_kb": run.peak_bytes / 1024}
    print(json.dumps(found))


def spawn(
    cell: Cell, method: str, seed: int, directory: Path | None
) -> dict[str, float] | None:
    """Return what a process prints; None where the method fails or takes too long."""
    command = [sys.executable, "-m", "benchmarks.plane", "--one", method, str(seed)]
    command += ["--cell", json.dumps(asdict(cell))]
    if directory is not None:
        command += ["--data", str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


@dataclass(frozen=True)
class Line:
    """A cell, and the medians of all methods that did it: seconds, cost, peak in kB."""

    cell: Cell
    ours: tuple[float, float, float]
    peers: dict[str, tuple[float, float, float]]

    @property
    def rival(self) -> str:
        """The fastest peer that is as good as we are; else the best one."""
        good = {n: p for n, p in self.peers.items() if p[1] <= _AS_GOOD * self.ours[1]}
        if good:
            return min(good, key=lambda name: good[name][0])
        return min(self.peers, key=lambda name: self.peers[name][1])

    @property
    def time_ratio(self) -> float:
        return self.peers[self.rival][0] / self.ours[0]

    @property
    def cost_ratio(self) -> float:
        return self.ours[1] / min([self.ours[1], *(p[1] for p in self.peers.values())])

    def __str__(self) -> str:
        seconds, cost, peak = self.ours
        found = (
            f"{self.cell.name:28}{seconds:8.2f} s {cost:12.6g} {peak / 1024:7.0f} MB"
        )
        if not self.peers:
            return found
        other = self.peers[self.rival]
        found += f"  {self.rival:12}{other[0]:8.2f} s {other[1]:12.6g}"
        return f"{found}  time {self.time_ratio:6.2f}  cost {self.cost_ratio:.4f}"

    def stored(self) -> dict[str, object]:
        """Return what `benchmarks.history` keeps of a line."""
        return {
            "row": self.cell.name,
            "ours_seconds": self.ours[0],
            "ours_cpu": "",
            "peer": self.rival,
            "peer_seconds": self.peers[self.rival][0],
            "peer_cpu": "",
            "time_ratio": self.time_ratio,
            "cost_ratio": self.cost_ratio,
            "wanted": "",
            "met": "",
        }


def run_cell(
    cell: Cell, seeds: list[int], peers: list[str], directory: Path | None
) -> Line:
    """Return a line; methods take turns to go first."""
    methods = ["sketchmeans", *peers]
    if cell.table == "text":  # CSR
        methods = [m for m in methods if m not in ("faiss", "superkmeans", "intelex")]
    runs: dict[str, list[dict[str, float]]] = {method: [] for method in methods}
    for i, seed in enumerate(seeds):
        for method in methods[i % len(methods) :] + methods[: i % len(methods)]:
            found = spawn(cell, method, seed, directory)
            if found is not None:
                runs[method].append(found)
    medians = {
        method: tuple(
            statistics.median(run[name] for run in found)
            for name in ("seconds", "cost", "peak_kb")
        )
        for method, found in runs.items()
        if len(found) == len(seeds)
    }
    ours = medians.pop("sketchmeans")
    return Line(cell, ours, medians)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.plane", description=__doc__
    )
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="words of cell names")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS))
    parser.add_argument("--csv", type=Path, help="write all medians to this file")
    parser.add_argument(
        "--store", action="store_true", help="add the figures to benchmarks/history.csv"
    )
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        cell = Cell(**json.loads(asked.cell))
        run_one(cell, asked.one[0], int(asked.one[1]), asked.data)
        return
    peers = asked.peers or installed_peers()
    missing = [name for name in PEERS if name not in installed_peers()]
    seeds = list(range(asked.first_seed, asked.first_seed + asked.seeds))
    print(banner(len(seeds)), f"from {seeds[0]} on; not installed: {missing or None}")
    lines = []
    for cell in cells():
        if asked.only and not all(word in cell.name.split() for word in asked.only):
            continue
        lines.append(run_cell(cell, seeds, peers, asked.data))
        print(lines[-1], flush=True)
    if asked.store:
        command = f"python -m benchmarks.plane --first-seed {seeds[0]}"
        figures = [
            history.new_figure("plane", command, **line.stored())
            for line in lines
            if line.peers
        ]
        print(*history.store(figures), sep="\n")
    if asked.csv:
        rows = ["table,k,landmarks,method,seconds,cost,peak_kb"]
        for line in lines:
            for method, found in {"sketchmeans": line.ours, **line.peers}.items():
                numbers = ",".join(f"{value:.6g}" for value in found)
                own = f"{line.cell.table},{line.cell.k},{line.cell.landmarks}"
                rows.append(f"{own},{method},{numbers}")
        asked.csv.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
