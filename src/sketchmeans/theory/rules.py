"""The table of rules that say how many landmarks the theory asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

from sketchmeans.theory.checks import check_below, check_positive

Values = dict[str, float]


@dataclass(frozen=True)
class Rule:
    """What a theorem says: the names are those of `LandmarkBudget`."""

    size: Callable[[int, int, Values], float]
    source: str
    formula: str
    selection: str
    promise: str
    takes: tuple[str, ...]
    needs: tuple[str, ...] = ()
    constants_known: bool = False


#: Parameters of the rules, in the order in which they are shown.
PARAMETERS = ("gamma_ridge", "eps", "delta", "kappa", "effective_dimension")

_CR18_RATE = "excess risk O(k/sqrt(n)), as of exact kernel k-means"
_L21_RATE = "excess risk O(sqrt(k/n) log(n/delta)), optimal up to the log"
_PRESERVING = "gamma-preserving (CR18 Def. 2), hence the excess cost below (Lemma 2)"
_UNIFORM = "uniformly at random"
_BY_SCORES = "in proportion to ridge leverage scores"
_REPLACED = ", with replacement"


def confidence_factor(values: Values) -> float:
    """Return the factor ``ln(1/δ)`` of L21, never a discount."""
    return max(1.0, log(1.0 / values["delta"])) if "delta" in values else 1.0


def _lemma_factor(n: int, values: Values) -> float:
    return 12.0 * log(n / values["delta"]) / values["eps"] ** 2


def _sqrt_n(n: int, k: int, values: Values) -> float:
    return sqrt(n) * confidence_factor(values)


def _sqrt_nk(n: int, k: int, values: Values) -> float:
    return sqrt(n * k) * confidence_factor(values)


def _theorem4(n: int, k: int, values: Values) -> float:
    return (
        sqrt(n / k) * min(k, values["effective_dimension"]) * confidence_factor(values)
    )


def _dimension(n: int, k: int, values: Values) -> float:
    return values["effective_dimension"]


def _lemma1(n: int, k: int, values: Values) -> float:
    ratio = n * values["kappa"] ** 2 / values["gamma_ridge"]
    return ratio * _lemma_factor(n, values)


def _lemma3(n: int, k: int, values: Values) -> float:
    dimension = values["effective_dimension"] * max(values["kappa"] ** 2, 1.0)
    return dimension * _lemma_factor(n, values)


RULES = {
    "sqrt-n": Rule(
        _sqrt_n,
        "CR18 Theorem 1",
        "sqrt(n)",
        _UNIFORM,
        f"{_CR18_RATE}; O(sqrt(k/n)) where the spectrum decays (L21 Theorem 5)",
        takes=("delta",),
    ),
    "sqrt-nk": Rule(
        _sqrt_nk, "L21 Theorem 4", "sqrt(nk)", _UNIFORM, _L21_RATE, takes=("delta",)
    ),
    "theorem4": Rule(
        _theorem4,
        "L21 Theorem 4",
        "sqrt(n/k) min(k, d_eff(1))",
        _UNIFORM,
        _L21_RATE,
        takes=("delta", "effective_dimension"),
        needs=("effective_dimension",),
    ),
    "effective-dimension": Rule(
        _dimension,
        "CR18 section 6",
        "d_eff(sqrt(n))",
        _BY_SCORES,
        _CR18_RATE,
        takes=("effective_dimension",),
        needs=("effective_dimension",),
    ),
    "lemma1": Rule(
        _lemma1,
        "CR18 Lemma 1",
        "12 kappa^2 (n/gamma_ridge) ln(n/delta)/eps^2",
        _UNIFORM + _REPLACED,
        _PRESERVING,
        takes=PARAMETERS,
        constants_known=True,
    ),
    "lemma3": Rule(
        _lemma3,
        "CR18 Lemma 3",
        "12 max(kappa^2, 1) d_eff(gamma_ridge) ln(n/delta)/eps^2",
        _BY_SCORES + _REPLACED,
        _PRESERVING,
        takes=PARAMETERS,
        needs=("effective_dimension",),
        constants_known=True,
    ),
}


def checked_values(rule: str, given: dict[str, Any], n: int) -> Values:
    """Return the parameters of a rule, those that are left out by default."""
    chosen, values = RULES[rule], {}
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
    for name in chosen.needs:
        if name not in values:
            raise ValueError(
                f"{name}=None should be a number > 0 with rule={rule!r}: "
                f"sketchmeans.diagnostics.{name} finds it."
            )
    if values.get("effective_dimension", 0.0) > n:
        raise ValueError(
            f"effective_dimension={values['effective_dimension']:g} should be <= n={n}."
        )
    if chosen.constants_known:
        return {"gamma_ridge": sqrt(n), "eps": 0.5, "delta": 0.1, "kappa": 1.0} | values
    return values
