"""How fast the eigenvalues of a kernel matrix fall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from sketchmeans.data.rows import float_type
from sketchmeans.kernels import is_given
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks.leverage import Dictionary, Spectrum, WeightedKernel
from sketchmeans.numerics.linalg import Array, relative_cut
from sketchmeans.numerics.parameters import check_integer
from sketchmeans.theory.leverage import EXACT_ROWS
from sketchmeans.theory.problem import KernelLike, Problem, open_problem
from sketchmeans.theory.results import Result

#: The fit uses the first quarter of the eigenvalues, but at least ten: the others of a
#: random sample of rows fall faster than those of the distribution.
_FITTED_SHARE, _LEAST_FITTED = 4, 10
#: Eigenvalues in the fit, evenly spread over the logarithms of their ranks.
_FITTED_POINTS = 64


@dataclass(frozen=True, repr=False, eq=False)
class SpectrumDecay(Result):
    """The power law ``λ_i ≈ c i^−α`` of the eigenvalues of a kernel matrix.

    Attributes
    ----------
    exponent : float
        α, fitted by least squares on logarithms; infinite where fewer than three
        eigenvalues are above rounding.
    constant : float
        The smallest c with ``λ_i ≤ c i^−α`` for all i that were fitted.
    r_squared : float
        How well the power law fits: 1 is perfectly.
    exponential_r_squared : float
        The same for ``λ_i ≈ c exp(−β i)``: where it is larger, the eigenvalues fall
        faster than any power.
    n_fitted : int
        Eigenvalues from the first on that the fit spans.
    n_samples, n_sampled : int
        Rows, and rows of the matrix whose eigenvalues these are.
    eigenvalues : ndarray
        All that are above rounding, the largest first, scaled to n rows.
    exact : bool
        Whether they are those of all rows, not of a sample.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans.theory import spectrum_decay
    >>> K = np.diag(1.0 / np.arange(1, 201) ** 2)
    >>> found = spectrum_decay(K, "precomputed")
    >>> round(found.exponent, 2), round(found.constant, 2)
    (2.0, 1.0)
    """

    exponent: float
    constant: float
    r_squared: float
    exponential_r_squared: float
    n_fitted: int
    n_samples: int
    n_sampled: int
    eigenvalues: Array
    exact: bool
    _shown_properties: ClassVar[tuple[str, ...]] = (
        "eta",
        "xi",
        "definition_4_applies",
        "note",
    )

    @property
    def xi(self) -> float:
        """L21's Ξ = ``d_eff(1)``, from these eigenvalues: too low where sampled."""
        return float((self.eigenvalues / (self.eigenvalues + 1.0)).sum())

    def theorem_5_applies(self, n_clusters: int) -> bool:
        """Say whether √n landmarks are enough in place of √(nk) (L21 Theorem 5).

        Its condition, ``λ_i(K) ≤ c i^−α`` with α > 1, cannot hold for a fixed c as n
        grows: the eigenvalues of a normalised kernel add up to n.  Its conclusion
        follows from Theorem 4 where ``√(n/k) min(k, Ξ) ≤ √n``: k = 1, or ``Ξ ≤ √k``.
        Eigenvalues of a sample bound Ξ from below only, so for them it is False.
        """
        k = check_integer("n_clusters", n_clusters)
        return self.exact and min(k, self.xi) <= sqrt(k)

    @property
    def eta(self) -> float:
        """CR18's η = 1/α, at most 1: ``d_eff(γ)`` grows no faster than ``(n/γ)^η``."""
        return min(1.0, 1.0 / self.exponent) if self.exponent > 0.0 else 1.0

    @property
    def definition_4_applies(self) -> bool:
        """Whether CR18's Definition 4 holds with η < 1, so that it promises a gain."""
        return self.eta < 1.0

    @property
    def note(self) -> str:
        """What the numbers promise."""
        uniform = (
            "uniform landmarks: sqrt(n/k) min(k, xi) for a risk of sqrt(k/n) (L21 "
            "Theorem 4)"
        )
        if not self.definition_4_applies:
            return (
                f"The eigenvalues fall too slowly for a gain by leverage scores; "
                f"{uniform}."
            )
        return (
            f"By leverage scores about n^{0.5 * self.eta:.2g} landmarks, up to "
            f"constants (CR18 Definition 4 at gamma_ridge=sqrt(n)); {uniform}."
        )


