"""The estimators: `fit` reads as the papers do."""

from __future__ import annotations

from sketchmeans.cluster.exact import KernelKMeans
from sketchmeans.cluster.nystrom import NystromKMeans
from sketchmeans.cluster.sketched import SketchedKMeans
from sketchmeans.cluster.spectral import SpectralKMeans

__all__ = ["KernelKMeans", "NystromKMeans", "SketchedKMeans", "SpectralKMeans"]
