"""How well clusterings agree: with known classes, and with each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from sketchmeans.cluster import SketchedKMeans
from sketchmeans.data.input import check_weights
from sketchmeans.diagnostics.certificate import certificate
from sketchmeans.diagnostics.certificate_result import Certificate
from sketchmeans.numerics.linalg import Array
from sketchmeans.theory.results import Result

__all__ = [
    "Agreement",
    "Comparison",
    "adjusted_rand_score",
    "agreement",
    "clustering_accuracy",
    "compare_models",
    "normalized_mutual_info_score",
]

#: Seconds to look for a proof, for each model, and a ratio that is close enough.
_PROOF_SECONDS, _PROOF_RATIO = 5.0, 1.03


def clustering_accuracy(y: Any, labels: Any, sample_weight: Any = None) -> float:
    """Return the share of rows whose cluster is matched with their class.

    Each cluster is matched with at most one class and each class with at most one
    cluster, such that most rows agree (the Hungarian algorithm).  There may be more
    clusters than classes or the other way round: rows of those left over count as
    wrong.  That is ``max_π Σ_i w_i [π(label_i) = y_i] / Σ_i w_i`` over matchings π.

    Costs n for the counts, and their size times its smaller side.

    Parameters
    ----------
    y, labels : array-like of shape (n,)
        Classes and clusters: numbers, strings, or any other keys of a dict.
    sample_weight : array-like of shape (n,), optional
        A row of weight 3 counts as three rows.

    Returns
    -------
    accuracy : float
        Between 0 and 1; 1 where clusters and classes are the same partition.

    See Also
    --------
    agreement : Other measures of two labellings.

    Examples
    --------
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 2])
    0.75
    """
    classes, clusters = _encode("y", y)[0], _encode("labels", labels)[0]
    if len(classes) != len(clusters):
        raise ValueError(
            f"labels of {len(clusters)} rows should be of as many as y, {len(classes)}."
        )
    weights = check_weights(sample_weight, len(classes))
    counts = np.zeros((classes.max() + 1, clusters.max() + 1))
    np.add.at(counts, (classes, clusters), 1.0 if weights is None else weights)
    return _match(counts)


@dataclass(frozen=True, repr=False)
class Agreement(Result):
    """How clusters and known classes go together.

    Attributes
    ----------
    accuracy : float
        See `clustering_accuracy`.
    adjusted_rand, normalized_mutual_information : float
        As scikit-learn has them: 1 for the same partition, 0 by chance.
    classes : tuple of str
    counts : ndarray of shape (number of classes, number of clusters)
        Rows of each class in each cluster.

    Examples
    --------
    >>> from sketchmeans.diagnostics import agreement
    >>> agreement([0, 0, 1, 1], [1, 1, 0, 0], 2)
    Agreement
      accuracy                        1
      adjusted_rand                   1
      normalized_mutual_information   1
      classes                         ('0', '1')
      counts                          4 values, 0 to 2
    """

    accuracy: float
    adjusted_rand: float
    normalized_mutual_information: float
    classes: tuple[str, ...]
    counts: Array


def agreement(y: Any, labels: Any, n_clusters: int) -> Agreement:
    """Compare clusters with known classes.

    By `clustering_accuracy`, the adjusted Rand index ``(RI − E RI)/(1 − E RI)`` of
    pairs of rows and the information ``2 I(y, labels)/(H(y) + H(labels))``.  Costs n
    for the counts.

    Parameters
    ----------
    y : array-like of shape (n,)
        Classes: numbers, strings, or any other keys of a dict.
    labels : ndarray of shape (n,)
        Clusters, from 0 to `n_clusters` less 1.
    n_clusters : int

    Examples
    --------
    >>> import numpy as np
    >>> found = agreement(["a", "a", "b", "b"], np.array([1, 1, 0, 2]), 3)
    >>> found.accuracy, found.classes
    (0.75, ('a', 'b'))
    """
    codes, names = _encode("y", y)
    counts = np.zeros((len(names), n_clusters), dtype=np.int64)
    np.add.at(counts, (codes, labels), 1)
    rand = float(adjusted_rand_score(codes, labels))
    information = float(normalized_mutual_info_score(codes, labels))
    classes = tuple(str(name) for name in names)
    return Agreement(_match(counts), rand, information, classes, counts)


def _match(counts: Array) -> float:
    """Return the share of rows in the best matching of classes and clusters."""
    matched = counts[linear_sum_assignment(counts, maximize=True)]
    return float(matched.sum() / counts.sum())


def _encode(name: str, labels: Any) -> tuple[Array, list[Any]]:
    """Return the labels as numbers from 0, and the label of each number."""
    # An array of several types would turn all labels into strings.
    values = np.asarray(labels, dtype=object if isinstance(labels, list) else None)
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"{name}.shape={values.shape} should be (n,) with n >= 1, a label per row."
        )
    missing = np.asarray(values != values, dtype=bool)
    if missing.any():
        row = int(missing.argmax())
        raise ValueError(f"{name}[{row}]={values[row]} should be a label.")
    if values.dtype != object:
        names, codes = np.unique(values, return_inverse=True)
        return codes, names.tolist()
    known: dict[Any, int] = {}  # labels of several types cannot be sorted
    codes = np.array([known.setdefault(label, len(known)) for label in values])
    return codes, list(known)


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
    certificate : Certificate or None
        What is proved of the best.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import SketchedKMeans
    >>> from sketchmeans.diagnostics import compare_models
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> models = {"two": SketchedKMeans(2), "three": SketchedKMeans(3)}
    >>> compare_models(models, X).names
    ('two', 'three')
    """

    names: tuple[str, ...]
    seconds: Array
    cost: Array
    ratio: Array
    n_landmarks: Array
    agreement: Array
    class_information: Array | None
    best: int
    certificate: Certificate | None


