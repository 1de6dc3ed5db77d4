"""Several models on the same rows, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from sketchmeans.cluster import SketchedKMeans
from sketchmeans.diagnostics.agreement import (
    adjusted_rand_score,
    normalized_mutual_info_score,
)
from sketchmeans.diagnostics.certificate import certificate
from sketchmeans.numerics.linalg import Array
from sketchmeans.theory.results import Result

#: Seconds to look for a proof, for each model.
_PROOF_SECONDS = 5.0


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Results of some models on the same rows.

    Attributes
    ----------
    names : tuple of str
    seconds : ndarray
        Duration of each fit.
    cost : ndarray
        ``W`` of each fit; only costs of the same kernel are in the same units.
    ratio : ndarray
        The certified ratio: the cost is at most this many times the optimum; at a
        confidence of 95% where 5 seconds are too few to be certain.  NaN for a kernel
        that has no certificate.
    n_landmarks : ndarray
        All rows for exact kernel k-means, 0 for plain k-means.
    agreement : ndarray of shape (models, models)
        Adjusted Rand index between the labels.
    class_information : ndarray or None
        Normalised mutual information with known classes.
    best : int
        The lowest cost among the models whose cost is in the units of the first.
    """

    names: tuple[str, ...]
    seconds: Array
    cost: Array
    ratio: Array
    n_landmarks: Array
    agreement: Array
    class_information: Array | None
    best: int


def compare_models(
    models: Mapping[str, Any],
    X: Any,
    y: Any = None,
    *,
    on_model: Callable[[str], Any] = lambda name: None,
) -> Comparison:
    """Fit some models to the same rows and compare them.

    Parameters
    ----------
    models : mapping of str to KernelKMeans, NystromKMeans or SketchedKMeans
        By name; they are cloned.
    X : array-like, sparse matrix, path or `Source`, of shape (n, d)
    y : array-like of shape (n,), optional
        Known classes.
    on_model : callable, optional
        Called with each name before its fit.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sketchmeans import NystromKMeans, SketchedKMeans
    >>> X, y = load_digits(return_X_y=True)
    >>> found = compare_models(
    ...     {"kernel": NystromKMeans(10, random_state=0),
    ...      "plain": SketchedKMeans(10, random_state=0)}, X, y)
    >>> bool(found.agreement[0, 1] > 0.5)
    True
    """
    if not models:
        raise ValueError(f"models={models!r} should have at least one model.")
    fits, seconds, ratios = [], [], []
    for name, model in models.items():
        on_model(name)
        start = time.perf_counter()
        fits.append(clone(model).fit(X))
        seconds.append(time.perf_counter() - start)
        ratios.append(_certify(fits[-1], X))
    labels = [fit.labels_ for fit in fits]
    costs = np.array([fit.cost_ for fit in fits])
    comparable = [_name_units(fit) == _name_units(fits[0]) for fit in fits]
    agreement = [[adjusted_rand_score(a, b) for b in labels] for a in labels]
    information = None
    if y is not None:
        information = np.array([normalized_mutual_info_score(y, one) for one in labels])
    return Comparison(
        names=tuple(models),
        seconds=np.array(seconds),
        cost=costs,
        ratio=np.array(ratios),
        n_landmarks=np.array([len(getattr(fit, "dual_coef_", ())) for fit in fits]),
        agreement=np.array(agreement),
        class_information=information,
        best=int(np.argmin(np.where(comparable, costs, np.inf))),
    )


def _certify(model: Any, X: Any) -> float:
    kernel = getattr(model, "kernel_", None)
    is_covered = kernel is None or kernel.positive_definite
    if not is_covered:
        return float("nan")
    return certificate(model, X, max_seconds=_PROOF_SECONDS, random_state=0).ratio


def _name_units(model: Any) -> str:
    """Return the units of the cost: only costs in the same units are comparable."""
    if isinstance(model, SketchedKMeans):
        return "features"
    return f"{model.kernel_!r} {getattr(model, 'reducer_', None)!r}"
