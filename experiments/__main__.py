"""Run the experiments and write the report.

Finished cells of the grid are not run again, so a run may be stopped at any time and
repeated.  A run writes DIR/results/NAME.csv; the report reads those files and writes
DIR/figures/NAME.png and DIR/RESULTS.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.catalog import EXPERIMENTS
from experiments.grid import run_cells
from experiments.report import write_report
from experiments.store import Cell, Store, describe_run

_HOME = Path(__file__).resolve().parent
_SMOKE_HOME = Path("build/experiments-smoke")


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    out = options.out or (_SMOKE_HOME if options.smoke else _HOME)
    if options.action == "report":
        print(f"wrote {write_report(out)}")
        return
    names = list(EXPERIMENTS) if "all" in options.names else options.names
    run = describe_run(
        " ".join(["python -m experiments", *(arguments or sys.argv[1:])])
    )
    Store(out / "results" / "runs.csv", ["run"]).append([run])
    for name in names:
        experiment = EXPERIMENTS[name]
        cells = chosen(experiment.cells(options.smoke, options.repeats), options.only)
        summary = run_cells(
            experiment,
            cells,
            out / "results" / f"{name}.csv",
            run["run"],
            data=options.data,
            jobs=options.jobs,
            max_minutes=options.max_minutes,
        )
        print(
            f"{name}: {summary.done} cells run, {summary.resumed} were there, "
            f"{summary.left} left"
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
    run.add_argument("--repeats", type=_positive, help="instead of each one's own")
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
        action.add_argument("--smoke", action="store_true", help="a few small cells")
        action.add_argument("--out", type=Path, metavar="DIR")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
