"""What the lemmas' measurements say about the claims."""

from __future__ import annotations

from dataclasses import replace
from math import inf, log

import numpy as np
import pandas as pd

from experiments.draws import by_draw
from experiments.evidence import Evidence, Part, exactly, of_counts, over_draws
from experiments.sketch_lemmas import sketch_claims

#: ε and δ of Lemmas 1 and 3.
EPS, DELTA = 0.9, 0.1
#: The ridge of the ladder of sizes as a share of n.
FINE_SHARE = 500
SAMPLERS = ("uniform", "ridge leverage")
LADDER = tuple(int(m) for m in np.geomspace(10, 640, 13).round())
#: The table that is made for the claim that leverage scores need fewer.
MADE = "uneven"
#: ... and a real one on which §6 lets uniform draws do as well.
_MAY_BE_EVEN = ("mnist",)
_PARTS = ("Lemma 2", "ladder", "Prop. 3", "law", "singular values", "Theorem 4")


def claims(table: pd.DataFrame) -> list[Evidence]:
    parts = dict.fromkeys(_PARTS, table[:0]) | dict(iter(table.groupby("part")))
    return [
        _lemma_2_claim(parts["Lemma 2"]),
        _sizes_claim(table),
        _ladder_claim(parts["ladder"]),
        _prop_3_claim(parts["Prop. 3"], parts["law"]),
        *sketch_claims(parts["singular values"]),
        _theorem_4_claim(parts["Theorem 4"]),
    ]


def _lemma_2_claim(table: pd.DataFrame) -> Evidence:
    clear = table[table.bound > 1e-9]
    if clear.empty:
        return Evidence("CR4", (), "no such cells")
    used = clear.value / clear.bound
    words = ", ".join(
        f"{share:.1%} where {branch} binds"
        for branch, share in used.groupby(clear.branch).max().items()
    )
    part = exactly("largest share of the bound", float(used.max()), (-inf, 1.0))
    return Evidence(
        "CR4",
        [part],
        "10 rows of one table that is made, `small_groups`, k = 3, all partitions; "
        f"{len(clear)} cases; the median share is {used.median():.1%}, the largest "
        f"{words}",
    )


def asks_nothing(n: int, ridge: float, eps: float = EPS) -> bool:
    """Say whether the dictionary without landmarks is γ-preserving.

    Definition 2 is ``‖K − K̃‖₂ ≤ γε/(1 − ε)``, and ``‖K‖₂ ≤ tr K = n`` for the rbf
    kernel.

    >>> asks_nothing(1500, 1500 / 5, 0.9), asks_nothing(1500, 1500 / 5, 0.5)
    (True, False)
    """
    return ridge * eps / (1.0 - eps) >= n


def _sizes_claim(table: pd.DataFrame) -> Evidence:
    """Return how often dictionaries of the lemmas' sizes preserve γ."""
    parts: list[Part] = []
    lemmas = table[table.part.isin(["Lemma 1", "Lemma 3"])]
    for (lemma, name), mine in lemmas.groupby(["part", "dataset"]):
        kept = int((mine.value <= mine.bound).sum())
        label = f"{lemma} on {name}, m = {mine['size'].iloc[0]:.0f}: γ-preserving"
        part = of_counts(label, kept, len(mine), 1.0 - DELTA)
        if asks_nothing(int(mine.n.max()), float(mine.bound.min())):
            part = part.reported("cannot fail here")
        parts.append(part)
    note = ""
    if not any(part.can_fail for part in parts):
        note = (
            "at this γ and ε even no landmark at all is γ-preserving, as γε/(1 − ε) ≥ "
            "tr K; where the definition bites the lemmas ask for more rows than there "
            "are"
        )
    return Evidence("CR5", parts, note)


def _ladder_claim(ladder: pd.DataFrame) -> Evidence:
    """Return how many more uniform draws are needed, on tables not made for it.

    §6 says that m can be much smaller, and that it need not be: no table contradicts
    it, and the digits, where leverage scores are even, are reported.
    """
    words, parts, made, factors = [], [], [], []
    for name, mine in ladder.groupby("dataset"):
        wide = by_draw(mine, "method", "value")
        ratio = np.log2(wide[SAMPLERS[0]] / wide[SAMPLERS[1]])
        n = int(mine.n.iloc[0])
        # Lemma 1: m = c κ² (n/γ) ln(n/δ)/ε² with c = 12; `preserved_gamma` has ε = 1/2.
        constant = 0.25 * wide[SAMPLERS[0]].median() / (FINE_SHARE * log(n / DELTA))
        missed = wide[SAMPLERS[0]] > LADDER[-1]
        sizes = f"{wide[SAMPLERS[0]].median():.0f} uniform"
        known = f"{constant:.2g} in place of Lemma 1's 12"
        if missed.any():
            sizes = f"> {LADDER[-1]} uniform in {missed.mean():.0%} of the draws"
            known = "the constant is not known"
        sizes += f", {wide[SAMPLERS[1]].median():.0f} {SAMPLERS[1]}"
        words.append(f"{name} {sizes} ({known})")
        part = over_draws(f"log₂ uniform/scores on {name}", ratio, (1.0, inf))
        factor = f"{2.0**part.estimate:.1f} times fewer on {name}"
        if name == MADE:
            made.append(part)
            least = ", a lower bound" if missed.any() else ""
            factor = f"far fewer on `{name}`, made for it ({part}{least})"
        elif name in _MAY_BE_EVEN:
            parts.append(part.reported("which §6 allows: reported"))
            if part.low <= 0.0:
                factor = f"no fewer on {name}"
        else:
            parts.append(replace(part, one_sided=True))
        factors.append(factor)
    note = (
        f"{', '.join(factors)}, as §6 says may happen; median first sizes: "
        f"{'; '.join(words)}"
    )
    return Evidence("CR5s", parts, note, made)


def _prop_3_claim(seeds: pd.DataFrame, law: pd.DataFrame) -> Evidence:
    if seeds.empty:
        return Evidence("CR6", (), "no such cells")
    parts = [
        over_draws(f"ratio / bound in {space}", mine.value / mine.bound, (-inf, 1.0))
        for space, mine in seeds.groupby("sampler")
    ]
    for _, row in law.iterrows():
        part = exactly("χ² of the D² law", row.value, (-inf, row.bound))
        parts.append(part.reported("a test of the library's sampler: reported"))
    return Evidence("CR6", parts, f"the mean ratio is {seeds.value.mean():.2f}")


def _theorem_4_claim(table: pd.DataFrame) -> Evidence:
    parts = [
        over_draws(
            f"ratio / bound on {name}",
            mine.value / mine.bound,
            (-inf, 1.0),
            can_fail=False,
        )
        for name, mine in table.groupby("dataset")
    ]
    words = ", ".join(
        f"{name}: ratio {mine.value.mean():.2f}, Theorem 4 {mine.bound.mean():.0f}, Li "
        f"et al. {mine.k_dpp.mean():.0f}, Corollary 2 used by {mine.cor_2.mean():.0%}"
        for name, mine in table.groupby("dataset")
    )
    return Evidence("O11", parts, words)
