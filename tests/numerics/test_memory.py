"""The memory contract: planned before the work starts, and kept."""

import json
import re
import subprocess
import sys

import numpy as np
import psutil
import pytest

from sketchmeans import KernelKMeans, NystromKMeans
from sketchmeans.numerics.memory import format_bytes, memory_budget

linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="RssAnon is read from /proc"
)

# Runs in a process of its own: prints the peak of RssAnon above what it is after the
# imports, sampled from a thread while the estimator works.
METER = """
import json, sys, threading
import numpy, scipy, sklearn
import numpy as np
import sketchmeans.cluster
from sketchmeans import KernelKMeans, NystromKMeans

def anonymous():
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024

class Meter(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.done = threading.Event()
        self.peak = self.samples = 0

    def run(self):
        while not self.done.wait(0.01):
            self.peak = max(self.peak, anonymous())
            self.samples += 1

def measure(work):
    base = anonymous()
    meter = Meter()
    meter.start()
    result = work()
    meter.done.set()
    meter.join()
    print(json.dumps({
        "peak": max(meter.peak, anonymous()) - base,
        "samples": meter.samples,
        **result,
    }))
"""


def _run(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", METER + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _write_uint8_clusters(path, n_rows, n_features, k):
    """Write rows of k clusters in chunks; the table is never in memory."""
    rng = np.random.default_rng(0)
    centres = rng.integers(40, 216, (k, n_features))
    table = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.uint8, shape=(n_rows, n_features)
    )
    noise = rng.integers(-30, 31, (9_973, n_features), dtype=np.int16)
    for start in range(0, n_rows, len(noise)):
        stop = min(start + len(noise), n_rows)
        labels = rng.integers(k, size=stop - start)
        table[start:stop] = centres[labels] + noise[: stop - start]
    table.flush()


@linux
@pytest.mark.memory
@pytest.mark.process
@pytest.mark.slow
def test_mapped_rows_fit_in_200_mb(tmp_path):
    _write_uint8_clusters(tmp_path / "rows.npy", 300_000, 200, 8)
    found = _run(
        """
X = np.load(sys.argv[1], mmap_mode="r")
def work():
    model = NystromKMeans(
        8, n_landmarks=1000, max_memory="200MB", random_state=0
    ).fit(X)
    return {
        "sizes": model.cluster_sizes_.tolist(),
        "m": len(model.landmarks_),
        "stored": str(model.landmarks_.dtype),
    }
measure(work)
""",
        tmp_path / "rows.npy",
    )
    assert found["m"] == 1000
    assert sum(found["sizes"]) == 300_000
    assert min(found["sizes"]) > 0
    assert found["samples"] > 20
    # As float32 the rows alone would take 240 MB.
    assert found["peak"] < 200e6
    assert found["stored"] == "uint8"


@linux
@pytest.mark.memory
@pytest.mark.process
def test_automatic_landmarks_keep_to_the_budget(tmp_path):
    _write_uint8_clusters(tmp_path / "rows.npy", 120_000, 200, 8)
    found = _run(
        """
X = np.load(sys.argv[1], mmap_mode="r")
def work():
    model = NystromKMeans(8, max_memory="120MB", random_state=0).fit(X)
    return {
        "n": int(model.cluster_sizes_.sum()),
        "m": len(model.landmarks_),
        "tried": model.landmark_path_.n_landmarks.tolist(),
    }
measure(work)
""",
        tmp_path / "rows.npy",
    )
    assert found["n"] == 120_000
    assert len(found["tried"]) > 2
    assert found["m"] in found["tried"]
    assert found["samples"] > 20
    # As float32 the rows alone would take 96 MB beside what the fit needs.
    assert 20e6 < found["peak"] < 120e6


@linux
@pytest.mark.memory
@pytest.mark.process
def test_prediction_from_a_mapped_table_never_copies_it(tmp_path):
    # 40 MB as stored, 160 MB as float32.
    _write_uint8_clusters(tmp_path / "rows.npy", 200_000, 200, 4)
    found = _run(
        """
X = np.load(sys.argv[1], mmap_mode="r")
model = NystromKMeans(4, n_landmarks=30, random_state=0).fit(X[:2000])
def work():
    return {"labels": np.bincount(model.predict(X)).tolist(), "cost": model.cost(X)}
measure(work)
""",
        tmp_path / "rows.npy",
    )
    assert sum(found["labels"]) == 200_000
    assert found["peak"] < 60e6


@linux
@pytest.mark.memory
@pytest.mark.process
def test_exact_fit_holds_one_kernel_matrix():
    found = _run(
        """
X = np.random.default_rng(0).normal(size=(6500, 10)).astype("float32")
def work():
    return {"n": len(KernelKMeans(4, n_init=2, random_state=0).fit(X).labels_)}
measure(work)
"""
    )
    matrix = 6500**2 * 4
    assert found["n"] == 6500
    assert found["peak"] > 0.9 * matrix  # the meter sees the matrix
    # Tiles, threads and BLAS take 20 to 40 MB, by processor; half a matrix 81 MB.
    assert found["peak"] < matrix + 60e6


