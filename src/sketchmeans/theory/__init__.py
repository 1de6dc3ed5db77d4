"""The theorems of the papers as numbers.

Effective dimension, ridge leverage scores, landmark budgets, spectral decay,
γ-preservation, sketch sizes and risk; `sketchmeans.diagnostics` has these names, too.
"""

from sketchmeans.theory.budget import LandmarkBudget, landmark_budget
from sketchmeans.theory.decay import SpectrumDecay, spectrum_decay
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
    "RidgeLeverageScores",
    "Risk",
    "SketchSize",
    "SpectrumDecay",
    "effective_dimension",
    "is_gamma_preserving",
    "landmark_budget",
    "preserved_gamma",
    "ridge_leverage_scores",
    "risk",
    "sketch_size",
    "spectrum_decay",
]
