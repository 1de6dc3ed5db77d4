"""How many sketched features the theorems of B14 ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from sketchmeans.numerics.parameters import (
    check_integer,
    check_integer_or,
    check_option,
)
from sketchmeans.reduction.svd import range_width
from sketchmeans.theory.problem import check_below
from sketchmeans.theory.results import Result, format_value

#: δ with which B14 proves its theorems.
_PAPER_DELTA = 0.01
#: Bounds of ε and δ within which the theorem of each method says something.
_LIMITS = {"sampling": (1 / 3, 0.06), "projection": (1 / 3, 0.25), "svd": (1.0, 1.0)}


@dataclass(frozen=True, repr=False)
class SketchSize(Result):
    """The number of features for which a theorem of B14 holds.

    Attributes
    ----------
    method : str
    theorem : int
        Number of the theorem in B14.
    n_clusters, eps, delta, n_features
        As given.
    n_components : int
        The theorem's r.
    svd_width : int or None
        Columns of Lemma 4's range finder, where the method has one.
    factor : float
        The cost on all features of an optimal partition of the sketch is at most this
        many times the optimum ...
    probability : float
        ... with at least this probability.

    Examples
    --------
    >>> from sketchmeans.theory import sketch_size
    >>> found = sketch_size("svd", 10)
    >>> found.n_components, found.svd_width, found.theorem
    (10, 3345, 13)
    """

    method: str
    theorem: int
    n_clusters: int
    eps: float
    delta: float
    n_features: int | None
    n_components: int
    svd_width: int | None
    factor: float
    probability: float
    _shown_properties: ClassVar[tuple[str, ...]] = ("reduces", "note")

    @property
    def reduces(self) -> bool | None:
        """Whether that is fewer features than there are; None where this is unknown."""
        return None if self.n_features is None else self.n_components < self.n_features

    @property
    def note(self) -> str:
        """What the number means in practice."""
        if self.theorem == 13:
            return (
                "As many features as clusters suffice; the width of the range finder "
                "is an artefact of the proof: eps=1/3 does well in practice."
            )
        return (
            "The constants are artefacts of the proof, not advice: a few features per "
            "cluster do well in practice."
        )

    def _title(self) -> str:
        return (
            f"SketchSize: B14 Theorem {self.theorem} ({self.method}), "
            f"n_clusters={self.n_clusters}, eps={self.eps:g}, delta={self.delta:g}"
        )

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("n_components", format_value(self.n_components))]
        if self.svd_width is not None:
            lines.append(("svd_width", format_value(self.svd_width)))
        guarantee = f"cost <= {self.factor:.4g} x optimum with probability "
        lines.append(("guarantee", guarantee + f">= {self.probability:.3g}"))
        if self.reduces is not None:
            verdict = "fewer" if self.reduces else "not fewer"
            lines.append(("", f"{verdict} than n_features={self.n_features:,}"))
        return [*lines, ("", self.note)]


def sketch_size(
    method: str,
    n_clusters: int,
    eps: float = 0.3,
    delta: float = _PAPER_DELTA,
    n_features: int | None = None,
) -> SketchSize:
    """Return the number of features that the theorems of B14 ask for.

    - "sampling" (Theorem 11): ``r = 4 c₁ k ln(2k/δ)/ε²`` with ``c₁ = 16·10⁶``; within
      3 + ε with probability 0.24 − 4δ.
    - "projection" (Theorem 12): ``r = c₂ k/ε²`` with ``c₂ = 3330·15²``; within 2 + ε
      with probability 1 − 4δ.
    - "svd" (Theorem 13): ``r = k``, from a range finder of ``k + ⌈k/(εδ)⌉ + 1``
      columns; within 2 + ε with probability 1 − δ.

    The paper proves this for δ = 0.01.  For a smaller δ the constants grow as its
    proofs ask: c₁ by (0.01/δ)², and c₂ = 225·max(576(ln 18 + ln(1/δ)/k), 2/δ) once
    that is larger.  For k = 1 the paper's c₂ is too small, and the same rule applies.

    These are sizes of 10⁷ and more, artefacts of the proofs; the default sizes of
    `FeatureSampling` and `SignProjection` are what does well in practice.

    Costs nothing.

    Parameters
    ----------
    method : {"sampling", "projection", "svd"}
    n_clusters : int
        k.
    eps : float, default=0.3
        ε: below 1/3 for "sampling" and "projection", below 1 for "svd".
    delta : float, default=0.01
        Failure probability of each of the lemmas, below 0.06 for "sampling", 0.25 for
        "projection" and 1 for "svd".
    n_features : int, optional
        d; the result says whether the theorem's size is a reduction at all.

    Examples
    --------
    >>> sketch_size("projection", 10, eps=0.3, n_features=784)
    SketchSize: B14 Theorem 12 (projection), n_clusters=10, eps=0.3, delta=0.01
      n_components   83,250,000
      guarantee      cost <= 2.3 x optimum with probability >= 0.96
      not fewer than n_features=784
      The constants are artefacts of the proof, not advice: ...
    """
    check_option("method", method, tuple(_LIMITS))
    k = check_integer("n_clusters", n_clusters)
    check_integer_or(None, "n_features", n_features)
    largest_eps, largest_delta = _LIMITS[method]
    eps = check_below("eps", eps, largest_eps)
    delta = check_below("delta", delta, largest_delta)
    width = None
    if method == "sampling":
        # The proof ends with 4·10³ε in place of ε; that number grows as 1/δ, from the
        # 1.6ε/√δ of Lemma 8, which is squared.
        inner = eps / (4000.0 * max(1.0, _PAPER_DELTA / delta))
        r = math.ceil(4 * k * math.log(2 * k / delta) / inner**2)
        width = range_width(k, inner)
        # Lemma 7 may fail with probability 3/4, Lemma 4 with 0.01, Lemma 8 with 3δ.
        theorem, factor, probability = 11, 3.0 + eps, 0.24 - 4.0 * delta
    elif method == "projection":
        # Lemma 10's net of 18ᵏ points, then the Markov and Chebyshev steps.
        net = 576.0 * (math.log(18.0) + math.log(1.0 / delta) / k)
        r = math.ceil(15**2 * max(3330.0, net, 2.0 / delta) * k / eps**2)
        theorem, factor, probability = 12, 2.0 + eps, 1.0 - 4.0 * delta
    else:
        # Markov's inequality turns ε into ε/δ with probability 1 − δ.
        r, width = k, range_width(k, eps * delta)
        theorem, factor, probability = 13, 2.0 + eps, 1.0 - delta
    return SketchSize(
        method, theorem, k, eps, delta, n_features, r, width, factor, probability
    )
