"""Errors of low-rank approximations of one kernel matrix that is held in memory."""

from __future__ import annotations

import numpy as np

from benchmarks.data import Array
from sketchmeans.nystrom.residual import spectral_norm

NORMS = ("trace", "frobenius", "spectral")

_STRIP = 1024


class GramErrors:
    """``‖K − F Fᵀ‖ / ‖K‖`` in three norms, for many F and one K."""

    def __init__(self, K: Array) -> None:
        self.K = K
        self._start = np.random.default_rng(0).standard_normal(len(K))
        self.norms = self._absolute(np.zeros((len(K), 1), K.dtype))

    def __call__(self, F: Array, spectral: bool = True) -> dict[str, float]:
        """Return the relative errors; without `spectral` that one is not a number."""
        absolute = self._absolute(F, spectral)
        return {norm: absolute[norm] / self.norms[norm] for norm in NORMS}

    def _absolute(self, F: Array, spectral: bool = True) -> dict[str, float]:
        trace = squares = 0.0
        for start in range(0, len(F), _STRIP):
            E = F[start : start + _STRIP] @ F.T
            np.subtract(self.K[start : start + _STRIP], E, out=E)
            trace += float(E.diagonal(start).sum(dtype=np.float64))
            squares += float(np.einsum("ij,ij->i", E, E).sum(dtype=np.float64))
        wide = F.astype(np.float64)

        def apply(v: Array) -> Array:
            image = (self.K @ v.astype(self.K.dtype)).astype(np.float64)
            return np.asarray(image - wide @ (wide.T @ v))

        largest = spectral_norm(apply, self._start) if spectral else np.nan
        return dict(zip(NORMS, (trace, squares**0.5, largest), strict=True))
