"""The theorems of the papers as numbers.

Effective dimension, ridge leverage scores, landmark budgets, spectral decay,
γ-preservation, error bounds, sketch sizes and risk; `sketchmeans.diagnostics` has these
names, too.
"""

from sketchmeans.theory.budget import LandmarkBudget, landmark_budget
from sketchmeans.theory.decay import SpectrumDecay, spectrum_decay
from sketchmeans.theory.error_bounds import NystromErrorBounds, nystrom_error_bounds
from sketchmeans.theory.leverage import (
    EffectiveDimension,
    RidgeLeverageScores,
    effective_dimension,
    ridge_leverage_scores,
)
from sketchmeans.theory.preserving import is_gamma_preserving, preserved_gamma
from sketchmeans.theory.risk import Risk, risk
from sketchmeans.theory.sketch_size import SketchSize, sketch_size

__all__ = [
    "EffectiveDimension",
    "LandmarkBudget",
    "NystromErrorBounds",
    "RidgeLeverageScores",
    "Risk",
    "SketchSize",
    "SpectrumDecay",
    "effective_dimension",
    "is_gamma_preserving",
    "landmark_budget",
    "nystrom_error_bounds",
    "preserved_gamma",
    "ridge_leverage_scores",
    "risk",
    "sketch_size",
    "spectrum_decay",
]
