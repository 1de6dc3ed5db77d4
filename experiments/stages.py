"""Which cells a claim still needs: 5 repeats of all, 10 and 20 where undecided."""

from __future__ import annotations

from pathlib import Path

from experiments.catalog import EXPERIMENTS
from experiments.evidence import STAGES
from experiments.store import Cell, Store


def needed(name: str, cells: list[Cell], claims: set[str] | None) -> list[Cell]:
    """Return the cells that may decide one of the claims; all if there are none."""
    experiment = EXPERIMENTS[name]
    of_part = getattr(experiment, "CLAIMS_OF", None)
    of_cell = getattr(experiment, "claims_of", None)
    if claims is None or (of_part is None and of_cell is None):
        return cells
    return [
        cell
        for cell in cells
        if claims & set(of_cell(cell) if of_cell else of_part[cell["part"]])
    ]


def second_looks(out: Path, opened: dict[str, set[str]]) -> str:
    """Return in words how far the repeats of undecided claims have come."""
    words = []
    for name, claims in opened.items():
        store = Store(
            out / "results" / f"{name}.csv",
            list(EXPERIMENTS[name].cells("full", 1)[0]),
        )
        finished = store.finished()
        for claim in sorted(claims):
            reached, left = 0, 0
            for repeats in STAGES:
                cells = needed(name, EXPERIMENTS[name].cells("full", repeats), {claim})
                left = sum(store.key(cell) not in finished for cell in cells)
                if left:
                    break
                reached = repeats
            if reached < STAGES[-1]:
                words.append(
                    f"{claim} in `{name}` has {reached} of {STAGES[-1]} repeats "
                    f"({left} cells short of the next look)"
                )
    if not words:
        return (
            "Claims that are undecided have all the repeats of the protocol, "
            f"{STAGES[-1]}.\n"
        )
    return f"**Second looks that were not finished**: {'; '.join(words)}.\n"
