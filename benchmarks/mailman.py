"""Sign projections by matrix product and by the mailman algorithm, side by side.

The mailman algorithm (Liberty & Zucker 2009) does O(d) work for log d columns of
signs where a matrix product does d log d, but a processor multiplies far faster than
it moves values to addresses.  Each line times ``SignProjection.transform`` on one
thread, in seconds of processor time, the least of a few turns; the methods take turns.
The last column says how many times faster the mailman is: below one it is slower.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy import sparse

from sketchmeans import SignProjection

_METHODS = ("gemm", "mailman")
#: Features made.
_WIDTHS = (20, 100, 400)


@dataclass(frozen=True)
class Shape:
    """A table: rows, features, and nonzeros a row; None for a dense one."""

    n: int
    d: int
    nonzeros: int | None = None

    def table(self, dtype: type) -> Any:
        rng = np.random.default_rng(0)
        if self.nonzeros is None:
            return rng.standard_normal((self.n, self.d), dtype=dtype)
        return sparse.random_array(
            (self.n, self.d),
            density=self.nonzeros / self.d,
            format="csr",
            dtype=dtype,
            rng=rng,
        )

    def __str__(self) -> str:
        filled = "dense" if self.nonzeros is None else f"{self.nonzeros:,} nonzeros"
        return f"{self.n:,} x {self.d:,}, {filled}"


SHAPES = (
    Shape(4_000, 784),
    Shape(2_000, 4_096),
    Shape(500, 20_000),
    Shape(200, 100_000),
    Shape(5_000, 20_000, 100),
    Shape(2_000, 20_000, 1_000),
    Shape(1_000, 100_000, 5_000),
)


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(X: Any, r: int, turns: int) -> dict[str, float]:
    """Return the least time of each method."""
    models = {
        method: SignProjection(r, method=method, n_jobs=1, random_state=0).fit(X)
        for method in _METHODS
    }
    least = dict.fromkeys(_METHODS, np.inf)
    for _ in range(turns):
        for method, model in models.items():
            least[method] = min(least[method], seconds(lambda m=model: m.transform(X)))
    return least


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.mailman", description=__doc__
    )
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    print(
        f"# {platform.machine()}, NumPy {np.__version__}, SciPy {scipy.__version__}; "
        f"one thread, least of {options.turns} turns"
    )
    titles = ("table", "type", "r", "gemm s", "mailman s", "faster by")
    line = "{:<36}{:>9}{:>6}{:>10}{:>11}{:>11}"
    print(line.format(*titles))
    wins = []
    for shape in SHAPES:
        for dtype in (np.float32, np.float64):
            X = shape.table(dtype)
            for r in _WIDTHS:
                least = compare(X, r, options.turns)
                gain = least["gemm"] / least["mailman"]
                numbers = (f"{least[method]:.4f}" for method in _METHODS)
                name = np.dtype(dtype).name
                print(line.format(str(shape), name, r, *numbers, f"{gain:.2f}"))
                if gain > 1.0:
                    wins.append(f"{shape} {name} r={r} ({gain:.1f}x)")
    print("The mailman is faster for: " + ("; ".join(wins) or "none of these") + ".")


if __name__ == "__main__":
    main()
