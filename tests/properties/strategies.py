"""Tables as users have them: any type, offset and scale, with repeats and weights."""

import os
from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from scipy import sparse

#: Examples of each law and model: a nightly run sets this to thousands, and draws new
#: ones each time (``pytest --hypothesis-seed=SEED`` repeats a run).
_EXAMPLES = os.environ.get("SKETCHMEANS_EXAMPLES")

laws = settings(
    max_examples=int(_EXAMPLES or 8),
    deadline=None,
    derandomize=_EXAMPLES is None,  # the same few examples in every `make test`
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass(frozen=True)
class Problem:
    """A table, its weights, and into how many clusters it is to be cut."""

    X: np.ndarray
    weights: np.ndarray | None
    k: int
    seed: int

    @property
    def mass(self):
        return np.ones(len(self.X)) if self.weights is None else self.weights

    def __repr__(self):
        return (
            f"Problem({self.X.dtype} {self.X.shape}, k={self.k}, seed={self.seed}, "
            f"weights={self.weights is not None}, from {self.X.min():.4g} to "
            f"{self.X.max():.4g})"
        )


@st.composite
def problems(draw, dtypes=(np.float64, np.float32), weighted=True, most_rows=120):
    """Blobs, tight or loose, with repeated rows and constant columns."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    dtype = draw(st.sampled_from(dtypes))
    n = draw(st.integers(12, most_rows))
    d = draw(st.integers(1, 6))
    groups = draw(st.integers(1, 6))
    spread = draw(st.sampled_from([1e-3, 0.1, 1.0]))
    X = 5.0 * rng.normal(size=(groups, d))[rng.integers(groups, size=n)]
    X += spread * rng.normal(size=(n, d))
    if draw(st.booleans()):  # repeated rows
        X[n // 2 :] = X[rng.integers(n // 2, size=n - n // 2)]
    if draw(st.booleans()) and d > 1:  # a constant column
        X[:, 0] = 3.0
    # float32 keeps six digits: an offset must leave some for the groups.
    offset = draw(st.sampled_from([0.0, 1.0, 1e3] + [1e6] * (dtype is np.float64)))
    scale = draw(st.sampled_from([1.0, 2.0**-12, 2.0**20]))
    X = ((X + offset) * scale).astype(dtype)
    weights = None
    if weighted and draw(st.booleans()):
        weights = rng.integers(0, 4, size=n).astype(float)
        weights[:6] = 1.0
    k = draw(st.integers(1, 8))
    return Problem(X, weights, k, seed % 1000)


def direct_cost(problem, labels, features=lambda X: X):
    """Return W of a partition from differences, in extended precision."""
    F = features(np.asarray(problem.X, dtype=np.longdouble))
    total = np.longdouble(0.0)
    for j in np.unique(labels):
        part, mass = F[labels == j], problem.mass[labels == j]
        if mass.sum() > 0.0:
            gap = part - np.average(part, axis=0, weights=mass)
            total += (mass * (gap**2).sum(axis=1)).sum()
    return float(total / problem.mass.sum())


def unit_rows(X):
    """Return the features of the cosine kernel."""
    lengths = np.sqrt((X**2).sum(axis=1, keepdims=True))
    return np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0)


def as_csr(X):
    return sparse.csr_array(X)
