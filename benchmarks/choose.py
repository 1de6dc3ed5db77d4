"""How often the planted number of clusters is found: ``python -m benchmarks.choose``.

    python -m benchmarks.choose --half design --seeds 1

Prints one line per problem: its number of clusters, and what each seed suggests (0 for
"no number is clear").  Constants were chosen with the half "design" only.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from benchmarks.choose_problems import problems
from sketchmeans.diagnostics import choose_n_clusters


def main() -> None:
    """Run the problems of a half with some seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("design", "report"), default="report")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names that contain this")
    options = parser.parse_args()
    totals: Counter[str] = Counter()
    start = time.perf_counter()
    for problem in problems(options.half):
        if options.only not in problem.name:
            continue
        answers = []
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            found = choose_n_clusters(problem.X, random_state=seed)
            answers.append(found.n_clusters if found.is_clear else 0)
        kind = "planted" if problem.n_clusters else "noise"
        totals[f"{kind} runs"] += len(answers)
        totals[f"{kind} right"] += answers.count(problem.n_clusters)
        totals[f"{kind} problems"] += 1
        most = Counter(answers).most_common(1)[0][1]
        totals[f"{kind} same"] += most >= 0.8 * len(answers)
        print(f"{problem.name:18} true {problem.n_clusters:2}: {answers}", flush=True)
    for kind in ("planted", "noise"):
        if totals[f"{kind} runs"]:
            share = totals[f"{kind} right"] / totals[f"{kind} runs"]
            print(
                f"{kind}: {share:.1%} of runs right; 4 of 5 seeds agree on "
                f"{totals[f'{kind} same']} of {totals[f'{kind} problems']} problems"
            )
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
