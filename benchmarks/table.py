"""The table that a benchmark prints: what was measured, and what was wanted."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

import joblib
import numpy as np
import sklearn

_TITLES = (
    *("row", "ours s", "peer s", "time ratio (min-max)", "target"),
    *("W ratio", "target", "MB ours / peer", "met"),
)
_WIDTHS = (21, 7, 8, 22, 12, 10, 12, 18)


@dataclass(frozen=True)
class Target:
    """What a ratio should be: at most, at least, or as close to one as a bound."""

    sense: str  # "<=", ">=" or "1 +-"
    bound: float
    stretch: float | None = None

    def __str__(self) -> str:
        beyond = "" if self.stretch is None else f" ({self.stretch:g})"
        return f"{self.sense} {self.bound:g}{beyond}"

    def met(self, ratio: float) -> bool:
        return self._holds(ratio, self.bound)

    def stretch_met(self, ratio: float) -> bool:
        return self.stretch is not None and self._holds(ratio, self.stretch)

    def _holds(self, ratio: float, bound: float) -> bool:
        if self.sense == "<=":
            return ratio <= bound
        return ratio >= bound if self.sense == ">=" else abs(ratio - 1.0) <= bound


def at_least(bound: float, stretch: float | None = None) -> Target:
    return Target(">=", bound, stretch)


def at_most(bound: float, stretch: float | None = None) -> Target:
    return Target("<=", bound, stretch)


def close_to_one(bound: float) -> Target:
    return Target("1 +-", bound)


@dataclass(frozen=True)
class Outcome:
    """A line of the table; None where a column does not apply.

    Pairs are our side and the peer's.  `memory_ratio` is our peak over what is
    allowed, in rows that limit it.
    """

    time_ratio: float
    time_target: Target
    spread: tuple[float, float] | None = None
    seconds: tuple[float, float] | None = None
    cost_ratio: float | None = None
    cost_target: Target | None = None
    peak_bytes: tuple[float, float] | None = None
    memory_ratio: float | None = None
    cpu_seconds: tuple[float, ...] | None = None

    def verdicts(self) -> dict[str, bool]:
        """Return which of the targets are met."""
        found = {"time": self.time_target.met(self.time_ratio)}
        if self.cost_target is not None and self.cost_ratio is not None:
            found["cost"] = self.cost_target.met(self.cost_ratio)
        if self.memory_ratio is not None:
            found["memory"] = self.memory_ratio <= 1.0
        return found

    def line(self, name: str) -> str:
        """Return the line of the table."""
        return _line(
            name,
            *(("", "") if self.seconds is None else map(_seconds, self.seconds)),
            f"{self.time_ratio:.2f}" + _between(self.spread),
            str(self.time_target),
            "" if self.cost_ratio is None else f"{self.cost_ratio:.5f}",
            "" if self.cost_target is None else str(self.cost_target),
            "" if self.peak_bytes is None else _megabytes(self.peak_bytes),
            self._verdict(),
        )

    def stored(self, row: str) -> dict[str, object]:
        """Return what `benchmarks.history` keeps of a line."""
        seconds, cpu = self.seconds or ("", ""), self.cpu_seconds or ("", "")
        cost = "" if self.cost_target is None else f", cost {self.cost_target}"
        return {
            "row": row,
            **dict(zip(("ours_seconds", "peer_seconds"), seconds, strict=True)),
            **dict(zip(("ours_cpu", "peer_cpu"), cpu, strict=True)),
            "peer": "",
            "time_ratio": self.time_ratio,
            "cost_ratio": "" if self.cost_ratio is None else self.cost_ratio,
            "wanted": f"time {self.time_target}{cost}",
            "met": self._verdict(),
        }

    def _verdict(self) -> str:
        missed = [what for what, met in self.verdicts().items() if not met]
        if missed:
            return "not " + ", ".join(missed)
        return (
            "yes, stretch" if self.time_target.stretch_met(self.time_ratio) else "yes"
        )


def banner(seeds: int) -> str:
    """Return what machine and versions the figures are for."""
    text = (
        f"# {joblib.cpu_count()} cores, {platform.machine()}, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}; {seeds} seeds"
    )
    if (load := os.getloadavg()[0]) > 0.5:
        text += f"\n# load {load:.1f}: others are at work here, the times mean little"
    return text


def header() -> str:
    """Return the titles of the columns, underlined."""
    titles = _line(*_TITLES)
    return f"{titles}\n{'-' * len(titles)}"


def _line(*cells: str) -> str:
    """Return the name flush left, numbers flush right, and the verdict."""
    name, *numbers, verdict = cells
    wide = (f"{n:>{width}}" for n, width in zip(numbers, _WIDTHS[1:], strict=True))
    return f"{name:<{_WIDTHS[0]}}" + "".join(wide) + f"   {verdict}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}"


def _between(spread: tuple[float, float] | None) -> str:
    return "" if spread is None else f" ({spread[0]:.2f}-{spread[1]:.2f})"


def _megabytes(pair: tuple[float, float]) -> str:
    return " / ".join("-" if b != b else f"{b / 1e6:,.0f}" for b in pair)
