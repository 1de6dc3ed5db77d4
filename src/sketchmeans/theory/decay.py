"""How fast the eigenvalues of a kernel matrix fall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sketchmeans.data.rows import float_type
from sketchmeans.kernels import is_given
from sketchmeans.kernels.bandwidth import Gamma
from sketchmeans.landmarks.dictionary import Dictionary, Spectrum, WeightedKernel
from sketchmeans.numerics.linalg import Array, relative_cut
from sketchmeans.numerics.parameters import check_integer
from sketchmeans.theory.base import Report
from sketchmeans.theory.problem import KernelLike, Problem, opened
from sketchmeans.theory.spectrum import EXACT_ROWS

#: The fit reads the first quarter of the eigenvalues: the rest of a matrix of rows that
#: were drawn at random falls faster than that of the distribution, and says nothing.
_FITTED_SHARE = 4
#: ... but so many at least, where there are so many.
_LEAST_FITTED = 10

#: Eigenvalues that the fit looks at, evenly spread over the logarithms of their ranks.
_FITTED_POINTS = 64


@dataclass(frozen=True, repr=False, eq=False)
class SpectrumDecay(Report):
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
    """

    exponent: float
    constant: float
    r_squared: float
    exponential_r_squared: float
    n_fitted: int
    n_samples: int
    n_sampled: int
    eigenvalues: Array
    _shown_properties: ClassVar[tuple[str, ...]] = (
        "eta",
        "theorem_5_applies",
        "definition_4_applies",
        "note",
    )

    @property
    def theorem_5_applies(self) -> bool:
        """Whether α > 1, as L21's Theorem 5 asks: then √n landmarks serve for √(nk)."""
        return self.exponent > 1.0

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
        if not self.theorem_5_applies:
            return (
                "The eigenvalues fall too slowly for either: plan with sqrt(nk) "
                "landmarks (L21 Theorem 4)."
            )
        return (
            f"sqrt(n) landmarks suffice up to constants (L21 Theorem 5), and by "
            f"leverage scores about n^{0.5 * self.eta:.2g} (CR18 Definition 4 at "
            "gamma_ridge=sqrt(n))."
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

    L21's Theorem 5 asks for ``λ_i ≤ c i^−α`` with α > 1; CR18's Definition 4 for
    ``d_eff(γ) ≤ c (n/γ)^η``, which such eigenvalues have with ``η = 1/α`` (the paper
    prints ``λ_i = i^−η``).  Any finite matrix has some c.  For L21's proof it must not
    grow with n, which the eigenvalues of K, whose sum is n for a normalised kernel,
    cannot have: read it for those of K/n.

    Above `max_exact` rows the eigenvalues are those of so many random rows, times
    n / max_exact.  The first quarter of them is fitted, as far as they are above
    rounding.  Costs 9s³ for s rows, in memory s².

    Parameters
    ----------
    X : array-like, memory map or sparse matrix of shape (n, d)
        With ``kernel="precomputed"``: the n × n kernel matrix.
    kernel : str, callable or Kernel, default="rbf"
        A positive semi-definite kernel, as in `NystromKMeans`.
    gamma : float, "mean", "median" or "scale", default="mean"
        Bandwidth of the kernel.
    kernel_params : dict, optional
        More parameters of the kernel.
    sample_weight : array-like of shape (n,), optional
        A row of weight 3 counts as three rows.
    max_exact : int, default=2000
        Most rows of the matrix.
    n_jobs : int or None, default=None
        Threads; it never changes the result.
    random_state : int, Generator, RandomState or None, default=None

    Examples
    --------
    The eigenvalues of Brownian motion, ``k(s, t) = min(s, t)``, fall about as i⁻².

    >>> import numpy as np
    >>> t = np.arange(1, 501) / 500
    >>> decay = spectrum_decay(np.minimum.outer(t, t), "precomputed")
    >>> round(decay.exponent, 1), decay.theorem_5_applies, round(decay.eta, 1)
    (2.1, True, 0.5)
    """
    size = check_integer("max_exact", max_exact)
    with opened(
        X,
        kernel,
        gamma=gamma,
        kernel_params=kernel_params,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        random_state=random_state,
    ) as problem:
        values, sampled = _eigenvalues(problem, size)
        n = len(problem.rows)
    fitted = min(len(values), max(sampled // _FITTED_SHARE, _LEAST_FITTED))
    exponent, r_squared, exponential = _fit(values[:fitted])
    return SpectrumDecay(
        exponent=exponent,
        constant=_smallest_constant(values[:fitted], exponent),
        r_squared=r_squared,
        exponential_r_squared=exponential,
        n_fitted=fitted,
        n_samples=n,
        n_sampled=sampled,
        eigenvalues=values,
    )


def _eigenvalues(problem: Problem, size: int) -> tuple[Array, int]:
    """Return the eigenvalues above rounding, and of how many rows they are."""
    rows = problem.rows
    matrix = WeightedKernel(rows, problem.kernel)
    chosen, total = matrix.support, len(matrix.support)
    if not total:
        return np.empty(0), 0
    if total > size:
        chosen = np.sort(problem.rng.choice(chosen, size, replace=False))
    masses = matrix.weights[chosen] * (total / len(chosen))
    values = Spectrum(matrix, Dictionary(chosen, masses)).values[::-1]
    noise = 0.0  # that of float64 is cut off already
    if is_given(problem.kernel):
        noise = relative_cut(len(chosen), float_type(rows.X.dtype))
    return values[values > noise * values[0]], len(chosen)


def _smallest_constant(values: Array, exponent: float) -> float:
    """Return the least c with ``λ_i ≤ c i^−α``."""
    if not np.isfinite(exponent):
        return float(values.max(initial=0.0))
    return float((values * np.arange(1, len(values) + 1) ** exponent).max())


def _fit(values: Array) -> tuple[float, float, float]:
    """Return α, and how well a power law and an exponential fit."""
    if len(values) < 3:
        return np.inf, 1.0, 1.0
    spread = np.geomspace(1, len(values), _FITTED_POINTS).round().astype(np.intp)
    ranks = np.unique(spread)
    logs = np.log(values[ranks - 1])
    slope, r_squared = _line(np.log(ranks), logs)
    return -slope, r_squared, _line(ranks.astype(np.float64), logs)[1]


def _line(x: Array, y: Array) -> tuple[float, float]:
    """Return the slope of the least-squares line, and its R²."""
    x, y = x - x.mean(), y - y.mean()
    total = float(y @ y)
    slope = float(x @ y) / float(x @ x)
    return slope, slope * float(x @ y) / total if total > 0.0 else 1.0