@linux
@pytest.mark.memory
@pytest.mark.process
@pytest.mark.parametrize("weighted", [True])
def test_the_graph_of_neighbours_is_no_matrix(weighted):
    found = _run(
        """
from sketchmeans import LaplacianScore
n = 8_000
X = np.random.default_rng(0).normal(size=(n, 4)).astype("float32")
weights = np.arange(n) % 3 + 0.5 if sys.argv[1] == "True" else None
LaplacianScore(2).fit(X[:500])  # what is loaded on first use is no part of the need
def work():
    return {"scores": LaplacianScore(2).fit(X, sample_weight=weights).scores_.tolist()}
measure(work)
""",
        weighted,
    )
    assert len(found["scores"]) == 4
    assert found["samples"] > 5
    # All pairs take 64 MB even in single bytes.
    assert found["peak"] < 40e6


@linux
@pytest.mark.memory
@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "model"),
    [
        ("normal(size=(4000, 10))", "KernelKMeans(4, n_init=2)"),
        ("normal(size=(20_000, 50))", "NystromKMeans(8, n_landmarks=1000)"),
        (
            "normal(size=(20_000, 50)).astype('f4')",
            "NystromKMeans(8, n_landmarks=1000, algorithm='full', n_init=2)",
        ),
        (
            "integers(255, size=(30_000, 50), dtype='u1')",
            "NystromKMeans(8, kernel='laplacian', n_landmarks=200)",
        ),
        (
            "integers(255, size=(30_000, 50), dtype='u1')",
            "NystromKMeans(8, gamma='median', n_landmarks=200)",
        ),
        (
            "normal(size=(20_000, 20)).astype('f4')",
            "NystromKMeans(8, kernel='arc-cosine', n_landmarks=300)",
        ),
    ],
    ids=["exact", "default", "full", "laplacian", "median", "arc-cosine"],
)
def test_a_fit_stays_in_the_smallest_budget_that_it_accepts(rows, model):
    found = _run(
        f"""
import re
X = np.random.default_rng(0).{rows}
model = {model}.set_params(n_jobs=2, tol=0.05, random_state=0, max_memory=1)
try:
    model.fit(X)
except MemoryError as error:
    size, unit = re.search(r"needs? ([0-9.]+) ([kMG]B)", str(error)).groups()
# The message has three digits.
budget = int(1.01 * float(size) * {{"kB": 1e3, "MB": 1e6, "GB": 1e9}}[unit])
model.set_params(max_memory=budget)
def work():
    return {{"n": len(model.fit(X).labels_) - len(X), "budget": budget}}
measure(work)
"""
    )
    assert found["n"] == 0
    assert found["peak"] <= found["budget"]


@linux
@pytest.mark.memory
@pytest.mark.process
@pytest.mark.parametrize("estimator", ["KernelKMeans", "NystromKMeans"])
def test_a_given_matrix_of_integers_is_planned_for(estimator):
    # As floats it would take 100 MB beyond the input: an error, or no such copy.
    found = _run(
        """
K = np.eye(5000, dtype=np.uint8)
K[:2500, :2500] += 1
K[2500:, 2500:] += 1
model = globals()[sys.argv[1]](2, kernel="precomputed", init=np.array([0, 4999]))
if sys.argv[1] == "NystromKMeans":
    model.set_params(landmarks=[0, 1, 4998, 4999])
def work():
    try:
        return {"n": len(model.set_params(max_memory="60MB", n_jobs=1).fit(K).labels_)}
    except MemoryError as error:
        return {"error": str(error)}
measure(work)
""",
        estimator,
    )
    assert found["peak"] <= 60e6
    assert found.get("n") == 5000 or "max_memory allows 60 MB" in found["error"]


@linux
@pytest.mark.memory
@pytest.mark.process
def test_the_meter_sees_a_conversion_of_the_whole():
    # So that the tests above can fail.
    found = _run(
        """
import time
X = np.ones((100_000, 200), dtype=np.uint8)
def work():
    whole = X.astype(np.float32)
    time.sleep(0.3)  # as long as work on it would take, for a meter that samples
    return {"sum": float(whole.sum())}
measure(work)
"""
    )
    assert found["peak"] > 70e6


# --- errors before the work starts ----------------------------------------------


def test_exact_fit_names_the_size_and_the_way_out():
    X = np.zeros((20_000, 2))
    with pytest.raises(MemoryError) as caught:
        KernelKMeans(3, max_memory="1GB", n_jobs=1).fit(X)
    text = str(caught.value)
    assert "n=20,000 rows needs 3.2" in text  # 20,000² · 8 bytes is 3.2 GB
    assert "20,000 x 20,000 kernel matrix" in text
    assert "max_memory allows 1 GB" in text
    assert "NystromKMeans" in text


def test_exact_fit_in_float32_needs_half():
    with pytest.raises(MemoryError, match=r"needs 1\.6\d? GB"):
        KernelKMeans(3, max_memory="1GB").fit(np.zeros((20_000, 2), np.float32))


