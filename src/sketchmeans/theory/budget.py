"""How many landmarks the theory asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any, ClassVar

from sketchmeans.numerics.parameters import check_integer, check_option
from sketchmeans.theory.problem import check_below, check_positive
from sketchmeans.theory.results import Result, format_value

Values = dict[str, float]

#: Parameters of the rules, in the order in which they are shown.
_PARAMETERS = ("gamma_ridge", "eps", "delta", "kappa", "effective_dimension")


@dataclass(frozen=True, repr=False)
class LandmarkBudget(Result):
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
        The formula of m.
    selection : str
        How the landmarks have to be drawn.
    promise : str
        What this number of landmarks guarantees.
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

    Examples
    --------
    >>> from sketchmeans.theory import landmark_budget
    >>> found = landmark_budget(10_000, 10, rule="sqrt-nk")
    >>> found.n_landmarks, found.formula, found.constants_known
    (317, 'sqrt(nk)', False)
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
        names = ("excess_cost", "probability", *_PARAMETERS, "exceeds_n")
        known = [name for name in names if values[name] is not None]
        return [
            ("n_landmarks", f"{self.n_landmarks:,} = {self.formula}"),
            ("selection", self.selection),
            ("promise", self.promise),
            *((name, format_value(values[name])) for name in known),
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

    - "sqrt-n": ``√n`` (CR18 Theorem 1).
    - "sqrt-n-log-n": ``√n ln n`` (CR18 §4: Lemma 1 at γ = √n without its constants).
    - "sqrt-nk": ``√(nk)`` (L21 Theorem 4 for any kernel).
    - "theorem4": ``√(n/k) min(k, d_eff(1))`` (L21 Theorem 4).
    - "linear-k": ``√n min(k, d_eff(1))/k`` (L21 §4.2, the remark): fewer, for a risk
      that grows as k and not as √k.
    - "effective-dimension": ``d_eff(√n)``, drawn by leverage scores (CR18 §6).
    - "fast-rate": ``d_eff(1)``, likewise (CR18 §6): an excess *cost* of O(k/n).
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
        One of the list above.  Parameters that a rule does not take must be left out.
    gamma_ridge : float or None, default=None
        γ > 0 of the lemmas; None is √n.
    eps : float or None, default=None
        ε of the lemmas, between 0 and 1; None is 0.5.
    delta : float or None, default=None
        Failure probability δ, between 0 and 1; None is 0.1 in the lemmas.
    kappa : float or None, default=None
        Largest ``‖φ(x)‖ = √k(x, x)``; None is 1, as for the rbf kernel.
    effective_dimension : float or None, default=None
        ``d_eff``, at γ = 1 for "theorem4", "linear-k" and "fast-rate", at √n for
        "effective-dimension", and at `gamma_ridge` for the lemmas: see
        `sketchmeans.diagnostics.effective_dimension`.
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
    chosen = _RULES[check_option("rule", rule, tuple(_RULES))]
    given = (gamma_ridge, eps, delta, kappa, effective_dimension)
    values = _check_values(rule, dict(zip(_PARAMETERS, given, strict=True)), size)
    excess_cost = None
    if chosen.constants_known:  # Lemma 2
        rank = min(k, values.get("effective_dimension", k))
        excess_cost = rank * values["gamma_ridge"] / ((1.0 - values["eps"]) * size)
    has_factor = not chosen.constants_known and _log_factor(values) > 1.0
    return LandmarkBudget(
        rule=rule,
        source=chosen.source,
        n_samples=size,
        n_clusters=k,
        n_landmarks=ceil(chosen.size(size, k, values)),
        formula=chosen.formula + (" ln(1/delta)" if has_factor else ""),
        selection=chosen.selection,
        promise=chosen.promise,
        constants_known=chosen.constants_known,
        excess_cost=excess_cost,
        probability=1.0 - values["delta"] if "delta" in values else None,
        **values,
    )


def _log_factor(values: Values) -> float:
    """Return the factor ``ln(1/δ)`` of L21, never a discount."""
    return max(1.0, log(1.0 / values["delta"])) if "delta" in values else 1.0


def _lemma_factor(n: int, values: Values) -> float:
    return 12.0 * log(n / values["delta"]) / values["eps"] ** 2


@dataclass(frozen=True)
class _Rule:
    """What a theorem says: the names are those of `LandmarkBudget`."""

    source: str
    formula: str
    size: Callable[[int, int, Values], float]
    selection: str
    promise: str
    takes: tuple[str, ...]
    constants_known: bool = False


_CR18_RATE = "excess risk O(k/sqrt(n)), as of exact kernel k-means"
_L21_RATE = "excess risk O(sqrt(k/n) log(n/delta)), optimal up to the log"
_PRESERVING = "gamma-preserving (CR18 Def. 2), hence the excess cost below (Lemma 2)"
_UNIFORM = "uniformly at random"
_BY_SCORES = "in proportion to ridge leverage scores"

_RULES = {
    "sqrt-n": _Rule(
        "CR18 Theorem 1",
        "sqrt(n)",
        lambda n, k, values: sqrt(n) * _log_factor(values),
        _UNIFORM,
        _CR18_RATE,
        ("delta",),
    ),
    "sqrt-n-log-n": _Rule(
        "CR18 section 4",
        "sqrt(n) ln(n)",
        lambda n, k, values: sqrt(n) * max(log(n), 1.0),
        _UNIFORM,
        _CR18_RATE,
        (),
    ),
    "sqrt-nk": _Rule(
        "L21 Theorem 4",
        "sqrt(nk)",
        lambda n, k, values: sqrt(n * k) * _log_factor(values),
        _UNIFORM,
        _L21_RATE,
        ("delta",),
    ),
    "theorem4": _Rule(
        "L21 Theorem 4",
        "sqrt(n/k) min(k, d_eff(1))",
        lambda n, k, values: (
            sqrt(n / k) * min(k, values["effective_dimension"]) * _log_factor(values)
        ),
        _UNIFORM,
        _L21_RATE,
        ("delta", "effective_dimension"),
    ),
    "linear-k": _Rule(
        "L21 section 4.2",
        "sqrt(n) min(k, d_eff(1))/k",
        lambda n, k, values: (
            sqrt(n) * min(k, values["effective_dimension"]) / k * _log_factor(values)
        ),
        _UNIFORM,
        _CR18_RATE,
        ("delta", "effective_dimension"),
    ),
    "effective-dimension": _Rule(
        "CR18 section 6",
        "d_eff(sqrt(n))",
        lambda n, k, values: values["effective_dimension"],
        _BY_SCORES,
        _CR18_RATE,
        ("effective_dimension",),
    ),
    "fast-rate": _Rule(
        "CR18 section 6",
        "d_eff(1)",
        lambda n, k, values: values["effective_dimension"],
        _BY_SCORES,
        "excess cost O(k/n) (Lemma 2 at gamma_ridge=1); the risk only if its rate is "
        "1/n, too",
        ("effective_dimension",),
    ),
    "lemma1": _Rule(
        "CR18 Lemma 1",
        "12 kappa^2 (n/gamma_ridge) ln(n/delta)/eps^2",
        lambda n, k, values: (
            n * values["kappa"] ** 2 / values["gamma_ridge"] * _lemma_factor(n, values)
        ),
        f"{_UNIFORM}, with replacement",
        _PRESERVING,
        _PARAMETERS,
        constants_known=True,
    ),
    "lemma3": _Rule(
        "CR18 Lemma 3",
        "12 max(kappa^2, 1) d_eff(gamma_ridge) ln(n/delta)/eps^2",
        lambda n, k, values: (
            values["effective_dimension"]
            * max(values["kappa"] ** 2, 1.0)
            * _lemma_factor(n, values)
        ),
        f"{_BY_SCORES}, with replacement",
        _PRESERVING,
        _PARAMETERS,
        constants_known=True,
    ),
}


def _check_values(rule: str, given: dict[str, Any], n: int) -> Values:
    """Return the parameters of a rule; what is left out takes its default."""
    chosen, values = _RULES[rule], {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in chosen.takes:
            raise ValueError(
                f"{name}={value!r} should be left out with rule={rule!r}, which takes "
                f"{list(chosen.takes)}."
            )
        check = check_below if name in ("eps", "delta") else check_positive
        values[name] = check(name, value)
    dimension = values.get("effective_dimension")
    if dimension is None and "d_eff" in chosen.formula:
        raise ValueError(
            f"effective_dimension=None should be a number > 0 with rule={rule!r}: "
            "sketchmeans.diagnostics.effective_dimension computes it."
        )
    if dimension is not None and dimension > n:
        raise ValueError(f"effective_dimension={dimension:g} should be <= n={n}.")
    if chosen.constants_known:
        return {"gamma_ridge": sqrt(n), "eps": 0.5, "delta": 0.1, "kappa": 1.0} | values
    return values
