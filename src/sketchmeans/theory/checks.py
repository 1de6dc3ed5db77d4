"""Checks of the numbers that the theory asks for."""

from __future__ import annotations

from typing import Any

from sketchmeans.numerics.parameters import check_number


def check_below(name: str, value: Any, limit: float = 1.0) -> float:
    """Return a number between 0 and the limit, both excluded."""
    if 0.0 < check_number(name, value) < limit:
        return float(value)
    raise ValueError(f"{name}={value!r} should be > 0 and < {limit:g}.")


def check_positive(name: str, value: Any) -> float:
    """Return a finite number above 0."""
    if check_number(name, value) > 0.0:
        return float(value)
    raise ValueError(f"{name}={value!r} should be a finite number > 0.")
