"""Labels of ONNX graphs beside `predict`: differences, sizes and latency.

    python -m benchmarks.onnx [--rows 100000]

Rows are ten overlapping groups in 16 columns, where borders have many rows, and a table
of customers with skewed amounts, categories and gaps.  Latency is the median of 200
calls with one row.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from onnxruntime import InferenceSession

from sketchmeans import NystromKMeans, TableClusterer
from sketchmeans.datasets import make_customers
from sketchmeans.onnx import compare_onnx, onnx_inputs, to_onnx

KERNELS = ("rbf", "linear", "polynomial", "laplacian", "cosine")
_CALLS = 200


def make_rows(n, dtype):
    """Return overlapping groups, not about zero."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(10, 16)) + 1.0
    return (rng.normal(size=(n, 16)) + centers[rng.integers(10, size=n)]).astype(dtype)


def time_call(call):
    """Return the median seconds of a call."""
    seconds = []
    for _ in range(_CALLS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def compare(name, model, X, one):
    """Print one line, and the rows whose labels differ."""
    graph = to_onnx(model)
    found = compare_onnx(model, X, graph)
    session = InferenceSession(graph.SerializeToString())
    feeds = onnx_inputs(model, one)
    ours = time_call(lambda: model.predict(one))
    theirs = time_call(lambda: session.run(["label"], feeds))
    print(
        f"| {name} | {found.n_rows:,} | {len(found.rows)} | {found.n_border} "
        f"| {found.size / 1024:,.0f} kB | {found.seconds:.2f} s "
        f"| {found.onnx_seconds:.2f} s | {1e6 * ours:,.0f} µs "
        f"| {1e6 * theirs:,.0f} µs |",
        flush=True,
    )
    return [
        f"{name}: row {row}, squared distances differ by {gap:.1e} of themselves"
        for row, gap in zip(found.rows.tolist(), found.gaps.tolist(), strict=True)
    ]


def main():
    """Compare all kernels in both float types, and a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    n = parser.parse_args().rows
    warnings.simplefilter("ignore")
    print("| model | rows | differ | on a border | file | ours | ONNX | 1 row | ONNX |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    notes = []
    for dtype in ("float32", "float64"):
        X = make_rows(n, dtype)
        for kernel in KERNELS:
            model = NystromKMeans(10, kernel=kernel, random_state=0).fit(X)
            notes += compare(f"{kernel}, {dtype}", model, X, X[:1])
    table = make_customers(n)[0].drop(columns="signed_up")
    model = TableClusterer(NystromKMeans(6, random_state=0)).fit(table)
    notes += compare("customers", model, table, table[:1])
    print("", *notes, sep="\n")


if __name__ == "__main__":
    main()
