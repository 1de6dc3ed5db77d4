"""How many landmarks the theory asks for."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from sketchmeans.numerics.parameters import check_integer, check_option
from sketchmeans.theory.base import Report, shown
from sketchmeans.theory.rules import (
    PARAMETERS,
    RULES,
    Values,
    checked_values,
    confidence_factor,
)


@dataclass(frozen=True, repr=False)
class LandmarkBudget(Report):
    """The number of landmarks for which a theorem holds.

    Attributes
    ----------
    rule : str
    source : str
        The paper and its theorem.
    n_samples, n_clusters : int
        n and k.
    n_landmarks : int
        The theorem's m, which may be more than n.
    formula : str
        What it is computed from.
    selection : str
        How the landmarks have to be drawn.
    promise : str
        What so many landmarks guarantee.
    constants_known : bool
        Whether m has the constants of the theorem; otherwise it is an order of
        magnitude, with the constant 1.
    excess_cost : float or None
        Where the lemmas of CR18 give one: the most by which the cost W of an optimal
        clustering in the span can exceed the optimum, ``min(k, d_eff) γ/((1 − ε)n)``.
    probability : float or None
        ... with at least this probability.
    gamma_ridge, eps, delta, kappa, effective_dimension : float or None
        As given or by default, where the rule has them.
    """

    rule: str
    source: str
    n_samples: int
    n_clusters: int
    n_landmarks: int
    formula: str
    selection: str
    promise: str
    constants_known: bool
    excess_cost: float | None = None
    probability: float | None = None
    gamma_ridge: float | None = None
    eps: float | None = None
    delta: float | None = None
    kappa: float | None = None
    effective_dimension: float | None = None
    _shown_properties: ClassVar[tuple[str, ...]] = ("exceeds_n", "note")

    @property
    def exceeds_n(self) -> bool:
        """Whether that is more landmarks than there are rows."""
        return self.n_landmarks > self.n_samples

    @property
    def note(self) -> str:
        """What the number means in practice."""
        if self.exceeds_n:
            return (
                "More than there are rows: here the theorem promises nothing that all "
                "rows, exact kernel k-means, would not give."
            )
        if self.constants_known:
            return "With the constants of the proof, which are far from sharp."
        return "An order of magnitude: the paper does not state the constant."

    def _title(self) -> str:
        return (
            f"LandmarkBudget: {self.rule!r} ({self.source}), "
            f"n={self.n_samples:,}, n_clusters={self.n_clusters:,}"
        )

    def _lines(self) -> list[tuple[str, str]]:
        values = self._values()
        numbers = ("excess_cost", "probability", *PARAMETERS, "exceeds_n")
        return [
            ("n_landmarks", f"{self.n_landmarks:,} = {self.formula}"),
            ("selection", self.selection),
            ("promise", self.promise),
            *(
                (name, shown(values[name]))
                for name in numbers
                if values[name] is not None
            ),
            ("", self.note),
        ]


def landmark_budget(
    n: int,
    n_clusters: int,
    *,
    rule: str = "sqrt-n",
    gamma_ridge: float | None = None,
    eps: float | None = None,
    delta: float | None = None,
    kappa: float | None = None,
    effective_dimension: float | None = None,
) -> LandmarkBudget:
    """Return the number of landmarks that a theorem asks for.

    - "sqrt-n": ``√n`` (CR18 Theorem 1, L21 Theorem 5).
    - "sqrt-nk": ``√(nk)`` (L21 Theorem 4 for any kernel).
    - "theorem4": ``√(n/k) min(k, d_eff(1))`` (L21 Theorem 4).
    - "effective-dimension": ``d_eff(√n)``, drawn by leverage scores (CR18 §6).
    - "lemma1": ``12 κ² (n/γ) ln(n/δ)/ε²`` (CR18 Lemma 1).
    - "lemma3": ``12 max(κ², 1) d_eff(γ) ln(n/δ)/ε²``, likewise (CR18 Lemma 3).

    Only the lemmas have constants.  The other rules are orders of magnitude: their
    constant is 1, and their logarithms are left out, but for the ``ln(1/δ)`` of L21
    where `delta` is given.  CR18 prints Lemma 3 with κ² in place of max(κ², 1), which
    cannot be meant: scaling the kernel and γ alike changes κ, but not what landmarks
    preserve.

    Parameters
    ----------
    n : int
        Rows.
    n_clusters : int
        Clusters k.
    rule : str, default="sqrt-n"
        One of the table.  What a rule does not take must be left out.
    gamma_ridge : float or None, default=None
        γ > 0 of the lemmas; None is √n.
    eps : float or None, default=None
        ε of the lemmas, between 0 and 1; None is 0.5.
    delta : float or None, default=None
        Failure probability δ, between 0 and 1; None is 0.1 in the lemmas.
    kappa : float or None, default=None
        Largest ``‖φ(x)‖ = √k(x, x)``; None is 1, as for the rbf kernel.
    effective_dimension : float or None, default=None
        ``d_eff``, at γ = 1 for "theorem4", at √n for "effective-dimension", and at
        `gamma_ridge` for the lemmas: see `sketchmeans.diagnostics.effective_dimension`.
        "lemma1" needs none, but promises more with one below k.

    Examples
    --------
    >>> landmark_budget(60_000, 10, rule="theorem4", effective_dimension=7)
    LandmarkBudget: 'theorem4' (L21 Theorem 4), n=60,000, n_clusters=10
      n_landmarks           543 = sqrt(n/k) min(k, d_eff(1))
      selection             uniformly at random
      promise               excess risk O(sqrt(k/n) log(n/delta)), ...
      effective_dimension   7
      exceeds_n             no
      An order of magnitude: the paper does not state the constant.
    """
    size = check_integer("n", n)
    k = check_integer("n_clusters", n_clusters)
    check_option("rule", rule, tuple(RULES))
    given = {
        "gamma_ridge": gamma_ridge,
        "eps": eps,
        "delta": delta,
        "kappa": kappa,
        "effective_dimension": effective_dimension,
    }
    chosen, values = RULES[rule], checked_values(rule, given, size)
    factor = not chosen.constants_known and confidence_factor(values) > 1.0
    return LandmarkBudget(
        rule=rule,
        source=chosen.source,
        n_samples=size,
        n_clusters=k,
        n_landmarks=ceil(chosen.size(size, k, values)),
        formula=chosen.formula + (" ln(1/delta)" if factor else ""),
        selection=chosen.selection,
        promise=chosen.promise,
        constants_known=chosen.constants_known,
        excess_cost=_excess_cost(size, k, values) if chosen.constants_known else None,
        probability=1.0 - values["delta"] if "delta" in values else None,
        **values,
    )


def _excess_cost(n: int, k: int, values: Values) -> float:
    """Return Lemma 2's bound, ``min(k, d_eff) γ/((1 − ε)n)``."""
    rank = min(k, values.get("effective_dimension", k))
    return rank * values["gamma_ridge"] / ((1.0 - values["eps"]) * n)
