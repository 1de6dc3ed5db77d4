"""L21's simulated data: Gaussian clusters about corners of a cube."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.data import Array

#: Dimension, variance and bandwidth of L21 §5.1: exp(−‖·‖²/10).
DIMENSION, VARIANCE, GAMMA = 10, 2.0, 0.1
TEST_ROWS = 10_000


@dataclass(frozen=True)
class Mixture:
    """k clusters of equal weight about centres with entries ±1."""

    centers: Array

    @staticmethod
    def of(k: int) -> Mixture:
        """Return the mixture of k clusters; there is one for each k."""
        rng = np.random.default_rng(k)
        return Mixture(rng.choice([-1.0, 1.0], size=(k, DIMENSION)))

    def draw(self, n: int, seed: int) -> tuple[Array, Array]:
        """Return rows and the numbers of their clusters, as equal in size as can be."""
        rng = np.random.default_rng([seed, n])
        y = np.arange(n) % len(self.centers)
        noise = np.sqrt(VARIANCE) * rng.standard_normal((n, DIMENSION))
        return (self.centers[y] + noise).astype(np.float32), y

    def test_rows(self) -> Array:
        """Return the rows on which all fits of this mixture are judged."""
        return self.draw(TEST_ROWS, seed=1)[0]

    def literal_reference(self) -> float:
        """Return the mean of 2(1 − k(x, c*)) over the nearest true centre c*."""
        X = self.test_rows().astype(float)
        distances = ((X[:, None, :] - self.centers) ** 2).sum(axis=2).min(axis=1)
        return float((2.0 - 2.0 * np.exp(-GAMMA * distances)).mean())