def spectrum_decay(
    X: Any,
    kernel: KernelLike = "rbf",
    *,
    gamma: Gamma = "mean",
    kernel_params: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    max_exact: int = EXACT_ROWS,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> SpectrumDecay:
    """Fit ``λ_i ≈ c i^−α`` to the eigenvalues of the kernel matrix.

    CR18's Definition 4 asks for ``d_eff(γ) ≤ c (n/γ)^η``, which such eigenvalues have
    with ``η = 1/α`` (the paper prints ``λ_i = i^−η``).  L21's Theorem 5 asks for α > 1
    and promises more than follows: see `SpectrumDecay.theorem_5_applies` and
    docs/errata.md.

    Above `max_exact` rows the eigenvalues are those of a random sample, times
    n / max_exact.  The first quarter of them is fitted, as far as they are above
    rounding.  Costs 9s³ for s rows, in memory s².

    Parameters
    ----------
    X, kernel, gamma, kernel_params, sample_weight, n_jobs, random_state
        As in `effective_dimension`.
    max_exact : int, default=2000
        Maximum number of rows of the matrix.

    Examples
    --------
    The eigenvalues of Brownian motion, ``k(s, t) = min(s, t)``, fall about as i⁻².

    >>> import numpy as np
    >>> t = np.arange(1, 501) / 500
    >>> decay = spectrum_decay(np.minimum.outer(t, t), "precomputed")
    >>> round(decay.exponent, 1), round(decay.eta, 1), round(decay.xi, 1)
    (2.1, 0.5, 11.2)
    >>> decay.theorem_5_applies(10), decay.theorem_5_applies(200)
    (False, True)
    """
    size = check_integer("max_exact", max_exact)
    with open_problem(
        X, kernel, gamma, kernel_params, sample_weight, n_jobs, random_state
    ) as problem:
        values, sampled, exact = _compute_eigenvalues(problem, size)
        n = len(problem.rows)
    fitted = min(len(values), max(sampled // _FITTED_SHARE, _LEAST_FITTED))
    exponent, r_squared, exponential = _fit_decay(values[:fitted])
    constant = float(values.max(initial=0.0))
    if np.isfinite(exponent):
        scaled = values[:fitted] * np.arange(1, fitted + 1) ** exponent
        constant = float(scaled.max())
    return SpectrumDecay(
        exponent, constant, r_squared, exponential, fitted, n, sampled, values, exact
    )


def _compute_eigenvalues(problem: Problem, size: int) -> tuple[Array, int, bool]:
    """Return the eigenvalues above rounding, of how many rows, and if of all."""
    rows = problem.rows
    matrix = WeightedKernel(rows, problem.kernel)
    chosen, total = matrix.support, len(matrix.support)
    if not total:
        return np.empty(0), 0, True
    if total > size:
        chosen = np.sort(problem.rng.choice(chosen, size, replace=False))
    weights = matrix.weights[chosen] * (total / len(chosen))
    values = Spectrum(matrix, Dictionary(chosen, weights)).values[::-1]
    noise = 0.0  # that of float64 is cut off already
    if is_given(problem.kernel):
        noise = relative_cut(len(chosen), float_type(rows.X.dtype))
    return values[values > noise * values[0]], len(chosen), total <= size


def _fit_decay(values: Array) -> tuple[float, float, float]:
    """Return α, and how well a power law and an exponential fit."""
    if len(values) < 3:
        return np.inf, 1.0, 1.0
    ranks = np.geomspace(1, len(values), _FITTED_POINTS).round().astype(np.intp)
    ranks = np.unique(ranks)
    logs = np.log(values[ranks - 1])
    slope, r_squared = _fit_line(np.log(ranks), logs)
    return -slope, r_squared, _fit_line(ranks.astype(np.float64), logs)[1]


def _fit_line(x: Array, y: Array) -> tuple[float, float]:
    """Return the slope of the least-squares line, and its R²."""
    x, y = x - x.mean(), y - y.mean()
    total = float(y @ y)
    slope = float(x @ y) / float(x @ x)
    return slope, slope * float(x @ y) / total if total > 0.0 else 1.0
