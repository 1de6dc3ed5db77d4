"""Three clusterings that plain k-means gets wrong: what ``sketchmeans demo`` shows."""

from __future__ import annotations

from sketchmeans.demo.cases import Case, Fit, arms, compared, digits, rings
from sketchmeans.demo.picture import draw

__all__ = ["Case", "Fit", "arms", "compared", "digits", "draw", "rings"]
