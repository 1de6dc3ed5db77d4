"""Landmark selectors side by side: time, error, lift over uniform, k-means cost.

On each table (standardised, rbf kernel): seconds to select the landmarks, relative
error of the Nyström approximation in three norms, lift (the mean Frobenius error of
uniform landmarks divided by that of the method, OG17) and the cost W of kernel k-means
with these landmarks.  Medians over the repeats, and half the distance between their
quartiles.  A method is a selector's name, with parameters if need be:
kmeans++:restarts=5,refine=True.  Files NAME.npz with an array X are read from the
directory that --data or SKETCHMEANS_DATA names.  --timing measures the time of
selection against that of the kernel values instead.
"""

from __future__ import annotations

import argparse
import ast
import csv
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from benchmarks import landmark_timing, og17
from benchmarks.errors import NORMS, GramErrors
from benchmarks.landmark_report import Results, summary, table
from benchmarks.measure import measure
from sketchmeans import Nystrom, NystromKMeans
from sketchmeans.data.rows import Rows, as_rows
from sketchmeans.engine.gram import gram_matrix
from sketchmeans.kernels import RBF, Kernel
from sketchmeans.landmarks import SELECTORS, LandmarkSelector, as_selector
from sketchmeans.numerics.parallel import Workers

#: Other forms of the selectors in the papers.
VARIANTS = (
    "leverage:sketch=diagonal",
    "kmeans++:restarts=1",
    "kmeans++:refine=True",
    "kmeans++:restarts=5,refine=True",
    "k-dpp:start=uniform",
    "k-dpp:start=uniform,n_steps=10000",
)

#: The spectral error takes as long as all else, and varies little: fewer repeats.
_SPECTRAL_REPEATS = 3


@dataclass(frozen=True)
class Settings:
    """What the command line asks for."""

    n_landmarks: int
    rank: int
    repeats: int
    n_clusters: int
    gamma: float | str


@dataclass(frozen=True)
class Trial:
    """What one choice of landmarks took and gave; errors are relative."""

    dataset: str
    method: str
    repeat: int
    seconds: float
    trace: float
    frobenius: float
    spectral: float
    cost: float


def main() -> None:
    options = _options()
    methods = options.methods or default_methods()
    if options.timing:
        selectors = {method: as_method(method) for method in methods}
        landmark_timing.run(selectors, options.repeats)
        return
    settings = Settings(
        options.n_landmarks,
        options.rank,
        options.repeats,
        options.clusters,
        _literal(options.gamma),
    )
    print(
        f"# {settings.n_landmarks} landmarks, rank {settings.rank}, gamma "
        f"{settings.gamma}, {settings.repeats} repeats"
    )
    trials: list[Trial] = []
    for name in options.datasets or og17.EVIDENCE:
        sample = og17.load(name, options.data, options.max_rows)
        trials += compare(sample, methods, settings)
        if options.out is not None:
            _write(options.out, trials)
        print(table(_results(trials), name), flush=True)
    print(summary(_results(trials)))
    if options.plot is not None:
        from benchmarks.landmark_plot import lift_picture

        lift_picture(_results(trials), options.plot)


def default_methods() -> list[str]:
    """Return all selectors, and other forms of some."""
    known = [method for method in VARIANTS if method.partition(":")[0] in SELECTORS]
    return [*SELECTORS, *known]


def as_method(text: str) -> LandmarkSelector:
    """Return the selector that ``name`` or ``name:parameter=value,...`` stands for."""
    name, _, rest = text.partition(":")
    selector = as_selector(name)
    for part in filter(None, rest.split(",")):
        parameter, _, value = part.partition("=")
        selector.set_params(**{parameter: _literal(value)})  # type: ignore[attr-defined]
    return selector


def compare(
    sample: og17.Sample, methods: Sequence[str], settings: Settings
) -> list[Trial]:
    """Return the trials of all methods on one table; uniform is always among them."""
    with Workers() as workers:
        rows = as_rows(sample.X, workers)
        kernel = RBF(settings.gamma).resolve(rows, np.random.default_rng(0))
        rows.moments()
        n, d = sample.X.shape
        print(
            f"\n# {sample.name}: {n:,} x {d}, {sample.origin}; gamma {kernel.gamma:.3g}"
        )
        gram = gram_matrix(rows, kernel)
    errors = GramErrors(gram)
    trials = []
    for method in dict.fromkeys(["uniform", *methods]):
        try:
            for repeat in range(settings.repeats):
                trials.append(_trial(sample, kernel, errors, method, repeat, settings))
        except (ValueError, NotImplementedError) as error:
            print(f"# {method} is left out: {error}", flush=True)
    return trials


def _trial(
    sample: og17.Sample,
    kernel: Kernel,
    errors: GramErrors,
    method: str,
    repeat: int,
    settings: Settings,
) -> Trial:
    selector, rng = as_method(method), np.random.default_rng(repeat)
    with Workers() as workers:
        rows = _surveyed(as_rows(sample.X, workers))
        run = measure(lambda: selector.select(rows, kernel, settings.n_landmarks, rng))
    chosen = run.value
    landmarks = chosen.points if chosen.indices is None else chosen.indices
    features = Nystrom(
        kernel, landmarks=landmarks, rank=settings.rank, rank_method="approximation"
    ).fit_transform(sample.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: the cost is what counts
        clusters = NystromKMeans(
            settings.n_clusters, kernel=kernel, landmarks=landmarks, random_state=repeat
        ).fit(sample.X)
    found = errors(features, spectral=repeat < _SPECTRAL_REPEATS)
    return Trial(
        sample.name,
        method,
        repeat,
        run.seconds,
        *(found[norm] for norm in NORMS),
        clusters.cost_,
    )


def _surveyed(rows: Rows) -> Rows:
    """Return rows that were looked at before, as they are within a fit."""
    rows.moments()
    return rows


def _results(trials: list[Trial]) -> Results:
    """Return the measures of all repeats by dataset and method."""
    results: Results = {}
    for trial in trials:
        measures = results.setdefault(trial.dataset, {}).setdefault(trial.method, {})
        for name, value in asdict(trial).items():
            if name not in ("dataset", "method", "repeat"):
                measures.setdefault(name, []).append(value)
    for methods in results.values():
        baseline = float(np.mean(methods["uniform"]["frobenius"]))
        for measures in methods.values():
            measures["lift"] = [baseline / error for error in measures["frobenius"]]
    return results


def _write(path: Path, trials: list[Trial]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Trial)])
        writer.writeheader()
        writer.writerows(asdict(trial) for trial in trials)


def _literal(text: str) -> object:
    """Return a number or a truth value, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.landmarks", description=__doc__
    )
    parser.add_argument(
        "datasets", nargs="*", help=f"{', '.join(og17.EVIDENCE)} by default"
    )
    parser.add_argument("--methods", nargs="+", metavar="METHOD")
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--n-landmarks", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--gamma", default="median", help="a number or a rule")
    parser.add_argument("--clusters", type=int, default=10, help="for the cost W")
    parser.add_argument("--max-rows", type=int, default=25_000)
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="CSV")
    parser.add_argument("--plot", type=Path, metavar="PNG")
    parser.add_argument("--timing", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
