"""Run the experiments and write the report.

`run all` runs everything that PROTOCOL.md names: five repeats of each cell, then more
of those experiments that leave a claim undecided.  Finished cells are not run again, so
a run may be stopped at any time and repeated.  What has no time for its full grid may
be run with --quick into the same folder: the report says which claims rest on which
grid.  A run writes DIR/results/NAME.csv; the report reads those files and writes
DIR/figures/NAME.png and DIR/RESULTS.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.catalog import EXPERIMENTS
from experiments.evidence import STAGES
from experiments.grid import run_cells
from experiments.report import undecided, write_report
from experiments.stages import needed
from experiments.store import Cell, Store, describe_run

_HOME = Path(__file__).resolve().parent
_FOLDERS = {
    "full": _HOME,
    "quick": Path("build/experiments-quick"),
    "smoke": Path("build/experiments-smoke"),
}
#: Repeats after which each grid looks at the claims.
_STAGES = {"full": STAGES, "quick": STAGES[:1], "smoke": (2,)}


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    out = options.out or _FOLDERS[options.grid]
    if options.action == "report":
        print(f"wrote {write_report(out)}")
        return
    names = list(EXPERIMENTS) if "all" in options.names else options.names
    run = describe_run(
        " ".join(["python -m experiments", *(arguments or sys.argv[1:])])
    )
    Store(out / "results" / "runs.csv", ["run"]).append([run])
    stages = [options.repeats] if options.repeats else _STAGES[options.grid]
    for stage, repeats in enumerate(stages):
        open_claims = undecided(out, names) if stage else dict.fromkeys(names)
        for name, claims in open_claims.items():
            _run_one(name, repeats, claims, out, run["run"], options)


def _run_one(
    name: str,
    repeats: int,
    claims: set[str] | None,
    out: Path,
    run: str,
    options: argparse.Namespace,
) -> None:
    experiment = EXPERIMENTS[name]
    cells = needed(name, experiment.cells(options.grid, repeats), claims)
    summary = run_cells(
        experiment,
        chosen(cells, options.only),
        out / "results" / f"{name}.csv",
        run,
        grid=options.grid,
        data=options.data,
        jobs=options.jobs,
        max_minutes=options.max_minutes,
    )
    print(
        f"{name}, {repeats} repeats: {summary.done} cells run, {summary.resumed} were "
        f"there, {summary.left} left"
    )
    for reason, count in summary.skipped.items():
        print(f"{name}: {count} cells skipped, {reason}")


def chosen(cells: list[Cell], only: list[str]) -> list[Cell]:
    """Return the cells that have one of the values of each ``key=value,value``."""
    for condition in only:
        key, _, values = condition.partition("=")
        if key not in cells[0]:
            raise SystemExit(f"--only {condition}: {key!r} should be in {[*cells[0]]}")
        kept = [cell for cell in cells if str(cell[key]) in values.split(",")]
        if not kept:
            known = sorted({str(cell[key]) for cell in cells})
            raise SystemExit(f"--only {condition}: the values of {key!r} are {known}")
        cells = kept
    return cells


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} should be 1 or more")
    return value


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m experiments", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    run = actions.add_parser("run", help="run the cells that are not there yet")
    run.add_argument("names", nargs="+", choices=[*EXPERIMENTS, "all"], metavar="NAME")
    run.add_argument("--repeats", type=_positive, help="instead of 5, then 10 and 20")
    run.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="KEY=VALUE,...",
        help="cells with these settings, such as dataset=pol,elevators",
    )
    run.add_argument("--jobs", type=_positive, default=1, help="processes")
    run.add_argument("--max-minutes", type=float, default=float("inf"), metavar="M")
    run.add_argument("--data", type=Path, metavar="DIR", help="folder of NAME.npz")
    report = actions.add_parser("report", help="write figures and RESULTS.md")
    for action in (run, report):
        grid = action.add_mutually_exclusive_group()
        for name, words in (("quick", "in minutes"), ("smoke", "in seconds")):
            grid.add_argument(
                f"--{name}", dest="grid", action="store_const", const=name, help=words
            )
        action.set_defaults(grid="full")
        action.add_argument("--out", type=Path, metavar="DIR")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
