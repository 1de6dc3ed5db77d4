"""Mutants: one line of the library is wrong, and a test must notice.

``python -m tests.mutants`` applies each mutant to a copy of the package, runs the tests
that should kill it there, and prints which survived; ``python -m tests.mutants dpp 7``
runs those whose file name contains "dpp", and number 7.  It exits with 1 where one
survives, and where a line is no longer found.  About ten minutes on two cores.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "sketchmeans"

#: Exit codes of pytest: all passed, some failed, or nothing could be imported.
_PASSED, _FAILED, _INTERRUPTED = 0, 1, 2
#: Seconds after which tests have failed, because a mutant may loop for ever.
_TIMEOUT = 1_800


class Mutant(NamedTuple):
    """A text that is found once in a file, what takes its place, and the tests."""

    file: str
    before: str
    after: str
    tests: str


LLOYD = "tests/engine/test_lloyd.py"
SEEDINGS = "tests/contracts/test_seedings.py"
GRAPHS = "tests/graphs/test_weights.py"
MODEL_FILES = "tests/persistence/test_model_files.py"
FORGERIES = "tests/persistence/test_hostile_models.py -k forgeries_are_refused"

MUTANTS = [
    # --- engine: assignment, bounds, updates, seedings
    Mutant("engine/assign.py", "-2.0 * self._points.T", "-self._points.T", LLOYD),
    Mutant(
        "engine/assign.py",
        "lengths = self._lengths[old] - self._lengths[new]",
        "lengths = self._lengths[new] - self._lengths[old]",
        "tests/cluster/test_exactness.py",
    ),
    Mutant(
        "engine/assign.py",
        "low + norms < self._share * scale",
        "low + norms < 0.0 * scale",
        "tests/cluster/test_precision.py",
    ),
    Mutant(
        "engine/restarts.py",
        "best = sorted(results, key=lambda result: result.cost)[:size]",
        "best = results[:size]",
        f"{LLOYD} -k better_half",
    ),
    Mutant(
        "engine/swaps.py",
        "return removed[best], rows[best], costs[best]",
        "return removed[best], rows[best[::-1]], costs[best]",
        "tests/engine/test_small_tables.py -k swaps_are",
    ),
    Mutant(
        "engine/subsample.py",
        "own = weights / chances.at(drawn)",
        "own = weights * chances.at(drawn)",
        "tests/cluster/test_exactness.py -k follow_the_weights",
    ),
    Mutant("graphs/weights.py", "exponents *= -ratio", "exponents *= -1.0", GRAPHS),
    Mutant(
        "engine/bounds.py",
        "others[order[-1]] = moved[order[-2]]",
        "others[order[-1]] = 0.0",
        "tests/engine/test_rough.py tests/engine/test_lloyd.py",
    ),
    Mutant(
        "engine/bounds.py",
        "np.add(self.upper[part], moved[own], out=uppers[part])",
        "np.subtract(self.upper[part], moved[own], out=uppers[part])",
        "tests/engine/test_rough.py tests/engine/test_lloyd.py",
    ),
    Mutant(
        "engine/bounds.py",
        "np.subtract(self.lower[part], others[own], out=lowers[part])",
        "np.add(self.lower[part], 0.0 * others[own], out=lowers[part])",
        "tests/engine/test_rough.py tests/engine/test_lloyd.py",
    ),
    Mutant(
        "engine/bounds.py",
        'change -= 2.0 * np.einsum("kj,kj->", off, step)',
        'change += 2.0 * np.einsum("kj,kj->", off, step)',
        LLOYD,
    ),
    Mutant(
        "engine/bounds.py",
        "(least + 2.0 * drift)",
        "(least + 0.0 * drift)",
        "tests/engine/test_lloyd.py",
    ),
    Mutant(
        "engine/passes.py",
        "nearest[1, rows] = found.second",
        "nearest[1, rows] = np.inf",
        "tests/engine/test_rough.py tests/engine/test_lloyd.py",
    ),
    Mutant(
        "engine/lloyd.py",
        "gain <= tol * (previous.cost - floor)",
        "gain <= tol",
        "tests/cluster/test_exactness.py",
    ),
    Mutant("engine/lloyd.py", "result.converged and fewer[position]", "False", LLOYD),
    Mutant(
        "engine/refill.py",
        "np.argsort(-weights * distances, kind=",
        "np.argsort(-distances, kind=",
        LLOYD,
    ),
    Mutant(
        "engine/refill.py",
        "0.0 < weights[i] < left[own[i]]",
        "0.0 < weights[i] <= left[own[i]]",
        LLOYD,
    ),
    Mutant("engine/gram.py", "K[start:stop, top:bottom] = values.T", "values.T", LLOYD),
    Mutant(
        "engine/init.py",
        "np.minimum(nearer, closest[:, :, None], out=nearer)",
        "np.maximum(nearer, closest[:, :, None], out=nearer)",
        SEEDINGS,
    ),
    Mutant(
        "engine/init.py",
        "costs.reshape(candidates.shape).argmin(axis=1)",
        "costs.reshape(candidates.shape).argmax(axis=1)",
        SEEDINGS,
    ),
    # --- landmarks
    Mutant(
        "landmarks/base.py",
        "weights[indices] / (size * chances[indices] / chances.sum())",
        "1.0 / (size * chances[indices] / chances.sum())",
        "tests/landmarks/test_diagonal.py",
    ),
    Mutant(
        "landmarks/base.py",
        "np.where(scores > 0.0, 0.0, weights)",
        "np.where(scores > 0.0, 0.0, 1.0)",
        "tests/landmarks/test_diagonal.py",
    ),
    Mutant(
        "landmarks/leverage.py",
        "weights[lucky] *= rest",
        "weights[lucky] /= rest",
        "tests/landmarks/test_leverage.py -k dictionary",
    ),
    Mutant(
        "landmarks/leverage.py",
        "(gamma > lowest and found < ridge.effective_dimension)",
        "gamma > lowest",
        "tests/landmarks/test_leverage.py",
    ),
    Mutant(
        "landmarks/leverage.py",
        "kept = inclusion_probabilities(scores / chances, size)",
        "kept = inclusion_probabilities(scores, size)",
        "tests/landmarks/test_leverage.py",
    ),
    Mutant(
        "landmarks/kmeanspp.py",
        "if threshold < now[i]:",
        "if threshold < before[i]:",
        "tests/landmarks/test_kmeanspp.py",
    ),
    Mutant(
        "landmarks/kmeanspp.py",
        "if after < before:",
        "if after < 2.0 * before:",
        "tests/landmarks/test_kmeanspp.py",
    ),
    Mutant(
        "landmarks/pivots.py",
        "now = before[i] - own @ own",
        "now = before[i]",
        "tests/landmarks/test_pivots.py",
    ),
    Mutant(
        "landmarks/pivots.py",
        "np.asarray(total / self.residual[numbers])",
        "np.asarray(total)",
        "tests/landmarks/test_pivots.py",
    ),
    Mutant(
        "landmarks/dpp.py",
        "self._diagonal * distance + image * image",
        "self._diagonal * distance",
        "tests/landmarks/test_dpp.py",
    ),
    Mutant(
        "landmarks/dpp.py",
        "rng.random() * (1.0 + edges[-1]) - 1.0",
        "rng.random() * (2.0 + edges[-1]) - 2.0",
        "tests/landmarks/test_dpp.py",
    ),
    Mutant(
        "landmarks/growth.py",
        "np.maximum(counts * (counts - 1.0), 1.0)",
        "np.maximum(counts * counts, 1.0)",
        "tests/landmarks/test_growth.py",
    ),
    Mutant(
        "landmarks/coverage.py",
        "span[0] + places",
        "places",
        "tests/landmarks/test_coverage.py",
    ),
    # --- theory
    Mutant(
        "theory/span.py",
        "least**2 / total if total > 0.0 else 0.0",
        "least if total > 0.0 else 0.0",
        "tests/theory/test_spectrum.py",
    ),
    Mutant(
        "theory/span.py",
        "np.maximum(outside - leaked, 0.0)",
        "np.maximum(outside, 0.0)",
        "tests/theory/test_spectrum.py",
    ),
    Mutant(
        "theory/preserving.py",
        "norm * (1.0 - eps) / eps",
        "norm * eps / (1.0 - eps)",
        "tests/theory/test_spectrum.py -k preserv",
    ),
    Mutant(
        "theory/budget.py",
        'max(values["kappa"] ** 2, 1.0)',
        'values["kappa"] ** 2',
        "tests/theory/test_budget.py -k lemma_3",
    ),
    Mutant("theory/risk.py", "/ (total - 1.0)", "/ total", "tests/theory/test_risk.py"),
    Mutant(
        "theory/sketch_size.py",
        "max(1.0, _PAPER_DELTA / delta)",
        "1.0",
        "tests/theory/test_sketch_size.py",
    ),
    # --- diagnostics
    Mutant(
        "diagnostics/partition_bound.py",
        "left = n_total - np.arange(len(x))",
        "left = n_total + 0 * np.arange(len(x))",
        "tests/diagnostics/test_partition_bound.py -k mean",
    ),
    Mutant(
        "diagnostics/partition_bound.py",
        "each = 1.0 - risk / n_chances",
        "each = 1.0 - risk",
        "tests/diagnostics/test_partition_bound.py",
    ),
    Mutant(
        "diagnostics/semidefinite.py",
        "np.maximum(np.asarray(multipliers, np.float64), 0.0)",
        "np.asarray(multipliers, np.float64)",
        "tests/diagnostics/test_semidefinite.py",
    ),
    Mutant(
        "diagnostics/semidefinite.py",
        "- offset - top - noise",
        "- offset - top",
        "tests/diagnostics/test_semidefinite.py",
    ),
    Mutant(
        "diagnostics/spectral_bounds.py",
        "max(sqrt(least) - self.rounding, 0.0) ** 2",
        "least",
        "tests/diagnostics/test_certificate.py -k 'rounding or allowance'",
    ),
    Mutant(
        "diagnostics/spectral_bounds.py",
        "(2.0 * n_draws)",
        "(4.0 * n_draws)",
        "tests/diagnostics/test_certificate.py -k margin",
    ),
    Mutant(
        "diagnostics/anticlusters.py",
        "linear_sum_assignment(R[chosen] @ sums[open_subsets].T)",
        "linear_sum_assignment(-(R[chosen] @ sums[open_subsets].T))",
        "tests/diagnostics/test_anticlusters.py",
    ),
    Mutant(
        "diagnostics/members.py",
        "order = np.lexsort((numbers, keys, labels))",
        "order = np.lexsort((numbers, -keys, labels))",
        "tests/diagnostics/test_summary.py tests/diagnostics/test_segments.py",
    ),
    # --- persistence
    Mutant(
        "persistence/values.py",
        "abs(value.strides[0]) < abs(value.strides[1])",
        "abs(value.strides[0]) < 0",
        "tests/persistence/test_consistency.py",
    ),
    Mutant(
        "persistence/kinds.py",
        '!= "f":\n        return True',
        '== "f":\n        return True',
        FORGERIES,
    ),
    Mutant(
        "persistence/kinds.py",
        "sizes.setdefault(dim, size) != size",
        "False",
        FORGERIES,
    ),
    Mutant(
        "persistence/history.py",
        "version < change.version",
        "version <= change.version",
        "tests/persistence/test_model_versions.py",
    ),
    Mutant(
        "persistence/checks.py",
        "(features[1:] <= features[:-1])",
        "(features[1:] < features[:-1])",
        "tests/persistence/test_consistency.py",
    ),
    Mutant(
        "persistence/checks.py",
        "-(-signs.width // 8)",
        "signs.width // 8",
        f"{MODEL_FILES} tests/persistence/test_hostile_models.py",
    ),
]


def count_matches(mutant: Mutant) -> int:
    """Return how often the text of a mutant is in its file."""
    path = PACKAGE / mutant.file
    return path.read_text(encoding="utf-8").count(mutant.before) if path.exists() else 0


def run_mutant(mutant: Mutant) -> int:
    """Return the exit code of the tests with the mutant in place."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "sketchmeans"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        path = copy / mutant.file
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
        options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header"]
        files, _, wanted = mutant.tests.partition(" -k ")
        if wanted:
            options += ["-k", wanted.strip("'")]
        command = [sys.executable, "-m", "pytest", *options, *files.split()]
        environment = os.environ | {"PYTHONPATH": folder}
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                timeout=_TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            return _FAILED
    return done.returncode


def main(wanted: list[str]) -> int:
    """Run the mutants, print what became of them, and return the exit code."""
    chosen = [
        (number, mutant)
        for number, mutant in enumerate(MUTANTS)
        if not wanted or str(number) in wanted or any(w in mutant.file for w in wanted)
    ]
    lost = [(number, mutant) for number, mutant in chosen if count_matches(mutant) != 1]
    for number, mutant in lost:
        print(f"{number:3} LOST      {mutant.file}: {mutant.before}")
    words = {_PASSED: "SURVIVED", _FAILED: "killed", _INTERRUPTED: "killed"}
    survived = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        codes = pool.map(run_mutant, [mutant for _, mutant in chosen])
        for (number, mutant), code in zip(chosen, codes, strict=True):
            word = words.get(code, f"NO TESTS ({code})")
            survived += word != "killed"
            print(f"{number:3} {word:9} {mutant.file}: {mutant.before}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} mutants were killed")
    return 1 if lost or survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
