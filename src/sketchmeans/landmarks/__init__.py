"""Which points stand for the rest: one file for each family of landmark selectors."""

from __future__ import annotations

from collections.abc import Callable

from sketchmeans.landmarks.base import Landmarks, LandmarkSelector
from sketchmeans.landmarks.given import read_landmarks
from sketchmeans.landmarks.uniform import Uniform

__all__ = [
    "SELECTORS",
    "LandmarkSelector",
    "Landmarks",
    "Uniform",
    "as_selector",
    "read_landmarks",
]

SELECTORS: dict[str, Callable[[], LandmarkSelector]] = {
    "uniform": Uniform,
}


def as_selector(landmarks: str | LandmarkSelector) -> LandmarkSelector:
    """Return the selector that a user's `landmarks` stands for."""
    if isinstance(landmarks, str):
        if landmarks in SELECTORS:
            return SELECTORS[landmarks]()
    elif hasattr(landmarks, "select"):
        return landmarks
    raise ValueError(
        f"landmarks={landmarks!r} should be one of {sorted(SELECTORS)}, a selector "
        "object, or an array: points (m, d) or row numbers (m,)."
    )
