"""Fuzzing of everything that is read: ``python -m tests.fuzz.run 10000 [SEED [KIND]]``.

Each mutation is a damaged copy of a small valid file, and is a function of the seed and
its number.  Using it may end well or with an error of the library, in a limited time
and memory; the process that does so must not die.  A kind, say Parquet, leaves all
targets out whose names do not have it.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def fuzz(n_mutations, seed=0, table="tests.fuzz.targets.TARGETS", kind=""):
    """Return what went wrong: a list of dicts with number, target and reason."""
    found, start = [], 0
    while start < n_mutations:
        done = subprocess.run(
            [
                *(sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.worker"),
                *(table, kind, str(seed), str(start), str(n_mutations)),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        said = [json.loads(line) for line in done.stdout.splitlines()]
        found += [line for line in said if "wrong" in line]
        if done.returncode == 0:
            break
        if not said:
            raise RuntimeError(f"The process did not start: {done.stderr}")
        last = said[-1]
        if done.returncode > 0:
            raise RuntimeError(f"The process failed at {last}: {done.stderr}")
        name = signal.Signals(-done.returncode).name
        found.append({**last, "wrong": f"{name}: {done.stderr[:2_000]}"})
        start = last["number"] + 1
    return found


if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    problems = fuzz(int(sys.argv[1]), seed, kind="".join(sys.argv[3:]))
    for problem in problems:
        print(problem)
    sys.exit(bool(problems))
