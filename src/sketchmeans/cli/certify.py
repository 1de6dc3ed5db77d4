"""``sketchmeans certify``: what is proved about a saved model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sketchmeans.cli import options as o
from sketchmeans.cli.data import open_model_rows, open_table
from sketchmeans.cli.progress import Display
from sketchmeans.cli.screen import Screen, format_duration

#: Characters of the bar that stands for the cost.
_WIDTH = 40


def certify(
    model: o.ModelFile,
    data: o.Data,
    *,
    seconds: Annotated[
        float, typer.Option(metavar="S", help="Time to look for a proof.", min=0.0)
    ] = 60.0,
    ratio: Annotated[
        float | None,
        typer.Option(
            metavar="R", help="Stop when the cost is proved to be at most R × the best."
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            metavar="P",
            help="Probability of what is left to chance if time is short; 1 leaves "
            "nothing to chance.",
        ),
    ] = 0.95,
    seed: o.Seed = 0,
    file_options: o.FileOptions,
    print_options: o.PrintOptions,
) -> None:
    """Prove how far a saved model is from the best possible clustering."""
    screen = Screen(print_options)
    from sketchmeans import load
    from sketchmeans.cli.counted_rows import CountedTable
    from sketchmeans.diagnostics import certificate

    fitted = load(model)
    with open_table(data, file_options, screen) as table, Display(screen) as display:
        display.next("Rows")
        rows = open_model_rows(fitted, CountedTable(table, display))
        rows.path = screen.names.get(table.path, rows.path)
        display.next("Proof: subsets")
        done = 0

        def on_progress(n_done: int, n_subsets: int, bound: float) -> None:
            nonlocal done
            display.expect_rows(n_subsets)
            display.add_rows(n_done - done)
            done = n_done

        found = certificate(
            getattr(fitted, "estimator_", fitted),
            rows,
            max_seconds=seconds,
            ratio=ratio,
            confidence=confidence,
            random_state=seed,
            on_progress=on_progress,
        )
        display.finish()
    print_certificate(screen, found)
    screen.print_json({**found.to_dict(), "interval": found.interval})


def print_certificate(screen: Screen, found: Any) -> None:
    """Print what is proved, a bar, and how it was found."""
    screen.print(f"{found.sentence[0].upper()}{found.sentence[1:]}.", style="bold")
    screen.print(f"{draw_interval(found.lower_bound, found.cost)}  {found.interval}")
    lines = {"method": found.method, "time": format_duration(found.seconds)}
    if found.n_subsets is not None:
        lines["subsets"] = (
            f"{found.n_solved:,} of {found.n_subsets:,} solved, of about "
            f"{found.subset_size:,} rows each"
        )
    certain = found.certain_bound
    if found.confidence == 1.0:
        lines["chance"] = "none: the bound is certain"
    elif certain is not None:
        lines["chance"] = (
            f"the bound holds at a confidence of {found.confidence:.4g}; {certain:.4g} "
            "is certain"
        )
    screen.print_pairs(lines)


def draw_interval(lower_bound: float, cost: float) -> str:
    """Return a bar from zero to the cost, light where the optimum may be.

    Examples
    --------
    >>> draw_interval(0.75, 1.0)
    '██████████████████████████████░░░░░░░░░░'
    """
    share = lower_bound / cost if cost > 0.0 else 1.0
    full = min(int(_WIDTH * share), _WIDTH)
    return "█" * full + "░" * (_WIDTH - full)
