"""How the cost carries over to rows that the fit has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from sketchmeans.data.input import check_weights
from sketchmeans.theory.problem import check_below
from sketchmeans.theory.results import Result


@dataclass(frozen=True, repr=False)
class Risk(Result):
    """The cost of fitted centres on new rows, as an estimate of the expected one.

    Attributes
    ----------
    cost : float
        ``W(C, μ_test)``.
    lower, upper : float
        The interval for ``W(C, μ)``, the expected cost of these centres ...
    confidence : float
        ... and about the probability with which it holds, over draws of test rows.
    standard_error : float
        Of `cost`.
    n_samples : float
        Test rows, or the sum of their weights.
    training_cost : float
        ``W(C, μ_n)``, the cost on the rows of the fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.theory import risk
    >>> X = load_iris().data
    >>> found = risk(SketchedKMeans(3, random_state=0).fit(X[::2]), X[1::2])
    >>> found.lower < found.cost < found.upper
    True
    """

    cost: float
    lower: float
    upper: float
    confidence: float
    standard_error: float
    n_samples: float
    training_cost: float
    _shown_properties: ClassVar[tuple[str, ...]] = ("gap", "gap_lower", "gap_upper")

    @property
    def gap(self) -> float:
        """The generalisation gap: the cost on test rows less that on training rows."""
        return self.cost - self.training_cost

    @property
    def gap_lower(self) -> float:
        """The gap at the lower end of the interval."""
        return self.lower - self.training_cost

    @property
    def gap_upper(self) -> float:
        """The gap at the upper end of the interval."""
        return self.upper - self.training_cost


def risk(
    model: Any, X_test: Any, confidence: float = 0.95, sample_weight: Any = None
) -> Risk:
    """Estimate the expected cost of fitted centres from rows that the fit has not seen.

    The costs of independent test rows are independent given the centres, so their mean
    has Student's interval ``W(C, μ_test) ± t s/√n``, s their standard deviation: right
    for many rows, a little narrow for few with costs far from normal.  The training
    cost, and so its part in the gap, is taken as it is.

    One pass of n·m·(d + k) over the test rows.

    Parameters
    ----------
    model : fitted KernelKMeans, NystromKMeans or SketchedKMeans
    X_test : array-like or sparse matrix of shape (n, d)
        At least two rows, drawn as those of the fit were, but not among them.
    confidence : float, default=0.95
        Of the interval.
    sample_weight : array-like of shape (n,), optional
        A row of weight 3 counts as three rows; the weights should add up to more than
        one, and to the number of rows that they stand for.

    References
    ----------
    CR18 Def. 1 and §5, where ``W(C, μ_test)`` stands for ``W(C, μ)``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sketchmeans import NystromKMeans
    >>> X = load_digits().data
    >>> model = NystromKMeans(10, n_landmarks=100, random_state=0).fit(X[:1000])
    >>> found = risk(model, X[1000:])
    >>> found.lower < found.cost < found.upper, found.gap > 0
    (True, True)
    """
    confidence = check_below("confidence", confidence)
    if not (hasattr(model, "transform") and hasattr(model, "cost")):
        raise ValueError(
            f"model={model!r} should be a fitted KernelKMeans, NystromKMeans or "
            "SketchedKMeans."
        )
    check_is_fitted(model, "cost_")
    distances = np.asarray(model.transform(X_test), dtype=np.float64)
    costs = np.square(distances.min(axis=1))
    weights = check_weights(sample_weight, len(costs))
    if weights is None:
        weights = np.ones(len(costs))
    total = float(weights.sum())
    if total <= 1.0:
        raise ValueError(
            f"X_test with a total weight of {total:g} should have more than one row: "
            "an interval needs their spread."
        )
    mean = float(weights @ costs) / total
    variance = float(weights @ np.square(costs - mean)) / (total - 1.0)
    error = float(np.sqrt(variance / total))
    reach = float(stats.t.isf(0.5 * (1.0 - confidence), total - 1.0)) * error
    lower, upper = max(mean - reach, 0.0), mean + reach
    return Risk(mean, lower, upper, confidence, error, total, float(model.cost_))
