"""Draw the picture of the README: three clusterings that plain k-means gets wrong.

    python examples/quickstart.py [PICTURE.png]

``sketchmeans demo`` does the same, prints a table, and writes a report.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sketchmeans.cli.demo_cases import (
    compare_methods,
    draw_results,
    make_arms,
    make_digits,
    make_rings,
)

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "quickstart.png"


def main() -> None:
    cases = (make_rings(), make_digits(), make_arms())
    results = [(case, compare_methods(case)) for case in cases]
    for case, fits in results:
        for fit in fits:
            print(f"{case.title}: {fit.method} {fit.seconds:.2f} s, NMI {fit.nmi:.3f}")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    draw_results(results, path)
    print(f"Picture: {path}")


if __name__ == "__main__":
    main()
