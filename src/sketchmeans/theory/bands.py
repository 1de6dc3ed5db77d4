"""Bounds on leverage scores and their sum, from the span of a few landmarks.

The notation is that of `sketchmeans.theory.span`.
"""

from __future__ import annotations

import numpy as np

from sketchmeans.numerics.linalg import Array
from sketchmeans.theory.span import Band, LandmarkSpan, ResidualMoments


def dimension_band(
    span: LandmarkSpan, failure: float, rng: np.random.Generator
) -> Band:
    """Return bounds on the effective dimension that fail so often at most."""
    outside = Band(0.0, 0.0)
    if not span.complete:
        outside = _dimension_outside(span, span.residual(rng), failure)
    inside, rounding = span.effective_dimension, float(span.rounding.sum())
    return Band(inside + outside.lower - rounding, inside + outside.upper + rounding)


def _dimension_outside(
    span: LandmarkSpan, residual: ResidualMoments, failure: float
) -> Band:
    """Return bounds on what the residual adds to the effective dimension."""
    # Three intervals have to hold at once.
    first = residual.first_order(span.ridge, failure / 3.0)
    second = residual.second_order(span.ridge, failure / 3.0)
    total = first.lower + second
    directions = len(span.matrix.support) - span.effective_dimension
    return Band(
        first.lower**2 / total if total > 0.0 else 0.0,
        first.upper / (1.0 + first.upper / directions),
    )


def score_bands(
    span: LandmarkSpan, failure: float, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return estimates of the scores, and bounds that fail so often at most."""
    ridge, mass, inside = span.ridge, span.matrix.weighted_diagonal, span.scores
    theta = added = 0.0
    if not span.complete:
        residual = span.residual(rng)
        theta = residual.norm(failure) / ridge
        # What the residual adds is shared out by its diagonal.
        added = _dimension_outside(span, residual, failure).middle / residual.trace
    outside, leaked = np.sqrt(span.missing / ridge), np.sqrt(theta * inside)
    lower = inside + np.square(np.maximum(outside - leaked, 0.0)) / (1.0 + theta)
    upper = np.minimum(inside + np.square(outside + leaked), mass / (mass + ridge))
    lower = np.maximum(lower - span.rounding, 0.0)
    upper = np.maximum(upper + span.rounding, lower)
    return np.clip(inside + added * span.missing, lower, upper), lower, upper
