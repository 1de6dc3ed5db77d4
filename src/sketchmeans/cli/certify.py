"""``sketchmeans certify``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sketchmeans.cli.bars import duration
from sketchmeans.cli.data import Reading, loaded, model_and_rows, readable
from sketchmeans.cli.screen import Screen
from sketchmeans.cli.stages import WatchedTable, stages

#: Characters of the bar that stands for the cost.
_WIDTH = 40


def run(
    screen: Screen,
    model: str,
    data: str,
    options: Mapping[str, Any],
    reading: Reading,
) -> None:
    """Prove how far a saved model is from the best one."""
    from sketchmeans.diagnostics import certificate

    fitted = loaded(model)
    with (
        readable(data, screen, reading) as table,
        screen.warnings(),
        stages(screen) as shown,
    ):
        shown.next("Rows")
        inner, rows = model_and_rows(fitted, WatchedTable(table, shown), screen)
        shown.next("Proof: subsets")
        done = 0

        def on_progress(n_done: int, n_subsets: int, bound: float) -> None:
            nonlocal done
            shown.expect(n_subsets)
            shown.advance(n_done - done)
            done = n_done

        found = certificate(inner, rows, on_progress=on_progress, **options)
        shown.finish()
    say_certificate(screen, found)
    screen.json({**found.to_dict(), "interval": found.interval})


def say_certificate(screen: Screen, found: Any) -> None:
    """Print what is proved, a bar, and how it was found."""
    screen.say(f"{found.sentence[0].upper()}{found.sentence[1:]}.", style="bold")
    screen.say(f"{draw_interval(found.lower_bound, found.cost)}  {found.interval}")
    lines = {"method": found.method, "time": duration(found.seconds)}
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
    screen.pairs(lines)


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