def test_nystrom_names_the_size_and_what_to_change():
    X = np.random.default_rng(0).normal(size=(3000, 4))
    with pytest.raises(MemoryError) as caught:
        NystromKMeans(3, n_landmarks=1000, max_memory="5MB", n_jobs=1).fit(X)
    text = str(caught.value)
    assert re.search(
        r"1,000 landmarks on 3,000 rows of 4 features need [\d.]+ MB", text
    )
    assert "max_memory allows 5 MB" in text
    assert "Lower n_landmarks or raise max_memory" in text


def test_what_an_error_says_would_fit_does_fit():
    X = np.random.default_rng(0).normal(size=(3000, 4))
    model = NystromKMeans(3, n_landmarks=200, max_memory="1MB", n_jobs=1)
    with pytest.raises(MemoryError) as caught:
        model.fit(X)
    needed = re.search(r"need ([\d.]+) MB", str(caught.value))[1]
    model.set_params(max_memory=f"{float(needed) * 1.01}MB", random_state=0).fit(X)
    assert len(model.labels_) == 3000


def test_the_check_comes_before_the_m_by_m_algebra(monkeypatch):
    # A landmark matrix that does not fit must not be formed first.
    def formed(*args, **kwargs):
        raise AssertionError("the landmark matrix was formed before the check")

    monkeypatch.setattr("sketchmeans.engine.space.pseudo_inverse", formed)
    X = np.random.default_rng(0).normal(size=(3000, 4))
    with pytest.raises(MemoryError, match="1,000 landmarks"):
        NystromKMeans(3, n_landmarks=1000, max_memory="5MB").fit(X)


@pytest.mark.slow
def test_many_cores_do_not_break_the_contract(monkeypatch):
    # Every thread has buffers of its own: 64 of them would need more than 200 MB, but
    # n_jobs=None asks for no number of threads.
    monkeypatch.setattr("joblib.cpu_count", lambda *args, **kwargs: 64)
    X = np.random.default_rng(0).integers(0, 255, (4000, 200), dtype=np.uint8)
    model = NystromKMeans(8, n_landmarks=2000, max_memory="200MB", random_state=0)
    assert len(model.fit(X).labels_) == 4000


def test_a_failed_plan_leaves_nothing_fitted():
    model = NystromKMeans(3, max_memory=1000)
    with pytest.raises(MemoryError, match="max_memory allows 1 kB"):
        model.fit(np.random.default_rng(0).normal(size=(100, 2)))
    assert not hasattr(model, "labels_")


# --- sizes ----------------------------------------------------------------------


def test_budget_reads_sizes():
    sizes = {1: 1, 2.5e9: 2_500_000_000, np.int64(7): 7, np.float32(8.0): 8}
    sizes |= {"17": 17, "17B": 17, "3kB": 3_000, "3KB": 3_000, " 1.5 GB ": 1.5e9}
    sizes |= {"1e3MB": 10**9, "2gb": 2 * 10**9, "0.5TB": 5 * 10**11, "4KiB": 4096}
    sizes |= {"500 MiB": 500 * 2**20, "2GiB": 2**31, "1TiB": 2**40}
    for given, expected in sizes.items():
        assert memory_budget(given) == expected
        assert isinstance(memory_budget(given), int)


def test_budget_rejects_what_is_no_size():
    for given in (
        *("", "GB", "2 XB", "-2GB", "1.2.3GB", "2GB!", "0", "0GB", "1e999GB", "nan"),
        10**400,
        *(0, -1, np.nan, np.inf, True, [2], {}),
    ):
        text = re.escape(f"max_memory={given!r} should be a positive number of bytes")
        with pytest.raises(ValueError, match=text + ".*'2GB' or '500 MiB', or None"):
            memory_budget(given)


def test_budget_of_none_is_half_of_what_is_free(monkeypatch):
    monkeypatch.setattr("sketchmeans.numerics.memory._available", lambda: 1000)
    assert memory_budget(None) == 500


def test_available_memory_respects_the_container(monkeypatch):
    from sketchmeans.numerics import memory

    assert 0 < memory._available() <= psutil.virtual_memory().total
    monkeypatch.setattr(memory, "_control_group_limit", lambda: 12345)
    assert memory._available() == 12345


def test_the_limit_of_a_control_group(monkeypatch, tmp_path):
    from sketchmeans.numerics import memory

    monkeypatch.setattr(memory, "_CONTROL_GROUP", tmp_path)
    assert memory._control_group_limit() == sys.maxsize
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("512")
    assert memory._control_group_limit() == 512
    (tmp_path / "memory.max").write_text("4096\n")
    assert memory._control_group_limit() == 4096
    (tmp_path / "memory" / "memory.limit_in_bytes").unlink()
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._control_group_limit() == sys.maxsize


def test_sizes_for_people():
    sizes = {0: "0 B", 999: "999 B", 1000: "1 kB", 1234: "1.23 kB", 5e6: "5 MB"}
    sizes |= {3.2e9: "3.2 GB", 7.25e12: "7.25 TB", 999_999: "1 MB", 2e15: "2000 TB"}
    assert {size: format_bytes(size) for size in sizes} == sizes