def compare_models(
    models: Mapping[str, Any],
    X: Any,
    y: Any = None,
    *,
    on_model: Callable[[str], Any] = lambda name: None,
) -> Comparison:
    """Fit some models to the same rows and compare them.

    Labels of two models by the adjusted Rand index ``(RI − E RI)/(1 − E RI)``, each
    fit with the best one possible by ``ratio = cost/lower_bound`` of its `certificate`.

    Costs a fit of each, and up to 5 seconds for what is proved of each.

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
    >>> models = {"kernel": NystromKMeans(10), "plain": SketchedKMeans(10)}
    >>> found = compare_models(models, X, y)
    >>> bool(found.agreement[0, 1] > 0.5)
    True
    """
    if not models:
        raise ValueError(f"models={models!r} should have at least one model.")
    fits, seconds, proofs = [], [], []
    for name, model in models.items():
        on_model(name)
        start = time.perf_counter()
        fits.append(clone(model).fit(X))
        seconds.append(time.perf_counter() - start)
        proofs.append(_certify(fits[-1], X))
    labels = [fit.labels_ for fit in fits]
    costs = np.array([fit.cost_ for fit in fits])
    comparable = [_name_units(fit) == _name_units(fits[0]) for fit in fits]
    agreement = [[adjusted_rand_score(a, b) for b in labels] for a in labels]
    information = None
    if y is not None:
        information = np.array([normalized_mutual_info_score(y, one) for one in labels])
    best = int(np.argmin(np.where(comparable, costs, np.inf)))
    return Comparison(
        names=tuple(models),
        seconds=np.array(seconds),
        cost=costs,
        ratio=np.array([np.nan if proof is None else proof.ratio for proof in proofs]),
        n_landmarks=np.array([len(getattr(fit, "dual_coef_", ())) for fit in fits]),
        agreement=np.array(agreement),
        class_information=information,
        best=best,
        certificate=proofs[best],
    )


def _certify(model: Any, X: Any) -> Certificate | None:
    kernel = getattr(model, "kernel_", None)
    if not (kernel is None or kernel.positive_definite):
        return None
    return certificate(
        model, X, max_seconds=_PROOF_SECONDS, ratio=_PROOF_RATIO, random_state=0
    )


def _name_units(model: Any) -> str:
    """Return the units of the cost: only costs in the same units are comparable."""
    if isinstance(model, SketchedKMeans):
        return "features"
    return f"{model.kernel_!r} {getattr(model, 'reducer_', None)!r}"
